//! The event loop of one generator thread: starts requests when they are due, advances them on events, ends and counts them.

pub(crate) mod clock;
pub(crate) mod closing;
pub(crate) mod control;
pub(crate) mod exchanges;
pub(crate) mod growth;
pub(crate) mod pause;
pub(crate) mod run;
pub(crate) mod schedule;
pub(crate) mod shared;
pub(crate) mod slot;
pub(crate) mod stages;
mod stale;
mod time;
pub(crate) mod wheel;

use std::io;

use mio::event::Event;
use mio::{Events, Poll};

use chokepoint_model::load::{GeneratorThread, Loop};

use crate::engine::clock::Clock;
use crate::engine::closing::Waits;
use crate::engine::control::lock;
use crate::engine::pause::{Opening, Pauses};
use crate::engine::schedule::Schedule;
use crate::engine::shared::Shared;
use crate::engine::slot::{Phase, Slot, SlotProgress, slot_of};
use crate::engine::wheel::Wheel;
use crate::host::{self, OwnTime};
use crate::protocol::reply::{Reply, ThreadScratch};
use crate::results::outcome::{Detail, Ended, Failure, RequestEnd};
use crate::results::tally::Tally;

/// Bytes of a thread's read buffer.
const BUFFER_BYTES: usize = 64 * 1024;
/// Maximum number of events taken from the kernel at once.
const EVENTS: usize = 1024;
/// Maximum number of requests started between two polls for events, so that answers do not wait while thousands of connections are opened.
const STARTS_MAX: u32 = 64;
/// A send of an open loop is late if it is this long after its intended start, nanoseconds.
const LATE_NS: u64 = 1_000_000;
/// Maximum number of distinct latencies with which unsent requests are recorded.
const NEVER_SENT_STEPS: u64 = 100_000;

/// How requests come due.
enum Pace {
    /// As connections become free.
    Closed {
        /// Connections that have not started their first request.
        fresh: Opening,
        pauses: Box<Pauses>,
        /// Requests that this thread has claimed but not started.
        claimed: u64,
        /// Number of the next request, counted over all threads.
        number: u64,
    },
    /// According to the schedule.
    Open { schedule: Schedule, idle: Vec<u32>, closed: Vec<u32> },
}

pub(crate) struct Engine<'a> {
    shared: &'a Shared<'a>,
    thread: usize,
    clock: Clock,
    poll: Poll,
    slots: Vec<Slot>,
    pace: Pace,
    wheel: Wheel,
    /// Connections whose server's end is awaited.
    waits: Waits,
    timeout_ns: u64,
    /// Requests whose intended start is earlier are not counted.
    warm_ns: u64,
    /// Open loop: due requests wait for a connection.
    is_waiting_for_connection: bool,
    tally: Tally,
    buffer: Box<[u8]>,
    scratch: ThreadScratch,
    /// Connections that may have more to read.
    again: Vec<u32>,
    /// Connections whose deadline must be checked; empty between turns.
    due: Vec<u32>,
    /// End of the load, as read at the start of this turn.
    end_ns: u64,
    /// All requests of this thread have started, if a number of requests was given.
    all_started: bool,
    /// Latency limits of the guards, and how many ended requests of this slice reached each.
    limits_ns: Vec<u64>,
    over: Vec<u64>,
    at_start: OwnTime,
    at_start_ns: u64,
    /// The thread's CPU cost, known at the end of the load.
    cost: Option<GeneratorThread>,
}

/// The result of a thread's loop.
pub(crate) struct ThreadResult {
    pub(crate) tally: Tally,
    pub(crate) thread: GeneratorThread,
    pub(crate) all_started: bool,
}

