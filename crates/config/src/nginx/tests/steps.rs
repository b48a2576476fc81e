//! Logs that tell each step and sessions that may be resumed: what is in force for a request, and the edits.

use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;

use super::*;

const STEPS: &str = include_str!("../../../tests/data/nginx/good/steps.conf");

fn selected<'n>(nginx: &'n Nginx, host: &str, path: &str) -> Selection<'n> {
    let local = LocalAddress::Ip(IpAddr::V4(Ipv4Addr::LOCALHOST), 8130);
    nginx.http.as_ref().and_then(|http| http.select(&local, host, path)).expect("something answers")
}

/// Destination, levels and what they are to be, of each debug log in force.
fn debug_logs(nginx: &Nginx, host: &str, path: &str) -> Vec<(String, String, String)> {
    let found = nginx.debug_logs(Some(&selected(nginx, host, path))).into_iter();
    found.map(|log| (log.to, log.levels.to_string(), log.quiet.to_string())).collect()
}

fn one(to: &str, levels: &str, quiet: &str) -> (String, String, String) {
    (to.to_owned(), levels.to_owned(), quiet.to_owned())
}

fn edited(text: &str, edit: impl FnOnce(&mut Editor<'_>, &Nginx) -> Result<bool, EditError>) -> String {
    let tree = tree(text);
    let nginx = Nginx::of(&tree, Version(1, 22, 1));
    let mut editor = Editor::new(&tree);
    assert_eq!(edit(&mut editor, &nginx), Ok(true));
    editor.finish().expect("it parses").pop().map_or_else(|| text.to_owned(), |edited| edited.after)
}

#[test]
fn only_the_levels_in_force_for_the_request_are_to_change() {
    let nginx = nginx(STEPS);
    // The main log for events, the server's until the location is known; the location itself logs errors alone.
    assert_eq!(debug_logs(&nginx, "", "/"), [one("logs/main.log", "debug, debug_core, error", "error, error, error")]);
    let elsewhere = STEPS.replace("error_log logs/main.log debug_core;", "");
    let nginx = super::nginx(&elsewhere);
    assert_eq!(
        debug_logs(&nginx, "", "/"),
        [one("logs/main.log", "debug, error", "error, error"), one("logs/http.log", "debug_http debug_event", "error")]
    );
    let rewrites = nginx.rewrite_log(&selected(&nginx, "", "/"));
    assert_eq!(rewrites.map(|place| place.line), Some(12), "of the server, whose log takes its lines");
    let none = super::nginx(&elsewhere.replace("debug_http debug_event", "").replace("stderr warn", "stderr"));
    assert_eq!(none.rewrite_log(&selected(&none, "", "/")), None);
    assert_eq!(none.log_levels("stderr").map(|levels| levels.to_string()).as_deref(), Some("error"));
    assert_eq!(none.log_levels("logs/no.log"), None);
}

#[test]
fn a_log_of_another_server_keeps_its_level() {
    let text = "http {\n  server { listen 8130; server_name a; error_log e debug; }\n  server { listen 8130; server_name b; error_log e debug; }\n  server { listen 8130 default_server; }\n}\n";
    let nginx = nginx(text);
    assert_eq!(debug_logs(&nginx, "a", "/"), [one("e", "debug, debug", "error, debug")]);
    assert_eq!(debug_logs(&nginx, "c", "/"), []);
    let quiet = "error, debug".parse().expect("levels");
    let after = edited(text, |editor, nginx| set_log_levels(editor, nginx, "e", &quiet));
    assert_eq!(after, text.replacen("error_log e debug;", "error_log e error;", 1), "nothing else changes");
    let debug = "debug, debug".parse().expect("levels");
    assert_eq!(edited(&after, |editor, nginx| set_log_levels(editor, nginx, "e", &debug)), text, "and back");
    let before = super::nginx(text);
    let tree = tree(text);
    let one = "error".parse().expect("a level");
    assert_eq!(set_log_levels(&mut Editor::new(&tree), &before, "e", &one), Ok(false), "there are two");
    assert_eq!(set_log_levels(&mut Editor::new(&tree), &before, "f", &one), Ok(false), "there is none");
}

#[test]
fn several_kinds_of_steps_become_one_level() {
    let levels = "error".parse().expect("a level");
    let after = edited(STEPS, |editor, nginx| set_log_levels(editor, nginx, "logs/http.log", &levels));
    assert_eq!(after, STEPS.replace("logs/http.log debug_http debug_event;", "logs/http.log error;"));
    assert_eq!(nginx(&after).problems, []);
}

#[test]
fn a_cache_is_set_for_all_servers_of_the_http_block() {
    let text = "http {\n    ssl_session_tickets off;\n    server {\n        listen 8130 ssl;\n    }\n}\n";
    let cache: SessionCache = "shared:chokepoint:10m".parse().expect("a cache");
    let sessions = |text: &str| {
        let nginx = nginx(text);
        let found = selected(&nginx, "", "/").tls_sessions(nginx.http.as_ref().expect("http")).expect("it is sure");
        (found.tickets.value, found.cache.value, found.cache.origin.place().is_some())
    };
    assert_eq!(sessions(text), (false, "none".to_owned(), false));
    let after = edited(text, |editor, nginx| set_session_cache(editor, nginx, &cache));
    assert_eq!(after, text.replace("    }\n}\n", "    }\n    ssl_session_cache shared:chokepoint:10m;\n}\n"));
    assert_eq!(sessions(&after), (false, "shared:chokepoint:10m".to_owned(), true));
    assert_eq!(nginx(text).session_cache(), Some(None));
    assert_eq!(nginx(&after).session_cache(), Some(Some("shared:chokepoint:10m".to_owned())));
    assert_eq!(nginx("events {}").session_cache(), None);
}

#[test]
fn servers_of_one_address_must_agree() {
    let sessions = |other: &str| {
        let text = format!(
            "http {{ server {{ listen 8130 ssl; ssl_session_tickets off; }} server {{ listen 8130 ssl; server_name b; {other} }} }}"
        );
        let nginx = nginx(&text);
        selected(&nginx, "b", "/").tls_sessions(nginx.http.as_ref().expect("http")).map(|found| found.cache.value)
    };
    assert_eq!(sessions("ssl_session_tickets off;").as_deref(), Some("none"));
    assert_eq!(sessions("ssl_session_tickets off; ssl_session_cache off;").as_deref(), Some("none"), "neither stores any");
    assert_eq!(sessions("ssl_session_tickets off; ssl_session_cache shared:a:1m;"), None);
    assert_eq!(sessions(""), None, "tickets are on");
}

#[test]
fn values_that_are_none_are_refused() {
    for text in ["", "debugging", "debug,warn", "debug, ", "warn debug", "debug_http warn", "debug; include /x", "error\n"] {
        assert_eq!(text.parse::<LogLevels>(), Err(NoLevels), "{text:?}");
    }
    for text in ["", "shared", "shared:a", "shared::1m", "shared:a;b:1m", "shared:a:x", "off on", "builtin:x", "none none none"] {
        assert_eq!(text.parse::<SessionCache>(), Err(NoSessionCache), "{text:?}");
    }
    for text in ["debug", "debug_http debug_event, warn", "error, emerg"] {
        assert_eq!(text.parse::<LogLevels>().map(|levels| levels.to_string()).as_deref(), Ok(text));
    }
    for text in ["off", "builtin:1000 shared:SSL:10m"] {
        assert_eq!(text.parse::<SessionCache>().map(|cache| cache.to_string()).as_deref(), Ok(text));
    }
}

proptest! {
    #[test]
    fn what_is_read_of_levels_is_written_so(text in "(debug|debug_http|error|warn|x|,| ){0,8}", cache in "(shared|builtin|off|:|a|1m| ){0,8}") {
        if let Ok(levels) = text.parse::<LogLevels>() {
            prop_assert_eq!(levels.to_string(), text);
        }
        if let Ok(read) = cache.parse::<SessionCache>() {
            prop_assert_eq!(read.to_string(), cache);
        }
    }
}
