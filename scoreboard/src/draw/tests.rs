//! Every draw is a valid scenario and always the same, and the draws together cover everything that can be drawn.

use std::collections::{BTreeMap, BTreeSet};

use super::stack::{Edge, Servers, Transport};
use super::*;

/// The kind of a fault, decoy or page, as its JSON has it.
fn kind<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value).unwrap() {
        serde_json::Value::Object(fields) => fields["kind"].as_str().unwrap().to_owned(),
        other => other.to_string(),
    }
}

fn json(draw: &Draw) -> String {
    serde_json::to_string(draw).unwrap()
}

#[test]
fn a_draw_is_the_same_each_time_and_on_every_machine() {
    for index in 0..200 {
        assert_eq!(json(&draw(7, index)), json(&draw(7, index)));
    }
    assert_ne!(json(&draw(7, 0)), json(&draw(8, 0)));
    // Recorded misses name their seed and index. A change of the draws belongs in the changelog.
    let words: Vec<String> = (0..3).map(|index| draw(1, index).words()).collect();
    assert_eq!(words, FIRST_DRAWS);
}

const FIRST_DRAWS: [&str; 3] = [
    "nginx-php-fpm over tcp, page static kib 0, pair, IPv4, 223 clients, connections not kept; fault backlog-not-in-force backlog 20; decoy limit-elsewhere",
    "nginx-php-fpm over tcp, page mixed ms 12 primes 70, nat-bridge, IPv4, 16 clients, connections kept; fault port-range ports 8",
    "nginx-php-fpm over tcp, page static kib 0, nat-bridge, IPv4, 367 clients, connections kept; fault rate-limit burst 368 nodelay false per_s 4493",
];

#[test]
fn every_draw_is_a_valid_scenario() {
    let mut equal = 0;
    for seed in 0..10_000 {
        let draw = draw(seed, seed % 7);
        let scenario = draw.scenario(With::All).unwrap_or_else(|error| panic!("{}\n{error}", json(&draw)));
        assert_eq!(scenario.name, draw.name(With::All));
        if seed % 20 == 0 {
            for with in [With::None, With::Alone(0), With::Alone(1)] {
                let twin = draw.scenario(with).unwrap_or_else(|error| panic!("{}\n{error}", json(&draw)));
                let is_equal = twin.text() == scenario.text().replace(&scenario.name, &twin.name);
                assert!(is_equal || !has_all_faults(&draw, with), "{}", json(&draw));
                equal += u32::from(is_equal && !has_all_faults(&draw, with));
            }
        }
    }
    // A few faults are drawn so ample that they change nothing.
    assert!(equal < 15, "{equal} of 1500");
    let longest = draw(u32::MAX, u32::MAX);
    assert!(longest.scenario(With::None).is_ok() && longest.scenario(With::Alone(1)).is_ok());
}

/// True where the variant has all faults.
fn has_all_faults(draw: &Draw, with: With) -> bool {
    match with {
        With::All => true,
        With::None => draw.faults.is_empty(),
        With::Alone(at) => draw.faults.is_empty() || (draw.faults.len() == 1 && at == 0),
    }
}

#[test]
fn every_kind_is_drawn() {
    let mut seen: BTreeMap<&str, BTreeMap<String, u32>> = BTreeMap::new();
    let mut counts = [0; 3];
    for index in 0..4_000 {
        let draw = draw(3, index);
        counts[draw.faults.len()] += 1;
        let mut saw = |what: &'static str, kind: String| *seen.entry(what).or_default().entry(kind).or_insert(0) += 1;
        draw.faults.iter().for_each(|fault| saw("fault", kind(fault)));
        draw.decoys.iter().for_each(|decoy| saw("decoy", kind(decoy)));
        let Stack { servers, transport, edge, page, network, access_log, rate, keep_alive, ip, nginx_workers, .. } = draw.stack;
        saw("page", kind(&page));
        saw("servers", format!("{servers:?} {transport:?}"));
        saw("edge", format!("{edge:?}"));
        saw("network", format!("{network:?}"));
        saw("log", format!("{access_log:?}"));
        saw("load", format!("{} {keep_alive}", rate.is_some()));
        saw("ip", ip.to_string());
        saw("workers", nginx_workers.to_string());
    }
    let number = |what: &str| seen[what].len();
    assert_eq!((number("fault"), number("decoy"), number("page"), number("servers")), (FAULTS.len(), DECOYS.len(), 6, 5), "{seen:#?}");
    assert_eq!((number("edge"), number("network"), number("log"), number("load"), number("ip")), (3, 2, 3, 4, 2), "{seen:#?}");
    // No kind is so rare that most series of a hundred draws lack it.
    for (what, kinds) in &seen {
        for (kind, count) in kinds {
            assert!(*count >= 40, "{what} {kind}: {count} of 4000");
        }
    }
    assert!(counts.iter().all(|count| *count >= 800), "{counts:?}");
}

