//! Hides every word of a HAProxy configuration that the model does not read. Comments are removed, but for a few words behind a line that remedies edit and of which nothing is hidden:
//! it can be shown as it is edited. Behind any other line that has one the mark of a comment is left. Line numbers stay the same.

use super::effective::GLOBAL;
use super::error::LoadError;
use super::file::{Entry, File};
use super::proxy::{
    BIND_OPTIONS, PLAIN_SERVER_FLAGS, PLAIN_SERVER_OPTIONS, ProxyKind, QUIET_FILTERS, REFUSAL_OPTIONS, SCRIPT, SERVER_FLAGS,
    SERVER_OPTIONS, SETTINGS, refuses, runs_script,
};
use super::tree::{Tree, from, is_section};
use crate::dump;
use crate::hidden::{HIDDEN, Hidden, ends_only, is_words};

/// Longest name of a proxy or server that is kept.
const NAME_MAX: usize = 255;
/// Longest number with its unit.
const VALUE_MAX: usize = 20;
const UNIT_MAX: usize = 2;
/// How the lines begin that remedies edit.
const EDITED: &[&str] = &["bind", "maxconn", "maxsessrate", "rate-limit", "server"];
/// Stands for the name of a script.
const SCRIPT_HIDDEN: &str = "lua.hidden";
/// Stands for a backend that each request decides.
const BACKEND_HIDDEN: &str = "%[hidden]";

/// Hides unread words in the files of a dump ([`dump::add`]). A configuration that does not parse returns the error of its reader.
///
/// # Errors
/// As of [`Tree::from_dump`].
pub fn hide(text: &str) -> Result<Hidden, LoadError> {
    let tree = Tree::from_dump(text)?;
    let mut out = Hidden { files: tree.files().len(), ..Hidden::default() };
    for file in tree.files() {
        let hidden = of_file(file, &mut out);
        dump::add(&mut out.text, &file.path, &hidden);
    }
    Ok(out)
}

/// What of a section is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Global,
    Defaults,
    Proxy,
    Other,
}

fn of_file(file: &File, out: &mut Hidden) -> String {
    let mut section = Section::Other;
    let mut text = String::new();
    let mut at = 0;
    for entry in file.entries() {
        out.comments += ends_only(&file.text()[at..entry.span.start], &mut text);
        at = entry.span.end;
        out.directives += 1;
        if is_section(entry) {
            section = match entry.word(0) {
                "global" => Section::Global,
                "defaults" => Section::Defaults,
                word if ProxyKind::of(word).is_some() => Section::Proxy,
                _ => Section::Other,
            };
        }
        let is_kept = kept(entry, section);
        let is_whole = EDITED.contains(&entry.word(0)) && is_kept.iter().all(|is_kept| *is_kept);
        let indent = file.text()[entry.span.clone()].len() - file.text()[entry.span.clone()].trim_start_matches([' ', '\t']).len();
        text.push_str(&file.text()[entry.span.start..entry.span.start + indent]);
        for ((at, word), is_kept) in entry.words.iter().enumerate().zip(is_kept) {
            // The blanks between its words, so that a line of which nothing is hidden stays as it is.
            let before = at.checked_sub(1).map_or(word.span.start, |before| entry.words[before].span.end);
            text.push_str(&file.text()[before..word.span.start]);
            out.values += usize::from(!is_kept);
            text.push_str(if is_kept { &file.text()[word.span.clone()] } else { stand_in(entry, at) });
        }
        text.push_str(&rest(file, entry, is_whole, out));
    }
    out.comments += ends_only(&file.text()[at..], &mut text);
    text
}

/// What a recording keeps behind the last word of a line.
fn rest(file: &File, entry: &Entry, is_whole: bool, out: &mut Hidden) -> String {
    let end = entry.words.last().map_or(entry.span.end, |word| word.span.end);
    let behind = &file.text()[end..entry.span.end];
    let Some(at) = entry.comment else {
        // HAProxy reads a line up to a zero.
        return if behind.trim().is_empty() { behind.to_owned() } else { String::new() };
    };
    if is_whole && is_words(&file.text()[at + 1..entry.span.end]) {
        return behind.to_owned();
    }
    out.comments += 1;
    format!("{}#", &file.text()[end..at])
}

/// What stands for a hidden word. That a script may call others is read, not which one it is; and that each request decides on its backend, not how.
fn stand_in(entry: &Entry, at: usize) -> &'static str {
    match entry.word(0) {
        _ if runs_script(entry) && entry.word(at).starts_with(SCRIPT) => SCRIPT_HIDDEN,
        "use_backend" | "default_backend" if at == 1 => BACKEND_HIDDEN,
        _ => HIDDEN,
    }
}

