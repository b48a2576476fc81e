//! The verdict about watched traffic over hundreds of made-up servers: some places, some way in which requests come, some time for each.
//!
//! Deterministic: observations made up by the tests.

use std::collections::BTreeMap;

use chokepoint_model::observation::{Observation, RequestSample, RequestSocket, RequestTimes, SocketAddress, TcpState};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Diagnosis, Verdict};

use crate::stage::*;

const TICK_MS: f64 = 4.0;
const ACCEPTED: u64 = 7;

/// Numbers without a visible order (splitmix64).
struct Random(u64);

impl Random {
    /// From 0 up to 1.
    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut all = self.0;
        all = (all ^ (all >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        all = (all ^ (all >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((all ^ (all >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn between(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.share()
    }
}

/// A server with some places, each of which holds one request for its time.
#[derive(Debug, Clone, Copy)]
struct Server {
    places: usize,
    each_ms: f64,
    /// Times are exponential, not constant.
    scattered: bool,
}

/// How requests come.
#[derive(Debug, Clone, Copy)]
enum Clients {
    /// As many a second as this share of what the server can, evenly or at random, on kept connections or each on its own.
    Open { share: f64, evenly: bool, kept: bool },
    /// This many clients, each of which asks again as soon as it has its answer, or after a mean time, on its connection or on another one.
    Closed { number: usize, pause_ms: f64, kept: bool },
}

impl Clients {
    /// Those that ask again at once.
    fn closed(number: usize) -> Self {
        Self::Closed { number, pause_ms: 0.0, kept: true }
    }

    fn are_kept(self) -> bool {
        let (Self::Open { kept, .. } | Self::Closed { kept, .. }) = self;
        kept
    }
}

/// For how long they are watched, and the time between two samples.
#[derive(Debug, Clone, Copy)]
struct Watch {
    seconds: f64,
    apart_ms: f64,
    /// When the last request comes, milliseconds.
    ends_ms: f64,
    /// How often the server stops, and for how long each time, milliseconds: it answers nothing of what comes meanwhile.
    stops_ms: Option<(f64, f64)>,
}

/// As many samples as a host that is not busy gives.
const TEN_SECONDS: Watch = Watch { seconds: 9.9, apart_ms: 200.0, ends_ms: f64::INFINITY, stops_ms: None };

/// One request: when it came, when it was answered, and its connection, milliseconds.
struct Exchange {
    came: f64,
    answered: f64,
    connection: usize,
}

/// First come, first served, for twelve seconds.
fn exchanges(server: Server, clients: Clients, random: &mut Random) -> Vec<Exchange> {
    let mut free = vec![0.0_f64; server.places];
    let mut serve = |came: f64, random: &mut Random| {
        let next = (0..free.len()).min_by(|a, b| free[*a].total_cmp(&free[*b])).unwrap();
        let time =
            if server.scattered { -server.each_ms * (1.0 - random.share()).ln() } else { server.each_ms * random.between(0.95, 1.15) };
        free[next] = free[next].max(came) + time;
        free[next]
    };
    let mut all: Vec<Exchange> = Vec::new();
    match clients {
        Clients::Open { share, evenly, kept } => {
            let apart_ms = server.each_ms / server.places as f64 / share;
            let (mut came, mut idle_since) = (0.0, Vec::<f64>::new());
            while came < 12_000.0 {
                let answered = serve(came, random);
                // The connection that was used last is used again.
                let spare = (0..idle_since.len())
                    .filter(|at| kept && idle_since[*at] <= came)
                    .max_by(|a, b| idle_since[*a].total_cmp(&idle_since[*b]));
                let connection = spare.unwrap_or(idle_since.len());
                if connection == idle_since.len() {
                    idle_since.push(answered)
                } else {
                    idle_since[connection] = answered
                }
                all.push(Exchange { came, answered, connection });
                came += if evenly { apart_ms * random.between(0.9, 1.1) } else { -apart_ms * (1.0 - random.share()).ln() };
            }
        }
        Clients::Closed { number, pause_ms, kept } => {
            let mut next: Vec<f64> = (0..number).map(|n| n as f64 / 10.0).collect();
            loop {
                let client = (0..number).min_by(|a, b| next[*a].total_cmp(&next[*b])).unwrap();
                let came = next[client];
                if came >= 12_000.0 {
                    break;
                }
                let answered = serve(came, random);
                all.push(Exchange { came, answered, connection: if kept { client } else { all.len() } });
                next[client] = answered + random.between(0.05, 0.3) - pause_ms * (1.0 - random.share()).ln();
            }
        }
    }
    all
}

/// What a sample shows of one connection after these of its exchanges have begun.
fn socket(connection: usize, at: f64, own: &[&Exchange]) -> Option<RequestSocket> {
    let last = own.last()?;
    let is_pending = last.answered > at;
    let since = |then: f64| ((at / TICK_MS).floor() - (then / TICK_MS).floor()).max(0.0) as u64 * TICK_MS as u64;
    let before = own.len() - usize::from(is_pending);
    let answered = own[..before].last().map(|one| one.answered);
    let (requests, answers) = (own.len() as u64, own.len() as u64 - u64::from(is_pending));
    let times = RequestTimes {
        last_data_recv_ms: since(last.came),
        last_data_sent_ms: answered.map_or(at as u64, since),
        data_segs_in: Some(requests),
        data_segs_out: Some(answers),
        bytes_received: Some(100 * requests),
        bytes_sent: Some(500 * answers),
        min_rtt_us: Some(20),
        rtt_us: Some(50),
        ..RequestTimes::default()
    };
    let remote = (ip("10.0.0.1"), 10_000 + (connection % 50_000) as u16);
    Some(RequestSocket {
        address: SocketAddress::Tcp { local: (ip(SERVER_IP), 80), remote },
        cookie: 1 + connection as u64,
        state: TcpState::Established,
        inode: ACCEPTED,
        receive_queue: 0,
        send_queue: 0,
        times: Some(times),
    })
}

/// The verdict about this server, watched for ten seconds.
fn watched(server: Server, clients: Clients, seed: u64) -> Diagnosis {
    watched_for(TEN_SECONDS, server, clients, seed)
}

fn watched_for(watch: Watch, server: Server, clients: Clients, seed: u64) -> Diagnosis {
    told(&observed(watch, server, clients, seed))
}

fn observed(watch: Watch, server: Server, clients: Clients, seed: u64) -> Observation {
    let mut random = Random(seed);
    let mut all = exchanges(server, clients, &mut random);
    all.retain(|one| one.came < watch.ends_ms);
    for (one, (every_ms, for_ms)) in all.iter_mut().filter_map(|one| Some((one, watch.stops_ms?))) {
        one.answered += (for_ms - one.came % every_ms).max(0.0);
    }
    let kept = clients.are_kept();
    let mut by_connection: BTreeMap<usize, Vec<&Exchange>> = BTreeMap::new();
    all.iter().for_each(|one| by_connection.entry(one.connection).or_default().push(one));
    let mut obs: Observation = healthy();
    cpu(&mut obs, 0.2);
    let mut at_us = WINDOW.0 + 100_000;
    while at_us < WINDOW.1.min(WINDOW.0 + (1e6 * watch.seconds) as u64 + 100_000) {
        let at = at_us as f64 / 1e3;
        let sockets = match kept {
            true => by_connection
                .iter()
                .filter_map(|(at_end, own)| socket(*at_end, at, &own[..own.partition_point(|one| one.came <= at)]))
                .collect(),
            false => {
                all.iter().filter(|one| one.came <= at && one.answered > at).filter_map(|one| socket(one.connection, at, &[one])).collect()
            }
        };
        let sample = RequestSample { share: 1.0, handshake_share: 1.0, sockets, ..RequestSample::default() };
        obs.netns.get_mut(&SERVER).unwrap().request_samples.push(at_us, Reading::Ok(sample));
        at_us += (1e3 * watch.apart_ms) as u64 + (20_000.0 * random.share()) as u64;
    }
    (obs.load, obs.request.loaded) = (None, false);
    for (at, opens) in [(0, 10), (11_000_000, 500)] {
        let counters = BTreeMap::from([("Tcp.PassiveOpens".to_owned(), opens)]);
        obs.netns.get_mut(&SERVER).unwrap().netstat.push(at, Reading::Ok(counters.into_iter().collect()));
    }
    obs
}

/// Answers of one to three segments and of any length: their counts do not tell whether one is owed.
fn without_a_rhythm(obs: &mut Observation) {
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let samples = view.request_samples.points().to_vec();
    view.request_samples = Default::default();
    for (at_us, mut sample) in samples {
        for socket in &mut sample.sockets {
            let Some(times) = &mut socket.times else { continue };
            let each = |answer: u64| Random(socket.cookie << 32 | answer).share();
            let answers = 0..times.data_segs_out.unwrap();
            times.data_segs_out = Some(answers.clone().map(|answer| 1 + (3.0 * each(answer)) as u64).sum());
            times.bytes_sent = Some(answers.map(|answer| 200 + (4_000.0 * each(answer)) as u64).sum());
        }
        view.request_samples.push(at_us, Reading::Ok(sample));
    }
}

/// Where clients ask again within a tick of the clock, most of their connections may have a request or not.
#[test]
fn connections_that_may_have_a_request_make_no_full_server_healthy() {
    let mut random = Random(50);
    let mut wrong = Vec::new();
    for case in 0..60 {
        let number = random.between(4.0, 120.0) as usize;
        let full = Server { places: number.div_ceil(4), ..server(&mut random) };
        let mut obs = observed(TEN_SECONDS, full, Clients::closed(number), case);
        without_a_rhythm(&mut obs);
        let diagnosis = told(&obs);
        if diagnosis.verdict == Verdict::Healthy {
            wrong.push((full, number, diagnosis.summary));
        }
    }
    assert!(wrong.is_empty(), "{} of 60: {wrong:#?}", wrong.len());
}

fn server(random: &mut Random) -> Server {
    let places = random.between(2.0, 20.0) as usize;
    Server { places, each_ms: random.between(8.0, 60.0), scattered: random.share() < 0.5 }
}

#[test]
fn servers_that_keep_up_are_healthy_and_never_choked() {
    let mut random = Random(45);
    let (mut unknown, mut steady, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    for case in 0..120 {
        let (server, share) = (server(&mut random), [0.1, 1.0 / 3.0, 2.0 / 3.0][case % 3]);
        let clients = Clients::Open { share, evenly: random.share() < 0.5, kept: random.share() < 0.5 };
        let diagnosis = watched(server, clients, case as u64);
        // Requests at a steady pace may look like those of clients that ask again at once.
        let is_steady = matches!(clients, Clients::Open { evenly: true, .. });
        match diagnosis.verdict {
            // No more on average than at most.
            Verdict::Healthy => {
                let number = |before: &str, after: &str| -> f64 {
                    let rest = diagnosis.summary.split_once(before).unwrap().1;
                    rest.split_once(after).unwrap().0.replace(',', "").parse().unwrap()
                };
                assert!(number("Healthy: ", " request") <= number("at most ", ". "), "{}", diagnosis.summary);
            }
            Verdict::Unknown if is_steady => steady.push((server, clients, diagnosis.summary)),
            Verdict::Unknown => unknown.push((server, clients, diagnosis.summary)),
            _ => wrong.push((server, clients, diagnosis.summary)),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(unknown.is_empty(), "at random: {unknown:#?}");
    // Two of five: nothing tells a constant time and a steady pace from clients that wait.
    assert!(steady.len() <= 24, "{} of about 60: {steady:#?}", steady.len());
}

#[test]
fn clients_that_ask_again_at_once_never_make_a_healthy_server_choked_nor_a_full_one_healthy() {
    let mut random = Random(46);
    let mut wrong = Vec::new();
    for case in 0..60 {
        let number = random.between(4.0, 120.0) as usize;
        let one = server(&mut random);
        // Room for all of them, or for a quarter.
        let (places, allowed): (usize, &[Verdict]) = if case % 2 == 0 {
            (number, &[Verdict::Healthy, Verdict::Unknown])
        } else {
            (number.div_ceil(4), &[Verdict::Unknown, Verdict::Choked])
        };
        let server = Server { places, ..one };
        // Some clients of a full server pause, for a small part of the time that they wait.
        let pause_ms = if case % 4 == 3 { 0.5 * server.each_ms } else { 0.0 };
        let diagnosis = watched(server, Clients::Closed { number, pause_ms, kept: true }, case);
        if !allowed.contains(&diagnosis.verdict) {
            wrong.push((server, number, diagnosis.verdict, diagnosis.summary));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn requests_that_seldom_meet_another_do_not_wait_for_each_other() {
    for case in 0..10 {
        let kept = case % 2 == 0;
        let server = Server { places: 10, each_ms: 20.0, scattered: false };
        let clients = Clients::Open { share: 0.098, evenly: true, kept };
        let diagnosis = watched(server, clients, case);
        assert_eq!(diagnosis.verdict, Verdict::Healthy, "{clients:?}: {}", diagnosis.summary);
        // Two clients that ask again at once always meet.
        let diagnosis = watched(Server { places: 1, ..server }, Clients::Closed { number: 2, pause_ms: 0.0, kept }, case);
        assert_eq!(diagnosis.verdict, Verdict::Unknown, "{}", diagnosis.summary);
    }
}

/// Few samples prove little: no verdict is wrong for that. By chance, clients that pause vary in some five seconds as others do.
#[test]
fn however_few_the_samples_no_full_server_is_healthy_and_no_ample_one_choked() {
    let mut random = Random(48);
    let (mut wrong, mut by_chance) = (Vec::new(), Vec::new());
    for case in 0..240 {
        let number = random.between(4.0, 120.0) as usize;
        let (one, is_full) = (server(&mut random), case % 2 == 1);
        let server = Server { places: if is_full { number.div_ceil(4) } else { number }, ..one };
        // With four clients for each place a request takes four times its own time: clients that pause wait for most of theirs all the same.
        let pause_ms = [0.0, 0.2, 0.5, 1.0][case / 2 % 4] * server.each_ms;
        let clients = Clients::Closed { number, pause_ms, kept: random.share() < 0.5 };
        let watch = Watch { seconds: 5.0, apart_ms: [200.0, 400.0, 800.0, 1_700.0][case / 8 % 4], ends_ms: f64::INFINITY, stops_ms: None };
        let diagnosis = watched_for(watch, server, clients, case as u64);
        let is_wrong = if is_full { diagnosis.verdict == Verdict::Healthy } else { diagnosis.verdict == Verdict::Choked };
        if is_wrong {
            let pauses = is_full && pause_ms > 0.0;
            if pauses { &mut by_chance } else { &mut wrong }.push((server, clients, watch, diagnosis.summary));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // Of the 90 full servers with clients that pause. The tests of the numbers' variance are wrong in one of forty cases.
    assert!(by_chance.len() <= 2, "{} of 90: {by_chance:#?}", by_chance.len());
}

/// Five seconds of samples at the pace of watching.
#[test]
fn five_seconds_suffice_for_traffic_that_comes_at_random_and_for_a_limit() {
    let mut random = Random(49);
    let (mut unknown, mut missed) = (Vec::new(), Vec::new());
    for case in 0..60 {
        let watch = Watch { seconds: 5.0, apart_ms: 250.0, ends_ms: f64::INFINITY, stops_ms: None };
        let (one, kept) = (server(&mut random), random.share() < 0.5);
        let share = [0.1, 1.0 / 3.0, 2.0 / 3.0][case % 3];
        let clients = Clients::Open { share, evenly: false, kept };
        let diagnosis = watched_for(watch, one, clients, case as u64);
        assert_ne!(diagnosis.verdict, Verdict::Choked, "{one:?} {clients:?}");
        if diagnosis.verdict != Verdict::Healthy {
            unknown.push((one, clients, diagnosis.summary));
        }
        let full = Server { places: random.between(1.0, 7.0) as usize, ..one };
        let clients = Clients::Open { share: 1.2, evenly: random.share() < 0.5, kept };
        let diagnosis = watched_for(watch, full, clients, case as u64);
        assert_ne!(diagnosis.verdict, Verdict::Healthy, "{full:?} {clients:?}");
        if diagnosis.verdict != Verdict::Choked || causes(&diagnosis) != ["waits-inside"] {
            missed.push((full, clients, diagnosis.verdict, diagnosis.summary));
        }
    }
    assert!(unknown.len() <= 3, "{} of 60: {unknown:#?}", unknown.len());
    assert!(missed.len() <= 6, "{} of 60: {missed:#?}", missed.len());
}

#[test]
fn the_same_clients_get_the_same_verdict_in_twenty_runs() {
    for (places, number) in [(5, 5), (20, 20), (100, 100), (5, 20), (4, 60)] {
        for scattered in [false, true] {
            let server = Server { places, each_ms: 12.0, scattered };
            let verdicts: Vec<Verdict> = (0..20).map(|seed| watched(server, Clients::closed(number), seed).verdict).collect();
            assert!(verdicts.iter().all(|one| *one == verdicts[0]), "{places} {number} {scattered}: {verdicts:?}");
        }
    }
}

#[test]
fn servers_that_get_more_than_they_can_answer_are_choked() {
    let mut random = Random(47);
    let mut missed = Vec::new();
    for case in 0..40 {
        let server = Server { places: random.between(1.0, 7.0) as usize, ..server(&mut random) };
        let clients = Clients::Open { share: 1.2, evenly: random.share() < 0.5, kept: random.share() < 0.5 };
        let diagnosis = watched(server, clients, case);
        if diagnosis.verdict != Verdict::Choked || causes(&diagnosis) != ["waits-inside"] {
            missed.push((server, clients, diagnosis.verdict, diagnosis.summary));
        }
    }
    assert!(missed.len() <= 4, "{} of 40: {missed:#?}", missed.len());
}

/// A load that ends while it is watched. That nobody asks any more does not show that the server kept up with those who did.
#[test]
fn a_full_server_is_not_healthy_because_its_load_ends() {
    let mut random = Random(50);
    let (mut wrong, mut blamed) = (Vec::new(), Vec::new());
    for case in 0..80 {
        let number = random.between(8.0, 120.0) as usize;
        let (one, is_full) = (server(&mut random), case % 2 == 0);
        let server = Server { places: if is_full { number.div_ceil(4) } else { number }, ..one };
        let clients = Clients::Closed { number, pause_ms: 0.0, kept: case % 4 < 2 };
        let watch = Watch { ends_ms: [2_000.0, 4_000.0, 6_000.0, 8_000.0][case / 4 % 4], ..TEN_SECONDS };
        let diagnosis = watched_for(watch, server, clients, case as u64);
        if is_full && diagnosis.verdict == Verdict::Healthy {
            wrong.push((server, clients, watch, diagnosis.summary));
        } else if !is_full && diagnosis.verdict == Verdict::Choked {
            blamed.push((server, clients, watch, diagnosis.summary));
        }
    }
    assert!(wrong.is_empty() && blamed.is_empty(), "{} of 40: {wrong:#?} {blamed:#?}", wrong.len());
}

/// Requests that come as before while the server reads none of them for a while, again and again.
#[test]
fn a_server_that_pauses_again_and_again_is_not_healthy() {
    let paused = |pause_ms: u64| {
        let mut obs = observed(
            TEN_SECONDS,
            Server { places: 200, each_ms: 8.0, scattered: false },
            Clients::Open { share: 0.01, evenly: false, kept: true },
            51,
        );
        let view = obs.netns.get_mut(&SERVER).unwrap();
        let samples = view.request_samples.points().to_vec();
        view.request_samples = Default::default();
        let mut held: BTreeMap<u64, RequestTimes> = BTreeMap::new();
        for (at_us, mut sample) in samples {
            // In every third second, what comes is left unread, and nothing is answered.
            let into_ms = (at_us - WINDOW.0) / 1_000 % 3_000;
            for socket in &mut sample.sockets {
                let times = socket.times.as_mut().unwrap();
                let before = held.entry(socket.cookie).or_insert(*times);
                if into_ms >= pause_ms {
                    *before = *times;
                    continue;
                }
                let came = times.data_segs_in.unwrap() - before.data_segs_in.unwrap().min(times.data_segs_in.unwrap());
                (times.data_segs_out, times.bytes_sent) = (before.data_segs_out, before.bytes_sent);
                socket.receive_queue = 100 * came.min(1) as u32;
            }
            view.request_samples.push(at_us, Reading::Ok(sample));
        }
        told(&obs)
    };
    // However small a part of the time they are as far as they are seen, if they hold most of the time for which clients wait.
    for pause_ms in [700, 900, 1_500] {
        let diagnosis = paused(pause_ms);
        assert!(
            diagnosis.verdict == Verdict::Unknown && diagnosis.summary.contains("answered nothing"),
            "{pause_ms}: {}",
            diagnosis.summary
        );
    }
    assert_eq!(paused(0).verdict, Verdict::Healthy, "{}", paused(0).summary);
}

/// A server that is often empty because it lets go of many at once, which it held up together: a job that locks a table again and again.
#[test]
fn requests_that_are_held_up_together_and_let_go_at_once_are_never_called_healthy() {
    let mut random = Random(52);
    let (mut wrong, mut told) = (Vec::new(), 0);
    for case in 0..40 {
        let server = Server { places: 400, each_ms: random.between(1.0, 8.0), scattered: case % 2 == 0 };
        let rate_rps = random.between(100.0, 1_000.0);
        let share = rate_rps * server.each_ms / 1e3 / server.places as f64;
        let clients = Clients::Open { share, evenly: case % 3 == 0, kept: false };
        let every_ms = random.between(500.0, 1_500.0);
        let watch = Watch { stops_ms: Some((every_ms, every_ms * random.between(0.5, 0.9))), ..TEN_SECONDS };
        let diagnosis = watched_for(watch, server, clients, case);
        match diagnosis.verdict {
            Verdict::Healthy => wrong.push((server, clients, watch, diagnosis.summary)),
            _ => told += usize::from(["were gone within", "answered nothing"].iter().any(|words| diagnosis.summary.contains(words))),
        }
    }
    assert!(wrong.is_empty(), "{} of 40: {wrong:#?}", wrong.len());
    assert!(told >= 20, "{told} of 40");
}
