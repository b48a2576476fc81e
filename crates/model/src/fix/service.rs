//! The service that clients got in a measurement: goodput, failures and p99, and whether one of them differs between two measurements by more than equal
//! runs do.

use super::noise;
use crate::facts::harm::{FAILED_SHARE_NOISE, LATENCY_NOISE_SHARE, NOISE_SHARE};
use crate::output::report::{Diagnosis, LoadReport};

/// What counts besides goodput.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Objective {
    /// The p99 of response time that must be kept (`--slo`), microseconds; `None` if none was given.
    pub latency_us_p99: Option<u64>,
    /// The time after which a client gives a request up, microseconds, if there is one.
    pub timeout_us: Option<u64>,
}

/// Expected answers per second.
pub(super) fn goodput(diagnosis: &Diagnosis) -> f64 {
    diagnosis.load.as_ref().map_or(0.0, |load| load.goodput_rps)
}

/// Expected answers per second as far as they reach. Two measurements are compared by this figure.
pub(super) fn reaching(diagnosis: &Diagnosis) -> f64 {
    diagnosis.load.as_ref().map_or(0.0, LoadReport::reaching_rps)
}

/// Share of the clients' time that was lost; zero if the load does not say.
pub(super) fn lost_share(diagnosis: &Diagnosis) -> f64 {
    diagnosis.load.as_ref().and_then(|load| load.lost_share).unwrap_or(0.0)
}

/// Share of the requests that ended without an expected answer; 1 if none ended.
pub(super) fn failed_share(diagnosis: &Diagnosis) -> f64 {
    diagnosis.load.as_ref().and_then(|load| load.failed_share()).unwrap_or(1.0)
}

pub(super) fn p99(diagnosis: &Diagnosis) -> f64 {
    diagnosis.load.as_ref().and_then(|load| load.p99_us()).map_or(0.0, |us| us as f64)
}

/// True if hardly a request failed and p99 meets the objective. A p99 among failures says nothing, because failures may be quick.
pub(super) fn meets(diagnosis: &Diagnosis, objective: Objective) -> bool {
    let within = objective.latency_us_p99.is_none_or(|most| p99(diagnosis) <= most as f64);
    diagnosis.load.is_some() && failed_share(diagnosis) <= FAILED_SHARE_NOISE && within
}

pub(super) fn rose(before: f64, after: f64) -> bool {
    after > before * (1.0 + NOISE_SHARE)
}

pub(super) fn fell(before: f64, after: f64) -> bool {
    after < before * (1.0 - NOISE_SHARE)
}

/// True if p99 rose beyond noise. p99 is noisier than goodput.
pub(super) fn slower(before: &Diagnosis, after: &Diagnosis) -> bool {
    p99(after) > p99(before) * (1.0 + LATENCY_NOISE_SHARE)
}

pub(super) fn faster(before: &Diagnosis, after: &Diagnosis) -> bool {
    p99(after) < p99(before) * (1.0 - LATENCY_NOISE_SHARE)
}

/// Requests that ended without an expected answer, of all that ended.
pub(super) fn failures(diagnosis: &Diagnosis) -> (f64, f64) {
    let ended = diagnosis.load.as_ref().map_or(0.0, |load| load.requests as f64);
    ((failed_share(diagnosis) * ended).round(), ended)
}

/// True if requests fail that did not fail before: more than twice the share, and beyond chance. The threshold of [`fails_less`] is that of two noisy states; this is
/// asked of a change that nothing forces, and a request in a thousand that gets no answer is too many for it.
pub(super) fn fails_anew(before: &Diagnosis, after: &Diagnosis) -> bool {
    let ((was, of_before), (is, of_after)) = (failures(before), failures(after));
    if of_before <= 0.0 || of_after <= 0.0 {
        return false;
    }
    is / of_after > 2.0 * was / of_before && noise::is_more_often((was / of_before, of_before), (is / of_after, of_after))
}

/// True if at most half as many requests failed, and the difference is beyond noise.
pub(super) fn fails_less(before: &Diagnosis, after: &Diagnosis) -> bool {
    let (was, is) = (failed_share(before), failed_share(after));
    is + FAILED_SHARE_NOISE < was && 2.0 * is <= was
}
