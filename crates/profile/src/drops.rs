//! Packets that the kernel dropped, with its reasons: the tracepoint skb:kfree_skb by perf_event_open(2), each event a sample.

use std::collections::{BTreeMap, HashMap};
use std::ffi::CString;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use perf_event_open_sys as sys;
use perf_event_open_sys::bindings as b;
use serde::Serialize;

use crate::error::Error;
use crate::event;
use crate::host;
use crate::kernel::Kallsyms;
use crate::ring::{Ring, bytes_of_each};
use crate::sampler::{is_refusal, privilege, thread_cpu_s, wait};
use crate::tracefs::{Format, Tracefs};

mod ends;
mod reasons;

use ends::{Ends, Told};
use reasons::{ORDINARY, meaning};

/// Name and version of the form of [`Drops`] as JSON.
pub const DROPS_SCHEMA: &str = "chokepoint/drops/1";
/// Kinds of drops at most that are told apart; those beyond are counted together with the lost ones.
const KINDS_MAX: usize = 1 << 14;
/// `PERF_RECORD_LOST` and `PERF_RECORD_SAMPLE` of linux/perf_event.h.
const LOST: u32 = 2;
const SAMPLE: u32 = 9;

/// Drops of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Drop {
    /// The kernel's name for the reason (enum skb_drop_reason); its number where it has none.
    pub reason: String,
    /// What that means, where it is known.
    pub meaning: Option<&'static str>,
    /// The function of the kernel that dropped them.
    pub location: String,
    /// IPv4, IPv6, ARP, or the number in hexadecimal.
    pub protocol: String,
    /// Whether a socket was known for which the packet came; none where the kernel does not tell.
    pub for_socket: Option<bool>,
    /// What ran at that moment: between programs of one host mostly the one that sent the packet, else whatever was interrupted.
    pub program: String,
    /// The network namespace of that program: its name below /run/netns, or its number.
    pub namespace: Option<String>,
    /// Address and port of this host that they came for, where another tracepoint told them of the same packets.
    pub local: Option<SocketAddr>,
    /// Who holds a socket there, where somebody does: whoever knows the host's sockets enters it. More than one where several namespaces have such a socket.
    pub holders: Vec<Holder>,
    /// Packets.
    pub count: u64,
}

/// A program that holds a socket.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Holder {
    /// Its name.
    pub program: String,
    /// The network namespace of the socket.
    pub namespace: Option<String>,
}

/// Packets that a socket itself counted as dropped: a listener whose queue is full, a UDP socket whose buffer is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SocketDrops {
    /// "tcp" or "udp".
    pub protocol: &'static str,
    /// Its address.
    pub local: SocketAddr,
    /// Who holds it.
    pub holder: Holder,
    /// Packets meanwhile.
    pub count: u64,
}

/// All that was dropped.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Drops {
    /// `DROPS_SCHEMA`.
    pub schema: &'static str,
    /// How long, seconds.
    pub duration_s: f64,
    /// Packets dropped, but for the reasons left out.
    pub packets: u64,
    /// Drops that found no room, or were of too many kinds.
    pub lost: u64,
    /// Reasons that are no loss, left out in the kernel already.
    pub left_out: Vec<String>,
    /// By kind, the most first.
    pub drops: Vec<Drop>,
    /// By socket, the most first, by the sockets' own counts: whoever knows the host's sockets enters them. Some of these are in `drops`, too; a connection
    /// that a full queue turns away is not.
    pub sockets: Vec<SocketDrops>,
    /// What could not be told, in sentences.
    pub notes: Vec<String>,
    /// CPU time that this took in this program, seconds.
    pub cost_cpu_s: f64,
}

/// Events that are open and do not count yet.
#[derive(Debug)]
pub struct Dropping {
    format: Format,
    left_out: Vec<String>,
    fds: Vec<OwnedFd>,
    /// The tracepoints that tell where packets came for, and their events, whose samples go to the rings of `fds`.
    ends: Ends,
    followers: Vec<OwnedFd>,
    id: u64,
    rings: Vec<Ring>,
}

/// What is told apart while packets are counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Kind {
    reason: u64,
    location: u64,
    protocol: u64,
    socket: Option<bool>,
    local: Option<SocketAddr>,
    pid: u32,
}

