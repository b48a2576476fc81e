//! The parser: tokens as nginx reads them, refusals with their line, includes, and no byte lost.

use proptest::prelude::*;

use super::*;

fn values(text: &str) -> Vec<Vec<String>> {
    let file = parse("f", text).expect("it parses");
    file.directives().iter().map(|directive| directive.words().iter().map(|word| word.value.clone()).collect()).collect()
}

fn refusal(text: &str) -> (u32, Syntax) {
    let error = parse("f", text).expect_err("nginx refuses it");
    (error.line, error.what)
}

/// Checks that words and terminators tile the text: between them stand only blanks and comments.
fn check_tiling(file: &File) {
    let mut marks = vec![b' '; file.text().len()];
    for directive in file.directives() {
        for word in directive.words() {
            marks[word.span.clone()].fill(b'w');
        }
        marks[directive.end] = b't';
        match directive.body {
            Body::Simple => assert_eq!(directive.span.end, directive.end + 1),
            Body::Block(_) => marks[directive.span.end - 1] = b't',
            Body::Code => marks[directive.end..directive.span.end].fill(b't'),
        }
    }
    let rest: String = file.text().bytes().zip(&marks).map(|(byte, mark)| if *mark == b' ' { char::from(byte) } else { '\n' }).collect();
    for line in rest.lines().map(str::trim) {
        assert!(line.is_empty() || line.starts_with('#'), "neither word nor comment: {line}");
    }
}

#[test]
fn words_are_read_as_nginx_reads_them() {
    for (text, expected) in [
        ("a b;", vec![vec!["a", "b"]]),
        ("a\n\tb\r\n c ;", vec![vec!["a", "b", "c"]]),
        ("a 'b \"c';", vec![vec!["a", "b \"c"]]),
        (r#"a "b \" \\ \n \x";"#, vec![vec!["a", "b \" \\ \n \\x"]]),
        (r"a b\ c;", vec![vec!["a", r"b\ c"]]),
        (r"a \;b;", vec![vec!["a", r"\;b"]]),
        ("a ${b}c{d{e};}", vec![vec!["a", "${b}c"], vec!["d"], vec!["e}"]]),
        ("a b#c;", vec![vec!["a", "b#c"]]),
        ("a b #c;\n;", vec![vec!["a", "b"]]),
        ("if ($a = \"x\") {}", vec![vec!["if", "($a", "=", "x", ")"]]),
        ("a '';", vec![vec!["a", ""]]),
        ("a{b c;}d;", vec![vec!["a"], vec!["b", "c"], vec!["d"]]),
        ("a ä€;", vec![vec!["a", "ä€"]]),
        ("a \\é;", vec![vec!["a", "\\é"]]),
        ("", vec![]),
        ("# only a comment", vec![]),
    ] {
        if text == "a ${b}c{d{e};}" {
            // `e}` is a word, so the two blocks stay open.
            assert!(parse("f", text).is_err());
            continue;
        }
        assert_eq!(values(text), expected, "{text}");
    }
}

#[test]
fn refusals_name_their_line() {
    for (text, line, what) in [
        ("a {\n b;\n", 1, Syntax::BlockOpen),
        ("a;\n}\n", 2, Syntax::Unexpected('}')),
        ("a;\nb", 2, Syntax::DirectiveOpen),
        ("a b }", 1, Syntax::Unexpected('}')),
        ("\na \"b\n;", 2, Syntax::QuoteOpen('"')),
        ("a 'b'c;", 1, Syntax::Unexpected('c')),
        ("a 'b'é;", 1, Syntax::Unexpected('é')),
        (";", 1, Syntax::Unexpected(';')),
        ("{}", 1, Syntax::Unexpected('{')),
        ("\u{feff}a;", 1, Syntax::ByteOrderMark),
        ("content_by_lua_block { '}' ", 1, Syntax::LuaOpen),
    ] {
        assert_eq!(refusal(text), (line, what), "{text}");
    }
    assert_eq!(refusal(&format!("a {};", "x".repeat(4096))), (1, Syntax::TooLong));
    assert_eq!(refusal(&format!("\na \"{}\";", "x".repeat(4096))), (2, Syntax::QuoteOpen('"')));
    assert_eq!(refusal(&format!("\na \"{}\";", "x".repeat(4095))), (2, Syntax::TooLong));
    assert_eq!(refusal(&format!("#{}\n", "x".repeat(4096))), (1, Syntax::TooLong));
    assert!(parse("f", &format!("a {};", "x".repeat(4095))).is_ok());
    assert_eq!(refusal(&"a{".repeat(1_000)).1, Syntax::TooDeep);
    let message = parse("/etc/nginx/nginx.conf", "a;\n}").expect_err("refused").to_string();
    assert_eq!(message, "/etc/nginx/nginx.conf:2: unexpected \"}\"");
}

#[test]
fn code_in_lua_is_left_alone() {
    let text = include_str!("../../../tests/data/nginx/modules/lua.conf");
    let file = parse("f", text).expect("it parses");
    check_tiling(&file);
    let names: Vec<&str> = file.directives().iter().map(Directive::name).collect();
    assert!(names.ends_with(&["location", "proxy_pass"]), "{names:?}");
    assert_eq!(file.directives().last().map(Directive::line), Some(17));
}

#[test]
fn truncation_at_every_byte_is_an_error_or_a_shorter_file() {
    let text = include_str!("../../../tests/data/nginx/good/tokens.conf");
    for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
        match parse("f", &text[..end]) {
            Ok(file) => check_tiling(&file),
            Err(error) => assert!(error.line >= 1 && error.line as usize <= text.lines().count() + 1),
        }
    }
}

