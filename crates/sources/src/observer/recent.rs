//! The entries of the last few seconds, for an observation without an end. Older entries are dropped, except readings that are taken only once and the newest
//! reading of each kind.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chokepoint_model::observation::{NetnsId, NetnsView, Observation, Request, ServerView};
use chokepoint_model::series::SeriesState;
use chokepoint_recording::{Entry, Outcome, Scope};

use crate::assemble::place;
use crate::root::WHY_ENDED;
use crate::sock_diag::crowd::CROWD;
use crate::source;
use crate::table::Cadence;

/// Sources of a process that are read periodically although their cadence is `Ends`.
const REPEATED: [&str; 1] = ["process_files"];
/// The sources that are parsed once, when they come, since they are most of what is read. Of their entries only the times are kept.
const PARSED_ONCE: [&str; 3] = ["requests", "netstat", "listeners"];
/// The source that is parsed again only if it changed, or what it is parsed for.
const CONFIG: &str = "server_config";
/// The source that the other one depends on.
const KERNEL: &str = "kernel";

/// The recent entries. Memory is bounded by what is read in that time, and by the number of processes and namespaces.
#[derive(Debug)]
pub struct Recent {
    keep_us: u64,
    /// In the order of time. Those of [`PARSED_ONCE`] have no bytes.
    entries: Vec<Entry>,
    /// What these were parsed to.
    parsed: BTreeMap<NetnsId, NetnsView>,
    /// The configurations, and what they were parsed for: the request, and the number of cores.
    servers: BTreeMap<u32, ServerView>,
    parsed_for: Option<(Request, Option<u32>)>,
}

impl Recent {
    /// Keeps readings for this long.
    pub fn new(keep: Duration) -> Self {
        let keep_us = u64::try_from(keep.as_micros()).unwrap_or(u64::MAX);
        Self { keep_us, entries: Vec::new(), parsed: BTreeMap::new(), servers: BTreeMap::new(), parsed_for: None }
    }

    /// Adds new entries and drops old ones.
    pub fn add(&mut self, mut entries: Vec<Entry>) {
        // Stable: those of one time keep the order in which they were read.
        entries.sort_by_key(|entry| entry.at_us);
        // Only what was read anew is parsed anew.
        for entry in entries.iter().filter(|entry| entry.source == CONFIG) {
            if let Scope::Process(pid) = entry.scope {
                self.servers.remove(&pid);
            }
        }
        let mut parsed = Observation { netns: std::mem::take(&mut self.parsed), ..Observation::default() };
        for entry in entries.iter_mut().filter(|entry| is_parsed_once(entry)) {
            place(&mut parsed, entry);
            if let Outcome::Ok(bytes) = &mut entry.outcome {
                *bytes = Vec::new();
            }
        }
        self.parsed = parsed.netns;
        self.entries.extend(entries);
        self.entries.sort_by_key(|entry| entry.at_us);
        self.let_repeated_go();
        let newest_us = self.entries.last().map_or(0, |entry| entry.at_us);
        self.let_go(newest_us.saturating_sub(self.keep_us));
    }

    /// Drops what a later entry repeats: of the connections at crowded ports only the newest list says more than the full reading that they were taken from. With ten
    /// thousand connections all lists of a window are megabytes, and most of the work of a search for a path. Of a server's configuration only what it read last counts.
    fn let_repeated_go(&mut self) {
        let mut later = BTreeSet::new();
        let mut stays: Vec<bool> =
            self.entries.iter().rev().map(|entry| !is_replaced(entry) || later.insert((entry.source.clone(), entry.scope))).collect();
        self.entries.retain(|_| stays.pop().unwrap_or(true));
    }

