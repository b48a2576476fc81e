//! Advice where other programs take the cores of a server: the usual priority for a server that has less, and less for the others.

use crate::facts::Context;
use crate::facts::cores::{Lowered, Taken, USUAL_NICE, taken};
use crate::fix::change::{Activation, Change, quoted};
use crate::fix::remedies::definition::{Advice, AdviceDef};
use crate::fix::remedy::Step;
use crate::fix::steps::{CgroupOwner, plain_unit};
use crate::judge::id::FindingId;
use crate::judge::station::StationReading;
use crate::observation::{BusyProcess, CgroupCpu, CgroupId, CgroupVersion, RealTimePolicy};
use crate::output::message::Message;
use crate::predict::Lift;

/// Processes for which commands are shown.
const SHOWN_MAX: usize = 3;

/// Lowest priority (sched(7)).
const NICE_MAX: i32 = 19;

pub(in crate::fix::remedies) const RAISE_PRIORITY: AdviceDef = AdviceDef {
    id: "raise-priority",
    finding: FindingId::CORES_TAKEN,
    activation: Activation::Live,
    advise: |ctx, placed| {
        let taken = taken_at(ctx, placed)?;
        let tier = taken.waits_most(ctx).filter(|_| taken.stolen <= taken.named)?;
        let own = || taken.servers.iter().map(|server| server.pid).filter(|pid| tier.pids.contains(pid)).take(SHOWN_MAX);
        let of_each = |step: &dyn Fn(u32) -> Step| own().map(step).collect();
        let (kind, now, undo): (_, Vec<Step>, Vec<Step>) = match Lowered::of(ctx, &taken, tier)? {
            Lowered::Group(id, now, share) => shared(id, now, share),
            Lowered::Idle(_) => ("other", of_each(&|pid| class(pid, "--other", 0)), of_each(&|pid| class(pid, "--idle", 0))),
            Lowered::Nice(_, own, other) => ("other", of_each(&|pid| nice(pid, other.max(USUAL_NICE))), of_each(&|pid| nice(pid, own))),
            Lowered::Session(pid, own, other) => ("other", vec![session_nice(pid, other.max(USUAL_NICE))], vec![session_nice(pid, own)]),
        };
        let text = Message::new("remedy-raise-priority-text").with("tier", tier.name.as_str()).with("kind", kind);
        Some(Advice { runtime: now, undo, ..Advice::words(text, "remedy-raise-priority-risk", Lift::Cost) })
    },
};

/// What others take of the cores at which the finding stands.
fn taken_at<'c, 'a>(ctx: &'c Context<'a>, placed: &StationReading) -> Option<Taken<'c, 'a>> {
    taken(ctx).into_iter().find(|taken| placed.at.cores.as_ref().is_some_and(|cores| cores.iter().eq(&taken.group.cores)))
}

/// How whoever made the control group changes its share, and the way back.
fn shared(id: &CgroupId, now: &CgroupCpu, share: u64) -> (&'static str, Vec<Step>, Vec<Step>) {
    let (file, usual) = id.version.usual_share();
    match (CgroupOwner::of(&id.path), id.version) {
        (CgroupOwner::Kubernetes, _) => ("kubernetes", Vec::new(), Vec::new()),
        // It is version 1's number that the engines take, whatever the host has.
        (CgroupOwner::Container { engine, id }, CgroupVersion::V1) => {
            let set = |share: u64| vec![Step::command(format!("{engine} update --cpu-shares {share} {id}"))];
            ("other", set(usual), set(share))
        }
        (CgroupOwner::Unit(unit), CgroupVersion::V2) => {
            let set = |share: u64| vec![weight(&quoted(unit), &share.to_string())];
            ("other", set(usual), set(share))
        }
        _ => {
            let set = |from: u64, to: u64| {
                let change = Change::Cgroup { dir: now.dir.clone(), file: file.to_owned(), from: from.to_string(), to: to.to_string() };
                vec![Step::command(change.command())]
            };
            ("other", set(share, usual), set(usual, share))
        }
    }
}

/// Programs that take cores are somebody's: who knows what they are for decides.
pub(in crate::fix::remedies) const GIVE_CORES_BACK: AdviceDef = AdviceDef {
    id: "give-cores-back",
    finding: FindingId::CORES_TAKEN,
    activation: Activation::Live,
    advise: |ctx, placed| {
        let taken = taken_at(ctx, placed)?;
        let tier = taken.waits_most(ctx)?.name.as_str();
        if taken.stolen > taken.named {
            let text = Message::new("remedy-give-cores-back-text-stolen").with("tier", tier);
            return Some(Advice::words(text, "remedy-give-cores-back-risk", Lift::Cost));
        }
        let first: Vec<&BusyProcess> = taken.main_takers().iter().flat_map(|taker| &taker.processes).copied().take(SHOWN_MAX).collect();
        let steps = |of: fn(&BusyProcess) -> Vec<Step>| first.iter().flat_map(|process| of(process)).collect();
        let text = Message::new("remedy-give-cores-back-text").with("tier", tier);
        let words = Advice::words(text, "remedy-give-cores-back-risk", Lift::Cost);
        Some(Advice { runtime: steps(yields), undo: steps(yields_no_more), ..words })
    },
};

/// Commands that let a program yield.
fn yields(process: &BusyProcess) -> Vec<Step> {
    // Weights and nice values are nothing to a real-time program.
    if process.realtime.is_some() {
        return vec![class(process.pid, "--other", 0)];
    }
    match unit(process) {
        Some(unit) => vec![weight(unit, "10")],
        None => [Some(nice(process.pid, NICE_MAX)), process.session_nice.map(|_| session_nice(process.pid, NICE_MAX))]
            .into_iter()
            .flatten()
            .collect(),
    }
}

/// Commands that take that back.
fn yields_no_more(process: &BusyProcess) -> Vec<Step> {
    if let Some(realtime) = process.realtime {
        let option = match realtime.policy {
            RealTimePolicy::Fifo => "--fifo",
            RealTimePolicy::RoundRobin => "--rr",
            // Its times are not known.
            RealTimePolicy::Deadline => return Vec::new(),
        };
        return vec![class(process.pid, option, realtime.priority)];
    }
    match unit(process) {
        Some(unit) => vec![weight(unit, "")],
        None => [process.session_nice.map(|was| session_nice(process.pid, was)), Some(nice(process.pid, process.nice))]
            .into_iter()
            .flatten()
            .collect(),
    }
}

/// The unit of a program that root's service manager started.
fn unit(process: &BusyProcess) -> Option<&str> {
    process.cgroup.as_deref().and_then(plain_unit)
}

fn weight(unit: &str, weight: &str) -> Step {
    let command = format!("systemctl set-property --runtime {unit} CPUWeight={weight}");
    Step::told(Message::new("remedy-give-cores-back-unit"), command)
}

fn class(pid: u32, option: &str, priority: u32) -> Step {
    Step::told(Message::new("remedy-give-cores-back-class"), format!("chrt --all-tasks {option} --pid {priority} {pid}"))
}

/// Each thread has a nice value of its own (setpriority(2), "C library/kernel differences").
fn nice(pid: u32, nice: i32) -> Step {
    Step::told(Message::new("remedy-give-cores-back-nice"), format!("renice -n {nice} -p $(ls /proc/{pid}/task)"))
}

fn session_nice(pid: u32, nice: i32) -> Step {
    Step::told(Message::new("remedy-give-cores-back-session"), format!("echo {nice} > /proc/{pid}/autogroup"))
}
