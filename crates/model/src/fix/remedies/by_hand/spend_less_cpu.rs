//! Advice for what a profile shows. It is text only: which way is open depends on the program, and the gain must be measured.

use crate::facts::Context;
use crate::facts::cores::{Turns, limiting};
use crate::fix::change::Activation;
use crate::fix::remedies::definition::{Advice, AdviceDef};
use crate::fix::remedies::server::servers::tiers;
use crate::judge::id::FindingId;
use crate::judge::station::StationReading;
use crate::observation::{NginxConfig, Setting};
use crate::output::message::Message;
use crate::predict::Lift;

const fn def(id: &'static str, finding: FindingId, advise: fn(&Context<'_>, &StationReading) -> Option<Advice>) -> AdviceDef {
    AdviceDef { id, finding, activation: Activation::Restart, advise }
}

pub(in crate::fix::remedies) const COMPRESS_LESS: AdviceDef =
    def("compress-less", FindingId::COMPRESSION_HOT, |_, _| advice("remedy-compress-less-text", "remedy-compress-less-risk"));
pub(in crate::fix::remedies) const RESUME_SESSIONS: AdviceDef = def("resume-tls-sessions", FindingId::TLS_HANDSHAKE_HOT, |_, _| {
    advice("remedy-resume-tls-sessions-text", "remedy-resume-tls-sessions-risk")
});
pub(in crate::fix::remedies) const KEEP_SCRIPTS: AdviceDef = def("keep-scripts-compiled", FindingId::OPCODE_CACHE_OFF, |_, _| {
    advice("remedy-keep-scripts-compiled-text", "remedy-keep-scripts-compiled-risk")
});
/// For what was set up for a server under load, or has no level: somebody must say that it is not needed any more.
pub(in crate::fix::remedies) const SWITCH_STEPS_OFF: AdviceDef = def("switch-steps-off", FindingId::DEBUG_LOG, |ctx, placed| {
    let is_left =
        |nginx: &NginxConfig| nginx.rewrite_log.is_some() || nginx.debug_connections || nginx.debug_logs.iter().any(|log| log.is_memory);
    let is_any_left = tiers(ctx, placed).into_iter().filter_map(|tier| ctx.nginx_of(tier)).any(is_left);
    advice("remedy-switch-steps-off-text", "remedy-switch-steps-off-risk").filter(|_| is_any_left)
});
/// Which way is open is the program's: nobody but its owner can turn a script into a server. Behind another server each process may serve one connection, and that one decides how many are started.
pub(in crate::fix::remedies) const KEEP_PROCESSES: AdviceDef = def("keep-processes", FindingId::PROCESS_STARTS, |ctx, placed| {
    let called = tiers(ctx, placed).into_iter().find(|tier| !ctx.path.is_first(tier));
    let Some(called) = called else { return advice("remedy-keep-processes-text", "remedy-keep-processes-risk") };
    let text = Message::new("remedy-keep-processes-text-connections").with("tier", called.name.as_str());
    let text = text.with("callers", ctx.path.callers(called.id).map(|tier| tier.name.as_str()).collect::<Vec<_>>().join(", "));
    Some(Advice::words(text, "remedy-keep-processes-risk", Lift::Cost))
});
pub(in crate::fix::remedies) const OTHER_ALLOCATOR: AdviceDef = def("try-another-allocator", FindingId::ALLOCATOR_HOT, |_, _| {
    advice("remedy-try-another-allocator-text", "remedy-try-another-allocator-risk")
});
pub(in crate::fix::remedies) const SPLIT_LOCK: AdviceDef =
    def("split-lock", FindingId::LOCK_CONTENTION, |_, _| advice("remedy-split-lock-text", "remedy-split-lock-risk"));
/// Where a setting of the server says how many threads serve.
pub(in crate::fix::remedies) const RAISE_WORKERS: AdviceDef = AdviceDef {
    id: "raise-worker-processes",
    finding: FindingId::SINGLE_CORE,
    activation: Activation::Reload,
    advise: |ctx, placed| {
        let (processes, cores) = (few_processes(ctx, placed)?, placed.limit?);
        let text = Message::new("remedy-raise-worker-processes-text").with("count", f64::from(processes.value)).with("cores", cores);
        let text = text.with("where", processes.origin.to_string());
        Some(Advice::words(text, "remedy-raise-worker-processes-risk", Lift::Cost))
    },
};
pub(in crate::fix::remedies) const MORE_WORKERS: AdviceDef = def("use-more-cores", FindingId::SINGLE_CORE, |ctx, placed| {
    if few_processes(ctx, placed).is_some() {
        return None;
    }
    let turns = tiers(ctx, placed).into_iter().find_map(|tier| Turns::of_tier(ctx, tier));
    // It executes all commands in one thread, whatever others it has (redis.io/docs, latency).
    let identities =
        || tiers(ctx, placed).into_iter().flat_map(|tier| &tier.pids).filter_map(|pid| ctx.obs.processes.get(pid)?.identity.last());
    let is_redis = identities().any(|identity| matches!(identity.comm.as_str(), "redis-server" | "valkey-server"));
    let limiting = limiting(ctx);
    let mut idle = limiting.iter().filter_map(|limiting| limiting.with_idle_workers(ctx));
    let some = idle.find(|(tier, _)| placed.owner.has(tier.id));
    let text = match some {
        Some((tier, _)) => Message::new("remedy-use-more-cores-text-some").with("tier", tier.name.as_str()),
        None if is_redis => Message::new("remedy-use-more-cores-text-redis"),
        None => turns.map_or_else(
            || Message::new("remedy-use-more-cores-text"),
            |turns| Message::new("remedy-use-more-cores-text-turns").with("by", turns.by()),
        ),
    };
    Some(Advice::words(text, "remedy-use-more-cores-risk", Lift::Cost))
});

/// The setting of an nginx that starts fewer workers than there are cores for it.
fn few_processes<'a>(ctx: &Context<'a>, placed: &StationReading) -> Option<&'a Setting<u32>> {
    let all = tiers(ctx, placed).into_iter().filter_map(|tier| ctx.nginx_of(tier)).map(|nginx| &nginx.worker_processes);
    all.into_iter().find(|processes| placed.limit.is_some_and(|cores| f64::from(processes.value) < cores))
}

pub(in crate::fix::remedies) const SPREAD_PACKETS: AdviceDef = def("spread-received-packets", FindingId::SOFTIRQ_ON_ONE_CORE, |_, _| {
    advice("remedy-spread-received-packets-text", "remedy-spread-received-packets-risk")
});
pub(in crate::fix::remedies) const LOOK_AT_ANSWERS: AdviceDef =
    def("look-at-answers", FindingId::BUSY_POLLING, |_, _| advice("remedy-look-at-answers-text", "remedy-look-at-answers-risk"));

/// A larger heap for a program that collects garbage too often.
pub(in crate::fix::remedies) const GIVE_MORE_HEAP: AdviceDef = def("give-more-heap", FindingId::COLLECTS_GARBAGE, |ctx, placed| {
    let tier = ctx.only_tier(&placed.owner)?;
    let pid = tier.pids.first().map(u32::to_string).unwrap_or_default();
    let text = Message::new("remedy-give-more-heap-text").with("tier", tier.name.as_str()).with("pid", pid);
    Some(Advice::words(text, "remedy-give-more-heap-risk", Lift::Further))
});

fn advice(text: &'static str, risk: &'static str) -> Option<Advice> {
    Some(Advice::words(Message::new(text), risk, Lift::Cost))
}
