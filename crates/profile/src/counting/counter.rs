//! An open counter of perf_event_open(2): opening, reading and scaling it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use perf_event_open_sys::bindings as b;

use crate::counting::probe::Event;
use crate::sampling::event;

/// Opens an event of a thread on every core. Counters also count the thread's children. Probes do not: the kernel would create the probe anew as the
/// thread that starts a child, and if that thread may not create probes it could not start anything.
pub(crate) fn open(event: &Event, tid: u32) -> io::Result<OwnedFd> {
    let mut attr = b::perf_event_attr {
        size: u32::try_from(size_of::<b::perf_event_attr>()).unwrap_or(0),
        type_: event.kind,
        config: event.config,
        read_format: u64::from(b::PERF_FORMAT_TOTAL_TIME_ENABLED | b::PERF_FORMAT_TOTAL_TIME_RUNNING),
        ..Default::default()
    };
    attr.set_disabled(1);
    attr.set_inherit(u64::from(event.probe.is_none()));
    if let Some((place, offset)) = &event.probe {
        attr.__bindgen_anon_3.config1 = place.as_ptr() as u64;
        attr.__bindgen_anon_4.config2 = *offset;
    }
    let fd = event::open_anywhere(&attr, i32::try_from(tid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?)?;
    if let Some(filter) = &event.filter {
        event::set_filter(&fd, filter)?;
    }
    Ok(fd)
}

/// The count of an event, scaled if it could not count all the time; 0 if it cannot be read.
pub(crate) fn read(fd: &OwnedFd) -> u64 {
    let mut words = [0_u64; 3];
    // SAFETY: the kernel writes at most the given size into `words`, which lives through the call.
    let read = unsafe { libc::read(fd.as_raw_fd(), words.as_mut_ptr().cast(), size_of_val(&words)) };
    if usize::try_from(read) == Ok(size_of_val(&words)) { scaled(words) } else { 0 }
}

/// Scales a count by the time enabled and the time running.
fn scaled([count, enabled, running]: [u64; 3]) -> u64 {
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
}
