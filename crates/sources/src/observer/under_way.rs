//! A load of this process, as the observer sees it: its requests under way, and the namespace it calls from. The sockets of that namespace are read together
//! with those of the server.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chokepoint_model::load::{InFlight, LoadExchange};
use chokepoint_model::observation::NetnsId;

use crate::netlink::Sockets;

/// A counter of requests under way. It is read with each sample of sockets, so that both describe the same moment.
#[derive(Clone)]
pub struct UnderWay {
    read: Arc<dyn Fn() -> InFlight + Send + Sync>,
    exchange: Arc<dyn Fn(u16) -> Option<LoadExchange> + Send + Sync>,
    ends: Arc<Ends>,
}

/// The namespaces of the load's two ends; zero while unknown.
#[derive(Default)]
struct Ends {
    client: AtomicU64,
    server: AtomicU64,
    /// Sockets in the client's namespace, for the reader of the server's namespace.
    sockets: Mutex<Option<Sockets>>,
    is_open: AtomicBool,
}

impl UnderWay {
    /// A counter that `read` reads.
    pub fn new(read: impl Fn() -> InFlight + Send + Sync + 'static) -> Self {
        Self { read: Arc::new(read), exchange: Arc::new(|_| None), ends: Arc::default() }
    }

    /// The same of a load that tells by the local port of a connection whose turn it is there.
    pub fn with_exchanges(self, exchange: impl Fn(u16) -> Option<LoadExchange> + Send + Sync + 'static) -> Self {
        Self { exchange: Arc::new(exchange), ..self }
    }

    pub(crate) fn exchange(&self, port: u16) -> Option<LoadExchange> {
        (self.exchange)(port)
    }

    pub(crate) fn now(&self) -> InFlight {
        (self.read)()
    }

    /// Sets the namespace from which the load calls.
    pub(crate) fn calls_from(&self, id: NetnsId) {
        self.ends.client.store(id.0, Ordering::Relaxed);
    }

    /// Sets the namespace in which the first tier listens.
    pub(crate) fn is_answered_in(&self, id: NetnsId) {
        self.ends.server.store(id.0, Ordering::Relaxed);
    }

    /// To be called by a thread inside this namespace. If the load calls from it, opens sockets through which another reader can read it. Without them each end
    /// has its own reader.
    pub(crate) fn enter(&self, id: NetnsId) {
        if id.0 == self.ends.client.load(Ordering::Relaxed) {
            let opened = Sockets::open().ok();
            self.ends.is_open.store(opened.is_some(), Ordering::Relaxed);
            *self.sockets() = opened;
        }
    }

    /// The client's namespace and its sockets, for the reader of the namespace in which the first tier listens; nothing if the load calls from there.
    pub(crate) fn other_end(&self, id: NetnsId) -> Option<(NetnsId, MutexGuard<'_, Option<Sockets>>)> {
        let (client, server) = self.ids();
        (server == id && client != id).then(|| (client, self.sockets()))
    }

    /// True if the reader of the server's namespace reads the sockets of this one.
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
