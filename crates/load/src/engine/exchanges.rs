//! Whose turn it is on each connection of a load over TLS, by its local port. A server sends messages of TLS of its own accord, such as session tickets after
//! the handshake (RFC 8446, 4.6.1), so that who sent last does not show from outside whether a request is under way.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use chokepoint_model::load::LoadExchange;

/// The turn of a port without a connection.
const NONE: u8 = 0;

/// The turns of a load's connections, one byte for each local port. All connections of a load have one address; with several (`bind`), ports are not unique and
/// nothing is kept.
#[derive(Clone)]
pub(crate) struct Exchanges(Arc<[AtomicU8]>);

impl Exchanges {
    pub(crate) fn new() -> Self {
        Exchanges((0..=u16::MAX).map(|_| AtomicU8::new(NONE)).collect())
    }

    /// Whose turn it is on the connection from this port; nothing without one.
    pub(crate) fn at(&self, port: u16) -> Option<LoadExchange> {
        let turn = self.0[usize::from(port)].load(Ordering::Relaxed);
        [LoadExchange::NotAsked, LoadExchange::Waiting, LoadExchange::Answered].into_iter().find(|exchange| number(*exchange) == turn)
    }

    /// A new connection from this port.
    pub(crate) fn open(&self, port: u16) -> Exchange {
        let exchange = Exchange { all: self.clone(), port };
        exchange.set(LoadExchange::NotAsked);
        exchange
    }
}

impl fmt::Debug for Exchanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = self.0.iter().filter(|turn| turn.load(Ordering::Relaxed) != NONE).count();
        write!(f, "Exchanges({open} open)")
    }
}

/// One connection. Its entry ends with it.
#[derive(Debug)]
pub(crate) struct Exchange {
    all: Exchanges,
    port: u16,
}

impl Exchange {
    pub(crate) fn set(&self, exchange: LoadExchange) {
        self.all.0[usize::from(self.port)].store(number(exchange), Ordering::Relaxed);
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.all.0[usize::from(self.port)].store(NONE, Ordering::Relaxed);
    }
}

fn number(exchange: LoadExchange) -> u8 {
    match exchange {
        LoadExchange::NotAsked => 1,
        LoadExchange::Waiting => 2,
        LoadExchange::Answered => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_has_a_turn_while_its_connection_is_open() {
        let all = Exchanges::new();
        assert_eq!(all.at(65_535), None);
        let connection = all.open(65_535);
        assert_eq!(all.at(65_535), Some(LoadExchange::NotAsked));
        connection.set(LoadExchange::Waiting);
        assert_eq!((all.at(65_535), all.at(0)), (Some(LoadExchange::Waiting), None));
        drop(connection);
        assert_eq!(all.at(65_535), None);
    }
}
