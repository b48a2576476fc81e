//! Edits of a HAProxy configuration: the value of one limit, where its own section or line states it; otherwise the limit is added there, and what others take
//! from `defaults` stays as it is.

use thiserror::Error;

use super::effective::Haproxy;
use super::error::{LoadError, SyntaxError};
use super::file::{self, Entry, File};
use super::proxy::{BIND_OPTIONS, Proxy, SERVER_OPTIONS, option_value};
use super::tree::{Tree, is_section};
use super::words::Word;
use crate::edit::{Replacement, indentation, line_end, line_ending};
use crate::{Edited, Node};

/// The blanks before a line in a section that has no other.
const INDENT: &str = "    ";

/// Where a limit stands.
#[derive(Debug, Clone, Copy)]
pub struct LimitPlace<'a> {
    /// The section, as it begins: "global", "frontend www", "backend app".
    pub section: &'a str,
    /// How the line begins that has it among its words: "server a", "bind :80". Empty if it has a line of its own.
    pub line: &'a str,
    /// Its name: "maxconn", "rate-limit sessions".
    pub limit: &'a str,
}

/// Why an edit was not made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EditError {
    /// There is no such section or line, or there are several.
    #[error("the configuration has {0}")]
    NoPlace(String),
    /// HAProxy's environment decides.
    #[error("{0} is computed from HAProxy's environment")]
    Computed(String),
    /// The new value is no number of HAProxy's.
    #[error("\"{0}\" is not a number")]
    NoNumber(String),
    /// The values in force cannot be read.
    #[error(transparent)]
    Unread(#[from] LoadError),
    /// The file would not parse afterwards.
    #[error("the edit would break the file: {0}")]
    Broken(#[from] SyntaxError),
}

/// The value in force; `None` if there is no such place, or nothing limits it there.
pub fn limit(tree: &Tree, at: LimitPlace<'_>) -> Option<u64> {
    let read = Haproxy::of(tree).ok()?;
    if at.section == "global" {
        return read.global.number(at.limit);
    }
    let mut named = read.proxies.iter().filter(|proxy| section_of(proxy) == at.section);
    let proxy = named.next().filter(|_| named.next().is_none())?;
    proxy.number(at.line, at.limit)
}

/// A proxy's section, as it begins: "frontend www".
pub fn section_of(proxy: &Proxy) -> String {
    format!("{} {}", proxy.kind.word(), proxy.name)
}

/// The file in which a limit gets a value; none if it has that value already.
///
/// # Errors
/// There is not exactly one place for it, or its value is not known.
pub fn set_limit(tree: &Tree, at: LimitPlace<'_>, to: &str) -> Result<Vec<Edited>, EditError> {
    if to.is_empty() || !to.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(EditError::NoNumber(to.to_owned()));
    }
    if limit(tree, at).is_some_and(|now| now.to_string() == to) {
        return Ok(Vec::new());
    }
    let (head, lines) = section(tree, at.section)?;
    let file = &tree.files()[head.file];
    let change = if at.line.is_empty() { own_line(file, head, &lines, at, to)? } else { in_line(file, &lines, at, to)? };
    let Ok(edited) = Edited::of(&file.path, file.text(), &[change]) else { return Ok(Vec::new()) };
    if let Some(edited) = &edited {
        file::parse(&edited.path, &edited.after)?;
    }
    Ok(edited.into_iter().collect())
}

/// The line that begins a section, and its lines.
fn section<'t>(tree: &'t Tree, name: &str) -> Result<(Node, Vec<&'t Entry>), EditError> {
    let begins = |entry: &Entry| match entry.word(0) {
        "global" => name == "global",
        kind => name.strip_prefix(kind).and_then(|rest| rest.strip_prefix(' ')) == Some(entry.word(1)),
    };
    let mut found: Option<(Node, Vec<&Entry>)> = None;
    let mut is_inside = false;
    for (node, entry) in tree.nodes() {
        if is_section(entry) {
            is_inside = begins(entry);
            // HAProxy joins the sections `global`, and refuses two proxies of one name and kind.
            match &found {
                Some((first, _)) if is_inside && first.file != node.file => return Err(EditError::NoPlace(format!("several {name}"))),
                None if is_inside => found = Some((node, Vec::new())),
                _ => {}
            }
        } else if let Some((_, lines)) = found.as_mut().filter(|(head, _)| is_inside && head.file == node.file) {
            lines.push(entry);
        }
    }
    found.ok_or_else(|| EditError::NoPlace(format!("no {name}")))
}

