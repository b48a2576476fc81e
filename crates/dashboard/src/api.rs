//! What each path answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use chokepoint_recorder::{Level, ResponseTimes, Sample};
use hyper::StatusCode;
use serde::Serialize;

use crate::accept::Format;
use crate::amplify;
use crate::board::Board;
use crate::explain;
use crate::freshness::Freshness;
use crate::metrics;

/// Name and version of a document with samples.
const SERIES: &str = "chokepoint/series/1";
/// Most samples of one answer.
const SAMPLES_MAX: u32 = 5_000;

/// Where a sample stands in what is kept: when it began (seconds since 1970), and its number.
pub type Place = (i64, i64);

/// What is kept on disk.
pub trait Archive: Send + Sync {
    /// Where the newest `most` samples of a length begin that began in a span (seconds since 1970, the end excluded).
    ///
    /// # Errors
    /// Why they cannot be read.
    fn begin(&self, span_s: u32, from_s: u64, to_s: u64, most: u32) -> Result<Place, String>;

    /// Gives the samples of a length from a place on as JSON documents, each with the place of the next one, until `give` wants no more.
    ///
    /// # Errors
    /// Why they cannot be read.
    fn samples(&self, span_s: u32, from: Place, to_s: u64, give: &mut dyn FnMut(Place, String) -> bool) -> Result<(), String>;

    /// The kept incidents as one JSON document.
    ///
    /// # Errors
    /// Why they cannot be read.
    fn incidents(&self) -> Result<String, String>;

    /// An incident as a JSON document; nothing if there is none.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn incident(&self, id: i64) -> Result<Option<String>, String>;

    /// The CPU profiles of an incident, and of the last look before it, as folded stacks; nothing if none was taken.
    ///
    /// # Errors
    /// Why they cannot be read.
    fn profiles(&self, id: i64) -> Result<Option<Profiles>, String>;

    /// The page with the flame graph of an incident, against the last look before it; nothing if no profile was taken.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn flame(&self, id: i64) -> Result<Option<String>, String>;

    /// The kept runs as one JSON document, the newest first.
    ///
    /// # Errors
    /// Why they cannot be read.
    fn runs(&self) -> Result<String, String>;

    /// A run with its document as a JSON document; nothing if there is none.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn run(&self, id: i64) -> Result<Option<String>, String>;

    /// The page of a run compared with an earlier one; nothing if there is no such run.
    ///
    /// # Errors
    /// Why it cannot be read, or that no run can be compared with it.
    fn comparison(&self, id: i64) -> Result<Option<String>, String>;
}

/// CPU profiles as folded stacks: a line for each stack, its frames with semicolons between them, a blank, and the number of samples.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Profiles {
    /// While nothing was wrong.
    pub before: Option<String>,
    /// During the incident.
    pub during: String,
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) media_type: &'static str,
    pub(crate) body: Content,
    /// Of what is measured, when this was answered; nothing where it says nothing about that.
    pub(crate) freshness: Option<Freshness>,
}

/// The content of an answer.
pub(crate) enum Content {
    Text(String),
    /// Too long to be held.
    Samples(Walk),
}

/// Samples with a text in front of them and one behind them, and commas between them.
#[derive(Debug, Clone)]
pub(crate) struct Walk {
    pub(crate) head: String,
    pub(crate) span_s: u32,
    pub(crate) from: Place,
    pub(crate) to_s: u64,
    pub(crate) tail: String,
}

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

#[derive(Serialize)]
struct Series<'a> {
    schema: &'static str,
    #[serde(flatten)]
    freshness: Freshness,
    samples: Vec<&'a Sample>,
}

/// The answer to a path with its query, and how old what is measured is. `format`: of the metrics.
pub(crate) fn answer(path: &str, query: &str, format: Format, now_s: u64, board: &Arc<Board>, archive: &dyn Archive) -> Answer {
    let answer = content(path, query, format, now_s, board, archive);
    Answer { freshness: Some(board.freshness()), ..answer }
}

