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
    ("root", Keep::Options(&[])),
    ("scgi_pass", Keep::Pass),
    ("server", Keep::Options(&["backup", "down", "fail_timeout", "max_conns", "max_fails", "resolve", "weight"])),
    ("server_name", Keep::All),
    ("set", Keep::Variable),
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

    #[test]
    fn the_list_is_sorted_and_names_each_directive_once() {
        assert!(KEPT.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(keep("server_tokens"), Keep::Name);
    }
}
