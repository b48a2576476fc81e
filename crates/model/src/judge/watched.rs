//! Judges watched traffic if no station found a cause: whether what the requests wait for allows calling the server healthy.

use crate::facts::Context;
use crate::facts::harm::Cost;
use crate::ledger::{Account, Inside, Starved, tenths};
use crate::output::message::Message;
use crate::output::report::LedgerPlaceKind as Place;

/// Why a watched server cannot be called healthy; `None` if its clients ask for little, or most of their time passes on cores, on the network path, or at the
/// clients themselves.
pub(crate) fn unexplained(ctx: &Context<'_>) -> Option<Message> {
    let Some(account) = ctx.account() else { return Some(Message::new("verdict-unknown-unsampled")) };
    // A single request at a time waits for no other.
    if tenths(account.found_under_way().high) <= 1.0 || !account.clients_wait(ctx) || account.arrives_independently(ctx) {
        return None;
    }
    // Nothing is known about requests that may or may not be under way.
    let known = account.under_way() - account.at(|place| place == Place::Undecided);
    if known > 0.0 && account.well_spent(ctx) > 0.5 * known {
        return None;
    }
    if account.uncertain(ctx) > 0.5 * account.under_way() {
        return Some(Message::new("verdict-unknown-watched-untold").with("number", tenths(account.uncertain(ctx))));
    }
    Some(match account.most_inside(ctx) {
        Some(inside) => stands_inside(ctx, account, &inside),
        None => mixed(ctx, account),
    })
}

/// Why busy cores are no explanation: more connections than noise explains wait at the first tier while others are answered again and again.
pub(crate) fn starved(ctx: &Context<'_>) -> Option<Message> {
    let Starved { waiting, served } = crate::ledger::starved(ctx)?;
    let is_harm = waiting >= 1.0 && served >= 1.0 && Cost::of_time(waiting / (waiting + served)).hurts();
    let told = Message::new("verdict-unknown-starved").with("waiting", waiting.round()).with("served", served.round());
    is_harm.then(|| told.with("tier", ctx.path.tiers.first().map_or("", |tier| tier.name.as_str())))
}

fn stands_inside(ctx: &Context<'_>, account: &Account, inside: &Inside) -> Message {
    let name = ctx.path.tiers[inside.tier].name.as_str();
    let told = Message::new("verdict-unknown-watched-inside").with("tier", name);
    told.with("number", inside.mean.value.round()).with("under_way", account.under_way().round())
}

/// No place inside a tier has most of the requests. Names the place that does, or the server on another host that they wait for.
fn mixed(ctx: &Context<'_>, account: &Account) -> Message {
    let under_way = account.under_way();
    let away = (0..ctx.path.tiers.len()).filter_map(|tier| Some((tier, account.elsewhere(tier)?)));
    let used = |calls: &crate::ledger::Calls| calls.in_use((0, u64::MAX));
    let away = away.max_by(|a, b| used(a.1).total_cmp(&used(b.1))).filter(|(_, calls)| used(calls) > 0.5 * under_way);
    if let Some((tier, calls)) = away {
        let (ip, port) = calls.remote;
        let told = Message::new("verdict-unknown-watched-elsewhere").with("tier", ctx.path.tiers[tier].name.as_str());
        let told = told.with("remote", std::net::SocketAddr::new(ip, port).to_string());
        return told.with("number", used(calls).round()).with("under_way", under_way.round());
    }
    let spent = account.well_spent(ctx);
    Message::new("verdict-unknown-watched-mixed").with("number", tenths(under_way - spent)).with("under_way", tenths(under_way))
}
