//! Station `shaper`: a full shaper towards an upstream is a cause where clients lose by it. One with room, one that was full before the window, one that nobody
//! waits for, one that no connection of the path passes, and that of station `link` are none.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::load::Loop;
use chokepoint_model::observation::{Observation, Qdisc, TcpSample, TcpState};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, Diagnosis, LimitedBy, Prediction, StationState, Verdict};

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

/// Answers leave through eth0, more than its shaper would pass if it were half empty.
fn at_link(shaped: Shaped) -> Observation {
    let mut obs = Shaped { link: 2, ..shaped }.observed();
    links(&mut obs, 3_000_000);
    obs
}

fn link(diagnosis: &Diagnosis) -> StationState {
    diagnosis.path.iter().find(|station| station.station == "link").unwrap().state
}

/// The same without load, and with this many connections of clients that have not acknowledged what was sent.
fn watched_at_link(shaped: Shaped, sending: u16) -> Observation {
    let mut obs = at_link(shaped);
    (obs.load, obs.request.loaded) = (None, false);
    let connection = |n: u16| TcpSample {
        local: (ip("10.0.0.3"), 80),
        remote: (ip("10.0.0.9"), 30_000 + n),
        cookie: u64::from(n),
        state: TcpState::Established,
        send_queue: if n < sending { 60_000 } else { 0 },
        send_buffer: None,
        loss_state: 0,
        mss: 1448,
        unacked: 10,
        cwnd: 10,
        retransmitted: 0,
        last_data_sent_ms: 20,
        rtt_us: 80_000,
        min_rtt_us: Some(100),
        unsent: None,
        delivered: None,
        busy_us: None,
        rwnd_limited_us: None,
        sndbuf_limited_us: None,
        peer_window: None,
    };
    let view = obs.netns.get_mut(&SERVER).unwrap();
    (1..=10_u64).for_each(|second| view.tcp_samples.push(second * 1_000_000, Reading::Ok((0..40).map(connection).collect())));
    obs
}

/// The rate of a shaper is a limit that somebody set, whether a load meets it or the traffic of others, and whether or not clients give up.
#[test]
fn the_shaper_of_the_answers_is_a_cause_with_load_and_watched() {
    for shaped in [Shaped { share: 0.6, drops: (0, 0), ..full() }, Shaped { share: 0.92, waiting: 0, drops: (700, 0), ..full() }] {
        let mut obs = at_link(shaped.clone());
        let mut few = obs.load.clone().unwrap();
        (few.requests, few.good, few.latency_us.p50) = (10, 10, few.latency_us.p50 / 9);
        obs.unloaded = Some(few);
        let loaded = told(&obs);
        assert_eq!((causes(&loaded), loaded.verdict, link(&loaded)), (vec![SHAPED], Verdict::Choked, StationState::Saturated));
        // The interface's limit is the shaper's rate, and rises with it.
        let of_link = loaded.path.iter().find(|station| station.station == "link").and_then(|link| link.ceiling_rps).unwrap();
        let Prediction::Refused { unsaid: Some(bound), .. } = &loaded.findings[0].remedies[0].prediction else { panic!("{loaded:#?}") };
        assert!(bound.value > of_link.value, "{bound:?} {of_link:?}");
        let load = obs.load.as_mut().unwrap();
        (load.good, load.errors.response_timeout, load.status) = (96_000, 4_000, [(200, 96_000)].into());
        assert_eq!(told_of(&obs), [SHAPED], "clients give up");
        let watched = told(&watched_at_link(shaped.clone(), 30));
        assert_eq!((causes(&watched), watched.verdict), (vec![SHAPED], Verdict::Choked));
        assert_eq!(watched.findings[0].confidence, Confidence::Medium);
        let idle = told(&watched_at_link(shaped, 0));
        assert_eq!((causes(&idle), link(&idle)), (vec![], StationState::Saturated), "what others send fills it");
    }
    for obs in [at_link, |shaped| watched_at_link(shaped, 30)] {
        let roomy = told(&obs(Shaped { share: 0.5, waiting: 0, drops: (0, 0), ..full() }));
        assert_eq!((link(&roomy), causes(&roomy)), (StationState::Ok, vec![]));
    }
}

/// A wire that carries all it can is no setting of anybody.
#[test]
fn a_full_link_without_a_shaper_that_holds_packets_is_healthy() {
    let full_link = told(&at_link(Shaped { share: 0.99, waiting: 0, drops: (0, 0), ..full() }));
    assert_eq!(
        (causes(&full_link), full_link.verdict, full_link.limited_by),
        (vec![], Verdict::Healthy, Some(LimitedBy::Link)),
        "{}",
        full_link.summary
    );
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
    let diagnosis = told(&Shaped { link: 2, share: 0.5, waiting: 0, drops: (0, 0), ..full() }.observed());
    assert_eq!(reading(&diagnosis), None, "the answers leave through eth0, whose shaper is not full");
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
