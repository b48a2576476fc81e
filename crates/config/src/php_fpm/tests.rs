//! Tests on whole php-fpm configurations.

use proptest::prelude::*;

use super::*;
use crate::Origin;
use crate::include::Resolved;

fn disk(files: &[(&str, &str)]) -> impl FnMut(&str) -> Vec<Resolved> {
    let files: Vec<(String, String)> = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    move |pattern: &str| {
        let is_it = |path: &str| if crate::glob::is_pattern(pattern) { crate::glob::matches(pattern, path) } else { path == pattern };
        files.iter().filter(|(path, _)| is_it(path)).map(|(path, text)| (path.clone(), Ok(text.clone()))).collect()
    }
}

fn tree(text: &str) -> Tree {
    Tree::load("/f", None, &mut disk(&[("/f", text)])).expect("it parses")
}

fn fpm(text: &str) -> Fpm {
    Fpm::of(&tree(text), Version(8, 2))
}

fn stock() -> Tree {
    let files = [
        ("/etc/php/8.2/fpm/php-fpm.conf", include_str!("../../tests/data/php-fpm/stock/php-fpm.conf")),
        ("/etc/php/8.2/fpm/pool.d/www.conf", include_str!("../../tests/data/php-fpm/stock/www.conf")),
    ];
    Tree::load("/etc/php/8.2/fpm/php-fpm.conf", None, &mut disk(&files)).expect("the stock configuration parses")
}

#[test]
fn the_stock_configuration() {
    let fpm = Fpm::of(&stock(), Version(8, 2));
    assert_eq!(fpm.problems, []);
    let pool = fpm.pool("www").expect("it is there");
    assert_eq!(pool.listen().map(|listen| listen.value), Some(Listen::Unix("/run/php/php8.2-fpm.sock".to_owned())));
    assert_eq!(pool.backlog(), crate::Setting::default_of(-1));
    assert_eq!(Fpm::of(&stock(), Version(8, 1)).pools[0].backlog().value, 511);
    assert_eq!(pool.manager().map(|manager| manager.value), Some(Manager::Dynamic));
    let children = pool.max_children().expect("it is set");
    assert_eq!((children.value, children.origin.to_string().as_str()), (5, "/etc/php/8.2/fpm/pool.d/www.conf:27"));
    assert_eq!(pool.start_servers().map(|servers| servers.value), Some(2));
    assert_eq!(pool.access_log(), None);
    assert_eq!(pool.seconds("request_terminate_timeout"), Some(crate::Setting::default_of(0)));
    assert_eq!(fpm.global.error_log().map(|log| log.value).as_deref(), Some("/var/log/php8.2-fpm.log"));
    assert_eq!(fpm.global.log_level().value, "notice");
}

#[test]
fn pools_are_reopened_and_values_substituted() {
    let fpm = fpm(include_str!("../../tests/data/php-fpm/good/pools.conf"));
    assert_eq!(fpm.problems, []);
    assert_eq!(fpm.pools.iter().map(|pool| pool.name.as_str()).collect::<Vec<_>>(), ["one", "Two"]);
    let one = fpm.pool("ONE").expect("names have no case");
    assert_eq!(one.max_children().map(|children| (children.value, children.origin.place().map(|place| place.line))), Some((60, Some(26))));
    assert_eq!(one.seconds("pm.process_idle_timeout").map(|time| time.value), Some(20));
    assert_eq!(one.text("access.format").map(|format| format.value).as_deref(), Some("%t \"%m %r%Q%q\" %s %{micro}d %C%%"));
    let arrays: Vec<String> = one.arrays.iter().map(|(key, index, value)| format!("{key}[{index}]={}", value.value)).collect();
    assert_eq!(arrays, ["env[HOSTNAME]=localhost", "php_admin_value[memory_limit]=64M", "php_flag[display_errors]="]);
    let two = fpm.pool("two").expect("it is there");
    assert_eq!(two.listen().map(|listen| listen.value), Some(Listen::Port(19_003)));
    assert_eq!(fpm.pool_on(&Listen::Ip([10, 0, 0, 1].into(), 19_003)).map(|pool| pool.name.as_str()), Some("Two"));
    assert_eq!(fpm.pool_on(&Listen::Ip([127, 0, 0, 1].into(), 19_002)).map(|pool| pool.name.as_str()), Some("one"));
    assert_eq!(fpm.pool_on(&Listen::Ip([10, 0, 0, 1].into(), 19_002)), None);
    assert_eq!(two.start_servers().map(|servers| (servers.value, servers.origin)), Some((4, Origin::Default)));
    assert_eq!(two.number("rlimit_files").map(|files| files.value), Some(4096));
    assert_eq!(fpm.global.seconds("emergency_restart_interval").map(|time| time.value), Some(60));
    let pool = "[web]\nlisten = /run/$pool.sock\npm=static\npm.max_children=1\naccess.log = log/$pool.access\nphp_value[x] = $pool-$pool\n";
    let web = super::Fpm::of(&tree(pool), Version(8, 2));
    assert_eq!(web.pools[0].access_log().map(|log| log.value).as_deref(), Some("log/web.access"));
    assert_eq!(web.pools[0].arrays[0].2.value, "web-web");
}