fn content(path: &str, query: &str, format: Format, now_s: u64, board: &Arc<Board>, archive: &dyn Archive) -> Answer {
    match path {
        "/" => ok(
            TEXT,
            "chokepoint watch: /metrics, /api/v1/now, /api/v1/series?ago_s=3600, /api/v1/sum?ago_s=60, /api/v1/amplify, /api/v1/incidents, /api/v1/incidents/1, /api/v1/incidents/1/profiles, /api/v1/incidents/1/flame, /api/v1/live, /api/v1/looks, /api/v1/runs, /api/v1/runs/1, /api/v1/runs/1/comparison, /api/v1/explain, /api/v1/explain/worker-pool\n"
                .to_owned(),
        ),
        "/healthz" => health(board.freshness()),
        "/metrics" => ok(format.media_type(), metrics::render(board, format)),
        "/api/v1/about" => ok(JSON, board.state().about.to_string() + "\n"),
        "/api/v1/looks" => ok(JSON, board.state().looks.to_string() + "\n"),
        "/api/v1/now" => {
            let (freshness, state) = (board.freshness(), board.state());
            json(&Series { schema: SERIES, freshness, samples: state.newest.iter().collect() })
        }
        "/api/v1/amplify" => {
            let values = amplify::values(&board.state());
            let numbers = |values: BTreeMap<_, amplify::Value>| values.into_iter().map(|(name, value)| (name, value.number)).collect::<BTreeMap<_, _>>();
            json(&values.into_iter().map(|(server, values)| (server, numbers(values))).collect::<BTreeMap<_, _>>())
        }
        "/api/v1/series" => samples(query, now_s, archive, |walk| series(board.freshness(), walk)),
        "/api/v1/sum" => samples(query, now_s, archive, |walk| sum(board.freshness(), &walk, archive)),
        "/api/v1/incidents" => kept(archive.incidents().map(Some)),
        "/api/v1/runs" => kept(archive.runs().map(Some)),
        "/api/v1/explain" => json(&explain::all()),
        _ => below(path, archive).unwrap_or_else(|| error(StatusCode::NOT_FOUND, "there is nothing at this path")),
    }
}

/// What a path with a name in it answers.
fn below(path: &str, archive: &dyn Archive) -> Option<Answer> {
    if let Some(id) = path.strip_prefix("/api/v1/explain/") {
        return explain::one(id).map(|page| json(&page));
    }
    if let Some(rest) = path.strip_prefix("/api/v1/runs/") {
        return match rest.strip_suffix("/comparison") {
            Some(id) => id.parse().ok().map(|id| kept(archive.comparison(id))),
            None => rest.parse().ok().map(|id| kept(archive.run(id))),
        };
    }
    let rest = path.strip_prefix("/api/v1/incidents/")?;
    let (id, part) = rest.split_once('/').map_or((rest, None), |(id, part)| (id, Some(part)));
    let id = id.parse().ok()?;
    match part {
        None => Some(kept(archive.incident(id))),
        Some("profiles") => Some(profiled(archive.profiles(id).map(|profiles| profiles.as_ref().map(json)))),
        Some("flame") => Some(profiled(archive.flame(id).map(|page| page.map(|page| ok(JSON, page + "\n"))))),
        Some(_) => None,
    }
}

/// A span of time and the length of its samples.
struct Span {
    span_s: u32,
    from_s: u64,
    to_s: u64,
}

impl Span {
    /// From a query: `from_s` and `to_s` (seconds since 1970), or `ago_s`; `span_s` 1, 10 or 60, by default the finest that is kept that long.
    fn of(query: &str, now_s: u64) -> Result<Self, &'static str> {
        let mut given: BTreeMap<&str, u64> = BTreeMap::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let number = pair.split_once('=').and_then(|(name, value)| Some((name, value.parse().ok()?)));
            let (name, value) = number.ok_or("a parameter is no number")?;
            if !["from_s", "to_s", "ago_s", "span_s"].contains(&name) {
                return Err("the parameters are from_s, to_s, ago_s and span_s");
            }
            given.insert(name, value);
        }
        let to_s = given.get("to_s").copied().unwrap_or(u64::MAX);
        let ago = given.get("ago_s").map(|ago_s| now_s.saturating_sub(*ago_s));
        let from_s = given.get("from_s").copied().or(ago).unwrap_or(now_s.saturating_sub(600));
        let level = match given.get("span_s") {
            None => Level::reaching(now_s.saturating_sub(from_s)),
            Some(span_s) => *Level::ALL.iter().find(|level| u64::from(level.span_s) == *span_s).ok_or("span_s is 1, 10 or 60")?,
        };
        Ok(Self { span_s: level.span_s, from_s, to_s })
    }
}

