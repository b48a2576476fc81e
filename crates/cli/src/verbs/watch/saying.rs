//! What the page says of each server: one sentence, the names of its places, and what the last look at its path found.

use std::collections::BTreeMap;

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;
use chokepoint_model::report::{Diagnosis, LedgerPlaceKind, Verdict};
use chokepoint_recorder::incident::Incident;
use chokepoint_recorder::{Mean, PoolUse, TargetSample};
use serde::Serialize;
use serde_json::Value;

use super::outlet::rate;
use super::seconds::Look;
use crate::report::page;
use crate::report::view::ledger::place_label;
use crate::report::view::{Phrases, time};

/// The station of a tier's workers, and its unit where each serves one request at a time.
const POOL: &str = "worker-pool";
const ONE_EACH: [&str; 2] = ["workers", "threads"];

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Severity {
    /// Clients are served worse than before, or a path is choked.
    Bad,
    /// Nothing is wrong with what was seen, and enough was seen to compare.
    Good,
    /// It is not known.
    Unknown,
}

/// What is said in a second.
#[derive(Serialize)]
struct Said {
    at_s: u64,
    servers: Vec<SaidOf>,
}

#[derive(Serialize)]
struct SaidOf {
    name: String,
    severity: Severity,
    sentence: String,
    /// The incident that lasts.
    #[serde(skip_serializing_if = "Option::is_none")]
    incident: Option<i64>,
    /// When the path was looked at last.
    #[serde(skip_serializing_if = "Option::is_none")]
    looked_s: Option<u64>,
    /// How many requests its workers can serve at a time, by the last look.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<Limit>,
}

#[derive(Clone, Serialize)]
struct Limit {
    requests: f64,
    label: String,
    /// Whose workers.
    #[serde(skip)]
    tier: String,
}

/// A kind of place, and its name with `{tier}` for the tier's.
#[derive(Serialize)]
struct PlaceName {
    place: LedgerPlaceKind,
    label: String,
}

/// What never changes.
#[derive(Serialize)]
struct About<'a> {
    version: &'a str,
    host: &'a str,
    /// Kinds of places in the order in which a request passes them.
    places: Vec<PlaceName>,
}

/// What the last look at the path of a server found.
pub(super) struct PathLook {
    pub(super) at_s: u64,
    pub(super) diagnosis: Diagnosis,
    /// How many requests its workers can serve at a time.
    limit: Option<Limit>,
    /// An incident began since: it is not told below its headline.
    is_overtaken: bool,
}

/// A look as it is told.
#[derive(Serialize)]
struct ToldLook<'a> {
    at_s: u64,
    diagnosis: &'a Diagnosis,
    page: Value,
}

impl PathLook {
    pub(super) fn new(at_s: u64, diagnosis: Diagnosis, words: &Catalogue) -> Self {
        Self { at_s, limit: limit(&diagnosis, words), diagnosis, is_overtaken: false }
    }

    /// The use of the workers that the look counted, in a second of which no status page tells it: all are taken while as many requests again wait before them.
    fn pool_use(&self, second: &TargetSample) -> Option<(String, PoolUse)> {
        let Limit { requests, tier, .. } = self.limit.as_ref().filter(|_| second.pools.is_empty())?;
        let is_before = |place: LedgerPlaceKind| matches!(place, LedgerPlaceKind::AcceptQueue | LedgerPlaceKind::Unread);
        let before = second.places.iter().filter(|stood| stood.tier == *tier && is_before(stood.place));
        let waiting: f64 = before.map(|stood| second.mean_at(stood)).sum();
        let mean = |value: f64| Mean::of(Some(value), second.under_way.seconds);
        let active = if waiting >= *requests { *requests } else { 0.0 };
        Some((tier.clone(), PoolUse { active: mean(active), total: mean(*requests) }))
    }
}

/// What the last look at the path of each server found.
#[derive(Default)]
pub(super) struct Looks {
    by_server: BTreeMap<String, PathLook>,
    /// Something changed since they were taken.
    is_new: bool,
}

impl Looks {
    pub(super) fn get(&self, server: &str) -> Option<&PathLook> {
        self.by_server.get(server).filter(|look| !look.is_overtaken)
    }