/// The change of a line that has nothing but the limit, or such a line as the section's first.
fn own_line(file: &File, head: Node, lines: &[&Entry], at: LimitPlace<'_>, to: &str) -> Result<Replacement, EditError> {
    let length = at.limit.split(' ').count();
    match lines.iter().rev().find(|line| line.begins_with(at.limit)).map(|line| line.words.get(length)) {
        Some(Some(word)) => replaced(word, at, to),
        Some(None) => Err(EditError::NoPlace(format!("{} without a value in {}", at.limit, at.section))),
        None => {
            let text = file.text();
            let begins = file.entries()[head.entry].span.start;
            let below = line_end(text, begins);
            let indent = lines.first().map_or(INDENT, |line| indentation(text, line.span.start));
            let ending = line_ending(text, begins);
            let before = if text[..below].ends_with('\n') { "" } else { ending };
            Ok(Replacement { span: below..below, text: format!("{before}{indent}{} {to}{ending}", at.limit) })
        }
    }
}

/// The change of a line that has the limit among its words, or that gets it as its last ones.
fn in_line(file: &File, lines: &[&Entry], at: LimitPlace<'_>, to: &str) -> Result<Replacement, EditError> {
    let (kind, name) = at.line.split_once(' ').unwrap_or((at.line, ""));
    let mut named = lines.iter().filter(|line| line.word(0) == kind && line.word(1) == name);
    let place = || format!("{} in {}", at.line, at.section);
    let line = named.next().ok_or_else(|| EditError::NoPlace(format!("no {}", place())))?;
    if named.next().is_some() {
        return Err(EditError::NoPlace(format!("several {}", place())));
    }
    let (from, valued) = if kind == "server" { (3, SERVER_OPTIONS) } else { (2, BIND_OPTIONS) };
    match option_value(line, from, valued, at.limit) {
        Some(index) => match line.words.get(index) {
            Some(word) => replaced(word, at, to),
            None => Err(EditError::NoPlace(format!("{} without a value in {}", at.limit, place()))),
        },
        None => {
            let end = line.words.last().map_or(line.span.end, |word| word.span.end).min(file.text().len());
            Ok(Replacement { span: end..end, text: format!(" {} {to}", at.limit) })
        }
    }
}

