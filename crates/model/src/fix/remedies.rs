//! The remedies: what removes a finding's cause. A remedy is one file and one line in [`REMEDIES`], a piece of advice one file and one line in [`ADVICE`].

mod by_hand;
mod cgroup;
mod definition;
mod kernel;
mod raise_server_limit;
mod server;
mod sums;

use crate::facts::Context;
use crate::fix::change::Change;
use crate::fix::remedy::{Remedy, Starved, Step};
use crate::fix::steps;
use crate::judge::finding::Finding;
use crate::judge::station::StationReading;
use crate::output::message::Message;
use crate::predict::{Scene, predict};

use definition::AdviceDef;
pub use definition::{Proposal, RemedyDef};
use server::reuse_upstream_connections;

/// All remedies. Of those for one finding, the one to try first comes first.
pub const REMEDIES: &[&RemedyDef] = &[
    &kernel::raise_conntrack_max::REMEDY,
    &kernel::shorten_conntrack_time_wait::REMEDY,
    &server::listen_again::REMEDY,
    &server::reload_configuration::REMEDY,
    &kernel::send_syn_cookies::REMEDY,
    &kernel::raise_syn_backlog::REMEDY,
    &server::raise_accept_backlog::REMEDY,
    &server::raise_worker_connections::REMEDY,
    &server::raise_nofile::REMEDY,
    &kernel::widen_port_range::REMEDY,
    &kernel::reuse_time_wait::REMEDY,
    &server::move_to_unix_socket::REMEDY,
    &server::reuse_upstream_connections::SHORT,
    &server::reuse_upstream_connections::MEDIUM,
    &server::reuse_upstream_connections::LONG,
    &server::reuse_upstream_connections::ADVICE,
    &server::move_to_unix_socket::WORDS,
    &server::raise_max_children::REMEDY,
    &raise_server_limit::REMEDY,
    &cgroup::raise_cpu_quota::REMEDY,
    &kernel::mend_sending::RAISE_BUFFER,
    &server::log_errors_alone::REMEDY,
    &server::store_tls_sessions::REMEDY,
];

/// Remedies that are alternatives.
struct Group {
    name: &'static str,
    ids: &'static [&'static str],
    /// What each of them costs the requests that it serves last.
    starved: fn(&Context<'_>, &StationReading) -> Option<Starved>,
}

const GROUPS: &[Group] = &[Group {
    name: reuse_upstream_connections::GROUP,
    ids: &[reuse_upstream_connections::SHORT.id, reuse_upstream_connections::MEDIUM.id, reuse_upstream_connections::LONG.id],
    starved: reuse_upstream_connections::starved,
}];

fn group(remedy: &str) -> Option<&'static Group> {
    GROUPS.iter().find(|group| group.ids.contains(&remedy))
}

/// The group of alternatives that a remedy belongs to. Each alternative is tried and measured, and none is predicted.
pub fn group_of(remedy: &str) -> Option<&'static str> {
    group(remedy).map(|group| group.name)
}

/// All advice, after the remedies of the same finding.
const ADVICE: &[&AdviceDef] = &[
    &server::raise_nofile_by_hand::ADVICE,
    &cgroup::allow_more_tasks::ADVICE,
    &cgroup::allow_more_of_the_disk::ADVICE,
    &by_hand::ask_limit_owner::ADVICE,
    &cgroup::keep_cpu_quota::ADVICE,
    &by_hand::spend_less_cpu::COMPRESS_LESS,
    &by_hand::spend_less_cpu::RESUME_SESSIONS,
    &by_hand::spend_less_cpu::KEEP_SCRIPTS,
    &by_hand::spend_less_cpu::SWITCH_STEPS_OFF,
    &by_hand::spend_less_cpu::KEEP_PROCESSES,
    &by_hand::spend_less_cpu::OTHER_ALLOCATOR,
    &by_hand::spend_less_cpu::SPLIT_LOCK,
    &by_hand::priority::RAISE_PRIORITY,
    &by_hand::priority::GIVE_CORES_BACK,
    &by_hand::spend_less_cpu::RAISE_WORKERS,
    &by_hand::spend_less_cpu::MORE_WORKERS,
    &by_hand::spend_less_cpu::SPREAD_PACKETS,
    &by_hand::spend_less_cpu::LOOK_AT_ANSWERS,
    &raise_server_limit::BY_HAND,
    &raise_server_limit::BY_RESTART,
    &by_hand::raise_shaper_rate::RAISE_RATE,
    &by_hand::mend_connections::FIND_LOSS,
    &by_hand::mend_connections::LET_PACKETS_PASS,
    &by_hand::mend_connections::KEEP_IDLE_LONGER,
    &by_hand::mend_connections::LEAVE_IT_OUT,
    &by_hand::bound_retries::BOUND_RETRIES,
    &kernel::mend_sending::FREE_BUFFER,
    &kernel::mend_sending::SEND_AT_ONCE,
    &kernel::mend_sending::WIDEN_FIRST_WINDOW,
    &kernel::mend_sending::ASK_CLIENTS,
    &by_hand::end_lingering::END_LINGERING,
    &by_hand::let_idle_go::LET_IDLE_GO,
    &by_hand::look_inside::MORE_CONNECTIONS,
    &by_hand::look_inside::LOOK_INSIDE,
    &by_hand::look_inside::LOOK_AT_TURNS,
    &by_hand::look_inside::LOOK_AT_HANGING,
    &by_hand::look_inside::LOOK_BEHIND,
    &by_hand::let_go_on::LET_GO_ON,
    &by_hand::let_go_on::LET_SOME_GO_ON,
    &by_hand::let_go_on::LET_DETACH,
    &by_hand::read_its_log::READ_ITS_LOG,
    &by_hand::spend_less_cpu::GIVE_MORE_HEAP,
    &by_hand::look_inside::LOOK_AT_SILENT,
    &by_hand::look_inside::LOOK_AT_SLEEPERS,
    &by_hand::look_inside::LOOK_AT_ACCEPTING,
];

