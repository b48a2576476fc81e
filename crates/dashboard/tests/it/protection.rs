//! An address that others can reach: TLS, and a token that each request shows.
//!
//! Live: it listens on loopback; openssl makes a certificate.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use chokepoint_dashboard::{Board, Listen, PostError, Protection, Server};

use super::Kept;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
}

/// A certificate for 127.0.0.1, its key, and a token; nothing without openssl.
fn files(directory: &Path) -> Option<Protection> {
    let path = |name: &str| directory.join(name);
    let (certificate, key) = (path("certificate.pem"), path("key.pem"));
    let [certificate_text, key_text] = [&certificate, &key].map(|path| path.to_string_lossy().into_owned());
    #[rustfmt::skip]
    let request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost",
        "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE", "-keyout", &key_text, "-out", &certificate_text];
    run("openssl", &request)?;
    std::fs::write(path("token"), format!("{TOKEN}\n")).unwrap();
    set_mode(&path("token"), 0o600);
    certificate.exists().then(|| Protection { certificate, key, token: path("token") })
}

#[test]
fn a_protected_address_answers_by_tls_and_to_those_with_the_token() {
    let directory = tempfile::tempdir().unwrap();
    let Some(protection) = files(directory.path()) else { return println!("skipped: openssl(1) is missing") };
    let trusted = protection.certificate.to_string_lossy().into_owned();
    let listen = Listen::Tcp("0.0.0.0:0".parse().unwrap());
    let server = Server::start(&listen, Some(&protection), Arc::new(Board::default()), Arc::new(Kept::default())).unwrap();
    let port = server.address().unwrap().port();
    let curl = |scheme: &str, path: &str, more: &[&str]| {
        let url = format!("{scheme}://127.0.0.1:{port}{path}");
        let own =
            ["--silent", "--output", "/dev/null", "--write-out", "%{http_code} %{redirect_url}", "--cacert", &trusted, "--max-time", "20"];
        run("curl", &[&own, more, &[&url]].concat())
    };
    let bearer = format!("Authorization: Bearer {TOKEN}");
    let Some(refused) = curl("https", "/metrics", &[]) else { return println!("skipped: curl(1) is missing") };
    assert_eq!(refused, "401 ");
    assert_eq!(curl("https", "/metrics", &["--header", &bearer]).unwrap(), "200 ");
    assert_eq!(curl("https", "/metrics", &["--header", &format!("{bearer}0")]).unwrap(), "401 ");
    assert_eq!(curl("https", "/metrics", &["--header", &bearer, "--header", "Origin: https://evil.example"]).unwrap(), "403 ");
    assert_eq!(curl("http", "/metrics", &["--header", &bearer]).unwrap(), "000 ", "without TLS nothing is answered");
    // A browser that opens the address with the token keeps it.
    let cookies = directory.path().join("cookies").to_string_lossy().into_owned();
    let opened = curl("https", &format!("/?token={TOKEN}"), &["--cookie-jar", &cookies]).unwrap();
    assert_eq!(opened, format!("303 https://127.0.0.1:{port}/"));
    assert_eq!(curl("https", "/api/v1/now", &["--cookie", &cookies]).unwrap(), "200 ");
    assert_eq!(curl("https", "/?token=wrong", &[]).unwrap(), "401 ");
    let again = curl("https", &format!("/?token={TOKEN}"), &["--cookie", &cookies]).unwrap();
    assert_eq!(again, format!("303 https://127.0.0.1:{port}/"), "the token does not stay in the address");
    // A renewed certificate is taken without a restart; files that cannot be used change nothing.
    let old = directory.path().join("old.pem");
    std::fs::copy(&protection.certificate, &old).unwrap();
    files(directory.path()).unwrap();
    server.renew(&protection).unwrap();
    assert_eq!(curl("https", "/metrics", &["--header", &bearer]).unwrap(), "200 ", "{trusted} is the new one");
    assert_eq!(curl("https", "/metrics", &["--header", &bearer, "--cacert", &old.to_string_lossy()]).unwrap(), "000 ");
    for secret in [&protection.token, &protection.key] {
        set_mode(secret, 0o604);
        let refused = server.renew(&protection).unwrap_err().to_string();
        assert!(refused.contains(&format!("every user of this host can read {}", secret.display())), "{refused}");
        set_mode(secret, 0o640);
        server.renew(&protection).unwrap();
    }
    std::fs::write(&protection.token, "short").unwrap();
    assert!(server.renew(&protection).is_err());
    assert_eq!(curl("https", "/metrics", &["--header", &bearer]).unwrap(), "200 ");
}

#[test]
fn a_document_is_posted_by_tls_to_an_authority_that_is_trusted() {
    let directory = tempfile::tempdir().unwrap();
    let Some(protection) = files(directory.path()) else { return println!("skipped: openssl(1) is missing") };
    let listen = Listen::Tcp("127.0.0.1:0".parse().unwrap());
    let server = Server::start(&listen, Some(&protection), Arc::new(Board::default()), Arc::new(Kept::default())).unwrap();
    let url = format!("https://{}/alerts", server.address().unwrap());
    let unknown = post(&url).unwrap_err().to_string();
    assert!(unknown.contains("certificate"), "{unknown}");
    // The authorities come from the environment, which this process shares with other tests.
    let own = ["--exact", "protection::this_posts_for_another_test", "--nocapture"];
    let mut child = Command::new(std::env::current_exe().unwrap());
    let output = child.args(own).env("POST_TO", &url).env("SSL_CERT_FILE", &protection.certificate).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    // The server here takes no POST: that it says so shows that both sides have spoken TLS.
    assert!(told.contains("it answered with status 405"), "{told}");
}

fn post(url: &str) -> Result<(), PostError> {
    chokepoint_dashboard::post(url, "[]".to_owned(), Duration::from_secs(20))
}

#[test]
fn this_posts_for_another_test() {
    if let Ok(url) = std::env::var("POST_TO") {
        println!("{}", post(&url).unwrap_err());
    }
}
