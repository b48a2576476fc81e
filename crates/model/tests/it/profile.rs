//! Results of a profile: the CPU time of each tier by layer, bounds by Amdahl's law, and improvements. Each has a case without a finding.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::load::Loop;
use chokepoint_model::observation::{
    CpuUse, Identity, NginxConfig, Observation, Origin, RequestSample, RequestSocket, RequestTimes, ServerConfig, Setting, SocketAddress,
    TcpState, ThreadTimes, WireAnswers,
};
use chokepoint_model::reading::{Lack, Reading};
use chokepoint_model::report::{Confidence, Diagnosis, LimitedBy, SourceStatus, Verdict};

use crate::stage::{
    self,
    profiled::{Counted, profile},
    *,
};

/// nginx has core 1 to itself, with this busy share, and was sampled accordingly.
fn sampled(busy: f64, counted: &[Counted<'_>]) -> Observation {
    let mut obs = healthy();
    cpu(&mut obs, busy);
    profile(&mut obs, counted);
    obs
}

fn improvements(diagnosis: &Diagnosis) -> Vec<&str> {
    diagnosis.improvements.iter().map(|finding| finding.id.as_str()).collect()
}

const FULL: f64 = 0.99;

#[test]
fn without_a_profile_nothing_is_reported_and_nothing_is_missing() {
    let mut obs = healthy();
    cpu(&mut obs, FULL);
    let before = told(&obs);
    assert_eq!((before.profile.clone(), improvements(&before)), (None, vec![]));
    assert!(before.readings.iter().all(|reading| reading.source != "profile"));
    obs.profile.push(1, Reading::Absent(Lack::needing("not allowed", "CAP_PERFMON")));
    let told = told(&obs);
    let reading = told.readings.iter().find(|reading| reading.source == "profile").unwrap();
    assert_eq!((reading.status, reading.needs.as_deref()), (SourceStatus::Absent, Some("CAP_PERFMON")));
    assert_eq!((told.verdict, told.summary, told.profile), (before.verdict, before.summary, None));
}

#[test]
fn the_time_of_a_tier_is_reported_by_layer_and_for_each_answer() {
    let told = told(&sampled(
        FULL,
        &[(42, 1, "tcp-transmit", &["kernel-network"], 300), (42, 1, "allocator", &[], 100), (7, 0, "application", &[], 200)],
    ));
    let profile = told.profile.unwrap();
    let [tier] = profile.tiers.as_slice() else { panic!("{:?}", profile.tiers) };
    assert_eq!((tier.tier.as_str(), tier.samples, tier.layers[0].layer.as_str()), ("nginx", 400, "tcp-transmit"));
    // One core is fully used for 10,000 answers a second.
    assert!((tier.cores - 1.0).abs() < 1e-9 && (tier.cpu_us_per_request.unwrap() - 100.0).abs() < 1e-6, "{tier:?}");
    assert!((tier.layers[1].cpu_us_per_request.unwrap() - 25.0).abs() < 1e-6);
    assert!((profile.others.unwrap().cores - 0.5).abs() < 1e-9);
    assert_eq!(profile.cores.iter().map(|core| (core.cpu, core.busy)).collect::<Vec<_>>(), [(0, 0.5), (1, 1.0)]);
}

#[test]
fn bounds_apply_only_to_the_core_that_limits() {
    let counted: &[Counted<'_>] = &[
        (42, 1, "allocator", &[], 91),
        (42, 1, "tcp-transmit", &["kernel-network"], 610),
        (7, 1, "lock", &[], 299),
        (7, 0, "allocator", &[], 900),
    ];
    let profile = told(&sampled(FULL, counted)).profile.unwrap();
    let bound = |what: &str| profile.bounds.iter().find(|bound| bound.what == what).unwrap();
    assert!((bound("allocator").factor - 1.0 / (1.0 - 0.091)).abs() < 1e-9);
    assert!(bound("allocator").text.contains("9.1 %") && bound("allocator").text.contains("10 % more"), "{}", bound("allocator").text);
    let text = &bound("kernel-network").text;
    assert!(text.contains("61 %") && text.contains("2.56 times the throughput with a kernel bypass"), "{text}");
    assert!(bound("allocator").low < 0.091 && bound("allocator").high > 0.091);
    assert_eq!(profile.bounds.iter().filter(|bound| bound.what == "lock").count(), 0, "another program's");
    let idle = told(&sampled(0.5, counted)).profile.unwrap();
    assert!(idle.bounds.is_empty() && idle.no_bound.is_some());
}

#[test]
fn connection_setup_is_bounded_in_every_layer() {
    let counted: &[Counted<'_>] = &[
        (42, 1, "connection", &["kernel-network"], 280),
        (42, 1, "tcp-transmit", &["kernel-network", "connection"], 200),
        (42, 1, "application", &[], 520),
    ];
    let profile = told(&sampled(FULL, counted)).profile.unwrap();
    let bound = profile.bounds.iter().find(|bound| bound.what == "connection").unwrap();
    assert!((bound.factor - 1.0 / 0.52).abs() < 1e-9, "{bound:?}");
    assert!(bound.text.contains("48 %") && bound.text.contains("1.92 times the throughput if connections were kept"), "{}", bound.text);
}

#[test]
fn work_that_takes_much_of_the_limiting_core_could_be_reduced() {
    let cases: [(&str, &str, &[&str]); 5] = [
        ("compression-hot", "compression", &[]),
        ("tls-handshake-hot", "tls", &["tls-handshake"]),
        ("opcode-cache-off", "interpreter", &["script-compile"]),
        ("allocator-hot", "allocator", &[]),
        ("lock-contention", "lock", &[]),
    ];
    for (id, layer, aspects) in cases {
        let told = told(&sampled(FULL, &[(42, 1, layer, aspects, 120), (42, 1, "application", &[], 280)]));
        // Work that a server can drop without any loss is a cause. The rest is a trade-off.
        let is_wasted = id == "opcode-cache-off";
        let verdict = if is_wasted { (Verdict::Choked, None) } else { (Verdict::Healthy, Some(LimitedBy::Cpu)) };
        assert_eq!((told.verdict, told.limited_by, told.findings.len()), (verdict.0, verdict.1, usize::from(is_wasted)), "{id}");
        let found = if is_wasted { &told.findings[0] } else { &told.improvements[0] };
        assert_eq!((found.id.as_str(), told.findings.len() + told.improvements.len()), (id, 1));
        assert_eq!((found.tier.as_str(), found.remedies.len(), found.remedies[0].change.len()), ("nginx", 1, 0), "{id}");
        assert!(found.title.contains("30 %"), "{}", found.title);
        // In order: a small share; idle cores; another program; too few samples; another core.
        for (what, busy, counted) in [
            ("little", FULL, [(42, 1, layer, aspects, 20), (42, 1, "application", &[][..], 380)]),
            ("cores to spare", 0.6, [(42, 1, layer, aspects, 120), (42, 1, "application", &[], 280)]),
            ("another program", FULL, [(7, 1, layer, aspects, 120), (42, 1, "application", &[], 280)]),
            ("few samples", FULL, [(42, 1, layer, aspects, 12), (42, 1, "application", &[], 28)]),
            ("another core", FULL, [(42, 0, layer, aspects, 120), (42, 1, "application", &[], 280)]),
        ] {
            let silent = stage::told(&sampled(busy, &counted));
            assert_eq!((improvements(&silent), silent.findings.len()), (vec![], 0), "{id}: {what}");
        }
    }
}

/// A level beyond the one that zlib takes by itself is waste; up to it, the size of responses is somebody's choice.
#[test]
fn a_level_of_compression_above_the_usual_one_is_a_cause() {
    for level in (0..=9).map(Some).chain([None]) {
        let mut obs = sampled(FULL, &[(42, 1, "compression", &[], 120), (42, 1, "application", &[], 280)]);
        let gzip_level = level.map(|value| Setting { value, origin: Origin { file: "/etc/nginx/nginx.conf".into(), line: 7 } });
        let config = NginxConfig { gzip_level, ..NginxConfig::default() };
        obs.servers.entry(42).or_default().config.push(0, Reading::Ok(ServerConfig::Nginx(config)));
        let found = told(&obs);
        let is_high = level.is_some_and(|level| level > 6);
        let expected = if is_high { (vec!["compression-hot"], vec![]) } else { (vec![], vec!["compression-hot"]) };
        assert_eq!((causes(&found), improvements(&found)), expected, "{level:?}");
        let all = found.findings.iter().chain(&found.improvements).flat_map(|finding| &finding.evidence);
        let told = all.filter(|proof| proof.text.starts_with("gzip_comp_level is") && proof.source.ends_with("nginx.conf:7")).count();
        assert_eq!(told, usize::from(level.is_some()), "{level:?}");
    }
}

#[test]
fn tls_without_handshakes_and_interpretation_without_compilation_are_no_finding() {
    for layer in ["tls", "interpreter", "port-search", "tcp-transmit"] {
        let mut obs = sampled(FULL, &[(42, 1, layer, &["kernel-network", "connection"], 300), (42, 1, "application", &[], 100)]);
        obs.load.as_mut().unwrap().connections = 100;
        assert_eq!(improvements(&told(&obs)), [""; 0], "{layer}");
    }
}

#[test]
fn the_search_for_ports_is_a_cause_wherever_it_takes_the_limiting_time_with_and_without_load() {
    let searching = |count: u64| {
        let mut obs = sampled(FULL, &[(42, 1, "port-search", &["kernel-network"], count), (42, 1, "application", &[], 400 - count)]);
        obs.load.as_mut().unwrap().connections = 100;
        obs
    };
    let mut obs = searching(340);
    for _ in 0..2 {
        let found = told(&obs);
        assert_eq!((causes(&found), found.verdict), (vec!["time-wait-port-search"], Verdict::Choked));
        assert!(found.findings[0].title.contains("85 %"), "{}", found.findings[0].title);
        (obs.load, obs.request.loaded) = (None, false);
    }
    assert_eq!(causes(&told(&searching(20))), [""; 0], "a twentieth is noise");
}

#[test]
fn signatures_with_broken_stacks_are_handshakes_if_each_request_opens_a_connection() {
    // 200 requests a second of a few hundred bytes cannot keep TLS busy for nine tenths of a core.
    for (connections, requests, bytes, expected) in [
        (2_000, 2_000, 1_000_000, vec!["tls-handshake-hot"]),
        (50, 2_000, 1_000_000, vec![]),
        (2_000, 2_000, 2_000_000_000, vec![]),
        (300_000, 300_000, 100_000_000, vec!["tls-handshake-hot"]),
    ] {
        let mut obs = sampled(FULL, &[(42, 1, "tls", &[], 355), (42, 1, "tls", &["tls-handshake"], 5), (42, 1, "application", &[], 40)]);
        let load = obs.load.as_mut().unwrap();
        (load.connections, load.requests, load.good, load.received_bytes) = (connections, requests, requests, bytes);
        load.status = [(200, requests)].into();
        assert_eq!(improvements(&told(&obs)), [""; 0], "a server that speaks no TLS");
        obs.request.scheme = "https".into();
        assert_eq!(improvements(&told(&obs)), expected, "{connections} {requests} {bytes}");
    }
}

#[test]
fn confidence_follows_from_the_number_of_samples() {
    for (samples, expected) in [(400, Confidence::Medium), (40_000, Confidence::High)] {
        let told = told(&sampled(FULL, &[(42, 1, "allocator", &[], samples / 10), (42, 1, "application", &[], samples * 9 / 10)]));
        assert_eq!(told.improvements[0].confidence, expected, "{samples}");
    }
}

/// nginx may run on both cores. Its threads ran for these shares of the time.
fn threaded(threads: &[f64], counted: &[Counted<'_>]) -> Observation {
    let mut obs = sampled(0.6, counted);
    let process = obs.processes.get_mut(&42).unwrap();
    let identity = Identity { cpus_allowed: vec![0, 1], ..process.identity.first().unwrap().clone() };
    process.identity = Default::default();
    process.identity.push(0, Reading::Ok(identity));
    for second in 0..=11_u64 {
        let times = |(id, ran): (u32, &f64)| ThreadTimes { id, run_ns: (second as f64 * 1e9 * ran) as u64, delay_ns: 0 };
        let used = CpuUse { thread_times: (42..).zip(threads).map(times).collect(), threads: threads.len() as u32, ..CpuUse::default() };
        process.cpu.push(second * 1_000_000, Reading::Ok(used));
    }
    obs
}

#[test]
fn one_thread_at_its_limit_beside_an_idle_core_is_a_choke_point() {
    let ran: &[Counted<'_>] = &[(42, 0, "application", &[], 150), (42, 1, "application", &[], 240)];
    let mut obs = threaded(&[0.98], ran);
    obs.servers.entry(42).or_default().config.push(
        0,
        Reading::Ok(ServerConfig::Nginx(NginxConfig {
            worker_processes: Setting { value: 1, origin: Origin { file: "/etc/nginx/nginx.conf".into(), line: 3 } },
            ..NginxConfig::default()
        })),
    );
    let found = told(&obs);
    assert_eq!((found.verdict, causes(&found)), (Verdict::Choked, vec!["single-core-saturated"]));
    let finding = &found.findings[0];
    let says = |words: &str| finding.evidence.iter().any(|evidence| evidence.text.contains(words) || evidence.source.contains(words));
    assert!(says("worker_processes is 1") && says("/etc/nginx/nginx.conf:3"), "{:?}", finding.evidence);
    // 1.1 of the two cores are idle, beside the one that the thread fills.
    assert!(says("at most 2.1 times"), "{:?}", finding.evidence);
    assert_eq!((finding.confidence, finding.remedies[0].id.as_str()), (Confidence::High, "raise-worker-processes"));
    assert!(finding.remedies.iter().all(|remedy| remedy.change.is_empty()));
    // A program without such a setting gets words. Without a profile the scheduler's clock alone says it.
    let mut other = threaded(&[0.98], ran);
    assert_eq!(told(&other).findings[0].remedies[0].id, "use-more-cores");
    other.profile = Default::default();
    let unsampled = told(&other);
    assert_eq!((causes(&unsampled), unsampled.findings[0].confidence), (vec!["single-core-saturated"], Confidence::Medium));
    // Of watched traffic, without samples, it is not known whether anything waits.
    (other.load, other.request.loaded) = (None, false);
    assert_eq!((told(&other).findings.len(), improvements(&told(&other))), (0, vec!["single-core-saturated"]));
    // Most responses look like errors: whoever lacks cores lets requests wait.
    let kept = [((ip(SERVER_IP), 80).into(), [(200, 40), (502, 60)].into())].into();
    let counted = WireAnswers { open_us: 250_000, kept, ..WireAnswers::default() };
    other.netns.get_mut(&SERVER).unwrap().answers.push(5_000_000, Reading::Ok(counted));
    assert_eq!((told(&other).findings.len(), improvements(&told(&other))), (0, vec![]));
    // An offered rate that is met asks for no more.
    obs.load.as_mut().unwrap().shape = Loop::Open { rate_per_s: 10_000.0, connections: 100 };
    assert_eq!((told(&obs).findings.len(), improvements(&told(&obs))), (0, vec!["single-core-saturated"]));
    // In order: a thread that sometimes waits; as many threads as cores; samples without the thread.
    let cases = [threaded(&[0.8], ran), threaded(&[0.98, 0.97], ran), threaded(&[0.98], &[(42, 0, "application", &[], 150)])];
    for (place, obs) in cases.iter().enumerate() {
        let silent = told(obs);
        assert_eq!((silent.findings.len(), improvements(&silent)), (0, vec![]), "{place}");
    }
}

/// A program with this executable may run on both cores. Its 21 threads used this many cores, and its own code this many.
fn taking_turns(exe: &str, used: f64, user: f64) -> Observation {
    let mut obs = threaded(&[used / 21.0; 21], &[(42, 0, "interpreter", &[], 150), (42, 1, "interpreter", &[], 240)]);
    let process = obs.processes.get_mut(&42).unwrap();
    let identity = Identity { exe: Some(exe.to_owned()), ..process.identity.first().unwrap().clone() };
    process.identity = Default::default();
    process.identity.push(0, Reading::Ok(identity));
    let points: Vec<(u64, CpuUse)> = process.cpu.points().to_vec();
    process.cpu = Default::default();
    for (at_us, cpu) in points {
        let ticks = |cores: f64| (at_us as f64 / 1e4 * cores) as u64;
        process.cpu.push(at_us, Reading::Ok(CpuUse { user_ticks: ticks(user), system_ticks: ticks(used - user), ..cpu }));
    }
    obs
}

#[test]
fn threads_under_the_lock_of_an_interpreter_are_worth_one_core() {
    let found = told(&taking_turns("/usr/bin/python3.11", 1.02, 0.83));
    assert_eq!((found.verdict, causes(&found)), (Verdict::Choked, vec!["single-core-saturated"]));
    let finding = &found.findings[0];
    assert!(finding.title.contains("one of its 21 threads at a time"), "{}", finding.title);
    assert!(finding.remedies[0].text.contains("More threads do not help"), "{:?}", finding.remedies[0]);
    let cores = found.path.iter().find(|station| station.station == "cpu").unwrap();
    assert!(cores.why.contains("the 21 threads of nginx take turns"), "{}", cores.why);
    // In order: threads that run side by side; an interpreter without the lock; one that is not always busy; a library that computes outside of the lock.
    let others =
        [("/usr/bin/java", 1.02, 0.83), ("/usr/bin/python3.13t", 1.02, 0.83), ("/usr/bin/ruby", 0.8, 0.7), ("/usr/bin/ruby", 1.6, 1.5)];
    for (exe, used, user) in others {
        assert_eq!(told(&taking_turns(exe, used, user)).findings.len(), 0, "{exe} {used} {user}");
    }
    assert_eq!(causes(&told(&taking_turns("/usr/bin/ruby3.1", 1.1, 0.9))), ["single-core-saturated"]);
}

/// A program without an interpreter's lock may run on both cores. Its threads used this many cores from each second to the next, none of them for long on its own, and on average this many of
/// 30 requests stood unread.
fn spread(threads: u32, used: &[f64], unread: usize) -> Observation {
    let mut obs = sampled(0.6, &[(42, 0, "application", &[], 150), (42, 1, "application", &[], 240)]);
    let process = obs.processes.get_mut(&42).unwrap();
    let identity = Identity { cpus_allowed: vec![0, 1], ..process.identity.first().unwrap().clone() };
    process.identity = Default::default();
    process.identity.push(0, Reading::Ok(identity));
    let mut run_ns = 0;
    for second in 0..=11_u64 {
        let thread_times = (0..threads).map(|n| ThreadTimes { id: 42 + n, run_ns: run_ns / u64::from(threads), delay_ns: second * 1_000 });
        let used_ns =
            CpuUse { thread_times: thread_times.collect(), run_ns: Some(run_ns), run_delay_ns: Some(0), threads, ..CpuUse::default() };
        process.cpu.push(second * 1_000_000, Reading::Ok(used_ns));
        run_ns += (1e9 * used[second as usize % used.len()]) as u64;
    }
    let socket = |n: usize| {
        let stands = n < unread;
        let times = RequestTimes {
            last_data_recv_ms: if stands { 8 } else { 40 },
            last_data_sent_ms: 20,
            data_segs_in: Some(5),
            data_segs_out: Some(if stands { 4 } else { 5 }),
            ..RequestTimes::default()
        };
        RequestSocket {
            address: SocketAddress::Tcp { local: (ip(SERVER_IP), 80), remote: (ip("10.0.0.1"), 20_000 + n as u16) },
            cookie: 1 + n as u64,
            state: TcpState::Established,
            inode: 7,
            receive_queue: if stands { 100 } else { 0 },
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

/// Whatever lets one thread run at a time: a setting of Go, a lock that all take. Who may run many at once and uses one core by chance leaves nothing unread.
#[test]
fn a_program_that_uses_one_core_and_never_more_while_requests_stand_is_a_choke_point() {
    for threads in [2, 3, 7, 40] {
        for used in [&[0.98][..], &[0.96, 0.99, 0.97], &[1.01, 0.99]] {
            for unread in [2, 5, 25] {
                let found = told(&spread(threads, used, unread));
                assert_eq!(
                    (found.verdict, causes(&found)),
                    (Verdict::Choked, vec!["single-core-saturated"]),
                    "{threads} {used:?} {unread}"
                );
                assert!(found.findings[0].title.contains("keeps one core busy and never more"), "{}", found.findings[0].title);
                assert!(found.findings[0].remedies[0].text.contains("GOMAXPROCS"), "{:?}", found.findings[0].remedies[0]);
            }
        }
        // Less than a core; more; one on average; nothing that stands.
        for (used, unread) in [(&[0.9][..], 5), (&[1.2], 5), (&[0.8, 1.2], 5), (&[0.98], 0)] {
            let silent = told(&spread(threads, used, unread));
            assert_eq!((causes(&silent), improvements(&silent)), (vec![], vec![]), "{threads} {used:?} {unread}");
        }
    }
}

#[test]
fn the_share_of_a_thread_counts_its_own_time_on_any_core() {
    let hot: &[Counted<'_>] = &[(42, 0, "compression", &[], 150), (42, 1, "application", &[], 240), (7, 0, "application", &[], 200)];
    let found = told(&threaded(&[0.98], hot));
    assert_eq!((causes(&found), improvements(&found)), (vec!["single-core-saturated"], vec!["compression-hot"]));
    assert!(found.improvements[0].evidence[0].text.contains("38.5 %"), "{:?}", found.improvements[0].evidence);
}

#[test]
fn one_core_that_receives_all_packets_beside_idle_ones_is_reported() {
    let receives = |on: u32, softirq: u64, other: u64, generator: Vec<u32>| {
        let counted: [Counted<'_>; 3] = [
            (0, on, "softirq-receive", &["softirq"], softirq),
            (42, on, "application", &[], 400 - softirq),
            (42, 1 - on, "application", &[], other),
        ];
        let mut obs = threaded(&[0.5, 0.5], &counted);
        obs.load.as_mut().unwrap().threads[0].cpus = generator;
        obs
    };
    let found = told(&receives(1, 300, 100, vec![0, 1]));
    assert_eq!((improvements(&found), found.improvements[0].title.contains("core 1")), (vec!["softirq-on-one-core"], true));
    assert_eq!(improvements(&told(&receives(1, 100, 100, vec![0, 1]))), [""; 0], "it does something else");
    assert_eq!(improvements(&told(&receives(1, 300, 390, vec![0, 1]))), [""; 0], "both are full");
    assert_eq!(improvements(&told(&receives(0, 300, 100, vec![0]))), [""; 0], "the load generator's core");
}
