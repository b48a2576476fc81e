//! A report as a page: what stands on it, in words and figures. `ui/src/report.tsx` draws it: in the files of `--html`, and in the page of `watch`. This module judges
//! nothing, and the page words nothing.

pub(crate) mod comparison;
pub(crate) mod diagnosis;
mod escape;
pub(crate) mod experiment;
pub(crate) mod file;
pub(crate) mod flame;
pub(crate) mod size;

#[cfg(test)]
mod tests;

use chokepoint_model::report::{LedgerPlaceKind, StationState};
use serde::Serialize;
use serde_json::Value;

use super::plot::Plot;
use super::plot::heatmap::HeatMap;
use super::view::experiment::Table;
use super::view::{Ink, Phrases, Span, span, steers};

/// A page.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct ReportPage {
    /// Title of the window.
    pub(crate) title: String,
    /// What kind of report it is.
    pub(crate) brand: String,
    /// What it is about.
    pub(crate) subject: String,
    /// The answers, the most important first.
    pub(crate) verdicts: Vec<Answer>,
    pub(crate) sections: Vec<Section>,
    /// When and where it was measured.
    pub(crate) footer: Vec<String>,
}

/// A verdict or another answer to what was asked.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Answer {
    pub(crate) severity: Severity,
    /// One or two words; empty for none.
    pub(crate) word: String,
    pub(crate) text: String,
    /// What was done for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) done: Option<String>,
}

/// How bad an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Severity {
    Bad,
    Good,
    Unknown,
}

/// A part of a page.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Section {
    /// Unique in the page.
    pub(crate) id: String,
    pub(crate) heading: String,
    pub(crate) blocks: Vec<Block>,
}

impl Section {
    /// Nothing without contents.
    pub(crate) fn of(id: &str, heading: impl Into<String>, blocks: Vec<Block>) -> Option<Self> {
        (!blocks.is_empty()).then(|| Self { id: id.to_owned(), heading: heading.into(), blocks })
    }
}

/// Something that a page shows.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Block {
    /// A paragraph. Commands stand between backticks.
    Text { text: String, ink: Ink },
    /// A list.
    List { lines: Vec<Vec<Span>> },
    /// Names with what they stand for.
    Terms { rows: Vec<(String, Vec<Span>)> },
    /// Key figures: name and value.
    Tiles { tiles: Vec<(String, String)> },
    /// A table. Columns of figures are aligned to the right.
    Table { head: Vec<Column>, rows: Vec<Vec<Span>> },
    /// Where requests stood.
    Standing { places: Vec<Place> },
    /// The path of a request.
    Path { tiers: Vec<Tier> },
    /// Chains from cause to symptom, in the order of lines.
    Chain { links: Vec<Link>, words: String },
    /// A finding.
    Finding(Box<Finding>),
    /// Bars below each other.
    Bars { title: String, bars: Vec<Bar> },
    /// A plot.
    Plot(Plot),
    /// A figure by two factors.
    Matrix { map: HeatMap, shades: Vec<Vec<Option<f64>>> },
    /// A flame graph.
    Flame { graph: Value },
    /// A long text that is folded.
    Folded { heading: String, text: String },
}

/// A column of a table.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) is_figure: bool,
}

/// A place with the requests that stood there.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Place {
    pub(crate) label: String,
    /// Its kind, which decides the colour; nothing for the rest.
    pub(crate) place: Option<LedgerPlaceKind>,
    /// The mean number of requests there, in words.
    pub(crate) mean: String,
    /// 0 to 1.
    pub(crate) share: f64,
    pub(crate) ink: Ink,
}

/// A tier of the path.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Tier {
    pub(crate) name: String,
    pub(crate) facts: String,
    pub(crate) stations: Vec<Station>,
}

/// A station of the path.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Station {
    /// Its id.
    pub(crate) station: String,
    /// Id and place.
    pub(crate) label: String,
    pub(crate) state: StationState,
    pub(crate) is_choke: bool,
    pub(crate) badge: Option<Span>,
    pub(crate) notes: Vec<Span>,
    pub(crate) why: String,
    /// Share of its limit that is used, 0 to 1 and more; nothing if it is not known.
    pub(crate) utilization: Option<f64>,
    /// The most requests a second that it can pass.
    pub(crate) ceiling_rps: Option<f64>,
    /// Numbers of its findings.
    pub(crate) findings: Vec<usize>,
}

