//! Drops become incidents: each is diagnosed while it lasts, kept, and told.

use std::collections::BTreeMap;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;
use chokepoint_model::observation::Request;
use chokepoint_model::report::Diagnosis;
use chokepoint_model::surroundings::Surroundings;
use chokepoint_recorder::drop::{Against, Daily, Detector, Drop, Event, Kind};
use chokepoint_recorder::incident::{Change, Incident, State};
use chokepoint_recorder::{BusierProgram, GrownPlace, Sample};
use chokepoint_runs::{KeptProfiles, comparison};

use super::diagnosing::{self, Calm, Found};
use super::keeping::Keeping;
use super::saying::{Known, Looks, PathLook};
use super::seconds::Look;
use crate::report::view::ledger::place_label;
use crate::report::view::{Phrases, capitalized};
use crate::terminal::interrupt::Interrupt;

/// Seconds before a drop that its incident keeps.
const BEFORE_S: u64 = 120;
/// The days that are compared, with half an hour around.
const DAYS_S: u64 = 7 * 86_400 + 1_800;
/// Servers whose days are remembered, also while they are not watched.
const DAILY_MAX: usize = 64;
/// Time between two looks at the surroundings, while nothing is wrong.
const LOOK_PERIOD: Duration = Duration::from_secs(600);
/// Time between two profiles: naming the functions takes a second of CPU time.
const PROFILE_PERIOD: Duration = Duration::from_secs(3_600);
/// The first look comes after the observer's own first readings.
const LOOK_FIRST: Duration = Duration::from_secs(10);
/// How long a diagnosis is waited for once the user asked to stop: the rest of what may pass then is for the history.
const DIAGNOSIS_PATIENCE: Duration = Duration::from_millis(300);

/// The detectors, and the incidents that are not over.
pub(super) struct Incidents {
    interrupt: Interrupt,
    /// The second that was seen last.
    at_s: u64,
    detectors: BTreeMap<String, Detector>,
    /// Compare with the days before.
    daily: BTreeMap<String, Daily>,
    open: Vec<OpenIncident>,
    before: Before,
    looks: Looks,
    looking: Option<Looking>,
    look_due: Instant,
    profile_due: Instant,
}

/// A look at the surroundings of these servers.
struct Looking {
    names: Vec<String>,
    task: JoinHandle<Result<Calm, String>>,
}

/// What was seen while nothing was wrong.
#[derive(Default)]
struct Before {
    /// The surroundings of each server.
    surroundings: BTreeMap<String, Surroundings>,
    /// The CPU profile of the host.
    profile: Option<String>,
}

struct OpenIncident {
    incident: Incident,
    task: Option<JoinHandle<Result<Found, String>>>,
    /// It was told in this state.
    told: Option<State>,
}

impl Incidents {
    /// Of no server yet. The days before come from the history.
    pub(super) fn new(interrupt: &Interrupt, keeping: &Keeping, now_s: u64) -> Self {
        let mut daily: BTreeMap<String, Daily> = BTreeMap::new();
        keeping.each_minute(now_s.saturating_sub(DAYS_S), |minute| {
            for target in &minute.targets {
                daily.entry(target.target.clone()).or_insert_with(|| Daily::new(&target.target)).remember(minute.at_s, target);
            }
        });
        Self {
            daily,
            interrupt: interrupt.clone(),
            at_s: now_s,
            detectors: BTreeMap::new(),
            open: Vec::new(),
            before: Before::default(),
            looks: Looks::default(),
            looking: None,
            look_due: Instant::now() + LOOK_FIRST,
            profile_due: Instant::now(),
        }
    }

