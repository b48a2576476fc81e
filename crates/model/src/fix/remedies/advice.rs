//! Advice: what removes a cause and is told in exact words, but never applied from here, because it is not ours to decide or not known how. One
//! file and one line in [`ADVICE`] each.

use super::{ask_limit_owner, keep_cpu_quota, look_inside, mend_connections, mend_sending, raise_nofile_by_hand, spend_less_cpu};
use crate::facts::Context;
use crate::fix::change::Activation;
use crate::fix::remedy::{Remedy, Signal};
use crate::judge::finding::Finding;
use crate::judge::id::FindingId;
use crate::judge::station::StationReading;
use crate::output::message::Message;
use crate::predict::{Lift, Scene, predict};

/// A piece of advice.
pub(super) struct AdviceDef {
    /// Id, kebab-case.
    pub(super) id: &'static str,
    /// The finding whose cause it removes.
    pub(super) finding: FindingId,
    /// When it takes effect.
    pub(super) activation: Activation,
    /// The advice for this host; nothing where it does not apply.
    pub(super) advise: fn(&Context<'_>, &StationReading) -> Option<Advice>,
}

/// What is advised.
pub(super) struct Advice {
    /// What to do.
    pub(super) text: Message,
    /// What it costs and what could go wrong.
    pub(super) risk: Message,
    /// Commands that do it now.
    pub(super) runtime: Vec<String>,
    /// Lines that make it last, with the file that they belong to.
    pub(super) persistent: Vec<String>,
    /// Commands that take it back.
    pub(super) undo: Vec<String>,
    /// What will tell that it worked.
    pub(super) signal: Signal,
    /// What it lifts at the finding's station.
    pub(super) lifts: Lift,
}

impl Advice {
    /// Words alone, without commands; that they helped shows in goodput.
    pub(super) fn words(text: Message, risk: &'static str, lifts: Lift) -> Self {
        Self {
            text,
            risk: Message::new(risk),
            runtime: Vec::new(),
            persistent: Vec::new(),
            undo: Vec::new(),
            signal: Signal::Goodput,
            lifts,
        }
    }
}

/// All advice, after the remedies of the same finding.
pub(super) const ADVICE: &[&AdviceDef] = &[
    &raise_nofile_by_hand::ADVICE,
    &ask_limit_owner::ADVICE,
    &keep_cpu_quota::ADVICE,
    &spend_less_cpu::COMPRESS_LESS,
    &spend_less_cpu::RESUME_SESSIONS,
    &spend_less_cpu::KEEP_SCRIPTS,
    &spend_less_cpu::SWITCH_STEPS_OFF,
    &spend_less_cpu::OTHER_ALLOCATOR,
    &spend_less_cpu::SPLIT_LOCK,
    &spend_less_cpu::MORE_WORKERS,
    &spend_less_cpu::SPREAD_PACKETS,
    &spend_less_cpu::LOOK_AT_ANSWERS,
    &mend_connections::FIND_LOSS,
    &mend_connections::KEEP_IDLE_LONGER,
    &mend_sending::FREE_BUFFER,
    &mend_sending::SEND_AT_ONCE,
    &mend_sending::WIDEN_FIRST_WINDOW,
    &mend_sending::ASK_CLIENTS,
    &look_inside::MORE_CONNECTIONS,
    &look_inside::LOOK_INSIDE,
];

/// The advice for a finding at a station.
pub(super) fn advice(scene: &Scene<'_, '_>, finding: &Finding, placed: &StationReading) -> Vec<Remedy> {
    let fitting = ADVICE.iter().filter(|def| def.finding == finding.id);
    let given = fitting.filter_map(|def| Some((def, (def.advise)(scene.ctx, placed)?)));
    given
        .map(|(def, advice)| Remedy {
            id: def.id,
            change: Vec::new(),
            text: advice.text,
            runtime: advice.runtime,
            persistent: advice.persistent,
            activation: def.activation,
            risk: advice.risk,
            undo: advice.undo.join("; "),
            signal: advice.signal,
            prediction: predict(scene, finding, placed, advice.lifts),
            group: None,
        })
        .collect()
}
