//! Where nginx's configuration begins: its arguments, else how it was built, else where it usually is.

use crate::master::{ConfigurationPlace, Started, home, option};

/// Options of nginx's command line, before each of which the value of another one ends in a title (src/core/nginx.c).
const OPTIONS: [&str; 7] = ["-c", "-p", "-g", "-e", "-q", "-t", "-s"];

pub(super) fn locate(started: &Started<'_>) -> ConfigurationPlace {
    let Started { words, exe, built_in, exists } = started;
    let configured = |name: &str| configured(built_in, name);
    let prefix = option(words, "-p", None).or_else(|| configured("--prefix")).unwrap_or_else(|| home(exe).to_owned());
    let default = || {
        let candidates = ["/etc/nginx/nginx.conf", "/usr/local/etc/nginx/nginx.conf", "/usr/local/nginx/conf/nginx.conf"];
        let own = format!("{}/conf/nginx.conf", prefix.trim_end_matches('/'));
        if exists(&own) { own } else { candidates.into_iter().find(|path| exists(path)).unwrap_or(candidates[0]).to_owned() }
    };
    ConfigurationPlace {
        main: option(words, "-c", None).or_else(|| configured("--conf-path")).unwrap_or_else(default),
        version: built_in.iter().find(|text| text.starts_with("nginx version: ")).cloned().unwrap_or_default(),
        access_log: configured("--http-log-path").unwrap_or_else(|| "logs/access.log".to_owned()),
        error_log: option(words, "-e", None).or_else(|| configured("--error-log-path")).unwrap_or_else(|| "logs/error.log".to_owned()),
        prefix,
        ..ConfigurationPlace::default()
    }
}

/// The value of an option with which it was built (`nginx -V`).
fn configured(built_in: &[String], name: &str) -> Option<String> {
    let words = built_in.iter().flat_map(|text| text.split_ascii_whitespace());
    words.filter_map(|word| word.strip_prefix(name)?.strip_prefix('=')).next_back().map(|value| value.trim_matches('\'').to_owned())
}

/// Its prefix: as started, as built, or the one of a build that was not told any (auto/options).
pub(super) fn prefix(title: &str, built_in: &[String]) -> String {
    let built = || configured(built_in, "--prefix").filter(|prefix| prefix.starts_with('/'));
    argument(title, "-p").or_else(built).unwrap_or_else(|| "/usr/local/nginx".to_owned())
}

/// The value of an option in a master's title, which has the arguments with blanks between them: the value of `-g` has blanks of its own.
pub(super) fn argument(title: &str, option: &str) -> Option<String> {
    let padded = format!(" {title} ");
    let rest = padded.split_once(&format!(" {option} "))?.1;
    let ends = OPTIONS.iter().filter_map(|next| rest.find(&format!(" {next} ")));
    let value = &rest[..ends.min().unwrap_or(rest.len())];
    Some(value.trim().to_owned()).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::MASTER;
    use super::*;
    use proptest::prelude::*;

    fn located(cmdline: &str, exe: &str, built_in: &[String], there: &str) -> ConfigurationPlace {
        let words = MASTER.words(cmdline);
        locate(&Started { words: &words, exe, built_in, exists: &|path| path == there })
    }

    #[test]
    fn the_configuration_is_located() {
        let built = [
            "nginx version: nginx/1.22.1".to_owned(),
            "configure arguments: --with-cc-opt='-g -O2' --prefix=/usr/share/nginx --conf-path=/etc/nginx/nginx.conf \
             --http-log-path=/var/log/nginx/access.log --error-log-path=/var/log/nginx/error.log"
                .to_owned(),
        ];
        let plain = located("nginx: master process /usr/sbin/nginx -g daemon off;\0\0", "/usr/sbin/nginx", &built, "");
        assert_eq!((plain.main.as_str(), plain.prefix.as_str()), ("/etc/nginx/nginx.conf", "/usr/share/nginx"));
        assert_eq!((plain.version.as_str(), plain.access_log.as_str()), ("nginx version: nginx/1.22.1", "/var/log/nginx/access.log"));
        for cmdline in [
            "nginx: master process nginx -c conf/a.conf -p /srv/n/",
            "/bin/nginx\0-p\0/srv/n/\0-c\0conf/a.conf\0",
            "nginx -p/srv/n/ -c conf/a.conf",
        ] {
            let found = located(cmdline, "/usr/sbin/nginx", &built, "");
            assert_eq!((found.main.as_str(), found.prefix.as_str()), ("conf/a.conf", "/srv/n/"), "{cmdline}");
        }
        let bare = located("", "/opt/nginx/sbin/nginx", &[], "/opt/nginx/conf/nginx.conf");
        assert_eq!((bare.main.as_str(), bare.prefix.as_str()), ("/opt/nginx/conf/nginx.conf", "/opt/nginx"));
        assert_eq!(located("", "", &[], "").main, "/etc/nginx/nginx.conf");
    }

    #[test]
    fn a_relative_main_file_is_below_the_prefix() {
        let words = MASTER.words("nginx: master process nginx -c n.conf -p /usr");
        let started = Started { words: &words, exe: "/usr/sbin/nginx", built_in: &[], exists: &|path| path == "/srv/app/n.conf" };
        assert_eq!(MASTER.locate(&started, "/srv/app").main, "/usr/n.conf");
    }

    #[test]
    fn titles_are_read() {
        let title =
            MASTER.of_master("nginx: master process /usr/sbin/nginx -c /etc/x y.conf -g daemon on; master_process on; -p /srv/").unwrap();
        assert_eq!(MASTER.main_in_title(title).as_deref(), Some("/etc/x y.conf"));
        assert_eq!(argument(title, "-g").as_deref(), Some("daemon on; master_process on;"));
        assert_eq!(argument(title, "-p").as_deref(), Some("/srv/"));
        assert_eq!(MASTER.test_arguments("/c", &[], title)[..5], ["-t", "-c", "/c", "-p", "/srv/"]);
        assert_eq!(MASTER.main_in_title("nginx"), None);
        assert!(MASTER.is_worker("nginx: worker process") && MASTER.is_worker("angie: worker process"));
        assert!(!MASTER.is_worker("nginx: worker process is shutting down") && !MASTER.is_worker("nginx: cache manager process"));
        assert!(MASTER.is_leaving("nginx: worker process is shutting down"));
    }

    proptest! {
        #[test]
        fn any_title_gives_an_answer(cmdline in "[ -~\\x00]{0,60}", built in "[ -~]{0,60}") {
            let found = located(&cmdline, &cmdline, &[built], "");
            let _ = (found, argument(&cmdline, "-c"), MASTER.of_master(&cmdline));
        }
    }
}
