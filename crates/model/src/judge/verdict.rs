//! The verdict: what the stations' readings mean together.

use crate::facts::Context;
use crate::facts::cores::limiting::{Bursts, perhaps_for_cores};
use crate::facts::cores::{CoreGroup, NEAR_UTILIZATION, QUICK_TIMES, limiting, most_busy, other_tenants, others_share, own_share};
use crate::facts::harm::{Cost, NOISE_SHARE};
use crate::facts::owner::Owner;
use crate::facts::path;
use crate::facts::pool::awaited::Awaited;
use crate::facts::pool::{MOST, supposes_no_waits};
use crate::facts::suffered::others;
use crate::facts::suffered::{self, WAKES_US};
use crate::facts::traffic::{self, Statuses, out_of_service};
use crate::fix::remedies::remedies;
use crate::judge::at_limit::at_limit;
use crate::judge::causes;
use crate::judge::ended::ended;
use crate::judge::few_samples;
use crate::judge::finding::{Coupling, Finding, OrderReason};
use crate::judge::id::{CPU_FINDINGS, FindingId, StationId};
use crate::judge::improvements::{Faster, faster};
use crate::judge::location::Location;
use crate::judge::starts;
use crate::judge::station::{StationDef, StationReading};
use crate::judge::stations::{accept_queue, upstream_connect};
use crate::judge::unseen::{
    at_servers, few_take_most, kept_unsent, late_elsewhere, left_unread, none_moved, pauses, pauses_inside, sent_in_pieces, standing,
    started_untold, undelivered, waits_unseen, with_where,
};
use crate::judge::watched::Untold;
use crate::ledger::{hundredths, tenths};
use crate::observation::load::{Handshakes, LoadResult, Loop, TlsFailure};
use crate::output::message::Message;
use crate::output::report::{Cause, Confidence, LedgerPlaceKind as Place, LimitedBy, Role, StationState, Verdict};
use crate::predict::Scene;

/// The sentence about failures that nothing explains.
const UNEXPLAINED: &str = "verdict-unknown-failures";

/// Share of its time that the load generator may wait for a core. Above it, the measured times include the generator's own delays.
const GENERATOR_WAITED_MAX: f64 = 0.1;

/// The sentence that the generator's own waits may be all that was measured.
const GENERATOR_WAITS: &str = "verdict-unknown-generator-waits";

/// Least time for which the scheduler lets a thread run while another one is ready, seconds (`sysctl_sched_base_slice` of one core, kernel/sched/fair.c).
const SLICE_S: f64 = 700e-6;

/// Least length of a load for ceilings, microseconds: servers and caches are cold at its start, and a hundred clock ticks tell one per cent of a core.
const CEILING_FROM_US: u64 = 1_000_000;

/// Fewest cores in use for a ceiling of the cores, if the servers may use more than twice as many. What costs less passes beside the work of the kernel and the
/// grain of its clocks, and a hundredfold of it is a guess.
const CORES_FROM: f64 = 0.1;

/// How many times as long as a single answer the slowest of an open loop may take before they count as held back. By chance some arrive together.
const LATE_TIMES: f64 = 3.0;

/// Everything judged about one observation.
pub(crate) struct JudgedObservation {
    /// The readings of all stations, in the order of the path.
    pub(crate) stations: Vec<StationReading>,
    /// Causes first, in the order in which to fix them.
    pub(crate) findings: Vec<Finding>,
    /// Which finding causes which.
    pub(crate) couplings: Vec<Coupling>,
    /// Why the causes are in this order.
    pub(crate) order: Vec<OrderReason>,
    /// What could be faster although nothing is choked.
    pub(crate) improvements: Vec<Finding>,
    /// The verdict with its sentence.
    pub(crate) judgement: Judgement,
    /// What makes the measurement less certain and follows from the judgement.
    pub(crate) notes: Vec<Message>,
}

