//! How many threads of a tier serve: as many as the samples agree were taken at once, and none of those that only accept.

use super::looks::{accepts_only, are_enough};
use crate::facts::Context;
use crate::facts::path::Tier;
use crate::observation::Identity;

/// Share of the samples that have at least as many taken as there are. The sockets of a sample are not all read at the same moment, so one that is answered and the
/// next of the same thread may both be counted in a few samples; of a full pool most samples have all.
const REACHED_SHARE: f64 = 0.25;

/// Share of the looks at which a thread that only accepts waits for new work: at the others it waits for a core, or for a lock that another thread has just left.
const ACCEPTS_SHARE: f64 = 0.9;

/// Requests for each thread after which every one that serves has run: of threads that take requests at random one is left out by ten for each once in 22,000 times (e^-10).
const TURNS_MIN: u64 = 10;

/// The number taken that this share of the samples reaches. `None` if none was ever taken.
pub(super) fn level(busy: &[usize]) -> Option<usize> {
    let mut sorted = busy.to_vec();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let place = (REACHED_SHARE * sorted.len() as f64).ceil() as usize;
    sorted.get(place.saturating_sub(1)).copied().filter(|level| *level > 0)
}

/// The processes with several threads whose main thread was seen at work in accepting alone.
pub(super) fn acceptors(ctx: &Context<'_>, tier: &Tier, workers: &[&Identity]) -> usize {
    let has_threads = |pid: u32| ctx.obs.processes.get(&pid).and_then(|process| process.cpu.last()).is_some_and(|used| used.threads > 1);
    let accepts = |pid: u32| {
        let (alone, looks) = accepts_only(ctx, tier, pid);
        are_enough(looks) && alone as f64 >= ACCEPTS_SHARE * looks as f64
    };
    workers.iter().map(|identity| identity.pid).filter(|pid| has_threads(*pid) && accepts(*pid)).count()
}

/// Threads that ran at all under a load that each of them must have served several times: at most so many serve. `None` without such a load, or if not all threads were read.
pub(super) fn that_ran(ctx: &Context<'_>, workers: &[&Identity], threads: usize) -> Option<usize> {
    let load = ctx.obs.load.as_ref()?;
    if load.requests < TURNS_MIN * threads as u64 {
        return None;
    }
    let of_process = |pid: u32| {
        let (first, last, _) = ctx.around(&ctx.obs.processes.get(&pid)?.cpu)?;
        let ran = last.ran_since(first).filter(|(_, ran_ns)| *ran_ns > 0).count();
        (!first.thread_times.is_empty() && last.thread_times.len() == last.threads as usize).then_some(ran)
    };
    workers.iter().map(|identity| of_process(identity.pid)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_few_samples_have_is_no_number_of_threads() {
        assert_eq!(level(&[4, 4, 4, 5, 4, 4, 3, 4, 4, 4, 4, 4]), Some(4));
        assert_eq!(level(&[5, 5, 4, 5]), Some(5));
        assert_eq!(level(&[2, 5, 2, 5, 2, 5, 2, 5, 2, 5]), Some(5));
        assert_eq!((level(&[1]), level(&[0, 0]), level(&[])), (Some(1), None, None));
    }
}
