//! Removes one edit from a text that was edited again since. Everything that the edit did not touch stays byte for byte the same.

use std::ops::Range;

use crate::diff::{Step, script};

/// The most tokens that an added piece may be shifted to find the same edit: often the same line feed is before and after it.
const SLIDE_MAX: usize = 64;

/// One piece of the edit: its tokens with the edit, and its tokens without it.
#[derive(Debug, Clone)]
struct Piece {
    with: Range<usize>,
    without: Range<usize>,
}

/// `now` without an edit. The edit turned `without` into `with`; other edits turned `with` into `now`. `None` if those touch what the edit
/// changed: then no result is certainly right.
pub fn take_out(without: &str, with: &str, now: &str) -> Option<String> {
    let (old, edited, current) = (tokens(without), tokens(with), tokens(now));
    let places = places(&edited, &current);
    let mut found = Vec::new();
    for piece in pieces(&edited, &old) {
        found.push((located(&piece, &edited, &places)?, old[piece.without.clone()].concat()));
    }
    let mut text = String::with_capacity(now.len());
    let mut done = 0;
    for (span, replacement) in found {
        text.push_str(&current.get(done..span.start)?.concat());
        text.push_str(&replacement);
        done = span.end;
    }
    text.push_str(&current.get(done..)?.concat());
    Some(text)
}

/// Splits a text into words, runs of blanks, and single other characters.
fn tokens(text: &str) -> Vec<&str> {
    let kind = |c: char| match c {
        c if c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '/') => 1,
        ' ' | '\t' => 2,
        _ => 0,
    };
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = match kind(first) {
            0 => first.len_utf8(),
            one => rest.find(|c| kind(c) != one).unwrap_or(rest.len()),
        };
        let (token, behind) = rest.split_at(end);
        tokens.push(token);
        rest = behind;
    }
    tokens
}

/// The pieces in which the edited text differs from the old text.
fn pieces(edited: &[&str], old: &[&str]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let (mut at, mut at_old, mut open) = (0, 0, false);
    for step in script(edited, old) {
        let (with, without) = match step {
            Step::Keep(..) => (1, 1),
            Step::Remove(_) => (1, 0),
            Step::Add(_) => (0, 1),
        };
        let differs = !matches!(step, Step::Keep(..));
        match pieces.last_mut().filter(|_| open && differs) {
            Some(last) => (last.with.end, last.without.end) = (at + with, at_old + without),
            None if differs => pieces.push(Piece { with: at..at + with, without: at_old..at_old + without }),
            None => {}
        }
        (at, at_old, open) = (at + with, at_old + without, differs);
    }
    pieces
}

/// The current position of each token of the edited text, with positions before the first and after the last token; `None` for removed
/// tokens.
fn places(edited: &[&str], current: &[&str]) -> Vec<Option<usize>> {
    let mut places = vec![None; edited.len() + 2];
    // Both texts begin before their first token and end after their last.
    (places[0], places[edited.len() + 1]) = (Some(0), Some(current.len() + 1));
    for step in script(edited, current) {
        if let Step::Keep(at, now) = step {
            places[at + 1] = Some(now + 1);
        }
    }
    places
}

