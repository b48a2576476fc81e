//! The cause graph over whole observations: chains from the root to the last symptom, and the difference between a symptom and a second cause. Also the
//! order of several causes, against simulated servers too: no step that is kept lowers goodput.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::causes::{Layout, arrange, order};
use chokepoint_model::facts::TierId;
use chokepoint_model::finding::Finding;
use chokepoint_model::fix::NOISE_SHARE;
use chokepoint_model::id::{FindingId, StationId};
use chokepoint_model::location::Location;
use chokepoint_model::observation::{Identity, Link, ListenerAddress, Qdisc, TimeWaitDialled, TimeWaits};
use chokepoint_model::owner::Owner;
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{self, Cause, Diagnosis, LimitedBy, Role, Round, RoundKind, Signal, StationKind, Verdict};
use chokepoint_model::station::StationReading;
use proptest::prelude::*;

use crate::simulator::{
    self, Found, Settings, Truth, World,
    php::{Decoy, Php},
    pipe::{Pipe, ROW, in_order},
};
use crate::stage::{
    self,
    blocked::*,
    both::{overflowing, proxied, tabled},
    edge::{BACKEND, edge, gateway_errors},
    limits::{ALERT, logged, nginx, suffer},
    pool::{pool, ran},
    *,
};

fn of<'a>(diagnosis: &'a Diagnosis, id: &str) -> &'a report::Finding {
    diagnosis.findings.iter().find(|finding| finding.id == id).unwrap_or_else(|| panic!("{id} in {:?}", ids(diagnosis)))
}

fn ids(diagnosis: &Diagnosis) -> Vec<&str> {
    diagnosis.findings.iter().map(|finding| finding.id.as_str()).collect()
}

/// The links as "cause -> symptom".
fn links(diagnosis: &Diagnosis) -> Vec<String> {
    let name = |cause: Cause| match cause {
        Cause::Finding(at) => diagnosis.findings[at].id.as_str(),
        Cause::Station(at) => diagnosis.path[at].station.as_str(),
    };
    diagnosis.couplings.iter().map(|link| format!("{} -> {}", name(link.cause), diagnosis.findings[link.symptom].id)).collect()
}

#[test]
fn a_chain_names_its_root_first_and_each_link() {
    let mut obs = towards("192.0.2.7");
    overflowing(&mut obs, 200);
    let diagnosis = told(&obs);
    assert_eq!(ids(&diagnosis), ["workers-blocked-on-upstream", "worker-pool-exhausted", "accept-queue-full"]);
    assert_eq!(causes(&diagnosis), ["workers-blocked-on-upstream"]);
    assert_eq!(of(&diagnosis, "accept-queue-full").symptom_of, ["workers-blocked-on-upstream", "worker-pool-exhausted"]);
    let expected = ["workers-blocked-on-upstream -> worker-pool-exhausted", "worker-pool-exhausted -> accept-queue-full"];
    assert_eq!(links(&diagnosis), expected);
    assert!(diagnosis.couplings.iter().all(|link| diagnosis.findings[link.symptom].explanation.contains(&link.why)));
    assert_eq!(diagnosis.order, [], "there is one cause");
}

#[test]
fn a_chain_over_two_tiers_ends_at_the_innermost() {
    let mut obs = towards(BEHIND);
    behind(&mut obs, 3, 2, 3);
    overflowing(&mut obs, 200);
    let diagnosis = told(&obs);
    let tiers: Vec<&str> = diagnosis.findings.iter().map(|finding| finding.tier.as_str()).collect();
    assert_eq!(tiers, ["database", "php-fpm", "php-fpm", "php-fpm"]);
    let root = ["worker-pool-exhausted", "workers-blocked-on-upstream"];
    assert_eq!(of(&diagnosis, "accept-queue-full").symptom_of, root);
    assert_eq!(links(&diagnosis).len(), 3);
}

