//! The work that a profile makes for those who show it: each walks the stack of each thread and core. Stacks that would be walked beyond the bound are `[other]`.

use std::collections::HashMap;

use super::{Profile, Stack, StackEnd};
use crate::layers::layer::Layer;
use crate::sampling::interned;

/// Functions that are walked at most: an hour of a large host has less.
const WALKED_MAX: usize = 1 << 25;

/// What is walked once: a stack of a thread on a core.
type Walk = (u32, u32, u32);

impl Profile {
    /// Counts the samples of the lightest stacks as `[other]` where walking all of them would take too long, and says how many.
    pub(super) fn bound_within(&mut self, walked_max: usize) {
        let lengths: Vec<usize> = self.stacks.iter().map(|stack| stack.frames.len() + 1).collect();
        let length = |stack: u32| usize::try_from(stack).ok().and_then(|stack| lengths.get(stack)).copied().unwrap_or(0);
        if self.samples.iter().fold(0, |sum: usize, sample| sum.saturating_add(length(sample.stack))) <= walked_max {
            return;
        }
        let mut weights: HashMap<Walk, u64> = HashMap::new();
        for sample in &self.samples {
            let weight = weights.entry((sample.stack, sample.thread, sample.cpu)).or_default();
            *weight = weight.saturating_add(sample.weight);
        }
        let mut heaviest: Vec<(u64, Walk)> = weights.drain().map(|(walk, weight)| (weight, walk)).collect();
        drop(weights);
        heaviest.sort_unstable_by_key(|(weight, walk)| (std::cmp::Reverse(*weight), *walk));
        let mut walked = 0;
        let within = heaviest.iter().take_while(|(_, (stack, ..))| {
            walked += length(*stack);
            walked <= walked_max
        });
        let mut beyond: Vec<Walk> = heaviest[within.count()..].iter().map(|(_, walk)| *walk).collect();
        if beyond.is_empty() {
            return;
        }
        beyond.sort_unstable();
        let other = self.other_stack();
        let mut moved = 0;
        for sample in &mut self.samples {
            if beyond.binary_search(&(sample.stack, sample.thread, sample.cpu)).is_ok() {
                sample.stack = other;
                moved += 1;
            }
        }
        self.left_out.extend(interned::left_out(moved));
    }

    /// [`Profile::bound_within`] the usual bound.
    pub(crate) fn bound(&mut self) {
        self.bound_within(WALKED_MAX);
    }

    /// The number of a stack that stands for others.
    fn other_stack(&mut self) -> u32 {
        let [frame, stack] = [self.frames.len(), self.stacks.len()].map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        self.frames.push(interned::other_frame());
        self.stacks.push(Stack { frames: vec![frame], end: StackEnd::Kernel, layer: Layer::Unknown });
        stack
    }
}

#[cfg(test)]
mod tests {
    use crate::output::folded;

    #[test]
    fn the_lightest_stacks_beyond_the_work_of_a_profile_are_other() {
        let text: String = (1..=9).map(|number| format!("a;f;g{number} {number}\n")).collect();
        let mut profile = folded::read(&text).unwrap();
        let same = profile.clone();
        profile.bound_within(9 * 3);
        assert_eq!(profile, same, "each stack of the thread is walked once");
        profile.bound_within(4 * 3);
        let other = profile.samples.iter().filter(|sample| profile.of(sample).is_some_and(|(stack, _)| stack.frames == [10])).count();
        assert_eq!((other, profile.samples.len(), profile.frames[10].name.as_str()), (15, 45, "[other]"), "1 to 5 of 9");
        assert_eq!(profile.left_out, ["15 samples in stacks beyond the bounds of a profile are counted as [other]"]);
    }
}
