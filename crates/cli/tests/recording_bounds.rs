//! Recordings that are made to fill the memory, or that are no files, are refused in words and at once.
//!
//! Live: the memory of a child process is measured.

mod harness;

use std::fs::File;
use std::io::{Read, Write};
use std::process::Stdio;

use flate2::Compression;
use flate2::write::GzEncoder;
use harness::Chokepoint;

/// What a refusal may take, bytes; a small recording takes about 20 MB.
const MEMORY_MAX: u64 = 128 << 20;

/// Status and stderr of a replay, and the most memory that it took, bytes.
#[expect(clippy::zombie_processes, reason = "wait4 waits for it, which tells its memory too")]
fn replayed(chokepoint: &Chokepoint, file: &str) -> (Option<i32>, String, u64) {
    // The time is bounded from outside: what waits for ever ends with status 124 (timeout(1)).
    let mut command = std::process::Command::new("timeout");
    command.args(["60", env!("CARGO_BIN_EXE_chokepoint"), "diagnose", "--replay", file]);
    command.env("CHOKEPOINT_STATE_DIR", chokepoint.file("state")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    let (mut status, pid) = (0, libc::pid_t::try_from(child.id()).unwrap());
    // SAFETY: all zeros are a valid `rusage`, which is numbers alone.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both point to variables that outlive the call; the child is ours and nobody else waits for it.
    let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
    assert_eq!(waited, pid);
    // In kilobytes (getrusage(2)); children that were waited for count.
    (libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)), stderr, u64::try_from(usage.ru_maxrss).unwrap() * 1024)
}

/// A recording of one entry, again and again.
fn write_bomb(file: &str, entries: usize, bytes: usize) -> u64 {
    let mut out = File::create(file).unwrap();
    out.write_all(b"chokepoint-recording 1\n").unwrap();
    let mut gzip = GzEncoder::new(out, Compression::best());
    let mut frame = |payload: &[u8]| {
        gzip.write_all(&u32::try_from(payload.len()).unwrap().to_le_bytes()).unwrap();
        gzip.write_all(&crc32fast::hash(payload).to_le_bytes()).unwrap();
        gzip.write_all(payload).unwrap();
    };
    frame(b"\0{\"tool\":\"0.1.0\",\"redaction\":\"public\"}");
    // Kind, time, scope, no source, no item, and bytes.
    let mut entry = vec![0; 1 + 8 + 9 + 4 + 4 + 1 + bytes];
    entry[0] = 1;
    (0..entries).for_each(|_| frame(&entry));
    gzip.finish().unwrap().metadata().unwrap().len()
}

#[test]
fn a_recording_that_unpacks_to_the_whole_memory_is_refused_early() {
    let chokepoint = Chokepoint::new();
    let file = chokepoint.file("bomb.rec").to_str().unwrap().to_owned();
    for (entries, bytes) in [(3_999_999, 0), (7, 60 << 20), (100_000, 4_000)] {
        let length = write_bomb(&file, entries, bytes);
        assert!(length < 1_000_000, "{entries} entries of {bytes} bytes pack to {length}");
        let (status, stderr, memory) = replayed(&chokepoint, &file);
        assert_eq!(status, Some(1), "{stderr}");
        assert!(stderr.contains("bomb.rec") && stderr.contains("times its size"), "{stderr}");
        assert!(memory < MEMORY_MAX, "{entries} entries of {bytes} bytes took {} MB", memory >> 20);
    }
}

#[test]
fn what_is_no_regular_file_is_not_waited_for() {
    let chokepoint = Chokepoint::new();
    let pipe = chokepoint.file("pipe.rec");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for file in [pipe.to_str().unwrap(), "/dev/zero", "/"] {
        let (status, stderr, _) = replayed(&chokepoint, file);
        assert_eq!(status, Some(1), "{file}: {stderr}");
        assert!(stderr.contains("no regular file"), "{stderr}");
    }
}
