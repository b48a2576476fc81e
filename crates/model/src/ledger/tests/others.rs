//! Other clients beside the load, and other listeners beside the watched one.

use super::*;

#[test]
fn requests_of_other_clients_are_part_of_all_and_no_share_is_above_one() {
    let waiting = |number| RequestSocket { inode: 0, receive_queue: 80, ..served(WEB, 500 + number) };
    let told = |of_server: u16| {
        let server = [many(of_server, |number| served(WEB, number)), many(10, waiting)].concat();
        let stage = Stage { server, queues: (10, 0), in_flight: Some(20), at_samples: [Some(20.0); 2], ..Stage::default() };
        let (obs, path, words) = (stage.observe(), stage.path(), Catalogue::english());
        let ctx = Context::new(&obs, &path, &words);
        let others =
            ctx.account().unwrap().others().map(|(others, times)| ((10.0 * others).round() / 10.0, (100.0 * times).round() / 100.0));
        (of(&ctx).unwrap().0, others, ctx.times_own())
    };
    let (ledger, others, times) = told(18);
    assert_eq!((ledger.under_way, others), (28.0, Some((8.0, 1.4))));
    assert!((times - 1.4).abs() < 1e-6, "{times}");
    let sum: f64 = ledger.places.iter().map(|place| place.share).sum();
    assert!((sum - 1.0).abs() < 0.01 && ledger.unaccounted.share == 0.0, "{ledger:#?}");
    assert!(ledger.places.iter().all(|place| (0.0..=1.0).contains(&place.share)), "{ledger:#?}");
    // Their requests are answered as well: as many a second as their share says.
    let (alone, none, once) = told(10);
    assert_eq!((none, once), (None, 1.0));
    let rate = |ledger: &LedgerReport| ledger.rate_rps.unwrap();
    assert!((rate(&ledger) / rate(&alone) - 1.4).abs() < 1e-3, "{} {}", rate(&ledger), rate(&alone));
    assert!((ledger.response_time_ms.unwrap() / alone.response_time_ms.unwrap() - 1.0).abs() < 1e-3);
}

/// The rate of a server with this many connections of one request each at every sample, in a namespace that accepted 290 connections in ten seconds, some of
/// them perhaps at another listener, which is seen with this many.
fn rate(own: u16, others: Option<u16>) -> Option<f64> {
    const OTHER: u16 = 2_222;
    let fresh = |port, number| {
        let mut socket = served(port, number);
        socket.times = socket.times.map(|times| RequestTimes { data_segs_in: Some(1), ..times });
        socket
    };
    let of_other = many(others.unwrap_or(0), |number| fresh(OTHER, number));
    let kept = many(3, |number| idle(APP, 200 + number));
    let stage = Stage { server: [many(own, |number| fresh(WEB, number)), of_other, kept].concat(), ..Stage::default() };
    let mut obs = stage.observe();
    let view = obs.netns.get_mut(&SERVER).unwrap();
    for (at_us, count) in [(0, 0), (WINDOW_US, 290)] {
        view.netstat.push(at_us, Reading::Ok([("Tcp.PassiveOpens".to_owned(), count)].into()));
    }
    let all = [stage.listener(WEB, 0), stage.listener(APP, 0)].into_iter().chain(others.map(|_| stage.listener(OTHER, 0)));
    view.listeners.push(WINDOW_US, Reading::Ok(all.collect()));
    let (path, words) = (stage.path(), Catalogue::english());
    of(&Context::new(&obs, &path, &words)).unwrap().0.rate_rps
}

#[test]
fn connections_of_a_namespace_are_no_rate_of_an_idle_server_beside_another_one() {
    let seen = (290.0 * 1e6 / WINDOW_US as f64 * 10.0).round() / 10.0;
    let rounded = |rate: Option<f64>| rate.map(|rate| (10.0 * rate).round() / 10.0);
    assert_eq!(rounded(rate(5, None)), Some(seen), "nothing else listens there");
    assert_eq!(rounded(rate(20, Some(0))), Some(seen), "nearly all that were seen are its own");
    assert_ne!(rounded(rate(1, Some(5))), Some(seen), "most are another listener's");
    assert_ne!(rounded(rate(5, Some(5))), Some(seen), "half are another listener's");
}
