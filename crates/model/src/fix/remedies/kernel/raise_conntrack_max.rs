//! Remedy `raise-conntrack-max`: makes the table large enough for the rate of new connections and the lifetime of entries.

use crate::facts::Context;
use crate::facts::table::{KEY_MAX, Table};
use crate::fix::change::{Activation, Change};
use crate::fix::remedies::definition::{Proposal, RemedyDef};
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
/// Share of the host's memory that the table may take when full: 1/16.
const MEMORY_SHARE: u64 = 16;

fn propose(ctx: &Context<'_>, placed: &StationReading) -> Option<Proposal> {
    let id = placed.at.netns?;
    let view = ctx.obs.netns.get(&id)?;
    let table = Table::of(ctx, id, view)?;
    let wanted = wanted(ctx, view, &table);
    let memory_mib = (wanted * ENTRY_BYTES) as f64 / f64::from(1 << 20);
    let risk = Message::new("remedy-raise-conntrack-max-risk").with("mib", memory_mib);
    let text = Message::new("remedy-raise-conntrack-max-text").with("from", table.max).with("to", wanted);
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
fn wanted(ctx: &Context<'_>, view: &NetnsView, table: &Table) -> u64 {
    let life_s = view.sysctl_number(KEY_TIME_WAIT).map_or(TIME_WAIT_S, |seconds| seconds as f64);
    let needed = (GROWTH_ROOM * table.growth_per_s_max * life_s).min(u64::MAX as f64 / 4.0) as u64;
    let floor = table.max.saturating_mul(4).max(view.sysctl_number(KEY_BUCKETS).unwrap_or(0));
    let cap = ctx.obs.memory.last().map_or(u64::MAX / 2, |memory| memory.total / MEMORY_SHARE / ENTRY_BYTES);
    let rounded = needed.max(floor).max(1).checked_next_power_of_two().unwrap_or(1 << 31).min(1 << 31);
    // Never below the old limit, however little memory there is.
    rounded.min(cap).max(table.max.saturating_add(1))
}
