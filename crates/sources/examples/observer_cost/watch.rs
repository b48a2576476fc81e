//! The observer in a process of its own, which separates its CPU time: it begins, watches until its input ends, and reports its cost.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

use chokepoint_model::observation::Request;
use chokepoint_sources::{Costs, ObserveOptions, Observer, Root, assemble, netns};
use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::stack::Stack;

/// First word of the command line of the process that watches.
pub(crate) const ROLE: &str = "watch";

/// The cost of watching.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WatchCost {
    /// How long it sampled.
    wall_us: u64,
    /// CPU time of the whole process while it sampled.
    user_us: u64,
    system_us: u64,
    /// CPU time of the beginning and of the end.
    begin_us: u64,
    end_us: u64,
    /// While it sampled, by source: how often, and CPU time.
    sources: BTreeMap<String, (u64, u64)>,
    /// The number of tiers that were found, and what the budget left out.
    tiers: usize,
    bounded: Vec<String>,
}

/// Runs in the process that watches: `watch ADDRESS:PORT CLIENT-NETNS`.
pub(crate) fn watch(mut words: impl Iterator<Item = String>) -> Result<(), Failure> {
    let target: SocketAddr = words.next().ok_or("no target")?.parse()?;
    let client = netns::resolve(&Root::default(), &words.next().ok_or("no namespace")?)?;
    let request =
        Request { addresses: vec![target.ip()], port: target.port(), client_netns: client.id, loaded: true, ..Request::default() };
    let before = cpu_us();
    let observer = Observer::start(ObserveOptions::new(request.clone()))?;
    observer.note("request", serde_json::to_vec(&request)?);
    let (begun, from) = (Instant::now(), cpu_us());
    println!("begun");
    std::io::stdin().read_to_end(&mut Vec::new())?;
    let (wall, to) = (begun.elapsed(), cpu_us());
    let (entries, costs) = observer.finish_with_costs();
    let ended = cpu_us();
    let all = |(user, system): (u64, u64)| user + system;
    let observation = assemble(&entries);
    let cost = WatchCost {
        wall_us: u64::try_from(wall.as_micros())?,
        user_us: to.0 - from.0,
        system_us: to.1 - from.1,
        begin_us: all(from) - all(before),
        end_us: all(ended) - all(to),
        sources: by_source(&costs),
        tiers: chokepoint_model::path::discover(&observation).tiers.len(),
        bounded: observation.bounded.clone(),
    };
    println!("{}", serde_json::to_string(&cost)?);
    Ok(())
}

fn by_source(costs: &Costs) -> BTreeMap<String, (u64, u64)> {
    costs.sampling.iter().map(|(name, cost)| ((*name).to_owned(), (cost.times, cost.cpu_us))).collect()
}

/// CPU time of this process, user and system, microseconds (getrusage(2)).
fn cpu_us() -> (u64, u64) {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: getrusage writes one rusage to where it is cost to, and all zeros are a valid one.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let us = |time: libc::timeval| u64::try_from(time.tv_sec * 1_000_000 + time.tv_usec).unwrap_or(0);
    (us(usage.ru_utime), us(usage.ru_stime))
}

/// The process that watches, seen from the one that loads.
pub(crate) struct Watcher {
    child: Child,
    cost: BufReader<ChildStdout>,
}

impl Watcher {
    /// Starts it; when this returns it samples.
    pub(crate) fn start(stack: &Stack) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([ROLE, &stack.target().to_string(), &stack.client_netns()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut cost = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut line = String::new();
        cost.read_line(&mut line)?;
        if line.trim() != "begun" {
            return Err(format!("the observer did not begin: {line}").into());
        }
        Ok(Self { child, cost })
    }

    /// Ends it and gives what it cost.
    pub(crate) fn finish(mut self) -> Result<WatchCost, Failure> {
        drop(self.child.stdin.take());
        let mut line = String::new();
        self.cost.read_line(&mut line)?;
        self.child.wait()?;
        Ok(serde_json::from_str(&line)?)
    }
}

impl WatchCost {
    pub(crate) fn share(&self) -> f64 {
        (self.user_us + self.system_us) as f64 / self.wall_us as f64
    }

    pub(crate) fn print(&self) {
        let percent = |cpu_us: u64| 100.0 * cpu_us as f64 / self.wall_us as f64;
        let mut out = std::io::stdout().lock();
        let mut line = |text: String| {
            // Nobody reads any more: nothing is left to do.
            let _ = writeln!(out, "{text}");
        };
        line("| what | a second | us each | % of a core |\n|---|---|---|---|".to_owned());
        let mut sources: Vec<(&String, &(u64, u64))> = self.sources.iter().collect();
        sources.sort_by_key(|(_, (_, cpu_us))| std::cmp::Reverse(*cpu_us));
        for (name, (times, cpu_us)) in sources {
            let rate = *times as f64 * 1e6 / self.wall_us as f64;
            line(format!("| {name} | {rate:.1} | {:.0} | {:.3} |", *cpu_us as f64 / (*times).max(1) as f64, percent(*cpu_us)));
        }
        let named: u64 = self.sources.values().map(|(_, cpu_us)| cpu_us).sum();
        let all = self.user_us + self.system_us;
        line(format!("| threads that wake up and talk | | | {:.3} |", percent(all.saturating_sub(named))));
        line(format!(
            "| all: {:.3} % user, {:.3} % system | | | **{:.3}** |\n",
            percent(self.user_us),
            percent(self.system_us),
            100.0 * self.share()
        ));
        let ms = |us: u64| us as f64 / 1e3;
        line(format!("beside, once: {:.0} ms to begin, {:.0} ms to end; {} tiers found", ms(self.begin_us), ms(self.end_us), self.tiers));
        self.bounded.iter().for_each(|sentence| line(format!("cost as bounded: {sentence}")));
    }
}
