//! What nginx asks of the server behind, and what it answers itself.

use super::*;

fn upstream_requests(text: &str, path: &str) -> Vec<Result<UpstreamRequest, String>> {
    let http = http(text);
    let local = LocalAddress::Ip([10, 0, 0, 2].into(), 80);
    let selection = http.select(&local, "Shop.example:80", path).expect("it listens");
    let client = ClientRequest { scheme: "http", host: "Shop.example:80", path_and_query: path, local: &local };
    let candidates = selection.candidates();
    candidates
        .iter()
        .filter_map(|candidate| candidate.upstream_request(&selection, &client))
        .map(|one| one.map_err(|why| why.to_string()))
        .collect()
}

fn server(text: &str) -> String {
    format!("http {{ upstream app {{ server 10.0.0.9:81; }}\nserver {{ listen 80; server_name shop.example; root /srv/www;\n{text}\n}} }}")
}

fn field<'a>(asked: &'a UpstreamRequest, name: &str) -> Option<&'a str> {
    asked.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

#[test]
fn fastcgi_parameters_as_distributions_write_them() {
    let text = server(
        "location ~ \\.php$ { fastcgi_split_path_info ^(.+?\\.php)(/.*)$; try_files $fastcgi_script_name =404;\n\
         set $path_info $fastcgi_path_info; fastcgi_param PATH_INFO $path_info; fastcgi_index index.php;\n\
         fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; fastcgi_param QUERY_STRING $query_string; fastcgi_param REQUEST_METHOD $request_method;\n\
         fastcgi_param REQUEST_URI $request_uri; fastcgi_param SERVER_SOFTWARE nginx/$nginx_version;\n\
         fastcgi_param HTTPS $https if_not_empty; fastcgi_param CITY $geoip_city; fastcgi_param SERVER_NAME $server_name;\n\
         fastcgi_pass unix:/run/php.sock; }",
    );
    let found = upstream_requests(&text, "/a%20b/x.php?q=1&r");
    let one = found[0].as_ref().expect("everything is known");
    assert_eq!(one.path_and_query, "/srv/www/a%20b/x.php?q=1&r");
    for (name, value) in [
        ("SCRIPT_FILENAME", Some("/srv/www/a b/x.php")),
        ("QUERY_STRING", Some("q=1&r")),
        ("REQUEST_URI", Some("/a%20b/x.php?q=1&r")),
        ("SERVER_SOFTWARE", Some("nginx/1.22.1")),
        ("SERVER_NAME", Some("shop.example")),
        ("PATH_INFO", Some("")),
        ("REQUEST_METHOD", None),
        ("HTTPS", None),
        ("CITY", None),
    ] {
        assert_eq!(field(one, name), value, "{name}");
    }
    assert_eq!(upstream_requests(&text, "/x.php/more"), [], "the location is not for it");
}

#[test]
fn a_front_controller_behind_try_files_is_the_script() {
    let text = server(
        "location / { try_files $uri $uri/ /index.php?$args; }\n\
         location = /index.php { fastcgi_param SCRIPT_FILENAME $request_filename; fastcgi_pass app; }",
    );
    let found = upstream_requests(&text, "/a/page?x=1");
    assert_eq!(found[0].as_ref().map(|one| one.path_and_query.as_str()), Ok("/srv/www/index.php?x=1"));
    for (to, expected) in [
        ("/index.php", "/srv/www/index.php"),
        ("/index.php$is_args$args", "/srv/www/index.php?x=1"),
        ("/index.php?q=$uri&$args", "/srv/www/index.php?q=/a/page&x=1"),
    ] {
        let text = text.replace("/index.php?$args", to);
        assert_eq!(upstream_requests(&text, "/a/page?x=1")[0].as_ref().map(|one| one.path_and_query.as_str()), Ok(expected), "{to}");
    }
    let unfilled = text.replace("/index.php?$args", "/index.php?q=$geoip_city");
    assert!(matches!(&upstream_requests(&unfilled, "/a")[0], Err(why) if why.contains("$geoip_city")));
    let unknown = server("location / { fastcgi_param SCRIPT_FILENAME $app_root/x.php; fastcgi_pass app; }");
    assert!(matches!(&upstream_requests(&unknown, "/")[0], Err(why) if why.contains("$app_root") && why.contains(':')));
    assert!(upstream_requests(&server("location / { fastcgi_pass app; }"), "/")[0].is_err(), "no script is named");
    let circle = server("set $a $b; set $b $a; location / { fastcgi_param SCRIPT_FILENAME $a; fastcgi_pass app; }");
    assert!(upstream_requests(&circle, "/")[0].is_err());
}

