//! What the title of a PostgreSQL process says of its session (`update_process_title`, src/backend/utils/misc/ps_status.c): "postgres: app shop 10.0.0.4(52311) UPDATE waiting".

use crate::Session;

/// What the title of a session ends with while it waits for a lock that another transaction holds.
const WAITING: &str = " waiting";
/// Words of a command's name that are told: "ALTER TABLE".
const COMMAND_WORDS_MAX: usize = 3;

/// The session of a title. `None` for processes without a client ("postgres: checkpointer"), and where the setting is off.
pub(super) fn of_title(title: &str) -> Option<Session> {
    let rest = title.strip_prefix("postgres: ")?;
    // The client's address ends what the session is, and begins what it does: "[local]" or "10.0.0.4(52311)". A user or database may look like one.
    let activity = rest.match_indices(' ').map(|(at, _)| &rest[at + 1..]).rfind(|from| is_client(from))?;
    let doing = activity.split_once(' ')?.1.trim();
    if let Some(command) = doing.strip_suffix(WAITING) {
        return Some(Session::Waits(name_of(command)));
    }
    match doing {
        "" => None,
        "idle" => Some(Session::Idle),
        _ if doing.starts_with("idle in transaction") => Some(Session::Open),
        _ => Some(Session::Busy),
    }
}

fn is_client(text: &str) -> bool {
    let word = text.split(' ').next().unwrap_or_default();
    let port = word.strip_suffix(')').and_then(|word| word.rsplit_once('(')).map(|(_, port)| port);
    word == "[local]" || port.is_some_and(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The name of a command: words in capitals. Anything else is left out.
fn name_of(command: &str) -> String {
    let words = command.split(' ').take(COMMAND_WORDS_MAX);
    let is_name = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase());
    words.take_while(is_name).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_state_of_a_session_is_in_its_title() {
        let waits = |command: &str| Some(Session::Waits(command.to_owned()));
        for (title, expected) in [
            ("postgres: app shop 127.0.0.1(52311) UPDATE waiting", waits("UPDATE")),
            ("postgres: 15/main: app shop [local] ALTER TABLE waiting", waits("ALTER TABLE")),
            ("postgres: app shop ::1(5) idle in transaction", Some(Session::Open)),
            ("postgres: app shop ::1(5) idle in transaction (aborted)", Some(Session::Open)),
            ("postgres: app shop 10.0.0.4(52311) idle", Some(Session::Idle)),
            ("postgres: app shop 10.0.0.4(52311) SELECT", Some(Session::Busy)),
            ("postgres: app waiting 10.0.0.4(52311) idle", Some(Session::Idle)),
            ("postgres: [local] x(1) 10.0.0.4(52311) SELECT", Some(Session::Busy)),
            ("postgres: app shop 10.0.0.4(52311) secret; waiting", waits("")),
            ("postgres: app shop 10.0.0.4(52311)", None),
            ("postgres: checkpointer ", None),
            ("postgres: logical replication launcher ", None),
            ("postgres: parallel worker for PID 77 ", None),
            ("/usr/lib/postgresql/15/bin/postgres -D /data waiting", None),
        ] {
            assert_eq!(of_title(title), expected, "{title}");
        }
    }

    proptest! {
        #[test]
        fn any_title_gives_an_answer(title in "(postgres: )?[ -~]{0,60}") {
            let _ = of_title(&title);
        }
    }
}