impl Dropping {
    /// Opens the tracepoint on each core.
    ///
    /// # Errors
    /// Where the kernel has no such tracepoint, tells no reasons (before Linux 5.17), or refuses.
    pub fn open() -> Result<Self, Error> {
        let tracefs = Tracefs::open().map_err(|none| Error::Missing(none.to_string()))?;
        let id = tracefs.id("skb", "kfree_skb").ok_or_else(|| Error::Missing("this kernel has no tracepoint skb:kfree_skb".to_owned()))?;
        let format = tracefs.format("skb", "kfree_skb").unwrap_or_default();
        if !format.fields.iter().any(|field| field.name == "reason") {
            return Err(Error::Missing("this kernel tells no reasons of drops: that takes Linux 5.17".to_owned()));
        }
        let ordinary: Vec<&(u64, String)> = format.symbols.iter().filter(|(_, name)| ORDINARY.contains(&name.as_str())).collect();
        let filter: Vec<String> = ordinary.iter().map(|(number, _)| format!("reason != {number}")).collect();
        let filter = CString::new(filter.join(" && ")).unwrap_or_default();
        let cores = host::cores_online();
        let bytes = bytes_of_each(cores.len());
        let attr = attributes(id, bytes);
        let ends = Ends::find(&tracefs);
        let (mut fds, mut rings, mut followers) = (Vec::new(), Vec::new(), Vec::new());
        for core in cores {
            let fd = match event::open(&attr, -1, core) {
                Ok(fd) => fd,
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => continue,
                Err(error) if is_refusal(&error) => return Err(privilege("counting drops", &error)),
                Err(error) => return Err(Error::Io("perf_event_open".to_owned(), error)),
            };
            let io = |what: &str| Error::Io(what.to_owned(), std::io::Error::last_os_error());
            // SAFETY: the descriptor is an open perf event; the string ends with NUL and outlives the call, which copies it.
            if !filter.is_empty() && unsafe { sys::ioctls::SET_FILTER(fd.as_raw_fd(), filter.as_ptr().cast_mut()) } < 0 {
                return Err(io("the kernel takes no condition for skb:kfree_skb"));
            }
            rings.push(Ring::map(&fd, bytes).map_err(|error| Error::Io("the drops' buffer cannot be mapped".to_owned(), error))?);
            for telling in ends.ids() {
                // One that cannot be had tells nothing; drops are counted all the same.
                let follower = event::open(&attributes(telling, bytes), -1, core).ok();
                followers.extend(follower.filter(|follower| event::redirect(follower, &fd).is_ok()));
            }
            fds.push(fd);
        }
        let left_out = ordinary.into_iter().map(|(_, name)| name.clone()).collect();
        Ok(Self { format, left_out, fds, ends, followers, id, rings })
    }

    /// Counts for as long as `go_on` says so, which is asked ten times a second.
    ///
    /// # Errors
    /// Where the events cannot be started.
    pub fn run(mut self, mut go_on: impl FnMut(Duration) -> bool) -> Result<Drops, Error> {
        let cost_before = thread_cpu_s();
        for fd in self.followers.iter().chain(&self.fds) {
            event::enable(fd).map_err(|error| Error::Io("counting cannot be started".to_owned(), error))?;
        }
        let begin = Instant::now();
        let mut tally = Tally::default();
        let mut told: Vec<Told> = self.rings.iter().map(|_| Told::default()).collect();
        let mut buffer = Vec::new();
        loop {
            let more = go_on(begin.elapsed());
            if more {
                wait(&self.fds);
            } else {
                for fd in self.fds.iter().chain(&self.followers) {
                    // One that cannot be stopped is closed in a moment.
                    let _ = event::disable(fd);
                }
            }
            for (ring, told) in self.rings.iter_mut().zip(&mut told) {
                buffer.clear();
                if !ring.take(&mut buffer) {
                    tally.lost += 1;
                }
                tally.take(&buffer, &Layout { id: self.id, format: &self.format, ends: &self.ends }, told);
            }
            if !more {
                break;
            }
        }
        let duration_s = begin.elapsed().as_secs_f64();
        let mut drops = tally.finish(&self.format, &host::text("/proc/kallsyms").unwrap_or_default());
        (drops.duration_s, drops.left_out) = (duration_s, self.left_out);
        drops.cost_cpu_s = (thread_cpu_s() - cost_before).max(0.0);
        Ok(drops)
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
    attr.set_use_clockid(1);
    attr.clockid = libc::CLOCK_MONOTONIC;
    attr.set_watermark(1);
    attr.__bindgen_anon_2.wakeup_watermark = u32::try_from(ring_bytes / 4).unwrap_or(u32::MAX);
    attr
}

/// What the samples of a ring are: drops by their number, and what tells of them.
struct Layout<'a> {
    id: u64,
    format: &'a Format,
    ends: &'a Ends,
}

