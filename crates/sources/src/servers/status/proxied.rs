//! What HAProxy says of the servers behind it: its answer to `show stat` (docs.haproxy.org/2.6/management.html, sections 9.1 and 9.3).

use chokepoint_model::observation::{ProxiedServer, ProxiedState};
use chokepoint_recording::Outcome;

use crate::reduction::Reduction;

/// Of all proxies (-1), the servers (4), all of them (-1).
pub(super) const COMMAND: &str = "show stat -1 4 -1";
/// Most servers that are kept.
const SERVERS_MAX: usize = 2_000;
/// Longest name of a proxy or server, bytes.
const NAME_BYTES_MAX: usize = 255;
/// Longest word of what a check found: HAProxy's have at most eight letters.
const CHECK_BYTES_MAX: usize = 16;
/// The columns that are read. Later versions have more, at other places.
const COLUMNS: [&str; 8] = ["pxname", "svname", "qcur", "scur", "status", "lastchg", "check_status", "check_code"];
/// How the line of names begins.
const HEAD: &str = "# ";

/// Parses the answer. Columns are found by their names.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<ProxiedServer>, String> {
    let text = String::from_utf8_lossy(bytes);
    rows(&text)?.iter().take(SERVERS_MAX).map(server).collect()
}

/// The same answer with the columns that are read, and nothing else.
pub(super) fn reduced(bytes: &[u8], reduction: &mut Reduction) -> Outcome {
    let text = String::from_utf8_lossy(bytes);
    let Ok(rows) = parse(bytes).and_then(|_| rows(&text)) else {
        return Outcome::Failed("the answer has an unknown format; its text is not recorded".to_owned(), None);
    };
    let all = text.lines().next().map_or(0, |head| head.split(',').count());
    reduction.page_values += all.saturating_sub(COLUMNS.len());
    let plain = |value: &String| value.chars().filter(|c| !c.is_control() && !matches!(c, ',' | '"')).collect::<String>();
    let lines = rows.iter().take(SERVERS_MAX).map(|row| row.iter().map(plain).collect::<Vec<_>>().join(","));
    let head = format!("{HEAD}{}", COLUMNS.join(","));
    Outcome::Ok(std::iter::once(head).chain(lines).map(|line| line + "\n").collect::<String>().into_bytes())
}

/// The values of [`COLUMNS`] in each line; empty for a column that this version lacks.
fn rows(text: &str) -> Result<Vec<[String; COLUMNS.len()]>, String> {
    let mut lines = text.lines();
    let head = lines.next().and_then(|line| line.strip_prefix(HEAD));
    let names: Vec<&str> = head.ok_or("the answer to \"show stat\" does not begin with the names of its columns")?.split(',').collect();
    let places = COLUMNS.map(|column| names.iter().position(|name| *name == column));
    if places[..2].iter().any(Option::is_none) || places[4].is_none() {
        return Err("the answer to \"show stat\" lacks the names or states of servers".to_owned());
    }
    let row = |line: &str| {
        let values = fields(line);
        places.map(|place| place.and_then(|at| values.get(at).cloned()).unwrap_or_default())
    };
    Ok(lines.filter(|line| !line.is_empty()).map(row).collect())
}

/// The fields of a line. One with a comma stands in double quotes, and a double quote in it twice (RFC 4180).
fn fields(line: &str) -> Vec<String> {
    let (mut all, mut field, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut rest = line.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            '"' if is_quoted && rest.peek() == Some(&'"') => field.extend(rest.next()),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => all.push(std::mem::take(&mut field)),
            other => field.push(other),
        }
    }
    all.push(field);
    all
}

