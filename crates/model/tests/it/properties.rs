//! Properties of every observation: a missing reading creates no cause, more room elsewhere changes no verdict, ceilings grow with the rates, and the
//! order of the readings does not matter.
//!
//! Deterministic: observations made up by the tests.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use chokepoint_model::observation::{NetnsView, Observation, ProcessView, ServerConfig, ServerView};
use chokepoint_model::reading::{Lack, Reading};
use chokepoint_model::report::{Confidence, Diagnosis, Finding, Role, Verdict};
use chokepoint_model::series::Series;
use proptest::prelude::*;

use crate::stage::all::{Staged, all};
use crate::stage::*;

/// Every observation of the stage with its diagnosis.
static STAGE: LazyLock<Vec<(Staged, Diagnosis)>> = LazyLock::new(|| {
    let with = |staged: Staged| {
        let diagnosis = told(&staged.2);
        (staged, diagnosis)
    };
    all().into_iter().map(with).collect()
});

/// Number of kinds of readings that can be removed.
const KINDS: u32 = 50;

fn first(diagnosis: &Diagnosis) -> Option<&Finding> {
    diagnosis.findings.iter().find(|finding| finding.role == Role::Cause)
}

#[test]
fn each_staged_observation_has_its_expected_cause() {
    for ((name, expected, _), diagnosis) in &*STAGE {
        assert_eq!(first(diagnosis).map(|finding| finding.id.as_str()), *expected, "{name}: {}", diagnosis.summary);
    }
}

/// Removes every kind of series whose bit is set. Of kinds with several series (namespaces, processes, logs), a random part is removed.
struct Blind {
    kinds: u64,
    seed: u64,
    how: u8,
    next: u32,
    instance: u64,
}

