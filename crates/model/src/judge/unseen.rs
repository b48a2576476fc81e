//! Waits that no station shows: all requests take long, all stand at times, packets stay in the host that wants to send them, or are handed to no socket.

use crate::facts::Context;
use crate::facts::CoreGroup;
use crate::facts::cores::{cores_are_spare, other_tenants, own_cores, passing_children_cores};
use crate::facts::harm::Cost;
use crate::facts::path::Tier;
use crate::facts::pool::MOST;
use crate::facts::pool::awaited::Awaited;
use crate::facts::profile::Profiled;
use crate::facts::suffered::held::Held;
use crate::facts::suffered::standing::Standing;
use crate::facts::suffered::takers::Taker;
use crate::facts::suffered::undelivered::{Undelivered, is_kept};
use crate::facts::suffered::{SENT_AGAIN_US, WAKES_US};
use crate::ledger::{Account, HeldUp, ThreadShares, tenths};
use crate::observation::load::{LoadResult, Loop, SLICE_US, Slice};
use crate::observation::{NetnsId, NetnsView, TcpSample};
use crate::output::message::Message;
use crate::output::report::LedgerPlaceKind;

/// How many times as long as alone an answer may take in a closed loop that is limited by its connections. At the knee itself it takes up to twice as long by
/// chance; beyond it more than half of the connections would have to wait, so they are not too few.
const UNLOADED_TIMES: f64 = 2.0;
/// Fewest slices of a load for a share of them.
const PAUSE_SLICES_MIN: usize = 10;
/// Fewest answers of a slice on average: chance then leaves one in twenty thousand empty (Poisson).
const ANSWERS_MIN: f64 = 10.0;
/// The most of a slice that a single answer may take, so that a slice without one is no matter of its length.
const QUICK_SHARE: f64 = 0.5;
/// The most of its time for which the busiest thread of a server runs or is ready that has time to read what comes.
const IDLE_MAX: f64 = 0.5;
/// Share of the requests whose answers are due that must stand in a pause.
const STANDING_SHARE: f64 = 0.5;

/// Answers that take much longer under load than alone although the cores are idle: they wait for something that cannot be observed (threads of one process,
/// a lock, a limit of connections). Below the knee of a closed loop an answer takes about as long as alone, and more connections would give more. Beyond it
/// they would only wait longer (Denning and Buzen, The Operational Analysis of Queueing Network Models, 1978).
pub(crate) fn waits_unseen(ctx: &Context<'_>) -> Option<Message> {
    let (alone, loaded) = ctx.answer_us()?;
    let waits = is_slower(ctx, alone, loaded) && cores_are_spare(ctx);
    waits.then(|| {
        let why = Message::new("verdict-unknown-waits").with("alone", alone / 1e3).with("loaded", loaded / 1e3);
        let others = other_tenants(ctx).into_iter().map(|(_, share)| 100.0 * share).fold(0.0, f64::max);
        why.with("others", others).with("tier", ctx.path.tiers.last().map_or("", |tier| tier.name.as_str()))
    })
}

/// True if answers take so much longer at the servers alone, where requests were found: what they spend on the way and at the client is all that a generator without
/// a core makes longer.
pub(crate) fn at_servers(ctx: &Context<'_>) -> bool {
    let Some((account, (alone, loaded))) = ctx.account().zip(ctx.answer_us()) else { return false };
    is_slower(ctx, alone, share_at_servers(account) * loaded)
}

/// Share of the requests' time in which they surely stand at a server.
fn share_at_servers(account: &Account) -> f64 {
    let is_at_server = |place| {
        use LedgerPlaceKind::{AcceptQueue, Cpu, Ready, Throttled, Unread, Waiting};
        matches!(place, AcceptQueue | Unread | Cpu | Ready | Throttled | Waiting)
    };
    (account.at(is_at_server) / account.under_way().max(f64::MIN_POSITIVE)).min(1.0)
}

/// Requests of which half are quick, and the others stand at servers for most of the clients' time although the cores are idle: something stops these for a moment again and again, too
/// short to leave a slice of the load without an answer.
pub(crate) fn few_take_most(ctx: &Context<'_>) -> Option<Message> {
    let (load, account) = ctx.obs.load.as_ref().zip(ctx.account())?;
    let (mean_us, usual_us) = (1e6 * account.response_s()?, load.latency_us.p50 as f64);
    let is_so = is_slower(ctx, usual_us, share_at_servers(account) * mean_us) && cores_are_spare(ctx);
    let message = Message::new("verdict-unknown-few-take-most").with("usual", usual_us / 1e3).with("mean", mean_us / 1e3);
    is_so.then(|| with_where(ctx, message.with("late", load.latency_us.p99 as f64 / 1e3)))
}

