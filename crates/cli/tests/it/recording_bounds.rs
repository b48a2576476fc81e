//! Recordings and profiles crafted to exhaust the memory, and paths that are no regular files, are refused early and with a reason.
//!
//! Live: the memory of a child process is measured, and that of this process counts for it (getrusage(2)).

use std::fs::File;
use std::io::{Read, Write};
use std::process::Stdio;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::harness::Chokepoint;

/// Memory that a refusal may take, bytes. A small recording takes about 20 MB.
const MEMORY_MAX: u64 = 128 << 20;

/// Status, stderr and peak memory of a replay, bytes.
fn replayed(chokepoint: &Chokepoint, file: &str) -> (Option<i32>, String, u64) {
    ran(chokepoint, &["diagnose", "--replay", file])
}

/// The same of any command.
#[expect(clippy::zombie_processes, reason = "wait4 waits for the child and also gives its memory")]
fn ran(chokepoint: &Chokepoint, args: &[&str]) -> (Option<i32>, String, u64) {
    // The time is bounded from outside: a replay that hangs ends with status 124 (timeout(1)).
    let mut command = std::process::Command::new("timeout");
    command.args(["60", env!("CARGO_BIN_EXE_chokepoint")]).args(args);
    command.env("CHOKEPOINT_STATE_DIR", chokepoint.file("state")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    let (mut status, pid) = (0, libc::pid_t::try_from(child.id()).unwrap());
    // SAFETY: all zeros are a valid `rusage`, which holds only numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both point to variables that outlive the call; the child is ours and nobody else waits for it.
    let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
    assert_eq!(waited, pid);
    // In kilobytes (getrusage(2)), including children that were waited for.
    (libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)), stderr, u64::try_from(usage.ru_maxrss).unwrap() * 1024)
}

/// A recording that repeats one entry.
fn write_bomb(file: &str, entries: usize, bytes: usize) -> u64 {
    // Kind, time, scope, empty source, empty item, bytes.
    let mut entry = vec![0; 1 + 8 + 9 + 4 + 4 + 1 + bytes];
    entry[0] = 1;
    write_frames(file, std::iter::repeat_n(entry.as_slice(), entries))
}

/// The first byte of an entry's scope: a network namespace, or a process.
const NETNS: u8 = 1;
const PROCESS: u8 = 2;

/// An entry with these bytes. The scope is a namespace or a process with this number.
fn entry(source: &str, (kind, number): (u8, u64), at_us: u64, bytes: &[u8]) -> Vec<u8> {
    let mut entry = vec![1];
    entry.extend_from_slice(&at_us.to_le_bytes());
    entry.push(kind);
    entry.extend_from_slice(&number.to_le_bytes());
    for text in [source, ""] {
        entry.extend_from_slice(&u32::try_from(text.len()).unwrap().to_le_bytes());
        entry.extend_from_slice(text.as_bytes());
    }
    entry.push(0);
    entry.extend_from_slice(bytes);
    entry
}

/// Writes a recording of these entries and gives its length, bytes.
fn write_frames(file: &str, frames: impl Iterator<Item = impl AsRef<[u8]>>) -> u64 {
    let mut out = File::create(file).unwrap();
    out.write_all(b"chokepoint-recording 1\n").unwrap();
    let mut gzip = GzEncoder::new(out, Compression::best());
    let mut frame = |payload: &[u8]| {
        gzip.write_all(&u32::try_from(payload.len()).unwrap().to_le_bytes()).unwrap();
        gzip.write_all(&crc32fast::hash(payload).to_le_bytes()).unwrap();
        gzip.write_all(payload).unwrap();
    };
    frame(b"\0{\"tool\":\"0.1.0\",\"redaction\":\"public\"}");
    let mut count = 0_u64;
    for one in frames {
        frame(one.as_ref());
        count += 1;
    }
    frame(&[&[2][..], &count.to_le_bytes(), &0_u64.to_le_bytes()].concat());
    gzip.finish().unwrap().metadata().unwrap().len()
}

#[test]
fn a_recording_that_unpacks_to_too_much_is_refused_early() {
    let chokepoint = Chokepoint::new();
    let file = chokepoint.path("bomb.rec");
    for (entries, bytes) in [(3_999_999, 0), (7, 60 << 20), (100_000, 4_000)] {
        let length = write_bomb(&file, entries, bytes);
        assert!(length < 1_000_000, "{entries} entries of {bytes} bytes pack to {length}");
        let (status, stderr, memory) = replayed(&chokepoint, &file);
        assert_eq!(status, Some(1), "{stderr}");
        assert!(stderr.contains("bomb.rec") && stderr.contains("times its size"), "{stderr}");
        assert!(memory < MEMORY_MAX, "{entries} entries of {bytes} bytes took {} MB", memory >> 20);
    }
}

