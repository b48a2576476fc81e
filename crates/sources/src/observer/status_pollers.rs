//! Threads that poll servers for their status pages, one for each master. They wait for responses, which no other reader does.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use chokepoint_recording::{Entry, Scope};

use super::messages::{ReaderEnvironment, SamplerEvent, StatusTurn};
use crate::clock::thread_cpu_us;
use crate::netns::enter::{EnteredNetns, spawn_inside};
use crate::netns::{NetnsError, of_process};
use crate::servers::status::SERVER_STATUS;
use crate::table::{Phase, ReadContext};

/// Time between two polls. The polls must not become a load of their own.
const PERIOD: Duration = Duration::from_secs(1);
/// Most servers to poll.
const SERVERS_MAX: usize = 16;

struct StatusPoller {
    /// A message in it asks for the last turn.
    last: SyncSender<()>,
    thread: JoinHandle<()>,
    /// It has reported its first turn.
    began: bool,
}

/// All polling threads.
#[derive(Default)]
pub(super) struct StatusPollers {
    by_pid: BTreeMap<u32, StatusPoller>,
}

impl StatusPollers {
    /// Begins to poll a server, if it is not polled yet.
    pub(super) fn start(&mut self, shared: &ReaderEnvironment, pid: u32) {
        if self.by_pid.contains_key(&pid) || self.by_pid.len() >= SERVERS_MAX || !shared.root.is_live() {
            return;
        }
        let (last, inbox) = sync_channel(1);
        let to = shared.clone();
        let work = move |inside: Result<&EnteredNetns, NetnsError>| poll(&to, pid, inside.ok(), &inbox);
        let thread = match of_process(&shared.root, pid) {
            Ok(netns) => spawn_inside(netns, shared.root.clone(), work).ok(),
            // A page behind a unix socket can still be polled.
            Err(error) => std::thread::Builder::new().name(format!("server {pid}")).spawn(move || work(Err(error))).ok(),
        };
        if let Some(thread) = thread {
            self.by_pid.insert(pid, StatusPoller { last, thread, began: false });
        }
    }

    /// Polls a server no more. Its thread ends by itself, after the turn that is under way.
    pub(super) fn forget(&mut self, pid: u32) {
        self.by_pid.remove(&pid);
    }

    /// Notes that a turn was reported.
    pub(super) fn reported(&mut self, turn: &StatusTurn) {
        if let Some(poller) = self.by_pid.get_mut(&turn.pid) {
            poller.began = true;
        }
    }

    /// True while a poller has not reported its first turn.
    pub(super) fn begin(&self) -> bool {
        self.by_pid.values().any(|poller| !poller.began && !poller.thread.is_finished())
    }

    /// Asks all of them for their last turn.
    pub(super) fn finish(&self) {
        for poller in self.by_pid.values() {
            // A poller that has ended needs no message.
            let _ = poller.last.try_send(());
        }
    }

    /// Waits for all of them. Each waits for its server within its own time limit.
    pub(super) fn join(self) {
        for poller in self.by_pid.into_values() {
            let _ = poller.thread.join();
        }
    }
}

/// Polls once a second until the last turn, or until nobody listens any more.
fn poll(shared: &ReaderEnvironment, pid: u32, inside: Option<&EnteredNetns>, inbox: &Receiver<()>) {
    let mut phase = Phase::First;
    loop {
        let scope = Scope::Process(pid);
        let own = ReadContext::new(&shared.root, scope, phase, &shared.notes);
        let context = inside.map_or(own, |inside| ReadContext { scope, ..inside.context(&shared.root, &shared.notes, phase) });
        let (at_us, from_us) = (shared.clock.now_us(), thread_cpu_us());
        let entry = |(item, outcome)| Entry { at_us, source: SERVER_STATUS.name.to_owned(), scope, item, outcome };
        let entries: Vec<Entry> = (SERVER_STATUS.read)(&context).into_iter().map(entry).collect();
        let ends = entries.is_empty() || phase == Phase::Last;
        let cost_us = thread_cpu_us().saturating_sub(from_us);
        if shared.events.send(SamplerEvent::StatusTurn(StatusTurn { pid, phase, entries, cost_us })).is_err() || ends {
            return;
        }
        phase = match inbox.recv_timeout(PERIOD) {
            Ok(()) => Phase::Last,
            Err(RecvTimeoutError::Timeout) => Phase::Running,
            Err(RecvTimeoutError::Disconnected) => return,
        };
    }
}
