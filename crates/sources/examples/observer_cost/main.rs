//! The cost of watching: the observer's CPU time by source, and the loss of a server's goodput, in a lab with thousands of connections.
//!
//! `observer_cost [--stack static|php] [--connections 5000] [--active 100] [--rate 1000] [--seconds 20] [--pairs 10] [--pair-seconds 8]`, as
//! root. docs/measuring.md describes what is counted.

mod pairs;
mod stack;
mod watch;

use std::time::Duration;

type Failure = Box<dyn std::error::Error>;

const USAGE: &str =
    "usage: observer_cost [--stack static|php] [--connections N] [--active N] [--rate N] [--seconds N] [--pairs N] [--pair-seconds N]";

/// The options of a measurement.
struct Options {
    stack: String,
    /// Open connections, including those under load.
    connections: u32,
    /// Connections under load.
    active: u32,
    /// Requests a second while the observer's CPU time is measured.
    rate_per_s: u32,
    seconds: u32,
    pairs: u32,
    pair_seconds: u32,
}

impl Options {
    fn of(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options =
            Self { stack: "static".to_owned(), connections: 5000, active: 100, rate_per_s: 1000, seconds: 20, pairs: 10, pair_seconds: 8 };
        while let Some(word) = words.next() {
            let value = words.next().ok_or(USAGE)?;
            let number = || value.parse::<u32>().map_err(|_| format!("{word} {value}: no number\n{USAGE}"));
            match word.as_str() {
                "--stack" => options.stack = value,
                "--connections" => options.connections = number()?,
                "--active" => options.active = number()?.max(1),
                "--rate" => options.rate_per_s = number()?.max(1),
                "--seconds" => options.seconds = number()?.max(1),
                "--pairs" => options.pairs = number()?,
                "--pair-seconds" => options.pair_seconds = number()?.max(2),
                _ => return Err(USAGE.into()),
            }
        }
        Ok(options)
    }
}

fn main() -> Result<(), Failure> {
    let mut words = std::env::args().skip(1).peekable();
    if words.next_if(|word| word == watch::ROLE).is_some() {
        return watch::watch(words);
    }
    let options = Options::of(words)?;
    let stack = stack::Stack::up(&options)?;
    println!(
        "{}: {} connections, {} of them under load; kernel {}",
        options.stack,
        options.connections,
        options.active,
        std::fs::read_to_string("/proc/sys/kernel/osrelease")?.trim()
    );
    let watcher = watch::Watcher::start(&stack)?;
    stack.offer(stack.at_rate(options.active, options.rate_per_s, options.seconds))?;
    watcher.finish()?.print();
    if options.pairs > 0 {
        pairs::run(&stack, options.active, options.pairs, Duration::from_secs(options.pair_seconds.into()))?;
    }
    stack.down()
}