    /// Drops entries from before that time.
    fn let_go(&mut self, from_us: u64) {
        let mut last: BTreeMap<(&str, Scope), u64> = BTreeMap::new();
        let mut ended: BTreeMap<Scope, u64> = BTreeMap::new();
        for entry in self.entries.iter().take_while(|entry| entry.at_us < from_us) {
            last.insert((&entry.source, entry.scope), entry.at_us);
            if matches!(&entry.outcome, Outcome::Absent(why, _) if why == WHY_ENDED) {
                ended.insert(entry.scope, entry.at_us);
            }
        }
        let stays = |entry: &Entry| {
            let is_newest = || last.get(&(entry.source.as_str(), entry.scope)) == Some(&entry.at_us);
            // Another process may have its pid now.
            let is_gone = ended.get(&entry.scope).is_some_and(|ended_us| entry.at_us <= *ended_us);
            entry.at_us >= from_us || (!is_gone && (is_read_once(entry) || is_newest()))
        };
        let stays: Vec<bool> = self.entries.iter().map(stays).collect();
        for (entry, _) in self.entries.iter().zip(&stays).filter(|(entry, stays)| entry.source == CONFIG && !**stays) {
            if let Scope::Process(pid) = entry.scope {
                self.servers.remove(&pid);
            }
        }
        let mut stays = stays.into_iter();
        self.entries.retain(|_| stays.next().unwrap_or(true));
        let of_parsed = self.entries.iter().filter(|entry| is_parsed_once(entry));
        let scopes: BTreeSet<Scope> = of_parsed.map(|entry| entry.scope).collect();
        self.parsed.retain(|id, _| scopes.contains(&Scope::Netns(id.0)));
        for view in self.parsed.values_mut() {
            view.request_samples.let_go(from_us);
            view.awaited_samples.let_go(from_us);
            view.netstat.let_go(from_us);
            view.listeners.let_go(from_us);
        }
    }

    /// All entries, in the order of time.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The observation of these entries for a request and a window (microseconds since the observation began), without the sources named in `without`. What is not
    /// parsed each time is in it until [`Recent::take_back`].
    pub fn observation(&mut self, request: &Request, window_us: (u64, u64), without: &[&str]) -> Observation {
        let netns = std::mem::take(&mut self.parsed);
        let mut observation = Observation { request: request.clone(), window_us: Some(window_us), netns, ..Observation::default() };
        let put = |observation: &mut Observation, is_wanted: &dyn Fn(&str) -> bool| {
            self.entries.iter().filter(|entry| is_wanted(&entry.source)).for_each(|entry| place(observation, entry));
        };
        put(&mut observation, &|source| source == KERNEL);
        let parsed_for = Some((request.clone(), observation.kernel.last().map(|kernel| kernel.cores)));
        if self.parsed_for == parsed_for {
            observation.servers = std::mem::take(&mut self.servers);
        } else {
            self.servers.clear();
        }
        for entry in self.entries.iter().filter(|entry| entry.source == CONFIG) {
            let is_parsed = |pid: u32| observation.servers.get(&pid).is_some_and(|server| server.config.state() != SeriesState::Unread);
            if !matches!(entry.scope, Scope::Process(pid) if is_parsed(pid)) {
                place(&mut observation, entry);
            }
        }
        put(&mut observation, &|source| {
            ![KERNEL, CONFIG].contains(&source) && !PARSED_ONCE.contains(&source) && !without.contains(&source)
        });
        self.parsed_for = parsed_for;
        observation
    }

    /// Takes back what is not parsed each time from an observation that is not needed any more: of the same request, or its configurations are parsed anew.
    pub fn take_back(&mut self, observation: Observation) {
        for (id, view) in observation.netns {
            let NetnsView { request_samples, awaited_samples, netstat, listeners, .. } = view;
            self.parsed.insert(id, NetnsView { request_samples, awaited_samples, netstat, listeners, ..NetnsView::default() });
        }
        let configured = observation.servers.into_iter().filter(|(_, server)| server.config.state() != SeriesState::Unread);
        self.servers = configured
            .map(|(pid, ServerView { config, files, .. })| (pid, ServerView { config, files, ..ServerView::default() }))
            .collect();
    }
}

/// True for an entry in whose place the next one of its source and scope comes.
fn is_replaced(entry: &Entry) -> bool {
    entry.item == CROWD || entry.source == CONFIG
}

fn is_parsed_once(entry: &Entry) -> bool {
    PARSED_ONCE.contains(&entry.source.as_str())
}

