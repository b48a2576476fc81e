//! What the threads of an observer tell each other: jobs for readers, their replies, and events for the sampler.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use chokepoint_model::observation::Request;
use chokepoint_recording::{Entry, Outcome, Scope};

use super::schedule::ReadCost;
use super::socket_owners::PidsBySocket;
use super::stop::Stop;
use super::under_way::UnderWay;
use crate::clock::Clock;
use crate::root::Root;
use crate::table::{Notes, Phase, Source};

/// One source to read for one scope.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadOrder {
    pub(super) source: &'static Source,
    pub(super) scope: Scope,
    pub(super) phase: Phase,
}

/// Reads that a reader repeats until another job comes.
#[derive(Debug)]
pub(super) struct Repetition {
    pub(super) orders: Vec<ReadOrder>,
    /// The turns are at whole multiples of this.
    pub(super) period_us: u64,
    /// The end of the repetition.
    pub(super) until_us: u64,
}

/// Work for a reader.
#[derive(Debug)]
pub(super) enum ReaderJob {
    /// Read these, in this order; then repeat the others.
    Read(Vec<ReadOrder>, Option<Repetition>),
    /// Find the processes that hold these sockets; ends after about so many descriptors.
    Hold(BTreeSet<u64>, usize),
    /// Make one connection to this address and close it.
    Connect(SocketAddr),
}

/// The result of one order.
#[derive(Debug)]
pub(super) struct ReadResult {
    pub(super) order: ReadOrder,
    pub(super) entries: Vec<Entry>,
    /// CPU time, microseconds.
    pub(super) cost_us: u64,
}

impl ReadResult {
    /// The cost, for the schedule.
    pub(super) fn cost(&self) -> ReadCost {
        let is_there = |entry: &Entry| matches!(&entry.outcome, Outcome::Ok(bytes) if !bytes.is_empty() && bytes.as_slice() != b"0\n");
        let is_first = self.order.phase != Phase::Running;
        ReadCost { source: self.order.source, cost_us: self.cost_us, is_there: self.entries.iter().any(is_there), is_first }
    }
}

/// A reader's answer to a job.
#[derive(Debug)]
pub(super) struct ReaderReply {
    /// The scope of the reader: the host or its namespace.
    pub(super) reader: Scope,
    pub(super) reads: Vec<ReadResult>,
    pub(super) pids_by_socket: Option<PidsBySocket>,
    /// The namespace could not be entered. Nothing will ever be read in it.
    pub(super) shut_out: bool,
    /// CPU time of the whole job, microseconds.
    pub(super) cost_us: u64,
}

/// What all readers of an observation share.
#[derive(Clone)]
pub(super) struct ReaderEnvironment {
    pub(super) root: Root,
    pub(super) clock: Clock,
    pub(super) notes: Arc<Notes>,
    pub(super) events: SyncSender<SamplerEvent>,
    pub(super) under_way: Option<UnderWay>,
    pub(super) stop: Stop,
}

/// The readings of one turn; none if the server has no status page.
#[derive(Debug)]
pub(super) struct StatusTurn {
    pub(super) pid: u32,
    pub(super) phase: Phase,
    pub(super) entries: Vec<Entry>,
    /// CPU time, microseconds.
    pub(super) cost_us: u64,
}

/// An event for the sampler.
#[derive(Debug)]
pub(super) enum SamplerEvent {
    /// A reader is done.
    Reply(ReaderReply),
    /// A server was polled for its status page.
    StatusTurn(StatusTurn),
    /// An entry that is no reading.
    Note(Entry),
    /// From now on follow the paths of these requests, at least one.
    Follow(Vec<Request>),
    /// Hand over all entries so far.
    Drain(SyncSender<Vec<Entry>>),
    /// Take the last readings and end.
    Finish,
    /// End without the entries.
    Abandon,
}