impl<'a> Engine<'a> {
    /// Allocates everything that the load needs. `connections`: those of this thread.
    pub(crate) fn new(shared: &'a Shared<'a>, thread: u32, connections: u32) -> io::Result<Self> {
        let plan = shared.plan;
        let timeout_ns = plan.timeout.as_nanos() as u64;
        let limits_ns = shared.watch.as_ref().map_or_else(Vec::new, |watch| lock(watch).limits_ns().to_vec());
        let pace = match plan.shape {
            Loop::Closed { connections: all } => {
                let fresh = Opening::new(connections, (all, plan.requests.is_some()), (thread, shared.threads));
                Pace::Closed { fresh, pauses: Box::default(), claimed: 0, number: u64::from(thread) }
            }
            Loop::Open { rate_per_s, .. } => Pace::Open {
                schedule: Schedule::new(rate_per_s, plan.options.stages.as_ref(), thread, shared.threads, plan.requests, shared.warm_ns),
                idle: Vec::with_capacity(connections as usize),
                closed: (0..connections).rev().collect(),
            },
        };
        let mut tally = Tally::new(&plan.expect, shared.warm_ns, shared.control.add_thread());
        tally.reserve(
            plan.duration.map_or(0, |duration| duration.as_nanos() as u64).saturating_add(timeout_ns).saturating_add(shared.warm_ns),
        );
        Ok(Engine {
            shared,
            thread: thread as usize,
            clock: Clock::default(),
            poll: Poll::new()?,
            slots: (0..connections).map(|_| Slot::new(Reply::new(plan))).collect(),
            pace,
            wheel: Wheel::new(connections as usize, timeout_ns),
            waits: Waits::default(),
            timeout_ns,
            warm_ns: shared.warm_ns,
            is_waiting_for_connection: false,
            tally,
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            scratch: ThreadScratch::default(),
            again: Vec::new(),
            due: Vec::with_capacity(connections as usize),
            end_ns: u64::MAX,
            all_started: false,
            over: vec![0; limits_ns.len()],
            limits_ns,
            at_start: OwnTime::default(),
            at_start_ns: 0,
            cost: None,
        })
    }

    /// Runs the load to its end, starting with the clock.
    pub(crate) fn run(mut self, clock: Clock) -> io::Result<ThreadResult> {
        let mut events = Events::with_capacity(EVENTS);
        self.clock = clock;
        clock.wait_for_start();
        self.at_start = OwnTime::now();
        loop {
            let now_ns = self.clock.now_ns();
            self.end_ns = self.shared.end_ns();
            self.end_due_slices(now_ns);
            self.expire(now_ns);
            self.end_waits(now_ns);
            if self.shared.is_aborted() {
                self.shared.end_at(now_ns);
                break;
            }
            if now_ns >= self.end_ns {
                self.end_offering(now_ns);
            } else if !self.all_started {
                self.start_due(now_ns);
            }
            if (self.all_started || now_ns >= self.end_ns) && self.tally.in_flight() == 0 {
                break;
            }
            self.wait(&mut events, now_ns)?;
            for event in &events {
                self.advance(event);
            }
            // Taken out so that connections can be added again while these are read. It is put back to reuse its capacity.
            let mut again = std::mem::take(&mut self.again);
            for index in again.drain(..) {
                self.receive_again(index);
            }
            if self.again.is_empty() {
                self.again = again;
            }
        }
        Ok(self.finish())
    }

    fn finish(mut self) -> ThreadResult {
        let now_ns = self.clock.now_ns();
        self.end_offering(now_ns);
        self.end_due_slices(now_ns);
        self.tally.finish(self.shared.control);
        self.tally.error_output = self.scratch.error_output;
        ThreadResult { tally: self.tally, thread: self.cost.unwrap_or_default(), all_started: self.all_started }
    }

