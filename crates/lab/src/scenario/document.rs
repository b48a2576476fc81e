//! The fields of a scenario file, schema 1 (docs/scenarios.md). Unknown fields are refused.

use std::collections::BTreeMap;

use chokepoint_model::report::{LimitedBy, Verdict};
use serde::Deserialize;

use super::units::{BitRate, ByteSize, Cidr, FileMode, StatusRanges, TimeSpan};

/// A whole scenario.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Version of the format: 1.
    pub schema: u32,
    /// Name, unique among the labs that are up: lower-case letters, digits and `-`.
    pub name: String,
    /// One sentence saying what it shows.
    pub title: String,
    /// A longer description.
    pub description: Option<String>,
    /// Hosts: one network namespace each.
    #[serde(rename = "host")]
    pub hosts: Vec<Host>,
    /// Links between hosts: one veth pair each.
    #[serde(rename = "link", default)]
    pub links: Vec<Link>,
    /// Machine settings that no namespace has of its own. They are restored at down.
    #[serde(default)]
    pub host_sysctls: BTreeMap<String, Setting>,
    /// Cgroups with a CPU quota, parents first.
    #[serde(rename = "cgroup", default)]
    pub cgroups: Vec<Cgroup>,
    /// Files below the run directory.
    #[serde(rename = "file", default)]
    pub files: Vec<FileSpec>,
    /// Servers and other programs, started in this order.
    #[serde(rename = "server", default)]
    pub servers: Vec<Server>,
    /// Flows that fill conntrack tables before the load.
    #[serde(rename = "prefill", default)]
    pub prefills: Vec<Prefill>,
    /// Where the load comes from.
    pub client: Client,
    /// The load.
    pub load: Load,
    /// What the diagnosis is expected to say.
    #[serde(default)]
    pub expect: Expect,
    #[serde(skip)]
    pub(super) text: String,
    #[serde(skip)]
    pub(super) origin: String,
}

/// One host.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Name, unique in the scenario.
    pub name: String,
    /// `net.` settings of its namespace.
    #[serde(default)]
    pub sysctls: BTreeMap<String, Setting>,
    /// A ruleset for `nft -f`, loaded in its namespace.
    pub nftables: Option<String>,
    /// Routes in addition to those of its addresses.
    #[serde(default)]
    pub routes: Vec<Route>,
    /// True: a switch. A bridge joins its link ends, which have no addresses.
    #[serde(default)]
    pub bridge: bool,
}

/// One route.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// "default" or a prefix.
    pub to: RouteTo,
    /// The next hop.
    pub via: std::net::IpAddr,
}

/// A route's destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteTo {
    /// Everything.
    Default,
    /// A prefix.
    Prefix(Cidr),
}

impl<'de> Deserialize<'de> for RouteTo {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "default" {
            return Ok(RouteTo::Default);
        }
        text.parse().map(RouteTo::Prefix).map_err(|why| serde::de::Error::custom(format!("{why}, or \"default\"")))
    }
}

/// One link.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// One end.
    pub a: LinkEnd,
    /// The other end.
    pub b: LinkEnd,
    /// Maximum transmission unit of both ends, bytes; default: the kernel's 1500.
    pub mtu: Option<u32>,
}

/// One end of a link.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkEnd {
    /// The host.
    pub host: String,
    /// Name of the interface in that host; default: `to-PEER`.
    pub interface: Option<String>,
    /// Addresses with prefix length, v4 and v6; chosen automatically if neither end gives any.
    pub addresses: Option<Vec<Cidr>>,
    /// Shapes what this end sends.
    pub shape: Option<Shape>,
}

/// A token bucket (tc-tbf(8)) on what an end sends.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// Rate.
    pub rate: BitRate,
    /// Size of the bucket.
    pub burst: ByteSize,
    /// Longest wait of a packet; one of `latency` and `limit`.
    pub latency: Option<TimeSpan>,
    /// Bytes that may wait; one of `latency` and `limit`.
    pub limit: Option<ByteSize>,
}

/// A setting's value: text or a whole number in the file, text here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting(pub String);

impl<'de> Deserialize<'de> for Setting {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Setting;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a setting's value: a string or a whole number")
            }
            fn visit_i64<E>(self, value: i64) -> Result<Setting, E> {
                Ok(Setting(value.to_string()))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Setting, E> {
                Ok(Setting(value.to_string()))
            }
            fn visit_str<E>(self, value: &str) -> Result<Setting, E> {
                Ok(Setting(value.to_owned()))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// One cgroup with a CPU quota.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cgroup {
    /// Name, unique in the scenario.
    pub name: String,
    /// Quota of all its processes together, in cores.
    pub cores: f64,
    /// Period of the quota; default: 100 ms.
    pub period: Option<TimeSpan>,
    /// The parent cgroup, whose quota holds too.
    pub within: Option<String>,
}

/// One file below the run directory.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSpec {
    /// Path below the run directory.
    pub path: String,
    /// Its text; placeholders are replaced.
    pub content: Option<String>,
    /// Or its size: incompressible bytes, the same in every run.
    pub size: Option<ByteSize>,
    /// Permissions; default: "0644".
    pub mode: Option<FileMode>,
    /// Its owner, and that of the directories made for it: a name or a number; default: root.
    pub user: Option<String>,
}

