//! Compares the newest blocks with the recent past.

use std::collections::VecDeque;

use super::block::Block;
use super::block::REQUESTS_MIN;
use super::past::{PAST_MIN, Past, WORSE_BLOCKS, is_bad};
use super::{Against, Drop, Figures, Kind};
use crate::sample::TargetSample;

/// The blocks that are worse must last at least this long: a reload or a burst is over by then.
const WORSE_S: u64 = 4;
/// The most blocks of the past that are kept: five minutes of seconds.
const PAST_MAX: usize = 300;
/// Blocks between the past and the newest ones: those at the beginning of a drop that creeps in.
const APART: usize = 5;
/// What lasts this long is how the server is now: the past begins anew.
const LASTS_MAX_S: u64 = 600;

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A drop was seen.
    Began(Drop),
    /// The drop is over.
    Ended {
        /// The server.
        target: String,
        /// When it was last seen, seconds since 1970.
        at_s: u64,
        /// False if it lasts and is taken for how the server is now.
        recovered: bool,
    },
}

/// A drop under way.
#[derive(Debug, Clone)]
struct UnderWay {
    drop: Drop,
    /// Until when it was seen.
    seen_s: u64,
    /// The blocks in which it was seen.
    during: Vec<Figures>,
}

/// Watches one server.
#[derive(Debug, Clone)]
pub struct Detector {
    target: String,
    open: Block,
    past: VecDeque<Block>,
    /// The newest blocks, which are not part of the past yet.
    newest: VecDeque<Block>,
    drop: Option<UnderWay>,
    /// What is bad lasted so long that it is how the server is: it is not told again before it ends.
    is_settled: bool,
}

impl Detector {
    /// Of a server of this name.
    pub fn new(target: &str) -> Self {
        Self {
            target: target.to_owned(),
            open: Block::default(),
            past: VecDeque::new(),
            newest: VecDeque::new(),
            drop: None,
            is_settled: false,
        }
    }

    /// The drop under way, with the medians of all blocks in which it was seen: the first ones hold seconds from before it.
    pub fn drop_under_way(&self) -> Option<&Drop> {
        self.drop.as_ref().map(|under_way| &under_way.drop)
    }

    /// True if enough of the past is known to compare with.
    pub fn compares(&self) -> bool {
        self.past.len() >= PAST_MIN
    }

    /// Takes the sample of a second.
    pub fn add(&mut self, at_s: u64, second: &TargetSample) -> Option<Event> {
        let block = self.open.add(at_s, second)?;
        // A clock that was set back: what is known is of another time.
        if self.newest.back().is_some_and(|newest| newest.from_s >= block.from_s) {
            *self = Self { drop: self.drop.take(), ..Self::new(&self.target) };
        }
        self.newest.push_back(block);
        let now_s = at_s + 1;
        match self.drop.take() {
            None => self.look_for_drop(now_s),
            Some(under_way) => self.follow(under_way, now_s),
        }
    }

    fn look_for_drop(&mut self, now_s: u64) -> Option<Event> {
        let is_any_bad = |block: &Block| [Kind::Losses, Kind::Full].iter().any(|kind| is_bad(*kind, &block.served()));
        self.is_settled = self.is_settled && self.newest.back().is_some_and(is_any_bad);
        let found = self.found(now_s);
        if let Some(drop) = &found {
            let during = self.newest.iter().rev().take(WORSE_BLOCKS).map(Block::figures).collect();
            self.drop = Some(UnderWay { drop: drop.clone(), seen_s: now_s, during });
        } else {
            while self.newest.len() > WORSE_BLOCKS + APART {
                self.past.extend(self.newest.pop_front());
            }
            while self.past.len() > PAST_MAX {
                self.past.pop_front();
            }
        }
        found.map(Event::Began)
    }

    /// The drop that the newest blocks show.
    fn found(&self, now_s: u64) -> Option<Drop> {
        let worse: Vec<Block> = self.newest.iter().rev().take(WORSE_BLOCKS).rev().copied().collect();
        let since_s = worse.first().filter(|_| worse.len() == WORSE_BLOCKS)?.from_s;
        if now_s < since_s + WORSE_S {
            return None;
        }
        let (kinds, against) = match self.compares() {
            true => (self.kinds(&worse), Against::Minutes),
            false => (self.bad_kinds(&worse), Against::Nothing),
        };
        let before = || if self.compares() { self.before() } else { Figures::default() };
        (!kinds.is_empty()).then(|| Drop {
            target: self.target.clone(),
            since_s,
            kinds,
            against,
            before: before(),
            during: Block::sum(&worse).figures(),
        })
    }

    /// In which ways all these blocks are worse than the past.
    fn kinds(&self, blocks: &[Block]) -> Vec<Kind> {
        let past = Past::of(self.past.iter().map(Block::served));
        past.exceeded(&blocks.iter().map(Block::served).collect::<Vec<_>>())
    }

    /// In which ways all these blocks are bad whatever was before. Few requests tell no share.
    fn bad_kinds(&self, blocks: &[Block]) -> Vec<Kind> {
        let are_enough = Block::sum(blocks).ended() >= REQUESTS_MIN;
        let is_told = |kind: &Kind| *kind == Kind::Full || are_enough;
        let all = |kind: &Kind| is_told(kind) && blocks.iter().all(|block| is_bad(*kind, &block.served()));
        let kinds: Vec<Kind> = [Kind::Losses, Kind::Full].into_iter().filter(all).collect();
        if self.is_settled { Vec::new() } else { kinds }
    }

    fn before(&self) -> Figures {
        Figures::medians(&self.past.iter().map(Block::figures).collect::<Vec<_>>())
    }

    /// Whether a drop is still seen.
    fn follow(&mut self, mut under_way: UnderWay, now_s: u64) -> Option<Event> {
        while self.newest.len() > WORSE_BLOCKS {
            self.newest.pop_front();
        }
        let past = Past::of(self.past.iter().map(Block::served));
        let drop = &mut under_way.drop;
        let is_exceeded = |kind: Kind, block: &Block| match drop.against {
            Against::Nothing => is_bad(kind, &block.served()),
            Against::Minutes | Against::Days => past.is_exceeded(kind, &block.served()),
        };
        let is_worse = |block: &Block| drop.kinds.iter().any(|kind| is_exceeded(*kind, block));
        if let Some(last) = self.newest.back().filter(|block| is_worse(block)) {
            under_way.seen_s = now_s;
            under_way.during.push(last.figures());
        }
        let recovered = !self.newest.iter().any(is_worse);
        if !recovered && now_s < drop.since_s + LASTS_MAX_S {
            drop.during = Figures::medians(&under_way.during);
            self.drop = Some(under_way);
            return None;
        }
        if !recovered {
            self.past.clear();
        }
        self.is_settled = !recovered;
        Some(Event::Ended { target: self.target.clone(), at_s: under_way.seen_s, recovered })
    }
}
