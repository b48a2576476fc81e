//! How surely the p99 of a load is known: requests that share a moment share their fate, so that they tell less than as many independent ones.

use crate::results::histogram::Durations;

/// Batches that are held against each other: the lowest number that is advised for batch means (B. Schmeiser, "Batch size effects in the analysis of
/// simulation output", 1982: 10 to 30, and hardly more is gained by more), for the longer a batch, the less does it depend on the one before.
const BATCHES: usize = 10;
/// Student's t with nine degrees of freedom, two-sided 95 %.
const T_95: f64 = 2.262_157;
/// Pieces that are kept of a load; when they are full, each two become one of twice the length.
const PIECES_MAX: usize = 64;
/// Steps of a factor of two, from below a microsecond to half an hour.
const STEPS: usize = 32;
/// The quantile.
const QUANTILE: f64 = 0.99;

/// How many requests of a piece took how long, each step up to twice as long as the one before.
type Piece = [u32; STEPS];

/// One thread's pieces. A piece is a number of slices, the same for all but the one under way.
#[derive(Debug, Clone)]
pub(crate) struct Tails {
    pieces: Vec<Piece>,
    piece: Piece,
    slices: u32,
    slices_each: u32,
}

impl Tails {
    pub(crate) const fn new() -> Self {
        Tails { pieces: Vec::new(), piece: [0; STEPS], slices: 0, slices_each: 1 }
    }

    #[inline(always)]
    pub(crate) fn record_ns(&mut self, latency_ns: u64) {
        let step = (u64::BITS - (latency_ns / 1000).leading_zeros()) as usize;
        self.piece[step.min(STEPS - 1)] += 1;
    }

    /// Ends a slice.
    pub(crate) fn roll(&mut self) {
        self.slices += 1;
        if self.slices < self.slices_each {
            return;
        }
        self.slices = 0;
        self.pieces.push(std::mem::replace(&mut self.piece, [0; STEPS]));
        if self.pieces.len() == PIECES_MAX {
            self.double();
        }
    }

    /// Makes each two pieces one. The last of an odd number is dropped: it would be half a piece.
    fn double(&mut self) {
        self.slices_each *= 2;
        self.pieces = self.pieces.chunks_exact(2).map(sum).collect();
    }

    /// Adds what another thread has counted in the same time.
    pub(crate) fn add(&mut self, mut other: Tails) {
        while self.slices_each < other.slices_each {
            self.double();
        }
        while other.slices_each < self.slices_each {
            other.double();
        }
        self.pieces.resize(self.pieces.len().max(other.pieces.len()), [0; STEPS]);
        for (piece, added) in self.pieces.iter_mut().zip(&other.pieces) {
            *piece = sum(&[*piece, *added]);
        }
    }

    /// The 95 % interval of the p99 of `durations`, microseconds: the order statistics between which it lies, as for so many independent requests as tell as
    /// much as these. Nothing where the load was too short to see how its parts differ, or too few requests ended for the upper end to be among them.
    pub(crate) fn p99_us(&self, durations: &Durations) -> Option<(u64, u64)> {
        let count = durations.count();
        let half = T_95 * (QUANTILE * (1.0 - QUANTILE) * self.effect()? / count as f64).sqrt();
        (count > 0 && QUANTILE + half < 1.0).then(|| (durations.at((QUANTILE - half).max(0.0)), durations.at(QUANTILE + half)))
    }

    /// By how much the share of slow requests varies more from batch to batch than chance alone would let it (the design effect, L. Kish, 1965); at least 1.
    /// Slow are those beyond the step that comes nearest to the slowest hundredth.
    fn effect(&self) -> Option<f64> {
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

/// Requests of a step and above.
fn count(piece: &Piece, from: usize) -> f64 {
    piece[from..].iter().map(|count| f64::from(*count)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A load of so many slices of a thousand requests, of which `slow` take long in the slice of that number.
    fn loaded(slices: u64, slow: impl Fn(u64) -> u64) -> (Tails, Durations) {
        let (mut tails, mut durations) = (Tails::new(), Durations::new());
        for slice in 0..slices {
            for request in 0..1000 {
                // Slow ones are spread evenly from 10 to 20 ms, the others from 1 to 2.
                let latency_ns =
                    if request < slow(slice) { 10_000_000 } else { 1_000_000 } / 1000 * (1000 + (request * 7919 + slice) % 1000);
                tails.record_ns(latency_ns);
                durations.record_ns(latency_ns);
            }
            tails.roll();
        }
        (tails, durations)
    }

    #[test]
    fn requests_that_are_slow_together_tell_less() {
        let (tails, durations) = loaded(40, |_| 15);
        let (low, high) = tails.p99_us(&durations).unwrap();
        let p99 = durations.percentiles().p99;
        assert!(low <= p99 && p99 <= high && low >= 10_000, "{low} {p99} {high}");
        // As many slow ones, but all in a tenth of the time: whether such a time falls into a load or not decides where the p99 is.
        let (tails, durations) = loaded(40, |slice| if slice < 4 { 150 } else { 0 });
        let (low, high) = tails.p99_us(&durations).map_or((0, u64::MAX), |range| range);
        assert!(low < 2_100, "it may as well be that of the others: {low} {high}");
    }

    #[test]
    fn what_is_too_short_or_too_little_tells_nothing() {
        let (tails, durations) = loaded(9, |_| 15);
        assert_eq!(tails.p99_us(&durations), None, "nine slices are no ten batches");
        let (mut tails, mut durations) = (Tails::new(), Durations::new());
        for request in 0..400u64 {
            tails.record_ns(request * 1_000_000);
            durations.record_ns(request * 1_000_000);
            (request % 20 == 19).then(|| tails.roll());
        }
        assert_eq!(tails.p99_us(&durations), None, "of 400 requests none is known to lie above the p99");
        assert_eq!(Tails::new().p99_us(&Durations::new()), None);
    }

    #[test]
    fn pieces_stay_bounded_and_threads_add_up() {
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
