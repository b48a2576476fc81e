//! Reads profiles back from their stored form and sorts their stacks into layers with the current rules. What they hold is bounded while they are read.

use std::fmt;
use std::io::Read;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};

use crate::layers::layer::Layer;
use crate::layers::{Rules, layer_of};
use crate::profile::{Frame, Profile, SCHEMA, STACK_FRAMES_MAX, Sample, Stack, Thread};
use crate::sampling::event::Clock;
use crate::waiting::waits::Wait;

/// Maximum number of samples, as of the sampler.
const SAMPLES_MAX: usize = 1 << 22;
/// Entries of a list that stand for what there was no room for, at most: as it was read, and as it was bounded.
const OTHERS_MAX: usize = 2;
/// Maximum number of functions, and of threads.
const NAMED_MAX: usize = (1 << 18) + OTHERS_MAX;
/// Maximum number of stacks, and functions of all stacks.
const STACKS_MAX: usize = (1 << 20) + OTHERS_MAX;
const STACK_FRAMES_ALL_MAX: usize = 1 << 24;
/// Maximum number of notes and of cores.
const NOTES_MAX: usize = 1 << 12;
/// Maximum bytes of the names of all functions, and of all threads.
const NAME_BYTES_MAX: usize = 64 << 20;
/// Maximum bytes of a text.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// Why a stored profile cannot be read back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// It is no JSON of this shape.
    #[error("it is not a profile: {0}")]
    Json(#[from] serde_json::Error),
    /// It is of another version.
    #[error("it has schema \"{0}\", and this chokepoint reads {SCHEMA}")]
    Schema(String),
    /// It refers to something that it does not contain.
    #[error("it refers to a {0} that it does not contain")]
    Reference(&'static str),
}

/// What takes memory in a list.
pub(super) trait Weighed {
    /// What one entry takes of the bound of its list.
    fn weight(&self) -> usize;
    /// Most entries, and the most that they take together.
    const BOUNDS: (usize, usize);
}

impl Weighed for Frame {
    fn weight(&self) -> usize {
        self.name.len() + self.module.len()
    }
    const BOUNDS: (usize, usize) = (NAMED_MAX, NAME_BYTES_MAX);
}

impl Weighed for Thread {
    fn weight(&self) -> usize {
        self.name.len() + self.program.len()
    }
    const BOUNDS: (usize, usize) = (NAMED_MAX, NAME_BYTES_MAX);
}

impl Weighed for Stack {
    fn weight(&self) -> usize {
        self.frames.len()
    }
    const BOUNDS: (usize, usize) = (STACKS_MAX, STACK_FRAMES_ALL_MAX);
}

/// A function of a stack.
impl Weighed for u32 {
    fn weight(&self) -> usize {
        0
    }
    const BOUNDS: (usize, usize) = (STACK_FRAMES_MAX, 0);
}

impl Weighed for Sample {
    fn weight(&self) -> usize {
        0
    }
    const BOUNDS: (usize, usize) = (SAMPLES_MAX, 0);
}

impl Weighed for super::Core {
    fn weight(&self) -> usize {
        0
    }
    const BOUNDS: (usize, usize) = (NOTES_MAX, 0);
}

/// A note.
impl Weighed for String {
    fn weight(&self) -> usize {
        self.len()
    }
    const BOUNDS: (usize, usize) = (NOTES_MAX, TEXT_BYTES_MAX);
}

/// Reads a list that is within the bounds of its entries.
pub(super) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de> + Weighed>(deserializer: D) -> Result<Vec<T>, D::Error> {
    struct List<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de> + Weighed> Visitor<'de> for List<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Vec<T>, A::Error> {
            let ((count_max, weight_max), mut list, mut weight) = (T::BOUNDS, Vec::new(), 0_usize);
            while let Some(entry) = entries.next_element::<T>()? {
                weight = weight.saturating_add(entry.weight());
                if list.len() >= count_max || weight > weight_max {
                    return Err(A::Error::custom("a list is longer than any that is written"));
                }
                list.push(entry);
            }
            Ok(list)
        }
    }

    deserializer.deserialize_seq(List(PhantomData))
}

/// JSON without longer texts than are written: the parser holds each text as a whole.
struct ShortTexts<R> {
    json: R,
    /// Bytes since the last quotation mark within a text; nothing outside of texts.
    text: Option<usize>,
    is_escaped: bool,
}

impl<R: Read> Read for ShortTexts<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = self.json.read(buffer)?;
        for byte in &buffer[..length] {
            match (&mut self.text, *byte) {
                (None, b'"') => self.text = Some(0),
                (None, _) => {}
                (Some(_), b'"') if !self.is_escaped => self.text = None,
                (Some(length), byte) => {
                    self.is_escaped = byte == b'\\' && !self.is_escaped;
                    *length += 1;
                    if *length > TEXT_BYTES_MAX {
                        return Err(std::io::Error::other("a text is longer than any that is written"));
                    }
                }
            }
        }
        Ok(length)
    }
}

