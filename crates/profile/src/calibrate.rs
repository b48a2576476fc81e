//! What counting something once costs: an own function called in a loop, with the probe and without, by turns.

use std::collections::HashSet;
use std::ffi::CString;
use std::hint::black_box;
use std::os::fd::OwnedFd;
use std::time::Instant;

use crate::count;
use crate::event;
use crate::host;
use crate::maps::Mappings;
use crate::probe::{Event, Kernel, Mechanism};

/// Pairs of loops, with and without.
const PAIRS: usize = 7;
/// Calls in a loop: about 2 ms with a probe.
const CALLS: u32 = 2_000;

/// What counting something once costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cost {
    pub(crate) median_ns: f64,
    pub(crate) low_ns: f64,
    pub(crate) high_ns: f64,
}

/// The cost of a mechanism where so many threads have a probe at the same place; none where it cannot be measured here, or there is no probe.
pub(crate) fn cost(mechanism: Mechanism, kernel: &Kernel, events: &[Event], consumers: usize) -> Option<Cost> {
    match mechanism {
        Mechanism::Uprobe => uprobe(events.first()?, consumers),
        Mechanism::Tracepoint => tracepoint(kernel),
        Mechanism::Kprobe => kprobe(events.first()?.kind, consumers),
        Mechanism::Counter => None,
    }
}

/// Does next to nothing, at a place of its own.
#[inline(never)]
extern "C" fn stepped(value: u64) -> u64 {
    black_box(value).wrapping_add(1)
}

/// The same with a push first, as most functions begin.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
extern "C" fn pushed(_value: u64) -> u64 {
    core::arch::naked_asm!("push rbp", "lea rax, [rdi + 1]", "pop rbp", "ret")
}
#[cfg(not(target_arch = "x86_64"))]
use stepped as pushed;

fn call_stepped() {
    black_box(stepped(black_box(1)));
}

fn call_pushed() {
    black_box(pushed(black_box(1)));
}

/// The cheapest call of the kernel, with nothing cached: getppid(2).
fn enter_kernel() {
    // SAFETY: the call has no arguments and no effect.
    black_box(unsafe { libc::syscall(libc::SYS_getppid) });
}

fn uprobe(target: &Event, consumers: usize) -> Option<Cost> {
    let own = std::process::id();
    let (address, call) = if target.stepped {
        (stepped as *const () as u64, call_stepped as fn())
    } else {
        (pushed as *const () as u64, call_pushed as fn())
    };
    let mappings = Mappings::parse(&host::maps(own)?);
    let mapping = mappings.iter().find(|mapping| (mapping.start..mapping.end).contains(&address))?;
    let offset = (address - mapping.start).checked_add(mapping.offset)?;
    let probe = Some((CString::new("/proc/self/exe").ok()?, offset));
    let event = Event { probe, pids: Some(HashSet::from([own])), ..target.clone() };
    pairs(&event, consumers, call)
}

fn tracepoint(kernel: &Kernel) -> Option<Cost> {
    let id = kernel.tracefs.as_ref().ok()?.id("syscalls", "sys_enter_getppid")?;
    let kind = perf_event_open_sys::bindings::PERF_TYPE_TRACEPOINT;
    pairs(&Event { kind, config: id, probe: None, stepped: false, filter: None, pids: None }, 1, enter_kernel)
}

fn kprobe(kind: u32, consumers: usize) -> Option<Cost> {
    let probe = Some((CString::new("__do_sys_getppid").ok()?, 0));
    pairs(&Event { kind, config: 0, probe, stepped: false, filter: None, pids: None }, consumers, enter_kernel)
}

/// The difference that an event makes to a call, and that many others of sleeping threads beside it.
fn pairs(event: &Event, consumers: usize, call: fn()) -> Option<Cost> {
    // SAFETY: gettid has no preconditions.
    let tid = u32::try_from(unsafe { libc::gettid() }).ok()?;
    let timed = || {
        let begin = Instant::now();
        for _ in 0..CALLS {
            call();
        }
        begin.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    let mut costs = Vec::with_capacity(PAIRS);
    for pair in 0..PAIRS {
        let without = |costs: f64| costs - timed();
        let with = || -> Option<f64> {
            let opened: Vec<OwnedFd> = (0..consumers.max(1)).map(|_| count::open(event, tid).ok()).collect::<Option<_>>()?;
            event::enable(opened.first()?).ok()?;
            let time = timed();
            // A probe that counted nothing was not there.
            (count::read(opened.first()?) > 0).then_some(time)
        };
        // In turns, so that what changes meanwhile does not favour one.
        if pair % 2 == 0 {
            costs.push(without(with()?));
        } else {
            let bare = timed();
            costs.push(with()? - bare);
        }
    }
    summary(costs)
}

fn summary(mut costs: Vec<f64>) -> Option<Cost> {
    costs.sort_by(f64::total_cmp);
    let (low_ns, high_ns) = (*costs.first()?, *costs.last()?);
    let median_ns = *costs.get(costs.len() / 2)?;
    (median_ns > 0.0).then_some(Cost { median_ns, low_ns, high_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_the_pairs_is_told_with_their_range() {
        assert_eq!(summary(vec![3.0, 1.0, 2.0]), Some(Cost { median_ns: 2.0, low_ns: 1.0, high_ns: 3.0 }));
        assert_eq!((summary(vec![]), summary(vec![-1.0, -2.0, 3.0])), (None, None));
    }
}
