//! `--bisect` with real servers on loopback: nginx alone, php-fpm without it, and the whole explained by them.
//!
//! Live: nginx and php-fpm under load.

use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::Command;

use serde_json::Value;

use crate::harness::{Chokepoint, Running, fits, free_address, repository, wait_until};

/// Servers that end with the test.
struct Servers {
    _php_fpm: Running,
    _nginx: Running,
}

impl Servers {
    /// nginx at this port in front of two php-fpm workers at a unix socket; nothing if one of them is not installed.
    fn start(chokepoint: &Chokepoint, port: u16, scheme: &str) -> Option<Self> {
        let ssl = match scheme == "https" {
            true => {
                let [certificate, key] = ["tls.crt", "tls.key"].map(|name| repository("crates/lab/data").join(name));
                format!(" ssl;\nssl_certificate {};\nssl_certificate_key {}", certificate.display(), key.display())
            }
            false => String::new(),
        };
        let directory = chokepoint.dir.path().display();
        let is_root = rustix::process::geteuid().is_root();
        let user = |text: &str| if is_root { text.to_owned() } else { String::new() };
        std::fs::create_dir_all(chokepoint.file("www/static")).unwrap();
        chokepoint.write("www/index.php", b"<?php usleep(5000); echo $_SERVER['GREETING'] ?? 'none';");
        chokepoint.write("www/static/a.css", b"body { color: black }");
        let pool = format!(
            "[global]\ndaemonize = no\nerror_log = {directory}/php.log\n[www]\n{}listen = {directory}/php.sock\nlisten.mode = 0666\n\
             pm = static\npm.max_children = 2\n",
            user("user = nobody\ngroup = nogroup\n")
        );
        let nginx = format!(
            "{}daemon off;\npid {directory}/nginx.pid;\nerror_log {directory}/nginx.log;\nevents {{ worker_connections 512; }}\nhttp {{\n\
             access_log off;\nclient_body_temp_path {directory}/b;\nproxy_temp_path {directory}/p;\nfastcgi_temp_path {directory}/f;\n\
             uwsgi_temp_path {directory}/u;\nscgi_temp_path {directory}/s;\nserver {{\nlisten 127.0.0.1:{port}{ssl};\nroot {directory}/www;\n\
             location /static/ {{ }}\nlocation / {{ try_files $uri /index.php?$args; }}\nlocation = /index.php {{\n\
             fastcgi_pass unix:{directory}/php.sock;\nfastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;\n\
             fastcgi_param REQUEST_METHOD $request_method;\nfastcgi_param GREETING hello;\n}}\n}}\n}}\n",
            user("user nobody nogroup;\n")
        );
        let (pool, nginx) = (chokepoint.write("php.conf", pool.as_bytes()), chokepoint.write("nginx.conf", nginx.as_bytes()));
        let _php_fpm = Running::start(Command::new("php-fpm8.2").args(["-n", "-y", &pool]))?;
        let start_nginx = |program: &&str| Running::start(Command::new(program).args(["-c", &nginx]));
        let _nginx = ["/usr/sbin/nginx", "nginx"].iter().find_map(start_nginx)?;
        wait_until("the servers do not listen", || {
            TcpStream::connect(("127.0.0.1", port)).is_ok() && UnixStream::connect(chokepoint.file("php.sock")).is_ok()
        });
        Some(Self { _php_fpm, _nginx })
    }
}

fn part<'a>(report: &'a Value, kind: &str) -> &'a Value {
    let parts = report["bisect"]["parts"].as_array().unwrap();
    parts.iter().find(|part| part["kind"] == kind).unwrap_or_else(|| panic!("{report}"))
}

