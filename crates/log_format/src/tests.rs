//! Tests on whole lines of real formats and on hostile lines.

use proptest::prelude::*;

use super::*;

fn values(format: &LogFormat, line: &str) -> Result<Vec<String>, Unparsed> {
    let mut record = format.record();
    format.extract(line.as_bytes(), &mut record)?;
    let slots = 0..format.names().count();
    Ok(slots.map(|slot| String::from_utf8_lossy(record.get(line.as_bytes(), slot).unwrap_or_default()).into_owned()).collect())
}

fn nginx(format: &str) -> LogFormat {
    LogFormat::nginx(format, Escape::Default).expect("it compiles")
}

#[test]
fn combined_lines() {
    let format = LogFormat::combined();
    assert_eq!(format.names().count(), 8);
    assert!(format.has_status());
    let line = "203.0.113.9 - - [20/Nov/2026:07:17:47 +0000] \"GET /index.php?a=1 HTTP/1.1\" 499 0 \"-\" \"curl/8 (x; y)\"\n";
    let mut record = format.record();
    let access = format.read(line.as_bytes(), &mut record).expect("it is of this format");
    assert_eq!((access.status, access.body_bytes_sent), (Some(499), Some(0)));
    assert_eq!((access.method, access.uri), (Some(&b"GET"[..]), Some(&b"/index.php?a=1"[..])));
    assert_eq!(access.time_us, Some(1_795_159_067_000_000));
    assert_eq!((access.request_time_us, access.upstream_response_us.count()), (None, 0));
    // A user name may contain blanks and brackets; the time after it decides where it ends.
    let line = "1.2.3.4 - a [b c [20/Nov/2026:07:17:47 +0000] \"-\" 400 0 \"-\" \"-\"";
    assert_eq!(values(&format, line).map(|values| values[1].clone()), Ok("a [b c".to_owned()));
    let access = format.read(line.as_bytes(), &mut record).expect("it is of this format");
    assert_eq!((access.method, access.uri), (None, None));
    for foreign in ["", "garbage", "1.2.3.4 - - [20/Nov/2026:07:17:47 +0000] \"GET / HTTP/1.1\" 200", "\u{0}\u{0}\u{0}"] {
        assert_eq!(values(&format, foreign), Err(Unparsed::Format), "{foreign}");
    }
    assert_eq!(values(&format, &"x".repeat(LINE_BYTES_MAX + 1)), Err(Unparsed::TooLong));
}

#[test]
fn lists_per_upstream() {
    let format = nginx("$status $request_time $upstream_response_time $upstream_connect_time [$upstream_status] $upstream_addr $pipe");
    let line = "200 0.123 0.001, 0.100 : 0.020 -, 0.000 : 0.001 [502, 504 : 200] 127.0.0.1:1, [::1]:2 : unix:/run/x.sock .";
    let mut record = format.record();
    let access = format.read(line.as_bytes(), &mut record).expect("it is of this format");
    assert_eq!(access.upstream_response_us.times_us().collect::<Vec<_>>(), [Some(1_000), Some(100_000), Some(20_000)]);
    assert_eq!(access.upstream_response_us.sum_us(), Some(121_000));
    assert_eq!(access.upstream_connect_us.times_us().collect::<Vec<_>>(), [None, Some(0), Some(1_000)]);
    assert_eq!(access.upstream_status.numbers().collect::<Vec<_>>(), [Some(502), Some(504), Some(200)]);
    assert_eq!(access.upstream_addr, Some(&b"127.0.0.1:1, [::1]:2 : unix:/run/x.sock"[..]));
    let none = format.read(b"404 0.000 - - [-] - p", &mut record).expect("no upstream was asked");
    assert_eq!((none.upstream_response_us.count(), none.upstream_response_us.sum_us(), none.upstream_addr), (0, None, None));
}

#[test]
fn a_list_gives_back_what_the_next_literal_needs() {
    let format = nginx("$upstream_response_time, $request_time, $status");
    assert_eq!(values(&format, "0.001, 0.002, 0.5, 200"), Ok(vec!["0.001, 0.002".to_owned(), "0.5".to_owned(), "200".to_owned()]));
    assert_eq!(values(&format, "-, 0.5, 200"), Ok(vec!["-".to_owned(), "0.5".to_owned(), "200".to_owned()]));
    let format = nginx("$request_length-$bytes_sent");
    assert_eq!(values(&format, "12-34"), Ok(vec!["12".to_owned(), "34".to_owned()]));
    assert_eq!(values(&format, "---"), Ok(vec!["-".to_owned(), "-".to_owned()]));
}

