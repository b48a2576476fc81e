//! One queueing discipline or class: `struct tcmsg` and its attributes (linux/rtnetlink.h, linux/pkt_sched.h, linux/gen_stats.h).

use std::collections::BTreeSet;

use chokepoint_model::observation::Qdisc;

use super::{RTM_NEWQDISC, RouteError};
use crate::netlink::wire::{Message, WireError, attributes, messages, text, u32_at, u64_at};

/// Bytes of `struct tcmsg`.
const MESSAGE_BYTES: usize = 20;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
/// Within TCA_STATS2: bytes (u64) and packets (u32).
const TCA_STATS_BASIC: u16 = 1;
/// Within TCA_STATS2: queue length, backlog, drops, requeues, overlimits (u32 each).
const TCA_STATS_QUEUE: u16 = 3;
/// Within TCA_STATS2: packets in 64 bits.
const TCA_STATS_PKT64: u16 = 8;
/// `TC_H_ROOT`.
const ROOT: u32 = u32::MAX;
/// Bytes of `struct tc_netem_qopt`, which comes before the attributes of netem.
const NETEM_OPTIONS_BYTES: usize = 24;

struct QdiscMessage<'a> {
    qdisc: Qdisc,
    options: &'a [u8],
}

pub(super) fn parse(message: &Message<'_>) -> Result<Qdisc, RouteError> {
    let QdiscMessage { mut qdisc, options } = fields(message)?;
    qdisc.rate_bits_per_s = rate(&qdisc.kind, options)?;
    Ok(qdisc)
}

/// Adds a class of htb to its qdisc, and its rate if it is a root class. A root class may not borrow, so its rate is its limit (tc-htb(8)); the rates of
/// several root classes add up. The rates of other classes are part of their parents' rates: they may borrow up to their ceilings.
pub(super) fn add_class(qdiscs: &mut [Qdisc], message: &Message<'_>) -> Result<(), RouteError> {
    let QdiscMessage { qdisc: mut class, options } = fields(message)?;
    if class.kind != "htb" {
        return Ok(());
    }
    let major = class.handle & 0xffff_0000;
    let owner = qdiscs.iter_mut().find(|qdisc| qdisc.kind == "htb" && qdisc.link == class.link && qdisc.handle == major);
    let Some(owner) = owner else { return Ok(()) };
    if class.parent == ROOT {
        class.rate_bits_per_s = rate_of_parts(options, HTB)?;
        owner.rate_bits_per_s =
            class.rate_bits_per_s.map(|rate| owner.rate_bits_per_s.unwrap_or(0).saturating_add(rate)).or(owner.rate_bits_per_s);
    } else {
        class.rate_bits_per_s = rate_of(options, (HTB.0, CEILING_AT), HTB_CEILING_WIDE)?;
    }
    owner.classes.push(class);
    Ok(())
}

/// Interfaces with a qdisc whose classes have the rates.
pub(super) fn links_with_classes(dump: &[u8]) -> BTreeSet<u32> {
    let parsed = messages(dump).filter_map(|message| message.ok().filter(|message| message.kind == RTM_NEWQDISC));
    parsed.filter_map(|message| Some(fields(&message).ok()?.qdisc)).filter(|qdisc| qdisc.kind == "htb").map(|qdisc| qdisc.link).collect()
}

fn fields<'a>(message: &Message<'a>) -> Result<QdiscMessage<'a>, WireError> {
    let (fixed, rest) = message.split("tcmsg", MESSAGE_BYTES)?;
    let word = |at| u32_at(fixed, at).unwrap_or(0);
    let mut qdisc = Qdisc { link: word(4), handle: word(8), parent: word(12), ..Qdisc::default() };
    let mut options: &[u8] = &[];
    for attribute in attributes(rest) {
        let attribute = attribute?;
        match attribute.kind {
            TCA_KIND => qdisc.kind = text(attribute.value),
            TCA_OPTIONS => options = attribute.value,
            TCA_STATS2 => stats(&mut qdisc, attribute.value)?,
            _ => {}
        }
    }
    Ok(QdiscMessage { qdisc, options })
}

