//! Threads that serve a request and wait for something else than a core meanwhile: a client that takes its answer slowly, a disk. Whoever waits for such a thread waits for that too.

use crate::facts::Context;
use crate::facts::path::Tier;
use crate::observation::{ProcessView, Syscall, WaitKind};
use crate::output::report::LedgerPlaceKind as Place;

/// Mean number of a tier's threads that a request keeps from serving another while they have no use for a core. At most as many as requests are at a place where such a thread may
/// be with them: an event loop, or a thread that keeps a connection without a request, is held by none.
pub(super) fn held_elsewhere(ctx: &Context<'_>, tier: &Tier) -> f64 {
    let Some(account) = ctx.account() else { return 0.0 };
    let (mut others, mut main) = (0.0, 0.0);
    for process in tier.pids.iter().filter_map(|pid| ctx.obs.processes.get(pid).map(|process| (*pid, process))) {
        others += threads_elsewhere(ctx, process);
        main += main_elsewhere(ctx, process.1);
    }
    let at = |is_there: fn(Place) -> bool| account.at_places(tier.id.0, is_there);
    let are_read =
        tier.pids.iter().filter_map(|pid| ctx.obs.processes.get(pid)).any(|process| ctx.in_window(&process.syscall).next().is_some());
    let with_clients = at(|place| matches!(place, Place::Sending | Place::Client | Place::Receiving));
    // Whose answer is sent may be held by what its worker does after that.
    let held = with_clients + at(|place| matches!(place, Place::Waiting | Place::Undecided));
    // Where no call was read, a thread may be with each of these clients.
    if !are_read {
        return with_clients;
    }
    others.min(with_clients) + main.min(held)
}

/// The threads besides the main thread that wait neither for new work nor for each other, less those that run or are ready.
fn threads_elsewhere(ctx: &Context<'_>, (pid, process): (u32, &ProcessView)) -> f64 {
    let all = process.cpu.last().map_or(0, |used| used.threads.saturating_sub(1));
    let busy = |call: &Syscall| {
        let threads = call.threads;
        let each = f64::from(all.max(threads.looked)) / f64::from(threads.looked.max(1));
        each * f64::from(threads.looked.saturating_sub(threads.accepting).saturating_sub(threads.locked))
    };
    let looks: Vec<f64> = ctx.in_window(&process.syscall).map(|(_, call)| busy(call)).collect();
    let clocked = |clock| ctx.clocked(pid, clock);
    let Some(at_cores) = clocked(|used| used.run_ns).zip(clocked(|used| used.run_delay_ns)).map(|(ran, delayed)| ran + delayed) else {
        return 0.0;
    };
    (looks.iter().sum::<f64>() / looks.len().max(1) as f64 - at_cores).max(0.0)
}

/// Share of the looks at which the main thread waited for a disk, for a reader of what it writes, or for the one connection that it serves. In epoll_wait(2) it waits for whatever comes.
fn main_elsewhere(ctx: &Context<'_>, process: &ProcessView) -> f64 {
    let is_at_one = |call: &Syscall| {
        let reads = matches!(call.call.as_deref(), Some("read" | "readv" | "recvfrom" | "recvmsg"));
        let writes = matches!(call.call.as_deref(), Some("write" | "writev" | "sendto" | "sendmsg" | "sendfile"));
        (reads || writes) && !call.sockets.is_empty()
    };
    let waits = |call: &Syscall| {
        let is_full = |kind: WaitKind| matches!(kind, WaitKind::Disk | WaitKind::FullPipe | WaitKind::FullSocket);
        call.waits.iter().any(|wait| wait.is_main && is_full(wait.kind))
    };
    let looks: Vec<bool> = ctx.in_window(&process.syscall).map(|(_, call)| waits(call) || is_at_one(call)).collect();
    looks.iter().filter(|is_elsewhere| **is_elsewhere).count() as f64 / looks.len().max(1) as f64
}