    /// Looks for drops in the last second.
    pub(super) fn see(&mut self, look: &Look, keeping: &mut Keeping, words: &Catalogue) {
        self.at_s = look.at_s;
        // Of a host whose servers come and go only those that are watched are remembered.
        let is_watched = |name: &String| look.targets.iter().any(|target| target.sample.target == *name);
        self.detectors.retain(|name, _| is_watched(name));
        self.looks.retain(is_watched);
        if self.daily.len() > DAILY_MAX {
            self.daily.retain(|name, _| is_watched(name));
        }
        // What was not measured is not gone.
        for target in look.targets.iter().filter(|target| target.is_measured()) {
            let name = &target.sample.target;
            let detector = self.detectors.entry(name.clone()).or_insert_with(|| Detector::new(name));
            let mut second = target.sample.clone();
            second.pools.extend(self.looks.pool_use(name, &second));
            match detector.add(look.at_s, &second) {
                Some(Event::Began(drop)) => self.begin(drop, &target.request, keeping, words),
                Some(Event::Ended { target, at_s, recovered }) => self.end(&target, Against::Minutes, at_s, recovered),
                None => {}
            }
        }
        if self.looking.is_none() && self.open.is_empty() && Instant::now() >= self.look_due {
            self.look_due = Instant::now() + LOOK_PERIOD;
            let there = look.targets.iter().filter(|target| target.is_there());
            let (names, requests) = there.map(|target| (target.sample.target.clone(), target.request.clone())).unzip();
            let profile = Instant::now() >= self.profile_due;
            if profile {
                self.profile_due = Instant::now() + PROFILE_PERIOD;
            }
            self.looking = diagnosing::between(requests, profile, &self.interrupt).map(|task| Looking { names, task });
        }
    }

    /// Looks for what became worse than on the days before.
    pub(super) fn see_minute(&mut self, minute: &Sample, look: &Look, keeping: &mut Keeping, words: &Catalogue) {
        let is_measured = |name: &str| look.targets.iter().any(|looked| looked.sample.target == name && looked.is_measured());
        for target in minute.targets.iter().filter(|target| is_measured(&target.target)) {
            let name = &target.target;
            let is_dropping = self.open.iter().any(|open| open.incident.drop.target == *name && open.incident.ended_s.is_none());
            let daily = self.daily.entry(name.clone()).or_insert_with(|| Daily::new(name));
            match daily.add(minute.at_s, target, is_dropping) {
                Some(Event::Began(drop)) => {
                    let watched = look.targets.iter().find(|looked| looked.sample.target == *name);
                    watched.into_iter().for_each(|watched| self.begin(drop.clone(), &watched.request, keeping, words));
                }
                Some(Event::Ended { target, at_s, recovered }) => self.end(&target, Against::Days, at_s, recovered),
                None => {}
            }
        }
    }

    fn begin(&mut self, drop: Drop, request: &Request, keeping: &mut Keeping, words: &Catalogue) {
        let headline = headline(&drop, None, words);
        let series = only(keeping.ring.between(drop.since_s.saturating_sub(BEFORE_S), u64::MAX), &drop.target);
        let request = Request { usual_ms: drop.before.response_ms, ..request.clone() };
        let mut incident = Incident::began(drop, headline, series);
        let task = diagnosing::during(&request, &self.interrupt);
        if task.is_none() {
            incident.diagnosed(Err("no thread could be started for the diagnosis".to_owned()));
        }
        keeping.keep_incident(&mut incident, None);
        // What was found before it would stand below its headline.
        self.looks.overtake(&incident.drop.target);
        self.open.push(OpenIncident { incident, task, told: None });
    }

    fn end(&mut self, target: &str, against: Against, at_s: u64, recovered: bool) {
        // The seconds end what began in them, whether a past was known to compare with or not.
        let is_daily = |against: Against| against == Against::Days;
        let is_its = |incident: &Incident| is_daily(incident.drop.against) == is_daily(against);
        let ends = |incident: &Incident| incident.drop.target == target && is_its(incident) && incident.ended_s.is_none();
        for open in self.open.iter_mut().filter(|open| ends(&open.incident)) {
            open.incident.ended(at_s, recovered);
        }
        // What was found during it holds no longer.
        if self.looks.remove(target) {
            self.look_due = self.look_due.min(Instant::now() + LOOK_FIRST);
        }
    }

