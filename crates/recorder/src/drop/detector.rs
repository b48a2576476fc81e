//! Compares the newest blocks with the recent past.

use std::collections::VecDeque;

use super::block::Block;
use super::{Drop, Figures, Kind};
use crate::sample::TargetSample;

/// So many blocks in a row must be worse than the past, and last at least this long: a reload or a burst is over by then. If nothing changed, the chance that the
/// newest 4 of 104 blocks are the 4 worst is one in 4.6 million.
const WORSE_BLOCKS: usize = 4;
const WORSE_S: u64 = 4;
/// Blocks of the past that are needed, and the most that are kept: five minutes of seconds.
const PAST_MIN: usize = 30;
const PAST_MAX: usize = 300;
/// Blocks between the past and the newest ones: those at the beginning of a drop that creeps in.
const APART: usize = 5;
/// The share of past blocks that may have been as bad: bursts and reloads are part of the past, and no measure of its noise.
const OUTLIERS: f64 = 0.02;
/// Harm, as the judge defines it: goodput would be a tenth higher without it,
const HARM_TIME: f64 = 1.1;
/// or a hundredth of the requests suffer.
const HARM_SHARE: f64 = 0.01;
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

/// Watches one server.
#[derive(Debug, Clone)]
pub struct Detector {
    target: String,
    open: Block,
    past: VecDeque<Block>,
    /// The newest blocks, which are not part of the past yet.
    newest: VecDeque<Block>,
    /// The drop under way, and until when it was seen.
    drop: Option<(Drop, u64)>,
}

impl Detector {
    /// Of a server of this name.
    pub fn new(target: &str) -> Self {
        Self { target: target.to_owned(), open: Block::default(), past: VecDeque::new(), newest: VecDeque::new(), drop: None }
    }

    /// The drop under way.
    pub fn drop_under_way(&self) -> Option<&Drop> {
        self.drop.as_ref().map(|(drop, _)| drop)
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
            Some((drop, seen_s)) => self.follow(drop, seen_s, now_s),
        }
    }

    fn look_for_drop(&mut self, now_s: u64) -> Option<Event> {
        let found = self.found(now_s);
        if let Some(drop) = &found {
            self.drop = Some((drop.clone(), now_s));
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
        if now_s < since_s + WORSE_S || self.past.len() < PAST_MIN {
            return None;
        }
        let kinds = self.kinds(&worse);
        let before = || self.before();
        (!kinds.is_empty()).then(|| Drop {
            target: self.target.clone(),
            since_s,
            kinds,
            before: before(),
            during: Block::sum(&worse).figures(),
        })
    }

    /// In which ways all these blocks are worse than the past.
    fn kinds(&self, blocks: &[Block]) -> Vec<Kind> {
        let past = Past::of(&self.past);
        [Kind::Gone, Kind::Losses, Kind::Slower]
            .into_iter()
            .filter(|kind| blocks.iter().all(|block| past.is_exceeded(*kind, block)))
            .collect()
    }

    fn before(&self) -> Figures {
        let median = |of: &dyn Fn(Figures) -> Option<f64>| {
            let values: Vec<f64> = self.past.iter().filter_map(|block| of(block.figures())).collect();
            chokepoint_statistics::median(&values)
        };
        Figures {
            rate_rps: median(&|figures| figures.rate_rps),
            under_way: median(&|figures| figures.under_way),
            response_ms: median(&|figures| figures.response_ms),
            bad_share: median(&|figures| figures.bad_share),
        }
    }

    /// Whether a drop is still seen.
    fn follow(&mut self, drop: Drop, seen_s: u64, now_s: u64) -> Option<Event> {
        while self.newest.len() > WORSE_BLOCKS {
            self.newest.pop_front();
        }
        let past = Past::of(&self.past);
        let is_worse = |block: &Block| drop.kinds.iter().any(|kind| past.is_exceeded(*kind, block));
        let seen_s = if self.newest.back().is_some_and(is_worse) { now_s } else { seen_s };
        let recovered = !self.newest.iter().any(is_worse);
        if !recovered && now_s < drop.since_s + LASTS_MAX_S {
            self.drop = Some((drop, seen_s));
            return None;
        }
        if !recovered {
            self.past.clear();
        }
        Some(Event::Ended { target: self.target.clone(), at_s: seen_s, recovered })
    }
}

/// The bounds of the past's noise.
struct Past {
    response_s: Option<f64>,
    bad_share: Option<f64>,
    rate_rps: Option<f64>,
    has_traffic: bool,
}

impl Past {
    fn of(blocks: &VecDeque<Block>) -> Self {
        let high = |of: &dyn Fn(&Block) -> Option<f64>| {
            let mut values: Vec<f64> = blocks.iter().filter_map(of).collect();
            values.sort_by(f64::total_cmp);
            let outliers = (values.len() as f64 * OUTLIERS) as usize;
            // Few values tell no bound.
            (values.len() >= PAST_MIN).then(|| values[values.len() - 1 - outliers])
        };
        let with_traffic = blocks.iter().filter(|block| block.has_traffic()).count();
        Self {
            response_s: high(&Block::response_s),
            bad_share: high(&Block::bad_share),
            rate_rps: high(&Block::rate_rps),
            has_traffic: 2 * with_traffic > blocks.len(),
        }
    }

    fn is_exceeded(&self, kind: Kind, block: &Block) -> bool {
        let is_more = |value: Option<f64>, bound: Option<f64>, by: &dyn Fn(f64) -> f64| {
            value.zip(bound).is_some_and(|(value, bound)| value > by(bound))
        };
        match kind {
            Kind::Gone => self.has_traffic && block.gone_s > 0 && !block.has_traffic(),
            Kind::Losses => is_more(block.bad_share(), self.bad_share, &|bound| bound + HARM_SHARE),
            // More requests than ever take longer because they are more.
            Kind::Slower => {
                is_more(block.response_s(), self.response_s, &|bound| bound * HARM_TIME)
                    && !is_more(block.rate_rps(), self.rate_rps, &|bound| bound * HARM_TIME)
            }
        }
    }
}