/// Requests that a server leaves unread although its threads have time: it waits for something before it reads on, so that more connections would only wait as well.
pub(crate) fn left_unread(ctx: &Context<'_>) -> Option<Message> {
    let account = ctx.account()?;
    let unread = |tier: &Tier| account.at_places(tier.id.0, |place| place == LedgerPlaceKind::Unread);
    // The rest of a long one is left for later by whoever answers before he read all of it.
    let has_whole = |tier: &Tier| HeldUp::of(ctx, tier).is_some_and(|held_up| held_up.seen > 0);
    let has_time = |tier: &&Tier| tier.is_known() && has_whole(tier) && ThreadShares::of(ctx, tier).busiest() < IDLE_MAX;
    let tier = ctx.path.tiers.iter().filter(has_time).max_by(|a, b| unread(a).total_cmp(&unread(b)))?;
    let share = unread(tier) / account.under_way().max(f64::MIN_POSITIVE);
    // A thread that sleeps takes a moment to wake up and read.
    let is_long = ctx.answers_rps().is_none_or(|rate| 1e6 * unread(tier) > WAKES_US * rate);
    let message = Message::new("verdict-unknown-left-unread").with("share", 100.0 * share).with("tier", tier.name.as_str());
    let message = waits_for(message, Awaited::of(ctx, tier, unread(tier)));
    (tenths(unread(tier)) >= 1.0 && is_long && Cost::of_time(share).hurts()).then_some(message)
}

/// Requests of which most are quick and some wait for as long as TCP waits before it sends again, while they stand at no server: something on the way drops packets, and no counter of this
/// host has them (what a packet filter of the sender drops is no retransmission).
pub(crate) fn late_elsewhere(ctx: &Context<'_>) -> Option<Message> {
    let (load, account) = ctx.obs.load.as_ref().zip(ctx.account())?;
    let (mean_us, usual_us) = (1e6 * account.response_s()?, load.latency_us.p50 as f64);
    let is_late = load.latency_us.p99 >= SENT_AGAIN_US && usual_us < QUICK_SHARE * SENT_AGAIN_US as f64;
    let elsewhere = 1.0 - share_at_servers(account);
    // What the quick ones take passes at servers and on the way.
    let lost = 1.0 - usual_us / mean_us;
    let is_so = is_late && elsewhere >= STANDING_SHARE && Cost::of_time(lost).hurts();
    let message = Message::new("verdict-unknown-late-elsewhere").with("usual", usual_us / 1e3).with("mean", mean_us / 1e3);
    is_so.then(|| message.with("late", load.latency_us.p99 as f64 / 1e3).with("elsewhere", 100.0 * elsewhere))
}

/// Servers whose CPU time is mostly that of processes which they start and which end soon, where it was not read how much of that is the start itself. It may be nearly all of it.
pub(crate) fn started_untold(ctx: &Context<'_>) -> Option<Message> {
    let is_told = Profiled::of(ctx).is_some_and(|profiled| profiled.profile.starts.is_some());
    let most = |group: &CoreGroup<'_>| {
        let pids: Vec<u32> = group.tiers.iter().flat_map(|tier| tier.pids.iter().copied()).collect();
        let (children, own) = (passing_children_cores(ctx, &pids), own_cores(ctx, &pids)?);
        (2.0 * children > own).then_some(children / own)
    };
    let share = ctx.core_groups().iter().filter(|_| !is_told).find_map(most)?;
    Some(Message::new("verdict-unknown-started").with("share", 100.0 * share))
}

fn is_slower(ctx: &Context<'_>, alone: f64, loaded: f64) -> bool {
    let wakes = WAKES_US * ctx.path.tiers.len() as f64;
    loaded > UNLOADED_TIMES * alone && loaded > alone + wakes
}

