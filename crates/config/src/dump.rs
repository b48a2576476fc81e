//! Several files in one text, as `nginx -T` prints them. A configuration travels in this form if its files cannot be sent.

use crate::glob;
use crate::include::Resolved;

/// The text before each file. The file's path and a colon follow it.
const MARKER: &str = "# configuration file ";

/// Adds a file to a dump as `nginx -T` does: a line with its path, its text, and one line feed.
pub fn add(dump: &mut String, path: &str, text: &str) {
    dump.push_str(MARKER);
    dump.push_str(path);
    dump.push_str(":\n");
    dump.push_str(text);
    dump.push('\n');
}

/// The text before the first file: nginx's own messages, or whatever the author of the dump wrote there.
pub fn head(dump: &str) -> &str {
    let mut at = 0;
    for line in dump.split_inclusive('\n') {
        if marked(line).is_some() {
            break;
        }
        at += line.len();
    }
    &dump[..at]
}

fn marked(line: &str) -> Option<&str> {
    line.strip_prefix(MARKER)?.trim_end_matches(['\n', '\r']).strip_suffix(':')
}

/// Path and size in bytes of each file. It copies nothing, however many files there are.
pub fn sizes(dump: &str) -> impl Iterator<Item = (&str, usize)> {
    let mut rest = &dump[head(dump).len()..];
    std::iter::from_fn(move || {
        let path = marked(rest.split_inclusive('\n').next()?)?;
        let text = &rest[rest.find('\n').map_or(rest.len(), |end| end + 1)..];
        let bytes = head(text).len();
        rest = &text[bytes..];
        Some((path, bytes))
    })
}

/// Path and text of each file. nginx adds one line feed after each. A comment line that looks like a marker is taken for one.
pub(crate) fn sections(dump: &str) -> Vec<(&str, &str)> {
    let mut marks: Vec<(usize, usize, &str)> = Vec::new();
    let mut at = 0;
    for line in dump.split_inclusive('\n') {
        if let Some(path) = marked(line) {
            marks.push((at, at + line.len(), path));
        }
        at += line.len();
    }
    let ends = marks.iter().skip(1).map(|(start, ..)| *start).chain([dump.len()]);
    marks
        .iter()
        .zip(ends)
        .map(|(&(_, start, path), end)| (path, dump[start..end].strip_suffix('\n').unwrap_or(&dump[start..end])))
        .collect()
}

/// Finds a path or pattern among the files of a dump. The result is sorted as glob(3) sorts.
pub(crate) fn resolve(files: &[(&str, &str)], pattern: &str) -> Vec<Resolved> {
    let is_pattern = glob::is_pattern(pattern);
    let wanted = |path: &str| if is_pattern { glob::matches(pattern, path) } else { path == pattern };
    let mut found: Vec<&(&str, &str)> = files.iter().filter(|(path, _)| wanted(path)).collect();
    found.sort_unstable();
    found.into_iter().map(|(path, text)| ((*path).to_owned(), Ok((*text).to_owned()))).collect()
}
