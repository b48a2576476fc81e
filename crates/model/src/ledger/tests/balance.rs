//! The account balances: more certain numbers correct the samples, and a request seen at both ends of a connection counts once.

use super::*;

#[test]
fn requests_that_do_not_wait_in_the_first_queue_are_elsewhere() {
    let waiting = |number| RequestSocket { inode: 0, receive_queue: 80, ..served(WEB, 500 + number) };
    let server = [many(40, |number| served(WEB, number)), many(20, waiting)].concat();
    // The queue held 5 on average, and 20 at the samples of the sockets.
    let stage = |in_flight| Stage { server: server.clone(), queues: (5, 0), in_flight, ..Stage::default() };
    let told = |in_flight| {
        let ledger = stage(in_flight).ledger();
        let at = |place| ledger.places.iter().filter(|one| one.place == place).map(|one| one.mean).sum::<f64>();
        (at(Place::AcceptQueue), at(Place::Waiting), ledger.unaccounted.mean)
    };
    assert_eq!(told(Some(60)), (5.0, 55.0, 0.0));
    assert_eq!(told(Some(70)), (5.0, 55.0, 10.0), "what the samples lack is still not accounted for");
    assert_eq!(told(None), (5.0, 40.0, 0.0), "nothing tells how many there are");
}

/// The report for an open loop with 20 requests in progress on average.
fn open(stage: &Stage) -> LedgerReport {
    let mut obs = stage.observe();
    let load = obs.load.as_mut().unwrap();
    (load.shape, load.under_way_us) = (Loop::Open { rate_per_s: 100.0, connections: 500 }, Some(20 * WINDOW_US));
    let (path, words) = (stage.path(), Catalogue::english());
    of(&Context::new(&obs, &path, &words)).expect("there are samples").0
}

fn at(ledger: &LedgerReport, place: Place) -> f64 {
    ledger.places.iter().filter(|one| one.place == place).map(|one| one.mean).sum()
}

/// A connection whose server sent its last data when the request came: in service or answered, and the socket does not show which.
fn undecided(number: u16) -> RequestSocket {
    let socket = served(WEB, number);
    let times = socket.times.map(|times| RequestTimes { last_data_sent_ms: times.last_data_recv_ms, ..times });
    RequestSocket { times, ..socket }
}

#[test]
fn in_an_open_loop_samples_are_compared_with_the_requests_in_progress_at_their_moments() {
    let waiting = |number| RequestSocket { inode: 0, receive_queue: 80, ..served(WEB, 500 + number) };
    let server = [many(30, |number| served(WEB, number)), many(10, waiting)].concat();
    let told = |at_samples| {
        let stage =
            Stage { server: server.clone(), queues: (25, 0), in_flight: Some(50), at_samples: [None, at_samples], ..Stage::default() };
        let ledger = open(&stage);
        (at(&ledger, Place::AcceptQueue), at(&ledger, Place::Waiting), ledger.unaccounted.mean)
    };
    // 20 were in progress on average and 40 at the samples, 10 of them in the queue.
    assert_eq!(told(Some(40.0)), (5.0, 15.0, 0.0));
    assert_eq!(told(Some(50.0)), (4.0, 12.0, 4.0), "a fifth of them had no place");
    assert_eq!(told(Some(32.0)), (7.0, 21.0, 0.0), "eight more than there were stay as many");
    assert_eq!(told(None), (25.0, 30.0, 0.0), "of an older recording it is not known");
}

#[test]
fn each_namespace_is_compared_with_its_own_moments() {
    let client = [many(5, |number| syn_sent(WEB, 100 + number)), many(10, |number| calling(WEB, number))].concat();
    let server = many(40, |number| served(WEB, number));
    let stage = Stage { client, server, in_flight: Some(50), at_samples: [Some(10.0), Some(80.0)], ..Stage::default() };
    let ledger = open(&stage);
    // At the client's samples half of the requests in progress were unanswered. At the server's samples half were in service.
    assert_eq!((at(&ledger, Place::Connecting), at(&ledger, Place::Waiting), ledger.unaccounted.mean), (10.0, 10.0, 0.0));
}

