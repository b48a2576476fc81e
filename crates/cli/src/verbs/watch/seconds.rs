//! What was seen of each server in the last second.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use chokepoint_foreign::Holder;
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::observation::{Listener, NetnsId, NginxStatus, Observation, PhpFpmStatus, Request, ServerStatus};
use chokepoint_model::path::{PlacedListener, Tier};
use chokepoint_model::whereabouts::EdgePorts;
use chokepoint_recorder::{Connections, Durations, GroupUse, Host, Logged, Mean, PoolUse, Ports, Queue, Sample, TargetSample, is_stale};
use chokepoint_sources::{
    GROUP_TIMES, GroupCounts, HostUsage, HostUsages, LogGrowth, LogTails, NOT_READ, NamedLog, PortSearch, WorkerUses,
};

use super::config::Settings;
use super::targets::{LeftOut, Servers, TARGETS_MAX, Watched, watched};
use crate::run::ongoing::{Looked, Ongoing, Window};
use crate::terminal::output;

/// The time that a ledger covers: the last second, or as long as it takes to have four samples of each namespace.
const WINDOW: Window = Window { usual: Duration::from_secs(1), longest: Duration::from_secs(5), samples: 4 };
/// Time between two searches for servers to watch.
const SEARCH_PERIOD: Duration = Duration::from_secs(10);
/// The same after a server was seen for the first time.
const SEEN_PERIOD: Duration = Duration::from_secs(2);
/// Time between two looks at the host. Each reads a file of every process.
const HOST_PERIOD: Duration = Duration::from_secs(5);
/// Most logs that are told not to be read.
const UNREAD_TOLD_MAX: usize = 100;
/// Most edges whose ports are told.
const EDGES_MAX: usize = 16;
/// The response times of a group of URLs and of an upstream, among [`GROUP_TIMES`].
const URL_TIME: &str = "request";
const UPSTREAM_TIME: &str = "upstream-response";
/// The name of the time for which a worker was busy with a request, in a log of php-fpm.
const WORKER: &str = "worker";
/// Most pools of a sample.
const POOLS_MAX: usize = 16;
/// Shortest time between two readings of a log, seconds: answers of a shorter one are no rate.
const READ_S_MIN: f64 = 0.25;
/// The name of nginx's processes.
const NGINX: &str = "nginx";
/// The wall clock may differ so much from the seconds that passed before it counts as set anew.
const CLOCK_SET_MIN: u64 = 2;

/// The watched servers.
pub(super) struct Seconds {
    settings: Settings,
    watched: Vec<Watched>,
    ongoing: Option<Ongoing>,
    logs: LogTails,
    /// When they were read last.
    logs_read: Instant,
    /// Logs that the configuration of this program names, and their servers.
    named: Vec<(String, NamedLog)>,
    host: HostUsages,
    workers: WorkerUses,
    host_due: Instant,
    searched: Instant,
    arrivals: Arrivals,
    ports: PortSearch,
    /// The most servers without a place that were told.
    left_out_told: BTreeMap<Holder, usize>,
    /// Logs of which it was told that they are not read.
    unread_told: BTreeSet<String>,
    /// The second that was last reported, since 1970.
    at_s: u64,
}

/// One server in the last second.
pub(super) struct LookedTarget {
    pub(super) request: Request,
    pub(super) sample: TargetSample,
    /// The listeners of its first tier, and of the others.
    first: BTreeSet<(NetnsId, u64)>,
    behind: BTreeSet<(NetnsId, u64)>,
    /// nginx's own counts, from its status page, and those of the pools of php-fpm on the path.
    pub(super) nginx: Option<NginxStatus>,
    pub(super) fpm: Vec<PhpFpmStatus>,
    /// A log of its own tells how many requests were answered.
    tells_answers: bool,
    /// What its logs gained by the names of NGINX Amplify.
    pub(super) amplify: BTreeMap<&'static str, u64>,
    /// Values under its names that are no counts, if they were looked at.
    pub(super) values: BTreeMap<&'static str, f64>,
    /// Masters of a known kind of server in its first tier, which name its logs, and the workers of each.
    masters: BTreeMap<u32, BTreeSet<u32>>,
    /// Those of the tiers behind.
    masters_behind: BTreeSet<u32>,
    /// How long ago it was measured; nothing if it was not.
    pub(super) age: Option<Duration>,
}

