//! `chokepoint tcp --watch`: one transfer followed from its first byte to its last, at the sending end where that is on this host.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::tcp::Sender;
use chokepoint_sources::{Root, TcpInfo, TcpInfoPlace, TcpPeer, read_congestion_control, read_tcp_info};
use serde_json::{Value, json};

use super::live::sender;
use crate::args::Tcp;
use crate::report::plot;
use crate::run::files;
use crate::run::interrupt::Interrupt;
use crate::terminal::output;

/// Time between two looks at a socket.
const EVERY: Duration = Duration::from_millis(5);
/// Samples that are kept: of more, every second one goes, and half as many are taken from then on.
const SAMPLES_MAX: usize = 4_096;
/// `tcpi_snd_ssthresh` while there is none (TCP_INFINITE_SSTHRESH), and `tcpi_pacing_rate` without a limit.
const NO_THRESHOLD: u64 = 0x7fff_ffff;
const NO_RATE: u64 = u64::MAX;

const SSTHRESH: TcpInfoPlace = TcpInfoPlace::of("snd_ssthresh");
const PACING: TcpInfoPlace = TcpInfoPlace::of("pacing_rate");
const DELIVERY: TcpInfoPlace = TcpInfoPlace::of("delivery_rate");
const RECEIVED: TcpInfoPlace = TcpInfoPlace::of("bytes_received");
const BUSY: TcpInfoPlace = TcpInfoPlace::of("busy_time");

/// One moment of a transfer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    /// Since the request was sent, s.
    pub(crate) at_s: f64,
    pub(crate) sender: Sender,
    /// Segments.
    pub(crate) ssthresh: Option<u64>,
    /// Bytes a second.
    pub(crate) pacing: Option<u64>,
    pub(crate) delivery: Option<u64>,
    /// Bytes that this end has received.
    pub(crate) received: u64,
    /// us with data under way.
    pub(crate) busy_us: u64,
}

impl Sample {
    /// Bytes that the congestion window lets be under way.
    pub(crate) fn cwnd_bytes(&self) -> u64 {
        self.sender.cwnd.saturating_mul(self.sender.mss)
    }
}

/// Whose time a part of the transfer was, s.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Shares {
    /// Nothing to send.
    pub(crate) application: f64,
    /// Under way, within the congestion window.
    pub(crate) network: f64,
    pub(crate) rwnd: f64,
    pub(crate) sndbuf: f64,
}

impl Shares {
    /// The time between two samples. The kernel counts in its ticks, so that short times are rough.
    pub(crate) fn between(from: &Sample, to: &Sample) -> Self {
        let span = (to.at_s - from.at_s).max(0.0);
        let grown = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e6;
        let of = |field: fn(&Sender) -> Option<u64>| grown(field(&from.sender).unwrap_or(0), field(&to.sender).unwrap_or(0));
        let busy = grown(from.busy_us, to.busy_us).min(span);
        let rwnd = of(|sender| sender.rwnd_limited_us).min(busy);
        let sndbuf = of(|sender| sender.sndbuf_limited_us).min(busy - rwnd);
        Self { application: span - busy, network: busy - rwnd - sndbuf, rwnd, sndbuf }
    }

    /// The four in the order of [`SHARES`].
    pub(crate) fn all(&self) -> [f64; 4] {
        [self.application, self.network, self.rwnd, self.sndbuf]
    }

    /// The place of the largest; nothing of no time.
    pub(crate) fn largest(&self) -> Option<usize> {
        let all = self.all();
        (0..all.len()).filter(|place| all[*place] > 0.0).max_by(|a, b| all[*a].total_cmp(&all[*b]))
    }
}

/// Names of the four shares in the catalogue.
pub(crate) const SHARES: [&str; 4] = ["tcp-share-application", "tcp-share-network", "tcp-share-rwnd", "tcp-share-sndbuf"];

/// Samples of one end, thinned out as they grow.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) samples: Vec<Sample>,
    /// Of so many (less one) readings each one is kept.
    thinned: u32,
    seen: u64,
}

impl Trace {
    fn add(&mut self, at_s: f64, info: &TcpInfo, buffer: Option<(u32, u32)>) {
        let taken = self.seen.is_multiple_of(1 << self.thinned.min(63));
        self.seen += 1;
        if !taken {
            return;
        }
        let of = |place: TcpInfoPlace| place.read(info.bytes());
        self.samples.push(Sample {
            at_s,
            sender: sender(info.bytes(), buffer),
            ssthresh: of(SSTHRESH).filter(|segments| *segments < NO_THRESHOLD),
            pacing: of(PACING).filter(|rate| *rate != NO_RATE),
            delivery: of(DELIVERY),
            received: of(RECEIVED).unwrap_or(0),
            busy_us: of(BUSY).unwrap_or(0),
        });
        if self.samples.len() >= SAMPLES_MAX {
            let mut place = 0;
            self.samples.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.thinned += 1;
        }
    }
}

