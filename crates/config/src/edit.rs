//! Edits are replacements of spans of text. Everything outside the spans stays byte for byte the same.

use std::ops::Range;

use crate::diff;

/// One span of a file and its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// The byte range in the old text; empty for an insertion.
    pub span: Range<usize>,
    /// The new text.
    pub text: String,
}

/// A file before and after the edits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// Its path.
    pub path: String,
    /// The text that was parsed.
    pub before: String,
    /// The text to write.
    pub after: String,
}

impl Edited {
    /// A file after these replacements; `None` if they change nothing.
    pub(crate) fn of(path: &str, before: &str, replacements: &[Replacement]) -> Result<Option<Self>, Overlap> {
        let after = apply(before, replacements)?;
        Ok((after != before).then(|| Self { path: path.to_owned(), before: before.to_owned(), after }))
    }

    /// The change as a unified diff.
    pub fn diff(&self) -> String {
        diff::unified(&self.path, &self.before, &self.after)
    }
}

/// Two replacements touch the same bytes: one edit contradicts an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Overlap;

/// The text with all replacements applied. Insertions at one point keep their order.
pub(crate) fn apply(text: &str, replacements: &[Replacement]) -> Result<String, Overlap> {
    let mut ordered: Vec<&Replacement> = replacements.iter().collect();
    ordered.sort_by_key(|replacement| (replacement.span.start, replacement.span.end));
    let mut result = String::with_capacity(text.len() + replacements.iter().map(|replacement| replacement.text.len()).sum::<usize>());
    let mut done = 0;
    for replacement in ordered {
        let between = text.get(done..replacement.span.start).ok_or(Overlap)?;
        result.push_str(between);
        result.push_str(&replacement.text);
        done = replacement.span.end;
    }
    result.push_str(text.get(done..).ok_or(Overlap)?);
    Ok(result)
}

/// Start of the line that contains `at`.
pub(crate) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |index| index + 1)
}

/// End of the line that contains `at`, after its line feed; the end of the text if there is none.
pub(crate) fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |index| at + index + 1)
}

/// The blanks at the start of the line that contains `at`.
pub(crate) fn indentation(text: &str, at: usize) -> &str {
    let line = &text[line_start(text, at)..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// True if only blanks are between the start of the line and `at`.
pub(crate) fn is_first_on_line(text: &str, at: usize) -> bool {
    text[line_start(text, at)..at].trim_matches([' ', '\t']).is_empty()
}

/// The line ending that the text uses around `at`: that of the same line, else that of the whole text, else a line feed.
pub(crate) fn line_ending(text: &str, at: usize) -> &'static str {
    let ends_with_cr = |end: usize| text[..end].ends_with("\r\n");
    let own = line_end(text, at);
    let end = if text[..own].ends_with('\n') && own > at { Some(own) } else { text.find('\n').map(|index| index + 1) };
    if end.is_some_and(ends_with_cr) { "\r\n" } else { "\n" }
}

/// The span to remove with an entry: its whole line if the entry is alone on it, else the entry and the blanks before it.
pub(crate) fn removal(text: &str, span: Range<usize>) -> Range<usize> {
    let end = line_end(text, span.end);
    if is_first_on_line(text, span.start) && text[span.end..end].trim().is_empty() {
        return line_start(text, span.start)..end;
    }
    let before = text[..span.start].trim_end_matches([' ', '\t']).len();
    let keeps_line_start = is_first_on_line(text, span.start);
    if keeps_line_start {
        span.start..span.end + (text[span.end..].len() - text[span.end..].trim_start_matches([' ', '\t']).len())
    } else {
        before..span.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replacement(span: Range<usize>, text: &str) -> Replacement {
        Replacement { span, text: text.to_owned() }
    }

    #[test]
    fn replacements_are_applied_in_order_of_position() {
        let text = "a b c";
        let edits = [replacement(4..5, "C"), replacement(0..1, "A"), replacement(2..2, "x")];
        assert_eq!(apply(text, &edits).as_deref(), Ok("A xb C"));
        assert_eq!(apply(text, &[replacement(0..3, ""), replacement(2..4, "")]), Err(Overlap));
        assert_eq!(apply(text, &[replacement(0..9, "")]), Err(Overlap));
    }

    #[test]
    fn an_entry_alone_on_its_line_is_removed_with_the_line() {
        let text = "a;\n  b;\nc; d; # e\n";
        assert_eq!(removal(text, 5..7), 3..8);
        assert_eq!(removal(text, 11..13), 10..13);
        assert_eq!(removal(text, 8..10), 8..11);
    }

    #[test]
    fn line_endings_follow_the_surrounding_lines() {
        assert_eq!(line_ending("a\r\nb\n", 0), "\r\n");
        assert_eq!(line_ending("a\r\nb\n", 3), "\n");
        assert_eq!(line_ending("a\r\nb", 3), "\r\n");
        assert_eq!(line_ending("", 0), "\n");
    }
}
