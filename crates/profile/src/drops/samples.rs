//! Counts drops by samples of the tracepoint skb:kfree_skb (perf_event_open(2)): everything that a kernel with drop drop_tracepoint reports, without sockets.

use std::collections::{BTreeMap, HashMap};
use std::ffi::CString;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use perf_event_open_sys::bindings as b;

use super::ends::{DropReports, ReportingTracepoints};
use super::named::{DropCounts, DropKey, DropSocket};
use super::reasons::DropTracepoint;
use crate::error::Error;
use crate::host;
use crate::sampling::event::{self, is_refusal, privilege, wait};
use crate::sampling::record;
use crate::sampling::ring::{Ring, bytes_of_each};
use crate::tracefs::{Format, Tracefs};

/// Maximum number of kinds. Drops of further kinds count as lost.
const KINDS_MAX: usize = 1 << 14;

/// Open events that do not count yet.
#[derive(Debug)]
pub(super) struct Sampling {
    fds: Vec<OwnedFd>,
    /// Tracepoints that report local ends. Their events are the `followers`, whose samples go to the rings of `fds`.
    ends: ReportingTracepoints,
    followers: Vec<OwnedFd>,
    rings: Vec<Ring>,
}

/// What distinguishes drops while they are counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct SampledDrop {
    reason: u64,
    location: u64,
    protocol: u64,
    socket: Option<bool>,
    local: Option<SocketAddr>,
    pid: u32,
}

impl Sampling {
    /// Opens the tracepoint on each core.
    pub(super) fn open(tracefs: &Tracefs, drop_tracepoint: &DropTracepoint) -> Result<Self, Error> {
        let filter: Vec<String> = drop_tracepoint.no_loss.iter().map(|(number, _)| format!("reason != {number}")).collect();
        let filter = CString::new(filter.join(" && ")).unwrap_or_default();
        let cores = host::cores_online();
        let bytes = bytes_of_each(cores.len());
        let attr = attributes(drop_tracepoint.id, bytes);
        let ends = ReportingTracepoints::find(tracefs);
        let (mut fds, mut rings, mut followers) = (Vec::new(), Vec::new(), Vec::new());
        for core in cores {
            let fd = match event::open(&attr, -1, core) {
                Ok(fd) => fd,
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => continue,
                Err(error) if is_refusal(&error) => return Err(privilege("counting drops", &error)),
                Err(error) => return Err(Error::Io("perf_event_open".to_owned(), error)),
            };
            if !filter.is_empty() {
                let refused = |error| Error::Io("the kernel accepts no filter for skb:kfree_skb".to_owned(), error);
                event::set_filter(&fd, &filter).map_err(refused)?;
            }
            rings.push(Ring::map(&fd, bytes).map_err(|error| Error::Io("the buffer for drops cannot be mapped".to_owned(), error))?);
            for tracepoint in ends.ids() {
                // Drops are counted even if a reporting tracepoint cannot be opened.
                let follower = event::open(&attributes(tracepoint, bytes), -1, core).ok();
                followers.extend(follower.filter(|follower| event::redirect(follower, &fd).is_ok()));
            }
            fds.push(fd);
        }
        Ok(Self { fds, ends, followers, rings })
    }

    /// Counts while `go_on` returns true; it is called ten times a second.
    pub(super) fn run(
        mut self,
        drop_tracepoint: &DropTracepoint,
        begin: Instant,
        mut go_on: impl FnMut(Duration) -> bool,
    ) -> Result<DropCounts, Error> {
        for fd in self.followers.iter().chain(&self.fds) {
            event::enable(fd).map_err(|error| Error::Io("counting cannot be started".to_owned(), error))?;
        }
        let mut tally = Tally::default();
        let mut reports: Vec<DropReports> = self.rings.iter().map(|_| DropReports::default()).collect();
        let mut buffer = Vec::new();
        loop {
            let more = go_on(begin.elapsed());
            if more {
                wait(&self.fds);
            } else {
                for fd in self.fds.iter().chain(&self.followers) {
                    // An event that cannot be stopped is closed in a moment anyway.
                    let _ = event::disable(fd);
                }
            }
            for (ring, reports) in self.rings.iter_mut().zip(&mut reports) {
                buffer.clear();
                if !ring.take(&mut buffer) {
                    tally.lost += 1;
                }
                tally.take(&buffer, &Layout { id: drop_tracepoint.id, format: &drop_tracepoint.format, ends: &self.ends }, reports);
            }
            if !more {
                break;
            }
        }
        Ok(tally.finish(begin.elapsed()))
    }
}

