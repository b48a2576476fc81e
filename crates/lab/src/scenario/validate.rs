//! What a scenario must keep beyond the kinds of its fields: names that exist, values that agree. Finds every problem, not the first alone.

use std::collections::BTreeSet;

use chokepoint_model::report::Verdict;

use super::document::{Effect, Expect, FileSpec, Host, Link, LinkEnd, Load, RouteTo, Scenario};
use super::error::edit_distance;
use super::locate::Path;
use crate::names;
use crate::placeholder::{self, Values};
use crate::sysctl;
use crate::topology::{LINKS_MAX, Topology};

mod cgroups;
mod programs;

/// The schema that this program reads.
const SCHEMA: i64 = 1;

const HOSTS_MAX: usize = 50;
const FILES_BYTES_MAX: u64 = 256 << 20;

/// Collects problems.
pub(super) struct Check<'s> {
    pub(super) scenario: &'s Scenario,
    pub(super) topology: Topology,
    pub(super) problems: Vec<(Path, String)>,
}

/// Says that a text is of another schema than this program reads. What is no TOML, or has no schema, is for others to tell.
pub(super) fn check_schema(text: &str) -> Result<(), (Path, String)> {
    let Ok(document) = toml::de::DeTable::parse(text) else { return Ok(()) };
    let schema = document.get_ref().iter().find(|(key, _)| key.get_ref() == "schema").and_then(|(_, value)| value.get_ref().as_integer());
    match schema {
        Some(schema) if i64::from_str_radix(schema.as_str(), schema.radix()) != Ok(SCHEMA) => {
            let message = format!("this program reads schema {SCHEMA}, the file is of schema {schema}");
            Err((Path::root().key("schema"), message))
        }
        _ => Ok(()),
    }
}

/// Every problem of a scenario.
pub(super) fn validate(scenario: &Scenario) -> Vec<(Path, String)> {
    let mut check = Check { scenario, topology: Topology::of(scenario), problems: Vec::new() };
    let root = Path::root();
    check.name(&scenario.name, root.key("name"));
    if scenario.title.trim().is_empty() || scenario.title.contains('\n') {
        check.problem(root.key("title"), "one sentence on one line is wanted");
    }
    check.hosts();
    check.links();
    for key in scenario.host_sysctls.keys() {
        check.result(root.key("host_sysctls").key(key), sysctl::check_key(key));
    }
    check.files(&scenario.files);
    check.cgroups();
    check.programs();
    check.load(&scenario.load, &root.key("load"));
    check.expect(&scenario.expect, &root.key("expect"));
    check.problems
}