#[test]
fn includes_are_followed_from_the_prefix() {
    let tree = debian();
    let default = tree.files().iter().position(|file| file.path.ends_with("sites-enabled/default")).expect("it is included");
    assert_eq!(tree.includers(default).len(), 1);
    assert_eq!(tree.sharers(default), []);
    let fastcgi = tree.files().iter().position(|file| file.path.ends_with("/fastcgi.conf")).expect("it is included from a snippet");
    assert_eq!(tree.includers(fastcgi)[0].to_string(), "/etc/nginx/snippets/fastcgi-php.conf:13");
    assert_eq!(tree.gaps, []);
    for file in tree.files() {
        check_tiling(file);
        assert_eq!(file.to_string(), file.text());
    }
}

#[test]
fn loops_and_missing_files_are_told() {
    let files = [
        ("/n/a.conf", include_str!("../../../tests/data/nginx/loop/a.conf")),
        ("/n/b.conf", include_str!("../../../tests/data/nginx/loop/b.conf")),
        ("/n/c1.conf", include_str!("../../../tests/data/nginx/loop/c1.conf")),
    ];
    let error = Tree::load("/n/a.conf", None, &mut disk(&files)).expect_err("a loop");
    assert_eq!(error, LoadError::IncludeLoop { chain: "/n/a.conf:2 -> /n/b.conf:2 -> /n/c1.conf:1 -> /n/a.conf".to_owned() });

    let missing =
        Tree::load("/n/a.conf", None, &mut disk(&[("/n/a.conf", "include no.conf; include no/*.conf; user a;")])).expect("it goes on");
    assert_eq!(missing.gaps.len(), 1);
    assert_eq!((missing.gaps[0].path.as_str(), missing.gaps[0].why.as_str()), ("/n/no.conf", "not found"));
    assert_eq!(missing.top().len(), 1);

    let mut locked = |pattern: &str| match pattern {
        "/n/a.conf" => vec![("/n/a.conf".to_owned(), Ok("include secret.conf;".to_owned()))],
        _ => vec![(pattern.to_owned(), Err("permission denied".to_owned()))],
    };
    assert_eq!(Tree::load("/n/a.conf", None, &mut locked).expect("it goes on").gaps[0].why, "permission denied");
    let error = Tree::load("/n/none", None, &mut disk(&[])).expect_err("no main file");
    assert_eq!(error.to_string(), "/n/none: not found");
    let error = Tree::load("/n/a.conf", None, &mut disk(&[("/n/a.conf", "\ninclude a b;")])).expect_err("two arguments");
    assert_eq!(error.to_string(), "/n/a.conf:2: invalid number of arguments in \"include\"");
}

#[test]
fn include_bombs_end() {
    let mut chain = |pattern: &str| {
        let n: u32 = pattern.trim_start_matches("/n/").parse().unwrap_or(0);
        vec![(pattern.to_owned(), Ok(format!("include {};", n + 1)))]
    };
    assert!(matches!(Tree::load("/n/0", None, &mut chain), Err(LoadError::IncludeDepth { .. })));
    let mut fan = |pattern: &str| {
        let n: u32 = pattern.trim_start_matches("/n/").parse().unwrap_or(0);
        let text = if n < 40 { format!("include {0}; include {0}; a;", n + 1) } else { String::new() };
        vec![(pattern.to_owned(), Ok(text))]
    };
    assert!(matches!(Tree::load("/n/0", None, &mut fan), Err(LoadError::TooMuch)));
}

proptest! {
    #[test]
    fn no_byte_is_lost(text in "([a-c{};\"'\\\\$# \n\r\tä]|a \\{|\\}|b c;){0,40}") {
        if let Ok(file) = parse("f", &text) {
            prop_assert_eq!(file.to_string(), text);
            check_tiling(&file);
        }
    }

    #[test]
    fn any_text_gives_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let text = crate::text::decode(&bytes);
        if let Ok(file) = parse("f", &text) {
            prop_assert_eq!(crate::text::encode(&file.to_string()), bytes);
        }
    }

    #[test]
    fn any_configuration_can_be_judged(text in "(http|server|events|upstream u|location|location /|if|map \\$a \\$b|stream) \\{|listen [0-9a:\\[\\]-]{0,6};|(proxy_pass|server|keepalive|set|limit_req|log_format|access_log|try_files|server_name|fastcgi_pass|rewrite|worker_processes) [a-z$:/~@=0-9 *.{}-]{0,16};|\\}") {
        let whole = format!("http {{ server {{ {text} }} upstream x {{ {text} }} {text} }} stream {{ server {{ {text} }} }} {text}");
        if parse("f", &whole).is_ok() {
            let nginx = nginx(&whole);
            for http in nginx.http.iter() {
                for server in &http.servers {
                    prop_assert!(!server.names.is_empty());
                }
                if let Some(selection) = http.select(&LocalAddress::Ip([127, 0, 0, 1].into(), 80), "x", "/a.php") {
                    prop_assert!(selection.candidates().len() <= 64);
                }
            }
        }
    }
}