impl LookedTarget {
    /// True if something listens there.
    pub(super) fn is_there(&self) -> bool {
        !self.first.is_empty()
    }

    /// True unless what is known of it is old.
    pub(super) fn is_measured(&self) -> bool {
        self.age.is_some_and(|age| !is_stale(age))
    }

    /// Takes what a log gained. A log without answers, such as one of errors, does not say that there were none.
    fn take(&mut self, growth: LogGrowth) {
        for (name, count) in &growth.amplify {
            *self.amplify.entry(name).or_default() += count;
        }
        self.values.extend(growth.amplify_means.iter().map(|(name, mean)| (*name, *mean)));
        if growth.tells_answers {
            self.tells_answers = true;
            self.sample.logged.get_or_insert_default().merge(&logged(growth));
        }
    }

    /// Takes how long the workers of a server behind it were busy. Everything else in its log is counted where its requests come from.
    fn take_behind(&mut self, growth: LogGrowth) {
        let worker = growth.durations_us.into_iter().filter(|(name, _)| *name == WORKER);
        let durations_us: BTreeMap<_, _> = worker.map(|(name, counts)| (name.to_owned(), Durations(counts))).collect();
        if !durations_us.is_empty() {
            self.sample.logged.get_or_insert_default().merge(&Logged { durations_us, ..Logged::default() });
        }
    }
}

/// All servers in the last second.
pub(super) struct Look {
    pub(super) at_s: u64,
    pub(super) targets: Vec<LookedTarget>,
    host: Option<Host>,
}

impl Look {
    /// What is kept of it.
    pub(super) fn sample(&self) -> Sample {
        let targets = self.targets.iter().map(|target| target.sample.clone()).collect();
        Sample { at_s: self.at_s, span_s: 1, targets, host: self.host.clone() }
    }

    /// How long ago anything was measured; nothing if nothing was. Without a server the look for them is all that there is to measure.
    pub(super) fn age(&self) -> Option<Duration> {
        if self.targets.is_empty() { Some(Duration::ZERO) } else { self.targets.iter().filter_map(|target| target.age).min() }
    }
}

impl Seconds {
    /// Begins to watch.
    pub(super) fn begin(settings: &Settings) -> Result<Self> {
        let mut ports = PortSearch::default();
        let Servers { watched, left_out } = watched(settings, &mut ports)?;
        let mut left_out_told = BTreeMap::new();
        tell_left_out(&left_out, &mut left_out_told);
        let ongoing = begin(&watched)?;
        let (now, settings) = (Instant::now(), settings.clone());
        let named = settings.file.log.iter().map(|log| Ok((log.server.clone(), opened(log)?))).collect::<Result<_>>()?;
        let (logs, host, workers) = (LogTails::default(), HostUsages::default(), WorkerUses::default());
        Ok(Self {
            settings,
            watched,
            ongoing,
            logs,
            logs_read: now,
            named,
            host,
            workers,
            host_due: now,
            searched: now,
            arrivals: Arrivals::default(),
            ports,
            left_out_told,
            unread_told: BTreeSet::new(),
            at_s: now_s(),
        })
    }

    /// The second that was last reported, since 1970.
    pub(super) fn at_s(&self) -> u64 {
        self.at_s
    }

    /// Time until the next second is complete.
    pub(super) fn until_readings(&self) -> Duration {
        self.ongoing.as_ref().map_or(WINDOW.usual, Ongoing::until_readings)
    }

    /// How long ago a second may have ended that was missed and can still be looked at.
    pub(super) fn reach(&self) -> Duration {
        self.ongoing.as_ref().map_or(Duration::ZERO, Ongoing::reach)
    }