#[test]
fn json_lines() {
    let text = "{\"time\":\"$time_iso8601\",\"status\":$status,\"request\":\"$request\",\"rt\":$request_time,\"urt\":\"$upstream_response_time\",\"agent\":\"$http_user_agent\"}";
    let format = LogFormat::nginx(text, Escape::Json).expect("it compiles");
    let line = "{\"time\":\"2026-11-20T07:17:47+00:00\",\"status\":200,\"request\":\"GET /\\\",\\\"rt\\\":9 HTTP/1.1\",\"rt\":0.012,\"urt\":\"\",\"agent\":\"a\\\\\"}";
    let mut record = format.record();
    let access = format.read(line.as_bytes(), &mut record).expect("it is of this format");
    assert_eq!((access.status, access.request_time_us, access.upstream_response_us.count()), (Some(200), Some(12_000), 0));
    assert_eq!(format.slot("http_user_agent").and_then(|slot| record.get(line.as_bytes(), slot)), Some(&b"a\\\\"[..]));
}

#[test]
fn a_format_without_status_is_recognised() {
    let format = nginx("$remote_addr $request_time");
    assert!(!format.has_status());
    let mut record = format.record();
    assert_eq!(format.read(b"1.2.3.4 0.200", &mut record).map(|access| (access.status, access.request_time_us)), Ok((None, Some(200_000))));
}

#[test]
fn adjacent_variables_are_separated_or_flagged() {
    let format = nginx("$status$request_time");
    assert_eq!(values(&format, "2000.003"), Ok(vec!["200".to_owned(), "0.003".to_owned()]));
    assert_eq!(format.ambiguous().count(), 0);
    let format = nginx("$request_time$status x");
    assert_eq!(format.ambiguous().collect::<Vec<_>>(), ["request_time", "status"]);
    assert!(!format.has_status() && format.slot("status").is_none());
    let format = nginx("\"$uri$is_args$args\" $status");
    assert_eq!(format.ambiguous().count(), 3);
    let mut record = format.record();
    assert_eq!(format.read(b"\"/a?b=c\" 200", &mut record).map(|access| access.status), Ok(Some(200)));
}

#[test]
fn braces_tabs_and_bad_formats() {
    let format = nginx("${status}x\t${msec}");
    assert_eq!(values(&format, "200x\t1795159067.123"), Ok(vec!["200".to_owned(), "1795159067.123".to_owned()]));
    let mut record = format.record();
    assert_eq!(format.read(b"200x\t1795159067.123", &mut record).map(|access| access.time_us), Ok(Some(1_795_159_067_123_000)));
    assert_eq!(LogFormat::nginx("$", Escape::Default), Err(FormatError::Name));
    assert_eq!(LogFormat::nginx("a ${b", Escape::Default), Err(FormatError::Name));
    assert_eq!(LogFormat::nginx("${}", Escape::Default), Err(FormatError::Name));
    assert_eq!(LogFormat::nginx(&"$a ".repeat(1_000), Escape::Default), Err(FormatError::TooMany));
    let fixed = nginx("no variables");
    assert_eq!(values(&fixed, "no variables"), Ok(vec![]));
    assert_eq!(values(&fixed, "no variables at all"), Err(Unparsed::Format));
}

#[test]
fn php_fpm_lines() {
    let format = FpmFormat::compile("%R - %u %t \"%m %r%Q%q\" %s %f %{milli}d %{kilo}M %C%%").expect("it compiles");
    let line = "127.0.0.1 -  20/Nov/2026:07:17:47 +0000 \"GET /index.php?a=b\" 200 /srv/index.php 12.345 2048 81.25%";
    let mut record = format.record();
    let access = format.read(line.as_bytes(), &mut record).expect("it is of this format");
    assert_eq!((access.status, access.duration_us, access.memory_bytes), (Some(200), Some(12_345), Some(2 << 20)));
    assert_eq!((access.cpu_millicores, access.uri), (Some(812), Some(&b"/index.php?a=b"[..])));
    assert_eq!(access.time_us, Some(1_795_159_067_000_000));
    let micro = FpmFormat::compile("[%{%s}T] %n %p %{micro}d %s").expect("it compiles");
    let access =
        micro.read(b"[1795159067] www 4711 159 404", &mut micro.record()).map(|access| (access.pid, access.duration_us, access.status));
    assert_eq!(access, Ok((Some(4711), Some(159), Some(404))));
    let default = FpmFormat::compile("%R - %u %t \"%m %r\" %s").expect("it compiles");
    assert!(default.has_status() && !default.has_duration());
    let read = default.read(b"- -  20/Nov/2026:07:17:47 +0000 \"GET /\" 200\n", &mut default.record()).map(|access| access.status);
    assert_eq!(read, Ok(Some(200)));
    for bad in ["%", "%x", "%{", "%{}", "%{micro}s", "%{hours}d", "%e", "%{milli"] {
        assert!(FpmFormat::compile(bad).is_err(), "{bad}");
    }
    assert!(!FpmFormat::compile("%d").expect("it compiles").has_status());
}