/// A transfer that was followed.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) local: SocketAddr,
    pub(crate) peer: SocketAddr,
    pub(crate) control: String,
    /// When the request was sent, seconds since 1970-01-01 UTC.
    pub(crate) began_s: f64,
    pub(crate) bytes: u64,
    pub(crate) seconds: f64,
    pub(crate) ended: bool,
    /// The namespace of the peer's end, where that one was followed.
    pub(crate) peers_end: Option<String>,
    pub(crate) trace: Trace,
}

impl Watched {
    /// Whose time it was, as a whole.
    pub(crate) fn shares(&self) -> Option<Shares> {
        let samples = &self.trace.samples;
        Some(Shares::between(samples.first()?, samples.get(1..)?.last()?))
    }

    /// What came between each sample and the next, bytes a second.
    pub(crate) fn receiving(&self) -> impl Iterator<Item = (f64, f64)> {
        let pairs = self.trace.samples.windows(2);
        let rate = |from: &Sample, to: &Sample| to.received.saturating_sub(from.received) as f64 / (to.at_s - from.at_s).max(1e-6);
        pairs.filter_map(move |pair| match pair {
            [from, to] => Some((to.at_s, rate(from, to))),
            _ => None,
        })
    }

    fn json(&self) -> Value {
        let shares = |shares: Shares| json!({ "application_s": shares.application, "cwnd_and_path_s": shares.network, "rwnd_s": shares.rwnd, "sndbuf_s": shares.sndbuf });
        let sample = |sample: &Sample| {
            json!({
                "at_s": sample.at_s,
                "cwnd_segments": sample.sender.cwnd,
                "mss": sample.sender.mss,
                "bytes_in_flight": sample.sender.bytes_in_flight(),
                "ssthresh_segments": sample.ssthresh,
                "srtt_us": sample.sender.rtt_us,
                "pacing_rate": sample.pacing,
                "delivery_rate": sample.delivery,
                "bytes_received": sample.received,
                "retransmits": sample.sender.total_retrans,
                "limited_by": sample.sender.limiter(),
            })
        };
        json!({
            "schema": "chokepoint/tcp-watch/1",
            "local": self.local,
            "peer": self.peer,
            "congestion_control": self.control,
            "began_s": self.began_s,
            "bytes": self.bytes,
            "seconds": self.seconds,
            "ended": self.ended,
            "seen_from": if self.peers_end.is_some() { "peer" } else { "here" },
            "netns": self.peers_end,
            "limited": self.shares().map(shares),
            "samples": self.trace.samples.iter().map(sample).collect::<Vec<_>>(),
        })
    }
}

/// Follows a connection: sends the request where there is one, reads until the peer closes, is silent for `silence`, or the user stops it.
pub(super) fn run(
    args: &Tcp,
    stream: TcpStream,
    request: Option<String>,
    silence: Duration,
    words: &Catalogue,
    interrupt: &Interrupt,
) -> Result<bool> {
    let page = files::Output::open_where(args.html.as_deref(), "page")?;
    let watched = follow(stream, request, silence, interrupt)?;
    let written = page.map_or(Ok(()), |file| {
        let plots = crate::report::text::tcp_watch_plots(&watched, words);
        let (title, lines) = crate::report::text::tcp_watch_lines(&watched, words);
        file.write(plot::page(&title, &lines, &plots).as_bytes())
    });
    if args.json {
        output::print_json(&format!("{:#}\n", watched.json()))?;
    } else {
        output::print_painted(&crate::report::text::tcp_watch_text(&watched, &output::style(), words))?;
    }
    written?;
    Ok(true)
}