    /// The last second, or one that was missed and ended before. Logs and the host are read with the last one.
    pub(super) fn look(&mut self, words: &Catalogue, ended: Option<Instant>) -> Result<Look> {
        if ended.is_none() {
            self.search()?;
        }
        let mut targets = Vec::new();
        if let Some(ongoing) = &mut self.ongoing {
            let watched = &self.watched;
            ongoing.look(words, ended, |number, looked| targets.push(looked_target(&watched[number], looked)));
        }
        // A server behind another one is a tier of that one, unless it was named.
        if self.settings.targets.is_empty() {
            let behind: BTreeSet<(NetnsId, u64)> = targets.iter().flat_map(|target| target.behind.iter().copied()).collect();
            targets.retain(|target| target.first.is_empty() || !target.first.iter().any(|listener| behind.contains(listener)));
        }
        self.at_s = next_s(self.at_s, now_s().saturating_sub(ended.map_or(0, |ended| ended.elapsed().as_secs())));
        if ended.is_some() {
            return Ok(Look { at_s: self.at_s, targets, host: None });
        }
        self.add_logs(&mut targets);
        let host = self.look_at_host(&mut targets);
        Ok(Look { at_s: self.at_s, targets, host })
    }

    /// What the host and the workers of the targets did since the last look.
    fn look_at_host(&mut self, targets: &mut [LookedTarget]) -> Option<Host> {
        let now = Instant::now();
        if now < self.host_due {
            return None;
        }
        self.host_due = now + HOST_PERIOD;
        let masters = targets.iter().flat_map(|target| &target.masters).filter(|(_, workers)| !workers.is_empty());
        let used = self.workers.look(&masters.map(|(master, workers)| (*master, workers.clone())).collect());
        let HostUsage { seconds, cores, busy_s, core_s, programs, memory_total, memory_available, disks } = self.host.look()?;
        for target in targets {
            let of = target.masters.keys().find_map(|master| used.get(master));
            target.values.extend(of.map(|used| used.amplify(memory_total)).unwrap_or_default());
        }
        Some(Host { seconds, cores, busy_s, core_s, programs, memory_total, memory_available, disks })
    }

    /// Adds what the logs of the servers gained. Two targets of one server share its logs, which are counted for the first.
    fn add_logs(&mut self, targets: &mut [LookedTarget]) {
        let mut masters: BTreeMap<u32, Vec<Request>> = BTreeMap::new();
        for target in targets.iter() {
            target.masters.keys().for_each(|master| masters.entry(*master).or_default().push(target.request.clone()));
            for master in &target.masters_behind {
                masters.entry(*master).or_default();
            }
        }
        for log in self.logs.read(&masters) {
            let growth = match log.growth {
                Ok(growth) => growth,
                Err(why) => {
                    tell_unread(&log.path, &why, &mut self.unread_told);
                    continue;
                }
            };
            let mut asked = targets.iter_mut().filter(|target| target.masters.contains_key(&log.pid)).enumerate();
            if let Some((_, target)) = asked.find(|(number, _)| log.of.is_empty() || log.of.contains(number)) {
                target.take(growth);
            } else if let Some(target) = targets.iter_mut().find(|target| target.masters_behind.contains(&log.pid)) {
                target.take_behind(growth);
            }
        }
        for (server, log) in &mut self.named {
            let target = targets.iter_mut().find(|target| target.sample.target == *server);
            if let (Some(target), Ok(growth)) = (target, log.read()) {
                target.take(growth);
            }
        }
        let since_s = std::mem::replace(&mut self.logs_read, Instant::now()).elapsed().as_secs_f64();
        for target in targets.iter_mut().filter(|target| target.tells_answers && target.sample.rate.value().is_none()) {
            let answers = target.sample.logged.as_ref().map_or(0, Logged::answers);
            target.sample.rate = Mean::of(Some(rate(answers, since_s)), target.sample.under_way.seconds);
        }
    }

    /// Looks for servers that began or ended to listen. One that is seen in two searches is watched, too. One that ended is still watched: that it is gone is to be
    /// seen.
    fn search(&mut self) -> Result<()> {
        if self.searched.elapsed() < self.arrivals.period() {
            return Ok(());
        }
        self.searched = Instant::now();
        // It fails while a named namespace is gone. It may come back.
        let Ok(Servers { watched: found, left_out }) = watched(&self.settings, &mut self.ports) else { return Ok(()) };
        tell_left_out(&left_out, &mut self.left_out_told);
        let came = self.arrivals.came(&found, &self.watched);
        let is_pathless = self.ongoing.as_ref().is_some_and(Ongoing::is_pathless) && !self.settings.targets.is_empty();
        if came.is_empty() && !is_pathless {
            return Ok(());
        }
        let (here, gone): (Vec<Watched>, Vec<Watched>) =
            self.watched.iter().cloned().partition(|known| found.iter().any(|found| found.name == known.name));
        // A host whose ports change would have ever more of them.
        let most = TARGETS_MAX.max(here.len());
        let watched: Vec<Watched> = here.into_iter().chain(came).chain(gone).take(most).collect();
        // A busy observation follows them after a later search.
        let follows = self.ongoing.as_mut().map(|ongoing| ongoing.follow(requests(&watched)));
        if follows.is_none() {
            self.ongoing = begin(&watched)?;
        }
        if follows.unwrap_or(true) {
            self.watched = watched;
        }
        Ok(())
    }
}

