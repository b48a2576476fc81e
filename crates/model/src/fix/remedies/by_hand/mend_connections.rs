//! Advice for what the connections themselves suffer from: on the way, or between two servers that do not agree.

use crate::fix::change::Activation;
use crate::fix::remedies::definition::{Advice, AdviceDef};
use crate::judge::id::FindingId;
use crate::judge::station::StationReading;
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const FIND_LOSS: AdviceDef = AdviceDef {
    id: "find-lossy-link",
    finding: FindingId::PACKET_LOSS,
    activation: Activation::Live,
    advise: |_, _| Some(advice(Message::new("remedy-find-lossy-link-text"), "remedy-find-lossy-link-risk")),
};

pub(in crate::fix::remedies) const KEEP_IDLE_LONGER: AdviceDef = AdviceDef {
    id: "keep-idle-longer",
    finding: FindingId::CLOSE_RACE,
    activation: Activation::Reload,
    advise: |_, placed| Some(advice(remote(placed, "remedy-keep-idle-longer-text"), "remedy-keep-idle-longer-risk")),
};

/// The address that the edge of this reading leads to.
fn remote(placed: &StationReading, id: &'static str) -> Message {
    Message::new(id).with("remote", placed.at.listener_name())
}

/// What it gives is to be measured: neither a ceiling nor a count tells it.
fn advice(text: Message, risk: &'static str) -> Advice {
    Advice::words(text, risk, Lift::Further)
}
