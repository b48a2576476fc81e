//! Properties of nginx's own directives: defaults by version, and shape, so that an error names a missing `;` or `{`.

use super::version::Version;

/// Defaults as documented on nginx.org for 64-bit Linux: name, the version that introduced the default, arguments. For a name, the last line
/// that is not newer than the given version applies.
const DEFAULTS: &[(&str, Version, &str)] = &[
    ("accept_mutex", Version(0, 0, 0), "on"),
    ("accept_mutex", Version(1, 11, 3), "off"),
    ("client_body_buffer_size", Version(0, 0, 0), "16k"),
    ("client_body_timeout", Version(0, 0, 0), "60s"),
    ("client_header_buffer_size", Version(0, 0, 0), "1k"),
    ("client_header_timeout", Version(0, 0, 0), "60s"),
    ("client_max_body_size", Version(0, 0, 0), "1m"),
    ("daemon", Version(0, 0, 0), "on"),
    ("directio", Version(0, 0, 0), "off"),
    ("fastcgi_buffer_size", Version(0, 0, 0), "4k"),
    ("fastcgi_buffering", Version(0, 0, 0), "on"),
    ("fastcgi_buffers", Version(0, 0, 0), "8 4k"),
    ("fastcgi_cache", Version(0, 0, 0), "off"),
    ("fastcgi_connect_timeout", Version(0, 0, 0), "60s"),
    ("fastcgi_ignore_client_abort", Version(0, 0, 0), "off"),
    ("fastcgi_keep_conn", Version(0, 0, 0), "off"),
    ("fastcgi_max_temp_file_size", Version(0, 0, 0), "1024m"),
    ("fastcgi_next_upstream", Version(0, 0, 0), "error timeout"),
    ("fastcgi_next_upstream_tries", Version(0, 0, 0), "0"),
    ("fastcgi_read_timeout", Version(0, 0, 0), "60s"),
    ("fastcgi_request_buffering", Version(0, 0, 0), "on"),
    ("fastcgi_send_timeout", Version(0, 0, 0), "60s"),
    ("grpc_connect_timeout", Version(0, 0, 0), "60s"),
    ("grpc_read_timeout", Version(0, 0, 0), "60s"),
    ("grpc_send_timeout", Version(0, 0, 0), "60s"),
    ("gzip", Version(0, 0, 0), "off"),
    ("gzip_comp_level", Version(0, 0, 0), "1"),
    ("gzip_min_length", Version(0, 0, 0), "20"),
    ("gzip_proxied", Version(0, 0, 0), "off"),
    ("gzip_static", Version(0, 0, 0), "off"),
    ("gzip_types", Version(0, 0, 0), "text/html"),
    ("http2", Version(1, 25, 1), "off"),
    ("http2_max_concurrent_streams", Version(0, 0, 0), "128"),
    ("index", Version(0, 0, 0), "index.html"),
    ("keepalive_requests", Version(0, 0, 0), "100"),
    ("keepalive_requests", Version(1, 19, 10), "1000"),
    ("keepalive_time", Version(1, 19, 10), "1h"),
    ("keepalive_timeout", Version(0, 0, 0), "75s"),
    ("large_client_header_buffers", Version(0, 0, 0), "4 8k"),
    ("limit_conn_status", Version(0, 0, 0), "503"),
    ("limit_rate", Version(0, 0, 0), "0"),
    ("limit_req_dry_run", Version(1, 17, 1), "off"),
    ("limit_conn_dry_run", Version(1, 17, 6), "off"),
    ("limit_req_status", Version(0, 0, 0), "503"),
    ("lingering_close", Version(0, 0, 0), "on"),
    ("lingering_time", Version(0, 0, 0), "30s"),
    ("lingering_timeout", Version(0, 0, 0), "5s"),
    ("master_process", Version(0, 0, 0), "on"),
    ("multi_accept", Version(0, 0, 0), "off"),
    ("open_file_cache", Version(0, 0, 0), "off"),
    ("open_log_file_cache", Version(0, 0, 0), "off"),
    ("output_buffers", Version(0, 0, 0), "1 32k"),
    ("output_buffers", Version(1, 9, 5), "2 32k"),
    ("postpone_output", Version(0, 0, 0), "1460"),
    ("proxy_buffer_size", Version(0, 0, 0), "4k"),
    ("proxy_buffering", Version(0, 0, 0), "on"),
    ("proxy_buffers", Version(0, 0, 0), "8 4k"),
    ("proxy_cache", Version(0, 0, 0), "off"),
    ("proxy_connect_timeout", Version(0, 0, 0), "60s"),
    ("proxy_http_version", Version(0, 0, 0), "1.0"),
    ("proxy_http_version", Version(1, 29, 7), "1.1"),
    ("proxy_ignore_client_abort", Version(0, 0, 0), "off"),
    ("proxy_max_temp_file_size", Version(0, 0, 0), "1024m"),
    ("proxy_next_upstream", Version(0, 0, 0), "error timeout"),
    ("proxy_next_upstream_timeout", Version(0, 0, 0), "0"),
    ("proxy_next_upstream_tries", Version(0, 0, 0), "0"),
    ("proxy_read_timeout", Version(0, 0, 0), "60s"),
    ("proxy_request_buffering", Version(0, 0, 0), "on"),
    ("proxy_send_timeout", Version(0, 0, 0), "60s"),
    ("proxy_socket_keepalive", Version(1, 15, 6), "off"),
    ("proxy_ssl_session_reuse", Version(0, 0, 0), "on"),
    ("reset_timedout_connection", Version(0, 0, 0), "off"),
    ("rewrite_log", Version(0, 0, 0), "off"),
    ("scgi_connect_timeout", Version(0, 0, 0), "60s"),
    ("scgi_read_timeout", Version(0, 0, 0), "60s"),
    ("send_timeout", Version(0, 0, 0), "60s"),
    ("sendfile", Version(0, 0, 0), "off"),
    ("sendfile_max_chunk", Version(0, 0, 0), "0"),
    ("sendfile_max_chunk", Version(1, 21, 4), "2m"),
    ("ssl_buffer_size", Version(0, 0, 0), "16k"),
    ("ssl_ecdh_curve", Version(1, 11, 0), "auto"),
    ("ssl_prefer_server_ciphers", Version(0, 0, 0), "off"),
    ("ssl_protocols", Version(0, 0, 0), "TLSv1 TLSv1.1 TLSv1.2"),
    ("ssl_protocols", Version(1, 23, 4), "TLSv1 TLSv1.1 TLSv1.2 TLSv1.3"),
    ("ssl_protocols", Version(1, 27, 3), "TLSv1.2 TLSv1.3"),
    ("ssl_session_cache", Version(0, 0, 0), "none"),
    ("ssl_session_tickets", Version(0, 0, 0), "on"),
    ("ssl_session_timeout", Version(0, 0, 0), "5m"),
    ("ssl_verify_client", Version(0, 0, 0), "off"),
    ("tcp_nodelay", Version(0, 0, 0), "on"),
    ("tcp_nopush", Version(0, 0, 0), "off"),
    ("uwsgi_connect_timeout", Version(0, 0, 0), "60s"),
    ("uwsgi_read_timeout", Version(0, 0, 0), "60s"),
    ("uwsgi_send_timeout", Version(0, 0, 0), "60s"),
    ("worker_connections", Version(0, 0, 0), "512"),
    ("worker_processes", Version(0, 0, 0), "1"),
];

