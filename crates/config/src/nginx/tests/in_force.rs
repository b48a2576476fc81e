//! The values in force: defaults by version, inheritance, sockets, upstreams, passes, logs and limits.

use super::*;
use crate::Origin;
use crate::log_format::Escape;

fn line(origin: &Origin) -> u32 {
    origin.place().map_or(0, |place| place.line)
}

#[test]
fn case_a_is_read_whole() {
    let nginx = nginx(include_str!("../../../tests/data/nginx/good/case_a.conf"));
    assert_eq!(nginx.problems, []);
    assert_eq!(nginx.main.worker_processes().map(|setting| setting.value), Some(WorkerProcesses::Count(2)));
    let connections = nginx.main.worker_connections().expect("it is set");
    assert_eq!((connections.value, line(&connections.origin)), (10_240, 2));
    assert_eq!(nginx.main.worker_rlimit_nofile(), None);
    let http = nginx.http.expect("http");
    let socket = http.socket(&Address::Ip([0, 0, 0, 0].into(), 80)).expect("it listens");
    assert_eq!((socket.backlog.value, line(&socket.backlog.origin)), (10, 7));
    assert_eq!(socket.options_at.as_ref().map(|place| place.line), Some(7));
    let location = &http.servers[0].locations[0];
    let pass = location.pass.as_ref().expect("a pass");
    assert_eq!((pass.kind, &pass.target), (PassKind::Fastcgi, &Target::Address(Address::Ip([127, 0, 0, 1].into(), 9000))));
    let logs = location.settings.access_logs();
    assert_eq!(logs.logs[0].destination, Destination::File("logs/access.log".to_owned()));
    assert_eq!(logs.logs[0].format, "combined");
    let reuse = pass.reuse(&http, &location.settings);
    assert_eq!((reuse.in_force, reuse.keepalive), (Some(false), None));
}

#[test]
fn debian_with_its_sites() {
    let nginx = Nginx::of(&debian(), Version(1, 22, 1));
    assert_eq!(nginx.problems, []);
    assert_eq!(nginx.main.worker_processes().map(|setting| setting.value), Some(WorkerProcesses::Auto));
    let http = nginx.http.expect("http");
    assert_eq!(http.servers.len(), 2);
    let addresses: Vec<String> = http.sockets.iter().map(|socket| socket.address.to_string()).collect();
    assert_eq!(addresses, ["0.0.0.0:80", "[::]:80"]);
    assert_eq!((http.sockets[0].default_server, http.sockets[0].servers.as_slice()), (0, &[0, 1][..]));
    assert_eq!((http.sockets[0].backlog.value, &http.sockets[0].backlog.origin), (511, &Origin::Default));

    let upstream = http.upstream("shop").expect("it is there");
    assert_eq!(upstream.balance, Balance::LeastConn);
    assert_eq!((upstream.keepalive.value.connections, line(&upstream.keepalive.origin)), (32, 8));
    assert_eq!((upstream.keepalive_requests.value, upstream.keepalive_timeout_ms.value), (500, 30_000));
    assert_eq!(upstream.zone, Some(("shop".to_owned(), Some(65_536))));
    let first = &upstream.servers[0];
    assert_eq!((first.weight, first.max_conns, first.max_fails, first.fail_timeout_ms), (2, 200, 3, 5_000));
    assert_eq!(upstream.servers[2].address.to_string(), "[2001:db8::12]:8080");
    assert!(upstream.servers[2].backup && upstream.servers[3].down);

    let shop = &http.servers[1];
    let location = &shop.locations[0];
    let reuse = location.pass.as_ref().map(|pass| pass.reuse(&http, &location.settings)).expect("a pass");
    assert_eq!(reuse.in_force, Some(true));
    let status = &shop.locations[1];
    assert!(status.stub_status().is_some());
    assert_eq!(status.path(), Some("/status"));
    let off = status.settings.access_logs();
    assert!(off.logs.is_empty() && off.origin != Origin::Default);
    let log = &shop.settings.access_logs().logs[0];
    assert_eq!((log.buffer_bytes, log.flush_ms), (Some(32_768), Some(5_000)));
}

