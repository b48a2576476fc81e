//! The thread that decides what is read when. It gives work to the readers, stores what they read, and runs the scout on it.

mod configurations;
mod lane;
mod path;
mod quiet;
mod successors;
mod survey;
mod translations;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use chokepoint_model::observation::{NetnsId, Observation, Request};
use chokepoint_recording::{Entry, Outcome, Scope};

use lane::ReaderLane;
use successors::Parents;

use super::PathSoFar;
use super::bucket::{Account, Bucket, FLOW_RECORDER_US};
use super::costs::{self, Costs};
use super::messages::{ReadOrder, ReadResult, ReaderEnvironment, ReaderJob, ReaderReply, SamplerEvent};
use super::newest::Newest;
use super::options::{ObserveError, ObserveOptions};
use super::reader::Reader;
use super::reloads::Reloads;
use super::schedule::{EDGES, FILES, Pace, PathRole, is_edge};
use super::scout::{Calls, PIDS_MAX, PathScope, listener_inodes};
use super::socket_owners::PidsBySocket;
use super::status_pollers::StatusPollers;
use super::stop::Stop;
use super::store::Store;
use crate::SOURCES;
use crate::assemble::{BOUND, place};
use crate::clock::{Clock, thread_cpu_us};
use crate::netns::{Namespaces, list, own};
use crate::root::WHY_ENDED;
use crate::servers::follow::REQUEST;
use crate::servers::status::SERVER_STATUS;
use crate::table::{Cadence, Notes, Phase, ScopeKind, Source};
use crate::text::conntrack::translations::NAME as TRANSLATIONS;

/// Events that may wait for the sampler. A reader has at most one of them.
const EVENTS_MAX: usize = 1024;
/// Time between two searches for the path.
const SCOUT_PERIOD_US: u64 = 1_000_000;
/// At the end of the observation, a reader that has not replied for this long is abandoned: it hangs in the kernel.
const PATIENCE_US: u64 = 10_000_000;
/// How long the beginning waits for the first status pages.
const FIRST_PAGES_US: u64 = 2_500_000;
/// Longest time between two looks whether everything is to end.
const STOP_PERIOD_US: u64 = 50_000;
/// Most descriptors to look at in one search for the processes that hold listeners: about 3 ms.
const LINKS_AT_ONCE: usize = 2_000;
const NO_THREAD: &str = "a namespace on the path could not be read: no thread could be started";
/// The source that has entries only for servers of a known kind.
const CONFIG: &str = "server_config";
/// The source with the user of a process.
const IDENTITY: &str = "process_identity";
/// Sources that the scout needs.
pub(super) const SCOUTED: [&str; 7] = ["addresses", "listeners", "netns", "sockets", FILES, CONFIG, TRANSLATIONS];

/// The state of one observation.
pub(super) struct Sampler {
    shared: ReaderEnvironment,
    inbox: Receiver<SamplerEvent>,
    request: Request,
    /// Further requests whose paths are followed.
    also: Vec<Request>,
    lanes: BTreeMap<Scope, ReaderLane>,
    namespaces: Namespaces,
    store: Store,
    /// The newest reading of each scouted source, by scope.
    newest: Newest,
    /// The calls among the sockets in it.
    calls: Calls,
    status_pollers: StatusPollers,
    pids_by_socket: PidsBySocket,
    hold_wanted: Option<BTreeSet<u64>>,
    scout_due_us: u64,
    translations_turns: u32,
    /// The CPU time that all readers and this thread may use.
    bucket: Bucket,
    /// Pays for the search for the path in what was read.
    looking: Account,
    /// Pays for the search for the processes that hold listeners.
    searching: Account,
    /// Pays for reading translations.
    translating: Account,
    /// Pays for searching all namespaces again.
    surveying: Account,
    /// Pays for reading configurations in an observation without an end.
    configuring: Account,
    configurations_ordered: usize,
    reloads: Reloads,
    survey_wanted: bool,
    /// CPU time of the sampling thread that the bucket has paid.
    own_paid_us: u64,
    /// There are readings that the scout has not seen yet.
    news: bool,
    path: PathScope,
    parents: Parents,
    found: PathSoFar,
    bounds: BTreeSet<String>,
    costs: Costs,
    /// The observation has no end and forgets processes that ended.
    endless: bool,
}