/// nginx's default arguments of a directive in a version.
pub(crate) fn default_of(name: &str, version: Version) -> Option<&'static str> {
    DEFAULTS.iter().rev().find(|(known, since, _)| *known == name && *since <= version).map(|(.., value)| *value)
}

/// Directives that always have a block.
const BLOCKS: &[&str] = &[
    "charset_map",
    "events",
    "geo",
    "http",
    "if",
    "limit_except",
    "location",
    "mail",
    "map",
    "match",
    "split_clients",
    "stream",
    "types",
    "upstream",
];
/// Directives without a block: name, least and most arguments.
const SIMPLE: &[(&str, usize, usize)] = &[
    ("access_log", 1, usize::MAX),
    ("client_max_body_size", 1, 1),
    ("default_type", 1, 1),
    ("error_log", 1, usize::MAX),
    ("fastcgi_index", 1, 1),
    ("fastcgi_keep_conn", 1, 1),
    ("fastcgi_param", 2, 3),
    ("fastcgi_pass", 1, 1),
    ("fastcgi_read_timeout", 1, 1),
    ("grpc_pass", 1, 1),
    ("gzip", 1, 1),
    ("gzip_comp_level", 1, 1),
    ("include", 1, 1),
    ("index", 1, usize::MAX),
    ("keepalive_requests", 1, 1),
    ("keepalive_timeout", 1, 2),
    ("limit_conn", 2, 2),
    ("limit_conn_zone", 2, 2),
    ("limit_req", 1, 3),
    ("limit_req_zone", 3, 4),
    ("listen", 1, usize::MAX),
    ("log_format", 2, usize::MAX),
    ("multi_accept", 1, 1),
    ("pid", 1, 1),
    ("proxy_http_version", 1, 1),
    ("proxy_pass", 1, 1),
    ("proxy_read_timeout", 1, 1),
    ("proxy_set_header", 2, 2),
    ("return", 1, 2),
    ("rewrite", 2, 3),
    ("root", 1, 1),
    ("scgi_pass", 1, 1),
    ("sendfile", 1, 1),
    ("server_name", 1, usize::MAX),
    ("set", 2, 2),
    ("ssl_session_cache", 1, 2),
    ("tcp_nodelay", 1, 1),
    ("tcp_nopush", 1, 1),
    ("try_files", 2, usize::MAX),
    ("user", 1, 2),
    ("uwsgi_pass", 1, 1),
    ("worker_connections", 1, 1),
    ("worker_processes", 1, 1),
    ("worker_rlimit_nofile", 1, 1),
];

