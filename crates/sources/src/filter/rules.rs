//! Chains and rules of nf_tables, and where packets meet those that may take them (linux/netfilter/nf_tables.h).

use std::collections::{BTreeMap, BTreeSet};

use chokepoint_model::observation::{FilterHook, FilterPorts, FilterRule, FilterRules};

use super::expressions::{self, Verdict};
use crate::netlink::wire::{Message, WireError, attributes, text};

/// NFNL_SUBSYS_NFTABLES, in the upper byte of a message's kind.
const SUBSYSTEM: u16 = 10 << 8;
const NEW_CHAIN: u16 = SUBSYSTEM | 3;
/// Asks for chains.
pub(super) const GET_CHAIN: u16 = SUBSYSTEM | 4;
const NEW_RULE: u16 = SUBSYSTEM | 6;
/// Asks for rules.
pub(super) const GET_RULE: u16 = SUBSYSTEM | 7;
/// Bytes of `struct nfgenmsg`: family, version, number.
const FIXED_BYTES: usize = 4;
/// Most chains and jumps between them that are kept.
const CHAINS_MAX: usize = 1 << 16;
const POLICY_DROP: u32 = 0;
/// Most calls of chains one within another (NFT_JUMP_STACK_SIZE, include/net/netfilter/nf_tables.h).
const CALLS_MAX: usize = 16;

const FAMILIES: [(u8, &str); 6] = [(1, "inet"), (2, "ip"), (3, "arp"), (5, "netdev"), (7, "bridge"), (10, "ip6")];

/// A chain by family, table and name.
type Name = (u8, String, String);

/// What a rule asks of packets: their ports, and whether it asks for their sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Asked {
    ports: FilterPorts,
    is_by_source: bool,
}

impl Asked {
    /// What both ask for together, one rule after another.
    fn and(self, other: Asked) -> Asked {
        let ports = match (self.ports, other.ports) {
            (FilterPorts::Any, ports) | (ports, FilterPorts::Any) => ports,
            (a, b) if a == b => a,
            _ => FilterPorts::Unknown,
        };
        Asked { ports, is_by_source: self.is_by_source || other.is_by_source }
    }

    /// What is asked for where packets come by either rule.
    fn or(self, other: Asked) -> Asked {
        let ports = match (self.ports, other.ports) {
            (a, b) if a == b => a,
            (FilterPorts::Any, _) | (_, FilterPorts::Any) => FilterPorts::Any,
            _ => FilterPorts::Unknown,
        };
        Asked { ports, is_by_source: self.is_by_source && other.is_by_source }
    }
}

/// What was listed so far: chains come first.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// Hooks of the chains that the kernel calls.
    bases: BTreeMap<Name, FilterHook>,
    /// Chains that are called by others, from where, and for which packets.
    called_from: BTreeMap<Name, BTreeMap<Name, Asked>>,
    /// Tables with a map that leads to chains which are not known here.
    mapped: BTreeSet<(u8, String)>,
    /// Rules and policies that may take packets.
    takers: Vec<(Name, FilterRule)>,
}

impl Listed {
    /// Adds a message of a dump. Those of other kinds are none of ours.
    pub(super) fn add(&mut self, message: &Message<'_>) -> Result<(), WireError> {
        let (fixed, rest) = message.split("nfgenmsg", FIXED_BYTES)?;
        match message.kind {
            NEW_CHAIN => self.chain(fixed[0], rest),
            NEW_RULE => self.rule(fixed[0], rest),
            _ => Ok(()),
        }
    }

    fn chain(&mut self, family: u8, bytes: &[u8]) -> Result<(), WireError> {
        let (mut table, mut name, mut number, mut policy, mut taken) = (String::new(), String::new(), None, None, None);
        for attribute in attributes(bytes) {
            let attribute = attribute?;
            match attribute.kind {
                1 => table = text(attribute.value),
                3 => name = text(attribute.value),
                4 => number = nested(attribute.value, 1)?.and_then(be32),
                5 => policy = be32(attribute.value),
                8 => taken = nested(attribute.value, 2)?.and_then(be64),
                _ => {}
            }
        }
        let Some(hook) = number.and_then(|number| hook(family, number)) else { return Ok(()) };
        let key = (family, table, name);
        if self.bases.len() >= CHAINS_MAX {
            return Ok(());
        }
        if policy == Some(POLICY_DROP) {
            self.takers.push((key.clone(), FilterRule { text: "policy drop".to_owned(), taken, ..named(&key, 0) }));
        }
        self.bases.insert(key, hook);
        Ok(())
    }

    fn rule(&mut self, family: u8, bytes: &[u8]) -> Result<(), WireError> {
        let (mut table, mut chain, mut handle, mut list) = (String::new(), String::new(), 0, &[][..]);
        for attribute in attributes(bytes) {
            let attribute = attribute?;
            match attribute.kind {
                1 => table = text(attribute.value),
                2 => chain = text(attribute.value),
                3 => handle = be64(attribute.value).unwrap_or(0),
                4 => list = attribute.value,
                _ => {}
            }
        }
        let key = (family, table, chain);
        let rule = expressions::read(list)?;
        if rule.has_map {
            // It may also drop by itself: its elements are not read.
            self.mapped.insert((family, key.1.clone()));
        }
        match rule.verdict {
            Verdict::Passes => {}
            Verdict::Calls(target) if self.called_from.len() < CHAINS_MAX => {
                let asked = Asked { ports: rule.ports, is_by_source: rule.is_by_source };
                let callers = self.called_from.entry((family, key.1.clone(), target)).or_default();
                callers.entry(key).and_modify(|before| *before = before.or(asked)).or_insert(asked);
            }
            Verdict::Calls(_) => {}
            Verdict::Takes => {
                let (ports, is_by_source) = (rule.ports, rule.is_by_source);
                let named = FilterRule { text: rule.text, taken: rule.counted, ports, is_by_source, ..named(&key, handle) };
                self.takers.push((key, named));
            }
        }
        Ok(())
    }

