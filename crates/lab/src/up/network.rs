//! The network of a lab: namespaces, links, addresses, routes, shaping and rulesets, built with iproute2 and nft.

use std::path::Path;

use super::builder::Builder;
use crate::error::LabError;
use crate::machine::sysctl::{self, SysctlScope};
use crate::machine::{netns, spawn};
use crate::scenario::document::{Host, RouteTo, Shape};
use crate::scenario::names::BRIDGE_INTERFACE;
use crate::scenario::topology::Interface;

impl Builder<'_, '_> {
    /// Creates the namespaces of all hosts.
    pub(super) fn namespaces(&mut self) -> Result<(), LabError> {
        for index in 0..self.state.namespaces.len() {
            let name = self.state.namespaces[index].netns.clone();
            self.step(&format!("namespace {name}"), |state| state.namespaces[index].begun = true)?;
            spawn::tool(&self.tools.ip, &["netns", "add", &name], None)?;
            let path = netns::path(&name);
            self.state.namespaces[index].inode = Some(netns::inode(&path).map_err(LabError::io("cannot look at", &path))?);
        }
        Ok(())
    }

    /// Sets the settings that exist already, brings up loopback, and creates the bridges that links will join.
    pub(super) fn hosts(&mut self) -> Result<(), LabError> {
        let scenario = self.scenario;
        for host in &scenario.hosts {
            self.step(&format!("host {}", host.name), |_| ())?;
            self.skip_duplicate_detection(host)?;
            self.sysctls(host, false)?;
            self.ip(&host.name, &["link", "set", "lo", "up"])?;
            if host.bridge {
                self.ip(&host.name, &["link", "add", BRIDGE_INTERFACE, "type", "bridge"])?;
                self.ip(&host.name, &["link", "set", BRIDGE_INTERFACE, "up"])?;
            }
        }
        Ok(())
    }

