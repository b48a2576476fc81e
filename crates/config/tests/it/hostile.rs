//! Configurations and logs that nobody meant: every reader and editor ends, within the bounds of `docs/fuzzing.md`.
//!
//! Deterministic: files in, text out.

use std::net::{IpAddr, Ipv4Addr};

use chokepoint_config::error_log::{FpmLine, NginxLine};
use chokepoint_config::log_format::{self, Escape, FpmFormat, LogFormat};
use chokepoint_config::nginx::{self, LocalAddress, Nginx, Pattern, Position, Settings, Tree};
use chokepoint_config::{Node, Resolved, diff, dump, glob, haproxy, php_fpm, postgresql, sysctl_d, text};
use chokepoint_hostile::{Chance, Corpus, run, run_each, run_made};

const NGINX: &[&str] = &[
    include_str!("../data/nginx/debian/nginx.conf"),
    include_str!("../data/nginx/debian/fastcgi.conf"),
    include_str!("../data/nginx/debian/sites-enabled/default"),
    include_str!("../data/nginx/debian/sites-enabled/shop.example.com"),
    include_str!("../data/nginx/debian/snippets/fastcgi-php.conf"),
    include_str!("../data/nginx/good/big_proxy.conf"),
    include_str!("../data/nginx/good/inheritance.conf"),
    include_str!("../data/nginx/good/json_log.conf"),
    include_str!("../data/nginx/good/listens.conf"),
    include_str!("../data/nginx/good/selection.conf"),
    include_str!("../data/nginx/good/steps.conf"),
    include_str!("../data/nginx/good/tokens.conf"),
    include_str!("../data/nginx/good/wordpress.conf"),
];
const PHP_FPM: &[&str] = &[
    include_str!("../data/php-fpm/stock/php-fpm.conf"),
    include_str!("../data/php-fpm/stock/www.conf"),
    include_str!("../data/php-fpm/good/pools.conf"),
    include_str!("../data/php-fpm/good/case_a.conf"),
    include_str!("../data/php-fpm/bad/open_quote.conf"),
    "[w]\nlisten = 127.0.0.1:9000\npm = dynamic\npm.max_children = 5\nslowlog = \"a ${B} 'c'\"\nenv[A] = $pool\ninclude = /p/*.conf\n",
];
const HAPROXY: &[&str] = &[
    "global\n maxconn 4000\n nbthread 2\ndefaults\n mode http\n timeout connect 5s\n default-server maxconn 50\nfrontend www\n bind :80,[::1]:81 maxconn 100\n use_backend %[path] if TRUE\n default_backend app\n",
    "backend app\n server a 127.0.0.1:8081 check maxconn 2 # c\n server-template x 1-3 api.internal:80 minconn 3\n server \"e 1\" \"${HOST-a}:80\" 'q' \\x41\n",
    "listen mysql\n bind unix@/run/x user y\n rate-limit sessions 30\n timeout queue 250us\nuserlist u\n user a password \"$X\"\ndefaults d from d\nbackend b from d\n filter spoe\n http-request lua.x\n",
];
const POSTGRESQL: &[&str] = &[
    "# a\nlisten_addresses = '*'\t# b\nport = 5433\nmax_connections = 100\nunix_socket_directories = '/run/pg, /tmp'\nlog_line_prefix = '%m [%p] ''q'' \\\\ '\n",
    "include 'b.conf'\ninclude_if_exists 'c.conf'\ninclude_dir = 'conf.d'\nSuperuser_Reserved_Connections 0x3\nplpgsql.check=on\nwork_mem = 4MB\n",
];
const SYSCTL: &[&str] = &[
    "# a comment\nnet.ipv4.ip_local_port_range = 1024 65000\n-net.ipv4.tcp_tw_reuse=1\n; another\nnet/core/somaxconn=4096\n",
    "net.ipv4.conf.*.rp_filter = 1\n-net.ipv4.conf.eth0.rp_filter\nkernel.core_pattern = |/bin/x %p\nfs.file-max=9223372036854775807",
];
const ERROR_LOGS: &[&str] = &[
    include_str!("../data/logs/error.log"),
    include_str!("../data/logs/fpm.log"),
    "[21-Nov-2026 10:00:00] WARNING: [pool www] server reached pm.max_children setting (5), consider raising it\n",
];
const ACCESS_LOGS: &[&str] = &[
    include_str!("../data/logs/combined.log"),
    include_str!("../data/logs/timed.log"),
    include_str!("../data/logs/js.log"),
    include_str!("../data/logs/tsv.log"),
    include_str!("../data/logs/www.access.log"),
];
const FORMATS: &[&str] = &[
    "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \"$http_user_agent\"",
    "$status $request_time uct=\"$upstream_connect_time\" urt=\"$upstream_response_time\" us=\"$upstream_status\" ua=\"$upstream_addr\" ${msec}$pipe",
    "{\"time\":\"$time_iso8601\",\"status\":$status,\"request\":\"$request\",\"rt\":$request_time}",
    "$msec\t$status\t$request_time\t$upstream_connect_time\t$request",
    "%R - %u %t \"%m %r%Q%q\" %s %f %{mili}d %{kilo}M %C%%",
    "%t \"%m %r%Q%q\" %s %{micro}d %{user}C %p %P %n %l %T %{x}e %{y}o",
];

