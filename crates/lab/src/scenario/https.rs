//! The same scenario over TLS: its nginx speaks TLS on the port that it has, and the load asks for https there. Nothing else changes, so that what is
//! expected of the scenario is expected of it over TLS as well.

use super::document::{FileSpec, ProgramKind, Scenario};
use super::error::{self, ScenarioError};
use super::locate::Path;
use super::units::FileMode;
use super::validate;

/// A self-signed certificate, valid for a hundred years, and its key (P-256, which most servers have). The key is the lab's alone and not secret.
const CERTIFICATE: &str = include_str!("../../data/tls.crt");
const KEY: &str = include_str!("../../data/tls.key");
/// Their names below the run directory.
const CERTIFICATE_FILE: &str = "lab-tls.crt";
const KEY_FILE: &str = "lab-tls.key";
/// Only root reads the key, as servers expect.
const KEY_MODE: FileMode = FileMode(0o600);

impl Scenario {
    /// This scenario over TLS. A scenario whose URL is https already stays as it is.
    ///
    /// # Errors
    /// [`ScenarioError::Invalid`] where the load's URL is not http, or no nginx listens for it.
    pub fn over_https(mut self) -> Result<Scenario, ScenarioError> {
        if self.load.url.starts_with("https://") {
            return Ok(self);
        }
        let problems = match self.rewrite() {
            Ok(()) => validate::validate(&self),
            Err(problem) => vec![problem],
        };
        if problems.is_empty() { Ok(self) } else { Err(error::from_problems(problems, &self.text, &self.origin)) }
    }

    fn rewrite(&mut self) -> Result<(), (Path, String)> {
        let wrong = |key: &str, why: &str| (Path::root().key(key), why.to_owned());
        let rest = self.load.url.strip_prefix("http://").ok_or_else(|| wrong("load", "only a load of http can be one of https"))?;
        let url = with_port(rest);
        // Servers start from the back to the front: the last nginx is the one that clients reach.
        let front = self.servers.iter_mut().rfind(|server| server.kind == ProgramKind::Nginx);
        let front = front.ok_or_else(|| wrong("server", "only nginx can be told to speak TLS, and there is none"))?;
        let config = front.config.as_deref().and_then(speaking_tls);
        front.config =
            Some(config.ok_or_else(|| wrong("server", "the last nginx has no `http` block that listens on a port for all addresses"))?);
        // A condition that is an HTTP request would get no answer from it.
        if let Some(ready) = front.ready.as_mut().filter(|ready| ready.http.is_some()) {
            (ready.http, ready.listening) = (None, Some(true));
        }
        self.load.url = url;
        let file = |path: &str, content: &str, mode| FileSpec {
            path: path.to_owned(),
            content: Some(content.to_owned()),
            size: None,
            mode,
            user: None,
        };
        self.files.extend([file(CERTIFICATE_FILE, CERTIFICATE, None), file(KEY_FILE, KEY, Some(KEY_MODE))]);
        Ok(())
    }
}

/// The https URL with the port that the http URL stood for: firewall rules and listeners of the scenario name it.
fn with_port(rest: &str) -> String {
    let end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    // A colon within brackets or within a placeholder is none before a port.
    let after_host = authority.rsplit([']', '}']).next().unwrap_or(authority);
    match after_host.contains(':') {
        true => format!("https://{authority}{path}"),
        false => format!("https://{authority}:80{path}"),
    }
}

/// The configuration with TLS on what it listens on, the loopback aside: servers behind it listen there. `None` if there is nothing of that.
fn speaking_tls(config: &str) -> Option<String> {
    let mut out = String::with_capacity(config.len() + 200);
    let (mut blocks, mut listens) = (0, 0);
    for line in config.lines() {
        let words = line.trim_start();
        let is_listen = words.strip_prefix("listen ").is_some_and(|place| !place.starts_with("127.") && !place.starts_with("unix:"));
        match line.find(';').filter(|_| is_listen) {
            Some(end) => {
                out.push_str(&format!("{} ssl{}\n", &line[..end], &line[end..]));
                listens += 1;
            }
            None => out.push_str(&format!("{line}\n")),
        }
        if words.starts_with("http {") {
            let indent = &line[..line.len() - words.len()];
            out.push_str(&format!("{indent}    ssl_certificate {{run}}/{CERTIFICATE_FILE};\n"));
            out.push_str(&format!("{indent}    ssl_certificate_key {{run}}/{KEY_FILE};\n"));
            blocks += 1;
        }
    }
    (blocks == 1 && listens > 0).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_keeps_its_port() {
        for (rest, expected) in [
            ("10.0.0.2/", "https://10.0.0.2:80/"),
            ("10.0.0.2:8080/a:b", "https://10.0.0.2:8080/a:b"),
            ("[fd78::2]", "https://[fd78::2]:80"),
            ("[fd78::2]:81/", "https://[fd78::2]:81/"),
            ("{address:server}/", "https://{address:server}:80/"),
        ] {
            assert_eq!(with_port(rest), expected);
        }
    }

    #[test]
    fn only_what_clients_reach_speaks_tls() {
        let config =
            "http {\n    server {\n        listen 80 backlog=10;\n        listen [::]:80;\n        listen 127.0.0.1:8080;\n    }\n}\n";
        let found = speaking_tls(config).unwrap();
        assert!(found.contains("listen 80 backlog=10 ssl;\n") && found.contains("listen [::]:80 ssl;\n"), "{found}");
        assert!(found.contains("listen 127.0.0.1:8080;\n") && found.contains("    ssl_certificate {run}/lab-tls.crt;\n"), "{found}");
        assert_eq!(speaking_tls("http {\n    listen 127.0.0.1:80;\n}\n"), None);
        assert_eq!(speaking_tls("stream {\n    listen 80;\n}\n"), None);
    }

    #[test]
    fn most_built_in_scenarios_can_be_run_over_tls() {
        let (mut can, mut cannot) = (0, 0);
        for scenario in Scenario::builtin().unwrap() {
            match scenario.over_https() {
                Ok(scenario) => {
                    assert!(scenario.load.url.starts_with("https://"));
                    can += 1;
                }
                Err(_) => cannot += 1,
            }
        }
        assert!(can >= 60 && can > 3 * cannot, "{can} can and {cannot} cannot");
    }
}