fn replaced(word: &Word, at: LimitPlace<'_>, to: &str) -> Result<Replacement, EditError> {
    match word.computed {
        true => Err(EditError::Computed(format!("{} in {}", at.limit, at.section))),
        false => Ok(Replacement { span: word.span.clone(), text: to.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHOP: &str = "global\n\tmaxconn 4000 # enough\ndefaults\n  mode http\n  maxconn 900\n  default-server maxconn 50 check\n\
        frontend www # all\n    bind :80,[::1]:81   maxconn 100 mss 1400\n    bind :443\n    rate-limit sessions 30\n\
        backend app\n    server a 127.0.0.1:8081 check maxconn 2  maxconn \"3\" weight 10 # two\n    server b 127.0.0.1:8082\r\n\
        backend empty\nlisten db\n    server d 127.0.0.1:1 maxconn \"$MANY\"\n    server e :1\n    server e :2";

    fn tree(text: &str) -> Tree {
        let mut disk = |path: &str| vec![(path.to_owned(), Ok(text.to_owned()))];
        Tree::load(&["/h.cfg"], &mut disk).unwrap()
    }

    /// The lines that an edit takes away and adds.
    fn edited(place: (&str, &str, &str), to: &str) -> Result<Vec<String>, String> {
        let (section, line, limit) = place;
        let files = set_limit(&tree(SHOP), LimitPlace { section, line, limit }, to).map_err(|error| error.to_string())?;
        let Some(file) = files.first() else { return Ok(Vec::new()) };
        assert_eq!(super::limit(&tree(&file.after), LimitPlace { section, line, limit }).map(|now| now.to_string()).as_deref(), Some(to));
        let is_change =
            |line: &&str| (line.starts_with('-') || line.starts_with('+')) && !line.starts_with("---") && !line.starts_with("+++");
        Ok(file.diff().split_inclusive('\n').filter(is_change).map(str::to_owned).collect())
    }

    #[test]
    fn a_limit_is_changed_where_it_stands_for_its_owner_alone() {
        let told = |place, to| edited(place, to).unwrap().concat();
        assert_eq!(told(("global", "", "maxconn"), "5000"), "-\tmaxconn 4000 # enough\n+\tmaxconn 5000 # enough\n");
        assert_eq!(told(("frontend www", "", "rate-limit sessions"), "60"), "-    rate-limit sessions 30\n+    rate-limit sessions 60\n");
        assert_eq!(told(("frontend www", "", "maxconn"), "950"), "+    maxconn 950\n", "defaults keep theirs");
        assert_eq!(
            told(("frontend www", "bind :80,[::1]:81", "maxconn"), "7"),
            "-    bind :80,[::1]:81   maxconn 100 mss 1400\n+    bind :80,[::1]:81   maxconn 7 mss 1400\n"
        );
        assert_eq!(
            told(("backend app", "server a", "maxconn"), "9"),
            "-    server a 127.0.0.1:8081 check maxconn 2  maxconn \"3\" weight 10 # two\n\
             +    server a 127.0.0.1:8081 check maxconn 2  maxconn 9 weight 10 # two\n",
            "the last one counts"
        );
        assert_eq!(
            told(("backend app", "server b", "maxconn"), "60"),
            "-    server b 127.0.0.1:8082\r\n+    server b 127.0.0.1:8082 maxconn 60\r\n",
            "default-server keeps its own"
        );
        assert_eq!(told(("backend app", "server a", "maxconn"), "3"), "", "it is so already");
        assert_eq!(told(("backend empty", "", "maxconn"), "3"), "+    maxconn 3\n");
    }

    #[test]
    fn what_is_not_one_known_place_is_refused() {
        let why = |place, to| edited(place, to).unwrap_err();
        assert_eq!(why(("backend app", "server x", "maxconn"), "9"), "the configuration has no server x in backend app");
        assert_eq!(why(("listen db", "server e", "maxconn"), "9"), "the configuration has several server e in listen db");
        assert_eq!(why(("frontend x", "", "maxconn"), "9"), "the configuration has no frontend x");
        assert_eq!(why(("listen db", "server d", "maxconn"), "9"), "maxconn in listen db is computed from HAProxy's environment");
        assert_eq!(why(("global", "", "maxconn"), "9 user root"), "\"9 user root\" is not a number");
    }

    proptest! {
        #[test]
        fn an_edit_of_any_text_changes_its_own_value_or_nothing(
            lines in proptest::collection::vec(
                prop_oneof![
                    Just("global"), Just("defaults"), Just("frontend f"), Just("backend b"), Just("listen l"), Just(" maxconn 5"), Just("maxconn"),
                    Just("\tserver s :1 check maxconn 3 # x"), Just(" server s :1"), Just(" server t :2 maxconn"), Just(" bind :80 maxconn 4\r"), Just("# y"),
                    Just(" default-server maxconn 8"), Just(" server s \"a b\" \"maxconn\" '6'"), Just(""),
                ],
                0..14,
            ),
            section in prop_oneof![Just("global"), Just("frontend f"), Just("backend b"), Just("listen l")],
            line in prop_oneof![Just(""), Just("server s"), Just("bind :80")],
            to in 1_u32..99,
        ) {
            let text = lines.join("\n");
            let place = LimitPlace { section, line, limit: "maxconn" };
            let parsed = tree(&text);
            if let Ok(files) = set_limit(&parsed, place, &to.to_string()) {
                let after = files.first().map_or(text.as_str(), |file| file.after.as_str());
                let kinds = |text: &str| text.lines().filter(|line| !line.trim().is_empty()).count();
                prop_assert!(kinds(after) <= kinds(&text) + 1);
                let is_alone = Haproxy::of(&parsed).unwrap().proxies.iter().filter(|proxy| section_of(proxy) == section).count() <= 1;
                if is_alone && (section == "global") <= line.is_empty() {
                    prop_assert_eq!(limit(&tree(after), place), Some(u64::from(to)), "{}", after);
                }
            }
        }
    }
}