/// What `shown` makes of the samples of a span.
fn samples(query: &str, now_s: u64, archive: &dyn Archive, shown: impl FnOnce(Walk) -> Answer) -> Answer {
    let span = match Span::of(query, now_s) {
        Ok(span) => span,
        Err(why) => return error(StatusCode::BAD_REQUEST, why),
    };
    let Span { span_s, from_s, to_s } = span;
    match archive.begin(span_s, from_s, to_s, SAMPLES_MAX) {
        Ok(from) => shown(Walk { head: String::new(), span_s, from, to_s, tail: String::new() }),
        Err(why) => error(StatusCode::INTERNAL_SERVER_ERROR, &why),
    }
}

/// Whether anything is measured, as programs that start others again ask.
fn health(freshness: Freshness) -> Answer {
    if !freshness.stale {
        return ok(TEXT, "ok\n".to_owned());
    }
    let body = format!("nothing was measured for {:.0} s\n", freshness.age_s);
    Answer { status: StatusCode::SERVICE_UNAVAILABLE, ..ok(TEXT, body) }
}

/// Kept samples are JSON already: they are set in as they are.
fn series(freshness: Freshness, walk: Walk) -> Answer {
    match serde_json::to_string(&Series { schema: SERIES, freshness, samples: Vec::new() }) {
        Ok(empty) => {
            let walk = Walk { head: empty.trim_end_matches("]}").to_owned(), tail: "]}\n".to_owned(), ..walk };
            Answer { body: Content::Samples(walk), ..ok(JSON, String::new()) }
        }
        Err(failure) => error(StatusCode::INTERNAL_SERVER_ERROR, &failure.to_string()),
    }
}

/// The samples of a span added up to one, with the response times of the whole span. One is held at a time.
fn sum(freshness: Freshness, walk: &Walk, archive: &dyn Archive) -> Answer {
    let mut all: Option<Sample> = None;
    let read = archive.samples(walk.span_s, walk.from, walk.to_s, &mut |_, sample| {
        if let Ok(sample) = serde_json::from_str::<Sample>(&sample) {
            match &mut all {
                Some(sum) => {
                    sum.span_s = sum.span_s.saturating_add(sample.span_s);
                    sum.merge(&sample);
                }
                None => all = Some(sample),
            }
        }
        true
    });
    if let Err(why) = read {
        return error(StatusCode::INTERNAL_SERVER_ERROR, &why);
    }
    if let Some(sum) = &mut all {
        sum.targets.iter_mut().for_each(|target| target.response = ResponseTimes::of(target));
    }
    json(&Series { schema: SERIES, freshness, samples: all.iter().collect() })
}

fn kept(document: Result<Option<String>, String>) -> Answer {
    match document {
        Ok(Some(document)) => ok(JSON, document + "\n"),
        Ok(None) => error(StatusCode::NOT_FOUND, "nothing of this number is kept"),
        Err(why) => error(StatusCode::INTERNAL_SERVER_ERROR, &why),
    }
}

/// The answer about the profile of an incident.
fn profiled(answer: Result<Option<Answer>, String>) -> Answer {
    match answer {
        Ok(Some(answer)) => answer,
        Ok(None) => error(StatusCode::NOT_FOUND, "no profile was taken of this incident"),
        Err(why) => error(StatusCode::INTERNAL_SERVER_ERROR, &why),
    }
}

fn json(document: &impl Serialize) -> Answer {
    match serde_json::to_string(document) {
        Ok(text) => ok(JSON, text + "\n"),
        Err(failure) => error(StatusCode::INTERNAL_SERVER_ERROR, &failure.to_string()),
    }
}

