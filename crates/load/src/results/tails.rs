//! The uncertainty of a load's p99. Requests at the same moment tend to be slow together, so they say less than as many independent ones.

use crate::results::histogram::Durations;

/// Number of batches that are compared: the lowest that is recommended for batch means (B. Schmeiser, "Batch size effects in the analysis of simulation
/// output", 1982: 10 to 30, with little gain from more). The longer a batch is, the less it depends on the one before.
const BATCHES: usize = 10;
/// Student's t with nine degrees of freedom, two-sided 95 %.
const T_95: f64 = 2.262_157;
/// Maximum number of pieces of a load. When it is reached, pairs are merged and the length of a piece doubles.
const PIECES_MAX: usize = 64;
/// Steps of a factor of two, from below a microsecond to half an hour.
const STEPS: usize = 32;
/// The quantile.
const QUANTILE: f64 = 0.99;

/// Number of a piece's requests by latency. Each step is up to twice as long as the one before.
type Piece = [u32; STEPS];

/// One thread's pieces. All have the same number of slices, except the current one.
#[derive(Debug, Clone)]
pub(crate) struct Tails {
    pieces: Vec<Piece>,
    piece: Piece,
    slices: u32,
    slices_each: u32,
}

impl Default for Tails {
    fn default() -> Self {
        Tails { pieces: Vec::new(), piece: [0; STEPS], slices: 0, slices_each: 1 }
    }
}

impl Tails {
    #[inline(always)]
    pub(crate) fn record_ns(&mut self, latency_ns: u64) {
        let step = (u64::BITS - (latency_ns / 1000).leading_zeros()) as usize;
        self.piece[step.min(STEPS - 1)] += 1;
    }

    /// Ends a slice.
    pub(crate) fn end_slice(&mut self) {
        self.slices += 1;
        if self.slices < self.slices_each {
            return;
        }
        self.slices = 0;
        self.pieces.push(std::mem::replace(&mut self.piece, [0; STEPS]));
        if self.pieces.len() == PIECES_MAX {
            self.merge_pairs();
        }
    }

    /// Merges each pair of pieces. The last of an odd number is dropped, since it would be half a piece.
    fn merge_pairs(&mut self) {
        self.slices_each *= 2;
        self.pieces = self.pieces.chunks_exact(2).map(sum).collect();
    }

    /// Adds another thread's counts of the same time.
    pub(crate) fn add(&mut self, mut other: Tails) {
        while self.slices_each < other.slices_each {
            self.merge_pairs();
        }
        while other.slices_each < self.slices_each {
            other.merge_pairs();
        }
        self.pieces.resize(self.pieces.len().max(other.pieces.len()), [0; STEPS]);
        for (piece, added) in self.pieces.iter_mut().zip(&other.pieces) {
            *piece = sum(&[*piece, *added]);
        }
    }

    /// The 95 % interval of the p99 of `durations`, microseconds: order statistics for the equivalent number of independent requests. None if the load was
    /// too short to compare its parts, or if too few requests ended for the upper end to be among them.
    pub(crate) fn p99_us(&self, durations: &Durations) -> Option<(u64, u64)> {
        let count = durations.count();
        let half = T_95 * (QUANTILE * (1.0 - QUANTILE) * self.design_effect()? / count as f64).sqrt();
        (count > 0 && QUANTILE + half < 1.0).then(|| (durations.at((QUANTILE - half).max(0.0)), durations.at(QUANTILE + half)))
    }

