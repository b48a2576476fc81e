//! A load of this very process, as the observer sees it: what it has under way, and the namespace that it calls from, whose sockets are read in one go with those
//! of the server.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chokepoint_model::load::InFlight;
use chokepoint_model::observation::NetnsId;

use crate::netlink::Sockets;

/// A counter of requests under way, read with each sample of sockets: both then tell of the same moment.
#[derive(Clone)]
pub struct UnderWay {
    read: Arc<dyn Fn() -> InFlight + Send + Sync>,
    ends: Arc<Ends>,
}

/// The namespaces of the load's two ends; zero where one is not known.
#[derive(Default)]
struct Ends {
    client: AtomicU64,
    server: AtomicU64,
    /// Those of the client's namespace, for the reader of the server's, who may take a while with them.
    sockets: Mutex<Option<Sockets>>,
    is_open: AtomicBool,
}

impl UnderWay {
    /// The counter that this function reads.
    pub fn new(read: impl Fn() -> InFlight + Send + Sync + 'static) -> Self {
        Self { read: Arc::new(read), ends: Arc::default() }
    }

    pub(crate) fn now(&self) -> InFlight {
        (self.read)()
    }

    /// Tells from which namespace the load calls.
    pub(crate) fn calls_from(&self, id: NetnsId) {
        self.ends.client.store(id.0, Ordering::Relaxed);
    }

    /// Tells in which namespace the first tier listens.
    pub(crate) fn is_answered_in(&self, id: NetnsId) {
        self.ends.server.store(id.0, Ordering::Relaxed);
    }

    /// Called in a thread inside this namespace: where the load calls from it, opens the sockets through which it can be read from elsewhere, too. Where they cannot be
    /// opened, each end is read by its own reader.
    pub(crate) fn enter(&self, id: NetnsId) {
        if id.0 == self.ends.client.load(Ordering::Relaxed) {
            let opened = Sockets::open().ok();
            self.ends.is_open.store(opened.is_some(), Ordering::Relaxed);
            *self.sockets() = opened;
        }
    }

    /// What the reader of this namespace reads with its own sockets, and whose it is: the client's, where the first tier listens here and the load calls from elsewhere.
    pub(crate) fn other_end(&self, id: NetnsId) -> Option<(NetnsId, MutexGuard<'_, Option<Sockets>>)> {
        let (client, server) = self.ids();
        (server == id && client != id).then(|| (client, self.sockets()))
    }

    /// True where the reader of this namespace leaves its sockets to that of the server's.
    pub(crate) fn is_read_from_elsewhere(&self, id: NetnsId) -> bool {
        let (client, server) = self.ids();
        client == id && server != NetnsId(0) && server != id && self.ends.is_open.load(Ordering::Relaxed)
    }

    fn ids(&self) -> (NetnsId, NetnsId) {
        (NetnsId(self.ends.client.load(Ordering::Relaxed)), NetnsId(self.ends.server.load(Ordering::Relaxed)))
    }

    fn sockets(&self) -> MutexGuard<'_, Option<Sockets>> {
        self.ends.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for UnderWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UnderWay({:?}, {:?})", self.now(), self.ids())
    }
}
