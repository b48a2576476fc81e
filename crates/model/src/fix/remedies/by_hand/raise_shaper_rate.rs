//! Advice `raise-shaper-rate`: how to let more pass a shaper. Its rate belongs to whoever set it.

use crate::facts::Context;
use crate::facts::path::shaper::{Shaper, shapers};
use crate::fix::change::Activation;
use crate::fix::remedies::definition::{Advice, AdviceDef};
use crate::judge::id::FindingId;
use crate::judge::location::EdgeId;
use crate::judge::station::StationReading;
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const RAISE_RATE: AdviceDef =
    AdviceDef { id: "raise-shaper-rate", finding: FindingId::EGRESS_SHAPED, activation: Activation::Live, advise };

/// `TC_H_ROOT` (linux/pkt_sched.h).
const ROOT: u32 = u32::MAX;

fn advise(ctx: &Context<'_>, placed: &StationReading) -> Option<Advice> {
    let here = |link: &str| placed.at.edge == Some(EdgeId::Interface(link.to_owned()));
    let shaper = shapers(ctx).into_iter().find(|shaper| Some(shaper.netns) == placed.at.netns && here(&shaper.link.name))?;
    let id = match shaper.qdisc.kind.as_str() {
        "htb" => "remedy-raise-shaper-rate-text-htb",
        "cake" => "remedy-raise-shaper-rate-text-cake",
        _ => "remedy-raise-shaper-rate-text-tbf",
    };
    let text = Message::new(id)
        .with("link", shaper.link.name.as_str())
        .with("netns", ctx.netns_name(shaper.netns))
        .with("rate", shaper.rate_bits_per_s / 1e6)
        .with("parent", parent(&shaper))
        .with("class", handle(shaper.qdisc.handle));
    // The rate to choose is the reader's: the prediction is for one with room for this load.
    Some(Advice::words(text, "remedy-raise-shaper-rate-risk", Lift::Away))
}

/// The parent as tc(8) takes it. A root class of a qdisc has that qdisc as parent, whose minor is zero.
fn parent(shaper: &Shaper<'_>) -> String {
    match shaper.qdisc.parent {
        ROOT if shaper.is_class => format!("parent {:x}:", shaper.qdisc.handle >> 16),
        ROOT => "root".to_owned(),
        parent => format!("parent {}", handle(parent)),
    }
}

/// A handle as tc(8) writes it: major and minor in hexadecimal.
fn handle(handle: u32) -> String {
    format!("{:x}:{:x}", handle >> 16, handle & 0xffff)
}