/// Replays recordings with one server's configuration each. None may take more memory than a refusal. The report must contain the words, if they are given.
fn replay_configurations(server: &str, configurations: &[(&str, String, Option<&str>)]) {
    let chokepoint = Chokepoint::new();
    let file = chokepoint.path("server.rec");
    for (name, text, words) in configurations {
        let dump = format!("server {server}\nprefix /n\nversion \n# configuration file /n/main:\n{text}\n");
        let length = write_frames(&file, std::iter::once(entry("server_config", (PROCESS, 7), 0, dump.as_bytes()).as_slice()));
        assert!(length < 512 << 10, "{name} packs to {length}");
        let (status, stderr, memory) = replayed(&chokepoint, &file);
        // The recording holds nothing else: the verdict is "unknown".
        assert_eq!(status, Some(1), "{name}: {stderr}");
        assert!(memory < MEMORY_MAX, "{name}: a recording of {length} bytes took {} MB", memory >> 20);
        let report = chokepoint.run(&["diagnose", "--replay", &file, "--json"]).stdout;
        assert!(report.contains(words.unwrap_or("\"status\": \"ok\"")), "{name}: {report}");
    }
}

#[test]
fn an_nginx_configuration_with_too_many_directives_is_refused_early() {
    const REFUSAL: Option<&str> = Some("too many directives");
    let dense = |of: &str, count: usize| format!("events {{}}\nhttp {{ {} }}", of.repeat(count));
    let distinct: String = (0..150_000).map(|n| format!("a{n};")).collect();
    let servers: String = (0..4_000).map(|n| format!("server 10.0.{}.{}:80;", n / 250, n % 250)).collect();
    let locations: String = (0..4_000).map(|n| format!("location /{n} {{ proxy_pass http://u; }}")).collect();
    replay_configurations(
        "nginx",
        &[
            ("1,900,000 directives", dense("a;", 1_900_000), Some("main: more than 1048576 bytes")),
            ("1,000,000 directives", dense("a;", 1_000_000), REFUSAL),
            ("as many as are read", dense("a;", 80_000), None),
            ("words", dense(&format!("a {};", "b ".repeat(1_000)), 1_000), REFUSAL),
            ("blocks", dense("location a{}", 170_000), REFUSAL),
            ("names", dense(&distinct, 1), REFUSAL),
            (
                "passes with the servers behind each",
                dense(&format!("upstream u {{{servers}}} server {{{locations}}}"), 1),
                Some("take more than is kept"),
            ),
        ],
    );
}

#[test]
fn a_php_fpm_configuration_with_too_many_lines_is_refused_early() {
    const REFUSAL: Option<&str> = Some("too many lines");
    let of_pool = |name: &str, lines: &str| format!("[{name}]\n{lines}");
    let values: String = (0..10_000).map(|n| format!("env[a{n}]=$pool\n")).collect();
    let pools: String = (0..100_000).map(|n| format!("[{n}]\n")).collect();
    replay_configurations(
        "php-fpm",
        &[
            ("lines", of_pool("w", &"a=\n".repeat(600_000)), REFUSAL),
            ("as many as are read", of_pool("w", &"pm=static\n".repeat(50_000)), None),
            ("the name of a pool in each value", of_pool(&"w".repeat(100_000), &values), REFUSAL),
            ("pools", pools, REFUSAL),
        ],
    );
}

/// Crafted entries of one kind.
struct Crafted {
    name: &'static str,
    /// True if they take too much once parsed, although they unpack to less than the bound.
    is_refused: bool,
    count: u64,
    /// Makes the entry with this number. One at a time: memory of this process would count for its child (fork(2), execve(2)).
    make: Box<dyn Fn(u64) -> Vec<u8>>,
}