/// Data that the kernel does not let out, at least a segment: less may be corked (TCP_CORK, tcp(7)).
pub(crate) fn kept_unsent(ctx: &Context<'_>) -> Option<Message> {
    let is_segment = |sample: &TcpSample| is_kept(sample, sample.mss.max(1));
    let of = |(netns, _): (NetnsId, &NetnsView)| Some((netns, Held::of(ctx, netns, is_segment)?));
    let (netns, held) = ctx.netns_on_path().into_iter().filter_map(of).max_by(|a, b| a.1.share().total_cmp(&b.1.share()))?;
    let message = Message::new("verdict-unknown-unsent").with("netns", ctx.netns_name(netns)).with("share", held.share() * 100.0);
    let message = message.with("connections", tenths(held.connections)).with("under_way", tenths(held.under_way));
    held.cost().hurts().then_some(message)
}

/// All responses under way stand on connections from which no acknowledgement comes: their clients are gone, or the way to them is broken. Where others are answered meanwhile, some of
/// many clients that went away mean nothing.
pub(crate) fn standing(ctx: &Context<'_>) -> Option<Message> {
    let Standing { netns, held, .. } = Standing::of(ctx).filter(Standing::is_all)?;
    let message = Message::new("verdict-unknown-standing").with("netns", ctx.netns_name(netns));
    Some(message.with("connections", tenths(held.connections)).with("under_way", tenths(held.under_way)))
}

/// Nothing was said on any connection: either nobody asked, or requests that came before stand all the time.
pub(crate) fn none_moved(ctx: &Context<'_>) -> Message {
    let stands = ctx.account().and_then(|account| Some((account.under_way(), account.most_inside(ctx)?)));
    let Some((under_way, inside)) = stands.filter(|(under_way, _)| *under_way >= 1.0) else {
        return Message::new("verdict-unknown-no-traffic");
    };
    let told = Message::new("verdict-unknown-none-moved").with("number", tenths(inside.mean.value)).with("under_way", tenths(under_way));
    told.with("tier", ctx.path.tiers[inside.tier].name.as_str()).with("seconds", ctx.seconds().round())
}

/// Spells in which nothing was answered although requests stood.
struct Pauses {
    /// Share of the load's time.
    share: f64,
    /// The longest one, microseconds.
    longest_us: u64,
    /// Mean number of requests under way in them.
    standing: f64,
}

impl Pauses {
    /// By the load's own slices. `None` if it had so few answers that slices without one are chance, or if a single answer takes so long that slices have none by themselves.
    fn of(ctx: &Context<'_>, load: &LoadResult) -> Option<Self> {
        let slices = load.offered();
        let ended = |slice: &Slice| u64::from(slice.good) + u64::from(slice.wrong) + u64::from(slice.failed);
        let usual = slices.iter().map(ended).sum::<u64>() as f64 / slices.len().max(1) as f64;
        let alone_us = ctx.alone_us().unwrap_or(load.latency_us.p50 as f64);
        if slices.len() < PAUSE_SLICES_MIN || usual < ANSWERS_MIN || alone_us > QUICK_SHARE * SLICE_US as f64 {
            return None;
        }
        // The answers to all of them, or to as many as are usual in a slice, are due.
        let due = match load.shape {
            Loop::Closed { connections } => usual.min(f64::from(connections)),
            Loop::Open { .. } => usual,
        };
        let is_pause = |slice: &&Slice| ended(slice) == 0 && f64::from(slice.in_flight) >= STANDING_SHARE * due;
        let pauses: Vec<&Slice> = slices.iter().filter(is_pause).collect();
        let longest = slices.split(|slice| !is_pause(&slice)).map(<[Slice]>::len).max().unwrap_or(0);
        let standing = pauses.iter().map(|slice| f64::from(slice.in_flight)).sum::<f64>() / pauses.len().max(1) as f64;
        let share = pauses.len() as f64 / slices.len() as f64;
        Some(Self { share, longest_us: longest as u64 * SLICE_US, standing })
    }
}

/// Answers come in bursts: for much of the time none comes although requests stand that take a moment each, and no station shows what they wait for. More of them would stand
/// there as well, so they are not too few. Such is an event loop that is blocked, a collection of garbage, a program that is stopped again and again.
pub(crate) fn pauses(ctx: &Context<'_>) -> Option<Message> {
    let load = ctx.obs.load.as_ref()?;
    let Pauses { share, longest_us, standing } = Pauses::of(ctx, load).filter(|pauses| Cost::of_time(pauses.share).hurts())?;
    let message = Message::new("verdict-unknown-pauses").with("share", share * 100.0).with("longest", longest_us as f64 / 1e3);
    let message = message.with("standing", tenths(standing)).with("ms", load.latency_us.p50 as f64 / 1e3);
    Some(with_where(ctx, message))
}

