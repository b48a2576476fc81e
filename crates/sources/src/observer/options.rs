//! What is observed and within which bounds, and why an observation could not begin.

use std::io;

use chokepoint_model::observation::{NetnsId, Request};

use super::stop::Stop;
use super::under_way::UnderWay;
use crate::netns::NetnsError;
use crate::root::Root;

/// What is observed and within which bounds.
#[derive(Debug, Clone)]
pub struct ObserveOptions {
    /// Where the host's files are.
    pub root: Root,
    /// The target, and the namespaces of client and server. A client namespace of zero is the caller's own.
    pub request: Request,
    /// Further targets, watched in the same readings.
    pub also: Vec<Request>,
    /// Most bytes to keep. Beyond them readings are thinned, the most frequent ones first, and the result says so.
    pub bound_bytes: usize,
    /// True for an observation without an end, whose owner calls [`Observer::drain`](super::Observer::drain). It begins while its owner goes on, and forgets the
    /// processes of the path that ended.
    pub endless: bool,
    /// Counts the requests that a load of this process has under way at any moment.
    pub under_way: Option<UnderWay>,
    /// Once it is set, everything ends as soon as it can: what was not read by then is missing.
    pub stop: Stop,
}

impl ObserveOptions {
    /// Default of `bound_bytes`.
    pub const BOUND_BYTES: usize = 64 << 20;
    /// The same for an observation without an end, which is drained every second.
    const BOUND_ENDLESS_BYTES: usize = 16 << 20;

    /// The running host within the usual bounds.
    pub fn new(request: Request) -> Self {
        Self {
            root: Root::default(),
            request,
            also: Vec::new(),
            bound_bytes: Self::BOUND_BYTES,
            endless: false,
            under_way: None,
            stop: Stop::default(),
        }
    }

    /// The same without an end, for a caller that drains it.
    pub fn endless(request: Request, also: Vec<Request>) -> Self {
        Self { endless: true, also, bound_bytes: Self::BOUND_ENDLESS_BYTES, ..Self::new(request) }
    }
}

/// Why an observation could not begin.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// The namespaces, or the caller's own one, could not be read.
    #[error(transparent)]
    Netns(#[from] NetnsError),
    /// The request names a namespace that does not exist.
    #[error("the {whose} network namespace {id} is not on this host, or this user may not see it")]
    UnknownNetns {
        /// "client's" or "server's".
        whose: &'static str,
        /// Its number.
        id: NetnsId,
    },
    /// A thread could not be started.
    #[error("a thread for the observation cannot be started: {0}")]
    Thread(io::Error),
}
