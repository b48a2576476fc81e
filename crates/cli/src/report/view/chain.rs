//! The chains from cause to symptom, line by line: what stands by itself first, each followed by what it brings about.

use chokepoint_model::message::Message;
use chokepoint_model::report::{At, Cause, Diagnosis, Finding, Role};

use super::path::label;
use super::{Ink, Phrases};

/// Levels of a chain that are drawn apart; what lies deeper is drawn at the last of them.
const LEVELS_MAX: usize = 6;

/// One line of the drawing.
pub(crate) struct Line {
    /// What it is about.
    node: Cause,
    /// How far it is from the root, at most [`LEVELS_MAX`].
    pub(crate) level: usize,
    /// For each level down to its own, whether more follows there below this line.
    pub(crate) rails: Vec<bool>,
    /// The line that it hangs from, by its place.
    pub(crate) parent: Option<usize>,
    /// Its number in the report; a station has none.
    pub(crate) number: Option<usize>,
    /// Id of the finding or the station.
    pub(crate) id: String,
    /// Where it is, and what else there is to say in a word.
    pub(crate) note: String,
    /// Its ink.
    pub(crate) ink: Ink,
    /// Why it has its turn among the causes.
    pub(crate) why: Option<String>,
}

/// The lines; none where there is one finding that nothing brings about.
pub(crate) fn lines(diagnosis: &Diagnosis, phrases: Phrases<'_>) -> Vec<Line> {
    if diagnosis.findings.len() < 2 && diagnosis.couplings.is_empty() {
        return Vec::new();
    }
    let mut drawing = Drawing { diagnosis, phrases, lines: Vec::new() };
    let linked = |at: usize| diagnosis.couplings.iter().any(|link| link.symptom == at);
    let mut roots: Vec<Cause> = (0..diagnosis.findings.len()).filter(|at| !linked(*at)).map(Cause::Finding).collect();
    for link in &diagnosis.couplings {
        if matches!(link.cause, Cause::Station(_)) && !roots.contains(&link.cause) {
            roots.push(link.cause);
        }
    }
    roots.into_iter().for_each(|root| drawing.draw(root, None, &[]));
    // Links in a ring have no root; a report that was made elsewhere may hold one.
    for at in 0..diagnosis.findings.len() {
        if !drawing.is_drawn(Cause::Finding(at)) {
            drawing.draw(Cause::Finding(at), None, &[]);
        }
    }
    drawing.lines
}

/// All links in words, for those who cannot see the drawing.
pub(crate) fn words(diagnosis: &Diagnosis, phrases: Phrases<'_>) -> String {
    let name = |cause: Cause| match cause {
        Cause::Finding(at) => diagnosis.findings.get(at).map(|finding| format!("{} ({})", finding.id, finding.tier)),
        Cause::Station(at) => diagnosis.path.get(at).map(|station| format!("{} ({})", station.station, station.tier)),
    };
    let told = diagnosis.couplings.iter().filter_map(|link| {
        let (cause, symptom) = (name(link.cause)?, name(Cause::Finding(link.symptom))?);
        Some(phrases.say(&Message::new("report-chain-words").with("cause", cause).with("symptom", symptom)))
    });
    told.collect::<Vec<_>>().join("; ")
}

struct Drawing<'a> {
    diagnosis: &'a Diagnosis,
    phrases: Phrases<'a>,
    lines: Vec<Line>,
}

impl Drawing<'_> {
    fn is_drawn(&self, node: Cause) -> bool {
        self.lines.iter().any(|line| line.node == node)
    }

    /// Draws a node below its parent, and below it what it brings about, unless that was drawn before.
    fn draw(&mut self, node: Cause, parent: Option<usize>, rails: &[bool]) {
        let again = self.is_drawn(node);
        let Some(mut line) = self.line(node) else { return };
        (line.level, line.parent, line.rails) = (rails.len().min(LEVELS_MAX), parent, rails.to_vec());
        if again {
            line.note = format!("{} {}", line.note, self.phrases.word("report-chain-above"));
        }
        let place = self.lines.len();
        self.lines.push(line);
        if again {
            return;
        }
        let below: Vec<usize> = self.diagnosis.couplings.iter().filter(|link| link.cause == node).map(|link| link.symptom).collect();
        for (nth, symptom) in below.iter().enumerate() {
            let mut rails = rails.to_vec();
            rails.truncate(LEVELS_MAX - 1);
            rails.push(nth + 1 < below.len());
            self.draw(Cause::Finding(*symptom), Some(place), &rails);
        }
    }

    fn line(&self, node: Cause) -> Option<Line> {
        let place = |tier: &str, at: &At| {
            // An edge begins with its tier, and has its far end's address for a listener.
            let place = match (&at.edge, &at.listener) {
                (Some(edge), _) if edge.starts_with(tier) => edge.clone(),
                (Some(named), _) | (None, Some(named)) => format!("{tier} {named}"),
                (None, None) => tier.to_owned(),
            };
            self.phrases.say(&Message::new("report-chain-place").with("place", place))
        };
        let blank = |id: &str, note: String| Line {
            node,
            level: 0,
            rails: Vec::new(),
            parent: None,
            number: None,
            id: id.to_owned(),
            note,
            ink: Ink::Strong,
            why: None,
        };
        match node {
            Cause::Finding(at) => {
                let Finding { id, tier, at: spot, role, .. } = self.diagnosis.findings.get(at)?;
                let turn = self.diagnosis.order.iter().find(|turn| turn.finding == at);
                let (ink, why) = (if *role == Role::Cause { Ink::BadStrong } else { Ink::WarnStrong }, turn.map(|turn| turn.why.clone()));
                Some(Line { number: Some(at + 1), ink, why, ..blank(id, place(tier, spot)) })
            }
            Cause::Station(at) => {
                let station = self.diagnosis.path.get(at)?;
                let note = format!("{} {}", place(&station.tier, &At::default()), self.phrases.word("report-chain-limit"));
                Some(blank(&label(self.phrases, station), note))
            }
        }
    }
}
