//! The request and connection limits of an nginx configuration, and which of them apply to the diagnosed request.

use std::collections::BTreeMap;

use chokepoint_config::nginx::{Address, Delay, Http, LimitZone, ListenSocket, LocalAddress, Nginx, Selection, Settings};
use chokepoint_config::{Origin, SourceLine};
use chokepoint_model::observation::{ListenerAddress, NginxLimit, Origin as ModelOrigin, Request};

use super::levels::ConfigLevel;
use super::passes::addresses;
use super::selected::locals;
use crate::servers::origin::origin;
use crate::servers::room::{ConfigRoom, limit_bytes};

/// Default status of a refused request (ngx_http_limit_req_module, ngx_http_limit_conn_module).
const STATUS_DEFAULT: u16 = 503;
/// Most sockets times levels to follow for a request whose address was translated on the way.
const WAYS_MAX: usize = 1_000_000;

/// Every limit that is in force anywhere, once for each line. A dry run limits nothing.
pub(super) fn limits(
    nginx: &Nginx,
    levels: &[ConfigLevel<'_>],
    request: &Request,
    room: &mut ConfigRoom,
) -> Result<Vec<NginxLimit>, String> {
    let route = nginx.http.as_ref().and_then(|http| Route::of(http, request, &locals(http, request)));
    // There is one route for each socket, and it can pass every level.
    let sockets = nginx.http.as_ref().map_or(0, |http| http.sockets.len());
    if route.is_none() && sockets.saturating_mul(levels.len()) > WAYS_MAX {
        return Err(format!("{sockets} sockets with {} servers and locations are more than chokepoint follows", levels.len()));
    }
    let translated = if route.is_none() { Route::translated(nginx, request) } else { Vec::new() };
    let zones: Vec<&LimitZone> = nginx.http.iter().flat_map(|http| &http.zones).collect();
    // By line and what it limits there: many levels inherit the same limit, and a line may have several.
    let mut limits: BTreeMap<(ModelOrigin, String, String, u64), NginxLimit> = BTreeMap::new();
    for level in levels.iter().filter(|level| level.http.is_some()) {
        for mut limit in of_level(level.settings, &zones) {
            let number = limit.connections.unwrap_or(limit.burst);
            let key = (limit.origin.clone(), limit.kind.clone(), limit.zone.clone(), number);
            if limits.contains_key(&key) {
                continue;
            }
            limit.applies = route.as_ref().and_then(|route| route.passes(&limit));
            let known = translated.iter().filter_map(|(address, route)| Some((address.clone(), route.passes(&limit)?)));
            limit.applies_at = known.collect();
            room.take(limit_bytes(&limit))?;
            limits.insert(key, limit);
        }
    }
    Ok(limits.into_values().collect())
}

fn of_level(settings: &Settings, zones: &[&LimitZone]) -> Vec<NginxLimit> {
    let is_dry = |name: &str| settings.flag(name).is_some_and(|flag| flag.value);
    let status = |name: &str| settings.number(name).and_then(|status| u16::try_from(status.value).ok()).unwrap_or(STATUS_DEFAULT);
    let limit = |kind: &str, zone: String, place: SourceLine| {
        let defined = zones.iter().find(|defined| defined.name == zone);
        NginxLimit {
            kind: kind.to_owned(),
            status: status(&format!("{kind}_status")),
            key: defined.map(|zone| zone.key.clone()).unwrap_or_default(),
            rate_per_s: defined.and_then(|zone| zone.rate_per_minute).map(|rate| rate as f64 / 60.0),
            zone_origin: defined.map(|zone| origin(&Origin::Set(zone.place.clone()))).unwrap_or_default(),
            zone,
            origin: origin(&Origin::Set(place)),
            ..NginxLimit::default()
        }
    };
    let mut found = Vec::new();
    for rate in settings.rate_limits().into_iter().filter(|_| !is_dry("limit_req_dry_run")) {
        let burst_at_once = match rate.delay {
            Delay::All => 0,
            Delay::None => rate.burst,
            Delay::Beyond(count) => count.min(rate.burst),
        };
        found.push(NginxLimit { burst: rate.burst, burst_at_once, ..limit("limit_req", rate.zone, rate.place) });
    }
    if let Some(rate) = settings.bytes("limit_rate").filter(|rate| rate.value > 0) {
        let at_once = settings.bytes("limit_rate_after").map_or(0, |after| after.value);
        let (kind, place) = ("limit_rate".to_owned(), origin(&rate.origin));
        found.push(NginxLimit { kind, bytes_per_s: Some(rate.value), bytes_at_once: at_once, origin: place, ..NginxLimit::default() });
    }
    for open in settings.conn_limits().into_iter().filter(|_| !is_dry("limit_conn_dry_run")) {
        found.push(NginxLimit { connections: Some(open.connections), ..limit("limit_conn", open.zone, open.place) });
    }
    found
}

/// The levels of a configuration that a request passes.
struct Route<'a> {
    /// The level that responds, one for each address of the target.
    chosen: Vec<&'a Settings>,
    /// True if nothing else can respond before limits apply.
    is_sure: bool,
    /// Other levels that it may pass.
    perhaps: Vec<&'a Settings>,
    /// True if it can pass no other levels.
    is_complete: bool,
}

