//! sysctl.d(5): the value of each kernel parameter at boot, the line that sets it, and edits of a drop-in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::edit::{Replacement, apply, line_ending, removal};
use crate::{Edited, Node, Setting, SourceLine, glob};

/// Directories that hold drop-ins. A file hides the files of the same name in the directories after its own.
pub const DIRECTORIES: &[&str] = &["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d"];
/// The file that procps reads after all drop-ins; systemd reads it only through a link from a drop-in directory.
pub const MAIN_FILE: &str = "/etc/sysctl.conf";
/// The most bytes of one file that are read.
pub const FILE_BYTES_MAX: usize = 1 << 20;

/// The program that applies the files at boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loader {
    /// systemd-sysctl: drop-ins only.
    Systemd,
    /// `sysctl --system` of procps: drop-ins, then [`MAIN_FILE`].
    Procps,
}

/// One line of a drop-in that is neither blank nor a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// `key = value`.
    Set {
        /// Path below /proc/sys: "net/ipv4/ip_local_port_range". May be a pattern.
        path: String,
        /// The value, without blanks around it.
        value: String,
        /// `-key`: a failure to set it is no error.
        optional: bool,
        /// Bytes of the value in the file.
        value_span: std::ops::Range<usize>,
    },
    /// `-key` alone: patterns do not apply to it.
    Exclude {
        /// Path below /proc/sys, or a pattern.
        path: String,
    },
    /// A line that sysctl warns about and skips, or a value that contains `#`: a `#` after a value begins no comment.
    Mistake {
        /// What is wrong.
        why: &'static str,
    },
}

/// A line with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What it says.
    pub entry: Entry,
    /// Its number, from 1.
    pub line: u32,
    /// Its bytes, without its line ending.
    pub span: std::ops::Range<usize>,
}

/// The path below /proc/sys of a key in either form. Dots and slashes mean the same. If the first separator is a dot, slashes are part of a
/// name (`net.ipv4.conf.eth0/100.forwarding`; sysctl.d(5)).
pub fn path_of(key: &str) -> String {
    match key.find(['.', '/']) {
        Some(at) if key[at..].starts_with('.') => key
            .chars()
            .map(|c| {
                if c == '.' {
                    '/'
                } else if c == '/' {
                    '.'
                } else {
                    c
                }
            })
            .collect(),
        _ => key.to_owned(),
    }
}

/// The dotted key of a path below /proc/sys.
pub fn key_of(path: &str) -> String {
    path.chars()
        .map(|c| {
            if c == '/' {
                '.'
            } else if c == '.' {
                '/'
            } else {
                c
            }
        })
        .collect()
}

/// The lines of one drop-in. Blank lines and comments (`#`, `;`) are left out. Text beyond [`FILE_BYTES_MAX`] is ignored.
pub fn parse(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut at = 0;
    for (number, whole) in (1_u32..).zip(text.split_inclusive('\n')) {
        if at > FILE_BYTES_MAX {
            break;
        }
        let line = whole.trim_end_matches(['\n', '\r']);
        let bare = line.trim();
        if !bare.is_empty() && !bare.starts_with(['#', ';']) {
            lines.push(Line { entry: entry(line, at), line: number, span: at..at + line.len() });
        }
        at += whole.len();
    }
    lines
}

fn entry(line: &str, at: usize) -> Entry {
    let (left, right) = match line.split_once('=') {
        Some((left, right)) => (left, Some(right)),
        None => (line, None),
    };
    let key = left.trim();
    let (key, optional) = key.strip_prefix('-').map_or((key, false), |key| (key.trim_start(), true));
    if key.is_empty() || key.contains(char::is_whitespace) {
        return Entry::Mistake { why: "no key" };
    }
    match right {
        None if optional => Entry::Exclude { path: path_of(key) },
        None => Entry::Mistake { why: "no assignment" },
        Some(right) if right.contains(" #") || right.contains("\t#") => {
            Entry::Mistake { why: "a comment cannot follow a value on its line" }
        }
        Some(right) => {
            let value = right.trim();
            let start = at + left.len() + 1 + (right.len() - right.trim_start().len());
            let span = start.min(at + line.len())..(start + value.len()).min(at + line.len());
            Entry::Set { path: path_of(key), value: value.to_owned(), optional, value_span: span }
        }
    }
}

