//! A flame graph as a static picture for tickets and documents. The outermost function is at the bottom.

use std::fmt::Write;

use super::escape::escape;
use crate::analysis::tree::{Node, build};
use crate::layers::LAYERS;
use crate::profile::Profile;

const WIDTH: f64 = 1200.0;
const ROW: f64 = 16.0;
const MARGIN: f64 = 10.0;
const HEAD: f64 = 40.0;
/// Narrower boxes are not drawn, pixels.
const NARROW: f64 = 0.3;
/// Width of a letter, pixels.
const LETTER: f64 = 6.6;
/// Maximum number of levels drawn.
const LEVELS_MAX: usize = 400;

/// The picture.
pub fn picture(profile: &Profile, title: &str) -> String {
    let root = build(profile, |_, _| true);
    let levels = root.depth().min(LEVELS_MAX);
    let legend = legend(&root, profile);
    let height = HEAD + ROW * (levels as f64 + legend.len() as f64 / 5.0 + 2.0) + 2.0 * MARGIN;
    let bottom = HEAD + ROW * levels as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height:.0}\" viewBox=\"0 0 {WIDTH} {height:.0}\" \
         font-family=\"monospace\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{MARGIN}\" y=\"22\" font-family=\"sans-serif\" font-size=\"15\">{}</text>\n",
        escape(title)
    );
    let scale = (WIDTH - 2.0 * MARGIN) / root.total.max(1) as f64;
    let mut left = vec![(&root, MARGIN, 0_usize)];
    while let Some((node, x, level)) = left.pop() {
        let width = node.total as f64 * scale;
        if width < NARROW || level >= LEVELS_MAX {
            continue;
        }
        let y = bottom - ROW * (level as f64 + 1.0);
        draw(&mut svg, profile, &root, node, (x, y, width));
        let mut at = x;
        for child in &node.children {
            left.push((child, at, level + 1));
            at += child.total as f64 * scale;
        }
    }
    for (index, (color, text)) in legend.iter().enumerate() {
        let (x, y) = (MARGIN + 236.0 * (index % 5) as f64, bottom + MARGIN + ROW * ((index / 5) as f64 + 1.0));
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{:.1}\" width=\"10\" height=\"10\" fill=\"{color}\"/><text x=\"{:.1}\" y=\"{y:.1}\">{text}</text>",
            y - 9.0,
            x + 14.0
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw(svg: &mut String, profile: &Profile, root: &Node, node: &Node, (x, y, width): (f64, f64, f64)) {
    let share = 100.0 * node.total as f64 / root.total.max(1) as f64;
    let name = node.name(profile);
    let color = if std::ptr::eq(node, root) { "#d5dae0" } else { node.layer.def().color };
    let _ = write!(
        svg,
        "<g><title>{} {share:.2} %</title><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{color}\" rx=\"1\"/>",
        escape(name),
        ROW - 1.0
    );
    let letters = ((width - 6.0) / LETTER) as usize;
    if letters >= 3 {
        let mut shown: String = name.chars().take(letters).collect();
        if shown.len() < name.len() {
            shown = name.chars().take(letters - 2).chain("..".chars()).collect();
        }
        let _ = write!(svg, "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>", x + 3.0, y + ROW - 5.0, escape(&shown));
    }
    svg.push_str("</g>\n");
}

/// The layers of the profile with colour, name and share.
fn legend(root: &Node, profile: &Profile) -> Vec<(&'static str, String)> {
    let weight = |layer| {
        profile.busy().filter(|(_, stack, _)| stack.layer == layer).fold(0_u64, |sum, (sample, ..)| sum.saturating_add(sample.weight))
    };
    let mut shares: Vec<_> = LAYERS.iter().map(|def| (def, weight(def.layer))).filter(|(_, weight)| *weight > 0).collect();
    shares.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
    let share = |weight: u64| 100.0 * weight as f64 / root.total.max(1) as f64;
    shares.into_iter().map(|(def, weight)| (def.color, escape(&format!("{} {:.1} %", def.id, share(weight))))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::folded;

    #[test]
    fn the_width_of_a_box_is_its_share() {
        let profile = folded::read("a;f<x> 75\na;g 25\n").unwrap();
        let svg = picture(&profile, "a & b");
        assert!(svg.contains(">a &amp; b</text>"));
        assert!(svg.contains("<title>f&lt;x&gt; 75.00 %</title><rect x=\"10.0\" y=\"40.0\" width=\"885.0\""), "{svg}");
        assert!(svg.contains("application 100.0 %"));
        assert_eq!(svg.matches("<g>").count(), svg.matches("</g>").count());
        assert!(picture(&folded::read("").unwrap(), "").ends_with("</svg>\n"));
    }
}