/// Servers that began to listen. One that is gone at the next search is not worth its place among those that are watched: on some hosts programs listen for a moment, all
/// the time.
#[derive(Default)]
struct Arrivals {
    seen: BTreeSet<String>,
    /// Searches in a row after which none of those seen had stayed.
    vain: u32,
}

impl Arrivals {
    /// Time until the next search: soon after a server was first seen, unless such servers never stay.
    fn period(&self) -> Duration {
        if self.seen.is_empty() { SEARCH_PERIOD } else { (SEEN_PERIOD * (1 << self.vain.min(8))).min(SEARCH_PERIOD) }
    }

    /// Those that were seen in the last search, too, and are not known.
    fn came(&mut self, found: &[Watched], known: &[Watched]) -> Vec<Watched> {
        let unknown = || found.iter().filter(|found| known.iter().all(|known| known.name != found.name));
        let came: Vec<Watched> = unknown().filter(|found| self.seen.contains(&found.name)).cloned().collect();
        self.vain = if self.seen.is_empty() || !came.is_empty() { 0 } else { self.vain + 1 };
        self.seen = unknown().filter(|found| came.iter().all(|came| came.name != found.name)).map(|found| found.name.clone()).collect();
        came
    }
}

/// Names a log that is there and is no evidence: without a word it would seem to have no requests.
fn tell_unread(path: &str, why: &str, told: &mut BTreeSet<String>) {
    if why.ends_with(NOT_READ) && told.len() < UNREAD_TOLD_MAX && told.insert(path.to_owned()) {
        output::note(&format!("note: the log {path}: {why}"));
    }
}

/// Names the servers for which there is no place: what is not watched is not healthy. Again, if somebody has more of them than was told.
fn tell_left_out(left_out: &LeftOut, told: &mut BTreeMap<Holder, usize>) {
    let mut is_news = false;
    for (holder, count) in left_out.counts() {
        let known = told.entry(holder).or_default();
        is_news |= count > *known;
        *known = count.max(*known);
    }
    if is_news {
        output::note(&format!(
            "note: not watched, because at most {TARGETS_MAX} servers are: {} (name those to watch: chokepoint watch URL...)",
            left_out.named()
        ));
    }
}

/// Follows a log of the configuration, and says if it is not counted: without a word it would seem to have no requests.
fn opened(log: &super::config::Log) -> Result<NamedLog> {
    let opened = log.open()?;
    if let Some(why) = opened.why_not() {
        output::note(&format!("note: {} is not counted: {why}", log.file.display()));
    }
    Ok(opened)
}

fn begin(watched: &[Watched]) -> Result<Option<Ongoing>> {
    if watched.is_empty() {
        return Ok(None);
    }
    Ongoing::begin(requests(watched), WINDOW).map(Some)
}

fn requests(watched: &[Watched]) -> Vec<Request> {
    watched.iter().map(|watched| watched.request.clone()).collect()
}