/// A disk of one file and a few that it may include.
fn disk<'a>(main: &'a str, others: &'a [(&'a str, &'a str)]) -> impl FnMut(&str) -> Vec<Resolved> + 'a {
    move |pattern: &str| {
        let is_it = |path: &str| if glob::is_pattern(pattern) { glob::matches(pattern, path) } else { path == pattern };
        let all = [("/n/main", main)].into_iter().chain(others.iter().copied());
        all.filter(|(path, _)| is_it(path)).map(|(path, text)| (path.to_owned(), Ok(text.to_owned()))).collect()
    }
}

fn ask_settings(settings: &Settings) {
    let _ = (settings.keepalive_timeout_ms(), settings.ssl_session_cache_shared_bytes(), settings.rate_limits(), settings.conn_limits());
    let _ = (settings.access_logs(), settings.error_logs());
    for name in ["worker_connections", "keepalive_requests", "proxy_buffers", "client_max_body_size", "gzip", "sendfile", "index"] {
        let _ = (settings.number(name), settings.bytes(name), settings.time_ms(name), settings.flag(name), settings.buffers(name));
        let _ = (settings.word(name), settings.words(name), settings.own(name).len());
    }
}

fn ask_nginx(nginx: &Nginx) {
    let _ = (nginx.main.worker_processes(), nginx.main.worker_connections(), nginx.main.worker_rlimit_nofile());
    let _ = (nginx.debug_logs(None), nginx.log_levels("stderr"), nginx.session_cache());
    let Some(http) = &nginx.http else { return };
    ask_settings(&http.settings);
    for server in http.servers.iter().take(4) {
        ask_settings(&server.settings);
    }
    let locals = [LocalAddress::Ip(IpAddr::V4(Ipv4Addr::LOCALHOST), 80), LocalAddress::Unix("/run/x".to_owned())];
    for local in &locals {
        for (host, path) in [("shop.example.com", "/a/b.php?x=1"), ("localhost", "/"), ("", "\u{f780}%2e%2e/")] {
            let Some(selection) = http.select(local, host, path) else { continue };
            let _ = (selection.own_answers(), selection.is_certain(), selection.tls_sessions(http));
            let _ = (nginx.debug_logs(Some(&selection)), nginx.rewrite_log(&selection));
            let client = nginx::ClientRequest { scheme: "http", host, path_and_query: path, local };
            for candidate in selection.candidates() {
                let _ = (
                    candidate.upstream_request(&selection, &client),
                    candidate.pass.reuse(http, candidate.settings),
                    candidate.pass.targets(),
                );
            }
        }
    }
    // A range of ports may give tens of thousands, and each is sought among all.
    for socket in http.sockets.iter().take(64) {
        let _ = (socket.option_node(), http.socket(&socket.address));
    }
}