/// The remedies for a finding at a station, and after them what can only be advised.
pub fn remedies(scene: &Scene<'_, '_>, finding: &Finding, placed: &StationReading) -> Vec<Remedy> {
    let fitting = REMEDIES.iter().filter(|def| def.finding == finding.id);
    let proposed = fitting.filter_map(|def| Some((def, (def.propose)(scene.ctx, placed)?)));
    let applied = proposed.map(|(def, proposal)| render(scene, def, proposal, finding, placed));
    applied.chain(advice(scene, finding, placed)).collect()
}

/// The advice for a finding at a station.
fn advice(scene: &Scene<'_, '_>, finding: &Finding, placed: &StationReading) -> Vec<Remedy> {
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
            risk: vec![advice.risk],
            undo: advice.undo,
            signal: advice.signal,
            prediction: predict(scene, finding, placed, advice.lifts),
            group: None,
            starved: None,
        })
        .collect()
}

fn render(scene: &Scene<'_, '_>, def: &RemedyDef, proposal: Proposal, finding: &Finding, placed: &StationReading) -> Remedy {
    let mut steps = steps::of(scene.ctx, def.id, &proposal);
    let activation = proposal.change.iter().map(Change::activation).max().unwrap_or(def.activation);
    // Root changes its own servers only: what it is told of another user's, that user may have made up.
    let other_user = proposal.change.iter().find_map(|change| of_another_user(scene.ctx, change));
    let change = if other_user.is_some() || finding.rests_on_log() { Vec::new() } else { proposal.change };
    if finding.rests_on_log() && !steps.runtime.is_empty() {
        steps.runtime.insert(0, Step::words(Message::new("step-log-alone")));
    }
    if let Some(uid) = other_user {
        let has_commands = steps.runtime.iter().any(|step| step.command.is_some());
        let id = if has_commands { "step-of-another-user" } else { "step-of-another-user-by-hand" };
        steps.runtime.insert(0, Step::words(Message::new(id).with("uid", uid.to_string())));
    }
    Remedy {
        id: def.id,
        text: proposal.text,
        runtime: steps.runtime,
        persistent: steps.persistent,
        activation,
        risk: [proposal.risk].into_iter().chain(steps.stops).collect(),
        undo: steps.undo,
        signal: proposal.signal,
        prediction: predict(scene, finding, placed, proposal.lifts),
        group: group_of(def.id),
        starved: group(def.id).and_then(|group| (group.starved)(scene.ctx, placed)),
        change,
    }
}

/// The user of the server that a change is about, if that is not root and root measured.
fn of_another_user(ctx: &Context<'_>, change: &Change) -> Option<u32> {
    let Change::Server { pid, .. } = change else { return None };
    let master = ctx.obs.standing_for(*pid).and_then(|(_, view)| view.files.master);
    let uid = master.map(|master| master.uid).or_else(|| Some(ctx.obs.processes.get(pid)?.identity.last()?.uid))?;
    (ctx.obs.request.by_uid == Some(0) && uid != 0).then_some(uid)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{ADVICE, REMEDIES};
    use crate::judge::stations::STATIONS;

    #[test]
    fn a_station_names_the_remedies_of_its_findings_and_no_others() {
        let all = || REMEDIES.iter().map(|def| (def.id, def.finding)).chain(ADVICE.iter().map(|def| (def.id, def.finding)));
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