impl Blind {
    fn chooses(&mut self) -> bool {
        let kind = self.next;
        self.next += 1;
        let mixed = (self.seed ^ self.instance.wrapping_mul(0x9e37_79b9) ^ u64::from(kind)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        self.kinds & (1 << (kind % 64)) != 0 && (self.seed == 0 || (mixed >> 40) & 1 == 0)
    }

    fn take<T>(&mut self, series: &mut Series<T>) {
        if !self.chooses() {
            return;
        }
        *series = Series::default();
        match self.how {
            0 => {}
            1 => series.push(0, Reading::Absent(Lack::needing("permission denied", "CAP_SYS_ADMIN"))),
            _ => series.push(0, Reading::Failed(Lack::new("it could not be understood"))),
        }
    }

    /// Changes each value of a series if its bit is set.
    fn change<T: Clone>(&mut self, series: &mut Series<T>, change: impl Fn(&mut T)) {
        if !self.chooses() {
            return;
        }
        let points = series.points().to_vec();
        *series = Series::default();
        for (at, mut value) in points {
            change(&mut value);
            series.push(at, Reading::Ok(value));
        }
    }

    /// The kinds are numbered anew for each namespace, process and server.
    fn instance(&mut self, from: u32, instance: u64) {
        (self.next, self.instance) = (from, instance);
    }

    /// All series of one kind.
    fn each<T>(&mut self, kind: u32, all: &mut BTreeMap<String, Series<T>>) {
        for series in all.values_mut() {
            self.next = kind;
            self.instance = self.instance.wrapping_add(1_000);
            self.take(series);
        }
    }

    fn observation(&mut self, obs: &mut Observation) {
        // Destructured by name, so that a new series cannot be forgotten here.
        let Observation {
            kernel,
            cpu,
            memory,
            softnet,
            kernel_log,
            busy_processes,
            profile,
            wire,
            ksoftirqd,
            netns,
            processes,
            cgroups,
            cgroup_tasks,
            cgroup_io,
            freezers,
            user_tasks,
            task_limits,
            servers,
            namespaces_seen,
            processes_seen,
            request: _,
            load: _,
            unloaded,
            warmth,
            window_us: _,
            bounded: _,
            unplaced: _,
        } = obs;
        self.instance(0, 0);
        self.take(kernel);
        self.take(cpu);
        self.take(memory);
        self.take(softnet);
        self.take(kernel_log);
        self.take(namespaces_seen);
        self.take(processes_seen);
        self.take(profile);
        self.take(wire);
        for (core, series) in ksoftirqd {
            self.instance(7, u64::from(*core));
            self.take(series);
        }
        for (id, view) in netns {
            self.instance(8, id.0);
            self.namespace(view);
        }
        for (pid, view) in processes {
            self.instance(27, u64::from(*pid));
            self.process(view);
        }
        for (pid, view) in servers {
            self.instance(35, u64::from(*pid));
            self.server(view);
        }
        self.instance(39, 0);
        if self.chooses() {
            *unloaded = None;
            *warmth = None;
        }
        for (place, series) in cgroups.values_mut().enumerate() {
            self.instance(40, place as u64);
            self.take(series);
        }
        self.instance(41, 0);
        self.take(busy_processes);
        for (place, series) in cgroup_tasks.values_mut().enumerate() {
            self.instance(42, place as u64);
            self.take(series);
        }
        self.instance(43, 0);
        self.take(user_tasks);
        self.instance(48, 0);
        self.take(task_limits);
        for (place, series) in cgroup_io.values_mut().enumerate() {
            self.instance(46, place as u64);
            self.take(series);
        }
        for (place, series) in freezers.values_mut().enumerate() {
            self.instance(44, place as u64);
            self.take(series);
        }
    }

    fn namespace(&mut self, view: &mut NetnsView) {
        let NetnsView {
            netstat,
            sockstat,
            conntrack_count,
            conntrack_cpus,
            conntrack_states,
            conntrack_translations,
            sysctls,
            listeners,
            time_waits,
            sockets,
            sockets_left_out,
            request_samples,
            awaited_samples,
            answers,
            tcp_samples,
            links,
            qdiscs,
            addresses,
            filter_rules,
            name: _,
            is_host: _,
            made_by: _,
        } = view;
        self.change(netstat, |counters| {
            *counters = counters.iter().filter(|(name, _)| name.len() % 2 == 0).map(|(name, value)| (name.to_owned(), *value)).collect();
        });
        self.take(netstat);
        self.take(sockstat);
        self.take(conntrack_count);
        self.change(conntrack_cpus, |rows| rows.iter_mut().for_each(|row| row.counters = Default::default()));
        self.take(conntrack_cpus);
        self.take(conntrack_states);
        self.take(conntrack_translations);
        self.change(listeners, |all| all.iter_mut().for_each(|listener| listener.drops = None));
        self.take(listeners);
        self.take(time_waits);
        self.change(sockets, |all| all.iter_mut().for_each(|socket| socket.inode = 0));
        self.take(sockets);
        self.take(sockets_left_out);
        self.change(request_samples, |sample| sample.sockets.iter_mut().for_each(|socket| socket.times = None));
        self.take(request_samples);
        self.change(awaited_samples, |sample| sample.sockets.iter_mut().for_each(|socket| socket.times = None));
        self.take(awaited_samples);
        self.change(answers, |counted| counted.servers.retain(|server, _| server.port() % 2 == 0));
        self.take(answers);
        self.change(tcp_samples, |all| all.iter_mut().for_each(|sample| (sample.unsent, sample.sndbuf_limited_us) = (None, None)));
        self.take(tcp_samples);
        self.take(links);
        self.take(qdiscs);
        self.take(addresses);
        self.change(filter_rules, |found| found.rules.iter_mut().for_each(|rule| rule.taken = None));
        self.take(filter_rules);
        self.each(26, sysctls);
    }

    fn process(&mut self, view: &mut ProcessView) {
        let ProcessView { identity, cpu, files, fd_count, syscall, thread_looks, thread_names, tracing, memory, limits, mappings, cgroups } =
            view;
        self.take(identity);
        self.change(cpu, |used| (used.run_ns, used.run_delay_ns) = (None, None));
        self.take(cpu);
        self.take(files);
        self.take(fd_count);
        self.take(syscall);
        self.take(memory);
        self.take(limits);
        self.take(cgroups);
        let instance = self.instance;
        self.instance(42, instance);
        self.take(tracing);
        self.instance(43, instance);
        self.take(thread_names);
        self.instance(47, instance);
        self.take(thread_looks);
        self.instance(49, instance);
        self.take(mappings);
    }

    fn server(&mut self, view: &mut ServerView) {
        let ServerView { config, access_logs, error_logs, status, files: _ } = view;
        self.take(config);
        self.each(36, access_logs);
        self.each(37, error_logs);
        self.each(38, status);
    }
}

/// The observation without the kinds whose bits are set.
fn blind(obs: &Observation, (kinds, seed, how): (u64, u64, u8)) -> Observation {
    let mut obs = obs.clone();
    Blind { kinds, seed, how, next: 0, instance: 0 }.observation(&mut obs);
    obs
}

/// Checks a reduced observation: no confident cause that the full one lacks, and no cause at all if the full one has none.
fn check_blind((name, _, obs): &Staged, open: &Diagnosis, taken: (u64, u64, u8)) {
    let blinded = told(&blind(obs, taken));
    let confident = |finding: &&Finding| finding.role == Role::Cause && finding.confidence > Confidence::Low;
    for Finding { id, .. } in blinded.findings.iter().filter(confident) {
        let was = open.findings.iter().any(|finding| finding.id == *id);
        assert!(was && first(open).is_some(), "{name}: {id} was made out of nothing without {taken:x?}");
    }
    let has_verdict = blinded.verdict == Verdict::Choked || blinded.verdict == Verdict::ClientLimited;
    assert_eq!(has_verdict, first(&blinded).is_some(), "{name} without {taken:x?}");
}

#[test]
fn one_or_two_missing_kinds_of_readings_are_never_replaced_by_a_guess() {
    for (staged, open) in &*STAGE {
        let telling = |kind: &u32| told(&blind(&staged.2, (1 << kind, 0, 1))) != *open;
        let telling: Vec<u32> = (0..KINDS).filter(telling).collect();
        for (place, kind) in telling.iter().enumerate() {
            check_blind(staged, open, (!(1 << kind), 0, 1));
            for other in &telling[place..] {
                check_blind(staged, open, (1 << kind | 1 << other, 0, 1));
            }
        }
    }
}

/// Multiplies the limit of every station with one of these names. Everything else is unchanged.
type Room = (&'static [&'static str], fn(&mut Observation, u32));

