//! Advice for requests that wait inside a program: more room at what they wait for if that is known, otherwise where to look.

use crate::facts::Context;
use crate::facts::path::Runtime;
use crate::fix::change::Activation;
use crate::fix::remedies::definition::{Advice, AdviceDef};
use crate::fix::remedy::Step;
use crate::judge::id::FindingId;
use crate::judge::stations::waiting::{args, found};
use crate::ledger::{Inside, WaitEvidence};
use crate::observation::Identity;
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const MORE_CONNECTIONS: AdviceDef = AdviceDef {
    id: "allow-more-connections",
    finding: FindingId::WAITS_INSIDE,
    activation: Activation::Reload,
    advise: |ctx, _| {
        let inside = found(ctx).filter(|inside| matches!(inside.evidence, Some(WaitEvidence::FullCalls(_))))?;
        let text = args(ctx, "remedy-allow-more-connections-text", &inside);
        Some(Advice::words(text, "remedy-allow-more-connections-risk", Lift::Further))
    },
};

pub(in crate::fix::remedies) const LOOK_INSIDE: AdviceDef = AdviceDef {
    id: "look-inside",
    finding: FindingId::WAITS_INSIDE,
    activation: Activation::Live,
    advise: |ctx, _| {
        let inside = found(ctx)?;
        let text: Message = args(ctx, "remedy-look-inside-text", &inside);
        Some(Advice { runtime: commands(ctx, &inside), ..Advice::words(text, "remedy-look-inside-risk", Lift::Further) })
    },
};

/// Commands that show the stacks at which the tier's threads stop, and how often they make which blocking system calls.
fn commands(ctx: &Context<'_>, inside: &Inside) -> Vec<Step> {
    let Some(pid) = ctx.path.tiers[inside.tier].pids.first() else { return Vec::new() };
    let counts = ["syscalls:sys_enter_futex", "syscalls:sys_enter_clock_nanosleep", "syscalls:sys_enter_epoll_wait"];
    let counts: Vec<String> = counts.iter().map(|name| format!("--count {name}")).collect();
    let commands = [format!("chokepoint profile --off-cpu --pid {pid}"), format!("chokepoint profile --pid {pid} {}", counts.join(" "))];
    own_dump(ctx, *pid).into_iter().chain(commands.into_iter().map(Step::command)).collect()
}

/// How a program's own runtime shows where its requests stop: the kernel sees threads, and not what runs on them. Go programs have no name of their own; for a program that
/// no runtime is known of, their dump is named among the words.
fn own_dump(ctx: &Context<'_>, pid: u32) -> Option<Step> {
    let identity = ctx.obs.processes.get(&pid)?.identity.last()?;
    let told = |id: &'static str, command: String| Some(Step::told(Message::new(id), command));
    // What would end another program than the one it is meant for is no command to paste.
    let words = |id: &'static str| Some(Step::words(Message::new(id).with("pid", pid.to_string())));
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

/// Programs that are known to have no runtime.
fn is_native(identity: &Identity) -> bool {
    const NATIVE: [&str; 8] = ["apache2", "haproxy", "httpd", "mariadbd", "mysqld", "nginx", "postgres", "redis-server"];
    let name = identity.exe.as_deref().and_then(|exe| exe.rsplit('/').next()).unwrap_or(&identity.comm);
    NATIVE.contains(&name)
}