#[test]
fn http_requests_with_their_host_and_uri() {
    for (location, path, to, host) in [
        ("location / { proxy_pass http://app; }", "/a%2Fb?x", "/a%2Fb?x", "app"),
        ("location /api/ { proxy_pass http://10.0.0.9:81/v1/; }", "/api/a%20b?x", "/v1/a%20b?x", "10.0.0.9:81"),
        ("location /api { proxy_set_header Host $host; proxy_pass http://app/; }", "/api/x", "//x", "shop.example"),
        ("location / { proxy_set_header Host $http_host; proxy_pass http://unix:/run/a.sock; }", "/", "/", "Shop.example:80"),
    ] {
        let found = upstream_requests(&server(location), path);
        let one = found[0].as_ref().expect("everything is known");
        assert_eq!((one.path_and_query.as_str(), one.host.as_str()), (to, host), "{location}");
    }
    let headers = "location / { proxy_set_header Connection \"\"; proxy_set_header X-Real-IP $remote_addr; proxy_set_header X-None $upstream_addr;\n\
                   proxy_set_header Accept-Encoding \"\"; proxy_pass http://app; }";
    let one = &upstream_requests(&server(headers), "/")[0];
    let one = one.as_ref().expect("everything is known");
    assert_eq!((field(one, "X-Real-IP"), field(one, "Accept-Encoding"), one.fields.len()), (Some("127.0.0.1"), Some(""), 2));
    let rewritten = upstream_requests(
        &server("rewrite ^/old/ /new?a=1 last; location /new { proxy_pass http://app; }\nlocation / { rewrite ^/b /new? last; }"),
        "/b?x",
    );
    assert_eq!(rewritten[0].as_ref().map(|one| one.path_and_query.as_str()), Ok("/new"), "a question mark ends the client's own");
    for unknown in [
        "location / { rewrite ^/x(.*)$ /$1 break; proxy_pass http://app; }",
        "rewrite ^/(.*)$ /v2/$1; location / { proxy_pass http://app; }",
        "location / { proxy_pass http://app/?key=$arg_key; }",
        "location / { proxy_pass http://$backend; }",
        "location ~ ^/(.*)$ { proxy_pass http://10.0.0.9/x/$1; }",
    ] {
        assert!(upstream_requests(&server(unknown), "/x")[0].is_err(), "{unknown}");
    }
    assert_eq!(upstream_requests(&server("location / { uwsgi_pass app; }"), "/"), []);
}

#[test]
fn own_answers_are_those_that_anybody_gets() {
    let own = |text: &str| -> Vec<(String, Option<String>)> {
        let http = http(&server(text));
        let selection = http.select(&LocalAddress::Ip([10, 0, 0, 2].into(), 80), "shop.example", "/x").expect("it listens");
        selection.own_answers().into_iter().map(|own| (own.path, own.directory)).collect()
    };
    let files = |path: &str, directory: &str| (path.to_owned(), Some(directory.to_owned()));
    let fixed = |path: &str| (path.to_owned(), None);
    assert_eq!(own(""), [files("/", "/srv/www/")]);
    assert_eq!(own("location / { try_files $uri /app; }\nlocation /app { proxy_pass http://app; }"), [files("/", "/srv/www/")]);
    assert_eq!(own("location / { proxy_pass http://app; }\nlocation /static/ { alias /srv/s/; }"), [files("/static/", "/srv/s/")]);
    assert_eq!(
        own("location / { proxy_pass http://app; }\nlocation = /up { return 204; }\nlocation = /old { return 301 /; }"),
        [fixed("/up")]
    );
    assert_eq!(own("location / { proxy_pass http://app; }\nlocation /assets/ { }"), [files("/assets/", "/srv/www/assets/")]);
    let nested = "location / { proxy_pass http://app; }\nlocation /a/ { alias /srv/b/; location /a/c/ { } }";
    assert_eq!(own(nested), [files("/a/", "/srv/b/")], "an alias further out");
    for none in [
        "limit_req zone=a; location / { }",
        "location / { deny all; }",
        "location / { auth_basic closed; }",
        "location / { internal; }",
        "location / { if ($args) { return 403; } }",
        "if ($args) { return 403; } location / { }",
        "location / { return 301 /x; }",
        "location / { try_files /maintenance.html $uri; }",
        "location / { root $base; }",
        "location = / { }\nlocation / { proxy_pass http://app; }",
        "location / { }\nlocation ~ \\.[a-z0-9]+$ { proxy_pass http://app; }",
        "return 301 https://x; location / { }",
    ] {
        assert_eq!(own(none), [], "{none}");
    }
}
