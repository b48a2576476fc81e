//! Folded stacks, the form of flame graph programs: lines of "program;outermost;...;innermost COUNT". Kernel functions end in `_[k]` and compiled ones in
//! `_[j]`, as FlameGraph's stackcollapse-perf annotates them.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::io::{self, BufRead, Read};

use crate::layers::layer::Layer;
use crate::naming::demangle::NAME_MAX;
use crate::profile::{FrameKind, Profile, STACK_FRAMES_MAX, Sample, StackEnd, Thread};
use crate::sampling::event::Clock;
use crate::sampling::interned::{self, FrameKey, Interned, OTHER, Room};

/// Maximum bytes of a line that is read.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Maximum number of lines whose samples are told apart.
const LINES_MAX: u64 = 1 << 20;
/// Maximum number of samples that counts are expanded to. Beyond it one sample stands for the whole count of a line.
const SAMPLES_MAX: usize = 1 << 20;
/// Maximum bytes of stacks that are written. The lightest stacks beyond it are one line.
const WRITTEN_BYTES_MAX: usize = 256 << 20;

/// Begins a line of what was left out, in front of the stacks.
const NOTE: &str = "# ";
/// Maximum number of such lines.
const NOTES_MAX: usize = 16;

/// Why a text is no list of folded stacks.
#[derive(Debug, thiserror::Error)]
pub enum FoldedError {
    /// A line is none.
    #[error("line {0} is not a folded stack, which is \"program;function;function COUNT\"")]
    Line(u64),
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The busy samples of each stack below its program, in alphabetical order. Weights of waiting are in microseconds.
pub fn write(profile: &Profile) -> String {
    write_within(WRITTEN_BYTES_MAX, profile)
}

fn write_within(bytes_max: usize, profile: &Profile) -> String {
    // Each sample of waiting is rounded on its own, so the sum stays independent of the grouping. What was read from folded stacks has counts, and no frequency.
    let rounded = |sample: &Sample| match profile.clock {
        Clock::OffCpu => sample.weight / 1000,
        Clock::Cycles | Clock::CpuClock if profile.frequency_hz > 0 => 1,
        Clock::Cycles | Clock::CpuClock => sample.weight,
    };
    let mut sums: HashMap<(u32, u32), u64> = HashMap::new();
    for (sample, ..) in profile.busy() {
        let sum = sums.entry((sample.stack, sample.thread)).or_default();
        *sum = sum.saturating_add(rounded(sample));
    }
    // The heaviest first, for whose lines there is room.
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_unstable_by_key(|((stack, thread), sum)| (std::cmp::Reverse(*sum), *stack, *thread));
    let (mut counts, mut bytes, mut other): (BTreeMap<String, u64>, usize, u64) = (BTreeMap::new(), 0, 0);
    for ((stack, thread), sum) in sums {
        let Some((stack, thread)) = profile.stack(stack).zip(profile.thread(thread)) else { continue };
        let mut line = plain(&thread.program);
        for frame in profile.frames_of(stack) {
            line.push(';');
            line.push_str(&plain(&frame.name));
            line.push_str(match frame.kind {
                FrameKind::Kernel => "_[k]",
                FrameKind::Jit => "_[j]",
                FrameKind::User => "",
            });
        }
        bytes = bytes.saturating_add(line.len());
        if bytes > bytes_max {
            other = other.saturating_add(sum);
            continue;
        }
        let count = counts.entry(line).or_default();
        *count = count.saturating_add(sum);
    }
    if other > 0 {
        counts.insert(format!("{OTHER};{OTHER}"), other);
    }
    counts.into_iter().fold(String::new(), |mut text, (line, count)| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{line} {count}");
        text
    })
}

/// [`write`] with what was left out of the profile in front, each in a line that begins with "# ". [`read`] takes them back; flame graph programs skip such lines.
pub fn write_with_left_out(profile: &Profile) -> String {
    let told = profile.left_out.iter().map(|note| format!("{NOTE}{}\n", plain(note).replace('\n', " ")));
    told.chain([write(profile)]).collect()
}

/// Reads folded stacks as a profile without times and cores. Each sample weighs one, unless there are millions.
///
/// # Errors
/// If a line has no count, too many functions or too many letters.
pub fn read(text: &str) -> Result<Profile, FoldedError> {
    read_from(text.as_bytes())
}

