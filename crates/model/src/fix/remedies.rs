//! The remedies: what removes a finding's cause. A remedy is one file and one line in [`REMEDIES`].

mod advice;
mod ask_limit_owner;
mod keep_cpu_quota;
mod listen_again;
mod log_errors_alone;
mod look_inside;
mod mend_connections;
mod mend_sending;
mod raise_accept_backlog;
mod raise_conntrack_max;
mod raise_cpu_quota;
mod raise_max_children;
mod raise_nofile;
mod raise_nofile_by_hand;
mod raise_syn_backlog;
mod raise_worker_connections;
mod reload_configuration;
mod reuse_time_wait;
mod reuse_upstream_connections;
mod send_syn_cookies;
mod servers;
mod shorten_conntrack_time_wait;
mod spend_less_cpu;
mod store_tls_sessions;
mod widen_port_range;

use crate::facts::Context;
use crate::fix::change::{Activation, Change};
use crate::fix::remedy::{Remedy, Signal};
use crate::judge::finding::Finding;
use crate::judge::id::FindingId;
use crate::judge::station::StationReading;
use crate::output::message::Message;
use crate::predict::{Lift, Scene, predict};

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
    /// What it does.
    pub text: Message,
    /// What it costs and what could go wrong.
    pub risk: Message,
    /// What will tell that it worked.
    pub signal: Signal,
    /// What it lifts at the finding's station: what it should give follows from that.
    pub lifts: Lift,
}

/// All remedies; of those for one finding, the one to try first stands first.
pub const REMEDIES: &[&RemedyDef] = &[
    &raise_conntrack_max::REMEDY,
    &shorten_conntrack_time_wait::REMEDY,
    &listen_again::REMEDY,
    &reload_configuration::REMEDY,
    &send_syn_cookies::REMEDY,
    &raise_syn_backlog::REMEDY,
    &raise_accept_backlog::REMEDY,
    &raise_worker_connections::REMEDY,
    &raise_nofile::REMEDY,
    &widen_port_range::REMEDY,
    &reuse_time_wait::REMEDY,
    &reuse_upstream_connections::SHORT,
    &reuse_upstream_connections::MEDIUM,
    &reuse_upstream_connections::LONG,
    &reuse_upstream_connections::ADVICE,
    &raise_max_children::REMEDY,
    &raise_cpu_quota::REMEDY,
    &mend_sending::RAISE_BUFFER,
    &log_errors_alone::REMEDY,
    &store_tls_sessions::REMEDY,
];

/// Remedies that are alternatives: the name of their group and their ids.
const GROUPS: &[(&str, &[&str])] = &[(
    reuse_upstream_connections::GROUP,
    &[reuse_upstream_connections::SHORT.id, reuse_upstream_connections::MEDIUM.id, reuse_upstream_connections::LONG.id],
)];

/// The group of alternatives that a remedy belongs to: which of them stays is measured by trying each, and not predicted.
pub fn group_of(remedy: &str) -> Option<&'static str> {
    GROUPS.iter().find(|(_, ids)| ids.contains(&remedy)).map(|(group, _)| *group)
}

/// The remedies for a finding at a station, and after them what can only be advised.
pub fn remedies(scene: &Scene<'_, '_>, finding: &Finding, placed: &StationReading) -> Vec<Remedy> {
    let fitting = REMEDIES.iter().filter(|def| def.finding == finding.id);
    let proposed = fitting.filter_map(|def| Some((def, (def.propose)(scene.ctx, placed)?)));
    let applied = proposed.map(|(def, proposal)| render(scene, def, proposal, finding, placed));
    applied.chain(advice::advice(scene, finding, placed)).collect()
}

fn render(scene: &Scene<'_, '_>, def: &RemedyDef, proposal: Proposal, finding: &Finding, placed: &StationReading) -> Remedy {
    let mut persistent = Vec::new();
    let mut last_file = String::new();
    for (file, line) in proposal.change.iter().filter_map(Change::persistent) {
        if last_file != file {
            persistent.push(format!("# {file}"));
            last_file = file;
        }
        persistent.push(line);
    }
    let undo: Vec<String> = proposal.change.iter().rev().map(Change::undo_command).collect();
    Remedy {
        id: def.id,
        text: proposal.text,
        runtime: proposal.change.iter().map(Change::command).collect(),
        persistent,
        activation: proposal.change.iter().map(Change::activation).max().unwrap_or(def.activation),
        risk: proposal.risk,
        undo: undo.join("; "),
        signal: proposal.signal,
        prediction: predict(scene, finding, placed, proposal.lifts),
        group: group_of(def.id),
        change: proposal.change,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{REMEDIES, advice};
    use crate::judge::stations::STATIONS;

    #[test]
    fn a_station_names_the_remedies_of_its_findings_and_no_others() {
        let all = || REMEDIES.iter().map(|def| (def.id, def.finding)).chain(advice::ADVICE.iter().map(|def| (def.id, def.finding)));
        for station in STATIONS {
            let own: BTreeSet<&str> = all().filter(|(_, finding)| station.findings.contains(finding)).map(|(id, _)| id).collect();
            let named: BTreeSet<&str> = station.remedies.iter().copied().collect();
            assert_eq!(named, own, "{}", station.id);
        }
        for (id, finding) in all() {
            assert!(STATIONS.iter().any(|station| station.findings.contains(&finding)), "{id}: no station makes {finding}");
        }
    }
}
