//! Remedy `raise-conntrack-max`: makes the table large enough for the rate of new connections and the lifetime of entries.

use crate::facts::Context;
use crate::facts::table::{KEY_MAX, Table};
use crate::fix::change::{Activation, Change};
use crate::fix::remedies::definition::{Proposal, RemedyDef};
use crate::fix::remedies::sums::Advised;
use crate::fix::remedy::Signal;
use crate::judge::id::{FindingId, StationId};
use crate::judge::station::StationReading;
use crate::observation::{NetnsId, NetnsView};
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const REMEDY: RemedyDef =
    RemedyDef { id: "raise-conntrack-max", finding: FindingId::TABLE_FULL, activation: Activation::Live, propose };

/// Sysctl with the number of hash buckets.
const KEY_BUCKETS: &str = "net.netfilter.nf_conntrack_buckets";
/// Sysctl with the seconds that an entry stays after an orderly close.
const KEY_TIME_WAIT: &str = "net.netfilter.nf_conntrack_tcp_timeout_time_wait";
/// Its default, in seconds (Documentation/networking/nf_conntrack-sysctl.rst).
const TIME_WAIT_S: f64 = 120.0;
/// Bytes of one entry: `struct nf_conn` with the usual extensions (slabinfo shows 256 to 320).
const ENTRY_BYTES: u64 = 320;
/// Entries per bucket above which look-ups walk long chains. The kernel's own default for the limit was four for ten years.
const ENTRIES_PER_BUCKET_MAX: u64 = 4;
/// The room for growth, as a multiple of the growth that was seen. While the table was full, or something else was short, fewer connections came than will
/// come later.
const GROWTH_ROOM: f64 = 4.0;
/// Largest limit proposed.
const LIMIT_MAX: u64 = 1 << 31;
/// Share of the host's memory that the table may take when full: 1/16.
const MEMORY_SHARE: u64 = 16;

fn propose(ctx: &Context<'_>, placed: &StationReading) -> Option<Proposal> {
    let id = placed.at.netns?;
    let view = ctx.obs.netns.get(&id)?;
    let table = Table::of(ctx, id, view)?;
    let advised = wanted(ctx, view, &table);
    let wanted = advised.number;
    let memory_mib = (wanted * ENTRY_BYTES) as f64 / f64::from(1 << 20);
    let risk = Message::new("remedy-raise-conntrack-max-risk").with("mib", memory_mib);
    let text = Message::new("remedy-raise-conntrack-max-text").with("from", table.max).with("to", wanted).with("sum", advised.sum);
    let change = match place(ctx, id, view) {
        Some((netns, writable)) => changes(ctx, netns, writable, wanted),
        None => Vec::new(),
    };
    Some(Proposal {
        reload: None,
        change,
        text,
        risk,
        signal: Signal::Refusals(StationId::CONNTRACK_TABLE),
        lifts: Lift::to_room(wanted > table.max.saturating_mul(2)),
    })
}

/// The namespace in which the limit can be set: the table's own if the kernel allows it, otherwise the host's.
fn place<'a>(ctx: &Context<'a>, id: NetnsId, view: &'a NetnsView) -> Option<(NetnsId, &'a NetnsView)> {
    let read_only = view.sysctl(&format!("{KEY_MAX} mode")) == Some("ro");
    if read_only { ctx.obs.netns.iter().find(|(_, view)| view.is_host).map(|(&id, view)| (id, view)) } else { Some((id, view)) }
}

fn changes(ctx: &Context<'_>, netns: NetnsId, view: &NetnsView, wanted: u64) -> Vec<Change> {
    let set = |key: &str, from: u64, to: u64| Change::Sysctl {
        key: key.to_owned(),
        netns,
        netns_name: ctx.netns_name(netns),
        from: from.to_string(),
        to: to.to_string(),
    };
    let Some(max) = view.sysctl_number(KEY_MAX) else { return Vec::new() };
    let mut changes = Vec::new();
    // Buckets come first: with a large limit over few buckets every look-up walks a long chain.
    if let Some(buckets) = view.sysctl_number(KEY_BUCKETS)
        && wanted > buckets * ENTRIES_PER_BUCKET_MAX
    {
        // The kernel rounds up to whole pages of buckets. It takes a power of two unchanged.
        changes.push(set(KEY_BUCKETS, buckets, (wanted / ENTRIES_PER_BUCKET_MAX).next_power_of_two()));
    }
    changes.push(set(KEY_MAX, max, wanted));
    changes
}

/// Entries needed: the fastest growth seen while there was room, with a margin, times the lifetime of an entry. At least four times the old limit and the
/// kernel's own default for this host (one per bucket); at most what memory allows.
fn wanted(ctx: &Context<'_>, view: &NetnsView, table: &Table) -> Advised {
    let life_s = view.sysctl_number(KEY_TIME_WAIT).map_or(TIME_WAIT_S, |seconds| seconds as f64);
    let sum = Message::new("sum-entries").with("rate", table.growth_per_s_max).with("life", life_s);
    let needed = Advised::new((GROWTH_ROOM * table.growth_per_s_max * life_s).min(u64::MAX as f64 / 4.0), sum);
    let times = Message::new("sum-entries-four-times").with("now", table.max);
    let floor = Advised::new(table.max.saturating_mul(4) as f64, times);
    let buckets = Advised::new(view.sysctl_number(KEY_BUCKETS).unwrap_or(0) as f64, Message::new("sum-entries-buckets"));
    let memory = ctx.obs.memory.last().map_or(u64::MAX / 2, |memory| memory.total / MEMORY_SHARE / ENTRY_BYTES);
    let rounded = needed.at_least(floor).at_least(buckets).power_of_two(u64::MAX).at_most(LIMIT_MAX, "sum-entries-most");
    // Never below the old limit, however little memory there is.
    let least = Advised::new(table.max.saturating_add(1) as f64, Message::new("sum-entries-one-more"));
    rounded.at_most(memory, "sum-entries-memory").at_least(least)
}