/// Which words of a line the model reads.
fn kept(entry: &Entry, section: Section) -> Vec<bool> {
    let mut kept = vec![false; entry.words.len()];
    let mut keep = |indices: &mut dyn Iterator<Item = usize>| indices.filter(|at| *at < entry.words.len()).for_each(|at| kept[at] = true);
    if is_section(entry) {
        keep(&mut (0..1));
        if section == Section::Defaults || section == Section::Proxy {
            let from = from(entry);
            keep(&mut [1].into_iter().chain(from.into_iter().flat_map(|at| [at, at + 1])).filter(|at| is_name(entry, *at)));
        }
        return kept;
    }
    match section {
        Section::Global if GLOBAL.contains(&entry.word(0)) => keep(&mut (0..2).filter(|at| *at == 0 || is_value(entry, *at))),
        Section::Global | Section::Other => {}
        Section::Defaults | Section::Proxy => match entry.word(0) {
            "bind" if section == Section::Proxy => {
                keep(&mut (0..2).filter(|at| *at == 0 || is_address(entry, *at)));
                keep(&mut options(entry, 2, (BIND_OPTIONS, &[])).into_iter());
            }
            "use_backend" if section == Section::Proxy => keep(&mut (0..2).filter(|at| *at == 0 || is_name(entry, *at))),
            "server" if section == Section::Proxy => {
                keep(&mut (0..3).filter(|at| *at == 0 || (*at == 1 && is_name(entry, *at)) || (*at == 2 && is_address(entry, *at))));
                keep(&mut server_options(entry, 3).into_iter());
            }
            "server-template" if section == Section::Proxy => {
                keep(&mut (0..3).filter(|at| *at == 0 || (*at == 1 && is_name(entry, *at)) || (*at == 2 && is_value(entry, *at))));
                keep(&mut (3..4).filter(|at| is_address(entry, *at)));
                keep(&mut server_options(entry, 4).into_iter());
            }
            "default-server" => {
                keep(&mut (0..1));
                keep(&mut server_options(entry, 1).into_iter());
            }
            "filter" if section == Section::Proxy => keep(&mut (0..2).filter(|at| *at == 0 || QUIET_FILTERS.contains(&entry.word(*at)))),
            _ if runs_script(entry) && section == Section::Proxy => keep(&mut (0..1)),
            _ if refuses(entry).is_some() && section == Section::Proxy => {
                keep(&mut (0..2));
                keep(&mut options(entry, 2, (REFUSAL_OPTIONS, &[])).into_iter());
            }
            _ => keep(&mut setting(entry).into_iter()),
        },
    }
    kept
}

/// The words of a setting that is read.
fn setting(entry: &Entry) -> Vec<usize> {
    let Some(name) = SETTINGS.iter().find(|name| entry.begins_with(name)) else { return Vec::new() };
    let length = name.split(' ').count();
    let is_said = if *name == "default_backend" { is_name(entry, length) } else { is_value(entry, length) };
    (0..length).chain(is_said.then_some(length)).collect()
}

/// The words of a server's options that are read, or that say nothing of anybody.
fn server_options(entry: &Entry, from: usize) -> Vec<usize> {
    let (valued, flags) = ([SERVER_OPTIONS, PLAIN_SERVER_OPTIONS].concat(), [SERVER_FLAGS, PLAIN_SERVER_FLAGS].concat());
    options(entry, from, (&valued, &flags))
}

/// The words of the options that are read.
fn options(entry: &Entry, from: usize, (valued, flags): (&[&str], &[&str])) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = from;
    while at < entry.words.len() {
        if valued.contains(&entry.word(at)) {
            found.push(at);
            found.extend(is_value(entry, at + 1).then_some(at + 1));
            at += 1;
        } else if flags.contains(&entry.word(at)) {
            found.push(at);
        }
        at += 1;
    }
    found
}

/// A number, a time, a range or a word like "http".
fn is_value(entry: &Entry, at: usize) -> bool {
    let Some(word) = entry.words.get(at).filter(|word| !word.computed) else { return false };
    let text = word.text.as_str();
    let number = text.trim_end_matches(|unit: char| unit.is_ascii_lowercase());
    let is_digits =
        number.starts_with(|first: char| first.is_ascii_digit()) && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let is_number = is_digits && text.len() <= VALUE_MAX && text.len() - number.len() <= UNIT_MAX;
    is_number || matches!(text, "http" | "tcp" | "health" | "log")
}

/// A name of a proxy or a server.
fn is_name(entry: &Entry, at: usize) -> bool {
    let Some(word) = entry.words.get(at).filter(|word| !word.computed) else { return false };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
    !word.text.is_empty() && word.text.len() <= NAME_MAX && word.text.bytes().all(is_plain)
}

/// An address that can be compared with a socket's, or a host name.
fn is_address(entry: &Entry, at: usize) -> bool {
    let Some(word) = entry.words.get(at).filter(|word| !word.computed) else { return false };
    let addresses = super::address::listens(&word.text);
    addresses.iter().all(|address| *address != super::Address::Unknown)
}
