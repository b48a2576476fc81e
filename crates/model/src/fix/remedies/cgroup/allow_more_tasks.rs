//! Advice `allow-more-tasks`: more processes and threads for a cgroup or a user, or a higher limit of the kernel.

use crate::facts::Context;
use crate::facts::limit::tasks::{TaskScope, Tasks};
use crate::fix::change::Activation;
use crate::fix::remedies::definition::{Advice, AdviceDef};
use crate::fix::remedies::sums::Advised;
use crate::fix::remedy::{Signal, Step};
use crate::fix::steps::plain_unit;
use crate::judge::id::{FindingId, StationId};
use crate::judge::station::StationReading;
use crate::observation::{CgroupId, CgroupTasks};
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const ADVICE: AdviceDef =
    AdviceDef { id: "allow-more-tasks", finding: FindingId::TASKS_EXHAUSTED, activation: Activation::Live, advise };

/// The most that `kernel.pid_max` can be on a machine of 64 bits (PID_MAX_LIMIT, include/linux/threads.h).
const PID_MAX_LIMIT: u64 = 4 << 20;

fn advise(ctx: &Context<'_>, placed: &StationReading) -> Option<Advice> {
    let tier = ctx.only_tier(&placed.owner)?;
    let tasks = Tasks::of(ctx, tier)?;
    let advised = Advised::twice(tasks.limit).power_of_two(u64::MAX);
    let advised = if matches!(tasks.scope, TaskScope::Ids) { advised.at_most(PID_MAX_LIMIT, "sum-ids-most") } else { advised };
    let wanted = Some(advised.number).filter(|wanted| *wanted > tasks.limit)?;
    let text = Message::new("remedy-allow-more-tasks-text").with("from", tasks.limit).with("to", wanted).with("sum", advised.sum);
    let text = text.with("scope", tasks.scope.name());
    let (text, at, unit) = match &tasks.scope {
        TaskScope::Cgroup(id, group) => (text.with("whose", id.path.as_str()), Some((*id, *group)), "TasksMax"),
        TaskScope::User(user) => (text.with("whose", user.to_string()), None, "LimitNPROC"),
        TaskScope::Host | TaskScope::Ids | TaskScope::Mappings(_) => return of_kernel(tasks.scope.setting()?, tasks.limit, wanted, text),
    };
    let set = |number: Option<u64>| match at {
        Some((id, group)) => vec![Step::command(of_group(id, group, number.unwrap_or(tasks.limit)))],
        None => tier.pids.iter().filter_map(|pid| of_process(ctx, *pid, number)).collect(),
    };
    Some(Advice {
        runtime: set(Some(wanted)),
        undo: set(None),
        persistent: vec![Step::lines(Message::new("step-unit-tasks"), format!("[Service]\n{unit}={wanted}"))],
        signal: Signal::Refusals(StationId::TASKS),
        ..Advice::words(text, "remedy-allow-more-tasks-risk", Lift::Away)
    })
}

/// A limit of the kernel.
fn of_kernel(key: &'static str, from: u64, to: u64, text: Message) -> Option<Advice> {
    Some(Advice {
        runtime: vec![Step::command(format!("sysctl -w {key}={to}"))],
        undo: vec![Step::command(format!("sysctl -w {key}={from}"))],
        persistent: vec![Step::lines(Message::new("step-sysctl-tasks"), format!("{key} = {to}"))],
        signal: Signal::Goodput,
        ..Advice::words(text.with("key", key), "remedy-allow-more-tasks-risk", Lift::Away)
    })
}

/// Raises the limit of a process, or sets what it was. What it starts later inherits that.
fn of_process(ctx: &Context<'_>, pid: u32, number: Option<u64>) -> Option<Step> {
    let limits = ctx.obs.processes.get(&pid)?.limits.last()?;
    let soft = limits.tasks_soft?;
    let hard = limits.tasks_hard.map(|hard| hard.max(number.unwrap_or(0)));
    let hard = hard.map_or_else(|| "unlimited".to_owned(), |hard| hard.to_string());
    Some(Step::command(format!("prlimit --pid {pid} --nproc={}:{hard}", number.unwrap_or(soft))))
}

/// A unit's limit is set through the service manager, which would set its own again.
fn of_group(id: &CgroupId, group: &CgroupTasks, number: u64) -> String {
    match plain_unit(&id.path) {
        Some(unit) => format!("systemctl set-property --runtime {unit} TasksMax={number}"),
        None => format!("echo {number} > '{}/pids.max'", group.dir.replace('\'', "'\\''")),
    }
}
