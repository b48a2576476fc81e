//! Where more requests stand during a drop than before it: the ledger's own lead to its cause.

use std::collections::BTreeMap;

use chokepoint_model::report::LedgerPlaceKind;
use serde::{Deserialize, Serialize};

use crate::sample::{Sample, TargetSample};

/// The least share of all requests that a place must have gained.
const SHARE_MIN: f64 = 0.1;

/// A place where more requests stand than before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GrownPlace {
    /// The tier, or "client".
    pub tier: String,
    /// The kind of place.
    pub place: LedgerPlaceKind,
    /// Mean number of requests before.
    pub before: f64,
    /// Mean number of requests during the drop.
    pub during: f64,
}

/// The places that gained at least a tenth of all requests that are under way during a drop, those that gained most first.
pub fn grown_places(series: &[Sample], target: &str, since_s: u64) -> Vec<GrownPlace> {
    let sum = |is_in: &dyn Fn(u64) -> bool| {
        let all = series.iter().filter(|sample| is_in(sample.at_s)).filter_map(|sample| sample.target(target));
        all.cloned().reduce(|mut sum, next| {
            sum.merge(&next);
            sum
        })
    };
    let means = |of: &TargetSample| -> BTreeMap<(String, LedgerPlaceKind), f64> {
        of.places.iter().map(|standing| ((standing.tier.clone(), standing.place), of.mean_at(standing))).collect()
    };
    let Some((before, during)) = sum(&|at_s| at_s < since_s).zip(sum(&|at_s| at_s >= since_s)) else { return Vec::new() };
    let (were, all) = (means(&before), during.under_way.value().unwrap_or(0.0));
    let round = |number: f64| (100.0 * number).round() / 100.0;
    let one = |((tier, place), now): ((String, LedgerPlaceKind), f64)| {
        let before = were.get(&(tier.clone(), place)).copied().unwrap_or(0.0);
        (now - before >= SHARE_MIN * all && now > before).then(|| GrownPlace { tier, place, before: round(before), during: round(now) })
    };
    let mut grown: Vec<GrownPlace> = means(&during).into_iter().filter_map(one).collect();
    grown.sort_by(|a, b| (b.during - b.before).total_cmp(&(a.during - a.before)));
    grown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Mean, Standing};

    #[test]
    fn the_place_that_gained_most_comes_first() {
        let at = |at_s: u64, places: &[(&str, LedgerPlaceKind, f64)]| {
            let standing = |(tier, place, number): &(&str, LedgerPlaceKind, f64)| Standing {
                tier: (*tier).to_owned(),
                place: *place,
                request_seconds: *number,
            };
            let under_way = Mean::of(Some(places.iter().map(|(.., number)| number).sum()), 1.0);
            let places = places.iter().map(standing).collect();
            let target = TargetSample { target: "t".to_owned(), under_way, places, ..TargetSample::default() };
            Sample { at_s, span_s: 1, targets: vec![target], host: None }
        };
        let calm = [("php", LedgerPlaceKind::Waiting, 2.0), ("nginx", LedgerPlaceKind::Cpu, 1.0)];
        let worse =
            [("php", LedgerPlaceKind::Waiting, 5.0), ("php", LedgerPlaceKind::AcceptQueue, 30.0), ("nginx", LedgerPlaceKind::Cpu, 1.2)];
        let series = [at(1, &calm), at(2, &calm), at(3, &worse), at(4, &worse)];
        let place = |tier: &str, place, before, during| GrownPlace { tier: tier.to_owned(), place, before, during };
        assert_eq!(grown_places(&series, "t", 3), [place("php", LedgerPlaceKind::AcceptQueue, 0.0, 30.0)]);
        assert_eq!(grown_places(&series[..2], "t", 3), []);
        assert_eq!(grown_places(&series, "u", 3), []);
    }
}
