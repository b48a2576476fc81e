//! Secrets of a user and of a server are in no recording and in no report.
//!
//! Live beside others: the tests check the contents of reports and recordings.

use std::io::Read;
use std::net::TcpStream;
use std::process::Command;

use flate2::read::GzDecoder;

use crate::harness::{Chokepoint, Ran, Running, Server, free_address, is_root, wait_until};

/// The unpacked entries of a recording.
fn unpacked(file: &str) -> String {
    let bytes = std::fs::read(file).unwrap();
    let body = bytes.strip_prefix(b"chokepoint-recording 1\n".as_slice()).expect("a recording");
    let mut text = Vec::new();
    GzDecoder::new(body).read_to_end(&mut text).unwrap();
    String::from_utf8_lossy(&text).into_owned()
}

/// Everything that a diagnosis under load prints and writes, and its recording.
struct Outputs {
    ran: Ran,
    files: Vec<(String, String)>,
    recording: String,
}

fn diagnosed(chokepoint: &Chokepoint, json: bool, more: &[&str]) -> Outputs {
    let (recording, html, markdown) = (chokepoint.path("a.rec"), chokepoint.path("a.html"), chokepoint.path("a.md"));
    let mut args = vec!["diagnose", "-c", "2", "-z", "1s", "-t", "20s", "--record", &recording, "--html", &html, "--markdown", &markdown];
    args.extend(json.then_some("--json"));
    args.extend(more);
    let ran = chokepoint.run(&args);
    assert!(ran.status.is_some_and(|status| status <= 1), "{}", ran.stderr);
    let files = [&html, &markdown].map(|file| (file.clone(), std::fs::read_to_string(file).unwrap()));
    Outputs { recording: unpacked(&recording), files: files.into(), ran }
}

impl Outputs {
    fn assert_absent(&self, secret: &str) {
        let printed = [("stdout", &self.ran.stdout), ("stderr", &self.ran.stderr), ("the recording", &self.recording)];
        let files = self.files.iter().map(|(name, text)| (name.as_str(), text));
        for (place, text) in printed.into_iter().chain(files) {
            assert!(!text.contains(secret), "{secret} is in {place}:\n{}", around(text, secret));
        }
    }
}

fn around<'t>(text: &'t str, secret: &str) -> String {
    let parts: Vec<&'t str> = text.splitn(2, secret).collect();
    let before: String = parts[0].chars().rev().take(200).collect::<Vec<_>>().into_iter().rev().collect();
    format!("...{before}{secret}...")
}

#[test]
fn secrets_in_a_request_are_neither_recorded_nor_reported() {
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    let url = format!("{}path?token=QuerySecret01&plain", server.url());
    for json in [false, true] {
        let sent = ["-H", "X-Vault-Token: HeaderSecret02", "-H", "Cookie: a=CookieSecret03", &url];
        let outputs = diagnosed(&chokepoint, json, &sent);
        for secret in ["QuerySecret01", "HeaderSecret02", "CookieSecret03"] {
            outputs.assert_absent(secret);
        }
        assert!(outputs.ran.stdout.contains("/path?token=…&plain"), "{}", outputs.ran.stdout);
        assert!(outputs.files.iter().all(|(_, text)| text.contains("token=…")), "the name of the parameter is kept");
        let line = outputs.ran.stderr.lines().find(|line| line.starts_with("recording ")).expect("the note on the recording");
        assert!(
            line.contains("kB): kept ") && line.contains(" readings") && line.contains("hid ") && line.contains("query value"),
            "{line}"
        );
        let recording = chokepoint.file("a.rec");
        let replay = ["diagnose", "--replay", recording.to_str().unwrap(), "--json"];
        let replayed = chokepoint.run(&replay[..if json { 4 } else { 3 }]);
        assert_eq!(replayed.stdout, outputs.ran.stdout, "the replay prints the same");
    }
    let posted = ["-m", "POST", "-d", "BodySecret04", "--yes", &url];
    diagnosed(&chokepoint, true, &posted).assert_absent("BodySecret04");
    let bench = chokepoint.run(&["bench", "-n", "3", &url]);
    assert!(bench.stdout.contains("token=…") && !bench.stdout.contains("QuerySecret01"), "{}", bench.stdout);
    let wrong = chokepoint.run(&["bench", "-n", "3", "http:///?token=QuerySecret01"]);
    assert!(wrong.status == Some(2) && !wrong.stderr.contains("QuerySecret01"), "{}", wrong.stderr);
}

/// A configuration of nginx full of secrets.
const CONFIG: &str = r#"
# CommentSecret01
error_log DIR/error.log; pid DIR/pid; env NAME=EnvSecret02;
events { worker_connections 64; }
http {
    access_log off;
    log_format x 'FormatSecret03 $status';
    map $http_x $allowed { "MapSecret04" 1; default MapSecret05; }
    proxy_temp_path DIR/p; client_body_temp_path DIR/c; fastcgi_temp_path DIR/f; uwsgi_temp_path DIR/u; scgi_temp_path DIR/s;
    upstream back { server 127.0.0.1:BACK; keepalive 4; }
    server {
        listen 127.0.0.1:PORT;
        set $secret "SetSecret06";
        location / {
            proxy_pass http://back/?key=PassSecret07;
            proxy_set_header X-Vault-Token HeaderSecret08;
            proxy_set_header Connection "";
            proxy_http_version 1.1;
            if ($http_y = "IfSecret09") { return 403 "ReturnSecret10"; }
        }
        location /f { fastcgi_param DB_PASSWORD ParamSecret11; fastcgi_pass 127.0.0.1:9; }
    }
}
"#;

#[test]
fn secrets_of_a_server_are_not_recorded() {
    if !is_root() {
        return;
    }
    let (chokepoint, back) = (Chokepoint::new(), Server::start("200 OK"));
    let port = free_address().port();
    let dir = chokepoint.dir.path().to_str().unwrap().to_owned();
    let config = CONFIG.replace("DIR", &dir).replace("PORT", &port.to_string()).replace("BACK", &back.address.port().to_string());
    let file = chokepoint.write("nginx.conf", config.as_bytes());
    let arguments = ["-c", &file, "-p", &dir, "-g", "daemon off; env OTHER=LineSecret12;"];
    let Some(_nginx) = Running::start(Command::new("nginx").args(arguments)) else {
        println!("skipped: nginx is not installed");
        return;
    };
    wait_until("nginx does not listen", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    let url = format!("http://127.0.0.1:{port}/");
    let outputs = diagnosed(&chokepoint, true, &[&url]);
    for line in CONFIG
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| word.contains("Secret") && word.ends_with(|c: char| c.is_ascii_digit()))
    {
        outputs.assert_absent(line);
    }
    outputs.assert_absent("LineSecret12");
    for kept in [
        "proxy_set_header hidden hidden;",
        "proxy_pass http://back/?key=",
        &format!("listen 127.0.0.1:{port};"),
        "fastcgi_param hidden hidden;",
    ] {
        assert!(outputs.recording.contains(kept), "{kept} is kept");
    }
    let line = outputs.ran.stderr.lines().find(|line| line.starts_with("recording ")).expect("the note on the recording");
    let kinds = ["1 configuration file with ", " directives", "values of directives", "1 comment", "command-line words"];
    assert!(kinds.iter().all(|kind| line.contains(kind)), "{line}");
    let replayed = chokepoint.run(&["diagnose", "--json", "--replay", chokepoint.file("a.rec").to_str().unwrap()]);
    assert_eq!(replayed.stdout, outputs.ran.stdout, "the replay prints the same");
}
