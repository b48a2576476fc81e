//! Station `conntrack-table`: a cause if a full table drops the packets of requests. Every known trap gives no finding.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::change::Change;
use chokepoint_model::observation::{ConntrackCpu, KernelLine};
use chokepoint_model::reading::{Lack, Reading};
use chokepoint_model::report::{Confidence, Prediction, Station, StationState, Verdict};

use crate::stage::*;

fn table(diagnosis: &chokepoint_model::report::Diagnosis) -> &Station {
    diagnosis.path.iter().find(|station| station.station == "conntrack-table" && station.at.netns.as_deref() == Some("server")).unwrap()
}

#[test]
fn a_full_table_of_any_size_is_a_cause() {
    for max in [200, 1_000, 65_536] {
        let diagnosis = told(&table_full(max));
        assert_eq!(diagnosis.verdict, Verdict::Choked);
        assert_eq!(causes(&diagnosis), ["conntrack-table-full"]);
        let finding = &diagnosis.findings[0];
        assert_eq!((finding.tier.as_str(), finding.confidence), ("nginx", Confidence::High));
        assert!(finding.evidence.len() >= 3);
        assert_eq!(table(&diagnosis).state, StationState::Refusing);
        assert!(matches!(finding.remedies[0].prediction, Prediction::Refused { .. }), "hidden by the drops");
    }
}

/// The kernel of the load's namespace sends the SYNs again.
#[test]
fn the_explanation_says_when_a_lost_syn_is_sent_again() {
    const LINEAR: &str = "net.ipv4.tcp_syn_linear_timeouts";
    const RETRIES: &str = "net.ipv4.tcp_syn_retries";
    let explained = |linear: Option<Reading<String>>, is_loaded: bool| {
        let mut obs = table_full(200);
        let sysctls = &mut obs.netns.get_mut(&CLIENT).unwrap().sysctls;
        if let Some(linear) = linear {
            sysctls.entry(LINEAR.into()).or_default().push(1, linear);
            sysctls.entry(RETRIES.into()).or_default().push(1, Reading::Ok("6".into()));
        }
        if !is_loaded {
            (obs.load, obs.request.loaded) = (None, false);
        }
        told(&obs).findings.first().map(|finding| finding.explanation.clone()).unwrap_or_default()
    };
    let value = |value: &str| Some(Reading::Ok(value.to_owned()));
    assert!(explained(value("4"), true).contains("the client retries after 1, 2, 3, 4, 5, 7 s and so on, so"));
    assert!(explained(value("0"), true).contains("the client retries after 1, 3, 7, 15, 31, 63 s, so"));
    let older = Some(Reading::Absent(Lack::new("the file does not exist")));
    assert!(explained(older, true).contains("after 1, 3, 7, 15, 31, 63 s, so"), "before Linux 6.5");
    let failed = Some(Reading::Failed(Lack::new("broken")));
    assert!(explained(failed, true).contains("after one or more seconds"));
    assert!(explained(None, true).contains("after one or more seconds"));
    let watched = explained(value("4"), false);
    assert!(watched.is_empty() || watched.contains("after one or more seconds"), "the clients are elsewhere: {watched}");
}

#[test]
fn the_remedy_sets_the_limit_in_the_host_and_far_above_the_old_one() {
    let diagnosis = told(&table_full(200));
    let remedy = &diagnosis.findings[0].remedies[0];
    assert_eq!(remedy.id, "raise-conntrack-max");
    let Some(Change::Sysctl { key, netns, netns_name, from, to }) = remedy.change.last() else { panic!("{:?}", remedy.change) };
    assert_eq!((key.as_str(), *netns, netns_name.as_str(), from.as_str()), ("net.netfilter.nf_conntrack_max", HOST, "host", "200"));
    assert!(to.parse::<u64>().unwrap() >= 262_144, "at least the kernel's own default for this host, was {to}");
    assert_eq!(remedy.runtime.last().unwrap().command, Some(format!("sysctl -w net.netfilter.nf_conntrack_max={to}")));
    let buckets = remedy.change.iter().find(|change| change.key().ends_with("buckets")).map_or("262144", Change::to);
    assert!(buckets.parse::<u64>().unwrap() * 4 >= to.parse().unwrap() && buckets.parse::<u64>().unwrap().is_power_of_two(), "{buckets}");
}

#[test]
fn a_small_host_is_asked_for_a_sixteenth_of_its_memory_at_most() {
    let mut obs = table_full(200);
    obs.memory = Default::default();
    obs.memory.push(0, Reading::Ok(chokepoint_model::observation::Memory { total: 512 << 20, ..Default::default() }));
    let diagnosis = told(&obs);
    let to = diagnosis.findings[0].remedies[0].change.last().unwrap().to();
    assert!(to.parse::<u64>().unwrap() * 320 <= (512 << 20) / 16, "{to}");
}

#[test]
fn buckets_grow_with_a_limit_that_would_make_long_chains() {
    let mut obs = table_full(2_000_000);
    obs.memory = Default::default();
    obs.memory.push(0, Reading::Ok(chokepoint_model::observation::Memory { total: 64 << 30, ..Default::default() }));
    let diagnosis = told(&obs);
    let keys: Vec<String> = (diagnosis.findings[0].remedies[0].change.iter()).map(Change::key).collect();
    assert_eq!(keys, ["net.netfilter.nf_conntrack_buckets", "net.netfilter.nf_conntrack_max"]);
}

