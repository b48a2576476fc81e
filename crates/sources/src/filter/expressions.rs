//! What one rule says: its expressions in order, as nft(8) prints them, and what follows for packets (linux/netfilter/nf_tables.h; each expression's attributes are an enum there).

use std::collections::BTreeMap;

use chokepoint_model::observation::FilterPorts;

use super::fields::{self, Field, between, in_header};
use super::rules::{be32, be64, nested};
use crate::netlink::wire::{WireError, attributes, text};

/// Most characters of a rule's text: the rest is "...".
const TEXT_CHARS_MAX: usize = 240;
/// What is not known.
const UNKNOWN: &str = "...";
/// Values within NFTA_*_DATA, and a verdict's code and chain.
const DATA_VALUE: u16 = 1;
const DATA_VERDICT: u16 = 2;
/// Registers: zero is the verdict.
const VERDICT_REGISTER: u32 = 0;
/// Targets of iptables that let a packet go no further (iptables-extensions(8)).
const TAKING_TARGETS: [&str; 5] = ["DROP", "NFQUEUE", "REJECT", "SYNPROXY", "TARPIT"];

/// What a rule does with a packet that it matches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Verdict {
    /// It lets it go on.
    #[default]
    Passes,
    /// It sends it through another chain.
    Calls(String),
    /// It drops or rejects it, hands it to a program, or may do one of these.
    Takes,
}

/// A rule.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) verdict: Verdict,
    /// Packets that came as far as its verdict.
    pub(super) counted: Option<u64>,
    pub(super) ports: FilterPorts,
    pub(super) is_by_source: bool,
    /// True if a map says what becomes of the packet.
    pub(super) has_map: bool,
    pub(super) text: String,
}

/// Reads the list of expressions of a rule.
pub(super) fn read(list: &[u8]) -> Result<Rule, WireError> {
    let mut reader = Reader::default();
    for element in attributes(list) {
        reader.expression(element?.value)?;
    }
    Ok(reader.rule())
}

#[derive(Debug, Default)]
struct Reader {
    /// What the registers hold.
    registers: BTreeMap<u32, Loaded>,
    parts: Vec<String>,
    /// The protocol that the rule asks for, and the part that says so: nft has it in the name of the next field ("tcp dport").
    protocol: Option<(&'static str, usize)>,
    /// The part that asks for IPv4 or IPv6, which the name of an address says, too.
    family: Option<usize>,
    ports: Option<FilterPorts>,
    is_by_source: bool,
    has_map: bool,
    counted: Option<u64>,
    verdict: Verdict,
}

/// A field, and the mask that it was taken through.
#[derive(Debug, Clone, Default)]
struct Loaded {
    field: Field,
    mask: Option<Vec<u8>>,
    /// True if its bytes were turned into network order.
    is_turned: bool,
}

/// The numbers and texts of an expression's attributes.
struct Attributes<'a>(&'a [u8]);

impl<'a> Attributes<'a> {
    fn bytes(&self, kind: u16) -> Result<Option<&'a [u8]>, WireError> {
        nested(self.0, kind)
    }

    fn number(&self, kind: u16) -> Result<Option<u32>, WireError> {
        Ok(self.bytes(kind)?.and_then(be32))
    }

    fn wide(&self, kind: u16) -> Result<Option<u64>, WireError> {
        Ok(self.bytes(kind)?.and_then(be64))
    }

    fn text(&self, kind: u16) -> Result<String, WireError> {
        Ok(self.bytes(kind)?.map(text).unwrap_or_default())
    }

    /// The value within a data attribute.
    fn value(&self, kind: u16) -> Result<&'a [u8], WireError> {
        let data = self.bytes(kind)?.unwrap_or_default();
        Ok(nested(data, DATA_VALUE)?.unwrap_or_default())
    }

    /// "over " where the flag that turns a limit around is set.
    fn over(&self, kind: u16) -> Result<&'static str, WireError> {
        Ok(if self.number(kind)?.unwrap_or(0) & 1 == 1 { "over " } else { "" })
    }
}

