//! Where PostgreSQL's configuration begins, and what its command line sets (`PostmasterMain` in src/backend/postmaster/postmaster.c).

use crate::master::{ConfigurationPlace, Started, absolute};

/// What `ALTER SYSTEM` writes, in the data directory; it is read last.
const AUTO: &str = "postgresql.auto.conf";

pub(super) fn locate(started: &Started<'_>) -> ConfigurationPlace {
    let mut place = ConfigurationPlace { prefix: "/".to_owned(), ..ConfigurationPlace::default() };
    // It changes to its data directory when it starts, so that relative paths begin there.
    let mut data = String::new();
    let mut main = None;
    let mut rest = started.words.iter().skip(1);
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-D" => data = rest.next().cloned().unwrap_or_default(),
            "-c" => place.given.extend(rest.next().and_then(|set| setting(set))),
            "-N" => place.given.extend(rest.next().map(|value| ("max_connections".to_owned(), value.clone()))),
            "-p" => place.given.extend(rest.next().map(|value| ("port".to_owned(), value.clone()))),
            "-k" => place.given.extend(rest.next().map(|value| ("unix_socket_directories".to_owned(), value.clone()))),
            "-h" => place.given.extend(rest.next().map(|value| ("listen_addresses".to_owned(), value.clone()))),
            other => {
                if let Some(directory) = other.strip_prefix("-D") {
                    data = directory.to_owned();
                } else if let Some(set) = other.strip_prefix("--").or_else(|| other.strip_prefix("-c")) {
                    place.given.extend(setting(set));
                }
            }
        }
    }
    for (name, value) in &place.given {
        match name.as_str() {
            "config_file" => main = Some(value.clone()),
            "data_directory" => data.clone_from(value),
            _ => {}
        }
    }
    place.main = main.unwrap_or_else(|| in_directory(&data, "postgresql.conf"));
    place.also = vec![in_directory(&data, AUTO)];
    place
}

fn in_directory(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { absolute(directory, name) }
}

/// "name=value", with either mark between the words of a name.
fn setting(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    Some((name.replace('-', "_").to_ascii_lowercase(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::MASTER;
    use super::*;
    use proptest::prelude::*;

    fn located(cmdline: &str) -> (String, Vec<String>, Vec<(String, String)>) {
        let words = MASTER.words(cmdline);
        let place = MASTER
            .locate(&Started { words: &words, exe: "/usr/lib/postgresql/15/bin/postgres", built_in: &[], exists: &|_| true }, "/data");
        (place.main, place.also, place.given)
    }

    #[test]
    fn the_configuration_is_located() {
        let debian = "/usr/lib/postgresql/15/bin/postgres\0-D\0/var/lib/postgresql/15/main\0-c\0config_file=/etc/postgresql/15/main/postgresql.conf\0";
        let (main, also, _) = located(debian);
        assert_eq!(
            (main.as_str(), also),
            ("/etc/postgresql/15/main/postgresql.conf", vec!["/var/lib/postgresql/15/main/postgresql.auto.conf".to_owned()])
        );
        // With PGDATA in its environment, it stands in its data directory.
        let (main, also, _) = located("postgres\0");
        assert_eq!((main.as_str(), also), ("/data/postgresql.conf", vec!["/data/postgresql.auto.conf".to_owned()]));
        let (main, _, given) = located("postgres\0-D/d\0--max-connections=20\0-N\x0030\0-cport=5433\0");
        assert_eq!(main, "/d/postgresql.conf");
        let given: Vec<String> = given.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(given, ["max_connections=20", "max_connections=30", "port=5433"]);
    }

    proptest! {
        #[test]
        fn any_command_line_gives_an_answer(cmdline in "[ -~\\x00]{0,60}") {
            let _ = located(&cmdline);
        }
    }
}