fn attributes(id: u64, ring_bytes: usize) -> b::perf_event_attr {
    let mut attr = b::perf_event_attr {
        size: u32::try_from(size_of::<b::perf_event_attr>()).unwrap_or(0),
        type_: b::PERF_TYPE_TRACEPOINT,
        config: id,
        sample_type: u64::from(b::PERF_SAMPLE_TID | b::PERF_SAMPLE_TIME | b::PERF_SAMPLE_RAW),
        ..Default::default()
    };
    attr.__bindgen_anon_1.sample_period = 1;
    attr.set_disabled(1);
    event::set_ring(&mut attr, ring_bytes);
    attr
}

/// How to read the samples of a ring: the number and layout of the drop tracepoint, and the reporting tracepoints.
struct Layout<'a> {
    id: u64,
    format: &'a Format,
    ends: &'a ReportingTracepoints,
}

/// Packets by kind.
#[derive(Debug, Default)]
struct Tally {
    kinds: BTreeMap<SampledDrop, u64>,
    /// Program and namespace of each process, looked up when it is first seen, since it may end soon after.
    programs: HashMap<u32, (String, Option<u64>)>,
    lost: u64,
}

impl Tally {
    /// Reads the records of a ring. Stops at a malformed one and counts it as lost.
    fn take(&mut self, mut bytes: &[u8], layout: &Layout<'_>, reports: &mut DropReports) {
        while !bytes.is_empty() {
            let Ok((kind, _, body, rest)) = record::split(bytes) else {
                self.lost += 1;
                return;
            };
            match kind {
                record::SAMPLE => match sample(body, layout, reports) {
                    Some(Sample::Drop(kind)) => self.count(kind),
                    Some(Sample::Report) => {}
                    None => self.lost += 1,
                },
                record::LOST => self.lost = self.lost.saturating_add(body.get(8..16).map_or(1, |word| u64_at(word, 0))),
                _ => {}
            }
            bytes = rest;
        }
    }

    fn count(&mut self, kind: SampledDrop) {
        if self.kinds.len() >= KINDS_MAX && !self.kinds.contains_key(&kind) {
            self.lost += 1;
            return;
        }
        self.programs.entry(kind.pid).or_insert_with(|| of_process(kind.pid));
        *self.kinds.entry(kind).or_default() += 1;
    }

