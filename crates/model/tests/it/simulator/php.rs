//! nginx in front of php-fpm with any of five coupled faults and a decoy: a full table, too few children, short accept queues, too few ports to the
//! upstream, and a port search that burns CPU.

use super::{Cure, Found, Settings, Truth, World};
use chokepoint_model::report::{Role, Signal};

/// The five settings in the order of the path: 0 is faulty, 1 is right.
pub(crate) const FAULTS: [&str; 5] = ["table", "children", "queues", "ports", "reuse"];
/// Requests a second if only the CPU limits.
pub(crate) const BEST_RPS: f64 = 6_000.0;
/// The p99 objective, microseconds.
pub(crate) const OBJECTIVE_US: u64 = 1_900_000;

/// An extra besides the faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decoy {
    None,
    /// A cause whose remedy does nothing.
    Idle,
    /// A remedy that fixes its cause and reduces goodput.
    Harmful,
    /// A remedy that cannot be applied.
    NotApplicable,
    /// A remedy that does nothing and cannot be undone.
    NotUndone,
    /// Kept connections with three lengths. A longer one gives more goodput and more delay. Each ends the port search too.
    Front,
    /// The same lengths as an improvement, reported once nothing is wrong. With the longest, clients without a kept connection time out.
    Improvement,
    /// The number of children is raised in two steps.
    Steps,
}

pub(crate) struct Php {
    /// Bit n set: fault n is present.
    pub(crate) faults: u32,
    pub(crate) decoy: Decoy,
    /// The fault of the ports is visible before the one of the children is fixed.
    pub(crate) early: bool,
    /// The decoy comes before the causes.
    pub(crate) first: bool,
    /// Causes are listed in reverse order.
    pub(crate) reverse: bool,
}

fn refusals(station: &str) -> Signal {
    Signal::Refusals { station: station.to_owned() }
}

fn cure(id: &str, sets: &[(&str, u32)], signal: Signal) -> Cure {
    Cure { id: id.to_owned(), sets: sets.iter().map(|(key, to)| ((*key).to_owned(), *to)).collect(), signal, group: None, starved_s: None }
}

fn found(id: &str, station: &str, role: Role, remedies: Vec<Cure>) -> Found {
    Found { id: id.to_owned(), station: station.to_owned(), role, remedies }
}

impl Php {
    /// Requests a second that the children can answer.
    fn children_rps(children: u32) -> f64 {
        match children {
            0 => 250.0,
            2 => 2_500.0,
            _ => f64::INFINITY,
        }
    }

    fn decoy(&self, settings: &Settings, truth: &mut Truth, is_open: bool) {
        let is_off = settings["decoy"] == 0;
        let found = match self.decoy {
            Decoy::None | Decoy::Steps => return,
            Decoy::Idle | Decoy::NotUndone => {
                found("idle", "decoy", Role::Cause, vec![cure("do-nothing", &[("decoy", 1)], Signal::Goodput)])
            }
            Decoy::NotApplicable => found("far", "decoy", Role::Cause, vec![cure("out-of-reach", &[("decoy", 1)], Signal::Goodput)]),
            Decoy::Harmful => {
                truth.goodput_rps *= if is_off { 1.0 } else { 0.6 };
                truth.refusals.insert("decoy".to_owned(), if is_off { 100.0 } else { 0.0 });
                found("harmless", "decoy", Role::Cause, vec![cure("do-harm", &[("decoy", 1)], refusals("decoy"))])
            }
            Decoy::Front | Decoy::Improvement => {
                if !is_open {
                    return;
                }
                let starves = self.decoy == Decoy::Improvement;
                let (times, p99, failed) = match settings["decoy"] {
                    0 => (1.0, 0.0, 0.0),
                    5 => (1.2, 0.0, 0.0),
                    20 => (1.4, 500_000.0, 0.0),
                    // One request in a thousand: far below the noise of a share, and a client that gets nothing all the same.
                    _ if starves => (1.5, 2_000_000.0, 0.001),
                    _ => (1.5, 2_500_000.0, 0.0),
                };
                truth.goodput_rps *= times;
                truth.failed_rps += failed * truth.goodput_rps;
                truth.latency_us_p99 = truth.latency_us_p99.max(p99);
                let one = |length: u32| Cure {
                    group: Some("keep".to_owned()),
                    starved_s: Some(1.0),
                    ..cure(&format!("keep-{length}"), &[("decoy", length)], Signal::Goodput)
                };
                let churn = found("churn", "edge", Role::Cause, vec![one(5), one(20), one(100)]);
                if starves {
                    truth.improvements.extend((is_off && truth.causes().is_empty()).then_some(churn));
                    return;
                }
                churn
            }
        };
        if is_off {
            let place = if self.first { 0 } else { truth.findings.len() };
            truth.findings.insert(place, found);
        }
    }
}