/// Judges the readings of a table's stations.
pub(crate) fn judge(ctx: &Context<'_>, table: impl Iterator<Item = &'static StationDef>) -> JudgedObservation {
    let mut stations: Vec<StationReading> = Vec::new();
    let mut findings: Vec<Finding> = Vec::new();
    for def in table {
        let mut read = (def.read)(ctx);
        if !is_long_enough(ctx) {
            read.iter_mut().for_each(|reading| reading.ceiling_rps = None);
        }
        findings.extend((def.judge)(ctx, &read));
        stations.extend(read);
    }
    accept_queue::put_aside(ctx, &stations, &mut findings);
    let mut notes = starts::put_aside(ctx, &mut stations, &mut findings);
    let mut couplings = causes::link(ctx, &stations, &mut findings);
    let Faster { wasted, mut other } = faster(ctx, &stations, &findings);
    findings.extend(wasted);
    let upstreams: Vec<Vec<usize>> = ctx.path.tiers.iter().map(|tier| tier.upstreams.clone()).collect();
    let layout = causes::Layout { upstreams: &upstreams, stations: &stations, name: &|owner| ctx.owner_name(owner) };
    let order = causes::arrange(&mut findings, &mut couplings, layout);
    // What may be no part of the path is at most perhaps what limits it.
    let is_supposed = |finding: &Finding| {
        let tiers = finding.owner.tiers();
        !tiers.is_empty() && tiers.iter().all(|tier| ctx.path.is_supposed(*tier))
    };
    // What a log says and no reading bears out is at most likely.
    let on_log = findings.iter_mut().filter(|finding| finding.rests_on_log());
    on_log.for_each(|finding| finding.confidence = finding.confidence.min(Confidence::Medium));
    findings.iter_mut().filter(|finding| is_supposed(finding)).for_each(|finding| finding.confidence = Confidence::Low);
    prescribe(ctx, &stations, &mut findings);
    prescribe(ctx, &stations, &mut other);
    let judgement = with_what_is_unseen(ctx, judgement(ctx, &stations, (&findings, &couplings)));
    stations.iter_mut().filter(|reading| is_guess(reading) || is_of_no_waits(ctx, reading)).for_each(|reading| reading.ceiling_rps = None);
    notes.extend(accept_queue::tracing_notes(ctx, &findings));
    notes.extend(generator_waited(ctx, &findings, &judgement));
    notes.extend(upstream_connect::notes(ctx, &findings));
    notes.extend(out_of_service::notes(ctx));
    notes.extend(failures_beside(ctx, &findings));
    if judgement.verdict == Verdict::Healthy {
        notes.extend(undelivered(ctx, "warning-undelivered"));
    }
    // The sentence of a server that would be healthy without them says so itself.
    if judgement.verdict != Verdict::Healthy && judgement.summary.id != PERHAPS_ERRORS {
        notes.extend(perhaps_failed(ctx, "warning-perhaps-errors"));
    }
    JudgedObservation { stations, findings, couplings, order, improvements: other, judgement, notes }
}

/// The verdict on a server of whose answers many look like errors, where nothing else is wrong.
const PERHAPS_ERRORS: &str = "verdict-unknown-perhaps-errors";

/// What a watched server answers is in its access log, or on the wire in plain text: without either, errors among quick answers do not show. The sentence of a healthy server says so itself.
fn with_what_is_unseen(ctx: &Context<'_>, judgement: Judgement) -> Judgement {
    let is_open = judgement.verdict == Verdict::Unknown && ctx.obs.load.is_none() || judgement.limited_by == Some(LimitedBy::Demand);
    if let Some(paced) = sent_in_pieces(ctx).filter(|_| is_open) {
        return Judgement::unknown(paced);
    }
    if let Some(tier) = pauses_inside(ctx).filter(|_| judgement.limited_by == Some(LimitedBy::Demand) && ctx.obs.load.is_some()) {
        let inside = ctx.account().map_or(0.0, |account| account.inside(tier.id.0).value);
        let awaited = Awaited::of(ctx, tier, inside);
        let id = if awaited.is_some() { "verdict-healthy-pauses-for" } else { "verdict-healthy-pauses" };
        let summary = Message::new(id).with("why", judgement.summary).with("tier", tier.name.as_str());
        let summary = awaited.iter().fold(summary, |summary, awaited| summary.with("what", awaited.what()));
        return Judgement { summary, ..judgement };
    }
    // Whatever else is not known of a server most of whose answers look like errors, this is what to look at first.
    let are_most = |perhaps: &Statuses| perhaps.failed() as f64 > MOST * perhaps.requests as f64;
    if judgement.verdict == Verdict::Unknown
        && ctx.obs.load.is_none()
        && let Some(perhaps) = Statuses::perhaps(ctx).filter(are_most).and_then(|_| perhaps_failed(ctx, PERHAPS_ERRORS))
    {
        return Judgement::unknown(perhaps);
    }
    let is_unseen = judgement.verdict == Verdict::Healthy && ctx.obs.load.is_none() && Statuses::of(ctx).is_none();
    match ctx.path.tiers.first().filter(|_| is_unseen) {
        Some(_) if let Some(perhaps) = perhaps_failed(ctx, PERHAPS_ERRORS) => Judgement::unknown(perhaps),
        Some(tier) => {
            let summary = Message::new("verdict-healthy-unseen").with("why", judgement.summary).with("tier", tier.name.as_str());
            Judgement { summary, ..judgement }
        }
        None => judgement,
    }
}