    /// The first call records the thread's cost, closes idle connections and counts due requests that were not sent.
    fn end_offering(&mut self, now_ns: u64) {
        if self.cost.is_some() {
            return;
        }
        let used = OwnTime::now();
        let wait_ns = used.wait_ns.zip(self.at_start.wait_ns).map(|(end, begin)| end.saturating_sub(begin));
        self.cost = Some(GeneratorThread {
            cpu_us: used.cpu_ns.saturating_sub(self.at_start.cpu_ns) / 1000,
            wall_us: now_ns.saturating_sub(self.at_start_ns) / 1000,
            wait_us: wait_ns.map(|ns| ns / 1000),
            cpus: host::own_cpus(),
        });
        self.tally.end_offering(now_ns.min(self.end_ns));
        self.count_missing(now_ns.min(self.end_ns));
        // Requests that came due while this thread was waking up, and for which a connection is free, are late, not missing. A request that fails at once frees
        // its connection, so their number is limited.
        let connections = if self.shared.is_aborted() { 0 } else { self.slots.len() };
        let _ = (0..connections).take_while(|_| self.start_scheduled(now_ns)).count();
        if let Pace::Open { schedule, .. } = &self.pace {
            let end_ns = self.end_ns.min(now_ns);
            let unsent = schedule.unsent(end_ns);
            let before = schedule.unsent(self.warm_ns).min(unsent);
            // The latencies are evenly spaced, so they can be recorded in steps: a million of them must not take a second.
            let step = unsent.div_ceil(NEVER_SENT_STEPS).max(1);
            for first in (before..unsent).step_by(step as usize) {
                self.tally.never_sent(step.min(unsent - first), end_ns.saturating_sub(schedule.unsent_ns(first)));
            }
        }
        slot::sample_tcp(&mut self.tally.tcp_info, &self.slots);
        for slot in self.slots.iter_mut().filter(|slot| slot.phase == Phase::Idle) {
            slot.close();
        }
    }

    /// Starts due requests, at most [`STARTS_MAX`].
    fn start_due(&mut self, now_ns: u64) {
        for _ in 0..STARTS_MAX {
            match &mut self.pace {
                Pace::Closed { fresh, pauses, .. } => {
                    let Some(index) = fresh.pop(now_ns).or_else(|| pauses.pop(now_ns)) else { return };
                    self.start_next(index, self.clock.now_ns());
                    if self.all_started {
                        return;
                    }
                }
                Pace::Open { schedule, .. } => {
                    if schedule.next_ns().is_none() {
                        self.all_started = true;
                        return;
                    }
                    if !self.start_scheduled(self.clock.now_ns()) {
                        return;
                    }
                }
            }
        }
    }

    /// Open loop: starts the next scheduled request if it is due, lies before the end and a connection is free.
    fn start_scheduled(&mut self, now_ns: u64) -> bool {
        let Pace::Open { schedule, idle, closed } = &mut self.pace else { return false };
        let Some(intended_ns) = schedule.next_ns().filter(|intended_ns| *intended_ns <= now_ns && *intended_ns < self.end_ns) else {
            return false;
        };
        let Some(index) = idle.pop().or_else(|| closed.pop()) else {
            self.is_waiting_for_connection = true;
            return false;
        };
        let number = schedule.number();
        schedule.advance();
        if now_ns - intended_ns <= LATE_NS {
            self.is_waiting_for_connection = false;
        } else if intended_ns >= self.warm_ns {
            self.tally.late += 1;
            self.tally.late_held += u64::from(self.is_waiting_for_connection);
        }
        if let Some(ended) = self.start(index, number, now_ns, intended_ns) {
            self.end(index, &ended, self.clock.now_ns());
            self.free(index);
        }
        true
    }

    /// Closed loop: starts the connection's next request if one may start. Requests that fail at once are counted. The connection pauses if trying again would
    /// spin.
    #[inline(always)]
    fn start_next(&mut self, index: u32, mut now_ns: u64) {
        loop {
            if now_ns >= self.end_ns || (now_ns >= self.warm_ns && !self.claim(index)) {
                slot::sample_tcp(&mut self.tally.tcp_info, &self.slots);
                self.slots[index as usize].close();
                return;
            }
            let Pace::Closed { number, .. } = &mut self.pace else { return };
            let ours = std::mem::replace(number, *number + u64::from(self.shared.threads));
            let Some(ended) = self.start(index, ours, now_ns, now_ns) else { return };
            now_ns = self.clock.now_ns();
            self.end(index, &ended, now_ns);
            if self.pause(index, &ended, now_ns) {
                return;
            }
        }
    }