impl Reader {
    fn expression(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let name = nested(bytes, 1)?.map(text).unwrap_or_default();
        let data = Attributes(nested(bytes, 2)?.unwrap_or_default());
        match name.as_str() {
            "meta" => self.load(data.number(1)?, Field::meta(data.number(2)?.unwrap_or(u32::MAX))),
            "ct" => self.load(data.number(1)?, Field::connection(data.number(2)?.unwrap_or(u32::MAX))),
            "payload" => {
                let part = |kind| data.number(kind).map(|number| number.unwrap_or(u32::MAX));
                self.load(data.number(1)?, in_header(part(2)?, part(3)?, part(4)?));
            }
            "numgen" => {
                let kind = if data.number(3)? == Some(1) { "random" } else { "inc" };
                self.load(data.number(1)?, Field::Number(format!("numgen {kind} mod {}", data.number(2)?.unwrap_or(0))));
            }
            "bitwise" => self.mask(&data)?,
            "byteorder" => {
                let turned = Loaded { is_turned: true, ..self.loaded(data.number(1)?) };
                self.registers.extend(data.number(2)?.map(|register| (register, turned)));
            }
            "cmp" => self.compare(&data)?,
            "range" => self.range(&data)?,
            "lookup" => self.look_up(&data)?,
            "limit" => {
                let limit = limit(&data)?;
                self.test(limit);
            }
            "connlimit" => {
                let connections = format!("ct count {}{}", data.over(2)?, data.number(1)?.unwrap_or(0));
                self.test(connections);
            }
            "quota" => {
                let quota = format!("quota {}{} bytes", data.over(2)?, data.wide(1)?.unwrap_or(0));
                self.test(quota);
            }
            "dynset" => self.dynamic_set(&data)?,
            "match" => {
                let name = data.text(1)?;
                // Extensions of iptables: what they compare is in a form of their own.
                self.is_by_source |= matches!(name.as_str(), "set" | "recent" | "hashlimit" | "iprange" | "geoip" | "connlimit");
                if matches!(name.as_str(), "multiport" | "tcp" | "udp") {
                    self.ports = Some(FilterPorts::Unknown);
                }
                if name != "comment" {
                    self.test(format!("-m {name} {UNKNOWN}"));
                }
            }
            "counter" => self.counted = data.wide(2)?,
            "immediate" => self.immediate(&data)?,
            "reject" => self.ends(Verdict::Takes, if data.number(1)? == Some(1) { "reject with tcp reset" } else { "reject" }),
            "queue" => self.ends(Verdict::Takes, "queue"),
            "synproxy" => self.ends(Verdict::Takes, "synproxy"),
            "target" => {
                let name = data.text(1)?;
                let takes = TAKING_TARGETS.contains(&name.as_str());
                self.ends(if takes { Verdict::Takes } else { Verdict::Passes }, &format!("-j {name}"));
            }
            // They change nothing in what is matched.
            "log" | "notrack" | "objref" | "last" => {}
            _ => self.test(format!("{name} {UNKNOWN}")),
        }
        Ok(())
    }

    fn load(&mut self, register: Option<u32>, field: Field) {
        if let Some(register) = register {
            self.registers.insert(register, Loaded { field, ..Loaded::default() });
        }
    }

    /// What a register holds.
    fn loaded(&self, register: Option<u32>) -> Loaded {
        register.and_then(|register| self.registers.get(&register)).cloned().unwrap_or_default()
    }

    fn mask(&mut self, data: &Attributes<'_>) -> Result<(), WireError> {
        let (from, to) = (data.number(1)?, data.number(2)?);
        let mask = data.value(4)?.to_vec();
        let loaded = self.loaded(from);
        if let Some(to) = to {
            self.registers.insert(to, Loaded { mask: Some(mask), ..loaded });
        }
        Ok(())
    }

