//! A flame graph as a document: frames, stacks, threads and samples, as `ui/src/report/flame.tsx` draws them.

use serde::Serialize;

use crate::analysis::difference::Difference;
use crate::layers::{LAYERS, Layer};
use crate::profile::{Frame, FrameKind, Profile, Sample, Stack, Thread};

/// A flame graph.
#[derive(Debug, Serialize)]
pub struct Flame<'a> {
    layers: Vec<LayerData>,
    frames: Vec<(&'a str, &'a str, u8)>,
    stacks: Vec<Vec<u32>>,
    threads: Vec<(u32, u32, &'a str, &'a str)>,
    duration_ms: u32,
    now: Columns,
    before: Option<Columns>,
}

#[derive(Debug, Serialize)]
struct LayerData {
    title: &'static str,
    color: &'static str,
}

/// Samples, one list for each field.
#[derive(Debug, Serialize, Default)]
struct Columns {
    time: Vec<u32>,
    cpu: Vec<u32>,
    thread: Vec<u32>,
    stack: Vec<u32>,
    weight: Vec<u64>,
}

/// The graph of one profile.
pub fn of(profile: &Profile) -> Flame<'_> {
    let duration_ms = if profile.duration_s > 0.0 { (profile.duration_s * 1000.0) as u32 } else { 0 };
    let Profile { frames, stacks, threads, samples, .. } = profile;
    data(frames, stacks, threads, duration_ms, samples, None)
}

/// The graph of two profiles. Widths are the larger of the two shares; red means growth, blue means decrease.
pub fn of_difference(difference: &Difference) -> Flame<'_> {
    let Difference { frames, stacks, threads, now, before } = difference;
    data(frames, stacks, threads, 0, now, Some(before))
}

fn data<'a>(
    frames: &'a [Frame],
    stacks: &[Stack],
    threads: &'a [Thread],
    duration_ms: u32,
    now: &[Sample],
    before: Option<&[Sample]>,
) -> Flame<'a> {
    let position = |layer: Layer| LAYERS.iter().position(|def| def.layer == layer).and_then(|index| u32::try_from(index).ok()).unwrap_or(0);
    let kind = |kind| match kind {
        FrameKind::Kernel => 0,
        FrameKind::User => 1,
        FrameKind::Jit => 2,
    };
    Flame {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::folded;

    #[test]
    fn idle_time_is_not_drawn() {
        let profile = folded::read("a;f 3\n[idle];do_idle_[k] 7\n").unwrap();
        let graph = serde_json::to_value(of(&profile)).unwrap();
        assert_eq!(graph["now"]["stack"].as_array().unwrap().len(), 3);
        assert_eq!(graph["before"], serde_json::Value::Null);
    }
}
