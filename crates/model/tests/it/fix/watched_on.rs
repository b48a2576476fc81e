//! Traffic that is watched twice: what told nothing in a short time is watched for longer.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::fix::{Action, Session};
use chokepoint_model::report::{Diagnosis, LedgerReport, LedgerUnaccounted, Verdict};

use crate::simulator::php::{Decoy, Php};
use crate::simulator::run;

/// Traffic that tells nothing is watched once more, for longer, where the driver permits it; what is seen then counts, whatever it is.
#[test]
fn undecided_traffic_is_watched_once_more() {
    let words = Catalogue::english();
    let world = Php { faults: 0, decoy: Decoy::None, early: false, first: false, reverse: false };
    let seen = run(&world, 0.0, 1, None, Some(1)).report;
    let told = |verdict, undecided| Diagnosis { verdict, undecided, load: None, summary: format!("{verdict:?}"), ..seen.clone() };
    let session = |watches_on| {
        let mut session = Session::new(false, &words);
        if watches_on {
            session.watch_on();
        }
        session
    };
    for later in [told(Verdict::Healthy, false), told(Verdict::Unknown, true), told(Verdict::Unknown, false), told(Verdict::Choked, false)]
    {
        let mut patient = session(true);
        assert_eq!(patient.measurement_s_min(), None);
        assert_eq!(patient.measured(told(Verdict::Unknown, true)), Action::Measure);
        assert_eq!(patient.measurement_s_min(), Some(30.0));
        assert_eq!(patient.measured(later.clone()), Action::Done);
        assert_eq!(patient.report().unwrap().summary, later.summary);
    }
    // What is left of the traffic says nothing of what ended.
    let with = |verdict, undecided, under_way| {
        let unaccounted = LedgerUnaccounted { mean: 0.0, share: 0.0, low: None, high: None };
        let (places, losses) = (Vec::new(), Vec::new());
        let ledger = LedgerReport { under_way, rate_rps: None, response_time_ms: None, places, unaccounted, losses };
        Diagnosis { ledger: Some(ledger), ..told(verdict, undecided) }
    };
    for (later, expected) in [(2.0, "Unknown"), (18.0, "Healthy")] {
        let mut patient = session(true);
        patient.measured(with(Verdict::Unknown, true, 20.0));
        patient.measured(with(Verdict::Healthy, false, later));
        let report = patient.report().unwrap();
        assert_eq!(report.summary, expected, "{later}");
        assert_eq!(
            report.warnings.iter().any(|text| text.contains("most of the traffic had ended")),
            later < 10.0,
            "{:?}",
            report.warnings
        );
    }
    // Cut short, the first stays.
    let mut cut = session(true);
    cut.measured(told(Verdict::Unknown, true));
    assert_eq!(cut.interrupted(), Action::Done);
    assert_eq!(cut.report().unwrap().summary, "Unknown");
    // Where something speaks against the server, or nobody permits it, once is enough.
    assert_eq!(session(true).measured(told(Verdict::Unknown, false)), Action::Done);
    assert_eq!(session(true).measured(told(Verdict::Healthy, false)), Action::Done);
    assert_eq!(session(false).measured(told(Verdict::Unknown, true)), Action::Done);
}