    fn finish(self, duration: Duration) -> DropCounts {
        let mut kinds: BTreeMap<DropKey, u64> = BTreeMap::new();
        for (sampled, count) in self.kinds {
            let (program, program_namespace) = self.programs.get(&sampled.pid).cloned().unwrap_or_default();
            let SampledDrop { reason, location, protocol, socket, local, .. } = sampled;
            let end = DropSocket { local, ..DropSocket::default() };
            *kinds.entry(DropKey { reason, location, protocol, socket, program, program_namespace, end }).or_default() += count;
        }
        DropCounts { kinds: kinds.into_iter().collect(), lost: self.lost, duration }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

/// A parsed sample.
enum Sample {
    Drop(SampledDrop),
    /// A report on a packet that is about to be dropped.
    Report,
}

/// Parses pid, tid, time, size of the tracepoint's data, then the data, which starts with the tracepoint's number.
fn sample(body: &[u8], layout: &Layout<'_>, reports: &mut DropReports) -> Option<Sample> {
    let head = body.first_chunk::<20>()?;
    let data = body.get(20..20_usize.checked_add(usize::try_from(u32_at(head, 16)).ok()?)?)?;
    let (time, id) = (u64_at(head, 8), u64::from(u16::from_ne_bytes(*data.first_chunk()?)));
    if id != layout.id {
        return reports.take(layout.ends, time, id, data).then_some(Sample::Report);
    }
    let number = |name: &str| layout.format.number(name, data);
    Some(Sample::Drop(SampledDrop {
        reason: number("reason")?,
        location: number("location").unwrap_or(0),
        protocol: number("protocol").unwrap_or(0),
        socket: number("rx_sk").map(|socket| socket != 0),
        local: number("skbaddr").and_then(|packet| reports.of(time, packet)),
        pid: u32_at(head, 0),
    }))
}

fn of_process(pid: u32) -> (String, Option<u64>) {
    if pid == 0 {
        return ("[idle]".to_owned(), None);
    }
    let program = host::comm(pid, pid).unwrap_or_else(|| "(gone)".to_owned());
    // Kernel threads are in the initial namespace, whatever they work on.
    if host::is_kernel_thread(pid) { (format!("[{program}]"), None) } else { (program, host::network_namespace(pid)) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::named;
    use super::*;

    fn format() -> Format {
        Format::parse(
            "\tfield:void * skbaddr;\toffset:8;\tsize:8;\tsigned:0;\n\tfield:void * location;\toffset:16;\tsize:8;\tsigned:0;\n\tfield:void * rx_sk;\toffset:24;\tsize:8;\tsigned:0;\n\
             \tfield:unsigned short protocol;\toffset:32;\tsize:2;\tsigned:0;\n\tfield:enum skb_drop_reason reason;\toffset:36;\tsize:4;\tsigned:0;\n\
             print fmt: { 3, \"NO_SOCKET\" }, { 2, \"NOT_SPECIFIED\" }",
        )
    }

    /// The tracepoint's number in the records below.
    const ID: u64 = 17;

    fn take(tally: &mut Tally, bytes: &[u8]) {
        let (format, ends) = (format(), ReportingTracepoints::default());
        tally.take(bytes, &Layout { id: ID, format: &format, ends: &ends }, &mut DropReports::default());
    }

    fn sample_record(pid: u32, reason: u32, location: u64) -> Vec<u8> {
        let mut data = ID.to_ne_bytes().to_vec();
        data.extend([0; 8]);
        data.extend(location.to_ne_bytes());
        data.extend(0_u64.to_ne_bytes());
        data.extend(0x0800_u16.to_ne_bytes());
        data.extend([0; 2]);
        data.extend(reason.to_ne_bytes());
        let words = [pid, pid, 0, 0, u32::try_from(data.len()).unwrap()];
        let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        body.extend(&data);
        let mut record = record::SAMPLE.to_ne_bytes().to_vec();
        record.extend(0_u16.to_ne_bytes());
        record.extend(u16::try_from(body.len() + 8).unwrap().to_ne_bytes());
        record.extend(body);
        record
    }

    #[test]
    fn drops_are_counted_by_reason_and_location() {
        let mut bytes = sample_record(0, 3, 0x1010);
        bytes.extend(sample_record(0, 3, 0x1020));
        bytes.extend(sample_record(0, 99, 0x2000));
        bytes.extend([2, 0, 0, 0, 0, 0, 24, 0]);
        bytes.extend([0_u64.to_ne_bytes(), 5_u64.to_ne_bytes()].concat());
        let mut tally = Tally::default();
        take(&mut tally, &bytes);
        let counted = tally.finish(Duration::ZERO);
        assert_eq!(counted.lost, 5);
        let (drops, _) = named::drops(counted.kinds, &format(), "0000000000001000 T udp_rcv\n0000000000002000 T other\n".as_bytes());
        let reports: Vec<_> = drops.iter().map(|drop| (drop.reason.as_str(), drop.location.as_str(), drop.count)).collect();
        assert_eq!(reports, [("NO_SOCKET", "udp_rcv", 2), ("reason 99", "other", 1)]);
        let first = &drops[0];
        assert_eq!((first.protocol.as_str(), first.for_socket, first.program.as_str()), ("IPv4", Some(false), "[idle]"));
        assert!(first.meaning.is_some());
    }

    #[test]
    fn records_cut_at_any_byte_count_as_lost() {
        let bytes = sample_record(0, 3, 0x1010);
        for length in 1..bytes.len() {
            let mut tally = Tally::default();
            take(&mut tally, &bytes[..length]);
            assert_eq!((tally.kinds.len(), tally.lost), (0, 1), "{length}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_read(bytes: Vec<u8>, at in 0usize..60, byte: u8) {
            let mut tally = Tally::default();
            take(&mut tally, &bytes);
            let mut damaged = sample_record(0, 3, 1);
            if let Some(old) = damaged.get_mut(at) {
                *old = byte;
            }
            take(&mut tally, &damaged);
            prop_assert!(tally.kinds.len() <= 1 + bytes.len() / 8);
        }
    }
}
