//! Where requests stood: a row for each large place, a row for all others and a row for unaccounted requests, so that the numbers add up.

use chokepoint_model::message::Message;
use chokepoint_model::report::{Diagnosis, LedgerLoss, LedgerLossKind, LedgerPlace, LedgerPlaceKind, LedgerReport};

use super::{Ink, Phrases};

/// This many of the largest places are listed, whatever their share.
const PLACES_MIN: usize = 8;
/// Any other place is listed from this share on.
const SHARE_MIN: f64 = 0.01;
/// Smaller numbers are shown as zero.
pub(crate) const MEAN_MIN: f64 = 0.05;

/// One bar.
pub(crate) struct PlaceRow {
    pub(crate) label: String,
    /// Its kind; nothing for a row that stands for several.
    pub(crate) place: Option<LedgerPlaceKind>,
    pub(crate) mean: f64,
    pub(crate) share: f64,
    pub(crate) ink: Ink,
}

/// The sentence, the bars and the losses.
pub(crate) struct LedgerView {
    pub(crate) head: String,
    pub(crate) rows: Vec<PlaceRow>,
    pub(crate) losses: Vec<String>,
}

/// The ledger of a diagnosis; nothing if requests were not sampled.
pub(crate) fn view(diagnosis: &Diagnosis, phrases: Phrases<'_>) -> Option<LedgerView> {
    diagnosis.ledger.as_ref().map(|ledger| of(ledger, phrases))
}

/// The view of a ledger.
pub(crate) fn of(ledger: &LedgerReport, phrases: Phrases<'_>) -> LedgerView {
    LedgerView {
        head: head(ledger, phrases),
        rows: rows(ledger, phrases),
        losses: ledger.losses.iter().map(|lost| loss(lost, phrases)).collect(),
    }
}

fn head(ledger: &LedgerReport, phrases: Phrases<'_>) -> String {
    let message = |id| Message::new(id).with("number", tenths(ledger.under_way));
    phrases.say(&match ledger.rate_rps.zip(ledger.response_time_ms) {
        Some((rate, ms)) => {
            message("report-ledger-head-rate").with("rate", phrases.number(rate)).with("duration", phrases.duration_us(ms * 1e3))
        }
        None => message("report-ledger-head"),
    })
}

/// A number with one decimal.
pub(crate) fn tenths(number: f64) -> String {
    format!("{:.1}", if number.abs() < MEAN_MIN { 0.0 } else { number })
}

fn rows(ledger: &LedgerReport, phrases: Phrases<'_>) -> Vec<PlaceRow> {
    let mut sizes: Vec<f64> = ledger.places.iter().map(|place| place.mean).collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    let least = sizes.get(PLACES_MIN - 1).copied().unwrap_or(0.0);
    let largest = sizes.first().copied().unwrap_or(0.0);
    let is_listed = |place: &&LedgerPlace| place.mean >= MEAN_MIN && (place.mean >= least || place.share >= SHARE_MIN);
    let (listed, others): (Vec<&LedgerPlace>, Vec<&LedgerPlace>) = ledger.places.iter().partition(is_listed);
    let row = |place: &LedgerPlace| PlaceRow {
        label: label(place, phrases),
        place: Some(place.place),
        mean: place.mean,
        share: place.share,
        ink: if place.mean >= largest { Ink::Strong } else { Ink::Plain },
    };
    let mut rows: Vec<PlaceRow> = listed.into_iter().map(row).collect();
    let faint = |id, mean, share| PlaceRow { label: phrases.word(id), place: None, mean, share, ink: Ink::Faint };
    let sum = |of: fn(&LedgerPlace) -> f64| others.iter().map(|place| of(place)).sum::<f64>();
    if sum(|place| place.mean) >= MEAN_MIN {
        rows.push(faint("report-ledger-others", sum(|place| place.mean), sum(|place| place.share)));
    }
    rows.push(faint("report-ledger-unaccounted", ledger.unaccounted.mean, ledger.unaccounted.share));
    rows
}

/// The name of a place.
pub(crate) fn label(place: &LedgerPlace, phrases: Phrases<'_>) -> String {
    place_label(&place.tier, place.place, phrases)
}

/// The name of a place of a tier.
pub(crate) fn place_label(tier: &str, place: LedgerPlaceKind, phrases: Phrases<'_>) -> String {
    let id = match place {
        LedgerPlaceKind::Client => "report-ledger-place-client",
        LedgerPlaceKind::Connecting => "report-ledger-place-connecting",
        LedgerPlaceKind::Handshake => "report-ledger-place-handshake",
        LedgerPlaceKind::TlsHandshake => "report-ledger-place-tls-handshake",
        LedgerPlaceKind::AcceptQueue => "report-ledger-place-accept-queue",
        LedgerPlaceKind::Unread => "report-ledger-place-unread",
        LedgerPlaceKind::Receiving => "report-ledger-place-receiving",
        LedgerPlaceKind::Cpu => "report-ledger-place-cpu",
        LedgerPlaceKind::Ready => "report-ledger-place-ready",
        LedgerPlaceKind::Throttled => "report-ledger-place-throttled",
        LedgerPlaceKind::Waiting => "report-ledger-place-waiting",
        LedgerPlaceKind::Sending => "report-ledger-place-sending",
        LedgerPlaceKind::Undecided => "report-ledger-place-undecided",
    };
    phrases.say(&Message::new(id).with("tier", tier))
}

