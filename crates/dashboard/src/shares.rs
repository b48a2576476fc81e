//! What is bounded, shared between the clients: nobody takes all of it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Whose a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Client {
    /// A user of this host.
    User(u32),
    /// Somebody at another address.
    Address(IpAddr),
}

/// Something of which there is so much, and for one client no more than its share.
#[derive(Debug, Clone)]
pub(crate) struct Shares {
    all: Arc<Semaphore>,
    of_one: usize,
    held: Arc<Mutex<HashMap<Client, usize>>>,
}

/// A part of it, until it is dropped.
#[derive(Debug)]
pub(crate) struct Part {
    shares: Shares,
    client: Client,
    count: usize,
    _all: OwnedSemaphorePermit,
}

impl Shares {
    pub(crate) fn new(all: usize, of_one: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(all)), of_one, held: Arc::default() }
    }

    /// One for a client that has fewer than it may have; nothing if none is left.
    pub(crate) fn take(&self, client: Client) -> Option<Part> {
        self.take_many(client, 1)
    }

    /// So many; nothing if the client would have more than its share, or fewer are left. A client that has none may take more than its share at once.
    pub(crate) fn take_many(&self, client: Client, count: usize) -> Option<Part> {
        let all = Arc::clone(&self.all).try_acquire_many_owned(u32::try_from(count).ok()?).ok()?;
        let mut held = self.lock();
        let own = held.entry(client).or_default();
        if *own > 0 && own.saturating_add(count) > self.of_one {
            return None;
        }
        *own += count;
        drop(held);
        Some(Part { shares: self.clone(), client, count, _all: all })
    }

    /// Waits until one is left.
    pub(crate) async fn wait(&self) {
        // It is never closed. What is left by then may be another's again: whoever takes it may find nothing.
        drop(self.all.acquire().await);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Client, usize>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let mut held = self.shares.lock();
        let left = held.get(&self.client).map_or(0, |own| own.saturating_sub(self.count));
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
    fn one_client_leaves_its_share_to_others_and_gets_its_own_back() {
        let shares = Shares::new(20, 12);
        let crowd: Vec<Part> = std::iter::from_fn(|| shares.take(Client::User(65_534))).take(100).collect();
        assert_eq!(crowd.len(), 12);
        let other = shares.take(Client::User(33));
        assert!(other.is_some() && shares.take(Client::Address(IpAddr::from([192, 0, 2, 1]))).is_some());
        drop(crowd);
        assert!(shares.take(Client::User(65_534)).is_some());
        drop(other);
        assert!(shares.lock().is_empty(), "nobody is remembered");
        let all: Vec<Part> = (0..30).filter_map(|uid| shares.take(Client::User(uid))).collect();
        assert_eq!(all.len(), 20, "there are no more for many clients either");
    }

    #[test]
    fn what_is_larger_than_a_share_is_taken_alone() {
        let shares = Shares::new(10, 4);
        let client = Client::User(1);
        let large = shares.take_many(client, 9);
        assert!(large.is_some() && shares.take(client).is_none() && shares.take_many(Client::User(2), 2).is_none());
        drop(large);
        let small = [shares.take_many(client, 3), shares.take_many(client, 1), shares.take_many(client, 1)];
        assert_eq!(small.each_ref().map(Option::is_some), [true, true, false]);
        drop(small);
        assert!(shares.take_many(client, 11).is_none(), "there is not so much");
    }
}