/// Packets of watched connections that look like responses with an error, in numbers that would hurt, where nothing tells what they are.
fn perhaps_failed(ctx: &Context<'_>, id: &'static str) -> Option<Message> {
    let seen = Statuses::perhaps(ctx)?;
    let failed = seen.failed();
    let told = Message::new(id).with("tier", ctx.path.tiers.first()?.name.as_str()).with("errors", failed);
    Cost::of_requests(failed, seen.requests).hurts().then(|| told.with("requests", seen.requests))
}

/// False for a load so short that its rate, and every ceiling computed from it, is that of its start.
fn is_long_enough(ctx: &Context<'_>) -> bool {
    ctx.obs.load.as_ref().is_none_or(|load| load.duration_us >= CEILING_FROM_US)
}

/// True for the ceiling of cores of which the servers, or the load generator, used next to nothing. For predictions it is far enough above all others, whatever its error.
fn is_guess(reading: &StationReading) -> bool {
    let least = reading.limit.map_or(CORES_FROM, |limit| CORES_FROM.min(0.5 * limit));
    let is_of_cores = [StationId::CPU, StationId::LOAD_GENERATOR].contains(&reading.station);
    is_of_cores && reading.used.is_some_and(|used| used < least)
}

/// True for the ceiling of a pool without the waits for something else that hold its workers today. It is what remains when these end, not the most that it passes.
fn is_of_no_waits(ctx: &Context<'_>, reading: &StationReading) -> bool {
    let tier = ctx.only_tier(&reading.owner).filter(|_| reading.station == StationId::WORKER_POOL);
    tier.zip(reading.ceiling_rps.as_ref()).is_some_and(|(tier, ceiling)| supposes_no_waits(ctx, tier, ceiling))
}

/// Attaches remedies to each finding, each with its predicted gain given all the others.
fn prescribe(ctx: &Context<'_>, stations: &[StationReading], findings: &mut [Finding]) {
    let scene = Scene { ctx, stations, findings };
    let of = |finding: &Finding| {
        // Tiers that share their cores share one reading of them.
        let is_its = |reading: &&StationReading, at: &Location| {
            reading.station == finding.station && reading.at == *at && reading.owner.covers(&finding.owner)
        };
        let read = |at: &Location| stations.iter().find(|reading| is_its(reading, at));
        // A pool has one reading, whichever server it waits for.
        let reading = read(&finding.at).or_else(|| read(&Location { edge: None, ..finding.at.clone() }));
        reading.map(|reading| remedies(&scene, finding, reading)).unwrap_or_default()
    };
    let remedies: Vec<_> = scene.findings.iter().map(of).collect();
    findings.iter_mut().zip(remedies).for_each(|(finding, remedies)| finding.remedies = remedies);
}

/// A verdict with its sentence.
pub(crate) struct Judgement {
    pub(crate) verdict: Verdict,
    /// What limits a healthy server.
    pub(crate) limited_by: Option<LimitedBy>,
    pub(crate) summary: Message,
    /// True if nothing speaks against a server that was only watched, and nothing for it: more of its traffic may tell.
    pub(crate) undecided: bool,
}

impl Judgement {
    fn unknown(summary: Message) -> Self {
        Self { verdict: Verdict::Unknown, limited_by: None, summary, undecided: false }
    }

    pub(crate) fn healthy(by: LimitedBy, summary: Message) -> Self {
        Self { verdict: Verdict::Healthy, limited_by: Some(by), summary, undecided: false }
    }
}