/// What kind of program a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramKind {
    /// nginx with a configuration text.
    Nginx,
    /// php-fpm with a configuration text.
    PhpFpm,
    /// Any program.
    Command,
}

/// One server or other program.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Name, unique in the scenario.
    pub name: String,
    /// The host it runs on.
    pub host: String,
    /// Its kind.
    pub kind: ProgramKind,
    /// nginx, php-fpm: the whole configuration; placeholders are replaced.
    pub config: Option<String>,
    /// command: program and arguments, no shell; placeholders are replaced.
    pub command: Option<Vec<String>>,
    /// Cores it may run on; default: any.
    pub cpus: Option<Vec<u32>>,
    /// Limit of open files (RLIMIT_NOFILE, soft and hard).
    pub nofile: Option<u64>,
    /// Its cgroup; default: that of the lab itself.
    pub cgroup: Option<String>,
    /// command: its user, a name or a number. nginx, php-fpm: the value of `{user}`; they start as root and switch by themselves.
    pub user: Option<String>,
    /// Environment variables; placeholders are replaced.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Readiness condition.
    pub ready: Option<Ready>,
}

/// When a server counts as ready; one of `tcp`, `unix`, `http`, `listening`, `finished`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    /// A listener at this address and port in its host; nothing is sent to it.
    pub tcp: Option<String>,
    /// A listener at this path; nothing is sent to it.
    pub unix: Option<String>,
    /// A GET of this URL from its host answers with 2xx or 3xx.
    pub http: Option<String>,
    /// True: the server has any listening socket.
    pub listening: Option<bool>,
    /// True: the program ended with status 0 (a preparation step, not a server).
    pub finished: Option<bool>,
    /// Timeout; default: 10 s.
    pub timeout: Option<TimeSpan>,
}

/// UDP flows opened once before the load. Each becomes one entry in every conntrack table on its way.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prefill {
    /// The host they come from.
    pub host: String,
    /// Where they go: address and port.
    pub to: String,
    /// Number of flows: one datagram each, from its own port.
    pub flows: u32,
}

/// Where the load comes from.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// The host.
    pub host: String,
    /// Cores of the generator; default: any.
    pub cpus: Option<Vec<u32>>,
}

/// The load.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// The URL; `{address:HOST}` is replaced.
    pub url: String,
    /// Connections; default: 100.
    pub connections: Option<u32>,
    /// Total requests a second of an open loop; default: closed loop.
    pub rate: Option<f64>,
    /// Duration; default: 10 s.
    #[serde(default = "duration_default")]
    pub duration: TimeSpan,
    /// Timeout of a request; default: 2 s.
    #[serde(default = "timeout_default")]
    pub timeout: TimeSpan,
    /// Whether connections are reused; default: true.
    #[serde(default = "keep_alive_default")]
    pub keep_alive: bool,
    /// Method; default: GET.
    #[serde(default = "method_default")]
    pub method: String,
    /// Header fields.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Body of each request.
    pub body: Option<String>,
    /// Expected statuses; default: "2xx,3xx".
    #[serde(default)]
    pub expect: StatusRanges,
    /// Threads of the generator; default: its own choice.
    pub threads: Option<u32>,
    /// https: whether sessions are resumed.
    pub tls: Option<LoadTls>,
    /// The objective: an upper bound of the p99 response time.
    pub slo_p99: Option<TimeSpan>,
}

/// How the load speaks TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadTls {
    /// Whether sessions are resumed where the server allows it; default: true.
    #[serde(default = "resume_default")]
    pub resume: bool,
}

fn resume_default() -> bool {
    true
}
fn duration_default() -> TimeSpan {
    TimeSpan(std::time::Duration::from_secs(10))
}
fn timeout_default() -> TimeSpan {
    TimeSpan(std::time::Duration::from_secs(2))
}
fn keep_alive_default() -> bool {
    true
}
fn method_default() -> String {
    "GET".to_owned()
}

