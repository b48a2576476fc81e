//! The time-driven part of the loop: deadlines, the ends of slices, connections without a request, and the wait for the next event.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use mio::Events;
use rustix::event::{PollFd, PollFlags, Timespec};

use super::{Engine, Pace};
use crate::engine::control::lock;
use crate::engine::slot::Phase;
use crate::host::{self, OwnTime};
use crate::results::outcome::{Detail, Ended, Failure};
use crate::results::series::SLICE_NS;
use crate::results::tally::EndedSlice;

/// The thread checks for a stop at least this often, nanoseconds.
const WAIT_NS_MAX: u64 = 50_000_000;
/// Below this wait, the milliseconds of epoll_wait(2) are too coarse for an intended start; nanoseconds.
const PRECISE_WAIT_NS: u64 = 2_000_000;

impl Engine<'_> {
    /// Open loop: makes the connection wait for a request.
    pub(super) fn free(&mut self, index: u32) {
        let Pace::Open { idle, closed, .. } = &mut self.pace else { return };
        let slot = &mut self.slots[index as usize];
        if slot.phase == Phase::Idle {
            slot.idle_position = idle.len() as u32;
            idle.push(index);
        } else {
            closed.push(index);
        }
    }

    /// Ends requests that have timed out.
    pub(super) fn expire(&mut self, now_ns: u64) {
        let mut due = std::mem::take(&mut self.due);
        self.wheel.expire(now_ns, &mut due);
        for index in due.drain(..) {
            let slot = &self.slots[index as usize];
            if !slot.is_in_flight() {
                continue;
            }
            let deadline_ns = slot.started_ns + self.timeout_ns;
            if deadline_ns > now_ns {
                self.wheel.arm(index, deadline_ns);
                continue;
            }
            let failure = if slot.phase == Phase::Connecting { Failure::ConnectTimeout } else { Failure::ResponseTimeout };
            self.give_up(index, &Ended::failed(failure, Detail::None));
        }
        self.due = due;
    }

    /// Ends slices that are over, and reports them to the guards.
    #[inline(always)]
    pub(super) fn end_due_slices(&mut self, now_ns: u64) {
        while let Some(slice) = self.tally.next_ended_slice(now_ns, self.shared.control) {
            self.handle_ended_slice(&slice, now_ns);
        }
    }

    #[cold]
    fn handle_ended_slice(&mut self, slice: &EndedSlice, now_ns: u64) {
        if self.warm_ns > 0 && slice.slice + 1 == self.warm_ns / SLICE_NS {
            self.tally.end_warm_up(self.warm_ns);
            (self.at_start, self.at_start_ns) = (OwnTime::now(), now_ns);
        }
        self.tally.spent(host::cpu_ns());
        self.tally.publish(self.shared.control, self.thread, slice, self.warm_ns / SLICE_NS);
        let Some(watch) = &self.shared.watch else { return };
        let mut watch = lock(watch);
        watch.report(slice.slice, slice.ended, slice.not_good, &self.over);
        self.over.fill(0);
        let older = |limit_ns: &u64| {
            let under_way = self.slots.iter().filter(|slot| slot.is_in_flight());
            under_way.filter(|slot| now_ns.saturating_sub(slot.intended_ns) >= *limit_ns).count() as u64
        };
        watch.report_pending(self.thread, self.limits_ns.iter().map(older));
    }

    /// Closed loop: counts the time until `end_ns` for which connections could not be had.
    pub(super) fn count_missing(&mut self, end_ns: u64) {
        if let Pace::Closed { pauses, .. } = &self.pace {
            self.tally.without_connection_ns = pauses.missed_ns(self.warm_ns, end_ns);
        }
    }

    /// Waits until there are events or something is due. `turn_ns`: when this turn began.
    pub(super) fn wait(&mut self, events: &mut Events, turn_ns: u64) -> io::Result<()> {
        // The waits of a closed loop are coarse, so the clock is not read again.
        let now_ns = if matches!(self.pace, Pace::Open { .. }) { self.clock.now_ns() } else { turn_ns };
        let wait_ns = self.next_ns(now_ns).saturating_sub(now_ns).min(WAIT_NS_MAX);
        let mut timeout = Duration::from_nanos(wait_ns);
        if matches!(self.pace, Pace::Open { .. }) && wait_ns > 0 {
            if wait_ns < PRECISE_WAIT_NS {
                let wait = Timespec { tv_sec: 0, tv_nsec: wait_ns as _ };
                let ready = rustix::event::poll(&mut [PollFd::from_borrowed_fd(self.poll.registry().as_fd(), PollFlags::IN)], Some(&wait));
                if ready == Ok(0) {
                    events.clear();
                    return Ok(());
                }
                timeout = Duration::ZERO;
            } else {
                // epoll_wait(2) takes milliseconds. The fraction is waited for precisely in the next turn.
                timeout = Duration::from_millis(wait_ns / 1_000_000 - 1);
            }
        }
        match self.poll.poll(events, Some(timeout)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                events.clear();
                Ok(())
            }
            result => result,
        }
    }

    /// When the next turn is due even without events.
    fn next_ns(&self, now_ns: u64) -> u64 {
        if !self.again.is_empty() {
            return now_ns;
        }
        let mut next_ns = self.tally.slice_end_ns().min(self.wheel.next_ns().unwrap_or(u64::MAX)).min(self.waits.next_ns());
        if now_ns >= self.end_ns || self.all_started {
            return next_ns;
        }
        next_ns = next_ns.min(self.end_ns);
        match &self.pace {
            Pace::Closed { fresh, pauses, .. } => fresh.next_ns().into_iter().chain(pauses.next_ns()).fold(next_ns, u64::min).max(now_ns),
            Pace::Open { idle, closed, .. } if idle.is_empty() && closed.is_empty() => next_ns,
            // After the last request the loop must turn once more to notice it.
            Pace::Open { schedule, .. } => next_ns.min(schedule.next_ns().unwrap_or(now_ns)),
        }
    }
}
