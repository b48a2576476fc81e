//! Whether connections to an upstream are reused, and the settings that decide it.

use super::Http;
use super::pass::{Pass, PassKind, Target};
use super::settings::Settings;
use super::version::Version;
use crate::Setting;

/// Whether connections to the upstream are kept for the next request, and which lines are missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reuse {
    /// Idle connections that each worker keeps; `None` if the target is not an upstream block, because then none are kept.
    pub keepalive: Option<Setting<u64>>,
    /// The effective `proxy_http_version`.
    pub http_version: Option<Setting<String>>,
    /// The `Connection` header sent to the upstream; "close" by default before nginx 1.29.7.
    pub connection_header: Option<Setting<String>>,
    /// The effective `fastcgi_keep_conn`.
    pub fastcgi_keep_conn: Option<Setting<bool>>,
    /// True if connections are reused, false if not, `None` if a variable decides.
    pub in_force: Option<bool>,
}

impl Pass {
    /// The settings that decide about reuse, for this pass and the settings of its location.
    pub fn reuse(&self, http: &Http, settings: &Settings) -> Reuse {
        let keepalive = match &self.target {
            Target::Upstream(name) => http.upstream(name).map(|upstream| upstream.keepalive.clone().map(|keepalive| keepalive.connections)),
            _ => None,
        };
        let kept = match self.target {
            Target::Variable(_) => None,
            _ => Some(keepalive.as_ref().is_some_and(|keepalive| keepalive.value > 0)),
        };
        let mut reuse = Reuse { keepalive, http_version: None, connection_header: None, fastcgi_keep_conn: None, in_force: kept };
        match self.kind {
            PassKind::Proxy => {
                let version = settings.word("proxy_http_version");
                let header = connection_header(settings);
                // "upgrade" is sent for WebSockets. With plain requests the upstream decides, and usually closes.
                let open = match header.value.to_ascii_lowercase().as_str() {
                    "" | "keep-alive" => Some(true),
                    value if value.contains('$') => None,
                    _ => Some(false),
                };
                let new_enough = version.as_ref().is_some_and(|version| version.value != "1.0");
                reuse.in_force = all_of([kept, Some(new_enough), open]);
                (reuse.http_version, reuse.connection_header) = (version, Some(header));
            }
            PassKind::Fastcgi => {
                let keep = settings.flag("fastcgi_keep_conn");
                reuse.in_force = all_of([kept, Some(keep.as_ref().is_some_and(|keep| keep.value))]);
                reuse.fastcgi_keep_conn = keep;
            }
            // In these protocols, a request ends with the connection.
            PassKind::Uwsgi | PassKind::Scgi => reuse.in_force = Some(false),
            PassKind::Grpc | PassKind::Memcached => {}
        }
        reuse
    }
}

fn connection_header(settings: &Settings) -> Setting<String> {
    let set = settings.all("proxy_set_header").iter().rev().find(|header| header.arg(0).eq_ignore_ascii_case("connection"));
    match set {
        Some(header) => Setting::set(header.arg(1).to_owned(), header.place.clone()),
        None => Setting::default_of(if settings.version() >= Version(1, 29, 7) { String::new() } else { "close".to_owned() }),
    }
}

/// False if one is false, else `None` if one is unknown.
fn all_of<const N: usize>(parts: [Option<bool>; N]) -> Option<bool> {
    if parts.contains(&Some(false)) { Some(false) } else { parts.iter().copied().collect::<Option<Vec<bool>>>().map(|_| true) }
}