const ROOM: [Room; 13] = [
    (&["conntrack-table"], |obs, times| sysctl(obs, "net.netfilter.nf_conntrack_max", times)),
    (&["accept-queue", "syn-queue"], |obs, times| {
        for view in obs.netns.values_mut() {
            change(&mut view.listeners, |all| all.iter_mut().for_each(|one| one.accept_queue_limit *= times));
        }
    }),
    (&["syn-queue"], |obs, times| sysctl(obs, "net.ipv4.tcp_max_syn_backlog", times)),
    (&["worker-connections"], |obs, times| nginx(obs, |nginx| nginx.worker_connections.value *= times)),
    (&["file-descriptors"], |obs, times| {
        for process in obs.processes.values_mut() {
            change(&mut process.limits, |limits| limits.open_files_soft = limits.open_files_soft.map(|soft| soft * u64::from(times)));
        }
    }),
    (&["rate-limit"], |obs, times| {
        nginx(obs, |nginx| {
            nginx.limits.iter_mut().for_each(|limit| limit.rate_per_s = limit.rate_per_s.map(|rate| rate * f64::from(times)))
        });
    }),
    (&["ephemeral-ports"], |obs, _| {
        for view in obs.netns.values_mut() {
            let wide = "1024 65535".to_owned();
            view.sysctls.entry("net.ipv4.ip_local_port_range".to_owned()).or_default().push(2, Reading::Ok(wide));
        }
    }),
    (&["link"], |obs, times| {
        for view in obs.netns.values_mut() {
            change(&mut view.links, |links| {
                links.iter_mut().for_each(|link| link.speed_bits_per_s = Some(u64::from(times) * 1_000_000_000));
            });
        }
    }),
    (&["shaper"], |obs, times| {
        let widen = |rate: &mut Option<u64>| *rate = rate.map(|rate| rate * u64::from(times));
        for view in obs.netns.values_mut() {
            change(&mut view.qdiscs, |qdiscs| {
                for qdisc in qdiscs {
                    widen(&mut qdisc.rate_bits_per_s);
                    qdisc.classes.iter_mut().for_each(|class| widen(&mut class.rate_bits_per_s));
                }
            });
        }
    }),
    (&["cpu-quota"], |obs, times| {
        for series in obs.cgroups.values_mut() {
            change(series, |cpu| cpu.quota_us = cpu.quota_us.map(|quota| quota * u64::from(times)));
        }
    }),
    (&["tasks"], |obs, times| {
        for series in obs.cgroup_tasks.values_mut() {
            change(series, |tasks| tasks.limit = tasks.limit.map(|limit| limit * u64::from(times)));
        }
    }),
    (&["disk-limit"], |obs, times| {
        for series in obs.cgroup_io.values_mut() {
            change(series, |io| io.limits.values_mut().for_each(|limit| *limit *= u64::from(times)));
        }
    }),
    (&["load-generator"], |obs, times| {
        let threads = obs.load.iter_mut().flat_map(|load| &mut load.threads);
        threads.for_each(|thread| thread.cpu_us /= u64::from(times));
    }),
];

