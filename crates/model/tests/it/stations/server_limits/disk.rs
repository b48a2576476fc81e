//! Station `disk-limit`: what a cgroup may do with a disk in a second. Silent below it, where hardly a request stands, and where threads wait for something else.
//!
//! Deterministic: observations made up by the tests.

use std::collections::BTreeMap;

use chokepoint_model::observation::{
    CgroupId, CgroupIo, CgroupVersion, IoKind, Observation, RequestSample, RequestSocket, RequestTimes, SocketAddress, Syscall, TcpState,
    ThreadCalls, ThreadWait, WaitKind,
};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, Diagnosis, Verdict};
use proptest::prelude::*;

use crate::stage::*;

const FOUND: &str = "disk-limited";

/// What the cgroup of the web server may do, and does, and what its threads wait for.
#[derive(Debug, Clone, Copy)]
struct Case {
    version: CgroupVersion,
    kind: IoKind,
    limit: u64,
    /// Share of the limit that is used.
    share: f64,
    /// Requests that stand inside, of 30.
    standing: usize,
    waits: Option<WaitKind>,
}

fn observed(case: Case) -> Observation {
    let mut obs = healthy();
    let (version, controller) = if case.version == CgroupVersion::V1 { ("v1", "blkio") } else { ("v2", "") };
    let id = CgroupId::parse(&format!("{version}:/data/app")).unwrap();
    let paths: BTreeMap<String, String> = [(controller.to_owned(), "/data/app".to_owned())].into();
    let process = obs.processes.get_mut(&42).unwrap();
    process.cgroups.push(0, Reading::Ok(paths));
    let key = || ("254:0".to_owned(), case.kind);
    for second in 0..=11_u64 {
        let done = (second as f64 * case.share * case.limit as f64) as u64;
        let io = CgroupIo { dir: "/sys/fs/cgroup/data/app".into(), limits: [(key(), case.limit)].into(), done: [(key(), done)].into() };
        obs.cgroup_io.entry(id.clone()).or_default().push(second * 1_000_000, Reading::Ok(io));
        let wait = case.waits.map(|kind| ThreadWait { kind, is_main: false, threads: 30, other: None, object: None });
        let threads = ThreadCalls { looked: 30, ..ThreadCalls::default() };
        let call = Syscall { call: Some("epoll_wait".into()), threads, waits: wait.into_iter().collect(), ..Syscall::default() };
        obs.processes.get_mut(&42).unwrap().syscall.push(second * 1_000_000, Reading::Ok(call));
    }
    let socket = |n: usize| {
        let stands = n < case.standing;
        let times = RequestTimes {
            last_data_recv_ms: if stands { 300 } else { 40 },
            last_data_sent_ms: if stands { 900 } else { 20 },
            data_segs_in: Some(5),
            data_segs_out: Some(if stands { 4 } else { 5 }),
            ..RequestTimes::default()
        };
        RequestSocket {
            address: SocketAddress::Tcp { local: (ip(SERVER_IP), 80), remote: (ip("10.0.0.1"), 20_000 + n as u16) },
            cookie: 1 + n as u64,
            state: TcpState::Established,
            inode: 7,
            receive_queue: 0,
            send_queue: 0,
            times: Some(times),
        }
    };
    let view = obs.netns.get_mut(&SERVER).unwrap();
    for at_us in (WINDOW.0..WINDOW.1).step_by(200_000) {
        let sample = RequestSample { share: 1.0, handshake_share: 1.0, sockets: (0..30).map(socket).collect(), ..RequestSample::default() };
        view.request_samples.push(at_us, Reading::Ok(sample));
    }
    (obs.load, obs.request.loaded) = (None, false);
    obs
}

fn found(diagnosis: &Diagnosis) -> bool {
    diagnosis.findings.iter().any(|finding| finding.id == FOUND)
}

proptest! {
    #[test]
    fn a_limit_that_is_reached_while_requests_stand_is_a_cause(
        is_v1 in any::<bool>(), kind in 0..4_usize, limit in 10..10_000_000_000_u64, share in 0.92..1.1, standing in 3..30_usize, is_seen in any::<bool>(),
    ) {
        let version = if is_v1 { CgroupVersion::V1 } else { CgroupVersion::V2 };
        let kind = IoKind::ALL[kind];
        let case = Case { version, kind, limit, share, standing, waits: is_seen.then_some(WaitKind::Disk) };
        let told = told(&observed(case));
        prop_assert_eq!((told.verdict, causes(&told)), (Verdict::Choked, vec![FOUND]), "{:?}", case);
        let finding = &told.findings[0];
        prop_assert_eq!(finding.confidence, if is_seen { Confidence::High } else { Confidence::Medium });
        let commands = format!("{:?}", finding.remedies[0]);
        let line = if is_v1 { format!("254:0 {}' > /sys/fs/cgroup/data/app/{}", 2 * limit, kind.file_v1()) } else { format!("254:0 {}={}' > /sys/fs/cgroup/data/app/io.max", kind.keys_v2().0, 2 * limit) };
        prop_assert!(commands.contains(&line), "{} {}", line, commands);
    }

    #[test]
    fn room_requests_that_pass_and_other_waits_are_none(kind in 0..4_usize, limit in 100..10_000_000_000_u64) {
        let full = Case { version: CgroupVersion::V2, kind: IoKind::ALL[kind], limit, share: 1.0, standing: 20, waits: Some(WaitKind::Disk) };
        for (what, case) in [
            ("room", Case { share: 0.7, ..full }),
            ("nothing stands", Case { standing: 0, ..full }),
            ("they wait for a lock", Case { waits: Some(WaitKind::FileLock), ..full }),
            ("they sleep", Case { waits: Some(WaitKind::Timer), ..full }),
        ] {
            prop_assert!(!found(&told(&observed(case))), "{}", what);
        }
    }
}

#[test]
fn a_limit_that_was_changed_meanwhile_or_read_once_tells_nothing() {
    let full = Case { version: CgroupVersion::V1, kind: IoKind::Reads, limit: 100, share: 1.0, standing: 20, waits: None };
    let mut changed = observed(full);
    for series in changed.cgroup_io.values_mut() {
        let points: Vec<(u64, CgroupIo)> = series.points().to_vec();
        *series = Default::default();
        for (at_us, mut io) in points {
            io.limits.values_mut().for_each(|limit| *limit += at_us);
            series.push(at_us, Reading::Ok(io));
        }
    }
    assert!(!found(&told(&changed)));
    let mut once = observed(full);
    for series in once.cgroup_io.values_mut() {
        let last = series.last().unwrap().clone();
        *series = Default::default();
        series.push(5_000_000, Reading::Ok(last));
    }
    assert!(!found(&told(&once)) && told(&once).path.iter().all(|station| station.station != "disk-limit"));
}
