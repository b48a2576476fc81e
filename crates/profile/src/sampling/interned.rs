//! Functions, stacks and threads that are stored once and referred to by number, within bounds: what is beyond them is `[other]`.

use indexmap::{Equivalent, IndexMap, IndexSet};

use crate::layers::layer::Layer;
use crate::profile::{Frame, FrameKind, Stack, StackEnd, Thread};

/// The name of what stands for everything beyond a bound.
pub(crate) const OTHER: &str = "[other]";
/// Memory of a stack besides its functions, as a number of these.
const STACK_OVERHEAD: usize = 8;

/// How much is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// Functions. A host whose programs are all profiled has some ten thousands.
    pub(crate) frames: usize,
    /// Bytes of their names.
    pub(crate) name_bytes: usize,
    /// Threads.
    pub(crate) threads: usize,
    /// Functions of all stacks together.
    pub(crate) stack_frames: usize,
}

impl Room {
    /// For parts of profiles that are bounded already.
    pub(crate) const UNBOUNDED: Self = Self { frames: usize::MAX, name_bytes: usize::MAX, threads: usize::MAX, stack_frames: usize::MAX };
}

impl Default for Room {
    /// Less than 300 MB in total.
    fn default() -> Self {
        Self { frames: 1 << 18, name_bytes: 64 << 20, threads: 1 << 17, stack_frames: 1 << 24 }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Interned {
    room: Room,
    frames: IndexSet<Frame>,
    name_bytes: usize,
    stacks: IndexMap<(Vec<u32>, StackEnd), Layer>,
    stack_frames: usize,
    threads: IndexSet<Thread>,
}

/// A function by which a stored one is found: the fields of [`Frame`], in the same order.
#[derive(Debug, Clone, Copy, Hash)]
pub(crate) struct FrameKey<'a> {
    pub(crate) name: &'a str,
    pub(crate) module: &'a str,
    pub(crate) kind: FrameKind,
    pub(crate) named: bool,
}

impl<'a> From<&'a Frame> for FrameKey<'a> {
    fn from(frame: &'a Frame) -> Self {
        Self { name: &frame.name, module: &frame.module, kind: frame.kind, named: frame.named }
    }
}

impl Equivalent<Frame> for FrameKey<'_> {
    fn equivalent(&self, frame: &Frame) -> bool {
        (self.name, self.module, self.kind, self.named) == (frame.name.as_str(), frame.module.as_str(), frame.kind, frame.named)
    }
}

impl Interned {
    pub(crate) fn within(room: Room) -> Self {
        Self { room, ..Self::default() }
    }

