//! The sources "links", "qdiscs" and "addresses": the network devices of a namespace, from rtnetlink(7).

pub(crate) mod address;
pub(crate) mod link;
mod qdisc;
mod speed;

use chokepoint_model::observation::{Address, Link, Qdisc};
use chokepoint_recording::{Outcome, Scope};

use crate::netlink::wire::{WireError, messages};
use crate::netlink::{DUMP_BYTES_MAX, Netlink};
use crate::scope::put_netns;
use crate::table::{Cadence, Phase, ReadContext, Redact, ScopeKind, Source, only_item};

/// Kinds of message (linux/rtnetlink.h).
pub(crate) const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
pub(crate) const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;
pub(crate) const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
pub(crate) const RTM_NEWTCLASS: u16 = 40;
const RTM_GETTCLASS: u16 = 42;
/// A kind of our own, appended to a dump of links: interface index and speed in Mbit/s from ethtool, four bytes each. The kernel's kinds are far below.
pub(crate) const LINK_SPEED: u16 = 0x7001;
/// Most devices to read speeds and classes of: each device takes a call of its own.
const DEVICES_ASKED_MAX: usize = 256;

/// Network interfaces with their counters and speeds.
pub(crate) const LINKS: Source = Source {
    name: "links",
    scope: ScopeKind::Netns,
    cadence: Cadence::Slow,
    needs: None,
    read: |context| only_item(read_links(context)),
    put: |observation, entry| put_netns(observation, entry, |netns| &mut netns.links, parse_links),
    redact: Redact::RouteNetlink,
};

/// Queueing disciplines with their counters and rates.
pub(crate) const QDISCS: Source = Source {
    name: "qdiscs",
    scope: ScopeKind::Netns,
    cadence: Cadence::Slow,
    needs: None,
    read: |context| only_item(read_qdiscs(context)),
    put: |observation, entry| put_netns(observation, entry, |netns| &mut netns.qdiscs, parse_qdiscs),
    redact: Redact::RouteNetlink,
};

/// Addresses that are local to the namespace.
pub(crate) const ADDRESSES: Source = Source {
    name: "addresses",
    scope: ScopeKind::Netns,
    cadence: Cadence::Ends,
    needs: None,
    read: |context| {
        only_item(with_netlink(context, |netlink| netlink.dump(RTM_GETADDR, &[0; 8]).map_err(|error| error.outcome(MISSING, None))))
    },
    put: |observation, entry| put_netns(observation, entry, |netns| &mut netns.addresses, parse_addresses),
    redact: Redact::RouteNetlink,
};

const MISSING: &str = "this kernel cannot list them";

fn with_netlink(context: &ReadContext<'_>, read: impl FnOnce(&Netlink) -> Result<Vec<u8>, Outcome>) -> Outcome {
    let bytes = context.sockets().and_then(|sockets| read(sockets.route()));
    bytes.map_or_else(|lack| lack, Outcome::Ok)
}

fn read_links(context: &ReadContext<'_>) -> Outcome {
    with_netlink(context, |netlink| {
        // `struct ifinfomsg`, empty: all interfaces.
        let mut bytes = netlink.dump(RTM_GETLINK, &[0; 16]).map_err(|error| error.outcome(MISSING, None))?;
        bytes.extend(speeds(context, &bytes));
        Ok(bytes)
    })
}

/// Speeds of the interfaces as messages of our own. Reading them takes the lock of all network configuration and, on some devices, a slow hardware bus. So
/// they are read at the ends of an observation and kept in between.
fn speeds(context: &ReadContext<'_>, links: &[u8]) -> Vec<u8> {
    let Scope::Netns(inode) = context.scope else { return Vec::new() };
    let key = format!("links {inode}");
    if context.phase == Phase::Running
        && let Some(known) = context.notes.get(&key)
    {
        return known;
    }
    let names: Vec<(u32, String)> = match parse_links(links) {
        Ok(links) => links.into_iter().map(|link| (link.index, link.name)).take(DEVICES_ASKED_MAX).collect(),
        Err(_) => return Vec::new(),
    };
    let mut bytes = Vec::new();
    for (index, mbit_per_s) in speed::ask(&names) {
        let body = [index.to_ne_bytes(), mbit_per_s.to_ne_bytes()].concat();
        bytes.extend(crate::netlink::wire::request(LINK_SPEED, 0, 0, &body));
    }
    context.notes.set(&key, bytes.clone());
    bytes
}

