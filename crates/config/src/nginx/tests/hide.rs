//! What is left of a configuration in a recording.

use proptest::prelude::*;

use crate::nginx::{Tree, hide};
use crate::{Hidden, dump};

fn hidden(text: &str) -> (String, Hidden) {
    let mut whole = String::new();
    dump::add(&mut whole, "/n.conf", text);
    let out = hide(&whole).expect("it parses");
    (dump_text(&out.text), out)
}

fn dump_text(dump: &str) -> String {
    dump.strip_prefix("# configuration file /n.conf:\n").and_then(|text| text.strip_suffix('\n')).expect("one file").to_owned()
}

#[test]
fn values_that_nobody_reads_are_hidden_and_the_others_stay() {
    for (from, to) in [
        ("fastcgi_param DB_PASSWORD x;", "fastcgi_param hidden hidden;"),
        ("proxy_set_header X-Vault-Token x;", "proxy_set_header hidden hidden;"),
        ("proxy_set_header Connection \"\";", "proxy_set_header Connection \"\";"),
        ("fastcgi_param SCRIPT_FILENAME $document_root$uri;", "fastcgi_param SCRIPT_FILENAME $document_root$uri;"),
        ("set $secret \"x\"; # y\n  # z\n", "set hidden hidden; #\n  \n"),
        ("listen 80; # managed by Certbot\r\nlisten 81;\t# key=x\r\n", "listen 80; # managed by Certbot\r\nlisten 81;\t#\r\n"),
        ("events { # few\nworker_connections 9; } # few", "events { #\nworker_connections 9; } # few"),
        ("secure_link_md5 \"$uri x\";\nenv NAME=x;", "secure_link_md5 hidden;\nenv hidden;"),
        ("map $a $b { x y; default z; }", "map hidden hidden { hidden hidden; hidden hidden; }"),
        ("if ($http_x = \"y\" ) { return 403 z; }", "if hidden hidden hidden hidden { return 403 hidden; }"),
        ("if ($a ~ \"y\") { return 403; }", "if hidden hidden hidden hidden { return 403; }"),
        ("listen 80 backlog=10 x;", "listen 80 backlog=10 hidden;"),
        ("error_log /e.log debug_http debug_event x;", "error_log /e.log debug_http debug_event hidden;"),
        ("error_log syslog:server=10.0.0.1,tag=x debug;", "error_log syslog:hidden debug;"),
        ("ssl_session_cache shared:a:1m; ssl_session_tickets off;", "ssl_session_cache shared:a:1m; ssl_session_tickets off;"),
        ("ssl_session_tickets x; ssl_session_ticket_key /k;", "ssl_session_tickets hidden; ssl_session_ticket_key hidden;"),
        ("auth_basic off; auth_basic x;", "auth_basic off; auth_basic hidden;"),
        ("add_header a \"x\ny\";\nroot /srv;", "add_header hidden \"hidden\n\";\nroot /srv;"),
        ("content_by_lua_block {\n  -- }\n  x = 'y'\n}\nroot /srv;", "content_by_lua_block {\n\n\n}\nroot /srv;"),
        ("keepalive 32; worker_connections x; worker_processes auto;", "keepalive 32; worker_connections hidden; worker_processes auto;"),
        ("rewrite ^/a?$ /b?k=v&c=$1 last;", "rewrite ^/a?$ /b?k=hidden&c=$1 last;"),
        ("error_page 404 =200 /x?y;", "error_page hidden hidden /x?hidden;"),
        ("X y; x_1 y;", "hidden hidden; x_1 hidden;"),
        ("types { text/html html; }", "types { hidden hidden; }"),
    ] {
        assert_eq!(hidden(from).0, to, "{from}");
        assert_eq!(hidden(to).0, to, "twice: {from}");
    }
}

#[test]
fn what_decides_where_requests_go_stays_without_its_secrets() {
    for (from, to) in [
        ("proxy_pass http://u:p@10.0.0.1:80/a?k=v;", "proxy_pass http://hidden@10.0.0.1:80/a?k=hidden;"),
        ("proxy_pass http://unix:/run/a.sock:/b?c;", "proxy_pass http://unix:/run/a.sock:/b?hidden;"),
        ("set $b 10.0.0.1:80; proxy_pass http://$b;", "set $b 10.0.0.1:80; proxy_pass http://$b;"),
        (
            "set $b http://10.0.0.1/x?k=v; proxy_pass $b?c=$d; set $d e;",
            "set $b http://10.0.0.1/hidden; proxy_pass $b?c=$d; set hidden hidden;",
        ),
        (
            "map $x $b { a be1; default $c; } set $c be2; proxy_pass http://$b;",
            "map hidden $b { hidden be1; hidden $c; } set $c be2; proxy_pass http://$b;",
        ),
        ("set $r /srv; fastcgi_param SCRIPT_FILENAME $r$uri;", "set $r /srv; fastcgi_param SCRIPT_FILENAME $r$uri;"),
    ] {
        assert_eq!(hidden(from).0, to, "{from}");
        assert_eq!(hidden(to).0, to, "twice: {from}");
    }
}