/// The values that the files set at boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    /// Every assignment in the order in which it is made, path or pattern first.
    assignments: Vec<(String, Setting<String>)>,
    excluded: BTreeSet<String>,
    /// Lines that set nothing because of a mistake.
    pub mistakes: Vec<(SourceLine, &'static str)>,
}

impl Boot {
    /// Sorts the files, given as path and text in any order, into the loader's order. Files outside of [`DIRECTORIES`] other than
    /// [`MAIN_FILE`], and names without `.conf`, are left out.
    pub fn of(files: &[(String, String)], loader: Loader) -> Self {
        let mut boot = Self { assignments: Vec::new(), excluded: BTreeSet::new(), mistakes: Vec::new() };
        for index in order(files, loader) {
            let (path, text) = &files[index];
            let file: Arc<str> = path.as_str().into();
            for (entry, line) in parse(text).into_iter().enumerate() {
                let place = SourceLine { file: Arc::clone(&file), line: line.line, node: Node { file: index, entry } };
                match line.entry {
                    Entry::Set { path, value, .. } => boot.assignments.push((path, Setting::set(value, place))),
                    Entry::Exclude { path } => {
                        boot.excluded.insert(path);
                    }
                    Entry::Mistake { why } => boot.mistakes.push((place, why)),
                }
            }
        }
        boot
    }

    /// The value of a parameter, and the line that sets it; `None` if no line sets it and the kernel's default applies. A line that names
    /// the parameter wins over every pattern, wherever it is; among equals the last line wins.
    pub fn value(&self, key: &str) -> Option<&Setting<String>> {
        let path = path_of(key);
        let named = self.assignments.iter().rev().find(|(known, _)| *known == path);
        let by_pattern = || {
            let is_excluded = self.excluded.iter().any(|pattern| *pattern == path || glob::matches(pattern, &path));
            let matching = |(pattern, _): &&(String, Setting<String>)| glob::is_pattern(pattern) && glob::matches(pattern, &path);
            self.assignments.iter().rev().find(matching).filter(|_| !is_excluded)
        };
        named.or_else(by_pattern).map(|(_, setting)| setting)
    }

    /// Every parameter that a line names, in dotted form, with its value.
    pub fn named(&self) -> BTreeMap<String, &Setting<String>> {
        self.assignments.iter().filter(|(path, _)| !glob::is_pattern(path)).map(|(path, setting)| (key_of(path), setting)).collect()
    }
}

/// Indexes of the files that are applied, in the order of their application.
fn order(files: &[(String, String)], loader: Loader) -> Vec<usize> {
    let mut by_name: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut main = None;
    for (index, (path, _)) in files.iter().enumerate() {
        if path == MAIN_FILE {
            main = Some(index);
            continue;
        }
        let Some((directory, name)) = path.rsplit_once('/') else { continue };
        let Some(rank) = DIRECTORIES.iter().position(|known| *known == directory) else { continue };
        if !name.ends_with(".conf") || name.starts_with('.') {
            continue;
        }
        let best = by_name.entry(name).or_insert((rank, index));
        if rank < best.0 {
            *best = (rank, index);
        }
    }
    let main = main.filter(|_| loader == Loader::Procps);
    by_name.into_values().map(|(_, index)| index).chain(main).collect()
}

/// The head of a new drop-in.
const HEAD: &str = "# Written by chokepoint. `chokepoint undo` takes back what it set.\n";

/// The drop-in with these parameters set: on their own line if they have one, else at the end. Nothing else changes. An empty `before`
/// creates a new file. A value must be one line.
pub fn set(path: &str, before: &str, values: &[(&str, &str)]) -> Edited {
    let mut replacements = Vec::new();
    let ending = line_ending(before, before.len());
    let mut added = String::new();
    let lines = parse(before);
    for (key, value) in values {
        let value = value.split(['\n', '\r']).next().unwrap_or_default().trim();
        let wanted = path_of(key);
        let own = lines.iter().rev().find_map(|line| match &line.entry {
            Entry::Set { path, value, value_span, .. } if *path == wanted => Some((value, value_span)),
            _ => None,
        });
        match own {
            Some((old, _)) if old == value => {}
            // Two values for one key replace the same span; the first is kept.
            Some((_, span)) if replacements.iter().any(|known: &Replacement| known.span == *span) => {}
            Some((_, span)) => replacements.push(Replacement { span: span.clone(), text: value.to_owned() }),
            None => added.push_str(&format!("{key} = {value}{ending}")),
        }
    }
    if !added.is_empty() {
        let head = if before.is_empty() { HEAD } else { "" };
        let gap = if before.is_empty() || before.ends_with('\n') { "" } else { ending };
        replacements.push(Replacement { span: before.len()..before.len(), text: format!("{head}{gap}{added}") });
    }
    edited(path, before, &replacements)
}

