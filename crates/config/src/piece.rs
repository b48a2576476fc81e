//! A piece of text that is in a configuration exactly once, and another one in its place.

use crate::Edited;

/// How often a piece is in the files; an overlap counts once. The empty piece is nowhere.
fn count(files: &[(&str, &str)], piece: &str) -> usize {
    if piece.is_empty() { 0 } else { files.iter().map(|(_, text)| text.matches(piece).count()).sum() }
}

/// Which of the two pieces is there; `None` if the first one is there several times, or neither is.
///
/// The second one may be in other places as well ("sendfile off;"), so the first one decides, unless it is a part of the second one.
pub(crate) fn value(files: &[(&str, &str)], find: &str, with: &str) -> Option<String> {
    if with.contains(find) && count(files, with) > 0 {
        return Some(with.to_owned());
    }
    match count(files, find) {
        1 => Some(find.to_owned()),
        0 if with.is_empty() || count(files, with) > 0 => Some(with.to_owned()),
        _ => None,
    }
}

/// The file in which one piece takes the place of the other; none if `to` is there already.
///
/// # Errors
/// The piece to replace is not there exactly once. A sentence without a full stop.
pub(crate) fn edited(files: &[(&str, &str)], find: &str, with: &str, to: &str) -> Result<Vec<Edited>, String> {
    if value(files, find, with).as_deref() == Some(to) {
        return Ok(Vec::new());
    }
    let from = if to == with { find } else { with };
    let found = count(files, from);
    let place = files.iter().find(|(_, text)| !from.is_empty() && text.contains(from)).filter(|_| found == 1);
    let Some((path, text)) = place else {
        return Err(format!("\"{from}\" is {found} times in the configuration, not once"));
    };
    Ok(vec![Edited { path: (*path).to_owned(), before: (*text).to_owned(), after: text.replacen(from, to, 1) }])
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [(&str, &str); 2] = [("/etc/a", "user x;\nsendfile on;\n"), ("/etc/b", "sendfile off;\ngzip on;\n")];

    fn after(find: &str, with: &str, to: &str) -> Vec<(String, String)> {
        let edited = edited(&FILES, find, with, to).unwrap();
        edited.into_iter().map(|file| (file.path, file.after)).collect()
    }

    #[test]
    fn the_piece_that_is_there_once_is_replaced_and_put_back() {
        assert_eq!(value(&FILES, "sendfile on;", "sendfile off;").as_deref(), Some("sendfile on;"));
        let [(path, text)] = after("sendfile on;", "sendfile off;", "sendfile off;").try_into().unwrap();
        assert_eq!((path.as_str(), text.as_str()), ("/etc/a", "user x;\nsendfile off;\n"));
        let files = [(path.as_str(), text.as_str()), FILES[1]];
        assert_eq!(value(&files, "sendfile on;", "sendfile off;").as_deref(), Some("sendfile off;"));
        // The other place has the same words, so it is not known which one to put back.
        assert!(edited(&files, "sendfile on;", "sendfile off;", "sendfile on;").unwrap_err().contains("2 times"));
    }

    #[test]
    fn one_piece_may_be_a_part_of_the_other() {
        let longer = [("/etc/b", "gzip on; gzip_comp_level 9;")];
        assert_eq!(value(&FILES, "gzip on;", "gzip on; gzip_comp_level 9;").as_deref(), Some("gzip on;"));
        assert_eq!(value(&longer, "gzip on;", "gzip on; gzip_comp_level 9;").as_deref(), Some("gzip on; gzip_comp_level 9;"));
        let back = edited(&longer, "gzip on;", "gzip on; gzip_comp_level 9;", "gzip on;").unwrap();
        assert_eq!(back[0].after, "gzip on;");
        let shorter = edited(&longer, "gzip on; gzip_comp_level 9;", "gzip on;", "gzip on;").unwrap();
        assert_eq!(shorter[0].after, "gzip on;");
    }

    #[test]
    fn a_piece_that_is_not_there_once_has_no_value() {
        assert_eq!(value(&FILES, "sendfile", "x"), None);
        assert_eq!(value(&FILES, "tcp_nopush on;", "tcp_nopush off;"), None);
        assert!(edited(&FILES, "sendfile", "x", "x").unwrap_err().contains("2 times"));
        assert!(edited(&FILES, "nothing", "other", "other").unwrap_err().contains("0 times"));
        // Removed: it cannot be put back by the text alone.
        assert_eq!(after("gzip on;\n", "", "")[0].1, "sendfile off;\n");
        assert!(edited(&FILES, "no", "", "no").is_err());
    }
}