/// What the diagnosis is expected to say. Missing fields are not checked.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// One of these verdicts.
    #[serde(default, deserialize_with = "one_or_several")]
    pub verdict: Vec<Verdict>,
    /// One of these in a passive run, if that shows less.
    #[serde(default, deserialize_with = "one_or_several")]
    pub verdict_passive: Vec<Verdict>,
    /// One of these limits of a healthy server.
    #[serde(default, deserialize_with = "one_or_several")]
    pub limited_by: Vec<LimitedBy>,
    /// Id of the first cause, or one of several; "none" where there must be no cause.
    #[serde(default, deserialize_with = "one_or_several")]
    pub finding: Vec<String>,
    /// Ids that must be neither causes nor symptoms.
    #[serde(default)]
    pub forbidden: Vec<String>,
    /// Ids of improvements that must be reported.
    #[serde(default)]
    pub improvements: Vec<String>,
    /// Ids of improvements that must not be reported.
    #[serde(default)]
    pub improvements_forbidden: Vec<String>,
    /// Causes that must be named in the first diagnosis or in a round of `--fix`, in any order.
    #[serde(default)]
    pub causes: Vec<String>,
    /// Id of a remedy that is applied and kept.
    pub remedy: Option<String>,
    /// Ids of remedies of which each is applied and kept.
    #[serde(default)]
    pub kept: Vec<String>,
    /// Ids of remedies of which each is applied, whether or not what is measured then lets it stay.
    #[serde(default)]
    pub tried: Vec<String>,
    /// What the remedy must achieve.
    pub effect: Option<Effect>,
    /// What all kept changes together must achieve.
    pub result: Option<Effect>,
    /// Another scenario to compare the goodput of the result with.
    pub reference: Option<Reference>,
    /// What a simultaneous capture must show.
    pub capture: Option<CaptureExpect>,
    /// What the sockets alone must show, without a capture.
    pub sockets: Option<SocketsExpect>,
    /// How often a server calls a function per answer, under a load of its own.
    pub calls: Option<CallsExpect>,
}

/// How often a server must call a function per good answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallsExpect {
    /// The server's name.
    pub server: String,
    /// The function, as an argument of `chokepoint profile --count`.
    pub what: String,
    /// Lower and upper bound.
    pub per_request: [f64; 2],
}

/// What a capture of one interface during the run must show of the busiest edge.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureExpect {
    /// The host that has the interface.
    pub host: String,
    /// The interface.
    pub interface: String,
    /// Whether connections are kept: "in-force", "partly", "not", "unknown".
    pub kept: String,
    /// Why not, as `chokepoint streams` names it, the most important first.
    #[serde(default)]
    pub reasons: Vec<String>,
}

/// What the life cycles of sockets during the run must show of the busiest edge to a listening address.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SocketsExpect {
    /// The listening address.
    pub server: std::net::SocketAddr,
    /// Whether connections are kept: "in-force", "partly", "not", "unknown".
    pub kept: String,
    /// Why not, as `chokepoint tcp --live` names it, the most important first.
    #[serde(default)]
    pub reasons: Vec<String>,
}

/// Accepts a word in place of a list of one.
fn one_or_several<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    struct Visitor<T>(std::marker::PhantomData<T>);
    impl<'de, T: Deserialize<'de>> serde::de::Visitor<'de> for Visitor<T> {
        type Value = Vec<T>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a word or a list of words")
        }
        fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Vec<T>, E> {
            T::deserialize(serde::de::IntoDeserializer::into_deserializer(word)).map(|one| vec![one])
        }
        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut words: A) -> Result<Vec<T>, A::Error> {
            let mut several = Vec::new();
            while let Some(word) = words.next_element()? {
                several.push(word);
            }
            Ok(several)
        }
    }
    deserializer.deserialize_any(Visitor(std::marker::PhantomData))
}

/// Another scenario with its own load, measured in turn with the result.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// Name of a built-in scenario or path of a file.
    pub scenario: String,
    /// How often each is measured; default: 3.
    #[serde(default = "pairs_default")]
    pub pairs: u32,
    /// Minimum of the result's goodput over the reference's. It is missed if no turn reaches it.
    pub goodput_times_at_least: Option<f64>,
    /// Maximum of the result's p99 over the reference's. It is missed if every turn exceeds it.
    pub latency_p99_times_at_most: Option<f64>,
}

fn pairs_default() -> u32 {
    3
}

/// What a remedy must achieve under the same load.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effect {
    /// Minimum of the goodput after over the goodput before.
    pub goodput_times_at_least: Option<f64>,
    /// Maximum share of failed requests after, 0 to 1.
    pub failed_share_at_most: Option<f64>,
    /// Maximum p99 response time after.
    pub latency_p99_at_most: Option<TimeSpan>,
    /// Maximum number of applied changes, including those taken back.
    pub changes_at_most: Option<u32>,
}

impl Expect {
    /// True where only `--fix` can meet the expectations.
    pub fn asks_for_fix(&self) -> bool {
        let lists = [&self.kept, &self.tried, &self.causes];
        self.remedy.is_some() || lists.iter().any(|list| !list.is_empty()) || self.result.is_some() || self.reference.is_some()
    }

    /// True where there must be no cause.
    pub fn finding_none(&self) -> bool {
        self.finding == ["none"]
    }
}
