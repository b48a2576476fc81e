//! URLs for reports, without user information and query values, which may be secrets.

use crate::observation::Request;

/// Replacement of a value.
const ELLIPSIS: &str = "…";
/// A query part without "=" of at least this length counts as a value: names are shorter (recordings use the same limit).
const BARE_VALUE_MIN: usize = 20;

impl Request {
    /// A URL, or a line that contains one, for the report: without user information and query values, unless redaction is off.
    pub(crate) fn shown(&self, text: &str) -> String {
        if self.in_clear { text.to_owned() } else { without_values(text) }
    }
}

/// The text without query values and without user information in URLs: `http://h/?token=x` becomes `http://h/?token=…`. The rest stays. The text may be a URL,
/// a path with its query, or a log line that contains one. A second pass changes nothing.
pub fn without_values(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['?', ':']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let taken = match rest.strip_prefix("://") {
            Some(authority) => user_information(authority, &mut out),
            None if rest.starts_with('?') => query(rest, &mut out),
            None => {
                out.push(':');
                1
            }
        };
        rest = &rest[taken..];
    }
    out.push_str(rest);
    out
}

/// Writes "://" and the replacement of user information. Returns the length of the text consumed.
fn user_information(authority: &str, out: &mut String) -> usize {
    out.push_str("://");
    let end = authority.find(|c: char| c.is_whitespace() || "/?#\"'<>\\`".contains(c)).unwrap_or(authority.len());
    match authority[..end].rfind('@') {
        Some(at) if at > 0 => {
            out.push_str(ELLIPSIS);
            "://".len() + at
        }
        _ => "://".len(),
    }
}

/// Writes the query that begins at the text's "?". Returns its length.
fn query(text: &str, out: &mut String) -> usize {
    let length = text.find(|c: char| c.is_whitespace() || c.is_control() || "\"'<>`|".contains(c)).unwrap_or(text.len());
    for part in text[..length].split_inclusive(['&', ';', '#', '?']) {
        let (part, separator) = match part.chars().next_back() {
            Some('&' | ';' | '#' | '?') => part.split_at(part.len() - 1),
            _ => (part, ""),
        };
        match part.split_once('=') {
            Some((name, value)) if !value.is_empty() => out.extend([name, "=", ELLIPSIS]),
            None if part.len() >= BARE_VALUE_MIN => out.push_str(ELLIPSIS),
            _ => out.push_str(part),
        }
        out.push_str(separator);
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_left_out_and_names_stay() {
        for (from, to) in [
            ("http://h/?token=x", "http://h/?token=…"),
            ("http://u:p@h:81/a?b=c&d&e=", "http://…@h:81/a?b=…&d&e="),
            ("http+unix:/run/a.sock:/x?a=b#c=d", "http+unix:/run/a.sock:/x?a=…#c=…"),
            ("/reset?8f7a9b8f7a9b8f7a9b8f7a9b", "/reset?…"),
            ("request: \"GET /x?k=v HTTP/1.1\", host: \"h\"", "request: \"GET /x?k=… HTTP/1.1\", host: \"h\""),
            ("http://[2001:db8::1]:80/", "http://[2001:db8::1]:80/"),
            ("http://h/a@b", "http://h/a@b"),
            ("why? so: it is", "why? so: it is"),
            ("http://h/?a=[redacted]", "http://h/?a=…"),
        ] {
            assert_eq!(without_values(from), to);
            assert_eq!(without_values(to), to, "twice");
        }
    }

    proptest! {
        #[test]
        fn no_value_is_left(name in "[a-z]{1,8}", value in "[A-Z][A-Za-z0-9%+/=-]{0,30}", user in "[A-Z][A-Z0-9:]{3,20}", path in "[a-z/]{0,10}") {
            let shown = without_values(&format!("http://{user}@h.example/{path}?{name}={value}&{name}={value}"));
            prop_assert_eq!(shown, format!("http://…@h.example/{path}?{name}=…&{name}=…"));
        }

        #[test]
        fn twice_is_once(text in "[a-z?&=;#:/@\"' …é]{0,40}") {
            let once = without_values(&text);
            prop_assert_eq!(without_values(&once), once);
        }
    }
}
