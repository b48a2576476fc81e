//! The chains from cause to symptom, line by line: first the nodes without a cause, each followed by its symptoms.

use chokepoint_model::message::Message;
use chokepoint_model::report::{At, Cause, Diagnosis, Finding, Role};

use super::path::label;
use super::{Ink, Phrases};

/// The deepest level that is drawn; deeper nodes are drawn at it.
const LEVELS_MAX: usize = 6;

/// One node of the drawing.
pub(crate) struct ChainLine {
    /// The finding or station.
    node: Cause,
    /// Distance from the root, at most [`LEVELS_MAX`].
    pub(crate) level: usize,
    /// For each level down to its own: whether more nodes follow on it below this line.
    pub(crate) rails: Vec<bool>,
    /// Index of the parent line.
    pub(crate) parent: Option<usize>,
    /// Number of the finding in the report; nothing for a station.
    pub(crate) number: Option<usize>,
    /// Id of the finding or the station.
    pub(crate) id: String,
    /// Where it is, and a remark.
    pub(crate) note: String,
    pub(crate) ink: Ink,
    /// Why a cause comes at this place in the order of fixes.
    pub(crate) why: Option<String>,
}

/// The lines; none for a single finding without a cause.
pub(crate) fn lines(diagnosis: &Diagnosis, phrases: Phrases<'_>) -> Vec<ChainLine> {
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
    // A cycle of links has no root. A report made elsewhere may have one.
    for at in 0..diagnosis.findings.len() {
        if !drawing.is_drawn(Cause::Finding(at)) {
            drawing.draw(Cause::Finding(at), None, &[]);
        }
    }
    drawing.lines
}

/// All links in words, for screen readers.
pub(crate) fn links_in_words(diagnosis: &Diagnosis, phrases: Phrases<'_>) -> String {
    let name = |cause: Cause| match cause {
        Cause::Finding(at) => diagnosis.findings.get(at).map(|finding| format!("{} ({})", finding.id, finding.tier)),
        Cause::Station(at) => diagnosis.path.get(at).map(|station| format!("{} ({})", station.station, station.tier)),
    };
    let links = diagnosis.couplings.iter().filter_map(|link| {
        let (cause, symptom) = (name(link.cause)?, name(Cause::Finding(link.symptom))?);
        Some(phrases.say(&Message::new("report-chain-words").with("cause", cause).with("symptom", symptom)))
    });
    links.collect::<Vec<_>>().join("; ")
}

struct Drawing<'a> {
    diagnosis: &'a Diagnosis,
    phrases: Phrases<'a>,
    lines: Vec<ChainLine>,
}

impl Drawing<'_> {
    fn is_drawn(&self, node: Cause) -> bool {
        self.lines.iter().any(|line| line.node == node)
    }

    /// Draws a node below its parent, and its symptoms below it unless they were drawn before.
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

    fn line(&self, node: Cause) -> Option<ChainLine> {
        let place = |tier: &str, at: &At| {
            // The name of an edge begins with its tier; its listener is the address of the far end.
            let place = match (&at.edge, &at.listener) {
                (Some(edge), _) if edge.starts_with(tier) => edge.clone(),
                (Some(named), _) | (None, Some(named)) => format!("{tier} {named}"),
                (None, None) => tier.to_owned(),
            };
            self.phrases.say(&Message::new("report-chain-place").with("place", place))
        };
        let blank = |id: &str, note: String| ChainLine {
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
                Some(ChainLine { number: Some(at + 1), ink, why, ..blank(id, place(tier, spot)) })
            }
            Cause::Station(at) => {
                let station = self.diagnosis.path.get(at)?;
                let note = format!("{} {}", place(&station.tier, &At::default()), self.phrases.word("report-chain-limit"));
                Some(blank(&label(self.phrases, station), note))
            }
        }
    }
}