#[test]
fn samples_without_a_request_may_be_chance() {
    let ledger = open(&Stage { in_flight: Some(50), at_samples: [Some(0.0); 2], ..Stage::default() });
    assert_eq!((ledger.unaccounted.mean, ledger.unaccounted.low, ledger.unaccounted.high), (20.0, None, None));
}

#[test]
fn no_more_possibly_idle_connections_have_a_request_than_are_in_progress() {
    let server = [many(12, |number| served(WEB, number)), many(30, |number| undecided(100 + number))].concat();
    let ledger = open(&Stage { server, in_flight: Some(50), at_samples: [Some(20.0); 2], ..Stage::default() });
    assert_eq!((at(&ledger, Place::Undecided), at(&ledger, Place::Waiting), ledger.unaccounted.mean), (8.0, 12.0, 0.0));
}

#[test]
fn a_server_that_pauses_in_its_answer_holds_the_rest() {
    // Eight have a request. Twelve look idle and have sent an answer or a part of one.
    let server = [many(8, |number| served(WEB, number)), many(12, |number| idle(WEB, 100 + number))].concat();
    let told = |in_flight, begun| {
        let at_samples = [Some(f64::from(in_flight)); 2];
        let stage = Stage { server: server.clone(), in_flight: Some(in_flight), at_samples, begun, ..Stage::default() };
        let ledger = stage.ledger();
        (at(&ledger, Place::Waiting), at(&ledger, Place::Client), ledger.unaccounted.mean)
    };
    assert_eq!(told(20, Some(15.0)), (20.0, 0.0, 0.0), "the load generator has a part of more");
    assert_eq!(told(20, Some(5.0)), (13.0, 7.0, 0.0), "of five answers it has a part, and the others are whole");
    assert_eq!(told(25, Some(5.0)), (13.0, 7.0, 5.0), "five have no connection");
    assert_eq!(told(10, Some(10.0)), (10.0, 0.0, 0.0), "no more are under way");
    assert_eq!(told(20, None), (8.0, 0.0, 12.0), "of an older recording it is not known");
}

#[test]
fn a_request_lost_on_the_path_is_not_at_the_client() {
    let lost = |number| {
        let socket = RequestSocket { send_queue: 90, ..calling(WEB, number) };
        RequestSocket { times: socket.times.map(|times| RequestTimes { lost: Some(1), ..times }), ..socket }
    };
    let server = [many(8, |number| served(WEB, number)), many(12, |number| idle(WEB, 100 + number))].concat();
    let told = |client| {
        let stage = Stage {
            client,
            server: server.clone(),
            in_flight: Some(20),
            at_samples: [Some(20.0); 2],
            begun: Some(0.0),
            ..Stage::default()
        };
        let ledger = stage.ledger();
        (at(&ledger, Place::Client), ledger.unaccounted.mean)
    };
    assert_eq!(told(many(12, |number| calling(WEB, 8 + number))), (12.0, 0.0), "their answers have come");
    assert_eq!(told(many(12, |number| lost(8 + number))), (0.0, 12.0));
}

#[test]
fn with_one_request_per_connection_a_client_that_has_not_closed_has_the_answer() {
    let closing = |number| RequestSocket { state: TcpState::FinWait1, send_queue: 1, inode: 0, ..idle(WEB, number) };
    let server = [many(3, |number| served(WEB, number)), many(9, |number| closing(100 + number))].concat();
    let told = |at_samples, asks_once| {
        let stage = Stage { server: server.clone(), in_flight: Some(50), at_samples: [Some(at_samples); 2], asks_once, ..Stage::default() };
        let ledger = open(&stage);
        (at(&ledger, Place::Client), at(&ledger, Place::Waiting), ledger.unaccounted.mean)
    };
    assert_eq!(told(12.0, true), (15.0, 5.0, 0.0));
    assert_eq!(told(6.0, true), (10.0, 10.0, 0.0), "no more wait for the client than are under way");
    assert_eq!(told(24.0, true), (7.5, 2.5, 10.0), "half stand nowhere");
    assert_eq!(told(12.0, false), (0.0, 5.0, 15.0), "on a connection that carries more nothing is left to do");
}