/// True for entries of sources that are not read periodically.
fn is_read_once(entry: &Entry) -> bool {
    let cadence = source(&entry.source).map(|source| source.cadence);
    matches!(cadence, Some(Cadence::Once | Cadence::Ends)) && !REPEATED.contains(&entry.source.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_US: u64 = 1_000_000;

    fn entry(at_us: u64, source: &str, scope: Scope, text: &str) -> Entry {
        Entry { at_us, source: source.to_owned(), scope, item: String::new(), outcome: Outcome::Ok(text.as_bytes().to_vec()) }
    }

    fn times(recent: &Recent, source: &str) -> Vec<u64> {
        recent.entries().iter().filter(|entry| entry.source == source).map(|entry| entry.at_us / SECOND_US).collect()
    }

    #[test]
    fn old_readings_are_dropped_except_single_and_newest_ones() {
        let mut recent = Recent::new(Duration::from_secs(5));
        let netns = Scope::Netns(1);
        recent.add(vec![entry(0, "addresses", netns, ""), entry(0, "sockets", netns, ""), entry(SECOND_US, "sockets", netns, "")]);
        for second in 0..100_000 {
            recent.add(vec![entry(second * SECOND_US, "listeners", netns, ""), entry(second * SECOND_US, "listeners", netns, "")]);
            assert!(recent.entries().len() <= 17, "{} entries after {second} s", recent.entries().len());
        }
        // The newest reading before the window stays whole: it has the counters' values at the beginning.
        let expected: Vec<u64> = (99_993..100_000).flat_map(|second| [second, second]).collect();
        assert_eq!(times(&recent, "listeners"), expected);
        assert_eq!((times(&recent, "addresses"), times(&recent, "sockets")), (vec![0], vec![1]));
    }

    #[test]
    fn connections_that_several_readings_repeat_are_kept_once() {
        let mut recent = Recent::new(Duration::from_secs(5));
        let crowd = |at_us, netns| Entry { item: CROWD.to_owned(), ..entry(at_us, "sockets", Scope::Netns(netns), "") };
        for second in 0..20 {
            let at_us = second * SECOND_US;
            // Of the second namespace a full reading came last.
            let repeated = (1..=2).filter(|netns| *netns == 1 || second < 18).map(|netns| crowd(at_us, netns));
            recent.add((1..=2).map(|netns| entry(at_us, "sockets", Scope::Netns(netns), "")).chain(repeated).collect());
        }
        let kept = |netns| {
            let of = recent.entries().iter().filter(move |entry| entry.scope == Scope::Netns(netns));
            of.map(|entry| (entry.at_us / SECOND_US, entry.item.as_str())).collect::<Vec<_>>()
        };
        let mut expected: Vec<(u64, &str)> = (13..20).map(|second| (second, "")).collect();
        expected.push((19, CROWD));
        assert_eq!(kept(1), expected);
        let expected: Vec<(u64, &str)> = [(13, ""), (14, ""), (15, ""), (16, ""), (17, ""), (17, CROWD), (18, ""), (19, "")].to_vec();
        assert_eq!(kept(2), expected);
    }

    #[test]
    fn entries_of_an_ended_process_are_dropped_and_those_of_a_process_with_the_same_pid_stay() {
        let gone = |at_us, pid| Entry {
            outcome: Outcome::Absent(WHY_ENDED.to_owned(), None),
            ..entry(at_us, "process_cpu", Scope::Process(pid), "")
        };
        let mut recent = Recent::new(Duration::from_secs(5));
        for pid in [7, 8] {
            recent.add(vec![entry(0, "process_identity", Scope::Process(pid), ""), entry(0, "process_files", Scope::Process(pid), "")]);
            recent.add(vec![gone(SECOND_US, pid)]);
        }
        recent.add(vec![entry(5 * SECOND_US, "process_identity", Scope::Process(8), "")]);
        assert_eq!(times(&recent, "process_identity"), [0, 0, 5]);
        recent.add(vec![entry(9 * SECOND_US, "process_cpu", Scope::Process(8), "")]);
        recent.add(vec![entry(7 * SECOND_US, "listeners", Scope::Netns(1), "")]);
        let left: BTreeSet<Scope> = recent.entries().iter().map(|entry| entry.scope).collect();
        assert_eq!(left, BTreeSet::from([Scope::Netns(1), Scope::Process(8)]));
        assert_eq!(times(&recent, "process_identity"), [5]);
    }

    #[test]
    fn the_entries_make_an_observation_of_the_window() {
        let mut recent = Recent::new(Duration::from_secs(5));
        recent.add(vec![entry(1, "listeners", Scope::Netns(1), ""), entry(2, "sockets", Scope::Netns(2), "")]);
        let request = Request { port: 80, ..Request::default() };
        let observation = recent.observation(&request, (1, 2), &["sockets"]);
        assert_eq!((observation.request, observation.window_us), (request, Some((1, 2))));
        assert_eq!(observation.netns.keys().map(|id| id.0).collect::<Vec<_>>(), [1]);
    }

    /// The observation as it was made before: all entries parsed each time.
    fn anew(all: &[Entry], keep_us: u64, request: &Request) -> Observation {
        let mut recent = Recent { keep_us, entries: all.to_vec(), ..Recent::new(Duration::ZERO) };
        recent.entries.sort_by_key(|entry| entry.at_us);
        recent.let_repeated_go();
        let newest_us = recent.entries.last().map_or(0, |entry| entry.at_us);
        recent.let_go(newest_us.saturating_sub(keep_us));
        let mut observation = Observation { request: request.clone(), window_us: Some((0, 1)), ..Observation::default() };
        recent.entries.iter().for_each(|entry| place(&mut observation, entry));
        observation
    }

    #[test]
    fn what_is_parsed_once_is_the_same_as_what_is_parsed_each_second() {
        let config = "server nginx\nprefix /etc/nginx\nversion 1.22\n# configuration file /etc/nginx/nginx.conf:\nevents {}\nhttp { server { listen 80; } }\n";
        let gone =
            |at_us, pid| Entry { outcome: Outcome::Absent(WHY_ENDED.to_owned(), None), ..entry(at_us, CONFIG, Scope::Process(pid), "") };
        let (mut recent, mut all) = (Recent::new(Duration::from_secs(5)), Vec::new());
        for second in 0..40_u64 {
            let at_us = second * SECOND_US;
            let mut came: Vec<Entry> = (0..4)
                .filter(|_| !(10..20).contains(&second))
                .flat_map(|n| {
                    let one = |item: &str, text: &str| Entry {
                        item: item.to_owned(),
                        ..entry(at_us + n * 200_000, "requests", Scope::Netns(1), text)
                    };
                    let outcome = if second % 7 == 3 { Outcome::Failed("no".to_owned(), None) } else { Outcome::Ok(Vec::new()) };
                    [Entry { outcome, ..one("", "") }, one("sampling", "share 0.5\nlate_us 7\n")]
                })
                .collect();
            match second {
                2 | 14 => came.push(entry(at_us, CONFIG, Scope::Process(7), config)),
                8 => came.push(gone(at_us, 7)),
                11 => came.push(entry(at_us, "kernel", Scope::Host, "")),
                _ => {}
            }
            came.push(entry(at_us, "listeners", Scope::Netns(1), ""));
            if second % 5 != 4 {
                let text = format!("TcpExt: ListenDrops Other\nTcpExt: {second} 7\n");
                came.push(entry(at_us, "netstat", Scope::Netns(1 + second % 2), if second % 11 == 6 { "?" } else { &text }));
            }
            all.extend(came.clone());
            recent.add(came);
            let request = Request { port: if second < 30 { 80 } else { 81 }, ..Request::default() };
            for _ in 0..2 {
                let observation = recent.observation(&request, (0, 1), &[]);
                assert_eq!(observation, anew(&all, 5 * SECOND_US, &request), "second {second}");
                recent.take_back(observation);
            }
            let kept = recent.entries().iter().filter(|entry| is_parsed_once(entry));
            assert!(
                kept.into_iter().all(|entry| !matches!(&entry.outcome, Outcome::Ok(bytes) if !bytes.is_empty())),
                "their bytes are not kept"
            );
        }
    }

    #[test]
    fn a_configuration_that_is_read_again_replaces_the_one_before_and_no_other_is_parsed() {
        let config = |port: u16| {
            format!(
                "server nginx\nprefix /etc/nginx\nversion 1.22\n# configuration file /n.conf:\nevents {{}}\nhttp {{ server {{ listen {port}; }} }}\n"
            )
        };
        let mut recent = Recent::new(Duration::from_secs(5));
        recent.add((1..=50).map(|pid| entry(0, CONFIG, Scope::Process(pid), &config(80))).collect());
        let (request, mut texts) = (Request::default(), Vec::new());
        for second in 1..20 {
            if second % 5 == 0 {
                recent.add(vec![entry(second * SECOND_US, CONFIG, Scope::Process(7), &config(8000 + second as u16))]);
            }
            let observation = recent.observation(&request, (0, 1), &[]);
            let port = |pid| match observation.servers[&pid].nginx().unwrap().listens[0].address {
                chokepoint_model::observation::ListenerAddress::Tcp(_, port) => port,
                _ => 0,
            };
            assert_eq!((port(7), port(8)), (if second < 5 { 80 } else { 8000 + (second / 5 * 5) as u16 }, 80));
            texts.push(observation.servers.iter().map(|(pid, server)| (*pid, server.files.text.clone().unwrap())).collect::<Vec<_>>());
            recent.take_back(observation);
            assert_eq!(times(&recent, CONFIG).len(), 50, "none is kept beside the one that counts");
        }
        for pair in texts.windows(2) {
            let parsed = pair[0].iter().zip(&pair[1]).filter(|((_, before), (_, now))| !std::sync::Arc::ptr_eq(before, now));
            assert!(parsed.clone().count() <= 1 && parsed.into_iter().all(|((pid, _), _)| *pid == 7));
        }
    }
}
