//! Station `conntrack-table`: the kernel's table of tracked connections. Harmless until full; then every packet that would begin a new
//! entry is dropped.

use std::collections::BTreeMap;

use super::{Context, Placed, StationDef, blank, evidence, unjudged};
use crate::facts::suffered;
use crate::findings::TABLE_FULL;
use crate::harm::Cost;
use crate::message::Message;
use crate::observation::{ConntrackCpu, KernelLine, NetnsId, NetnsView};
use crate::report::{At, Confidence, Evidence, Finding, StationKind, StationState};

pub(super) const STATION: StationDef = StationDef::new("conntrack-table", StationKind::Cliff, &[TABLE_FULL], read, judge);

/// Sysctl with the table's limit.
pub(crate) const KEY_MAX: &str = "net.netfilter.nf_conntrack_max";

/// Share of the limit that counts as full: 20 samples a second catch the peak only nearly, and every CPU may hold back a few entries.
const FULL_UTILIZATION: f64 = 0.95;
/// Share from which the headroom is told as small.
const NEAR_UTILIZATION: f64 = 0.80;

/// What one namespace's table did in the window.
pub(crate) struct Table {
    /// Limit in force; zero means none.
    pub(crate) max: u64,
    /// Highest number of entries seen.
    pub(crate) peak: u64,
    /// Packets dropped for want of an entry; nothing where the counters could not be read.
    pub(crate) drops: Option<u64>,
    /// Entries evicted early to make room.
    pub(crate) early_drops: u64,
    /// Kernel log lines that tell of a full table here.
    pub(crate) log_lines: Option<usize>,
    /// Microseconds from the window's beginning until the table was first seen full.
    pub(crate) full_after_us: Option<u64>,
    /// Fastest growth seen, entries a second, while there was room.
    pub(crate) growth_per_s: f64,
}

impl Table {
    /// The table of a namespace; nothing where connections are not tracked there or the count was not read.
    pub(crate) fn of(ctx: &Context<'_>, id: NetnsId, view: &NetnsView) -> Option<Self> {
        let max = view.sysctl_number(KEY_MAX)?;
        let peak = ctx.in_window(&view.conntrack_count).map(|(_, count)| *count).max().or(view.conntrack_count.last().copied())?;
        let counter = |name: &str| {
            let (first, last, _) = ctx.around(&view.conntrack_cpus)?;
            Some(sum(last, name)?.saturating_sub(sum(first, name)?))
        };
        let full = |count: u64| max > 0 && count as f64 >= FULL_UTILIZATION * max as f64;
        let full_after_us =
            ctx.in_window(&view.conntrack_count).find(|(_, count)| full(*count)).map(|(at, _)| at.saturating_sub(ctx.window_us.0));
        Some(Self {
            max,
            peak,
            drops: counter("drop"),
            early_drops: counter("early_drop").unwrap_or(0),
            log_lines: log_lines(ctx, id),
            full_after_us,
            growth_per_s: growth_per_s(view),
        })
    }

    fn utilization(&self) -> Option<f64> {
        (self.max > 0).then(|| self.peak as f64 / self.max as f64)
    }

    fn is_full(&self) -> bool {
        self.utilization().is_some_and(|share| share >= FULL_UTILIZATION)
    }

    /// True where the table was full and turned packets away. `drop` alone proves nothing: it also counts clashes that could not be
    /// resolved, with a table nearly empty.
    fn refuses(&self) -> bool {
        self.is_full() && self.drops.map_or(self.log_lines.is_some_and(|lines| lines > 0), |drops| drops > 0)
    }
}

fn sum(cpus: &[ConntrackCpu], name: &str) -> Option<u64> {
    let values: Vec<u64> = cpus.iter().filter_map(|cpu| cpu.counters.get(name).copied()).collect();
    (!values.is_empty()).then(|| values.iter().sum())
}

/// Lines of the kernel log in the observation that tell of this namespace's table. Newer kernels name the namespace; a line that names
/// another one is not ours.
fn log_lines(ctx: &Context<'_>, id: NetnsId) -> Option<usize> {
    let lines = ctx.obs.kernel_log.last()?;
    let ours = |line: &KernelLine| {
        let named = line.text.split("netns ").nth(1).map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
        line.is_read() && named.is_none_or(|named| named == id.0.to_string())
    };
    Some(lines.iter().filter(|line| ours(line)).count())
}

fn growth_per_s(view: &NetnsView) -> f64 {
    let points = view.conntrack_count.points();
    let steps = points.windows(2).filter(|pair| pair[1].0 > pair[0].0);
    steps.map(|pair| pair[1].1.saturating_sub(pair[0].1) as f64 * 1e6 / (pair[1].0 - pair[0].0) as f64).fold(0.0, f64::max)
}

fn read(ctx: &Context<'_>) -> Vec<Placed> {
    let tracked = ctx.netns_on_path().into_iter().filter_map(|(id, view)| Some((id, Table::of(ctx, id, view)?)));
    tracked
        .filter(|(id, table)| table.peak > 0 || ctx.path.tiers.iter().any(|tier| tier.netns == *id))
        .map(|(id, table)| reading(ctx, id, &table))
        .collect()
}