fn follow(mut stream: TcpStream, request: Option<String>, silence: Duration, interrupt: &Interrupt) -> Result<Watched> {
    let (local, peer) = (stream.local_addr()?, stream.peer_addr()?);
    let control = read_congestion_control(&stream).unwrap_or_else(|_| "?".to_owned());
    // Where namespaces may not be listed or entered, the near end is all there is.
    let far = TcpPeer::find(&Root::default(), peer, local, EVERY).ok().flatten();
    let (mut near, mut fars) = (Trace::default(), Trace::default());
    let begin = Instant::now();
    let began_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let since = |at: Instant| at.saturating_duration_since(begin).as_secs_f64();
    stream.set_read_timeout(Some(EVERY))?;
    if let Some(request) = request {
        stream.write_all(request.as_bytes()).context("the request cannot be sent")?;
    }
    let (mut bytes, mut ended, mut last, mut due) = (0, false, begin, begin);
    let mut buffer = vec![0_u8; 256 << 10];
    loop {
        let now = Instant::now();
        if now >= due {
            near.add(since(now), &read_tcp_info(&stream).context("TCP_INFO cannot be read")?, None);
            due = now + EVERY;
            for reading in far.iter().flat_map(TcpPeer::readings) {
                fars.add(since(reading.at), &reading.info, reading.send_buffer);
            }
        }
        if ended || interrupt.is_set() || now.duration_since(last) >= silence {
            break;
        }
        match stream.read(&mut buffer) {
            // One look more, at the end.
            Ok(0) => (ended, due) = (true, now),
            Ok(read) => (bytes, last) = (bytes + read as u64, Instant::now()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error).context("the answer cannot be read"),
        }
    }
    let seconds = if ended { since(Instant::now()) } else { since(last) };
    // The end that sends tells most; a socket that was closed at once has nothing to tell.
    let peers_end =
        far.filter(|_| fars.samples.len() > 1).map(|far| far.netns.name.clone().unwrap_or_else(|| format!("net:[{}]", far.netns.id.0)));
    let trace = if peers_end.is_some() { fars } else { near };
    Ok(Watched { local, peer, control, began_s, bytes, seconds, ended, peers_end, trace })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_s: f64, busy_us: u64, rwnd: u64, sndbuf: u64) -> Sample {
        let sender = Sender { rwnd_limited_us: Some(rwnd), sndbuf_limited_us: Some(sndbuf), ..Sender::default() };
        Sample { at_s, sender, ssthresh: None, pacing: None, delivery: None, received: 0, busy_us }
    }

    #[test]
    fn the_time_between_two_samples_is_shared_out_whole() {
        let shares = Shares::between(&sample(1.0, 0, 0, 0), &sample(2.0, 600_000, 100_000, 200_000));
        for (share, is) in shares.all().into_iter().zip([0.4, 0.3, 0.1, 0.2]) {
            assert!((share - is).abs() < 1e-9, "{shares:?}");
        }
        assert_eq!(shares.largest(), Some(0));
        // Clocks that are ahead of each other by a tick share out no more than there is.
        let ahead = Shares::between(&sample(1.0, 0, 0, 0), &sample(1.5, 700_000, 700_000, 9_000));
        assert_eq!((ahead.all().iter().sum::<f64>(), ahead.largest()), (0.5, Some(2)));
        assert_eq!(Shares::between(&sample(1.0, 0, 0, 0), &sample(1.0, 0, 0, 0)).largest(), None);
    }

    #[test]
    fn a_long_transfer_is_thinned_out_evenly() {
        let mut trace = Trace::default();
        let info = TcpInfo::of(vec![0; 280]);
        for at in 0..100_000 {
            trace.add(f64::from(at), &info, None);
        }
        let samples = &trace.samples;
        assert!(samples.len() < SAMPLES_MAX && samples.len() >= SAMPLES_MAX / 2, "{}", samples.len());
        let step = samples[1].at_s - samples[0].at_s;
        assert!(samples.windows(2).all(|pair| pair[1].at_s - pair[0].at_s == step), "{step}");
        assert!(samples[0].at_s == 0.0 && samples.last().is_some_and(|last| last.at_s > 99_000.0));
    }

    mod live {
        use std::net::TcpListener;

        use super::*;

        #[test]
        fn a_transfer_is_followed_at_the_end_that_sends() {
            const BYTES: usize = 3 << 20;
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut head = [0; 3];
                stream.read_exact(&mut head).unwrap();
                for _ in 0..BYTES >> 16 {
                    stream.write_all(&[7; 1 << 16]).unwrap();
                    std::thread::sleep(Duration::from_millis(2));
                }
            });
            let watched = follow(stream, Some("GET".to_owned()), Duration::from_secs(20), &Interrupt::install().unwrap()).unwrap();
            server.join().unwrap();
            assert_eq!((watched.bytes, watched.ended), (BYTES as u64, true));
            assert!(watched.peers_end.is_some() && watched.trace.samples.len() > 2, "{:?}", watched.peers_end);
            let last = watched.trace.samples.last().unwrap();
            assert!(last.sender.bytes.is_none_or(|(sent, _, _)| sent > 0), "the server sends, not the client");
            assert!(watched.shares().is_some_and(|shares| shares.all().iter().sum::<f64>() > 0.0));
        }
    }
}