fn ok(media_type: &'static str, body: String) -> Answer {
    Answer { status: StatusCode::OK, media_type, body: Content::Text(body), freshness: None }
}

pub(crate) fn error(status: StatusCode, why: &str) -> Answer {
    Answer { status, media_type: JSON, body: Content::Text(format!("{}\n", serde_json::json!({ "error": why }))), freshness: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples of a sum, if there are any.
    #[derive(Default)]
    struct Kept(Vec<String>);

    impl Archive for Kept {
        fn begin(&self, _: u32, from_s: u64, _: u64, most: u32) -> Result<Place, String> {
            Ok((from_s.cast_signed(), most.into()))
        }

        fn samples(&self, span_s: u32, from: Place, to_s: u64, give: &mut dyn FnMut(Place, String) -> bool) -> Result<(), String> {
            let asked = format!("[{span_s},{},{to_s},{}]", from.0, from.1);
            let samples = if self.0.is_empty() { vec![asked] } else { self.0.clone() };
            samples.into_iter().take_while(|sample| give(from, sample.clone())).for_each(drop);
            Ok(())
        }

        fn incidents(&self) -> Result<String, String> {
            Err("the disk is gone".to_owned())
        }

        fn incident(&self, id: i64) -> Result<Option<String>, String> {
            Ok((id == 3).then(|| "{\"id\":3}".to_owned()))
        }

        fn runs(&self) -> Result<String, String> {
            Ok("{\"runs\":[]}".to_owned())
        }

        fn run(&self, id: i64) -> Result<Option<String>, String> {
            Ok((id == 2).then(|| "{\"run\":{}}".to_owned()))
        }

        fn comparison(&self, id: i64) -> Result<Option<String>, String> {
            if id == 2 { Err("no other run".to_owned()) } else { Ok(None) }
        }

        fn profiles(&self, id: i64) -> Result<Option<Profiles>, String> {
            Ok((id == 3).then(|| Profiles { before: None, during: "nginx;main 3\n".to_owned() }))
        }

        fn flame(&self, id: i64) -> Result<Option<String>, String> {
            Ok((id == 3).then(|| "{\"sections\":[]}".to_owned()))
        }
    }

    fn get(path: &str, query: &str) -> (u16, String) {
        let answer = answer(path, query, Format::OpenMetrics, 1_000_000, &Arc::new(Board::default()), &Kept::default());
        (answer.status.as_u16(), whole(answer.body))
    }

    fn whole(content: Content) -> String {
        match content {
            Content::Text(text) => text,
            Content::Samples(Walk { head, span_s, from, to_s, tail }) => {
                let mut samples = Vec::new();
                let give = &mut |_, sample| {
                    samples.push(sample);
                    true
                };
                Kept::default().samples(span_s, from, to_s, give).unwrap();
                format!("{head}{}{tail}", samples.join(","))
            }
        }
    }

    /// The samples of an answer, as JSON.
    fn samples_of(answer: &str) -> String {
        let document: serde_json::Value = serde_json::from_str(answer).unwrap();
        assert_eq!(
            (&document["schema"], &document["newest_s"], &document["stale"]),
            (&SERIES.into(), &serde_json::Value::Null, &false.into())
        );
        document["samples"].to_string()
    }

    #[test]
    fn each_answer_says_how_old_what_is_measured_is() {
        for (age_s, stale) in [(0, false), (8, true)] {
            let board = crate::metrics::tests::board_of(std::time::Duration::from_secs(age_s));
            let get = |path: &str| answer(path, "", Format::OpenMetrics, 1_000_000, &board, &Kept::default());
            for path in ["/api/v1/now", "/api/v1/series", "/api/v1/sum"] {
                let document: serde_json::Value = serde_json::from_str(&whole(get(path).body)).unwrap();
                assert_eq!((&document["newest_s"], &document["stale"]), (&(10 - age_s).into(), &stale.into()), "{path} {document}");
                assert!(document["age_s"].as_f64().unwrap() >= age_s as f64, "{document}");
            }
            for path in ["/metrics", "/api/v1/looks", "/api/v1/amplify", "/api/v1/incidents/3", "/nothing"] {
                assert_eq!(get(path).freshness.map(|freshness| freshness.stale), Some(stale), "{path}");
            }
            let health = get("/healthz");
            assert_eq!(
                (health.status.as_u16(), whole(health.body).contains("nothing was measured for 8 s")),
                (if stale { 503 } else { 200 }, stale)
            );
        }
    }

    #[test]
    fn a_series_comes_from_the_level_that_reaches_back() {
        assert_eq!(samples_of(&get("/api/v1/series", "ago_s=60").1), format!("[[1,999940,{},5000]]", u64::MAX));
        assert!(get("/api/v1/series", "from_s=990000&to_s=991000").1.contains("[10,990000,991000,5000]"));
        assert!(get("/api/v1/series", "ago_s=90000").1.contains("[60,910000"));
        assert!(get("/api/v1/series", "ago_s=90000&span_s=10").1.contains("[10,910000"));
        for query in ["span_s=2", "ago_s=x", "ago_s", "x=1", "ago_s=99999999999999999999999"] {
            assert_eq!(get("/api/v1/series", query).0, 400, "{query}");
        }
    }

    #[test]
    fn a_sum_adds_up_and_leaves_out_what_is_no_sample() {
        let second = |at_s: u64| {
            format!("{{\"at_s\":{at_s},\"span_s\":1,\"targets\":[{{\"target\":\"t\",\"under_way\":[3.0,1.0],\"rate\":[2.0,1.0]}}]}}")
        };
        let kept = Kept(vec![second(5), "[1]".to_owned(), second(6)]);
        let sum = whole(answer("/api/v1/sum", "", Format::Text, 1_000_000, &Arc::new(Board::default()), &kept).body);
        assert!(sum.contains("\"at_s\":5,\"span_s\":2") && sum.contains("\"under_way\":[6.0,2.0],\"rate\":[4.0,2.0]"), "{sum}");
        assert_eq!(samples_of(&get("/api/v1/sum", "ago_s=60").1), "[]");
    }

    #[test]
    fn each_path_has_its_answer() {
        assert_eq!(samples_of(&get("/api/v1/now", "").1), "[]");
        assert_eq!(get("/api/v1/incidents/3", ""), (200, "{\"id\":3}\n".to_owned()));
        assert_eq!(get("/api/v1/incidents/3/profiles", ""), (200, "{\"before\":null,\"during\":\"nginx;main 3\\n\"}\n".to_owned()));
        assert_eq!(get("/api/v1/incidents/3/flame", ""), (200, "{\"sections\":[]}\n".to_owned()));
        assert_eq!(
            [get("/api/v1/incidents/4/profiles", "").0, get("/api/v1/incidents/4/flame", "").0, get("/api/v1/incidents/3/x", "").0],
            [404; 3]
        );
        assert_eq!([get("/api/v1/incidents/4", "").0, get("/api/v1/incidents/x", "").0, get("/../etc/passwd", "").0], [404, 404, 404]);
        assert_eq!(get("/api/v1/incidents", ""), (500, "{\"error\":\"the disk is gone\"}\n".to_owned()));
        assert_eq!(
            (get("/api/v1/runs", "").0, get("/api/v1/runs/2", "").0, get("/api/v1/runs/3", "").0, get("/api/v1/runs/x", "").0),
            (200, 200, 404, 404)
        );
        assert_eq!([get("/api/v1/runs/2/comparison", "").0, get("/api/v1/runs/3/comparison", "").0], [500, 404]);
        assert!(
            get("/api/v1/explain", "").1.contains("\"id\":\"worker-pool\"")
                && get("/api/v1/explain/worker-pool", "").1.contains("\"sections\":[{")
        );
        assert_eq!(get("/api/v1/explain/none", "").0, 404);
        assert_eq!((get("/healthz", "").0, get("/metrics", "").1.ends_with("# EOF\n")), (200, true));
    }
}
