//! Finds secrets in any text: user information and query values in URLs, header values, settings whose name marks them as
//! secret, and passwords in command lines.

mod command;

use super::{Hidden, REDACTED};

/// A part of a query without "=" of at least this length counts as a secret: no name is that long.
const BARE_SECRET_MIN: usize = 20;
/// Longest name that is examined.
const NAME_MAX: usize = 128;

/// Headers whose whole value is secret, lower case with dashes (RFC 9110, RFC 6265, and what the large clouds and proxies use).
const HEADERS: &[&str] = &[
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "cookie2",
    "x-api-key",
    "api-key",
    "apikey",
    "x-auth-key",
    "x-amz-signature",
    "x-amz-credential",
    "x-goog-signature",
    "ocp-apim-subscription-key",
    "authentication",
];

/// Parts of a name that make its value secret, in lower case with "_" for "-".
const SECRET_WORDS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "api_key",
    "access_key",
    "private_key",
    "credential",
    "mysql_pwd",
    "requirepass",
    "masterauth",
];

/// Ends of a name whose value is not the secret, but its location or its treatment.
const NOT_SECRET_ENDS: &[&str] = &["file", "path", "dir", "tokens", "_length", "_bits"];

/// First words of a header's value. What follows them belongs to the value.
const SCHEMES: &[&str] = &["basic", "bearer", "digest", "negotiate", "token", "ntlm"];

/// Redacts every secret in the text, and counts those that were not redacted before.
pub(super) fn rewrite(text: &[u8], hidden: &mut Hidden) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut command = command::Command::default();
    let mut at = 0;
    while at < text.len() {
        command.step(text, at);
        let value = if is_name_start(text, at) { named(text, at).or_else(|| command.value(text, at)) } else { None };
        if let Some(value) = value.or_else(|| user_information(text, at)) {
            out.extend_from_slice(&text[at..value.start]);
            hidden.secrets += usize::from(&text[value.start..value.end] != REDACTED);
            out.extend_from_slice(REDACTED);
            at = value.end;
        } else if text[at] == b'?' {
            at = query(text, at, &mut out, hidden);
        } else {
            out.push(text[at]);
            at += 1;
        }
    }
    out
}

/// True for a name whose value is secret: of a header, a setting or an option.
pub(super) fn is_secret_name(name: &[u8]) -> bool {
    name.iter().all(|byte| is_name(*byte)) && (is_header(name) || is_secret_setting(name))
}

/// The range of a secret after the examined position.
struct Value {
    start: usize,
    end: usize,
}

