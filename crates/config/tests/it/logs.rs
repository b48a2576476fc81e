//! Logs that nginx 1.22 and php-fpm 8.2 wrote, read whole: every line, with what it says.
//!
//! Deterministic: files in, text out.

use std::collections::BTreeMap;

use chokepoint_config::error_log::{FpmEvent, FpmLine, NginxEvent, NginxLine};
use chokepoint_config::log_format::{Escape, FpmFormat, LogFormat};

const TIMED: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \"$http_user_agent\" \
    rt=$request_time uct=\"$upstream_connect_time\" uht=\"$upstream_header_time\" urt=\"$upstream_response_time\" us=\"$upstream_status\" \
    ua=\"$upstream_addr\" c=$connection cr=$connection_requests rl=$request_length bs=$bytes_sent ms=$msec p=$pipe";
const JSON: &str = "{\"time\":\"$time_iso8601\",\"status\":$status,\"request\":\"$request\",\"rt\":$request_time,\
    \"urt\":\"$upstream_response_time\",\"agent\":\"$http_user_agent\"}";
const TABS: &str = "$msec\t$status\t$request_time\t$upstream_connect_time\t$request";

/// Lines by status, with the sum of the times of their requests.
fn statuses(format: &LogFormat, log: &str) -> (BTreeMap<u16, usize>, u64) {
    let mut record = format.record();
    let mut count = BTreeMap::new();
    let mut time = 0;
    for line in log.lines() {
        let access = format.read(line.as_bytes(), &mut record).unwrap_or_else(|error| panic!("{error}: {line}"));
        *count.entry(access.status.expect("every line has a status")).or_default() += 1;
        time += access.request_time_us.unwrap_or(0);
    }
    (count, time)
}

#[test]
fn the_same_requests_in_every_format() {
    let expected = BTreeMap::from([(200, 5), (404, 2), (499, 1), (502, 2), (503, 2), (504, 3)]);
    let format = |text: &str, escape| LogFormat::nginx(text, escape).expect("it compiles");
    let (combined, _) = statuses(&LogFormat::combined(), include_str!("../data/logs/combined.log"));
    let (timed, time) = statuses(&format(TIMED, Escape::Default), include_str!("../data/logs/timed.log"));
    let (json, json_time) = statuses(&format(JSON, Escape::Json), include_str!("../data/logs/js.log"));
    let (tabs, tabs_time) = statuses(&format(TABS, Escape::None), include_str!("../data/logs/tsv.log"));
    assert_eq!([&combined, &timed, &json, &tabs], [&expected; 4]);
    assert_eq!([json_time, tabs_time], [time; 2]);
}

#[test]
fn upstreams_of_each_request() {
    let format = LogFormat::nginx(TIMED, Escape::Default).expect("it compiles");
    let mut record = format.record();
    let lines: Vec<&str> = include_str!("../data/logs/timed.log").lines().collect();
    let first = format.read(lines[0].as_bytes(), &mut record).expect("it is of this format");
    assert_eq!(first.upstream_status.numbers().collect::<Vec<_>>(), [Some(502), Some(200)]);
    assert_eq!(first.upstream_connect_us.times_us().collect::<Vec<_>>(), [None, Some(0)]);
    assert_eq!(
        (first.connection, first.connection_requests, first.request_length, first.bytes_sent),
        (Some(1), Some(1), Some(73), Some(192))
    );
    let user = format.slot("remote_user").expect("it has one");
    format.read(lines[4].as_bytes(), &mut record).expect("it is of this format");
    assert_eq!(record.get(lines[4].as_bytes(), user), Some(&b"a [b"[..]));
    let gone = lines.iter().filter_map(|line| format.read(line.as_bytes(), &mut record).ok()).find(|access| access.status == Some(499));
    assert_eq!(gone.and_then(|access| access.upstream_response_us.sum_us()), Some(271_000));
}

#[test]
fn every_line_of_nginxs_error_log() {
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for line in include_str!("../data/logs/error.log").lines() {
        let parsed = NginxLine::parse(line).unwrap_or_else(|| panic!("not read: {line}"));
        *count.entry(format!("{:?} {}", parsed.event, parsed.errno.unwrap_or(0))).or_default() += 1;
        if parsed.event == NginxEvent::ConnectFailed {
            assert_eq!(parsed.phase, Some("connecting to upstream"));
            assert!(parsed.upstream.is_some_and(|upstream| upstream.starts_with("fastcgi://")));
            assert_eq!((parsed.client, parsed.server), (Some("127.0.0.1"), None));
        }
    }
    for (event, expected) in [
        ("ConnectFailed 111", 3),
        ("ConnectFailed 2", 1),
        ("UpstreamTimedOut 110", 3),
        ("RateLimited 0", 2),
        ("OpenFailed 2", 1),
        ("ClientClosed 0", 1),
    ] {
        assert_eq!(count.get(event), Some(&expected), "{event} in {count:?}");
    }
}

#[test]
fn every_line_of_php_fpms_logs() {
    let lines: Vec<FpmLine> = include_str!("../data/logs/fpm.log").lines().map(|line| FpmLine::parse(line).expect("it is one")).collect();
    let count = |is_it: fn(&FpmEvent) -> bool| lines.iter().filter(|line| is_it(&line.event)).count();
    assert_eq!(count(|event| *event == FpmEvent::MaxChildrenReached { limit: 2 }), 1);
    assert_eq!(count(|event| matches!(event, FpmEvent::Slow { time_us: 1_000_000.., .. })), 3);
    assert_eq!(count(|event| matches!(event, FpmEvent::TimedOut { time_us: 2_000_000.., .. })), 2);
    assert_eq!(count(|event| matches!(event, FpmEvent::ChildDied { .. })), 2);
    assert_eq!(count(|event| *event == FpmEvent::Ready), 1);
    let format = FpmFormat::compile("%R - %u %t \"%m %r%Q%q\" %s %f %{micro}d %{kilo}M %C%% %p %n").expect("it compiles");
    let mut record = format.record();
    let mut durations = Vec::new();
    for line in include_str!("../data/logs/www.access.log").lines() {
        let access = format.read(line.as_bytes(), &mut record).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!((access.status, access.pool, access.memory_bytes), (Some(200), Some(&b"www"[..]), Some(2 << 20)));
        durations.push(access.duration_us.expect("it has one"));
    }
    assert_eq!(durations, [387, 101, 94, 93, 141]);
}