/// Packets by kind.
#[derive(Debug, Default)]
struct Tally {
    kinds: BTreeMap<Kind, u64>,
    /// Program and namespace of a process, looked up when it is first seen: it may be gone a moment later.
    programs: HashMap<u32, (String, Option<u64>)>,
    lost: u64,
}

impl Tally {
    /// Takes the records of a ring; stops where they make no sense, and counts that as one lost.
    fn take(&mut self, mut bytes: &[u8], layout: &Layout<'_>, told: &mut Told) {
        while !bytes.is_empty() {
            let header = bytes.first_chunk::<8>().map(|head| (u32_at(head, 0), usize::from(u16::from_ne_bytes([head[6], head[7]]))));
            let Some((kind, size)) = header.filter(|(_, size)| (8..=bytes.len()).contains(size)) else {
                self.lost += 1;
                return;
            };
            let (record, rest) = bytes.split_at(size);
            match kind {
                SAMPLE => match sample(&record[8..], layout, told) {
                    Some(Sampled::Drop(kind)) => self.count(kind),
                    Some(Sampled::Told) => {}
                    None => self.lost += 1,
                },
                LOST => self.lost = self.lost.saturating_add(record.get(16..24).map_or(1, |word| u64_at(word, 0))),
                _ => {}
            }
            bytes = rest;
        }
    }

    fn count(&mut self, kind: Kind) {
        if self.kinds.len() >= KINDS_MAX && !self.kinds.contains_key(&kind) {
            self.lost += 1;
            return;
        }
        self.programs.entry(kind.pid).or_insert_with(|| of_process(kind.pid));
        *self.kinds.entry(kind).or_default() += 1;
    }

    fn finish(self, format: &Format, kallsyms: &str) -> Drops {
        let functions = Kallsyms::parse(kallsyms);
        let names = namespace_names();
        let mut drops: BTreeMap<_, u64> = BTreeMap::new();
        for (kind, count) in &self.kinds {
            let (program, namespace) = self.programs.get(&kind.pid).cloned().unwrap_or_default();
            let location = functions.find(kind.location).map_or_else(|| "[kernel]".to_owned(), |(name, _)| name.to_owned());
            *drops.entry((kind.reason, location, kind.protocol, kind.socket, program, namespace, kind.local)).or_default() += count;
        }
        let named = drops.into_iter().map(|((reason, location, protocol, for_socket, program, namespace, local), count)| {
            let name = format.symbols.iter().find(|(number, _)| *number == reason).map(|(_, name)| name.clone());
            let reason = name.unwrap_or_else(|| format!("reason {reason}"));
            let namespace = namespace.map(|number| names.get(&number).cloned().unwrap_or_else(|| format!("net:[{number}]")));
            let (meaning, protocol, holders) = (meaning(&reason), protocol_name(protocol), Vec::new());
            Drop { reason, meaning, location, protocol, for_socket, program, namespace, local, holders, count }
        });
        let mut drops: Vec<Drop> = named.collect();
        drops.sort_by_key(|drop| std::cmp::Reverse(drop.count));
        let mut notes = Vec::new();
        if functions.hidden || kallsyms.is_empty() {
            notes.push("functions of the kernel have no names for this user (CAP_SYSLOG)".to_owned());
        }
        Drops {
            schema: DROPS_SCHEMA,
            duration_s: 0.0,
            packets: drops.iter().fold(0, |sum, drop| sum + drop.count),
            lost: self.lost,
            left_out: Vec::new(),
            drops,
            sockets: Vec::new(),
            notes,
            cost_cpu_s: 0.0,
        }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

/// What a sample was.
enum Sampled {
    Drop(Kind),
    /// It told of a packet that is dropped in a moment.
    Told,
}

/// pid, tid, time, size of the tracepoint's data, the data, which begins with the tracepoint's number.
fn sample(body: &[u8], layout: &Layout<'_>, told: &mut Told) -> Option<Sampled> {
    let head = body.first_chunk::<20>()?;
    let data = body.get(20..20_usize.checked_add(usize::try_from(u32_at(head, 16)).ok()?)?)?;
    let (time, id) = (u64_at(head, 8), u64::from(u16::from_ne_bytes(*data.first_chunk()?)));
    if id != layout.id {
        return told.take(layout.ends, time, id, data).then_some(Sampled::Told);
    }
    let number = |name: &str| layout.format.number(name, data);
    Some(Sampled::Drop(Kind {
        reason: number("reason")?,
        location: number("location").unwrap_or(0),
        protocol: number("protocol").unwrap_or(0),
        socket: number("rx_sk").map(|socket| socket != 0),
        local: number("skbaddr").and_then(|packet| told.of(time, packet)),
        pid: u32_at(head, 0),
    }))
}

/// EtherTypes (IEEE 802, as in linux/if_ether.h).
fn protocol_name(protocol: u64) -> String {
    match protocol {
        0x0800 => "IPv4".to_owned(),
        0x86dd => "IPv6".to_owned(),
        0x0806 => "ARP".to_owned(),
        0 => "-".to_owned(),
        other => format!("{other:#06x}"),
    }
}

fn of_process(pid: u32) -> (String, Option<u64>) {
    if pid == 0 {
        return ("[idle]".to_owned(), None);
    }
    let program = host::comm(pid, pid).unwrap_or_else(|| "(gone)".to_owned());
    // Threads of the kernel are in the first namespace whatever they work on.
    if host::is_kernel_thread(pid) { (format!("[{program}]"), None) } else { (program, host::network_namespace(pid)) }
}

/// Names of network namespaces by their numbers (ip-netns(8)).
fn namespace_names() -> HashMap<u64, String> {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = std::fs::read_dir("/run/netns") else { return HashMap::new() };
    let named = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        Some((std::fs::metadata(entry.path()).ok()?.ino(), entry.file_name().into_string().ok()?))
    });
    named.take(1 << 16).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn format() -> Format {
        Format::parse(
            "\tfield:void * skbaddr;\toffset:8;\tsize:8;\tsigned:0;\n\tfield:void * location;\toffset:16;\tsize:8;\tsigned:0;\n\tfield:void * rx_sk;\toffset:24;\tsize:8;\tsigned:0;\n\
             \tfield:unsigned short protocol;\toffset:32;\tsize:2;\tsigned:0;\n\tfield:enum skb_drop_reason reason;\toffset:36;\tsize:4;\tsigned:0;\n\
             print fmt: { 3, \"NO_SOCKET\" }, { 2, \"NOT_SPECIFIED\" }",
        )
    }

