//! Counting, drops and waiting on this machine, for a child with known behaviour. What this user or kernel does not allow is skipped with the reason.
//!
//! Live: events on this machine are counted for a while.

use std::io::{Read as _, Write as _};
use std::net::UdpSocket;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chokepoint_profile::drops::Dropping;
use chokepoint_profile::waits::{Wait, waits};
use chokepoint_profile::{Counting, Counts, DEFAULT, Scope, Waiting, What};

/// A child process that is killed at the end of the test.
struct Worker(Child);

impl Worker {
    /// Starts a shell and returns once it runs the script: before that its libraries may not be mapped.
    fn start(script: &str) -> Self {
        let script = format!("echo >&2; exec 2>/dev/null; {script}");
        let child = Command::new("sh").args(["-c", &script]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut worker = Self(child.expect("a shell can be started"));
        let mut begun = [0];
        worker.0.stderr.take().expect("it was asked for").read_exact(&mut begun).expect("the shell runs");
        worker
    }

    fn scope(&self) -> Scope {
        Scope::Processes(vec![self.0.id()])
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const SPAN: Duration = Duration::from_millis(800);

/// Counts for a while; none if this user may not, or if the first thing cannot be counted here.
fn count(scope: &Scope, wanted: &[&str]) -> Option<Counts> {
    let wanted: Vec<What> = wanted.iter().map(|word| word.parse().expect("a word that can be counted")).collect();
    let counting = match Counting::open(scope, &wanted) {
        Ok(counting) => counting,
        Err(error) => {
            eprintln!("skipped: {error}");
            return None;
        }
    };
    let counts = counting.run(|elapsed| elapsed < SPAN, |_| Some(100.0)).expect("counting runs");
    if counts.counts.is_empty() {
        eprintln!("skipped: {:?}", counts.not_counted);
        return None;
    }
    Some(counts)
}

#[test]
fn library_calls_are_counted_by_program_and_request() {
    // The shell's own loop starts no processes and calls the C library for each write.
    let worker = Worker::start("while :; do echo x; done");
    let Some(counts) = count(&worker.scope(), &["libc:write"]) else { return };
    let [count] = counts.counts.as_slice() else { panic!("{counts:?}") };
    let [program] = count.programs.as_slice() else { panic!("{counts:?}") };
    assert!(program.count > 100 && program.processes == 1, "{counts:?}");
    let per_request = program.per_request.expect("a rate is known");
    assert!((per_request - program.per_s / 100.0).abs() < 1e-6 * per_request, "{counts:?}");
    assert!(count.how.starts_with("uprobe libc"), "{counts:?}");
    assert!(count.cost_ns.is_none_or(|cost| cost > 0.0) && program.probe_share.is_none_or(|share| (0.0..=1.0).contains(&share)));
}

#[test]
fn tracepoints_follow_child_processes() {
    let worker = Worker::start("while :; do /bin/true; done");
    let Some(counts) = count(&worker.scope(), &["sched:sched_process_exec", "context-switches"]) else { return };
    for count in &counts.counts {
        assert!(count.programs.iter().any(|program| program.count > 2), "{counts:?}");
    }
}

#[test]
fn what_cannot_be_counted_is_reported_and_the_rest_is_counted() {
    let worker = Worker::start("while :; do :; done");
    let words = ["page-faults", "libc:no_such_function_at_all", "libnothing:x", "no_such_kernel_function", "cycles"];
    let Some(counts) = count(&worker.scope(), &words) else { return };
    assert!(counts.counts.iter().any(|count| count.what == "page-faults"));
    let why = |what: &str| counts.not_counted.iter().find(|(word, _)| word == what).map(|(_, why)| why.as_str());
    assert!(why("libc:no_such_function_at_all").is_some_and(|why| why.contains("no_such_function_at_all") || why.contains("uprobes")));
    assert!(why("libnothing:x").is_some_and(|why| why.contains("libnothing") || why.contains("uprobes")), "{counts:?}");
    assert!(why("no_such_kernel_function").is_some(), "{counts:?}");
    assert!(why("cycles").is_none_or(|why| why.contains("PMU") || why.contains("processor") || why.contains("refuses")), "{counts:?}");
}

#[test]
fn the_default_set_is_counted_or_the_reason_is_given() {
    let worker = Worker::start("while :; do :; done");
    let Some(counts) = count(&worker.scope(), DEFAULT) else { return };
    assert_eq!(counts.counts.len() + counts.not_counted.len(), DEFAULT.len(), "{counts:?}");
}

#[test]
fn packets_without_a_listener_are_dropped_with_the_reason() {
    let dropping = match Dropping::open() {
        Ok(dropping) => dropping,
        Err(error) => return eprintln!("skipped: {error}"),
    };
    // A port that was free a moment ago, so it has no listener.
    let closed = UdpSocket::bind("127.0.0.1:0").expect("a socket").local_addr().expect("its address");
    let sender = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let mut sent = 0_u64;
    let drops = dropping.run(|elapsed| {
        // A refusal comes back as an error of the next send, which does no harm.
        sent += u64::from(sender.send_to(b"x", closed).is_ok());
        elapsed < SPAN
    });
    let drops = drops.expect("counting runs");
    let nobody: u64 = drops.drops.iter().filter(|drop| drop.reason == "NO_SOCKET").map(|drop| drop.count).sum();
    assert!(nobody + drops.lost >= sent / 2 && sent > 1, "{nobody} of {sent}: {drops:?}");
    assert!(drops.drops.iter().all(|drop| !drops.left_out.contains(&drop.reason)));
}

#[test]
fn what_a_program_waits_for_is_reported() {
    waits_are_reported();
}

#[test]
fn another_program_that_switches_often_takes_no_stacks_from_the_program() {
    let (mut ping, mut pong) = UnixStream::pair().expect("a pair of sockets");
    let echo = std::thread::spawn(move || {
        let mut byte = [0];
        while pong.read_exact(&mut byte).is_ok() && pong.write_all(&byte).is_ok() {}
    });
    let stop = Arc::new(AtomicBool::new(false));
    let switching = std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            let mut byte = [0];
            while !stop.load(Ordering::Relaxed) && ping.write_all(&byte).is_ok() && ping.read_exact(&mut byte).is_ok() {}
        }
    });
    waits_are_reported();
    stop.store(true, Ordering::Relaxed);
    switching.join().expect("it ends");
    echo.join().expect("it ends with the other");
}

/// The waits of a shell that repeatedly waits for a sleeping child.
fn waits_are_reported() {
    let worker = Worker::start("while :; do sleep 0.05; done");
    let waiting = match Waiting::open(worker.scope()) {
        Ok(waiting) => waiting,
        Err(error) => return eprintln!("skipped: {error}"),
    };
    let profile = waiting.run(|elapsed| elapsed < 2 * SPAN).expect("sampling runs");
    let shares = waits(&profile);
    let of = |wait| shares.iter().filter(|share| share.wait == wait).map(|share| share.seconds).sum::<f64>();
    assert!(of(Wait::Timer) > 0.0, "{shares:?}");
    // The shell waits for its child as long as the child sleeps.
    assert!(of(Wait::Child) > 0.5 * of(Wait::Timer), "{shares:?}");
    assert!(shares.iter().map(|share| share.seconds).sum::<f64>() > 0.3 * profile.duration_s, "{shares:?}");
}
