//! Another application that uses the server behind.

use super::*;
use crate::observation::OpenFiles;

/// Ten requests in "web", which has two connections to "app"; strangers have eight more, which are always in use. `read`: the sockets of "web" when they were read, and when.
fn shared(read: Option<(u64, &[u64])>) -> (f64, f64, usize) {
    let own = |number| RequestSocket { inode: 100 + u64::from(number), ..calling(APP, number) };
    let strange = |number| RequestSocket { inode: 200 + u64::from(number), ..calling(APP, 50 + number) };
    let calls =
        [many(2, own), many(2, |number| served(APP, number)), many(8, strange), many(8, |number| served(APP, 50 + number))].concat();
    let stage = Stage { server: [many(10, |number| served(WEB, number)), calls].concat(), ..Stage::default() };
    let (mut obs, path, words) = (stage.observe(), stage.path(), Catalogue::english());
    if let Some((at_us, sockets)) = read {
        let files = OpenFiles { count: 9, sockets: sockets.to_vec() };
        obs.processes.get_mut(&10).unwrap().files.push(at_us, Reading::Ok(files));
    }
    let ctx = Context::new(&obs, &path, &words);
    let ledger = of(&ctx).unwrap().0;
    let waiting = |tier: &str| {
        let found = ledger.places.iter().find(|one| one.tier == tier && one.place == Place::Waiting);
        found.map_or(0.0, |one| one.mean)
    };
    let usual = ctx.account().unwrap().counted.calls.iter().map(Calls::usual).fold(0.0, f64::max);
    (waiting("web"), waiting("app"), usual as usize)
}

#[test]
fn connections_of_others_to_a_server_behind_are_no_requests_of_the_path() {
    assert_eq!(shared(Some((WINDOW_US / 2, &[100, 101]))), (8.0, 2.0, 2));
}

#[test]
fn a_connection_is_a_strangers_only_if_its_caller_was_seen_without_it() {
    let not_told = (0.0, 10.0, 10);
    assert_eq!(shared(None), not_told, "nothing was read");
    assert_eq!(shared(Some((WINDOW_US + 1, &[100, 101]))), not_told, "read when they may have been closed");
    let all: Vec<u64> = (100..102).chain(200..208).collect();
    assert_eq!(shared(Some((WINDOW_US / 2, &all))), not_told, "all are its own");
}

#[test]
fn a_connection_that_its_caller_closed_was_the_callers() {
    let own = |number| RequestSocket { inode: 100 + u64::from(number), ..calling(APP, number) };
    // It has waited for the other end since a second before the end, and no process holds it any more.
    let left = |number| RequestSocket { inode: 0, state: TcpState::FinWait2, ..calling(APP, number) };
    let stage =
        |sockets: Vec<RequestSocket>| Stage { server: [many(10, |number| served(WEB, number)), sockets].concat(), ..Stage::default() };
    let (held, closed) = (stage([many(2, own), many(2, |number| served(APP, number))].concat()), stage(many(2, left)));
    let (mut obs, path, words) = (held.observe(), held.path(), Catalogue::english());
    let later = closed.observe();
    for (netns, view) in &mut obs.netns {
        let points = view.request_samples.points().to_vec();
        let after = later.netns[netns].request_samples.points().to_vec();
        view.request_samples = Default::default();
        for ((at_us, before), (_, after)) in points.into_iter().zip(after) {
            view.request_samples.push(at_us, Reading::Ok(if at_us < WINDOW_US / 2 { before } else { after }));
        }
    }
    let files = OpenFiles { count: 9, sockets: vec![1] };
    obs.processes.get_mut(&10).unwrap().files.push(3 * WINDOW_US / 4, Reading::Ok(files));
    let ctx = Context::new(&obs, &path, &words);
    let inside = ctx.account().unwrap().counted.means(2, (0, WINDOW_US / 2), None)[1].service;
    assert!(inside > 0.9, "{inside} of 2 at the server behind");
}