    fn compare(&mut self, data: &Attributes<'_>) -> Result<(), WireError> {
        const OPERATORS: [&str; 6] = ["", "!= ", "< ", "<= ", "> ", ">= "];
        let Loaded { field, mask, is_turned } = self.loaded(data.number(1)?);
        let operator = data.number(2)?.unwrap_or(0);
        let value = data.value(3)?;
        let turned: Vec<u8> = value.iter().rev().copied().collect();
        let bytes = if is_turned && cfg!(target_endian = "little") { &turned } else { value };
        let number = u16::try_from(number(bytes)).unwrap_or(u16::MAX);
        let ports = match operator {
            _ if mask.is_some() => None,
            0 => Some((number, number)),
            2 => Some((0, number.saturating_sub(1))),
            3 => Some((0, number)),
            4 => Some((number.saturating_add(1), u16::MAX)),
            5 => Some((number, u16::MAX)),
            _ => None,
        };
        self.asks(&field, ports);
        let name = OPERATORS.get(operator as usize).unwrap_or(&UNKNOWN);
        let says = fields::value(&field, bytes, mask.as_deref(), name);
        self.compared(&field, operator == 0 && mask.is_none(), bytes, says);
        Ok(())
    }

    /// Adds what a field was compared with. A test of the protocol is said by the field after it, as in "tcp dport 80".
    fn compared(&mut self, field: &Field, is_equal: bool, bytes: &[u8], says: String) {
        let implied = match field {
            Field::Source(_) | Field::Address(_) => self.family,
            field if field.is_of_transport() => self.protocol.map(|(_, at)| at),
            _ => None,
        };
        if let Some(part) = implied.and_then(|at| self.parts.get_mut(at)) {
            part.clear();
        }
        let at = self.parts.len();
        match (field, bytes) {
            (Field::Protocol, [6]) if is_equal => self.protocol = Some(("tcp", at)),
            (Field::Protocol, [17]) if is_equal => self.protocol = Some(("udp", at)),
            (Field::Family, _) if is_equal => self.family = Some(at),
            _ => {}
        }
        let protocol = self.protocol.map_or("th", |(name, _)| name);
        self.test(if field.is_of_transport() { format!("{protocol} {says}") } else { says });
    }

    fn range(&mut self, data: &Attributes<'_>) -> Result<(), WireError> {
        let Loaded { field, .. } = self.loaded(data.number(1)?);
        let is_equal = data.number(2)? == Some(0);
        let (from, to) = (data.value(3)?, data.value(4)?);
        let port = |bytes| u16::try_from(number(bytes)).unwrap_or(u16::MAX);
        self.asks(&field, is_equal.then(|| (port(from), port(to))));
        let says = between(&field, from, to, if is_equal { "" } else { "!= " });
        self.compared(&field, false, from, says);
        Ok(())
    }

    fn look_up(&mut self, data: &Attributes<'_>) -> Result<(), WireError> {
        let Loaded { field, .. } = self.loaded(data.number(2)?);
        let not = if data.number(5)?.unwrap_or(0) & 1 == 1 { "!= " } else { "" };
        let set = data.text(1)?;
        self.asks(&field, None);
        match data.number(3)? {
            Some(VERDICT_REGISTER) => {
                self.has_map = true;
                self.compared(&field, false, &[], format!("{} vmap @{set}", field.name()));
                self.verdict = Verdict::Takes;
            }
            Some(register) => {
                let name = format!("{} map @{set}", field.name());
                self.load(Some(register), Field::Number(name));
            }
            None => self.compared(&field, false, &[], format!("{} {not}@{set}", field.name())),
        }
        Ok(())
    }

    /// A set that packets add to: with a limit for each of its elements.
    fn dynamic_set(&mut self, data: &Attributes<'_>) -> Result<(), WireError> {
        let Loaded { field, .. } = self.loaded(data.number(4)?);
        self.asks(&field, None);
        let mut inner = Reader::default();
        if let Some(one) = data.bytes(7)? {
            inner.expression(one)?;
        }
        for one in attributes(data.bytes(10)?.unwrap_or_default()) {
            inner.expression(one?.value)?;
        }
        let each = inner.parts.join(" ");
        let says = format!("add @{} {{ {} {each}", data.text(1)?, field.name());
        self.compared(&field, false, &[], format!("{} }}", says.trim_end()));
        Ok(())
    }