#[test]
fn a_full_table_explains_a_pile_up_only_if_it_is_on_the_way_to_the_upstream() {
    let mut obs = proxied();
    assert_eq!(causes(&told(&obs)), ["worker-connections-exhausted"]);
    tabled(&mut obs);
    let diagnosis = told(&obs);
    assert_eq!(causes(&diagnosis), ["conntrack-table-full"]);
    assert_eq!(of(&diagnosis, "worker-connections-exhausted").symptom_of, ["conntrack-table-full"]);
    let mut alone = nginx(64, 1_024, false, Vec::new());
    suffer(&mut alone, 4_000, &[]);
    logged(&mut alone, "worker_connections", 4_000, ALERT);
    tabled(&mut alone);
    let diagnosis = told(&alone);
    assert_eq!(causes(&diagnosis), ["conntrack-table-full", "worker-connections-exhausted"]);
    assert!(diagnosis.order[0].why.contains("worker-connections-exhausted (nginx)"), "{:?}", diagnosis.order);
}

#[test]
fn a_standing_queue_is_a_symptom_of_busy_cores() {
    let crowded = |busy: f64, standing: u32| {
        let mut obs = healthy();
        stage::queue::queue(&mut obs, 511, standing, 300);
        cpu(&mut obs, busy);
        let load = obs.load.as_mut().unwrap();
        load.shape = chokepoint_model::load::Loop::Closed { connections: 1_000 };
        (load.requests, load.good, load.status) = (2_500, 2_500, [(200, 2_500)].into());
        (load.latency_us.p50, load.latency_us.p99, load.latency_us.p999) = (3_000_000, 4_000_000, 5_000_000);
        told(&obs)
    };
    let full = crowded(0.99, 512);
    assert_eq!(
        (full.verdict, full.limited_by, links(&full)),
        (Verdict::Healthy, Some(LimitedBy::Cpu), vec!["cpu -> accept-queue-full".to_owned()])
    );
    assert_eq!(full.findings[0].role, Role::Symptom);
    // If cores are idle, something else keeps the server from accepting.
    let idle = crowded(0.05, 512);
    assert_eq!((idle.verdict, links(&idle)), (Verdict::Choked, vec!["accepts-slowly -> accept-queue-full".to_owned()]));
    // A queue that overflows only in bursts is a cause, even if the cores are busy.
    assert_eq!(causes(&crowded(0.99, 1)), ["accept-queue-full"]);
}