#[test]
fn an_awaited_sample_stands_for_the_time_in_which_a_request_was_in_progress() {
    use super::super::sample_weights::busy_shares;
    let sample = |looks, under_way| {
        let sample = RequestSample { looks, under_way: Some(under_way), ..RequestSample::default() };
        (u64::from(looks), sample)
    };
    let all = [sample(0, 0.0), sample(8, 1.0), sample(0, 2.0), sample(0, 0.0)];
    let shares = busy_shares(&all.iter().collect::<Vec<_>>()).unwrap();
    // Two of eleven polls met a request.
    assert_eq!(shares, [0.0, 2.0 / 11.0, 2.0 / 11.0, 0.0]);
    let at_any_time = [sample(0, 0.0), sample(0, 2.0)];
    assert_eq!(busy_shares(&at_any_time.iter().collect::<Vec<_>>()), None);
}

#[test]
fn an_answer_that_is_streamed_through_counts_once() {
    let leaving = |address, number| RequestSocket { send_queue: 30_000, ..idle(address, number) };
    let server =
        [many(6, |number| leaving(WEB, number)), many(4, |number| leaving(APP, 100 + number)), many(2, |number| served(WEB, 200 + number))]
            .concat();
    let ledger = Stage { server, in_flight: Some(8), ..Stage::default() }.ledger();
    // Of the four behind, two belong to requests whose answer has not begun in front.
    assert_eq!(ledger.unaccounted.mean, 0.0);
    assert_eq!(at(&ledger, Place::Sending), 8.0);
    // A unix socket does not distinguish this from a request in service.
    let server = [many(6, |number| leaving(WEB, number)), many(4, |number| served(APP, 100 + number))].concat();
    let ledger = Stage { server, in_flight: Some(6), ..Stage::default() }.ledger();
    assert_eq!((at(&ledger, Place::Sending), at(&ledger, Place::Waiting), ledger.unaccounted.mean), (6.0, 0.0, 0.0));
}

#[test]
fn an_answer_whose_rest_is_held_back_behind_is_leaving_there() {
    let sending = |address, number, unsent| {
        let socket = RequestSocket { send_queue: 300, ..idle(address, number) };
        RequestSocket { times: socket.times.map(|times| RequestTimes { unacked: Some(1), unsent: Some(unsent), ..times }), ..socket }
    };
    let stage = |in_front, behind| {
        let server = [many(6, |number| sending(WEB, number, in_front)), many(6, |number| sending(APP, 100 + number, behind))].concat();
        Stage { server, in_flight: Some(6), ..Stage::default() }
    };
    let leaving = |in_front, behind| {
        let stage = stage(in_front, behind);
        (stage.mean("web", Place::Sending), stage.mean("app", Place::Sending), stage.ledger().unaccounted.mean)
    };
    assert_eq!(leaving(0, 200), (0.0, 6.0, 0.0), "all that came was sent on");
    assert_eq!(leaving(200, 200), (6.0, 0.0, 0.0), "the client takes no more");
    assert_eq!(leaving(0, 0), (6.0, 0.0, 0.0), "nothing is held back");
}

#[test]
fn an_answer_seen_at_both_ends_leaves_room_for_others() {
    let leaving = |number| RequestSocket { send_queue: 300, ..idle(WEB, number) };
    let unread = |number| RequestSocket { receive_queue: 300, ..calling(WEB, number) };
    let server = [many(6, leaving), many(4, |number| undecided(6 + number))].concat();
    let ledger = Stage { client: many(6, unread), server, in_flight: Some(10), ..Stage::default() }.ledger();
    assert_eq!((at(&ledger, Place::Sending), at(&ledger, Place::Undecided), ledger.unaccounted.mean), (6.0, 4.0, 0.0));
}

#[test]
fn the_samples_do_not_include_the_queue_of_a_unix_socket() {
    let stage = Stage { queues: (20, 0), in_flight: Some(20), at_samples: [Some(20.0); 2], is_unix: true, ..Stage::default() };
    assert_eq!(at(&open(&stage), Place::AcceptQueue), 20.0);
    assert_eq!(stage.mean("web", Place::AcceptQueue), 20.0);
}

