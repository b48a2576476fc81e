//! The fields of an nginx access log line that the model uses for the stations of the path.

use super::compile::LogFormat;
use super::extract::{Record, Unparsed};
use super::number::{seconds_us, time_epoch_us, unsigned};

/// One answered request, borrowed from its line. A field is `None` if the format does not have it or the value is missing (`-`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access<'l> {
    /// Status of the answer; 499 if the client closed first.
    pub status: Option<u16>,
    /// End of the request, microseconds since 1970; whole seconds unless the format has `$msec`.
    pub time_us: Option<u64>,
    /// From the first byte of the request to the last byte handed to the socket, microseconds, rounded to milliseconds.
    pub request_time_us: Option<u64>,
    /// Method.
    pub method: Option<&'l [u8]>,
    /// URI with its query, as logged.
    pub uri: Option<&'l [u8]>,
    /// Time to connect, for each upstream tried, in microseconds; 0 means below half a millisecond and does not prove a reused connection.
    pub upstream_connect_us: Attempts<'l>,
    /// Time to the answer's head, for each upstream tried.
    pub upstream_header_us: Attempts<'l>,
    /// Time to the end of the answer, for each upstream tried.
    pub upstream_response_us: Attempts<'l>,
    /// Status, for each upstream tried; read it with [`Attempts::numbers`].
    pub upstream_status: Attempts<'l>,
    /// Addresses of the upstreams tried, as logged.
    pub upstream_addr: Option<&'l [u8]>,
    /// Bytes sent to the client, heads included.
    pub bytes_sent: Option<u64>,
    /// Bytes of the body sent.
    pub body_bytes_sent: Option<u64>,
    /// Bytes of the request.
    pub request_length: Option<u64>,
    /// Serial number of the connection.
    pub connection: Option<u64>,
    /// Requests on that connection so far, including this one.
    pub connection_requests: Option<u64>,
}

/// What is counted of an answer: outcome, size and times. Reading it takes less than half as long as a whole [`Access`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured<'l> {
    /// As of [`Access`].
    pub status: Option<u16>,
    /// As of [`Access`].
    pub request_time_us: Option<u64>,
    /// As of [`Access`].
    pub upstream_connect_us: Attempts<'l>,
    /// As of [`Access`].
    pub upstream_header_us: Attempts<'l>,
    /// As of [`Access`].
    pub upstream_response_us: Attempts<'l>,
    /// Bytes sent to the client; without the heads if only those are logged.
    pub bytes: Option<u64>,
}

/// What is told of an answer besides [`Measured`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Details<'l> {
    /// The request line.
    pub request: Option<&'l [u8]>,
    /// Method, if it is logged on its own.
    pub method: Option<&'l [u8]>,
    /// Protocol, if it is logged on its own.
    pub protocol: Option<&'l [u8]>,
    /// What the cache did: HIT, MISS, ...
    pub cache_status: Option<&'l [u8]>,
    /// How many times smaller compression made the answer; nothing if it was not compressed.
    pub gzip_ratio: Option<f64>,
    /// As of [`Access`].
    pub bytes_sent: Option<u64>,
    /// As of [`Access`].
    pub body_bytes_sent: Option<u64>,
    /// As of [`Access`].
    pub request_length: Option<u64>,
    /// Address of each upstream tried.
    pub upstream_addr: Attempts<'l>,
    /// As of [`Access`].
    pub upstream_response_us: Attempts<'l>,
    /// As of [`Access`].
    pub upstream_status: Attempts<'l>,
    /// Bytes of the answer of each upstream tried.
    pub upstream_length: Attempts<'l>,
}

/// A list of values, one for each upstream that was tried for one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attempts<'l> {
    text: &'l [u8],
}

/// The texts of a list. A type of its own, so that it is compiled here, for speed.
#[derive(Debug, Clone)]
pub struct Texts<'l> {
    rest: &'l [u8],
}

impl<'l> Iterator for Texts<'l> {
    type Item = &'l [u8];

    fn next(&mut self) -> Option<&'l [u8]> {
        let is_separator = |byte: &u8| matches!(byte, b',' | b' ');
        loop {
            let start = self.rest.iter().position(|byte| !is_separator(byte))?;
            let rest = &self.rest[start..];
            let text;
            (text, self.rest) = rest.split_at(rest.iter().position(is_separator).unwrap_or(rest.len()));
            if !matches!(text, [b':']) {
                return Some(text);
            }
        }
    }
}