fn judgement(ctx: &Context<'_>, stations: &[StationReading], (findings, couplings): (&[Finding], &[Coupling])) -> Judgement {
    let causes: Vec<&Finding> = findings.iter().filter(|finding| finding.role == Role::Cause).collect();
    if let Some(own) = causes.iter().find(|finding| finding.owner == Owner::Client) {
        let summary = Message::new("verdict-client-limited").with("title", own.title.clone());
        return Judgement { verdict: Verdict::ClientLimited, limited_by: None, summary, undecided: false };
    }
    if let Some(first) = causes.first() {
        let summary = Message::new("verdict-choked").with("title", first.title.clone()).with("tier", ctx.owner_name(&first.owner));
        return Judgement { verdict: Verdict::Choked, limited_by: None, summary, undecided: false };
    }
    if let Some(unknown) = not_understood(ctx) {
        let judgement = Judgement::unknown(unknown);
        return if ctx.obs.load.is_some() { judgement } else { few_samples::told(ctx, judgement) };
    }
    // Refusals for lack of a core are explained by the cores.
    let is_explained = |reading: &StationReading| {
        couplings.iter().any(|link| matches!(link.cause, Cause::Station(_)) && reading.is_of(&findings[link.symptom]))
    };
    let is_open = |reading: &&StationReading| reading.state == StationState::Refusing && !is_explained(reading);
    if let Some(refusing) = stations.iter().find(is_open) {
        let why = Message::new("verdict-unknown-refusing").with("station", refusing.station.0);
        return few_samples::told(ctx, Judgement::unknown(why.with("why", refusing.why.clone())));
    }
    // A load whose own packets arrived is no sign of who sent the others.
    let unseen = kept_unsent(ctx).or_else(|| undelivered(ctx, "verdict-unknown-undelivered").filter(|_| ctx.obs.load.is_none()));
    let judgement = unseen.map_or_else(|| healthy(ctx, stations), Judgement::unknown);
    few_samples::told(ctx, judgement)
}

/// Why no verdict about the server is possible; `None` if one is.
fn not_understood(ctx: &Context<'_>) -> Option<Message> {
    let unreadable = ctx.obs.netns.is_empty() || ctx.obs.netns.values().all(|view| view.listeners.first().is_none());
    if !ctx.path.ambiguous.is_empty() {
        let names: Vec<String> = ctx.path.ambiguous.iter().map(|id| ctx.netns_name(*id)).collect();
        return Some(Message::new("verdict-unknown-ambiguous").with("netns", names.join(", ")));
    }
    let was_gone = || ended(ctx).filter(|ended| Cost::of_time(ended.share).hurts()).map(|ended| ended.told());
    if let Some(load) = &ctx.obs.load {
        let told = |why| {
            was_gone().or_else(|| undelivered(ctx, "verdict-unknown-undelivered")).unwrap_or_else(|| few_samples::explained(ctx, why))
        };
        let unexplained =
            || turned_away(load).or_else(|| unexplained_failures(ctx, UNEXPLAINED, load)).or_else(|| unexplained_losses(ctx, load));
        return wrong_answers(ctx, load).or_else(|| unexplained().map(told));
    }
    if unreadable {
        return Some(Message::new("verdict-unknown-unreadable"));
    }
    if ctx.path.tiers.is_empty() {
        let request = &ctx.obs.request;
        return Some(match request.unix.first() {
            Some(name) => Message::new("verdict-unknown-no-socket").with("socket", name.as_str()),
            None => Message::new("verdict-unknown-no-listener").with("port", request.port.to_string()),
        });
    }
    let failed = traffic::server_errors(ctx).and_then(|statuses| failures(ctx, UNEXPLAINED, (statuses.errors(), statuses.requests)));
    failed
        .or_else(|| none_good(ctx))
        .or_else(was_gone)
        .or_else(|| cut_off(ctx))
        .or_else(|| standing(ctx))
        .or_else(|| (!traffic::was_seen(ctx)).then(|| none_moved(ctx)))
}

/// Watched answers of which none was as expected: errors of the clients by their status, but no client gets what it asks for.
fn none_good(ctx: &Context<'_>) -> Option<Message> {
    let seen = Statuses::of(ctx).filter(|seen| seen.requests > 0 && !seen.by_status.is_empty())?;
    if seen.by_status.iter().any(|(status, count)| *count > 0 && traffic::is_expected(ctx, *status)) {
        return None;
    }
    let told = |id: &'static str| Message::new(id).with("requests", seen.requests);
    Some(match seen.by_status.keys().next() {
        Some(status) if seen.by_status.len() == 1 => told("verdict-unknown-watched-status").with("status", f64::from(*status)),
        _ => told("verdict-unknown-no-good-answer"),
    })
}

/// Watched connections ended without an answer, whoever ended them, and no station shows why.
fn cut_off(ctx: &Context<'_>) -> Option<Message> {
    let first = ctx.path.tiers.first()?;
    // Over TLS the last words of a client (close_notify) stand unread at a server that closed before: its answer was complete (RFC 8446, 6.1).
    let cut = others::cut_off(ctx, first.netns).filter(|_| ctx.obs.request.scheme != "https")?;
    let hurts = |count: u64| suffered::turned_away(ctx, Some(first.netns), count).hurts();
    let told = |id: &'static str, count: u64| {
        let message = Message::new(id).with("count", count).with("rate", count as f64 / ctx.seconds().max(1e-6));
        message.with("tier", first.name.as_str())
    };
    if hurts(cut.own_lasting()) {
        return Some(told("verdict-unknown-cut-off", cut.own()));
    }
    let shared = || told("verdict-unknown-cut-off-shared", cut.count).with("netns", ctx.netns_name(first.netns));
    (hurts(cut.lasting) && cut.is_unaccounted()).then(|| shared().with("surely", cut.others.surely()))
}