fn edit_nginx(tree: &Tree, nginx: &Nginx) {
    let mut editor = nginx::Editor::new(tree);
    let _ = editor.set(None, "worker_rlimit_nofile", &["65535"], Position::End);
    let nodes =
        tree.files().iter().enumerate().flat_map(|(file, parsed)| (0..parsed.directives().len()).map(move |entry| Node { file, entry }));
    for (number, node) in nodes.take(40).enumerate() {
        let _ = match number % 8 {
            0 => editor.set_option(node, "backlog", "8192"),
            1 => editor.set_flag(node, "reuseport"),
            2 => editor.set_argument(node, 0, "a b;{"),
            3 => editor.add(Some(node), "fastcgi_keep_conn", &["on"], Position::Start),
            4 => editor.remove_option(node, "weight"),
            5 => editor.set_arguments(node, &["$x", "\"y\""]),
            6 => editor.set(Some(node), "worker_connections", &["2048"], Position::After(node)),
            _ => editor.remove(node),
        };
    }
    if let Some(http) = &nginx.http {
        let _ = editor.add_upstream(http.place.node, "added", &["server 127.0.0.1:9000;", "keepalive 16;"]);
        for to in ["php", "127.0.0.1:9000", "unix:/run/php/php8.2-fpm.sock"] {
            let reuse = nginx::FastcgiReuse { connections: 8, requests: 1000 };
            let _ = (nginx::fastcgi_reuse(nginx, to), nginx::keep_fastcgi(&mut nginx::Editor::new(tree), nginx, to, reuse));
        }
    }
    for log in nginx.debug_logs(None) {
        let _ = nginx::set_log_levels(&mut nginx::Editor::new(tree), nginx, &log.to, &log.quiet);
    }
    if let Ok(cache) = "shared:a:1m".parse() {
        let _ = nginx::set_session_cache(&mut nginx::Editor::new(tree), nginx, &cache);
    }
    for edited in editor.finish().unwrap_or_default() {
        edited.diff();
    }
}

fn read_nginx(input: &[u8]) {
    let config = text::decode(input);
    assert_eq!(text::encode(&config), input);
    let parsed = nginx::parse("/n/main", &config);
    if let Ok(file) = &parsed {
        assert_eq!(file.to_string(), config, "no byte is lost");
    }
    let others = [("/n/fastcgi.conf", NGINX[1]), ("/n/snippets/fastcgi-php.conf", NGINX[4]), ("/n/mime.types", "types {}")];
    if let Ok(tree) = Tree::load("/n/main", None, &mut disk(&config, &others)) {
        let nginx = Nginx::of(&tree, nginx::Version(1, 22, 1));
        ask_nginx(&nginx);
        edit_nginx(&tree, &nginx);
    }
}

#[test]
fn nginx_configurations() {
    run("nginx configuration", &Corpus::text(NGINX), read_nginx);
    let ranges = "events {}\nhttp {\n    server { listen 1-32767; }\n    server { listen 127.0.0.1:1-32767; }\n}\n";
    run_each("ranges of ports", &[ranges.into()], read_nginx);
}

#[test]
fn parts_of_nginx_configurations_within_whole_ones() {
    // What stands in a server is read as that, whatever it is.
    run("nginx server", &Corpus::text(NGINX), |input| {
        let config = format!("events {{}}\nhttp {{ upstream php {{ server 127.0.0.1:9000; }} server {{\n{}\n}} }}\n", text::decode(input));
        let included = "location ~ \\.php$ { fastcgi_pass php; include snippets/fastcgi-php.conf; }";
        if let Ok(tree) = Tree::load("/n/main", None, &mut disk(&config, &[("/n/snippets/fastcgi-php.conf", included)])) {
            let nginx = Nginx::of(&tree, nginx::Version(1, 27, 0));
            ask_nginx(&nginx);
            edit_nginx(&tree, &nginx);
        }
    });
}

#[test]
fn dumps_patterns_and_versions() {
    let mut whole = String::new();
    for (path, config) in ["/n/main", "/n/fastcgi.conf", "/n/sites-enabled/a", "/n/sites-enabled/b"].iter().zip(NGINX) {
        dump::add(&mut whole, path, config);
    }
    let small = "# configuration file /n/a:\nhttp { include b*; }\n# configuration file /n/b1:\nserver { listen [::1]:80; server_name ~^(a|b)+$; }\n";
    run("nginx dump", &Corpus::text(&[&whole, small]), |input| {
        let dump = text::decode(input);
        dump::head(&dump);
        if let Ok(tree) = Tree::from_dump(&dump) {
            ask_nginx(&Nginx::of(&tree, nginx::Version(1, 18, 0)));
        }
        let _ = (php_fpm::Tree::from_dump(&dump, None), nginx::Version::parse(&dump));
    });
    let patterns = &["^/(a|b)+\\.php(/|$)", "~*\\.(gif|jpe?g)$", "[a-z]{2,5}(?:x*)*", "/etc/**/[!a]*.conf", "\\d+\\w*.+?x{1,99}"];
    run("pattern", &Corpus::text(patterns), |input| {
        let pattern = String::from_utf8_lossy(input);
        let path = "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/index.php";
        let _ = Pattern::new(&pattern, true).is_match(path);
        let _ = (Pattern::new(path, false).is_match(&pattern), glob::matches(&pattern, path), glob::matches("/a*a*a*a*/*.php", &pattern));
    });
}

