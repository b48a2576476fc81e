//! The congestion window of a stream, from the output of `tcp --watch --json`.

use std::io::Read;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result, bail};
use chokepoint_foreign::open_named;
use chokepoint_packets::StreamSummary;
use serde::Deserialize;

/// The largest file, bytes: a watch keeps 4,096 samples of some hundred bytes each.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The fields of a watch that the plot needs (docs/schema/tcp-watch-1.json).
#[derive(Debug, Deserialize)]
struct Watch {
    schema: String,
    began_s: f64,
    local: SocketAddr,
    peer: SocketAddr,
    seen_from: String,
    samples: Vec<Moment>,
}

#[derive(Debug, Deserialize)]
struct Moment {
    at_s: f64,
    cwnd_segments: u64,
    mss: u64,
}

/// The congestion window of the sender of a connection over time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Windows {
    ends: [SocketAddr; 2],
    /// The watched end.
    sender: SocketAddr,
    began_s: f64,
    /// Seconds since 1970, and bytes.
    points: Vec<(f64, f64)>,
}

fn canonical(of: SocketAddr) -> SocketAddr {
    SocketAddr::new(of.ip().to_canonical(), of.port())
}

impl Windows {
    pub(super) fn read(file: &Path) -> Result<Self> {
        let mut text = String::new();
        let opened = open_named(file).with_context(|| file.display().to_string())?;
        opened.take(FILE_BYTES_MAX).read_to_string(&mut text).with_context(|| file.display().to_string())?;
        Self::parse(&text).with_context(|| format!("{} is not the output of tcp --watch --json", file.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        let watch: Watch = serde_json::from_str(text)?;
        if watch.schema != "chokepoint/tcp-watch/1" {
            bail!("its schema is {}", watch.schema);
        }
        let (local, peer) = (canonical(watch.local), canonical(watch.peer));
        let bytes = |moment: &Moment| (watch.began_s + moment.at_s, moment.cwnd_segments.saturating_mul(moment.mss) as f64);
        let points = watch.samples.iter().map(bytes).collect();
        Ok(Self { ends: [local, peer], sender: if watch.seen_from == "peer" { peer } else { local }, began_s: watch.began_s, points })
    }

    /// True for the watched connection: the same ends, and open when the watch began.
    pub(super) fn is_of(&self, stream: &StreamSummary) -> bool {
        let ends = [canonical(stream.client), canonical(stream.server)];
        let at = |ns: i64| ns as f64 / 1e9;
        (ends == self.ends || ends == [self.ends[1], self.ends[0]])
            && at(stream.begin_ns) <= self.began_s
            && at(stream.end_ns) >= self.began_s
    }

    /// The window in seconds since `begin_ns`; empty for the side that was not watched.
    pub(super) fn of_side(&self, side: SocketAddr, begin_ns: i64) -> Vec<(f64, f64)> {
        let from = begin_ns as f64 / 1e9;
        let points = self.points.iter().filter(|_| canonical(side) == self.sender);
        points.map(|(at, bytes)| (at - from, *bytes)).filter(|(at, _)| *at >= 0.0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(schema: &str) -> String {
        format!(
            r#"{{"schema":"{schema}","began_s":1000.5,"local":"10.0.0.1:5000","peer":"10.0.0.2:80","seen_from":"peer",
            "samples":[{{"at_s":0.0,"cwnd_segments":10,"mss":1448}},{{"at_s":0.5,"cwnd_segments":20,"mss":1448}}]}}"#
        )
    }

    #[test]
    fn the_window_is_drawn_for_the_watched_side() {
        let windows = Windows::parse(&text("chokepoint/tcp-watch/1")).unwrap();
        let (client, server) = ("10.0.0.1:5000".parse().unwrap(), "10.0.0.2:80".parse().unwrap());
        assert_eq!(windows.of_side(server, 1_000_000_000_000), [(0.5, 14_480.0), (1.0, 28_960.0)]);
        assert!(windows.of_side(client, 1_000_000_000_000).is_empty());
        assert_eq!(windows.of_side(server, 1_000_800_000_000).len(), 1, "what came before the capture is not in it");
    }

    #[test]
    fn a_file_of_another_kind_is_refused() {
        assert!(Windows::parse(&text("chokepoint/tcp/1")).is_err() && Windows::parse("{}").is_err());
    }
}
