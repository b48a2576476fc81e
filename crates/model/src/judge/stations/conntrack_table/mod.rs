//! Station `conntrack-table`: the kernel's table of tracked connections. It is harmless until full. Then every packet that would create a new entry is
//! dropped.

use std::collections::BTreeMap;

use crate::facts::Context;
use crate::facts::queue::retries;
use crate::facts::suffered;
use crate::facts::table::{Table, is_filled_by_cuts};
use crate::judge::finding::{Evidence, Finding};
use crate::judge::graph::{CouplingDef, Relation, Standing};
use crate::judge::id::FindingId;
use crate::judge::id::StationId;
use crate::judge::location::Location;
use crate::judge::station::{StationDef, StationReading};
use crate::observation::{NetnsId, NetnsView};
use crate::output::message::Message;
use crate::output::report::{Confidence, StationKind, StationState};

pub(super) const STATION: StationDef = StationDef {
    remedies: &["raise-conntrack-max", "shorten-conntrack-time-wait"],
    graph: &[CouplingDef::judged(FindingId::CONNECTIONS_EXHAUSTED, FindingId::TABLE_FULL, Relation::Path, "coupling-table-cut")],
    standing: |ctx, _, _| if is_filled_by_cuts(ctx) { Standing::Perhaps } else { Standing::Alone },
    ..StationDef::new(StationId("conntrack-table"), StationKind::Cliff, &[FindingId::TABLE_FULL], read, judge)
};

/// Share from which the headroom is reported as small.
const NEAR_UTILIZATION: f64 = 0.80;

fn read(ctx: &Context<'_>) -> Vec<StationReading> {
    let tracked = ctx.netns_on_path().into_iter().filter_map(|(id, view)| Some((id, Table::of(ctx, id, view)?)));
    tracked
        .filter(|(id, table)| table.peak > 0 || ctx.path.tiers.iter().any(|tier| tier.netns == *id))
        .map(|(id, table)| reading(ctx, id, &table))
        .collect()
}

fn reading(ctx: &Context<'_>, id: NetnsId, table: &Table) -> StationReading {
    let at = Location::in_netns(id);
    let mut station = STATION.reading(ctx.owner_of(id), at, "entries");
    station.limit = (table.max > 0).then_some(table.max as f64);
    station.used = Some(table.peak as f64);
    station.utilization = table.utilization();
    station.refused_per_s = table.drops.map(|drops| drops as f64 / ctx.seconds().max(1e-6));
    let args = |id: &'static str| {
        let message = Message::new(id).with("peak", table.peak).with("max", table.max).with("drops", table.drops.unwrap_or(0));
        message.with("share", table.utilization().unwrap_or(0.0) * 100.0).with("early", table.early_drops)
    };
    let (state, why) = if table.refuses() && harmed(ctx, id, table) {
        (StationState::Refusing, args("state-conntrack-refusing"))
    } else if table.refuses() {
        (StationState::Near, args("state-conntrack-harmless"))
    } else if table.is_full() && table.early_drops > 0 {
        (StationState::Near, args("state-conntrack-early-drop"))
    } else if table.max == 0 {
        (StationState::Ok, args("state-conntrack-unlimited"))
    } else if table.utilization().is_some_and(|share| share >= NEAR_UTILIZATION) {
        (StationState::Near, args("state-conntrack-near"))
    } else {
        (StationState::Ok, args("state-conntrack-ok"))
    };
    station.in_state(state, why)
}

/// True if requests suffered as dropped first packets make them suffer: those of the load itself, or without a load the clients whose packets were dropped.
fn harmed(ctx: &Context<'_>, id: NetnsId, table: &Table) -> bool {
    let lost = table.drops.unwrap_or_else(|| table.log_lines.unwrap_or(0) as u64);
    let watched = || suffered::dropped_alike(ctx, id, lost);
    ctx.obs.load.as_ref().map_or_else(watched, suffered::lost_first_packets).hurts()
}

fn judge(ctx: &Context<'_>, read: &[StationReading]) -> Vec<Finding> {
    let refusing = read.iter().filter(|placed| placed.state == StationState::Refusing);
    refusing
        .filter_map(|placed| {
            let id = placed.at.netns?;
            let view = ctx.obs.netns.get(&id)?;
            Some(finding(ctx, placed, id, view, &Table::of(ctx, id, view)?))
        })
        .collect()
}

fn finding(ctx: &Context<'_>, placed: &StationReading, id: NetnsId, view: &NetnsView, table: &Table) -> Finding {
    let told_by_load = ctx.obs.load.as_ref().is_some_and(|load| load.errors.connect_timeout + load.errors.response_timeout > 0);
    let told_by_log = table.log_lines.is_some_and(|lines| lines > 0);
    let confidence = match (table.drops.is_some(), told_by_load || told_by_log) {
        (true, true) => Confidence::High,
        (true, false) | (false, true) => Confidence::Medium,
        (false, false) => Confidence::Low,
    };
    let args = |message: &'static str| Message::new(message).with("netns", ctx.netns_name(id)).with("max", table.max);
    Finding {
        confidence,
        title: args("finding-conntrack-table-full-title"),
        evidence: proofs(ctx, id, view, table),
        explanation: vec![args("finding-conntrack-table-full-explanation").with("again", retries::told(ctx, None))],
        ..placed.finding(FindingId::TABLE_FULL)
    }
}

fn proofs(ctx: &Context<'_>, id: NetnsId, view: &NetnsView, table: &Table) -> Vec<Evidence> {
    let netns = ctx.netns_name(id);
    let place = |path: &str| format!("{path} ({netns})");
    let mut proofs = Vec::new();
    if let Some(drops) = table.drops {
        let text = Message::new("evidence-conntrack-drops").with("drops", drops).with("seconds", ctx.seconds());
        proofs.push(Evidence::new(text, place("/proc/net/stat/nf_conntrack: drop"), Some(drops as f64)));
    }
    let text = Message::new("evidence-conntrack-count").with("peak", table.peak).with("max", table.max);
    proofs.push(Evidence::new(text, place("nf_conntrack_count, nf_conntrack_max"), Some(table.peak as f64)));
    if let Some(full_after_us) = table.full_after_us {
        let text = Message::new("evidence-conntrack-time-to-full").with("ms", full_after_us as f64 / 1e3);
        proofs.push(Evidence::new(text, place("nf_conntrack_count"), Some(full_after_us as f64 / 1e6)));
    }
    if let Some(load) = &ctx.obs.load {
        let errors = load.errors;
        let text = Message::new("evidence-load-timeouts")
            .with("connect", errors.connect_timeout)
            .with("response", errors.response_timeout)
            .with("requests", load.requests);
        proofs.push(Evidence::new(text, "load", Some((errors.connect_timeout + errors.response_timeout) as f64)));
    }
    if let Some(lines) = table.log_lines.filter(|lines| *lines > 0) {
        let text = Message::new("evidence-conntrack-log").with("lines", lines as f64);
        proofs.push(Evidence::new(text, "/dev/kmsg", Some(lines as f64)));
    }
    if let Some(mix) = view.conntrack_states.last().and_then(state_mix) {
        proofs.push(Evidence::new(Message::new("evidence-conntrack-states").with("mix", mix), place("/proc/net/nf_conntrack"), None));
    }
    proofs
}

/// The three most common states with their counts.
fn state_mix(states: &BTreeMap<String, u64>) -> Option<String> {
    let mut sorted: Vec<(&String, &u64)> = states.iter().collect();
    sorted.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let parts: Vec<String> = sorted.iter().take(3).map(|(state, count)| format!("{count} {state}")).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}
