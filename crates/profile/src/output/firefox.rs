//! The processed profile format of the Firefox Profiler (github.com/firefox-devtools/profiler, docs-developer/processed-profile-format.md), version 55: a
//! track for each thread, layers as categories. It is opened at profiler.firefox.com, which keeps it in the browser.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::table::{Table, Texts};
use crate::layers::{LAYERS, Layer};
use crate::profile::{Frame, Profile, Sample, Stack, Thread};
use crate::sampling::interned;

/// Version of the format.
const VERSION: u32 = 55;
/// Threads with a track of their own. The others share one.
const TRACKS_MAX: usize = 4096;
/// Entries of all tracks' stacks. A stack beyond them is `[other]`.
const STACK_ROWS_MAX: usize = 1 << 20;

/// Columns of one thread while they are filled.
#[derive(Default)]
struct Track {
    strings: Texts,
    funcs: Table<u32, (usize, Option<usize>)>,
    resources: Table<usize, usize>,
    frames: Table<(usize, usize), (usize, usize)>,
    stacks: Table<(Option<usize>, usize), (Option<usize>, usize)>,
    samples: Vec<(Option<usize>, u32)>,
    /// The number in `stacks` of each of the profile's stacks.
    known: HashMap<u32, Option<usize>>,
}

/// The file's text.
pub fn file(profile: &Profile, product: &str) -> String {
    let mut tracks: Vec<Track> = profile.threads.iter().take(TRACKS_MAX).map(|_| Track::default()).collect();
    let (mut shared, mut rows) = (Track::default(), 0);
    let mut samples: Vec<&Sample> = profile.samples.iter().collect();
    samples.sort_by_key(|sample| sample.time_ms);
    for sample in samples {
        let track = usize::try_from(sample.thread).ok().and_then(|index| tracks.get_mut(index)).unwrap_or(&mut shared);
        let Some(stack) = profile.stack(sample.stack).filter(|stack| stack.layer != Layer::Idle) else { continue };
        let at = match track.known.get(&sample.stack) {
            Some(at) => *at,
            None => {
                let before = track.stacks.rows.len();
                let at = if rows < STACK_ROWS_MAX { track.stack_of(profile, stack) } else { track.other_stack() };
                rows += track.stacks.rows.len() - before;
                track.known.insert(sample.stack, at);
                at
            }
        };
        track.samples.push((at, sample.time_ms));
    }
    let other = interned::other_thread();
    let threads: Vec<Value> = (profile.threads.iter().zip(&tracks).chain([(&other, &shared)]))
        .filter(|(_, track)| !track.samples.is_empty())
        .map(|(thread, track)| track.json(thread, profile.duration_s * 1000.0))
        .collect();
    let categories: Vec<Value> =
        LAYERS.iter().map(|def| json!({ "name": def.title, "color": color(def.layer), "subcategories": ["Other"] })).collect();
    let interval = if profile.frequency_hz > 0 { 1000.0 / f64::from(profile.frequency_hz) } else { 1.0 };
    let file = json!({
        "meta": {
            "categories": categories, "debug": false, "extensions": { "length": 0, "baseURL": [], "id": [], "name": [] },
            "interval": interval, "preprocessedProfileVersion": VERSION, "version": 24, "processType": 0, "product": product, "oscpu": "Linux",
            "sampleUnits": { "time": "ms", "eventDelay": "ms", "threadCPUDelta": "µs" }, "startTime": 0.0, "symbolicated": true,
            "pausedRanges": [], "usesOnlyOneStackType": true, "sourceCodeIsNotOnSearchfox": true, "markerSchema": [],
        },
        "libs": [], "threads": threads, "pages": [], "profilerOverhead": [], "counters": [],
    });
    file.to_string()
}

/// The closest colour that the profiler knows.
fn color(layer: Layer) -> &'static str {
    match layer {
        Layer::Application | Layer::Interpreter => "green",
        Layer::Allocator | Layer::Scheduler => "orange",
        Layer::Tls | Layer::Compression => "purple",
        Layer::Netfilter | Layer::PortSearch | Layer::Lock => "red",
        Layer::PageFault => "lightred",
        Layer::FileSystem => "lightblue",
        Layer::SyscallEntry => "brown",
        Layer::Polling => "yellow",
        Layer::Interrupt | Layer::KernelOther | Layer::Unknown | Layer::Idle => "grey",
        _ => "blue",
    }
}

impl Track {
    /// The number of a stack.
    fn stack_of(&mut self, profile: &Profile, stack: &Stack) -> Option<usize> {
        let category = LAYERS.iter().position(|def| def.layer == stack.layer).unwrap_or(0);
        let frames = stack.frames.iter().zip(profile.frames_of(stack));
        frames.fold(None, |at, (index, frame)| Some(self.stack(at, *index, frame, category)))
    }

    /// The number of the stack that stands for those without room.
    fn other_stack(&mut self) -> Option<usize> {
        let category = LAYERS.iter().position(|def| def.layer == Layer::Unknown).unwrap_or(0);
        Some(self.stack(None, u32::MAX, &interned::other_frame(), category))
    }

    /// The number of the stack that extends `prefix` by one function.
    fn stack(&mut self, prefix: Option<usize>, index: u32, frame: &Frame, category: usize) -> usize {
        let Self { strings, funcs, resources, frames, stacks, .. } = self;
        let func = funcs.number(index, || {
            let (name, module) = (strings.text(&frame.name), Some(&frame.module).filter(|module| !module.is_empty()));
            let module = module.map(|module| strings.text(module));
            (name, module.map(|module| resources.number(module, || module)))
        });
        let frame = frames.number((func, category), || (func, category));
        stacks.number((prefix, frame), || (prefix, frame))
    }

