//! The lines of a log, one after the other.

use std::io::{self, Read};

use chokepoint_config::log_format::LINE_BYTES_MAX;
use memchr::memchr_iter;
use memchr::memmem::Finder;

/// Bytes of one read(2).
const CHUNK_BYTES: usize = 64 << 10;

/// How much was read.
pub(in crate::servers) struct Extent {
    /// Bytes.
    pub(in crate::servers) read: u64,
    /// Of those, the bytes after the last line feed: a line that is not complete yet.
    pub(in crate::servers) incomplete: u64,
}

/// Passes each complete line, without its line feed, to `each`, with whether `mark` finds something in it. Skips the first line if reading begins in its middle. Lines
/// longer than any server writes are cut.
pub(in crate::servers) fn each_line(
    from: &mut impl Read,
    in_the_middle: bool,
    mark: Option<&Finder<'_>>,
    mut each: impl FnMut(&[u8], bool),
) -> io::Result<Extent> {
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
        let chunk = &buffer[..length];
        // The whole chunk is searched at once: that is faster than line by line.
        let found_from = |at: usize| mark.and_then(|mark| Some(at + mark.find(&chunk[at..])?));
        let (mut start, mut found) = (0, found_from(0));
        for end in memchr_iter(b'\n', chunk) {
            let is_wanted = !std::mem::take(&mut skipping);
            let is_marked = found.is_some_and(|found| found < end);
            if is_marked {
                found = found_from(end);
            }
            if line.is_empty() {
                if is_wanted {
                    each(&chunk[start..end], is_marked);
                }
            } else {
                line.extend_from_slice(&chunk[start..end]);
                if is_wanted {
                    each(&line, mark.is_some_and(|mark| mark.find(&line).is_some()));
                }
                line.clear();
            }
            extent.incomplete = 0;
            start = end + 1;
        }
        let rest = &chunk[start..];
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
        let extent = each_line(&mut text.as_bytes(), in_the_middle, None, |line, _| found.push(String::from_utf8_lossy(line).into_owned()));
        let extent = extent.unwrap();
        (found, extent.read, extent.incomplete)
    }

    #[test]
    fn only_complete_lines_are_passed_on() {
        assert_eq!(lines("a\nbc\nd", false), (vec!["a".to_owned(), "bc".to_owned()], 6, 1));
        assert_eq!(lines("a\nbc\n", true), (vec!["bc".to_owned()], 5, 0));
        assert_eq!(lines("", false), (vec![], 0, 0));
        let long = format!("{}\nx\n", "y".repeat(LINE_BYTES_MAX + 3 * CHUNK_BYTES));
        let (found, read, incomplete) = lines(&long, false);
        assert_eq!((found[0].len(), found[1].as_str(), read, incomplete), (LINE_BYTES_MAX + 1, "x", long.len() as u64, 0));
    }

    /// A reader that gives a few bytes at a time.
    struct Sips<'a>(&'a [u8], usize);

    impl Read for Sips<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(into.len());
            (&mut self.0).take(length as u64).read(into)
        }
    }

    #[test]
    fn lines_with_a_mark_are_told_wherever_a_piece_ends() {
        let text = b"one\nmark\ntwo mark\nthree\n\nmark and mark\nfour\nmar\nk\n";
        for size in 1..=text.len() {
            let mut found = Vec::new();
            let mut all = 0;
            each_line(&mut Sips(text, size), false, Some(&Finder::new("mark")), |line, is_marked| {
                all += 1;
                if !is_marked {
                    found.push(String::from_utf8_lossy(line).into_owned());
                }
            })
            .unwrap();
            assert_eq!(
                (all, found.as_slice()),
                (9, ["one", "three", "", "four", "mar", "k"].map(str::to_owned).as_slice()),
                "{size} bytes at a time"
            );
        }
    }
}
