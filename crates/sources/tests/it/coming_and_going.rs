//! An observation without an end beside processes, listeners and namespaces that come and go.
//!
//! Live beside others: servers of this test; nothing depends on how busy the machine is.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use chokepoint_model::observation::Request;
use chokepoint_model::path::discover;
use chokepoint_recording::Entry;
use chokepoint_sources::{ObserveOptions, Observer, Recent, netns};

/// A process that only holds a listener, as its standard input.
struct Holder(Child, u16);

impl Holder {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        Self(Command::new("sleep").arg("120").stdin(Stdio::from(OwnedFd::from(listener))).spawn().unwrap(), port)
    }

    fn request(&self) -> Request {
        let client_netns = netns::own().unwrap();
        Request { addresses: vec!["127.0.0.1".parse().unwrap()], port: self.1, client_netns, ..Request::default() }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Drains until this is true of what was read in the last seconds.
fn until(what: &str, observer: &Observer, recent: &mut Recent, is_true: impl Fn(&mut Recent) -> bool) {
    let begin = Instant::now();
    while !is_true(recent) {
        assert!(begin.elapsed() < Duration::from_secs(60), "it was never read: {what}, {} entries", recent.entries().len());
        std::thread::sleep(Duration::from_millis(100));
        recent.add(observer.drain());
    }
}

fn has_path(recent: &mut Recent, holder: &Holder) -> bool {
    let observation = recent.observation(&holder.request(), (0, u64::MAX), &[]);
    let has = discover(&observation).tiers.first().is_some_and(|tier| tier.pids == [holder.0.id()]);
    recent.take_back(observation);
    has
}

#[test]
fn requests_are_followed_newly_while_the_others_go_on() {
    let (first, second) = (Holder::new(), Holder::new());
    let observer = Observer::start(ObserveOptions::endless(first.request(), Vec::new())).unwrap();
    let mut recent = Recent::new(Duration::from_secs(3));
    until("the first path", &observer, &mut recent, |recent| has_path(recent, &first));
    assert!(!has_path(&mut recent, &second));
    let third = Holder::new();
    assert!(observer.follow(&[first.request(), third.request(), second.request()]));
    until("all paths", &observer, &mut recent, |recent| [&first, &second, &third].iter().all(|holder| has_path(recent, holder)));
    assert!(observer.path_found());
}

/// What was measured last is stale after this time (docs/watch/README.md). On a machine that is slow or busy samples cost more, and are taken more rarely: at most
/// four seconds pass between two, so that each second is part of a window with samples.
const STALE_US: u64 = 5_000_000;

#[test]
fn samples_never_pause_for_long_beside_listeners_that_come_and_go() {
    let stays = Holder::new();
    let over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&over);
    // Each lives for a moment; there are always some.
    let churn = std::thread::spawn(move || {
        let (mut alive, mut ports) = (Vec::new(), BTreeSet::new());
        while !ends.load(Ordering::Relaxed) {
            let holder = Holder::new();
            ports.insert(holder.1);
            alive.push(holder);
            if alive.len() > 4 {
                alive.remove(0);
            }
            std::thread::sleep(Duration::from_millis(30));
        }
        ports.len()
    });
    let came = Holder::new();
    let also: Vec<Request> = (0..8).map(|_| Holder::new().request()).chain([came.request()]).collect();
    let observer = Observer::start(ObserveOptions::endless(stays.request(), also)).unwrap();
    let (begin, mut times_us) = (Instant::now(), BTreeSet::from([0]));
    let sampled = |entry: &&Entry| entry.source == "requests" && entry.item.is_empty();
    while begin.elapsed() < Duration::from_secs(14) {
        std::thread::sleep(Duration::from_millis(250));
        let asked = Instant::now();
        times_us.extend(observer.drain().iter().filter(sampled).map(|entry| entry.at_us));
        assert!(asked.elapsed() < Duration::from_secs(2), "the observer's owner waits for it: {:?}", asked.elapsed());
    }
    over.store(true, Ordering::Relaxed);
    assert!(churn.join().unwrap() > 20);
    times_us.insert(observer.elapsed_us());
    let pauses = times_us.iter().zip(times_us.iter().skip(1)).map(|(from_us, to_us)| (to_us - from_us, *from_us));
    let (longest_us, from_us) = pauses.max().expect("two times");
    assert!(longest_us <= STALE_US, "no sample for {longest_us} us from {from_us} us on, {} samples", times_us.len() - 2);
    let asked = Instant::now();
    drop(observer);
    assert!(asked.elapsed() < Duration::from_secs(1), "it does not end");
}
