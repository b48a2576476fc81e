//! Packets of a diagnosis (`--capture`): captured in the namespace of the server or read from a file, and summed up for the recording.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use chokepoint_confined::{Bounds, Reader, Readers};
use chokepoint_foreign::open_named;
use chokepoint_model::observation::Request;
use chokepoint_model::observation::{WireCount, WireEdge, WireSign, WireView};
use chokepoint_packets::filter::Filter;
use chokepoint_packets::summary::{ConnectionEnd, Direction, Manner, Moment};
use chokepoint_packets::{Analyzer, Capture, CaptureError, Edge, Limits, Packet, StreamSummary};
use chokepoint_recording::Outcome;
use chokepoint_sources::{NetnsRef, PacketRing, Root, listening_namespaces, netns};

use crate::run::background_task::BackgroundTask;

/// Packets between two looks at the clock.
pub(crate) const PACKETS_AT_ONCE: u64 = 16_384;
/// Time that any compressed capture may take, and for each of its bytes: on one core, captures are unpacked and analyzed at 10 to 100 bytes a microsecond.
const UNPACKING_FREE: Duration = Duration::from_secs(10);
const UNPACKING_PER_BYTE: Duration = Duration::from_micros(10);
/// The bounds of the child that reads a capture, which may be as long as the user likes: it holds a few megabytes, and some hundred for streams.
const READER_BOUNDS: Bounds = Bounds { memory_bytes: 2 << 30, cpu: Duration::from_secs(3600), patience: Duration::from_secs(4 * 3600) };
/// Streams that may be open at once: about 2.7 KB each.
const STREAMS_MAX: usize = 20_000;
/// Edges for which the streams with signs are kept.
const EDGES_MAX: usize = 512;
/// The most edges in the recording, busiest first.
const EDGES_KEPT_MAX: usize = 32;
/// Streams that are listed for each sign.
const EXAMPLES_MAX: usize = 5;
/// Bytes kept of each packet: enough for the heads of requests and answers.
const SNAP_BYTES: u32 = 1024;
/// Time between two checks whether the capture is over.
const POLL: Duration = Duration::from_millis(100);
/// The name for all interfaces of a namespace (packet(7)).
const INTERFACE: &str = "any";

/// Where packets come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// The interfaces of the server's namespace, during the observation.
    Live,
    /// A capture file.
    File(PathBuf),
}

/// Starts to capture. If that fails, the outcome is the reason.
pub(crate) fn start(source: &Source, request: &Request) -> BackgroundTask {
    const WHAT: &str = "capture";
    match source {
        Source::File(file) => {
            let file = file.clone();
            BackgroundTask::start(WHAT, move |_| outcome(of_file(&file)))
        }
        // Opened before this returns, so that all later packets are captured.
        Source::Live => match open(request) {
            Ok((ring, from)) => BackgroundTask::start(WHAT, move |stop| outcome(live(ring, from, stop))),
            Err((why, needs)) => BackgroundTask::start(WHAT, move |_| Outcome::Absent(why, needs.map(str::to_owned))),
        },
    }
}

fn outcome(view: Result<WireView, String>) -> Outcome {
    match view.and_then(|view| serde_json::to_vec(&view).map_err(|error| error.to_string())) {
        Ok(json) => Outcome::Ok(json),
        Err(why) => Outcome::Failed(why, None),
    }
}

/// The namespace of the server: the named one, else one with a listener for the target, preferably the client's own.
fn server_netns(root: &Root, request: &Request) -> Option<NetnsRef> {
    let namespaces = netns::list(root).ok()?;
    if let Some(id) = request.server_netns {
        return namespaces.get(id).cloned();
    }
    let targets: Vec<(IpAddr, u16)> = request.addresses.iter().map(|address| (*address, request.port)).collect();
    let found = listening_namespaces(root, &targets);
    let own = found.iter().find(|netns| netns.id == request.client_netns);
    own.or(found.first()).cloned()
}

fn open(request: &Request) -> Result<(PacketRing, String), (String, Option<&'static str>)> {
    let root = Root::default();
    let netns = server_netns(&root, request).ok_or_else(|| ("nothing on this host listens at the target".to_owned(), None))?;
    let name = netns.name.clone().unwrap_or_else(|| format!("net:[{}]", netns.id.0));
    let ring = PacketRing::open(&root, Some(netns), INTERFACE, &Filter::default().program(SNAP_BYTES));
    ring.map(|ring| (ring, format!("all interfaces of {name}"))).map_err(|error| (error.to_string(), Some("CAP_NET_RAW")))
}

