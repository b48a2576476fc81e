//! The network of a scenario, derived before anything is built: interfaces and addresses.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::document::{Link, LinkEnd, Scenario};
use super::names;
use super::units::Cidr;

/// Most links of a scenario: one byte numbers the automatic networks.
pub(crate) const LINKS_MAX: usize = 200;

/// One end of a link, with its name and addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) host: String,
    pub(crate) name: String,
    pub(crate) addresses: Vec<Cidr>,
    /// True where the host is a switch: the interface joins its bridge.
    pub(crate) bridged: bool,
}

/// The interfaces of a link's two ends, in the order of the file.
pub(crate) struct Topology {
    pub(crate) links: Vec<[Interface; 2]>,
}

impl Topology {
    /// Derives the network. Never fails: for an invalid scenario the result is useless.
    pub(crate) fn of(scenario: &Scenario) -> Topology {
        let is_bridge = |name: &str| scenario.host(name).is_some_and(|host| host.bridge);
        let bridges: Vec<&str> = scenario.hosts.iter().filter(|host| host.bridge).map(|host| host.name.as_str()).collect();
        let mut members: BTreeMap<&str, u8> = BTreeMap::new();
        let mut seen: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        let mut links = Vec::new();
        for (number, link) in scenario.links.iter().take(LINKS_MAX).enumerate() {
            let automatic = automatic_addresses(link, number, &bridges, &mut members);
            let mut interface = |end: &'_ LinkEnd, peer: &LinkEnd, automatic: Vec<Cidr>| {
                let (host, peer): (&str, &str) = (&end.host, &peer.host);
                // The key borrows from the scenario, not from the closure's arguments, whose lifetimes are shorter.
                let count = seen.entry((find(scenario, host), find(scenario, peer))).or_insert(0);
                let name = end.interface.clone().unwrap_or_else(|| names::interface_name(peer, *count));
                *count += 1;
                let bridged = is_bridge(host);
                let addresses = if bridged { Vec::new() } else { end.addresses.clone().unwrap_or(automatic) };
                Interface { host: host.to_owned(), name, addresses, bridged }
            };
            let [for_a, for_b] = automatic;
            links.push([interface(&link.a, &link.b, for_a), interface(&link.b, &link.a, for_b)]);
        }
        Topology { links }
    }

    /// The interfaces of one host.
    pub(crate) fn interfaces<'t>(&'t self, host: &str) -> impl Iterator<Item = &'t Interface> {
        self.links.iter().flatten().filter(move |interface| interface.host == host)
    }

    /// The first address of a host in one family.
    pub(crate) fn address(&self, host: &str, v6: bool) -> Option<IpAddr> {
        self.interfaces(host).flat_map(|interface| &interface.addresses).map(|cidr| cidr.ip).find(|ip| ip.is_ipv6() == v6)
    }
}

fn find<'s>(scenario: &'s Scenario, host: &str) -> &'s str {
    scenario.host(host).map_or("", |host| host.name.as_str())
}

/// Addresses for ends that give none: 10.78.N.0/24 and fd78:0:0:N::/64 for link N. All ends at a bridge share a network.
fn automatic_addresses<'s>(link: &Link, number: usize, bridges: &[&'s str], members: &mut BTreeMap<&'s str, u8>) -> [Vec<Cidr>; 2] {
    let pair = |network: usize, host: u8| {
        let network = u8::try_from(network).unwrap_or(u8::MAX);
        let v4 = Ipv4Addr::new(10, 78, network, host);
        let v6 = Ipv6Addr::new(0xfd78, 0, 0, u16::from(network), 0, 0, 0, u16::from(host));
        vec![Cidr { ip: v4.into(), prefix_bits: 24 }, Cidr { ip: v6.into(), prefix_bits: 64 }]
    };
    let bridge_of = |end: &LinkEnd| bridges.iter().position(|bridge| *bridge == end.host);
    match (bridge_of(&link.a), bridge_of(&link.b)) {
        (None, None) => [pair(number, 1), pair(number, 2)],
        (Some(_), Some(_)) => [Vec::new(), Vec::new()],
        (Some(bridge), None) | (None, Some(bridge)) => {
            let member = members.entry(bridges[bridge]).or_insert(0);
            *member = member.saturating_add(1);
            let addresses = pair(LINKS_MAX + bridge, *member);
            if bridge_of(&link.a).is_some() { [Vec::new(), addresses] } else { [addresses, Vec::new()] }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::tests::scenario_with;

    #[test]
    fn ends_without_addresses_get_ipv4_and_ipv6_addresses() {
        let scenario = scenario_with(
            "[[host]]\nname = 'x'\n[[link]]\na = { host = 'client' }\nb = { host = 'x' }\n[[link]]\na = { host = 'client' }\nb = { host = 'x' }\n",
        );
        let topology = Topology::of(&scenario);
        let names: Vec<&str> = topology.interfaces("client").map(|interface| interface.name.as_str()).collect();
        assert_eq!(names, ["to-server", "to-x", "to-x-2"]);
        assert_eq!(topology.address("x", false), Some("10.78.1.2".parse().unwrap()));
        assert_eq!(topology.address("x", true), Some("fd78:0:0:1::2".parse().unwrap()));
        assert_eq!(topology.address("nobody", true), None);
    }

    #[test]
    fn ends_at_a_bridge_share_a_network() {
        let scenario = scenario_with(
            "[[host]]\nname = 'sw'\nbridge = true\n[[link]]\na = { host = 'client' }\nb = { host = 'sw' }\n[[link]]\na = { host = 'sw' }\nb = { host = 'server' }\n",
        );
        let topology = Topology::of(&scenario);
        let address = |host: &str, link: usize| topology.links[link].iter().find(|end| end.host == host).unwrap().addresses[0];
        assert_eq!(address("client", 1).to_string(), "10.78.200.1/24");
        assert_eq!(address("server", 2).to_string(), "10.78.200.2/24");
        assert!(topology.interfaces("sw").all(|interface| interface.bridged && interface.addresses.is_empty()));
    }
}