    /// Switches duplicate address detection off. Nobody else can have the addresses, and detection takes a second or two, in which a router cannot
    /// even ask for its neighbours. The scenario's own settings come later and win.
    fn skip_duplicate_detection(&self, host: &Host) -> Result<(), LabError> {
        let path = self.netns_path(&host.name);
        let place = SysctlScope::Netns(&path);
        for key in ["net.ipv6.conf.default.accept_dad", "net.ipv6.conf.default.dad_transmits"] {
            if sysctl::exists(place, key).map_err(|source| LabError::Netns { host: host.name.clone(), source })? {
                let failed = |why| LabError::Sysctl { key: key.to_owned(), place: format!("in host \"{}\"", host.name), why };
                sysctl::set(place, key, "0").map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Sets a host's settings: those that exist, or, where `late`, those that links and rulesets have created.
    fn sysctls(&mut self, host: &Host, late: bool) -> Result<(), LabError> {
        let path = self.netns_path(&host.name);
        for (key, value) in &host.sysctls {
            let place = SysctlScope::Netns(&path);
            let known = sysctl::exists(place, key).map_err(|source| LabError::Netns { host: host.name.clone(), source })?;
            let done = self.sysctls_set.contains(&(host.name.clone(), key.clone()));
            if done || (!known && !late) {
                continue;
            }
            let failed = |why| LabError::Sysctl { key: key.clone(), place: format!("in host \"{}\"", host.name), why };
            sysctl::set(place, key, &value.0).map_err(failed)?;
            self.sysctls_set.insert((host.name.clone(), key.clone()));
        }
        Ok(())
    }

    /// Creates the links between hosts.
    pub(super) fn links(&mut self) -> Result<(), LabError> {
        let scenario = self.scenario;
        let ipv6 = Path::new("/proc/sys/net/ipv6").exists();
        for (index, link) in scenario.links.iter().enumerate() {
            let [a, b] = self.topology.links[index].clone();
            self.step(&format!("link {} - {}", a.host, b.host), |_| ())?;
            let mtu = link.mtu.map(|mtu| mtu.to_string());
            let mtu: Vec<&str> = mtu.iter().flat_map(|mtu| ["mtu", mtu]).collect();
            let peer = self.netns_name(&b.host);
            let mut add = vec!["link", "add", &a.name];
            add.extend(&mtu);
            add.extend(["type", "veth", "peer", "name", &b.name]);
            add.extend(&mtu);
            add.extend(["netns", &peer]);
            // Both ends are created inside their namespaces, never on the machine, so that they vanish with the namespaces.
            self.ip(&a.host, &add)?;
            for (interface, end) in [(&a, &link.a), (&b, &link.b)] {
                self.interface(interface, end.shape.as_ref(), end.addresses.is_none() && !ipv6)?;
            }
        }
        Ok(())
    }

    fn interface(&mut self, interface: &Interface, shape: Option<&Shape>, v4_only: bool) -> Result<(), LabError> {
        let (host, name) = (&interface.host, &interface.name);
        for cidr in interface.addresses.iter().filter(|cidr| !v4_only || cidr.ip.is_ipv4()) {
            let text = cidr.to_string();
            let mut add = vec!["address", "add", &text, "dev", name];
            if cidr.ip.is_ipv6() {
                // Without this the address could not be used for the first second.
                add.push("nodad");
            }
            self.ip(host, &add)?;
        }
        if interface.bridged {
            self.ip(host, &["link", "set", name, "master", BRIDGE_INTERFACE])?;
        }
        self.ip(host, &["link", "set", name, "up"])?;
        shape.map_or(Ok(()), |shape| self.shape(host, name, shape))
    }

    fn shape(&self, host: &str, interface: &str, shape: &Shape) -> Result<(), LabError> {
        let (rate, burst) = (format!("{}bit", shape.rate.0), shape.burst.0.to_string());
        let (word, bound) = match (shape.latency, shape.limit) {
            (Some(latency), _) => ("latency", format!("{}us", latency.0.as_micros())),
            (None, limit) => ("limit", limit.map_or(0, |limit| limit.0).to_string()),
        };
        let netns = self.netns_name(host);
        let tc = self.tools.tc.as_deref().unwrap_or(Path::new("tc"));
        let arguments = ["-n", &netns, "qdisc", "add", "dev", interface, "root", "tbf", "rate", &rate, "burst", &burst, word, &bound];
        spawn::tool(tc, &arguments, None)
    }

    /// Adds the routes.
    pub(super) fn routes(&mut self) -> Result<(), LabError> {
        let scenario = self.scenario;
        for host in scenario.hosts.iter().filter(|host| !host.routes.is_empty()) {
            self.step(&format!("routes of {}", host.name), |_| ())?;
            for route in &host.routes {
                let via = route.via.to_string();
                let to = match &route.to {
                    RouteTo::Default => "default".to_owned(),
                    RouteTo::Prefix(prefix) => prefix.to_string(),
                };
                self.ip(&host.name, &[if route.via.is_ipv6() { "-6" } else { "-4" }, "route", "add", &to, "via", &via])?;
            }
        }
        Ok(())
    }

    /// Loads the rulesets, then sets the settings that exist only with them (conntrack's).
    pub(super) fn rulesets(&mut self) -> Result<(), LabError> {
        let scenario = self.scenario;
        for host in &scenario.hosts {
            if let Some(ruleset) = &host.nftables {
                self.step(&format!("ruleset of {}", host.name), |_| ())?;
                let path = self.dir.run_path().join(format!("{}.nft", host.name));
                std::fs::write(&path, ruleset).map_err(LabError::io("cannot write", &path))?;
                let nft = self.tools.nft.as_deref().unwrap_or(Path::new("nft"));
                spawn::tool(nft, &["-f", &path.display().to_string()], Some(&self.netns_path(&host.name)))?;
            }
        }
        for host in &scenario.hosts {
            self.sysctls(host, true)?;
        }
        Ok(())
    }

    fn ip(&self, host: &str, arguments: &[&str]) -> Result<(), LabError> {
        let netns = self.netns_name(host);
        let mut all = vec!["-n", &netns];
        all.extend(arguments);
        spawn::tool(&self.tools.ip, &all, None)
    }
}