/// The reason why nginx would refuse a directive for its shape alone; `None` for an unknown directive.
pub(crate) fn shape_problem(name: &str, args: usize, has_block: bool) -> Option<String> {
    if !has_block && BLOCKS.contains(&name) {
        return Some(format!("directive \"{name}\" has no opening \"{{\""));
    }
    let &(_, fewest, most) = SIMPLE.iter().find(|(known, ..)| *known == name)?;
    if has_block {
        return Some(format!("directive \"{name}\" is not terminated by \";\""));
    }
    if args < fewest || args > most {
        return Some(format!("invalid number of arguments in \"{name}\" directive: is a \";\" missing?"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_depend_on_the_version() {
        assert_eq!(default_of("keepalive_requests", Version(1, 18, 0)), Some("100"));
        assert_eq!(default_of("keepalive_requests", Version(1, 22, 1)), Some("1000"));
        assert_eq!(default_of("proxy_http_version", Version(1, 29, 6)), Some("1.0"));
        assert_eq!(default_of("proxy_http_version", Version(1, 29, 7)), Some("1.1"));
        assert_eq!(default_of("http2", Version(1, 22, 1)), None);
        assert_eq!(default_of("no_such_directive", Version(1, 22, 1)), None);
    }

    #[test]
    fn versions_of_one_default_are_in_order() {
        for pair in DEFAULTS.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
            assert!(pair[0].1 < pair[1].1, "{}", pair[0].0);
        }
        for (index, (name, ..)) in DEFAULTS.iter().enumerate() {
            let first = DEFAULTS.iter().position(|(known, ..)| known == name).unwrap_or(index);
            assert!(DEFAULTS[first..=index].iter().all(|(known, ..)| known == name), "{name} stands in two places");
        }
    }

    #[test]
    fn a_missing_terminator_is_reported() {
        assert!(shape_problem("worker_connections", 3, false).is_some());
        assert!(shape_problem("sendfile", 1, true).is_some());
        assert!(shape_problem("location", 1, false).is_some());
        assert_eq!(shape_problem("worker_connections", 1, false), None);
        assert_eq!(shape_problem("of_a_module", 9, true), None);
    }
}
