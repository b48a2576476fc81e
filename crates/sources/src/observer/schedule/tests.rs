//! Whole observations with costs that each test defines, by the clock of the test.

use super::*;
use crate::observer::bucket::{EARLY_PART, FLOW_RECORDER_US, LOADED_PART, LOADED_US};
use crate::source;

const PATH: PathRole = PathRole::OnPath { sought: &[] };
const SECOND_US: u64 = 1_000_000;
/// CPU time of wake-ups, messages and storing, microseconds a second (docs/measuring.md).
const OVERHEAD_US: u64 = 1_300;

fn spent(name: &str, cost_us: u64) -> ReadCost {
    ReadCost { source: source(name).unwrap(), cost_us, is_there: true, is_first: false }
}

/// All readings with their times, and their CPU time.
#[derive(Default)]
struct Readings {
    turns: Vec<(u64, Scope, &'static str)>,
    used_us: u64,
    slowed: Vec<String>,
}

impl Readings {
    /// Times of the readings of a source, without namespace 2.
    fn times(&self, name: &str) -> Vec<u64> {
        let one = |(_, scope, source): &&(u64, Scope, &str)| *source == name && *scope != Scope::Netns(2);
        self.turns.iter().filter(one).map(|(at_us, ..)| *at_us).collect()
    }

    fn count(&self, name: &str) -> usize {
        self.times(name).len()
    }

    /// The longest time between two readings of a source, seconds.
    fn gap_s(&self, name: &str) -> f64 {
        self.times(name).windows(2).map(|pair| pair[1] - pair[0]).max().map_or(f64::INFINITY, |gap_us| gap_us as f64 / 1e6)
    }
}

/// A reader and the sources that it repeats by itself.
struct Reader {
    scope: Scope,
    schedule: Schedule,
    again: Option<RepeatedSources>,
    pace: Pace,
    sampled_us: Option<u64>,
    /// Costs that it has not reported yet.
    unreported: Vec<ReadCost>,
}

impl Reader {
    /// A reader that knows the costs of the next readings from its first ones.
    fn new((scope, pace): (Scope, Pace), bucket: &mut Bucket, cost_us: &impl Fn(Scope, &str) -> u64) -> Self {
        let mut schedule = Schedule::new(scope, pace, 0);
        let names = schedule.slots.iter().map(|slot| slot.source.name);
        let first: Vec<ReadCost> = names.map(|name| ReadCost { is_first: true, ..spent(name, cost_us(scope, name)) }).collect();
        schedule.done(0, bucket, &first);
        Self { scope, schedule, pace, again: None, sampled_us: None, unreported: Vec::new() }
    }