fn change<T: Clone>(series: &mut Series<T>, change: impl Fn(&mut T)) {
    let points = series.points().to_vec();
    *series = Series::default();
    for (at, mut value) in points {
        change(&mut value);
        series.push(at, Reading::Ok(value));
    }
}

fn sysctl(obs: &mut Observation, key: &str, times: u32) {
    for series in obs.netns.values_mut().filter_map(|view| view.sysctls.get_mut(key)) {
        change(series, |value| *value = (value.parse::<u64>().unwrap() * u64::from(times)).to_string());
    }
}

fn nginx(obs: &mut Observation, set: impl Fn(&mut chokepoint_model::observation::NginxConfig)) {
    for server in obs.servers.values_mut() {
        change(&mut server.config, |config| {
            if let ServerConfig::Nginx(nginx) = config {
                set(nginx);
            }
        });
    }
}

/// Identity and place of the first cause.
fn choke(diagnosis: &Diagnosis) -> Option<(&str, &str, &chokepoint_model::report::At)> {
    first(diagnosis).map(|finding| (finding.id.as_str(), finding.tier.as_str(), &finding.at))
}

#[test]
fn room_at_a_station_that_is_not_the_choke_point_does_not_change_the_first_finding() {
    let (mut moved, mut lifted) = (0, 0);
    for ((name, _, obs), before) in &*STAGE {
        for (stations, add) in ROOM {
            for times in [2, 100] {
                let mut roomy = obs.clone();
                add(&mut roomy, times);
                let after = told(&roomy);
                let found = |finding: &Finding| stations.contains(&finding.station.as_str());
                if first(before).is_none() && before.findings.iter().any(found) {
                    // The cause of this symptom is unknown. The station may be the choke point itself.
                    continue;
                }
                if first(before).is_some_and(found) {
                    // The choke point itself: with room it is no longer one. This shows that the added room has an effect.
                    moved += usize::from(choke(&after) != choke(before));
                    continue;
                }
                lifted += usize::from(roomy != *obs);
                assert_eq!(choke(&after), choke(before), "{name}: {times} times the room at {stations:?}");
            }
        }
    }
    assert!(moved >= 10 && lifted >= 100, "{moved} choke points moved, {lifted} others were given room");
}

/// Multiplies the requests with the same time and the same use of everything, so each request is cheaper by that factor.
fn scaled(obs: &Observation, times: u64) -> Observation {
    let mut obs = obs.clone();
    if let Some(load) = &mut obs.load {
        let errors = &mut load.errors;
        let counts = [
            &mut load.requests,
            &mut load.good,
            &mut load.drained,
            &mut load.drained_good,
            &mut load.connections,
            &mut errors.connect_refused,
            &mut errors.connect_timeout,
            &mut errors.connect_failed,
            &mut errors.response_timeout,
            &mut errors.reset,
            &mut errors.closed_before_answer,
            &mut errors.bad_response,
        ];
        counts.into_iter().chain(load.status.values_mut()).for_each(|count| *count *= times);
        if let chokepoint_model::load::Loop::Open { rate_per_s, .. } = &mut load.shape {
            *rate_per_s *= times as f64;
        }
    }
    for server in obs.servers.values_mut() {
        for log in server.access_logs.values_mut() {
            change(log, |log| {
                log.lines *= times;
                log.status.values_mut().for_each(|count| *count *= times);
            });
        }
    }
    nginx(&mut obs, |nginx| nginx.limits.iter_mut().for_each(|limit| limit.rate_per_s = limit.rate_per_s.map(|rate| rate * times as f64)));
    obs
}

