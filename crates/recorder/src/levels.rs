//! Levels of detail: samples of a second are kept for an hour, of ten seconds for a day, of a minute for thirty days. Each level adds up the one below it.

use crate::sample::Sample;

/// One level: the length of its samples, and how many are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    /// Length of a sample, seconds.
    pub span_s: u32,
    /// Most samples that are kept.
    pub samples_max: u32,
}

impl Level {
    /// All levels, the finest first. Each span is a multiple of the one before.
    pub const ALL: [Level; 3] = [
        Level { span_s: 1, samples_max: 60 * 60 },
        Level { span_s: 10, samples_max: 24 * 60 * 6 },
        Level { span_s: 60, samples_max: 30 * 24 * 60 },
    ];

    /// The finest level whose samples reach back to a time this many seconds ago; the coarsest for older ones.
    pub fn reaching(ago_s: u64) -> Self {
        let reaches = |level: &&Level| u64::from(level.span_s) * u64::from(level.samples_max) >= ago_s;
        *Self::ALL.iter().find(reaches).unwrap_or(&Self::ALL[Self::ALL.len() - 1])
    }
}

/// Adds samples of a second up to those of the coarser levels.
#[derive(Debug, Clone, Default)]
pub struct Levels {
    /// The sample under way of each level but the finest.
    open: [Option<Sample>; Level::ALL.len() - 1],
}

impl Levels {
    /// Takes a sample of a second and returns what is complete now: the sample itself, then those of coarser levels that ended before it. Spans begin at multiples
    /// of their length since 1970, so those of two runs of the program fit together.
    pub fn add(&mut self, sample: Sample) -> Vec<Sample> {
        let mut done = Vec::new();
        for (open, level) in self.open.iter_mut().zip(&Level::ALL[1..]) {
            let span = u64::from(level.span_s);
            let at_s = sample.at_s - sample.at_s % span;
            // A clock that was set begins a new span, earlier or later.
            done.extend(open.take_if(|open| open.at_s != at_s));
            open.get_or_insert_with(|| Sample { at_s, span_s: level.span_s, ..Sample::default() }).merge(&sample);
        }
        done.insert(0, sample);
        done
    }

    /// The samples under way of the coarser levels, to keep them at the end. Continued after a restart, two parts have the same beginning.
    pub fn finish(&mut self) -> Vec<Sample> {
        self.open.iter_mut().filter_map(Option::take).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Mean, TargetSample};

    fn second(at_s: u64, under_way: f64) -> Sample {
        let target = TargetSample { target: "a".to_owned(), under_way: Mean::of(Some(under_way), 1.0), ..TargetSample::default() };
        Sample { at_s, span_s: 1, targets: vec![target], host: None }
    }

    fn spans(samples: &[Sample]) -> Vec<(u64, u32)> {
        samples.iter().map(|sample| (sample.at_s, sample.span_s)).collect()
    }

    #[test]
    fn each_level_adds_up_the_seconds() {
        let mut levels = Levels::default();
        let done: Vec<Sample> = (1_195..1_265).flat_map(|at_s| levels.add(second(at_s, (at_s % 10) as f64))).collect();
        let of = |span_s: u32| done.iter().filter(|sample| sample.span_s == span_s).cloned().collect::<Vec<_>>();
        assert_eq!(of(1).len(), 70);
        assert_eq!(spans(&of(10)), (1_190..1_260).step_by(10).map(|at_s| (at_s, 10)).collect::<Vec<_>>());
        assert_eq!(spans(&of(60)), [(1_140, 60), (1_200, 60)]);
        let seen: Vec<Option<f64>> = of(60).iter().map(|sample| sample.targets[0].under_way.value()).collect();
        assert_eq!(seen, [Some(7.0), Some(4.5)], "of the first minute five seconds were seen");
        assert_eq!(spans(&levels.finish()), [(1_260, 10), (1_260, 60)]);
    }

    #[test]
    fn a_clock_that_jumps_begins_new_spans() {
        let mut levels = Levels::default();
        let done: Vec<(u64, u32)> = [100, 101, 50, 51, 10_000].into_iter().flat_map(|at_s| spans(&levels.add(second(at_s, 1.0)))).collect();
        assert_eq!(done, [(100, 1), (101, 1), (50, 1), (100, 10), (60, 60), (51, 1), (10_000, 1), (50, 10), (0, 60)]);
    }

    #[test]
    fn a_span_is_read_from_the_finest_level_that_reaches_it() {
        let of = |ago_s| Level::reaching(ago_s).span_s;
        assert_eq!([of(0), of(3_600), of(3_601), of(86_400), of(86_401), of(u64::MAX)], [1, 1, 10, 10, 60, 60]);
        for pair in Level::ALL.windows(2) {
            assert!(pair[1].span_s.is_multiple_of(pair[0].span_s));
        }
    }
}
