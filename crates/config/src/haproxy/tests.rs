//! Tests of the reader: words, sections with their defaults, addresses, and what a recording keeps.

use proptest::prelude::*;

use super::*;
use crate::dump;

const SHOP: &str = r#"
global
    maxconn 4000 # enough
    nbthread 2
    stats socket /run/haproxy/admin.sock mode 660 level admin
defaults slow from unknown
    timeout queue 250
defaults
    mode http # for the shop
    timeout connect 5s
    timeout server 1m
    maxconn 900 # key=S3cret
    default-server maxconn 50
frontend www
    bind :80,[::1]:81 maxconn 100
    bind "unix@/run/web sock" mode 666
    rate-limit sessions 30
    use_backend api if { path_beg /api }
    default_backend app
frontend other from slow
    bind 127.0.0.1:8080-8082
    use_backend %[req.hdr(host),lower]
backend app
    server a 127.0.0.1:8081 check maxconn 2 weight 10
    server b 127.0.0.1:8082 backup
backend api
    timeout queue 3s
    default-server maxconn 7 minconn 3
    server-template x 1-3 api.internal:80 check
    server "e 1" "${HOST}:80" maxconn "$MANY"
listen mysql
    bind *:3306
    server db 10.0.0.5:3306 maxconn 20 disabled
    http-request deny deny_status 429 content-type text/plain string "key S3cret" if { sc_http_req_rate(0) gt 30 }
    http-request tarpit if { hdr(x-key) S3cret }
    http-request deny status "$MANY"
    http-request set-header x-key S3cret
userlist staff
    user alice insecure-password S3cret
"#;

fn tree(text: &str) -> Tree {
    let mut disk = |path: &str| vec![(path.to_owned(), Ok(text.to_owned()))];
    Tree::load(&["/h.cfg"], &mut disk).expect("it parses")
}

fn read(text: &str) -> Haproxy {
    Haproxy::of(&tree(text)).expect("it is small")
}

