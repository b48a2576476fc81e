//! The lines of a log, one after the other.

use std::io::{self, Read};

use chokepoint_config::log_format::LINE_BYTES_MAX;

/// Bytes of one read(2).
const CHUNK_BYTES: usize = 256 << 10;

/// How much was read.
pub(in crate::servers) struct Extent {
    /// Bytes.
    pub(in crate::servers) read: u64,
    /// Of those, the bytes after the last line feed: a line that is not complete yet.
    pub(in crate::servers) incomplete: u64,
}

/// Passes each complete line, without its line feed, to `each`. Skips the first line if reading begins in its middle. Lines longer than any server writes are
/// cut.
pub(in crate::servers) fn each_line(from: &mut impl Read, in_the_middle: bool, each: &mut dyn FnMut(&[u8])) -> io::Result<Extent> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut line: Vec<u8> = Vec::new();
    let mut skipping = in_the_middle;
    let mut extent = Extent { read: 0, incomplete: 0 };
    loop {
        let length = match from.read(&mut buffer) {
            Ok(0) => return Ok(extent),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        extent.read += length as u64;
        let mut rest = &buffer[..length];
        while let Some(end) = memchr::memchr(b'\n', rest) {
            if skipping {
                skipping = false;
            } else if line.is_empty() {
                each(&rest[..end]);
            } else {
                line.extend_from_slice(&rest[..end]);
                each(&line);
            }
            line.clear();
            extent.incomplete = 0;
            rest = &rest[end + 1..];
        }
        extent.incomplete += rest.len() as u64;
        let room = (LINE_BYTES_MAX + 1).saturating_sub(line.len());
        line.extend_from_slice(&rest[..rest.len().min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, in_the_middle: bool) -> (Vec<String>, u64, u64) {
        let mut found = Vec::new();
        let extent = each_line(&mut text.as_bytes(), in_the_middle, &mut |line| found.push(String::from_utf8_lossy(line).into_owned()));
        let extent = extent.unwrap();
        (found, extent.read, extent.incomplete)
    }

    #[test]
    fn only_complete_lines_are_passed_on() {
        assert_eq!(lines("a\nbc\nd", false), (vec!["a".to_owned(), "bc".to_owned()], 6, 1));
        assert_eq!(lines("a\nbc\n", true), (vec!["bc".to_owned()], 5, 0));
        assert_eq!(lines("", false), (vec![], 0, 0));
        let long = format!("{}\nx\n", "y".repeat(3 * CHUNK_BYTES));
        let (found, read, incomplete) = lines(&long, false);
        assert_eq!((found[0].len(), found[1].as_str(), read, incomplete), (LINE_BYTES_MAX + 1, "x", long.len() as u64, 0));
    }
}
