//! Edits: what was asked for changes, nothing else does, and twice is once.

use proptest::prelude::*;

use super::*;
use crate::Edited;

/// The one changed file's new text after an edit, which is made a second time on the result to see that nothing more changes.
fn edited(text: &str, edit: impl Fn(&Tree, &mut Editor<'_>) -> Result<(), EditError>) -> String {
    let once = |text: &str| {
        let tree = tree(text);
        let mut editor = Editor::new(&tree);
        edit(&tree, &mut editor).expect("the edit fits");
        editor.finish().expect("the result parses")
    };
    let after = once(text).pop().map_or_else(|| text.to_owned(), |edited| edited.after);
    assert_eq!(once(&after), [], "the edit made twice changes more");
    after
}

#[test]
fn a_backlog_is_added_or_set() {
    let set = |text: &str| edited(text, |tree, editor| editor.set_option(find(tree, "listen"), "backlog", "8192"));
    assert_eq!(set("server { listen 80; # main\n}"), "server { listen 80 backlog=8192; # main\n}");
    assert_eq!(set("server { listen 80 backlog=10 reuseport; }"), "server { listen 80 backlog=8192 reuseport; }");
    assert_eq!(set("server { listen   80\tdefault_server  ; }"), "server { listen   80\tdefault_server backlog=8192  ; }");
    assert_eq!(set("server { listen 80 'backlog=10'; }"), "server { listen 80 backlog=8192; }");
    assert_eq!(set("server { listen 80 # x;\n ; }"), "server { listen 80 backlog=8192 # x;\n ; }");
    let flag = |text: &str| edited(text, |tree, editor| editor.set_flag(find(tree, "listen"), "reuseport"));
    assert_eq!(flag("listen 80;"), "listen 80 reuseport;");
    let removed = edited("listen 80\n   backlog=10 reuseport;", |tree, editor| editor.remove_option(find(tree, "listen"), "backlog"));
    assert_eq!(removed, "listen 80 reuseport;");
}

#[test]
fn arguments_are_set_in_place() {
    let set = |text: &str| edited(text, |tree, editor| editor.set_argument(find(tree, "worker_connections"), 0, "4096"));
    assert_eq!(set("events {\n\tworker_connections   768 ; # few\r\n}"), "events {\n\tworker_connections   4096 ; # few\r\n}");
    assert_eq!(set("worker_connections '768';"), "worker_connections 4096;");
    let all = |text: &str| edited(text, |tree, editor| editor.set_arguments(find(tree, "a"), &["x y", "z"]));
    assert_eq!(all("a b;"), "a \"x y\" z;");
    assert_eq!(all("a  b  c;"), "a  \"x y\"  z;");
    assert_eq!(all("a;"), "a \"x y\" z;");
}

#[test]
fn directives_are_added_with_the_blocks_own_form() {
    let add = |text: &str| edited(text, |tree, editor| editor.set(Some(find(tree, "upstream")), "keepalive", &["16"], Position::End));
    assert_eq!(
        add("http {\n\tupstream u {\n\t\tserver a;\n\t}\n}\n"),
        "http {\n\tupstream u {\n\t\tserver a;\n\t\tkeepalive 16;\n\t}\n}\n"
    );
    assert_eq!(add("upstream u {\r\n  server a;\r\n}\r\n"), "upstream u {\r\n  server a;\r\n  keepalive 16;\r\n}\r\n");
    assert_eq!(add("upstream u { server a; }"), "upstream u { server a; keepalive 16; }");
    assert_eq!(add("upstream u {server a;}"), "upstream u {server a; keepalive 16; }");
    assert_eq!(add("upstream u {}"), "upstream u { keepalive 16; }");
    assert_eq!(add("upstream u {\n}\n"), "upstream u {\n    keepalive 16;\n}\n");
    assert_eq!(add("upstream u {\n  # none yet\n}\n"), "upstream u {\n  # none yet\n    keepalive 16;\n}\n");
    assert_eq!(add("upstream u {\n  server a; }\n"), "upstream u {\n  server a;\n  keepalive 16;\n}\n");
    assert_eq!(add("upstream u {\n  server a; # one\n  # two\n}\n"), "upstream u {\n  server a; # one\n  # two\n  keepalive 16;\n}\n");
    assert_eq!(add("upstream u {\n  keepalive 1;\n  server a;\n}\n"), "upstream u {\n  keepalive 16;\n  server a;\n}\n");
}

#[test]
fn directives_are_added_where_they_should_stand() {
    let after = |text: &str| edited(text, |tree, editor| editor.add(Some(find(tree, "b")), "x", &["1"], Position::After(find(tree, "c"))));
    assert_eq!(after("b {\n c; # why\n d;\n}"), "b {\n c; # why\n x 1;\n d;\n}");
    assert_eq!(after("b { c; d; }"), "b { c; x 1; d; }");
    let before =
        |text: &str| edited(text, |tree, editor| editor.add(Some(find(tree, "b")), "x", &["1"], Position::Before(find(tree, "d"))));
    assert_eq!(before("b {\n c;\n\n  d;\n}"), "b {\n c;\n\n  x 1;\n  d;\n}");
    assert_eq!(before("b { c; d; }"), "b { c; x 1; d; }");
    let start = |text: &str| edited(text, |tree, editor| editor.add(Some(find(tree, "b")), "x", &["1"], Position::Start));
    assert_eq!(start("b {\n  # about c\n  c;\n}"), "b {\n  # about c\n  x 1;\n  c;\n}");
    let top = |text: &str| edited(text, |_, editor| editor.set(None, "worker_rlimit_nofile", &["65535"], Position::End));
    assert_eq!(top("user a;"), "user a;\nworker_rlimit_nofile 65535;\n");
    assert_eq!(top("user a;\r\n"), "user a;\r\nworker_rlimit_nofile 65535;\r\n");
    assert_eq!(top("worker_rlimit_nofile 1;"), "worker_rlimit_nofile 65535;");
}

#[test]
fn directives_are_removed_with_their_line() {
    let remove = |text: &str| edited_once(text, |tree, editor| editor.remove(find(tree, "x")));
    assert_eq!(remove("a;\n  x 1;\nb;\n"), "a;\nb;\n");
    assert_eq!(remove("a; x 1; b;\n"), "a; b;\n");
    assert_eq!(remove("a {\n  x {\n    y;\n  }\n  b;\n}\n"), "a {\n  b;\n}\n");
    assert_eq!(remove("x 1; # why\nb;"), "# why\nb;");
}

fn edited_once(text: &str, edit: impl Fn(&Tree, &mut Editor<'_>) -> Result<(), EditError>) -> String {
    let tree = tree(text);
    let mut editor = Editor::new(&tree);
    edit(&tree, &mut editor).expect("the edit fits");
    editor.finish().expect("the result parses").pop().map_or_else(|| text.to_owned(), |edited| edited.after)
}

#[test]
fn an_upstream_is_added_once() {
    let add = |text: &str| {
        edited(text, |tree, editor| {
            editor.add_upstream(find(tree, "http"), "php", &["server 127.0.0.1:9000;", "keepalive 16;"])?;
            editor.set_argument(find(tree, "fastcgi_pass"), 0, "php")?;
            editor.set(Some(find(tree, "location")), "fastcgi_keep_conn", &["on"], Position::After(find(tree, "fastcgi_pass")))
        })
    };
    let after = add(include_str!("../../../tests/data/nginx/good/case_a.conf"));
    let expected = "error.log;\n    upstream php {\n        server 127.0.0.1:9000;\n        keepalive 16;\n    }\n    server {\n";
    assert!(after.contains(expected), "{after}");
    assert!(after.contains("            fastcgi_pass php;\n            fastcgi_keep_conn on;\n"), "{after}");
    let tree = tree("http { upstream u { server a; } }");
    let mut editor = Editor::new(&tree);
    assert_eq!(editor.add_upstream(find(&tree, "http"), "u", &["server b;"]), Err(EditError::Exists("u".to_owned())));
}

#[test]
fn a_shared_file_is_refused_unless_allowed() {
    let files = [("/n/a", "http { server { include s; } server { include s; } }"), ("/n/s", "include t;"), ("/n/t", "listen 80;")];
    let tree = Tree::load("/n/a", None, &mut disk(&files)).expect("it parses");
    let listen = find(&tree, "listen");
    let refused = Editor::new(&tree).set_option(listen, "backlog", "1");
    let includes = vec!["/n/a:1".to_owned(), "/n/a:1".to_owned()];
    assert_eq!(refused, Err(EditError::SharedFile { path: "/n/t".to_owned(), includes }));
    let mut editor = Editor::new(&tree).allow_shared();
    editor.set_option(listen, "backlog", "1").expect("it is allowed");
    let expected = Edited { path: "/n/t".to_owned(), before: "listen 80;".to_owned(), after: "listen 80 backlog=1;".to_owned() };
    assert_eq!(editor.finish(), Ok(vec![expected]));
}

#[test]
fn the_diff_of_an_edit_reads_like_one() {
    let tree = debian();
    let nginx = Nginx::of(&tree, Version(1, 22, 1));
    let node = nginx.http.as_ref().and_then(|http| http.sockets[0].option_node()).expect("a listen");
    let mut editor = Editor::new(&tree);
    editor.set_option(node, "backlog", "8192").expect("it fits");
    let diff = editor.finish().expect("it parses")[0].diff();
    assert!(diff.starts_with("--- a/etc/nginx/sites-enabled/default\n+++ b/etc/nginx/sites-enabled/default\n@@ "), "{diff}");
    assert!(diff.contains("\n-\tlisten 80 default_server;\n+\tlisten 80 default_server backlog=8192;\n"), "{diff}");
}

#[test]
fn wrong_nodes_are_errors() {
    let tree = tree("a;\nb { }");
    let mut editor = Editor::new(&tree);
    let error = editor.set_argument(find(&tree, "a"), 0, "x").expect_err("no argument");
    assert_eq!(error.to_string(), "/n/nginx.conf:1: \"a\" has no such argument");
    assert!(editor.set_option(find(&tree, "a"), "x", "1").is_err());
    assert!(editor.add(Some(find(&tree, "a")), "x", &[], Position::End).is_err());
    let mut twice = Editor::new(&tree);
    twice.remove(find(&tree, "b")).expect("it fits");
    twice.add(Some(find(&tree, "b")), "x", &[], Position::End).expect("it fits");
    assert!(matches!(twice.finish(), Err(EditError::Overlap(_))));
}

proptest! {
    #[test]
    fn edits_touch_nothing_else(index in 0_usize..400, value in "[a-z0-9 ;{}\"'\\\\$#]{0,8}") {
        let text = include_str!("../../../tests/data/nginx/good/wordpress.conf");
        let tree = tree(text);
        let nodes: Vec<crate::Node> = (0..tree.files()[0].directives().len()).map(|entry| crate::Node { file: 0, entry }).collect();
        let node = nodes[index % nodes.len()];
        prop_assume!(!tree.directive(node).args().is_empty() && tree.directive(node).name() != "include");
        let mut editor = Editor::new(&tree);
        editor.set_argument(node, 0, &value).expect("it has an argument");
        let edits = editor.finish().expect("the result parses");
        let after = edits.first().map_or(text, |edit| edit.after.as_str());
        let again = super::tree(after);
        for &other in &nodes {
            let mut expected = tree.directive(other).values();
            if other == node {
                expected[0] = value.clone();
            }
            prop_assert_eq!(again.directive(other).values(), expected);
        }
    }
}
