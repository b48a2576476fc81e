//! Rules of packet filters: those that drop or reject packets, or may do so.

use std::fmt;

/// The rules of a namespace that may take packets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FilterRules {
    /// Bounded, in the order of the kernel's list.
    pub rules: Vec<FilterRule>,
    /// Rules beyond the bound.
    pub left_out: u64,
    /// True if there are rules of another kind, which this list cannot have: those of iptables-legacy.
    pub has_others: bool,
}

/// A rule of nftables that drops or rejects what it matches, or a chain whose policy drops what no rule accepts (nft(8)). iptables makes such rules too, except for its legacy variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterRule {
    /// "ip", "ip6", "inet", "bridge", "netdev" or "arp".
    pub family: String,
    /// Table.
    pub table: String,
    /// Chain.
    pub chain: String,
    /// Number of the rule in its table; zero for a policy.
    pub handle: u64,
    /// Where packets meet it, also by jumps from other chains.
    pub hooks: Vec<FilterHook>,
    /// Packets that it took since it was made. `None` if it does not count, or counts also what it lets pass.
    pub taken: Option<u64>,
    /// The ports that it asks for.
    pub ports: FilterPorts,
    /// True if it asks where a packet comes from: it is there against some clients.
    pub is_by_source: bool,
    /// What it says, as nft prints it. What is not known is "...".
    pub text: String,
}

/// Where in the kernel packets meet a rule (netfilter hooks, include/uapi/linux/netfilter.h and netfilter/nf_tables.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FilterHook {
    /// At an interface, before the network protocol.
    Ingress,
    /// After they came, before they are routed.
    Prerouting,
    /// For this host.
    Input,
    /// For another one.
    Forward,
    /// Sent by this host.
    Output,
    /// Before they leave.
    Postrouting,
    /// At an interface, after the network protocol.
    Egress,
}

/// Ports that a rule asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterPorts {
    /// None: it takes packets of any port.
    Any,
    /// Destination ports from the first to the last.
    Destination(u16, u16),
    /// Source ports from the first to the last.
    Source(u16, u16),
    /// Some that are not known: a set, or both ends.
    Unknown,
}

impl FilterHook {
    /// All, with the names that nft has for them.
    pub const ALL: [(FilterHook, &'static str); 7] = [
        (FilterHook::Ingress, "ingress"),
        (FilterHook::Prerouting, "prerouting"),
        (FilterHook::Input, "input"),
        (FilterHook::Forward, "forward"),
        (FilterHook::Output, "output"),
        (FilterHook::Postrouting, "postrouting"),
        (FilterHook::Egress, "egress"),
    ];
}

impl FilterRule {
    /// True for the same rule in another reading.
    pub fn is_same(&self, other: &FilterRule) -> bool {
        let is_there = self.family == other.family && self.table == other.table && self.chain == other.chain;
        is_there && self.handle == other.handle
    }

    /// True if its names can stand in a command as they are: whoever made a table chose its name.
    pub fn is_plain(&self) -> bool {
        let is_letter = |character: char| character.is_ascii_alphanumeric() || character == '_';
        // One that begins with a dash could be an option.
        let is_plain =
            |name: &String| name.starts_with(is_letter) && name.chars().all(|character| is_letter(character) || "-./".contains(character));
        is_plain(&self.table) && is_plain(&self.chain)
    }

    /// "inet filter input handle 4": what nft(8) asks for to change it. A policy is its chain's.
    pub fn name(&self) -> String {
        let Self { family, table, chain, handle, .. } = self;
        if *handle == 0 { format!("{family} {table} {chain}") } else { format!("{family} {table} {chain} handle {handle}") }
    }
}

impl fmt::Display for FilterRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name(), self.text)
    }
}
