//! The streams in progress, indexed by their ends: found in constant time, limited in number.

use std::collections::{HashMap, VecDeque};

use crate::stream::{Port, Stream};

/// How long a closed stream lingers for late packets, nanoseconds of the capture's time.
const LINGER_NS: i64 = 2_000_000_000;

/// One in this many streams may be lingering. Above this, the oldest are released early.
const LINGERING_SHARE: usize = 4;

/// The ends of a stream, the lower one first.
pub(crate) type Key = [Port; 2];

/// A lingering stream.
#[derive(Debug, Clone, Copy)]
struct Lingering {
    slot: u32,
    index: u64,
    until_ns: i64,
}

/// Streams that are over and whose ends are remembered, so that a late packet does not begin a new stream.
#[derive(Debug)]
struct Over {
    key: Key,
    index: u64,
}

/// All streams in progress, within a limit, and as many ends of streams that are over.
pub(crate) struct Flows {
    limit: usize,
    slots: Vec<Option<Stream>>,
    free: Vec<u32>,
    by_key: HashMap<Key, u32>,
    lingering: VecDeque<Lingering>,
    over: HashMap<Key, u64>,
    over_in_order: VecDeque<Over>,
    hand: usize,
    /// The hand of [`Flows::longest_holding`].
    holding_hand: usize,
    last: Option<(Key, u32)>,
}

impl Flows {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit: limit.clamp(1, u32::MAX as usize),
            slots: Vec::new(),
            free: Vec::new(),
            by_key: HashMap::new(),
            lingering: VecDeque::new(),
            over: HashMap::new(),
            over_in_order: VecDeque::new(),
            hand: 0,
            holding_hand: 0,
            last: None,
        }
    }

    /// Number of streams in progress.
    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// The index of the stream between these ends.
    pub(crate) fn find(&mut self, key: &Key) -> Option<u32> {
        if let Some((last, slot)) = &self.last
            && last == key
        {
            return Some(*slot);
        }
        let slot = *self.by_key.get(key)?;
        self.last = Some((*key, slot));
        Some(slot)
    }

    /// The stream at an index.
    pub(crate) fn get(&mut self, slot: u32) -> Option<&mut Stream> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }

    /// True if a stream between these ends is over and was returned.
    pub(crate) fn is_over(&self, key: &Key) -> bool {
        self.over.contains_key(key)
    }

    /// Inserts a new stream. The caller makes room before.
    pub(crate) fn insert(&mut self, stream: Stream) -> u32 {
        let key = stream.ends;
        self.over.remove(&key);
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(stream);
                slot
            }
            None => {
                self.slots.push(Some(stream));
                (self.slots.len() - 1) as u32
            }
        };
        self.by_key.insert(key, slot);
        self.last = Some((key, slot));
        slot
    }

    /// Removes a stream. Its ends are remembered if it is over.
    pub(crate) fn remove(&mut self, slot: u32, remember: bool) -> Option<Stream> {
        let stream = self.slots.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        self.by_key.remove(&stream.ends);
        self.last = None;
        if remember {
            if self.over_in_order.len() >= self.limit
                && let Some(oldest) = self.over_in_order.pop_front()
                && self.over.get(&oldest.key) == Some(&oldest.index)
            {
                self.over.remove(&oldest.key);
            }
            self.over.insert(stream.ends, stream.index);
            self.over_in_order.push_back(Over { key: stream.ends, index: stream.index });
        }
        Some(stream)
    }

    /// The stream has closed and begins to linger.
    pub(crate) fn linger(&mut self, slot: u32, now_ns: i64) {
        if let Some(index) = self.get(slot).map(|stream| stream.index) {
            self.lingering.push_back(Lingering { slot, index, until_ns: now_ns.saturating_add(LINGER_NS) });
        }
    }

    /// A stream that has lingered long enough. If room is needed, any lingering stream.
    pub(crate) fn lingered(&mut self, now_ns: i64, room: bool) -> Option<u32> {
        let room = room || self.lingering.len() > self.limit / LINGERING_SHARE;
        while let Some(first) = self.lingering.front().copied() {
            let there = self.get(first.slot).is_some_and(|stream| stream.index == first.index);
            if there && !room && first.until_ns > now_ns {
                return None;
            }
            self.lingering.pop_front();
            if there {
                return Some(first.slot);
            }
        }
        None
    }

    /// True if there is no room for another.
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.limit
    }

    /// A stream without a packet since the hand passed it last (the clock algorithm).
    pub(crate) fn longest_silent(&mut self) -> Option<u32> {
        for _ in 0..=2 * self.slots.len() {
            self.hand = if self.hand + 1 < self.slots.len() { self.hand + 1 } else { 0 };
            if let Some(stream) = self.slots.get_mut(self.hand)?.as_mut() {
                if !stream.touched {
                    return Some(self.hand as u32);
                }
                stream.touched = false;
            }
        }
        None
    }

    /// A stream that holds payload, one after the other: about the one that the hand passed longest ago.
    pub(crate) fn longest_holding(&mut self) -> Option<u32> {
        for _ in 0..self.slots.len() {
            self.holding_hand = if self.holding_hand + 1 < self.slots.len() { self.holding_hand + 1 } else { 0 };
            if self.slots[self.holding_hand].as_ref().is_some_and(|stream| stream.held > 0) {
                return Some(self.holding_hand as u32);
            }
        }
        None
    }

    /// All remaining streams, in the order of their beginnings.
    pub(crate) fn drain(&mut self) -> Vec<Stream> {
        let mut all: Vec<Stream> = self.slots.drain(..).flatten().collect();
        self.by_key.clear();
        self.last = None;
        all.sort_by_key(|stream| stream.index);
        all
    }
}
