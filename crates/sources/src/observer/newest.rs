//! The newest readings that the path is found in. Each is parsed once, when the path is next looked for, however often that happens.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use chokepoint_model::observation::{NetnsId, Observation};
use chokepoint_recording::{Entry, Outcome, Scope};

use crate::assemble::place;

/// One reading of each source and scope.
#[derive(Default)]
pub(super) struct Newest {
    view: Observation,
    /// Readings that are not parsed yet.
    unparsed: BTreeMap<(Scope, &'static str), Entry>,
    /// Fingerprints of the newest readings: most of them say the same as the one before.
    known: BTreeMap<(Scope, &'static str), u64>,
    /// Number of readings that were parsed.
    parsed: u64,
}

impl Newest {
    /// Takes a reading with a value. True if it says something else than the one before.
    pub(super) fn take(&mut self, source: &'static str, entry: &Entry) -> bool {
        let mut hasher = DefaultHasher::new();
        if let Outcome::Ok(bytes) = &entry.outcome {
            bytes.hash(&mut hasher);
        }
        let is_new = self.known.insert((entry.scope, source), hasher.finish()) != Some(hasher.finish());
        if is_new {
            self.unparsed.insert((entry.scope, source), entry.clone());
        }
        is_new
    }

    /// Forgets everything that was read of this scope.
    pub(super) fn forget(&mut self, scope: Scope) {
        self.known.retain(|(known, _), _| *known != scope);
        self.unparsed.retain(|(unparsed, _), _| *unparsed != scope);
        match scope {
            Scope::Host => {}
            Scope::Netns(id) => drop(self.view.netns.remove(&NetnsId(id))),
            Scope::Process(pid) => {
                self.view.processes.remove(&pid);
                self.view.servers.remove(&pid);
            }
        }
    }

    /// True if this source was ever read.
    pub(super) fn has(&self, source: &str) -> bool {
        self.known.keys().any(|(_, known)| *known == source)
    }

    /// Parses the readings of these sources that came since they were last asked for. Says of which sources there were some.
    pub(super) fn parse(&mut self, sources: &[&str]) -> BTreeSet<&'static str> {
        let asked = self.unparsed.extract_if(.., |(_, source), _| sources.contains(source));
        let asked: Vec<((Scope, &'static str), Entry)> = asked.collect();
        let mut changed = BTreeSet::new();
        for ((scope, source), entry) in asked {
            self.parsed += 1;
            changed.insert(source);
            let mut one = Observation::default();
            place(&mut one, &entry);
            self.replace(source, scope, one);
        }
        changed
    }

    /// Those that were parsed.
    pub(super) fn view(&self) -> &Observation {
        &self.view
    }

    /// Puts the reading in `one` in place of the one before.
    fn replace(&mut self, source: &str, scope: Scope, one: Observation) {
        let view = &mut self.view;
        match scope {
            Scope::Netns(id) => {
                let Some(new) = one.netns.into_values().next() else { return };
                let old = view.netns.entry(NetnsId(id)).or_default();
                match source {
                    "listeners" => old.listeners = new.listeners,
                    "sockets" => old.sockets = new.sockets,
                    "addresses" => old.addresses = new.addresses,
                    "netns" => (old.name, old.is_host, old.made_by) = (new.name, new.is_host, new.made_by),
                    _ => old.conntrack_translations = new.conntrack_translations,
                }
            }
            Scope::Process(pid) => {
                if let Some(new) = one.processes.into_values().next() {
                    view.processes.entry(pid).or_default().files = new.files;
                }
                if let Some(new) = one.servers.into_values().next() {
                    view.servers.insert(pid, new);
                }
            }
            Scope::Host => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sampler::SCOUTED;
    use super::*;

    fn entry(source: &str, scope: Scope, bytes: &[u8]) -> Entry {
        Entry { at_us: 1, source: source.to_owned(), scope, item: String::new(), outcome: Outcome::Ok(bytes.to_vec()) }
    }

    const CONFIG: &[u8] =
        b"server nginx\nprefix /etc/nginx\nversion 1.22\n# configuration file /etc/nginx/nginx.conf:\nevents {}\nhttp { server { listen 80; } }\n";

    #[test]
    fn a_reading_is_parsed_once_however_often_the_path_is_looked_for() {
        let mut newest = Newest::default();
        assert!(newest.take("server_config", &entry("server_config", Scope::Process(7), CONFIG)));
        assert_eq!(newest.parse(&["listeners"]), BTreeSet::new());
        assert_eq!(newest.parse(&SCOUTED), BTreeSet::from(["server_config"]));
        assert!(newest.view().servers[&7].nginx().is_some(), "{:?}", newest.view());
        for turn in 0..100_u32 {
            // Another listener comes with each turn; the configuration is read anew and is the same.
            assert!(!newest.take("server_config", &entry("server_config", Scope::Process(7), CONFIG)));
            newest.take("process_files", &entry("process_files", Scope::Process(8), format!("socket:[{turn}]\n").as_bytes()));
            newest.parse(&SCOUTED);
        }
        assert_eq!(newest.parsed, 101);
        assert!(newest.view().servers.contains_key(&7));
    }

    #[test]
    fn every_scouted_source_has_its_place_and_the_newest_reading_counts() {
        for source in SCOUTED {
            let scope = if ["process_files", "server_config"].contains(&source) { Scope::Process(7) } else { Scope::Netns(3) };
            let text: &[u8] = if source == "server_config" { CONFIG } else { b"" };
            let mut whole = Observation::default();
            place(&mut whole, &entry(source, scope, text));
            let mut newest = Newest::default();
            for _ in 0..2 {
                newest.take(source, &entry(source, scope, b"\0damaged"));
                newest.parse(&SCOUTED);
                newest.take(source, &entry(source, scope, text));
                newest.parse(&SCOUTED);
                assert_eq!(*newest.view(), whole, "{source}");
            }
            newest.forget(scope);
            assert_eq!((newest.view().clone(), newest.has(source)), (Observation::default(), false));
        }
    }
}
