//! All edges, within a limit. Above it, the edges of further clients are merged into one, and finally all others.

use std::collections::HashMap;

use crate::edge::{Edge, EdgeAddress};
use crate::stream::Port;
use crate::summary::{address, socket};

/// The edges by their addresses: at most twice the limit plus one.
pub(crate) struct Edges {
    limit: usize,
    all: Vec<Edge>,
    by_address: HashMap<EdgeAddress, u32>,
}

impl Edges {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), all: Vec::new(), by_address: HashMap::new() }
    }

    /// The index of the edge between these two addresses.
    pub(crate) fn place(&mut self, client: Port, server: Port) -> u32 {
        let whole = EdgeAddress { client: Some(address(client.0)), server: Some(socket(server)) };
        if let Some(place) = self.by_address.get(&whole) {
            return *place;
        }
        if self.all.len() < self.limit {
            return self.insert(whole);
        }
        let merged = EdgeAddress { client: None, ..whole };
        if let Some(place) = self.by_address.get(&merged) {
            return *place;
        }
        if self.all.len() < 2 * self.limit {
            return self.insert(merged);
        }
        let rest = EdgeAddress { client: None, server: None };
        self.by_address.get(&rest).copied().unwrap_or_else(|| self.insert(rest))
    }

    fn insert(&mut self, address: EdgeAddress) -> u32 {
        let place = self.all.len() as u32;
        self.all.push(Edge::new(address));
        self.by_address.insert(address, place);
        place
    }

    pub(crate) fn get(&mut self, place: u32) -> Option<&mut Edge> {
        self.all.get_mut(place as usize)
    }

    /// The edges with a connection, the busiest first.
    pub(crate) fn finish(self) -> Vec<Edge> {
        let mut all: Vec<Edge> = self.all.into_iter().filter(|edge| edge.connections > 0).collect();
        all.sort_by(|a, b| (b.requests, b.connections, a.address).cmp(&(a.requests, a.connections, b.address)));
        all
    }
}
