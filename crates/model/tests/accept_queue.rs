//! Station `accept-queue`: a cause where a longer queue would serve the refused, a symptom before workers that do not come, silent otherwise.

mod stage;

use chokepoint_model::observation::Observation;
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Role, StationState, Verdict};
use stage::queue::*;
use stage::*;

#[test]
fn bursts_into_a_short_queue_are_a_cause() {
    for limit in [5, 10, 128] {
        let mut obs = healthy();
        queue(&mut obs, limit, 1, 3_000);
        suffer(&mut obs, 1_000, 50_000);
        let diagnosis = told(&obs);
        assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec!["accept-queue-full"]), "limit {limit}");
        assert!(diagnosis.findings[0].evidence.len() >= 3);
    }
}

#[test]
fn a_queue_that_stands_before_workers_who_do_not_come_is_a_symptom_and_no_cause_is_made_up() {
    let mut obs = healthy();
    queue(&mut obs, 511, 512, 3_000);
    suffer(&mut obs, 1_000, 2_500);
    cpu(&mut obs, 0.05);
    let diagnosis = told(&obs);
    assert_eq!(diagnosis.findings.iter().map(|finding| finding.role).collect::<Vec<_>>(), [Role::Symptom]);
    assert_eq!(diagnosis.verdict, Verdict::Unknown);
}

#[test]
fn a_small_queue_that_is_never_reached_is_silent() {
    let mut obs = healthy();
    queue(&mut obs, 4, 1, 0);
    let diagnosis = told(&obs);
    assert_eq!((diagnosis.verdict, diagnosis.findings.len()), (Verdict::Healthy, 0));
}

/// What the namespace's listeners dropped, and how many of these drops were for want of room.
fn counted(obs: &mut Observation, drops: i64, overflows: i64) {
    let view = obs.netns.get_mut(&SERVER).unwrap();
    for (at, share) in [(0, 0), (11_000_000, 1)] {
        let counters = [("TcpExt.ListenDrops", drops), ("TcpExt.ListenOverflows", overflows)];
        view.netstat.push(at, Reading::Ok(counters.map(|(name, count)| (name.to_owned(), count * share)).into()));
    }
}

#[test]
fn drops_of_a_listener_that_never_wanted_room_are_no_overflow_with_and_without_load() {
    for (overflows, expected) in [(0, vec![]), (56, vec!["accept-queue-full"])] {
        for loaded in [true, false] {
            let mut obs = healthy();
            queue(&mut obs, 4_096, 0, 56);
            counted(&mut obs, 56, overflows);
            suffer(&mut obs, 200, 50_000);
            if !loaded {
                obs.load = None;
                obs.request.loaded = false;
            }
            assert_eq!(causes(&told(&obs)), expected, "{overflows} overflows, loaded: {loaded}");
        }
    }
}

#[test]
fn overflows_that_nobody_suffered_from_are_told_and_no_cause() {
    let mut obs = healthy();
    queue(&mut obs, 10, 0, 3);
    let diagnosis = told(&obs);
    assert_eq!(causes(&diagnosis), [""; 0]);
    let station = diagnosis.path.iter().find(|station| station.station == "accept-queue").unwrap();
    assert_eq!(station.state, StationState::Near);
    assert_eq!(diagnosis.verdict, Verdict::Healthy);
}