impl Sampler {
    pub(super) fn new(options: ObserveOptions, clock: Clock, found: PathSoFar) -> Result<(Self, SyncSender<SamplerEvent>), ObserveError> {
        let (events, inbox) = sync_channel(EVENTS_MAX);
        let ObserveOptions { root, mut request, mut also, bound_bytes, endless, under_way, stop } = options;
        for request in [&mut request].into_iter().chain(&mut also).filter(|request| request.client_netns == NetnsId(0)) {
            request.client_netns = own()?;
        }
        if let Some(under_way) = &under_way {
            under_way.calls_from(request.client_netns);
        }
        let notes = Arc::new(Notes::default());
        // One request's logs are told apart from those of others; an observation without an end counts no logs.
        if also.is_empty()
            && let Ok(asked) = serde_json::to_vec(&request)
        {
            notes.set(REQUEST, asked);
        }
        let shared = ReaderEnvironment { root, clock, notes, events: events.clone(), under_way, stop: stop.for_one() };
        let sampler = Self {
            shared,
            inbox,
            request,
            also,
            lanes: BTreeMap::new(),
            namespaces: Namespaces { found: Vec::new(), unreadable: 0 },
            store: Store::new(bound_bytes),
            newest: Newest::default(),
            calls: Calls::default(),
            status_pollers: StatusPollers::default(),
            pids_by_socket: PidsBySocket::new(),
            hold_wanted: None,
            scout_due_us: 0,
            translations_turns: 0,
            bucket: Bucket::new(0),
            looking: Account::default(),
            searching: Account::default(),
            translating: Account::default(),
            surveying: Account::default(),
            configuring: Account::default(),
            configurations_ordered: 0,
            reloads: Reloads::default(),
            survey_wanted: false,
            own_paid_us: 0,
            news: true,
            path: PathScope::default(),
            parents: Parents::default(),
            found,
            bounds: BTreeSet::new(),
            costs: Costs::default(),
            endless,
        };
        Ok((sampler, events))
    }

    /// What everything it does ends on.
    pub(super) fn stop(&self) -> Stop {
        self.shared.stop.clone()
    }

    /// Starts the readers of the host, and of the client's, the server's and the observer's own namespace.
    pub(super) fn prepare(&mut self) -> Result<(), ObserveError> {
        let host = Reader::of_host(self.shared.clone()).map_err(ObserveError::Thread)?;
        self.add_lane(Scope::Host, host);
        self.namespaces = list(&self.shared.root)?;
        for (whose, id) in [("client's", Some(self.request.client_netns)), ("server's", self.request.server_netns)] {
            match id {
                Some(id) if self.namespaces.get(id).is_none() => return Err(ObserveError::UnknownNetns { whose, id }),
                _ => {}
            }
        }
        let named = self.requests().flat_map(|request| [Some(request.client_netns), request.server_netns]);
        for id in named.chain([Some(own()?)]).flatten().collect::<BTreeSet<_>>() {
            self.add_netns(id)?;
        }
        Ok(())
    }

    /// Does everything else that comes before the sampling: first readings, and those of every tier of the path that is visible already.
    pub(super) fn begin(&mut self) -> Result<(), ObserveError> {
        self.drain(PATIENCE_US);
        self.survey()?;
        self.refresh_holders();
        self.find_paths()?;
        let since_us = self.shared.clock.now_us();
        self.call_unanswered()?;
        let until_us = self.shared.clock.now_us() + FIRST_PAGES_US;
        while self.status_pollers.begin()
            && let Some(event) = self.next_event(until_us)
        {
            self.hear(event);
        }
        if self.request.loaded && !self.path.pids.is_empty() {
            self.watch_quiet(since_us);
        }
        self.scout_due_us = self.shared.clock.now_us() + SCOUT_PERIOD_US;
        Ok(())
    }