/// The drop-in without these parameters' lines. If only the generated head is left, the result is empty and the file can be deleted.
pub fn remove(path: &str, before: &str, keys: &[&str]) -> Edited {
    let paths: Vec<String> = keys.iter().map(|key| path_of(key)).collect();
    let is_it = |line: &&Line| matches!(&line.entry, Entry::Set { path, .. } if paths.contains(path));
    let replacements: Vec<Replacement> = parse(before)
        .iter()
        .filter(is_it)
        .map(|line| Replacement { span: removal(before, line.span.clone()), text: String::new() })
        .collect();
    let mut result = edited(path, before, &replacements);
    if result.after == HEAD {
        result.after.clear();
    }
    result
}

fn edited(path: &str, before: &str, replacements: &[Replacement]) -> Edited {
    let after = apply(before, replacements).unwrap_or_else(|_| before.to_owned());
    Edited { path: path.to_owned(), before: before.to_owned(), after }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn boot(files: &[(&str, &str)], loader: Loader) -> Boot {
        let files: Vec<(String, String)> = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        Boot::of(&files, loader)
    }

    fn value(boot: &Boot, key: &str) -> Option<(String, String)> {
        boot.value(key).map(|setting| (setting.value.clone(), setting.origin.to_string()))
    }

    #[test]
    fn a_key_is_added_after_one_without_a_value() {
        for before in ["fs.file-max=", "fs.file-max = \n"] {
            let after =
                set("/etc/sysctl.d/a.conf", before, &[("net.core.somaxconn", "8192"), ("fs.file-max", "7"), ("fs.file-max", "8")]).after;
            let boot = boot(&[("/etc/sysctl.d/a.conf", &after)], Loader::Procps);
            let values = ["net.core.somaxconn", "fs.file-max"].map(|key| value(&boot, key).map(|(value, _)| value));
            assert_eq!(values, [Some("8192".to_owned()), Some("7".to_owned())], "{after:?}");
        }
    }

    #[test]
    fn later_names_win_and_equal_names_hide() {
        let files = [
            ("/usr/lib/sysctl.d/50-default.conf", "net.core.somaxconn = 1\nkernel.sysrq=16\n"),
            ("/etc/sysctl.d/50-default.conf", "net.core.somaxconn = 2\n"),
            ("/run/sysctl.d/60-x.conf", "# a\n; b\n\n net.core.somaxconn=3 \n"),
            ("/etc/sysctl.d/90-chokepoint.conf", "net/core/somaxconn = 4"),
            ("/etc/sysctl.d/README", "net.core.somaxconn = 9"),
            ("/etc/elsewhere.conf", "net.core.somaxconn = 9"),
            ("/etc/sysctl.conf", "net.core.somaxconn = 5"),
        ];
        let systemd = boot(&files, Loader::Systemd);
        assert_eq!(value(&systemd, "net.core.somaxconn"), Some(("4".to_owned(), "/etc/sysctl.d/90-chokepoint.conf:1".to_owned())));
        assert_eq!(value(&systemd, "kernel.sysrq"), None, "its file is hidden");
        let procps = boot(&files, Loader::Procps);
        assert_eq!(value(&procps, "net/core/somaxconn").map(|(value, _)| value).as_deref(), Some("5"));
        let without = boot(&files[..3], Loader::Systemd);
        assert_eq!(value(&without, "net.core.somaxconn"), Some(("3".to_owned(), "/run/sysctl.d/60-x.conf:4".to_owned())));
    }

    #[test]
    fn names_win_over_patterns() {
        let text = "net.ipv4.conf.hub0.rp_filter = 1\n-net.ipv4.conf.all.rp_filter\nnet.ipv4.conf.*.rp_filter = 2\n-net.x = 3\n";
        let boot = boot(&[("/etc/sysctl.d/a.conf", text)], Loader::Systemd);
        assert_eq!(value(&boot, "net.ipv4.conf.hub0.rp_filter").map(|(value, _)| value).as_deref(), Some("1"));
        assert_eq!(value(&boot, "net.ipv4.conf.eth0.rp_filter").map(|(value, _)| value).as_deref(), Some("2"));
        assert_eq!(value(&boot, "net.ipv4.conf.all.rp_filter"), None);
        assert_eq!(value(&boot, "net.x").map(|(value, _)| value).as_deref(), Some("3"));
        assert_eq!(boot.named().keys().collect::<Vec<_>>(), ["net.ipv4.conf.hub0.rp_filter", "net.x"]);
    }

    #[test]
    fn keys_in_both_forms() {
        assert_eq!(path_of("net.ipv4.conf.eth0/100.forwarding"), "net/ipv4/conf/eth0.100/forwarding");
        assert_eq!(path_of("net/ipv4/conf/eth0.100/forwarding"), "net/ipv4/conf/eth0.100/forwarding");
        assert_eq!(key_of("net/ipv4/conf/eth0.100/forwarding"), "net.ipv4.conf.eth0/100.forwarding");
    }

    #[test]
    fn mistakes_are_reported() {
        let text = "net.core.somaxconn 5\n = 5\na b = 5\nvm.swappiness = 10 # low\nx.y =\n";
        let boot = boot(&[("/etc/sysctl.d/a.conf", text)], Loader::Systemd);
        assert_eq!(boot.mistakes.iter().map(|(place, _)| place.line).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(value(&boot, "x.y").map(|(value, _)| value).as_deref(), Some(""));
    }

    #[test]
    fn a_drop_in_is_created_changed_and_emptied() {
        let path = "/etc/sysctl.d/90-chokepoint.conf";
        let made = set(path, "", &[("net.core.somaxconn", "65536"), ("net.ipv4.ip_local_port_range", "10000 65535")]);
        assert_eq!(made.after, format!("{HEAD}net.core.somaxconn = 65536\nnet.ipv4.ip_local_port_range = 10000 65535\n"));
        assert!(made.diff().starts_with("--- a/etc/sysctl.d/90-chokepoint.conf\n+++ b/etc/sysctl.d/90-chokepoint.conf\n@@ -0,0 +1,3 @@\n"));
        let again = set(path, &made.after, &[("net.core.somaxconn", "65536")]);
        assert_eq!(again.after, made.after);
        let changed = set(path, "# mine\r\nnet/core/somaxconn=1\r\n", &[("net.core.somaxconn", "2"), ("a.b", "c")]);
        assert_eq!(changed.after, "# mine\r\nnet/core/somaxconn=2\r\na.b = c\r\n");
        assert_eq!(set(path, "a.b =", &[("a.b", "1")]).after, "a.b =1");
        assert_eq!(set(path, "x.y = 1", &[("a.b", "1")]).after, "x.y = 1\na.b = 1\n");
        let fewer = remove(path, &made.after, &["net.core.somaxconn"]);
        assert_eq!(fewer.after, format!("{HEAD}net.ipv4.ip_local_port_range = 10000 65535\n"));
        assert_eq!(remove(path, &fewer.after, &["net.ipv4.ip_local_port_range"]).after, "");
        assert_eq!(remove(path, "# mine\na.b = 1\n", &["a.b"]).after, "# mine\n");
    }

    proptest! {
        #[test]
        fn what_is_set_is_in_force(text in "([a-c.=# ;\\-*/1\r\n]|a\\.b = 1\n){0,30}", value in "[a-z0-9 ]{0,6}") {
            let edit = set("/etc/sysctl.d/a.conf", &text, &[("a.b", &value)]);
            let boot = boot(&[("/etc/sysctl.d/a.conf", &edit.after)], Loader::Systemd);
            prop_assert_eq!(boot.value("a.b").map(|setting| setting.value.as_str()), Some(value.trim()));
            prop_assert_eq!(set("f", &edit.after, &[("a.b", &value)]).after, edit.after);
        }
    }
}