    /// What is known of a server besides its last second.
    pub(super) fn known(&self, name: &str) -> Known<'_> {
        let lasts = |open: &&OpenIncident| open.incident.drop.target == name && open.incident.ended_s.is_none();
        Known {
            incident: self.open.iter().find(lasts).map(|open| &open.incident),
            compares: self.detectors.get(name).is_some_and(Detector::compares),
            look: self.looks.get(name),
        }
    }

    /// The document of what the last looks found, if there was one since the last call.
    pub(super) fn take_looks(&mut self, words: &Catalogue) -> Option<String> {
        self.looks.take_document(words)
    }

    /// Takes finished diagnoses, and returns the incidents that are to be told: when they are diagnosed, and when they are over.
    pub(super) fn advance(&mut self, keeping: &mut Keeping, words: &Catalogue) -> Vec<Incident> {
        if let Some(Looking { names, task }) = self.looking.take_if(|looking| looking.task.is_finished())
            && let Ok(Ok(calm)) = task.join()
        {
            self.before.surroundings.extend(names.iter().cloned().zip(calm.surroundings));
            let at_s = self.at_s;
            let looked = calm.diagnoses.into_iter().map(|diagnosis| PathLook::new(at_s, diagnosis, words));
            // A look that an incident overtook is older than its headline.
            let open = &self.open;
            let is_overtaken = |name: &String| open.iter().any(|open| open.incident.drop.target == *name);
            let looked: Vec<(String, PathLook)> = names.into_iter().zip(looked).filter(|(name, _)| !is_overtaken(name)).collect();
            looked.into_iter().for_each(|(name, look)| self.looks.insert(name, look));
            self.before.profile = calm.profile.or(self.before.profile.take());
        }
        let mut told = Vec::new();
        for open in &mut self.open {
            open.update(&self.detectors);
            let (recording, profile) = match open.take_diagnosis(&self.before, keeping, words) {
                Some(Taken { recording, profile, diagnosis }) => {
                    self.looks.insert(open.incident.drop.target.clone(), PathLook::new(self.at_s, diagnosis, words));
                    (Some(recording), Some(profile))
                }
                None => (None, None),
            };
            let is_new = open.told != Some(open.incident.state);
            if recording.is_some() || (is_new && open.incident.state != State::Diagnosing) {
                keeping.keep_incident(&mut open.incident, recording.as_deref());
            }
            if let Some(during) = profile.flatten() {
                keeping.keep_profiles(open.incident.id, KeptProfiles { before: self.before.profile.clone(), during });
            }
            if is_new && open.incident.is_told() {
                told.push(open.incident.clone());
            }
            open.told = Some(open.incident.state);
        }
        self.open.retain(|open| matches!(open.incident.state, State::Diagnosing | State::Open));
        told
    }

    /// True while something is being diagnosed.
    pub(super) fn are_diagnosing(&self) -> bool {
        self.open.iter().any(|open| open.task.as_ref().is_some_and(|task| !task.is_finished()))
    }

    /// Waits for the diagnoses under way, which an interrupt shortens: then for so long at most. Returns the incidents that are to be told. What lasts is closed in the
    /// history: nobody follows it any more.
    pub(super) fn finish(&mut self, keeping: &mut Keeping, words: &Catalogue) -> Vec<Incident> {
        let mut asked = None;
        while self.are_diagnosing() && asked.is_none_or(|asked: Instant| asked.elapsed() < DIAGNOSIS_PATIENCE) {
            std::thread::sleep(super::POLL);
            asked = asked.or_else(|| self.interrupt.is_set().then(Instant::now));
        }
        let told = self.advance(keeping, words);
        keeping.close_incidents();
        told
    }
}

/// What a diagnosis leaves besides what its incident says.
struct Taken {
    recording: Vec<u8>,
    profile: Option<String>,
    diagnosis: Diagnosis,
}

