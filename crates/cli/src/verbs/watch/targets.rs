//! Which servers are watched: those that were named, or all that listen on this host.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anyhow::Result;
use chokepoint_foreign::Holder;
use chokepoint_model::observation::{NetnsId, Request};
use chokepoint_model::url::without_values;
use chokepoint_sources::{PortSearch, PortSocket, Root, netns};

use super::config::Settings;

/// Most servers that are watched. Each has its own ledger, and 16 take about as long as reading the sockets.
pub(super) const TARGETS_MAX: usize = 16;
/// Places in a round for root's servers of this namespace. Whoever else has many ports gets one, a container's only server has one, too.
const ROOT_PLACES: usize = 3;
/// Most of whom one server without a place is named: further ones are counted.
const HOLDERS_NAMED_MAX: usize = 100;
/// This program.
const OWN_PROGRAM: &str = "chokepoint";

/// A server to watch.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Watched {
    pub(super) name: String,
    pub(super) request: Request,
}

/// The servers to watch now, and those for which there is no place.
#[derive(Debug, Default)]
pub(super) struct Servers {
    pub(super) watched: Vec<Watched>,
    pub(super) left_out: LeftOut,
}

/// The names of servers for which there is no place, by whose they are.
#[derive(Debug, Default)]
pub(super) struct LeftOut(BTreeMap<Holder, Vec<String>>);

impl LeftOut {
    /// How many there are of each.
    pub(super) fn counts(&self) -> impl Iterator<Item = (Holder, usize)> {
        self.0.iter().map(|(holder, names)| (*holder, names.len()))
    }

    /// One of each by its name, and how many more: whoever has many hides nobody else's.
    pub(super) fn named(&self) -> String {
        let of_one = |(holder, names): (&Holder, &Vec<String>)| {
            let more = if names.len() > 1 { format!(" and {} more", names.len() - 1) } else { String::new() };
            format!("{}{more} of {holder}", names.first().map_or("", String::as_str))
        };
        let mut named: Vec<String> = self.0.iter().take(HOLDERS_NAMED_MAX).map(of_one).collect();
        let unnamed = self.0.len().saturating_sub(HOLDERS_NAMED_MAX);
        if unnamed > 0 {
            named.push(format!("those of {unnamed} others"));
        }
        named.join(", ")
    }
}

/// The servers to watch now.
pub(super) fn watched(settings: &Settings, ports: &mut PortSearch) -> Result<Servers> {
    if settings.targets.is_empty() {
        return Ok(listening(&ports.listeners(&Root::default())?, netns::own()?));
    }
    let root = Root::default();
    let named = |name: &Option<String>| name.as_deref().map(|name| netns::resolve(&root, name)).transpose();
    let client_netns = named(&settings.file.client_netns)?.map_or_else(netns::own, |netns| Ok(netns.id))?;
    let server_netns = named(&settings.file.server_netns)?.map(|netns| netns.id);
    let one = |target: &crate::run::settings::Target| Watched {
        name: without_values(&target.url),
        request: Request { client_netns, server_netns, loaded: false, ..target.request() },
    };
    Ok(Servers { watched: named_apart(settings.targets.iter().map(one).collect()), left_out: LeftOut::default() })
}

/// Servers whose names differ: without the values of their queries, two URLs may read the same.
fn named_apart(mut watched: Vec<Watched>) -> Vec<Watched> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    for server in &mut watched {
        let plain = server.name.clone();
        let mut number = 2;
        while !names.insert(server.name.clone()) {
            server.name = format!("{plain} ({number})");
            number += 1;
        }
    }
    watched
}

/// Who shares places: a user, with all user ids and network namespaces that are this user's; in a container of root's, whoever it is there.
type Owner = (Option<NetnsId>, Holder);

/// A server for each port at which a program of one user listens: what another user has at the same port and another address is another server. The places are
/// shared in rounds: [`ROOT_PLACES`] for root's servers of this namespace, which come first, and one for each other owner, so that nobody who listens at many ports takes all.
fn listening(sockets: &[PortSocket], own: NetnsId) -> Servers {
    let mut groups: BTreeMap<(NetnsId, u16, Holder, Option<&str>), Vec<&PortSocket>> = BTreeMap::new();
    for socket in sockets.iter().filter(|socket| !socket.udp && socket.program.as_deref() != Some(OWN_PROGRAM)) {
        groups.entry((socket.netns, socket.local.1, socket.holder, socket.program.as_deref())).or_default().push(socket);
    }
    // A socket whose program is not visible yet is one of its user's at that port.
    let known: BTreeSet<(NetnsId, u16, Holder)> = groups.keys().filter(|key| key.3.is_some()).map(|key| (key.0, key.1, key.2)).collect();
    groups.retain(|key, _| key.3.is_some() || !known.contains(&(key.0, key.1, key.2)));
    let mut places: BTreeMap<Owner, usize> = BTreeMap::new();
    let mut ordered: Vec<_> = groups
        .into_iter()
        .map(|((netns, port, holder, program), sockets)| {
            let is_elsewhere = netns != own;
            let is_container = is_elsewhere && !sockets.iter().any(|socket| socket.netns_is_users);
            let place = places.entry((is_container.then_some(netns), holder)).or_default();
            *place += 1;
            let of_root = holder == Holder::User(0) && !is_elsewhere;
            let round = if of_root { place.div_ceil(ROOT_PLACES) } else { *place };
            ((round, !of_root, is_elsewhere, netns, port, holder), program, sockets)
        })
        .collect();
    ordered.sort_by_key(|(order, ..)| *order);
    let all = ordered.into_iter().filter_map(|((_, _, is_elsewhere, netns, port, holder), program, sockets)| {
        Some((holder, one(is_elsewhere, netns, port, program, &sockets)?))
    });
    let (holders, all): (Vec<Holder>, Vec<Watched>) = all.unzip();
    let mut watched = apart_by_address(all, &holders);
    let mut left_out = LeftOut::default();
    let beyond = watched.split_off(watched.len().min(TARGETS_MAX));
    for (holder, server) in holders.into_iter().skip(TARGETS_MAX).zip(beyond) {
        left_out.0.entry(holder).or_default().push(server.name);
    }
    Servers { watched, left_out }
}

