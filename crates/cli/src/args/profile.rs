//! The arguments of `chokepoint profile`.

use std::path::PathBuf;

use clap::Args;

use super::{Keep, Look};

pub(super) const EXIT: &str = "\
Exit status: 0 it was sampled, 1 it could not be, 2 usage.
All flags and examples: --help";

pub(super) const HELP: &str = "\
Examples:
  chokepoint profile                             all processes, 10 s
  chokepoint profile -z 5 --pid 4711             a process and its children, 5 s
  chokepoint profile --html flames.html          also write a flame graph, as one page
  chokepoint profile --json > before.json        store a profile; then, after a change, compare:
  chokepoint profile --diff before.json --html difference.html
  chokepoint profile --off-cpu --pid 4711        what the threads of a process wait for
  chokepoint profile --pid 4711 --count libc:malloc --requests 5000
                                                 calls per request, and what the probe costs
  chokepoint profile --drops                     packets that the kernel drops, and why

To sample all processes, chokepoint needs CAP_PERFMON or root. Your own processes need less; see docs/privileges.md.

Exit status: 0 it was sampled, 1 it could not be, 2 usage.";

#[derive(Debug, Args)]
pub(crate) struct Profile {
    /// Only this process and its children; repeatable
    ///
    /// Sample only this process and the processes that it started. May be given several times. [default: all processes]
    #[arg(short = 'p', long, value_name = "PID", conflicts_with = "cgroup", help_heading = "Target")]
    pub(crate) pid: Vec<u32>,
    /// Only the processes in this cgroup and below it
    ///
    /// Sample only the processes in this cgroup and below it, for example system.slice/nginx.service.
    #[arg(long, value_name = "PATH", help_heading = "Target")]
    pub(crate) cgroup: Option<String>,
    /// Only these cores, "0" or "0,2-3"
    ///
    /// Sample only these cores: numbers and ranges, as in "0" or "0,2-3". [default: all cores]
    #[arg(long, value_name = "LIST", help_heading = "Target")]
    pub(crate) cpus: Option<String>,
    /// Show a stored profile; do not sample
    ///
    /// Show a stored profile (written by --json or --record) or a file of folded stacks, instead of sampling.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pid", "cgroup", "cpus", "frequency", "duration"], help_heading = "Target")]
    pub(crate) replay: Option<PathBuf>,
    /// Sample for this long
    ///
    /// Sample for this long: 10s, 500ms or 2m; a bare number is seconds. Ctrl-C ends it earlier and shows the samples so far.
    #[arg(short = 'z', long, visible_alias = "seconds", value_name = "TIME", default_value = "10s", help_heading = "Sampling")]
    pub(crate) duration: String,
    /// Samples per second on each core
    ///
    /// Take this many samples per second on each core. More samples show rarer functions and cost more CPU time.
    #[arg(short = 'F', long, value_name = "HZ", default_value_t = 99, value_parser = clap::value_parser!(u32).range(1..=i64::from(chokepoint_profile::FREQUENCY_HZ_MAX)), help_heading = "Sampling")]
    pub(crate) frequency: u32,
    /// Show what threads wait for, not what they run
    ///
    /// Show what threads wait for instead of what they run: the stacks at which threads stop running, weighted by how long they stay off the CPU.
    #[arg(long, conflicts_with_all = ["cpus", "frequency", "diff", "count", "counters", "drops"], help_heading = "Sampling")]
    pub(crate) off_cpu: bool,
    /// Count calls or events instead of sampling
    ///
    /// Count calls or events instead of sampling, for the time of --count-for. WHAT is CATEGORY:TRACEPOINT, LIBRARY:FUNCTION, a kernel FUNCTION, or a
    /// counter such as cycles or page-faults. May be given several times. Without WHAT: malloc, tcp_recvmsg, sendfile, connect, accept.
    #[arg(long, value_name = "WHAT", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["replay", "diff", "cpus", "record", "html", "svg", "folded", "pprof", "firefox", "duration"], help_heading = "Counting")]
    pub(crate) count: Vec<String>,
    /// Count cycles, cache misses and page faults
    ///
    /// Count what the CPU and the kernel count without a probe: cycles, instructions, TLB and cache misses, page faults.
    #[arg(long, conflicts_with_all = ["replay", "diff", "cpus", "record", "html", "svg", "folded", "pprof", "firefox", "duration"], help_heading = "Counting")]
    pub(crate) counters: bool,
    /// Count dropped packets, by reason and place
    ///
    /// Count the packets that the kernel drops, instead of sampling: by the kernel's reason, the function that dropped them, and the program that was
    /// running.
    #[arg(long, conflicts_with_all = ["replay", "diff", "pid", "cgroup", "cpus", "record", "html", "svg", "folded", "pprof", "firefox", "count", "counters"], help_heading = "Counting")]
    pub(crate) drops: bool,
    /// Count for this long
    ///
    /// Count for this long. Keep it short: a probe slows down the calls that it counts.
    #[arg(long, value_name = "TIME", default_value = "3s", help_heading = "Counting")]
    pub(crate) count_for: String,
    /// Requests per second, or a stub_status URL
    ///
    /// Also print calls per request. Give the number of requests per second during the count, or the URL of nginx's stub_status page, which is read
    /// before and after.
    #[arg(long, value_name = "RATE|URL", help_heading = "Counting")]
    pub(crate) requests: Option<String>,
    /// Compare with an earlier profile
    ///
    /// Compare with an earlier profile (written by --json or --record) or a file of folded stacks.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) diff: Option<PathBuf>,
    /// Hide branches of the call tree below this share, in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, hide_short_help = true, help_heading = "Output")]
    pub(crate) tree: f64,
    /// Print the profile as JSON
    ///
    /// Print the whole profile and its summary as JSON (docs/schema/profile-1.json), instead of text.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Write the profile as JSON
    ///
    /// Write the profile into this file, as --json prints it. --replay and --diff read it.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) record: Option<PathBuf>,
    /// Write a flame graph as an HTML page
    ///
    /// Write a flame graph into this file, as one HTML page with search, zoom and filters. With --diff it shows the difference.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) html: Option<PathBuf>,
    /// Write a flame graph as an SVG picture
    ///
    /// Write a flame graph into this file, as an SVG picture.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) svg: Option<PathBuf>,
    /// Write folded stacks
    ///
    /// Write folded stacks into this file: "program;function;...;function COUNT", for FlameGraph, speedscope and other tools.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) folded: Option<PathBuf>,
    /// Write the profile for go tool pprof
    ///
    /// Write the profile into this file, for `go tool pprof`.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) pprof: Option<PathBuf>,
    /// Write the profile for the Firefox Profiler
    ///
    /// Write the profile into this file, for the Firefox Profiler (profiler.firefox.com).
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) firefox: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) keep: Keep,
    #[command(flatten)]
    pub(crate) look: Look,
}
