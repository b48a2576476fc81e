//! FastCGI answers of every form, whole and split anywhere, and malformed ones.

use super::*;
use crate::protocol::completion::HEAD_BYTES_MAX;
use crate::protocol::gathered::HEAD_BYTES_KEPT;
use proptest::prelude::*;

/// How an answer ended: bytes used and status; `None` if it did not end.
type Parsed = Option<(usize, u16)>;

fn record(kind: u8, id: u8, content: &[u8], padding: u8) -> Vec<u8> {
    let [high, low] = (content.len() as u16).to_be_bytes();
    let header = [VERSION, kind, 0, id, high, low, padding, 0];
    [&header[..], content, &vec![0xAA; usize::from(padding)]].concat()
}

fn end(protocol_status: u8) -> Vec<u8> {
    record(END_REQUEST, 1, &[0, 0, 0, 0, protocol_status, 0, 0, 0], 0)
}

fn run(input: &[u8], piece: usize) -> Result<Parsed, BadAnswer> {
    let (mut answer, mut error_output) = (Answer::new(true), ErrorOutput::default());
    let mut before = 0;
    for part in input.chunks(piece.max(1)) {
        if let Completion::Complete(used) = answer.feed(part, &mut error_output)? {
            return Ok(Some((before + used, answer.status())));
        }
        before += part.len();
    }
    Ok(None)
}

/// Feeds in pieces of every size and checks that the result is the same.
fn same_in_all_pieces(input: &[u8]) -> Result<Parsed, BadAnswer> {
    let whole = run(input, input.len());
    for piece in 1..input.len() {
        assert_eq!(run(input, piece), whole, "{input:?} in pieces of {piece}");
    }
    whole
}

#[test]
fn the_status_follows_from_the_head() {
    for (head, status) in [
        ("Content-type: text/html\r\n\r\nbody", 200),
        ("Status: 404 Not Found\r\nX: y\r\n\r\nNo", 404),
        ("X: y\nstatus: 500\n\n", 500),
        ("Location: /elsewhere\r\n\r\n", 302),
        ("Status: 201 Created\r\nLocation: /new\r\n\r\n", 201),
        ("\r\nno field at all", 200),
        ("\nno field at all", 200),
    ] {
        let input = [record(STDOUT, 1, head.as_bytes(), 5), record(STDOUT, 1, b"", 0), end(0)].concat();
        assert_eq!(same_in_all_pieces(&input), Ok(Some((input.len(), status))), "{head:?}");
    }
}

#[test]
fn records_of_every_kind_may_be_interleaved() {
    let parts = [
        record(STDERR, 1, b"PHP Warning: \x1b[31mno\n", 3),
        record(STDOUT, 1, b"Status: 50", 0),
        record(10, 0, b"\x0f\x01FCGI_MPXS_CONNS0", 7),
        record(STDOUT, 1, b"3 Busy\r\n", 255),
        record(11, 0, &[77, 0, 0, 0, 0, 0, 0, 0], 0),
        record(STDOUT, 1, b"\r", 1),
        record(STDERR, 1, b"", 0),
        record(STDOUT, 1, b"\nwait", 0),
        end(0),
    ];
    let mut input = parts.concat();
    let length = input.len();
    assert_eq!(same_in_all_pieces(&input), Ok(Some((length, 503))));
    input.extend_from_slice(b"more");
    assert_eq!(run(&input, usize::MAX), Ok(Some((length, 503))), "what follows is not taken");
    for cut in 0..length {
        assert_eq!(run(&input[..cut], usize::MAX), Ok(None), "cut at {cut}");
    }
}

#[test]
fn malformed_answers_are_refused() {
    let head = || record(STDOUT, 1, b"A: b\r\n\r\n", 0);
    let after_head = |bytes: Vec<u8>| [head(), bytes].concat();
    for (input, words) in [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "version 1"),
        (vec![0; 8], "version 1"),
        (after_head(vec![2, 6, 0, 1, 0, 0, 0, 0]), "version 1"),
        (record(STDOUT, 2, b"A: b\r\n\r\n", 0), "another request"),
        (vec![1, 6, 1, 1, 0, 0, 0, 0], "another request"),
        (record(STDOUT, 0, b"A: b\r\n\r\n", 0), "another request"),
        (record(10, 1, b"", 0), "no responder sends"),
        (record(5, 1, b"", 0), "no responder sends"),
        (after_head(record(END_REQUEST, 1, &[0; 7], 0)), "eight bytes"),
        (after_head(record(END_REQUEST, 1, &[0; 9], 0)), "eight bytes"),
        (end(0), "before the head"),
        ([record(STDOUT, 1, b"A: b\r\n", 0), end(0)].concat(), "before the head"),
        (after_head(end(1)), "FCGI_CANT_MPX_CONN"),
        (end(2), "FCGI_OVERLOADED"),
        (end(3), "FCGI_UNKNOWN_ROLE"),
        (after_head(end(4)), "does not have"),
        (record(STDOUT, 1, b"Status: abc\r\n\r\n", 0), "three digits"),
        (record(STDOUT, 1, b"Status: 20\r\n\r\n", 0), "three digits"),
        (record(STDOUT, 1, b"Status: 099\r\n\r\n", 0), "three digits"),
        (record(STDOUT, 1, b"Status: 2000\r\n\r\n", 0), "three digits"),
        (record(STDOUT, 1, b"<html>\r\n\r\n", 0), "malformed"),
    ] {
        let Err(BadAnswer(text)) = same_in_all_pieces(&input) else { panic!("{input:?} was taken") };
        assert!(text.contains(words), "{text} for {input:?}");
    }
}