/// The server of some sockets of one port.
fn one(is_elsewhere: bool, netns: NetnsId, port: u16, program: Option<&str>, sockets: &[&PortSocket]) -> Option<Watched> {
    let addresses: BTreeSet<IpAddr> = sockets.iter().map(|socket| reached_at(socket.local.0)).collect();
    // IPv4 sorts first.
    let address = addresses.into_iter().next()?;
    let host = if address.is_ipv6() { format!("[{address}]") } else { address.to_string() };
    let place = match sockets.first().and_then(|socket| socket.netns_name.clone()) {
        Some(name) if is_elsewhere => format!(" in {name}"),
        None if is_elsewhere => format!(" in {netns}"),
        _ => String::new(),
    };
    let request = Request {
        url: format!("http://{host}:{port}/"),
        scheme: "http".to_owned(),
        host,
        port,
        addresses: vec![address],
        client_netns: netns,
        server_netns: Some(netns),
        tool: Some(env!("CARGO_PKG_VERSION").to_owned()),
        ..Request::default()
    };
    Some(Watched { name: format!("{}:{port}{place}", program.unwrap_or("port")), request })
}

/// Servers whose names differ: those of one name are told apart by their addresses. A server of root's keeps its name beside those of other users: it may stand in root's configuration, and
/// its past is kept by it.
fn apart_by_address(mut all: Vec<Watched>, holders: &[Holder]) -> Vec<Watched> {
    const ROOT: Holder = Holder::User(0);
    let mut count: BTreeMap<(String, bool), usize> = BTreeMap::new();
    for (server, holder) in all.iter().zip(holders) {
        *count.entry((server.name.clone(), *holder == ROOT)).or_default() += 1;
    }
    let of = |name: &str, is_root: bool| count.get(&(name.to_owned(), is_root)).copied().unwrap_or(0);
    for (server, holder) in all.iter_mut().zip(holders) {
        let rivals = if *holder == ROOT { of(&server.name, true) } else { of(&server.name, true) + of(&server.name, false) };
        if rivals > 1 {
            server.name = format!("{} at {}", server.name, server.request.host);
        }
    }
    named_apart(all)
}