impl OpenIncident {
    /// Until it was diagnosed, its figures are those of the seconds so far.
    fn update(&mut self, detectors: &BTreeMap<String, Detector>) {
        let drop = &mut self.incident.drop;
        let now = detectors.get(&drop.target).and_then(Detector::drop_under_way);
        if let Some(now) = now.filter(|now| self.task.is_some() && now.since_s == drop.since_s && now.against == drop.against) {
            drop.during = now.during;
        }
    }

    /// Takes a diagnosis that has just finished.
    fn take_diagnosis(&mut self, before: &Before, keeping: &Keeping, words: &Catalogue) -> Option<Taken> {
        let task = self.task.take_if(|task| task.is_finished())?;
        let found = task.join().unwrap_or_else(|_| Err("the diagnosis stopped unexpectedly".to_owned()));
        let incident = &mut self.incident;
        let since_s = incident.drop.since_s.saturating_sub(BEFORE_S);
        incident.see(only(keeping.ring.between(since_s, u64::MAX), &incident.drop.target));
        let (result, taken, summary) = match found {
            Ok(found) => {
                incident.changes =
                    before.surroundings.get(&incident.drop.target).map(|before| changes(before, &found.surroundings)).unwrap_or_default();
                let summary = found.diagnosed.summary.clone();
                let Found { diagnosis, diagnosed, recording, profile, .. } = found;
                (Ok(diagnosed), Some(Taken { recording, profile, diagnosis }), summary)
            }
            Err(why) => (Err(why), None, String::new()),
        };
        incident.diagnosed(result);
        incident.headline = headline(&incident.drop, Some((incident, &summary)), words);
        taken
    }
}

/// The samples without other servers.
fn only<'a>(samples: impl Iterator<Item = &'a Sample>, target: &str) -> Vec<Sample> {
    let one =
        |sample: &Sample| Sample { targets: sample.target(target).cloned().into_iter().collect(), host: sample.host.clone(), ..*sample };
    samples.map(one).collect()
}

fn changes(before: &Surroundings, now: &Surroundings) -> Vec<Change> {
    let (differences, _) = comparison::surroundings(before, now);
    let change = |found: comparison::Difference| Change { of: found.group, name: found.name, before: found.earlier, now: found.later };
    differences.into_iter().filter(comparison::Difference::is_in_both).map(change).collect()
}

/// A place where more requests stand than before.
pub(crate) fn grown_place(grown: &GrownPlace, words: &Catalogue) -> Message {
    let place = place_label(&grown.tier, grown.place, Phrases(words));
    Message::new("watch-grown").with("place", place).with("during", grown.during).with("before", grown.before)
}

/// A program that uses more CPU time than before.
pub(crate) fn busier_program(busier: &BusierProgram) -> Message {
    let BusierProgram { program, before, during } = busier;
    Message::new("watch-busier").with("program", program.as_str()).with("during", *during).with("before", *before)
}

/// A title as a sentence.
fn sentence(title: &str) -> String {
    let end = if title.ends_with('.') { "" } else { "." };
    capitalized(title) + end
}

/// How many requests are refused or fail: a share only where it was counted how many were answered, and compared only with one that was.
fn losses(drop: &Drop) -> Message {
    let percent = |share: f64| (share * 1_000.0).round() / 10.0;
    let of = |id: &'static str| Message::new(id).with("target", drop.target.as_str());
    match (drop.during.bad_share, drop.before.bad_share) {
        (Some(share), Some(before)) => of("watch-drop-losses").with("share", percent(share)).with("before", percent(before)),
        (Some(share), None) => of("watch-drop-losses-now").with("share", percent(share)),
        (None, _) => of("watch-drop-losses-uncounted").with("number", drop.during.lost_per_s.unwrap_or_default().round()),
    }
}

