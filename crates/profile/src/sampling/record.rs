//! Parses the records of a ring: perf_event_open(2), "MMAP layout". Pure; it never reads beyond the bytes, whatever they contain.

use crate::sampling::event::{REGISTERS, Registers, USER_STACKS};

// Record types and miscellaneous bits of linux/perf_event.h.
const MMAP: u32 = 1;
pub(crate) const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const THROTTLE: u32 = 5;
const FORK: u32 = 7;
pub(crate) const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const LOST_SAMPLES: u32 = 13;
const SWITCH: u32 = 14;
const SWITCH_CPU_WIDE: u32 = 15;
/// `PERF_RECORD_MISC_SWITCH_OUT` and `PERF_RECORD_MISC_SWITCH_OUT_PREEMPT`: the thread was still ready to run (Linux 4.17).
const MISC_SWITCH_OUT: u16 = 1 << 13;
const MISC_SWITCH_OUT_PREEMPT: u16 = 1 << 14;
/// `PERF_RECORD_MISC_COMM_EXEC`: the name changed because the thread called execve(2).
const MISC_COMM_EXEC: u16 = 1 << 13;
/// `PERF_RECORD_MISC_MMAP_BUILD_ID`: the inode's fields hold a build id instead.
const MISC_MMAP_BUILD_ID: u16 = 1 << 14;

/// Markers in call chains (`PERF_CONTEXT_*`): the addresses behind one belong to that part. All lie in the last page of the address space.
const CONTEXT_MAX: u64 = u64::MAX - 4094;
const CONTEXT_KERNEL: u64 = u64::MAX - 127;
/// Bytes of (pid, tid, time, cpu, reserved) at the end of every record except a sample.
const TRAILER_BYTES: usize = 24;
/// Maximum number of frames of a kernel stack (`perf_event_max_stack` is 127 by default).
const CHAIN_MAX: usize = 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    Sample(Sample<'a>),
    /// A file, or memory without a file, was mapped executable.
    Map {
        pid: u32,
        start: u64,
        end: u64,
        offset: u64,
        device: (u32, u32),
        inode: u64,
        path: &'a [u8],
    },
    /// A thread has a new name. `exec`: because it runs another program now.
    Name {
        pid: u32,
        tid: u32,
        exec: bool,
        name: &'a [u8],
    },
    Fork {
        pid: u32,
        parent: u32,
    },
    Exit {
        pid: u32,
        tid: u32,
    },
    /// A thread starts or stops running. `preempted`: it stopped although it was ready to run.
    Switch {
        pid: u32,
        tid: u32,
        out: bool,
        preempted: bool,
    },
    /// The kernel had no room for this many records.
    Lost(u64),
    /// The kernel dropped samples because they came too fast.
    Throttled,
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Sample<'a> {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) cpu: u32,
    /// Nanoseconds or cycles since the last sample.
    pub(crate) period: u64,
    /// Kernel addresses, innermost first; all but the first are return addresses.
    pub(crate) kernel: Vec<u64>,
    /// User registers in the order of `REGISTERS`; only of 64-bit programs.
    pub(crate) registers: Option<Registers>,
    /// A 32-bit program: its stack is not unwound.
    pub(crate) compat: bool,
    /// The user stack from the stack pointer upwards.
    pub(crate) stack: &'a [u8],
}

/// Reads values off the front of a slice.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(count)?;
        self.0 = tail;
        Some(head)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.bytes(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.bytes(8)?.try_into().ok()?))
    }
}

/// Parses what was copied out of a ring. Each record comes with its time in nanoseconds.
///
/// # Errors
/// If a header makes no sense. Records before it are kept; what follows is not read.
pub(crate) fn parse<'a>(mut bytes: &'a [u8], records: &mut Vec<(u64, Record<'a>)>) -> Result<(), Torn> {
    while !bytes.is_empty() {
        let (kind, misc, body, rest) = split(bytes)?;
        records.extend(parse_one(kind, misc, body));
        bytes = rest;
    }
    Ok(())
}

/// The type of a record, its miscellaneous bits, its body, and the bytes that follow it.
type Split<'a> = (u32, u16, &'a [u8], &'a [u8]);

/// Splits the first record off.
pub(crate) fn split(bytes: &[u8]) -> Result<Split<'_>, Torn> {
    let mut reader = Reader(bytes);
    let (kind, rest) = reader.u32().zip(reader.u32()).ok_or(Torn)?;
    let [misc, size] = [(rest & 0xffff) as u16, (rest >> 16) as u16];
    let (record, rest) = bytes.split_at_checked(usize::from(size)).ok_or(Torn)?;
    Ok((kind, misc, record.get(8..).ok_or(Torn)?, rest))
}

/// Some bytes were left that are no records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Torn;