fn read_qdiscs(context: &ReadContext<'_>) -> Outcome {
    with_netlink(context, |netlink| {
        // `struct tcmsg`, empty: all interfaces.
        let mut bytes = netlink.dump(RTM_GETQDISC, &[0; 20]).map_err(|error| error.outcome(MISSING, None))?;
        // The rates of htb belong to its classes, which are listed by interface (net/sched/sch_api.c, tc_dump_tclass).
        for index in qdisc::links_with_classes(&bytes).into_iter().take(DEVICES_ASKED_MAX) {
            let mut body = [0_u8; 20];
            body[4..8].copy_from_slice(&index.to_ne_bytes());
            // A removed interface has no classes.
            let classes = netlink.dump(RTM_GETTCLASS, &body).unwrap_or_default();
            if bytes.len() + classes.len() > DUMP_BYTES_MAX {
                return Err(Outcome::Failed(format!("longer than {DUMP_BYTES_MAX} bytes"), None));
            }
            bytes.extend(classes);
        }
        Ok(bytes)
    })
}

/// Why a dump of network devices cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RouteError {
    /// A malformed message.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A message of another kind.
    #[error("netlink message of kind {0} in this list")]
    Kind(u16),
}

/// Parses interfaces from a dump of RTM_NEWLINK and our own messages with their speed.
pub(crate) fn parse_links(bytes: &[u8]) -> Result<Vec<Link>, RouteError> {
    let mut links: Vec<Link> = Vec::new();
    for message in messages(bytes) {
        let message = message?;
        match message.kind {
            RTM_NEWLINK => links.push(link::parse(&message)?),
            LINK_SPEED => {
                let (index, speed) = link::parse_speed(&message)?;
                if let Some(link) = links.iter_mut().find(|link| link.index == index) {
                    link.speed_bits_per_s = Some(speed);
                }
            }
            kind => return Err(RouteError::Kind(kind)),
        }
    }
    Ok(links)
}

/// Parses queueing disciplines from a dump of RTM_NEWQDISC and, for htb, RTM_NEWTCLASS.
pub(crate) fn parse_qdiscs(bytes: &[u8]) -> Result<Vec<Qdisc>, RouteError> {
    let mut qdiscs: Vec<Qdisc> = Vec::new();
    for message in messages(bytes) {
        let message = message?;
        match message.kind {
            RTM_NEWQDISC => qdiscs.push(qdisc::parse(&message)?),
            RTM_NEWTCLASS => qdisc::add_class(&mut qdiscs, &message)?,
            kind => return Err(RouteError::Kind(kind)),
        }
    }
    Ok(qdiscs)
}

/// Parses addresses from a dump of RTM_NEWADDR.
pub(crate) fn parse_addresses(bytes: &[u8]) -> Result<Vec<Address>, RouteError> {
    let mut addresses = Vec::new();
    for message in messages(bytes) {
        let message = message?;
        match message.kind {
            RTM_NEWADDR => addresses.extend(address::parse(&message)?),
            kind => return Err(RouteError::Kind(kind)),
        }
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            for kind in [RTM_NEWLINK, RTM_NEWADDR, RTM_NEWQDISC, RTM_NEWTCLASS, LINK_SPEED] {
                let message = crate::netlink::wire::request(kind, 0, 0, &bytes);
                let _ = (parse_links(&message), parse_qdiscs(&message), parse_addresses(&message));
            }
            let _ = (parse_links(&bytes), parse_qdiscs(&bytes), parse_addresses(&bytes));
        }
    }

    #[test]
    fn another_kind_is_refused() {
        let message = crate::netlink::wire::request(99, 0, 0, &[0; 40]);
        assert_eq!(parse_links(&message), Err(RouteError::Kind(99)));
        assert_eq!(parse_qdiscs(&message), Err(RouteError::Kind(99)));
        assert_eq!(parse_addresses(&message), Err(RouteError::Kind(99)));
    }
}