    /// Closed loop: takes one of the remaining requests; false if there is none.
    #[inline(always)]
    fn claim(&mut self, index: u32) -> bool {
        let Pace::Closed { fresh, claimed, .. } = &mut self.pace else { return false };
        if *claimed == 0 {
            // At first a thread claims no more than its connections need. Others would lack them if no request is answered before all are open.
            let is_first = self.slots[index as usize].carried == 0;
            *claimed = self.shared.claim(if is_first { fresh.left() + 1 } else { u64::MAX });
            self.all_started |= *claimed == 0;
        }
        let is_left = *claimed > 0;
        *claimed = claimed.saturating_sub(1);
        is_left
    }

    /// Starts the request with this number. Returns its end if it ends at once.
    #[inline(always)]
    fn start(&mut self, index: u32, number: u64, now_ns: u64, intended_ns: u64) -> Option<Ended> {
        self.tally.start(intended_ns >= self.warm_ns, now_ns);
        self.wheel.arm(index, now_ns + self.timeout_ns);
        let slot = &mut self.slots[index as usize];
        let target = self.shared.target(number);
        slot.prepare(target, self.shared.requests[target as usize].is_head, now_ns, intended_ns);
        if slot.phase == Phase::Idle {
            slot.phase = Phase::Sending;
            let ended = self.send(index)?;
            return if self.is_stale(index, &ended) { self.open_again(index) } else { Some(ended) };
        }
        self.open(index)
    }

    /// Opens a connection and sends as much as possible. Returns the request's end if it ends at once.
    #[inline(never)]
    fn open(&mut self, index: u32) -> Option<Ended> {
        let from = self.shared.source(self.thread, index);
        let connecting = self.slots[index as usize].connect(self.shared, from);
        match &connecting {
            // Without a socket, connect() was not called.
            Err(Ended { end: RequestEnd::Failure(Failure::LocalFiles | Failure::LocalMemory), .. }) => {}
            _ => self.tally.connections += 1,
        }
        if let Err(ended) = connecting {
            return Some(ended);
        }
        // Writes before registering for events. If the first write comes too early it costs little compared to a connection, else it saves a turn.
        if let Some(ended) = self.send(index) {
            return Some(self.or_answered(index, ended));
        }
        self.slots[index as usize].register(self.poll.registry(), index).err()
    }

    /// The result of a failed write. The server may have answered before it closed, for example with 413; then that answer counts.
    fn or_answered(&mut self, index: u32, ended: Ended) -> Ended {
        if self.slots[index as usize].phase == Phase::Connecting {
            return ended;
        }
        match self.read(index) {
            SlotProgress::Ended(Ended { end: RequestEnd::Status(status), detail, .. }) => {
                // No event will report the end of a connection that cannot be written to.
                self.slots[index as usize].note_peer_closed();
                Ended { end: RequestEnd::Status(status), reusable: false, detail }
            }
            _ => ended,
        }
    }

    /// Advances a connection after an event.
    #[inline(always)]
    fn advance(&mut self, event: &Event) {
        let (index, generation) = slot_of(event.token());
        let slot = &mut self.slots[index as usize];
        if !slot.is_current(generation) {
            return self.advance_previous(index, generation, event.is_read_closed() || event.is_error());
        }
        if event.is_read_closed() {
            slot.note_peer_closed();
        }
        let readable = event.is_readable() || event.is_read_closed() || event.is_error();
        match slot.phase {
            Phase::Awaiting if readable => self.receive(index),
            Phase::Awaiting | Phase::Closed => {}
            Phase::Idle if readable => self.lose_idle(index),
            Phase::Idle => {}
            Phase::Connecting | Phase::Sending => self.go_on_sending(index, readable),
        }
    }

