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
    /// This many clients, each of which asks again as soon as it has its answer, or after a mean time, milliseconds.
    Closed(usize, f64),
}

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
        Clients::Closed(number, pause_ms) => {
            let mut next: Vec<f64> = (0..number).map(|n| n as f64 / 10.0).collect();
            loop {
                let connection = (0..number).min_by(|a, b| next[*a].total_cmp(&next[*b])).unwrap();
                let came = next[connection];
                if came >= 12_000.0 {
                    break;
                }
                let answered = serve(came, random);
                all.push(Exchange { came, answered, connection });
                next[connection] = answered + random.between(0.05, 0.3) - pause_ms * (1.0 - random.share()).ln();
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
    let mut random = Random(seed);
    let all = exchanges(server, clients, &mut random);
    let kept = !matches!(clients, Clients::Open { kept: false, .. });
    let mut by_connection: BTreeMap<usize, Vec<&Exchange>> = BTreeMap::new();
    all.iter().for_each(|one| by_connection.entry(one.connection).or_default().push(one));
    let mut obs: Observation = healthy();
    cpu(&mut obs, 0.2);
    let mut at_us = WINDOW.0 + 100_000;
    while at_us < WINDOW.1 {
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
        at_us += 200_000 + (20_000.0 * random.share()) as u64;
    }
    (obs.load, obs.request.loaded) = (None, false);
    for (at, opens) in [(0, 10), (11_000_000, 500)] {
        let counters = BTreeMap::from([("Tcp.PassiveOpens".to_owned(), opens)]);
        obs.netns.get_mut(&SERVER).unwrap().netstat.push(at, Reading::Ok(counters.into_iter().collect()));
    }
    told(&obs)
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
                assert!(number("Healthy: ", " requests") <= number("at most ", ". "), "{}", diagnosis.summary);
            }
            Verdict::Unknown if is_steady => steady.push((server, clients, diagnosis.summary)),
            Verdict::Unknown => unknown.push((server, clients, diagnosis.summary)),
            _ => wrong.push((server, clients, diagnosis.summary)),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(unknown.is_empty(), "at random: {unknown:#?}");
    assert!(steady.len() <= 20, "{} of about 60: {steady:#?}", steady.len());
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
        let diagnosis = watched(server, Clients::Closed(number, pause_ms), case);
        if !allowed.contains(&diagnosis.verdict) {
            wrong.push((server, number, diagnosis.verdict, diagnosis.summary));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_same_clients_get_the_same_verdict_in_twenty_runs() {
    for (places, number) in [(5, 5), (20, 20), (100, 100), (5, 20), (4, 60)] {
        for scattered in [false, true] {
            let server = Server { places, each_ms: 12.0, scattered };
            let verdicts: Vec<Verdict> = (0..20).map(|seed| watched(server, Clients::Closed(number, 0.0), seed).verdict).collect();
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