/// No answer was as expected: a wrong URL, or no server.
fn wrong_answers(ctx: &Context<'_>, load: &LoadResult) -> Option<Message> {
    if load.good > 0 {
        return None;
    }
    let answered: u64 = load.status.values().sum();
    if load.requests == 0 {
        return Some(Message::new("verdict-unknown-nothing-sent"));
    }
    if load.errors.connect_refused == load.requests {
        let is_unix = !ctx.obs.request.unix.is_empty();
        return Some(Message::new(if is_unix { "verdict-unknown-refused-unix" } else { "verdict-unknown-refused" }));
    }
    let without_handshake = load.tls.filter(|tls| tls.handshakes == Handshakes::default());
    if let Some(why) = without_handshake.and_then(|tls| tls.failure) {
        return Some(Message::new(no_handshake(why)));
    }
    // What came after its end was held until then.
    if answered == load.requests && load.status.len() == 1 && load.throughput_rps() > 0.0 {
        let status = load.status.keys().next().copied().unwrap_or(0);
        let fails = if status >= 500 { "yes" } else { "no" };
        return Some(Message::new("verdict-unknown-status").with("status", f64::from(status)).with("fails", fails));
    }
    Some(Message::new("verdict-unknown-no-good-answer").with("requests", load.requests))
}

/// What to say where no TLS handshake succeeded.
fn no_handshake(why: TlsFailure) -> &'static str {
    match why {
        TlsFailure::UnknownAuthority => "verdict-unknown-tls-authority",
        TlsFailure::Expired => "verdict-unknown-tls-expired",
        TlsFailure::NotYetValid => "verdict-unknown-tls-not-yet-valid",
        TlsFailure::WrongName => "verdict-unknown-tls-name",
        TlsFailure::Certificate => "verdict-unknown-tls-certificate",
        TlsFailure::Handshake => "verdict-unknown-tls-handshake",
    }
}

/// Clients got nothing: many of the load's connections could not be had. Their tries fail seldom beside thousands of requests of the others.
fn turned_away(load: &LoadResult) -> Option<Message> {
    let (missing, connections) = load.without_connection()?;
    let told = || Message::new("verdict-unknown-turned-away").with("missing", tenths(missing)).with("connections", connections);
    Cost::share_of_requests(missing / f64::from(connections.max(1))).hurts().then(told)
}

/// Requests failed and no station shows why. Those that waited too long for full cores are explained by these, and so are those for which no connection was left meanwhile.
fn unexplained_failures(ctx: &Context<'_>, id: &'static str, load: &LoadResult) -> Option<Message> {
    let errors = load.errors;
    let late = if queues_for_cores(ctx) { errors.connect_timeout + errors.response_timeout + errors.never_sent } else { 0 };
    failures(ctx, id, (load.requests.saturating_sub(load.good).saturating_sub(late), load.requests))
}

/// Requests that fail without having waited too long, where all causes are about time on cores: these make them slow.
fn failures_beside(ctx: &Context<'_>, findings: &[Finding]) -> Option<Message> {
    let mut causes = findings.iter().filter(|finding| finding.role == Role::Cause).peekable();
    let are_of_cores = causes.peek().is_some() && causes.all(|cause| CPU_FINDINGS.contains(&cause.id));
    unexplained_failures(ctx, "warning-failures-beside", ctx.obs.load.as_ref()?).filter(|_| are_of_cores)
}

/// With load the share is that of the report's first lines: of what ended while it was offered.
fn failures(ctx: &Context<'_>, id: &'static str, (failed, requests): (u64, u64)) -> Option<Message> {
    let counted = failed as f64 / requests.max(1) as f64;
    let share = ctx.failed_share().filter(|_| ctx.obs.load.is_some()).unwrap_or(counted);
    let told = || Message::new(id).with("share", share * 100.0).with("most", most_failures(ctx));
    Cost::of_requests(failed, requests).hurts().then(told)
}