/// [`read`] line by line. The profile takes bounded memory, whatever is read: what is beyond the bounds is counted as `[other]`, and said.
///
/// # Errors
/// As of [`read`]; if the text cannot be read.
pub fn read_from(text: impl BufRead) -> Result<Profile, FoldedError> {
    read_within(Room::default(), LINES_MAX, text)
}

fn read_within(room: Room, lines_max: u64, mut text: impl BufRead) -> Result<Profile, FoldedError> {
    let mut lines = Lines { interned: Interned::within(room), samples: Vec::new(), other: 0 };
    let (mut left_out, mut bytes, mut number) = (Vec::new(), Vec::new(), 0);
    loop {
        bytes.clear();
        if text.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        number += 1;
        let wrong = || FoldedError::Line(number);
        if bytes.len() > LINE_BYTES_MAX {
            return Err(wrong());
        }
        let line = String::from_utf8_lossy(&bytes);
        let note = line.strip_prefix(NOTE).filter(|_| left_out.len() as u64 == number - 1 && left_out.len() < NOTES_MAX);
        if let Some(note) = note {
            left_out.push(note.trim_end().to_owned());
        } else if !line.trim().is_empty() {
            lines.add(line.trim_end(), number <= lines_max).ok_or_else(wrong)?;
        }
    }
    let Lines { mut interned, mut samples, other } = lines;
    if other > 0 {
        let (thread, stack) = (interned.other_thread(), interned.other_stack());
        samples.push(Sample { time_ms: 0, cpu: 0, thread, stack, weight: other });
    }
    let (frames, stacks, threads) = interned.into_lists();
    left_out.extend(interned::left_out(other));
    let mut profile = Profile { frames, stacks, threads, samples, left_out, ..Profile::new(Clock::CpuClock, "folded stacks".to_owned()) };
    profile.bound();
    profile.classify();
    Ok(profile)
}

/// What was read of the lines.
struct Lines {
    interned: Interned,
    samples: Vec<Sample>,
    /// Samples beyond the bounds.
    other: u64,
}

impl Lines {
    /// Adds the samples of a line; nothing if it is no folded stack.
    fn add(&mut self, line: &str, is_kept: bool) -> Option<()> {
        let (stack, count) = line.rsplit_once(' ')?;
        let weight: u64 = count.parse().ok()?;
        if stack.split(';').take(STACK_FRAMES_MAX + 1).count() > STACK_FRAMES_MAX {
            return None;
        }
        let interned = &mut self.interned;
        let mut names = stack.split(';').map(shortened);
        let program = names.next().unwrap_or_default().to_owned();
        let place = is_kept.then(|| {
            let frames = names.map(|name| interned.frame(frame(name))).collect();
            let stack = interned.stack(frames, StackEnd::Whole, Layer::Unknown)?;
            Some((interned.thread(Thread { pid: 0, tid: 0, name: program.clone(), program, started_by: None })?, stack))
        });
        let Some((thread, stack)) = place.flatten() else {
            self.other = self.other.saturating_add(weight);
            return Some(());
        };
        let sample = Sample { time_ms: 0, cpu: 0, thread, stack, weight };
        match usize::try_from(weight).ok().filter(|count| self.samples.len().saturating_add(*count) <= SAMPLES_MAX) {
            Some(count) => self.samples.extend(std::iter::repeat_n(Sample { weight: 1, ..sample }, count)),
            None => self.samples.push(sample),
        }
        Some(())
    }
}

/// A name of bounded length, as of sampled functions.
fn shortened(name: &str) -> &str {
    name.char_indices().nth(NAME_MAX + MARK_MAX).map_or(name, |(end, _)| &name[..end])
}

/// Letters that [`write()`] adds to a name.
const MARK_MAX: usize = 4;

/// A function from its folded name: "tcp_ack_[k]", "[libssl.so.3+0x1234]" or "libssl.so.3+0x1234". Only the last two contain the file.
fn frame(name: &str) -> FrameKey<'_> {
    if let Some(name) = name.strip_suffix("_[k]") {
        return FrameKey { name, module: "kernel", kind: FrameKind::Kernel, named: true };
    }
    if let Some(name) = name.strip_suffix("_[j]") {
        return FrameKey { name, module: "[jit]", kind: FrameKind::Jit, named: true };
    }
    let module = name.trim_matches(['[', ']']).rsplit_once("+0x").map(|(module, _)| module);
    FrameKey { name, module: module.unwrap_or_default(), kind: FrameKind::User, named: module.is_none() }
}

