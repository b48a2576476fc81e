//! Traffic that is watched twice: what told nothing in a short time is watched for longer.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::fix::{Action, Session};
use chokepoint_model::report::{Diagnosis, Verdict};

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
