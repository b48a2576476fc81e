//! Reuse of the connections to FastCGI servers: what is in force for one address or upstream, and the edit that turns reuse on. It takes three
//! things: an upstream with `keepalive`, a pass to that upstream, and `fastcgi_keep_conn on` in the block of the pass.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::nginx::edit::{EditError, Editor, Position};
use crate::nginx::effective::listen::Address;
use crate::nginx::effective::location::Location;
use crate::nginx::effective::pass::{Pass, PassKind, Target};
use crate::nginx::effective::settings::Settings;
use crate::nginx::effective::upstream::Upstream;
use crate::nginx::effective::{Http, Nginx};
use crate::{Node, quantity};

/// Prefix of the names of upstreams that [`keep_fastcgi`] adds.
const NAME_PREFIX: &str = "chokepoint_";
/// Longest name that is derived from an address.
const NAME_BYTES_MAX: usize = 60;

/// How connections are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FastcgiReuse {
    /// `keepalive`: idle connections that each worker keeps, at least 1.
    pub connections: u64,
    /// `keepalive_requests`: requests after which a connection is closed, at least 1.
    pub requests: u64,
}

impl fmt::Display for FastcgiReuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "keepalive={} requests={}", self.connections, self.requests)
    }
}

/// The text is not of the form "keepalive=8 requests=5".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("it does not look like \"keepalive=8 requests=5\"")]
pub struct NoReuse;

impl FromStr for FastcgiReuse {
    type Err = NoReuse;

    fn from_str(text: &str) -> Result<Self, NoReuse> {
        let (connections, requests) = text.split_once(' ').ok_or(NoReuse)?;
        let number = |word: &str, name: &str| word.strip_prefix(name).and_then(quantity::number).filter(|number| *number > 0);
        let connections = number(connections, "keepalive=").ok_or(NoReuse)?;
        Ok(Self { connections, requests: number(requests, "requests=").ok_or(NoReuse)? })
    }
}

/// One `fastcgi_pass`.
struct FastcgiPass<'n> {
    /// Its server block.
    server: Node,
    /// The block for `fastcgi_keep_conn`: the location, because an `if` cannot contain it.
    block: Node,
    /// The settings in force there.
    settings: &'n Settings,
    pass: &'n Pass,
}

/// How requests are passed to one address or upstream.
enum Passed<'n> {
    /// To an upstream block.
    Upstream(&'n Upstream, Vec<FastcgiPass<'n>>),
    /// To the address itself.
    Address(Vec<FastcgiPass<'n>>),
}

/// The reuse in force for all passes to an upstream (by name) or an address ("127.0.0.1:9000", "[::1]:9000", "unix:/run/x.sock"). `None` if there
/// is no `fastcgi_pass` to it; `Some(None)` if at least one of them does not reuse connections.
pub fn fastcgi_reuse(nginx: &Nginx, to: &str) -> Option<Option<FastcgiReuse>> {
    match passed(nginx.http.as_ref()?, to)? {
        // Without an upstream block nothing keeps a connection.
        Passed::Address(_) => Some(None),
        Passed::Upstream(upstream, uses) => {
            let connections = upstream.keepalive.value.connections;
            let kept = connections > 0 && uses.iter().all(|one| keeps(one.settings));
            Some(kept.then_some(FastcgiReuse { connections, requests: upstream.keepalive_requests.value }))
        }
    }
}

fn keeps(settings: &Settings) -> bool {
    settings.flag("fastcgi_keep_conn").is_some_and(|keep| keep.value)
}

