//! `chokepoint profile --count`: counts events by program and by request, without sampling.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use chokepoint_profile::{Counting, DEFAULT, Scope, What, counters, counts_text};

use crate::Usage;
use crate::args;
use crate::run::settings;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output;
use crate::terminal::progress::Progress;

/// Timeout of the status page.
const PAGE_TIME: Duration = Duration::from_secs(2);
/// The largest status page with its head, bytes.
const PAGE_BYTES_MAX: u64 = 64 << 10;
/// The longest count: probes slow down the programs.
const COUNT_MAX: Duration = Duration::from_secs(60);

/// Counts for a few seconds and prints the counts.
pub(super) fn run(args: &args::Profile, scope: &Scope, interrupt: &Interrupt) -> Result<()> {
    let duration =
        settings::duration(&args.count_for).map_err(|error| Usage(format!("--count-for {}: {}", args.count_for, output::once(&error))))?;
    if duration > COUNT_MAX {
        bail!(Usage(format!(
            "--count-for {}: must be above 0 and at most {} s, because a probe slows down what it counts",
            args.count_for,
            COUNT_MAX.as_secs()
        )));
    }
    let wanted = wanted(args)?;
    let requests = args.requests.as_deref().map(Requests::parse).transpose()?;
    let counting = Counting::open(scope, &wanted)?;
    let mut progress = Progress::new("counting", Some(duration));
    let before = requests.as_ref().map(Requests::read).transpose()?;
    let go_on = |elapsed: Duration| {
        progress.tick("");
        elapsed < duration && !interrupt.is_set()
    };
    let mut failed = None;
    let rate = |_: Duration| {
        let rate = requests.as_ref().zip(before.as_ref()).map(|(requests, before)| requests.rate(before));
        rate.and_then(|rate| rate.map_err(|error| failed = Some(error)).ok())
    };
    let counts = counting.run(go_on, rate);
    progress.finish();
    let counts = counts?;
    if args.json {
        output::print_json(&(serde_json::to_string(&counts)? + "\n"))?;
    } else {
        output::print(&counts_text::render(&counts))?;
    }
    if let Some(error) = failed {
        output::note(&format!("note: calls per request are not known: {}", output::once(&error)));
    }
    if counts.counts.is_empty() {
        bail!("nothing could be counted: run it as root, or see docs/privileges.md for the privilege that each kind needs");
    }
    Ok(())
}

/// The events of the command line, without duplicates.
fn wanted(args: &args::Profile) -> Result<Vec<What>> {
    let mut words: Vec<String> = Vec::new();
    for word in &args.count {
        if word.is_empty() { words.extend(DEFAULT.iter().map(ToString::to_string)) } else { words.push(word.clone()) }
    }
    if args.counters {
        words.extend(counters().map(str::to_owned));
    }
    let mut wanted: Vec<What> = Vec::new();
    for word in words {
        let what = word.parse::<What>().map_err(|error| Usage(error.to_string()))?;
        if !wanted.contains(&what) {
            wanted.push(what);
        }
    }
    Ok(wanted)
}

/// The source of the request rate.
enum Requests {
    Rate(f64),
    /// Host, port and path of a page of `stub_status`.
    Page(String, u16, String),
}

/// A reading of the source.
enum Before {
    Rate(f64),
    Seen(Instant, u64),
}

impl Requests {
    fn parse(text: &str) -> Result<Self> {
        if let Ok(rate) = text.parse::<f64>() {
            let sound = rate.is_finite() && rate > 0.0;
            return if sound {
                Ok(Self::Rate(rate))
            } else {
                bail!(Usage(format!("--requests {text} is not a rate: write requests per second, for example 5000")))
            };
        }
        let target = settings::Target::parse(text)?;
        if target.scheme != "http" || target.addresses.is_empty() {
            bail!(Usage(format!(
                "--requests {text} is neither a rate nor an http URL of a stub_status page: write 5000, or http://127.0.0.1/nginx_status"
            )));
        }
        Ok(Self::Page(target.host, target.port, target.path_and_query))
    }

    fn read(&self) -> Result<Before> {
        match self {
            Self::Rate(rate) => Ok(Before::Rate(*rate)),
            Self::Page(host, port, path) => {
                let page = page(host, *port, path).with_context(|| format!("http://{host}:{port}{path} cannot be read"))?;
                let handled = handled(&page).with_context(|| format!("http://{host}:{port}{path} is not a stub_status page"))?;
                Ok(Before::Seen(Instant::now(), handled))
            }
        }
    }

    /// Requests per second since `before`, without the request for the page.
    fn rate(&self, before: &Before) -> Result<f64> {
        match (before, self.read()?) {
            (Before::Seen(begin, first), Before::Seen(end, last)) => {
                let requests = last.saturating_sub(*first).saturating_sub(1);
                Ok(requests as f64 / end.duration_since(*begin).as_secs_f64().max(1e-3))
            }
            (_, Before::Rate(rate)) => Ok(rate),
            (Before::Rate(rate), _) => Ok(*rate),
        }
    }
}

fn page(host: &str, port: u16, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect((host.trim_matches(['[', ']']), port))?;
    stream.set_read_timeout(Some(PAGE_TIME))?;
    stream.set_write_timeout(Some(PAGE_TIME))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut bytes = Vec::new();
    stream.take(PAGE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The number of handled requests: the third number below "server accepts handled requests".
fn handled(page: &str) -> Option<u64> {
    let counts = page.lines().skip_while(|line| !line.trim().starts_with("server accepts handled requests")).nth(1)?;
    counts.split_ascii_whitespace().nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requests_are_read_from_the_page() {
        let page =
            "HTTP/1.1 200 OK\r\n\r\nActive connections: 1 \nserver accepts handled requests\n 7 7 42 \nReading: 0 Writing: 1 Waiting: 0 \n";
        assert_eq!(handled(page), Some(42));
        for length in 0..page.len() {
            let _ = handled(&page[..length]);
        }
        assert_eq!((handled(""), handled("server accepts handled requests\n1 2 x\n")), (None, None));
    }

    #[test]
    fn a_rate_is_a_number_or_the_url_of_a_page() {
        assert!(matches!(Requests::parse("5000"), Ok(Requests::Rate(rate)) if (rate - 5000.0).abs() < 1e-9));
        assert!(matches!(Requests::parse("http://127.0.0.1:81/s"), Ok(Requests::Page(_, 81, path)) if path == "/s"));
        for wrong in ["0", "-1", "nan", "https://127.0.0.1/"] {
            assert!(Requests::parse(wrong).is_err(), "{wrong}");
        }
        let rate = Requests::Rate(7.0);
        assert!((rate.rate(&rate.read().unwrap()).unwrap() - 7.0).abs() < 1e-9);
    }
}