    /// The number of the tracepoint in the records below.
    const ID: u64 = 17;

    fn take(tally: &mut Tally, bytes: &[u8]) {
        let (format, ends) = (format(), Ends::default());
        tally.take(bytes, &Layout { id: ID, format: &format, ends: &ends }, &mut Told::default());
    }

    fn record(pid: u32, reason: u32, location: u64) -> Vec<u8> {
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
        let mut record = SAMPLE.to_ne_bytes().to_vec();
        record.extend(0_u16.to_ne_bytes());
        record.extend(u16::try_from(body.len() + 8).unwrap().to_ne_bytes());
        record.extend(body);
        record
    }

    #[test]
    fn drops_are_counted_by_reason_and_place() {
        let mut bytes = record(0, 3, 0x1010);
        bytes.extend(record(0, 3, 0x1020));
        bytes.extend(record(0, 99, 0x2000));
        bytes.extend([2, 0, 0, 0, 0, 0, 24, 0]);
        bytes.extend([0_u64.to_ne_bytes(), 5_u64.to_ne_bytes()].concat());
        let mut tally = Tally::default();
        take(&mut tally, &bytes);
        let drops = tally.finish(&format(), "0000000000001000 T udp_rcv\n0000000000002000 T other\n");
        let told: Vec<_> = drops.drops.iter().map(|drop| (drop.reason.as_str(), drop.location.as_str(), drop.count)).collect();
        assert_eq!(told, [("NO_SOCKET", "udp_rcv", 2), ("reason 99", "other", 1)]);
        assert_eq!((drops.packets, drops.lost), (3, 5));
        let first = &drops.drops[0];
        assert_eq!((first.protocol.as_str(), first.for_socket, first.program.as_str()), ("IPv4", Some(false), "[idle]"));
        assert!(first.meaning.is_some());
    }

    #[test]
    fn records_cut_at_every_byte_are_taken() {
        let bytes = record(0, 3, 0x1010);
        for length in 1..bytes.len() {
            let mut tally = Tally::default();
            take(&mut tally, &bytes[..length]);
            assert_eq!((tally.kinds.len(), tally.lost), (0, 1), "{length}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes: Vec<u8>, at in 0usize..60, byte: u8) {
            let mut tally = Tally::default();
            take(&mut tally, &bytes);
            let mut damaged = record(0, 3, 1);
            if let Some(old) = damaged.get_mut(at) {
                *old = byte;
            }
            take(&mut tally, &damaged);
            prop_assert!(tally.kinds.len() <= 1 + bytes.len() / 8);
        }
    }
}