/// Answers a second that a log gained in this time. Where seconds were missed it is longer than one.
fn rate(answers: u64, since_s: f64) -> f64 {
    answers as f64 / since_s.max(READ_S_MIN)
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The second after this one. The clock is followed only if it was set, or if seconds were missed: two seconds of one name, or one that is left out, would be an error of
/// rounding.
fn next_s(at_s: u64, now_s: u64) -> u64 {
    if (at_s + 1).abs_diff(now_s) > CLOCK_SET_MIN { now_s } else { at_s + 1 }
}

fn looked_target(watched: &Watched, looked: Looked<'_>) -> LookedTarget {
    let Looked { report, unanswered, path, ports, observation, age } = looked;
    let listeners = |tier: &Tier| tier.listeners.iter().map(|placed| (placed.netns, placed.listener.inode)).collect::<Vec<_>>();
    // A window that is old was told before: this second was not seen.
    let is_seen = report.window.to_s > report.window.from_s && age.is_some_and(|age| !is_stale(age));
    let ledger = report.ledger.as_ref().filter(|_| is_seen);
    let masters = |tier: &Tier| tier.pids.iter().copied().filter(|pid| observation.servers.contains_key(pid)).collect::<BTreeSet<_>>();
    let first_masters = path.tiers.first().map(masters).unwrap_or_default();
    let workers = |master: u32| path.tiers.first().map(|tier| workers(tier, master, observation)).unwrap_or_default();
    let mut sample = TargetSample::of(&watched.name, ledger, if is_seen { 1.0 } else { 0.0 });
    if is_seen {
        sample.see_unanswered(&unanswered.ages_us, unanswered.tick_us, unanswered.took_us);
    }
    let seconds = sample.under_way.seconds.max(1.0);
    let mean = |count: u64| Mean::of(Some(count as f64), seconds);
    let status = path.tiers.first().and_then(|tier| tier.pids.iter().find_map(|pid| nginx(observation, *pid)));
    let pools: Vec<PhpFpmStatus> = path.tiers.iter().flat_map(|tier| &tier.pids).flat_map(|pid| fpm(observation, *pid)).collect();
    sample.connections = status.as_ref().map(|status| Connections {
        reading: mean(status.reading),
        writing: mean(status.writing),
        waiting: mean(status.waiting),
    });
    let used = |pool: &PhpFpmStatus| (pool.pool.clone(), PoolUse { active: mean(pool.active), total: mean(pool.total) });
    sample.pools = pools.iter().take(POOLS_MAX).map(used).collect();
    let taken = |EdgePorts { edge, live, time_wait, usable }| Ports { edge, live, time_wait, limit: usable };
    sample.ports = ports.iter().take(EDGES_MAX).cloned().map(taken).collect();
    let first = path.tiers.first().map(|tier| tier.netns);
    let queues = path.tiers.iter().flat_map(|tier| &tier.listeners).filter_map(|placed| queue(placed, first, observation));
    queues.for_each(|queue| sample.see_queue(queue));
    LookedTarget {
        request: watched.request.clone(),
        sample,
        first: path.tiers.first().map(|tier| listeners(tier).into_iter().collect()).unwrap_or_default(),
        behind: path.tiers.iter().skip(1).flat_map(listeners).collect(),
        nginx: status,
        fpm: pools,
        tells_answers: false,
        amplify: BTreeMap::new(),
        values: BTreeMap::new(),
        masters_behind: path.tiers.iter().skip(1).flat_map(masters).filter(|pid| !first_masters.contains(pid)).collect(),
        masters: first_masters.iter().map(|master| (*master, workers(*master))).collect(),
        age,
    }
}

/// The children of a master of nginx that serve a tier.
fn workers(tier: &Tier, master: u32, observation: &Observation) -> BTreeSet<u32> {
    let identity = |pid: u32| observation.processes.get(&pid)?.identity.last();
    let is_worker =
        |pid: &u32| *pid != master && identity(*pid).is_some_and(|identity| identity.parent == master && identity.comm == NGINX);
    tier.pids.iter().copied().filter(is_worker).collect()
}

/// What the status page of an nginx told last.
fn nginx(observation: &Observation, pid: u32) -> Option<NginxStatus> {
    match observation.servers.get(&pid)?.nginx_status()?.last()? {
        ServerStatus::Nginx(status) => Some(status.clone()),
        _ => None,
    }
}

/// What the status pages of the pools of a php-fpm told last.
fn fpm(observation: &Observation, pid: u32) -> Vec<PhpFpmStatus> {
    let pages = observation.servers.get(&pid).into_iter().flat_map(|server| server.status.values());
    let pool = |status: &ServerStatus| match status {
        ServerStatus::PhpFpm(pool) => Some(pool.clone()),
        _ => None,
    };
    pages.filter_map(|page| page.last().and_then(pool)).collect()
}

fn logged(growth: LogGrowth) -> Logged {
    let durations_us = growth.durations_us.into_iter().map(|(name, counts)| (name.to_owned(), Durations(counts))).collect();
    let skipped_lines = |answers: u64| growth.extent.scale().map_or(0.0, |scale| answers as f64 * (scale - 1.0)) as u64;
    let answers = growth.status.values().sum();
    let urls = growth.urls.into_iter().map(|(group, counts)| (group, used(counts, URL_TIME))).collect();
    let upstreams = growth.upstreams.into_iter().map(|(group, counts)| (group, used(counts, UPSTREAM_TIME))).collect();
    Logged { upstreams, unread: growth.misfits + skipped_lines(answers), status: growth.status, bytes: growth.bytes, urls, durations_us }
}

/// What a group was asked for. `time`: the name of its response time.
fn used(counts: GroupCounts, time: &str) -> GroupUse {
    let GroupCounts { answers, failed, bytes, times_us } = counts;
    let named = GROUP_TIMES.iter().zip(times_us).filter(|(_, times)| !times.is_empty());
    let durations_us: BTreeMap<String, Durations> = named.map(|(name, times)| ((*name).to_owned(), Durations(times))).collect();
    let time_us = durations_us.get(time).map(|times| times.0.sum() as u64);
    GroupUse { answers, failed, time_us, bytes, durations_us }
}

/// The queue of a listener in the window. Its address says where it is if it is not where the target is: each container may have the same.
fn queue(placed: &PlacedListener, first: Option<NetnsId>, observation: &Observation) -> Option<Queue> {
    let (from_us, to_us) = observation.window_us?;
    let own = |listeners: &Vec<Listener>| listeners.iter().find(|listener| listener.inode == placed.listener.inode).cloned();
    let points = observation.netns.get(&placed.netns)?.listeners.points();
    let seen: Vec<Listener> =
        points.iter().filter(|(at_us, _)| (from_us..=to_us).contains(at_us)).filter_map(|(_, all)| own(all)).collect();
    let most = seen.iter().map(|listener| listener.accept_queue).max()?;
    let address = placed.listener.address.to_string();
    let name = || observation.netns.get(&placed.netns)?.name.clone();
    let listener = match first == Some(placed.netns) {
        true => address,
        false => format!("{address} in {}", name().unwrap_or_else(|| placed.netns.to_string())),
    };
    Some(Queue { listener, most, limit: seen.last()?.accept_queue_limit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_watched_once_it_stays_and_those_that_never_stay_cost_no_more_searches() {
        let server = |name: &str| Watched { name: name.to_owned(), request: Request::default() };
        let known = [server("nginx:80")];
        let (mut arrivals, mut periods_s) = (Arrivals::default(), Vec::new());
        for number in 0..6 {
            assert_eq!(arrivals.came(&[server("nginx:80"), server(&format!("python3:{number}"))], &known), []);
            periods_s.push(arrivals.period().as_secs());
        }
        assert_eq!(periods_s, [2, 4, 8, 10, 10, 10]);
        assert_eq!(arrivals.came(&[server("java:8080"), server("python3:5")], &known), [server("python3:5")]);
        assert_eq!(arrivals.period(), SEEN_PERIOD);
        assert_eq!(arrivals.came(&[server("java:8080")], &known), [server("java:8080")]);
        assert_eq!((arrivals.period(), arrivals.came(&[], &known)), (SEARCH_PERIOD, Vec::new()));
    }

    #[test]
    fn answers_of_missed_seconds_are_no_higher_rate() {
        assert_eq!((rate(1_563, 3.84).round(), rate(500, 1.0), rate(100, 0.01)), (407.0, 500.0, 400.0));
    }

    #[test]
    fn seconds_follow_a_clock_that_was_set_and_no_other() {
        assert_eq!([1_000, 1_001, 1_002, 1_003].map(|now_s| next_s(1_000, now_s)), [1_001; 4], "rounded this way or that");
        assert_eq!((next_s(1_000, 5_000), next_s(1_000, 400), next_s(1_000, 0)), (5_000, 400, 0), "set forward or back");
        // A clock that runs a little fast is followed in the end.
        assert_eq!((0..10_u64).fold(1_000, |at_s, n| next_s(at_s, 1_001 + n + n / 3)), 1_013);
    }
}
