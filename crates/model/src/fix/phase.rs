//! What the phases of a session remember: the attempts and the trial of the chain, and the changes that were left out.

use std::collections::{BTreeSet, VecDeque};

use super::judge::{FindingIdentity, Judgement};
use crate::fix::change::Change;
use crate::output::report::{Diagnosis, Remedy};

/// An attempt at one remedy, with its exact changes.
pub(super) struct Attempt {
    pub(super) finding: String,
    pub(super) remedy: String,
    pub(super) change: Vec<Change>,
    pub(super) times: u32,
    /// The changes that stood when it was last rejected; `None` if it was never rejected.
    pub(super) rejected_beside: Option<Vec<u32>>,
}

/// The trial of one remedy, or of several alternatives in turn.
pub(super) struct Trial {
    pub(super) place: FindingIdentity,
    /// True if it is about an improvement and not a cause.
    pub(super) improves: bool,
    pub(super) queue: VecDeque<Remedy>,
    pub(super) results: Vec<Tried>,
    pub(super) in_force: Option<u32>,
}

/// A remedy of a trial, with its result.
pub(super) struct Tried {
    pub(super) number: u32,
    pub(super) after: Diagnosis,
    pub(super) judged: Judgement,
}

/// The state of the phase in which each change is left out.
pub(super) struct LeaveOut {
    /// The measurement with all changes. Every measurement without one is compared with it. It does not follow dropped changes, or many small losses would
    /// add up. It rises if a change was found to do harm.
    pub(super) with: Diagnosis,
    /// Changes that were left out since the last drop and are needed.
    pub(super) seen: BTreeSet<u32>,
    /// The measurement without the change that is out now, if it is to be repeated, and its round.
    pub(super) again: Option<(Diagnosis, Option<usize>)>,
    /// Changes that were dropped and did not come back, in the order of dropping.
    pub(super) dropped: Vec<u32>,
    /// True if a change was dropped because the server does better without it. This rests on one measurement, and the change stays out whatever later ones
    /// show.
    pub(super) has_better: bool,
    /// Changes that a later one replaced and that did not come back.
    pub(super) folded: Vec<u32>,
    /// The last confirmation, if it fell short and is to be repeated.
    pub(super) short: Option<Diagnosis>,
    /// True if the last measurement shows the host as it is now.
    pub(super) is_measured: bool,
    /// Improvements that are needed and stay out until the others are judged. An improvement may hide, during a measurement, what a fix is needed for.
    pub(super) held: Vec<u32>,
    pub(super) whole: Option<Diagnosis>,
    /// The measurement with all that stays but the improvements that were held, once these are back.
    pub(super) unimproved: Option<Diagnosis>,
}