/// A kind of loss as a sentence.
pub(crate) fn loss(lost: &LedgerLoss, phrases: Phrases<'_>) -> String {
    let kind = phrases.word(match lost.kind {
        LedgerLossKind::Refused => "report-ledger-lost-refused",
        LedgerLossKind::Dropped => "report-ledger-lost-dropped",
        LedgerLossKind::ConnectTimeout => "report-ledger-lost-connect-timeout",
        LedgerLossKind::Reset => "report-ledger-lost-reset",
        LedgerLossKind::ResponseTimeout => "report-ledger-lost-response-timeout",
        LedgerLossKind::Wrong => "report-ledger-lost-wrong",
        LedgerLossKind::Tls => "report-ledger-lost-tls",
        LedgerLossKind::BadResponse => "report-ledger-lost-bad-response",
        LedgerLossKind::Client => "report-ledger-lost-client",
    });
    let message = Message::new("report-ledger-loss").with("rate", tenths(lost.per_s)).with("kind", kind);
    let (place, tier) = (lost.place.clone().unwrap_or_default(), lost.tier.clone().unwrap_or_default());
    let known = if lost.place.is_some() { 1.0 } else { 0.0 };
    phrases.say(&message.with("where", known).with("place", place).with("tier", tier))
}

#[cfg(test)]
mod tests {
    use chokepoint_model::catalogue::Catalogue;
    use chokepoint_model::report::{At, LedgerUnaccounted};

    use super::*;
    use crate::report::samples;
    use crate::terminal::output::Style;

    fn place(kind: LedgerPlaceKind, mean: f64) -> LedgerPlace {
        let tier = "php-fpm".to_owned();
        LedgerPlace { tier, at: At::default(), place: kind, mean, share: mean / 100.0, low: mean, high: mean, age_ms: Some(3.0) }
    }

    fn sample() -> Diagnosis {
        use LedgerPlaceKind::*;
        let small = [Client, Connecting, Handshake, Unread, Receiving, Cpu, Ready, Sending].map(|kind| place(kind, 0.5));
        let places = [vec![place(AcceptQueue, 90.0), place(Waiting, 5.0)], small.to_vec()].concat();
        let loss = |place: Option<&str>| LedgerLoss {
            tier: place.map(|_| "nginx".to_owned()),
            place: place.map(str::to_owned),
            kind: LedgerLossKind::Wrong,
            per_s: 7.0,
        };
        let ledger = LedgerReport {
            under_way: 100.0,
            rate_rps: Some(200.0),
            response_time_ms: Some(500.0),
            places,
            unaccounted: LedgerUnaccounted { mean: 1.0, share: 0.01, low: None, high: None },
            losses: vec![loss(Some("rate-limit")), loss(None)],
        };
        Diagnosis { ledger: Some(ledger), ..samples::coupled() }
    }

    #[test]
    fn the_numbers_add_up_and_the_largest_place_is_emphasized() {
        let words = Catalogue::english();
        let view = view(&sample(), Phrases(&words)).unwrap();
        assert!((view.rows.iter().map(|row| row.mean).sum::<f64>() - 100.0).abs() < 1e-9);
        assert_eq!(view.rows[0].label, "accept queue of php-fpm");
        assert_eq!(view.rows.iter().filter(|row| row.ink == Ink::Strong).count(), 1);
        assert_eq!(view.losses[0], "lost: 7.0/s answered with another status, by rate-limit of nginx");
        assert_eq!(view.losses[1], "lost: 7.0/s answered with another status");
    }

    #[test]
    fn every_report_shows_the_ledger_where_there_is_one() {
        let words = Catalogue::english();
        let style = Style { width: 100, color: false, unicode: false };
        let pages = |diagnosis: &Diagnosis| {
            let page = crate::report::page::diagnosis::page(diagnosis, &words).json().to_string();
            [crate::report::text::render(diagnosis, &style, &words).to_string(), crate::report::markdown::render(diagnosis, &words), page]
        };
        for page in pages(&sample()) {
            assert!(page.contains("Where requests stood") && page.contains("accept queue of php-fpm") && page.contains("90.0"), "{page}");
        }
        for page in pages(&samples::coupled()) {
            assert!(!page.contains("Where requests stood"), "{page}");
        }
    }

    #[test]
    fn the_json_report_with_a_ledger_fits_its_schema() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/diagnosis-1.json");
        let schema = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        let document = serde_json::to_value(sample()).unwrap();
        let errors: Vec<String> = validator.iter_errors(&document).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "{errors:#?}");
    }
}