#[test]
fn a_table_at_sixty_per_cent_is_no_finding() {
    let mut obs = healthy();
    entries(&mut obs, SERVER, 157_286);
    let diagnosis = told(&obs);
    assert_eq!(causes(&diagnosis), [""; 0]);
    assert_eq!(table(&diagnosis).state, StationState::Ok);
}

#[test]
fn a_table_at_ninety_nine_per_cent_without_drops_is_near_and_no_finding() {
    let mut obs = healthy();
    entries(&mut obs, SERVER, 259_600);
    let diagnosis = told(&obs);
    assert_eq!(causes(&diagnosis), [""; 0]);
    assert_eq!(table(&diagnosis).state, StationState::Near);
}

#[test]
fn drops_by_clashes_in_an_empty_table_are_no_finding() {
    let mut obs = healthy();
    counters(&mut obs, SERVER, &[("drop", 900), ("insert_failed", 900)]);
    assert_eq!(causes(&told(&obs)), [""; 0]);
}

#[test]
fn early_eviction_that_makes_room_is_no_finding() {
    let mut obs = healthy();
    entries(&mut obs, SERVER, 262_144);
    counters(&mut obs, SERVER, &[("early_drop", 5_000)]);
    let diagnosis = told(&obs);
    assert_eq!(causes(&diagnosis), [""; 0]);
    assert_eq!(table(&diagnosis).state, StationState::Near);
}

#[test]
fn a_full_table_without_harm_to_the_load_is_no_finding() {
    let mut obs = healthy();
    entries(&mut obs, SERVER, 262_144);
    counters(&mut obs, SERVER, &[("drop", 3)]);
    let diagnosis = told(&obs);
    assert_eq!((causes(&diagnosis), diagnosis.verdict), (vec![], Verdict::Healthy));
}

#[test]
fn a_full_table_on_the_clients_side_gives_no_verdict_about_the_server() {
    let mut obs = table_full(200);
    counters(&mut obs, SERVER, &[]);
    entries(&mut obs, SERVER, 10);
    conntrack_limit(&mut obs, CLIENT, 200);
    entries(&mut obs, CLIENT, 200);
    counters(&mut obs, CLIENT, &[("drop", 5_000)]);
    let diagnosis = told(&obs);
    assert_eq!((causes(&diagnosis), diagnosis.verdict), (vec!["conntrack-table-full"], Verdict::ClientLimited));
}

#[test]
fn without_load_drops_and_a_full_table_are_enough_with_less_confidence_if_the_kernel_log_is_missing() {
    let mut obs = table_full(200);
    obs.load = None;
    obs.request.loaded = false;
    let diagnosis = told(&obs);
    assert_eq!((diagnosis.verdict, diagnosis.findings[0].confidence), (Verdict::Choked, Confidence::Medium));
    let line = |text: &str| KernelLine { at_us: 1, sequence: 1, text: text.to_owned() };
    obs.kernel_log.push(11_000_000, Reading::Ok(vec![line("nf_conntrack: nf_conntrack: table full in netns 2, dropping packet")]));
    assert_eq!(told(&obs).findings[0].confidence, Confidence::High);
}

#[test]
fn a_log_line_of_another_namespace_does_not_count() {
    let mut obs = table_full(200);
    obs.load = None;
    obs.request.loaded = false;
    let view = obs.netns.get_mut(&SERVER).unwrap();
    view.conntrack_cpus = Default::default();
    view.conntrack_cpus.push(0, Reading::Absent(Lack::needing("permission denied", "CAP_NET_ADMIN")));
    let line = |text: &str| KernelLine { at_us: 1, sequence: 1, text: text.to_owned() };
    obs.kernel_log.push(11_000_000, Reading::Ok(vec![line("nf_conntrack: table full in netns 9, dropping packet")]));
    assert_eq!(causes(&told(&obs)), [""; 0]);
    obs.kernel_log.push(11_000_000, Reading::Ok(vec![line("nf_conntrack: table full, dropping packet")]));
    let diagnosis = told(&obs);
    assert_eq!((causes(&diagnosis), diagnosis.findings[0].confidence), (vec!["conntrack-table-full"], Confidence::Medium));
}

#[test]
fn counters_without_a_drop_column_count_as_not_read() {
    let mut obs = table_full(200);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    view.conntrack_cpus = Default::default();
    for at in [0, 11_000_000] {
        view.conntrack_cpus.push(at, Reading::Ok(vec![ConntrackCpu::default()]));
    }
    assert_eq!(causes(&told(&obs)), [""; 0]);
}

#[test]
fn a_table_filled_by_others_with_a_slow_request_or_slow_pages_is_no_finding() {
    let others = |change: fn(&mut chokepoint_model::load::LoadResult)| {
        let mut obs = healthy();
        entries(&mut obs, SERVER, 262_144);
        counters(&mut obs, SERVER, &[("drop", 3_000)]);
        change(obs.load.as_mut().unwrap());
        causes(&told(&obs)).len()
    };
    let one = others(|load| (load.good, load.errors.response_timeout, load.latency_us.max) = (99_999, 1, 2_000_000));
    assert_eq!(one, 0, "one in a hundred thousand");
    let slow = others(|load| (load.latency_us.p50, load.latency_us.p999, load.latency_us.max) = (1_100_000, 1_700_000, 2_000_000));
    assert_eq!(slow, 0, "every page takes a second");
    assert_eq!(others(|load| load.connect_us.p99 = 1_010_000), 1, "SYNs were lost");
    assert_eq!(others(|load| (load.latency_us.p50, load.latency_us.p99) = (9_000, 1_015_000)), 1, "so were some further in");
}