fn server([proxy, name, waiting, in_use, state, since_s, check, code]: &[String; COLUMNS.len()]) -> Result<ProxiedServer, String> {
    // The answer is the server's own: no program that only looks like one may fill a report with it.
    let is_plain =
        |text: &str, most: usize| text.len() <= most && text.chars().all(|c| (c.is_ascii_graphic() || c == ' ') && !matches!(c, ',' | '"'));
    if !is_plain(proxy, NAME_BYTES_MAX) || !is_plain(name, NAME_BYTES_MAX) || !is_plain(check, CHECK_BYTES_MAX) {
        return Err("a name or a word in the answer to \"show stat\" is none of HAProxy's".to_owned());
    }
    let number =
        |text: &str| if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(|_| format!("\"{text}\" is no number")) };
    Ok(ProxiedServer {
        name: format!("{proxy}/{name}"),
        state: state_of(state).ok_or_else(|| format!("\"{state}\" is no state of a server"))?,
        since_s: number(since_s)?,
        // A check that goes on has a star before it.
        check: check.trim_start_matches(['*', ' ']).to_owned(),
        code: number(code)?,
        waiting: number(waiting)?,
        in_use: number(in_use)?,
    })
}

/// A state: "UP", "UP 1/3" (on its way down), "no check", "DOWN", "DOWN 1/2" (on its way up), "DOWN (agent)", "MAINT", "MAINT (via a/b)", "DRAIN", "NOLB".
fn state_of(text: &str) -> Option<ProxiedState> {
    Some(match text.split([' ', '(']).next()? {
        "UP" => ProxiedState::Up,
        "no" => ProxiedState::Unchecked,
        "DOWN" => ProxiedState::Down,
        "MAINT" => ProxiedState::Maintenance,
        "DRAIN" | "NOLB" => ProxiedState::Draining,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Captured from HAProxy 2.6.12.
    const STAT: &str = include_str!("../../../tests/data/status/haproxy-2.6.csv");

    #[test]
    fn a_captured_answer_is_parsed_and_a_recording_keeps_what_is_read() {
        let found = parse(STAT.as_bytes()).unwrap();
        let told = |server: &ProxiedServer| format!("{} {:?} {} {:?}", server.name, server.state, server.check, server.code);
        assert_eq!(
            found.iter().map(told).collect::<Vec<_>>(),
            [
                "app/a Up L7OK Some(200)",
                "app/b Down L7STS Some(404)",
                "app/c Down L4CON None",
                "app/d Maintenance  None",
                "app/e Unchecked  None",
            ]
        );
        let mut reduction = Reduction::default();
        let Outcome::Ok(kept) = reduced(STAT.as_bytes(), &mut reduction) else { panic!() };
        assert_eq!(parse(&kept).unwrap(), found);
        assert!(kept.len() < 600 && reduction.page_values > 80, "{}", String::from_utf8_lossy(&kept));
    }

    #[test]
    fn other_answers_are_refused() {
        let long = format!("# pxname,svname,status\na,{},UP\n", "b".repeat(256));
        let words = "# pxname,svname,status,check_status\na,b,UP,its check ended with\n";
        for hostile in [long.as_str(), words, "# pxname,svname,status\na,b\u{1b}[2J,UP\n"] {
            assert!(parse(hostile.as_bytes()).is_err(), "{hostile}");
        }
        for wrong in [
            "",
            "Permission denied\n",
            "# pxname,svname,qcur\na,b,1\n",
            "# pxname,svname,status\na,b,ODD\n",
            "# pxname,svname,status,qcur\na,b,UP,x\n",
        ] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
        let quoted = "# pxname,svname,status,last_chk,qcur\na,b,MAINT (via c/d),\"x, \"\"y\"\"\",7\n";
        let found = parse(quoted.as_bytes()).unwrap();
        assert_eq!((found[0].name.as_str(), found[0].state, found[0].waiting), ("a/b", ProxiedState::Maintenance, Some(7)));
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..200), rest in "(UP|,|\"|\n|[0-9]|[a-z ]){0,60}") {
            let _ = parse(&bytes);
            let text = format!("# pxname,svname,status,qcur,lastchg\n{rest}");
            if let Outcome::Ok(kept) = reduced(text.as_bytes(), &mut Reduction::default()) {
                prop_assert_eq!(parse(&kept), parse(text.as_bytes()));
            }
        }
    }
}