#[test]
fn ceilings_grow_with_the_rates() {
    let mut seen = std::collections::BTreeSet::new();
    for ((name, _, obs), before) in &*STAGE {
        for times in [2, 3, 10] {
            let after = told(&scaled(obs, times));
            for (small, large) in before.path.iter().zip(&after.path) {
                assert_eq!((&small.station, &small.at), (&large.station, &large.at), "{name}");
                let (Some(small_rps), Some(large_rps)) = (small.ceiling_rps, large.ceiling_rps) else {
                    assert_eq!(small.ceiling_rps.is_some(), large.ceiling_rps.is_some(), "{name}: {}", small.station);
                    continue;
                };
                // The upper bound is not scaled: it includes a burst that passes at once, which is no rate.
                let high =
                    if small.station == "rate-limit" { (small_rps.value, large_rps.value) } else { (small_rps.high, large_rps.high) };
                for (from, to) in [(small_rps.value, large_rps.value), (small_rps.low, large_rps.low), high] {
                    assert!((to / from / times as f64 - 1.0).abs() < 1e-9, "{name}: {} {from} -> {to} at {times} times", small.station);
                }
                seen.insert(small.station.clone());
            }
        }
    }
    let expected = ["clients", "cpu", "cpu-quota", "ephemeral-ports", "load-generator", "rate-limit", "worker-pool"];
    assert!(expected.iter().all(|station| seen.contains(*station)), "only those of {seen:?} were held against each other");
}

/// A random permutation of a list.
fn shuffle<T>(list: &mut [T], random: &mut u64) {
    for last in (1..list.len()).rev() {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        list.swap(last, (*random >> 33) as usize % (last + 1));
    }
}

/// The same readings with each list in another order, as other kernels or calls may return it.
fn shuffled(obs: &Observation, seed: u64) -> Observation {
    let mut obs = obs.clone();
    let random = std::cell::Cell::new(seed);
    fn mix<T>(list: &mut [T], random: &std::cell::Cell<u64>) {
        let mut next = random.get();
        shuffle(list, &mut next);
        random.set(next);
    }
    change(&mut obs.cpu, |times| mix(&mut times.cores, &random));
    for view in obs.netns.values_mut() {
        change(&mut view.conntrack_cpus, |rows| mix(rows, &random));
        change(&mut view.listeners, |all| mix(all, &random));
        change(&mut view.sockets, |all| mix(all, &random));
        change(&mut view.links, |all| mix(all, &random));
        change(&mut view.qdiscs, |all| mix(all, &random));
        change(&mut view.addresses, |all| mix(all, &random));
        change(&mut view.time_waits, |waits| mix(&mut waits.dialled, &random));
    }
    for process in obs.processes.values_mut() {
        change(&mut process.files, |files| mix(&mut files.sockets, &random));
        change(&mut process.syscall, |call| mix(&mut call.sockets, &random));
        change(&mut process.identity, |identity| mix(&mut identity.cpus_allowed, &random));
    }
    obs
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn readings_that_are_absent_never_panic_and_never_make_a_cause(
        (place, kinds) in (0..STAGE.len(), any::<u64>()),
        (seed, how) in (prop_oneof![Just(0), any::<u64>()], 0_u8..3),
    ) {
        check_blind(&STAGE[place].0, &STAGE[place].1, (kinds, seed, how));
    }

    #[test]
    fn the_order_in_which_things_were_read_changes_nothing((place, seed) in (0..STAGE.len(), any::<u64>())) {
        let ((name, _, obs), told_at_first) = &STAGE[place];
        prop_assert_eq!(&told(&shuffled(obs, seed)), told_at_first, "{}", name);
    }
}