    fn immediate(&mut self, data: &Attributes<'_>) -> Result<(), WireError> {
        const NF_DROP: i32 = 0;
        const NF_QUEUE: i32 = 3;
        const NFT_JUMP: i32 = -3;
        const NFT_GOTO: i32 = -4;
        let Some(verdict) = nested(data.bytes(2)?.unwrap_or_default(), DATA_VERDICT)? else {
            self.load(data.number(1)?, Field::default());
            return Ok(());
        };
        let code = nested(verdict, 1)?.and_then(be32).map_or(1, |code| code.cast_signed());
        match code {
            NF_DROP => self.ends(Verdict::Takes, "drop"),
            NFT_JUMP | NFT_GOTO => {
                let target = nested(verdict, 2)?.map(text).unwrap_or_default();
                self.ends(Verdict::Calls(target), "jump");
            }
            // The number of the queue is in the upper half.
            code if code > 0 && code & 0xff == NF_QUEUE => self.ends(Verdict::Takes, "queue"),
            _ => {}
        }
        Ok(())
    }

    /// Notes which addresses and TCP ports are asked for.
    fn asks(&mut self, field: &Field, ports: Option<(u16, u16)>) {
        self.is_by_source |= matches!(field, Field::Source(_));
        if !field.is_of_port() {
            return;
        }
        let is_tcp = self.protocol.is_none_or(|(name, _)| name == "tcp");
        let asked = match (field, ports.filter(|_| is_tcp)) {
            (Field::DestinationPort, Some((first, last))) => FilterPorts::Destination(first, last),
            (Field::SourcePort, Some((first, last))) => FilterPorts::Source(first, last),
            _ => FilterPorts::Unknown,
        };
        self.ports = Some(match (self.ports, asked) {
            (None, asked) => asked,
            // A range is two comparisons.
            (Some(FilterPorts::Destination(a, b)), FilterPorts::Destination(c, d)) => FilterPorts::Destination(a.max(c), b.min(d)),
            (Some(FilterPorts::Source(a, b)), FilterPorts::Source(c, d)) => FilterPorts::Source(a.max(c), b.min(d)),
            _ => FilterPorts::Unknown,
        });
    }

    fn test(&mut self, says: String) {
        // What was counted before is more than what goes on from here.
        self.counted = None;
        self.parts.push(says);
    }

    fn ends(&mut self, verdict: Verdict, says: &str) {
        self.parts.push(says.to_owned());
        self.verdict = verdict;
    }

    fn rule(self) -> Rule {
        let parts: Vec<&str> = self.parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        let mut text = parts.join(" ");
        if let Some((end, _)) = text.char_indices().nth(TEXT_CHARS_MAX) {
            text.truncate(end);
            text.push_str(UNKNOWN);
        }
        Rule {
            verdict: self.verdict,
            counted: self.counted.filter(|_| !self.has_map),
            ports: self.ports.unwrap_or(FilterPorts::Any),
            is_by_source: self.is_by_source,
            has_map: self.has_map,
            text,
        }
    }
}

/// "limit rate over 300/second burst 5 packets": a rate, a unit of seconds, a burst, a kind (packets or bytes), flags.
fn limit(data: &Attributes<'_>) -> Result<String, WireError> {
    const UNITS: [(u64, &str); 5] = [(1, "second"), (60, "minute"), (3_600, "hour"), (86_400, "day"), (604_800, "week")];
    let unit = data.wide(2)?.unwrap_or(0);
    let unit = UNITS.iter().find(|(seconds, _)| *seconds == unit).map_or_else(|| format!("{unit}s"), |(_, name)| (*name).to_owned());
    let bytes = if data.number(4)? == Some(1) { " bytes" } else { "" };
    let burst = match data.number(3)? {
        Some(burst) if burst > 0 => format!(" burst {burst} {}", if bytes.is_empty() { "packets" } else { "bytes" }),
        _ => String::new(),
    };
    Ok(format!("limit rate {}{}{bytes}/{unit}{burst}", data.over(5)?, data.wide(1)?.unwrap_or(0)))
}

/// A number in network order of at most eight bytes; the largest for longer ones.
fn number(bytes: &[u8]) -> u64 {
    if bytes.len() > 8 {
        return u64::MAX;
    }
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