#[test]
fn what_a_map_includes_is_hidden_as_the_map_is() {
    let mut whole = String::new();
    dump::add(
        &mut whole,
        "/n.conf",
        "include /mime;\nhttp { map $a $b { include /map; } map $a $c { include /kept; } proxy_pass http://$c; }",
    );
    dump::add(&mut whole, "/mime", "types { a b; }");
    dump::add(&mut whole, "/map", "key value;");
    dump::add(&mut whole, "/kept", "key be1;");
    let out = hide(&whole).expect("it parses").text;
    let mut expected = String::new();
    dump::add(
        &mut expected,
        "/n.conf",
        "include /mime;\nhttp { map hidden hidden { include /map; } map hidden $c { include /kept; } proxy_pass http://$c; }",
    );
    dump::add(&mut expected, "/mime", "types { hidden hidden; }");
    dump::add(&mut expected, "/map", "hidden hidden;");
    dump::add(&mut expected, "/kept", "hidden be1;");
    assert_eq!(out, expected);
}

#[test]
fn what_was_kept_and_hidden_is_counted() {
    let (_, out) = hidden("# a\nroot /srv; # b\nset $x y;\nlisten 80;");
    assert_eq!((out.files, out.directives, out.values, out.comments), (1, 3, 2, 2));
}

#[test]
fn what_does_not_parse_gives_its_reader_s_error() {
    let mut whole = String::new();
    dump::add(&mut whole, "/n.conf", "http { secret \"x");
    let error = hide(&whole).expect_err("it does not parse").to_string();
    assert_eq!(error, Tree::from_dump(&whole).expect_err("it does not parse").to_string());
    assert!(!error.contains("secret"), "{error}");
}

/// Directives with a secret in every place that is not kept; `@` stands for one.
const SECRETS: &[&str] = &[
    "fastcgi_param @ @;",
    "fastcgi_param SCRIPT_FILENAME /srv/x @;",
    "proxy_set_header @ '@';",
    "set $@ \"@\";",
    "env @=@;",
    "# @",
    "#@ ; } { \" '",
    "map $@ $@ { @ @; \"@\" '@'; default @; volatile; }",
    "geo $@ { default @; 10.0.0.0/8 @; }",
    "types { @/@ @; }",
    "split_clients \"@\" $@ { 1% @; * @; }",
    "if ($http_@ = \"@\") { return 403 \"@\"; set $@ @; }",
    "limit_except @ { deny @; }",
    "location /x { auth_basic \"@\"; auth_basic_user_file /etc/@; secure_link_md5 \"$uri @\"; }",
    "log_format @ escape=json '@' \"$@\";",
    "access_log /var/@ @ if=$@;",
    "error_log syslog:server=@ @ debug @;",
    "add_header @ \"@\n@\" always; # @\n",
    "add_header X 'a\\'@' ;",
    "add_header X @\\\n@;",
    "content_by_lua_block { local x = '@' -- { @\n if x then y() end }",
    "server { listen 80 @=@ @; return 301 https://@/@; }",
    "upstream b { server 10.0.0.1 route=@ weight=2 @; sticky cookie @; keepalive @; }",
    "location /p { proxy_pass http://@:@@h.example:80/x?key=@&@; }",
    "rewrite ^/x /y?key=@&q=$uri @;",
    "try_files $uri /i.php?$args&key=@&@;",
    "error_page @ =@ /x?k=@;",
    "@ @;",
    "@ { @ @; x @; }",
    "some_module { secret @; x { y @; } }",
    "return 200 @;",
    "worker_connections @;",
    "proxy_http_version @;",
    "limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s @;",
    "ssl_certificate_key data:@; ssl_password_file @; perl_set $@ '@'; resolver @;",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_secret_is_left_in_any_place_that_is_not_kept(
        picks in proptest::collection::vec((0..SECRETS.len(), any::<bool>(), "[A-Z][a-z0-9]{10,19}[0-9]"), 1..30),
    ) {
        let mut text = String::from("events { }\nhttp {\n");
        for (pick, on_own_line, marker) in &picks {
            text.push_str(&SECRETS[*pick].replace("@@", &format!("{marker}\u{1}")).replace('@', marker).replace('\u{1}', "@"));
            text.push_str(if *on_own_line || SECRETS[*pick].starts_with('#') { "\n" } else { " " });
        }
        text.push('}');
        let (left, _) = hidden(&text);
        for (_, _, marker) in &picks {
            prop_assert!(!left.contains(marker.as_str()), "{marker}\n{text}\n{left}");
        }
        let shape = |text: &str| {
            let mut whole = String::new();
            dump::add(&mut whole, "/n.conf", text);
            let tree = Tree::from_dump(&whole).expect("it parses");
            let words = |one: &crate::nginx::Directive| one.words().iter().map(|word| word.line).collect::<Vec<_>>();
            tree.files()[0].directives().iter().map(|one| (words(one), one.parent)).collect::<Vec<_>>()
        };
        prop_assert_eq!(shape(&left), shape(&text));
    }
}
