//! Judges watched traffic if no station found a cause: whether what the samples of requests show allows calling the server healthy.

mod full;

use self::full::FullAtTimes;
use crate::facts::Context;
use crate::facts::cores::{NEAR_UTILIZATION, most_busy};
use crate::facts::harm::{Cost, LATENCY_NOISE_SHARE};
use crate::facts::pool::awaited::Awaited;
use crate::facts::pool::{MOST, Pool, PoolKind, SAMPLES_MIN, looks};
use crate::facts::traffic;
use crate::judge::unseen::with_where;
use crate::ledger::{Account, CROWD_TIMES_MAX, HeldTogether, Levels, Pauses, Starved, Varying, not_none, tenths};
use crate::output::message::Message;
use crate::output::report::LedgerPlaceKind as Place;

/// Share of the samples in which nothing is under way from which the server is often empty: a place that is free for a tenth of the time could do as much more as
/// clients notice.
const EMPTY_SHARE_MIN: f64 = 0.1;

/// Why it is not known whether a server keeps up.
pub(crate) struct Untold {
    pub(crate) why: Message,
    /// True if nothing was seen that speaks against it: more of its traffic may tell.
    pub(crate) undecided: bool,
}

impl Untold {
    fn suspect(why: Message) -> Self {
        Self { why, undecided: false }
    }
}

/// True if threads that get no time harm these requests: with load, where one of them was never without work, and where nothing shows that the server keeps up. Watched traffic whose requests do
/// not wait for each other suffers no harm, however slow each is.
pub(crate) fn suffers(ctx: &Context<'_>, is_never_idle: bool) -> bool {
    // Time that passes before a core is the very harm that is asked for.
    ctx.obs.load.is_some() || is_never_idle || judged_by(ctx, false).is_err()
}

/// What watching shows: the server keeps up, and why; or why that is not known.
pub(crate) fn judged(ctx: &Context<'_>) -> Result<Message, Untold> {
    judged_by(ctx, true)
}

/// The same; `is_spent_well`: if time on cores and before them may explain the requests.
fn judged_by(ctx: &Context<'_>, is_spent_well: bool) -> Result<Message, Untold> {
    let Some(account) = ctx.account() else { return Err(Untold::suspect(Message::new("verdict-unknown-unsampled"))) };
    let varying = account.varying(ctx);
    let pauses = Pauses::of(ctx);
    if let Some(pauses) = pauses.filter(|pauses| Cost::of_time(pauses.share).hurts()) {
        return Err(Untold::suspect(paused(ctx, &pauses)));
    }
    if let Some(full) = FullAtTimes::of(ctx, account) {
        return Err(Untold::suspect(full_at_times(&full)));
    }
    if let Some(levels) = varying.growing() {
        return Err(Untold::suspect(grows(levels)));
    }
    if let Some((gone, elapsed_s)) = account.rate_rps().filter(|_| !varying.is_part()).and_then(|rate_rps| varying.let_go_at_once(rate_rps))
    {
        return Err(Untold::suspect(let_go(ctx, account, &varying, (gone, elapsed_s))));
    }
    if let Some(why) = held_together(ctx, account) {
        return Err(Untold::suspect(why));
    }
    // However short beside the time that was watched, most of what the clients wait may pass in them.
    if let Some(pauses) = pauses.filter(|_| varying.are_bursts()) {
        return Err(Untold::suspect(paused(ctx, &pauses)));
    }
    let against_usual = ctx.obs.request.usual_ms.zip(account.response_s()).map(|(usual_ms, seconds)| (usual_ms, 1e3 * seconds));
    if let Some((usual_ms, ms)) = against_usual.filter(|(usual_ms, ms)| *ms > usual_ms * (1.0 + LATENCY_NOISE_SHARE)) {
        let why = Message::new("verdict-unknown-watched-slower").with("ms", tenths(ms)).with("usual_ms", tenths(usual_ms));
        return Err(Untold::suspect(why));
    }
    let as_usual = || against_usual.map(|(usual_ms, _)| Message::new("healthy-watched-usual").with("usual_ms", tenths(usual_ms)));
    match keeps_up(ctx, account, &varying, is_spent_well).or_else(as_usual) {
        Some(_) if varying.empty_share() >= 1.0 && account.rate_rps().is_none() && !traffic::brought_requests(ctx) => {
            let why = Message::new("verdict-unknown-no-requests").with("seconds", ctx.seconds().round());
            Err(Untold { why, undecided: true })
        }
        Some(why) => Ok(healthy(ctx, account, &varying, why)),
        None => Err(match varying.halves().filter(|levels| varying.surely_grow(levels)) {
            Some(levels) => Untold::suspect(grows(levels)),
            None => Untold { why: untold(ctx, account), undecided: true },
        }),
    }
}

