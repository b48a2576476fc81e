//! The chains from cause to symptom as boxes with arrows between them.

use chokepoint_model::report::Diagnosis;

use crate::report::view::chain::{Line, lines, words};
use crate::report::view::{Phrases, steers};

/// Width of the drawing, in its own units.
const WIDTH: usize = 480;
/// Height of a box, and from one to the next.
const BOX_HEIGHT: usize = 40;
const PITCH: usize = 52;
/// How much farther right each level begins.
const STEP: usize = 30;
/// Units that a character takes, and those that the number and the box's margins take.
const CHARACTER: usize = 7;
const MARGINS: usize = 44;

/// The drawing.
pub(super) struct Chain {
    /// Height.
    pub(super) height: usize,
    /// Its boxes from above.
    pub(super) boxes: Vec<Node>,
    /// All of it in words.
    pub(super) words: String,
    /// The causes with the reason for their turn, where there are several.
    pub(super) turns: Vec<(String, String)>,
}

/// A box with the arrow that leads to it.
pub(super) struct Node {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) width: usize,
    /// CSS class: cause, symptom or station.
    pub(super) class: &'static str,
    /// The finding's number in the report.
    pub(super) number: String,
    pub(super) id: String,
    pub(super) note: String,
    /// The arrow, SVG path data: the way, and its point.
    pub(super) arrow: Option<[String; 2]>,
}

/// The drawing; nothing where there is but one finding.
pub(super) fn chain(diagnosis: &Diagnosis, phrases: Phrases<'_>) -> Option<Chain> {
    let lines = lines(diagnosis, phrases);
    let boxes: Vec<Node> = lines.iter().enumerate().map(|(place, line)| node(&lines, place, line)).collect();
    let turns = lines.iter().filter_map(|line| Some((line.id.clone(), line.why.clone()?))).collect();
    let height = boxes.len() * PITCH - boxes.len().min(1) * (PITCH - BOX_HEIGHT) + 2;
    (!boxes.is_empty()).then(|| Chain { height, boxes, words: words(diagnosis, phrases), turns })
}

fn node(lines: &[Line], place: usize, line: &Line) -> Node {
    let (x, y) = (1 + line.level * STEP, 1 + place * PITCH);
    let room = (WIDTH - x).saturating_sub(MARGINS) / CHARACTER;
    // From below the parent's number straight down, then right into the box.
    let arrow = line.parent.map(|parent| {
        let (from_x, from_y) = (1 + lines[parent].level * STEP + STEP / 2, 1 + parent * PITCH + BOX_HEIGHT);
        let middle = y + BOX_HEIGHT / 2;
        [format!("M{from_x} {from_y}V{middle}H{}", x - 5), format!("M{} {}l6 5-6 5z", x - 6, middle - 5)]
    });
    Node {
        x,
        y,
        width: WIDTH - x - 1,
        class: match (line.number, line.ink) {
            (None, _) => "limit",
            (_, crate::report::view::Ink::BadStrong) => "cause",
            _ => "symptom",
        },
        number: line.number.map(|number| number.to_string()).unwrap_or_default(),
        id: cut(&line.id, room),
        note: cut(&line.note, room),
        arrow,
    }
}

/// The text as far as there is room for it.
fn cut(text: &str, room: usize) -> String {
    let text: String = text.chars().filter(|character| !steers(*character)).collect();
    match text.char_indices().nth(room) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