impl Check<'_> {
    pub(super) fn problem(&mut self, path: Path, message: impl Into<String>) {
        self.problems.push((path, message.into()));
    }

    pub(super) fn result(&mut self, path: Path, result: Result<(), String>) {
        if let Err(message) = result {
            self.problem(path, message);
        }
    }

    fn name(&mut self, name: &str, path: Path) {
        self.result(path, names::check_name(name));
    }

    /// A host that must exist.
    pub(super) fn host_known(&mut self, name: &str, path: Path) {
        if self.scenario.host(name).is_some() {
            return;
        }
        let known: Vec<&str> = self.scenario.hosts.iter().map(|host| host.name.as_str()).collect();
        let near = known.iter().map(|known| (edit_distance(name, known), *known)).min().filter(|(distance, _)| *distance <= 2);
        let meant = near.map(|(_, known)| format!("; did you mean \"{known}\"?")).unwrap_or_default();
        self.problem(path, format!("there is no host \"{name}\": hosts are {}{meant}", known.join(", ")));
    }

    /// Texts in which the run directory and a server's values have a meaning but are not yet known.
    pub(super) fn expanded(&mut self, text: &str, server: Option<&placeholder::ServerValues>, path: Path) -> Option<String> {
        let values = Values { lab: &self.scenario.name, topology: &self.topology, run: Some("/run/lab"), server };
        match placeholder::expand(text, &values) {
            Ok(text) => Some(text),
            Err(why) => {
                self.problem(path, why);
                None
            }
        }
    }

    fn hosts(&mut self) {
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
                self.problem(path.key("via"), format!("{} is in no network of host \"{}\"", route.via, host.name));
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

    fn links(&mut self) {
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
            self.problem(path.key(missing), "addresses are wanted at both ends or at neither (`addresses = []` for an end without)");
        }
        let has_v6 =
            self.topology.links.get(index).is_some_and(|ends| ends.iter().flat_map(|end| &end.addresses).any(|cidr| cidr.ip.is_ipv6()));
        let mtu_min = if has_v6 { 1280 } else { 68 };
        if link.mtu.is_some_and(|mtu| !(mtu_min..=65_535).contains(&mtu)) {
            let why = if has_v6 { " (IPv6 needs 1280; give IPv4 addresses alone for less)" } else { "" };
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
                self.problem(path.clone(), "one of `latency` (longest wait) and `limit` (bytes that may wait) is wanted");
            }
            if shape.burst.0 < 1600 || shape.burst.0 > 1 << 30 {
                self.problem(path.key("burst"), "1600B (one packet) to 1GiB are allowed");
            }
        }
    }

    fn files(&mut self, files: &[FileSpec]) {
        let root = Path::root();
        let mut seen: BTreeSet<String> =
            self.scenario.servers.iter().flat_map(|server| crate::server::reserved_files(&server.name)).collect();
        seen.extend(self.scenario.hosts.iter().map(|host| format!("{}.nft", host.name)));
        let mut total: u64 = 0;
        for (index, file) in files.iter().enumerate() {
            let path = root.key("file").index(index);
            let parts_good = file.path.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
            if !parts_good || file.path.contains('\0') || file.path.len() > 200 {
                let message = format!("\"{}\" is no path below the run directory: it begins without / and has no `.` or `..`", file.path);
                self.problem(path.key("path"), message);
            } else if !seen.insert(file.path.clone()) {
                self.problem(path.key("path"), format!("there is a file \"{}\" already (one given here, or a server's own)", file.path));
            }
            if file.content.is_some() == file.size.is_some() {
                self.problem(path.clone(), "one of `content` and `size` is wanted");
            }
            if let Some(content) = &file.content {
                self.expanded(content, None, path.key("content"));
            }
            total = total.saturating_add(file.size.map_or(0, |size| size.0));
            if total > FILES_BYTES_MAX {
                self.problem(path.key("size"), format!("all files together may have at most {} MiB", FILES_BYTES_MAX >> 20));
            }
        }
    }

    fn load(&mut self, load: &Load, path: &Path) {
        if let Some(url) = self.expanded(&load.url, None, path.key("url")) {
            let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
            let authority = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
            if authority.is_none_or(str::is_empty) || url.contains(|c: char| c.is_whitespace() || c.is_control()) {
                self.problem(path.key("url"), format!("\"{url}\" is no URL such as \"http://{{address:server}}/\""));
            }
        }
        if load.tls.is_some() && !load.url.starts_with("https://") {
            self.problem(path.key("tls"), "only a URL with https has it");
        }
        if load.connections.is_some_and(|n| !(1..=1_000_000).contains(&n)) {
            self.problem(path.key("connections"), "1 to 1000000 are allowed");
        }
        if load.rate.is_some_and(|rate| !(rate > 0.0 && rate <= 1e7)) {
            self.problem(path.key("rate"), "more than 0 and at most 10000000 requests a second are allowed");
        }
        for (name, span, seconds_max) in
            [("duration", Some(load.duration), 3600), ("timeout", Some(load.timeout), 600), ("slo_p99", load.slo_p99, 600)]
        {
            if span.is_some_and(|span| span.0.is_zero() || span.0.as_secs() > seconds_max) {
                self.problem(path.key(name), format!("more than 0 and at most {seconds_max} s are allowed"));
            }
        }
        let token = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b));
        if !token(&load.method) {
            self.problem(path.key("method"), format!("\"{}\" is no HTTP method", load.method));
        }
        for (name, value) in &load.headers {
            if !token(name) || value.contains(['\r', '\n', '\0']) {
                self.problem(path.key("headers").key(name), "a header's name is one word and its value one line");
            }
        }
        if load.threads.is_some_and(|n| !(1..=1024).contains(&n)) {
            self.problem(path.key("threads"), "1 to 1024 are allowed");
        }
    }

    fn expect(&mut self, expect: &Expect, path: &Path) {
        let place = |index: usize| if expect.finding.len() == 1 { path.key("finding") } else { path.key("finding").index(index) };
        let ids = expect.finding.iter().enumerate().map(|(index, id)| (place(index), id));
        let ids = ids.chain(expect.remedy.iter().map(|id| (path.key("remedy"), id)));
        let ids = ids.chain(expect.causes.iter().enumerate().map(|(index, id)| (path.key("causes").index(index), id)));
        let ids = ids.chain(expect.forbidden.iter().enumerate().map(|(index, id)| (path.key("forbidden").index(index), id)));
        let lists = [("improvements", &expect.improvements), ("improvements_forbidden", &expect.improvements_forbidden)];
        let listed = lists.iter().flat_map(|(name, list)| list.iter().enumerate().map(|(index, id)| (path.key(name).index(index), id)));
        let ids = ids.chain(listed);
        let wrong: Vec<_> = ids.filter(|(_, id)| names::check_name(id).is_err()).map(|(at, id)| (at, id.clone())).collect();
        for (at, id) in wrong {
            self.problem(at, format!("\"{id}\" is no id: lower-case words joined by `-`, such as \"conntrack-table-full\""));
        }
        if expect.improvements.iter().any(|id| expect.improvements_forbidden.contains(id)) {
            self.problem(path.key("improvements_forbidden"), "the expected improvement is forbidden");
        }
        if expect.finding.iter().any(|id| expect.forbidden.contains(id)) {
            self.problem(path.key("forbidden"), "the expected finding is forbidden");
        }
        let choked_possible =
            expect.verdict.is_empty() || expect.verdict.iter().any(|v| matches!(v, Verdict::Choked | Verdict::ClientLimited));
        if !expect.finding.is_empty() && !expect.finding.iter().any(|id| id == "none") && !choked_possible {
            self.problem(path.key("verdict"), "with a finding expected, the verdict can be \"choked\" or \"client-limited\" only");
        }
        if !expect.limited_by.is_empty() && !expect.verdict.is_empty() && !expect.verdict.contains(&Verdict::Healthy) {
            self.problem(path.key("limited_by"), "only a verdict \"healthy\" has it");
        }
        for (name, given) in
            [("remedy", expect.remedy.is_some()), ("causes", !expect.causes.is_empty()), ("result", expect.result.is_some())]
        {
            if given && expect.finding_none() {
                self.problem(path.key(name), "nothing is fixed where no finding is expected");
            }
        }
        if let Some(calls) = &expect.calls {
            let [low, high] = calls.per_request;
            if !(low >= 0.0 && low <= high && high.is_finite()) {
                self.problem(path.key("calls").key("per_request"), "the least and the most, not less than 0, are wanted");
            }
        }
        if let Some(reference) = &expect.reference {
            let path = path.key("reference");
            if !(1..=20).contains(&reference.pairs) {
                self.problem(path.key("pairs"), "1 to 20 are allowed");
            }
            self.times(reference.goodput_times_at_least, &path);
        }
        if let Some(capture) = &expect.capture {
            self.host_known(&capture.host, path.key("capture").key("host"));
        }
        let kept = [
            ("capture", expect.capture.as_ref().map(|wanted| &wanted.kept)),
            ("sockets", expect.sockets.as_ref().map(|wanted| &wanted.kept)),
        ];
        for (name, kept) in kept {
            if kept.is_some_and(|kept| !["in-force", "partly", "not", "unknown"].contains(&kept.as_str())) {
                self.problem(path.key(name).key("kept"), "\"in-force\", \"partly\", \"not\" and \"unknown\" are known");
            }
        }
        if let Some(effect) = &expect.effect {
            let path = path.key("effect");
            if expect.remedy.is_none() {
                self.problem(path.clone(), "an effect is measured after a remedy: `remedy` must be given");
            }
            self.effect(effect, &path);
        }
        if let Some(result) = &expect.result {
            self.effect(result, &path.key("result"));
        }
    }

    fn effect(&mut self, effect: &Effect, path: &Path) {
        let given = [effect.goodput_times_at_least.is_some(), effect.failed_share_at_most.is_some(), effect.latency_p99_at_most.is_some()];
        if given.iter().all(|given| !given) && effect.changes_at_most.is_none() {
            self.problem(
                path.clone(),
                "one of goodput_times_at_least, failed_share_at_most, latency_p99_at_most, changes_at_most is wanted",
            );
        }
        self.times(effect.goodput_times_at_least, path);
        if effect.failed_share_at_most.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
            self.problem(path.key("failed_share_at_most"), "a share from 0 to 1 is wanted");
        }
    }

    fn times(&mut self, times: Option<f64>, path: &Path) {
        if times.is_some_and(|times| !(times > 0.0 && times.is_finite())) {
            self.problem(path.key("goodput_times_at_least"), "a number above 0 is wanted");
        }
    }
}
