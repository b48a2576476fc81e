//! `server_name`: selects the server for a host in nginx's order: exact name, longest leading wildcard, longest trailing wildcard, regular expression.

use super::pattern::{Match, Pattern};

/// One name of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerName {
    /// A whole name, in lower case; empty for requests without a Host.
    Exact(String),
    /// `*.example.com`: the part after the star, ".example.com".
    Leading {
        /// With its dot.
        suffix: String,
        /// Written as `.example.com`, which matches the bare domain too.
        bare_too: bool,
    },
    /// `www.example.*`: the part before the star, "www.example.".
    Trailing(String),
    /// `~^www\d+\.`.
    Regex(Pattern),
    /// `$hostname`: the host's own name, which the configuration does not contain.
    Hostname,
}

/// How well a name matches a host. A greater value is better, and regular expressions are tried in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    /// It may match: a regular expression that cannot be evaluated here, or the host's own name.
    Perhaps,
    Regex,
    /// By length.
    Trailing(usize),
    Leading(usize),
    Exact,
}

impl ServerName {
    /// Parses one argument of `server_name`.
    pub(crate) fn parse(text: &str) -> Self {
        let lower = text.to_ascii_lowercase();
        if let Some(pattern) = text.strip_prefix('~') {
            Self::Regex(Pattern::new(pattern, true))
        } else if text == "$hostname" {
            Self::Hostname
        } else if let Some(suffix) = lower.strip_prefix('*').filter(|suffix| suffix.starts_with('.')) {
            Self::Leading { suffix: suffix.to_owned(), bare_too: false }
        } else if lower.starts_with('.') && lower.len() > 1 {
            Self::Leading { suffix: lower, bare_too: true }
        } else if let Some(prefix) = lower.strip_suffix('*').filter(|prefix| prefix.ends_with('.')) {
            Self::Trailing(prefix.to_owned())
        } else {
            Self::Exact(lower)
        }
    }

    /// How this name matches a host in lower case, without port and trailing dot.
    pub(crate) fn fit(&self, host: &str) -> Option<Fit> {
        match self {
            Self::Exact(name) => (name == host).then_some(Fit::Exact),
            Self::Leading { suffix, bare_too } => {
                if *bare_too && suffix.get(1..) == Some(host) {
                    return Some(Fit::Exact);
                }
                (host.len() > suffix.len() && host.ends_with(suffix.as_str())).then_some(Fit::Leading(suffix.len()))
            }
            Self::Trailing(prefix) => {
                (host.len() > prefix.len() && host.starts_with(prefix.as_str())).then_some(Fit::Trailing(prefix.len()))
            }
            Self::Regex(pattern) => match pattern.is_match(host) {
                Match::Yes => Some(Fit::Regex),
                Match::Unknown => Some(Fit::Perhaps),
                Match::No => None,
            },
            Self::Hostname => Some(Fit::Perhaps),
        }
    }
}

/// The host of a `Host` header or URL, normalised as in nginx: no port, no trailing dot, lower case.
pub(crate) fn normalized(host: &str) -> String {
    let bare =
        if host.starts_with('[') { host.find(']').map_or(host, |end| &host[..=end]) } else { host.split(':').next().unwrap_or_default() };
    bare.strip_suffix('.').unwrap_or(bare).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(name: &str, host: &str) -> Option<Fit> {
        ServerName::parse(name).fit(host)
    }

    #[test]
    fn names_match_as_nginx_documents() {
        assert_eq!(fit("example.com", "example.com"), Some(Fit::Exact));
        assert_eq!(fit("Example.COM", "example.com"), Some(Fit::Exact));
        assert_eq!(fit("*.example.com", "a.b.example.com"), Some(Fit::Leading(12)));
        assert_eq!(fit("*.example.com", "example.com"), None);
        assert_eq!(fit(".example.com", "example.com"), Some(Fit::Exact));
        assert_eq!(fit(".example.com", "www.example.com"), Some(Fit::Leading(12)));
        assert_eq!(fit("mail.*", "mail.example.com"), Some(Fit::Trailing(5)));
        assert_eq!(fit("~^www\\d+\\.example\\.com$", "www12.example.com"), Some(Fit::Regex));
        assert_eq!(fit("~^www\\d+\\.example\\.com$", "www.example.com"), None);
        assert_eq!(fit("~^(?!www).*$", "a"), Some(Fit::Perhaps));
        assert_eq!(fit("", ""), Some(Fit::Exact));
        assert_eq!(fit("_", "a"), None);
        assert!(Fit::Exact > Fit::Leading(99) && Fit::Leading(1) > Fit::Trailing(99) && Fit::Trailing(1) > Fit::Regex);
    }

    #[test]
    fn hosts_are_normalized() {
        assert_eq!(normalized("Example.COM:8080"), "example.com");
        assert_eq!(normalized("example.com."), "example.com");
        assert_eq!(normalized("[::1]:80"), "[::1]");
        assert_eq!(normalized(""), "");
    }
}
