//! The pipe next to the path, with a piece for each row: its walls close in as utilization rises.

use chokepoint_model::report::StationState;

use crate::report::view::path::{Flow, Mark, StationRow};

/// The axis of the pipe, units of the drawing (130 wide; 100 high, stretched to its row).
const AXIS: f64 = 52.0;
/// Half of the pipe's width with its walls.
const OUTER: f64 = 40.0;
/// Half of the opening at zero utilization.
const OPEN: f64 = 34.0;
/// Half of the opening at full utilization: still visible.
const SHUT: f64 = 2.5;
/// One, two or three drops are drawn above these refusals a second.
const DROPS: [f64; 3] = [0.0, 10.0, 1_000.0];
/// Places of the drops, units of their drawing (130 by 60).
const DROP_PLACES: [(f64, f64); 3] = [(113.0, 42.0), (121.0, 34.0), (106.0, 33.0)];

/// One piece of the pipe.
pub(super) struct Pipe {
    /// CSS class of the flow.
    pub(super) flow: &'static str,
    /// CSS class of the walls.
    pub(super) wall: &'static str,
    /// Outlines of the two walls, SVG path data.
    pub(super) walls: [String; 2],
    /// True at the choke point.
    pub(super) chokes: bool,
    /// True if a tier begins.
    pub(super) joint: bool,
    /// True if an arrow shows the direction.
    pub(super) arrow: bool,
    /// Places of the drops, which stand for refusals.
    pub(super) drops: Vec<(f64, f64)>,
}

impl Pipe {
    /// The piece at a station.
    pub(super) fn station(row: &StationRow<'_>) -> Self {
        let chokes = row.mark == Mark::Choke;
        // The choke point is drawn closed whatever its utilization: connection churn, for example, fills nothing.
        let share = if chokes { 1.0 } else { row.share.unwrap_or(0.0).clamp(0.0, 1.0) };
        let refused = row.station.refused_per_s.filter(|refused| refused.is_finite()).unwrap_or(0.0);
        let count = DROPS.iter().filter(|least| refused > **least).count();
        let wall = match row.station.state {
            _ if chokes => "choke",
            StationState::Refusing => "full",
            _ if row.share.is_none() => "unread",
            // A station at its limit without refusals is normal for a healthy server.
            StationState::Near | StationState::Saturated => "near",
            StationState::Ok | StationState::Unknown => "room",
        };
        Self { wall, walls: walls(share), chokes, drops: DROP_PLACES[..count].to_vec(), joint: false, ..Self::joint(row.flow) }
    }

    /// The piece at the beginning or the end of the path.
    pub(super) fn end(flow: Flow) -> Self {
        Self { joint: false, arrow: true, ..Self::joint(flow) }
    }

    /// The piece where a tier begins.
    pub(super) fn joint(flow: Flow) -> Self {
        let flow = match flow {
            Flow::Before => "before",
            Flow::Choked => "choked",
            Flow::Behind => "behind",
        };
        Self { flow, wall: "room", walls: walls(0.0), chokes: false, joint: true, arrow: false, drops: Vec::new() }
    }
}

/// The walls at a utilization between 0 and 1: straight at both ends, so that pieces join, and closest in the middle.
fn walls(share: f64) -> [String; 2] {
    let gap = (OPEN * (1.0 - share)).max(SHUT);
    [-1.0, 1.0].map(|side| {
        let (outer, inner, near) = (AXIS + side * OUTER, AXIS + side * OPEN, AXIS + side * gap);
        format!("M{outer:.1} 0H{inner:.1}C{inner:.1} 28 {near:.1} 20 {near:.1} 50C{near:.1} 80 {inner:.1} 72 {inner:.1} 100H{outer:.1}Z")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walls_close_in_with_utilization_and_pieces_join() {
        let middle = |share: f64| -> f64 {
            let [left, _] = walls(share);
            left.split(' ').nth(3).and_then(|text| text.parse().ok()).expect("the curve's control point")
        };
        assert!(middle(0.0) < middle(0.5) && middle(0.5) < middle(0.99));
        assert!(middle(1.0) < AXIS, "an opening is left");
        for share in [0.0, 0.3, 1.0] {
            let [left, right] = walls(share);
            assert!(left.starts_with("M12.0 0H18.0C") && left.ends_with("18.0 100H12.0Z"), "{left}");
            assert!(right.starts_with("M92.0 0H86.0C") && right.ends_with("86.0 100H92.0Z"), "{right}");
        }
    }
}