#[test]
fn a_level_replaces_or_inherits() {
    let http = http(include_str!("../../../tests/data/nginx/good/inheritance.conf"));
    let server = &http.servers[0];
    assert_eq!(http.settings.keepalive_timeout_ms().map(|setting| setting.value), Some(30_000));
    assert_eq!(server.settings.keepalive_timeout_ms().map(|setting| setting.value), Some(3_600_000));
    let root = &server.locations[0];
    assert_eq!(root.settings.keepalive_timeout_ms().map(|setting| line(&setting.origin)), Some(13));
    assert_eq!(root.settings.flag("gzip").map(|setting| setting.value), Some(false));
    assert_eq!(root.settings.number("gzip_comp_level").map(|setting| setting.value), Some(9));
    assert_eq!(root.settings.all("proxy_set_header").len(), 1);
    assert_eq!(server.settings.all("proxy_set_header").len(), 2);
    let destinations: Vec<String> = root.settings.access_logs().logs.iter().map(|log| format!("{:?}", log.destination)).collect();
    assert_eq!(destinations, ["File(\"logs/one.log\")", "File(\"logs/two.log\")"]);
    assert_eq!(root.settings.access_logs().logs[1].condition.as_deref(), Some("$arg_log"));
    let inner = &root.locations[0];
    assert_eq!(inner.settings.error_logs()[0].destination, Destination::Stderr);
    assert_eq!(inner.settings.error_logs()[0].levels, ["debug"]);
    assert_eq!(inner.settings.access_logs().logs.len(), 2);
    assert_eq!(root.settings.error_logs()[0].levels, ["warn"]);
    assert!(server.locations[1].settings.access_logs().logs.is_empty());
    let defaults = &server.locations[2];
    assert_eq!(defaults.pass, None);
    assert_eq!(defaults.settings.buffers("proxy_buffers").map(|setting| setting.value), Some((8, 4096)));
    assert_eq!(
        defaults.settings.number("keepalive_requests").map(|setting| (setting.value, setting.origin)),
        Some((1000, Origin::Default))
    );
    assert_eq!(defaults.settings.word("no_such"), None);
}

#[test]
fn every_form_of_listen() {
    let http = http(include_str!("../../../tests/data/nginx/good/listens.conf"));
    let first = &http.servers[0].listens[0];
    assert_eq!((first.backlog, first.rcvbuf, first.sndbuf, first.deferred), (Some(8192), Some(65_536), Some(1 << 20), true));
    assert_eq!(first.so_keepalive, Some(SoKeepalive::Tuned(Some(1800), None, Some(10))));
    let names: Vec<String> = http.sockets.iter().map(|socket| socket.address.to_string()).collect();
    for name in ["127.0.0.1:8090", "[::]:8091", "unix:nginx.sock", "localhost:8093", "0.0.0.0:8094", "[::1]:8095", "127.0.0.1:8097"] {
        assert!(names.iter().any(|known| known == name), "{name} in {names:?}");
    }
    let socket = |text: &str| http.sockets.iter().find(|socket| socket.address.to_string() == text).expect("it is there");
    assert!(socket("0.0.0.0:8091").reuseport);
    assert!(!socket("127.0.0.2:8091").bound, "the wildcard takes its connections");
    assert_eq!(http.socket(&socket("127.0.0.2:8091").address), None);
    assert!(socket("[::]:8099").takes_ipv4);
    assert_eq!(socket("127.0.0.1:8090").servers, [0, 1]);
    assert_eq!(socket("127.0.0.1:8090").option_node(), http.servers[0].listens[0].place.as_ref().map(|place| place.node));
}