/// How most of the failed requests ended.
fn most_failures(ctx: &Context<'_>) -> Message {
    let Some(answers) = Statuses::of(ctx) else { return Message::new("failed-unknown") };
    let errors = ctx.obs.load.as_ref().map(|load| load.errors).unwrap_or_default();
    let unexpected = answers.by_status.iter().filter(|(status, _)| !traffic::is_expected(ctx, **status));
    let by_status = unexpected.map(|(status, count)| (*count, Message::new("failed-status").with("status", status.to_string())));
    let by_error = [
        (errors.response_timeout, "failed-silent"),
        (errors.connect_timeout + errors.connect_refused + errors.connect_failed, "failed-unconnected"),
        (errors.reset + errors.closed_before_answer, "failed-closed"),
        (errors.never_sent, "failed-unsent"),
    ];
    let all = by_status.chain(by_error.into_iter().map(|(count, id)| (count, Message::new(id))));
    let most = all.filter(|(count, _)| *count > 0).max_by_key(|(count, _)| *count);
    most.map_or_else(|| Message::new("failed-unknown"), |(_, told)| told)
}

/// True if most of the watched requests wait inside a server whose cores are full of other programs' work too: what these requests wait for may lack a core, or not. A thread that
/// runs all the time does lack one.
fn perhaps_inside(ctx: &Context<'_>) -> bool {
    let is_inside = || ctx.account().is_some_and(|account| account.most_inside(ctx).is_some());
    let is_of_threads = || limiting(ctx).iter().any(|limit| limit.threads.is_some());
    ctx.obs.load.is_none() && !other_tenants(ctx).is_empty() && !is_of_threads() && is_inside()
}

/// Much of the clients' time was lost although half of the requests were answered soon, and no station shows why. Some clients are served while others
/// starve, which busy cores do not explain. "Much" means that serving it would raise goodput beyond noise. With an objective this does not apply: up to it
/// slowness was accepted, and beyond it nobody knows what is usual.
fn unexplained_losses(ctx: &Context<'_>, load: &LoadResult) -> Option<Message> {
    let lost = load.lost.filter(|_| ctx.obs.request.slo_p99_us.is_none())?;
    let share = load.lost_share().filter(|share| Cost::of_time(*share).hurts())?;
    if waits_alike(ctx, load) && queues_for_cores(ctx) {
        return None;
    }
    (load.latency_us.p50 <= lost.patience_us / 2).then(|| {
        let told = Message::new("verdict-unknown-losses").with("share", share * 100.0).with("patience_s", lost.patience_us as f64 / 1e6);
        with_where(ctx, told.with("median_ms", load.latency_us.p50 as f64 / 1e3))
    })
}

/// True if half of the requests took at least half as long as all of them on average (Little's law): what waits in turn waits about as long as the others.
fn waits_alike(ctx: &Context<'_>, load: &LoadResult) -> bool {
    let mean_s = ctx.account().and_then(crate::ledger::Account::response_s);
    mean_s.is_some_and(|mean_s| load.latency_us.p50 as f64 >= 0.5e6 * mean_s)
}

/// True if most requests of those whose place is known stand in front of full cores, or of threads that have no more of one: not accepted, not read, or ready to
/// run. The rest may stand there or nowhere; nothing is known if it is most of them.
fn queues_for_cores(ctx: &Context<'_>) -> bool {
    let limiting = limiting(ctx);
    let is_full = |tier: usize| limiting.iter().flat_map(|cores| &cores.tiers).any(|full| full.id.0 == tier);
    ctx.account().is_some_and(|account| {
        let known = account.under_way() - account.at(|place| place == Place::Undecided);
        2.0 * known > account.under_way() && 2.0 * account.before_cores(is_full) > known
    })
}

/// Why nothing is known of a tier's threads and of the servers that it calls; `None` if the processes of each tier are known.
fn whose(ctx: &Context<'_>) -> Option<Message> {
    let tier = ctx.path.tiers.iter().find(|tier| !tier.is_known())?;
    Some(Message::new("verdict-unknown-whose").with("tier", tier.name.as_str()))
}

