//! Advice for requests that wait inside a program, or for it: more room at what they wait for if that is known, otherwise where to look.

use crate::facts::Context;
use crate::facts::path::Runtime;
use crate::facts::pool::awaited::Awaited;
use crate::facts::pool::workers::replaced;
use crate::facts::pool::{Pool, TakingTurns, worker_pids};
use crate::facts::queue::accepting::{Idle, holders, idle};
use crate::fix::change::Activation;
use crate::fix::remedies::definition::{Advice, AdviceDef};
use crate::fix::remedy::Step;
use crate::judge::id::FindingId;
use crate::judge::station::StationReading;
use crate::judge::stations::waiting::{args, found, held_by_call};
use crate::judge::stations::waits_at;
use crate::ledger::{Inside, WaitEvidence};
use crate::observation::Identity;
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const MORE_CONNECTIONS: AdviceDef = AdviceDef {
    id: "allow-more-connections",
    finding: FindingId::WAITS_INSIDE,
    activation: Activation::Reload,
    advise: |ctx, _| {
        let is_full = |inside: &Inside| matches!(inside.evidence, Some(WaitEvidence::FullCalls(_))) && held_by_call(ctx, inside).is_none();
        let inside = found(ctx).filter(is_full)?;
        let server = ctx.path.tiers[inside.tier].pids.iter().find_map(|pid| ctx.obs.processes.get(pid)?.identity.last()).map(program);
        let text = args(ctx, "remedy-allow-more-connections-text", &inside).with("server", server.unwrap_or_default());
        Some(Advice::words(text, "remedy-allow-more-connections-risk", Lift::Further))
    },
};

pub(in crate::fix::remedies) const LOOK_INSIDE: AdviceDef = AdviceDef {
    id: "look-inside",
    finding: FindingId::WAITS_INSIDE,
    activation: Activation::Live,
    advise: |ctx, _| {
        let inside = found(ctx)?;
        let tier = &ctx.path.tiers[inside.tier];
        let awaited = Awaited::of(ctx, tier, inside.mean.value).filter(|_| inside.evidence.as_ref().is_some_and(WaitEvidence::leaves_open));
        let text = match (&inside.evidence, awaited) {
            _ if let Some(what) = held_by_call(ctx, &inside) => args(ctx, "remedy-look-inside-call-text", &inside).with("what", what),
            (Some(WaitEvidence::SlowerThanPeers(_)), _) => args(ctx, "remedy-look-inside-peer-text", &inside),
            (_, Some(awaited)) => {
                args(ctx, "remedy-look-inside-for-text", &inside).with("what", awaited.what()).with("class", awaited.class())
            }
            _ => args(ctx, "remedy-look-inside-text", &inside),
        };
        Some(look(ctx, tier.pids.first().copied(), text))
    },
};

pub(in crate::fix::remedies) const LOOK_AT_TURNS: AdviceDef = AdviceDef {
    id: "look-inside",
    finding: FindingId::POOL_TAKES_TURNS,
    activation: Activation::Live,
    advise: |ctx, placed| {
        let tier = ctx.only_tier(&placed.owner)?;
        let pool = Pool::of(ctx, tier)?;
        let waiting = TakingTurns::of(ctx, tier, &pool).map_or(pool.busy_mean(), |held| held.waiting);
        let awaited = Awaited::of(ctx, tier, waiting);
        let text = match awaited {
            Some(awaited) => Message::new("remedy-look-inside-for-text").with("what", awaited.what()).with("class", awaited.class()),
            None => Message::new("remedy-look-inside-turns-text"),
        };
        let text = text.with("tier", tier.name.as_str());
        Some(look(ctx, worker_pids(ctx, tier).first().copied(), text))
    },
};

/// For requests that hold workers until these are ended.
pub(in crate::fix::remedies) const LOOK_AT_HANGING: AdviceDef = AdviceDef {
    id: "look-inside",
    finding: FindingId::REQUESTS_HANG,
    activation: Activation::Live,
    advise: |ctx, placed| {
        let tier = ctx.only_tier(&placed.owner)?;
        let text = Message::new("remedy-look-inside-hang-text").with("tier", tier.name.as_str());
        Some(look(ctx, worker_pids(ctx, tier).last().copied(), text))
    },
};

pub(in crate::fix::remedies) const LOOK_BEHIND: AdviceDef = AdviceDef {
    id: "look-inside",
    finding: FindingId::POOL_BLOCKED,
    activation: Activation::Live,
    advise: |ctx, placed| {
        let upstream = waits_at(ctx, ctx.only_tier(&placed.owner)?)?;
        let text = Message::new("remedy-look-inside-behind-text").with("tier", upstream.name.as_str());
        Some(look(ctx, upstream.pids.first().copied(), text))
    },
};