/// An address at which a listener on all addresses is reached.
fn reached_at(listens: IpAddr) -> IpAddr {
    match listens {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(netns: u64, address: &str, port: u16, program: &str) -> PortSocket {
        PortSocket {
            netns: NetnsId(netns),
            netns_name: (netns == 2).then(|| "blue".to_owned()),
            udp: port == 53,
            local: (address.parse().unwrap(), port),
            drops: None,
            inode: 1,
            uid: 0,
            holder: Holder::User(0),
            netns_is_users: false,
            program: (!program.is_empty()).then(|| program.to_owned()),
        }
    }

    #[test]
    fn no_two_servers_have_one_name() {
        let named = |name: &str| Watched { name: name.to_owned(), request: Request::default() };
        let found = named_apart(["http://h/?id=…", "http://h/?id=… (2)", "http://h/?id=…", "http://h/?id=…"].map(named).into());
        let names: Vec<&str> = found.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["http://h/?id=…", "http://h/?id=… (2)", "http://h/?id=… (3)", "http://h/?id=… (4)"]);
    }

    #[test]
    fn each_port_is_watched_once_and_this_program_never() {
        let sockets = [
            socket(2, "::", 8080, "java"),
            socket(1, "::", 80, "nginx"),
            socket(1, "0.0.0.0", 80, "nginx"),
            socket(1, "10.0.0.7", 9000, ""),
            socket(1, "127.0.0.1", 9464, OWN_PROGRAM),
            socket(1, "0.0.0.0", 53, "named"),
            socket(3, "0.0.0.0", 80, "nginx"),
        ];
        let found = listening(&sockets, NetnsId(1)).watched;
        let all: Vec<(&str, &str)> = found.iter().map(|found| (found.name.as_str(), found.request.url.as_str())).collect();
        assert_eq!(
            all,
            [
                ("nginx:80", "http://127.0.0.1:80/"),
                ("port:9000", "http://10.0.0.7:9000/"),
                ("java:8080 in blue", "http://[::1]:8080/"),
                ("nginx:80 in net:[3]", "http://127.0.0.1:80/"),
            ]
        );
        let many: Vec<PortSocket> = (1000..1100).map(|port| socket(1, "0.0.0.0", port, "x")).collect();
        let found = listening(&many, NetnsId(1));
        assert_eq!((found.watched.len(), found.left_out.named().as_str()), (TARGETS_MAX, "x:1016 and 83 more of user 0"));
    }

    #[test]
    fn who_listens_at_many_ports_takes_no_place_of_others() {
        let of = |uid: u32, socket: PortSocket| PortSocket { uid, holder: Holder::User(uid), ..socket };
        let crowd = (1000..1100).map(|port| of(65_534, socket(1, "0.0.0.0", port, "crowd")));
        let others = [
            of(0, socket(1, "0.0.0.0", 8080, "nginx")),
            of(33, socket(1, "0.0.0.0", 9000, "php-fpm")),
            of(0, socket(1, "0.0.0.0", 8443, "nginx")),
            of(33, socket(1, "0.0.0.0", 9001, "php-fpm")),
            of(0, socket(2, "0.0.0.0", 80, "caddy")),
        ];
        let found = listening(&crowd.chain(others).collect::<Vec<_>>(), NetnsId(1));
        let names: Vec<&str> = found.watched.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(
            names[..7],
            ["nginx:8080", "nginx:8443", "crowd:1000", "php-fpm:9000", "caddy:80 in blue", "crowd:1001", "php-fpm:9001"]
        );
        assert_eq!((names.len(), found.left_out.named().as_str()), (TARGETS_MAX, "crowd:1011 and 88 more of user 65534"));
        // Many servers of root leave a place to a container's only one.
        let roots = (1000..1100).map(|port| socket(1, "0.0.0.0", port, "x"));
        let found = listening(&roots.chain([socket(2, "0.0.0.0", 80, "caddy")]).collect::<Vec<_>>(), NetnsId(1));
        let names: Vec<&str> = found.watched.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names[..5], ["x:1000", "x:1001", "x:1002", "caddy:80 in blue", "x:1003"]);
    }

    /// User ids that were granted to one user, and network namespaces that this user made, have one share.
    #[test]
    fn further_user_ids_and_namespaces_give_no_further_places() {
        let of = |port: u16, uid: u32, holder: Holder, netns: u64, program: &str| PortSocket {
            uid,
            holder,
            netns_is_users: netns > 2,
            ..socket(netns, "127.0.0.1", port, program)
        };
        let crowd = (0..120).map(|n| of(11_000 + n, 100_010 + u32::from(n), Holder::User(4001), 1, "crowd"));
        let spaces = (0..120).map(|n| of(80, 0, Holder::User(4001), 100 + n, "space"));
        let others = (0..3).map(|n| of(18_500 + n, 65_534, Holder::User(65_534), 1, "server"));
        let found = listening(&crowd.chain(spaces).chain(others).collect::<Vec<_>>(), NetnsId(1));
        let servers = found.watched.iter().filter(|server| server.name.starts_with("server:")).count();
        assert_eq!((found.watched.len(), servers), (TARGETS_MAX, 3), "{:?}", found.watched);
        assert_eq!(found.left_out.named(), "crowd:11013 and 226 more of user 4001");
        // Of each who has none, one is named.
        let users = (0..30).map(|n| of(20_000 + n, 5_000 + u32::from(n), Holder::User(5_000 + u32::from(n)), 1, "own"));
        let crowd = (0..120).map(|n| of(11_000 + n, 100_010 + u32::from(n), Holder::User(4001), 1, "crowd"));
        let named = listening(&crowd.chain(users).collect::<Vec<_>>(), NetnsId(1)).left_out.named();
        assert!(named.starts_with("crowd:11001 and 118 more of user 4001, own:20015 of user 5015, "), "{named}");
        assert!(named.ends_with("own:20029 of user 5029"), "{named}");
    }

    /// Root's server at one address of loopback, and a program of somebody else at another with the same port.
    #[test]
    fn one_port_of_two_users_is_two_servers() {
        let sockets = [
            socket(1, "127.0.0.5", 18120, "nginx"),
            PortSocket { uid: 65_534, holder: Holder::User(65_534), ..socket(1, "127.0.0.1", 18120, "nginx") },
            socket(1, "127.0.0.7", 18120, "haproxy"),
            PortSocket { program: None, ..socket(1, "127.0.0.7", 18120, "") },
        ];
        let found = listening(&sockets, NetnsId(1)).watched;
        let all: Vec<(&str, &str)> = found.iter().map(|found| (found.name.as_str(), found.request.url.as_str())).collect();
        assert_eq!(
            all,
            [
                ("haproxy:18120", "http://127.0.0.7:18120/"),
                // A name that another user can take away is none.
                ("nginx:18120", "http://127.0.0.5:18120/"),
                ("nginx:18120 at 127.0.0.1", "http://127.0.0.1:18120/"),
            ]
        );
    }
}