impl Value {
    fn new(start: usize, end: usize) -> Option<Self> {
        (end > start).then_some(Self { start, end })
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

fn is_name_start(text: &[u8], at: usize) -> bool {
    is_name(text[at]) && (at == 0 || !is_name(text[at - 1]))
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Ends an argument or a line, whatever it contains.
fn is_end(byte: u8) -> bool {
    matches!(byte, 0 | b'\n' | b'\r')
}

fn is_quote(byte: u8) -> bool {
    byte == b'"' || byte == b'\''
}

fn name_length(text: &[u8]) -> usize {
    text.iter().take_while(|byte| is_name(**byte)).count()
}

/// Lower case with dashes, without the "HTTP_" of an environment variable.
fn is_header(name: &[u8]) -> bool {
    let name: Vec<u8> = name.iter().map(|byte| if *byte == b'_' { b'-' } else { byte.to_ascii_lowercase() }).collect();
    let name = name.strip_prefix(b"http-").unwrap_or(&name);
    HEADERS.iter().any(|header| header.as_bytes() == name)
}

/// Headers whose values contain blanks. As variables too ("HTTP_COOKIE=a=b; c=d") they extend to the argument's end.
fn is_line_header(name: &[u8]) -> bool {
    let lower = name.to_ascii_lowercase();
    lower.ends_with(b"cookie") || lower.ends_with(b"authorization")
}

fn is_secret_setting(name: &[u8]) -> bool {
    if name.len() > NAME_MAX {
        return false;
    }
    let lower: String = name.iter().map(|byte| if *byte == b'-' { '_' } else { char::from(byte.to_ascii_lowercase()) }).collect();
    SECRET_WORDS.iter().any(|word| lower.contains(word)) && !NOT_SECRET_ENDS.iter().any(|end| lower.ends_with(end))
}

/// The value of the secret name that begins here.
fn named(text: &[u8], at: usize) -> Option<Value> {
    let length = name_length(text.get(at..)?.get(..NAME_MAX + 1).unwrap_or(&text[at..]));
    let name = &text[at..at + length];
    let header = is_header(name.strip_prefix(b"--").unwrap_or(name));
    if length > NAME_MAX || !header && !is_secret_setting(name) {
        return None;
    }
    let outer = at.checked_sub(1).map(|before| text[before]).filter(|byte| is_quote(*byte));
    let mut next = at + length;
    let slashes = backslashes(text, next);
    let closed = outer.is_some() && text.get(next + slashes) == outer.as_ref();
    next += if closed { slashes + 1 } else { 0 };
    let quote = if closed { None } else { outer };
    let blanks = blanks(text, next);
    match text.get(next + blanks) {
        Some(b'=') => value(text, next + blanks + 1, quote, header && is_line_header(name)),
        Some(b':') if !text[next + blanks..].starts_with(b"::") && !text[next + blanks..].starts_with(b"://") => {
            value(text, next + blanks + 1, quote, true)
        }
        Some(byte) if name.starts_with(b"-") && (blanks > 0 || *byte == 0) => {
            let start = next + blanks + usize::from(*byte == 0);
            (text.get(start) != Some(&b'-')).then(|| value(text, start, quote, false)).flatten()
        }
        // A header in a configuration: `proxy_set_header Authorization "Basic ..."`.
        Some(byte) if header && blanks > 0 && (is_quote(*byte) || scheme_length(&text[next + blanks..]) > 0) => {
            value(text, next + blanks, quote, false)
        }
        _ => None,
    }
}

/// The number of backslashes before what follows: quotes that were escaped once or several times.
fn backslashes(text: &[u8], at: usize) -> usize {
    text[at..].iter().take(8).take_while(|byte| **byte == b'\\').count()
}

fn blanks(text: &[u8], at: usize) -> usize {
    text[at..].iter().take(64).take_while(|byte| is_blank(**byte)).count()
}

/// The length of "Bearer " or a similar word, including the blank.
fn scheme_length(text: &[u8]) -> usize {
    let matching = |scheme: &&&str| {
        text.get(..scheme.len()).is_some_and(|head| head.eq_ignore_ascii_case(scheme.as_bytes()))
            && text.get(scheme.len()).is_some_and(|byte| is_blank(*byte))
    };
    SCHEMES.iter().find(matching).map_or(0, |scheme| scheme.len() + 1)
}

/// The value that begins at `at`, without blanks and an opening quote. With its own quote it extends to the closing one. If it fills a line
/// or an argument, it extends to the quote around its name or any quote, or to the line's end. Otherwise it ends at a blank or separator.
fn value(text: &[u8], at: usize, outer: Option<u8>, whole: bool) -> Option<Value> {
    let start = at + blanks(text, at);
    let slashes = backslashes(text, start);
    let own = text.get(start + slashes).copied().filter(|byte| is_quote(*byte));
    if let Some(quote) = own.filter(|quote| Some(*quote) != outer) {
        let start = start + slashes + 1;
        return Value::new(start, start + quoted_length(&text[start..], quote, slashes > 0));
    }
    let start = if outer.is_some() || whole { start } else { at + blanks(text, at) };
    let scheme = scheme_length(&text[start..]);
    let stop = |byte: u8| {
        is_end(byte)
            || (is_quote(byte) && outer.is_none_or(|outer| outer == byte))
            || (!whole && (is_blank(byte) || b"&;,<>|".contains(&byte)))
    };
    let length = scheme + text[start + scheme..].iter().take_while(|byte| !stop(**byte)).count();
    let mut end = start + length;
    // A backslash before the quote belongs to the quote. Blanks at a line's end belong to the line.
    while end > start && (is_blank(text[end - 1]) || (text[end - 1] == b'\\' && text.get(end).is_some_and(|byte| is_quote(*byte)))) {
        end -= 1;
    }
    Value::new(start, end)
}

/// The length up to the closing quote, or to the argument's end if there is none.
fn quoted_length(text: &[u8], quote: u8, escaped: bool) -> usize {
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'\\' if escaped && text.get(at + backslashes(text, at)) == Some(&quote) => return at,
            b'\\' if !escaped && text.get(at + 1).is_some_and(|byte| !is_end(*byte)) => at += 2,
            byte if byte == quote || is_end(byte) => return at,
            _ => at += 1,
        }
    }
    at.min(text.len())
}

/// "user:password" between "://" and "@".
fn user_information(text: &[u8], at: usize) -> Option<Value> {
    const AUTHORITY_MAX: usize = 4096;
    let authority = text[at..].strip_prefix(b"://")?;
    let length = authority
        .iter()
        .take(AUTHORITY_MAX)
        .take_while(|byte| (byte.is_ascii_graphic() || !byte.is_ascii()) && !b"/?#\"'<>\\`".contains(byte));
    let authority = &authority[..length.count()];
    let user = authority.iter().rposition(|byte| *byte == b'@')?;
    Value::new(at + 3, at + 3 + user)
}

/// Redacts the query that begins with this "?". Returns its end.
fn query(text: &[u8], at: usize, out: &mut Vec<u8>, hidden: &mut Hidden) -> usize {
    let is_stop = |byte: u8| byte <= b' ' || byte == 0x7f || b"\"'<>`|".contains(&byte);
    let length = text[at + 1..].iter().take_while(|byte| !is_stop(**byte)).count();
    let mut end = at + 1 + length;
    if text.get(end).is_some_and(|byte| is_quote(*byte)) {
        end -= text[at + 1..end].iter().rev().take_while(|byte| **byte == b'\\').count();
    }
    let query = &text[at + 1..end];
    // Punctuation after a URL in a sentence or a list does not belong to it.
    let tail = query.iter().rev().take_while(|byte| b",.)]};:".contains(byte)).count();
    let tail = if query[..query.len() - tail].ends_with(b"[redacted") { tail.saturating_sub(1) } else { tail };
    let (query, tail) = query.split_at(query.len() - tail);

    out.push(b'?');
    for part in query.split_inclusive(|byte| b"&;#?".contains(byte)) {
        let separated = part.last().is_some_and(|byte| b"&;#?".contains(byte));
        let (part, separator) = part.split_at(part.len() - usize::from(separated));
        match part.iter().position(|byte| *byte == b'=') {
            Some(equals) if equals + 1 < part.len() => {
                hidden.queries += usize::from(&part[equals + 1..] != REDACTED);
                out.extend_from_slice(&part[..=equals]);
                out.extend_from_slice(REDACTED);
            }
            None if part.len() >= BARE_SECRET_MIN => {
                hidden.queries += 1;
                out.extend_from_slice(REDACTED);
            }
            _ => out.extend_from_slice(part),
        }
        out.extend_from_slice(separator);
    }
    out.extend_from_slice(tail);
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(text: &str) -> String {
        String::from_utf8(rewrite(text.as_bytes(), &mut Hidden::default())).unwrap()
    }

    #[test]
    fn secrets_are_redacted() {
        for (from, to) in [
            ("http://u:p@host/", "http://[redacted]@host/"),
            ("redis://:pw@h:6379,amqp://a@h", "redis://[redacted]@h:6379,amqp://[redacted]@h"),
            ("GET /x?a=b&c=&d;e=f#g=h HTTP/1.1", "GET /x?a=[redacted]&c=&d;e=[redacted]#g=[redacted] HTTP/1.1"),
            (
                "\"GET /?q=1\" 200, see http://h/?q=1, or (/?q=2).",
                "\"GET /?q=[redacted]\" 200, see http://h/?q=[redacted], or (/?q=[redacted]).",
            ),
            ("/reset?8f7a9b8f7a9b8f7a9b8f7a9b", "/reset?[redacted]"),
            ("Authorization: Bearer abc.def\r\nHost: x", "Authorization: [redacted]\r\nHost: x"),
            ("cookie: a=b; c=d\nX-Api-Key:k", "cookie: [redacted]\nX-Api-Key:[redacted]"),
            ("wrk\0-H\0Cookie: a=b\0http://h/", "wrk\0-H\0Cookie: [redacted]\0http://h/"),
            ("wrk -H 'Authorization: Basic Zm9v' -H \"Cookie: s='1'\" u", "wrk -H 'Authorization: [redacted]' -H \"Cookie: [redacted]\" u"),
            ("proxy_set_header Authorization \"Basic Zm9v\";", "proxy_set_header Authorization \"[redacted]\";"),
            ("proxy_set_header Authorization Bearer\\ x;", "proxy_set_header Authorization Bearer\\ x;"),
            ("HTTP_AUTHORIZATION=Basic Zm9v\0HTTP_COOKIE=a b\0A=1", "HTTP_AUTHORIZATION=[redacted]\0HTTP_COOKIE=[redacted]\0A=1"),
            ("--password=x --db-password y --passwd\0z\0-v", "--password=[redacted] --db-password [redacted] --passwd\0[redacted]\0-v"),
            ("DB_PASSWORD=a b PGPASSWORD='c d' MYSQL_PWD=e", "DB_PASSWORD=[redacted] b PGPASSWORD='[redacted]' MYSQL_PWD=[redacted]"),
            ("api_key=1,client_secret: two words\nx", "api_key=[redacted],client_secret: [redacted]\nx"),
            (r#"{"password":"a\"b","n":1"#, r#"{"password":"[redacted]","n":1"#),
            (r#"x {\"password\":\"ab\",\"n\":1}"#, r#"x {\"password\":\"[redacted]\",\"n\":1}"#),
            ("aws_secret_access_key = AKIA", "aws_secret_access_key = [redacted]"),
            ("?token=abc&x", "?token=[redacted]&x"),
        ] {
            assert_eq!(hidden(from), to, "{from:?}");
            assert_eq!(hidden(to), to, "twice: {from:?}");
        }
    }

    #[test]
    fn text_without_secrets_stays() {
        for same in [
            "server_tokens off;",
            "--password --verbose",
            "--password-file=/etc/x",
            "TcpExt: TCPFastOpenCookieReqd 0",
            "Cookies and tokens are secret, as passwords are",
            "http://host/a@2x.png",
            "what? yes",
            "secret::module password://x",
            "--token",
            "Authorization",
            "password=",
            "Cookie:",
            "http://@/",
            "?=&;",
            "MemTotal: 1 kB\nSecPageTables: 4 kB",
        ] {
            assert_eq!(hidden(same), same);
        }
    }
}
