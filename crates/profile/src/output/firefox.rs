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
    let categories: Vec<Value> =
        LAYERS.iter().map(|def| json!({ "name": def.title, "color": color(def.layer), "subcategories": ["Other"] })).collect();
    let interval = if profile.frequency_hz > 0 { 1000.0 / f64::from(profile.frequency_hz) } else { 1.0 };
    let meta = json!({
        "categories": categories, "debug": false, "extensions": { "length": 0, "baseURL": [], "id": [], "name": [] },
        "interval": interval, "preprocessedProfileVersion": VERSION, "version": 24, "processType": 0, "product": product, "oscpu": "Linux",
        "sampleUnits": { "time": "ms", "eventDelay": "ms", "threadCPUDelta": "µs" }, "startTime": 0.0, "symbolicated": true,
        "pausedRanges": [], "usesOnlyOneStackType": true, "sourceCodeIsNotOnSearchfox": true, "markerSchema": [],
    });
    let mut text = format!(r#"{{"meta":{meta},"libs":[],"pages":[],"profilerOverhead":[],"counters":[],"threads":["#);
    let other = interned::other_thread();
    let seen = profile.threads.iter().zip(&tracks).chain([(&other, &shared)]).filter(|(_, track)| !track.samples.is_empty());
    for (number, (thread, track)) in seen.enumerate() {
        text.push_str(if number > 0 { "," } else { "" });
        track.write(thread, profile.duration_s * 1000.0, &mut text);
    }
    text.push_str("]}");
    text
}

/// The value of a column in a row.
type Column<'c> = (&'static str, &'c dyn Fn(usize) -> Value);

/// Appends a table of so many rows, value by value: as a tree, a value takes ten times its text. `head`: what it has beside its columns.
fn write_table(text: &mut String, name: &str, (rows, head): (usize, &str), columns: &[Column<'_>]) {
    text.push_str(&format!(r#","{name}":{{"length":{rows}{head}"#));
    for (column, value) in columns {
        text.push_str(&format!(r#","{column}":["#));
        for row in 0..rows {
            text.push_str(if row > 0 { "," } else { "" });
            text.push_str(&value(row).to_string());
        }
        text.push(']');
    }
    text.push('}');
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

    /// Appends the thread.
    fn write(&self, thread: &Thread, duration_ms: f64, text: &mut String) {
        let head = json!({
            "name": thread.name, "isMainThread": thread.pid == thread.tid, "processName": thread.program, "processType": "default",
            "pid": thread.pid.to_string(), "tid": thread.tid, "registerTime": 0.0, "unregisterTime": duration_ms, "processStartupTime": 0.0,
            "processShutdownTime": duration_ms, "pausedRanges": [], "showMarkersInTimeline": false,
            "nativeSymbols": { "length": 0, "libIndex": [], "address": [], "name": [], "functionSize": [] },
            "markers": { "length": 0, "category": [], "data": [], "endTime": [], "name": [], "phase": [], "startTime": [] },
        });
        // The tables follow inside the same object.
        let head = head.to_string();
        text.push_str(head.strip_suffix('}').unwrap_or(&head));
        self.write_tables(text);
        text.push('}');
    }

    fn write_tables(&self, text: &mut String) {
        let Self { strings, funcs, resources, frames, stacks, samples, .. } = self;
        let (zero, null, no, one, none) = (|_| json!(0), |_| Value::Null, |_| json!(false), |_| json!(1), |_| json!(-1));
        text.push_str(r#","stringArray":["#);
        for (number, one) in strings.rows.iter().enumerate() {
            text.push_str(if number > 0 { "," } else { "" });
            text.push_str(&json!(one).to_string());
        }
        text.push(']');
        let since = |row: usize| samples[row].1.saturating_sub(row.checked_sub(1).map_or(0, |before| samples[before].1));
        let of_samples: [Column<'_>; 2] = [("timeDeltas", &|row| json!(since(row))), ("stack", &|row| json!(samples[row].0))];
        write_table(text, "samples", (samples.len(), r#","weightType":"samples","weight":null"#), &of_samples);
        let of_stacks: [Column<'_>; 2] = [("prefix", &|row| json!(stacks.rows[row].0)), ("frame", &|row| json!(stacks.rows[row].1))];
        write_table(text, "stackTable", (stacks.rows.len(), ""), &of_stacks);
        let of_frames: [Column<'_>; 9] = [
            ("func", &|row| json!(frames.rows[row].0)),
            ("category", &|row| json!(frames.rows[row].1)),
            ("subcategory", &zero),
            ("address", &none),
            ("inlineDepth", &zero),
            ("nativeSymbol", &null),
            ("innerWindowID", &zero),
            ("line", &null),
            ("column", &null),
        ];
        write_table(text, "frameTable", (frames.rows.len(), ""), &of_frames);
        let of_funcs: [Column<'_>; 7] = [
            ("name", &|row| json!(funcs.rows[row].0)),
            ("resource", &|row| funcs.rows[row].1.map_or(json!(-1), |index| json!(index))),
            ("isJS", &no),
            ("relevantForJS", &no),
            ("fileName", &null),
            ("lineNumber", &null),
            ("columnNumber", &null),
        ];
        write_table(text, "funcTable", (funcs.rows.len(), ""), &of_funcs);
        let of_resources: [Column<'_>; 4] = [("name", &|row| json!(resources.rows[row])), ("lib", &null), ("host", &null), ("type", &one)];
        write_table(text, "resourceTable", (resources.rows.len(), ""), &of_resources);
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
