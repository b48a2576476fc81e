//! What the threads of one load share: rendered requests, the end of the load, the requests left to start, the guards.

use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::engine::closing::ServerEnds;
use crate::engine::control::Control;
use crate::limits::guard::GuardWatch;
use crate::plan::{Plan, Protocol};
use crate::protocol::fastcgi;
use crate::protocol::request;
use crate::protocol::tls::Client;

/// Maximum number of requests claimed at once.
const CLAIM_MAX: u64 = 64;

/// Methods of which a second request does what one does (RFC 9110, 9.2.2).
const IDEMPOTENT: [&str; 6] = ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"];

/// A rendered request.
pub(crate) struct Prepared {
    pub(crate) bytes: Vec<u8>,
    /// The last request of a connection with a limited number of requests; empty without such a limit.
    pub(crate) last: Vec<u8>,
    /// The method is HEAD, so its answer has no body.
    pub(crate) is_head: bool,
    /// The method does no harm if the server gets the request twice.
    pub(crate) is_idempotent: bool,
}

/// The shared state of one load.
pub(crate) struct Shared<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) control: &'a Control,
    /// The rendered requests, one for each target.
    pub(crate) requests: Vec<Prepared>,
    /// Maximum number of requests on one connection.
    pub(crate) requests_per_connection: u32,
    /// Requests whose intended start is earlier are not counted.
    pub(crate) warm_ns: u64,
    pub(crate) threads: u32,
    /// No request starts at or after this. It only ever decreases.
    end_ns: AtomicU64,
    /// Requests of a closed loop that no thread has claimed yet.
    unclaimed: Option<AtomicU64>,
    pub(crate) watch: Option<Mutex<GuardWatch>>,
    pub(crate) tls: Option<Client>,
    /// Whether the server ends its connections by itself.
    pub(crate) server_ends: ServerEnds,
    /// Requests in flight are no longer awaited.
    is_abandoned: AtomicBool,
}

impl<'a> Shared<'a> {
    /// The error is that of the TLS configuration.
    pub(crate) fn new(plan: &'a Plan, control: &'a Control, threads: u32) -> Result<Self, String> {
        // Ports of several addresses are not unique.
        let exchanges = control.begin_exchanges(plan.options.tls.is_some() && plan.options.bind.is_empty());
        let tls = plan.options.tls.as_ref().map(|tls| Client::new(tls, exchanges)).transpose()?;
        Ok(Shared {
            plan,
            control,
            requests: match &plan.options.targets {
                None => vec![prepare(plan)],
                Some(targets) => targets.plans(plan).map(|plan| prepare(&plan)).collect(),
            },
            requests_per_connection: plan.options.requests_per_connection.unwrap_or(u32::MAX),
            warm_ns: plan.options.warm_up.as_nanos() as u64,
            threads,
            end_ns: AtomicU64::new(planned_end_ns(plan)),
            unclaimed: plan.requests.map(AtomicU64::new),
            watch: (!plan.guards.is_empty()).then(|| Mutex::new(GuardWatch::new(&plan.guards, threads as usize))),
            tls,
            server_ends: ServerEnds::default(),
            is_abandoned: AtomicBool::new(false),
        })
    }

    /// End of the load, as currently known.
    pub(crate) fn end_ns(&self) -> u64 {
        self.end_ns.load(Ordering::Relaxed)
    }

    /// Whether the load was ended before the planned time.
    pub(crate) fn is_ended_early(&self) -> bool {
        self.end_ns() < planned_end_ns(self.plan)
    }

    /// Ends the load now, unless it has ended.
    pub(crate) fn end_at(&self, now_ns: u64) {
        self.end_ns.fetch_min(now_ns, Ordering::Relaxed);
    }

    /// Gives up the requests in flight.
    pub(crate) fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_aborted(&self) -> bool {
        self.control.is_aborted() || self.is_abandoned.load(Ordering::Relaxed)
    }

    /// Index of the rendered request to send as the request with this number (counted over all threads).
    pub(crate) fn target(&self, number: u64) -> u32 {
        match &self.plan.options.targets {
            None => 0,
            Some(targets) => targets.pick(number),
        }
    }

    /// Source address of a thread's connection, if the plan has any. The addresses are spread evenly over all connections.
    pub(crate) fn source(&self, thread: usize, index: u32) -> Option<IpAddr> {
        let bind = &self.plan.options.bind;
        let connection = index as usize * self.threads as usize + thread;
        connection.checked_rem(bind.len()).map(|place| bind[place])
    }

    /// Claims up to `at_most` requests. Near the end it claims only a few, so that no thread is left with many. Zero: all are claimed.
    pub(crate) fn claim(&self, at_most: u64) -> u64 {
        let Some(unclaimed) = &self.unclaimed else { return u64::MAX };
        let part = |left: u64| (left / (u64::from(self.threads) * 8)).clamp(1, CLAIM_MAX).min(left).min(at_most);
        unclaimed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left - part(left))).map_or(0, part)
    }
}

fn prepare(plan: &Plan) -> Prepared {
    Prepared {
        bytes: render(plan, plan.keep_alive),
        last: if plan.options.requests_per_connection.is_some() { render(plan, false) } else { Vec::new() },
        is_head: plan.method == "HEAD",
        is_idempotent: IDEMPOTENT.contains(&plan.method.as_str()),
    }
}

fn render(plan: &Plan, keep_alive: bool) -> Vec<u8> {
    match &plan.protocol {
        Protocol::Http => request::render(plan, keep_alive),
        Protocol::FastCgi { params } => fastcgi::render(plan, params, keep_alive),
    }
}

/// A load with only a number of requests has no end time.
fn planned_end_ns(plan: &Plan) -> u64 {
    plan.duration.map_or(u64::MAX, |duration| (plan.options.warm_up + duration).as_nanos() as u64)
}
