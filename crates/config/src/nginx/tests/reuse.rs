//! Reuse of connections to FastCGI servers: read, and edited in, whatever the configuration passes to.

use proptest::prelude::*;

use super::*;

const REUSE: FastcgiReuse = FastcgiReuse { connections: 8, requests: 5 };

fn in_force(tree: &Tree, to: &str) -> Option<Option<FastcgiReuse>> {
    fastcgi_reuse(&Nginx::of(tree, Version(1, 22, 1)), to)
}

fn edit(tree: &Tree, to: &str, reuse: FastcgiReuse) -> Result<Vec<crate::Edited>, EditError> {
    let nginx = Nginx::of(tree, Version(1, 22, 1));
    let mut editor = Editor::new(tree);
    assert!(keep_fastcgi(&mut editor, &nginx, to, reuse)?, "something is passed there");
    editor.finish()
}

/// The text after the edit, in which the reuse is in force and a second edit changes nothing.
fn kept(text: &str, to: &str) -> String {
    let after = edit(&tree(text), to, REUSE).expect("the edit fits").pop().expect("something changes").after;
    assert_eq!(in_force(&tree(&after), to), Some(Some(REUSE)), "{after}");
    assert_eq!(nginx(&after).problems, [], "{after}");
    assert_eq!(edit(&tree(&after), to, REUSE), Ok(Vec::new()), "{after}");
    after
}

#[test]
fn an_address_gets_an_upstream_of_its_own() {
    let before = include_str!("../../../tests/data/nginx/good/case_a.conf");
    assert_eq!(in_force(&tree(before), "127.0.0.1:9000"), Some(None));
    let after = kept(before, "127.0.0.1:9000");
    let upstream = "    upstream chokepoint_127_0_0_1_9000 {\n        server 127.0.0.1:9000;\n        keepalive 8;\n        keepalive_requests 5;\n    }\n";
    let passed = "            fastcgi_pass chokepoint_127_0_0_1_9000;\n            fastcgi_keep_conn on;\n";
    let expected = before
        .replace("    server {\n", &format!("{upstream}    server {{\n"))
        .replace("            fastcgi_pass 127.0.0.1:9000;\n", passed);
    assert_eq!(after, expected, "nothing else changes");
    // Another length edits the upstream that is there.
    let longer = FastcgiReuse { requests: 100, ..REUSE };
    let again = edit(&tree(&after), "127.0.0.1:9000", longer).expect("it fits").pop().expect("it changes").after;
    assert_eq!(again, after.replace("keepalive_requests 5;", "keepalive_requests 100;"));
}

#[test]
fn every_pass_to_the_address_is_pointed_at_it_and_no_other() {
    let text = "http {\n  server { # first\n    location /a { fastcgi_pass [::1]:9000; } # a\n    location /b { fastcgi_pass [::1]:9001; }\n    location /c { fastcgi_keep_conn off; fastcgi_pass [::1]:9000; location /c/d { if ($arg_x) { fastcgi_pass [::1]:9000; } } }\n  }\n}\n";
    let after = kept(text, "[::1]:9000");
    assert!(after.contains("location /a { fastcgi_pass chokepoint_1_9000; fastcgi_keep_conn on; } # a"), "{after}");
    assert!(after.contains("location /b { fastcgi_pass [::1]:9001; }"), "{after}");
    assert!(after.contains("location /c { fastcgi_keep_conn on; fastcgi_pass chokepoint_1_9000;"), "{after}");
    // An `if` cannot hold it.
    assert!(after.contains("{ if ($arg_x) { fastcgi_pass chokepoint_1_9000; } fastcgi_keep_conn on; }"), "{after}");
}

#[test]
fn what_is_inherited_is_not_said_again_and_a_name_that_is_taken_is_not_used() {
    let text = "http {\n\tfastcgi_keep_conn on;\n\tupstream Chokepoint_127_0_0_1_9000 {\n\t\tserver 10.0.0.1:1;\n\t}\n\tserver {\n\t\tlocation / {\n\t\t\tfastcgi_pass localhost:9000;\n\t\t}\n\t}\n}\n";
    for to in ["127.0.0.1:9000", "[::1]:9000", "localhost:9000"] {
        assert_eq!(in_force(&tree(text), to), Some(None), "{to}");
    }
    let after = kept(text, "127.0.0.1:9000");
    assert!(after.contains("\tupstream chokepoint_127_0_0_1_9000_2 {\n\t\tserver localhost:9000;\n"), "{after}");
    assert_eq!(after.matches("fastcgi_keep_conn").count(), 1, "{after}");
}

#[test]
fn an_upstream_that_is_there_is_edited_in_place() {
    let text = "http {\n  upstream php {\n    least_conn;\n    server unix:/run/a.sock; # the pool\n    keepalive 2;\n  }\n  server { location ~ \\.php$ { fastcgi_pass PHP; } }\n}\n";
    assert_eq!(in_force(&tree(text), "php"), Some(None), "keepalive alone does nothing");
    let after = kept(text, "php");
    let expected = text
        .replace("    keepalive 2;\n", "    keepalive 8;\n    keepalive_requests 5;\n")
        .replace("fastcgi_pass PHP; }", "fastcgi_pass PHP; fastcgi_keep_conn on; }");
    assert_eq!(after, expected);
    assert_eq!(in_force(&tree(text), "unix:/run/a.sock"), None, "the pass names the upstream");
}

