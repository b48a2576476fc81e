//! Hides every value of a php-fpm configuration that the model does not read. Comments are removed; line numbers stay the same.

use super::effective::is_known;
use super::error::LoadError;
use super::file::{File, Kind};
use super::tree::Tree;
use crate::dump;
use crate::hidden::{HIDDEN, Hidden};

/// The keys whose values the model reads. A recording keeps these values and the names of keys and pools. The readers of crate `sources`
/// ask for no other value of a recording; a test compares the two.
const KEPT: &[&str] = &[
    "include",
    "listen",
    "listen.backlog",
    "pm",
    "pm.max_children",
    "pm.max_requests",
    "process_control_timeout",
    "request_terminate_timeout",
];

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
        line_feeds(&file.text()[at..entry.span.start], &mut text);
        at = entry.span.end;
        let written = &file.text()[entry.span.clone()];
        match &entry.kind {
            Kind::Section(name) => text.push_str(&format!("[{name}]")),
            Kind::Set { key, index, value, value_span, .. } => {
                out.directives += 1;
                let bracket = index.as_ref().map_or("", |_| "[hidden]");
                text.push_str(if is_known(key) { key } else { HIDDEN });
                text.push_str(bracket);
                text.push_str(" =");
                if index.is_none() && KEPT.iter().any(|kept| kept.eq_ignore_ascii_case(key)) {
                    text.push(' ');
                    text.push_str(&file.text()[value_span.clone()]);
                } else if !value_span.is_empty() {
                    out.values += usize::from(!value.is_empty());
                    text.push(' ');
                    text.push_str(HIDDEN);
                }
            }
        }
        out.comments += usize::from(written.contains(';') && has_comment(written, &entry.kind, entry.span.start));
    }
    let rest = &file.text()[at..];
    line_feeds(rest, &mut text);
    out.comments += file.text().lines().filter(|line| line.trim_start().starts_with(';')).count();
    text
}

/// True if a comment follows the line's content.
fn has_comment(written: &str, kind: &Kind, start: usize) -> bool {
    match kind {
        Kind::Section(_) => written.contains(';'),
        Kind::Set { value_span, .. } => written[value_span.end - start..].contains(';'),
    }
}

/// Keeps only the line endings. A carriage return ends a statement too.
fn line_feeds(gap: &str, out: &mut String) {
    out.extend(gap.chars().filter(|character| matches!(character, '\n' | '\r')));
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
            pm.max_children = 5;f\nuser =\nNoKey = x\naccess.format = \"%R\"\n;end";
        let to = "\n[global]\nPID = hidden\n\n[www]\nlisten = \"9000\"\nenv[hidden] = hidden\nphp_admin_value[hidden] = hidden\npm = static\n\
            pm.max_children = 5\nuser =\nhidden = hidden\naccess.format = hidden\n";
        let (left, out) = hidden(from);
        assert_eq!(left, to);
        assert_eq!((out.directives, out.values, out.comments), (9, 5, 5));
        assert_eq!(hidden(to).0, to);
    }

    proptest! {
        #[test]
        fn no_secret_is_left_in_any_place_that_is_not_kept(
            lines in proptest::collection::vec(
                prop_oneof![
                    Just("env[@] = @"), Just("php_admin_value[@] = \"@ @\" ; @"), Just("; @"), Just("@ = @"), Just("user = '@'"),
                    Just("access.log = /var/@.log"), Just("slowlog = @\0@"), Just("pm = static ; @"), Just("pm.status_path = /@"),
                    Just("chdir = ${@}"), Just("security.limit_extensions = .@ | @"), Just("ping.response = @\rgroup = @"), Just("listen.owner = \"@\" '@'"),
                ],
                1..20,
            ),
            marker in "[A-Z][a-z0-9]{11,20}",
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
