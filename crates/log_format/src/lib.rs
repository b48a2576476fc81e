//! Parses access log lines of any format in one pass: nginx's `log_format` and php-fpm's `access.format`.
//!
//! A format is compiled once into literals and variables. Each line then yields its fields without allocating. Variables whose values have
//! a known shape (numbers, times, lists per upstream) are checked against it, so that a blank inside one value does not end it.

#![forbid(unsafe_code)]

mod access;
mod compile;
mod extract;
mod number;
mod php_fpm;
mod shape;

#[cfg(test)]
mod tests;

pub use access::{Access, Attempts, Details, Measured, Texts};
pub use compile::{COMBINED, Escape, FormatError, LogFormat};
pub use extract::{LINE_BYTES_MAX, Record, Unparsed};
pub use number::{clock, month, seconds_us, time_epoch_us, unsigned};
pub use php_fpm::{FpmAccess, FpmFormat};

/// Microseconds since 1970 of a date and its seconds of the day, both without a time zone.
pub fn epoch_us(year: u64, month: u64, day: u64, clock: u64) -> Option<u64> {
    number::epoch_us(year, month, day, clock, 0)
}