#[test]
fn a_site_in_a_file_of_its_own_is_one_edit_and_a_shared_snippet_is_refused() {
    let edits = edit(&debian(), "unix:/run/php/php8.2-fpm.sock", REUSE);
    // Both of Debian's sites pass there: two files, each of them changed.
    let files: Vec<String> = edits.expect("it fits").into_iter().map(|edited| edited.path).collect();
    assert!(files.iter().all(|path| path.starts_with("/etc/nginx/sites-enabled/")), "{files:?}");
    let site = ("/n/site", "server {\n\tlocation / {\n\t\tfastcgi_pass unix:/run/a.sock;\n\t}\n}\n");
    let one = Tree::load("/n/a", None, &mut disk(&[("/n/a", "http { include site; }"), site])).expect("it parses");
    let edits = edit(&one, "unix:/run/a.sock", REUSE).expect("it fits");
    assert_eq!((edits.len(), edits[0].path.as_str()), (1, "/n/site"));
    assert!(edits[0].after.starts_with("upstream chokepoint_run_a_sock {\n\tserver unix:/run/a.sock;\n"), "{}", edits[0].after);
    let snippet = ("/n/php", "fastcgi_pass unix:/run/a.sock;");
    let text = "http { server { location /a { include php; } location /b { include php; } } }";
    let shared = Tree::load("/n/a", None, &mut disk(&[("/n/a", text), snippet])).expect("it parses");
    assert!(matches!(edit(&shared, "unix:/run/a.sock", REUSE), Err(EditError::SharedFile { .. })));
}

#[test]
fn what_is_not_passed_there_is_nothing_to_edit() {
    for text in [
        "events {}",
        "http { }",
        "http { server { location / { proxy_pass http://127.0.0.1:9000; } } }",
        "http { upstream chokepoint_x { server 127.0.0.1:9000; } }",
        "http { server { set $to 127.0.0.1:9000; location / { fastcgi_pass $to; } } }",
        "http { server { location / { fastcgi_pass 127.0.0.1:9001; } } }",
    ] {
        let tree = tree(text);
        assert_eq!(in_force(&tree, "127.0.0.1:9000"), None, "{text}");
        let mut editor = Editor::new(&tree);
        let nginx = Nginx::of(&tree, Version(1, 22, 1));
        assert_eq!(keep_fastcgi(&mut editor, &nginx, "127.0.0.1:9000", REUSE), Ok(false), "{text}");
        assert_eq!(editor.finish(), Ok(Vec::new()), "{text}");
    }
}

#[test]
fn the_value_is_read_as_it_is_written() {
    assert_eq!("keepalive=8 requests=5".parse(), Ok(REUSE));
    assert_eq!(REUSE.to_string(), "keepalive=8 requests=5");
    for bad in
        ["", " ", "keepalive=8", "keepalive=0 requests=5", "keepalive=8 requests=0", "keepalive=8 requests=5;", "requests=5 keepalive=8"]
    {
        assert_eq!(bad.parse::<FastcgiReuse>(), Err(NoReuse), "{bad}");
    }
}

proptest! {
    #[test]
    fn whatever_text_it_is_given_it_breaks_nothing(at in 0_usize..4_000, to in "[ -~]{0,24}", value in ".{0,40}") {
        let _ = value.parse::<FastcgiReuse>();
        let whole = include_str!("../../../tests/data/nginx/good/wordpress.conf");
        // Cut at any byte, what still parses is edited or left alone.
        let text: String = whole.chars().take(at).collect();
        let Ok(tree) = Tree::load("/n/nginx.conf", None, &mut disk(&[("/n/nginx.conf", &text)])) else { return Ok(()) };
        let nginx = Nginx::of(&tree, Version(1, 22, 1));
        let passes = nginx.http.iter().flat_map(|http| &http.upstreams).map(|upstream| upstream.name.clone());
        for to in passes.chain([to]) {
            let mut editor = Editor::new(&tree);
            if keep_fastcgi(&mut editor, &nginx, &to, REUSE) == Ok(true) {
                let edits = editor.finish().expect("the result parses");
                prop_assert!(edits.len() <= 1);
            }
        }
    }

    #[test]
    fn any_address_that_is_passed_to_can_be_kept(host in "[a-z0-9.-]{1,70}", port in 1_u16.., path in "[a-zA-Z0-9/._-]{1,80}") {
        for pass in [format!("{host}:{port}"), format!("unix:/{path}")] {
            let text = format!("http {{ server {{ location / {{ fastcgi_pass {pass}; }} }} }}");
            let tree = tree(&text);
            let Some(http) = Nginx::of(&tree, Version(1, 22, 1)).http else { return Ok(()) };
            let Some(target) = http.servers[0].locations[0].pass.as_ref().map(|pass| pass.target.clone()) else { continue };
            let Target::Address(address) = target else { continue };
            let after = kept(&text, &address.to_string());
            prop_assert!(after.contains(&format!("server {pass};")), "{}", after);
        }
    }
}
