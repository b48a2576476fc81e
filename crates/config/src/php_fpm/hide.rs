//! Hides every value of a php-fpm configuration that the model does not read. Comments are removed, but for those that an edit shows or that decide where it
//! goes; line numbers stay the same.

use super::edit::sample;
use super::effective::is_known;
use super::error::LoadError;
use super::file::{File, Kind};
use super::tree::Tree;
use crate::dump;
use crate::hidden::{HIDDEN, Hidden, is_words};

/// The keys whose values the model reads, and those that a pool always has, which an edit repeats. A recording keeps these values and the names of keys and pools. The readers of crate `sources`
/// ask for no other value of a recording; a test compares the two.
const KEPT: &[&str] = &[
    "group",
    "include",
    "listen",
    "listen.acl_groups",
    "listen.acl_users",
    "listen.backlog",
    "pid",
    "pm",
    "pm.max_children",
    "pm.max_requests",
    "pm.max_spare_servers",
    "pm.min_spare_servers",
    "pm.start_servers",
    "process.max",
    "process_control_timeout",
    "request_terminate_timeout",
    "user",
];

/// Keys whose lines the edits of [`crate::server_setting`] replace or add. Their lines stay as they are written.
const EDITED: &[&str] = &["listen", "listen.backlog", "listen.mode", "listen.owner", "pm.max_children"];

/// Hides unread values in the files of a dump ([`dump::add`]). A configuration that does not parse returns the error of its reader.
pub fn hide(text: &str, prefix: Option<&str>) -> Result<Hidden, LoadError> {
    let tree = Tree::from_dump(text, prefix)?;
    let mut out = Hidden { files: tree.files().len(), ..Hidden::default() };
    for file in tree.files() {
        let hidden = of_file(file, &mut out);
        dump::add(&mut out.text, &file.path, &hidden);
    }
    Ok(out)
}

fn of_file(file: &File, out: &mut Hidden) -> String {
    let mut text = String::new();
    let mut at = 0;
    for entry in file.entries() {
        between(&file.text()[at..entry.span.start], &mut text);
        at = entry.span.end;
        let written = &file.text()[entry.span.clone()];
        let mut is_comment_kept = false;
        match &entry.kind {
            Kind::Section(name) => text.push_str(&format!("[{name}]")),
            Kind::Set { key, index, value, value_span, .. } => {
                out.directives += 1;
                if index.is_none() && is_one_of(EDITED, key) {
                    is_comment_kept = as_written(written, value_span.end - entry.span.start, &mut text);
                } else {
                    let bracket = index.as_ref().map_or("", |_| "[hidden]");
                    text.push_str(if is_known(key) { key } else { HIDDEN });
                    text.push_str(bracket);
                    text.push_str(" =");
                    if !value_span.is_empty() {
                        text.push(' ');
                        let is_kept = index.is_none() && is_one_of(KEPT, key);
                        out.values += usize::from(!is_kept && !value.is_empty());
                        text.push_str(if is_kept { &file.text()[value_span.clone()] } else { HIDDEN });
                    }
                }
            }
        }
        out.comments += usize::from(!is_comment_kept && written.contains(';') && has_comment(written, &entry.kind, entry.span.start));
    }
    between(&file.text()[at..], &mut text);
    out.comments += file.text().lines().filter(|line| line.trim_start().starts_with(';')).count();
    text
}

fn is_one_of(keys: &[&str], key: &str) -> bool {
    keys.iter().any(|known| known.eq_ignore_ascii_case(key))
}

/// A line with its blanks. Of a comment behind its value that is more than a few words, the mark is left: the line is not the one in the file, so no edit of it
/// can be printed. True if a comment stays.
fn as_written(line: &str, value_end: usize, out: &mut String) -> bool {
    // A NUL ends the line for php-fpm.
    let line = line.split('\0').next().unwrap_or_default();
    let comment = line.get(value_end..).and_then(|rest| rest.find(';')).map(|at| value_end + at);
    let is_kept = comment.is_some_and(|at| is_words(&line[at + 1..]));
    out.push_str(if is_kept { line } else { comment.map_or(line, |at| &line[..=at]) });
    is_kept
}

/// True if a comment follows the line's content.
fn has_comment(written: &str, kind: &Kind, start: usize) -> bool {
    match kind {
        Kind::Section(_) => written.contains(';'),
        Kind::Set { value_span, .. } => written[value_span.end - start..].contains(';'),
    }
}

/// Keeps only the line endings, and the commented-out samples of keys that edits add: they are added below those. A carriage return ends a statement too.
fn between(gap: &str, out: &mut String) {
    for line in gap.split_inclusive(['\n', '\r']) {
        if let Some((key, _)) = EDITED.iter().filter_map(|key| Some((key, sample(line, key)?))).next() {
            out.push_str(&format!(";{key} ="));
        }
        out.extend(line.chars().filter(|character| matches!(character, '\n' | '\r')));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hidden(text: &str) -> (String, Hidden) {
        let mut whole = String::new();
        dump::add(&mut whole, "/f.conf", text);
        let out = hide(&whole, None).expect("it parses");
        let left = out.text.strip_prefix("# configuration file /f.conf:\n").and_then(|text| text.strip_suffix('\n'));
        (left.expect("one file").to_owned(), out)
    }

    #[test]
    fn unread_values_are_hidden_and_the_others_stay() {
        let from = "; x\n[global]\nPID = /x ; y\n\n[www] ; z\nlisten = \"9000\"\nenv[A] = 'b c'\nphp_admin_value[d]=e\npm=static\n\
              pm.max_children=5 ;f\n ; listen.backlog= 7\nlisten.backlog=5;x=y\nuser =\nNoKey = x\naccess.format = \"%R\"\n;end";
        let to = "\n[global]\nPID = /x\n\n[www]\nlisten = \"9000\"\nenv[hidden] = hidden\nphp_admin_value[hidden] = hidden\npm = static\n\
              pm.max_children=5 ;f\n;listen.backlog =\nlisten.backlog=5;\nuser =\nhidden = hidden\naccess.format = hidden\n";
        let (left, out) = hidden(from);
        assert_eq!(left, to);
        assert_eq!((out.directives, out.values, out.comments), (10, 4, 6));
        assert_eq!(hidden(to).0, to);
    }

    proptest! {
        #[test]
        fn no_secret_is_left_in_any_place_that_is_not_kept(
            lines in proptest::collection::vec(
                prop_oneof![
                    Just("env[@] = @"), Just("php_admin_value[@] = \"@ @\" ; @"), Just("; @"), Just("@ = @"), Just("prefix = '@'"),
                    Just("access.log = /var/@.log"), Just("slowlog = @\0@"), Just("pm = static ; @"), Just("pm.status_path = /@"),
                    Just("chdir = ${@}"), Just("security.limit_extensions = .@ | @"), Just("ping.response = @\rchdir = @"), Just("listen.group = \"@\" '@'"),
                    Just("pm.max_children = 5 ; @"), Just(";listen.backlog = @"),
                ],
                1..20,
            ),
            marker in "[A-Z][a-z0-9]{10,19}[0-9]",
        ) {
            let text = format!("[www]\n{}", lines.join("\n").replace('@', &marker));
            let (left, _) = hidden(&text);
            prop_assert!(!left.contains(&marker), "{text}\n{left}");
            let shape = |text: &str| {
                let file = crate::php_fpm::parse("f", text).expect("it parses");
                file.entries().iter().map(|entry| entry.line).collect::<Vec<_>>()
            };
            prop_assert_eq!(shape(&left), shape(&text));
        }
    }
}