/// What shows that no request waits for another. `None` if nothing does.
fn keeps_up(ctx: &Context<'_>, account: &Account, varying: &Varying, is_spent_well: bool) -> Option<Message> {
    let empty = varying.empty_share();
    let (under_way, idle) = varying.means();
    // A server that stops for seconds and catches up again is empty at times as well.
    let is_crowded = under_way > CROWD_TIMES_MAX * (1.0 - empty) / empty.max(f64::MIN_POSITIVE);
    if varying.are_enough() && empty >= EMPTY_SHARE_MIN && !is_crowded {
        return Some(Message::new("healthy-watched-empty").with("share", (100.0 * empty).round()));
    }
    if varying.are_enough() && varying.most() <= 0.0 {
        return Some(Message::new("healthy-watched-none"));
    }
    // A single request at a time waits for no other.
    if tenths(if varying.is_part() { under_way } else { account.found_under_way().high }) <= 1.0 {
        return Some(Message::new("healthy-watched-single"));
    }
    let met = varying.met_share();
    if varying.are_enough() && !Cost::of_time(met).hurts() {
        return Some(Message::new("healthy-watched-met").with("share", (100.0 * met).ceil()));
    }
    // Nothing is known about requests that may or may not be under way at the first tier. Behind it they are some that the first tier has, wherever they stand.
    let known = account.under_way() - account.at_places(0, |place| place == Place::Undecided);
    let clients_wait = varying.come_at_once() || if varying.is_part() { under_way > idle } else { account.clients_wait(ctx) };
    // What may be a request that stands is no connection on which nothing is asked, and none to spare.
    let is_known = 2.0 * known >= account.under_way();
    if !clients_wait && is_known {
        return Some(Message::new("healthy-watched-idle").with("idle", account.clients(ctx).1.round()));
    }
    // Of the whole window. Where as many as ever are under way most of the time, they are all that ask, and they may wait for each other on whatever the workers share.
    if let Some((tier, pool)) = roomy(ctx, account).filter(|_| !varying.is_part() && !varying.stays_at_most()) {
        let most = pool.busy.iter().max().copied().unwrap_or(0);
        let told = Message::new("healthy-watched-room").with("tier", tier).with("workers", pool.workers as f64).with("unit", pool.unit());
        return Some(told.with("busy", tenths(pool.busy_mean())).with("most", most as f64));
    }
    if is_spent_well && is_known && known > 0.0 && account.well_spent(ctx) > 0.5 * known {
        return Some(Message::new("healthy-watched-spent"));
    }
    let halves = varying.halves();
    if halves.is_some_and(|levels| varying.surely_grow(&levels)) {
        return None;
    }
    if let Some(Levels { few, many }) = halves.filter(|levels| varying.ages_are_known() && !varying.grow(levels)) {
        return Some(Message::new("healthy-watched-alike").with("few", tenths(few.under_way)).with("many", tenths(many.under_way)));
    }
    if let Some(spare) = varying.spare().filter(|_| varying.are_enough() && is_known) {
        return Some(Message::new("healthy-watched-spare").with("spare", tenths(spare)));
    }
    if let Some((usual, most)) = varying.drained() {
        return Some(Message::new("healthy-watched-drained").with("usual", tenths(usual)).with("most", tenths(most)));
    }
    account.arrives_independently(ctx).then(|| Message::new("healthy-watched-independent"))
}