impl<'a> Route<'a> {
    /// The route of a request that arrives unchanged at one of these addresses. Nothing if this server does not listen at one of them: the request may pass
    /// another server first, which can change its path.
    fn of(http: &'a Http, request: &Request, locals: &[LocalAddress]) -> Option<Self> {
        let path = request.path_and_query();
        let mut route = Self { chosen: Vec::new(), is_sure: true, perhaps: Vec::new(), is_complete: true };
        for local in locals {
            let selection = http.select(local, &request.host_header(), path)?;
            route.add(&selection);
            for file in index_files(&selection, path) {
                route.perhaps.extend(http.select(local, &request.host_header(), &file).map(|selection| settings_of(&selection)));
            }
        }
        (!locals.is_empty()).then_some(route)
    }

    /// The routes of a request that arrives unchanged at any of the server's sockets.
    fn translated(nginx: &'a Nginx, request: &Request) -> Vec<(ListenerAddress, Self)> {
        let Some(http) = nginx.http.as_ref().filter(|_| !request.is_fastcgi()) else { return Vec::new() };
        let sockets = http.sockets.iter().filter(|socket| socket.bound && !socket.udp);
        let bound = sockets.flat_map(|socket| addresses(&socket.address));
        bound.filter_map(|address| Some((address.clone(), Self::of(http, request, &ends(http, &address))?))).collect()
    }

    fn add(&mut self, selection: &Selection<'a>) {
        let (server, own) = (&selection.server.settings, settings_of(selection));
        let has = |name: &str| [server, own].iter().any(|settings| !settings.own(name).is_empty());
        let conditions = selection.location.map_or(0, |location| location.conditions.len()) + selection.server.conditions.len();
        let turns = conditions > 0 || has("rewrite");
        self.is_sure &= selection.is_certain() && !turns;
        self.is_complete &= selection.servers_possible.is_empty() && !turns && !has("try_files");
        // `return` responds in the rewrite phase, before limits apply (ngx_http_core_module.h, phases).
        if !has("return") {
            self.chosen.push(own);
            self.perhaps.extend(selection.candidates().iter().map(|candidate| candidate.settings));
        }
        self.perhaps.extend(selection.locations_possible.iter().map(|location| &location.settings));
    }

    fn passes(&self, limit: &NginxLimit) -> Option<bool> {
        let holds = |settings: &&Settings| of_level(settings, &[]).iter().any(|held| held.origin == limit.origin);
        if self.is_sure && !self.chosen.is_empty() && self.chosen.iter().all(&holds) {
            return Some(true);
        }
        let may = self.chosen.iter().chain(&self.perhaps).any(holds);
        (!may && self.is_complete).then_some(false)
    }
}

