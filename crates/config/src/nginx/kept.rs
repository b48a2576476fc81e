//! The directives whose values the model reads, and which of their arguments: all that a recording keeps of an nginx configuration besides
//! the names of its directives.

/// Which arguments of a directive are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// Whether the directive is there, and no argument.
    Name,
    /// All of them.
    All,
    /// All; of a query behind a `?` only what variables fill in.
    Targets,
    /// The first one; and of the others these words and these `name=value`.
    Options(&'static [&'static str]),
    /// The first one where it is a number with its unit, or `auto`; and of the others these words.
    Quantity(&'static [&'static str]),
    /// The first one where it is one of these words.
    Word(&'static [&'static str]),
    /// The first one where it is a status of three digits.
    Status,
    /// The last one where it leads to a path or a named location.
    Redirect,
    /// Where an error log goes, of a server for it that it is one, and its levels.
    Log,
    /// A pattern, where it leads, and a flag.
    Rewrite,
    /// Name and value where the name is one of these, in any case.
    Pair(&'static [&'static str]),
    /// The server to which requests go: a URL without user information and the values of its query.
    Pass,
    /// A variable and its value, where the value decides to which server requests go or which file answers.
    Variable,
}

/// What is read, by directive. Of a directive that is not listed the name is kept and no argument. The readers in this crate
/// (`Nginx::of` and what it gives) and those of crate `sources` ask for no other value of what was recorded; a test compares.
pub(super) const KEPT: &[(&str, Keep)] = &[
    ("alias", Keep::Options(&[])),
    ("auth_basic", Keep::Word(&["off"])),
    ("error_log", Keep::Log),
    ("error_page", Keep::Redirect),
    ("fastcgi_index", Keep::Options(&[])),
    ("fastcgi_keep_conn", Keep::Word(&["on", "off"])),
    ("fastcgi_param", Keep::Pair(&["SCRIPT_FILENAME"])),
    ("fastcgi_pass", Keep::Pass),
    ("grpc_pass", Keep::Pass),
    ("include", Keep::All),
    ("index", Keep::All),
    ("keepalive", Keep::Quantity(&["local"])),
    ("keepalive_requests", Keep::Quantity(&[])),
    ("keepalive_timeout", Keep::Quantity(&[])),
    ("limit_conn", Keep::All),
    ("limit_conn_dry_run", Keep::Word(&["on", "off"])),
    ("limit_conn_status", Keep::Status),
    ("limit_conn_zone", Keep::Options(&["zone"])),
    ("limit_req", Keep::Options(&["burst", "delay", "nodelay", "zone"])),
    ("limit_req_dry_run", Keep::Word(&["on", "off"])),
    ("limit_req_status", Keep::Status),
    ("limit_req_zone", Keep::Options(&["rate", "zone"])),
    ("listen", Keep::Options(LISTEN)),
    ("location", Keep::All),
    ("memcached_pass", Keep::Pass),
    ("proxy_http_version", Keep::Word(&["1.0", "1.1", "2"])),
    ("proxy_pass", Keep::Pass),
    ("proxy_set_header", Keep::Pair(&["Connection"])),
    ("return", Keep::Status),
    ("rewrite", Keep::Rewrite),
    ("rewrite_log", Keep::Word(&["on", "off"])),
    ("root", Keep::Options(&[])),
    ("scgi_pass", Keep::Pass),
    ("server", Keep::Options(&["backup", "down", "fail_timeout", "max_conns", "max_fails", "resolve", "weight"])),
    ("server_name", Keep::All),
    ("set", Keep::Variable),
    ("ssl_ecdh_curve", Keep::Word(&["auto"])),
    ("ssl_session_cache", Keep::All),
    ("ssl_session_tickets", Keep::Word(&["on", "off"])),
    ("ssl_verify_client", Keep::Word(&["on", "off", "optional", "optional_no_ca"])),
    ("try_files", Keep::Targets),
    ("upstream", Keep::Options(&[])),
    ("uwsgi_pass", Keep::Pass),
    ("worker_connections", Keep::Quantity(&[])),
    ("worker_processes", Keep::Quantity(&[])),
    ("worker_rlimit_nofile", Keep::Quantity(&[])),
    ("zone", Keep::Options(&[])),
];