#[test]
fn severities_lie_on_both_sides_of_the_need() {
    let mut sides: BTreeMap<String, BTreeSet<bool>> = BTreeMap::new();
    for index in 0..20_000 {
        let draw = draw(5, index);
        let stack = &draw.stack;
        for fault in &draw.faults {
            let is_short = match *fault {
                Fault::ConntrackTable { entries } => entries < stack.tracked(),
                Fault::SynQueue { backlog, calls_per_s } => backlog < calls_per_s * u32::from(stack::LOAD_S),
                Fault::AcceptQueue { backlog, .. } | Fault::BacklogNotInForce { backlog } => backlog < stack.connections,
                Fault::AcceptQueueBehind { backlog } => backlog < stack.at_once(),
                Fault::WorkerConnections { connections } => connections * stack.nginx_workers < stack.at_once(),
                Fault::FileDescriptors { files } => files * stack.nginx_workers < stack.at_once() + 15,
                Fault::RateLimit { per_s, .. } => per_s < stack.rate_expected(),
                Fault::PortRange { ports } => ports < stack.at_once(),
                Fault::PortSearch { ports } => ports / 2 < stack.rate_expected() * u32::from(stack::LOAD_S),
                Fault::WorkerPool { children } => children < stack.at_once(),
                // The page decides whether it does harm: fewer workers are always in force than configured.
                Fault::PoolNotInForce { children } => children % 2 == 0,
                Fault::SlowUpstream { served_at_once } => served_at_once < stack.at_once(),
                // A request costs some 100 us.
                Fault::CpuQuota { percent } => percent * 100 < stack.rate_expected(),
            };
            sides.entry(kind(fault)).or_default().insert(is_short);
        }
    }
    assert_eq!(sides.len(), FAULTS.len());
    assert!(sides.values().all(|sides| sides.len() == 2), "{sides:?}");
}

#[test]
fn every_finding_of_the_model_is_expected_or_listed_as_not_drawn() {
    let known: BTreeSet<&str> = finding_ids().collect();
    let mut expected: BTreeSet<&str> = fault::HARMLESS.iter().chain(fault::NOT_DRAWN).copied().collect();
    for index in 0..2_000 {
        for fault in draw(9, index).faults {
            let (findings, symptoms) = fault.findings();
            assert!(!findings.is_empty() && findings.iter().chain(symptoms).all(|id| known.contains(id)), "{fault:?}");
            expected.extend(findings);
        }
    }
    assert!(known.is_subset(&expected), "{:?}", known.difference(&expected));
}

/// The first draw of a seed with so many faults whose servers keep their connections.
fn with_faults(count: usize) -> Draw {
    (0..).map(|index| draw(11, index)).find(|draw| draw.faults.len() == count && !draw.stack.opens_each()).unwrap()
}