fn live(mut ring: PacketRing, from: String, stop: &AtomicBool) -> Result<WireView, String> {
    let (mut analyzer, mut signs) = (Analyzer::new(Limits { streams: STREAMS_MAX, ..Limits::default() }), Signs::default());
    let mut left = PacketRing::BLOCKS;
    while left > 0 {
        ring.wait(POLL).map_err(|error| error.to_string())?;
        let more = ring.block(&mut |live| {
            let packet = Packet { at_ns: live.at_ns, link: live.link, wire_bytes: live.wire_bytes, bytes: live.bytes };
            analyzer.packet(&packet, &mut |stream| signs.add(stream));
        });
        if stop.load(Ordering::Relaxed) {
            left = if more { left - 1 } else { 0 };
        }
    }
    let dropped = ring.counts().map_err(|error| error.to_string())?.1;
    Ok(view(analyzer, signs, from, dropped))
}

/// The time that a compressed capture may take, whatever its bytes unpack to.
pub(crate) struct UnpackingTime {
    begun: Instant,
    /// Packets from a pipe or a terminal take the time that they take to come.
    is_bounded: bool,
}

impl UnpackingTime {
    /// From now on. `file`: the capture, if it is a file.
    pub(crate) fn of(file: Option<&File>) -> Self {
        Self { begun: Instant::now(), is_bounded: file.is_some_and(is_regular) }
    }

    /// An error once it is over.
    pub(crate) fn check(&self, capture: &Capture<'_>) -> Result<(), String> {
        let Some(packed) = capture.packed().filter(|_| self.is_bounded) else { return Ok(()) };
        if self.begun.elapsed() <= UNPACKING_FREE + UNPACKING_PER_BYTE * u32::try_from(packed).unwrap_or(u32::MAX) {
            return Ok(());
        }
        let (seconds, at) = (self.begun.elapsed().as_secs(), capture.position() >> 20);
        Err(format!(
            "it takes too long for its size: {at} MiB were unpacked from {packed} bytes in {seconds} s; if you trust it, unpack it first"
        ))
    }
}

fn is_regular(file: &File) -> bool {
    file.metadata().is_ok_and(|meta| meta.is_file())
}

fn of_file(file: &Path) -> Result<WireView, String> {
    let in_words = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let opened = open_named(file).map_err(|error| in_words(&error))?;
    let read = Readers::within(READER_BOUNDS).read::<CaptureReader>(is_regular(&opened), vec![opened]);
    let mut view = read.map_err(|error| in_words(&error))?;
    // Whoever made the capture may have made the answer.
    view.edges.truncate(EDGES_KEPT_MAX);
    view.edges.iter_mut().flat_map(|edge| edge.signs.values_mut()).for_each(|sign| sign.examples.truncate(EXAMPLES_MAX));
    Ok(WireView { from: file.display().to_string(), ..view })
}

/// Sums up a capture. The question: whether it is a regular file.
pub(crate) struct CaptureReader;

impl Reader for CaptureReader {
    const NAME: &'static str = "capture";
    type Question = bool;
    type Answer = WireView;

    fn read(is_regular: bool, files: Vec<File>) -> Result<WireView, String> {
        let file = files.into_iter().next().ok_or("there is no file")?;
        let time = UnpackingTime { begun: Instant::now(), is_bounded: is_regular };
        let in_words = |error: CaptureError| error.to_string();
        let mut capture = Capture::open(file).map_err(in_words)?;
        let (mut analyzer, mut signs) = (Analyzer::new(Limits { streams: STREAMS_MAX, ..Limits::default() }), Signs::default());
        while let Some(packet) = capture.packet().map_err(in_words)? {
            analyzer.packet(&packet, &mut |stream| signs.add(stream));
            if analyzer.totals().packets.is_multiple_of(PACKETS_AT_ONCE) {
                time.check(&capture)?;
            }
        }
        Ok(view(analyzer, signs, String::new(), 0))
    }
}

fn view(analyzer: Analyzer, mut signs: Signs, from: String, dropped: u64) -> WireView {
    let report = analyzer.finish(&mut |stream| signs.add(stream));
    let left_out = report.edges.len().saturating_sub(EDGES_KEPT_MAX) as u64;
    let edges = report.edges.iter().take(EDGES_KEPT_MAX).map(|edge| signs.edge(edge));
    WireView {
        from,
        packets: report.totals.packets,
        dropped,
        streams: report.totals.streams,
        edges: edges.collect(),
        edges_left_out: left_out,
    }
}

/// The occurrences of a sign on an edge.
#[derive(Debug, Default)]
struct SignCount {
    count: u64,
    time_ns: u64,
    streams: u64,
    /// The streams that show it most: weight and number.
    most: Vec<(u64, u64)>,
}

