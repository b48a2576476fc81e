//! The sampler on this machine: a child that works is seen working. What this user may not sample is skipped with the reason.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use chokepoint_profile::report::report;
use chokepoint_profile::{Options, Profile, Sampler, Scope, StackEnd};

/// A child that is ended with the test.
struct Worker(Child);

impl Worker {
    fn start(script: &str) -> Self {
        let child = Command::new("sh").args(["-c", script]).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Self(child.expect("a shell can be started"))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Samples until enough was seen, and at most for a while: other load on the machine may keep the child waiting.
fn sample(scope: Scope) -> Option<Profile> {
    match Sampler::open(Options { scope, cores: None, frequency_hz: 997 }) {
        Ok(sampler) => Some(sampler.run(|elapsed| elapsed < Duration::from_millis(1500)).expect("sampling runs")),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

#[test]
fn a_process_that_works_is_seen_working() {
    let worker = Worker::start("while :; do :; done");
    let Some(profile) = sample(Scope::Processes(vec![worker.0.id()])) else { return };
    assert!(profile.samples.len() > 10, "{} samples", profile.samples.len());
    assert!(profile.threads.iter().all(|thread| thread.pid == worker.0.id()), "{:?}", profile.threads);
    let report = report(&profile);
    let user = profile.samples.iter().filter_map(|sample| profile.of(sample)).filter(|(stack, _)| stack.end == StackEnd::Whole).count();
    assert!(user * 10 > profile.samples.len() * 8, "{user} whole of {}, {:?}", profile.samples.len(), report.quality);
    let read_back = Profile::from_json(&serde_json::to_string(&profile).expect("it can be stored")).expect("it can be read back");
    // Fractions may differ in their last digit.
    assert!(read_back.frames == profile.frames && read_back.stacks == profile.stacks);
    assert!(read_back.threads == profile.threads && read_back.samples == profile.samples);
}

#[test]
fn processes_that_come_and_go_are_no_harm() {
    let worker = Worker::start("while :; do /bin/true; done");
    let Some(profile) = sample(Scope::Processes(vec![worker.0.id()])) else { return };
    assert!(!profile.samples.is_empty());
    assert!(profile.threads.iter().any(|thread| thread.pid != worker.0.id()), "no child was followed: {:?}", profile.threads);
}

#[test]
fn a_program_that_was_deleted_is_still_unwound() {
    let directory = tempfile::tempdir().expect("a directory");
    let copy = directory.path().join("spinner");
    std::fs::copy("/bin/sh", &copy).expect("the shell can be copied");
    let child = Command::new(&copy).args(["-c", "while :; do :; done"]).spawn();
    let worker = Worker(child.expect("the copy can be started"));
    let begin = Instant::now();
    // It has begun to run once its mappings are those of the copy.
    let maps = format!("/proc/{}/maps", worker.0.id());
    while !std::fs::read_to_string(&maps).unwrap_or_default().contains("spinner") && begin.elapsed() < Duration::from_secs(10) {
        thread::yield_now();
    }
    std::fs::remove_file(&copy).expect("it can be deleted");
    let Some(profile) = sample(Scope::Processes(vec![worker.0.id()])) else { return };
    assert!(!profile.samples.is_empty());
    let named = profile.frames.iter().any(|frame| frame.module == "spinner");
    let mapped = std::fs::read_dir(format!("/proc/{}/map_files", worker.0.id()));
    if !named && mapped.map_or(true, |mut files| files.all(|file| file.is_ok_and(|file| std::fs::File::open(file.path()).is_err()))) {
        return eprintln!("skipped: a deleted file is opened by /proc/PID/map_files, which takes CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE");
    }
    assert!(named, "{:?}", profile.frames);
}

#[test]
fn two_thousand_threads_are_sampled() {
    let stop = std::sync::atomic::AtomicBool::new(false);
    // Four of them work, the others sleep.
    let work = |number: u32| {
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            if number < 4 { std::hint::spin_loop() } else { thread::sleep(Duration::from_millis(50)) }
        }
    };
    let done = thread::scope(|scope| {
        let started = (0..2000)
            .filter(|number| {
                let (work, number) = (&work, *number);
                thread::Builder::new().stack_size(64 << 10).spawn_scoped(scope, move || work(number)).is_ok()
            })
            .count();
        let profile = (started == 2000).then(|| sample(Scope::Processes(vec![std::process::id()])));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        profile
    });
    match done {
        None => eprintln!("skipped: this user may not start 2,000 threads"),
        Some(Some(profile)) => assert!(profile.threads.len() >= 2, "{} threads were seen", profile.threads.len()),
        Some(None) => {}
    }
}