#[test]
fn hostile_lines_end_quickly() {
    let format = nginx("$a\" \"$b\" \"$c\" \"$d\" \"$e\" \"$status");
    let line = "\" ".repeat(LINE_BYTES_MAX / 2);
    assert_eq!(values(&format, &line), Err(Unparsed::Format));
}

#[test]
fn truncation_at_every_byte_is_refused_or_shorter() {
    let format = nginx("$remote_addr [$time_local] \"$request\" $status $upstream_response_time \"$http_referer\"");
    let line = "10.0.0.1 [20/Nov/2026:07:17:47 +0000] \"GET / HTTP/1.1\" 200 0.001, 0.002 \"http://a/\"";
    let mut record = format.record();
    for end in 0..line.len() {
        assert_eq!(format.read(&line.as_bytes()[..end], &mut record), Err(Unparsed::Format), "{}", &line[..end]);
    }
    assert!(format.read(line.as_bytes(), &mut record).is_ok());
}

/// Variables with values as nginx writes them, by index.
const SAMPLES: &[(&str, &[&str])] = &[
    ("status", &["200", "499", "000"]),
    ("request_time", &["0.000", "12.345"]),
    ("upstream_response_time", &["-", "0.001", "0.001, 0.002", "0.1, - : 0.3"]),
    ("remote_addr", &["10.0.0.1", "2001:db8::1", "unix:"]),
    ("request", &["GET / HTTP/1.1", "-", "\\x16\\x03", "GET /a b c HTTP/1.0"]),
    ("http_user_agent", &["-", "Mozilla/5.0 (X11; Linux) 200 1.5 -", "a, b : c"]),
    ("time_local", &["20/Nov/2026:07:17:47 +0000"]),
    ("time_iso8601", &["2026-11-20T07:17:47+00:00"]),
    ("body_bytes_sent", &["0", "123456789", "-"]),
    ("msec", &["1795159067.123"]),
];

proptest! {
    /// Every line that is written with a format of quoted texts is read back.
    #[test]
    fn lines_are_read_back(picks in proptest::collection::vec((0_usize..SAMPLES.len(), 0_usize..4), 1..8), separator in "( |\t| \\| |;|, )") {
        let mut format = String::new();
        let mut line = String::new();
        let mut expected = Vec::new();
        for (index, (pick, value)) in picks.into_iter().enumerate() {
            let (name, values) = SAMPLES[pick];
            let value = values[value % values.len()];
            let between = if index > 0 { separator.as_str() } else { "" };
            // A list with commas next to a comma cannot be separated from its neighbour, so lists are quoted like texts.
            format.push_str(&format!("{between}\"${name}\""));
            line.push_str(&format!("{between}\"{value}\""));
            expected.push(value.to_owned());
        }
        prop_assert_eq!(values(&nginx(&format), &line), Ok(expected));
    }

    #[test]
    fn any_format_and_line_give_an_answer(format in "[$a{}\" ,%s]{0,12}(\\$status|\\$request_time|\\$time_local|\\$upstream_addr|\\$msec)?[ \"]?", line in proptest::collection::vec(any::<u8>(), 0..60)) {
        for escape in [Escape::Default, Escape::Json, Escape::None] {
            if let Ok(format) = LogFormat::nginx(&format, escape) {
                let mut record = format.record();
                if format.read(&line, &mut record).is_ok() {
                    prop_assert!(format.names().count() == 0 || record.get(&line, 0).is_some());
                }
            }
        }
        if let Ok(format) = FpmFormat::compile(&format) {
            let mut record = format.record();
            let read = format.read(&line, &mut record);
            prop_assert!(read.is_ok() || matches!(read, Err(Unparsed::Format)));
        }
    }
}
