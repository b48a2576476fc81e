//! The address of a FastCGI server: found in each place that names it, and replaced there and nowhere else.

use super::*;

const TCP: &str = "127.0.0.1:9000";
const SOCKET: &str = "unix:/run/www.sock";
const TEXT: &str = "http {\n    upstream php {\n        server 127.0.0.1:9000 weight=2; # a\n        server 127.0.0.1:9001;\n    }\n    upstream unused {\n        server 127.0.0.1:9000;\n    }\n    server {\n        listen 80;\n        location / {\n            fastcgi_pass localhost:9000;\n            if ($args) {\n                fastcgi_pass php;\n            }\n            location /b {\n                fastcgi_pass 127.0.0.1:9000; # b\n            }\n        }\n        location /c {\n            fastcgi_pass 127.0.0.1:9002;\n        }\n    }\n}\n";

fn moved(text: &str) -> Result<String, String> {
    let tree = tree(text);
    let nginx = Nginx::of(&tree, Version(1, 22, 1));
    let mut editor = Editor::new(&tree);
    let is_used = move_fastcgi(&mut editor, &nginx, TCP, SOCKET).map_err(|error| error.to_string())?;
    let after = editor.finish().map_err(|error| error.to_string())?.pop();
    assert_eq!(is_used, after.is_some());
    Ok(after.map_or_else(|| text.to_owned(), |file| file.after))
}

#[test]
fn every_place_moves_and_nothing_else() {
    let place = |text: &str| fastcgi_address(&nginx(text), TCP, SOCKET).map(str::to_owned);
    let after = moved(TEXT).unwrap();
    let expected = TEXT
        .replace("server 127.0.0.1:9000 weight=2", "server unix:/run/www.sock weight=2")
        .replace("fastcgi_pass localhost:9000", "fastcgi_pass unix:/run/www.sock")
        .replace("fastcgi_pass 127.0.0.1:9000", "fastcgi_pass unix:/run/www.sock");
    assert_eq!(after, expected);
    assert_eq!((place(TEXT).as_deref(), place(&after).as_deref()), (Some(TCP), Some(SOCKET)));
    let half = TEXT.replace("fastcgi_pass localhost:9000", "fastcgi_pass unix:/run/www.sock");
    assert_eq!(place(&half).as_deref(), Some(TCP), "one place is enough");
    let none = "http { server { location / { fastcgi_pass 127.0.0.1:9009; } } }";
    assert_eq!((place(none), moved(none)), (None, Ok(none.to_owned())));
}

#[test]
fn an_address_that_other_passes_may_use_is_not_moved() {
    let with = |inner: &str| TEXT.replace("location /c {", &format!("location /d {{ {inner} }}\n        location /c {{"));
    for (inner, why) in [
        ("fastcgi_pass $backend;", "has variables"),
        ("set $x 127.0.0.1:9000; fastcgi_pass $x;", "has variables"),
        ("proxy_pass http://127.0.0.1:9000;", "another protocol"),
        ("proxy_pass http://unused;", "another protocol"),
        ("fastcgi_pass pool.internal:9000;", "a name that may stand for the address"),
    ] {
        let told = moved(&with(inner)).unwrap_err();
        assert!(told.contains(why), "{inner}: {told}");
    }
    for inner in ["proxy_pass http://127.0.0.1:8080;", "set $x 127.0.0.1:9003; fastcgi_pass $x;", "fastcgi_pass pool.internal:9009;"] {
        assert!(moved(&with(inner)).is_ok(), "{inner}");
    }
    let told = moved(&format!("stream {{ server {{ listen 1; proxy_pass 127.0.0.1:9000; }} }}\n{TEXT}")).unwrap_err();
    assert!(told.contains("passes connections to the address"), "{told}");
}