    /// The use of the workers that the last look counted.
    pub(super) fn pool_use(&self, server: &str, second: &TargetSample) -> Option<(String, PoolUse)> {
        self.by_server.get(server)?.pool_use(second)
    }

    /// What was found before an incident is not told while it lasts.
    pub(super) fn overtake(&mut self, server: &str) {
        if let Some(look) = self.by_server.get_mut(server) {
            look.is_overtaken = true;
            self.is_new = true;
        }
    }

    pub(super) fn insert(&mut self, server: String, look: PathLook) {
        self.by_server.insert(server, look);
        self.is_new = true;
    }

    /// Forgets a look; true if there was one.
    pub(super) fn remove(&mut self, server: &str) -> bool {
        let is_gone = self.by_server.remove(server).is_some();
        self.is_new |= is_gone;
        is_gone
    }

    /// Keeps those of some servers.
    pub(super) fn retain(&mut self, is_kept: impl Fn(&String) -> bool) {
        self.by_server.retain(|name, _| is_kept(name));
    }

    /// The document of all, if something changed since the last call.
    pub(super) fn take_document(&mut self, words: &Catalogue) -> Option<String> {
        let told = |PathLook { at_s, diagnosis, .. }: &PathLook| {
            json(&ToldLook { at_s: *at_s, diagnosis, page: page::diagnosis::page(diagnosis, words).json() })
        };
        // One at a time: together they are large.
        let told_now = || self.by_server.iter().filter(|(_, look)| !look.is_overtaken);
        let document = || told_now().map(|(server, look)| format!("{}:{}", json(server), told(look))).collect::<Vec<_>>().join(",");
        std::mem::take(&mut self.is_new).then(|| format!("{{{}}}", document()))
    }
}

/// What is known of a server besides its last second.
#[derive(Clone, Copy, Default)]
pub(super) struct Known<'a> {
    /// The incident that lasts.
    pub(super) incident: Option<&'a Incident>,
    /// Enough was seen to compare with.
    pub(super) compares: bool,
    pub(super) look: Option<&'a PathLook>,
}

/// The document of what never changes.
pub(super) fn about(host: &str, words: &Catalogue) -> String {
    use LedgerPlaceKind::{
        AcceptQueue, Client, Connecting, Cpu, Handshake, Ready, Receiving, Sending, Throttled, TlsHandshake, Undecided, Unread, Waiting,
    };
    let places =
        [Client, Connecting, Handshake, TlsHandshake, AcceptQueue, Unread, Receiving, Cpu, Ready, Throttled, Waiting, Sending, Undecided];
    let named = |place| PlaceName { place, label: place_label("{tier}", place, Phrases(words)) };
    json(&About { version: env!("CARGO_PKG_VERSION"), host, places: places.map(named).into() })
}

/// The document of a second.
pub(super) fn said<'a>(look: &Look, known: impl Fn(&str) -> Known<'a>, words: &Catalogue) -> String {
    let of = |target: &TargetSample| {
        let known = known(&target.target);
        let (severity, sentence) = sentence(target, known, words);
        SaidOf {
            name: target.target.clone(),
            severity,
            sentence,
            incident: known.incident.map(|incident| incident.id),
            looked_s: known.look.map(|look| look.at_s),
            limit: known.look.and_then(|look| look.limit.clone()),
        }
    };
    json(&Said { at_s: look.at_s, servers: look.targets.iter().map(|target| of(&target.sample)).collect() })
}

fn sentence(target: &TargetSample, known: Known<'_>, words: &Catalogue) -> (Severity, String) {
    if let Some(incident) = known.incident {
        return (Severity::Bad, incident.headline.clone());
    }
    if let Some(look) = known.look.filter(|look| look.diagnosis.verdict == Verdict::Choked) {
        let choked = Message::new("watch-said-choked").with("summary", look.diagnosis.summary.as_str()).with("time", time(look.at_s));
        return (Severity::Bad, words.text(&choked));
    }
    let Some(under_way) = target.under_way.value() else {
        return (Severity::Unknown, words.text(&Message::new("watch-said-unseen")));
    };
    let (severity, id) = match (known.compares, under_way > 0.0 || target.rate.value().is_some_and(|rate| rate > 0.0)) {
        (_, false) => (Severity::Unknown, "watch-said-quiet"),
        (false, true) => (Severity::Unknown, "watch-said-learning"),
        (true, true) => (Severity::Good, "watch-said-good"),
    };
    let rate = rate(target.rate.value().map(|rate| Phrases(words).rounded(rate)));
    (severity, words.text(&Message::new(id).with("rate", rate).with("number", Phrases(words).rounded(under_way))))
}

