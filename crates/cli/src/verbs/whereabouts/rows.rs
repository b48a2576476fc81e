//! The bars of the view: the chosen places in the chosen order, and rows for all others, so that the numbers add up.

use chokepoint_model::report::{LedgerPlace, LedgerReport};

use super::choice::{Choice, PlaceOrder};
use crate::report::view::ledger::{MEAN_MIN, PlaceRow, label};
use crate::report::view::{Ink, Phrases};

/// At most `room` rows, but at least one place and the rows for all others.
pub(super) fn rows(ledger: &LedgerReport, choice: &Choice, room: usize, phrases: Phrases<'_>) -> Vec<PlaceRow> {
    // A chosen tier without requests has no row; the other tiers are summed up.
    let is_chosen = |place: &&LedgerPlace| choice.tier.as_ref().is_none_or(|tier| *tier == place.tier);
    let (chosen, others): (Vec<&LedgerPlace>, Vec<&LedgerPlace>) = ledger.places.iter().partition(is_chosen);
    let all =
        if choice.order == PlaceOrder::Tier { by_tier(&chosen, phrases) } else { chosen.iter().map(|place| row(place, phrases)).collect() };
    let mut largest: Vec<usize> = (0..all.len()).filter(|place| all[*place].mean >= MEAN_MIN).collect();
    // The sort is stable: of equal places the first on the path are shown.
    largest.sort_by(|a, b| all[*b].mean.total_cmp(&all[*a].mean));
    largest.truncate(room.saturating_sub(rest_rows(choice)).max(1));
    let most = largest.first().map_or(0.0, |place| all[*place].mean);
    let (shown, small): (Vec<_>, Vec<_>) = all.into_iter().enumerate().partition(|(place, _)| largest.contains(place));
    let mut shown: Vec<PlaceRow> = shown.into_iter().map(|(_, row)| row).collect();
    if choice.order != PlaceOrder::Path {
        // The sort is stable: equal places keep the order of the path.
        shown.sort_by(|a, b| b.mean.total_cmp(&a.mean));
    }
    for row in shown.iter_mut().filter(|row| row.mean >= most) {
        row.ink = Ink::Strong;
    }
    let rest = |id, parts: &mut dyn Iterator<Item = (f64, f64)>| {
        let (mean, share) = parts.fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
        PlaceRow { label: phrases.word(id), place: None, mean, share, ink: Ink::Faint }
    };
    let rests = [
        rest("report-ledger-others", &mut small.iter().map(|(_, row)| (row.mean, row.share))),
        rest("where-tier-others", &mut others.iter().map(|place| (place.mean, place.share))),
    ];
    shown.extend(rests.into_iter().filter(|row| row.mean >= MEAN_MIN));
    shown.push(rest("report-ledger-unaccounted", &mut std::iter::once((ledger.unaccounted.mean, ledger.unaccounted.share))));
    shown
}

/// Rows for everything else: other places, unaccounted requests, and other tiers if one is chosen.
fn rest_rows(choice: &Choice) -> usize {
    2 + usize::from(choice.tier.is_some())
}

fn row(place: &LedgerPlace, phrases: Phrases<'_>) -> PlaceRow {
    PlaceRow { label: label(place, phrases), place: Some(place.place), mean: place.mean, share: place.share, ink: Ink::Plain }
}

/// One row for each tier, in the order of the path.
fn by_tier(places: &[&LedgerPlace], phrases: Phrases<'_>) -> Vec<PlaceRow> {
    let mut rows: Vec<PlaceRow> = Vec::new();
    for place in places {
        let label = if place.tier == "client" { phrases.word("where-tier-client") } else { place.tier.clone() };
        match rows.iter_mut().find(|row| row.label == label) {
            Some(row) => (row.mean, row.share) = (row.mean + place.mean, row.share + place.share),
            None => rows.push(PlaceRow { label, place: Some(place.place), mean: place.mean, share: place.share, ink: Ink::Plain }),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use chokepoint_model::catalogue::Catalogue;

    use super::*;
    use crate::report::samples::whereabouts as samples;

    #[test]
    fn for_every_choice_the_numbers_add_up_and_the_rows_fit() {
        let words = Catalogue::english();
        let ledger = samples::busy().ledger.unwrap();
        for order in [PlaceOrder::Path, PlaceOrder::Size, PlaceOrder::Tier] {
            for tier in [None, Some("nginx"), Some("php-fpm"), Some("gone")] {
                for room in 0..20 {
                    let choice = Choice { tier: tier.map(str::to_owned), order, ..Choice::default() };
                    let rows = rows(&ledger, &choice, room, Phrases(&words));
                    let sum: f64 = rows.iter().map(|row| row.mean).sum();
                    assert!((sum - ledger.under_way).abs() < 0.3, "{choice:?} {room}: {sum}");
                    assert!(rows.len() <= room.max(rest_rows(&choice) + 1), "{choice:?} {room}: {} rows", rows.len());
                    assert_eq!(rows.last().map(|row| row.label.as_str()), Some("unaccounted"));
                }
            }
        }
    }

    #[test]
    fn places_are_in_the_chosen_order() {
        let words = Catalogue::english();
        let ledger = samples::busy().ledger.unwrap();
        let labels = |order, tier: Option<&str>| -> Vec<String> {
            let choice = Choice { order, tier: tier.map(str::to_owned), ..Choice::default() };
            rows(&ledger, &choice, 20, Phrases(&words)).into_iter().map(|row| row.label).collect()
        };
        let path = ["in nginx, waiting", "accept queue of php-fpm", "in php-fpm, on a CPU", "in php-fpm, waiting", "unaccounted"];
        assert_eq!(labels(PlaceOrder::Path, None), path);
        let size = ["accept queue of php-fpm", "in php-fpm, waiting", "in php-fpm, on a CPU", "in nginx, waiting", "unaccounted"];
        assert_eq!(labels(PlaceOrder::Size, None), size);
        assert_eq!(labels(PlaceOrder::Tier, None), ["php-fpm", "nginx", "unaccounted"]);
        assert_eq!(labels(PlaceOrder::Path, Some("nginx")), ["in nginx, waiting", "in other tiers", "unaccounted"]);
        assert_eq!(labels(PlaceOrder::Tier, Some("nginx")), ["nginx", "in other tiers", "unaccounted"]);
    }
}