    /// The number of a function; nothing if there is no room for another one.
    pub(crate) fn frame<'a>(&mut self, frame: impl Into<FrameKey<'a>>) -> Option<u32> {
        let key @ FrameKey { name, module, kind, named } = frame.into();
        if let Some(index) = self.frames.get_index_of(&key) {
            return u32::try_from(index).ok();
        }
        let name_bytes = self.name_bytes.saturating_add(name.len() + module.len());
        if self.frames.len() >= self.room.frames || name_bytes > self.room.name_bytes {
            return None;
        }
        self.name_bytes = name_bytes;
        let (index, _) = self.frames.insert_full(Frame { name: name.to_owned(), module: module.to_owned(), kind, named });
        u32::try_from(index).ok()
    }

    /// The number of a stack; nothing if there is no room for another one, or if there was none for one of its functions. `frames`: outermost function first.
    pub(crate) fn stack(&mut self, frames: Option<Vec<u32>>, end: StackEnd, layer: Layer) -> Option<u32> {
        let key = (frames?, end);
        if let Some(index) = self.stacks.get_index_of(&key) {
            return u32::try_from(index).ok();
        }
        let stack_frames = self.stack_frames.saturating_add(key.0.len() + STACK_OVERHEAD);
        if stack_frames > self.room.stack_frames {
            return None;
        }
        self.stack_frames = stack_frames;
        let (index, _) = self.stacks.insert_full(key, layer);
        u32::try_from(index).ok()
    }

    /// The number of the stack that stands for those without room.
    pub(crate) fn other_stack(&mut self) -> u32 {
        let (frame, _) = self.frames.insert_full(other_frame());
        let frame = u32::try_from(frame).unwrap_or(u32::MAX);
        let (stack, _) = self.stacks.insert_full((vec![frame], StackEnd::Kernel), Layer::Unknown);
        u32::try_from(stack).unwrap_or(u32::MAX)
    }

    /// The number of a thread; nothing if there is no room for another one.
    pub(crate) fn thread(&mut self, thread: Thread) -> Option<u32> {
        if self.threads.len() >= self.room.threads {
            return self.threads.get_index_of(&thread).and_then(|index| u32::try_from(index).ok());
        }
        u32::try_from(self.threads.insert_full(thread).0).ok()
    }

    /// The number of the thread that stands for those without room.
    pub(crate) fn other_thread(&mut self) -> u32 {
        u32::try_from(self.threads.insert_full(other_thread()).0).unwrap_or(u32::MAX)
    }

    /// All functions, stacks and threads in the order of their numbers.
    pub(crate) fn into_lists(self) -> (Vec<Frame>, Vec<Stack>, Vec<Thread>) {
        let stacks = self.stacks.into_iter().map(|((frames, end), layer)| Stack { frames, end, layer });
        (self.frames.into_iter().collect(), stacks.collect(), self.threads.into_iter().collect())
    }
}

/// The function of the stack that stands for those beyond a bound. A rule of the layers names it.
pub(crate) fn other_frame() -> Frame {
    Frame { name: OTHER.to_owned(), module: String::new(), kind: FrameKind::User, named: true }
}

/// The thread that stands for those beyond a bound.
pub(crate) fn other_thread() -> Thread {
    Thread { pid: 0, tid: 0, name: OTHER.to_owned(), program: OTHER.to_owned(), started_by: None }
}

/// What is said of samples beyond a bound; nothing if there are none.
pub(crate) fn left_out(samples: u64) -> Option<String> {
    (samples > 0).then(|| format!("{samples} samples in stacks beyond the bounds of a profile are counted as {OTHER}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> FrameKey<'_> {
        FrameKey { name, module: "m", kind: FrameKind::User, named: true }
    }

    #[test]
    fn what_is_known_is_found_and_what_has_no_room_is_other() {
        let mut interned = Interned::within(Room { frames: 2, name_bytes: 100, threads: 1, stack_frames: 2 * (STACK_OVERHEAD + 2) });
        let frames = ["a", "b", "a", "c", "b"].map(|name| interned.frame(named(name)));
        assert_eq!(frames, [Some(0), Some(1), Some(0), None, Some(1)]);
        let mut stack = |frames: Option<Vec<u32>>| interned.stack(frames, StackEnd::Whole, Layer::Tls);
        assert_eq!([stack(Some(vec![0, 1])), stack(None), stack(Some(vec![1, 0])), stack(Some(vec![0]))], [Some(0), None, Some(1), None]);
        assert_eq!(stack(Some(vec![1, 0])), Some(1));
        let thread = |tid| Thread { pid: 1, tid, name: "t".to_owned(), program: "p".to_owned(), started_by: None };
        assert_eq!([interned.thread(thread(1)), interned.thread(thread(2)), interned.thread(thread(1))], [Some(0), None, Some(0)]);
        assert_eq!([interned.other_stack(), interned.other_stack(), interned.other_thread()], [2, 2, 1]);
        let (frames, stacks, threads) = interned.into_lists();
        assert_eq!((frames[2].name.as_str(), &stacks[2].frames, threads[1].program.as_str()), (OTHER, &vec![2], OTHER));
    }

    #[test]
    fn names_take_bounded_memory() {
        let mut interned = Interned::within(Room { name_bytes: 10, ..Room::default() });
        assert_eq!([interned.frame(named("12345678")), interned.frame(named("9")), interned.frame(named(""))], [Some(0), None, Some(1)]);
    }
}