/// The name and the pool of the tier that holds most of the requests, if a worker was free most of the time and hardly any was seen to wait for a lock.
fn roomy<'a>(ctx: &Context<'a>, account: &Account) -> Option<(&'a str, Pool)> {
    let holds = |tier: usize| account.inside(tier).value;
    let tiers = &ctx.path.tiers;
    let tier = tiers.iter().max_by(|a, b| holds(a.id.0).total_cmp(&holds(b.id.0)))?;
    let pool = Pool::of(ctx, tier).filter(|pool| pool.kind != PoolKind::Loops && pool.busy.len() >= SAMPLES_MIN)?;
    // Workers that wait for one lock need no further worker, and keep their clients waiting all the same. Of threads, those that are free wait in the same call.
    let may_wait_for_lock = || looks::lock_share(ctx, tier).is_none_or(|share| Cost::of_time(share).hurts());
    if pool.kind == PoolKind::Processes && may_wait_for_lock() {
        return None;
    }
    let free = pool.busy.iter().filter(|busy| **busy < pool.workers).count();
    (2 * free > pool.busy.len() && pool.waited_share < 0.5 && 2.0 * holds(tier.id.0) > account.under_way())
        .then_some((tier.name.as_str(), pool))
}

/// All numbers of the sentence are those of requests at the first tier and behind it: an answer that its client does not read, or a stream, is none. They are those of the account, unless only
/// a part of the window had requests. Their time is told where they were seen in the whole window, most of them are known to be requests, and it is not longer than they were watched.
fn healthy(ctx: &Context<'_>, account: &Account, varying: &Varying, why: Message) -> Message {
    let at_servers = || account.under_way() - account.at(|place| place == Place::Client);
    let under_way = if varying.is_part() { varying.means().0 } else { at_servers() };
    let rate = account.rate_rps().filter(|rate| *rate > 0.0 && !varying.is_part() && 2.0 * varying.known_mean() >= under_way);
    let told = match rate.map(|rate| under_way / rate).filter(|seconds| *seconds > 0.0 && *seconds <= ctx.seconds()) {
        Some(seconds) => Message::new("verdict-healthy-watched-timed").with("ms", not_none(1e3 * seconds)),
        None => Message::new("verdict-healthy-watched"),
    };
    told.with("under_way", not_none(under_way))
        .with("most", varying.most().max(under_way).ceil())
        .with("why", why)
        .with("reserve", reserve(ctx))
}

/// How much more the server could do, as far as that is known of its cores.
fn reserve(ctx: &Context<'_>) -> Message {
    match most_busy(ctx).filter(|busy| *busy >= NEAR_UTILIZATION) {
        Some(busy) => Message::new("healthy-watched-near").with("busy", 100.0 * busy),
        None => Message::new("healthy-watched-untried"),
    }
}

fn paused(ctx: &Context<'_>, Pauses { share, longest_us, standing }: &Pauses) -> Message {
    let told = Message::new("verdict-unknown-watched-pauses").with("share", share * 100.0).with("longest", *longest_us as f64 / 1e3);
    let first = ctx.path.tiers.first().map_or("", |tier| tier.name.as_str());
    with_where(ctx, told.with("standing", tenths(*standing)).with("first", first))
}

fn full_at_times(full: &FullAtTimes<'_>) -> Message {
    let remote = full.remote.map_or_else(|| "none".to_owned(), |(ip, port)| std::net::SocketAddr::new(ip, port).to_string());
    let told = Message::new("verdict-unknown-watched-full").with("tier", full.tier.name.as_str()).with("remote", remote);
    told.with("at_once", full.at_once as f64).with("share", 100.0 * full.share)
}

