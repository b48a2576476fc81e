//! Conntrack tables: how full each was, what it dropped, and what filled it.

use super::Context;
use crate::observation::load::LoadResult;
use crate::observation::{KernelLine, NetnsId, NetnsView};

/// Column of packets dropped because no entry could be made.
pub(crate) const DROPS: &str = "drop";
/// Sysctl with the limit of the table.
pub(crate) const KEY_MAX: &str = "net.netfilter.nf_conntrack_max";

/// Share of the limit that counts as full: 20 samples a second nearly catch the peak, and every CPU may hold back a few entries.
const FULL_UTILIZATION: f64 = 0.95;
/// One namespace's table in the window.
pub(crate) struct Table {
    /// The active limit; zero means none.
    pub(crate) max: u64,
    /// Highest number of entries.
    pub(crate) peak: u64,
    /// Packets dropped because no entry was free. `None` if the counters could not be read.
    pub(crate) drops: Option<u64>,
    /// Entries evicted early to make room.
    pub(crate) early_drops: u64,
    /// Kernel log lines about a full table here.
    pub(crate) log_lines: Option<usize>,
    /// Time from the window's beginning until the table was first seen full, microseconds.
    pub(crate) full_after_us: Option<u64>,
    /// Fastest growth between two readings, entries a second.
    pub(crate) growth_per_s_max: f64,
}

impl Table {
    /// The table of a namespace. `None` if connections are not tracked there or the count was not read.
    pub(crate) fn of(ctx: &Context<'_>, id: NetnsId, view: &NetnsView) -> Option<Self> {
        let max = view.sysctl_number(KEY_MAX)?;
        let peak = ctx.in_window(&view.conntrack_count).map(|(_, count)| *count).max().or(view.conntrack_count.last().copied())?;
        let full = |count: u64| max > 0 && count as f64 >= FULL_UTILIZATION * max as f64;
        let full_after_us =
            ctx.in_window(&view.conntrack_count).find(|(_, count)| full(*count)).map(|(at, _)| at.saturating_sub(ctx.window_us.0));
        Some(Self {
            max,
            peak,
            drops: counter_growth(ctx, view, DROPS),
            early_drops: counter_growth(ctx, view, "early_drop").unwrap_or(0),
            log_lines: log_lines(ctx, id),
            full_after_us,
            growth_per_s_max: growth_per_s_max(view),
        })
    }

    pub(crate) fn utilization(&self) -> Option<f64> {
        (self.max > 0).then(|| self.peak as f64 / self.max as f64)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.utilization().is_some_and(|share| share >= FULL_UTILIZATION)
    }

    /// True if the table was full and dropped packets. `drop` alone proves nothing: it also counts unresolved clashes in a nearly empty table.
    pub(crate) fn refuses(&self) -> bool {
        self.is_full() && self.drops.map_or(self.log_lines.is_some_and(|lines| lines > 0), |drops| drops > 0)
    }
}

/// Growth in the window of one column of `/proc/net/stat/nf_conntrack`, summed over CPUs. `None` if it was not read or this kernel lacks the column.
pub(crate) fn counter_growth(ctx: &Context<'_>, view: &NetnsView, name: &str) -> Option<u64> {
    ctx.growth(&view.conntrack_cpus, |cpus| cpus.iter().filter_map(|cpu| cpu.counters.get(name).copied()).reduce(|sum, more| sum + more))
}

/// Number of kernel log lines about this namespace's table. Newer kernels name the namespace; lines about another namespace do not count.
fn log_lines(ctx: &Context<'_>, id: NetnsId) -> Option<usize> {
    let lines = ctx.obs.kernel_log.last()?;
    let ours = |line: &KernelLine| {
        let named = line.text.split("netns ").nth(1).map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
        line.is_read() && named.is_none_or(|named| named == id.0.to_string())
    };
    Some(lines.iter().filter(|line| ours(line)).count())
}

fn growth_per_s_max(view: &NetnsView) -> f64 {
    let points = view.conntrack_count.points();
    let steps = points.windows(2).filter(|pair| pair[1].0 > pair[0].0);
    steps.map(|pair| pair[1].1.saturating_sub(pair[0].1) as f64 * 1e6 / (pair[1].0 - pair[0].0) as f64).fold(0.0, f64::max)
}

/// True if connections that were cut off and reopened filled a table. A load that keeps its connections needs no more entries than connections: without the
/// cut ones the table would have had room.
pub(crate) fn is_filled_by_cuts(ctx: &Context<'_>) -> bool {
    let cut = |load: &LoadResult| load.errors.reset + load.errors.closed_before_answer;
    let cut = ctx.obs.load.as_ref().filter(|load| load.keep_alive).map_or(0, cut);
    let has_room = |table: &Table| (table.peak.saturating_sub(cut) as f64) < FULL_UTILIZATION * table.max as f64;
    let tables = ctx.netns_on_path().into_iter().filter_map(|(id, view)| Table::of(ctx, id, view)).filter(Table::refuses);
    cut > 0 && tables.into_iter().all(|table| has_room(&table))
}