/// The current range of a piece's tokens, if they are still contiguous.
fn located(piece: &Piece, edited: &[&str], places: &[Option<usize>]) -> Option<Range<usize>> {
    if piece.with.is_empty() {
        // The edit removed something. It returns between its neighbours if nothing came between them.
        let (before, behind) = (places[piece.with.start]?, places[piece.with.start + 1]?);
        return (behind == before + 1).then_some(before..before);
    }
    let together = |with: &Range<usize>| {
        let first = places[with.start + 1]?;
        let whole = with.clone().enumerate().all(|(nth, at)| places[at + 1] == Some(first + nth));
        whole.then_some(first - 1..first - 1 + with.len())
    };
    if let Some(span) = together(&piece.with) {
        return Some(span);
    }
    if !piece.without.is_empty() {
        return None;
    }
    // The edit only added tokens. The same tokens shifted a little earlier or later are the same edit.
    let later = (1..=SLIDE_MAX).map(|by| piece.with.start + by..piece.with.end + by);
    let is_same_later = |with: &Range<usize>| with.end <= edited.len() && edited[with.start - 1] == edited[with.end - 1];
    let earlier = (1..=SLIDE_MAX).map_while(|by| Some(piece.with.start.checked_sub(by)?..piece.with.end - by));
    let is_same_earlier = |with: &Range<usize>| edited[with.start] == edited[with.end];
    later.take_while(is_same_later).find_map(|with| together(&with)).or_else(|| {
        let mut earlier = earlier.take_while(is_same_earlier);
        earlier.find_map(|with| together(&with))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAIN: &str = "user www;\nevents { worker_connections 100; } # few\nhttp {\n    include x/*;\n}\n";

    fn edited(from: &str, to: &str) -> String {
        assert!(MAIN.contains(from));
        MAIN.replacen(from, to, 1)
    }

    #[test]
    fn a_value_is_restored_and_the_other_edits_stay() {
        let with = edited("100", "200");
        for (from, to) in [
            ("# few", "# by hand"),
            ("events {", "events { multi_accept on;"),
            ("user www;\n", "user www;\n# more\n\nworker_processes 2;\n"),
            ("worker_connections", "  worker_connections"),
            ("}\n", "}"),
            ("include x/*;", "include y/*;\r\n"),
        ] {
            let now = with.replacen(from, to, 1);
            assert_ne!(now, with);
            assert_eq!(take_out(MAIN, &with, &now), Some(now.replacen("200", "100", 1)), "{from} to {to}");
        }
        assert_eq!(take_out(MAIN, &with, &with).as_deref(), Some(MAIN));
    }

    #[test]
    fn added_text_is_removed_and_removed_text_returns() {
        let line = "worker_rlimit_nofile 4000;\n";
        let with = edited("events {", &format!("{line}events {{"));
        for (from, to) in
            [("user www;\n", "user www;\nuser you;\n"), ("user www;\n", "\n"), (line, &format!("{line}\n# x\n")), ("few", "many")]
        {
            let now = with.replacen(from, to, 1);
            assert_eq!(take_out(MAIN, &with, &now), Some(now.replacen(line, "", 1)), "{from:?} to {to:?}");
        }
        let with = edited(" # few", "");
        let now = with.replacen("user www", "user me", 1);
        assert_eq!(take_out(MAIN, &with, &now), Some(MAIN.replacen("user www", "user me", 1)));
    }

    #[test]
    fn a_piece_that_others_changed_too_is_refused() {
        let with = edited("100", "200");
        assert_eq!(take_out(MAIN, &with, &with.replace("200", "300")), None);
        assert_eq!(take_out(MAIN, &with, &with.replace("events { worker_connections 200; } # few\n", "")), None);
        assert_eq!(take_out(MAIN, &with, ""), None);
    }

    proptest! {
        /// The other edit is a line before or after: it stays, and this edit is removed.
        #[test]
        fn an_edit_elsewhere_stays_to_the_byte(lines in proptest::collection::vec("[a-c;{} ]{0,6}", 1..12), at in 0..12_usize, other in 0..12_usize, to in "[d-f]{1,4}", more in "[g-i;{} ]{1,8}") {
            let at = at % lines.len();
            let put = |lines: &[String], index: usize, text: &str| { let mut lines = lines.to_vec(); lines[index].push_str(text); lines };
            let joined = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
            let with = put(&lines, at, &to);
            let insert = |lines: &[String]| { let mut lines = lines.to_vec(); lines.insert(other % (lines.len() + 1), more.clone()); lines };
            if let Some(text) = take_out(&joined(&lines), &joined(&with), &joined(&insert(&with))) {
                prop_assert_eq!(text, joined(&insert(&lines)));
            }
        }

        #[test]
        fn any_texts_are_survived(old in "[ab\n ]{0,30}", with in "[ab\n ]{0,30}", now in "[ab\n ]{0,30}") {
            let _ = take_out(&old, &with, &now);
            prop_assert_eq!(take_out(&old, &with, &with), Some(old.clone()));
            prop_assert_eq!(take_out(&old, &old, &now), Some(now));
        }
    }
}