fn parse_one(kind: u32, misc: u16, body: &[u8]) -> Option<(u64, Record<'_>)> {
    if kind == SAMPLE {
        return sample(body);
    }
    let fields = body.len().checked_sub(TRAILER_BYTES)?;
    let (body, trailer) = body.split_at(fields);
    let time = u64::from_ne_bytes(trailer.get(8..16)?.try_into().ok()?);
    let mut reader = Reader(body);
    let record = match kind {
        MMAP | MMAP2 => map(kind, misc, &mut reader)?,
        COMM => {
            let (pid, tid) = (reader.u32()?, reader.u32()?);
            Record::Name { pid, tid, exec: misc & MISC_COMM_EXEC != 0, name: text(reader.0) }
        }
        FORK => Record::Fork { pid: reader.u32()?, parent: reader.u32()? },
        EXIT => {
            let (pid, _parent) = (reader.u32()?, reader.u32()?);
            Record::Exit { pid, tid: reader.u32()? }
        }
        LOST => {
            reader.u64()?;
            Record::Lost(reader.u64()?)
        }
        LOST_SAMPLES => Record::Lost(reader.u64()?),
        THROTTLE => Record::Throttled,
        SWITCH | SWITCH_CPU_WIDE => {
            let mut reader = Reader(trailer);
            let (pid, tid) = (reader.u32()?, reader.u32()?);
            Record::Switch { pid, tid, out: misc & MISC_SWITCH_OUT != 0, preempted: misc & MISC_SWITCH_OUT_PREEMPT != 0 }
        }
        _ => Record::Other,
    };
    Some((time, record))
}

fn map<'a>(kind: u32, misc: u16, reader: &mut Reader<'a>) -> Option<Record<'a>> {
    let (pid, _tid) = (reader.u32()?, reader.u32()?);
    let (start, length, offset) = (reader.u64()?, reader.u64()?, reader.u64()?);
    let (mut device, mut inode) = ((0, 0), 0);
    if kind == MMAP2 {
        let (major, minor, number) = (reader.u32()?, reader.u32()?, reader.u64()?);
        let (_generation, _flags) = (reader.u64()?, reader.u64()?);
        if misc & MISC_MMAP_BUILD_ID == 0 {
            (device, inode) = ((major, minor), number);
        }
    }
    Some(Record::Map { pid, start, end: start.checked_add(length)?, offset, device, inode, path: text(reader.0) })
}

fn text(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or(bytes)
}

fn sample(body: &[u8]) -> Option<(u64, Record<'_>)> {
    let mut reader = Reader(body);
    let _ip = reader.u64()?;
    let mut sample = Sample { pid: reader.u32()?, tid: reader.u32()?, ..Sample::default() };
    let time = reader.u64()?;
    (sample.cpu, _) = (reader.u32()?, reader.u32()?);
    sample.period = reader.u64()?;
    let frames = usize::try_from(reader.u64()?).ok()?;
    let chain = reader.bytes(frames.checked_mul(8)?)?;
    sample.kernel = kernel_part(chain);
    if USER_STACKS {
        let abi = reader.u64()?;
        if abi != 0 {
            let mut registers = Registers::default();
            for register in registers.iter_mut().take(REGISTERS.len()) {
                *register = reader.u64()?;
            }
            sample.compat = abi == 1;
            sample.registers = (abi == 2).then_some(registers);
        }
        let room = usize::try_from(reader.u64()?).ok()?;
        if room > 0 {
            let stack = reader.bytes(room)?;
            let filled = usize::try_from(reader.u64()?).ok()?;
            sample.stack = stack.get(..filled.min(room))?;
        }
    }
    Some((time, Record::Sample(sample)))
}