impl<'l> Attempts<'l> {
    /// The attempts' texts, in order; `-` if an attempt has no value. Empty if no upstream was asked.
    pub fn texts(self) -> Texts<'l> {
        Texts { rest: if matches!(self.text, [b'-']) { b"" } else { self.text } }
    }

    /// Seconds as microseconds; `None` for an attempt without a value.
    pub fn times_us(self) -> impl Iterator<Item = Option<u64>> {
        self.texts().map(seconds_us)
    }

    /// Calls `each` with each attempt's time in microseconds that has a value. It is compiled here, for speed.
    pub fn each_us(self, each: &mut dyn FnMut(u64)) {
        for text in self.texts() {
            if let Some(us) = seconds_us(text) {
                each(us);
            }
        }
    }

    /// Plain numbers.
    pub fn numbers(self) -> impl Iterator<Item = Option<u64>> {
        self.texts().map(unsigned)
    }

    /// The sum of the attempts' times in microseconds; `None` if no upstream was asked or none has a value.
    pub fn sum_us(self) -> Option<u64> {
        self.times_us().flatten().fold(None, |sum: Option<u64>, time| Some(sum.unwrap_or(0).saturating_add(time)))
    }

    /// How many upstreams were tried.
    pub fn count(self) -> usize {
        self.texts().count()
    }
}

impl LogFormat {
    /// Parses what is counted of one line. `record` comes from [`LogFormat::record`] and can be used for any number of lines.
    pub fn measure<'l>(&self, line: &'l [u8], record: &mut Record) -> Result<Measured<'l>, Unparsed> {
        self.extract(line, record)?;
        Ok(self.measured(line, record))
    }

    /// What was asked for in the line that was parsed last, with its query.
    pub fn asked<'l>(&self, line: &'l [u8], record: &Record) -> Option<&'l [u8]> {
        let get = |slot: Option<usize>| slot.and_then(|slot| record.get(line, slot));
        get(self.known.request_uri).or_else(|| get(self.known.request)?.split(|byte| *byte == b' ').nth(1))
    }

    /// Details of the line that was parsed last.
    pub fn details<'l>(&self, line: &'l [u8], record: &Record) -> Details<'l> {
        let get = |slot: Option<usize>| slot.and_then(|slot| record.get(line, slot));
        let present = |slot: Option<usize>| get(slot).filter(|text| !text.is_empty() && *text != b"-");
        let attempts = |slot: Option<usize>| Attempts { text: get(slot).unwrap_or_default() };
        let number = |slot: Option<usize>| get(slot).and_then(unsigned);
        let known = &self.known;
        Details {
            request: present(known.request),
            method: present(known.request_method),
            protocol: present(known.server_protocol),
            cache_status: present(known.cache_status),
            gzip_ratio: get(known.gzip_ratio).and_then(seconds_us).map(|millionths| millionths as f64 / 1e6),
            bytes_sent: number(known.bytes_sent),
            body_bytes_sent: number(known.body_bytes_sent),
            request_length: number(known.request_length),
            upstream_addr: attempts(known.upstream_addr),
            upstream_response_us: attempts(known.upstream_response_time),
            upstream_status: attempts(known.upstream_status),
            upstream_length: attempts(known.upstream_length),
        }
    }

    /// Of the line that was extracted last.
    fn measured<'l>(&self, line: &'l [u8], record: &Record) -> Measured<'l> {
        let get = |slot: Option<usize>| slot.and_then(|slot| record.get(line, slot));
        let attempts = |slot: Option<usize>| Attempts { text: get(slot).unwrap_or_default() };
        let number = |slot: Option<usize>| get(slot).and_then(unsigned);
        let known = &self.known;
        Measured {
            status: number(known.status).and_then(|status| u16::try_from(status).ok()),
            request_time_us: get(known.request_time).and_then(seconds_us),
            upstream_connect_us: attempts(known.upstream_connect_time),
            upstream_header_us: attempts(known.upstream_header_time),
            upstream_response_us: attempts(known.upstream_response_time),
            bytes: number(known.bytes_sent).or_else(|| number(known.body_bytes_sent)),
        }
    }

    /// Parses one line. `record` comes from [`LogFormat::record`] and can be used for any number of lines.
    pub fn read<'l>(&self, line: &'l [u8], record: &mut Record) -> Result<Access<'l>, Unparsed> {
        self.extract(line, record)?;
        let record = &*record;
        let measured = self.measured(line, record);
        let get = |slot: Option<usize>| slot.and_then(|slot| record.get(line, slot));
        let present = |slot: Option<usize>| get(slot).filter(|text| !text.is_empty() && *text != b"-");
        let attempts = |slot: Option<usize>| Attempts { text: get(slot).unwrap_or_default() };
        let number = |slot: Option<usize>| get(slot).and_then(unsigned);
        let known = &self.known;
        let mut words = present(known.request).into_iter().flat_map(|request| request.split(|byte| *byte == b' '));
        let (method, uri) = (words.next(), words.next());
        Ok(Access {
            status: measured.status,
            time_us: get(known.time).and_then(time_epoch_us),
            request_time_us: measured.request_time_us,
            method: present(known.request_method).or(method),
            uri: present(known.request_uri).or(uri),
            upstream_connect_us: measured.upstream_connect_us,
            upstream_header_us: measured.upstream_header_us,
            upstream_response_us: measured.upstream_response_us,
            upstream_status: attempts(known.upstream_status),
            upstream_addr: present(known.upstream_addr),
            bytes_sent: number(known.bytes_sent),
            body_bytes_sent: number(known.body_bytes_sent),
            request_length: number(known.request_length),
            connection: number(known.connection),
            connection_requests: number(known.connection_requests),
        })
    }
}