fn stats(qdisc: &mut Qdisc, bytes: &[u8]) -> Result<(), WireError> {
    let mut wide = None;
    for attribute in attributes(bytes) {
        let attribute = attribute?;
        let word = |at| u32_at(attribute.value, at).unwrap_or(0);
        match attribute.kind {
            TCA_STATS_BASIC => {
                qdisc.bytes = u64_at(attribute.value, 0).unwrap_or(0);
                qdisc.packets = u64::from(word(8));
            }
            TCA_STATS_QUEUE => {
                qdisc.queue_length = word(0);
                qdisc.backlog_bytes = word(4);
                qdisc.drops = u64::from(word(8));
                qdisc.overlimits = u64::from(word(16));
            }
            TCA_STATS_PKT64 => wide = u64_at(attribute.value, 0),
            _ => {}
        }
    }
    if let Some(packets) = wide {
        qdisc.packets = packets;
    }
    Ok(())
}

/// Attribute that begins with a `struct tc_ratespec`, and attribute with the rate in 64 bits; both in bytes a second.
type RateParts = (u16, u16);
/// TCA_TBF_PARMS, TCA_TBF_RATE64.
const TBF: RateParts = (1, 4);
/// TCA_HTB_PARMS, TCA_HTB_RATE64.
const HTB: RateParts = (1, 6);
/// TCA_HTB_CEIL64.
const HTB_CEILING_WIDE: u16 = 7;
/// Offset of the rate in `struct tc_ratespec`.
const RATESPEC_RATE_AT: usize = 8;
/// Offset of the ceiling's rate in `struct tc_htb_opt`, whose second `struct tc_ratespec` (12 bytes each) is the ceiling.
const CEILING_AT: usize = 12 + RATESPEC_RATE_AT;

/// The rate to which a qdisc itself shapes, bits a second; nothing if it does not shape.
fn rate(kind: &str, options: &[u8]) -> Result<Option<u64>, WireError> {
    match kind {
        "tbf" => rate_of_parts(options, TBF),
        // TCA_NETEM_RATE: `struct tc_netem_rate` begins with the rate; TCA_NETEM_RATE64 has larger rates.
        "netem" => rate_of(options.get(NETEM_OPTIONS_BYTES..).unwrap_or(&[]), (6, 0), 8),
        // TCA_CAKE_BASE_RATE64; zero is unlimited.
        "cake" => rate_of(options, (0, 0), 2),
        _ => Ok(None),
    }
}

fn rate_of_parts(options: &[u8], (parameters, wide): RateParts) -> Result<Option<u64>, WireError> {
    rate_of(options, (parameters, RATESPEC_RATE_AT), wide)
}

