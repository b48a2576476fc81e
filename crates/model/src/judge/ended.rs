//! A server that ends and is started again: for a part of the time nothing listens where it is asked, and the kernel refuses each connection.

use crate::facts::Context;
use crate::observation::{Listener, ListenerAddress};
use crate::output::message::Message;

/// For how much of the time nothing listened.
pub(crate) struct Ended {
    /// As a share of the window.
    pub(crate) share: f64,
    port: u16,
    /// Times at which it stopped listening.
    times: usize,
}

impl Ended {
    pub(crate) fn told(&self) -> Message {
        let message = Message::new("verdict-unknown-ended").with("share", 100.0 * self.share).with("port", self.port.to_string());
        message.with("times", self.times as f64)
    }
}

/// `None` if something listened there all the time, or never, or if that was not read.
pub(crate) fn ended(ctx: &Context<'_>) -> Option<Ended> {
    let first = ctx.path.tiers.first()?;
    let ports: Vec<u16> = first.listeners.iter().filter_map(|placed| port(&placed.listener)).collect();
    let port = *ports.first()?;
    let listens =
        |listeners: &Vec<Listener>| listeners.iter().any(|listener| self::port(listener).is_some_and(|port| ports.contains(&port)));
    let seen: Vec<bool> = ctx.in_window(&ctx.obs.netns.get(&first.netns)?.listeners).map(|(_, listeners)| listens(listeners)).collect();
    let missing = seen.iter().filter(|listens| !**listens).count();
    let times = seen.windows(2).filter(|two| two[0] && !two[1]).count();
    let share = missing as f64 / seen.len().max(1) as f64;
    (times > 0).then_some(Ended { share, port, times })
}

fn port(listener: &Listener) -> Option<u16> {
    match listener.address {
        ListenerAddress::Tcp(_, port) => Some(port),
        ListenerAddress::Unix(_) => None,
    }
}
