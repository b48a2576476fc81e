//! Advice `raise-nofile-by-hand`: more file descriptors for a program whose configuration this program does not know.

use super::raise_nofile;
use super::servers;
use crate::facts::Context;
use crate::facts::path::Tier;
use crate::fix::change::Activation;
use crate::fix::remedies::definition::{Advice, AdviceDef};
use crate::fix::remedies::sums::{Advised, AtOnce};
use crate::fix::remedy::{Signal, Step};
use crate::judge::id::{FindingId, StationId};
use crate::judge::station::StationReading;
use crate::judge::stations::file_descriptors::Files;
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const ADVICE: AdviceDef =
    AdviceDef { id: "raise-nofile-by-hand", finding: FindingId::FILES_EXHAUSTED, activation: Activation::Live, advise };

/// Descriptors per request under way: its connection, and one that it opens itself.
const FILES_PER_REQUEST: f64 = 2.0;

fn advise(ctx: &Context<'_>, placed: &StationReading) -> Option<Advice> {
    // If the remedy `raise-nofile` applies, it replaces this advice.
    if raise_nofile::propose(ctx, placed).is_some() {
        return None;
    }
    let tier = ctx.only_tier(&placed.owner)?;
    let files = Files::of(ctx, tier)?;
    let twice = Advised::twice(files.limit);
    let asked = AtOnce::of(ctx)
        .map(|at_once| Advised::new(FILES_PER_REQUEST * at_once.number, Message::new("sum-files").with("at_once", at_once.sum)));
    let advised = asked.map_or_else(|| twice.clone(), |asked| asked.at_least(twice.clone())).power_of_two(u64::MAX);
    let wanted = advised.number;
    let limits: Vec<(u32, u64, Option<u64>)> =
        tier.pids.iter().filter_map(|pid| limits_of(ctx, *pid)).filter(|(_, soft, _)| *soft < wanted).collect();
    let raised = limits.iter().map(|(pid, _, hard)| (*pid, wanted, hard.map(|hard| hard.max(wanted))));
    Some(Advice {
        text: Message::new("remedy-raise-nofile-by-hand-text")
            .with("tier", tier.name.as_str())
            .with("from", files.limit)
            .with("to", wanted)
            .with("sum", advised.sum),
        risk: Message::new("remedy-raise-nofile-by-hand-risk"),
        runtime: commands(raised),
        persistent: persistent(ctx, tier, wanted),
        undo: commands(limits.iter().copied()),
        signal: Signal::Refusals(StationId::FILE_DESCRIPTORS),
        lifts: Lift::Away,
    })
}

/// A command for all processes that get the same limits, the soft and the hard one. What they start later inherits them.
fn commands(limits: impl Iterator<Item = (u32, u64, Option<u64>)>) -> Vec<Step> {
    let mut alike: Vec<(String, Vec<String>)> = Vec::new();
    for (pid, soft, hard) in limits {
        let told = format!("{soft}:{}", hard.map_or_else(|| "unlimited".to_owned(), |hard| hard.to_string()));
        match alike.iter_mut().find(|(known, _)| *known == told) {
            Some((_, pids)) => pids.push(pid.to_string()),
            None => alike.push((told, vec![pid.to_string()])),
        }
    }
    let command = |(limits, pids): (String, Vec<String>)| match &pids[..] {
        [pid] => format!("prlimit --pid {pid} --nofile={limits}"),
        pids => format!("for pid in {}; do prlimit --pid $pid --nofile={limits}; done", pids.join(" ")),
    };
    alike.into_iter().map(|limits| Step::command(command(limits))).collect()
}

fn limits_of(ctx: &Context<'_>, pid: u32) -> Option<(u32, u64, Option<u64>)> {
    let limits = ctx.obs.processes.get(&pid)?.limits.last()?;
    Some((pid, limits.open_files_soft?, limits.open_files_hard))
}

/// Where the limit is set permanently: php-fpm has its own setting (rlimit_files), everything else gets the limit from what starts it.
fn persistent(ctx: &Context<'_>, tier: &Tier, wanted: u64) -> Vec<Step> {
    let php_fpm = servers::of(ctx, tier).into_iter().find_map(|server| server.view().php_fpm());
    let step = match php_fpm {
        Some(php_fpm) => {
            Step::lines(Message::new("step-php-fpm-files").with("file", php_fpm.file.as_str()), format!("rlimit_files = {wanted}"))
        }
        None => Step::lines(Message::new("step-unit-files"), format!("[Service]\nLimitNOFILE={wanted}")),
    };
    vec![step]
}