#[test]
fn a_pool_that_is_slow_by_itself_explains_the_whole_live_and_in_a_replay() {
    let chokepoint = Chokepoint::new();
    let port = free_address().port();
    let Some(_servers) = Servers::start(&chokepoint, port, "http") else {
        println!("skipped: nginx or php-fpm8.2 is not installed");
        return;
    };
    let recording = chokepoint.path("bisect.rec");
    let url = format!("http://127.0.0.1:{port}/page?x=1");
    let live = chokepoint
        .run(&["diagnose", "-c", "8", "-z", "2s", "-t", "20s", "--bisect", "--json", "--redact", "none", "--record", &recording, &url]);
    let report = fits(&live.stdout, "diagnosis-1.json");
    let (own, direct) = (part(&report, "own"), part(&report, "direct"));
    assert_eq!(own["url"], format!("http://127.0.0.1:{port}/static/a.css"), "{report}");
    let script = chokepoint.file("www/index.php");
    let socket = chokepoint.file("php.sock");
    assert_eq!(direct["url"], format!("fcgi+unix:{}:{}?x=1", socket.display(), script.display()), "{report}");
    let goodput = |value: &Value| value["load"]["goodput_rps"].as_f64().unwrap_or_default();
    // Two workers that sleep for 5 ms give at most 400 requests a second, however many nginx could pass on.
    assert!(goodput(direct) > 0.0 && goodput(direct) < 410.0 && goodput(own) > 2.0 * goodput(direct), "{report}");
    assert_eq!((&report["bisect"]["explained_by"], &report["bisect"]["tier"]), (&"tier".into(), &"php-fpm".into()), "{report}");
    let replay = chokepoint.run(&["diagnose", "--json", "--replay", &recording]);
    assert_eq!(replay.stdout, live.stdout, "{}", replay.stderr);
    let text = chokepoint.run(&["diagnose", "--replay", &recording]).stdout;
    assert!(text.contains("Each tier on its own") && text.contains("requested directly"), "{text}");
}

/// The certificate is self-signed and for the name "lab".
#[test]
fn over_tls_the_certificate_is_verified_and_the_front_alone_is_asked_over_tls() {
    let chokepoint = Chokepoint::new();
    let port = free_address().port();
    let Some(_servers) = Servers::start(&chokepoint, port, "https") else {
        println!("skipped: nginx or php-fpm8.2 is not installed");
        return;
    };
    let certificate = repository("crates/lab/data/tls.crt");
    let (url, resolve) = (format!("https://lab:{port}/page"), format!("lab:{port}:127.0.0.1"));
    let load = ["diagnose", "-c", "4", "-z", "1s", "--json", "--resolve", &resolve];
    let diagnose = |more: &[&str]| chokepoint.run(&[&load[..], more].concat());
    let untrusted = diagnose(&[&url]);
    let report = fits(&untrusted.stdout, "diagnosis-1.json");
    assert_eq!((untrusted.status, &report["load"]["tls"]["failure"]), (Some(1), &"unknown-authority".into()), "{report}");
    assert!(report["summary"].as_str().unwrap().contains("--cacert FILE"), "{report}");
    let recording = chokepoint.path("tls.rec");
    let trusted = diagnose(&["--cacert", certificate.to_str().unwrap(), "--bisect", "--redact", "none", "--record", &recording, &url]);
    let report = fits(&trusted.stdout, "diagnosis-1.json");
    let (own, direct) = (part(&report, "own"), part(&report, "direct"));
    assert_eq!(own["url"], format!("https://lab:{port}/static/a.css"), "{report}");
    assert!(direct["url"].as_str().unwrap().starts_with("fcgi+unix:"), "{report}");
    let good = |value: &Value| value["load"]["goodput_rps"].as_f64().unwrap_or_default();
    assert!(good(&report) > 0.0 && good(own) > good(direct) && good(direct) > 0.0, "{report}");
    assert!(report["load"]["tls"]["handshakes"]["full"].as_u64().unwrap() > 0, "{report}");
    let replay = chokepoint.run(&["diagnose", "--json", "--replay", &recording]);
    assert_eq!(replay.stdout, trusted.stdout, "{}", replay.stderr);
}

#[test]
fn bisect_without_a_load_is_refused() {
    let chokepoint = Chokepoint::new();
    for args in [&["diagnose", "--bisect", "http://127.0.0.1:9/"][..], &["diagnose", "--bisect", "--fix", "-c", "2", "http://127.0.0.1:9/"]]
    {
        let ran = chokepoint.run(args);
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
        assert!(ran.stderr.contains("--bisect"), "{}", ran.stderr);
    }
}