#[test]
fn words_are_those_of_haproxy() {
    for (line, words) in [
        ("  bind  :80\t# c", vec!["bind", ":80"]),
        (r#"a "b # c" 'd "e' f\ g \#h"#, vec!["a", "b # c", "d \"e", "f g", "#h"]),
        (r#"a"b"'c'd #"#, vec!["abcd"]),
        (r"x \x41\n \q $A '\x'", vec!["x", "A\n", r"\q", "$A", r"\x"]),
        ("\"\" a", vec!["", "a"]),
        ("a\0b", vec!["a"]),
    ] {
        let (found, _) = words::split(line).unwrap();
        assert_eq!(found.iter().map(|word| word.text.as_str()).collect::<Vec<_>>(), words, "{line}");
    }
    let (found, comment) = words::split(r#"server "${HOST-a}:80" "$X y" '$Z' # c"#).unwrap();
    assert_eq!(found.iter().map(|word| word.computed).collect::<Vec<_>>(), [false, true, true, false]);
    assert_eq!((found[1].span.clone(), comment), (7..21, Some(34)));
    for (line, what) in [("a 'b", Syntax::QuoteOpen), ("\"${a\"", Syntax::VariableOpen), (r"\xg1", Syntax::BadHex)] {
        assert_eq!(words::split(line), Err(what), "{line}");
    }
    assert_eq!(words::split(&"a ".repeat(65)), Err(Syntax::TooManyWords));
}

#[test]
fn times_and_addresses_are_those_of_haproxy() {
    for (text, ms) in
        [("250", Some(250)), ("5s", Some(5_000)), ("1m", Some(60_000)), ("1500us", Some(1)), ("1h2m", None), ("s", None), ("5x", None)]
    {
        assert_eq!(time::time_ms(text), ms, "{text}");
    }
    for (text, told) in [
        ("127.0.0.1:80", "127.0.0.1:80"),
        (":80", "0.0.0.0:80"),
        ("*:80", "0.0.0.0:80"),
        ("::1:80", "[::1]:80"),
        ("ipv6@:80", "[::]:80"),
        ("/run/x", "unix@/run/x"),
        ("abns@x", "unix@@x"),
        ("App.Internal:80", "app.internal:80"),
        ("localhost:80", "127.0.0.1:80"),
        ("10.0.0.1", "unknown"),
        ("10.0.0.1:+1", "unknown"),
        ("fd@3", "unknown"),
        ("udp@:53", "unknown"),
    ] {
        assert_eq!(address::parse(text).to_string(), told, "{text}");
    }
    assert_eq!(address::listens(":80-82").len(), 3);
    assert_eq!(address::listens(":80,udp@:1"), [Address::Unknown]);
    assert_eq!(address::listens(":1-60000"), [Address::Unknown]);
}

#[test]
fn the_values_in_force_have_their_lines() {
    let read = read(SHOP);
    let told = |setting: Option<crate::Setting<u64>>| setting.map(|setting| format!("{} {}", setting.value, setting.origin));
    assert_eq!(told(read.global.maxconn()).as_deref(), Some("4000 /h.cfg:3"));
    assert_eq!(read.global.stats_sockets[0].value, Address::Unix("/run/haproxy/admin.sock".to_owned()));
    let [www, other, app, api, mysql] = &read.proxies[..] else { panic!("{:?}", read.proxies) };
    assert_eq!(told(www.maxconn()).as_deref(), Some("900 /h.cfg:12"));
    assert_eq!(told(www.sessions_per_s()).as_deref(), Some("30 /h.cfg:17"));
    assert_eq!(www.binds[0].addresses.len() + www.binds[1].addresses.len(), 3);
    assert_eq!(told(www.binds[0].maxconn()).as_deref(), Some("100 /h.cfg:15"));
    assert_eq!((other.maxconn(), other.is_http()), (None, false), "its defaults are those that it names");
    assert_eq!(told(app.servers[0].maxconn()).as_deref(), Some("2 /h.cfg:24"));
    assert_eq!(told(app.servers[1].maxconn()).as_deref(), Some("50 /h.cfg:13"), "default-server of the defaults");
    assert!(app.servers[1].is_backup() && app.is_http());
    assert_eq!(told(app.queue_timeout_ms()).as_deref(), Some("5000 /h.cfg:10"), "that of connect");
    assert_eq!(told(api.queue_timeout_ms()).as_deref(), Some("3000 /h.cfg:27"));
    assert_eq!((api.servers[0].count, told(api.servers[0].minconn()).as_deref()), (3, Some("3 /h.cfg:28")));
    assert_eq!((&api.servers[1].address, api.servers[1].maxconn()), (&Address::Unknown, None), "the environment decides");
    assert!(mysql.servers[0].is_disabled() && mysql.is_front() && mysql.is_back());
    let behind = |front: &Proxy| read.behind(front).iter().map(|back| back.name.clone()).collect::<Vec<_>>();
    assert_eq!(behind(www), ["app", "api"]);
    assert_eq!(behind(other), ["app", "api", "mysql"], "each request names its backend");
    assert_eq!(behind(mysql), ["mysql"]);
    let refusals = mysql.refusals.iter().map(|refusal| (refusal.rule.as_str(), refusal.status));
    let (deny, tarpit) = ("http-request deny", "http-request tarpit");
    assert_eq!(
        refusals.collect::<Vec<_>>(),
        [(deny, Some(429)), (tarpit, Some(500)), (deny, None)],
        "the environment decides on one status"
    );
}

#[test]
fn a_section_ends_with_its_file_and_defaults_do_not() {
    let texts = [("/a.cfg", "defaults\n maxconn 7\nglobal\n"), ("/b.cfg", "maxconn 9\nfrontend f\n")];
    let mut disk = |path: &str| {
        texts.iter().filter(|(own, _)| *own == path).map(|(path, text)| ((*path).to_owned(), Ok((*text).to_owned()))).collect()
    };
    let read = Haproxy::of(&Tree::load(&["/a.cfg", "/b.cfg"], &mut disk).unwrap()).unwrap();
    assert_eq!((read.global.maxconn(), read.proxies[0].maxconn().map(|setting| setting.value)), (None, Some(7)));
    let missing = Tree::load(&["/c.cfg"], &mut disk).unwrap_err();
    assert_eq!(missing.to_string(), "/c.cfg: not found");
    let mut conditional = |path: &str| vec![(path.to_owned(), Ok(".if defined(X)\n.endif\n".to_owned()))];
    assert_eq!(Tree::load(&["/d"], &mut conditional).unwrap_err().to_string(), "/d:1: lines between .if and .endif are not evaluated");
}

fn hidden(text: &str) -> String {
    let mut whole = String::new();
    dump::add(&mut whole, "/h.cfg", text);
    hide(&whole).expect("it parses").text.strip_prefix("# configuration file /h.cfg:\n").unwrap().strip_suffix('\n').unwrap().to_owned()
}

#[test]
fn a_recording_keeps_what_is_read_and_nothing_else() {
    let left = hidden(SHOP);
    assert!(!left.contains("S3cret") && !left.contains("path_beg") && !left.contains("for the shop") && !left.contains("HOST"), "{left}");
    assert!(left.contains("    server a 127.0.0.1:8081 check maxconn 2 weight 10\n"), "{left}");
    assert!(
        left.contains("    maxconn 4000 # enough\n") && left.contains("    mode http #\n") && left.contains("    maxconn 900 #\n"),
        "{left}"
    );
    assert!(left.contains("    hidden hidden hidden hidden\n"), "{left}");
    let (before, after) = (read(SHOP), read(&left));
    let told = |read: &Haproxy| {
        let proxies = read.proxies.iter().map(|proxy| {
            let servers: Vec<_> =
                proxy.servers.iter().map(|server| (server.maxconn(), server.minconn(), server.address.clone(), server.count)).collect();
            let binds: Vec<_> = proxy.binds.iter().map(|bind| (bind.addresses.clone(), bind.maxconn())).collect();
            let limits = (proxy.maxconn(), proxy.queue_timeout_ms(), proxy.sessions_per_s());
            (proxy.name.clone(), limits, servers, binds, proxy.backends(), proxy.refusals.clone())
        });
        (read.global.maxconn(), read.global.threads(), proxies.collect::<Vec<_>>())
    };
    assert_eq!(told(&before), told(&after));
    assert_eq!(hidden(&left), left);
    let scripts = "frontend f\n http-request lua.mine a\n filter spoe engine x\nbackend b\n filter compression\n";
    for text in [scripts.to_owned(), hidden(scripts)] {
        assert_eq!(read(&text).proxies.iter().map(|proxy| proxy.calls_others).collect::<Vec<_>>(), [true, false], "{text}");
    }
}

proptest! {
    #[test]
    fn no_secret_is_left_in_any_place_that_is_not_kept(
        lines in proptest::collection::vec(
            prop_oneof![
                Just("stats auth admin:@"), Just("http-request set-header Authorization \"Basic @\""), Just("# @"), Just("log /@ local0"),
                Just("user x password @"), Just("acl a hdr(k) -m str @"), Just("bind :443 ssl crt /@.pem # @"), Just("maxconn 5 # @"),
                Just("server a 10.0.0.1:80 cookie @ maxconn 5"), Just("@ @"), Just("option httpchk GET /?@"), Just("maxconn @"), Just("mode @"),
                Just("timeout queue 5@"), Just("server a \"${@}:80\""), Just("errorfile 503 /@"), Just("no @"), Just("userlist @"), Just("peers @"),
                Just("use_backend b if { path /@ }"), Just("http-request lua.@ @"), Just("filter @ @"), Just("rate-limit sessions @"),
            ],
            1..20,
        ),
        section in prop_oneof![Just("global"), Just("defaults"), Just("listen l"), Just("userlist u"), Just("cache c")],
        marker in "[A-Z][a-z0-9]{10,19}[0-9]",
    ) {
        let text = format!("{section}\n{}", lines.join("\n").replace('@', &marker));
        let left = hidden(&text);
        prop_assert!(!left.contains(&marker), "{text}\n{left}");
        let shape = |text: &str| tree(text).nodes().map(|(_, entry)| (entry.line, entry.words.len())).collect::<Vec<_>>();
        prop_assert_eq!(shape(&left), shape(&text));
    }

    #[test]
    fn any_text_gives_an_answer(text in "([ -~]|\n|\"|#|\\\\){0,200}") {
        if let Ok(file) = parse("/x", &text) {
            prop_assert_eq!(file.to_string(), text);
        }
    }
}
