//! How clients may resume TLS sessions (ngx_http_ssl_module): with tickets that they keep, or from a cache in the server.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::nginx::edit::{EditError, Editor, Position};
use crate::nginx::effective::settings::Settings;
use crate::nginx::effective::{Http, Nginx};
use crate::nginx::request::select::Selection;
use crate::{Setting, quantity};

/// The directive of the cache.
const CACHE: &str = "ssl_session_cache";

/// How the sessions of one address and host may be resumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSessions {
    /// `ssl_session_tickets`: with tickets clients keep their sessions themselves.
    pub tickets: Setting<bool>,
    /// `ssl_session_cache` as written; nginx's default "none" stores nothing, like "off".
    pub cache: Setting<String>,
    /// True if some clients present certificates, which are not checked again in a resumed session.
    pub verifies_clients: bool,
    /// True if keys are exchanged on the curves that OpenSSL prefers, which are fast: `ssl_ecdh_curve` names no others.
    pub has_quick_curves: bool,
}

impl Selection<'_> {
    /// How sessions may be resumed here; none if uncertain. Sessions belong to the address's default server, options to the server that the client
    /// names (SSL_set_SSL_CTX(3), ngx_http_ssl_servername). If the two differ, the version of OpenSSL decides which settings hold.
    pub fn tls_sessions(&self, http: &Http) -> Option<TlsSessions> {
        let default = http.servers.get(self.socket.default_server)?;
        let found = read(&default.settings)?;
        let is_quick = |settings: &Settings| settings.word("ssl_ecdh_curve").is_some_and(|curves| curves.value == "auto");
        let mut has_quick_curves = is_quick(&default.settings);
        for server in self.servers_possible.iter().chain([&self.server]) {
            let other = read(&server.settings)?;
            if (other.0.value, stores(&other.1.value)) != (found.0.value, stores(&found.1.value)) {
                return None;
            }
            has_quick_curves &= is_quick(&server.settings);
        }
        let asks = |settings: &Settings| settings.word("ssl_verify_client").is_none_or(|verify| verify.value != "off");
        let verifies_clients = http.servers.iter().any(|server| asks(&server.settings));
        Some(TlsSessions { tickets: found.0, cache: found.1, verifies_clients, has_quick_curves })
    }
}

/// Tickets and cache of a server; none if they cannot be read, or if `ssl_conf_command` sets more.
fn read(settings: &Settings) -> Option<(Setting<bool>, Setting<String>)> {
    let tickets = settings.flag("ssl_session_tickets")?;
    let cache = settings.words(CACHE)?;
    let is_known = settings.all("ssl_conf_command").is_empty() && cache.value.iter().all(|word| is_cache(word));
    is_known.then(|| (tickets, cache.map(|words| words.join(" "))))
}

/// True if the cache stores sessions.
fn stores(cache: &str) -> bool {
    !matches!(cache, "none" | "off")
}

/// True for an argument of `ssl_session_cache`: "off", "none", "builtin", "builtin:1000", "shared:NAME:10m".
fn is_cache(word: &str) -> bool {
    match word.split(':').collect::<Vec<_>>()[..] {
        ["off" | "none" | "builtin"] => true,
        ["builtin", size] => quantity::number(size).is_some(),
        ["shared", name, size] => {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
            !name.is_empty() && name.bytes().all(plain) && quantity::size_bytes(size).is_some()
        }
        _ => false,
    }
}

/// A value of `ssl_session_cache`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionCache(Vec<String>);

/// The text is not a value of `ssl_session_cache`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("it does not look like \"shared:NAME:10m\"")]
pub struct NoSessionCache;

impl fmt::Display for SessionCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

impl FromStr for SessionCache {
    type Err = NoSessionCache;

    fn from_str(text: &str) -> Result<Self, NoSessionCache> {
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        if words.len() <= 2 && words.iter().all(|word| is_cache(word)) { Ok(Self(words)) } else { Err(NoSessionCache) }
    }
}

impl Nginx {
    /// The cache that the http block sets for all servers without one of their own. `Some(None)` if it sets none, `None` without an http block.
    pub fn session_cache(&self) -> Option<Option<String>> {
        let own = self.http.as_ref()?.settings.own(CACHE).first();
        Some(own.map(|directive| directive.args.join(" ")))
    }
}

/// Sets the cache in the http block. False if there is no http block.
pub fn set_session_cache(editor: &mut Editor<'_>, nginx: &Nginx, cache: &SessionCache) -> Result<bool, EditError> {
    let Some(http) = &nginx.http else { return Ok(false) };
    let words: Vec<&str> = cache.0.iter().map(String::as_str).collect();
    editor.set(Some(http.place.node), CACHE, &words, Position::End)?;
    Ok(true)
}
