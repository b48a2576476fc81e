//! The arguments that a recording keeps of each nginx directive: those that the model reads. For other directives it keeps only the name.

/// Which arguments of a directive are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// None.
    Name,
    /// All of them.
    All,
    /// All of them, but of a query after `?` only the parts that are variables.
    Targets,
    /// The first one, and of the others these words and these `name=value` arguments.
    Options(&'static [&'static str]),
    /// The first one if it is a number with a unit or `auto`, and of the others these words.
    Quantity(&'static [&'static str]),
    /// The first one if it is one of these words.
    Word(&'static [&'static str]),
    /// The first one if it is a status of three digits.
    Status,
    /// The last one if it is a path or a named location.
    Redirect,
    /// The destination of an error log and its levels. A syslog server's address is not kept.
    Log,
    /// Pattern, replacement and flag.
    Rewrite,
    /// Name and value if the name is one of these, in any case.
    Pair(&'static [&'static str]),
    /// The upstream: a URL without user information and without the values of its query.
    Pass,
    /// A variable and its value, if the value determines which upstream or which file answers.
    Variable,
}

/// The kept arguments by directive. Of a directive that is not listed, only the name is kept. The readers in this crate (`Nginx::of` and its
/// results) and in crate `sources` use no other values of a recording. A test compares them with this list.
pub(crate) const KEPT: &[(&str, Keep)] = &[
    ("alias", Keep::Options(&[])),
    ("auth_basic", Keep::Word(&["off"])),
    ("error_log", Keep::Log),
    ("error_page", Keep::Redirect),
    ("fastcgi_index", Keep::Options(&[])),
    ("fastcgi_keep_conn", Keep::Word(&["on", "off"])),
    ("fastcgi_param", Keep::Pair(&["SCRIPT_FILENAME"])),
    ("fastcgi_pass", Keep::Pass),
    ("grpc_pass", Keep::Pass),
    ("gzip", Keep::Word(&["on", "off"])),
    ("gzip_comp_level", Keep::Quantity(&[])),
    ("include", Keep::All),
    ("index", Keep::All),
    ("keepalive", Keep::Quantity(&["local"])),
    ("keepalive_requests", Keep::Quantity(&[])),
    ("keepalive_timeout", Keep::Quantity(&[])),
    ("limit_conn", Keep::All),
    ("limit_conn_dry_run", Keep::Word(&["on", "off"])),
    ("limit_conn_status", Keep::Status),
    ("limit_conn_zone", Keep::Options(&["zone"])),
    ("limit_rate", Keep::Quantity(&[])),
    ("limit_rate_after", Keep::Quantity(&[])),
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
    ("ssi", Keep::Word(&["on", "off"])),
    ("ssl_ecdh_curve", Keep::Word(&["auto"])),
    ("ssl_session_cache", Keep::All),
    ("ssl_session_tickets", Keep::Word(&["on", "off"])),
    ("ssl_verify_client", Keep::Word(&["on", "off", "optional", "optional_no_ca"])),
    ("try_files", Keep::Targets),
    ("upstream", Keep::Options(&[])),
    ("user", Keep::Options(&[])),
    ("uwsgi_pass", Keep::Pass),
    ("worker_connections", Keep::Quantity(&[])),
    ("worker_processes", Keep::Quantity(&[])),
    ("worker_rlimit_nofile", Keep::Quantity(&[])),
    ("zone", Keep::Options(&[])),
];

/// Directives whose lines the edits of [`crate::server_setting`] replace. A comment behind one is a part of the printed diff.
pub(crate) const EDITED: &[&str] = &[
    "error_log",
    "fastcgi_keep_conn",
    "fastcgi_pass",
    "keepalive",
    "keepalive_requests",
    "listen",
    "server",
    "ssl_session_cache",
    "worker_connections",
    "worker_rlimit_nofile",
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

/// The kept arguments of the directive.
pub(crate) fn keep(name: &str) -> Keep {
    KEPT.iter().find(|(known, _)| *known == name).map_or(Keep::Name, |(_, keep)| *keep)
}

/// Blocks that contain directives. In any other block (`map`, `geo`, `types`, blocks of modules) names may be values too.
pub(crate) const BLOCKS: &[&str] = &["events", "http", "if", "limit_except", "location", "mail", "server", "stream", "upstream"];

#[cfg(test)]
mod tests {
    use super::*;

    /// Directives that readers use and of which a recording keeps only the name: only their presence counts, or they are read only on the
    /// host, for logs and status pages.
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
    /// The source code of the readers.
    const READERS: &[&str] = &[
        include_str!("../request/upstream_request.rs"),
        include_str!("../edit/debug_log.rs"),
        include_str!("../effective.rs"),
        include_str!("../effective/limits.rs"),
        include_str!("../effective/listen.rs"),
        include_str!("../effective/location.rs"),
        include_str!("../effective/logs.rs"),
        include_str!("../request/own_answer.rs"),
        include_str!("../effective/pass.rs"),
        include_str!("../edit/reuse.rs"),
        include_str!("../request/route.rs"),
        include_str!("../request/select.rs"),
        include_str!("../effective/server.rs"),
        include_str!("../edit/sessions.rs"),
        include_str!("../effective/upstream.rs"),
        include_str!("../effective/upstream_reuse.rs"),
        include_str!("../effective/settings.rs"),
        include_str!("../../../../sources/src/servers/keeps.rs"),
        include_str!("../../../../sources/src/servers/nginx/levels.rs"),
        include_str!("../../../../sources/src/servers/nginx/limits.rs"),
        include_str!("../../../../sources/src/servers/nginx.rs"),
        include_str!("../../../../sources/src/servers/pages.rs"),
        include_str!("../../../../sources/src/servers/nginx/selected.rs"),
    ];
    /// How readers look up a directive.
    const ASKING: &[&str] = &["own(", "all(", "one(", "word(", "words(", "flag(", "number(", "bytes(", "time_ms(", "buffers("];

    #[test]
    fn readers_use_only_values_that_are_kept() {
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
        assert!(asked > 30, "the readers are found: {asked}");
        for (name, _) in crate::nginx::effective::pass::PassKind::ALL {
            assert_eq!(keep(name), Keep::Pass, "{name}");
        }
    }

    #[test]
    fn the_list_is_sorted_and_contains_each_directive_once() {
        assert!(KEPT.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(keep("server_tokens"), Keep::Name);
    }
}