    /// The connection is established, or it can take more of the request.
    #[inline(never)]
    fn go_on_sending(&mut self, index: u32, readable: bool) {
        let ended = self.send(index);
        match (ended, self.slots[index as usize].phase) {
            (Some(ended), _) => {
                let ended = self.or_answered(index, ended);
                self.give_up(index, &ended);
            }
            (None, Phase::Sending | Phase::Awaiting) if readable => self.receive_again(index),
            (None, _) => {}
        }
    }

    /// Writes the request. Returns its end if that failed.
    #[inline(always)]
    fn send(&mut self, index: u32) -> Option<Ended> {
        let slot = &mut self.slots[index as usize];
        let was_connecting = slot.phase == Phase::Connecting;
        let is_last = slot.carried >= self.shared.requests_per_connection;
        let prepared = &self.shared.requests[slot.target as usize];
        let request = if is_last { &prepared.last } else { &prepared.bytes };
        let turn = slot.send(request, &mut self.tally.sent_bytes);
        if was_connecting {
            self.note_connected(index);
        }
        match turn {
            SlotProgress::Ended(ended) => Some(ended),
            SlotProgress::Waiting | SlotProgress::Again if self.slots[index as usize].is_stuck() && !was_connecting => {
                self.slots[index as usize].watch_writes(self.poll.registry(), index).err()
            }
            SlotProgress::Waiting | SlotProgress::Again => None,
        }
    }

    /// The connection was established, or its TLS handshake completed.
    #[inline(never)]
    fn note_connected(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        let (started_ns, is_ready) = (slot.started_ns, slot.phase != Phase::Connecting);
        let mut connect_from_ns = Some(started_ns).filter(|_| is_ready);
        if let Some(tls) = slot.tls() {
            connect_from_ns = Some(started_ns).filter(|_| tls.is_connected() && tls.connected_ns == 0);
            let now_ns = self.clock.now_ns();
            if connect_from_ns.is_some() {
                tls.connected_ns = now_ns;
            }
            if is_ready {
                let handshakes = &mut self.tally.handshakes;
                *(if tls.is_resumed() { &mut handshakes.resumed } else { &mut handshakes.full }) += 1;
                self.tally.tls.record_ns(now_ns - tls.connected_ns);
            }
        }
        if is_ready
            && std::mem::take(&mut slot.failures) > 0
            && let Pace::Closed { pauses, .. } = &mut self.pace
        {
            pauses.had(index, self.warm_ns, self.clock.now_ns());
        }
        if let Some(from_ns) = connect_from_ns {
            self.tally.connect.record_ns(self.clock.now_ns() - from_ns);
        }
    }

    #[inline(always)]
    fn read(&mut self, index: u32) -> SlotProgress {
        self.slots[index as usize].receive(&mut self.buffer, &mut self.scratch, &mut self.tally.received_bytes)
    }

    #[inline(always)]
    fn receive(&mut self, index: u32) {
        if !self.slots[index as usize].is_in_flight() {
            return;
        }
        match self.read(index) {
            SlotProgress::Waiting => self.note_first_byte(index),
            SlotProgress::Again => {
                self.note_first_byte(index);
                self.again.push(index);
            }
            SlotProgress::Ended(ended) => self.conclude(index, &ended),
        }
    }

    /// [`Engine::receive`] for rare callers.
    #[inline(never)]
    fn receive_again(&mut self, index: u32) {
        self.receive(index);
    }

    /// Records the time of the first byte of an incomplete answer, unless an earlier turn did.
    #[inline(never)]
    fn note_first_byte(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        if slot.begun && slot.first_byte_ns == 0 {
            slot.first_byte_ns = self.clock.now_ns();
            self.tally.begin_answer();
        }
    }

