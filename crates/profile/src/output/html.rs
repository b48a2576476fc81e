//! A flame graph as one self-contained page. It can be searched, zoomed, and filtered by program, thread, core, layer and time.

use chokepoint_foreign::printable_json;
use serde::Serialize;

use super::escape::escape;
use crate::analysis::difference::Difference;
use crate::layers::{LAYERS, Layer};
use crate::profile::{Frame, FrameKind, Profile, Sample, Stack, Thread};

const STYLE: &str = include_str!("flame.css");
const SCRIPT: &str = include_str!("flame.js");

#[derive(Serialize)]
struct Data<'a> {
    layers: Vec<LayerData>,
    frames: Vec<(&'a str, &'a str, u8)>,
    stacks: Vec<Vec<u32>>,
    threads: Vec<(u32, u32, &'a str, &'a str)>,
    duration_ms: u32,
    now: Columns,
    before: Option<Columns>,
}

#[derive(Serialize)]
struct LayerData {
    title: &'static str,
    color: &'static str,
}

/// Samples, one list for each field.
#[derive(Serialize, Default)]
struct Columns {
    time: Vec<u32>,
    cpu: Vec<u32>,
    thread: Vec<u32>,
    stack: Vec<u32>,
    weight: Vec<u64>,
}

/// The page of one profile. `head` stands above the graph, a paragraph for each line.
pub fn page(profile: &Profile, title: &str, head: &str) -> String {
    let duration_ms = if profile.duration_s > 0.0 { (profile.duration_s * 1000.0) as u32 } else { 0 };
    let Profile { frames, stacks, threads, samples, .. } = profile;
    write(title, head, &data(frames, stacks, threads, duration_ms, samples, None))
}

/// The page of two profiles. Widths are the larger of the two shares; red means growth, blue means decrease.
pub fn difference_page(difference: &Difference, title: &str, head: &str) -> String {
    let Difference { frames, stacks, threads, now, before } = difference;
    write(title, head, &data(frames, stacks, threads, 0, now, Some(before)))
}

fn data<'a>(
    frames: &'a [Frame],
    stacks: &[Stack],
    threads: &'a [Thread],
    duration_ms: u32,
    now: &[Sample],
    before: Option<&[Sample]>,
) -> Data<'a> {
    let position = |layer: Layer| LAYERS.iter().position(|def| def.layer == layer).and_then(|index| u32::try_from(index).ok()).unwrap_or(0);
    let kind = |kind| match kind {
        FrameKind::Kernel => 0,
        FrameKind::User => 1,
        FrameKind::Jit => 2,
    };
    Data {
        layers: LAYERS.iter().map(|def| LayerData { title: def.title, color: def.color }).collect(),
        frames: frames.iter().map(|frame| (frame.name.as_str(), frame.module.as_str(), kind(frame.kind))).collect(),
        stacks: stacks.iter().map(|stack| std::iter::once(position(stack.layer)).chain(stack.frames.iter().copied()).collect()).collect(),
        threads: threads.iter().map(|thread| (thread.pid, thread.tid, thread.name.as_str(), thread.program.as_str())).collect(),
        duration_ms,
        now: columns(stacks, now),
        before: before.map(|samples| columns(stacks, samples)),
    }
}

/// The samples that are not idle time.
fn columns(stacks: &[Stack], samples: &[Sample]) -> Columns {
    let mut columns = Columns::default();
    let idle = |sample: &Sample| {
        usize::try_from(sample.stack).ok().and_then(|index| stacks.get(index)).is_none_or(|stack| stack.layer == Layer::Idle)
    };
    for sample in samples.iter().filter(|sample| !idle(sample)) {
        columns.time.push(sample.time_ms);
        columns.cpu.push(sample.cpu);
        columns.thread.push(sample.thread);
        columns.stack.push(sample.stack);
        columns.weight.push(sample.weight);
    }
    columns
}

fn write(title: &str, head: &str, data: &Data<'_>) -> String {
    // There are only numbers and texts, so this cannot fail. It contains no "<", so no name can end the script.
    let json = printable_json(&serde_json::to_string(data).unwrap_or_default()).replace('<', "\\u003c");
    let title = escape(title);
    let head: String = head.lines().map(|line| format!("<p>{}</p>\n", escape(line))).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{head}\
         <div class=\"controls\">\n<input id=\"search\" type=\"search\" placeholder=\"search functions and files\" aria-label=\"search\">\n\
         <select id=\"program\" aria-label=\"program\"></select>\n<select id=\"thread\" aria-label=\"thread\"></select>\n\
         <select id=\"cpu\" aria-label=\"core\"></select>\n<label>colour by <select id=\"color\"></select></label>\n\
         <button id=\"reset\">show all</button>\n</div>\n\
         <div id=\"time\" title=\"busy samples over time: drag to look at a part, click for all\"><canvas></canvas><div id=\"brush\"></div></div>\n\
         <div id=\"layers\"></div>\n<div id=\"told\" aria-live=\"polite\"></div>\n<div id=\"graph\"></div>\n\
         <script type=\"application/json\" id=\"data\">{json}</script>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::folded;

    #[test]
    fn names_cannot_break_out_of_the_page() {
        let profile = folded::read("a;</script><script>alert(1)</script> 3\n").unwrap();
        let page = page(&profile, "<b>", "x & y\nz");
        assert!(page.contains("<h1>&lt;b&gt;</h1>\n<p>x &amp; y</p>\n<p>z</p>"));
        assert_eq!(page.matches("</script>").count(), 2);
        assert!(page.contains("\\u003c/script>"));
        for outside in ["http://", "https://", "src=", "@import"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn idle_time_is_not_drawn() {
        let profile = folded::read("a;f 3\n[idle];do_idle_[k] 7\n").unwrap();
        let text = page(&profile, "t", "");
        let json = text.split("id=\"data\">").nth(1).and_then(|rest| rest.split("</script>").next()).unwrap();
        let data: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(data["now"]["stack"].as_array().unwrap().len(), 3);
        assert_eq!(data["before"], serde_json::Value::Null);
    }
}
