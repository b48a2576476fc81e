//! What a remedy is, and what a piece of advice is: something that removes a cause but is not applied from here, because the decision or the knowledge is somebody else's.

use crate::facts::Context;
use crate::fix::change::{Activation, Change};
use crate::fix::remedy::{Signal, Step};
use crate::judge::id::FindingId;
use crate::judge::station::StationReading;
use crate::output::message::Message;
use crate::predict::Lift;

/// A remedy's definition.
pub struct RemedyDef {
    /// Id, kebab-case.
    pub id: &'static str,
    /// The finding that it removes.
    pub finding: FindingId,
    /// When it takes effect where it is made by hand.
    pub activation: Activation,
    /// The changes it would make here; nothing where it does not apply.
    pub propose: fn(&Context<'_>, &StationReading) -> Option<Proposal>,
}

/// What a remedy would do on this host.
pub struct Proposal {
    /// The changes; empty where they must be made where this host cannot reach.
    pub change: Vec<Change>,
    /// The setting whose server is to be reloaded by hand, if nothing is to be edited.
    pub reload: Option<Change>,
    /// What it does.
    pub text: Message,
    /// What it costs and what could go wrong.
    pub risk: Message,
    /// What will tell that it worked.
    pub signal: Signal,
    /// What it lifts at the finding's station: what it should give follows from that.
    pub lifts: Lift,
}

/// A piece of advice.
pub(in crate::fix::remedies) struct AdviceDef {
    /// Id, kebab-case.
    pub(in crate::fix::remedies) id: &'static str,
    /// The finding whose cause it removes.
    pub(in crate::fix::remedies) finding: FindingId,
    /// When it takes effect.
    pub(in crate::fix::remedies) activation: Activation,
    /// The advice for this host; nothing where it does not apply.
    pub(in crate::fix::remedies) advise: fn(&Context<'_>, &StationReading) -> Option<Advice>,
}

/// What is advised.
pub(in crate::fix::remedies) struct Advice {
    /// What to do.
    pub(in crate::fix::remedies) text: Message,
    /// What it costs and what could go wrong.
    pub(in crate::fix::remedies) risk: Message,
    /// The steps that do it now.
    pub(in crate::fix::remedies) runtime: Vec<Step>,
    /// The steps that make it last.
    pub(in crate::fix::remedies) persistent: Vec<Step>,
    /// The steps that take it back.
    pub(in crate::fix::remedies) undo: Vec<Step>,
    /// What will tell that it worked.
    pub(in crate::fix::remedies) signal: Signal,
    /// What it lifts at the finding's station.
    pub(in crate::fix::remedies) lifts: Lift,
}

impl Advice {
    /// Words alone, without commands; that they helped shows in goodput.
    pub(in crate::fix::remedies) fn words(text: Message, risk: &'static str, lifts: Lift) -> Self {
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