fn healthy(ctx: &Context<'_>, stations: &[StationReading]) -> Judgement {
    let in_state = |id: StationId, state: StationState| stations.iter().find(|reading| reading.station == id && reading.state == state);
    let shape = ctx.obs.load.as_ref().map(|load| (load.shape, load.goodput_rps()));
    // An open loop that got all its answers reached no limit, however busy others kept the cores.
    if let Some(load) = ctx.obs.load.as_ref().filter(|load| !load.wants_more())
        && let Loop::Open { rate_per_s, .. } = load.shape
    {
        // Nothing that holds single answers back was seen if it is not known who gives them.
        let is_late = |alone: f64| load.latency_us.p99 as f64 > LATE_TIMES * alone + WAKES_US * ctx.path.tiers.len() as f64;
        if let Some(unread) = whose(ctx).filter(|_| ctx.alone_us().is_some_and(is_late)) {
            return Judgement::unknown(unread);
        }
        if let Some(pauses) = pauses(ctx) {
            return Judgement::unknown(pauses);
        }
        return Judgement::healthy(LimitedBy::Demand, Message::new("verdict-healthy-demand-open").with("rate", rate_per_s));
    }
    if shape.is_none()
        && let Some(starved) = crate::judge::watched::starved(ctx)
    {
        return Judgement::unknown(starved);
    }
    if let Some(link) = in_state(StationId::LINK, StationState::Saturated) {
        return at_limit(ctx, LimitedBy::Link, ("verdict-healthy-link", "verdict-overloaded-link"), link);
    }
    if let Some(cpu) = in_state(StationId::CPU, StationState::Saturated).filter(|_| !perhaps_inside(ctx) && use_cores(ctx)) {
        if let Some(started) = started_untold(ctx) {
            return Judgement::unknown(started);
        }
        return at_limit(ctx, LimitedBy::Cpu, ("verdict-healthy-cpu", "verdict-overloaded-cpu"), cpu);
    }
    if let Some(cpu) = in_state(StationId::CPU, StationState::Unknown).filter(|_| ctx.core_groups().iter().any(|group| !group.is_known())) {
        let id = if cpu.used.is_some() { "verdict-unknown-cpu-whose" } else { "verdict-unknown-cpu-processes" };
        return Judgement::unknown(Message::new(id).with("why", cpu.why.clone()));
    }
    if let Some(why) = ctx.core_groups().iter().find_map(|group| taken_in_bursts(ctx, group)) {
        return Judgement::unknown(why);
    }
    let Some((shape, goodput)) = shape else {
        if let Some(unread) = whose(ctx) {
            return Judgement::unknown(unread);
        }
        return match crate::judge::watched::judged(ctx) {
            Ok(why) => Judgement::healthy(LimitedBy::Demand, why),
            Err(Untold { why, undecided }) => Judgement { undecided, ..Judgement::unknown(why) },
        };
    };
    if ctx.path.tiers.is_empty() {
        return Judgement::unknown(Message::new("verdict-unknown-remote"));
    }
    if let Some(why) = ctx.core_groups().iter().find_map(|group| crowded_out(ctx, group)) {
        return Judgement::unknown(why);
    }
    if in_state(StationId::CPU, StationState::Unknown).is_some() {
        let tiers: Vec<&path::Tier> = ctx.path.tiers.iter().collect();
        let polls = crate::facts::cores::polling(ctx, &tiers);
        let polling = polls.first().map(|one| Message::new("verdict-unknown-polling").with("tier", one.tier.name.as_str()));
        return Judgement::unknown(polling.unwrap_or_else(|| Message::new("verdict-unknown-cpu")));
    }
    match shape {
        Loop::Open { rate_per_s, .. } => {
            let why = Message::new("verdict-unknown-short-of-rate").with("rate", rate_per_s);
            Judgement::unknown(why.with("goodput", goodput))
        }
        Loop::Closed { connections } => closed(ctx, stations, connections),
    }
}

/// Why it is not known whether these cores limit their servers, where other programs use most of them.
fn crowded_out(ctx: &Context<'_>, group: &CoreGroup<'_>) -> Option<Message> {
    let (inside, account) = perhaps_for_cores(ctx, group).zip(ctx.account())?;
    let tier = group.tiers.iter().max_by(|a, b| account.inside(a.id.0).value.total_cmp(&account.inside(b.id.0).value))?;
    let told = Message::new("verdict-unknown-cpu-delays").with("tier", tier.name.as_str()).with("inside", tenths(inside));
    let others = 100.0 * others_share(ctx, group).unwrap_or(0.0);
    Some(told.with("under_way", tenths(account.under_way())).with("others", others).with("cores", group.list()))
}

/// Why a server is not healthy whose threads wait for cores that others have in bursts, although these have time left.
fn taken_in_bursts(ctx: &Context<'_>, group: &CoreGroup<'_>) -> Option<Message> {
    let Bursts { ran, delayed, others } = Bursts::of(ctx, group)?;
    let told = Message::new("verdict-unknown-cpu-bursts").with("ran", hundredths(ran)).with("delayed", hundredths(delayed));
    Some(told.with("others", 100.0 * others).with("cores", group.list()).with("count", group.count()))
}