#[test]
fn ports_are_fixed_before_the_queue_in_front_of_them_and_the_report_says_why() {
    let mut obs = edge(BACKEND, "20000 20050", 50);
    gateway_errors(&mut obs, 60_000);
    overflowing(&mut obs, 100);
    let diagnosis = told(&obs);
    assert_eq!(causes(&diagnosis), ["ephemeral-ports-exhausted", "accept-queue-full"]);
    let whys: Vec<&str> = diagnosis.order.iter().map(|turn| turn.why.as_str()).collect();
    assert!(whys[0].contains("accept-queue-full (nginx)") && whys[0].contains("closer to the backend"), "{whys:?}");
    assert!(whys[1].starts_with("Last") && whys[1].contains("ephemeral-ports-exhausted"), "{whys:?}");
    assert_eq!(diagnosis.order.iter().map(|turn| turn.finding).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn a_pool_whose_answers_fill_the_link_waits_to_send() {
    // All workers of the first tier are busy. The second case has a link with a tenth of the rate that the answers fill.
    let served = |rate: u64| {
        let mut obs = pool(5, 5, 60);
        let view = obs.netns.get_mut(&SERVER).unwrap();
        let points = view.listeners.points().to_vec();
        view.listeners = Default::default();
        // Requests reach the pool directly.
        for (at, mut listeners) in points {
            listeners.remove(0);
            view.listeners.push(at, Reading::Ok(listeners));
        }
        (obs.request.port, obs.request.addresses, obs.request.client_netns) = (9000, vec![ip("127.0.0.1")], SERVER);
        obs.processes.remove(&42);
        let view = obs.netns.get_mut(&SERVER).unwrap();
        view.links = Default::default();
        for second in [0, 11] {
            let link = Link { index: 1, name: "lo".into(), up: true, tx_bytes: second * 6_240_000, ..Link::default() };
            view.links.push(second * 1_000_000, Reading::Ok(vec![link]));
        }
        let shaper = Qdisc { link: 1, kind: "tbf".into(), rate_bits_per_s: Some(rate), ..Qdisc::default() };
        view.qdiscs.push(0, Reading::Ok(vec![shaper]));
        told(&obs)
    };
    let full = served(50_000_000);
    assert_eq!((full.verdict, full.limited_by, links(&full)), (Verdict::Healthy, Some(LimitedBy::Link), vec![LINK.to_owned()]));
    assert_eq!(causes(&served(500_000_000)), ["worker-pool-exhausted"]);
}

const LINK: &str = "link -> worker-pool-exhausted";

#[test]
fn a_port_search_floods_only_queues_of_servers_on_the_same_cores() {
    for (backend_core, expected) in [(1, vec!["time-wait-port-search"]), (0, vec!["accept-queue-full", "time-wait-port-search"])] {
        let mut obs = edge(BACKEND, "10000 65535", 20);
        let waits = TimeWaitDialled { local: ip("10.0.0.2"), remote: (ip(BACKEND), 8080), count: 27_700 };
        let waits = TimeWaits { total: 27_700, dialled: vec![waits], ..TimeWaits::default() };
        obs.netns.get_mut(&SERVER).unwrap().time_waits.push(9_000_000, Reading::Ok(waits));
        stage::edge::set(&mut obs, "net.ipv4.tcp_tw_reuse", "0");
        cpu(&mut obs, 0.99);
        let identity = obs.processes[&50].identity.last().cloned().unwrap();
        let moved = Identity { cpus_allowed: vec![backend_core], ..identity };
        obs.processes.get_mut(&50).unwrap().identity = Default::default();
        obs.processes.get_mut(&50).unwrap().identity.push(0, Reading::Ok(moved));
        overflowing(&mut obs, 200);
        let diagnosis = told(&obs);
        assert_eq!(causes(&diagnosis), expected, "core {backend_core}");
        assert_eq!(diagnosis.couplings.len(), usize::from(backend_core == 1));
    }
}

fn tier(index: usize) -> Owner {
    TierId(index).into()
}

fn finding(id: &'static str, station: &'static str, owner: Owner) -> Finding {
    Finding::new(FindingId(id), StationId(station), owner, Location::default())
}

const TIERS: [&str; 3] = ["web", "app", "data"];

fn name(owner: &Owner) -> String {
    let names: Vec<&str> = owner.tiers().iter().map(|tier| TIERS[tier.0]).collect();
    if names.is_empty() { format!("{owner:?}").to_lowercase() } else { names.join("+") }
}

/// Tiers and ids in the model's order.
fn ordered(findings: &[Finding], upstreams: &[Vec<usize>]) -> Vec<String> {
    let order = order(findings, &[], Layout { upstreams, stations: &[], name: &name });
    order.into_iter().map(|at| format!("{} {}", name(&findings[at].owner), findings[at].id)).collect()
}

#[test]
fn the_finding_closest_to_the_backend_by_the_longest_path_is_first() {
    let (web, app, data) = (0, 1, 2);
    let queue = |index: usize| finding("accept-queue-full", "accept-queue", tier(index));
    let all = [
        finding("load-generator-limited", "load-generator", Owner::Client),
        queue(web),
        queue(app),
        queue(data),
        finding("worker-pool-exhausted", "worker-pool", tier(app)),
        finding("conntrack-table-full", "conntrack-table", tier(web)),
        finding("ephemeral-ports-exhausted", "ephemeral-ports", tier(web)),
    ];
    let expected = [
        "web conntrack-table-full",
        "data accept-queue-full",
        "app worker-pool-exhausted",
        "app accept-queue-full",
        "web ephemeral-ports-exhausted",
        "web accept-queue-full",
        "client load-generator-limited",
    ];
    // The web server also calls the database directly. The database is still behind the application.
    assert_eq!(ordered(&all, &[vec![data, app], vec![data], vec![]]), expected);
    // In a ring no tier is closer to the backend. A tier behind the ring is.
    assert_eq!(ordered(&all[1..4], &[vec![app], vec![web, data], vec![]])[0], "data accept-queue-full");
}

#[test]
fn of_two_causes_at_one_place_the_one_that_refuses_more_is_first() {
    let at = |path: &str| Location { listener: Some(ListenerAddress::Unix(path.to_owned())), ..Location::default() };
    let queue = |path: &str| Finding { at: at(path), ..finding("accept-queue-full", "accept-queue", tier(0)) };
    let reading = |path: &str, rate: f64| {
        let reading = StationReading::new((StationId("accept-queue"), StationKind::Cliff), tier(0), at(path), "connections");
        StationReading { refused_per_s: Some(rate), ..reading }
    };
    let stations = [reading("a", 2.0), reading("b", 9.0)];
    let words = Catalogue::english();
    let mut found = vec![queue("a"), queue("b")];
    let reasons = arrange(&mut found, &mut [], Layout { upstreams: &[vec![]], stations: &stations, name: &name });
    assert_eq!(found[0].at, at("b"));
    assert!(words.text(&reasons[0].why).contains("refuses more"), "{reasons:?}");
    let reasons = arrange(&mut found, &mut [], Layout { upstreams: &[vec![]], stations: &[], name: &name });
    assert!(words.text(&reasons[0].why).contains("either may be fixed first"), "{reasons:?}");
}

/// The simulated nginx and php-fpm with the model's names, in the model's order or the opposite one.
struct Named(Php, bool);

fn named(name: &str) -> String {
    match name {
        "table-full" => "web/conntrack-table-full",
        "table" => "web/conntrack-table",
        "children-busy" => "app/worker-pool-exhausted",
        "pool" => "app/worker-pool",
        "queue-full" => "web/accept-queue-full",
        "queue" => "web/accept-queue",
        "ports-used-up" => "web/ephemeral-ports-exhausted",
        "port-search" => "web/time-wait-port-search",
        "ports" => "web/ephemeral-ports",
        other => panic!("{other} has no name"),
    }
    .to_owned()
}

impl World for Named {
    fn start(&self) -> Settings {
        self.0.start()
    }

    fn truth(&self, settings: &Settings) -> Truth {
        let mut truth = self.0.truth(settings);
        truth.refusals = truth.refusals.into_iter().map(|(station, rate)| (named(&station), rate)).collect();
        for Found { id, station, remedies, .. } in &mut truth.findings {
            (*id, *station) = (named(id), named(station));
            for cure in remedies {
                if let Signal::Refusals { station } = &mut cure.signal {
                    *station = named(station);
                }
            }
        }
        truth
    }

    fn told(&self, diagnosis: Diagnosis) -> Diagnosis {
        in_order(diagnosis, self.1)
    }
}

/// The remedies of steps that were kept although goodput fell, unless the step revealed a new cause that explains the fall.
fn falls(world: &dyn World, seed: u64) -> Vec<String> {
    let ended = simulator::run(world, 0.0, seed, None, None);
    let steps = ended.report.rounds.iter().filter(|round| round.kind == RoundKind::Apply && round.kept.stays());
    let fell = steps.filter(|round| round.before_rps.is_some_and(|before| round.measured_rps < before * (1.0 - NOISE_SHARE)));
    let unforeseen = |round: &&Round| {
        let place = round.n as usize;
        let is_before = |truth: &Truth| round.before_rps.is_some_and(|before| (truth.goodput_rps - before).abs() < 1e-6);
        let earlier = ended.measured[..place].iter().rev().map(|settings| world.truth(settings));
        let (before, after) = (earlier.into_iter().find(is_before).expect("it was measured"), world.truth(&ended.measured[place]));
        after.causes().iter().any(|cause| !before.causes().contains(cause))
    };
    fell.filter(|round| !unforeseen(round)).map(|round| round.remedy.clone()).collect()
}

#[test]
fn no_kept_step_lowers_goodput_in_this_order_and_some_do_in_the_opposite_one() {
    let world = |faults, early, reverse| Named(Php { faults, decoy: Decoy::None, early, first: false, reverse: false }, reverse);
    let mut opposite = 0;
    for faults in 0..32 {
        for early in [false, true] {
            assert_eq!(falls(&world(faults, early, false), 1), [""; 0], "faults {faults:05b}, early: {early}");
            opposite += falls(&world(faults, early, true), 1).len();
        }
    }
    assert!(opposite > 0, "the order makes no difference here");
}

#[test]
fn no_kept_step_lowers_goodput_in_rows_of_stations() {
    let mut opposite = 0;
    for faults in (0..1_u32 << ROW.len()).filter(|faults| faults.count_ones() <= 4) {
        for seed in [1, 2] {
            let pipe = |outermost_first| Pipe { faults, seed, outermost_first };
            assert_eq!(falls(&pipe(false), seed), [""; 0], "faults {faults:010b}, seed {seed}");
            opposite += falls(&pipe(true), seed).len();
        }
    }
    assert!(opposite > 0, "the order makes no difference here");
}

proptest! {
    #[test]
    fn every_finding_stays_and_causes_come_first_whatever_the_path(
        (drawn, edges) in (
            proptest::collection::vec((0_usize..ROW.len(), any::<bool>()), 0..8),
            proptest::collection::vec((0_usize..3, 0_usize..3), 0..6),
        ),
    ) {
        let called = |from: usize| edges.iter().filter(move |edge| edge.0 == from).map(|edge| edge.1).collect();
        let upstreams: Vec<Vec<usize>> = (0..3).map(called).collect();
        let role = |is_cause: bool| if is_cause { Role::Cause } else { Role::Symptom };
        let index = |name: &str| TIERS.iter().position(|tier| *tier == name).unwrap();
        let made = |(place, is_cause): &(usize, bool)| {
            let (name, id, station, _) = ROW[*place];
            Finding { role: role(*is_cause), ..finding(id, station, tier(index(name))) }
        };
        let findings: Vec<Finding> = drawn.iter().map(made).collect();
        let mut places = order(&findings, &[], Layout { upstreams: &upstreams, stations: &[], name: &name });
        let roles: Vec<bool> = places.iter().map(|at| findings[*at].role == Role::Symptom).collect();
        prop_assert!(roles.is_sorted());
        places.sort_unstable();
        prop_assert_eq!(places, (0..findings.len()).collect::<Vec<_>>());
    }
}

#[test]
fn a_pool_that_waits_for_busy_cores_behind_it_is_linked_to_them() {
    let mut obs = towards(BEHIND);
    behind(&mut obs, 1, 5, 0);
    cpu(&mut obs, 0.99);
    ran(&mut obs, 50..56, 10_000_000);
    ran(&mut obs, [80], 950_000_000);
    // The failed answers themselves may keep the core busy.
    let load = obs.load.as_mut().unwrap();
    (load.requests, load.errors.reset) = (load.good + 2_000, 2_000);
    let diagnosis = told(&obs);
    assert_eq!(links(&diagnosis), ["cpu -> workers-blocked-on-upstream", "workers-blocked-on-upstream -> worker-pool-exhausted"]);
}