#[test]
fn the_expectation_follows_from_the_harm() {
    let healthy = with_faults(0);
    assert_eq!(healthy.expected(&[], Harm::None), Expected::default());
    let mut unkept = with_faults(0);
    (unkept.stack.servers, unkept.stack.transport, unkept.stack.edge) = (Servers::NginxPhpFpm, Transport::Tcp, Edge::ClosedBehind);
    let expected = unkept.expected(&[], Harm::None);
    assert!(expected.first.is_empty() && expected.may_be_cause("upstream-connection-churn", "nginx"));
    let one = with_faults(1);
    let ids: BTreeSet<&str> = one.faults[0].findings().0.iter().copied().collect();
    let hurt = one.expected(&[Harm::Hurt], Harm::Hurt);
    assert_eq!((&hurt.first, &hurt.causes), (&ids, &ids));
    let little = one.expected(&[Harm::Little], Harm::Little);
    assert!(little.first.is_empty() && little.causes == ids);
    assert_eq!(one.expected(&[Harm::None], Harm::None), Expected::default());
    let two = with_faults(2);
    let of = |at: usize| two.faults[at].findings().0.iter().copied().collect::<BTreeSet<_>>();
    assert_eq!(two.expected(&[Harm::Hurt, Harm::None], Harm::Hurt).causes, of(0));
    assert_eq!(two.expected(&[Harm::None, Harm::Hurt], Harm::Hurt).first, of(1));
    // Together only.
    assert_eq!(two.expected(&[Harm::None, Harm::Little], Harm::Hurt).first, of(0).union(&of(1)).copied().collect());
    // One fault offsets the other: it may be named or not.
    let made_up = two.expected(&[Harm::Hurt, Harm::None], Harm::None);
    assert!(made_up.first.is_empty() && made_up.causes == of(0));
}

#[test]
fn few_threads_at_another_tier_are_not_a_small_pool() {
    let of = |faults: Vec<Fault>| {
        let harms = vec![Harm::Hurt; faults.len()];
        Draw { faults, ..with_faults(0) }.expected(&harms, Harm::Hurt)
    };
    let (slow, small) = (Fault::SlowUpstream { served_at_once: 1 }, Fault::WorkerPool { children: 1 });
    let expected = of(vec![slow]);
    assert!(expected.may_be_first("workers-blocked-on-upstream", "php-fpm") && expected.may_be_first("worker-pool-exhausted", "python"));
    assert!(!expected.may_be_cause("worker-pool-exhausted", "php-fpm") && !expected.may_be_first("accept-queue-full", "python"));
    for faults in [vec![small], vec![slow, small], vec![small, slow]] {
        assert!(of(faults).may_be_first("worker-pool-exhausted", "php-fpm"));
    }
}

#[test]
fn a_written_scenario_expects_what_was_measured() {
    let one = with_faults(1);
    let ids: Vec<&str> = one.faults[0].findings().0.to_vec();
    let hurt = one.scenario_with_expectation(&one.expected(&[Harm::Hurt], Harm::Hurt), "It \"hurts\".").unwrap();
    assert_eq!(hurt.expect.finding, ids);
    assert!(hurt.expect.forbidden.iter().all(|id| !ids.contains(&id.as_str())) && hurt.expect.forbidden.len() > 5);
    assert_eq!(hurt.description.as_deref(), Some("It \"hurts\"."));
    let little = one.scenario_with_expectation(&one.expected(&[Harm::Little], Harm::Little), "x").unwrap();
    assert!(little.expect.finding.is_empty() && little.expect.forbidden == hurt.expect.forbidden);
    let none = one.scenario_with_expectation(&one.expected(&[Harm::None], Harm::None), "x").unwrap();
    assert!(none.expect.finding_none() && none.expect.forbidden.len() > little.expect.forbidden.len());
}

#[test]
fn a_run_waits_until_callers_have_filled_the_queue() {
    let waits = |faults: Vec<Fault>| Draw { faults, ..draw(1, 0) }.grows_for().as_secs_f64();
    assert_eq!(waits(vec![Fault::WorkerPool { children: 2 }]), 0.0);
    assert_eq!(waits(vec![Fault::WorkerPool { children: 2 }, Fault::SynQueue { backlog: 2_000, calls_per_s: 500 }]), 4.0);
    assert_eq!(waits(vec![Fault::SynQueue { backlog: 4_096, calls_per_s: 20 }]), 10.0);
}
