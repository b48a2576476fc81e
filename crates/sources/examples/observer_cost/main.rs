//! What watching costs: the observer's CPU time by source, and what it takes from a server's goodput, over a lab with thousands of connections.
//!
//! `observer_cost [--stack static|php] [--connections 5000] [--active 100] [--rate 1000] [--seconds 20] [--pairs 10] [--pair-seconds 8]`, as
//! root. docs/measuring.md tells what is counted.

mod pairs;
mod stack;
mod watch;

use std::time::Duration;

type Failure = Box<dyn std::error::Error>;

const USAGE: &str =
    "usage: observer_cost [--stack static|php] [--connections N] [--active N] [--rate N] [--seconds N] [--pairs N] [--pair-seconds N]";

/// What is measured.
struct Wanted {
    stack: String,
    /// Connections that are held, those under load among them.
    connections: u32,
    /// Connections under load.
    active: u32,
    /// Requests a second while the observer's CPU time is measured.
    rate_per_s: u32,
    seconds: u32,
    pairs: u32,
    pair_seconds: u32,
}

impl Wanted {
    fn of(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut wanted =
            Self { stack: "static".to_owned(), connections: 5000, active: 100, rate_per_s: 1000, seconds: 20, pairs: 10, pair_seconds: 8 };
        while let Some(word) = words.next() {
            let value = words.next().ok_or(USAGE)?;
            let number = || value.parse::<u32>().map_err(|_| format!("{word} {value}: no number\n{USAGE}"));
            match word.as_str() {
                "--stack" => wanted.stack = value,
                "--connections" => wanted.connections = number()?,
                "--active" => wanted.active = number()?.max(1),
                "--rate" => wanted.rate_per_s = number()?.max(1),
                "--seconds" => wanted.seconds = number()?.max(1),
                "--pairs" => wanted.pairs = number()?,
                "--pair-seconds" => wanted.pair_seconds = number()?.max(2),
                _ => return Err(USAGE.into()),
            }
        }
        Ok(wanted)
    }
}

fn main() -> Result<(), Failure> {
    let mut words = std::env::args().skip(1).peekable();
    if words.next_if(|word| word == watch::ROLE).is_some() {
        return watch::watch(words);
    }
    let wanted = Wanted::of(words)?;
    let stack = stack::Stack::up(&wanted)?;
    println!(
        "{}: {} connections, {} of them under load; kernel {}",
        wanted.stack,
        wanted.connections,
        wanted.active,
        std::fs::read_to_string("/proc/sys/kernel/osrelease")?.trim()
    );
    let watcher = watch::Watcher::start(&stack)?;
    stack.offer(stack.at_rate(wanted.active, wanted.rate_per_s, wanted.seconds))?;
    watcher.finish()?.print();
    if wanted.pairs > 0 {
        pairs::run(&stack, wanted.active, wanted.pairs, Duration::from_secs(wanted.pair_seconds.into()))?;
    }
    stack.down()
}