#[test]
fn numbers_and_times_are_read_as_php_fpm_does() {
    let pool = |line: &str| fpm(&format!("[w]\nlisten=1\npm=static\npm.max_children=1\n{line}\n"));
    let number = |text: &str| pool(&format!("pm.max_requests = {text}")).pools[0].number("pm.max_requests").map(|number| number.value);
    assert_eq!(number("010"), Some(10));
    assert_eq!(number("-3"), Some(-3));
    assert_eq!(number("99999999999"), Some(1_215_752_191));
    assert_eq!(number(""), Some(0));
    assert_eq!(number("9999999999999999999999999"), Some(-1));
    let time = |text: &str| {
        pool(&format!("request_terminate_timeout = {text}")).pools[0].seconds("request_terminate_timeout").map(|time| time.value)
    };
    for (text, seconds) in [("5m", 300), ("5ms", 5), ("2h", 7_200), ("1d", 86_400), ("30", 30), ("30s", 30)] {
        assert_eq!(time(text), Some(seconds), "{text}");
    }
    assert!(pool("catch_workers_output = yes").pools[0].flag("catch_workers_output").value);
    assert!(!pool("catch_workers_output = off").pools[0].flag("catch_workers_output").value);
    let unknown = pool("pm.max_requests = ${REQUESTS}");
    assert_eq!(unknown.problems.len(), 1);
    assert_eq!(unknown.pools[0].number("pm.max_requests").map(|number| number.origin), Some(Origin::Default));
}

#[test]
fn a_section_continues_after_an_include() {
    let files =
        [("/f", "[global]\ninclude = /p/*.conf\npm.max_requests = 7\n"), ("/p/a.conf", "[a]\nlisten=1\npm=static\npm.max_children=1\n")];
    let tree = Tree::load("/f", None, &mut disk(&files)).expect("it parses");
    let fpm = Fpm::of(&tree, Version(8, 2));
    assert_eq!(fpm.problems, []);
    assert_eq!(fpm.pools[0].number("pm.max_requests").map(|number| number.value), Some(7));
}

#[test]
fn loops_and_missing_files() {
    let error = Tree::load("/f", None, &mut disk(&[("/f", "include = /f")])).expect_err("a loop");
    assert!(error.to_string().starts_with("more than 5 files include each other: /f:1 -> /f:1 ->"), "{error}");
    let tree = Tree::load("/f", None, &mut disk(&[("/f", "include=pool.d/*.conf\n[a]")])).expect("nothing matches");
    assert_eq!(tree.gaps, []);
    let mut locked = |pattern: &str| match pattern {
        "/f" => vec![("/f".to_owned(), Ok("include=x".to_owned()))],
        _ => vec![(pattern.to_owned(), Err("permission denied".to_owned()))],
    };
    let tree = Tree::load("/f", None, &mut locked).expect("it goes on");
    assert_eq!((tree.gaps[0].path.as_str(), tree.gaps[0].why.as_str()), ("/usr/x", "permission denied"));
}

/// The new text after setting a key. The edit is applied again to the result to check that nothing more changes.
fn edited(text: &str, section: &str, key: &str, value: &str) -> String {
    let once = |text: &str| {
        let tree = tree(text);
        let mut editor = Editor::new(&tree);
        editor.set(section, key, value).expect("the edit fits");
        editor.finish().expect("the result parses")
    };
    let after = once(text).pop().map_or_else(|| text.to_owned(), |edited| edited.after);
    assert_eq!(once(&after), []);
    after
}