/// The addresses behind the kernel's marker. Addresses in front of any marker are not the kernel's.
fn kernel_part(chain: &[u8]) -> Vec<u64> {
    let mut kernel = Vec::new();
    let mut inside = false;
    for address in chain.chunks_exact(8).filter_map(|chunk| Some(u64::from_ne_bytes(chunk.try_into().ok()?))) {
        if address >= CONTEXT_MAX {
            inside = address == CONTEXT_KERNEL;
        } else if inside && kernel.len() < CHAIN_MAX {
            kernel.push(address);
        }
    }
    kernel
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
        let size = u16::try_from(body.len() + 8).unwrap();
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(misc.to_ne_bytes());
        bytes.extend(size.to_ne_bytes());
        bytes.extend(body);
        bytes
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn pair(low: u32, high: u32) -> u64 {
        u64::from(low) | u64::from(high) << 32
    }

    fn sample_body(stack: &[u8]) -> Vec<u8> {
        let mut body = words(&[0x1000, pair(7, 8), 99, pair(1, 0), 10_101_010, 5]);
        body.extend(words(&[CONTEXT_KERNEL, 0xffff_ffff_8100_0001, 0xffff_ffff_8100_0002, u64::MAX - 511, 0x55]));
        if USER_STACKS {
            body.extend(words(&[2]));
            body.extend(words(&vec![0x70; REGISTERS.len()]));
            body.extend(words(&[u64::try_from(stack.len()).unwrap()]));
            if !stack.is_empty() {
                body.extend(stack);
                body.extend(words(&[8]));
            }
        }
        body
    }

    fn all(bytes: &[u8]) -> (Vec<(u64, Record<'_>)>, Result<(), Torn>) {
        let mut records = Vec::new();
        let torn = parse(bytes, &mut records);
        (records, torn)
    }

    #[test]
    fn a_sample_has_the_kernel_chain_and_the_filled_part_of_the_stack() {
        let bytes = record(SAMPLE, 1, &sample_body(&[3; 16]));
        let (records, torn) = all(&bytes);
        let [(99, Record::Sample(sample))] = records.as_slice() else { panic!("{records:?}") };
        assert_eq!((sample.pid, sample.tid, sample.cpu, sample.period, torn), (7, 8, 1, 10_101_010, Ok(())));
        assert_eq!(sample.kernel, [0xffff_ffff_8100_0001, 0xffff_ffff_8100_0002]);
        assert_eq!(sample.stack.len(), if USER_STACKS { 8 } else { 0 });
    }

    #[test]
    fn process_events_are_parsed_with_their_times() {
        let trailer = words(&[pair(7, 7), 1234, pair(0, 0)]);
        let with = |mut body: Vec<u8>| {
            body.extend(&trailer);
            body
        };
        let mut map = words(&[pair(7, 7), 0x1000, 0x2000, 0x3000, pair(8, 1), 42, 0, 0]);
        map.extend(b"/usr/bin/x\0\0\0\0\0\0");
        let mut bytes = record(MMAP2, 0, &with(map));
        bytes.extend(record(COMM, MISC_COMM_EXEC, &with([words(&[pair(7, 7)]), b"name\0\0\0\0".to_vec()].concat())));
        bytes.extend(record(FORK, 0, &with(words(&[pair(9, 7), pair(9, 7), 5]))));
        bytes.extend(record(EXIT, 0, &with(words(&[pair(9, 7), pair(9, 7), 5]))));
        bytes.extend(record(LOST, 0, &with(words(&[1, 17]))));
        bytes.extend(record(LOST_SAMPLES, 0, &with(words(&[3]))));
        bytes.extend(record(THROTTLE, 0, &with(words(&[1, 1, 1]))));
        bytes.extend(record(SWITCH_CPU_WIDE, MISC_SWITCH_OUT | MISC_SWITCH_OUT_PREEMPT, &with(words(&[pair(9, 9)]))));
        bytes.extend(record(SWITCH, 0, &with(vec![])));
        bytes.extend(record(77, 0, &with(vec![])));
        let (records, torn) = all(&bytes);
        assert!(records.iter().all(|(time, _)| *time == 1234) && torn == Ok(()));
        let records: Vec<_> = records.into_iter().map(|(_, record)| record).collect();
        assert_eq!(
            records,
            [
                Record::Map { pid: 7, start: 0x1000, end: 0x3000, offset: 0x3000, device: (8, 1), inode: 42, path: b"/usr/bin/x" },
                Record::Name { pid: 7, tid: 7, exec: true, name: b"name" },
                Record::Fork { pid: 9, parent: 7 },
                Record::Exit { pid: 9, tid: 9 },
                Record::Lost(17),
                Record::Lost(3),
                Record::Throttled,
                Record::Switch { pid: 7, tid: 7, out: true, preempted: true },
                Record::Switch { pid: 7, tid: 7, out: false, preempted: false },
                Record::Other
            ]
        );
    }

    #[test]
    fn records_cut_at_any_byte_are_skipped() {
        let bytes = record(SAMPLE, 1, &sample_body(&[3; 16]));
        for length in 1..bytes.len() {
            assert_eq!(all(&bytes[..length]), (Vec::new(), Err(Torn)), "{length}");
        }
        for length in 0..bytes.len() - 8 {
            let cut = record(SAMPLE, 1, &bytes[8..8 + length]);
            assert!(all(&cut).0.len() <= 1);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_parsed(kind in 0u32..20, misc: u16, body in proptest::collection::vec(any::<u8>(), 0..400), rest: Vec<u8>) {
            let mut bytes = record(kind, misc, &body);
            bytes.extend(rest);
            let (records, _) = all(&bytes);
            prop_assert!(records.len() <= bytes.len() / 8 + 1);
        }

        #[test]
        fn arbitrary_lengths_in_a_sample_are_parsed(at in 0usize..20, value: u64) {
            let mut body = sample_body(&[3; 64]);
            if let Some(word) = body.get_mut(at * 8..at * 8 + 8) {
                word.copy_from_slice(&value.to_ne_bytes());
            }
            let bytes = record(SAMPLE, 0, &body);
            let (_, torn) = all(&bytes);
            prop_assert_eq!(torn, Ok(()));
        }
    }
}
