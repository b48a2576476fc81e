//! The sampler on this machine: a working child has samples. What this user may not sample is skipped with the reason.
//!
//! Live beside others: whether a program is sampled and unwound is judged, not how often.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use chokepoint_profile::analysis::report::report;
use chokepoint_profile::{Options, Profile, Sampler, Scope, StackEnd};

/// A child process that is killed at the end of the test.
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

/// Samples until there are enough samples, for a limited time: other load on the machine may keep the child waiting.
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
fn a_working_process_has_samples() {
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
fn processes_that_come_and_go_are_sampled() {
    let worker = Worker::start("while :; do /bin/true; done");
    let Some(profile) = sample(Scope::Processes(vec![worker.0.id()])) else { return };
    assert!(!profile.samples.is_empty());
    assert!(profile.threads.iter().any(|thread| thread.pid != worker.0.id()), "no child was followed: {:?}", profile.threads);
}

#[test]
fn a_deleted_program_is_still_unwound() {
    let directory = tempfile::tempdir().expect("a directory");
    let copy = directory.path().join("spinner");
    // By a process of its own: a file that another test's child still has open for writing, before it begins its program, cannot be started (ETXTBSY).
    let copied = Command::new("cp").arg("/bin/sh").arg(&copy).status();
    assert!(copied.is_ok_and(|status| status.success()), "the shell can be copied");
    let child = Command::new(&copy).args(["-c", "while :; do :; done"]).spawn();
    let worker = Worker(child.expect("the copy can be started"));
    let begin = Instant::now();
    // It has started running once its mappings are those of the copy.
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

/// Whether a program file has no symbol table; none if that cannot be determined.
fn is_stripped(path: &str) -> Option<bool> {
    use object::Object;
    let bytes = std::fs::read(path).ok()?;
    Some(object::File::parse(bytes.as_slice()).ok()?.symbol_table().is_none())
}

#[test]
fn a_stripped_program_has_complete_stacks_and_unnamed_functions() {
    if is_stripped("/bin/sh") != Some(true) {
        return eprintln!("skipped: /bin/sh has its symbol table");
    }
    let worker = Worker::start("while :; do :; done");
    let Some(profile) = sample(Scope::Processes(vec![worker.0.id()])) else { return };
    let shell = profile.frames.iter().filter(|frame| frame.kind == chokepoint_profile::FrameKind::User && !frame.named);
    // The name is where the function begins in its file.
    let named: Vec<&str> = shell.map(|frame| frame.name.as_str()).collect();
    assert!(!named.is_empty() && named.iter().all(|name| name.contains("+0x")), "{named:?}");
    let quality = profile.quality();
    assert!(quality.broken < 0.2 && quality.unnamed_user > 0.0, "{quality:?}");
}

#[test]
fn a_program_in_another_mount_namespace_is_unwound_from_its_own_files() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().display();
    // A file system that only the child can see, with a copy of the shell that exists nowhere else.
    let script = format!("mount -t tmpfs none {place} && cp /bin/sh {place}/hidden && exec {place}/hidden -c 'while :; do :; done'");
    let child = Command::new("unshare").args(["-m", "sh", "-c", &script]).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let Ok(child) = child else { return eprintln!("skipped: there is no unshare(1)") };
    let mut worker = Worker(child);
    let maps = format!("/proc/{}/maps", worker.0.id());
    let begin = Instant::now();
    while !std::fs::read_to_string(&maps).unwrap_or_default().contains("/hidden") {
        if worker.0.try_wait().is_ok_and(|ended| ended.is_some()) || begin.elapsed() > Duration::from_secs(20) {
            return eprintln!("skipped: this user may not make a mount namespace with a file system in it");
        }
        thread::yield_now();
    }
    assert!(!directory.path().join("hidden").exists(), "it is seen from here");
    let Some(profile) = sample(Scope::Processes(vec![worker.0.id()])) else { return };
    assert!(profile.frames.iter().any(|frame| frame.module == "hidden"), "{:?}", profile.frames);
    assert!(profile.quality().broken < 0.2, "{:?}", profile.quality());
}