/// The share of its time that the generator waited for a core, if it is long enough to show in its times.
fn waited_much(ctx: &Context<'_>) -> Option<f64> {
    crate::judge::stations::generator_waited(ctx).filter(|share| *share > GENERATOR_WAITED_MAX)
}

/// A note where the judgement compares times that the generator measured, and these include its own waits for a core.
fn generator_waited(ctx: &Context<'_>, findings: &[Finding], judgement: &Judgement) -> Option<Message> {
    const BY_TIMES: [FindingId; 3] = [FindingId::WAITS_INSIDE, FindingId::POOL_TAKES_TURNS, FindingId::SINGLE_CORE];
    let first = findings.iter().find(|finding| finding.role == Role::Cause);
    let is_by_times = first.is_some_and(|first| BY_TIMES.contains(&first.id)) || judgement.summary.id == "verdict-unknown-waits";
    let share = waited_much(ctx).filter(|_| is_by_times)?;
    Some(Message::new("warning-generator-waited").with("share", share * 100.0))
}

/// False if the servers themselves use next to nothing of their cores, and no thread of theirs waits for one: these are full of other programs, or of processes that the servers start and
/// that end soon, and how much the servers could do does not follow from that.
fn use_cores(ctx: &Context<'_>) -> bool {
    let want = |group: &CoreGroup<'_>| {
        let used = group.tiers.first().and_then(|tier| own_share(ctx, tier))?;
        let pids = group.tiers.iter().flat_map(|tier| &tier.pids);
        let ready: f64 = pids.filter_map(|pid| ctx.clocked(*pid, |used| used.run_delay_ns)).sum();
        Some(used + ready / group.count())
    };
    ctx.core_groups().iter().any(|group| want(group).is_none_or(|share| share >= NOISE_SHARE))
}

/// The judgement of a closed loop with nothing saturated: too few connections, unless requests wait in front of a server with idle cores, or somewhere that
/// cannot be observed.
fn closed(ctx: &Context<'_>, stations: &[StationReading], connections: u32) -> Judgement {
    if let Some(pauses) = pauses(ctx) {
        return Judgement::unknown(pauses);
    }
    // A thread that has to wait for its turn on a core accepts that much later, however many there are.
    let is_long = |mean: f64| ctx.answers_rps().is_none_or(|rate| mean > rate * SLICE_S);
    let hurts = |mean: f64| mean > 1.0 && is_long(mean) && Cost::of_time(mean / f64::from(connections.max(1))).hurts();
    let waits = |reading: &&StationReading| reading.station == StationId::ACCEPT_QUEUE && reading.waiting.is_some_and(hurts);
    if let Some(queue) = stations.iter().find(waits) {
        let why = Message::new("verdict-unknown-waiting").with("tier", ctx.owner_name(&queue.owner));
        let why = why.with("listener", queue.at.listener_name());
        return Judgement::unknown(why.with("mean", queue.waiting.unwrap_or(0.0)));
    }
    if let Some(waits) = waits_unseen(ctx) {
        let own = waited_much(ctx).filter(|_| !at_servers(ctx));
        let waits = own.map_or(waits, |share| Message::new(GENERATOR_WAITS).with("share", share * 100.0));
        return Judgement::unknown(waits.with("connections", connections));
    }
    let late = || late_elsewhere(ctx).or_else(|| few_take_most(ctx)).or_else(|| left_unread(ctx));
    if let Some(late) = late().filter(|_| waited_much(ctx).is_none()) {
        return Judgement::unknown(late);
    }
    // Of servers whose processes are not known neither threads nor what they call are seen. That answers hardly wait shows that nothing holds them back.
    // All of them: half may be quick while the others wait long.
    let mean_us = ctx.obs.load.as_ref().map(|load| 1e6 * f64::from(connections) / load.goodput_rps().max(f64::MIN_POSITIVE));
    let is_quick = ctx.answer_us().zip(mean_us).is_some_and(|((alone, loaded), mean)| loaded.max(mean) < QUICK_TIMES * alone);
    if let Some(unread) = whose(ctx).filter(|_| !is_quick) {
        return Judgement::unknown(unread);
    }
    Judgement::healthy(LimitedBy::Demand, demand(ctx, connections))
}

/// So few connections that nothing was at its limit, and whether the cores nearly were.
fn demand(ctx: &Context<'_>, connections: u32) -> Message {
    let busy = most_busy(ctx).filter(|busy| *busy >= NEAR_UTILIZATION);
    let told = Message::new("verdict-healthy-demand").with("connections", connections);
    told.with("are", if busy.is_some() { "near" } else { "free" }).with("busy", 100.0 * busy.unwrap_or(0.0))
}