/// The local addresses that connections of a socket may have: for a wildcard also the other configured addresses with its port.
fn ends(http: &Http, bound: &ListenerAddress) -> Vec<LocalAddress> {
    let end = |socket: &ListenSocket| match (&socket.address, bound) {
        (Address::Ip(ip, port), ListenerAddress::Tcp(wildcard, same)) if port == same && (ip == wildcard || wildcard.is_unspecified()) => {
            Some(LocalAddress::Ip(*ip, *port))
        }
        (Address::Unix(path), ListenerAddress::Unix(same)) if path == same => Some(LocalAddress::Unix(path.clone())),
        _ => None,
    };
    http.sockets.iter().filter(|socket| !socket.udp).filter_map(end).collect()
}

fn settings_of<'a>(selection: &Selection<'a>) -> &'a Settings {
    selection.location.map_or(&selection.server.settings, |location| &location.settings)
}

/// The index files that nginx tries for a request for a directory.
fn index_files(selection: &Selection<'_>, path: &str) -> Vec<String> {
    let bare = path.split(['?', '#']).next().unwrap_or_default();
    let settings = settings_of(selection);
    if !bare.ends_with('/') || selection.location.is_some_and(|location| location.pass.is_some()) || !settings.own("return").is_empty() {
        return Vec::new();
    }
    let files = settings.words("index").map(|files| files.value).unwrap_or_default();
    files.iter().map(|file| if file.starts_with('/') { file.clone() } else { format!("{bare}{file}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::levels::levels;
    use super::*;
    use chokepoint_config::Resolved;
    use chokepoint_config::nginx::{Tree, Version};

    const ZONES: &str = "limit_req_zone $binary_remote_addr zone=one:1m rate=30r/m; limit_req_zone $server_name zone=two:1m rate=5r/s;\n\
        limit_conn_zone $binary_remote_addr zone=open:1m;\n";

    /// Zone and `applies` of every limit of a server with this configuration, for a request for this path.
    fn applies(server: &str, path: &str) -> Vec<(String, Option<bool>)> {
        limits_of(server, path, "10.0.0.2").into_iter().map(|limit| (limit.zone, limit.applies)).collect()
    }

    fn limits_of(server: &str, path: &str, ip: &str) -> Vec<NginxLimit> {
        let text = format!("events {{}}\nhttp {{\n{ZONES}server {{\nlisten 10.0.0.2:80;\n{server}\n}}\n}}\n");
        let mut resolve = |path: &str| -> Vec<Resolved> { vec![(path.to_owned(), Ok(text.clone()))] };
        let tree = Tree::load("/nginx.conf", None, &mut resolve).unwrap();
        let nginx = Nginx::of(&tree, Version::FALLBACK);
        let request = Request {
            url: format!("http://{ip}{path}"),
            host: ip.to_owned(),
            port: 80,
            addresses: vec![ip.parse().unwrap()],
            ..Request::default()
        };
        limits(&nginx, &levels(&nginx), &request, &mut ConfigRoom::whole()).unwrap()
    }

    #[test]
    fn a_limit_has_all_its_settings() {
        let found =
            limits_of("limit_req zone=one burst=9 delay=4;\nlimit_req zone=two burst=3 nodelay;\nlimit_req_status 429;", "/", "10.0.0.2");
        let (one, two) = (&found[0], &found[1]);
        assert_eq!((one.rate_per_s, one.burst, one.burst_at_once, one.status), (Some(0.5), 9, 4, 429));
        assert_eq!((one.key.as_str(), one.zone_origin.line, one.origin.line), ("$binary_remote_addr", 3, 7));
        assert_eq!((two.rate_per_s, two.burst_at_once, two.key.as_str()), (Some(5.0), 3, "$server_name"));
        let open = &limits_of("limit_conn open 5;", "/", "10.0.0.2")[0];
        assert_eq!((open.kind.as_str(), open.connections, open.rate_per_s, open.status), ("limit_conn", Some(5), None, 503));
        let pace = &limits_of("limit_rate 500k;\nlimit_rate_after 1m;", "/", "10.0.0.2")[0];
        assert_eq!((pace.kind.as_str(), pace.bytes_per_s, pace.bytes_at_once), ("limit_rate", Some(500 << 10), 1 << 20));
        assert_eq!((pace.applies, pace.origin.line), (Some(true), 7));
        let line = limits_of("limit_rate 500k; limit_conn open 5; limit_req zone=one; limit_req zone=two;", "/", "10.0.0.2");
        assert_eq!(line.len(), 4, "each of a line: {line:?}");
        assert!(limits_of("limit_rate 0;", "/", "10.0.0.2").is_empty(), "none");
        assert!(limits_of("limit_req zone=one;\nlimit_req_dry_run on;\n", "/", "10.0.0.2").is_empty(), "a dry run limits nothing");
    }

    #[test]
    fn a_limit_applies_if_its_location_responds() {
        let two = "location / { limit_req zone=one; }\nlocation /login { limit_req zone=two; }";
        let decided = |yes: &str, no: &str| vec![(yes.to_owned(), Some(true)), (no.to_owned(), Some(false))];
        assert_eq!(applies(two, "/index.html?x=/login"), decided("one", "two"));
        assert_eq!(applies(two, "/"), decided("one", "two"), "an index file is in the same location");
        let mut other = decided("two", "one");
        other.reverse();
        assert_eq!(applies(two, "/login/x"), other);
        assert_eq!(
            applies("limit_req zone=one;\nlocation / { limit_req zone=two; }", "/x"),
            decided("one", "two").into_iter().map(|(zone, yes)| (zone, yes.map(|yes| !yes))).collect::<Vec<_>>(),
            "the location's limits replace the server's"
        );
    }

    #[test]
    fn limits_that_depend_on_files_conditions_or_other_servers_are_undecided() {
        let open = |server: &str, path: &str| assert_eq!(applies(server, path), [("one".to_owned(), None)], "{server}");
        open("location / { try_files $uri /app; }\nlocation /app { limit_req zone=one; }", "/x");
        open("location / { if ($args) { set $a 1; } limit_req zone=one; }", "/x");
        open("rewrite ^/a /b last;\nlocation /a { limit_req zone=one; }", "/a");
        open("index x.php;\nlocation / { }\nlocation ~ php$ { limit_req zone=one; }", "/");
        assert_eq!(limits_of("limit_req zone=one;", "/", "10.0.0.9")[0].applies, None, "it came to another address first");
        assert_eq!(
            applies("location / { return 204; limit_req zone=one; }", "/"),
            [("one".to_owned(), Some(false))],
            "answered before limits"
        );
    }
    /// Zone and `applies_at` of every limit for a request whose address was translated on the way.
    fn applies_at(server: &str) -> Vec<(String, Vec<(String, bool)>)> {
        let found = limits_of(server, "/x", "10.0.0.9").into_iter();
        found.map(|limit| (limit.zone, limit.applies_at.iter().map(|(at, applies)| (at.to_string(), *applies)).collect())).collect()
    }

    #[test]
    fn behind_a_translated_address_each_socket_is_decided_separately() {
        let one = |at: &[(&str, bool)]| vec![("one".to_owned(), at.iter().map(|(at, yes)| ((*at).to_owned(), *yes)).collect::<Vec<_>>())];
        assert_eq!(applies_at("limit_req zone=one;"), one(&[("10.0.0.2:80", true)]));
        assert_eq!(applies_at("limit_req zone=one; }\nserver { listen 81;"), one(&[("10.0.0.2:80", true), ("0.0.0.0:81", false)]));
        let both = [("10.0.0.2:80", true), ("0.0.0.0:81", true)];
        assert_eq!(applies_at("listen 10.0.0.2:81; listen 81; limit_req zone=one;"), one(&both), "a wildcard's socket takes both");
        let either = "listen 10.0.0.2:81; limit_req zone=one; }\nserver { listen 81;";
        assert_eq!(applies_at(either), one(&both[..1]), "at 81 it depends on the address that it was translated to");
        assert_eq!(applies_at("listen 80; limit_req zone=one;"), one(&[]), "the request's own address is one of the wildcard's");
        assert_eq!(limits_of("limit_req zone=one;", "/", "10.0.0.2")[0].applies_at, [], "it names this one");
    }
}
