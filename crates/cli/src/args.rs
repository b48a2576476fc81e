//! The command line: it only parses; what the words mean is resolved in `settings`.

mod bench;
mod capacity;
mod connection;
mod deferred;
mod diagnose;
mod experiment;
mod explain;
mod lab;
mod load;
mod look;
mod profile;
mod program;
mod runs;
mod size;
mod spellings;
mod streams;
mod tcp;
mod undo;
mod watch;
mod whereabouts;

use clap::{Parser, Subcommand};

pub(crate) use bench::Bench;
pub(crate) use capacity::Capacity;
pub(crate) use connection::Connection;
use deferred::Deferred;
pub(crate) use diagnose::{Diagnose, RedactLevel};
pub(crate) use experiment::Experiment;
pub(crate) use explain::Explain;
pub(crate) use lab::{Lab, LabAttack, LabRun, LabVerb};
pub(crate) use load::Load;
pub(crate) use look::{ColorWhen, Look};
pub(crate) use profile::Profile;
pub(crate) use program::program;
pub(crate) use runs::{Compare, Export, Keep, List, Remove, Runs, RunsVerb, Show};
pub(crate) use size::Size;
pub(crate) use spellings::{hint, in_words};
pub(crate) use streams::Streams;
pub(crate) use tcp::Tcp;
pub(crate) use undo::Undo;
pub(crate) use watch::{ExportIncident, Incidents, IncidentsVerb, ListIncidents, ShowIncident, Watch};
pub(crate) use whereabouts::Where;

/// Find the choke point of a server's throughput, prove it, fix it reversibly, and prove the fix.
#[derive(Debug, Parser)]
#[command(name = "chokepoint", version, propagate_version = true, arg_required_else_help = true, max_term_width = 100, after_help = PROGRAM_HELP)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Find what limits a server; with --fix, remove the limit
    ///
    /// Find what limits a server's throughput. With --fix, remove the limit and prove by measurement that it is gone.
    #[command(after_help = diagnose::EXIT, after_long_help = diagnose::HELP, disable_help_flag = true, disable_version_flag = true)]
    Diagnose(Deferred<Diagnose>),
    /// Take back the changes that --fix made
    ///
    /// Take back the changes that `diagnose --fix` made and that are still applied.
    #[command(after_help = undo::EXIT, after_long_help = undo::HELP)]
    Undo(Deferred<Undo>),
    /// Explain a station or a finding
    ///
    /// Explain a station or a finding: what it limits, how it shows, how sure it is, and its remedies.
    #[command(after_help = explain::HELP, disable_help_flag = true, disable_version_flag = true)]
    Explain(Deferred<Explain>),
    /// Show live where requests are; send no load
    ///
    /// Show live, like top, how many requests are in flight and at which place each of them is. It watches existing traffic and sends no load.
    #[command(after_help = whereabouts::EXIT, after_long_help = whereabouts::HELP, disable_help_flag = true, disable_version_flag = true)]
    Where(Deferred<Where>),
    /// Record servers for months, and diagnose drops while they last
    ///
    /// Record where the requests of servers stand, without load and for as long as it runs. When a server begins to serve its clients worse, diagnose it while that
    /// lasts, and keep the evidence as an incident.
    #[command(after_help = watch::EXIT, after_long_help = watch::HELP, disable_help_flag = true, disable_version_flag = true)]
    Watch(Deferred<Watch>),
    /// List, show and export the incidents that watch kept
    #[command(after_help = watch::INCIDENTS_EXIT, after_long_help = watch::INCIDENTS_HELP)]
    Incidents(Deferred<Incidents>),
    /// Load a server and report rates, times and outcomes
    ///
    /// Load a server and report rates, response times and outcomes. Nothing is diagnosed.
    #[command(after_help = bench::EXIT, after_long_help = bench::HELP, disable_help_flag = true, disable_version_flag = true)]
    Bench(Deferred<Bench>),
    /// Measure how much a server gives, and how many workers it takes
    ///
    /// Measure how much a server gives: its capacity at an objective, a safe rate, the knee, and what limits first; and how many workers it takes, with the
    /// memory and the lines to configure.
    #[command(after_help = size::EXIT, after_long_help = size::HELP, disable_help_flag = true, disable_version_flag = true)]
    Size(Deferred<Size>),
    /// Show what today's traffic leaves in reserve; send no load
    ///
    /// Show what today's traffic leaves in reserve at each station of the request's path, which one fills first, and when if the traffic grows.
    #[command(after_help = capacity::EXIT, after_long_help = capacity::HELP, disable_help_flag = true, disable_version_flag = true)]
    Capacity(Deferred<Capacity>),
    /// Profile where CPU time goes, or what threads wait for
    ///
    /// Profile where CPU time goes: layers, call trees, flame graphs, and how much each layer could gain at most. It can also show what threads wait
    /// for (--off-cpu), count calls (--count) and count dropped packets (--drops).
    #[command(after_help = profile::EXIT, after_long_help = profile::HELP, disable_help_flag = true, disable_version_flag = true)]
    Profile(Deferred<Profile>),
    /// Show the kernel's state of TCP connections
    ///
    /// Show the kernel's state of TCP connections. With HOST:PORT, open one connection and print every field of its TCP_INFO with unit and meaning.
    /// With --live, sum up all connections of this host.
    #[command(after_help = tcp::EXIT, after_long_help = tcp::HELP, disable_help_flag = true, disable_version_flag = true)]
    Tcp(Deferred<Tcp>),
    /// Analyse TCP streams in packet captures, or capture them
    ///
    /// Analyse TCP streams in packet captures, or capture them (-i): connections and requests, whether connections are kept and why not, set-up times,
    /// retransmissions and closes.
    #[command(after_help = streams::EXIT, after_long_help = streams::HELP, disable_help_flag = true, disable_version_flag = true)]
    Streams(Deferred<Streams>),
    /// Compare configurations by interleaved trials
    ///
    /// Compare configurations: change one thing, let the variants take turns under the same load, and say how large the difference is and how sure.
    #[command(after_help = experiment::EXIT, after_long_help = experiment::HELP, disable_help_flag = true, disable_version_flag = true)]
    Experiment(Deferred<Experiment>),
    /// List and compare kept runs: what changed since it was fast
    ///
    /// List, show, compare, export and remove the runs that were kept. `runs compare last` says what changed since the server was fast.
    #[command(after_help = runs::EXIT, after_long_help = runs::HELP)]
    Runs(Deferred<Runs>),
    /// Build faulty servers in network namespaces, to try and learn
    ///
    /// Build real servers with a known fault in network namespaces of their own, to try chokepoint, to test it and to learn.
    #[command(after_help = lab::EXIT)]
    Lab(Deferred<Lab>),
}

const PROGRAM_HELP: &str = "\
Exit status:
  0    done
  1    it could not be done; undo: some changes were not taken back
  2    invalid command line
  99   a condition of --fail-if held
  130  stopped by SIGINT: Ctrl-C
  129, 131, 143  stopped by SIGHUP (a closed terminal), SIGQUIT, SIGTERM

On a signal the program takes back changes of --fix that are not proven yet, and exits. A second signal ends it at once, or, while changes \
are being taken back, the third. `chokepoint undo` takes back what is left.";

fn non_empty(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("must not be empty".to_owned()) } else { Ok(text.to_owned()) }
}
