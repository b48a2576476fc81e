//! `chokepoint profile` as a user runs it: text, JSON, every output file, and clear errors.
//!
//! Deterministic: recordings and command lines; tests that sample this host are in its module `live`.

use crate::harness::{Chokepoint, fits};

/// A profile without times and cores.
const STACKS: &str = "nginx;main;malloc 30\nnginx;main;write;ksys_write_[k];sock_write_iter_[k];tcp_sendmsg_[k] 70\n";

#[test]
fn a_stored_profile_is_printed_and_written_in_every_format() {
    let chokepoint = Chokepoint::new();
    let path = |name: &str| chokepoint.path(name);
    chokepoint.write("a.folded", STACKS.as_bytes());
    let files = ["html", "svg", "folded", "pprof", "firefox", "record"];
    let mut args = vec!["profile".to_owned(), "--replay".to_owned(), path("a.folded")];
    for name in files {
        args.extend([format!("--{name}"), path(name)]);
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = chokepoint.run(&args);
    assert_eq!(output.status, Some(0), "{}", output.stderr);
    let text = output.stdout;
    assert!(text.contains("allocator (user space)") && text.contains("at most +43 %"), "{text}");
    for name in files {
        assert!(std::fs::metadata(path(name)).is_ok_and(|file| file.len() > 50), "{name}");
    }
    assert_eq!(std::fs::read_to_string(path("folded")).expect("folded stacks"), STACKS);
    // The stored profile prints the same, and no difference to its source.
    let again = chokepoint.run(&["profile", "--replay", &path("record"), "--diff", &path("a.folded")]);
    assert!(again.stdout.starts_with(&text) && !again.stdout.contains(" *\n"), "{}", again.stdout);
}

#[test]
fn the_json_fits_its_schema() {
    let chokepoint = Chokepoint::new();
    let file = chokepoint.write("a.folded", STACKS.as_bytes());
    fits(&chokepoint.run(&["profile", "--json", "--replay", &file]).stdout, "profile-1.json");
}

#[test]
fn a_profile_that_cannot_be_read_is_reported_with_the_reason() {
    let chokepoint = Chokepoint::new();
    let path = |name: &str| chokepoint.path(name);
    chokepoint.write("odd.json", b"{\"schema\": \"chokepoint/profile/9\"}");
    chokepoint.write("odd.folded", b"a;b 1\nnonsense\n");
    for (args, reason, status) in [
        (vec!["profile", "--replay", &path("none")], "none cannot be read", 1),
        (vec!["profile", "--replay", &path("odd.json")], "not a profile", 1),
        (vec!["profile", "--replay", &path("odd.folded")], "line 2 is not a folded stack", 1),
        (vec!["profile", "--pid", "4294967295"], "there is no process 4294967295", 1),
        (vec!["profile", "--frequency", "0"], "0", 2),
        (vec!["profile", "--pid", "1", "--cgroup", "/a"], "--cgroup", 2),
    ] {
        let output = chokepoint.run(&args);
        assert!(output.stderr.contains(reason) && output.status == Some(status), "{args:?}: {} {:?}", output.stderr, output.status);
    }
}

#[test]
fn the_version_says_what_this_kernel_lacks() {
    let output = Chokepoint::new().run(&["--version"]);
    let mut lines = output.stdout.lines();
    assert_eq!((lines.next(), output.status), (Some(concat!("chokepoint ", env!("CARGO_PKG_VERSION"))), Some(0)));
    let kprobes = std::path::Path::new("/sys/bus/event_source/devices/kprobe").exists();
    assert_eq!(lines.any(|line| line.contains("no kprobes")), !kprobes, "{}", output.stdout);
    let (with, without) = (output.stdout.contains("built with BPF"), output.stdout.contains("built without BPF"));
    assert_eq!((with, without), (cfg!(feature = "bpf"), !cfg!(feature = "bpf")), "{}", output.stdout);
}

#[test]
fn invalid_counts_are_refused_with_the_reason() {
    let chokepoint = Chokepoint::new();
    for (args, reason, status) in [
        (vec!["profile", "--count", "a b"], "\"a b\" cannot be counted", 2),
        (vec!["profile", "--count", "--count-for", "0s"], "--count-for 0s", 2),
        (vec!["profile", "--count", "--count-for", "1h"], "at most 60 s", 2),
        (vec!["profile", "--count", "--requests=-1"], "--requests", 2),
        (vec!["profile", "--count", "--requests", "0"], "is not a rate", 2),
        (vec!["profile", "--count", "--html", "x"], "--html", 2),
        (vec!["profile", "--drops", "--pid", "1"], "--pid", 2),
        (vec!["profile", "--count", "page-faults", "--pid", "4294967295"], "there is no process 4294967295", 1),
    ] {
        let output = chokepoint.run(&args);
        assert!(output.stderr.contains(reason) && output.status == Some(status), "{args:?}: {} {:?}", output.stderr, output.status);
    }
}

mod live {
    use std::net::{TcpListener, TcpStream};

    use super::{Chokepoint, fits};

    #[test]
    fn counts_and_drops_fit_their_schemas() {
        let chokepoint = Chokepoint::new();
        let pid = std::process::id().to_string();
        let counting: &[&str] = &[
            "profile",
            "--json",
            "--count",
            "page-faults",
            "--count",
            "cycles",
            "--count-for",
            "200ms",
            "--requests",
            "10",
            "--pid",
            &pid,
        ];
        for (args, schema) in [(counting, "counts-1.json"), (&["profile", "--json", "--drops", "-z", "200ms"], "drops-1.json")] {
            let output = chokepoint.run(args);
            if output.status != Some(0) {
                eprintln!("skipped: {}", output.stderr);
                continue;
            }
            fits(&output.stdout, schema);
        }
    }

    /// Both ends of a connection whose accepted end drops all packets by a socket filter (socket(7), SO_ATTACH_FILTER).
    fn deaf_connection(listener: &TcpListener) -> [TcpStream; 2] {
        use std::io::Write;
        use std::os::fd::AsRawFd;
        let mut client = TcpStream::connect(listener.local_addr().expect("its address")).expect("a connection");
        let deaf = listener.accept().expect("a connection").0;
        // "Keep no byte": BPF_RET | BPF_K of linux/filter.h.
        let mut keep_nothing = libc::sock_filter { code: 6, jt: 0, jf: 0, k: 0 };
        let program = libc::sock_fprog { len: 1, filter: &raw mut keep_nothing };
        let size = libc::socklen_t::try_from(size_of_val(&program)).expect("it is small");
        // SAFETY: the descriptor is open; the kernel copies the program, which lives through the call.
        let done =
            unsafe { libc::setsockopt(deaf.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, (&raw const program).cast(), size) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
        client.write_all(b"unheard").expect("it is sent");
        [client, deaf]
    }

    #[test]
    fn drops_are_reported_with_the_owner_of_the_socket() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let counting = std::thread::spawn(|| Chokepoint::new().run(&["profile", "--json", "--drops", "-z", "1s"]));
        let mut open = Vec::new();
        while !counting.is_finished() {
            // The connections stay open: their owner is looked up after the count. The kernel retransmits the lost data for minutes.
            if open.len() < 200 {
                open.push(deaf_connection(&listener));
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let output = counting.join().expect("it ends");
        if output.status != Some(0) {
            return eprintln!("skipped: {}", output.stderr);
        }
        let json: serde_json::Value = serde_json::from_str(&output.stdout).expect("JSON");
        if json["means"] == "tracepoint" {
            return eprintln!("skipped: {}", json["notes"]);
        }
        let own = std::fs::read_to_string("/proc/self/comm").expect("a name");
        let (own, local) = (own.trim_end(), listener.local_addr().expect("its address").to_string());
        let drops = json["drops"].as_array().expect("drops");
        let ours: Vec<_> = drops.iter().filter(|drop| drop["local"] == local.as_str() && drop["reason"] == "SOCKET_FILTER").collect();
        assert!(!ours.is_empty() || json["lost"] != 0, "{json}");
        for drop in ours {
            assert_eq!((drop["state"].as_str(), drop["holders"][0]["program"].as_str()), (Some("ESTABLISHED"), Some(own)), "{drop}");
        }
    }
}
