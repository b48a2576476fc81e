//! Checks of hosts and links.

use std::collections::BTreeSet;

use super::check::Check;
use crate::machine::sysctl;
use crate::scenario::document::{Host, Link, LinkEnd, RouteTo};
use crate::scenario::locate::Path;
use crate::scenario::names;
use crate::scenario::topology::LINKS_MAX;

const HOSTS_MAX: usize = 50;

impl Check<'_> {
    pub(super) fn hosts(&mut self) {
        let root = Path::root();
        let scenario = self.scenario;
        if scenario.hosts.is_empty() || scenario.hosts.len() > HOSTS_MAX {
            self.problem(root.key("host"), format!("1 to {HOSTS_MAX} hosts are allowed"));
        }
        let mut seen = BTreeSet::new();
        for (index, host) in scenario.hosts.iter().enumerate() {
            let path = root.key("host").index(index);
            self.name(&host.name, path.key("name"));
            if !seen.insert(&host.name) {
                self.problem(path.key("name"), format!("there is a host \"{}\" already", host.name));
            }
            self.host(host, &path);
        }
    }

    fn host(&mut self, host: &Host, path: &Path) {
        for key in host.sysctls.keys() {
            let at = path.key("sysctls").key(key);
            match sysctl::check_key(key) {
                Err(why) => self.problem(at, why),
                Ok(()) if !sysctl::is_net(key) => {
                    self.problem(at, "only net. settings belong to a namespace; settings of the whole machine go to [host_sysctls]");
                }
                Ok(()) => {}
            }
        }
        if host.nftables.as_ref().is_some_and(|ruleset| ruleset.trim().is_empty()) {
            self.problem(path.key("nftables"), "the ruleset is empty");
        }
        for (index, route) in host.routes.iter().enumerate() {
            let path = path.key("routes").index(index);
            let reachable =
                self.topology.interfaces(&host.name).flat_map(|interface| &interface.addresses).any(|cidr| cidr.contains(route.via));
            if !reachable {
                self.problem(path.key("via"), format!("host \"{1}\" has no network that contains {0}", route.via, host.name));
            }
            if let RouteTo::Prefix(prefix) = &route.to {
                if prefix.ip.is_ipv4() != route.via.is_ipv4() {
                    self.problem(path.key("to"), format!("{prefix} and {} are of different families", route.via));
                } else if !prefix.is_network() {
                    self.problem(path.key("to"), format!("{prefix} has bits set beyond its prefix"));
                }
            }
        }
    }

    pub(super) fn links(&mut self) {
        let root = Path::root();
        if self.scenario.links.len() > LINKS_MAX {
            self.problem(root.key("link"), format!("at most {LINKS_MAX} links are allowed"));
        }
        for (index, link) in self.scenario.links.iter().enumerate() {
            self.link(link, index, &root.key("link").index(index));
        }
        let mut names = BTreeSet::new();
        let mut addresses = BTreeSet::new();
        let mut twice = Vec::new();
        for (index, ends) in self.topology.links.iter().enumerate() {
            for (end, interface) in ["a", "b"].iter().zip(ends) {
                let path = root.key("link").index(index).key(end);
                if !names.insert((&interface.host, &interface.name)) {
                    twice.push((
                        path.key("interface"),
                        format!("host \"{}\" has an interface \"{}\" already", interface.host, interface.name),
                    ));
                }
                for cidr in &interface.addresses {
                    if !addresses.insert((&interface.host, cidr.ip)) {
                        twice.push((path.key("addresses"), format!("host \"{}\" has the address {} already", interface.host, cidr.ip)));
                    }
                }
            }
        }
        self.problems.extend(twice);
    }

    fn link(&mut self, link: &Link, index: usize, path: &Path) {
        for (name, end) in [("a", &link.a), ("b", &link.b)] {
            self.end(end, &path.key(name));
        }
        if link.a.host == link.b.host {
            self.problem(path.key("b").key("host"), "a link joins two different hosts");
        }
        let bridged = |end: &LinkEnd| self.scenario.host(&end.host).is_some_and(|host| host.bridge);
        let (a, b) = (&link.a, &link.b);
        if !bridged(a) && !bridged(b) && a.addresses.is_some() != b.addresses.is_some() {
            let missing = if a.addresses.is_none() { "a" } else { "b" };
            self.problem(path.key(missing), "give addresses for both ends or for neither (`addresses = []` for an end without)");
        }
        let has_v6 =
            self.topology.links.get(index).is_some_and(|ends| ends.iter().flat_map(|end| &end.addresses).any(|cidr| cidr.ip.is_ipv6()));
        let mtu_min = if has_v6 { 1280 } else { 68 };
        if link.mtu.is_some_and(|mtu| !(mtu_min..=65_535).contains(&mtu)) {
            let why = if has_v6 { " (IPv6 needs 1280; for less, give only IPv4 addresses)" } else { "" };
            self.problem(path.key("mtu"), format!("{mtu_min} to 65535 bytes are allowed{why}"));
        }
    }

    fn end(&mut self, end: &LinkEnd, path: &Path) {
        self.host_known(&end.host, path.key("host"));
        if let Some(name) = &end.interface {
            self.result(path.key("interface"), names::check_interface(name));
        }
        let bridged = self.scenario.host(&end.host).is_some_and(|host| host.bridge);
        if bridged && end.addresses.as_ref().is_some_and(|addresses| !addresses.is_empty()) {
            self.problem(path.key("addresses"), format!("host \"{}\" is a bridge: its link ends have no addresses", end.host));
        }
        for (index, cidr) in end.addresses.iter().flatten().enumerate() {
            if cidr.ip.is_unspecified() || cidr.ip.is_loopback() || cidr.ip.is_multicast() {
                self.problem(path.key("addresses").index(index), format!("{} cannot be the address of a link", cidr.ip));
            }
        }
        if let Some(shape) = &end.shape {
            let path = path.key("shape");
            if shape.latency.is_some() == shape.limit.is_some() {
                self.problem(path.clone(), "give either `latency` (longest wait) or `limit` (bytes that may wait)");
            }
            if shape.burst.0 < 1600 || shape.burst.0 > 1 << 30 {
                self.problem(path.key("burst"), "1600B (one packet) to 1GiB are allowed");
            }
        }
    }
}