fn crafted() -> Vec<Crafted> {
    let of = |name, is_refused, count, make| Crafted { name, is_refused, count, make };
    fn netstat(first: u64) -> Vec<u8> {
        let names: String = (first..first + 20_000).map(|n| format!(" {n:x}")).collect();
        format!("T:{names}\nT:{}\n", " 0".repeat(20_000)).into_bytes()
    }
    let columns: String = (0..16).map(|n| format!(" a{n}")).collect();
    let table = move |rows: usize| format!("entries{columns}\n{}", format!("{}0\n", "0 ".repeat(16)).repeat(rows)).into_bytes();
    let few = table(8);
    // A socket of IPv4, established: struct nlmsghdr and struct inet_diag_msg, sock_diag(7).
    let mut socket = [88_u32.to_le_bytes(), [20, 0, 2, 0], [0; 4], [0; 4]].concat();
    socket.extend([2, 1, 0, 0, 0, 80, 0, 81]);
    socket.resize(88, 0);
    let sockets = move |count: usize| socket.repeat(count);
    let ten = sockets(10);
    vec![
        of("namespaces", true, 100_000, Box::new(|n| entry("netstat", (NETNS, n), 0, b""))),
        of("processes", true, 100_000, Box::new(|n| entry("process_cpu", (PROCESS, n), 0, b""))),
        of("other names each time", true, 100, Box::new(|at| entry("netstat", (NETNS, 7), at, &netstat(at * 20_000)))),
        of("rows of a table", true, 50_000, Box::new(move |at| entry("conntrack_cpus", (NETNS, 7), at, &few))),
        of("one long table", true, 1, Box::new(move |at| entry("conntrack_cpus", (NETNS, 7), at, &table(400_000)))),
        of("sockets in one reading", true, 1, Box::new(move |at| entry("requests", (NETNS, 7), at, &sockets(300_000)))),
        of("sockets in many readings", true, 27_000, Box::new(move |at| entry("requests", (NETNS, 7), at, &ten))),
        of("the same names each time", false, 100, Box::new(|at| entry("netstat", (NETNS, 7), at, &netstat(0)))),
        of("numbers", false, 100_000, Box::new(|at| entry("conntrack_count", (NETNS, 7), at, b"1\n"))),
    ]
}

#[test]
fn readings_that_grow_too_much_when_parsed_are_refused() {
    let chokepoint = Chokepoint::new();
    let file = chokepoint.path("crafted.rec");
    for Crafted { name, is_refused, count, make } in crafted() {
        let length = write_frames(&file, (0..count).map(make));
        let (status, stderr, memory) = replayed(&chokepoint, &file);
        assert_eq!(status, Some(1), "{name}: {stderr}");
        assert_eq!(stderr.contains("its parsed readings"), is_refused, "{name}: {stderr}");
        assert!(memory < MEMORY_MAX, "{name}: a recording of {length} bytes took {} MB", memory >> 20);
    }
}

/// A profile by name, how it begins, and its parts with this number: written one by one, as the entries above.
type CraftedProfile = (&'static str, fn(u64) -> String, u64, &'static str);

#[test]
fn a_stored_profile_takes_bounded_memory_and_time() {
    let chokepoint = Chokepoint::new();
    let path = chokepoint.path("crafted.profile");
    let stacks: fn(u64) -> String = |number| format!("p;{number};{}b 1\n", "a;".repeat(1000));
    let stored: fn(u64) -> String = |number| match number {
        0 => format!("{{\"schema\":\"chokepoint/profile/1\",\"notes\":[\"{}", "x".repeat(1 << 20)),
        _ => "x".repeat(1 << 20),
    };
    let profiles: &[CraftedProfile] = &[
        ("many programs", |number| format!("p{number};f{number};g{number} 1\n"), 150_000, ""),
        ("deep stacks", stacks, 2_000, ""),
        ("long names", |number| format!("p;{number}{} 1\n", "n".repeat(100_000)), 300, ""),
        ("large counts", |number| format!("p;{number} 18446744073709551615\n"), 1_000, ""),
        ("a text of 300 MiB", stored, 300, "a text is longer"),
        ("a line of 300 MiB", |_| "x".repeat(1 << 20), 300, "line 1 is not a folded stack"),
    ];
    for (name, part, count, why) in profiles {
        let mut file = std::io::BufWriter::new(File::create(&path).unwrap());
        (0..*count).for_each(|number| file.write_all(part(number).as_bytes()).unwrap());
        file.flush().unwrap();
        let (status, stderr, memory) = ran(&chokepoint, &["profile", "--replay", &path, "--folded", &chokepoint.path("out.folded")]);
        assert_eq!(status, Some(i32::from(!why.is_empty())), "{name}: {stderr}");
        assert!(stderr.contains(why), "{name}: {stderr}");
        assert!(memory < 2 * MEMORY_MAX, "{name}: {} MB", memory >> 20);
    }
}

#[test]
fn a_path_that_is_no_regular_file_is_refused_at_once() {
    let chokepoint = Chokepoint::new();
    let pipe = chokepoint.file("pipe.rec");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for file in [pipe.to_str().unwrap(), "/dev/zero", "/"] {
        let (status, stderr, _) = replayed(&chokepoint, file);
        assert_eq!(status, Some(1), "{file}: {stderr}");
        assert!(stderr.contains("not a regular file"), "{stderr}");
    }
}
