//! Deterministic: files in, values out.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::Resolved;

/// The files by their paths, the first of which is read, and then `/data/postgresql.auto.conf` if there is one.
fn load(files: &[(&str, &str)]) -> Result<Tree, LoadError> {
    let disk: BTreeMap<String, String> = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    let mut resolve = |pattern: &str| -> Vec<Resolved> {
        let is_it = |path: &str| if crate::glob::is_pattern(pattern) { crate::glob::matches(pattern, path) } else { path == pattern };
        disk.iter().filter(|(path, _)| is_it(path)).map(|(path, text)| (path.clone(), Ok(text.clone()))).collect()
    };
    Tree::load(files[0].0, &["/data/postgresql.auto.conf".to_owned()], &mut resolve)
}

fn read(files: &[(&str, &str)], given: &[(&str, &str)]) -> Postgresql {
    let given: Vec<(String, String)> = given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Postgresql::of(&load(files).unwrap(), &given)
}

#[test]
fn the_last_line_counts_and_the_command_line_more() {
    let main = "# a comment\nmax_connections = 100\t# (change requires restart)\nPort 5433\nlisten_addresses='*'\nunix_socket_directories = '/run/pg, /tmp'\n\
                max_connections = '0x40'\nlog_line_prefix = 'it''s \\'%m\\' '\nplpgsql.x = on\ninclude_dir 'conf.d'\ninclude_if_exists = 'none.conf'\n";
    let files = [
        ("/etc/pg/postgresql.conf", main),
        ("/etc/pg/conf.d/a.conf", "superuser_reserved_connections = 5\nmax_connections = 70"),
        ("/etc/pg/conf.d/.b.conf", "max_connections = 1"),
        ("/data/postgresql.auto.conf", "reserved_connections = '7'\r\n"),
    ];
    let found = read(&files, &[]);
    assert_eq!((found.max_connections.value, found.superuser_reserved, found.reserved, found.for_all()), (70, 5, 7, 58));
    assert_eq!(found.max_connections.origin.to_string(), "/etc/pg/conf.d/a.conf:2");
    assert_eq!((found.port, found.listen_addresses), (5433, vec!["*".to_owned()]));
    assert_eq!(found.unix_directories, Some(vec!["/run/pg".to_owned(), "/tmp".to_owned()]));
    assert_eq!(read(&files, &[("max_connections", "30")]).max_connections.value, 30);
}

#[test]
fn what_no_line_sets_has_its_default() {
    let found = read(&[("/p.conf", "")], &[]);
    assert_eq!((found.max_connections.value, found.for_all(), found.port), (100, 97, 5432));
    assert_eq!((found.listen_addresses, found.unix_directories), (vec!["localhost".to_owned()], None));
    assert_eq!(found.max_connections.origin.to_string(), "default");
}

#[test]
fn lines_that_postgresql_refuses_are_errors() {
    for (text, what) in [
        ("= 5", Syntax::NoName),
        ("\n5 = 5", Syntax::NoName),
        ("port", Syntax::NoValue),
        ("port = 'x", Syntax::NoValue),
        ("port = # 5", Syntax::NoValue),
        ("port = 5 6", Syntax::Rest),
        ("port = 'a' b", Syntax::Rest),
    ] {
        assert_eq!(parse("f", text).map_err(|error| error.what).unwrap_err(), what, "{text}");
    }
    assert!(matches!(load(&[("/a.conf", "include 'a.conf'")]), Err(LoadError::IncludeDepth { .. })));
    assert_eq!(load(&[("/a.conf", "include 'b.conf'")]).unwrap().gaps.len(), 1);
}

#[test]
fn values_that_are_not_read_are_hidden() {
    let mut text = String::new();
    let file =
        "# secret\nport = 5433 # x\nssl_key_file = '/secret'\nmax_connections = 20\nlisten_addresses = 'a''b'\ninclude '/p/b.conf'\n";
    crate::dump::add(&mut text, "/p/a.conf", file);
    crate::dump::add(&mut text, "/p/b.conf", "primary_conninfo = 'password=secret'");
    let hidden = hide(&text, &[]).unwrap();
    assert!(
        !hidden.text.contains("secret") && hidden.text.contains("\nport = 5433\nssl_key_file = hidden\nmax_connections = 20\n"),
        "{}",
        hidden.text
    );
    assert_eq!((hidden.files, hidden.directives, hidden.values, hidden.comments), (2, 6, 3, 2));
    assert_eq!(hide(&hidden.text, &[]).unwrap().text, hidden.text, "hidden once is hidden");
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused_and_printed_as_it_was(text in "[a-z_=' #\\\\\n\r0-9./*-]{0,120}") {
        if let Ok(file) = parse("f", &text) {
            prop_assert_eq!(file.to_string(), text.as_str());
            for entry in file.entries() {
                prop_assert!(entry.name_span.end <= entry.value_span.start && entry.value_span.end <= entry.span.end);
            }
        }
    }
}