#[test]
fn listens_that_nginx_refuses_are_named() {
    for (listen, what) in [
        ("80 backlog=many", "backlog=many"),
        ("80 backlog=0", "backlog=0"),
        ("80 server_name", "server_name"),
        ("80 so_keepalive=::", "so_keepalive=::"),
        ("[::1", "[::1"),
        ("70000", "70000"),
        ("0", "0"),
        ("unix:", "unix:"),
        ("1.2.3.4:x", "1.2.3.4:x"),
        ("9-8", "9-8"),
    ] {
        let nginx = nginx(&format!("http {{ server {{ listen {listen}; }} }}"));
        assert_eq!(nginx.problems.len(), 1, "{listen}");
        assert!(nginx.problems[0].text.contains(what), "{}", nginx.problems[0].text);
    }
}

#[test]
fn forgotten_terminators_are_named() {
    for text in ["events { worker_connections 768\n multi_accept on; }", "http { sendfile on { } }", "http { server { location /; } }"] {
        let nginx = nginx(text);
        assert_eq!(nginx.problems.len(), 1, "{text}");
    }
}

#[test]
fn wordpress_on_one_machine() {
    let nginx = nginx(include_str!("../../../tests/data/nginx/good/wordpress.conf"));
    assert_eq!(nginx.problems, []);
    assert_eq!(nginx.main.worker_rlimit_nofile().map(|setting| setting.value), Some(65_535));
    assert_eq!(nginx.main.events.flag("multi_accept").map(|setting| setting.value), Some(true));
    let http = nginx.http.expect("http");
    assert_eq!(http.zones.len(), 1);
    assert_eq!((http.zones[0].rate_per_minute, http.zones[0].size_bytes), (Some(30), Some(10 << 20)));
    let login = http.servers[0].locations.iter().find(|location| location.path() == Some("/wp-login.php")).expect("it is there");
    let limit = &login.settings.rate_limits()[0];
    assert_eq!((limit.zone.as_str(), limit.burst, limit.delay), ("login", 5, Delay::None));
    assert_eq!(login.pass.as_ref().map(|pass| pass.target.clone()), Some(Target::Upstream("php".to_owned())));
}

#[test]
fn reuse_needs_its_three_lines_before_1_29_7() {
    let config = |upstream: &str, location: &str| {
        format!("http {{ upstream u {{ server a:80; {upstream} }} server {{ location / {{ proxy_pass http://u; {location} }} }} }}")
    };
    let in_force = |text: &str, version: Version| {
        let http = Nginx::of(&tree(text), version).http.expect("http");
        let location = &http.servers[0].locations[0];
        location.pass.as_ref().expect("a pass").reuse(&http, &location.settings).in_force
    };
    let (old, new) = (Version(1, 22, 1), Version(1, 29, 7));
    let three = config("keepalive 8;", "proxy_http_version 1.1; proxy_set_header Connection '';");
    assert_eq!(in_force(&three, old), Some(true));
    assert_eq!(in_force(&config("keepalive 8;", "proxy_http_version 1.1;"), old), Some(false));
    assert_eq!(in_force(&config("keepalive 8;", "proxy_set_header Connection '';"), old), Some(false));
    assert_eq!(in_force(&config("", "proxy_http_version 1.1; proxy_set_header Connection '';"), old), Some(false));
    assert_eq!(in_force(&config("keepalive 8;", "proxy_http_version 1.1; proxy_set_header Connection $c;"), old), None);
    assert_eq!(in_force(&config("", ""), new), Some(true));
    assert_eq!(in_force(&config("keepalive 0;", ""), new), Some(false));
    assert_eq!(in_force(&config("", "proxy_http_version 1.0;"), new), Some(false));
    let literal = "http { server { location / { proxy_pass http://127.0.0.1:1; } } }";
    assert_eq!(in_force(literal, new), Some(false));
    let fastcgi =
        |keep: &str| format!("http {{ upstream u {{ server a:1; keepalive 2; }} server {{ location / {{ fastcgi_pass u; {keep} }} }} }}");
    assert_eq!(in_force(&fastcgi("fastcgi_keep_conn on;"), old), Some(true));
    assert_eq!(in_force(&fastcgi(""), old), Some(false));
}

