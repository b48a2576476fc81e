//! What other programs call a flag: the right one is named where the spelling is unknown here.

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Spellings of wrk, curl, hey, oha and ab that no verb has, and what to write.
const SPELLINGS: &[(&[&str], &str)] = &[
    (&["--latency", "--latencies"], "percentiles are always printed"),
    (&["-L", "--location"], "percentiles are always printed (wrk's -L), and redirects are not followed (curl's -L)"),
    (
        &["-s", "--script", "--silent"],
        "requests are listed in a file: bench --targets FILE (wrk's -s); progress is on stderr: 2>/dev/null (curl's -s)",
    ),
    (&["-R"], "the rate of an open loop is -q RATE (wrk2's -R)"),
    (&["-I", "--head"], "a HEAD request is -m HEAD"),
    (&["-u", "--user"], "credentials go into a header: -H 'Authorization: Basic ...'"),
    (&["-a"], "credentials go into a header: -H 'Authorization: Basic ...'"),
    (&["-b", "--cookie", "-C"], "cookies go into a header: -H 'Cookie: name=value'"),
    (&["-e", "--referer"], "the referrer goes into a header: -H 'Referer: URL'"),
    (&["-o", "--output", "--output-format"], "the report is on stdout: --json > FILE"),
    (&["--data-raw", "--data-binary", "--data-ascii"], "a body is -d TEXT, or -D FILE for that of a file; with -m POST"),
    (&["-w", "--write-out"], "the report as JSON is --json; docs/json.md has recipes"),
    (&["-x", "--proxy"], "requests go straight to the server; --connect-to of bench sends them to another address"),
    (&["--http2", "--http3", "--http1.1", "--http-version"], "requests are HTTP/1.1"),
    (&["--max-time", "--connect-timeout"], "the time for one request is -t TIME; the time for the whole load is -z TIME"),
    (&["--concurrency", "--clients", "--users"], "connections are -c N"),
    (&["--seconds", "--time", "--test-duration"], "the time of the load is -z TIME"),
    (&["--no-tui", "--no-progress"], "the live view is shown on a terminal only: redirect stdout or stderr"),
    (&["--keepalive", "-K"], "connections are kept unless --disable-keepalive is given"),
    (&["--verbose", "-v"], "only diagnose has a longer report; --json has everything"),
    (&["--no-color", "--no-colour", "--colour"], "colours are --color auto, always or never"),
    (
        &["--watch", "--passive", "--no-load"],
        "diagnose without -c, -q, -n or --load watches existing traffic; `chokepoint watch` does so for months",
    ),
];

/// What people take for a verb, and what to write.
const VERBS: &[(&[&str], &str)] = &[
    (&["fix", "repair", "mend", "apply"], "fixing is a part of the diagnosis: chokepoint diagnose -c N URL --fix"),
    (&["replay"], "a recording is judged again by: chokepoint diagnose --replay FILE"),
    (&["record"], "a recording is made by: chokepoint diagnose URL --record FILE"),
    (&["load", "attack", "run", "test"], "a load alone is: chokepoint bench -c N URL"),
    (&["top", "monitor", "live"], "chokepoint where URL shows live where requests are; chokepoint watch records for months"),
    (&["revert", "rollback", "restore"], "changes are taken back by: chokepoint undo"),
];

/// An unknown flag, and what to write in its place.
pub(crate) fn hint(error: &Error) -> Option<(&str, &'static str)> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else { return None };
    let name = given.split('=').next().unwrap_or(given);
    SPELLINGS.iter().find(|(spellings, _)| spellings.contains(&name)).map(|(_, hint)| (name, *hint))
}

/// What is wrong with a value, and what a URL without a verb was meant for.
pub(crate) fn in_words(error: &Error) -> Option<String> {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let given = context(ContextKind::InvalidSubcommand)?;
            let quoted = chokepoint_model::change::quoted(given);
            let meant =
                VERBS.iter().find(|(words, _)| words.contains(&given)).map(|(_, hint)| format!("there is no verb \"{given}\": {hint}"));
            let is_url = given.contains("://");
            meant.or_else(|| is_url.then(|| format!("a verb comes before the URL: chokepoint diagnose {quoted}; --help lists the verbs")))
        }
        ErrorKind::ValueValidation => {
            let (flag, value) = (context(ContextKind::InvalidArg)?, context(ContextKind::InvalidValue)?);
            let why = match std::error::Error::source(error)?.to_string().as_str() {
                "invalid digit found in string" | "cannot parse integer from empty string" => "it takes a whole number",
                "invalid float literal" | "cannot parse float from empty string" => "it takes a number",
                "number too large to fit in target type" => "the number is too large",
                _ => return None,
            };
            Some(format!("{flag} cannot be {value:?}: {why}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use super::*;
    use crate::args::program;

    #[test]
    fn an_unknown_spelling_is_answered_with_the_right_one() {
        let hint_of = |args: &[&str]| hint(&program().try_get_matches_from(args).expect_err("an unknown flag")).map(|(_, hint)| hint);
        for (flag, right) in
            [("--latency", "percentiles"), ("-R5", "-q RATE"), ("-I", "-m HEAD"), ("--user=a:b", "Authorization"), ("--http2", "HTTP/1.1")]
        {
            let found = hint_of(&["chokepoint", "bench", flag, "http://127.0.0.1/"]);
            assert!(found.is_some_and(|hint| hint.contains(right)), "{flag}: {found:?}");
        }
        assert_eq!(hint_of(&["chokepoint", "bench", "--no-such-flag", "http://127.0.0.1/"]), None);
    }

    #[test]
    fn what_is_wrong_with_a_value_is_said_in_words() {
        let said = |args: &[&str]| {
            let args = ["chokepoint"].iter().chain(args);
            let parsed = program().try_get_matches_from(args).and_then(|matches| crate::args::Cli::from_arg_matches(&matches));
            in_words(&parsed.map(drop).expect_err("a wrong command line")).unwrap_or_default()
        };
        for (args, words) in [
            (&["http://127.0.0.1:80/?a&b"][..], "chokepoint diagnose 'http://127.0.0.1:80/?a&b'"),
            (&["fix", "http://127.0.0.1/"], "chokepoint diagnose -c N URL --fix"),
            (&["replay", "x.rec"], "chokepoint diagnose --replay FILE"),
            (&["bench", "-c", "abc", "http://127.0.0.1/"], "--connections <N> cannot be \"abc\": it takes a whole number"),
        ] {
            assert!(said(args).contains(words), "{args:?}: {}", said(args));
        }
        assert_eq!(said(&["dignose", "http://127.0.0.1/"]), "", "clap's own hint is good");
    }
}
