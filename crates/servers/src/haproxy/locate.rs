//! Where HAProxy's configuration begins: the files and directories of its arguments (docs.haproxy.org/2.6/management.html, section 3).

use crate::master::{ConfigurationPlace, Started};

/// Most files and directories that are read of a command line.
const FILES_MAX: usize = 256;
/// Options whose next word is their value and no file (`init` in src/haproxy.c).
const VALUED: [&str; 8] = ["-p", "-n", "-N", "-m", "-L", "-C", "-x", "-S"];

pub(super) fn locate(started: &Started<'_>) -> ConfigurationPlace {
    let mut files = files(started.words).into_iter();
    let main = files.next().unwrap_or_else(|| "/etc/haproxy/haproxy.cfg".to_owned());
    ConfigurationPlace { main, also: files.collect(), prefix: "/".to_owned(), ..ConfigurationPlace::default() }
}

/// The files and directories in their order: `-f FILE`, and all words behind `--`.
fn files(words: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-f" => found.extend(rest.next().cloned()),
            "--" => found.extend(rest.by_ref().cloned()),
            option if VALUED.contains(&option) => drop(rest.next()),
            _ => {}
        }
    }
    found.truncate(FILES_MAX);
    found.retain(|file| !file.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::super::MASTER;
    use super::*;
    use proptest::prelude::*;

    fn located(cmdline: &str, directory: &str) -> Vec<String> {
        let words = MASTER.words(cmdline);
        let exists = |path: &str| path == format!("{directory}/.");
        let place = MASTER.locate(&Started { words: &words, exe: "/usr/sbin/haproxy", built_in: &[], exists: &exists }, "/srv");
        [place.main].into_iter().chain(place.also).collect()
    }

    #[test]
    fn the_configuration_is_located() {
        for (cmdline, files) in [
            (
                "/usr/sbin/haproxy\0-Ws\0-f\0/etc/haproxy/haproxy.cfg\0-p\0/run/haproxy.pid\0-S\0/run/m.sock\0",
                &["/etc/haproxy/haproxy.cfg"][..],
            ),
            ("haproxy\0-sf\x001\x00-f\0a.cfg\0-f\0/etc/d/\0-db\0", &["/srv/a.cfg", "/etc/d/*.cfg"]),
            ("haproxy\0-W\0--\0/a\0/b\0", &["/a", "/b"]),
            ("haproxy\0-p\0-f\0-f\0/a\0", &["/a"]),
            ("haproxy\0-f\0", &["/etc/haproxy/haproxy.cfg"]),
        ] {
            assert_eq!(located(cmdline, "/etc/d"), files, "{cmdline}");
        }
    }

    proptest! {
        #[test]
        fn any_command_line_gives_an_answer(cmdline in "[ -~\\x00]{0,60}") {
            let _ = located(&cmdline, "/");
        }
    }
}
