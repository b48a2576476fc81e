//! The values in force for HAProxy as a whole and for each proxy.

use std::collections::BTreeMap;

use super::address::{self, Address};
use super::error::LoadError;
use super::proxy::{Preset, Proxy, ProxyKind, Values};
use super::tree::{Tree, from, is_section};
use crate::Setting;

/// Settings of `global` with a number that is read.
pub(super) const GLOBAL: &[&str] = &["maxconn", "maxsessrate", "nbthread"];
/// Memory of a proxy and of a line that makes an entry of its own in it, besides the values of its defaults.
const PROXY_BYTES: usize = 512;
const LINE_BYTES: usize = 512;

/// `global`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Global {
    values: Values,
    /// Where it answers to commands (`stats socket`).
    pub stats_sockets: Vec<Setting<Address>>,
}

impl Global {
    /// `maxconn`: the most connections of clients. `None`: HAProxy takes what its limit of descriptors allows.
    pub fn maxconn(&self) -> Option<Setting<u64>> {
        self.values.number("maxconn").filter(|setting| setting.value > 0)
    }

    /// `maxsessrate`: the most connections that it accepts in a second.
    pub fn sessions_per_s(&self) -> Option<Setting<u64>> {
        self.values.number("maxsessrate").filter(|setting| setting.value > 0)
    }

    /// The number of a limit by its name.
    pub(super) fn number(&self, limit: &str) -> Option<u64> {
        self.values.number(limit).map(|setting| setting.value)
    }

    /// `nbthread`. `None`: a thread for each core that it may run on (since 2.0).
    pub fn threads(&self) -> Option<Setting<u64>> {
        self.values.number("nbthread").filter(|setting| setting.value > 0)
    }
}

/// A whole configuration in force.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Haproxy {
    /// `global`.
    pub global: Global,
    /// Frontends, backends and both, in their order.
    pub proxies: Vec<Proxy>,
}

/// The section that a line belongs to.
enum Section {
    Global,
    Defaults(usize),
    Proxy,
    Other,
}

impl Haproxy {
    /// The configuration in force.
    ///
    /// # Errors
    /// It takes more memory than is allowed.
    pub fn of(tree: &Tree) -> Result<Self, LoadError> {
        let mut read = Self::default();
        let mut presets: Vec<Preset> = Vec::new();
        let mut by_name: BTreeMap<String, usize> = BTreeMap::new();
        let mut section = Section::Other;
        let mut left = tree.left();
        let mut take = |bytes: usize| {
            left = left.checked_sub(bytes).ok_or(LoadError::TooMuch)?;
            Ok::<(), LoadError>(())
        };
        let mut file = 0;
        for (node, entry) in tree.nodes() {
            if node.file != file {
                // A section ends with its file; `defaults` hold for the next ones.
                (file, section) = (node.file, Section::Other);
            }
            let place = tree.place(node);
            if is_section(entry) {
                // A proxy begins with the settings of the last `defaults` before it, or with those that it names.
                let preset = match from(entry).map(|at| entry.word(at + 1)) {
                    Some(name) => by_name.get(name).map(|index| &presets[*index]),
                    None if entry.word(0) == "defaults" => None,
                    None => presets.last(),
                };
                let preset = preset.cloned().unwrap_or_default();
                let bytes = PROXY_BYTES + preset.values.bytes() + preset.of_server.bytes();
                section = match (entry.word(0), ProxyKind::of(entry.word(0))) {
                    ("global", _) => Section::Global,
                    ("defaults", _) => {
                        take(bytes)?;
                        presets.push(preset);
                        by_name.insert(entry.word(1).to_owned(), presets.len() - 1);
                        Section::Defaults(presets.len() - 1)
                    }
                    (_, Some(kind)) => {
                        take(bytes)?;
                        read.proxies.push(Proxy::new(entry.word(1).to_owned(), kind, place, preset));
                        Section::Proxy
                    }
                    _ => Section::Other,
                };
                continue;
            }
            match section {
                Section::Global => read.global.take(entry, &place),
                Section::Defaults(index) => presets[index].take(entry, &place),
                Section::Proxy => {
                    if let Some(proxy) = read.proxies.last_mut() {
                        let (binds, before) = (proxy.binds.len(), proxy.binds.len() + proxy.uses.len() + proxy.servers.len());
                        proxy.take(entry, &place);
                        let entries = proxy.binds.len() + proxy.uses.len() + proxy.servers.len() - before;
                        let addresses = proxy.binds[binds..].iter().map(|bind| bind.addresses.len()).sum::<usize>();
                        take(entries * LINE_BYTES + addresses * size_of::<Address>())?;
                    }
                }
                Section::Other => {}
            }
        }
        Ok(read)
    }

    /// The backends that a proxy may use, itself if it has servers.
    pub fn behind<'a>(&'a self, front: &'a Proxy) -> Vec<&'a Proxy> {
        let uses = front.backends();
        let is_any = uses.iter().any(|used| used.backend.is_none());
        let is_used = |back: &&Proxy| {
            let is_named = is_any || uses.iter().any(|used| used.backend.as_deref() == Some(&back.name));
            back.is_back() && (std::ptr::eq(*back, front) || is_named)
        };
        self.proxies.iter().filter(is_used).collect()
    }
}

impl Global {
    fn take(&mut self, entry: &super::file::Entry, place: &crate::SourceLine) {
        if entry.word(0) == "stats" && entry.word(1) == "socket" {
            let word = entry.words.get(2).filter(|word| !word.computed);
            let address = word.map_or(Address::Unknown, |word| address::parse(&word.text));
            self.stats_sockets.push(Setting::set(address, place.clone()));
        }
        if let Some(name) = GLOBAL.iter().find(|name| **name == entry.word(0)) {
            self.values.set(name, entry.words.get(1), place);
        }
    }
}