    /// The next event before this time, unless everything is to end.
    fn next_event(&self, until_us: u64) -> Option<SamplerEvent> {
        loop {
            let left_us = until_us.saturating_sub(self.shared.clock.now_us());
            match self.inbox.recv_timeout(Duration::from_micros(left_us.min(STOP_PERIOD_US))) {
                Ok(event) => return Some(event),
                Err(RecvTimeoutError::Timeout) if left_us > 0 && !self.shared.stop.is_set() => {}
                Err(_) => return None,
            }
        }
    }

    /// Begins, unless that was done, and samples until asked to end. Returns the entries, unless the observation was abandoned, and their cost.
    pub(super) fn run(mut self, has_begun: bool) -> (Vec<Entry>, Costs) {
        if !has_begun && let Err(error) = self.begin() {
            self.bounds.insert(error.to_string());
        }
        self.costs.sampling(true);
        let own_us = thread_cpu_us();
        let bucket = Bucket::new(self.shared.clock.now_us());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        self.bucket = if self.endless { bucket.with_flow(FLOW_RECORDER_US) } else { bucket.for_cores(cores) };
        self.own_paid_us = own_us;
        loop {
            let now_us = self.shared.clock.now_us();
            self.pour(now_us);
            if now_us >= self.scout_due_us {
                self.scout_due_us = now_us + SCOUT_PERIOD_US;
                self.search();
                self.add_children();
                self.order_translations_in_turn();
            }
            self.order_configurations(now_us);
            self.dispatch(now_us);
            if self.shared.stop.is_set() && self.endless {
                self.end_readers();
                return (Vec::new(), self.costs);
            }
            let wait = self.next_due_us().saturating_sub(self.shared.clock.now_us());
            match self.inbox.recv_timeout(Duration::from_micros(wait)) {
                Ok(SamplerEvent::Finish) => {
                    let looking_us = self.costs.sampling.get(costs::PATH).map_or(0, |cost| cost.cpu_us);
                    self.costs.add(costs::KEEPING, thread_cpu_us().saturating_sub(own_us + looking_us));
                    self.costs.sampling(false);
                    return self.finish();
                }
                Ok(SamplerEvent::Abandon) | Err(RecvTimeoutError::Disconnected) => {
                    self.end_readers();
                    return (Vec::new(), self.costs);
                }
                Ok(event) => self.hear(event),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn finish(mut self) -> (Vec<Entry>, Costs) {
        self.status_pollers.finish();
        let until_us = self.shared.clock.now_us();
        self.drain(PATIENCE_US);
        self.catch_up();
        for lane in self.lanes.values_mut().filter(|lane| !lane.gone) {
            let scopes = lane.scopes.clone();
            let ends = |kind| SOURCES.iter().filter(move |source| source.scope == kind && source.cadence != Cadence::Once);
            lane.fresh.extend(
                scopes
                    .iter()
                    .flat_map(|scope| ends(ScopeKind::of(*scope)).map(|source| ReadOrder { source, scope: *scope, phase: Phase::Last })),
            );
        }
        self.drain(PATIENCE_US);
        std::mem::take(&mut self.status_pollers).join();
        while let Ok(event) = self.inbox.try_recv() {
            self.hear(event);
        }
        let slowed = self.lanes.iter().flat_map(|(scope, lane)| lane.schedule.slowed(*scope, until_us)).collect::<Vec<_>>();
        self.bounds.extend(slowed);
        self.bounds.extend(self.store.losses());
        self.bounds.extend(chokepoint_foreign::left_out());
        self.bounds.extend(super::descriptors_left_out());
        self.end_readers();
        let at_us = self.shared.clock.now_us();
        let mut entries = self.store.into_entries();
        entries.extend(self.bounds.into_iter().map(|text| Entry {
            at_us,
            source: BOUND.to_owned(),
            scope: Scope::Host,
            item: String::new(),
            outcome: Outcome::Ok(text.into_bytes()),
        }));
        (entries, self.costs)
    }

    /// Finds the path in all readings together. This finds upstreams whose connections never showed to both readers in one turn. Their processes are read at
    /// least once, so that no tier of the path lacks them.
    fn catch_up(&mut self) {
        let mut all = Observation { request: self.request.clone(), ..Observation::default() };
        let is_for_path = |entry: &&Entry| SCOUTED.contains(&entry.source.as_str()) || entry.source == IDENTITY;
        self.store.entries().filter(is_for_path).for_each(|entry| place(&mut all, entry));
        let path = chokepoint_model::path::discover(&all);
        let unread = path.tiers.iter().filter(|tier| tier.pids.is_empty()).flat_map(|tier| &tier.listeners);
        let pids: BTreeSet<u32> = unread.filter_map(|placed| self.pids_by_socket.get(&placed.listener.inode)).flatten().copied().collect();
        for pid in pids.into_iter().filter(|pid| *pid != std::process::id()) {
            if self.path.pids.len() < PIDS_MAX && self.path.pids.insert(pid) {
                self.add_scope(Scope::Host, Scope::Process(pid));
            }
        }
        self.drain(PATIENCE_US);
    }

    fn end_readers(&mut self) {
        for lane in std::mem::take(&mut self.lanes).into_values() {
            if lane.is_free() {
                lane.end();
            }
        }
    }

    // ---- readers and their work

    fn add_lane(&mut self, scope: Scope, reader: Reader) {
        let pace = match (self.endless, self.request.loaded || self.shared.under_way.is_some()) {
            (true, _) => Pace::Recorder,
            (false, true) => Pace::Measurement,
            (false, false) => Pace::Watch,
        };
        self.lanes.insert(scope, ReaderLane::new(scope, reader, pace, self.shared.clock.now_us()));
        self.add_scope(scope, scope);
    }

    /// Adds a scope to a lane and orders all its first readings.
    fn add_scope(&mut self, lane: Scope, scope: Scope) {
        let is_paid_for = self.pays_for_configurations();
        let Some(lane) = self.lanes.get_mut(&lane) else { return };
        if lane.scopes.insert(scope) {
            let of_kind = SOURCES.iter().filter(|source| source.scope == ScopeKind::of(scope) && !(is_paid_for && source.name == CONFIG));
            lane.fresh.extend(of_kind.map(|source| ReadOrder { source, scope, phase: Phase::First }));
            if let (true, Scope::Process(pid)) = (is_paid_for, scope) {
                self.reloads.joined(pid);
            }
        }
    }

    fn add_netns(&mut self, id: NetnsId) -> Result<(), ObserveError> {
        let scope = Scope::Netns(id.0);
        if self.lanes.contains_key(&scope) {
            return Ok(());
        }
        let Some(netns) = self.namespaces.get(id).cloned() else { return Ok(()) };
        let reader = Reader::of_netns(self.shared.clone(), netns)?;
        self.add_lane(scope, reader);
        Ok(())
    }

    /// Gives every idle reader what is due, first readings first.
    fn dispatch(&mut self, now_us: u64) {
        let roles: Vec<PathRole> = self.lanes.keys().map(|scope| self.role(*scope)).collect();
        let are_expensive = |(lane, role): &(&ReaderLane, &PathRole)| **role != PathRole::OffPath && lane.schedule.has_expensive_samples();
        self.bucket.shared_by(self.lanes.values().zip(&roles).filter(are_expensive).count());
        self.pair_edges(now_us, &roles);
        let mut files_due = false;
        for ((scope, lane), role) in self.lanes.iter_mut().zip(roles).filter(|((_, lane), _)| lane.is_free()) {
            let job = if !lane.fresh.is_empty() {
                ReaderJob::Read(std::mem::take(&mut lane.fresh), None)
            } else if *scope == Scope::Host
                && let Some(wanted) = self.hold_wanted.take()
            {
                ReaderJob::Hold(wanted, LINKS_AT_ONCE)
            } else {
                // The host is first in order, so the others know whether it reads files now.
                let with_files = files_due && matches!(role, PathRole::OnPath { .. });
                let due = lane.schedule.due(now_us, role, with_files, &mut self.bucket);
                files_due |= *scope == Scope::Host && due.iter().any(|source| source.name == FILES);
                lane.turn(due, now_us, role, &mut self.bucket)
            };
            if !matches!(&job, ReaderJob::Read(orders, None) if orders.is_empty()) {
                lane.give(job);
            }
        }
    }

    /// Delays the reading of files until the connections that belong to them can be read.
    fn pair_edges(&mut self, now_us: u64, roles: &[PathRole]) {
        let mut lanes = self.lanes.iter_mut().zip(roles).filter(|((_, lane), _)| lane.is_free());
        if let Some(((Scope::Host, host), role)) = lanes.next() {
            let on_path = lanes.filter(|(_, role)| matches!(role, PathRole::OnPath { .. })).map(|((_, lane), _)| &mut lane.schedule);
            host.schedule.pair(now_us, *role, on_path, &mut self.bucket);
        }
    }

    /// All requests whose paths are followed.
    fn requests(&self) -> impl Iterator<Item = &Request> {
        std::iter::once(&self.request).chain(&self.also)
    }

    fn role(&self, reader: Scope) -> PathRole {
        // Files are sought only once somebody calls a listener: the caller may be the first tier.
        let sought = match (self.seeks(), self.path.calls) {
            (false, _) => &EDGES[..0],
            (true, false) => &EDGES[..1],
            (true, true) => &EDGES[..],
        };
        match reader {
            Scope::Netns(id) if self.path.netns.contains(&NetnsId(id)) => PathRole::OnPath { sought },
            Scope::Netns(id) if self.requests().any(|request| request.client_netns == NetnsId(id)) => PathRole::Client,
            Scope::Netns(_) => PathRole::OffPath,
            Scope::Host | Scope::Process(_) => PathRole::OnPath { sought },
        }
    }

    /// True while no tier behind the first one is known.
    fn seeks(&self) -> bool {
        self.path.answered && !self.path.upstream
    }

    /// Takes the CPU time of this thread out of the bucket, then refills it.
    fn pour(&mut self, now_us: u64) {
        let own_us = thread_cpu_us();
        self.bucket.spend(own_us.saturating_sub(self.own_paid_us));
        self.own_paid_us = own_us;
        let of_lanes = self.lanes.values_mut().flat_map(|lane| lane.schedule.accounts());
        let own = [&mut self.looking, &mut self.searching, &mut self.translating, &mut self.surveying, &mut self.configuring];
        self.bucket.refill(now_us, of_lanes.chain(own));
    }

    fn next_due_us(&self) -> u64 {
        let next = self.lanes.values().filter(|lane| lane.is_free()).filter_map(ReaderLane::next_due_us);
        next.fold(self.scout_due_us, u64::min)
    }

    /// Works until no reader has work left, or until the time is over.
    fn drain(&mut self, patience_us: u64) {
        let until_us = self.shared.clock.now_us() + patience_us;
        loop {
            // An empty job ends a repetition.
            for lane in self.lanes.values_mut().filter(|lane| lane.is_free() && (lane.is_busy() || !lane.fresh.is_empty())) {
                let fresh = std::mem::take(&mut lane.fresh);
                lane.give(ReaderJob::Read(fresh, None));
            }
            if !self.lanes.values().any(ReaderLane::is_busy) {
                return;
            }
            match self.next_event(until_us) {
                Some(event) => self.hear(event),
                None => break,
            }
        }
        let patience_s = patience_us / 1_000_000;
        let hanging = self
            .lanes
            .iter()
            .filter(|(_, lane)| lane.is_busy())
            .map(|(scope, _)| format!("a reader of {scope:?} did not answer for {patience_s} s"));
        self.bounds.extend(hanging.collect::<Vec<_>>());
    }

    fn hear(&mut self, event: SamplerEvent) {
        match event {
            SamplerEvent::Note(entry) => self.store.add(vec![entry], Cadence::Once, Phase::First),
            SamplerEvent::Reply(reply) => self.take(reply),
            SamplerEvent::StatusTurn(turn) => {
                self.status_pollers.reported(&turn);
                self.costs.add(SERVER_STATUS.name, turn.cost_us);
                self.bucket.spend(turn.cost_us);
                self.store.add(turn.entries, Cadence::Slow, turn.phase);
            }
            SamplerEvent::Follow(requests) => self.follow(requests),
            // The caller may be gone. Then nobody needs the entries.
            SamplerEvent::Drain(to) => drop(to.send(self.store.drain())),
            // `run` handles the first of these. Later ones have no effect.
            SamplerEvent::Finish | SamplerEvent::Abandon => {}
        }
    }

    fn take(&mut self, reply: ReaderReply) {
        let now_us = self.shared.clock.now_us();
        // First readings do not belong to the sampling.
        let first_us: u64 = reply.reads.iter().map(ReadResult::cost).filter(|spent| spent.is_first).map(|spent| spent.cost_us).sum();
        self.bucket.spend(reply.cost_us.saturating_sub(first_us));
        if let Some(lane) = self.lanes.get_mut(&reply.reader) {
            lane.answered();
            // Nothing will ever be read there. The first readings report that once.
            lane.gone |= reply.shut_out;
            lane.schedule.done(now_us, &mut self.bucket, &reply.reads.iter().map(ReadResult::cost).collect::<Vec<_>>());
        }
        // Two readers read files and sockets at the same time. The later reply completes the pair.
        let edges = self.seeks() && reply.reads.iter().any(|read| is_edge(read.order.source));
        self.charge_configurations(&reply.reads);
        for read in reply.reads {
            self.costs.read(&read);
            self.charge_translations(&read);
            self.keep(read);
        }
        let searched = reply.pids_by_socket.is_some();
        if let Some(pids_by_socket) = reply.pids_by_socket {
            self.costs.add(costs::HOLDERS, reply.cost_us);
            self.bucket.settle(&mut self.searching, reply.cost_us);
            // Listeners are read 20 times a second. A new one counts once it has holders, or at once while there is no path.
            self.news |= pids_by_socket != self.pids_by_socket || !self.path.answered;
            self.pids_by_socket = pids_by_socket;
        }
        if (searched || edges) && self.news && self.bucket.reserve(&mut self.looking) && self.look().is_err() {
            self.bounds.insert(NO_THREAD.to_owned());
        }
    }

    fn keep(&mut self, read: ReadResult) {
        let ReadResult { order, entries, .. } = read;
        let ended = |entry: &Entry| matches!(&entry.outcome, Outcome::Absent(why, _) if why == WHY_ENDED);
        if let Scope::Process(pid) = order.scope
            && entries.iter().any(ended)
        {
            self.forget_process(pid);
            if let Some(lane) = self.lanes.get_mut(&Scope::Host)
                && !lane.scopes.remove(&order.scope)
            {
                return; // The end of a process is reported once.
            }
            self.parents.lose(pid);
        }
        if let (IDENTITY, Scope::Process(pid)) = (order.source.name, order.scope) {
            self.parents.note(pid, &entries);
        }
        self.note_configuration(order, &entries);
        if let (CONFIG, Scope::Process(pid), false) = (order.source.name, order.scope, entries.is_empty()) {
            self.status_pollers.start(&self.shared, pid);
        }
        self.remember(order.source, &entries);
        self.store.add(entries, order.source.cadence, order.phase);
    }

    fn remember(&mut self, source: &'static Source, entries: &[Entry]) {
        if !SCOUTED.contains(&source.name) {
            return;
        }
        for entry in entries.iter().filter(|entry| entry.item.is_empty() && matches!(entry.outcome, Outcome::Ok(_))) {
            self.news |= self.newest.take(source.name, entry) && source.name != "listeners";
        }
    }

    /// Begins to search for the processes that hold listeners, and for namespaces, if the bucket can pay.
    fn search(&mut self) {
        if self.bucket.reserve(&mut self.searching) {
            self.newest.parse(&["listeners"]);
            self.hold_wanted = Some(listener_inodes(self.newest.view()));
        }
        if self.survey_wanted && self.bucket.reserve(&mut self.surveying) && self.survey_again().is_err() {
            self.bounds.insert(NO_THREAD.to_owned());
        }
    }
}