/// For a server that answers nothing.
pub(in crate::fix::remedies) const LOOK_AT_SILENT: AdviceDef = AdviceDef {
    id: "look-inside",
    finding: FindingId::ANSWERS_NONE,
    activation: Activation::Live,
    advise: |ctx, placed| {
        let tier = ctx.only_tier(&placed.owner)?;
        let text = Message::new("remedy-look-inside-silent-text").with("tier", tier.name.as_str());
        Some(look(ctx, worker_pids(ctx, tier).first().copied(), text))
    },
};

/// For connections that nobody accepts.
pub(in crate::fix::remedies) const LOOK_AT_SLEEPERS: AdviceDef =
    AdviceDef { id: "look-inside", finding: FindingId::ACCEPTS_NONE, activation: Activation::Live, advise: at_accepting };

/// For connections that are accepted too slowly.
pub(in crate::fix::remedies) const LOOK_AT_ACCEPTING: AdviceDef =
    AdviceDef { id: "look-inside", finding: FindingId::ACCEPTS_SLOWLY, activation: Activation::Live, advise: at_accepting };

fn at_accepting(ctx: &Context<'_>, placed: &StationReading) -> Option<Advice> {
    let tier = ctx.only_tier(&placed.owner)?;
    let listener = placed.at.listener_of(tier)?;
    let text = match idle(ctx, tier, listener) {
        Some(Idle::Stopped(_)) => return None,
        Some(Idle::Asleep(_)) => "remedy-look-inside-sleepers-text",
        None if replaced(ctx, tier).is_some() => "remedy-look-inside-replaced-text",
        None => "remedy-look-inside-accepting-text",
    };
    let pid = holders(ctx, tier, listener).into_iter().max();
    let text = Message::new(text).with("tier", tier.name.as_str()).with("listener", listener.listener.address.to_string());
    Some(look(ctx, pid, text))
}

/// These words, with the commands that look into a process.
fn look(ctx: &Context<'_>, pid: Option<u32>, text: Message) -> Advice {
    Advice { runtime: commands(ctx, pid), ..Advice::words(text, "remedy-look-inside-risk", Lift::Further) }
}

/// Commands that show the stacks at which the tier's threads stop, and how often they make which blocking system calls.
fn commands(ctx: &Context<'_>, pid: Option<u32>) -> Vec<Step> {
    let Some(pid) = pid else { return Vec::new() };
    let counts = ["syscalls:sys_enter_futex", "syscalls:sys_enter_clock_nanosleep", "syscalls:sys_enter_epoll_wait"];
    let counts: Vec<String> = counts.iter().map(|name| format!("--count {name}")).collect();
    let commands = [format!("chokepoint profile --off-cpu --pid {pid}"), format!("chokepoint profile --pid {pid} {}", counts.join(" "))];
    own_dump(ctx, pid).into_iter().chain(commands.into_iter().map(Step::command)).collect()
}

/// How a program's own runtime shows where its requests stop: the kernel sees threads, and not what runs on them. Go programs have no name of their own; for a program that
/// no runtime is known of, their dump is named among the words.
fn own_dump(ctx: &Context<'_>, pid: u32) -> Option<Step> {
    let identity = ctx.obs.processes.get(&pid)?.identity.last()?;
    let told = |id: &'static str, command: String| Some(Step::told(Message::new(id), command));
    // What would end another program than the one it is meant for is no command to paste.
    let words = |id: &'static str| Some(Step::words(Message::new(id).with("pid", pid.to_string())));
    if let Some((_, id)) = DATABASES.iter().find(|(name, _)| *name == program(identity)) {
        return words(id);
    }
    match Runtime::of(identity) {
        Some(Runtime::Java) => told("remedy-look-inside-java", format!("jstack {pid}")),
        Some(Runtime::Python(_)) => told("remedy-look-inside-python", format!("py-spy dump --pid {pid}")),
        Some(Runtime::Ruby) => told("remedy-look-inside-ruby", format!("rbspy snapshot --pid {pid}")),
        Some(Runtime::Node) => words("remedy-look-inside-node"),
        Some(Runtime::Php) => words("remedy-look-inside-php"),
        None if is_native(identity) => None,
        None => words("remedy-look-inside-go"),
    }
}

/// Databases, which tell themselves what their connections wait for.
const DATABASES: [(&str, &str); 4] = [
    ("mariadbd", "remedy-look-inside-mysql"),
    ("mysqld", "remedy-look-inside-mysql"),
    ("postgres", "remedy-look-inside-postgres"),
    ("redis-server", "remedy-look-inside-redis"),
];

/// Programs that are known to have no runtime.
fn is_native(identity: &Identity) -> bool {
    ["apache2", "haproxy", "httpd", "nginx"].contains(&program(identity))
}

/// The name of a process's program.
fn program(identity: &Identity) -> &str {
    identity.exe.as_deref().and_then(|exe| exe.rsplit('/').next()).unwrap_or(&identity.comm)
}
