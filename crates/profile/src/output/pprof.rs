//! The pprof format (github.com/google/pprof, proto/profile.proto): a compressed protocol buffer that `go tool pprof` and many viewers open.

use std::collections::HashMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::table::Texts;
use crate::profile::{FrameKind, Profile, Stack, Thread};
use crate::sampling::event::Clock;

/// A message while it is written (protobuf.dev, "Encoding").
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// Writes a number. Zero is the default and is not written.
    fn number(&mut self, field: u64, value: u64) {
        if value != 0 {
            self.varint(field << 3);
            self.varint(value);
        }
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn numbers(&mut self, field: u64, values: impl Iterator<Item = u64>) {
        let mut packed = Self::default();
        values.for_each(|value| packed.varint(value));
        self.bytes(field, &packed.0);
    }

    fn message(&mut self, field: u64, fill: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        fill(&mut inner);
        self.bytes(field, &inner.0);
    }
}

/// The file's bytes.
pub fn file(profile: &Profile) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory cannot fail.
    let _ = encoder.write_all(&message(profile));
    encoder.finish().unwrap_or_default()
}

fn message(profile: &Profile) -> Vec<u8> {
    let mut out = Message::default();
    let mut strings = Texts::default();
    // The format asks for an empty first text.
    strings.text("");
    let (weight, unit) = match profile.clock {
        Clock::CpuClock => ("cpu", "nanoseconds"),
        Clock::OffCpu => ("waiting", "nanoseconds"),
        Clock::Cycles => ("cycles", "count"),
    };
    for (kind, unit) in [("samples", "count"), (weight, unit)] {
        let (kind, unit) = (strings.text(kind) as u64, strings.text(unit) as u64);
        out.message(1, |value| {
            value.number(1, kind);
            value.number(2, unit);
        });
    }
    let [program, thread, cpu, layer] = ["program", "thread", "cpu", "layer"].map(|name| strings.text(name) as u64);
    // Samples that differ only in time are merged, in the order of the first one.
    let mut merged: Vec<(u32, &Stack, &Thread, [u64; 2])> = Vec::new();
    let mut places: HashMap<(u32, u32, u32), usize> = HashMap::new();
    for (sample, stack, thread) in profile.busy() {
        let place = *places.entry((sample.stack, sample.thread, sample.cpu)).or_insert_with(|| {
            merged.push((sample.cpu, stack, thread, [0, 0]));
            merged.len() - 1
        });
        if let Some((.., [count, weight])) = merged.get_mut(place) {
            (*count, *weight) = (*count + 1, weight.saturating_add(sample.weight));
        }
    }
    for (on_cpu, stack, of, values) in merged {
        let labels = [(program, of.program.as_str()), (thread, of.name.as_str()), (layer, stack.layer.def().id)]
            .map(|(key, text)| (key, strings.text(text) as u64));
        out.message(2, |value| {
            value.numbers(1, stack.frames.iter().rev().map(|frame| u64::from(*frame) + 1));
            value.numbers(2, values.into_iter());
            for (key, text) in labels {
                value.message(3, |label| {
                    label.number(1, key);
                    label.number(2, text);
                });
            }
            value.message(3, |label| {
                label.number(1, cpu);
                label.number(3, u64::from(on_cpu));
            });
        });
    }
    tables(profile, &mut out, &mut strings);
    let period = u64::from(1_000_000_000 / profile.frequency_hz.max(1));
    let (kind, unit) = (strings.text(weight) as u64, strings.text(unit) as u64);
    for text in &strings.rows {
        out.bytes(6, text.as_bytes());
    }
    out.number(10, (profile.duration_s * 1e9) as u64);
    out.message(11, |value| {
        value.number(1, kind);
        value.number(2, unit);
    });
    out.number(12, period);
    out.0
}