fn grows(Levels { few, many }: Levels) -> Message {
    let told = Message::new("verdict-unknown-watched-grows").with("few", tenths(few.under_way)).with("many", tenths(many.under_way));
    told.with("few_ms", tenths(few.age_ms)).with("many_ms", tenths(many.age_ms))
}

fn let_go(ctx: &Context<'_>, account: &Account, varying: &Varying, (gone, elapsed_s): (f64, f64)) -> Message {
    let told =
        Message::new("verdict-unknown-watched-let-go").with("mean", tenths(varying.known_mean())).with("most", tenths(varying.most()));
    let told = told.with("gone", gone.round()).with("ms", (1e3 * elapsed_s).round());
    let inside = account.most_inside(ctx).map(|inside| ctx.path.tiers[inside.tier].name.as_str());
    told.with("tier", inside.unwrap_or("none"))
}

/// Requests that take at least twice as long as they would if they were not held up together: however seldom one is under way, and however few at once.
fn held_together(ctx: &Context<'_>, account: &Account) -> Option<Message> {
    let held = HeldTogether::of(ctx, account).filter(|held| held.share > MOST)?;
    let told = Message::new("verdict-unknown-watched-held").with("share", 100.0 * held.share).with("longest", held.longest_ms);
    Some(with_where(ctx, told))
}

/// Why nothing is known about a server whose requests are always there.
fn untold(ctx: &Context<'_>, account: &Account) -> Message {
    if account.uncertain(ctx) > 0.5 * account.under_way() {
        return Message::new("verdict-unknown-watched-untold").with("number", tenths(account.uncertain(ctx)));
    }
    let under_way = account.under_way();
    if let Some(inside) = account.most_inside(ctx) {
        let tier = &ctx.path.tiers[inside.tier];
        let awaited = Awaited::of(ctx, tier, inside.mean.value);
        let id = if awaited.is_some() { "verdict-unknown-watched-inside-for" } else { "verdict-unknown-watched-inside" };
        let told = Message::new(id).with("tier", tier.name.as_str());
        let told = awaited.iter().fold(told, |told, awaited| told.with("what", awaited.what()));
        return told.with("number", tenths(inside.mean.value)).with("under_way", tenths(under_way));
    }
    let away = (0..ctx.path.tiers.len()).filter_map(|tier| Some((tier, account.elsewhere(tier)?)));
    let used = |calls: &crate::ledger::Calls| calls.in_use((0, u64::MAX));
    let away = away.max_by(|a, b| used(a.1).total_cmp(&used(b.1))).filter(|(_, calls)| used(calls) > 0.5 * under_way);
    if let Some((tier, calls)) = away {
        let (ip, port) = calls.remote;
        let told = Message::new("verdict-unknown-watched-elsewhere").with("tier", ctx.path.tiers[tier].name.as_str());
        let told = told.with("remote", std::net::SocketAddr::new(ip, port).to_string());
        return told.with("number", tenths(used(calls))).with("under_way", tenths(under_way));
    }
    let spent = account.well_spent(ctx);
    Message::new("verdict-unknown-watched-mixed").with("number", tenths(under_way - spent)).with("under_way", tenths(under_way))
}

/// Why busy cores are no explanation: more connections than noise explains wait at the first tier while others are answered again and again.
pub(crate) fn starved(ctx: &Context<'_>) -> Option<Message> {
    let starved = crate::ledger::starved(ctx)?;
    let Starved { waiting, served } = starved;
    let told = Message::new("verdict-unknown-starved").with("waiting", waiting.round()).with("served", served.round());
    starved.hurts().then(|| told.with("tier", ctx.path.tiers.first().map_or("", |tier| tier.name.as_str())))
}