    /// Open loop: the server closed an idle connection, or sent bytes on it.
    #[inline(never)]
    fn lose_idle(&mut self, index: u32) {
        match self.slots[index as usize].is_unexpectedly_readable(&mut self.buffer) {
            None => return,
            Some(true) => self.tally.note("the server sent bytes on an idle connection"),
            Some(false) => {}
        }
        let Pace::Open { idle, closed, .. } = &mut self.pace else { return };
        let position = self.slots[index as usize].idle_position as usize;
        idle.swap_remove(position);
        if let Some(&moved) = idle.get(position) {
            self.slots[moved as usize].idle_position = position as u32;
        }
        self.slots[index as usize].close();
        closed.push(index);
    }

    /// [`Engine::conclude`] for rare callers.
    #[inline(never)]
    fn give_up(&mut self, index: u32, ended: &Ended) {
        self.conclude(index, ended);
    }

    /// Ends the request and starts the connection's next one.
    #[inline(always)]
    fn conclude(&mut self, index: u32, ended: &Ended) {
        if self.is_stale(index, ended) {
            if let Some(ended) = self.open_again(index) {
                self.give_up(index, &ended);
            }
            return;
        }
        // The end of one request is the start of the next, so the clock is read once for both.
        let now_ns = self.clock.now_ns();
        self.end(index, ended, now_ns);
        if matches!(self.pace, Pace::Open { .. }) {
            self.free(index);
        } else if !self.pause(index, ended, now_ns) {
            self.start_next(index, now_ns);
        }
    }

    /// Counts the request's end, and closes or keeps its connection.
    #[inline(always)]
    fn end(&mut self, index: u32, ended: &Ended, now_ns: u64) {
        self.end_due_slices(now_ns);
        if now_ns >= self.end_ns {
            slot::sample_tcp(&mut self.tally.tcp_info, &self.slots);
        }
        let slot = &mut self.slots[index as usize];
        // A complete answer may still be too late: answers come more often than the wheel checks deadlines.
        let is_overdue = matches!(ended.end, RequestEnd::Status(_)) && now_ns - slot.started_ns > self.timeout_ns;
        let overdue = is_overdue.then(|| Ended::failed(Failure::ResponseTimeout, Detail::None));
        let ended = overdue.as_ref().unwrap_or(ended);
        let latency_ns = now_ns - slot.intended_ns;
        if slot.first_byte_ns != 0 {
            self.tally.end_answer();
        }
        if slot.intended_ns < self.warm_ns {
            self.tally.end_of_warm_up(ended, now_ns, (self.warm_ns..self.end_ns).contains(&now_ns));
        } else {
            for (over, &limit_ns) in self.over.iter_mut().zip(&self.limits_ns) {
                *over += u64::from(latency_ns >= limit_ns);
            }
            self.tally.end(ended, latency_ns, now_ns, now_ns >= self.end_ns);
            if slot.first_byte_ns != 0 {
                self.tally.in_pieces(
                    slot.first_byte_ns.saturating_sub(slot.intended_ns),
                    latency_ns,
                    matches!(ended.end, RequestEnd::Status(_)),
                );
            }
        }
        let keeps = self.shared.plan.keep_alive && slot.carried < self.shared.requests_per_connection;
        let is_kept = ended.reusable && keeps;
        if is_kept && now_ns < self.end_ns {
            slot.phase = Phase::Idle;
        } else if matches!(ended.end, RequestEnd::Status(_)) && !is_kept {
            self.close_answered(index, now_ns);
        } else {
            // If the server was not asked to close it: a worker that it keeps could serve a connection that still waits.
            slot.close();
        }
    }

    /// Closed loop: pauses the connection if connecting failed at once.
    #[inline]
    fn pause(&mut self, index: u32, ended: &Ended, now_ns: u64) -> bool {
        let (Pace::Closed { pauses, .. }, RequestEnd::Failure(failure)) = (&mut self.pace, ended.end) else { return false };
        let slot = &mut self.slots[index as usize];
        if !failure.is_immediate() {
            return false;
        }
        slot.failures = slot.failures.saturating_add(1);
        pauses.add(index, slot.failures, now_ns);
        if matches!(failure, Failure::ConnectRefused | Failure::ConnectFailed) {
            pauses.miss(index, now_ns);
        }
        true
    }
}
