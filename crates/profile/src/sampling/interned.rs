//! Functions and stacks that are stored once and referred to by number.

use std::collections::HashMap;

use crate::layers::layer::Layer;
use crate::profile::{Frame, Stack, StackEnd};

#[derive(Debug, Default)]
pub(crate) struct Interned {
    pub(crate) frames: Vec<Frame>,
    frames_known: HashMap<Frame, u32>,
    pub(crate) stacks: Vec<Stack>,
    stacks_known: HashMap<(Vec<u32>, StackEnd), u32>,
}

impl Interned {
    /// The number of a function.
    pub(crate) fn frame(&mut self, frame: &Frame) -> u32 {
        if let Some(index) = self.frames_known.get(frame) {
            return *index;
        }
        let index = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
        self.frames.push(frame.clone());
        self.frames_known.insert(frame.clone(), index);
        index
    }

    /// The number of a stack. `frames`: outermost function first.
    pub(crate) fn stack(&mut self, frames: Vec<u32>, end: StackEnd, layer: Layer) -> u32 {
        let index = u32::try_from(self.stacks.len()).unwrap_or(u32::MAX);
        let stacks = &mut self.stacks;
        *self.stacks_known.entry((frames.clone(), end)).or_insert_with(|| {
            stacks.push(Stack { frames, end, layer });
            index
        })
    }
}
