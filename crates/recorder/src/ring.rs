//! The samples of the last minutes in memory.

use std::collections::VecDeque;

use crate::sample::Sample;

/// The newest samples, the oldest first.
#[derive(Debug, Clone)]
pub struct Ring {
    samples: VecDeque<Sample>,
    samples_max: usize,
}

impl Ring {
    /// Keeps this many.
    pub fn new(samples_max: usize) -> Self {
        Self { samples: VecDeque::with_capacity(samples_max), samples_max: samples_max.max(1) }
    }

    /// Adds a sample; the oldest goes if there is no room.
    pub fn push(&mut self, sample: Sample) {
        if self.samples.len() == self.samples_max {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// The newest one.
    pub fn newest(&self) -> Option<&Sample> {
        self.samples.back()
    }

    /// Those that began in this span (seconds since 1970, the end excluded), the oldest first.
    pub fn between(&self, from_s: u64, to_s: u64) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |sample| (from_s..to_s).contains(&sample.at_s))
    }

    /// All, the oldest first.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = &Sample> {
        self.samples.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_first() {
        let mut ring = Ring::new(3);
        (0..5).for_each(|at_s| ring.push(Sample { at_s, span_s: 1, ..Sample::default() }));
        let times = |samples: &mut dyn Iterator<Item = &Sample>| samples.map(|sample| sample.at_s).collect::<Vec<_>>();
        assert_eq!(times(&mut ring.all()), [2, 3, 4]);
        assert_eq!(times(&mut ring.between(3, 4)), [3]);
        assert_eq!(ring.newest().map(|sample| sample.at_s), Some(4));
    }
}
