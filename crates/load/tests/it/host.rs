//! What the generator uses of its host: another network namespace and chosen cores; and the errors if it may not have them.
//!
//! Live: load on this test's own server.

use std::io::Write;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

use chokepoint_load::{Control, LoadError, run};

use crate::server::{HELLO, Server, load, plan};

/// A network namespace with its loopback up, deleted when dropped.
struct Netns(String);

impl Netns {
    fn make() -> Option<Netns> {
        let name = format!("t-load-{}", std::process::id());
        let ip = |args: &[&str]| Command::new("ip").args(args).status().is_ok_and(|status| status.success());
        if !ip(&["netns", "add", &name]) {
            return None;
        }
        let netns = Netns(name);
        ip(&["-n", &netns.0, "link", "set", "lo", "up"]).then_some(netns)
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).status();
    }
}

#[test]
fn requests_come_from_the_namespace_and_the_caller_stays_outside() {
    let Some(netns) = Netns::make() else {
        println!("skipped: no right to make a network namespace, or no ip(8)");
        return;
    };
    let server = Server::answering(HELLO);
    let mut plan = plan(server.address);
    let own = std::fs::read_link("/proc/thread-self/ns/net").expect("procfs");
    plan.netns = Some(PathBuf::from(format!("/run/netns/{}", netns.0)));
    let elsewhere = load(&plan);
    assert_eq!(elsewhere.errors.connect_refused, 40, "nobody listens on the loopback there: {elsewhere:?}");
    assert_eq!(std::fs::read_link("/proc/thread-self/ns/net").expect("procfs"), own);
    plan.netns = Some(PathBuf::from("/proc/self/ns/net"));
    assert_eq!(load(&plan).good, 40);
}

#[test]
fn an_invalid_namespace_is_an_error_with_its_path() {
    let mut plan = plan(([127, 0, 0, 1], 1).into());
    for (path, words) in [
        ("/run/netns/t-load-no-such", "No such file"),
        ("/proc/self/status", "not a network namespace"),
        ("/proc/self/ns/uts", "not a network namespace"),
    ] {
        plan.netns = Some(PathBuf::from(path));
        let error = run(&plan, &Control::new()).expect_err(path);
        let text = error.to_string();
        // Without the right to enter any namespace, the kernel reports that first.
        assert!(
            matches!(error, LoadError::Netns { .. }) && text.contains(path) && (text.contains(words) || text.contains("CAP_SYS_ADMIN")),
            "{text}"
        );
    }
}

#[test]
fn threads_run_on_the_chosen_cores() {
    let server = Server::answering(HELLO);
    let mut plan = plan(server.address);
    let all = load(&plan).threads[0].cpus.clone();
    plan.cpus = Some(vec![all[0]]);
    let result = load(&plan);
    assert!(result.threads.iter().all(|thread| thread.cpus == [all[0]]), "{result:?}");
    plan.cpus = Some(vec![1023]);
    let error = run(&plan, &Control::new()).expect_err("no such core");
    assert!(matches!(error, LoadError::Cpus { .. }) && error.to_string().contains("1023"), "{error}");
}

#[test]
fn a_lack_of_ports_is_a_limit_of_the_generator() {
    let Some(netns) = Netns::make_with_ports(10) else {
        println!("skipped: no right to make a network namespace, or no ip(8)");
        return;
    };
    let mut plan = plan(([127, 0, 0, 1], 9).into());
    plan.netns = Some(PathBuf::from(format!("/run/netns/{}", netns.0)));
    plan.shape = chokepoint_model::load::Loop::Closed { connections: 40 };
    let listener = Netns::listen(&netns);
    plan.address = listener.local_addr().expect("bound").into();
    (plan.requests, plan.timeout) = (Some(200), std::time::Duration::from_millis(300));
    let result = load(&plan);
    assert!(result.errors.local_ports > 0 && result.errors.response_timeout > 0, "{result:?}");
    assert_eq!(result.errors.local_ports + result.errors.response_timeout, 200, "{result:?}");
}

#[test]
fn several_addresses_allow_more_connections_than_one_has_ports() {
    const PORTS: usize = 200;
    let Some(netns) = Netns::make_with_ports(PORTS) else {
        println!("skipped: no right to make a network namespace, or no ip(8)");
        return;
    };
    let listener = netns.listen();
    let mut plan = plan(listener.local_addr().expect("bound"));
    plan.netns = Some(PathBuf::from(format!("/run/netns/{}", netns.0)));
    let addresses = (10..15).map(|last| [127, 0, 0, last].into()).collect::<Vec<_>>();
    let open = addresses.len() * PORTS * 9 / 10;
    plan.options.bind = addresses;
    plan.shape = chokepoint_model::load::Loop::Closed { connections: open as u32 };
    (plan.requests, plan.timeout) = (Some(open as u64), std::time::Duration::from_secs(30));
    let server = std::thread::spawn(move || {
        // No request is answered before all connections are open.
        let mut streams: Vec<_> = listener.incoming().take(open).collect::<Result<_, _>>().expect("connections");
        for stream in &mut streams {
            stream.write_all(HELLO.as_bytes()).expect("the generator reads");
        }
        streams
    });
    let result = load(&plan);
    assert_eq!((result.good, result.errors.local_ports), (open as u64, 0), "{:?}", result.error_samples);
    drop(server.join().expect("no panics"));
}

impl Netns {
    /// A namespace with this many ports for outgoing connections of an address.
    fn make_with_ports(ports: usize) -> Option<Netns> {
        let name = format!("t-load-ports-{ports}-{}", std::process::id());
        let ip = |args: &[&str]| Command::new("ip").args(args).status().is_ok_and(|status| status.success());
        if !ip(&["netns", "add", &name]) {
            return None;
        }
        let netns = Netns(name);
        let range = format!("echo 50000 {} > /proc/sys/net/ipv4/ip_local_port_range", 49_999 + ports);
        let is_up = ip(&["-n", &netns.0, "link", "set", "lo", "up"]) && ip(&["netns", "exec", &netns.0, "sh", "-c", &range]);
        is_up.then_some(netns)
    }

    /// A listener inside, created by a thread that enters the namespace.
    fn listen(&self) -> TcpListener {
        let path = format!("/run/netns/{}", self.0);
        std::thread::spawn(move || {
            let file = std::fs::File::open(path).expect("the namespace");
            rustix::thread::move_into_link_name_space(std::os::fd::AsFd::as_fd(&file), Some(rustix::thread::LinkNameSpaceType::Network))
                .expect("root");
            let listener = TcpListener::bind("127.0.0.1:4000").expect("a free port");
            // A longer queue than the standard library's, for thousands of connections at once.
            rustix::net::listen(&listener, 4096).expect("a listener");
            listener
        })
        .join()
        .expect("no panics")
    }
}
