//! Compares the load generator with others on this machine: requests per CPU-second of the generator, in paired and interleaved runs.
//!
//! The server has one core and the generator another. The server counts the requests. The cost is the generator's own CPU time as charged by the kernel
//! (getrusage(2)), including soft interrupts in its context.

mod bare_client;
mod bare_server;
mod servers;
mod statistics;
mod tools;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::servers::Server;
use crate::statistics::{Column, table};
use crate::tools::{Job, Ran, Sessions, Tool};

/// Measures load generators beside each other.
#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    part: Option<Part>,
    /// The chokepoint binary to measure
    #[arg(long, default_value = "target/release/chokepoint")]
    chokepoint: PathBuf,
    /// Another build of it, to be measured beside
    #[arg(long)]
    other: Option<PathBuf>,
    /// Rounds; in each every generator runs once against every server
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of each run
    #[arg(long, default_value_t = 2)]
    seconds: u32,
    /// Connections
    #[arg(long, default_value_t = 100)]
    connections: u32,
    /// Core of the generators
    #[arg(long, default_value_t = 0)]
    generator_cpu: usize,
    /// Core of the servers
    #[arg(long, default_value_t = 1)]
    server_cpu: usize,
    /// Each generator and the bare client run at the same time on the same core, each against a server of its own
    #[arg(long)]
    together: bool,
    /// Over TLS alone: chokepoint and wrk at the same time on the same core
    #[arg(long, requires = "together")]
    tls: bool,
    /// Only generators whose names begin so
    #[arg(long)]
    only: Vec<String>,
}

/// Processes that the harness starts.
#[derive(Debug, Subcommand)]
enum Part {
    /// A server that parses nothing
    BareServer,
    /// A client that parses nothing
    BareClient {
        address: std::net::SocketAddr,
        connections: u32,
        seconds: u32,
        #[arg(long)]
        close: bool,
    },
}

/// The columns of the table.
const COLUMNS: [(&str, bool, bool); 3] =
    [("keep-alive, nginx", true, true), ("keep-alive, bare server", false, true), ("connection per request", true, false)];
/// The columns of the table over TLS: their title, whether connections are kept, and what becomes of sessions. wrk resumes none.
const TLS_COLUMNS: [(&str, bool, Sessions); 3] = [
    ("TLS, keep-alive", true, Sessions::Full),
    ("TLS, connection per request, full handshakes", false, Sessions::Full),
    ("TLS, connection per request, resumed where it can", false, Sessions::Resumed),
];
/// Number of connections at which memory is measured.
const RSS_CONNECTIONS: u32 = 1_000;

fn main() -> Result<()> {
    let args = Args::parse();
    match args.part {
        Some(Part::BareServer) => bare_server::run(),
        Some(Part::BareClient { address, connections, seconds, close }) => {
            bare_client::run(address, connections, Duration::from_secs(seconds.into()), close)
        }
        None if args.tls => compare_tls(&args),
        None => compare(&args).and_then(|()| if args.together { compare_tls(&args) } else { Ok(()) }),
    }
}

fn compare(args: &Args) -> Result<()> {
    let mut tools = Tool::found(&args.chokepoint, args.other.as_deref());
    tools.retain(|tool| args.only.is_empty() || args.only.iter().any(|name| tool.name.starts_with(name.as_str())));
    if tools.is_empty() {
        bail!("no load generator was found");
    }
    if args.together && (tools.len() < 2 || !tools[0].is_bare()) {
        bail!("--together needs the bare client and another generator");
    }
    run_on(args.server_cpu)?;
    let servers = [[Server::bare()?, Server::bare()?], [Server::nginx()?, Server::nginx()?]];
    run_on(args.generator_cpu)?;
    let mut columns: Vec<Column> = COLUMNS.iter().map(|(title, ..)| Column::new(title, tools.len())).collect();
    for round in 0..args.rounds {
        for (column, (title, is_nginx, keep_alive)) in columns.iter_mut().zip(COLUMNS) {
            let [server, other] = &servers[usize::from(is_nginx)];
            let job = Job { server, connections: args.connections, seconds: args.seconds, keep_alive, tls: None };
            // Running the bare client beside itself shows nothing.
            for turn in usize::from(args.together)..tools.len() {
                // The order is reversed in the next round.
                let place = if args.together { turn } else { (turn + round) % tools.len() };
                let tool = &tools[place];
                let told = |per_cpu_s: f64, ratio: &str| {
                    eprintln!("round {}: {title}: {}: {:.1}k requests per CPU-second{ratio}", round + 1, tool.name, per_cpu_s / 1e3);
                };
                if args.together {
                    let (own, first) = together([tool, &tools[0]], [&job, &Job { server: other, ..job }], round)?;
                    told(own.per_cpu_s, &format!(", {:.3} of the bare client", own.per_cpu_s / first.per_cpu_s));
                    column.add_pair(place, own.per_cpu_s, first.per_cpu_s);
                } else {
                    let ran = measured(tool, &job)?;
                    told(ran.per_cpu_s, "");
                    column.add(place, ran.per_cpu_s);
                }
            }
        }
    }
    let mut memory = Column::new("RSS at 1,000, MB", tools.len());
    for _ in 0..args.rounds {
        for (place, tool) in tools.iter().enumerate() {
            let job = Job { server: &servers[1][0], connections: RSS_CONNECTIONS, seconds: 1, keep_alive: true, tls: None };
            memory.add(place, measured(tool, &job)?.rss_bytes as f64 / 1e6);
        }
    }
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    print!("{}", table(&names, &columns, Some(&memory)));
    Ok(())
}

