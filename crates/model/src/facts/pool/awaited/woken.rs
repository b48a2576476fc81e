//! Threads of sessions that wait until a time and are woken before: for another thread, and not for that time. The system call alone does not tell a lock with a time limit from a sleep.

use std::collections::BTreeSet;

use super::MOMENT_US;
use crate::facts::Context;
use crate::observation::{ProcessView, ThreadAt, ThreadLook, TimedWait};

/// The looks at a process, with the places at which its threads were found to be woken.
pub(super) struct Woken<'c> {
    looks: Vec<&'c (u64, ThreadLook)>,
    /// A thread, and what it waits for.
    places: BTreeSet<(u32, u16)>,
    /// Threads that waited for a socket: each serves a session.
    serving: BTreeSet<u32>,
    /// Threads that never ran in the window.
    still: BTreeSet<u32>,
}

/// Threads of one look, by number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Counts {
    /// They wait for another thread.
    pub(super) waiting: f64,
    /// Those of them that may be the server's own, which wait for work.
    pub(super) perhaps_own: f64,
    /// They surely wait for something else, without a request: for their client, or for nothing that happened.
    pub(super) elsewhere: f64,
}

impl<'c> Woken<'c> {
    /// `None` without two looks.
    pub(super) fn of(ctx: &Context<'_>, process: &'c ProcessView) -> Option<Self> {
        let looks: Vec<&(u64, ThreadLook)> = ctx.in_window(&process.thread_looks).filter(|(_, look)| !look.threads.is_empty()).collect();
        let mut places = BTreeSet::new();
        for two in looks.windows(2) {
            places.extend(woken_between(&two[0].1, &two[1].1));
        }
        let all = process.thread_looks.values().flat_map(|look| &look.threads);
        let serving = all.filter(|thread| thread.at == ThreadAt::Socket).map(|thread| thread.id).collect();
        let ran = ctx.around(&process.cpu).map(|(first, last, _)| last.ran_since(first).filter(|(_, ran_ns)| *ran_ns == 0));
        let still = ran.into_iter().flatten().map(|(id, _)| id).collect();
        (looks.len() > 1).then_some(Self { looks, places, serving, still })
    }

    /// The threads of the process at about this time. `None` without a look then.
    pub(super) fn at(&self, at_us: u64) -> Option<Counts> {
        let (near_us, look) = self.looks.iter().min_by_key(|(near_us, _)| near_us.abs_diff(at_us))?;
        if near_us.abs_diff(at_us) > MOMENT_US {
            return None;
        }
        let (mut waiting, mut perhaps_own, mut elsewhere) = (0_usize, 0_usize, 0_usize);
        for thread in &look.threads {
            match thread.at {
                ThreadAt::Until(wait) if self.places.contains(&(thread.id, wait.place)) => {
                    waiting += 1;
                    perhaps_own += usize::from(!self.serving.contains(&thread.id));
                }
                // A session waits without an end for a log that is written, and a thread of the server's own for work.
                ThreadAt::Socket | ThreadAt::Untimed => elsewhere += 1,
                _ if self.still.contains(&thread.id) => elsewhere += 1,
                _ => {}
            }
        }
        // Of many threads only some are looked at.
        let each = f64::from(look.others) / look.threads.len() as f64;
        let of = |number: usize| each * number as f64;
        Some(Counts { waiting: of(waiting), perhaps_own: of(perhaps_own), elsewhere: of(elsewhere) })
    }
}

/// The threads of a look whose wait was over at the next one although its time was not, with what they waited for.
fn woken_between<'l>(look: &'l ThreadLook, next: &'l ThreadLook) -> impl Iterator<Item = (u32, u16)> + 'l {
    let elapsed_ms = next.clock_ms.saturating_sub(look.clock_ms);
    let is_over = |id: u32, wait: TimedWait| {
        // One that was not looked at again may still be there.
        let again = next.threads.iter().find(|thread| thread.id == id);
        again.is_some_and(|thread| !matches!(thread.at, ThreadAt::Until(now) if now.place == wait.place && now.end == wait.end))
    };
    look.threads.iter().filter_map(move |thread| match thread.at {
        ThreadAt::Until(wait) if wait.left_ms > elapsed_ms && is_over(thread.id, wait) => Some((thread.id, wait.place)),
        _ => None,
    })
}