    /// The rules that may take packets, at most so many, each with its hooks. A chain that nothing leads to takes none.
    pub(super) fn takers(&self, most: usize) -> FilterRules {
        let reached = self.reached(self.takers.iter().map(|(chain, _)| chain));
        let mut known = BTreeMap::new();
        let mut found = FilterRules::default();
        for (chain, rule) in &self.takers {
            let Some(hooks) = reached.get(chain) else { continue };
            if found.rules.len() >= most {
                found.left_out += 1;
                continue;
            }
            let own = Asked { ports: rule.ports, is_by_source: rule.is_by_source };
            let Asked { ports, is_by_source } = self.asked(chain, CALLS_MAX, &mut known).map_or(own, |before| before.and(own));
            found.rules.push(FilterRule { hooks: hooks.iter().copied().collect(), ports, is_by_source, ..rule.clone() });
        }
        found
    }

    /// What the rules ask for by which packets come to this chain; `None` if the kernel calls it, and beyond so many calls.
    fn asked<'a>(&'a self, chain: &'a Name, calls: usize, known: &mut BTreeMap<&'a Name, Option<Asked>>) -> Option<Asked> {
        if calls == 0 || self.bases.contains_key(chain) {
            return None;
        }
        if let Some(known) = known.get(chain) {
            return *known;
        }
        let mut all: Option<Asked> = None;
        for (caller, asked) in self.called_from.get(chain).into_iter().flatten() {
            let each = self.asked(caller, calls - 1, known).map_or(*asked, |before| before.and(*asked));
            all = Some(all.map_or(each, |all| all.or(each)));
        }
        known.insert(chain, all);
        all
    }

    /// The hooks from which packets come to chains, by any number of jumps. Where a map leads to chains that are not known, each chain of the table without a known caller may be one of them.
    fn reached<'a>(&'a self, takers: impl Iterator<Item = &'a Name>) -> BTreeMap<&'a Name, BTreeSet<FilterHook>> {
        let mut calls: BTreeMap<&Name, Vec<&Name>> = BTreeMap::new();
        for (target, callers) in &self.called_from {
            callers.keys().for_each(|caller| calls.entry(caller).or_default().push(target));
        }
        let mut of_table: BTreeMap<(u8, &str), BTreeSet<FilterHook>> = BTreeMap::new();
        for (name, hook) in &self.bases {
            of_table.entry((name.0, name.1.as_str())).or_default().insert(*hook);
        }
        let mut next: Vec<(&Name, FilterHook)> = self.bases.iter().map(|(name, hook)| (name, *hook)).collect();
        let callers = calls.keys().copied().collect::<Vec<_>>();
        let is_in_map = |name: &Name| self.mapped.contains(&(name.0, name.1.clone())) && !self.called_from.contains_key(name);
        for name in takers.chain(callers).filter(|name| is_in_map(name)) {
            let hooks = of_table.get(&(name.0, name.1.as_str())).into_iter().flatten();
            next.extend(hooks.filter(|_| !self.bases.contains_key(name)).map(|hook| (name, *hook)));
        }
        let mut found: BTreeMap<&Name, BTreeSet<FilterHook>> = BTreeMap::new();
        while let Some((at, hook)) = next.pop() {
            if found.entry(at).or_default().insert(hook) {
                next.extend(calls.get(at).into_iter().flatten().map(|target| (*target, hook)));
            }
        }
        found
    }
}

fn named(name: &Name, handle: u64) -> FilterRule {
    let family = FAMILIES.iter().find(|(number, _)| *number == name.0).map_or("?", |(_, family)| *family);
    FilterRule {
        family: family.to_owned(),
        table: name.1.clone(),
        chain: name.2.clone(),
        handle,
        hooks: Vec::new(),
        taken: None,
        ports: FilterPorts::Any,
        is_by_source: false,
        text: String::new(),
    }
}

/// The hook of a number, which differs by family (enum nf_inet_hooks, enum nf_dev_hooks).
fn hook(family: u8, number: u32) -> Option<FilterHook> {
    const NETDEV: u8 = 5;
    const INET_INGRESS: u32 = 5;
    match (family, number) {
        (NETDEV, 0) | (_, INET_INGRESS) => Some(FilterHook::Ingress),
        (NETDEV, 1) => Some(FilterHook::Egress),
        (NETDEV, _) => None,
        // ARP and bridges have rules of their own; a bridge's numbers are those of IP.
        (3, _) => None,
        (_, 0) => Some(FilterHook::Prerouting),
        (_, 1) => Some(FilterHook::Input),
        (_, 2) => Some(FilterHook::Forward),
        (_, 3) => Some(FilterHook::Output),
        (_, 4) => Some(FilterHook::Postrouting),
        _ => None,
    }
}

/// The value of the first attribute of this kind.
pub(super) fn nested(bytes: &[u8], kind: u16) -> Result<Option<&[u8]>, WireError> {
    for attribute in attributes(bytes) {
        let attribute = attribute?;
        if attribute.kind == kind {
            return Ok(Some(attribute.value));
        }
    }
    Ok(None)
}

/// Four bytes in network order, as nf_tables writes its numbers.
pub(super) fn be32(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.first_chunk()?))
}

/// Eight bytes in network order.
pub(super) fn be64(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(*bytes.first_chunk()?))
}