impl World for Php {
    fn start(&self) -> Settings {
        let bit = |place: usize| u32::from(self.faults & (1 << place) == 0);
        let faults = FAULTS.iter().enumerate().map(|(place, key)| ((*key).to_owned(), bit(place)));
        faults.chain([("backlog".to_owned(), bit(2)), ("decoy".to_owned(), 0)]).collect()
    }

    fn truth(&self, settings: &Settings) -> Truth {
        let bad = |key: &str| settings[key] == 0;
        let mut truth = Truth { goodput_rps: BEST_RPS, latency_us_p99: 45_000.0, ..Truth::default() };
        if bad("table") {
            truth = Truth { goodput_rps: 15.0, failed_rps: 130.0, latency_us_p99: 2_000_000.0, ..Truth::default() };
            truth.refusals.insert("table".to_owned(), 300.0);
            let raise = cure("raise-table", &[("table", 1)], refusals("table"));
            truth.findings.push(found("table-full", "table", Role::Cause, vec![raise]));
            self.decoy(settings, &mut truth, false);
            return truth;
        }
        let short = bad("queues") || bad("backlog");
        let limited = Self::children_rps(settings["children"]) < BEST_RPS;
        if limited {
            truth.goodput_rps = Self::children_rps(settings["children"]);
            (truth.failed_rps, truth.latency_us_p99) = (400.0, 2_000_000.0);
            let to = if self.decoy == Decoy::Steps && settings["children"] == 0 { 2 } else { 1 };
            let raise = cure("raise-children", &[("children", to)], Signal::Goodput);
            truth.findings.push(found("children-busy", "pool", Role::Cause, vec![raise]));
        }
        if short {
            truth.goodput_rps *= 0.8;
            truth.latency_us_p99 = 1_950_000.0;
            truth.refusals.insert("queue".to_owned(), 2_000.0);
            let role = if limited { Role::Symptom } else { Role::Cause };
            let lengthen = cure("lengthen-queues", &[("backlog", 1), ("queues", 1)], refusals("queue"));
            truth.findings.push(found("queue-full", "queue", role, vec![lengthen]));
        }
        if bad("ports") {
            // Long queues let requests fail faster. The failures take CPU from good answers.
            let failing = if short { 1_500.0 } else { 20_000.0 };
            truth.goodput_rps = truth.goodput_rps.min(2_000.0) * if short { 1.0 } else { 0.45 };
            truth.failed_rps += failing;
            truth.refusals.insert("ports".to_owned(), failing);
            if !limited || self.early {
                let widen = cure("widen-range", &[("ports", 1)], refusals("ports"));
                truth.findings.push(found("ports-used-up", "ports", Role::Cause, vec![widen]));
            }
        } else if bad("reuse") && settings["children"] != 0 && settings["decoy"] < 5 {
            // Only a high rate of connections fills the range with TIME_WAIT. Kept connections are few.
            truth.goodput_rps = 140.0;
            truth.failed_rps = 0.0;
            // At that rate the children are idle.
            truth.findings.retain(|found| found.id != "children-busy");
            truth.latency_us_p99 = truth.latency_us_p99.max(900_000.0);
            let reuse = cure("reuse-time-wait", &[("reuse", 1)], Signal::Goodput);
            truth.findings.push(found("port-search", "ports", Role::Cause, vec![reuse]));
        }
        if self.reverse {
            truth.findings.reverse();
        }
        truth.findings.sort_by_key(|found| found.role == Role::Symptom);
        let is_open = !limited && !bad("ports");
        self.decoy(settings, &mut truth, is_open);
        truth
    }

    fn apply_fails(&self, remedy: &str) -> bool {
        remedy == "out-of-reach"
    }

    fn undo_fails(&self, remedy: &str) -> bool {
        self.decoy == Decoy::NotUndone && remedy == "do-nothing"
    }
}
