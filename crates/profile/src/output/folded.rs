//! Folded stacks, the form of flame graph programs: lines of "program;outermost;...;innermost COUNT". Kernel functions end in `_[k]` and compiled ones in
//! `_[j]`, as FlameGraph's stackcollapse-perf annotates them.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use crate::layers::layer::Layer;
use crate::profile::{Frame, FrameKind, Profile, STACK_FRAMES_MAX, Sample, StackEnd, Thread};
use crate::sampling::event::Clock;
use crate::sampling::interned::Interned;

/// Maximum number of lines that are read.
const LINES_MAX: usize = 1 << 20;
/// Maximum number of samples that counts are expanded to. Beyond it one sample stands for the whole count of a line.
const SAMPLES_MAX: usize = 1 << 20;

/// Begins a line of what was left out, in front of the stacks.
const NOTE: &str = "# ";
/// Maximum number of such lines.
const NOTES_MAX: usize = 16;

/// Why a text is no list of folded stacks.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {0} is not a folded stack, which is \"program;function;function COUNT\"")]
pub struct FoldedError(usize);

/// The busy samples of each stack below its program, in alphabetical order. Weights of waiting are in microseconds.
pub fn write(profile: &Profile) -> String {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    // Each sample of waiting is rounded on its own, so the sum stays independent of the grouping.
    let rounded = |sample: &Sample| if profile.clock == Clock::OffCpu { sample.weight / 1000 } else { 1 };
    let mut sums: HashMap<(u32, u32), u64> = HashMap::new();
    for (sample, ..) in profile.busy() {
        let sum = sums.entry((sample.stack, sample.thread)).or_default();
        *sum = sum.saturating_add(rounded(sample));
    }
    let at = |index: u32| usize::try_from(index).ok();
    for ((stack, thread), sum) in sums {
        let place = at(stack).and_then(|index| profile.stacks.get(index)).zip(at(thread).and_then(|index| profile.threads.get(index)));
        let Some((stack, thread)) = place else { continue };
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
        let count = counts.entry(line).or_default();
        *count = count.saturating_add(sum);
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
/// If a line has no count or too many functions, or there are too many lines.
pub fn read(text: &str) -> Result<Profile, FoldedError> {
    let mut interned = Interned::default();
    let mut threads: Vec<Thread> = Vec::new();
    let mut samples = Vec::new();
    let left_out: Vec<String> = text.lines().map_while(|line| line.strip_prefix(NOTE)).take(NOTES_MAX).map(str::to_owned).collect();
    for (number, line) in text.lines().enumerate().skip(left_out.len()).filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = || FoldedError(number + 1);
        let (stack, count) = line.trim_end().rsplit_once(' ').ok_or_else(wrong)?;
        let weight: u64 = count.parse().map_err(|_| wrong())?;
        if number >= LINES_MAX || stack.split(';').count() > STACK_FRAMES_MAX {
            return Err(wrong());
        }
        let mut names = stack.split(';');
        let program = names.next().unwrap_or_default().to_owned();
        let frames = names.map(|name| interned.frame(&frame(name))).collect();
        let thread = Thread { pid: 0, tid: 0, name: program.clone(), program };
        let index = threads.iter().position(|other| *other == thread).unwrap_or_else(|| {
            threads.push(thread);
            threads.len() - 1
        });
        let [thread, stack] = [u32::try_from(index).unwrap_or(u32::MAX), interned.stack(frames, StackEnd::Whole, Layer::Unknown)];
        let sample = Sample { time_ms: 0, cpu: 0, thread, stack, weight };
        match usize::try_from(weight).ok().filter(|count| samples.len().saturating_add(*count) <= SAMPLES_MAX) {
            Some(count) => samples.extend(std::iter::repeat_n(Sample { weight: 1, ..sample }, count)),
            None => samples.push(sample),
        }
    }
    let mut profile = Profile {
        frames: interned.frames,
        stacks: interned.stacks,
        threads,
        samples,
        left_out,
        ..Profile::new(Clock::CpuClock, "folded stacks".to_owned())
    };
    profile.classify();
    Ok(profile)
}

/// A function from its folded name: "tcp_ack_[k]", "[libssl.so.3+0x1234]" or "libssl.so.3+0x1234". Only the last two contain the file.
fn frame(name: &str) -> Frame {
    if let Some(name) = name.strip_suffix("_[k]") {
        return Frame { name: name.to_owned(), module: "kernel".to_owned(), kind: FrameKind::Kernel, named: true };
    }
    if let Some(name) = name.strip_suffix("_[j]") {
        return Frame { name: name.to_owned(), module: "[jit]".to_owned(), kind: FrameKind::Jit, named: true };
    }
    let module = name.trim_matches(['[', ']']).rsplit_once("+0x").map(|(module, _)| module);
    Frame { name: name.to_owned(), module: module.unwrap_or_default().to_owned(), kind: FrameKind::User, named: module.is_none() }
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
        assert_eq!(read("a;b 1\nc;d\n"), Err(FoldedError(2)));
        assert_eq!(read("a;b -1\n"), Err(FoldedError(1)));
        assert!(read("\n\n").unwrap().samples.is_empty());
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