/// A line of a chain.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Link {
    /// How many causes are above it.
    pub(crate) level: usize,
    /// Number of the finding; nothing for a station.
    pub(crate) number: Option<usize>,
    pub(crate) id: String,
    pub(crate) note: String,
    pub(crate) ink: Ink,
    /// Why it comes at this place in the order of fixes.
    pub(crate) why: Option<String>,
}

/// A finding with its evidence and its remedies.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Finding {
    /// Its number in the report; nothing for an improvement.
    pub(crate) number: Option<usize>,
    pub(crate) id: String,
    pub(crate) severity: Severity,
    /// Its role and how certain it is.
    pub(crate) standing: String,
    pub(crate) title: Option<String>,
    pub(crate) explanation: String,
    pub(crate) evidence_heading: String,
    /// Each with its source.
    pub(crate) evidence: Vec<(String, String)>,
    pub(crate) fixes: Vec<Fix>,
}

/// A remedy.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Fix {
    pub(crate) title: String,
    pub(crate) id: String,
    pub(crate) text: String,
    /// Each with the lines to copy.
    pub(crate) commands: Vec<(String, String)>,
    pub(crate) terms: Vec<(String, String)>,
}

/// A bar with its figure, and a prediction.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Bar {
    pub(crate) label: String,
    pub(crate) value: f64,
    /// The figure with its unit.
    pub(crate) text: String,
    pub(crate) ink: Ink,
    /// Low, value and high.
    pub(crate) predicted: Option<[f64; 3]>,
}

/// A figure by two factors.
pub(crate) fn matrix(map: HeatMap) -> Block {
    Block::Matrix { shades: map.shades(), map }
}

/// A paragraph.
pub(crate) fn text(text: impl Into<String>) -> Block {
    Block::Text { text: text.into(), ink: Ink::Plain }
}

/// A paragraph with a remark.
pub(crate) fn remark(text: impl Into<String>) -> Block {
    Block::Text { text: text.into(), ink: Ink::Faint }
}

/// A list of plain lines; nothing for none.
pub(crate) fn list(lines: impl IntoIterator<Item = String>, ink: Ink) -> Option<Block> {
    let lines: Vec<Vec<Span>> = lines.into_iter().map(|line| vec![span(ink, line)]).collect();
    (!lines.is_empty()).then_some(Block::List { lines })
}

/// Names with a text each; nothing for none.
pub(crate) fn terms(rows: impl IntoIterator<Item = (String, String)>) -> Option<Block> {
    let rows: Vec<_> = rows.into_iter().map(|(name, text)| (name, vec![span(Ink::Plain, text)])).collect();
    (!rows.is_empty()).then_some(Block::Terms { rows })
}

/// Columns by the ids of their names. `figures`: those with figures.
pub(crate) fn columns(ids: &[&'static str], figures: &[usize], phrases: Phrases<'_>) -> Vec<Column> {
    ids.iter().enumerate().map(|(at, id)| Column { name: phrases.word(id), is_figure: figures.contains(&at) }).collect()
}

/// A table whose first column has names and whose others have figures.
pub(crate) fn figures(table: Table) -> Block {
    let mut rows = table.rows.into_iter();
    let head = rows.next().unwrap_or_default().into_iter().enumerate().map(|(at, name)| Column { name, is_figure: at > 0 });
    Block::Table { head: head.collect(), rows: rows.map(|row| row.into_iter().map(|text| span(Ink::Plain, text)).collect()).collect() }
}

impl ReportPage {
    /// As JSON. Control and bidirectional characters in texts, which could make a text look like another one, are replaced; lines stay.
    pub(crate) fn json(&self) -> Value {
        // Numbers and texts: it cannot fail.
        let mut value = serde_json::to_value(self).unwrap_or_default();
        make_visible(&mut value);
        value
    }
}

fn make_visible(value: &mut Value) {
    match value {
        Value::String(text) if text.contains(steers) => {
            *text =
                text.chars().map(|character| if steers(character) && character != '\n' { shown(character) } else { character }).collect();
        }
        Value::Array(all) => all.iter_mut().for_each(make_visible),
        Value::Object(all) => all.values_mut().for_each(make_visible),
        _ => {}
    }
}

/// What stands for a character that steers the text.
fn shown(character: char) -> char {
    if matches!(character, '\r' | '\t') { ' ' } else { char::REPLACEMENT_CHARACTER }
}