fn reading(ctx: &Context<'_>, id: NetnsId, table: &Table) -> Placed {
    let at = At { netns: Some(ctx.netns_name(id)), ..At::default() };
    let mut station = blank(&STATION, ctx.tier_of(id), at, "entries");
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
    station.state = state;
    station.why = ctx.text(why);
    Placed { netns: Some(id), station }
}

/// True where requests suffered as dropped first packets make them suffer: those of the load itself, else as many of those who came as packets were dropped.
fn harmed(ctx: &Context<'_>, id: NetnsId, table: &Table) -> bool {
    let lost = table.drops.unwrap_or_else(|| table.log_lines.unwrap_or(0) as u64);
    let watched = || ctx.obs.netns.get(&id).map_or(Cost::default(), |view| suffered::dropped(ctx, view, lost));
    ctx.obs.load.as_ref().map_or_else(watched, |load| suffered::lost_first_packets(ctx, load)).hurts()
}

fn judge(ctx: &Context<'_>, read: &[Placed]) -> Vec<Finding> {
    let refusing = read.iter().filter(|placed| placed.station.state == StationState::Refusing);
    refusing
        .filter_map(|placed| {
            let id = placed.netns?;
            let view = ctx.obs.netns.get(&id)?;
            Some(finding(ctx, placed, id, view, &Table::of(ctx, id, view)?))
        })
        .collect()
}

fn finding(ctx: &Context<'_>, placed: &Placed, id: NetnsId, view: &NetnsView, table: &Table) -> Finding {
    let station = &placed.station;
    let told_by_load = ctx.obs.load.as_ref().is_some_and(|load| load.errors.connect_timeout + load.errors.response_timeout > 0);
    let told_by_log = table.log_lines.is_some_and(|lines| lines > 0);
    let confidence = match (table.drops.is_some(), told_by_load || told_by_log) {
        (true, true) => Confidence::High,
        (true, false) | (false, true) => Confidence::Medium,
        (false, false) => Confidence::Low,
    };
    let args = |id: &'static str| Message::new(id).with("netns", ctx.netns_name(placed.netns.unwrap_or_default())).with("max", table.max);
    Finding {
        id: TABLE_FULL.to_owned(),
        station: STATION.id.to_owned(),
        tier: station.tier.clone(),
        at: station.at.clone(),
        confidence,
        title: ctx.text(args("finding-conntrack-table-full-title")),
        evidence: proofs(ctx, id, view, table),
        explanation: ctx.text(args("finding-conntrack-table-full-explanation")),
        ..unjudged()
    }
}

fn proofs(ctx: &Context<'_>, id: NetnsId, view: &NetnsView, table: &Table) -> Vec<Evidence> {
    let netns = ctx.netns_name(id);
    let place = |path: &str| format!("{path} ({netns})");
    let mut proofs = Vec::new();
    if let Some(drops) = table.drops {
        let text = Message::new("evidence-conntrack-drops").with("drops", drops).with("seconds", ctx.seconds());
        proofs.push(evidence(ctx.text(text), place("/proc/net/stat/nf_conntrack: drop"), Some(drops as f64)));
    }
    let text = Message::new("evidence-conntrack-count").with("peak", table.peak).with("max", table.max);
    proofs.push(evidence(ctx.text(text), place("nf_conntrack_count, nf_conntrack_max"), Some(table.peak as f64)));
    if let Some(full_after_us) = table.full_after_us {
        let text = Message::new("evidence-conntrack-time-to-full").with("ms", full_after_us as f64 / 1e3);
        proofs.push(evidence(ctx.text(text), place("nf_conntrack_count"), Some(full_after_us as f64 / 1e6)));
    }
    if let Some(load) = &ctx.obs.load {
        let errors = load.errors;
        let text = Message::new("evidence-load-timeouts")
            .with("connect", errors.connect_timeout)
            .with("response", errors.response_timeout)
            .with("requests", load.requests);
        proofs.push(evidence(ctx.text(text), "load", Some((errors.connect_timeout + errors.response_timeout) as f64)));
    }
    if let Some(lines) = table.log_lines.filter(|lines| *lines > 0) {
        let text = Message::new("evidence-conntrack-log").with("lines", lines as f64);
        proofs.push(evidence(ctx.text(text), "/dev/kmsg", Some(lines as f64)));
    }
    if let Some(mix) = view.conntrack_states.last().and_then(state_mix) {
        proofs.push(evidence(ctx.text(Message::new("evidence-conntrack-states").with("mix", mix)), place("/proc/net/nf_conntrack"), None));
    }
    proofs
}

/// The three commonest states with their counts.
fn state_mix(states: &BTreeMap<String, u64>) -> Option<String> {
    let mut sorted: Vec<(&String, &u64)> = states.iter().collect();
    sorted.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let parts: Vec<String> = sorted.iter().take(3).map(|(state, count)| format!("{count} {state}")).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}