    /// How much more the share of slow requests varies between batches than by chance (the design effect, L. Kish, 1965); at least 1. Slow requests are
    /// those above the step closest to the slowest hundredth.
    fn design_effect(&self) -> Option<f64> {
        let each = self.pieces.len() / BATCHES;
        let batches: Vec<Piece> = self.pieces.chunks_exact(each.max(1)).take(BATCHES).map(sum).collect();
        if each == 0 {
            return None;
        }
        let whole = sum(&batches);
        let total = count(&whole, 0);
        let wanted = total * (1.0 - QUANTILE);
        let distance = |step: &usize| (count(&whole, *step) / wanted).ln().abs();
        let step = (1..STEPS).filter(|step| count(&whole, *step) > 0.0).min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
        let share = count(&whole, step) / total;
        let chance = total * share * (1.0 - share);
        if chance <= 0.0 {
            return Some(1.0);
        }
        let squares = batches.iter().map(|batch| (count(batch, step) - share * count(batch, 0)).powi(2)).sum::<f64>();
        Some((squares * BATCHES as f64 / (BATCHES - 1) as f64 / chance).max(1.0))
    }
}

fn sum(pieces: &[Piece]) -> Piece {
    let mut all = [0u32; STEPS];
    for piece in pieces {
        all.iter_mut().zip(piece).for_each(|(all, count)| *all = all.saturating_add(*count));
    }
    all
}

/// Number of requests in this step and above.
fn count(piece: &Piece, from: usize) -> f64 {
    piece[from..].iter().map(|count| f64::from(*count)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A load of slices with a thousand requests each. `slow`: number of slow requests in a slice.
    fn loaded(slices: u64, slow: impl Fn(u64) -> u64) -> (Tails, Durations) {
        let (mut tails, mut durations) = (Tails::default(), Durations::default());
        for slice in 0..slices {
            for request in 0..1000 {
                // Slow ones are spread evenly from 10 to 20 ms, the others from 1 to 2.
                let latency_ns =
                    if request < slow(slice) { 10_000_000 } else { 1_000_000 } / 1000 * (1000 + (request * 7919 + slice) % 1000);
                tails.record_ns(latency_ns);
                durations.record_ns(latency_ns);
            }
            tails.end_slice();
        }
        (tails, durations)
    }

    #[test]
    fn requests_that_are_slow_together_widen_the_interval() {
        let (tails, durations) = loaded(40, |_| 15);
        let (low, high) = tails.p99_us(&durations).unwrap();
        let p99 = durations.percentiles().p99;
        assert!(low <= p99 && p99 <= high && low >= 10_000, "{low} {p99} {high}");
        // The same number of slow ones, but all in a tenth of the time. The p99 depends on whether such a time falls into the load.
        let (tails, durations) = loaded(40, |slice| if slice < 4 { 150 } else { 0 });
        let (low, high) = tails.p99_us(&durations).map_or((0, u64::MAX), |range| range);
        assert!(low < 2_100, "it may as well be that of the others: {low} {high}");
    }

    #[test]
    fn short_or_small_loads_have_no_interval() {
        let (tails, durations) = loaded(9, |_| 15);
        assert_eq!(tails.p99_us(&durations), None, "nine slices are no ten batches");
        let (mut tails, mut durations) = (Tails::default(), Durations::default());
        for request in 0..400u64 {
            tails.record_ns(request * 1_000_000);
            durations.record_ns(request * 1_000_000);
            (request % 20 == 19).then(|| tails.end_slice());
        }
        assert_eq!(tails.p99_us(&durations), None, "of 400 requests none is known to lie above the p99");
        assert_eq!(Tails::default().p99_us(&Durations::default()), None);
    }

    #[test]
    fn pieces_stay_bounded_and_threads_are_added() {
        let (mut long, durations) = loaded(1_000, |_| 15);
        assert!(long.pieces.len() < PIECES_MAX && long.slices_each == 16, "{} of {}", long.pieces.len(), long.slices_each);
        let alone = long.p99_us(&durations).unwrap();
        let (short, _) = loaded(500, |_| 15);
        let counted = |tails: &Tails| count(&sum(&tails.pieces), 0);
        let both = counted(&long) + counted(&short);
        long.add(short);
        assert!((both - counted(&long)).abs() <= 16_000.0, "all but a part of a piece");
        assert!(alone.0 <= alone.1);
    }
}