    fn json(&self, thread: &Thread, duration_ms: f64) -> Value {
        let same = |value: Value, length: usize| vec![value; length];
        let (funcs, frames, resources) = (self.funcs.rows.len(), self.frames.rows.len(), self.resources.rows.len());
        let mut before = 0;
        let deltas: Vec<u32> = (self.samples.iter())
            .map(|(_, time)| {
                let delta = time.saturating_sub(before);
                before = *time;
                delta
            })
            .collect();
        json!({
            "name": thread.name, "isMainThread": thread.pid == thread.tid, "processName": thread.program, "processType": "default",
            "pid": thread.pid.to_string(), "tid": thread.tid, "registerTime": 0.0, "unregisterTime": duration_ms, "processStartupTime": 0.0,
            "processShutdownTime": duration_ms, "pausedRanges": [], "showMarkersInTimeline": false, "stringArray": self.strings.rows,
            "samples": {
                "length": self.samples.len(), "weightType": "samples", "timeDeltas": deltas,
                "stack": self.samples.iter().map(|(stack, _)| *stack).collect::<Vec<_>>(), "weight": null,
            },
            "stackTable": {
                "length": self.stacks.rows.len(), "prefix": self.stacks.rows.iter().map(|(prefix, _)| *prefix).collect::<Vec<_>>(),
                "frame": self.stacks.rows.iter().map(|(_, frame)| *frame).collect::<Vec<_>>(),
            },
            "frameTable": {
                "length": frames, "func": self.frames.rows.iter().map(|(func, _)| *func).collect::<Vec<_>>(),
                "category": self.frames.rows.iter().map(|(_, category)| *category).collect::<Vec<_>>(), "subcategory": same(json!(0), frames),
                "address": same(json!(-1), frames), "inlineDepth": same(json!(0), frames), "nativeSymbol": same(Value::Null, frames),
                "innerWindowID": same(json!(0), frames), "line": same(Value::Null, frames), "column": same(Value::Null, frames),
            },
            "funcTable": {
                "length": funcs, "name": self.funcs.rows.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
                "resource": self.funcs.rows.iter().map(|(_, resource)| resource.map_or(json!(-1), |index| json!(index))).collect::<Vec<_>>(),
                "isJS": same(json!(false), funcs), "relevantForJS": same(json!(false), funcs), "fileName": same(Value::Null, funcs),
                "lineNumber": same(Value::Null, funcs), "columnNumber": same(Value::Null, funcs),
            },
            "resourceTable": {
                "length": resources, "name": self.resources.rows, "lib": same(Value::Null, resources), "host": same(Value::Null, resources),
                "type": same(json!(1), resources),
            },
            "nativeSymbols": { "length": 0, "libIndex": [], "address": [], "name": [], "functionSize": [] },
            "markers": { "length": 0, "category": [], "data": [], "endTime": [], "name": [], "phase": [], "startTime": [] },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::folded;

    #[test]
    fn threads_without_a_track_of_their_own_share_one() {
        let text: String = (0..TRACKS_MAX + 3).map(|number| format!("p{number};f 1\n")).collect();
        let file: Value = serde_json::from_str(&file(&folded::read(&text).unwrap(), "x")).unwrap();
        let threads = file["threads"].as_array().unwrap();
        let last = threads.last().unwrap();
        assert_eq!((threads.len(), &last["name"], &last["samples"]["length"]), (TRACKS_MAX + 1, &json!("[other]"), &json!(3)));
    }

    #[test]
    fn every_column_has_the_length_of_its_table() {
        let mut profile = folded::read("a;f;g_[k] 3\na;f;h 2\n[idle];do_idle_[k] 9\n").unwrap();
        for (time, sample) in (0..).zip(&mut profile.samples) {
            sample.time_ms = 10 * time;
        }
        let file: Value = serde_json::from_str(&file(&profile, "x")).unwrap();
        let threads = file["threads"].as_array().unwrap();
        assert_eq!(threads.len(), 1);
        for (name, table) in threads[0].as_object().unwrap().iter().filter(|(_, value)| value.is_object()) {
            let length = table["length"].as_u64().unwrap();
            for (column, value) in table.as_object().unwrap().iter().filter(|(_, value)| value.is_array()) {
                assert_eq!(u64::try_from(value.as_array().unwrap().len()).unwrap(), length, "{name}.{column}");
            }
        }
        // Follow the numbers from a sample to its functions.
        let at =
            |table: &str, column: &str, index: &Value| threads[0][table][column][usize::try_from(index.as_u64().unwrap()).unwrap()].clone();
        let mut stack = threads[0]["samples"]["stack"][0].clone();
        let mut names = Vec::new();
        while !stack.is_null() {
            let func = at("frameTable", "func", &at("stackTable", "frame", &stack));
            names.push(threads[0]["stringArray"][usize::try_from(at("funcTable", "name", &func).as_u64().unwrap()).unwrap()].clone());
            stack = at("stackTable", "prefix", &stack);
        }
        assert_eq!(names, ["g", "f"]);
        assert_eq!(threads[0]["samples"]["timeDeltas"], json!([0, 10, 10, 10, 10]));
    }
}