#[test]
fn targets_in_every_form() {
    let http = http(include_str!("../../../tests/data/nginx/good/selection.conf"));
    let pass = |path: &str| {
        let server = &http.servers[2];
        server.locations.iter().find(|location| location.path() == Some(path)).and_then(|location| location.pass.clone()).expect("a pass")
    };
    let ip = |text: &str, port: u16| Target::Address(Address::Ip(text.parse().expect("an address"), port));
    assert_eq!(pass("/").target, Target::Variable(vec![ip("127.0.0.1", 5000), Target::Upstream("app".to_owned())]));
    assert_eq!(pass("/php").target, Target::Variable(vec![Target::Address(Address::Unix("/run/php.sock".to_owned()))]));
    assert_eq!(pass("/unknown").target, Target::Variable(vec![]));
    let unix = pass("/unix");
    assert_eq!((unix.target, unix.uri.as_deref()), (Target::Address(Address::Unix("/tmp/b.sock".to_owned())), Some("/uri/")));
    let v6 = pass("/v6");
    assert_eq!((v6.target, v6.tls, v6.uri.as_deref()), (ip("::1", 8443), true, Some("/x")));
}

#[test]
fn log_formats_are_joined() {
    let http = http(include_str!("../../../tests/data/nginx/good/json_log.conf"));
    let json = http.log_format("main_json").expect("it is there");
    assert_eq!(json.escape, Escape::Json);
    assert!(json.format.starts_with("{\"time\":\"$time_iso8601\",\"status\":$status,"), "{}", json.format);
    assert_eq!(http.log_format("tsv").map(|format| format.escape), Some(Escape::None));
    assert!(http.log_format("tsv").is_some_and(|format| format.format.contains('\t')));
    assert_eq!(http.log_format("combined").map(|format| &format.origin), Some(&Origin::Default));
    let logs = http.servers[0].settings.access_logs().logs;
    assert!(matches!(logs[0].destination, Destination::Syslog(_)));
    assert!(matches!(logs[1].destination, Destination::Variable(_)));
}

#[test]
fn tls_and_stream() {
    let nginx = nginx(include_str!("../../../tests/data/nginx/modules/tls_stream.conf"));
    let http = nginx.http.expect("http");
    assert!(http.sockets[0].ssl && http.servers[0].listens[0].http2);
    assert_eq!(http.settings.ssl_session_cache_shared_bytes().map(|setting| setting.value), Some(Some(10 << 20)));
    assert_eq!(http.settings.time_ms("ssl_session_timeout").map(|setting| setting.value), Some(86_400_000));
    let grpc = http.servers[0].locations[0].pass.as_ref().expect("a pass");
    assert_eq!((grpc.kind, grpc.tls), (PassKind::Grpc, true));
    assert_eq!(grpc.target, Target::Address(Address::Name("backend.internal".to_owned(), 50_051)));
    let stream = nginx.stream.expect("stream");
    assert_eq!(stream.sockets.len(), 2);
    assert_eq!((stream.sockets[0].backlog.value, stream.sockets[0].udp), (256, false));
    assert!(stream.sockets[1].udp && stream.sockets[1].reuseport);
    assert_eq!(stream.servers[0].pass.as_ref().map(|pass| pass.target.clone()), Some(Target::Upstream("db".to_owned())));
    assert_eq!(stream.upstreams[0].balance, Balance::Hash("$remote_addr consistent".to_owned()));
    assert_eq!(stream.servers[0].settings.access_logs().logs[0].format, "basic");
}

#[test]
fn variables_in_a_circle_end() {
    let lines: String = (0..200).map(|n| format!("x{n} \"$b\";")).collect();
    let text = format!("http {{ map $a $b {{ {lines} }} server {{ location / {{ proxy_pass http://$b; }} }} }}");
    assert_eq!(http(&text).servers[0].locations[0].pass.as_ref().map(|pass| pass.target.clone()), Some(Target::Variable(vec![])));
}
