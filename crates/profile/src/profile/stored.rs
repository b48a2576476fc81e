//! Reads profiles back from their stored form and sorts their stacks into layers with the current rules.

use crate::layers::layer::Layer;
use crate::layers::{Rules, layer_of};
use crate::profile::{Profile, SCHEMA, STACK_FRAMES_MAX, Stack};
use crate::sampling::event::Clock;
use crate::waiting::waits::Wait;

/// Maximum number of entries of each list when a profile is read back.
const LIST_MAX: usize = 1 << 22;

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
    /// It is larger than any profile that this program writes.
    #[error("it has more than {LIST_MAX} entries in a list, or {STACK_FRAMES_MAX} functions in a stack")]
    Size,
}

impl Profile {
    /// Reads a stored profile, checks that it is complete, and sorts its stacks into layers with the current rules.
    ///
    /// # Errors
    /// If the text is no profile, or one of another version.
    pub fn from_json(text: &str) -> Result<Self, ReadError> {
        let mut profile: Self = serde_json::from_str(text)?;
        if profile.schema != SCHEMA {
            return Err(ReadError::Schema(profile.schema));
        }
        if [profile.frames.len(), profile.stacks.len(), profile.threads.len(), profile.samples.len()].iter().any(|len| *len > LIST_MAX) {
            return Err(ReadError::Size);
        }
        if profile.stacks.iter().any(|stack| stack.frames.len() > STACK_FRAMES_MAX) {
            return Err(ReadError::Size);
        }
        let within = |index: u32, length: usize| usize::try_from(index).is_ok_and(|index| index < length);
        if !profile.stacks.iter().flat_map(|stack| &stack.frames).all(|frame| within(*frame, profile.frames.len())) {
            return Err(ReadError::Reference("function"));
        }
        if !profile.samples.iter().all(|sample| within(sample.stack, profile.stacks.len())) {
            return Err(ReadError::Reference("stack"));
        }
        if !profile.samples.iter().all(|sample| within(sample.thread, profile.threads.len())) {
            return Err(ReadError::Reference("thread"));
        }
        profile.classify();
        Ok(profile)
    }

    /// Sorts every stack into its layer.
    pub fn classify(&mut self) {
        let rules = Rules::new();
        // A function occurs in many stacks, and comparing its name with all patterns is expensive.
        let matches: Vec<_> =
            if self.clock == Clock::OffCpu { Vec::new() } else { self.frames.iter().map(|frame| rules.of(frame)).collect() };
        let of = |frame: &u32| matches.get(usize::try_from(*frame).ok()?).copied();
        let layer = |stack: &Stack| match self.clock {
            Clock::OffCpu => Wait::of(&self.frames_of(stack)).layer(),
            Clock::Cycles | Clock::CpuClock => layer_of(&stack.frames.iter().filter_map(of).collect::<Vec<_>>()),
        };
        let layers: Vec<Layer> = self.stacks.iter().map(layer).collect();
        for (stack, layer) in self.stacks.iter_mut().zip(layers) {
            stack.layer = layer;
        }
    }
}
