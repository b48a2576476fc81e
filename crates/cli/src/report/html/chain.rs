//! The chains from cause to symptom as boxes with arrows between them.

use chokepoint_model::report::Diagnosis;

use crate::report::view::chain::{ChainLine, lines, links_in_words};
use crate::report::view::{Phrases, steers};

/// Width of the drawing, in its own units.
const WIDTH: usize = 480;
/// Height of a box, and distance from one box to the next.
const BOX_HEIGHT: usize = 40;
const PITCH: usize = 52;
/// Indentation of each level.
const STEP: usize = 30;
/// Width of a character, and of the number with the margins of the box.
const CHARACTER: usize = 7;
const MARGINS: usize = 44;

/// The drawing.
pub(super) struct ChainDrawing {
    pub(super) height: usize,
    /// The boxes, top first.
    pub(super) boxes: Vec<ChainBox>,
    /// The links in words.
    pub(super) words: String,
    /// Causes, with the reason for their place in the order of fixes.
    pub(super) turns: Vec<(String, String)>,
}

/// A box and the arrow to it.
pub(super) struct ChainBox {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) width: usize,
    /// CSS class: cause, symptom or station.
    pub(super) class: &'static str,
    /// Number of the finding in the report.
    pub(super) number: String,
    pub(super) id: String,
    pub(super) note: String,
    /// SVG path data of the arrow: line and head.
    pub(super) arrow: Option<[String; 2]>,
}

/// The drawing; nothing for a single finding without a cause.
pub(super) fn chain(diagnosis: &Diagnosis, phrases: Phrases<'_>) -> Option<ChainDrawing> {
    let lines = lines(diagnosis, phrases);
    let boxes: Vec<ChainBox> = lines.iter().enumerate().map(|(place, line)| chain_box(&lines, place, line)).collect();
    let turns = lines.iter().filter_map(|line| Some((line.id.clone(), line.why.clone()?))).collect();
    let height = boxes.len() * PITCH - boxes.len().min(1) * (PITCH - BOX_HEIGHT) + 2;
    (!boxes.is_empty()).then(|| ChainDrawing { height, boxes, words: links_in_words(diagnosis, phrases), turns })
}

fn chain_box(lines: &[ChainLine], place: usize, line: &ChainLine) -> ChainBox {
    let (x, y) = (1 + line.level * STEP, 1 + place * PITCH);
    let room = (WIDTH - x).saturating_sub(MARGINS) / CHARACTER;
    // Down from below the number of the parent, then right to the box.
    let arrow = line.parent.map(|parent| {
        let (from_x, from_y) = (1 + lines[parent].level * STEP + STEP / 2, 1 + parent * PITCH + BOX_HEIGHT);
        let middle = y + BOX_HEIGHT / 2;
        [format!("M{from_x} {from_y}V{middle}H{}", x - 5), format!("M{} {}l6 5-6 5z", x - 6, middle - 5)]
    });
    ChainBox {
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

/// The text, cut to `room` characters.
fn cut(text: &str, room: usize) -> String {
    let text: String = text.chars().filter(|character| !steers(*character)).collect();
    match text.char_indices().nth(room) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
