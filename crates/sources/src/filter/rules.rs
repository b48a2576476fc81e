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

const FAMILIES: [(u8, &str); 6] = [(1, "inet"), (2, "ip"), (3, "arp"), (5, "netdev"), (7, "bridge"), (10, "ip6")];

/// A chain by family, table and name.
type Name = (u8, String, String);

/// What was listed so far: chains come first.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// Hooks of the chains that the kernel calls.
    bases: BTreeMap<Name, FilterHook>,
    /// Chains that are called by others, and from where.
    called_from: BTreeMap<Name, BTreeSet<Name>>,
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
                self.called_from.entry((family, key.1.clone(), target)).or_default().insert(key);
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
    pub(super) fn takers(mut self, most: usize) -> FilterRules {
        let all = std::mem::take(&mut self.takers);
        let mut known: BTreeMap<Name, Vec<FilterHook>> = BTreeMap::new();
        let mut found = FilterRules::default();
        for (chain, rule) in all {
            let hooks = known.entry(chain).or_insert_with_key(|chain| self.hooks(chain));
            if hooks.is_empty() {
                continue;
            }
            if found.rules.len() < most {
                found.rules.push(FilterRule { hooks: hooks.clone(), ..rule });
            } else {
                found.left_out += 1;
            }
        }
        found
    }

    /// The hooks from which packets come to this chain, by any number of jumps. Where a map leads to chains that are not known, each chain without a known caller may be one of them.
    fn hooks(&self, chain: &Name) -> Vec<FilterHook> {
        let mut found: BTreeSet<FilterHook> = BTreeSet::new();
        let mut seen: BTreeSet<&Name> = [chain].into();
        let mut next = vec![chain];
        while let Some(at) = next.pop() {
            let callers = self.called_from.get(at);
            found.extend(self.bases.get(at));
            let is_in_map = callers.is_none() && !self.bases.contains_key(at) && self.mapped.contains(&(at.0, at.1.clone()));
            if is_in_map {
                let of_table = |name: &Name| name.0 == at.0 && name.1 == at.1;
                found.extend(self.bases.iter().filter(|(name, _)| of_table(name)).map(|(_, hook)| *hook));
            }
            next.extend(callers.into_iter().flatten().filter(|caller| seen.insert(caller)));
        }
        found.into_iter().collect()
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