/// The rate in bits a second from a 32-bit word at an offset in one attribute and from another that has it in 64 bits where it needs them.
fn rate_of(options: &[u8], (narrow, at): (u16, usize), wide: u16) -> Result<Option<u64>, WireError> {
    let (mut bytes_per_s, mut bytes_per_s_wide) = (None, None);
    for attribute in attributes(options) {
        let attribute = attribute?;
        if attribute.kind == narrow {
            bytes_per_s = u32_at(attribute.value, at).map(u64::from);
        } else if attribute.kind == wide {
            bytes_per_s_wide = u64_at(attribute.value, 0);
        }
    }
    Ok(bytes_per_s_wide.or(bytes_per_s).filter(|rate| *rate > 0).map(|rate| rate.saturating_mul(8)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::wire::{attribute, request};
    use crate::route::{RTM_NEWTCLASS, parse_qdiscs};

    fn body(link: u32, handle: u32, parent: u32, kind: &str, options: &[u8]) -> Vec<u8> {
        let mut body = vec![0; 4];
        for word in [link, handle, parent, 0] {
            body.extend_from_slice(&word.to_ne_bytes());
        }
        body.extend(attribute(TCA_KIND, format!("{kind}\0").as_bytes()));
        body.extend(attribute(TCA_OPTIONS, options));
        let basic = [5000_u64.to_ne_bytes().to_vec(), 40_u32.to_ne_bytes().to_vec(), vec![0; 4]].concat();
        let queue: Vec<u8> = [3, 4500, 7, 1, 9_u32].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let inner = [attribute(TCA_STATS_BASIC, &basic), attribute(TCA_STATS_QUEUE, &queue)].concat();
        body.extend(attribute(TCA_STATS2, &inner));
        body
    }

    fn ratespec(rate: u32) -> Vec<u8> {
        let mut bytes = vec![0; 8];
        bytes.extend_from_slice(&rate.to_ne_bytes());
        bytes.resize(36, 0);
        bytes
    }

    #[test]
    fn tbf_with_its_rate_and_counters() {
        let options = attribute(1, &ratespec(6_250_000));
        let bytes = request(RTM_NEWQDISC, 2, 0, &body(3, 0x0001_0000, ROOT, "tbf", &options));
        let qdisc = &parse_qdiscs(&bytes).unwrap()[0];
        assert_eq!((qdisc.kind.as_str(), qdisc.rate_bits_per_s), ("tbf", Some(50_000_000)));
        assert_eq!((qdisc.bytes, qdisc.packets, qdisc.drops, qdisc.overlimits), (5000, 40, 7, 9));
        assert_eq!((qdisc.queue_length, qdisc.backlog_bytes, qdisc.link), (3, 4500, 3));
    }

    #[test]
    fn a_rate_beyond_32_bits_is_in_the_wide_attribute() {
        let options = [attribute(1, &ratespec(u32::MAX)), attribute(4, &5_000_000_000_u64.to_ne_bytes())].concat();
        let bytes = request(RTM_NEWQDISC, 2, 0, &body(3, 0x0001_0000, ROOT, "tbf", &options));
        assert_eq!(parse_qdiscs(&bytes).unwrap()[0].rate_bits_per_s, Some(40_000_000_000));
    }

    #[test]
    fn the_rate_of_htb_is_the_sum_of_its_root_classes() {
        let class = |handle, parent, rate| request(RTM_NEWTCLASS, 2, 0, &body(3, handle, parent, "htb", &attribute(1, &ratespec(rate))));
        let bytes = [
            request(RTM_NEWQDISC, 2, 0, &body(3, 0x0001_0000, ROOT, "htb", &[])),
            request(RTM_NEWQDISC, 2, 0, &body(4, 0x0001_0000, ROOT, "htb", &[])),
            class(0x0001_0001, ROOT, 1_000_000),
            class(0x0001_0002, 0x0001_0001, 900_000),
            class(0x0001_0003, ROOT, 500_000),
        ]
        .concat();
        assert_eq!(links_with_classes(&bytes), BTreeSet::from([3, 4]));
        let qdiscs = parse_qdiscs(&bytes).unwrap();
        assert_eq!((qdiscs[0].rate_bits_per_s, qdiscs[1].rate_bits_per_s), (Some(12_000_000), None));
    }

    #[test]
    fn a_class_of_htb_may_send_up_to_its_ceiling_and_a_root_class_up_to_its_rate() {
        let mut rates = ratespec(500_000);
        rates[CEILING_AT..CEILING_AT + 4].copy_from_slice(&2_000_000_u32.to_ne_bytes());
        let wide = [attribute(1, &rates), attribute(7, &5_000_000_000_u64.to_ne_bytes())].concat();
        let class = |handle, parent, options: &[u8]| request(RTM_NEWTCLASS, 2, 0, &body(3, handle, parent, "htb", options));
        let bytes = [
            request(RTM_NEWQDISC, 2, 0, &body(3, 0x0001_0000, ROOT, "htb", &[])),
            class(0x0001_0001, ROOT, &attribute(1, &rates)),
            class(0x0001_0002, 0x0001_0001, &attribute(1, &rates)),
            class(0x0001_0003, 0x0001_0001, &wide),
        ]
        .concat();
        let classes = &parse_qdiscs(&bytes).unwrap()[0].classes;
        let limits: Vec<(u32, Option<u64>)> = classes.iter().map(|class| (class.handle & 0xffff, class.rate_bits_per_s)).collect();
        assert_eq!(limits, [(1, Some(4_000_000)), (2, Some(16_000_000)), (3, Some(40_000_000_000))]);
        assert_eq!((classes[1].backlog_bytes, classes[1].drops, classes[1].overlimits), (4500, 7, 9));
    }

    #[test]
    fn netem_and_cake() {
        let netem = [vec![0; NETEM_OPTIONS_BYTES], attribute(6, &[1_000_000_u32.to_ne_bytes(), [0; 4]].concat())].concat();
        assert_eq!(rate("netem", &netem), Ok(Some(8_000_000)));
        assert_eq!(rate("netem", &[0; 10]), Ok(None));
        assert_eq!(rate("cake", &attribute(2, &2_000_000_u64.to_ne_bytes())), Ok(Some(16_000_000)));
        assert_eq!(rate("cake", &attribute(2, &0_u64.to_ne_bytes())), Ok(None));
        assert_eq!(rate("fq_codel", &[1, 2, 3]), Ok(None));
    }

    #[test]
    fn every_cut_gives_a_qdisc_or_an_error() {
        let body = body(3, 1, ROOT, "tbf", &attribute(1, &ratespec(6_250_000)));
        for cut in 0..body.len() {
            let parsed = parse_qdiscs(&request(RTM_NEWQDISC, 2, 0, &body[..cut]));
            assert!(cut >= MESSAGE_BYTES || parsed.is_err(), "cut at {cut}");
        }
    }
}