#[test]
fn php_fpm_configurations() {
    run("php-fpm configuration", &Corpus::text(PHP_FPM), |input| {
        let config = text::decode(input);
        if let Ok(file) = php_fpm::parse("/n/main", &config) {
            assert_eq!(file.to_string(), config, "no byte is lost");
        }
        let Ok(tree) = php_fpm::Tree::load("/n/main", None, &mut disk(&config, &[("/p/a.conf", "[a]\nlisten=1\n")])) else { return };
        let fpm = php_fpm::Fpm::of(&tree, php_fpm::Version(8, 2));
        let _ = (
            fpm.global.error_log(),
            fpm.global.log_level(),
            fpm.global.number("process.max"),
            fpm.global.seconds("process_control_timeout"),
        );
        for pool in fpm.pools.iter().take(20) {
            let _ = (pool.listen(), pool.status_listen(), pool.backlog(), pool.manager(), pool.max_children(), pool.start_servers());
            let _ = (pool.access_log(), pool.flag("catch_workers_output"), pool.seconds("request_terminate_timeout"), pool.text("slowlog"));
            let _ = (fpm.pool(&pool.name), pool.text("access.format").map(|format| FpmFormat::compile(&format.value)));
        }
        let _ = fpm.pool_on(&php_fpm::Listen::Port(9000));
        let mut editor = php_fpm::Editor::new(&tree);
        let _ = (editor.set("www", "pm.max_children", "20"), editor.set("w", "listen.backlog", "8192"), editor.set("global", "x", "\"a b"));
        for (number, node) in tree.order().iter().take(20).enumerate() {
            let _ = if number % 2 == 0 { editor.remove(*node) } else { editor.set_value(*node, "a;b") };
        }
        editor.finish().unwrap_or_default().iter().for_each(|edited| drop(edited.diff()));
    });
}

#[test]
fn haproxy_configurations() {
    run("HAProxy configuration", &Corpus::text(HAPROXY), |input| {
        let config = text::decode(input);
        if let Ok(file) = haproxy::parse("/n/main", &config) {
            assert_eq!(file.to_string(), config, "no byte is lost");
        }
        let mut whole = String::new();
        dump::add(&mut whole, "/n/a.cfg", &config);
        dump::add(&mut whole, "/n/b.cfg", HAPROXY[0]);
        let Ok(tree) = haproxy::Tree::from_dump(&whole) else { return };
        let hidden = haproxy::hide(&whole).expect("it parses");
        assert!(haproxy::Tree::from_dump(&hidden.text).is_ok(), "what is kept parses");
        let Ok(read) = haproxy::Haproxy::of(&tree) else { return };
        let _ = (read.global.maxconn(), read.global.threads(), read.global.sessions_per_s());
        for proxy in read.proxies.iter().take(20) {
            let _ = (proxy.maxconn(), proxy.sessions_per_s(), proxy.queue_timeout_ms(), proxy.is_http(), read.behind(proxy).len());
            for server in proxy.servers.iter().take(20) {
                let _ = (server.maxconn(), server.minconn(), server.maxqueue(), server.address.to_string());
            }
        }
    });
}

#[test]
fn postgresql_configurations() {
    run("PostgreSQL configuration", &Corpus::text(POSTGRESQL), |input| {
        let config = text::decode(input);
        if let Ok(file) = postgresql::parse("/n/main", &config) {
            assert_eq!(file.to_string(), config, "no byte is lost");
        }
        let mut whole = String::new();
        dump::add(&mut whole, "/n/a.conf", &config);
        dump::add(&mut whole, "/n/b.conf", POSTGRESQL[0]);
        let also = ["/n/b.conf".to_owned()];
        let Ok(tree) = postgresql::Tree::from_dump(&whole, &also) else { return };
        let read = postgresql::Postgresql::of(&tree, &[("port".to_owned(), config)]);
        assert!(read.for_all() <= read.max_connections.value);
        let hidden = postgresql::hide(&whole, &also).expect("it parses");
        assert!(postgresql::Tree::from_dump(&hidden.text, &also).is_ok(), "what is kept parses");
    });
}

