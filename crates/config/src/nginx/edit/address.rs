//! The address of a FastCGI server in each place that names it: `fastcgi_pass`, and `server` of the upstreams that requests are passed to.

use crate::Node;
use crate::nginx::edit::{EditError, Editor};
use crate::nginx::effective::listen::Address;
use crate::nginx::effective::location::Location;
use crate::nginx::effective::pass::{Pass, PassKind, Target};
use crate::nginx::effective::{Http, Nginx};

/// Which of two addresses of one server ("127.0.0.1:9000", "unix:/run/php.sock") FastCGI requests are passed to: the first one while any place names it.
/// `None` if no place names either.
pub fn fastcgi_address<'a>(nginx: &Nginx, address: &'a str, socket: &'a str) -> Option<&'a str> {
    let http = nginx.http.as_ref()?;
    [address, socket].into_iter().find(|one| !places(http, one).is_empty())
}

/// Passes the requests for one address to another one. False if no place names it.
pub fn move_fastcgi(editor: &mut Editor<'_>, nginx: &Nginx, from: &str, to: &str) -> Result<bool, EditError> {
    let Some(http) = &nginx.http else { return Ok(false) };
    if let Some((node, why)) = obstacle(nginx, http, from) {
        return Err(editor.unfit(node, why));
    }
    let places = places(http, from);
    for node in &places {
        editor.set_argument(*node, 0, to)?;
    }
    Ok(!places.is_empty())
}

/// Every directive whose first argument is this address and that FastCGI requests use.
fn places(http: &Http, address: &str) -> Vec<Node> {
    let passes = passes(http);
    let fastcgi = || passes.iter().filter(|pass| pass.kind == PassKind::Fastcgi);
    let named = fastcgi().filter(|pass| matches!(&pass.target, Target::Address(own) if is_same(own, address)));
    let mut found: Vec<Node> = named.map(|pass| pass.place.node).collect();
    let is_used = |name: &str| fastcgi().any(|pass| pass.targets().iter().any(|target| is_upstream(target, name)));
    for upstream in http.upstreams.iter().filter(|upstream| is_used(&upstream.name)) {
        found.extend(upstream.servers.iter().filter(|server| is_same(&server.address, address)).map(|server| server.place.node));
    }
    found
}

/// A pass that may use the address and is not one of the places: one of another protocol, or one with variables.
fn obstacle(nginx: &Nginx, http: &Http, address: &str) -> Option<(Node, &'static str)> {
    let is_port =
        |own: &Address| matches!((own, address.rsplit_once(':')), (Address::Name(_, port), Some((_, own))) if port.to_string() == own);
    let may_be = |own: &Address| is_same(own, address) || is_port(own);
    let uses = |pass: &Pass| {
        pass.targets().iter().any(|target| match target {
            Target::Address(own) => may_be(own),
            Target::Upstream(name) => http.upstream(name).is_some_and(|upstream| upstream.servers.iter().any(|one| may_be(&one.address))),
            Target::Variable(_) => true,
        })
    };
    let within = passes(http).into_iter().find_map(|pass| {
        let why = match &pass.target {
            Target::Variable(known) if pass.kind == PassKind::Fastcgi && (known.is_empty() || uses(pass)) => "has variables",
            _ if pass.kind != PassKind::Fastcgi && uses(pass) => "passes requests of another protocol to the address",
            Target::Address(own) if is_port(own) && !is_same(own, address) => "has a name that may stand for the address",
            _ => return None,
        };
        Some((pass.place.node, why))
    });
    let streams = nginx.stream.iter().flat_map(|stream| &stream.servers).filter_map(|server| server.pass.as_ref());
    let streamed = streams.filter(|pass| pass.targets().iter().any(|target| matches!(target, Target::Address(own) if may_be(own))));
    within.or_else(|| streamed.map(|pass| (pass.place.node, "passes connections to the address")).next())
}

fn is_upstream(target: &Target, name: &str) -> bool {
    matches!(target, Target::Upstream(own) if own.eq_ignore_ascii_case(name))
}

/// Whether the address is written so. "localhost" also matches both loopback addresses.
fn is_same(address: &Address, to: &str) -> bool {
    super::reuse::is_same(address, to)
}

fn passes(http: &Http) -> Vec<&Pass> {
    let mut found = Vec::new();
    http.servers.iter().for_each(|server| add(&server.locations, &mut found));
    found
}

fn add<'n>(locations: &'n [Location], found: &mut Vec<&'n Pass>) {
    for location in locations {
        found.extend(location.pass.iter().chain(location.conditions.iter().filter_map(|condition| condition.pass.as_ref())));
        add(&location.locations, found);
    }
}
