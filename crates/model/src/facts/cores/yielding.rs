//! Programs that have a core only while the servers leave it: what they use is nothing that the servers lack.

use crate::facts::harm::NOISE_SHARE;
use crate::observation::BusyProcess;

/// Weight of a nice value against the next one (sched(7): each step is worth a tenth of the time; kernel/sched/core.c, sched_prio_to_weight).
const STEP: f64 = 1.25;
/// Weight of a program of the class SCHED_IDLE, where that of nice 0 is one (kernel/sched/sched.h, WEIGHT_IDLEPRIO).
const IDLE_WEIGHT: f64 = 3.0 / 1024.0;

/// Weight of a real-time program against an ordinary one: the kernel leaves a twentieth of the time to those (sched_rt_runtime_us, 950,000 of 1,000,000; sched(7)).
const REALTIME_WEIGHT: f64 = 19.0;

fn weight_of_nice(nice: i32) -> f64 {
    STEP.powi(-nice)
}

fn weight(process: &BusyProcess) -> f64 {
    if process.is_idle_class { IDLE_WEIGHT } else { weight_of_nice(process.nice) }
}

/// The weight of a process where it meets another one, that of the other being one. `None` where they meet as parts of groups whose shares are not read. A real-time program runs
/// before every ordinary one.
fn weight_against(process: &BusyProcess, other: &BusyProcess) -> Option<f64> {
    if process.realtime.is_some() && other.realtime.is_none() {
        return Some(REALTIME_WEIGHT);
    }
    if process.task_group.is_none() || process.task_group != other.task_group {
        return None;
    }
    match (process.session, other.session) {
        (mine, others) if mine == others => Some(weight(process) / weight(other)),
        (Some(_), Some(_)) => Some(weight_of_nice(process.session_nice?) / weight_of_nice(other.session_nice?)),
        _ => None,
    }
}

/// The weight of a program against these servers: that of its heaviest reading against the lightest server. `None` where it was not read, of either.
fn weight_of(readings: &[&BusyProcess], servers: &[&BusyProcess]) -> Option<f64> {
    let mut heaviest: Option<f64> = None;
    for process in readings {
        for server in servers {
            let weight = weight_against(process, server)?;
            heaviest = Some(heaviest.map_or(weight, |heaviest| heaviest.max(weight)));
        }
    }
    heaviest
}

/// The cores that a program used, and its readings.
pub(super) type Used<'a> = (f64, Vec<&'a BusyProcess>);

/// The programs without those that yield: together these would take less than noise of the time on `cores` from servers that always had work.
pub(super) fn without_yielding<'a>(used: Vec<Used<'a>>, servers: &[&BusyProcess], cores: f64) -> Vec<Used<'a>> {
    let mut weighed: Vec<(f64, Used<'a>)> = Vec::new();
    let mut takers = Vec::new();
    for (used, readings) in used {
        match weight_of(&readings, servers) {
            // As many of its threads as it used cores had work, at least one.
            Some(weight) => weighed.push((weight * used.max(1.0) / cores, (used, readings))),
            None => takers.push((used, readings)),
        }
    }
    weighed.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let mut sum = 0.0;
    for (weight, program) in weighed {
        sum += weight;
        if sum / (1.0 + sum) >= NOISE_SHARE {
            takers.push(program);
        }
    }
    takers
}
