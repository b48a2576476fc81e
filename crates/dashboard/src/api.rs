//! What each path answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use chokepoint_recorder::{Level, Sample};
use hyper::StatusCode;
use serde::Serialize;

use crate::accept::Format;
use crate::board::Board;
use crate::metrics;

/// Name and version of a document with samples.
const SERIES: &str = "chokepoint/series/1";
/// Most samples of one answer.
const SAMPLES_MAX: u32 = 5_000;

/// What is kept on disk.
pub trait Archive: Send + Sync {
    /// The samples of a length that began in a span (seconds since 1970, the end excluded) as JSON documents, the newest `most` of them.
    ///
    /// # Errors
    /// Why they cannot be read.
    fn samples(&self, span_s: u32, from_s: u64, to_s: u64, most: u32) -> Result<Vec<String>, String>;

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
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) media_type: &'static str,
    pub(crate) body: String,
}

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

#[derive(Serialize)]
struct Series<'a> {
    schema: &'static str,
    samples: Vec<&'a Sample>,
}

/// The answer to a path with its query. `format`: of the metrics.
pub(crate) fn answer(path: &str, query: &str, format: Format, now_s: u64, board: &Arc<Board>, archive: &dyn Archive) -> Answer {
    match path {
        "/" => ok(
            TEXT,
            "chokepoint watch: /metrics, /api/v1/now, /api/v1/series?ago_s=3600, /api/v1/incidents, /api/v1/incidents/1\n".to_owned(),
        ),
        "/healthz" => ok(TEXT, "ok\n".to_owned()),
        "/metrics" => ok(format.media_type(), metrics::render(board, format)),
        "/api/v1/now" => {
            let state = board.state();
            json(&Series { schema: SERIES, samples: state.newest.iter().collect() })
        }
        "/api/v1/series" => series(query, now_s, archive),
        "/api/v1/incidents" => kept(archive.incidents().map(Some)),
        _ => match path.strip_prefix("/api/v1/incidents/").map(str::parse) {
            Some(Ok(id)) => kept(archive.incident(id)),
            _ => error(StatusCode::NOT_FOUND, "there is nothing at this path"),
        },
    }
}

/// The samples of a span: `from_s` and `to_s` (seconds since 1970), or `ago_s`; `span_s` 1, 10 or 60, by default the finest that is kept that long.
fn series(query: &str, now_s: u64, archive: &dyn Archive) -> Answer {
    let mut given: BTreeMap<&str, u64> = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let Some((name, value)) = pair.split_once('=').and_then(|(name, value)| Some((name, value.parse().ok()?))) else {
            return error(StatusCode::BAD_REQUEST, "a parameter is no number");
        };
        if !["from_s", "to_s", "ago_s", "span_s"].contains(&name) {
            return error(StatusCode::BAD_REQUEST, "the parameters are from_s, to_s, ago_s and span_s");
        }
        given.insert(name, value);
    }
    let to_s = given.get("to_s").copied().unwrap_or(u64::MAX);
    let ago = given.get("ago_s").map(|ago_s| now_s.saturating_sub(*ago_s));
    let from_s = given.get("from_s").copied().or(ago).unwrap_or(now_s.saturating_sub(600));
    let span_s = match given.get("span_s") {
        None => Level::reaching(now_s.saturating_sub(from_s)).span_s,
        Some(span_s) => match Level::ALL.iter().find(|level| u64::from(level.span_s) == *span_s) {
            Some(level) => level.span_s,
            None => return error(StatusCode::BAD_REQUEST, "span_s is 1, 10 or 60"),
        },
    };
    match archive.samples(span_s, from_s, to_s, SAMPLES_MAX) {
        Ok(samples) => ok(JSON, format!("{{\"schema\":\"{SERIES}\",\"samples\":[{}]}}\n", samples.join(","))),
        Err(why) => error(StatusCode::INTERNAL_SERVER_ERROR, &why),
    }
}

fn kept(document: Result<Option<String>, String>) -> Answer {
    match document {
        Ok(Some(document)) => ok(JSON, document + "\n"),
        Ok(None) => error(StatusCode::NOT_FOUND, "there is no such incident"),
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
    Answer { status: StatusCode::OK, media_type, body }
}

pub(crate) fn error(status: StatusCode, why: &str) -> Answer {
    Answer { status, media_type: JSON, body: format!("{}\n", serde_json::json!({ "error": why })) }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Kept;

    impl Archive for Kept {
        fn samples(&self, span_s: u32, from_s: u64, to_s: u64, most: u32) -> Result<Vec<String>, String> {
            Ok(vec![format!("[{span_s},{from_s},{to_s},{most}]")])
        }

        fn incidents(&self) -> Result<String, String> {
            Err("the disk is gone".to_owned())
        }

        fn incident(&self, id: i64) -> Result<Option<String>, String> {
            Ok((id == 3).then(|| "{\"id\":3}".to_owned()))
        }
    }

    fn get(path: &str, query: &str) -> (u16, String) {
        let answer = answer(path, query, Format::OpenMetrics, 1_000_000, &Arc::new(Board::default()), &Kept);
        (answer.status.as_u16(), answer.body)
    }

    #[test]
    fn a_series_comes_from_the_level_that_reaches_back() {
        assert_eq!(
            get("/api/v1/series", "ago_s=60").1,
            format!("{{\"schema\":\"{SERIES}\",\"samples\":[[1,999940,{},5000]]}}\n", u64::MAX)
        );
        assert!(get("/api/v1/series", "from_s=990000&to_s=991000").1.contains("[10,990000,991000,5000]"));
        assert!(get("/api/v1/series", "ago_s=90000").1.contains("[60,910000"));
        assert!(get("/api/v1/series", "ago_s=90000&span_s=10").1.contains("[10,910000"));
        for query in ["span_s=2", "ago_s=x", "ago_s", "x=1", "ago_s=99999999999999999999999"] {
            assert_eq!(get("/api/v1/series", query).0, 400, "{query}");
        }
    }

    #[test]
    fn each_path_has_its_answer() {
        assert_eq!(get("/api/v1/now", "").1, format!("{{\"schema\":\"{SERIES}\",\"samples\":[]}}\n"));
        assert_eq!(get("/api/v1/incidents/3", ""), (200, "{\"id\":3}\n".to_owned()));
        assert_eq!([get("/api/v1/incidents/4", "").0, get("/api/v1/incidents/x", "").0, get("/../etc/passwd", "").0], [404, 404, 404]);
        assert_eq!(get("/api/v1/incidents", ""), (500, "{\"error\":\"the disk is gone\"}\n".to_owned()));
        assert_eq!((get("/healthz", "").0, get("/metrics", "").1.ends_with("# EOF\n")), (200, true));
    }
}
