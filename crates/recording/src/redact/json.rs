//! Redacts the strings of a JSON document in place. All bytes between them stay, and the document stays valid JSON.

use serde::de::IgnoredAny;

use super::{Level, REDACTED, Redactor, secret};

/// Redacts a document that is an object or an array; `None` for other bytes.
pub(super) fn rewrite(bytes: &[u8], redactor: &mut Redactor) -> Option<Vec<u8>> {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace())?;
    if !matches!(first, b'{' | b'[') || serde_json::from_slice::<IgnoredAny>(bytes).is_err() {
        return None;
    }
    let mut walk = Walk { out: Vec::with_capacity(bytes.len()), open: Vec::new(), redactor };
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'"' {
            let end = string_end(bytes, at);
            walk.string(&bytes[at..end], next_byte(bytes, end) == Some(b':'));
            at = end;
        } else {
            walk.other(bytes[at]);
            at += 1;
        }
    }
    Some(walk.out)
}

/// An open object or array. serde_json limits their depth to 128.
#[derive(Default)]
struct Open {
    /// Its name marks everything in it as secret.
    secret: bool,
    /// The next value is secret: its key says so, or the string before it named a header (`["Authorization", "..."]`).
    next_secret: bool,
    /// The next value is a host name.
    next_host: bool,
}

struct Walk<'a> {
    out: Vec<u8>,
    open: Vec<Open>,
    redactor: &'a mut Redactor,
}

impl Walk<'_> {
    fn other(&mut self, byte: u8) {
        match byte {
            b'{' | b'[' => {
                let secret = self.open.last().is_some_and(|outer| outer.secret || outer.next_secret);
                if let Some(outer) = self.open.last_mut() {
                    outer.next_secret = false;
                }
                self.open.push(Open { secret, ..Open::default() });
            }
            b'}' | b']' => {
                self.open.pop();
            }
            _ => {}
        }
        self.out.push(byte);
    }

    fn string(&mut self, quoted: &[u8], key: bool) {
        let Ok(text) = serde_json::from_slice::<String>(quoted) else {
            // A lone surrogate can be skipped but not decoded. The raw text is redacted instead.
            let plain = self.redactor.plain(&quoted[1..quoted.len() - 1]);
            self.out.push(b'"');
            self.out.extend_from_slice(&plain);
            self.out.push(b'"');
            return;
        };
        let Some(open) = self.open.last_mut() else { return };
        let rewritten = if key {
            // {"name": "Authorization", "value": "..."}: the name is the value before this key.
            let name = self.redactor.words(&text);
            // This quotes the messages of failed servers, and no judgement depends on it.
            let is_quoted = text == "error_samples";
            open.next_secret = is_quoted || secret::is_secret_name(name.as_bytes()) || (open.next_secret && text == "value");
            open.next_host = text == "host";
            name
        } else if open.secret || open.next_secret {
            (open.next_secret, open.next_host) = (false, false);
            if !self.redactor.surveying {
                self.redactor.hidden.secrets += usize::from(text.as_bytes() != REDACTED);
            }
            String::from_utf8_lossy(REDACTED).into_owned()
        } else {
            let host = std::mem::take(&mut open.next_host);
            let rewritten = host_name(&text, host, self.redactor).unwrap_or_else(|| self.redactor.words(&text));
            // Decided by the written text, so that a second pass decides the same.
            open.next_secret = secret::is_secret_name(rewritten.as_bytes());
            rewritten
        };
        if rewritten == text {
            self.out.extend_from_slice(quoted);
        } else {
            // A string can always be written as JSON.
            self.out.extend_from_slice(&serde_json::to_vec(&rewritten).unwrap_or_default());
        }
    }
}

fn host_name(text: &str, host: bool, redactor: &mut Redactor) -> Option<String> {
    if !host || redactor.level != Level::All {
        return None;
    }
    redactor.hosts.learn(text.as_bytes()).map(str::to_owned)
}

/// The end of the string that begins here, including its quote.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

fn next_byte(bytes: &[u8], at: usize) -> Option<u8> {
    bytes[at..].iter().find(|byte| !byte.is_ascii_whitespace()).copied()
}
