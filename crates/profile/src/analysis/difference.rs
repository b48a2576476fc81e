//! Compares two profiles: what takes a larger or smaller share of the busy time than before.

use serde::Serialize;

use crate::analysis::report::report;
use crate::layers::layer::Layer;
use crate::profile::{Frame, Profile, Sample, Stack, Thread};
use crate::sampling::interned::{Interned, Room};

/// Functions and stacks of two profiles, with the samples of each.
#[derive(Debug)]
pub struct Difference {
    /// Functions, each stored once.
    pub frames: Vec<Frame>,
    /// Stacks, each stored once.
    pub stacks: Vec<Stack>,
    /// Threads of both.
    pub threads: Vec<Thread>,
    /// Samples of the later profile.
    pub now: Vec<Sample>,
    /// Samples of the earlier profile.
    pub before: Vec<Sample>,
}

/// A share in both profiles.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// A layer's title or a function's name.
    pub name: String,
    /// Its share of the busy time in the earlier profile.
    pub before: f64,
    /// Its share in the later profile.
    pub now: f64,
    /// True if chance alone would rarely (5 %) give so large a difference with this many samples.
    pub beyond_chance: bool,
}

/// Joins two profiles.
pub fn join(now: &Profile, before: &Profile) -> Difference {
    // Both are bounded.
    let mut interned = Interned::within(Room::UNBOUNDED);
    let mut threads = Vec::new();
    let now = renumber_samples(now, &mut interned, &mut threads);
    let before = renumber_samples(before, &mut interned, &mut threads);
    let (frames, stacks, _) = interned.into_lists();
    Difference { frames, stacks, threads, now, before }
}

/// A profile's samples, renumbered for the common lists.
fn renumber_samples(profile: &Profile, interned: &mut Interned, threads: &mut Vec<Thread>) -> Vec<Sample> {
    let first = u32::try_from(threads.len()).unwrap_or(u32::MAX);
    threads.extend(profile.threads.iter().cloned());
    let stacks: Vec<u32> = (profile.stacks.iter())
        .map(|stack| {
            let frames = profile.frames_of(stack).into_iter().map(|frame| interned.frame(frame)).collect();
            interned.stack(frames, stack.end, stack.layer).unwrap_or_else(|| interned.other_stack())
        })
        .collect();
    let renumbered = profile.samples.iter().filter_map(|sample| {
        let stack = *stacks.get(usize::try_from(sample.stack).ok()?)?;
        Some(Sample { stack, thread: sample.thread.saturating_add(first), ..*sample })
    });
    renumbered.collect()
}

/// Layers whose share changed, largest changes first.
pub fn layers(now: &Profile, before: &Profile) -> Vec<Change> {
    let shares =
        |profile: &Profile| -> Vec<(Layer, f64)> { report(profile).layers.into_iter().map(|layer| (layer.layer, layer.share)).collect() };
    let titled = |shares: Vec<(Layer, f64)>| shares.into_iter().map(|(layer, share)| (layer.def().title.to_owned(), share)).collect();
    changes(titled(shares(now)), titled(shares(before)), counts(now, before))
}

/// Functions whose own share changed, largest changes first.
pub fn functions(now: &Profile, before: &Profile) -> Vec<Change> {
    let shares = |profile: &Profile| report(profile).hottest.into_iter().map(|function| (function.name, function.share)).collect();
    changes(shares(now), shares(before), counts(now, before))
}

fn counts(now: &Profile, before: &Profile) -> (usize, usize) {
    (now.busy().count(), before.busy().count())
}

fn changes(now: Vec<(String, f64)>, before: Vec<(String, f64)>, counts: (usize, usize)) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for (name, share) in now {
        changes.push(Change { name, before: 0.0, now: share, beyond_chance: false });
    }
    for (name, share) in before {
        match changes.iter_mut().find(|change| change.name == name) {
            Some(change) => change.before += share,
            None => changes.push(Change { name, before: share, now: 0.0, beyond_chance: false }),
        }
    }
    for change in &mut changes {
        change.beyond_chance = beyond_chance(change.now, change.before, counts);
    }
    changes.sort_by(|a, b| (b.now - b.before).abs().total_cmp(&(a.now - a.before).abs()).then_with(|| a.name.cmp(&b.name)));
    changes
}

/// The test for two proportions with a pooled variance, at 5 %.
fn beyond_chance(now: f64, before: f64, (count_now, count_before): (usize, usize)) -> bool {
    let (n, m) = (count_now as f64, count_before as f64);
    if n < 1.0 || m < 1.0 {
        return false;
    }
    let pooled = (now * n + before * m) / (n + m);
    let deviation = (pooled * (1.0 - pooled) * (1.0 / n + 1.0 / m)).max(0.0).sqrt();
    (now - before).abs() > 1.96 * deviation
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::folded;

    #[test]
    fn the_difference_lists_what_grew_and_what_shrank() {
        let before = folded::read("a;main;malloc 300\na;main;f 700\n").unwrap();
        let now = folded::read("b;main;deflate 10\na;main;f 990\n").unwrap();
        let layers = layers(&now, &before);
        assert_eq!(layers[0], Change { name: "allocator (user space)".to_owned(), before: 0.3, now: 0.0, beyond_chance: true });
        assert!(functions(&now, &before).iter().any(|change| change.name == "f" && change.now > change.before));
        let joined = join(&now, &before);
        assert_eq!((joined.now.len(), joined.before.len(), joined.threads.len()), (1000, 1000, 3));
        let names = |sample: &Sample| {
            joined.stacks[sample.stack as usize].frames.iter().map(|frame| joined.frames[*frame as usize].name.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(names(&joined.before[0]), ["main", "malloc"]);
        assert_eq!(joined.stacks[joined.before[0].stack as usize].layer, Layer::Allocator);
        assert_eq!(joined.threads[joined.before[0].thread as usize].program, "a");
    }

    #[test]
    fn few_samples_prove_nothing() {
        assert!(!beyond_chance(0.2, 0.1, (20, 20)));
        assert!(beyond_chance(0.2, 0.1, (2000, 2000)));
        assert!(!beyond_chance(0.2, 0.1, (0, 0)));
        assert!(!beyond_chance(0.0, 0.0, (10, 10)));
    }
}
