//! Where connections end whose address is translated on the way (destination NAT, as for containers), hop by hop.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::observation::{NetnsId, Observation};

/// Most translations followed in a row: a load balancer, a router, a host and a service mesh are four.
const HOPS_MAX: usize = 8;
/// Most addresses followed for one target: a service may have hundreds of backends.
const PLACES_MAX: usize = 1_024;

/// A TCP address and port.
pub type Endpoint = (IpAddr, u16);

/// One translation of a connection's destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hop {
    /// The namespace that translates.
    pub netns: NetnsId,
    /// Destination before the translation.
    pub original: Endpoint,
    /// Destination after the translation.
    pub translated: Endpoint,
}

/// An address that connections may arrive at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrivalAddress {
    /// Address and port.
    pub endpoint: Endpoint,
    /// The translations on the way to it, in order; empty for the requested address.
    pub hops: Vec<Hop>,
    /// True if connections to it were seen to be translated further.
    pub is_passed: bool,
}

impl ArrivalAddress {
    /// The namespace that a connection to it comes from: that of the last translation, else the client's.
    pub fn from(&self, client: NetnsId) -> NetnsId {
        self.hops.last().map_or(client, |hop| hop.netns)
    }
}

/// All translations seen in all namespaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Translations(BTreeMap<Endpoint, BTreeSet<Hop>>);

impl Translations {
    /// All that were seen at any time.
    pub fn of(obs: &Observation) -> Self {
        let mut all: BTreeMap<Endpoint, BTreeSet<Hop>> = BTreeMap::new();
        for (&netns, view) in &obs.netns {
            for seen in view.conntrack_translations.values().flatten() {
                let hop = Hop { netns, original: canonical(seen.original), translated: canonical(seen.translated) };
                all.entry(hop.original).or_default().insert(hop);
            }
        }
        Self(all)
    }

    /// True if none was seen.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The address itself and every address that a connection to it from namespace `client` may be translated to: nearest first, without duplicates.
    pub fn places(&self, client: NetnsId, target: Endpoint) -> Vec<ArrivalAddress> {
        let mut places = vec![ArrivalAddress { endpoint: canonical(target), hops: Vec::new(), is_passed: false }];
        let mut at = 0;
        while at < places.len() {
            let here = places[at].clone();
            for hop in self.further(client, &here) {
                places[at].is_passed = true;
                // Rules in a circle end here.
                let is_known = places.iter().any(|place| place.endpoint == hop.translated);
                if !is_known && here.hops.len() < HOPS_MAX && places.len() < PLACES_MAX {
                    let hops = here.hops.iter().copied().chain([hop]).collect();
                    places.push(ArrivalAddress { endpoint: hop.translated, hops, is_passed: false });
                }
            }
            at += 1;
        }
        places
    }

    fn further(&self, client: NetnsId, place: &ArrivalAddress) -> impl Iterator<Item = Hop> {
        let from = place.from(client);
        // A loopback address is a different place in each namespace.
        let is_loopback = place.endpoint.0.is_loopback();
        let here = self.0.get(&place.endpoint).into_iter().flatten().copied();
        here.filter(move |hop| !is_loopback || hop.netns == from)
    }
}

fn canonical((ip, port): Endpoint) -> Endpoint {
    (ip.to_canonical(), port)
}
