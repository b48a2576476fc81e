//! Reduces command lines for a recording to the program's name and, for servers of a known kind, the options with the path of their configuration.

use chokepoint_servers::{MasterDef, master_of_program, masters};

use crate::reduction::Reduction;

/// Replaces a word.
const HIDDEN: &[u8] = b"[redacted]";
/// The command line with every other word hidden. The number of words and their separators stay.
pub(crate) fn reduced(cmdline: &[u8], reduction: &mut Reduction) -> Vec<u8> {
    let text = String::from_utf8_lossy(cmdline);
    let mut server: Option<&MasterDef> = masters().find(|server| server.said(&text).is_some());
    let is_title = server.is_some();
    let mut out = Vec::with_capacity(cmdline.len());
    let mut before: Vec<u8> = Vec::new();
    // A command line without an inner NUL was overwritten by a text with words separated by blanks.
    let end = cmdline.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let is_text = is_title || !cmdline[..end].contains(&0);
    let is_break = |byte: u8| byte == 0 || (is_text && byte == b' ');
    for (index, piece) in cmdline.split_inclusive(|&byte| is_break(byte)).enumerate() {
        let length = piece.len() - usize::from(piece.last().is_some_and(|&byte| is_break(byte)));
        let (word, between) = piece.split_at(length);
        let kept = match index {
            0 if is_title => Some(word.to_vec()),
            0 => {
                let name = program(word);
                server = master_of_program(&String::from_utf8_lossy(name));
                Some(name.to_vec())
            }
            _ if word.is_empty() => Some(Vec::new()),
            _ if is_title && server.is_some_and(|server| is_title_word(server, word, &before)) => Some(word.to_vec()),
            _ => server.and_then(|server| option(word, &before, server.path_options)),
        };
        // A program name with text after a blank is one shortened word, not a hidden one.
        reduction.words += usize::from(kept.is_none());
        out.extend_from_slice(kept.as_deref().unwrap_or(HIDDEN));
        out.extend_from_slice(between);
        before = word.to_vec();
    }
    out
}

/// The name of the program in the first word, without its directory and any text after it.
fn program(word: &[u8]) -> &[u8] {
    let word = word.split(|&byte| byte == b' ').next().unwrap_or_default();
    word.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

/// True for words of a title that name the role of the process, its pool, its program, or in brackets the path of its configuration.
fn is_title_word(server: &MasterDef, word: &[u8], before: &[u8]) -> bool {
    server.title_words.iter().any(|known| known.as_bytes() == word)
        || before == b"pool"
        || (before == b"process" && (is_path(word) || word.strip_prefix(b"(").is_some_and(is_path)))
}

/// A known option, or its value if that is a path.
fn option(word: &[u8], before: &[u8], options: &[&str]) -> Option<Vec<u8>> {
    let is_value = |option: &&&str| before == option.as_bytes() && is_path(word);
    let is_own = |option: &&&str| {
        let attached = word.strip_prefix(option.as_bytes());
        attached.is_some_and(|rest| rest.is_empty() || is_path(rest) || rest.strip_prefix(b"=").is_some_and(is_path))
    };
    options.iter().any(|option| is_value(&option) || is_own(&option)).then(|| word.to_vec())
}

fn is_path(word: &[u8]) -> bool {
    word.contains(&b'/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn left(cmdline: &str) -> (String, usize) {
        let mut reduction = Reduction::default();
        let left = reduced(cmdline.as_bytes(), &mut reduction);
        (String::from_utf8(left).unwrap(), reduction.words)
    }

    #[test]
    fn only_the_program_and_known_options_are_kept() {
        for (from, to, hidden) in [
            ("/usr/bin/worker\0-p\0s3cret\0--db=x\0", "worker\0[redacted]\0[redacted]\0[redacted]\0", 3),
            (
                "nginx: master process /usr/sbin/nginx -c /etc/n.conf -g env A=b;\0\0",
                "nginx: master process /usr/sbin/nginx -c /etc/n.conf [redacted] [redacted] [redacted]\0\0",
                3,
            ),
            ("nginx: worker process", "nginx: worker process", 0),
            ("nginx: worker process is shutting down", "nginx: worker process is shutting down", 0),
            ("php-fpm: pool www", "php-fpm: pool www", 0),
            ("php-fpm: master process (/etc/php/8.2/fpm/php-fpm.conf)\0", "php-fpm: master process (/etc/php/8.2/fpm/php-fpm.conf)\0", 0),
            ("/usr/sbin/php-fpm8.2\0-y\0/a.conf\0-d\0x=y\0", "php-fpm8.2\0-y\0/a.conf\0[redacted]\0[redacted]\0", 2),
            ("nginx\0-c/etc/x\0-p\0s3cret\0", "nginx\0-c/etc/x\0-p\0[redacted]\0", 1),
            ("postgres: alice db 10.0.0.1(9) idle", "postgres: [redacted] [redacted] [redacted] [redacted]", 4),
            ("a b\0c\0", "a\0[redacted]\0", 1),
            ("", "", 0),
        ] {
            assert_eq!(left(from), (to.to_owned(), hidden), "{from:?}");
            assert_eq!(left(to).0, to, "twice: {from:?}");
        }
    }

    proptest! {
        #[test]
        fn no_argument_is_kept(
            program in "(/usr/bin/|)[a-z]{1,8}",
            arguments in proptest::collection::vec("(-[a-z]|--[a-z]{3,5}=|)S[A-Z0-9]{9,12}", 1..8),
        ) {
            let cmdline = std::iter::once(program).chain(arguments.iter().cloned()).collect::<Vec<_>>().join("\0");
            let (left, hidden) = left(&cmdline);
            prop_assert_eq!(hidden, arguments.len());
            prop_assert!(arguments.iter().all(|argument| !left.contains(argument.as_str())), "{}", left);
        }
    }
}