/// Turns on reuse for all passes to an upstream or address. An address gets a new upstream block, before the server block of its first pass and in
/// the same file; an existing upstream block is edited in place. False if there is no `fastcgi_pass` to it.
pub fn keep_fastcgi(editor: &mut Editor<'_>, nginx: &Nginx, to: &str, reuse: FastcgiReuse) -> Result<bool, EditError> {
    let Some(http) = &nginx.http else { return Ok(false) };
    let (connections, requests) = (reuse.connections.to_string(), reuse.requests.to_string());
    let uses = match passed(http, to) {
        None => return Ok(false),
        Some(Passed::Upstream(upstream, uses)) => {
            // After the balancing method, as nginx requires.
            editor.set(Some(upstream.place.node), "keepalive", &[&connections], Position::End)?;
            editor.set(Some(upstream.place.node), "keepalive_requests", &[&requests], Position::End)?;
            uses
        }
        Some(Passed::Address(uses)) => {
            let Some(first) = uses.first() else { return Ok(false) };
            let name = free_name(http, to);
            editor.add_upstream_before(
                first.server,
                &name,
                &[("server", &first.pass.text), ("keepalive", &connections), ("keepalive_requests", &requests)],
            )?;
            for one in &uses {
                editor.set_argument(one.pass.place.node, 0, &name)?;
            }
            uses
        }
    };
    let mut done = BTreeSet::new();
    for one in uses.iter().filter(|one| !keeps(one.settings)) {
        if done.insert(one.block) {
            let own = editor.is_in(one.pass.place.node, one.block);
            let position = if own { Position::After(one.pass.place.node) } else { Position::End };
            editor.set(Some(one.block), "fastcgi_keep_conn", &["on"], position)?;
        }
    }
    Ok(true)
}

/// The passes to an upstream or address, including those to the upstream that an earlier edit added for the address.
fn passed<'n>(http: &'n Http, to: &str) -> Option<Passed<'n>> {
    let all = uses(http);
    // An upstream's name comes first, as it does for nginx.
    let named = http.upstream(to).or_else(|| {
        let literal = all.iter().any(|one| matches!(&one.pass.target, Target::Address(address) if is_same(address, to)));
        let made = |upstream: &&Upstream| {
            upstream.name.starts_with(NAME_PREFIX) && matches!(&upstream.servers[..], [only] if is_same(&only.address, to))
        };
        http.upstreams.iter().filter(|_| !literal).find(made)
    });
    let is_to = |one: &FastcgiPass<'_>| match (&one.pass.target, named) {
        (Target::Upstream(name), Some(upstream)) => name.eq_ignore_ascii_case(&upstream.name),
        (Target::Address(address), None) => is_same(address, to),
        _ => false,
    };
    let found: Vec<FastcgiPass<'n>> = all.into_iter().filter(is_to).collect();
    match (found.is_empty(), named) {
        (true, _) => None,
        (false, Some(upstream)) => Some(Passed::Upstream(upstream, found)),
        (false, None) => Some(Passed::Address(found)),
    }
}

/// Whether the address is written so. "localhost" also matches both loopback addresses.
pub(super) fn is_same(address: &Address, to: &str) -> bool {
    match address {
        Address::Name(name, port) if name == "localhost" => {
            [format!("localhost:{port}"), format!("127.0.0.1:{port}"), format!("[::1]:{port}")].iter().any(|one| one == to)
        }
        _ => address.to_string() == to,
    }
}

fn uses(http: &Http) -> Vec<FastcgiPass<'_>> {
    let mut found = Vec::new();
    for server in &http.servers {
        add(server.place.node, &server.locations, &mut found);
    }
    found
}

fn add<'n>(server: Node, locations: &'n [Location], found: &mut Vec<FastcgiPass<'n>>) {
    for location in locations {
        let passes = location.pass.iter().chain(location.conditions.iter().filter_map(|condition| condition.pass.as_ref()));
        let fastcgi = passes.filter(|pass| pass.kind == PassKind::Fastcgi);
        found.extend(fastcgi.map(|pass| FastcgiPass { server, block: location.place.node, settings: &location.settings, pass }));
        add(server, &location.locations, found);
    }
}

/// A free name for an upstream, derived from its address.
fn free_name(http: &Http, to: &str) -> String {
    let lower = to.trim_start_matches("unix:").to_ascii_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let suffix: String = words.collect::<Vec<_>>().join("_").chars().take(NAME_BYTES_MAX).collect();
    let base = format!("{NAME_PREFIX}{suffix}");
    let mut name = base.clone();
    let mut number = 2;
    while http.upstream(&name).is_some() {
        name = format!("{base}_{number}");
        number += 1;
    }
    name
}