/// The drop in one sentence, and its cause if that is known.
fn headline(drop: &Drop, diagnosed: Option<(&Incident, &str)>, words: &Catalogue) -> String {
    let (before, during) = (drop.before, drop.during);
    let ratio = |a: Option<f64>, b: Option<f64>| a.zip(b).filter(|(_, b)| *b > 0.0).map(|(a, b)| a / b);
    let what = match drop.kinds.first() {
        Some(Kind::Gone) => Message::new("watch-drop-gone").with("target", drop.target.as_str()),
        Some(Kind::Losses) => losses(drop),
        Some(Kind::Full) => Message::new("watch-drop-full").with("target", drop.target.as_str()),
        Some(Kind::Slower) | None => match ratio(during.response_ms, before.response_ms) {
            Some(times) => {
                let id = if drop.against == Against::Days { "watch-drop-slower-daily" } else { "watch-drop-slower" };
                Message::new(id).with("target", drop.target.as_str()).with("times", (times * 10.0).round() / 10.0)
            }
            // By how much is known only where both times are.
            None if during.rate_rps.is_some_and(|rate| rate > 0.0) => {
                Message::new("watch-drop-slower-somehow").with("target", drop.target.as_str())
            }
            None => Message::new("watch-drop-stalled").with("target", drop.target.as_str()),
        },
    };
    let what = words.text(&what);
    let Some((incident, summary)) = diagnosed else { return what };
    let cause = match (&incident.cause, &incident.undiagnosed) {
        (Some(cause), _) => sentence(&cause.title),
        (None, Some(why)) => words.text(&Message::new("watch-undiagnosed").with("why", why.as_str())),
        (None, None) => words.text(&Message::new("watch-no-cause").with("summary", summary)),
    };
    // Where nothing is wrong with the path, where the requests stand now and what took CPU time meanwhile are the best leads.
    let leads =
        incident.grown.first().map(|grown| grown_place(grown, words)).into_iter().chain(incident.busier.first().map(busier_program));
    let leads: String = leads
        .filter(|_| incident.cause.as_ref().is_none_or(|cause| cause.is_limit))
        .map(|lead| format!(" {}", words.text(&lead)))
        .collect();
    format!("{what} {cause}{leads}")
}

#[cfg(test)]
mod tests {
    use chokepoint_recorder::drop::Figures;
    use chokepoint_recorder::incident::Cause;

    use super::*;

    #[test]
    fn requests_that_are_answered_are_not_told_as_unanswered() {
        let words = Catalogue::english();
        let told = |rate_rps, before_ms, during_ms| {
            let of = |response_ms| Figures { rate_rps: Some(rate_rps), response_ms, ..Figures::default() };
            let drop = Drop {
                target: "nginx:80".to_owned(),
                since_s: 0,
                kinds: vec![Kind::Slower],
                against: Against::Minutes,
                before: of(before_ms),
                during: of(during_ms),
            };
            headline(&drop, None, &words)
        };
        assert_eq!(told(500.0, Some(4.0), Some(10.0)), "nginx:80: a request takes 2.5 times as long as before.");
        assert_eq!(told(500.0, Some(0.0), Some(10.0)), "nginx:80: requests take longer than before.");
        assert_eq!(told(500.0, None, None), "nginx:80: requests take longer than before.");
        assert_eq!(told(0.0, Some(4.0), None), "nginx:80: requests wait and none is answered.");
    }

    /// Requests are refused, and how many are answered was not read: no share follows, and the cause is the one that the incident has.
    #[test]
    fn a_headline_names_the_cause_of_its_incident() {
        let words = Catalogue::english();
        let drop = Drop {
            target: "gunicorn:8000".to_owned(),
            since_s: 0,
            kinds: vec![Kind::Losses],
            against: Against::Minutes,
            before: Figures::default(),
            during: Figures { lost_per_s: Some(678.0), ..Figures::default() },
        };
        let mut incident = Incident::began(drop.clone(), String::new(), Vec::new());
        let title = "all 8 threads of gunicorn are taken".to_owned();
        incident.cause = Some(Cause { id: "worker-pool-exhausted".to_owned(), is_limit: false, title });
        let told = headline(&drop, Some((&incident, "a summary")), &words);
        assert!(told.contains("at least 678") && told.ends_with("All 8 threads of gunicorn are taken."), "{told}");
        assert!(!told.contains('%') && !told.contains("a summary"), "{told}");
    }
}
