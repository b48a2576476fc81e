//! An open counter of perf_event_open(2): opening, reading and scaling it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use perf_event_open_sys::bindings as b;

use crate::counting::probe::{Event, Probe};
use crate::sampling::event;

/// Opens an event of a thread on every core. Counters also count the thread's children. Probes do not: the kernel would create the probe anew as the
/// thread that starts a child, and if that thread may not create probes it could not start anything.
///
/// A counter counts at once; what it counted until the beginning is subtracted ([`Words`]). A child takes over whether its parent's event counts, and the two may trade
/// their events at a switch (`perf_event_context_sched_out`): one that is switched on later, while the thread starts a child, may stay off for it and for all that follow.
pub(crate) fn open(event: &Event, tid: u32) -> io::Result<OwnedFd> {
    let mut attr = b::perf_event_attr {
        size: u32::try_from(size_of::<b::perf_event_attr>()).unwrap_or(0),
        type_: event.kind,
        config: event.config,
        read_format: u64::from(b::PERF_FORMAT_TOTAL_TIME_ENABLED | b::PERF_FORMAT_TOTAL_TIME_RUNNING),
        ..Default::default()
    };
    attr.set_disabled(u64::from(!is_inherited(event)));
    attr.set_inherit(u64::from(is_inherited(event)));
    // The kernel reads the name during the call.
    let probe = event.probe.as_ref().map(Probe::name_and_offset).transpose()?;
    if let Some((name, offset)) = &probe {
        attr.__bindgen_anon_3.config1 = name.as_ptr() as u64;
        attr.__bindgen_anon_4.config2 = *offset;
    }
    let fd = event::open_anywhere(&attr, i32::try_from(tid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?)?;
    if let Some(filter) = &event.filter {
        event::set_filter(&fd, filter)?;
    }
    Ok(fd)
}

/// Whether an event also counts the children of its thread, and counts from its opening on.
pub(crate) fn is_inherited(event: &Event) -> bool {
    event.probe.is_none()
}

/// What an event counted, and the time for which it was enabled and running, nanoseconds.
pub(crate) type Words = [u64; 3];

/// What an event counted so far; nothing if it cannot be read.
pub(crate) fn read(fd: &OwnedFd) -> Words {
    let mut words = Words::default();
    // SAFETY: the kernel writes at most the given size into `words`, which lives through the call.
    let read = unsafe { libc::read(fd.as_raw_fd(), words.as_mut_ptr().cast(), size_of_val(&words)) };
    if usize::try_from(read) == Ok(size_of_val(&words)) { words } else { Words::default() }
}

/// What was counted between two readings, scaled if the event could not count all the time.
pub(crate) fn counted(before: Words, after: Words) -> u64 {
    scaled([0, 1, 2].map(|index| after[index].saturating_sub(before[index])))
}

/// Scales a count by the time enabled and the time running.
fn scaled([count, enabled, running]: Words) -> u64 {
    if running == 0 || running >= enabled {
        return if running == 0 { 0 } else { count };
    }
    u64::try_from(u128::from(count) * u128::from(enabled) / u128::from(running)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_that_share_the_processor_are_scaled() {
        assert_eq!(scaled([10, 100, 100]), 10);
        assert_eq!(scaled([10, 100, 50]), 20);
        assert_eq!(scaled([10, 100, 0]), 0);
        assert_eq!(scaled([u64::MAX, u64::MAX, 1]), u64::MAX);
    }

    #[test]
    fn what_was_counted_before_the_beginning_is_left_out() {
        assert_eq!(counted([7, 100, 100], [27, 200, 150]), 40);
        assert_eq!((counted([7, 100, 100], [7, 200, 200]), counted([7, 100, 100], [0; 3])), (0, 0));
    }
}