impl SignCount {
    fn add(&mut self, count: u64, time_ns: u64, stream: u64) {
        self.count += count;
        self.time_ns = self.time_ns.saturating_add(time_ns);
        self.streams += 1;
        let weight = time_ns.max(count);
        let at = self.most.partition_point(|(other, number)| (*other, std::cmp::Reverse(*number)) > (weight, std::cmp::Reverse(stream)));
        self.most.insert(at, (weight, stream));
        self.most.truncate(EXAMPLES_MAX);
    }
}

/// The signs of streams by edge.
#[derive(Debug, Default)]
struct Signs {
    edges: BTreeMap<(IpAddr, SocketAddr), BTreeMap<WireSign, SignCount>>,
}

impl Signs {
    fn add(&mut self, stream: &StreamSummary) {
        let key = (stream.client.ip(), stream.server);
        if self.edges.len() >= EDGES_MAX && !self.edges.contains_key(&key) {
            return;
        }
        let edge = self.edges.entry(key).or_default();
        let both = |of: fn(&Direction) -> u64| of(&stream.client_sent) + of(&stream.server_sent);
        let closed = |by: ConnectionEnd| u64::from(stream.close.is_some_and(|close| close.by == by && close.moment == Moment::AfterAnswer));
        let close = |is: fn(&chokepoint_packets::summary::Close) -> bool| u64::from(stream.close.as_ref().is_some_and(is));
        let signs = [
            (WireSign::Retransmission, both(|sent| sent.retransmissions), 0),
            (WireSign::Timeout, both(|sent| sent.timeout_retransmissions), 0),
            (WireSign::ZeroWindow, both(|sent| sent.zero_windows), both(|sent| sent.zero_window_ns)),
            (WireSign::DelayedAck, both(|sent| sent.delayed_ack_stalls), both(|sent| sent.delayed_ack_stall_ns)),
            (WireSign::ClientClosed, closed(ConnectionEnd::Client), 0),
            (WireSign::ServerClosed, closed(ConnectionEnd::Server), 0),
            (WireSign::Reset, close(|close| close.manner == Manner::Rst), 0),
            (WireSign::Race, close(|close| close.race), 0),
        ];
        for (sign, count, time_ns) in signs.into_iter().filter(|(_, count, _)| *count > 0) {
            edge.entry(sign).or_default().add(count, time_ns, stream.index);
        }
    }

    fn edge(&self, edge: &Edge) -> WireEdge {
        let key = edge.address.client.zip(edge.address.server);
        let signs = key.and_then(|key| self.edges.get(&key)).into_iter().flatten();
        let count = |counted: &SignCount| WireCount {
            count: counted.count,
            time_ns: counted.time_ns,
            streams: counted.streams,
            examples: counted.most.iter().map(|(_, stream)| *stream).collect(),
        };
        WireEdge {
            client: edge.address.client,
            server: edge.address.server,
            facts: edge.facts(),
            setup_share: edge.setup_share(),
            data_segments: edge.client_sent.data_packets + edge.server_sent.data_packets,
            signs: signs.map(|(sign, counted)| (*sign, count(counted))).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(name: &str) -> WireView {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packets/tests/data").join(name);
        match start(&Source::File(file), &Request::default()).finish() {
            Outcome::Ok(json) => serde_json::from_slice(&json).unwrap(),
            lack => panic!("{lack:?}"),
        }
    }

    #[test]
    fn losses_are_reported_with_the_streams_that_show_them() {
        let view = captured("loss-at-sender.pcap.gz");
        let edge = &view.edges[0];
        let sign = &edge.signs[&WireSign::Retransmission];
        assert!(sign.count > 0 && !sign.examples.is_empty() && edge.data_segments > sign.count, "{edge:?}");
        assert!(sign.examples.iter().all(|stream| *stream < view.streams));
    }

    #[test]
    fn a_clean_capture_shows_only_who_closed() {
        let view = captured("close.pcap.gz");
        let signs = &view.edges[0].signs;
        assert!(!signs.contains_key(&WireSign::Retransmission) && !signs.contains_key(&WireSign::Race), "{signs:?}");
        assert!(signs.contains_key(&WireSign::ClientClosed) || signs.contains_key(&WireSign::ServerClosed), "{signs:?}");
        assert!(view.packets > 0 && view.streams > 0 && view.dropped == 0);
    }

    #[test]
    fn a_missing_file_is_reported() {
        let outcome = start(&Source::File("/no/such/file".into()), &Request::default()).finish();
        assert!(matches!(outcome, Outcome::Failed(ref why, None) if why.contains("/no/such/file")), "{outcome:?}");
    }

    #[test]
    fn the_streams_that_show_a_sign_most_are_kept() {
        let mut sign = SignCount::default();
        (0..100).for_each(|stream| sign.add(stream % 50, 0, stream));
        let streams: Vec<u64> = sign.most.iter().map(|(_, stream)| *stream).collect();
        assert_eq!((streams, sign.streams), (vec![49, 99, 48, 98, 47], 100));
    }
}