/// Writes files, locations and functions. Each function has one location, numbered from 1.
fn tables(profile: &Profile, out: &mut Message, strings: &mut Texts) {
    let mut files: HashMap<&str, u64> = HashMap::new();
    for (number, frame) in (1..).zip(&profile.frames) {
        let next = files.len() as u64 + 1;
        let file = *files.entry(&frame.module).or_insert(next);
        let (name, module) = (strings.text(&frame.name) as u64, strings.text(&frame.module) as u64);
        if file == next {
            out.message(3, |mapping| {
                mapping.number(1, file);
                mapping.number(5, module);
                mapping.number(7, u64::from(frame.kind != FrameKind::Jit));
            });
        }
        out.message(4, |location| {
            location.number(1, number);
            location.number(2, file);
            location.message(4, |line| line.number(1, number));
        });
        out.message(5, |function| {
            function.number(1, number);
            function.number(2, name);
            function.number(3, name);
            function.number(4, module);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;
    use crate::output::folded;

    enum Value<'a> {
        Number(u64),
        Bytes(&'a [u8]),
    }

    /// Reads one level of a message: fields with their numbers.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, Value<'_>)> {
        fn varint(bytes: &mut &[u8]) -> u64 {
            let end = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap();
            let (head, tail) = bytes.split_at(end + 1);
            *bytes = tail;
            head.iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f))
        }
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let number = varint(&mut bytes);
            match key & 7 {
                0 => found.push((key >> 3, Value::Number(number))),
                2 => {
                    let (head, tail) = bytes.split_at(usize::try_from(number).unwrap());
                    found.push((key >> 3, Value::Bytes(head)));
                    bytes = tail;
                }
                kind => panic!("wire type {kind}"),
            }
        }
        found
    }

    fn all(message: &[u8], field: u64) -> Vec<&[u8]> {
        fields(message)
            .into_iter()
            .filter_map(|(number, value)| if let (true, Value::Bytes(bytes)) = (number == field, value) { Some(bytes) } else { None })
            .collect()
    }

    fn number(message: &[u8], field: u64) -> u64 {
        fields(message)
            .into_iter()
            .find_map(|(number, value)| if let (true, Value::Number(found)) = (number == field, value) { Some(found) } else { None })
            .unwrap_or(0)
    }

    #[test]
    fn written_samples_lead_back_to_names() {
        let profile = folded::read("nginx;main;ip_output_[k] 300\nnginx;main 1\n").unwrap();
        let mut bytes = Vec::new();
        GzDecoder::new(file(&profile).as_slice()).read_to_end(&mut bytes).unwrap();
        let strings: Vec<&str> = all(&bytes, 6).into_iter().map(|text| std::str::from_utf8(text).unwrap()).collect();
        assert_eq!(strings[0], "");
        let text = |index: u64| strings[usize::try_from(index).unwrap()];
        let samples = all(&bytes, 2);
        // A sample's first value is the number of samples, in groups of seven bits (protobuf, "Base 128 Varints").
        let count = |sample: &[u8]| {
            let bytes = all(sample, 2)[0];
            let end = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap();
            bytes[..=end].iter().rev().fold(0_u64, |number, byte| number << 7 | u64::from(byte & 0x7f))
        };
        assert_eq!(samples.iter().map(|sample| count(sample)).sum::<u64>(), 301);
        let functions = all(&bytes, 5);
        let names: Vec<&str> = (all(samples[0], 1)[0].iter())
            .map(|place| {
                let function = functions.iter().find(|function| number(function, 1) == u64::from(*place)).unwrap();
                text(number(function, 2))
            })
            .collect();
        assert_eq!(names, ["ip_output", "main"]);
        let labels: Vec<(&str, &str)> =
            all(samples[0], 3).into_iter().map(|label| (text(number(label, 1)), text(number(label, 2)))).collect();
        assert_eq!(labels[..3], [("program", "nginx"), ("thread", "nginx"), ("layer", "tcp-transmit")]);
        assert_eq!(all(&bytes, 4).len(), profile.frames.len());
    }
}