/// A name that can stand in a folded stack.
fn plain(name: &str) -> String {
    name.chars().map(|letter| if letter == ';' || chokepoint_foreign::steers(letter) { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn written_stacks_can_be_read() {
        let text = "nginx;main;libssl.so.3+0x12 2\nnginx;main;read;ksys_read_[k] 1\nnode;f_[j] 3\n";
        let profile = read(text).unwrap();
        let layers: Vec<_> = profile.stacks.iter().map(|stack| stack.layer.def().id).collect();
        assert_eq!(layers, ["tls", "file-system", "interpreter"]);
        assert_eq!(profile.weight_busy(), 6);
        assert_eq!(write(&profile), text);
    }

    #[test]
    fn what_was_left_out_is_written_in_front_and_read_back() {
        let text = "# symbols left out: rustc (140 MiB)\nrustc;main 3\n";
        let profile = read(text).unwrap();
        assert_eq!(profile.left_out, ["symbols left out: rustc (140 MiB)"]);
        assert_eq!((write_with_left_out(&profile).as_str(), write(&profile).as_str()), (text, "rustc;main 3\n"));
    }

    #[test]
    fn an_error_names_the_malformed_line() {
        let line_of = |text: &str| if let Err(FoldedError::Line(line)) = read(text) { Some(line) } else { None };
        assert_eq!([line_of("a;b 1\nc;d\n"), line_of("a;b -1\n"), line_of("# x\n\nc;d\n")], [Some(2), Some(1), Some(3)]);
        assert_eq!(line_of(&"a".repeat(LINE_BYTES_MAX)), Some(1), "a line without an end");
        assert!(read("\n\n").unwrap().samples.is_empty());
    }

    #[test]
    fn beyond_each_bound_samples_are_counted_as_other_and_it_is_said() {
        let text: String = (0..20).map(|number| format!("p{};f{number};g 3\n", number % 4)).collect();
        let said = |other: u64| format!("{other} samples in stacks beyond the bounds of a profile are counted as [other]");
        for (room, lines_max, other) in [
            (Room { frames: 6, ..Room::default() }, 100, 45),
            (Room { stack_frames: 100, ..Room::default() }, 100, 30),
            (Room { threads: 1, ..Room::default() }, 100, 45),
            (Room::default(), 12, 24),
        ] {
            let profile = read_within(room, lines_max, text.as_bytes()).unwrap();
            assert_eq!((profile.weight_busy(), profile.left_out.as_slice()), (60, [said(other)].as_slice()), "{room:?}");
            let last = profile.samples.last().and_then(|sample| profile.of(sample)).unwrap();
            assert_eq!((last.1.program.as_str(), last.0.layer), (OTHER, Layer::Unknown));
            let written = write(&profile);
            assert!(written.contains(&format!("[other];[other] {other}\n")), "{written}");
        }
        assert!(read(&text).unwrap().left_out.is_empty());
    }

    #[test]
    fn a_text_that_would_be_too_long_ends_with_its_lightest_stacks_as_one_line() {
        let profile = read("a;light 1\na;heavy 9\nb;light 2\n").unwrap();
        assert_eq!(write_within(10, &profile), "[other];[other] 3\na;heavy 9\n");
    }

    #[test]
    fn names_are_as_long_as_sampled_ones() {
        let profile = read(&format!("a;{}_[k] 1\na;{} 1\n", "é".repeat(NAME_MAX), "é".repeat(9_000))).unwrap();
        let lengths: Vec<usize> = profile.frames.iter().map(|frame| frame.name.chars().count()).collect();
        assert_eq!((lengths, profile.frames[0].kind), (vec![NAME_MAX, NAME_MAX + MARK_MAX], FrameKind::Kernel));
    }

    proptest! {
        #[test]
        fn arbitrary_text_is_read(text in "[a-z;+x0 \\[\\]_k\n\\PC]{0,80}") {
            if let Ok(profile) = read(&text) {
                write(&profile);
            }
        }
    }
}