/// Share of the time in which nothing was answered although requests stood, by the load's own count or as watched. Zero if there were no such spells, and if they could not be told.
pub(crate) fn paused_share(ctx: &Context<'_>) -> f64 {
    match &ctx.obs.load {
        Some(load) => Pauses::of(ctx, load).map_or(0.0, |pauses| pauses.share),
        None => crate::ledger::Pauses::of(ctx).map_or(0.0, |pauses| pauses.share),
    }
}

/// True if none of a load's requests is answered for so much of the time that it hurts: whatever stops a server's workers or threads then would stop more of them as well.
pub(crate) fn stand_still(ctx: &Context<'_>) -> bool {
    ctx.obs.load.is_some() && Cost::of_time(paused_share(ctx)).hurts()
}

/// Says of pauses at which server most requests stand, and what it was found waiting for.
pub(super) fn with_where(ctx: &Context<'_>, message: Message) -> Message {
    let stand = |account: &Account| {
        let tiers = ctx.path.tiers.iter().map(|tier| (account.at_tier(tier.id.0, true), tier));
        tiers.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(stand, _)| 2.0 * stand > account.under_way())
    };
    let Some((number, tier)) = ctx.account().and_then(stand) else { return message.with("tier", "none").with("waits", "no") };
    let message = message.with("tier", tier.name.as_str());
    waits_for(message, Awaited::of(ctx, tier, number))
}

/// Says what a server was found waiting for, if it was.
fn waits_for(message: Message, awaited: Option<Awaited>) -> Message {
    match awaited {
        Some(awaited) => message.with("waits", "yes").with("what", awaited.what()),
        None => message.with("waits", "no"),
    }
}

/// This message of packets that are handed to no socket: nothing is known of whoever sent them. `None` if hardly any are, or if the counters were not read.
pub(super) fn undelivered<'a>(ctx: &Context<'a>, id: &'static str) -> Option<Message> {
    let of = |(netns, view): (NetnsId, &'a NetnsView)| {
        let taken = Undelivered::of(ctx, netns, view)?;
        let cost = Cost::of_requests(taken.came, taken.came.saturating_add(ctx.netstat_growth(view, "Tcp.InSegs")?));
        cost.hurts().then_some((view, taken, cost.requests))
    };
    let (view, taken, share) = ctx.netns_on_path().into_iter().filter_map(of).max_by_key(|(_, taken, _)| taken.came)?;
    let message = Message::new(id).with("dropped", taken.came).with("share", 100.0 * share);
    let rule = Taker::of_most(ctx, view, &taken).map_or_else(|| "none".to_owned(), ToString::to_string);
    Some(message.with("netns", ctx.netns_name(taken.netns)).with("rule", rule))
}

/// The server inside which most requests wait, unless its configuration was read and it passes none on: what looks like the time that they need may be a pause of its own.
pub(super) fn pauses_inside<'a>(ctx: &Context<'a>) -> Option<&'a Tier> {
    let account = ctx.account()?;
    let is_most = |tier: &&Tier| account.inside(tier.id.0).value > 0.5 * account.under_way();
    let is_read = |tier: &Tier| tier.pids.iter().any(|pid| ctx.obs.servers.get(pid).is_some_and(|server| server.config.last().is_some()));
    ctx.path.tiers.iter().find(is_most).filter(|tier| !is_read(tier) || !tier.upstreams.is_empty())
}

/// The server furthest from the clients that sends most of its responses in long pieces with pauses. They wait for nothing on the way then: a limit of their rate looks so, and a program that makes them bit by bit.
pub(super) fn sent_in_pieces(ctx: &Context<'_>) -> Option<Message> {
    let account = ctx.account()?;
    let tier = ctx.path.tiers.iter().rev().find(|tier| account.in_pieces(tier) > MOST * account.under_way().max(1.0))?;
    Some(Message::new("verdict-unknown-in-pieces").with("tier", tier.name.as_str()).with("number", tenths(account.in_pieces(tier))))
}
