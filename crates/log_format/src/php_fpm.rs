//! php-fpm's `access.format`: its tokens, and the time, CPU and memory of a request that one line reports.

use super::compile::{Escape, Field, FormatError, Literal, LogFormat, put};
use super::extract::{Record, Unparsed};
use super::number::{seconds_us, time_epoch_us, unsigned};
use super::shape::Shape;

/// A compiled `access.format` (fpm_log.c).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FpmFormat {
    format: LogFormat,
    status: Option<usize>,
    /// Slot, and the unit of its number.
    duration: Option<(usize, DurationUnit)>,
    cpu: Option<usize>,
    memory: Option<(usize, u64)>,
    pid: Option<usize>,
    pool: Option<usize>,
    time: Option<usize>,
    method: Option<usize>,
    uri: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DurationUnit {
    Seconds,
    Milliseconds,
    Microseconds,
}

/// One request that a php-fpm worker answered. A field is `None` if the format does not have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FpmAccess<'l> {
    /// Status (`%s`).
    pub status: Option<u16>,
    /// Time of the worker, microseconds (`%d`): its service time. Includes waiting for others, excludes waiting in the accept queue.
    pub duration_us: Option<u64>,
    /// CPU of the worker during the request in thousandths of a core (`%C` is in percent). The kernel counts it in ticks of 10 ms: 0 for
    /// most short requests.
    pub cpu_millicores: Option<u64>,
    /// Peak of PHP's own memory, bytes (`%M`).
    pub memory_bytes: Option<u64>,
    /// The worker (`%p`).
    pub pid: Option<u64>,
    /// The pool (`%n`).
    pub pool: Option<&'l [u8]>,
    /// Start of the request (`%t`) or else its end (`%T`), microseconds since 1970, whole seconds.
    pub time_us: Option<u64>,
    /// Method (`%m`).
    pub method: Option<&'l [u8]>,
    /// URI (`%r`), with its query if the format has the query right after it (`%r%Q%q`).
    pub uri: Option<&'l [u8]>,
}

impl FpmFormat {
    /// Compiles an `access.format`.
    pub fn compile(format: &str) -> Result<Self, FormatError> {
        let mut head = Literal::default();
        let mut fields: Vec<Field> = Vec::new();
        let mut modifiers: Vec<Option<String>> = Vec::new();
        let mut rest = format;
        while let Some(at) = rest.find('%') {
            put(&rest.as_bytes()[..at], &mut head, &mut fields);
            rest = &rest[at + 1..];
            let mut modifier = None;
            if let Some(inner) = rest.strip_prefix('{') {
                let (text, after) = inner.split_once('}').ok_or(FormatError::Token)?;
                modifier = Some(text.to_ascii_lowercase());
                rest = after;
            }
            let token = rest.chars().next().ok_or(FormatError::Token)?;
            rest = &rest[token.len_utf8()..];
            if token == '%' {
                put(b"%", &mut head, &mut fields);
                continue;
            }
            // `%r%Q%q`: path, `?` and query are adjacent; together they are the URI.
            let goes_on = matches!(token, 'Q' | 'q') && fields.last().is_some_and(|field| field.name == "r" && field.literal.is_empty());
            if goes_on && modifier.is_none() {
                continue;
            }
            let shape = shape(token, modifier.as_deref()).ok_or(FormatError::Token)?;
            fields.push(Field { name: token.to_string(), shape, literal: Literal::default(), ambiguous: false });
            modifiers.push(modifier);
        }
        put(rest.as_bytes(), &mut head, &mut fields);
        let format = LogFormat::of(head, fields, Escape::None);
        let modifier = |slot: usize| modifiers.get(slot).cloned().flatten().unwrap_or_default();
        Ok(Self {
            status: format.slot("s"),
            duration: format.slot("d").map(|slot| (slot, duration_unit(&modifier(slot)))),
            cpu: format.slot("C"),
            memory: format.slot("M").map(|slot| (slot, memory_unit(&modifier(slot)))),
            pid: format.slot("p"),
            pool: format.slot("n"),
            time: format
                .slot("t")
                .filter(|slot| modifier(*slot).is_empty())
                .or_else(|| format.slot("T").filter(|slot| modifier(*slot).is_empty())),
            method: format.slot("m"),
            uri: format.slot("r"),
            format,
        })
    }

    /// Whether a line contains the status of the answer.
    pub fn has_status(&self) -> bool {
        self.status.is_some()
    }

    /// Whether a line contains the worker's time.
    pub fn has_duration(&self) -> bool {
        self.duration.is_some()
    }

    /// A record to fill with one line after the other.
    pub fn record(&self) -> Record {
        self.format.record()
    }

    /// Parses one line.
    pub fn read<'l>(&self, line: &'l [u8], record: &mut Record) -> Result<FpmAccess<'l>, Unparsed> {
        self.format.extract(line, record)?;
        let get = |slot: Option<usize>| slot.and_then(|slot| record.get(line, slot));
        let duration = self.duration.and_then(|(slot, unit)| Some((record.get(line, slot)?, unit)));
        Ok(FpmAccess {
            status: get(self.status).and_then(unsigned).and_then(|status| u16::try_from(status).ok()),
            duration_us: duration.and_then(|(text, unit)| match unit {
                DurationUnit::Seconds => seconds_us(text),
                DurationUnit::Milliseconds => seconds_us(text).map(|us| us / 1_000),
                DurationUnit::Microseconds => unsigned(text),
            }),
            // One percent is ten thousandths of a core.
            cpu_millicores: get(self.cpu).and_then(seconds_us).map(|value| value / 100_000),
            memory_bytes: self.memory.and_then(|(slot, unit)| unsigned(record.get(line, slot)?)?.checked_mul(unit)),
            pid: get(self.pid).and_then(unsigned),
            pool: get(self.pool),
            time_us: get(self.time).and_then(time_epoch_us),
            method: get(self.method),
            uri: get(self.uri),
        })
    }
}

/// The form of a token's values; `None` for a token that php-fpm refuses.
fn shape(token: char, modifier: Option<&str>) -> Option<Shape> {
    let allowed = |words: &[&str]| modifier.is_none_or(|modifier| words.contains(&modifier));
    match token {
        'C' => allowed(&["total", "user", "system"]).then_some(Shape::Decimal),
        'd' => allowed(&["seconds", "miliseconds", "mili", "milliseconds", "milli", "microseconds", "micro"]).then_some(Shape::Decimal),
        'M' => allowed(&["bytes", "kilobytes", "kilo", "megabytes", "mega"]).then_some(Shape::Integer),
        't' | 'T' => Some(if modifier.is_none() { Shape::TimeLocal } else { Shape::Text }),
        'e' | 'o' => modifier.map(|_| Shape::Text),
        _ if modifier.is_some() => None,
        's' => Some(Shape::Status),
        'l' | 'p' | 'P' => Some(Shape::Integer),
        'm' | 'n' | 'R' => Some(Shape::Word),
        'f' | 'q' | 'Q' | 'r' | 'u' => Some(Shape::Text),
        _ => None,
    }
}

fn duration_unit(modifier: &str) -> DurationUnit {
    match modifier {
        "micro" | "microseconds" => DurationUnit::Microseconds,
        "" | "seconds" => DurationUnit::Seconds,
        _ => DurationUnit::Milliseconds,
    }
}

fn memory_unit(modifier: &str) -> u64 {
    match modifier {
        "kilo" | "kilobytes" => 1 << 10,
        "mega" | "megabytes" => 1 << 20,
        _ => 1,
    }
}
