//! The idle-close race: reported if requests fail because the upstream closes kept connections under them. No finding if connections end
//! for another reason or nobody suffers.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::observation::{
    Counters, CpuUse, ErrorLog, ListenerAddress, NginxConfig, NginxPass, Observation, Origin, ServerConfig,
};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, StationState, Verdict};

use crate::stage::edge::{BACKEND, edge};
use crate::stage::limits::event;
use crate::stage::*;

const RACE: &str = "idle-close-race";
const LINE: &str = "2026/11/20 07:17:47 [error] 12#12: *56 upstream prematurely closed connection while reading response header from upstream, \
                    client: 10.0.0.1, server: , request: \"POST / HTTP/1.1\", upstream: \"http://10.0.0.9:8080/\", host: \"10.0.0.2\"";

/// The readings of an edge that keeps connections.
struct Told {
    reuses: bool,
    failed: u64,
    /// Kinds of lines in the dialling side's error log, and their numbers.
    kinds: Vec<(&'static str, u64)>,
    upstream_kinds: Vec<(&'static str, u64)>,
    line: &'static str,
    resets: i64,
    more: Vec<(&'static str, i64)>,
    /// Times of the first and the last reading of the upstream's process, seconds.
    lives: (u64, u64),
}

fn raced() -> Told {
    Told {
        reuses: true,
        failed: 1_900,
        kinds: vec![("upstream closed", 1_500), ("upstream reset", 300)],
        upstream_kinds: vec![],
        line: LINE,
        resets: 1_780,
        more: vec![],
        lives: (0, 11),
    }
}

fn log(kinds: &[(&'static str, u64)], line: &str) -> ErrorLog {
    let events = kinds.iter().map(|(kind, count)| (event(kind), *count));
    let samples = events.clone().map(|(event, _)| (event, line.to_owned())).collect();
    ErrorLog { events: events.collect(), samples, ..ErrorLog::default() }
}

impl Told {
    fn observed(&self) -> Observation {
        let mut obs = edge(BACKEND, "10000 60000", 20);
        cpu(&mut obs, 0.3);
        let pass = NginxPass {
            kind: "proxy".into(),
            upstream: Some("backend".into()),
            servers: vec![ListenerAddress::Tcp(ip(BACKEND), 8080)],
            keepalive: Some(64),
            reuses: self.reuses,
            origin: Origin { file: "/etc/nginx/nginx.conf".into(), line: 17 },
            ..NginxPass::default()
        };
        let nginx = NginxConfig { passes: vec![pass], ..NginxConfig::default() };
        let view = obs.servers.entry(42).or_default();
        view.config.push(0, Reading::Ok(ServerConfig::Nginx(nginx)));
        view.error_logs.entry("/var/log/nginx/error.log".into()).or_default().push(11_000_000, Reading::Ok(log(&self.kinds, self.line)));
        let view = obs.servers.entry(50).or_default();
        view.error_logs.entry("/var/log/backend.log".into()).or_default().push(11_000_000, Reading::Ok(log(&self.upstream_kinds, "")));
        for second in self.lives.0..=self.lives.1 {
            let process = obs.processes.get_mut(&50).unwrap();
            process.cpu.push(second * 1_000_000, Reading::Ok(CpuUse { user_ticks: second, ..CpuUse::default() }));
        }
        let grown = [("Tcp.OutRsts", self.resets), ("Tcp.ActiveOpens", 1_000), ("TcpExt.TCPSynRetrans", 0), ("TcpExt.ListenOverflows", 0)];
        let view = obs.netns.get_mut(&SERVER).unwrap();
        for (at, times) in [(0, 0), (11_000_000, 1)] {
            let counters = grown.iter().chain(&self.more).map(|(name, value)| ((*name).to_owned(), 5 + value * times));
            view.netstat.push(at, Reading::Ok(Counters::from_iter(counters)));
        }
        let load = obs.load.as_mut().unwrap();
        load.good = load.requests - self.failed;
        load.status = [(200, load.good), (502, self.failed)].into();
        obs
    }

    fn causes(&self) -> Vec<String> {
        causes(&told(&self.observed())).into_iter().map(str::to_owned).collect()
    }
}

#[test]
fn requests_on_a_closed_connection_name_the_edge() {
    let diagnosis = told(&raced().observed());
    assert_eq!((causes(&diagnosis), diagnosis.verdict), (vec![RACE], Verdict::Choked));
    let finding = &diagnosis.findings[0];
    assert_eq!((finding.confidence, finding.tier.as_str()), (Confidence::High, "nginx"));
    assert_eq!((finding.at.edge.as_deref(), finding.at.listener.as_deref()), (Some("nginx->java"), Some("10.0.0.9:8080")));
    let values: Vec<Option<f64>> = finding.evidence.iter().map(|proof| proof.value).collect();
    assert_eq!(values, [Some(1_500.0), Some(300.0), Some(1_800.0), Some(1_780.0), None], "{:?}", finding.evidence);
    assert_eq!(finding.remedies.iter().map(|remedy| remedy.id.as_str()).collect::<Vec<_>>(), ["keep-idle-longer"]);
    assert!(finding.remedies[0].text.contains("10.0.0.9:8080"), "{}", finding.remedies[0].text);
    let reading = diagnosis.path.iter().find(|station| station.station == "upstream-connect").unwrap();
    assert_eq!((reading.state, reading.refused_per_s), (StationState::Refusing, Some(180.0)));
    // The upstream was found only after connections to it were seen.
    assert_eq!(Told { lives: (2, 11), ..raced() }.causes(), [RACE]);
    // A line that was cut before the name of its upstream.
    let cut = Told { line: &LINE[..150], ..raced() };
    assert_eq!(cut.causes(), [RACE]);
}

#[test]
fn connections_that_end_for_another_reason_are_no_race() {
    let silent = |told: Told, why: &str| {
        let found = told.causes();
        assert!(!found.contains(&RACE.to_owned()), "{why}: {found:?}");
    };
    silent(Told { reuses: false, ..raced() }, "connections are not kept");
    silent(Told { failed: 500, ..raced() }, "nginx asked again, and nearly nobody suffered");
    silent(Told { failed: 0, ..raced() }, "nobody suffered");
    silent(Told { resets: 20, ..raced() }, "the requests were read: the program dies within them");
    silent(Told { kinds: vec![("upstream closed within its answer", 900)], ..raced() }, "it broke off in its answer");
    silent(Told { kinds: vec![("transfer 104", 900)], ..raced() }, "a log of which the phase is not known");
    silent(Told { lives: (0, 6), ..raced() }, "the upstream ended meanwhile");
    silent(Told { upstream_kinds: vec![("worker_connections reused", 3)], ..raced() }, "the upstream closes connections to make room");
    silent(Told { upstream_kinds: vec![("worker died", 3)], ..raced() }, "workers of the upstream die");
    silent(Told { more: vec![("TcpExt.ListenOverflows", 200)], ..raced() }, "a queue overflows");
    let mut down = raced();
    down.kinds.push(("connect 111", 5));
    silent(down, "nobody listened for a while");
    let other = LINE.replace("10.0.0.9:8080", "10.0.0.8:8080");
    silent(Told { line: other.leak(), ..raced() }, "another upstream");
}
