//! A shaper on the interface of the server towards its upstream.

use chokepoint_model::observation::{Address, Link, Observation, Qdisc};
use chokepoint_model::reading::Reading;

use super::edge::edge;
use super::*;

/// Its rate, bits per second.
pub(crate) const RATE: u64 = 20_000_000;

/// A shaper of 20 Mbit/s on the interface towards the upstream.
#[derive(Clone)]
pub(crate) struct Shaped {
    /// Share of its rate that it passed in the window.
    pub(crate) share: f64,
    /// Packets found waiting at each look in the window.
    pub(crate) waiting: u32,
    /// Drops in the window, and before it.
    pub(crate) drops: (u64, u64),
    pub(crate) overlimits: u64,
    pub(crate) link: u32,
    /// A class of htb in place of a token bucket.
    pub(crate) is_class: bool,
}

/// One that is full and drops.
pub(crate) fn full() -> Shaped {
    Shaped { share: 0.99, waiting: 60, drops: (40, 0), overlimits: 9_000, link: 3, is_class: false }
}

impl Shaped {
    /// What is read of it at this second.
    pub(crate) fn at(&self, second: u64) -> Qdisc {
        // The load runs from 0.5 s to 10.5 s, and readings are made at whole seconds.
        let grown = |all: u64| all * second.min(10) / 10;
        let qdisc = Qdisc {
            link: self.link,
            kind: "tbf".into(),
            handle: 0x8001_0000,
            parent: u32::MAX,
            bytes: (self.share * RATE as f64 / 8.0 * second as f64) as u64,
            drops: self.drops.1 + grown(self.drops.0),
            overlimits: 500 + grown(self.overlimits),
            queue_length: if (1..=10).contains(&second) { self.waiting } else { 100 },
            backlog_bytes: if (1..=10).contains(&second) { self.waiting * 1_514 } else { 151_400 },
            rate_bits_per_s: Some(RATE),
            ..Qdisc::default()
        };
        if !self.is_class {
            return qdisc;
        }
        let leaf = Qdisc { kind: "htb".into(), handle: 0x0001_0020, parent: 0x0001_0001, ..qdisc.clone() };
        let rate_bits_per_s = Some(1_000_000_000);
        // The kernel counts no queue at a class with children.
        let root =
            Qdisc { handle: 0x0001_0001, parent: u32::MAX, rate_bits_per_s, queue_length: 0, backlog_bytes: 0, drops: 0, ..leaf.clone() };
        Qdisc { kind: "htb".into(), handle: 0x0001_0000, rate_bits_per_s, classes: vec![root, leaf], ..qdisc }
    }

    /// Half of a request's time, which is 9 ms, passes in the queue. An upstream on another host is reached through the interface with index 3.
    pub(crate) fn observed(&self) -> Observation {
        let mut obs = edge("192.0.2.9", "10000 65535", 20);
        cpu(&mut obs, 0.2);
        let view = obs.netns.get_mut(&SERVER).unwrap();
        view.addresses.push(
            2,
            Reading::Ok(vec![
                Address { ip: ip("10.0.0.3"), prefix_bits: 24, link: 2 },
                Address { ip: ip(SERVER_IP), prefix_bits: 24, link: 3 },
            ]),
        );
        view.links = Default::default();
        for second in 0..=11_u64 {
            let link =
                |index, name: &str, bytes: u64| Link { index, name: name.into(), up: true, tx_bytes: second * bytes, ..Link::default() };
            let links = vec![link(2, "eth0", 3_000_000), link(3, "eth1", 2_400_000), link(4, "eth2", 0)];
            view.links.push(second * 1_000_000, Reading::Ok(links));
            view.qdiscs.push(second * 1_000_000, Reading::Ok(vec![self.at(second)]));
        }
        obs
    }
}
