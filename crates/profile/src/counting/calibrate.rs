//! Measures what counting one call costs: one of our own functions is called in a loop, alternately with and without the probe.

use std::collections::HashSet;
use std::ffi::CString;
use std::hint::black_box;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use crate::counting::counter;
use crate::counting::probe::{Event, Kernel, Mechanism, Probe};
use crate::host;
use crate::sampling::event;
use crate::unwinding::mappings::Mappings;

/// Pairs of loops, one with and one without the probe.
const PAIRS: usize = 7;
/// Calls in a loop: about 2 ms with a probe.
const CALLS: u32 = 2_000;

/// What counting one call costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cost {
    pub(crate) median_ns: f64,
    pub(crate) low_ns: f64,
    pub(crate) high_ns: f64,
}

/// The cost of a mechanism if this many threads have a probe in the same place; none if it cannot be measured here or uses no probe.
pub(crate) fn cost(mechanism: Mechanism, kernel: &Kernel, events: &[Event], consumers: usize) -> Option<Cost> {
    match mechanism {
        Mechanism::Uprobe => uprobe(events.first()?, consumers),
        Mechanism::Tracepoint => tracepoint(kernel),
        Mechanism::Kprobe => kprobe(events.first()?.kind, consumers),
        Mechanism::Counter => None,
    }
}

/// Does almost nothing; a place for a probe.
#[inline(never)]
extern "C" fn single_stepped(value: u64) -> u64 {
    black_box(value).wrapping_add(1)
}

/// The same starting with a push, as most functions do.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
extern "C" fn starting_with_push(_value: u64) -> u64 {
    core::arch::naked_asm!("push rbp", "lea rax, [rdi + 1]", "pop rbp", "ret")
}
#[cfg(not(target_arch = "x86_64"))]
use single_stepped as starting_with_push;

fn call_single_stepped() {
    black_box(single_stepped(black_box(1)));
}

fn call_starting_with_push() {
    black_box(starting_with_push(black_box(1)));
}

/// The cheapest system call that is not cached: getppid(2).
fn enter_kernel() {
    // SAFETY: the call has no arguments and no effect.
    black_box(unsafe { libc::syscall(libc::SYS_getppid) });
}

fn uprobe(target: &Event, consumers: usize) -> Option<Cost> {
    let own = std::process::id();
    let (address, call) = if target.is_single_stepped {
        (single_stepped as *const () as u64, call_single_stepped as fn())
    } else {
        (starting_with_push as *const () as u64, call_starting_with_push as fn())
    };
    let mappings = Mappings::parse(&host::maps(own)?);
    let mapping = mappings.iter().find(|mapping| (mapping.start..mapping.end).contains(&address))?;
    let offset = (address - mapping.start).checked_add(mapping.offset)?;
    let probe = Some(Probe::File(Arc::new(host::open("/proc/self/exe")?), offset));
    let event = Event { probe, pids: Some(HashSet::from([own])), ..target.clone() };
    measure_in_pairs(&event, consumers, call)
}

fn tracepoint(kernel: &Kernel) -> Option<Cost> {
    let id = kernel.tracefs.as_ref().ok()?.id("syscalls", "sys_enter_getppid")?;
    let kind = perf_event_open_sys::bindings::PERF_TYPE_TRACEPOINT;
    measure_in_pairs(&Event { kind, config: id, probe: None, is_single_stepped: false, filter: None, pids: None }, 1, enter_kernel)
}

fn kprobe(kind: u32, consumers: usize) -> Option<Cost> {
    let probe = Some(Probe::Kernel(CString::new("__do_sys_getppid").ok()?));
    measure_in_pairs(&Event { kind, config: 0, probe, is_single_stepped: false, filter: None, pids: None }, consumers, enter_kernel)
}

/// The time that an event adds to a call, while `consumers` - 1 other events watch the same place.
fn measure_in_pairs(event: &Event, consumers: usize, call: fn()) -> Option<Cost> {
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
            let opened: Vec<OwnedFd> = (0..consumers.max(1)).map(|_| counter::open(event, tid).ok()).collect::<Option<_>>()?;
            event::enable(opened.first()?).ok()?;
            let time = timed();
            // A probe that counted nothing was not active.
            (counter::counted(counter::Words::default(), counter::read(opened.first()?)) > 0).then_some(time)
        };
        // Alternate the order, so that changes on the machine do not favour one of the two.
        if pair % 2 == 0 {
            costs.push(without(with()?));
        } else {
            let bare = timed();
            costs.push(with()? - bare);
        }
    }
    cost_of_pairs(costs)
}

fn cost_of_pairs(mut costs: Vec<f64>) -> Option<Cost> {
    costs.sort_by(f64::total_cmp);
    let (low_ns, high_ns) = (*costs.first()?, *costs.last()?);
    let median_ns = *costs.get(costs.len() / 2)?;
    (median_ns > 0.0).then_some(Cost { median_ns, low_ns, high_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_the_median_of_the_pairs_with_their_range() {
        assert_eq!(cost_of_pairs(vec![3.0, 1.0, 2.0]), Some(Cost { median_ns: 2.0, low_ns: 1.0, high_ns: 3.0 }));
        assert_eq!((cost_of_pairs(vec![]), cost_of_pairs(vec![-1.0, -2.0, 3.0])), (None, None));
    }
}
