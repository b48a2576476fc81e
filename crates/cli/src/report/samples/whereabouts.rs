//! Reports of `where` for tests: a pool that limits everything, and a host where nothing listens.

use chokepoint_model::report::{
    At, LedgerClient, LedgerLoss, LedgerLossKind, LedgerPlace, LedgerPlaceKind, LedgerReport, LedgerUnaccounted, SourceReport,
    SourceStatus, Target, TierReport, WhereWindow, Whereabouts,
};

fn place(tier: &str, place: LedgerPlaceKind, mean: f64) -> LedgerPlace {
    LedgerPlace { tier: tier.to_owned(), at: At::default(), place, mean, share: mean / 100.0, low: mean, high: mean, age_ms: Some(3.0) }
}

fn tier(name: &str) -> TierReport {
    TierReport { name: name.to_owned(), listeners: Vec::new(), pids: Vec::new(), netns: "host".to_owned(), upstreams: Vec::new() }
}

/// Nothing listens at the target.
pub(crate) fn nobody() -> Whereabouts {
    let url = "http://10.0.0.2/".to_owned();
    Whereabouts {
        schema: "chokepoint/where/1".to_owned(),
        window: WhereWindow { from_s: 3_695.0, to_s: 3_700.0 },
        target: Target { url, addresses: Vec::new(), listener: None, netns: None, tiers: Vec::new() },
        ledger: None,
        clients: Vec::new(),
        warnings: vec!["Nothing on this host listens at 10.0.0.2:80 for this client.".to_owned()],
        lacking: Vec::new(),
    }
}

/// 100 requests in flight, 90 of them in one queue.
pub(crate) fn busy() -> Whereabouts {
    use LedgerPlaceKind::*;
    let places = vec![
        place("nginx", Waiting, 1.5),
        place("php-fpm", AcceptQueue, 90.0),
        place("php-fpm", Cpu, 2.5),
        place("php-fpm", Waiting, 5.0),
        place("php-fpm", Sending, 0.01),
    ];
    let losses =
        vec![LedgerLoss { tier: Some("nginx".to_owned()), place: Some("rate-limit".to_owned()), kind: LedgerLossKind::Wrong, per_s: 7.0 }];
    let client = |address: &str, mean: f64| LedgerClient { address: address.parse().unwrap(), mean, share: mean / 100.0 };
    let lack = SourceReport {
        source: "process_files (holder of php-fpm)".to_owned(),
        status: SourceStatus::Absent,
        why: Some("no process that this user may inspect holds this socket".to_owned()),
        needs: Some("CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH".to_owned()),
    };
    Whereabouts {
        target: Target { tiers: vec![tier("nginx"), tier("php-fpm")], ..nobody().target },
        ledger: Some(LedgerReport {
            under_way: 100.0,
            rate_rps: Some(200.0),
            response_time_ms: Some(500.0),
            places,
            unaccounted: LedgerUnaccounted { mean: 0.99, share: 0.0099, low: Some(-0.2), high: Some(2.2) },
            losses,
        }),
        clients: vec![client("10.0.0.1", 60.0), client("10.0.0.7", 30.0), client("10.0.0.9", 0.01)],
        warnings: vec!["On 3 connections of php-fpm it cannot be told whether a request is under way.".to_owned()],
        lacking: vec![lack],
        ..nobody()
    }
}