/// Options of `listen`.
const LISTEN: &[&str] = &[
    "accept_filter",
    "backlog",
    "bind",
    "default",
    "default_server",
    "deferred",
    "fastopen",
    "http2",
    "http3",
    "ipv6only",
    "multipath",
    "proxy_protocol",
    "quic",
    "rcvbuf",
    "reuseport",
    "setfib",
    "sndbuf",
    "so_keepalive",
    "spdy",
    "ssl",
    "udp",
];

/// Which arguments of the directive are read.
pub(super) fn keep(name: &str) -> Keep {
    KEPT.iter().find(|(known, _)| *known == name).map_or(Keep::Name, |(_, keep)| *keep)
}

/// Blocks in which directives stand. In any other one (`map`, `geo`, `types`, those of modules) names may be values too.
pub(super) const BLOCKS: &[&str] = &["events", "http", "if", "limit_except", "location", "mail", "server", "stream", "upstream"];

#[cfg(test)]
mod tests {
    use super::*;

    /// Directives that readers ask for and of which a recording keeps the name alone: whether they are there is what counts, or they are read on
    /// the host only, for logs and status pages.
    const NAME_IS_ENOUGH: &[&str] = &[
        "access_log",
        "debug_connection",
        "fastcgi_split_path_info",
        "hash",
        "internal",
        "ip_hash",
        "least_conn",
        "log_format",
        "random",
        "ssl_conf_command",
        "stub_status",
    ];
    /// The readers' own texts.
    const READERS: &[&str] = &[
        include_str!("asked.rs"),
        include_str!("debug_log.rs"),
        include_str!("effective.rs"),
        include_str!("limits.rs"),
        include_str!("listen.rs"),
        include_str!("location.rs"),
        include_str!("logs.rs"),
        include_str!("own.rs"),
        include_str!("pass.rs"),
        include_str!("reuse.rs"),
        include_str!("route.rs"),
        include_str!("select.rs"),
        include_str!("server.rs"),
        include_str!("sessions.rs"),
        include_str!("upstream.rs"),
        include_str!("../../../sources/src/servers/keeps.rs"),
        include_str!("../../../sources/src/servers/levels.rs"),
        include_str!("../../../sources/src/servers/limits.rs"),
        include_str!("../../../sources/src/servers/nginx.rs"),
        include_str!("../../../sources/src/servers/pages.rs"),
        include_str!("../../../sources/src/servers/selected.rs"),
    ];
    /// How readers ask for a directive.
    const ASKING: &[&str] = &["own(", "all(", "one(", "word(", "words(", "flag(", "number(", "bytes(", "time_ms(", "buffers("];

    #[test]
    fn no_reader_asks_for_a_value_that_is_not_kept() {
        let mut asked = 0;
        for text in READERS {
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for ask in ASKING {
                for (at, _) in code.match_indices(&format!(".{ask}\"")) {
                    let name = code[at..].split('"').nth(1).unwrap_or_default();
                    asked += 1;
                    let is_known = NAME_IS_ENOUGH.contains(&name) || keep(name) != Keep::Name;
                    assert!(is_known, "a reader asks for \"{name}\": list its arguments in KEPT, or its name in NAME_IS_ENOUGH");
                }
            }
        }
        assert!(asked > 30, "the readers were found: {asked}");
        for (name, _) in super::super::pass::PassKind::ALL {
            assert_eq!(keep(name), Keep::Pass, "{name}");
        }
    }

    #[test]
    fn the_list_is_sorted_and_names_each_directive_once() {
        assert!(KEPT.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(keep("server_tokens"), Keep::Name);
    }
}
