//! Station `shaper`: a full shaper towards an upstream is a cause where clients lose by it. One with room, one that was full before the window, one that nobody
//! waits for, one that no connection of the path passes, and that of station `link` are none.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::load::Loop;
use chokepoint_model::observation::{Observation, Qdisc};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, Diagnosis, LimitedBy, StationState, Verdict};

use crate::stage::shaper::{RATE, Shaped, full};
use crate::stage::*;

const SHAPED: &str = "egress-shaped";
fn reading(diagnosis: &Diagnosis) -> Option<&chokepoint_model::report::Station> {
    diagnosis.path.iter().find(|station| station.station == "shaper")
}

fn told_of(obs: &Observation) -> Vec<String> {
    causes(&told(obs)).into_iter().map(str::to_owned).collect()
}

#[test]
fn a_full_shaper_towards_the_upstream_is_the_cause() {
    for is_class in [false, true] {
        let diagnosis = told(&Shaped { is_class, ..full() }.observed());
        assert_eq!((causes(&diagnosis), diagnosis.verdict), (vec![SHAPED], Verdict::Choked));
        let finding = &diagnosis.findings[0];
        assert_eq!((finding.confidence, finding.at.netns.as_deref()), (Confidence::High, Some("server")));
        let kind = if is_class { "htb" } else { "tbf" };
        assert!(["eth1", "server", kind].iter().all(|word| finding.title.contains(word)), "{}", finding.title);
        let remedy = &finding.remedies[0];
        assert!(remedy.id == "raise-shaper-rate" && remedy.change.is_empty() && remedy.text.contains(kind), "{remedy:?}");
        assert_eq!(remedy.text.contains("classid 1:20"), is_class, "{}", remedy.text);
        let read = reading(&diagnosis).unwrap();
        assert_eq!((read.state, read.limit, read.waiting), (StationState::Saturated, Some(RATE as f64), Some(60.0)));
        // 27.2 MB on the wire for 100,000 answers in the window and at its edges.
        let ceiling = read.ceiling_rps.unwrap();
        assert!((ceiling.value - 20e6 / (0.99 * 2.5e6 * 11.0 * 8.0 / 100_000.0)).abs() < 1.0, "{ceiling:?}");
    }
}

#[test]
fn a_shaper_with_room_or_with_an_old_queue_is_silent() {
    let silent = |shaped: &Shaped, state: StationState, why: &str| {
        let diagnosis = told(&shaped.observed());
        assert_eq!(causes(&diagnosis), [""; 0], "{why}");
        assert_eq!(reading(&diagnosis).unwrap().state, state, "{why}");
    };
    silent(&Shaped { share: 0.5, waiting: 0, drops: (0, 0), ..full() }, StationState::Ok, "half of its rate");
    silent(&Shaped { share: 0.5, waiting: 0, ..full() }, StationState::Ok, "short bursts: half of its rate, and drops");
    silent(&Shaped { share: 0.9, waiting: 0, ..full() }, StationState::Near, "a tenth is left, and few packets are dropped");
    silent(&Shaped { share: 0.5, waiting: 0, drops: (0, 90_000), ..full() }, StationState::Ok, "it dropped before the window");
    silent(&Shaped { waiting: 0, drops: (0, 90_000), ..full() }, StationState::Near, "it is full, and nothing waits");
    silent(&Shaped { overlimits: 0, ..full() }, StationState::Near, "it never put a packet off");
}

/// What is dropped is sent again, and what clients do not wait for is no answer: neither is in the share of the rate.
#[test]
fn a_queue_that_is_never_empty_or_drops_is_full_whatever_share_of_its_rate_the_window_shows() {
    for shaped in [Shaped { share: 0.6, drops: (0, 0), ..full() }, Shaped { share: 0.92, waiting: 0, drops: (700, 0), ..full() }] {
        let mut obs = shaped.observed();
        // A single request takes a ninth of the time.
        let (load, mut few) = (obs.load.clone().unwrap(), obs.load.clone().unwrap());
        (few.requests, few.good, few.latency_us.p50) = (10, 10, load.latency_us.p50 / 9);
        obs.unloaded = Some(few);
        assert_eq!(told_of(&obs), [SHAPED], "{} {}", shaped.share, shaped.waiting);
    }
}