#[test]
fn an_answer_that_has_arrived_is_at_the_client() {
    let last_segment = |number| {
        let socket = RequestSocket { send_queue: 300, ..idle(WEB, number) };
        RequestSocket { times: socket.times.map(|times| RequestTimes { unacked: Some(1), unsent: Some(0), ..times }), ..socket }
    };
    let server = [many(8, |number| served(WEB, number)), many(2, |number| last_segment(8 + number))].concat();
    let unread = |number| RequestSocket { receive_queue: 300, ..calling(WEB, 8 + number) };
    let client = [many(8, |number| calling(WEB, number)), many(2, unread)].concat();
    let stage = Stage { client, server, in_flight: Some(10), ..Stage::default() };
    assert_eq!((stage.mean("web", Place::Sending), stage.mean("client", Place::Client)), (0.0, 2.0));
    assert_eq!(stage.ledger().unaccounted.mean, 0.0);
}

#[test]
fn no_more_answers_are_in_transit_than_the_client_waits_for() {
    let leaving = |number, unacked| {
        let socket = RequestSocket { send_queue: 300, ..idle(WEB, number) };
        let times = socket.times.map(|times| RequestTimes { unacked: Some(unacked), unsent: Some(0), ..times });
        RequestSocket { times, ..socket }
    };
    // Its request left 100 ms ago, and the previous answer came 140 ms ago; then the other way round.
    let waiting = |number| {
        let socket = calling(WEB, number);
        let times = socket.times.map(|times| RequestTimes { last_data_recv_ms: 140, last_data_sent_ms: 100, ..times });
        RequestSocket { times, ..socket }
    };
    let client = [many(12, waiting), many(8, |number| calling(WEB, 12 + number))].concat();
    let mean = |unacked, client: &[RequestSocket]| {
        let server = [many(10, |number| served(WEB, number)), many(10, |number| leaving(10 + number, unacked))].concat();
        Stage { client: client.to_vec(), server, ..Stage::default() }.mean("web", Place::Sending)
    };
    assert_eq!(mean(1, &client), 2.0, "ten of twelve are in service");
    assert_eq!(mean(2, &client), 10.0, "the client may have a part of each");
    assert_eq!(mean(1, &[]), 10.0, "the client is elsewhere");
}

#[test]
fn an_answer_partly_at_the_client_leaves_no_request_at_the_server() {
    // Request and answer within one tick, and their order is unknown.
    let unread = |number| RequestSocket { receive_queue: 300, ..calling(WEB, number) };
    let stage = |client| Stage { client, server: many(6, undecided), ..Stage::default() };
    let told =
        |client: Vec<RequestSocket>| (stage(client.clone()).mean("client", Place::Client), stage(client).mean("web", Place::Undecided));
    assert_eq!(told(many(2, unread)), (2.0, 4.0));
    assert_eq!(told(many(9, unread)), (6.0, 0.0));
    assert_eq!(told(Vec::new()), (0.0, 6.0));
}

#[test]
fn no_more_answers_wait_at_the_client_than_connections_are_idle_at_the_server() {
    let read_late = |number| RequestSocket { receive_queue: 100, inode: 1, ..calling(WEB, number) };
    let closed = |number| RequestSocket { state: TcpState::CloseWait, ..read_late(number) };
    let mean =
        |client: Vec<RequestSocket>, server: Vec<RequestSocket>| Stage { client, server, ..Stage::default() }.mean("client", Place::Client);
    let server = [many(6, |number| served(WEB, number)), many(4, |number| idle(WEB, 100 + number))].concat();
    assert_eq!(mean(many(10, read_late), server.clone()), 4.0, "the other six were asked again by the time the server was looked at");
    assert_eq!(mean(many(3, read_late), server.clone()), 3.0);
    assert_eq!(mean([many(10, read_late), many(5, closed)].concat(), server), 9.0, "of what the server closed nothing is left there");
}