impl Profile {
    /// Reads a stored profile, checks that it is complete, and sorts its stacks into layers with the current rules.
    ///
    /// # Errors
    /// If the text is no profile, or one of another version, or larger than any that this program writes.
    pub fn from_json(text: &str) -> Result<Self, ReadError> {
        Self::read_json(text.as_bytes())
    }

    /// [`Profile::from_json`] piece by piece.
    ///
    /// # Errors
    /// As of [`Profile::from_json`]; if the text cannot be read.
    pub fn read_json(json: impl Read) -> Result<Self, ReadError> {
        let short = std::io::BufReader::new(ShortTexts { json, text: None, is_escaped: false });
        let mut profile: Self = serde_json::from_reader(short)?;
        if profile.schema != SCHEMA {
            return Err(ReadError::Schema(profile.schema));
        }
        profile.check()?;
        profile.bound();
        profile.classify();
        Ok(profile)
    }

    /// Whether all numbers of functions, stacks and threads lead to one.
    ///
    /// # Errors
    /// One does not.
    pub fn check(&self) -> Result<(), ReadError> {
        let within = |index: u32, length: usize| usize::try_from(index).is_ok_and(|index| index < length);
        if !self.stacks.iter().flat_map(|stack| &stack.frames).all(|frame| within(*frame, self.frames.len())) {
            return Err(ReadError::Reference("function"));
        }
        if !self.samples.iter().all(|sample| within(sample.stack, self.stacks.len())) {
            return Err(ReadError::Reference("stack"));
        }
        if !self.samples.iter().all(|sample| within(sample.thread, self.threads.len())) {
            return Err(ReadError::Reference("thread"));
        }
        Ok(())
    }

    /// Sorts every stack into its layer.
    pub fn classify(&mut self) {
        let rules = Rules::new();
        // A function occurs in many stacks, and comparing its name with all patterns is expensive.
        let matches: Vec<_> =
            if self.clock == Clock::OffCpu { Vec::new() } else { self.frames.iter().map(|frame| rules.of(frame)).collect() };
        let of = |frame: &u32| matches.get(usize::try_from(*frame).ok()?).copied();
        let layers: Vec<Layer> = match self.clock {
            Clock::OffCpu => Wait::of_stacks(self).into_iter().map(Wait::layer).collect(),
            Clock::Cycles | Clock::CpuClock => {
                self.stacks.iter().map(|stack| layer_of(&stack.frames.iter().filter_map(of).collect::<Vec<_>>())).collect()
            }
        };
        for (stack, layer) in self.stacks.iter_mut().zip(layers) {
            stack.layer = layer;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::folded;

    fn stored() -> serde_json::Value {
        serde_json::to_value(folded::read("a;f 1\n").unwrap()).unwrap()
    }

    fn refusal(profile: &serde_json::Value) -> String {
        Profile::from_json(&profile.to_string()).unwrap_err().to_string()
    }

    #[test]
    fn lists_and_texts_are_as_long_as_those_that_are_written() {
        assert!(Profile::from_json(&stored().to_string()).is_ok());
        for (list, entry, count) in [
            ("frames", serde_json::json!({ "name": "", "module": "", "kind": "user", "named": true }), NAMED_MAX),
            ("notes", serde_json::json!(""), NOTES_MAX),
            ("threads", serde_json::json!({ "pid": 1, "tid": 1, "name": "a".repeat(TEXT_BYTES_MAX), "program": "" }), 1 << 10),
        ] {
            let mut profile = stored();
            profile[list] = vec![entry; count + 1].into();
            assert!(refusal(&profile).contains("a list is longer"), "{list}");
        }
        let mut profile = stored();
        profile["stacks"][0]["frames"] = vec![0; STACK_FRAMES_MAX].into();
        assert!(Profile::from_json(&profile.to_string()).is_ok());
        profile["stacks"][0]["frames"] = vec![0; STACK_FRAMES_MAX + 1].into();
        assert!(refusal(&profile).contains("a list is longer"));
        let named = |name: String| {
            let mut profile = stored();
            profile["frames"][0]["name"] = name.into();
            profile
        };
        assert!(Profile::from_json(&named("\"".repeat(TEXT_BYTES_MAX / 2)).to_string()).is_ok(), "quotation marks do not end it");
        assert!(refusal(&named("a".repeat(TEXT_BYTES_MAX + 1))).contains("a text is longer"));
    }
}