    /// Samples pause as in the reader of requests.
    fn read(&mut self, now_us: u64, sources: &[&'static Source], cost_us: &impl Fn(Scope, &str) -> u64, readings: &mut Readings) {
        for source in sources {
            let cost_us = cost_us(self.scope, source.name);
            let is_sampled = source.cadence == Cadence::Sampled;
            let (early_us, part) = self.pace.early();
            let times = if self.pace != Pace::Recorder && now_us < early_us { part } else { FLOW_US };
            if is_sampled && self.sampled_us.is_some_and(|sampled_us| now_us < sampled_us + (cost_us * times).clamp(175_000, 1_700_000)) {
                self.unreported.push(ReadCost { is_there: false, ..spent(source.name, 1) });
                continue;
            }
            if is_sampled {
                self.sampled_us = Some(now_us);
            }
            self.unreported.push(spent(source.name, cost_us));
            readings.turns.push((now_us, self.scope, source.name));
        }
    }

    /// One hundredth of a second of work, with these sources due.
    fn work(
        &mut self,
        (now_us, due, role): (u64, &[&'static Source], PathRole),
        bucket: &mut Bucket,
        cost_us: &impl Fn(Scope, &str) -> u64,
        readings: &mut Readings,
    ) {
        self.again = self.again.take().filter(|again| due.is_empty() && now_us < again.until_us);
        if self.again.is_none() {
            self.report(now_us, bucket, readings);
        }
        self.read(now_us, due, cost_us, readings);
        match self.again.take() {
            Some(again) => {
                if now_us.is_multiple_of(again.period_us) {
                    self.read(now_us, &again.sources, cost_us, readings);
                }
                self.again = Some(again);
            }
            None => self.again = self.schedule.repeat(now_us, role, bucket),
        }
        if self.again.is_none() {
            self.report(now_us, bucket, readings);
        }
    }

    fn report(&mut self, now_us: u64, bucket: &mut Bucket, readings: &mut Readings) {
        let used_us = self.unreported.iter().map(|spent| spent.cost_us).sum();
        bucket.spend(used_us);
        self.schedule.done(now_us, bucket, &self.unreported);
        readings.used_us += used_us;
        self.unreported.clear();
    }
}

/// Runs the readers of a host and of these namespaces as the sampler does.
fn observe(seconds: u64, namespaces: &[(Scope, PathRole)], cost_us: impl Fn(Scope, &str) -> u64) -> Readings {
    observe_at(Pace::Measurement, seconds, namespaces, cost_us)
}

fn observe_at(pace: Pace, seconds: u64, namespaces: &[(Scope, PathRole)], cost_us: impl Fn(Scope, &str) -> u64) -> Readings {
    let (mut bucket, mut readings) = (Bucket::new(0), Readings::default());
    if pace == Pace::Recorder {
        bucket = bucket.with_flow(FLOW_RECORDER_US);
    }
    bucket.shared_by(namespaces.iter().filter(|(_, role)| *role != PathRole::OffPath).count());
    let mut host = Reader::new((Scope::Host, pace), &mut bucket, &cost_us);
    let mut others: Vec<(Reader, PathRole)> =
        namespaces.iter().map(|(scope, role)| (Reader::new((*scope, pace), &mut bucket, &cost_us), *role)).collect();
    for now_us in (0..seconds * SECOND_US).step_by(10_000) {
        bucket.spend(OVERHEAD_US / 100);
        readings.used_us += OVERHEAD_US / 100;
        let of_others = others.iter_mut().flat_map(|(other, _)| other.schedule.accounts());
        bucket.refill(now_us, host.schedule.accounts().chain(of_others));
        let role = namespaces[0].1;
        let on_path = others.iter_mut().filter(|(_, role)| matches!(role, PathRole::OnPath { .. })).map(|(other, _)| &mut other.schedule);
        host.schedule.pair(now_us, role, on_path, &mut bucket);
        let due = host.schedule.due(now_us, role, false, &mut bucket);
        let files_due = due.iter().any(|source| source.name == FILES);
        host.work((now_us, &due, role), &mut bucket, &cost_us, &mut readings);
        for (other, role) in &mut others {
            let with_files = files_due && matches!(role, PathRole::OnPath { .. });
            let due = other.schedule.due(now_us, *role, with_files, &mut bucket);
            other.work((now_us, &due, *role), &mut bucket, &cost_us, &mut readings);
        }
    }
    readings.slowed = host.schedule.slowed(Scope::Host, seconds * SECOND_US).collect();
    readings.slowed.extend(others.iter().flat_map(|(other, _)| other.schedule.slowed(other.scope, seconds * SECOND_US)));
    readings
}

/// [`observe`] with one namespace.
fn watched(seconds: u64, role: PathRole, cost_us: impl Fn(&str) -> u64) -> Readings {
    observe(seconds, &[(Scope::Netns(1), role)], |_, name| cost_us(name))
}

/// Cost of one reading with few connections, microseconds (docs/measuring.md).
fn few(name: &str) -> u64 {
    match name {
        "listeners" => 56,
        "conntrack_count" => 14,
        "process_cpu" => 700,
        "cpu" | "cgroup_cpu" | "ksoftirqd" | "softnet" | "netstat" | "links" | "qdiscs" => 70,
        "sockets" | "process_files" | "requests" | "process_syscall" | "tcp_info" => 170,
        // Of processes that nobody traces nothing is read, of databases alone what their sessions do, names at the ends alone, and mappings when there are more threads than before.
        "process_tracing" | "process_thread_names" | "process_threads" | "process_mappings" => 0,
        _ => 20,
    }
}

/// The same with 10,000 connections that are all read every time.
fn many(name: &str) -> u64 {
    match name {
        "sockets" => 5_000,
        "process_files" => 17_000,
        "requests" => 1_700,
        "time_wait" => 1_000,
        _ => few(name),
    }
}

#[test]
fn cheap_sources_keep_to_their_cadence() {
    let path = watched(10, PATH, few);
    let is = |readings: &Readings, name: &str, counts: std::ops::RangeInclusive<usize>| {
        assert!(counts.contains(&readings.count(name)), "{name}: {}", readings.count(name));
    };
    is(&path, "listeners", 190..=200);
    is(&path, "conntrack_count", 190..=200);
    is(&path, "requests", 40..=56);
    is(&path, "process_fd_count", 38..=40);
    for name in ["cpu", "process_cpu", "netstat", "links", "sockets", "process_files", "process_syscall", "tcp_info", "time_wait"] {
        is(&path, name, 9..=10);
    }
    is(&path, "addresses", 0..=0);
    assert!(path.slowed.is_empty(), "{:?}", path.slowed);
    let client = watched(10, PathRole::Client, few);
    is(&client, "conntrack_count", 190..=200);
    is(&client, "requests", 40..=56);
    is(&client, "listeners", 1..=2);
    is(&client, "sockets", 1..=2);
    let aside = watched(20, PathRole::OffPath, few);
    is(&aside, "listeners", 3..=4);
    is(&aside, "netstat", 3..=4);
    is(&aside, "requests", 0..=0);
}

#[test]
fn all_sources_together_stay_below_one_percent_of_a_core_after_the_length_of_a_usual_load() {
    let most_us = 600_000 + LOADED_US / LOADED_PART;
    let names: Vec<&str> = SOURCES.iter().map(|source| source.name).filter(|name| AFFORDED.contains(name)).collect();
    for cost_us in [1_000, 5_000, 20_000, 60_000] {
        for expensive in names.iter().map(|name| vec![*name]).chain([names.clone()]) {
            let readings = watched(60, PATH, |name| if expensive.contains(&name) { cost_us } else { few(name) });
            assert!(readings.used_us < most_us, "{expensive:?} {cost_us}: {}", readings.used_us);
        }
    }
    let two = [(Scope::Netns(1), PATH), (Scope::Netns(2), PathRole::Client)];
    assert!(observe(60, &two, |_, name| many(name)).used_us < most_us);
    assert!(watched(60, PathRole::OnPath { sought: &EDGES }, many).used_us < most_us);
}

#[test]
fn a_load_of_four_seconds_gets_readings_of_expensive_sources() {
    for cost_us in [100, 1_000, 5_000] {
        for name in ["sockets", "process_files", "time_wait"] {
            let readings = watched(4, PATH, |other| if other == name { cost_us } else { few(other) });
            assert!(readings.count(name) >= 3, "{name} {cost_us}: {:?}", readings.times(name));
        }
    }
    let readings = watched(4, PATH, many);
    let counts = ["sockets", "requests", "process_files"].map(|name| readings.count(name));
    assert!(counts[0] >= 2 && readings.gap_s("sockets") < 3.0 && counts[1] >= 6, "{counts:?}");
    let readings = watched(60, PATH, many);
    let gaps_s = ["sockets", "requests", "process_files"].map(|name| readings.gap_s(name));
    assert!(gaps_s[0] < 10.0 && gaps_s[1] < 2.0 && gaps_s[2] < 30.0, "samples of requests come first: {gaps_s:?}");
}

#[test]
fn a_load_gets_its_samples_whatever_the_budget_owes() {
    // The search for the processes of a busy host has spent what came in for seconds.
    let busy = |_: Scope, name: &str| match name {
        "requests" => 2_600,
        "process_cpu" | "process_files" => 30_000,
        _ => few(name),
    };
    for seconds in [4, 10] {
        let readings = observe(seconds, &[(Scope::Netns(1), PATH)], busy);
        assert!(readings.count("requests") as u64 >= 3 * seconds, "{seconds}: {:?}", readings.times("requests"));
    }
    // And the descriptors of its processes: whether a limit on them was reached is seen while it is, or not at all.
    for (cost_us, least) in [(100, 12), (1_000, 12), (5_000, 3)] {
        let readings = observe(4, &[(Scope::Netns(1), PATH)], |scope, name| if name == OPEN_FILES { cost_us } else { busy(scope, name) });
        assert!(readings.count(OPEN_FILES) >= least, "{cost_us}: {:?}", readings.times(OPEN_FILES));
        assert!(readings.gap_s(OPEN_FILES) < 1.5, "{cost_us}: {:?}", readings.times(OPEN_FILES));
    }
}

#[test]
fn the_first_seconds_of_watching_have_enough_samples_whatever_the_others_cost() {
    // As beside 50,000 sockets in TIME_WAIT, all of which the kernel walks over for each sample.
    for (requests_us, others_us, least) in
        [(1_700, 170, 16), (5_000, 5_000, 16), (10_000, 20_000, 15), (25_000, 60_000, 6), (40_000, 60_000, 4)]
    {
        let busy = |_: Scope, name: &str| match name {
            "requests" => requests_us,
            _ if AFFORDED.contains(&name) => others_us,
            _ => few(name),
        };
        let readings = observe_at(Pace::Watch, 5, &[(Scope::Netns(1), PATH)], busy);
        assert!(readings.count("requests") >= least, "{requests_us} {others_us}: {:?}", readings.times("requests"));
        for name in ["cpu", "process_cpu", "netstat"] {
            assert!(readings.count(name) >= 4, "{name} {requests_us}: {:?}", readings.times(name));
        }
    }
}

#[test]
fn what_processes_wait_for_is_looked_at_while_a_load_lasts_whatever_the_others_cost() {
    for (waits_us, others_us, least) in [(1_000, 60_000, 9), (5_000, 60_000, 9), (20_000, 60_000, 2), (200_000, 20_000, 0)] {
        let readings = watched(10, PATH, |name| match name {
            WAITS => waits_us,
            _ if AFFORDED.contains(&name) => others_us,
            _ => few(name),
        });
        let looks = readings.count(WAITS);
        assert!(looks >= least, "{waits_us} {others_us}: {:?}", readings.times(WAITS));
        let part = (looks as u64).saturating_sub(1) * waits_us * LOADED_PART * WAITS_PART;
        assert!(part <= 10 * SECOND_US, "{waits_us}: {looks}");
    }
}

#[test]
fn a_minute_of_watching_costs_little_more_than_one_of_a_load_and_an_hour_no_more() {
    let cost_us = |_: Scope, name: &str| if name == "requests" { 40_000 } else { many(name) };
    let paths = [(Scope::Netns(1), PATH)];
    let minute = observe_at(Pace::Watch, 60, &paths, cost_us);
    let load = observe(60, &paths, cost_us);
    let early_us = EARLY_US / EARLY_PART;
    assert!(minute.used_us < load.used_us + early_us + 80_000, "{} {}", minute.used_us, load.used_us);
    let late = |readings: &Readings| readings.times("requests").iter().filter(|at_us| **at_us > 2 * EARLY_US).count();
    assert!(late(&minute).abs_diff(late(&load)) <= 3, "{} {}", late(&minute), late(&load));
}

#[test]
fn a_recorders_samples_beside_thousands_of_connections_keep_to_their_part() {
    let paths = [(Scope::Netns(1), PATH), (Scope::Netns(2), PathRole::Client)];
    let cost_us = |_: Scope, name: &str| if name == "requests" { 500 } else { few(name) };
    let recorder = observe_at(Pace::Recorder, 60, &paths, cost_us);
    let sampled = recorder.turns.iter().filter(|(.., name)| *name == "requests").count() as u64;
    assert!(sampled * 500 < 60 * SECOND_US / 300, "{sampled}");
    // Four in each window of five seconds, and a few of the few connections of other hosts all the time.
    assert!(recorder.gap_s("requests") < 1.0, "{:?}", recorder.times("requests"));
    let few_connections = observe_at(Pace::Recorder, 60, &paths, |_, name| few(name));
    assert!(few_connections.count("requests") > 180, "{}", few_connections.count("requests"));
}

#[test]
fn the_cost_of_other_sources_does_not_change_a_fixed_cadence() {
    for cost_us in [2_000, 20_000, 100_000] {
        let readings = watched(30, PATH, |name| if AFFORDED.contains(&name) { cost_us } else { few(name) });
        for name in ["cpu", "process_cpu", "cgroup_cpu", "ksoftirqd", "netstat"] {
            assert!(readings.count(name) >= 29 && readings.gap_s(name) < 1.5, "{name}: {:?}", readings.times(name));
        }
        assert!(readings.gap_s("listeners") <= 0.1, "{}", readings.gap_s("listeners"));
    }
}

#[test]
fn many_namespaces_with_few_connections_are_read_in_time_at_first_and_all_more_rarely_later() {
    let namespaces: Vec<(Scope, PathRole)> = (1..=7).map(|id| (Scope::Netns(id), PATH)).collect();
    let cost_us = |_, name: &str| match name {
        "sockets" | "requests" | "time_wait" => 500,
        _ => few(name),
    };
    let short = observe(4, &namespaces, cost_us);
    // The count leaves out one of the seven namespaces.
    for (name, least) in [("sockets", 6 * 3), ("requests", 6 * 12), ("process_files", 3), ("cpu", 3)] {
        assert!(short.count(name) >= least, "{name}: {:?}", short.times(name));
    }
    let long = observe(120, &namespaces, cost_us);
    assert!(long.used_us < 1_300_000 + LOADED_US / LOADED_PART, "{}", long.used_us);
    assert!(long.gap_s("cpu") < 8.0 && long.count("cpu") == long.count("process_cpu"), "{}", long.gap_s("cpu"));
}

#[test]
fn no_source_starves() {
    // The sources with a fixed cadence alone would cost 2 % of a core. All of them are read more rarely, and the others still have their part.
    let readings = watched(120, PATH, |name| match name {
        "listeners" => 500,
        "process_cpu" => 10_000,
        _ if AFFORDED.contains(&name) => 5_000,
        _ => few(name),
    });
    for name in AFFORDED {
        assert!(readings.count(name) >= 4 && readings.gap_s(name) < 40.0, "{name}: {:?}", readings.times(name));
    }
    let counts = ["cpu", "process_cpu"].map(|name| readings.count(name));
    assert!(readings.gap_s("listeners") < 1.0 && counts[0] == counts[1], "{} {counts:?}", readings.gap_s("listeners"));
    assert!(readings.used_us < 1_200_000, "{}", readings.used_us);
    assert!(readings.slowed.iter().any(|text| text.starts_with("listeners of net:[1]: up to ")), "{:?}", readings.slowed);
}

#[test]
fn connections_and_files_are_read_together_and_system_calls_right_after() {
    let both = [(Scope::Netns(1), PATH), (Scope::Netns(2), PATH)];
    for (connections_us, others_us, files_us) in [(100, 100, 100), (5_000, 1_000, 100), (100, 3_000, 8_000), (15_000, 5_000, 8_000)] {
        let readings = observe(60, &both, |scope, name| match name {
            CONNECTIONS if scope == Scope::Netns(1) => connections_us,
            CONNECTIONS => others_us,
            FILES => files_us,
            _ => few(name),
        });
        let files = readings.times(FILES);
        assert!(files.len() >= 2, "{connections_us} {others_us} {files_us}: {files:?}");
        for at_us in files {
            let then: Vec<&str> = readings.turns.iter().filter(|turn| turn.0 == at_us).map(|(.., name)| *name).collect();
            assert_eq!(then.iter().filter(|name| **name == CONNECTIONS).count(), 2, "{at_us}: {then:?}");
            let waits = then.iter().position(|name| *name == WAITS);
            assert!(waits.is_none_or(|at| then[at - 1] == FILES), "{at_us}: {then:?}");
        }
    }
}

#[test]
fn the_search_for_an_upstream_uses_only_what_is_left_over() {
    let sought = |names: &'static [&'static str], cost_us: fn(&str) -> u64| watched(10, PathRole::OnPath { sought: names }, cost_us);
    let one = sought(&EDGES[..1], few);
    assert!(one.count(CONNECTIONS) >= 36 && one.count(FILES) <= 10, "{} {}", one.count(CONNECTIONS), one.count(FILES));
    assert!(sought(&EDGES, few).count(FILES) >= 36);
    let (usual, eager) = (watched(10, PATH, many), sought(&EDGES, many));
    assert!(eager.count("requests") * 4 >= usual.count("requests") * 3, "{} {}", eager.count("requests"), usual.count("requests"));
}

#[test]
fn an_absent_source_is_read_rarely() {
    let (mut schedule, mut bucket, mut reads) = (Schedule::new(Scope::Netns(1), Pace::Measurement, 0), Bucket::new(0), 0);
    for now_us in (0..10_000_000).step_by(10_000) {
        let due = schedule.due(now_us, PATH, false, &mut bucket).into_iter().filter(|source| source.name == "conntrack_count");
        // The source appears after five seconds.
        let read: Vec<ReadCost> = due.map(|source| ReadCost { is_there: now_us > 5_000_000, ..spent(source.name, 0) }).collect();
        reads += read.len();
        schedule.done(now_us, &mut bucket, &read);
    }
    assert!((80..=106).contains(&reads), "{reads}: once a second, then 20 times");
}

#[test]
fn a_reader_repeats_by_itself_until_another_source_is_due() {
    let (mut schedule, mut bucket) = (Schedule::new(Scope::Netns(1), Pace::Measurement, 0), Bucket::new(0));
    let names = |repeat: RepeatedSources| repeat.sources.iter().map(|source| source.name).collect::<Vec<_>>();
    assert!(!schedule.due(SECOND_US, PATH, false, &mut bucket).is_empty());
    let repeat = schedule.repeat(SECOND_US, PATH, &mut bucket).unwrap();
    assert_eq!((repeat.until_us, repeat.period_us), (1_250_000, FAST_PERIOD_US));
    assert_eq!(names(repeat), ["requests", "listeners", "conntrack_count"]);
    assert_eq!(schedule.next_due_us(), Some(1_250_000));
    assert!(schedule.due(1_150_000, PATH, false, &mut bucket).is_empty(), "what the reader does by itself is not given out");
    assert!(schedule.repeat(1_210_000, PATH, &mut bucket).is_none(), "there is no turn left");
    assert!(schedule.due(1_250_000, PATH, false, &mut bucket).iter().any(|source| source.name == "listeners"));
    assert!(!schedule.due(2 * SECOND_US, PATH, false, &mut bucket).is_empty());
    // Samples that cost more than their share are given out one by one.
    schedule.done(2 * SECOND_US, &mut bucket, &[spent("requests", 500), ReadCost { is_first: true, ..spent("requests", 60_000) }]);
    let repeat = schedule.repeat(2 * SECOND_US, PATH, &mut Bucket::new(0)).unwrap();
    assert_eq!(names(repeat), ["requests", "listeners", "conntrack_count"]);
    schedule.done(3 * SECOND_US, &mut bucket, &[spent("requests", 6_000)]);
    schedule.done(3 * SECOND_US, &mut bucket, &[spent("requests", 6_000), ReadCost { is_there: false, ..spent("requests", 2) }]);
    schedule.due(3 * SECOND_US, PATH, false, &mut Bucket::new(0));
    assert_eq!(names(schedule.repeat(3 * SECOND_US, PATH, &mut Bucket::new(0)).unwrap()), ["listeners", "conntrack_count"]);
    assert!(schedule.next_due_us().unwrap() < 4 * SECOND_US);
    assert!(
        Schedule::new(Scope::Netns(1), Pace::Measurement, 0).repeat(0, PathRole::OffPath, &mut bucket).is_none(),
        "nothing is read often there"
    );
    assert!(Schedule::new(Scope::Host, Pace::Measurement, 0).repeat(0, PATH, &mut bucket).is_none(), "nothing of the host's is");
}

#[test]
fn a_turn_without_a_sample_says_nothing() {
    let (mut schedule, mut bucket) = (Schedule::new(Scope::Netns(1), Pace::Measurement, 0), Bucket::new(0));
    schedule.due(SECOND_US, PATH, false, &mut bucket);
    schedule.done(SECOND_US, &mut bucket, &[spent("requests", 300)]);
    schedule.done(SECOND_US, &mut bucket, &[ReadCost { is_there: false, ..spent("requests", 2) }]);
    let requests = schedule.slot("requests").unwrap();
    assert_eq!((requests.account.cost_us(), requests.is_absent), (300, false));
}

#[test]
fn one_slow_sample_does_not_end_the_sampling_and_expensive_ones_go_on() {
    // As measured beside other programs: one of twenty took 210 ms.
    let samples = std::cell::Cell::new(0);
    let slow_once = |name: &str| {
        samples.set(samples.get() + u64::from(name == "requests"));
        if name == "requests" && samples.get() == 20 { 210_000 } else { few(name) }
    };
    let readings = watched(30, PATH, slow_once);
    assert!(readings.gap_s("requests") <= 1.0, "{}", readings.gap_s("requests"));
    assert!(readings.count("requests") >= 100, "{}", readings.count("requests"));
    let always = watched(30, PATH, |name| if name == "requests" { 210_000 } else { few(name) });
    assert!(always.gap_s("requests") <= 2.5 && always.count("requests") >= 12, "{} {}", always.gap_s("requests"), always.count("requests"));
}

#[test]
fn missed_turns_are_not_made_up_for() {
    let (mut schedule, mut bucket) = (Schedule::new(Scope::Netns(1), Pace::Measurement, 0), Bucket::new(0));
    assert!(!schedule.due(5 * SECOND_US, PATH, false, &mut bucket).is_empty());
    assert!(schedule.due(5 * SECOND_US + 10_000, PATH, false, &mut bucket).is_empty());
}

#[test]
fn readers_take_their_turns_at_times_of_their_own() {
    let late = |turn: u64, netns: u64| drawn(turn * FAST_PERIOD_US, Scope::Netns(netns), DRAWN_MAX_US) - turn * FAST_PERIOD_US;
    assert!((0..1_000).all(|turn| late(turn, 1) < DRAWN_MAX_US));
    assert!((0..1_000).filter(|turn| late(*turn, 1).abs_diff(late(*turn, 2)) < 1_000).count() < 200, "a tenth by chance");
}

#[test]
fn a_source_that_was_never_paid_for_again_is_reported_too() {
    let (mut schedule, mut bucket) = (Schedule::new(Scope::Netns(1), Pace::Measurement, 0), Bucket::new(0));
    assert!(schedule.due(SECOND_US, PATH, false, &mut bucket).iter().any(|source| source.name == CONNECTIONS));
    schedule.done(SECOND_US, &mut bucket, &[spent(CONNECTIONS, 5_000)]);
    bucket.spend(80_000);
    assert!(!schedule.due(2 * SECOND_US, PATH, false, &mut bucket).iter().any(|source| source.name == CONNECTIONS));
    let slowed = |until_us| schedule.slowed(Scope::Netns(1), until_us).collect::<Vec<_>>();
    assert!(slowed(5 * SECOND_US).iter().any(|text| text.starts_with("sockets of net:[1]: up to 3998")), "{:?}", slowed(5 * SECOND_US));
}