#[test]
fn sysctl_files() {
    run("sysctl.d", &Corpus::text(SYSCTL), |input| {
        let text = text::decode(input);
        let files = [("/etc/sysctl.d/a.conf".to_owned(), text.clone()), (sysctl_d::MAIN_FILE.to_owned(), SYSCTL[0].to_owned())];
        for loader in [sysctl_d::Loader::Systemd, sysctl_d::Loader::Procps] {
            let boot = sysctl_d::Boot::of(&files, loader);
            let _ = (boot.value("net.core.somaxconn"), boot.named().len());
        }
        let set = sysctl_d::set("/etc/sysctl.d/a.conf", &text, &[("net.core.somaxconn", "8192"), ("fs.file-max", "1")]);
        let boot = sysctl_d::Boot::of(&[("/etc/sysctl.d/a.conf".to_owned(), set.after.clone())], sysctl_d::Loader::Procps);
        // Beyond the bound nothing is read.
        let whole = set.after.len() <= sysctl_d::FILE_BYTES_MAX;
        assert!(!whole || boot.value("net.core.somaxconn").is_some_and(|setting| setting.value == "8192"));
        set.diff();
        sysctl_d::remove("/etc/sysctl.d/a.conf", &set.after, &["net.core.somaxconn", "fs.file-max"]).diff();
        let _ = (sysctl_d::path_of(&text), sysctl_d::key_of(&text));
    });
}

#[test]
fn error_logs() {
    run("error log", &Corpus::text(ERROR_LOGS), |input| {
        let text = text::decode(input);
        for line in text.lines().chain([text.as_str()]) {
            let _ = (NginxLine::parse(line), FpmLine::parse(line));
        }
    });
}

#[test]
fn access_logs_and_their_formats() {
    let formats: Vec<LogFormat> = FORMATS[..4].iter().map(|format| LogFormat::nginx(format, Escape::Default).expect("it is one")).collect();
    let fpm: Vec<FpmFormat> = FORMATS[4..].iter().map(|format| FpmFormat::compile(format).expect("it is one")).collect();
    run("access log", &Corpus::text(ACCESS_LOGS), |input| {
        for line in input.split(|byte| *byte == b'\n').chain([input]) {
            for format in &formats {
                read_access(format, line);
            }
            for format in &fpm {
                let _ = format.read(line, &mut format.record());
            }
            let _ = (log_format::unsigned(line), log_format::seconds_us(line), log_format::time_epoch_us(line));
        }
    });
    let (format, line) = (Corpus::text(FORMATS), Corpus::text(ACCESS_LOGS));
    let make = |chance: &mut Chance| [format.damaged(chance), line.damaged(chance)].join(&b"\0\0"[..]);
    run_made("log format", make, |input| {
        let middle = input.windows(2).position(|pair| pair == b"\0\0").unwrap_or(input.len());
        let (format, line) = (String::from_utf8_lossy(&input[..middle]), &input[middle..]);
        for escape in [Escape::Default, Escape::Json, Escape::None] {
            if let Ok(format) = LogFormat::nginx(&format, escape) {
                let _ = (format.names().count(), format.ambiguous().count(), format.has_status());
                read_access(&format, line);
            }
        }
        if let Ok(format) = FpmFormat::compile(&format) {
            let _ = (format.has_status(), format.has_duration(), format.read(line, &mut format.record()));
        }
    });
}

fn read_access(format: &LogFormat, line: &[u8]) {
    if let Ok(access) = format.read(line, &mut format.record()) {
        let times = [access.upstream_connect_us, access.upstream_header_us, access.upstream_response_us];
        for attempts in times {
            let _ =
                (attempts.sum_us(), attempts.count(), attempts.texts().count(), attempts.times_us().count(), attempts.numbers().count());
        }
    }
}

#[test]
fn differences_of_any_texts() {
    let corpus = Corpus::text(NGINX);
    let make = |chance: &mut Chance| [corpus.damaged(chance), corpus.damaged(chance)].join(&b"\0\0"[..]);
    run_made("difference", make, |input| {
        let middle = input.windows(2).position(|pair| pair == b"\0\0").unwrap_or(input.len());
        let (before, after) = (text::decode(&input[..middle]), text::decode(&input[middle..]));
        diff::unified("/a", &before, &after);
    });
}
