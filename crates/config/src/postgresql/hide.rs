//! Hides every value of a PostgreSQL configuration that the model does not read. Comments are removed; line numbers stay the same.

use super::effective::READ;
use super::error::LoadError;
use super::file::{Entry, File};
use super::tree::Tree;
use crate::dump;
use crate::hidden::{HIDDEN, Hidden, ends_only, is_name};

/// Longest value that is kept.
const VALUE_MAX: usize = 255;

/// Hides unread values in the files of a dump ([`dump::add`]). A configuration that does not parse returns the error of its reader.
///
/// # Errors
/// As of [`Tree::from_dump`].
pub fn hide(text: &str, also: &[String]) -> Result<Hidden, LoadError> {
    let tree = Tree::from_dump(text, also)?;
    let mut out = Hidden::default();
    let mut seen: Vec<&str> = Vec::new();
    for file in tree.files() {
        // What is included twice is one file.
        if !seen.contains(&&*file.path) {
            seen.push(&file.path);
            let hidden = of_file(file, &mut out);
            dump::add(&mut out.text, &file.path, &hidden);
        }
    }
    out.files = seen.len();
    Ok(out)
}

fn of_file(file: &File, out: &mut Hidden) -> String {
    let mut text = String::new();
    let mut at = 0;
    for entry in file.entries() {
        out.comments += ends_only(&file.text()[at..entry.span.start], &mut text) + usize::from(entry.has_comment);
        at = entry.span.end;
        out.directives += 1;
        let is_kept = is_kept(entry);
        out.values += usize::from(!is_kept);
        text.push_str(if is_name(&entry.name) { &entry.name } else { HIDDEN });
        text.push_str(" = ");
        text.push_str(if is_kept { &file.text()[entry.value_span.clone()] } else { HIDDEN });
    }
    out.comments += ends_only(&file.text()[at..], &mut text);
    text
}

/// True for a value that is read: a number, addresses, or the path of a file.
fn is_kept(entry: &Entry) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'_' | b'-' | b':' | b',' | b' ' | b'*' | b'@');
    let is_read = READ.contains(&entry.name.as_str()) || ["include", "include_if_exists", "include_dir"].contains(&entry.name.as_str());
    is_read && entry.value.len() <= VALUE_MAX && entry.value.bytes().all(is_plain)
}
