//! Finding `packets-filtered`: packets that netfilter takes and that are sent again, kept or refused. Silent for what others are sent, for packets that are taken without harm, and for what
//! the kernel counts as something else.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::load::{Loop, Percentiles};
use chokepoint_model::observation::{FilterHook, FilterPorts, FilterRule, FilterRules, Observation, TcpSample};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, Verdict};
use proptest::prelude::*;

use super::{LOSS, unsent};
use crate::stage::*;

const FILTERED: &str = "packets-filtered";

/// A load of twenty connections, each request on its own, and what the counters of both namespaces rose by.
#[derive(Debug, Clone, Copy)]
struct Filter {
    /// Packets that reached the server's namespace and no protocol.
    came: u64,
    /// Packets that its protocols sent and no interface got.
    left: u64,
    /// SYNs of the client that were sent again, after a second.
    syns: u64,
    /// Connections that were refused.
    refused: u64,
    /// Another counter of the server's namespace.
    also: (&'static str, u64),
}

const SYNS: Filter = Filter { came: 120, left: 0, syns: 115, refused: 0, also: ("Ip.InDiscards", 0) };

impl Filter {
    fn observed(self) -> Observation {
        let mut obs = healthy();
        cpu(&mut obs, 0.2);
        let sent = [("Tcp.OutSegs", 40_000), ("Tcp.RetransSegs", self.syns), ("TcpExt.TCPDSACKRecvSegs", 0), ("TcpExt.TCPLossProbes", 0)];
        let again = [("TcpExt.TCPSynRetrans", self.syns), ("TcpExt.TCPTimeouts", self.syns)];
        protocol_counters(&mut obs, CLIENT, &[&sent[..], &again].concat());
        let quiet = [("Tcp.OutSegs", 40_000), ("Tcp.RetransSegs", 0), ("TcpExt.TCPDSACKRecvSegs", 0), ("TcpExt.TCPSynRetrans", 0)];
        let packets = [
            ("TcpExt.TCPTimeouts", 0),
            ("Tcp.InSegs", 40_000),
            ("Ip.InReceives", 40_000 + self.came),
            ("Ip.InDelivers", 40_000),
            ("Ip.OutRequests", 40_000),
            ("Ip.OutTransmits", 40_000 - self.left),
            self.also,
        ];
        protocol_counters(&mut obs, SERVER, &[&quiet[..], &packets].concat());
        let load = obs.load.as_mut().unwrap();
        load.shape = Loop::Closed { connections: 20 };
        (load.requests, load.connections) = (2_000 + self.refused, 2_000);
        (load.good, load.errors.connect_refused) = (2_000, self.refused);
        load.status = [(200, 2_000)].into();
        load.latency_us = Percentiles { p50: 2_000, p75: 2_500, p90: 3_000, p95: 4_000, p99: 9_000, p999: 20_000, max: 30_000 };
        let late = if self.syns >= 100 { 1_003_000 } else { 300 };
        load.connect_us = Percentiles { p50: 90, p75: 100, p90: 150, p95: late, p99: late, p999: late, max: late };
        obs
    }
}

fn is_found(obs: &Observation) -> bool {
    let found = told(obs);
    assert!(!causes(&found).contains(&LOSS), "{}", found.summary);
    causes(&found) == [FILTERED]
}

#[test]
fn a_filter_that_drops_the_first_packets_of_clients_is_named_with_its_counts() {
    let found = told(&SYNS.observed());
    assert_eq!((found.verdict, causes(&found)), (Verdict::Choked, vec![FILTERED]), "{}", found.summary);
    let finding = &found.findings[0];
    assert_eq!(finding.title, "a packet filter of server drops or rejects packets of the path: 120 in 10 s");
    assert_eq!((finding.confidence, finding.at.netns.as_deref()), (Confidence::High, Some("server")));
    let evidence: Vec<&str> = finding.evidence.iter().map(|proof| proof.text.as_str()).collect();
    assert_eq!(evidence, ["120 packets that arrived in server were handed to no protocol.", "115 SYNs were sent again on the path."]);
    let ids: Vec<&str> = finding.remedies.iter().map(|remedy| remedy.id.as_str()).collect();
    assert_eq!(ids, ["let-packets-pass"]);
    let many = Filter { came: 9_000, ..SYNS };
    assert_eq!(told(&many.observed()).findings[0].confidence, Confidence::Medium, "most of them are not the path's");
}

proptest! {
    /// Whoever sends again or is refused sent a packet that was taken.
    #[test]
    fn as_many_are_taken_as_are_missed(came in 20_u64..4_000, left in 0_u64..400, syns in 120_u64..400, refused in 0_u64..4_000) {
        let filter = Filter { came, left, syns, refused, ..SYNS };
        let (taken, missed) = (came + left, syns + refused);
        prop_assume!((2 * taken).abs_diff(missed) > 20);
        prop_assert_eq!(is_found(&filter.observed()), 2 * taken > missed, "{:?}", filter);
    }

    #[test]
    fn what_the_kernel_counts_as_something_else_was_not_taken(counter in proptest::sample::select(vec!["Ip.InDiscards", "Ip.InHdrErrors", "IpExt.InNoRoutes", "TcpExt.ListenDrops"])) {
        let counted = Filter { also: (counter, 115), ..SYNS };
        prop_assert!(!is_found(&counted.observed()));
    }
}

#[test]
fn refused_connections_are_a_filters_although_a_server_listens() {
    let refusing = Filter { came: 900, syns: 0, refused: 900, ..SYNS };
    assert!(is_found(&refusing.observed()));
    assert!(!is_found(&Filter { came: 12, ..refusing }.observed()), "a stranger's packets");
}

#[test]
fn packets_that_are_taken_without_harm_are_no_cause() {
    // A load balancer in the kernel, SYNPROXY, or what a filter is there to drop.
    let found = told(&Filter { came: 20_000, syns: 0, ..SYNS }.observed());
    assert_eq!((found.verdict, causes(&found).len()), (Verdict::Healthy, 0), "{}", found.summary);
    assert!(found.warnings.iter().any(|told| told.starts_with("20,000 packets that reached server were handed to no socket")));
    assert!(!is_found(&Filter { came: 20_000, syns: 30, ..SYNS }.observed()), "no connection came late");
}

/// Watched: data of this many of twenty connections does not leave the server's namespace, and its filter took so many packets.
fn kept(connections: u64, left: u64) -> Observation {
    let moves = |sample: &mut TcpSample| (sample.unacked, sample.last_data_sent_ms) = (6, 0);
    let mut obs = unsent(connections, moves);
    let sent = [("Tcp.OutSegs", 40_000), ("Tcp.RetransSegs", 0), ("TcpExt.TCPDSACKRecvSegs", 0), ("TcpExt.TCPSynRetrans", 0)];
    let packets = [("TcpExt.TCPTimeouts", 0), ("Ip.OutRequests", 40_000), ("Ip.OutTransmits", 40_000 - left)];
    protocol_counters(&mut obs, SERVER, &[&sent[..], &packets].concat());
    obs
}

#[test]
fn a_rule_in_the_output_path_is_named_where_data_stands() {
    let found = told(&kept(8, 400));
    assert_eq!((found.verdict, causes(&found)), (Verdict::Choked, vec![FILTERED]), "{}", found.summary);
    let evidence: Vec<&str> = found.findings[0].evidence.iter().map(|proof| proof.text.as_str()).collect();
    assert!(evidence.iter().any(|told| told.starts_with("Data stood ready and could not leave about 444 times")), "{evidence:?}");
    assert!(causes(&told(&kept(0, 400))).is_empty(), "packets of another program");
    assert!(causes(&told(&kept(8, 60))).is_empty(), "too few to explain it");
    assert_eq!(told(&kept(8, 60)).verdict, Verdict::Unknown);
}

/// A rule of the server's namespace, by its handle: the TCP port that it asks for, and what it took in the window, if it counts.
fn rule(handle: u64, port: u16, taken: Option<u64>) -> FilterRule {
    FilterRule {
        family: "inet".to_owned(),
        table: "fw".to_owned(),
        chain: "in".to_owned(),
        handle,
        hooks: vec![FilterHook::Input],
        taken,
        ports: FilterPorts::Destination(port, port),
        is_by_source: false,
        text: format!("tcp dport {port} drop"),
    }
}

/// The same observation with these rules, read at both ends.
fn with_rules(mut obs: Observation, rules: &[FilterRule]) -> Observation {
    let series = &mut obs.netns.get_mut(&SERVER).unwrap().filter_rules;
    for is_end in [false, true] {
        let counted = |rule: &FilterRule| FilterRule { taken: rule.taken.map(|taken| 70 + if is_end { taken } else { 0 }), ..rule.clone() };
        let rules = rules.iter().map(counted).collect();
        series.push(if is_end { 11_000_000 } else { 0 }, Reading::Ok(FilterRules { rules, ..FilterRules::default() }));
    }
    obs
}

/// The observation without its load: requests of others, as watched.
fn watched(mut obs: Observation) -> Observation {
    obs.load = None;
    obs
}

fn first_evidence(obs: &Observation) -> String {
    let found = told(obs);
    assert_eq!(causes(&found), [FILTERED], "{}", found.summary);
    found.findings[0].evidence[0].text.clone()
}

#[test]
fn the_rule_that_counts_the_packets_is_named() {
    let counted = with_rules(SYNS.observed(), &[rule(4, 80, Some(118)), rule(5, 9_999, Some(0)), rule(6, 9_998, None)]);
    assert_eq!(first_evidence(&counted), "The rule \"inet fw in handle 4: tcp dport 80 drop\" took 118 packets.");
    let found = told(&counted);
    assert_eq!(
        found.findings[0].title,
        "a rule of the packet filter of server drops or rejects packets of the path: inet fw in handle 4, 120 packets in 10 s"
    );
    let advice = &found.findings[0].remedies[0].text;
    assert!(advice.contains("\"ip netns exec server nft delete rule inet fw in handle 4\""), "{advice}");
}

#[test]
fn names_that_could_be_commands_are_in_none() {
    for chain in ["in;reboot", "in`id`", "$(id)", "a&b", "a|b", "-f", "web_2.in"] {
        let rule = FilterRule { chain: chain.to_owned(), ..rule(4, 80, Some(118)) };
        let found = told(&with_rules(SYNS.observed(), &[rule]));
        let advice = &found.findings[0].remedies[0].text;
        assert_eq!(advice.contains("nft delete rule"), chain == "web_2.in", "{advice}");
    }
}

#[test]
fn the_only_rule_that_does_not_count_took_the_rest() {
    let alone = with_rules(SYNS.observed(), &[rule(4, 80, None), rule(5, 9_999, Some(20))]);
    assert_eq!(
        first_evidence(&alone),
        "The rule \"inet fw in handle 4: tcp dport 80 drop\" took 100 packets: it does not count them, but is the only rule there that takes packets without counting."
    );
    let two = with_rules(SYNS.observed(), &[rule(5, 9_999, None), rule(4, 80, None)]);
    assert_eq!(
        first_evidence(&two),
        "The rule \"inet fw in handle 4: tcp dport 80 drop\" may have taken them: it does not count, and it is not the only one."
    );
    assert!(told(&two).findings[0].title.starts_with("a packet filter of server"));
}

#[test]
fn watched_clients_elsewhere_are_told_by_the_rule_of_their_port() {
    // No client's counters: it is on another host.
    let taken = |rules: &[FilterRule]| told(&with_rules(watched(Filter { came: 2_000, syns: 0, ..SYNS }.observed()), rules));
    let of_path = taken(&[rule(4, 80, Some(2_000))]);
    assert_eq!((of_path.verdict, causes(&of_path)), (Verdict::Choked, vec![FILTERED]), "{}", of_path.summary);
    assert_eq!(of_path.findings[0].confidence, Confidence::Medium);
    let by_source = FilterRule { is_by_source: true, ..rule(4, 80, Some(2_000)) };
    for others in [rule(4, 9_999, Some(2_000)), by_source, rule(4, 80, Some(200))] {
        assert!(causes(&taken(std::slice::from_ref(&others))).is_empty(), "{others}");
    }
}

proptest! {
    /// However many rules count, none is said to have taken more than vanished, and what is named as most is most.
    #[test]
    fn rules_are_told_with_what_they_took(counts in proptest::collection::vec(proptest::option::of(0_u64..200), 1..6)) {
        let rules: Vec<FilterRule> = counts.iter().zip(4..).map(|(taken, handle)| rule(handle, 80, *taken)).collect();
        let found = told(&with_rules(SYNS.observed(), &rules));
        prop_assert_eq!(causes(&found), [FILTERED]);
        let counted: u64 = counts.iter().flatten().sum();
        let uncounted = counts.iter().filter(|taken| taken.is_none()).count();
        let most = counts.iter().flatten().copied().max().unwrap_or(0).max(if uncounted == 1 { 120_u64.saturating_sub(counted) } else { 0 });
        prop_assert_eq!(found.findings[0].title.starts_with("a rule of"), 2 * most >= 120, "{:?}", counts);
    }
}