/// The smallest pool of workers that serve one request at a time each.
fn limit(diagnosis: &Diagnosis, words: &Catalogue) -> Option<Limit> {
    let pools = diagnosis.path.iter().filter(|station| station.station == POOL && ONE_EACH.contains(&station.unit.as_str()));
    let smallest = pools.filter_map(|pool| Some((pool.limit?, &pool.tier))).min_by(|a, b| a.0.total_cmp(&b.0));
    let (requests, tier) = smallest?;
    let label = Message::new("watch-said-limit").with("number", Phrases(words).number(requests)).with("tier", tier.as_str());
    Some(Limit { requests, label: words.text(&label), tier: tier.clone() })
}

fn json(document: &impl Serialize) -> String {
    // Numbers, texts and maps by name: nothing of it cannot be written.
    serde_json::to_string(document).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn severity(under_way: Option<f64>, known: Known<'_>) -> Severity {
        let target = TargetSample { under_way: Mean::of(under_way, 1.0), rate: Mean::of(under_way, 1.0), ..TargetSample::default() };
        sentence(&target, known, &Catalogue::english()).0
    }

    #[test]
    fn good_is_only_said_of_what_was_seen_and_compared() {
        let compares = Known { compares: true, ..Known::default() };
        assert_eq!(severity(Some(3.0), compares), Severity::Good);
        assert_eq!(severity(Some(3.0), Known::default()), Severity::Unknown, "nothing to compare with");
        assert_eq!(severity(None, compares), Severity::Unknown, "not seen");
        assert_eq!(severity(Some(0.0), compares), Severity::Unknown, "no requests");
        let incident = Incident::began(chokepoint_recorder::drop::Drop::default(), "It is slow.".to_owned(), Vec::new());
        assert_eq!(severity(Some(3.0), Known { incident: Some(&incident), ..compares }), Severity::Bad);
    }

    #[test]
    fn a_look_is_not_told_below_an_incident_and_its_pool_is_still_known() {
        let words = Catalogue::english();
        let diagnosis = chokepoint_model::diagnose::diagnose(&chokepoint_model::observation::Observation::default(), &words);
        let limit = Limit { requests: 4.0, label: String::new(), tier: "php-fpm".to_owned() };
        let mut looks = Looks::default();
        looks.insert("a".to_owned(), PathLook { limit: Some(limit), ..PathLook::new(1, diagnosis, &words) });
        looks.overtake("a");
        assert!(looks.get("a").is_none() && looks.take_document(&words).as_deref() == Some("{}"));
        let second = |waiting: f64| TargetSample {
            under_way: Mean::of(Some(waiting + 4.0), 1.0),
            places: vec![chokepoint_recorder::Standing {
                tier: "php-fpm".to_owned(),
                place: LedgerPlaceKind::AcceptQueue,
                request_seconds: waiting,
            }],
            ..TargetSample::default()
        };
        let active = |waiting| looks.pool_use("a", &second(waiting)).and_then(|(_, pool)| pool.active.value());
        assert_eq!((active(8.0), active(1.0)), (Some(4.0), Some(0.0)));
    }

    #[test]
    fn each_kind_of_place_is_named_once() {
        let about: serde_json::Value = serde_json::from_str(&about("here", &Catalogue::english())).unwrap();
        let names = |part: &str| {
            let all = about["places"].as_array().unwrap().iter().map(|place| place[part].as_str().unwrap());
            all.collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!((names("place").len(), names("label").len(), about["host"].as_str()), (13, 13, Some("here")));
        assert!(names("label").contains("accept queue of {tier}"), "{:?}", names("label"));
    }
}
