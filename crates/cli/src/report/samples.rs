//! Diagnoses for tests: one of each verdict, one with rounds, and one with text that is hard to print.

pub(crate) mod experiment;
mod fixed;
mod profiled;
pub(crate) mod whereabouts;

use std::collections::BTreeMap;

use chokepoint_model::change::{Activation, Change};
use chokepoint_model::load::{Errors, Percentiles};
use chokepoint_model::observation::NetnsId;
use chokepoint_model::report::*;

pub(crate) use fixed::{chain, collapse, fixed};

/// All samples by name.
pub(crate) fn all() -> [(&'static str, Diagnosis); 11] {
    [
        ("choked", choked()),
        ("fixed", fixed()),
        ("chain", chain()),
        ("healthy", healthy()),
        ("client-limited", client_limited()),
        ("unknown", unknown()),
        ("awkward", awkward()),
        ("coupled", coupled()),
        ("bisected", bisected()),
        ("profiled", profiled::profiled()),
        ("collapse", collapse()),
    ]
}

/// A conntrack table of 200 entries in front of nginx and php-fpm.
pub(crate) fn choked() -> Diagnosis {
    let mut sample = blank(Verdict::Choked, "Choked: the connection tracking table of web is full (200 entries).");
    sample.load = Some(collapsed());
    sample.path = vec![
        station("client", "load-generator", At { netns: netns("client"), ..At::default() }).of(0.07, 1.0, "cores"),
        station("nginx", "link", At { netns: netns("web"), ..At::default() })
            .unknown("veth0 carried 3.1 Mbit/s; it knows no speed and has no shaper, so it has no limit to compare with."),
        station("nginx", "conntrack-table", At { netns: netns("web"), ..At::default() }).of(200.0, 200.0, "entries").refusing(812.4),
        station("nginx", "accept-queue", At { netns: netns("web"), listener: Some("0.0.0.0:80".into()), ..At::default() }).of(
            3.0,
            4096.0,
            "connections",
        ),
        station("php-fpm", "accept-queue", At { netns: netns("web"), listener: Some("127.0.0.1:9000".into()), ..At::default() }).of(
            0.0,
            4096.0,
            "connections",
        ),
        station("nginx+php-fpm", "cpu", At { cpu: Some("1".into()), ..At::default() }).of(0.04, 1.0, "cores"),
    ];
    sample.findings = vec![conntrack()];
    sample.readings =
        vec![read("netstat (web)"), read("conntrack-count (web)"), unread("link-speed (web)", "the device knows no speed", None)];
    sample
}

/// Limited only by the cores.
pub(crate) fn healthy() -> Diagnosis {
    let mut sample = blank(Verdict::Healthy, "Healthy, limited by CPU: cores 1, all that the servers may use, were 99.4 % busy.");
    sample.limited_by = Some(LimitedBy::Cpu);
    sample.load = Some(served(5382.4, 53_830));
    let mut cpu = station("nginx+php-fpm", "cpu", At { cpu: Some("1".into()), ..At::default() }).of(0.994, 1.0, "cores");
    cpu.state = StationState::Saturated;
    cpu.kind = StationKind::Rate;
    cpu.why = "cores 1, all that the servers may use, were 99.4 % busy.".into();
    cpu.ceiling_rps = Some(Ceiling { value: 5415.0, low: 5300.0, high: 5530.0 });
    let mut queue = station("nginx", "accept-queue", At { netns: netns("web"), listener: Some("[::]:80".into()), ..At::default() }).of(
        12.0,
        511.0,
        "connections",
    );
    queue.waiting = Some(1.4);
    sample.path = vec![
        station("client", "load-generator", At { netns: netns("client"), ..At::default() }).of(0.38, 1.0, "cores"),
        station("nginx", "link", At { netns: netns("web"), ..At::default() }).of(94.2e6, 1e9, "bits/s"),
        queue,
        cpu,
    ];
    sample.readings = vec![read("netstat (web)"), read("cpu")];
    let edge = At { netns: netns("web"), edge: Some("nginx->php-fpm".into()), listener: Some("127.0.0.1:9000".into()), ..At::default() };
    sample.improvements = vec![Finding {
        id: "upstream-connection-churn".into(),
        station: "upstream-connect".into(),
        tier: "nginx".into(),
        at: edge,
        role: Role::Cause,
        symptom_of: Vec::new(),
        confidence: Confidence::High,
        title: "nginx opens a connection to 127.0.0.1:9000 for each request".into(),
        evidence: vec![Evidence {
            text: "Connections opened for each request: 1.".into(),
            source: "/proc/net/snmp Tcp.ActiveOpens (web)".into(),
            value: Some(1.0),
        }],
        explanation: "Nothing is wrong, and the cores are the limit. But part of what they do is opening connections.".into(),
        remedies: Vec::new(),
    }];
    sample
}

/// Limited by the load generator.
pub(crate) fn client_limited() -> Diagnosis {
    let mut sample = blank(Verdict::ClientLimited, "No verdict about the server's rate: the load generator was the limit.");
    sample.load = Some(served(74_211.0, 742_110));
    let mut generator = station("client", "load-generator", At { netns: netns("host"), ..At::default() }).of(0.97, 1.0, "cores");
    generator.state = StationState::Saturated;
    sample.path = vec![
        generator.clone(),
        station("nginx", "accept-queue", At { netns: netns("host"), listener: Some("0.0.0.0:80".into()), ..At::default() }).of(
            1.0,
            511.0,
            "connections",
        ),
    ];
    sample.findings = vec![Finding {
        id: "load-generator-limited".into(),
        station: "load-generator".into(),
        tier: "client".into(),
        at: generator.at,
        role: Role::Cause,
        symptom_of: Vec::new(),
        confidence: Confidence::High,
        title: "the load generator was the limit".into(),
        evidence: vec![Evidence {
            text: "Its busiest thread used 97 % of its CPU, soft interrupts included.".into(),
            source: "CLOCK_THREAD_CPUTIME_ID, /proc/stat".into(),
            value: Some(0.97),
        }],
        explanation:
            "The generator could not offer more, so what was measured is its own speed and not the server's. Give it more threads \
                      or cores, or another host."
                .into(),
        remedies: Vec::new(),
    }];
    sample.target.netns = Some("host".into());
    sample.target.tiers[0].netns = "host".into();
    sample.target.tiers.truncate(1);
    let condition = |condition: &str, held: bool| FailIfCondition {
        condition: condition.into(),
        held,
        measured: None,
        unit: None,
        verdict: Some(Verdict::ClientLimited),
    };
    let conditions = vec![
        condition("client-limited", true),
        FailIfCondition { measured: Some(12_345.0), unit: Some(FailIfUnit::Us), verdict: None, ..condition("p99>250ms", false) },
    ];
    sample.fail_if = Some(FailIfReport { expression: "client-limited || p99>250ms".into(), held: true, conditions });
    sample.warnings = vec!["The load generator shares cores with the servers: rates are lower than the servers could give.".into()];
    sample
}

/// Nothing could be read without privileges.
pub(crate) fn unknown() -> Diagnosis {
    let mut sample = blank(Verdict::Unknown, "Cannot tell: the sockets of this host could not be read.");
    sample.mode = Mode::Passive;
    sample.target.listener = None;
    sample.target.netns = None;
    sample.target.tiers.clear();
    let mut table = station("host", "conntrack-table", At::default());
    table.state = StationState::Unknown;
    table.why = "The table of network namespace web could not be read.".into();
    sample.path = vec![table];
    let namespaces = ["web", "db", "cache", "queue", "mail", "log", "build", "ci"];
    sample.readings = namespaces.map(|name| unread(&format!("listeners ({name})"), "permission denied", Some("CAP_SYS_ADMIN"))).into();
    sample.readings.push(unread("kernel-log", "permission denied", Some("CAP_SYSLOG")));
    sample.readings.push(unread("sysctl net.netfilter.nf_conntrack_max (host)", "the file does not exist", None));
    let mut broken = unread("softnet", "line 2: expected a hexadecimal number, found \"zz\" (3 times)", None);
    broken.status = SourceStatus::Failed;
    sample.readings.push(broken);
    sample
}

/// Two causes, a symptom, long names, IPv6, and text from outside with control characters.
pub(crate) fn awkward() -> Diagnosis {
    let mut sample = choked();
    let listener = "[2001:db8:1234:5678:9abc:def0:1234:5678]:8080".to_owned();
    sample.target.url = "http://[2001:db8:1234:5678:9abc:def0:1234:5678]:8080/a\u{1b}[2Jb/\u{202e}gpj.exe?q=höher".into();
    sample.target.listener = Some(listener.clone());
    let at = At { netns: netns("web"), listener: Some(listener), ..At::default() };
    let mut queue = station("nginx", "accept-queue", at.clone()).of(11.0, 10.0, "connections").refusing(0.4);
    queue.waiting = Some(7.25);
    sample.path[3] = queue;
    let ports = At { netns: netns("web"), edge: Some("nginx->php-fpm".into()), ..At::default() };
    sample.path.insert(4, station("nginx", "ephemeral-ports", ports.clone()).of(50.0, 51.0, "ports").refusing(1204.0));
    let mut near = station("php-fpm", "worker-pool", At { pid: Some(4_194_304), ..At::default() }).of(19.0, 20.0, "workers");
    near.state = StationState::Near;
    near.why = "19 of 20 workers were busy at the most: little is left.".into();
    sample.path.push(near);
    let finding = |id: &str, station: &str, at: At, role: Role| Finding {
        id: id.into(),
        station: station.into(),
        tier: "nginx".into(),
        at,
        role,
        symptom_of: if role == Role::Symptom { vec!["conntrack-table-full".into(), "not-in-this-report".into()] } else { Vec::new() },
        confidence: Confidence::Medium,
        title: format!("what {id} means"),
        evidence: vec![Evidence { text: "µ → × … “quoted” \u{7}bell".into(), source: String::new(), value: None }],
        explanation: "It refuses.\nOn a second line.".into(),
        remedies: Vec::new(),
    };
    sample.findings.push(finding("ephemeral-ports-exhausted", "ephemeral-ports", ports, Role::Cause));
    sample.findings.push(finding("accept-queue-full", "accept-queue", at, Role::Symptom));
    let why = "Before ephemeral-ports-exhausted (nginx): \u{1b}[2J<b>it starves</b> | the others.".to_owned();
    sample.order = vec![CausePosition { finding: 0, why }, CausePosition { finding: 1, why: "Last.".into() }];
    sample.couplings = vec![Coupling { cause: Cause::Finding(0), symptom: 2, why: "It is told apart by its use.".into() }];
    let remedy = &mut sample.findings[0].remedies[0];
    remedy
        .runtime
        .push(Step::of_command("printf 'one very long command that must not be broken whatever the width of the page is\\n' > /dev/null"));
    remedy.prediction = Prediction::Goodput { goodput_rps: 5380.0, low: 4900.0, high: 5800.0, next_station: "worker-pool".into() };
    sample
}

/// A chain over two tiers with a branch, a second cause, and a symptom of both the busy cores and the first chain.
pub(crate) fn coupled() -> Diagnosis {
    let mut sample = blank(Verdict::Choked, "Choked: the workers of php-fpm wait for 192.0.2.7:3306.");
    sample.load = Some(collapsed());
    let queue = |tier: &str, listener: &str| At { netns: netns("web"), listener: Some(format!("{listener}:{tier}")), ..At::default() };
    let mut cpu = station("nginx+php-fpm", "cpu", At { cpu: Some("0-1".into()), ..At::default() }).of(2.0, 2.0, "cores");
    (cpu.state, cpu.why) = (StationState::Saturated, "cores 0-1, all that the servers may use, were 99 % busy.".into());
    sample.path = vec![
        station("nginx", "accept-queue", queue("80", "0.0.0.0")).of(10.0, 10.0, "connections").refusing(40.0),
        station("php-fpm", "accept-queue", queue("9000", "127.0.0.1")).of(512.0, 511.0, "connections").refusing(9.0),
        cpu,
    ];
    let finding = |id: &str, station: &str, tier: &str, at: At, symptom_of: &[&str]| Finding {
        id: id.into(),
        station: station.into(),
        tier: tier.into(),
        at,
        role: if symptom_of.is_empty() { Role::Cause } else { Role::Symptom },
        symptom_of: symptom_of.iter().map(|id| (*id).to_owned()).collect(),
        confidence: Confidence::High,
        title: format!("what {id} means"),
        evidence: Vec::new(),
        explanation: "It is told in the catalogue.".into(),
        remedies: Vec::new(),
    };
    let edge = At { netns: netns("web"), edge: Some("php-fpm->192.0.2.7:3306".into()), ..At::default() };
    let (blocked, pool, full) = ("workers-blocked-on-upstream", "worker-pool-exhausted", "accept-queue-full");
    sample.findings = vec![
        finding(blocked, "worker-pool", "php-fpm", edge, &[]),
        finding(full, "accept-queue", "nginx", queue("80", "0.0.0.0"), &[]),
        finding(pool, "worker-pool", "php-fpm", At { netns: netns("web"), ..At::default() }, &[blocked]),
        finding("setting-not-in-force", "accept-queue", "php-fpm", queue("9000", "127.0.0.1"), &[pool]),
        finding(full, "accept-queue", "php-fpm", queue("9000", "127.0.0.1"), &[blocked, pool]),
    ];
    let link = |cause: Cause, symptom: usize| Coupling { cause, symptom, why: "It is told in the catalogue.".into() };
    sample.couplings = vec![
        link(Cause::Finding(0), 2),
        link(Cause::Finding(2), 3),
        link(Cause::Finding(2), 4),
        link(Cause::Finding(3), 4),
        link(Cause::Station(2), 4),
    ];
    let closer = "Before accept-queue-full (nginx): it is closer to the backend. Fixing the other first would only send more requests here, to fail or to wait.";
    let last = "Last: fixing it first would only overload workers-blocked-on-upstream (php-fpm).";
    sample.order = vec![CausePosition { finding: 0, why: closer.into() }, CausePosition { finding: 1, why: last.into() }];
    sample
}

fn conntrack() -> Finding {
    let sysctl = |to: &str| format!("ip netns exec web sysctl -w net.netfilter.nf_conntrack_max={to}");
    Finding {
        id: "conntrack-table-full".into(),
        station: "conntrack-table".into(),
        tier: "nginx".into(),
        at: At { netns: netns("web"), ..At::default() },
        role: Role::Cause,
        symptom_of: Vec::new(),
        confidence: Confidence::High,
        title: "the connection tracking table of web is full (200 entries)".into(),
        evidence: vec![
            Evidence {
                text: "8,124 packets were dropped for want of an entry in 10 s.".into(),
                source: "/proc/net/stat/nf_conntrack in web".into(),
                value: Some(8124.0),
            },
            Evidence {
                text: "The table held 200 entries of 200.".into(),
                source: "/proc/sys/net/netfilter/nf_conntrack_count in web".into(),
                value: Some(200.0),
            },
            Evidence { text: "Of 1,910 requests, 1,703 timed out connecting.".into(), source: "load".into(), value: Some(1703.0) },
        ],
        explanation: "The firewall tracks every connection in a table of 200 entries. When it is full, the kernel drops each packet that would \
                      begin a new connection: the client's SYN is lost and sent again after 1, 2, 3, 4, 5, 7 s and so on, so requests time out although \
                      the server is idle."
            .into(),
        remedies: vec![Remedy {
            id: "raise-conntrack-max".into(),
            change: vec![Change::Sysctl {
                key: "net.netfilter.nf_conntrack_max".into(),
                netns: NetnsId(4_026_532_512),
                netns_name: "web".into(),
                from: "200".into(),
                to: "262144".into(),
            }],
            text: "Raise the limit of the table from 200 to 262,144 entries.".into(),
            runtime: vec![Step::of_command(sysctl("262144"))],
            persistent: vec![
                Step {
                    text: Some("Load nf_conntrack at boot before the sysctls are set:".into()),
                    ..Step::of_command("printf '%s\\n' 'nf_conntrack' | tee /etc/modules-load.d/chokepoint-raise-conntrack-max.conf")
                },
                Step {
                    text: Some("Set it at every boot:".into()),
                    ..Step::of_command(
                        "printf '%s\\n' 'net.netfilter.nf_conntrack_max = 262144' | tee /etc/sysctl.d/99-zz-chokepoint-raise-conntrack-max.conf",
                    )
                },
            ],
            activation: Activation::Live,
            risk: "Takes up to 80 MiB of kernel memory when the table fills; holds for every network namespace of the host.".into(),
            undo: vec![Step::of_command(sysctl("200"))],
            group: None,
            starved: None,
            signal: Signal::Refusals { station: "conntrack-table".into() },
            prediction: Prediction::Refused {
                refused: "only 6 % of the requests were answered well, which hides what the next limit would be".into(),
                at_most: None,
                unsaid: None,
            },
        }],
    }
}

/// `--bisect`: one tier explains the whole, another could not be loaded.
pub(crate) fn bisected() -> Diagnosis {
    let mut sample = blank(Verdict::Choked, "Choked: all 5 workers of php-fpm are taken, and they do not compute but wait.");
    sample.load = Some(served(241.0, 2_410));
    let part = |tier: &str, kind: PartKind, summary: &str| PartReport {
        tier: tier.into(),
        kind,
        url: None,
        load: None,
        cpu_us_per_good: None,
        verdict: None,
        explains: false,
        limited_by: None,
        summary: summary.into(),
    };
    sample.bisect = Some(Bisect {
        explained_by: ExplainedBy::Tier,
        tier: Some("php-fpm".into()),
        summary: "The whole gives 241 good answers/s, and php-fpm alone gives no more than 245/s: it explains the whole.".into(),
        parts: vec![
            PartReport {
                url: Some("http://10.78.1.2:80/static/a.css".into()),
                load: Some(served(41_250.0, 412_500)),
                cpu_us_per_good: Some(23.4),
                verdict: Some(Verdict::Healthy),
                limited_by: Some(LimitedBy::Cpu),
                ..part("nginx", PartKind::Own, "Healthy, limited by CPU: core 1, the only one that the servers may use, was 100 % busy.")
            },
            PartReport {
                url: Some("fcgi://127.0.0.1:9000/srv/www/index.php?page=1".into()),
                load: Some(collapsed()),
                verdict: Some(Verdict::Choked),
                explains: true,
                ..part("php-fpm", PartKind::Direct, "Choked: all 5 workers of php-fpm are taken, and they do not compute but wait.")
            },
            part("python", PartKind::Direct, "What php-fpm asks of python for this request stands in no configuration that is read."),
        ],
    });
    sample
}

fn blank(verdict: Verdict, summary: &str) -> Diagnosis {
    let tier = |name: &str, listener: &str, pids: Vec<u32>, upstreams: &[&str]| TierReport {
        name: name.into(),
        listeners: vec![listener.into()],
        pids,
        netns: "web".into(),
        upstreams: upstreams.iter().map(|name| (*name).to_owned()).collect(),
    };
    Diagnosis {
        schema: "chokepoint/diagnosis/1".into(),
        target: Target {
            url: "http://10.78.1.2/index.php".into(),
            addresses: vec!["10.78.1.2".parse().expect("an address")],
            listener: Some("0.0.0.0:80".into()),
            netns: Some("web".into()),
            tiers: vec![
                tier("nginx", "0.0.0.0:80", vec![812, 813, 814], &["php-fpm"]),
                tier("php-fpm", "127.0.0.1:9000", (820..841).collect(), &[]),
            ],
        },
        verdict,
        limited_by: None,
        summary: summary.into(),
        undecided: false,
        mode: Mode::Load,
        load: None,
        path: Vec::new(),
        findings: Vec::new(),
        couplings: Vec::new(),
        order: Vec::new(),
        improvements: Vec::new(),
        profile: None,
        wire: None,
        harm: None,
        ledger: None,
        bisect: None,
        readings: Vec::new(),
        warnings: Vec::new(),
        not_applied: Vec::new(),
        rounds: Vec::new(),
        before: None,
        after: None,
        run: None,
        fail_if: None,
    }
}

fn collapsed() -> LoadReport {
    LoadReport {
        requests: 1910,
        duration_s: 10.002,
        throughput_rps: 190.96,
        goodput_rps: 12.3,
        status: BTreeMap::from([("200".into(), 123)]),
        errors: Errors { connect_timeout: 1703, reset: 1, response_timeout: 83, ..Errors::default() },
        latency_us: Some(Percentiles {
            p50: 2_000_127,
            p75: 2_000_380,
            p90: 2_000_990,
            p95: 2_001_200,
            p99: 2_004_800,
            p999: 2_011_000,
            max: 2_013_000,
        }),
        lost_share: None,
        tls: None,
        spread: None,
    }
}

fn served(rate: f64, requests: u64) -> LoadReport {
    LoadReport {
        requests,
        duration_s: 10.001,
        throughput_rps: rate,
        goodput_rps: rate,
        status: BTreeMap::from([("200".into(), requests)]),
        errors: Errors::default(),
        latency_us: Some(Percentiles { p50: 850, p75: 1_200, p90: 2_340, p95: 3_100, p99: 12_340, p999: 31_000, max: 212_000 }),
        lost_share: None,
        tls: None,
        spread: None,
    }
}

fn netns(name: &str) -> Option<String> {
    Some(name.to_owned())
}

fn read(source: &str) -> SourceReport {
    SourceReport { source: source.into(), status: SourceStatus::Ok, why: None, needs: None }
}

fn unread(source: &str, why: &str, needs: Option<&str>) -> SourceReport {
    SourceReport { source: source.into(), status: SourceStatus::Absent, why: Some(why.into()), needs: needs.map(str::to_owned) }
}

fn station(tier: &str, id: &str, at: At) -> Station {
    Station {
        tier: tier.into(),
        station: id.into(),
        at,
        kind: StationKind::Cliff,
        limit: None,
        used: None,
        waiting: None,
        refused_per_s: None,
        utilization: None,
        unit: String::new(),
        ceiling_rps: None,
        state: StationState::Ok,
        why: String::new(),
    }
}

/// Builds the stations of samples.
trait StationBuilder {
    fn of(self, used: f64, limit: f64, unit: &str) -> Self;
    fn refusing(self, per_s: f64) -> Self;
    fn unknown(self, why: &str) -> Self;
}

impl StationBuilder for Station {
    fn of(self, used: f64, limit: f64, unit: &str) -> Self {
        Self { used: Some(used), limit: Some(limit), utilization: Some(used / limit), unit: unit.into(), refused_per_s: Some(0.0), ..self }
    }

    fn refusing(self, per_s: f64) -> Self {
        Self { refused_per_s: Some(per_s), state: StationState::Refusing, why: "It refuses.".into(), ..self }
    }

    fn unknown(self, why: &str) -> Self {
        Self { state: StationState::Unknown, why: why.into(), ..self }
    }
}