/// Over TLS: each build of chokepoint at the same time as wrk, each against an nginx of its own. Prints nothing where wrk is not installed.
fn compare_tls(args: &Args) -> Result<()> {
    let found = Tool::found(&args.chokepoint, args.other.as_deref());
    let (mut tools, rest): (Vec<Tool>, Vec<Tool>) = found.into_iter().partition(Tool::is_tls_reference);
    tools.extend(rest.into_iter().filter(Tool::is_own));
    if !tools[0].is_tls_reference() {
        eprintln!("skipped: wrk is not installed, beside which TLS is measured");
        return Ok(());
    }
    run_on(args.server_cpu)?;
    let servers = [Server::nginx()?, Server::nginx()?];
    run_on(args.generator_cpu)?;
    let mut columns: Vec<Column> = TLS_COLUMNS.iter().map(|(title, ..)| Column::new(title, tools.len())).collect();
    for round in 0..args.rounds {
        for (column, (title, keep_alive, sessions)) in columns.iter_mut().zip(TLS_COLUMNS) {
            let job = Job { server: &servers[0], connections: args.connections, seconds: args.seconds, keep_alive, tls: Some(sessions) };
            for place in 1..tools.len() {
                let (own, first) = together([&tools[place], &tools[0]], [&job, &Job { server: &servers[1], ..job }], round)?;
                let ratio = own.per_cpu_s / first.per_cpu_s;
                eprintln!(
                    "round {}: {title}: {}: {:.1}k requests per CPU-second, {ratio:.3} of wrk",
                    round + 1,
                    tools[place].name,
                    own.per_cpu_s / 1e3
                );
                column.add_pair(place, own.per_cpu_s, first.per_cpu_s);
            }
        }
    }
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    print!("{}", table(&names, &columns, None));
    Ok(())
}

/// Runs one generator once.
fn measured(tool: &Tool, job: &Job<'_>) -> Result<Measured> {
    let before = job.server.requests()?;
    judged(tool, job, before, tool.start(job)?.wait()?)
}

/// Runs two generators at the same time, each against its own server, so that both are disturbed alike. They swap servers and starting order every round.
fn together(tools: [&Tool; 2], jobs: [&Job<'_>; 2], round: usize) -> Result<(Measured, Measured)> {
    let [job, first_job] = if round.is_multiple_of(2) { jobs } else { [jobs[1], jobs[0]] };
    let (before, first_before) = (job.server.requests()?, first_job.server.requests()?);
    let (ran, first_ran) = if (round / 2).is_multiple_of(2) {
        let own = tools[0].start(job)?;
        own.wait_both(tools[1].start(first_job)?)?
    } else {
        let first = tools[1].start(first_job)?;
        tools[0].start(job)?.wait_both(first)?
    };
    Ok((judged(tools[0], job, before, ran)?, judged(tools[1], first_job, first_before, first_ran)?))
}

/// The result of a finished run. `before`: requests that the server had counted earlier.
fn judged(tool: &Tool, job: &Job<'_>, before: u64, ran: Ran) -> Result<Measured> {
    // Reading the count is itself a request.
    let requests = job.server.requests()?.saturating_sub(before + 1);
    if requests == 0 || ran.cpu_s <= 0.0 {
        bail!("{} sent nothing", tool.name);
    }
    Ok(Measured { per_cpu_s: requests as f64 / ran.cpu_s, rss_bytes: ran.rss_bytes })
}

/// The result of one run.
struct Measured {
    per_cpu_s: f64,
    rss_bytes: u64,
}

/// Moves this process, and what it starts from now on, to one core.
fn run_on(cpu: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}