#[test]
fn keys_are_set_in_place_or_added_where_they_belong() {
    assert_eq!(edited("[w]\npm.max_children = 5 ; few\n", "w", "pm.max_children", "20"), "[w]\npm.max_children = 20 ; few\n");
    assert_eq!(edited("[w]\r\npm.max_children=5\r\n", "W", "pm.max_children", "20"), "[w]\r\npm.max_children=20\r\n");
    assert_eq!(edited("[w]\npm.max_children =\n", "w", "pm.max_children", "20"), "[w]\npm.max_children = 20\n");
    assert_eq!(edited("[w]\nA = 1\n[v]\n[w]\na = 2", "w", "a", "3"), "[w]\nA = 1\n[v]\n[w]\na = 3");
    let sample = "[w]\nlisten = 1\n; about it\n;listen.backlog = 511\n\npm = static\n[v]\n;listen.backlog = 1\n";
    assert_eq!(
        edited(sample, "w", "listen.backlog", "8192"),
        "[w]\nlisten = 1\n; about it\n;listen.backlog = 511\nlisten.backlog = 8192\n\npm = static\n[v]\n;listen.backlog = 1\n"
    );
    assert_eq!(
        edited("[w]\r\nlisten = 1\r\nuser = a\r\n", "w", "listen.backlog", "9"),
        "[w]\r\nlisten = 1\r\nlisten.backlog = 9\r\nuser = a\r\n"
    );
    assert_eq!(edited("[w]\nuser = a", "w", "slowlog", "a b"), "[w]\nuser = a\nslowlog = \"a b\"\n");
    assert_eq!(edited("a = 1\n[w]\n", "global", "b", "2"), "a = 1\nb = 2\n[w]\n");
    let tree = tree("[w]\na = 1\n");
    assert_eq!(Editor::new(&tree).set("v", "a", "1"), Err(EditError::NoSection("v".to_owned())));
    assert_eq!(Editor::new(&tree).set("w", "a", "1\n2"), Err(EditError::LineEnding("a".to_owned())));
}

#[test]
fn the_stock_file_keeps_everything_else() {
    let tree = stock();
    let mut editor = Editor::new(&tree);
    editor.set("www", "pm.max_children", "20").expect("it fits");
    editor.set("www", "listen.backlog", "8192").expect("it fits");
    editor.set("global", "process_control_timeout", "10s").expect("it fits");
    let edits = editor.finish().expect("it parses");
    let diffs: Vec<String> = edits.iter().map(crate::Edited::diff).collect();
    assert_eq!(diffs.len(), 2);
    assert!(diffs[0].contains("\n ;process_control_timeout = 0\n+process_control_timeout = 10s\n"), "{}", diffs[0]);
    assert!(diffs[1].contains("\n ;listen.backlog = 511\n+listen.backlog = 8192\n"), "{}", diffs[1]);
    assert!(diffs[1].contains("\n-pm.max_children = 5\n+pm.max_children = 20\n"), "{}", diffs[1]);
    assert_eq!(
        diffs.concat().lines().filter(|line| line.starts_with(['+', '-']) && !line.starts_with("+++") && !line.starts_with("---")).count(),
        4
    );
}

#[test]
fn a_file_included_twice_is_not_edited() {
    let files = [("/f", "[a]\ninclude = /s\n[b]\ninclude = /s\n"), ("/s", "pm.max_children = 1\n")];
    let tree = Tree::load("/f", None, &mut disk(&files)).expect("it parses");
    assert!(matches!(Editor::new(&tree).set("a", "pm.max_children", "2"), Err(EditError::SharedFile { .. })));
}

proptest! {
    #[test]
    fn no_byte_is_lost(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let text = crate::text::decode(&bytes);
        if let Ok(file) = parse("f", &text) {
            prop_assert_eq!(crate::text::encode(&file.to_string()), bytes);
        }
    }

    #[test]
    fn values_are_read_back(value in "[a-z0-9 ;=\"'\\\\$|&(){}#./%-]{0,12}") {
        let after = edited("[w]\nlisten = 1\nslowlog = x\n", "w", "slowlog", &value);
        let fpm = fpm(&after);
        let boolean = ["true", "on", "yes", "false", "off", "no", "none", "null"].contains(&value.as_str());
        if !boolean {
            prop_assert_eq!(fpm.pools[0].text("slowlog").map(|setting| setting.value), Some(value.replace("$pool", "w")));
        }
    }
}