#[test]
fn heads_are_bounded_and_no_large_buffer_is_kept() {
    let line = [b"A: ".as_slice(), &[b'b'; 60_000], b"\r\n"].concat();
    let endless = [record(STDOUT, 1, &line, 0), record(STDOUT, 1, &line, 0)].concat();
    let many = |fields: usize| [record(STDOUT, 1, &[b"A: b\r\n".repeat(fields), b"\r\n".to_vec()].concat(), 0), end(0)].concat();
    for piece in [1, 1000, usize::MAX] {
        assert_eq!(run(&endless, piece), Err(BadAnswer("a head over 64 KiB")), "{piece}");
        assert!(matches!(run(&many(HEADERS_MAX), piece), Ok(Some((_, 200)))), "{piece}");
        assert_eq!(run(&many(HEADERS_MAX + 1), piece), Err(BadAnswer("more than 128 header fields")), "{piece}");
    }
    assert!(line.len() < HEAD_BYTES_MAX);
    let (mut answer, mut error_output) = (Answer::new(true), ErrorOutput::default());
    for _ in 0..3 {
        assert_eq!(answer.feed(&record(STDOUT, 1, &line, 0), &mut error_output), Ok(Completion::More));
        let rest = [record(STDOUT, 1, b"\r\n", 0), end(0)].concat();
        assert_eq!(answer.feed(&rest, &mut error_output), Ok(Completion::Complete(rest.len())));
        assert!(answer.head_buffer.capacity() <= HEAD_BYTES_KEPT);
        answer.reset();
    }
}

#[test]
fn error_output_is_counted_by_request_and_kept_within_bounds() {
    let (mut answer, mut error_output) = (Answer::new(false), ErrorOutput::default());
    assert_eq!(error_output.text(), None);
    for _ in 0..3 {
        let said = [record(STDERR, 1, b"short", 0), record(STDERR, 1, &[b'x'; 9000], 0), record(STDERR, 1, b"y\n", 0)].concat();
        let input = [said, record(STDOUT, 1, b"A: b\n\n", 2), end(0)].concat();
        assert_eq!(answer.feed(&input, &mut error_output), Ok(Completion::Complete(input.len())));
        assert!(!answer.reusable(), "FCGI_KEEP_CONN was not asked for");
        answer.reset();
    }
    let mut sum = ErrorOutput::default();
    sum.add(&error_output);
    sum.add(&error_output);
    assert_eq!(sum.text(), Some(format!("error output (FCGI_STDERR) with 6 responses, for example: {}", "x".repeat(EXAMPLE_BYTES_MAX))));
}

proptest! {
    #[test]
    fn random_bytes_never_panic(input in proptest::collection::vec(any::<u8>(), 0..300), piece in 1usize..50) {
        let with_version: Vec<u8> = [1, 6, 0, 1].into_iter().chain(input.iter().copied()).collect();
        for input in [input, with_version] {
            prop_assert_eq!(run(&input, piece), run(&input, usize::MAX));
        }
    }

    #[test]
    fn splitting_never_changes_the_result(
        parts in proptest::collection::vec((
            proptest::sample::select(vec![STDOUT, STDOUT, STDOUT, STDERR, 10, END_REQUEST]),
            proptest::sample::select(vec!["Status: 404\r\n", "A: b\n", "\r\n", "\n", "\r", "", "body", "12345678", "\0\0\0\0\0\0\0\0", "\u{fc}"]),
            0u8..9,
        ), 0..10),
        piece in 1usize..40,
    ) {
        let made = |(kind, content, padding): &(u8, &str, u8)| record(*kind, u8::from(*kind != 10), content.as_bytes(), *padding);
        let input: Vec<u8> = parts.iter().flat_map(made).chain(end(0)).collect();
        prop_assert_eq!(run(&input, piece), run(&input, usize::MAX));
    }
}
