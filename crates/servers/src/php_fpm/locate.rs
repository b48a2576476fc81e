//! Where php-fpm's configuration begins: its title, else its arguments, else where it usually is.

use crate::master::{ConfigurationPlace, Started, home, option};

pub(super) fn locate(started: &Started<'_>) -> ConfigurationPlace {
    let Started { words, exe, exists, .. } = started;
    let titled = words.iter().find_map(|word| word.strip_prefix('(')?.strip_suffix(')')).map(str::to_owned);
    let version: String = exe.rsplit('/').next().unwrap_or_default().chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
    let prefix = option(words, "-p", Some("--prefix")).unwrap_or_else(|| home(exe).to_owned());
    let default = || {
        let candidates = [
            format!("/etc/php/{version}/fpm/php-fpm.conf"),
            format!("/etc/php{version}/php-fpm.conf"),
            format!("{}/etc/php-fpm.conf", prefix.trim_end_matches('/')),
            "/usr/local/etc/php-fpm.conf".to_owned(),
            "/etc/php-fpm.conf".to_owned(),
        ];
        candidates.iter().find(|path| exists(path)).unwrap_or(&candidates[0]).clone()
    };
    let main = titled.or_else(|| option(words, "-y", Some("--fpm-config"))).unwrap_or_else(default);
    ConfigurationPlace { main, prefix, version, ..ConfigurationPlace::default() }
}

#[cfg(test)]
mod tests {
    use super::super::MASTER;
    use super::*;
    use proptest::prelude::*;

    fn located(cmdline: &str, exe: &str) -> ConfigurationPlace {
        let words = MASTER.words(cmdline);
        locate(&Started { words: &words, exe, built_in: &[], exists: &|_| false })
    }

    #[test]
    fn the_configuration_is_located() {
        for (cmdline, exe, main, prefix) in [
            (
                "php-fpm: master process (/etc/php/8.2/fpm/php-fpm.conf)\0\0",
                "/usr/sbin/php-fpm8.2",
                "/etc/php/8.2/fpm/php-fpm.conf",
                "/usr",
            ),
            (
                "php-fpm: master process (/usr/local/etc/php-fpm.conf)",
                "/usr/local/sbin/php-fpm",
                "/usr/local/etc/php-fpm.conf",
                "/usr/local",
            ),
            ("php-fpm8.2\0--fpm-config=/a\0-p\0/b\0", "/usr/sbin/php-fpm8.2", "/a", "/b"),
            ("php-fpm\0-y\0/a\0--prefix\0/b\0", "/usr/sbin/php-fpm", "/a", "/b"),
            ("php-fpm8.4\0-F\0", "/usr/sbin/php-fpm8.4", "/etc/php/8.4/fpm/php-fpm.conf", "/usr"),
        ] {
            let found = located(cmdline, exe);
            assert_eq!((found.main.as_str(), found.prefix.as_str()), (main, prefix), "{cmdline}");
        }
    }

    #[test]
    fn a_relative_main_file_is_where_it_was_started() {
        let of = |main: &str, there: &str| {
            let words = MASTER.words(&format!("php-fpm: master process ({main})"));
            let started = Started { words: &words, exe: "/usr/sbin/php-fpm8.2", built_in: &[], exists: &|path| path == there };
            MASTER.locate(&started, "/srv/app").main
        };
        assert_eq!(of("f.conf", "/srv/app/f.conf"), "/srv/app/f.conf");
        assert_eq!(of("f.conf", "/usr/f.conf"), "/usr/f.conf", "it left its directory, and the file is there");
        assert_eq!(of("f.conf", ""), "/srv/app/f.conf");
        assert_eq!(of("/etc/f.conf", "/etc/f.conf"), "/etc/f.conf");
    }

    #[test]
    fn titles_are_read() {
        let title = MASTER.of_master("php-fpm: master process (/etc/php/8.2/fpm/php-fpm.conf)").unwrap();
        assert_eq!(MASTER.main_in_title(title).as_deref(), Some("/etc/php/8.2/fpm/php-fpm.conf"));
        assert_eq!(MASTER.test_arguments("/c", &[], title), ["-t", "-y", "/c"]);
        assert_eq!(MASTER.main_in_title("("), None);
        assert!(MASTER.is_worker("php-fpm: pool www") && !MASTER.is_worker("php-fpm: master process (/x)"));
    }

    proptest! {
        #[test]
        fn any_title_gives_an_answer(cmdline in "[ -~\\x00]{0,60}") {
            let _ = (located(&cmdline, &cmdline), MASTER.of_master(&cmdline));
        }
    }
}