#[test]
fn the_link_is_full_with_its_shaper_and_a_cause_only_if_clients_give_up() {
    // Answers leave through eth0, more than its shaper would pass if it were half empty.
    let at_link = |shaped: Shaped| {
        let mut obs = Shaped { link: 2, ..shaped }.observed();
        links(&mut obs, 3_000_000);
        obs
    };
    let link = |diagnosis: &Diagnosis| diagnosis.path.iter().find(|station| station.station == "link").unwrap().state;
    for shaped in [Shaped { share: 0.6, drops: (0, 0), ..full() }, Shaped { share: 0.92, waiting: 0, drops: (700, 0), ..full() }] {
        let mut obs = at_link(shaped);
        let fine = told(&obs);
        assert_eq!(
            (causes(&fine), fine.verdict, fine.limited_by, link(&fine)),
            (vec![], Verdict::Healthy, Some(LimitedBy::Link), StationState::Saturated)
        );
        let load = obs.load.as_mut().unwrap();
        (load.good, load.errors.response_timeout, load.status) = (96_000, 4_000, [(200, 96_000)].into());
        let given_up = told(&obs);
        assert_eq!((causes(&given_up), given_up.verdict), (vec![SHAPED], Verdict::Choked));
        (obs.load, obs.request.loaded) = (None, false);
        assert_eq!(link(&told(&obs)), StationState::Saturated, "watched");
    }
    let roomy = at_link(Shaped { share: 0.5, waiting: 0, drops: (0, 0), ..full() });
    assert_eq!((link(&told(&roomy)), told(&roomy).limited_by), (StationState::Ok, Some(LimitedBy::Demand)));
}

#[test]
fn clients_must_lose_by_it() {
    // The cores are full, so that the time beyond a single request is no sign, and a packet or two in the queue wait for a millisecond.
    let mut obs = Shaped { waiting: 1, drops: (0, 0), ..full() }.observed();
    cpu(&mut obs, 1.0);
    let diagnosis = told(&obs);
    assert_eq!((causes(&diagnosis), reading(&diagnosis).unwrap().state), (vec![], StationState::Near));
    // An open loop that gets what it asks for loses nothing, and one that falls short does.
    let offered = |rate_per_s: f64| {
        let mut obs = full().observed();
        obs.load.as_mut().unwrap().shape = Loop::Open { rate_per_s, connections: 100 };
        told_of(&obs)
    };
    assert_eq!(offered(10_000.0), [""; 0]);
    assert_eq!(offered(20_000.0), [SHAPED]);
}

#[test]
fn only_interfaces_of_the_path_count_and_that_of_the_link_is_left_to_it() {
    let diagnosis = told(&Shaped { link: 4, ..full() }.observed());
    assert_eq!((causes(&diagnosis), reading(&diagnosis)), (vec![], None), "no connection of the path has an address of eth2");
    let diagnosis = told(&Shaped { link: 2, ..full() }.observed());
    assert_eq!(reading(&diagnosis), None, "the answers leave through eth0");
    // Where the counters of the interfaces were not read, it is not known which of them that is.
    let mut obs = full().observed();
    obs.netns.get_mut(&SERVER).unwrap().links = Default::default();
    assert_eq!(reading(&told(&obs)), None);
}

#[test]
fn a_shaper_that_was_made_anew_in_the_window_is_unknown() {
    let mut obs = full().observed();
    let view = obs.netns.get_mut(&SERVER).unwrap();
    view.qdiscs = Default::default();
    for second in 0..=11_u64 {
        let handle = if second < 5 { 0x8001_0000 } else { 0x8002_0000 };
        view.qdiscs.push(second * 1_000_000, Reading::Ok(vec![Qdisc { handle, ..full().at(second) }]));
    }
    let diagnosis = told(&obs);
    assert_eq!((causes(&diagnosis), reading(&diagnosis).unwrap().state), (vec![], StationState::Unknown));
}
