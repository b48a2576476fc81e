//! The places for connections, shared between the clients: nobody fills all of them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Connections of one client at a time: a browser opens six to one server, and one more for each page that follows the events.
pub(crate) const PLACES_OF_ONE: usize = 12;

/// Whose a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Client {
    /// A user of this host.
    User(u32),
    /// Somebody at another address.
    Address(IpAddr),
}

/// How many places each client has.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shares(Arc<Mutex<HashMap<Client, usize>>>);

/// A place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    shares: Shares,
    client: Client,
}

impl Shares {
    /// A place for a client that has fewer than it may have.
    pub(crate) fn take(&self, client: Client) -> Option<Place> {
        let mut held = self.lock();
        let count = held.entry(client).or_default();
        if *count >= PLACES_OF_ONE {
            return None;
        }
        *count += 1;
        drop(held);
        Some(Place { shares: self.clone(), client })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Client, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = self.shares.lock();
        let left = held.get(&self.client).map_or(0, |count| count.saturating_sub(1));
        // Whoever is gone takes no memory.
        match left {
            0 => held.remove(&self.client),
            left => held.insert(self.client, left),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_leaves_places_to_others_and_gets_its_own_back() {
        let shares = Shares::default();
        let crowd: Vec<Place> = std::iter::from_fn(|| shares.take(Client::User(65_534))).take(100).collect();
        assert_eq!(crowd.len(), PLACES_OF_ONE);
        let other = shares.take(Client::User(33));
        assert!(other.is_some() && shares.take(Client::Address(IpAddr::from([192, 0, 2, 1]))).is_some());
        drop(crowd);
        assert!(shares.take(Client::User(65_534)).is_some());
        drop(other);
        assert!(shares.lock().is_empty(), "nobody is remembered");
    }
}
