//! The descriptors of processes that are read in a search for the holders of sockets: within bounds for each user. A table of descriptors costs its user nothing once more
//! processes share it (clone(2), CLONE_FILES), and each reading of it costs the search as much as the first.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::MaybeUninit;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chokepoint_foreign::Holder;
use rustix::fs::{RawDir, readlinkat_raw};

use super::stop::Stop;
use crate::root::Root;
use crate::text::process::files::{TARGET_BYTES, socket_inode};

/// Most descriptors of one process.
const LINKS_MAX: usize = 65_536;
/// Descriptors between two looks at the time and at whether to end: less than a millisecond.
const LOOK: usize = 256;
/// Buffer for names of one system call.
const NAMES_BYTES: usize = 8 << 10;
/// Most processes and users of which it is remembered that they were left out.
const LEFT_OUT_MAX: usize = 4_096;

/// Processes whose descriptors were not all read since this program started, by their users.
static LEFT_OUT: LazyLock<Mutex<LeftOut>> = LazyLock::new(Mutex::default);

type LeftOut = BTreeMap<Holder, BTreeSet<u32>>;

/// What a search takes or may take: descriptors, and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) links: usize,
    pub(super) time: Duration,
}

impl Amount {
    const NOTHING: Self = Self { links: 0, time: Duration::ZERO };

    fn plus(self, other: Self) -> Self {
        Self { links: self.links.saturating_add(other.links), time: self.time + other.time }
    }

    fn minus(self, other: Self) -> Self {
        Self { links: self.links.saturating_sub(other.links), time: self.time.saturating_sub(other.time) }
    }

    fn is_nothing(self) -> bool {
        self.links == 0 || self.time.is_zero()
    }
}

/// What the searches of a minute may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// For the processes of one user, other than root and this program's own.
    pub(super) user: Amount,
    /// For those of all such users together.
    pub(super) others: Amount,
    /// The time after which all of it is there again.
    pub(super) period: Duration,
}

impl Default for Bounds {
    /// A descriptor costs one to ten microseconds.
    fn default() -> Self {
        Self {
            user: Amount { links: 250_000, time: Duration::from_secs(2) },
            others: Amount { links: 1_000_000, time: Duration::from_secs(4) },
            period: Duration::from_secs(60),
        }
    }
}

/// What is left of the bounds.
#[derive(Debug)]
pub(super) struct Budget {
    bounds: Bounds,
    since: Instant,
    users: BTreeMap<Holder, Amount>,
    others: Amount,
}

impl Default for Budget {
    fn default() -> Self {
        Self::within(Bounds::default())
    }
}

impl Budget {
    pub(super) fn within(bounds: Bounds) -> Self {
        Self { bounds, since: Instant::now(), users: BTreeMap::new(), others: Amount::NOTHING }
    }

    /// Begins a search.
    pub(super) fn begin(&mut self) {
        if self.since.elapsed() >= self.bounds.period {
            *self = Self::within(self.bounds);
        }
    }

    /// What the reading of one process of this user may take: half of what is left, so that one table does not take the place of all others. Listeners have low numbers,
    /// which are read first. `None`: no bound.
    fn most(&self, user: Holder) -> Option<Amount> {
        if user.is_own() {
            return None;
        }
        let left = |of: Amount, taken: Amount| of.minus(taken);
        let (own, all) =
            (left(self.bounds.user, self.users.get(&user).copied().unwrap_or(Amount::NOTHING)), left(self.bounds.others, self.others));
        Some(Amount { links: own.links.min(all.links).div_ceil(2), time: own.time.min(all.time) / 2 })
    }

    fn spend(&mut self, user: Holder, taken: Amount) {
        if !user.is_own() {
            let of_user = self.users.entry(user).or_insert(Amount::NOTHING);
            *of_user = of_user.plus(taken);
            self.others = self.others.plus(taken);
        }
    }

    /// Reads the descriptors of a process; none if it has ended or is not accessible.
    pub(super) fn read(&mut self, root: &Root, process: Candidate, stop: &Stop) -> Table {
        let Candidate { pid, user, .. } = process;
        let most = self.most(user);
        if most.is_some_and(Amount::is_nothing) {
            leave_out(user, pid);
            return Table::default();
        }
        let began = Instant::now();
        let table = read(root, pid, most, stop);
        self.spend(user, Amount { links: table.links, time: began.elapsed() });
        if table.is_cut {
            leave_out(user, pid);
        }
        table
    }
}

/// A process to be searched.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) pid: u32,
    user: Holder,
    /// The size of its table, if the kernel tells it (Linux 6.2).
    size: u64,
}

impl Candidate {
    pub(super) fn of(root: &Root, pid: u32) -> Self {
        let user = Holder::of_process(&root.path("proc"), pid);
        let size = root.metadata(&format!("proc/{pid}/fd")).map_or(0, |directory| std::os::unix::fs::MetadataExt::size(&directory));
        Self { pid, user, size }
    }

    /// Root's and this program's own come first, then small tables.
    pub(super) fn rank(&self) -> (bool, u64) {
        (!self.user.is_own(), self.size)
    }
}

/// What was read of a table.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// The inode of each descriptor that is a socket.
    pub(super) sockets: Vec<u64>,
    /// Descriptors that were read.
    pub(super) links: usize,
    /// All were.
    pub(super) is_whole: bool,
    /// The bound was reached.
    is_cut: bool,
}

fn read(root: &Root, pid: u32, most: Option<Amount>, stop: &Stop) -> Table {
    let (mut table, began) = (Table::default(), Instant::now());
    let Ok(directory) = root.open(&format!("proc/{pid}/fd")) else { return Table { is_whole: true, ..table } };
    let mut names = [MaybeUninit::uninit(); NAMES_BYTES];
    let mut names = RawDir::new(&directory, &mut names);
    while let Some(Ok(entry)) = names.next() {
        let name = entry.file_name();
        if name.to_bytes().starts_with(b".") {
            continue; // The directory itself and its parent.
        }
        let is_over = |most: &Amount| table.links >= most.links || table.links % LOOK == LOOK - 1 && began.elapsed() >= most.time;
        if table.links >= LINKS_MAX || most.as_ref().is_some_and(is_over) {
            table.is_cut = true;
            return table;
        }
        if table.links % LOOK == 0 && stop.is_set() {
            return table;
        }
        table.links += 1;
        if let Ok((target, _)) = readlinkat_raw(&directory, name, &mut [MaybeUninit::uninit(); TARGET_BYTES]) {
            table.sockets.extend(std::str::from_utf8(target).ok().and_then(socket_inode));
        }
    }
    Table { is_whole: true, ..table }
}

fn leave_out(user: Holder, pid: u32) {
    let mut all = LEFT_OUT.lock().unwrap_or_else(PoisonError::into_inner);
    if all.contains_key(&user) || all.len() < LEFT_OUT_MAX {
        let pids = all.entry(user).or_default();
        if pids.len() < LEFT_OUT_MAX {
            pids.insert(pid);
        }
    }
}

/// Whose descriptors were not all read in the searches for the holders of sockets since this program started: a sentence for each user.
pub fn descriptors_left_out() -> Vec<String> {
    let all = LEFT_OUT.lock().unwrap_or_else(PoisonError::into_inner);
    all.iter().map(|(user, pids)| sentence(*user, pids.len())).collect()
}

fn sentence(whose: Holder, processes: usize) -> String {
    let (noun, at_least) = (if processes == 1 { "process" } else { "processes" }, if processes < LEFT_OUT_MAX { "" } else { "at least " });
    format!(
        "not all descriptors of {at_least}{processes} {noun} of {whose} were read: the search for who holds a socket would take too long"
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Processes of a made-up tree, each with the number of its descriptors. The first is a socket of the process's own number.
    fn tree(processes: &[(u32, u32, u32)]) -> (tempfile::TempDir, Root) {
        let tree = tempfile::tempdir().unwrap();
        for (pid, user, descriptors) in processes {
            let process = tree.path().join(format!("proc/{pid}"));
            std::fs::create_dir_all(process.join("fd")).unwrap();
            let ids = format!("{user}\t0\t0\t0");
            std::fs::write(process.join("status"), format!("Uid:\t{ids}\nGid:\t{ids}\nGroups:\t\nCapEff:\t0\n")).unwrap();
            for number in 0..*descriptors {
                symlink(format!("socket:[{pid}]"), process.join("fd").join(number.to_string())).unwrap();
            }
        }
        let root = Root::new(tree.path());
        (tree, root)
    }

    fn bounds(links: usize) -> Bounds {
        let time = Duration::from_secs(600);
        Bounds { user: Amount { links, time }, others: Amount { links: links * 2, time }, period: time }
    }

    #[test]
    fn the_descriptors_of_a_user_are_bounded_and_those_of_others_are_read() {
        let mut processes: Vec<(u32, u32, u32)> = (100..130).map(|pid| (pid, 61_001, 100)).collect();
        processes.extend([(200, 0, 300), (201, 61_002, 50), (99, 61_001, 3)]);
        let (_tree, root) = tree(&processes);
        let mut budget = Budget::within(bounds(400));
        let mut candidates: Vec<Candidate> = processes.iter().map(|(pid, ..)| Candidate::of(&root, *pid)).collect();
        candidates.sort_by_key(Candidate::rank);
        assert_eq!(candidates[0].pid, 200, "root's first");
        let read: BTreeMap<u32, usize> =
            candidates.iter().map(|process| (process.pid, budget.read(&root, *process, &Stop::default()).links)).collect();
        let of_user: usize = (99..130).filter_map(|pid| read.get(&pid)).sum();
        assert!((300..=400).contains(&of_user), "{read:?}");
        assert_eq!((read[&200], read[&201]), (300, 50));
        let told = descriptors_left_out();
        assert!(told.iter().any(|told| told.contains("of user 61001 were read")), "{told:?}");
        assert!(!told.iter().any(|told| told.contains("user 61002")), "{told:?}");
        budget.begin();
        assert!(budget.most(Holder::User(61_001)).is_some_and(Amount::is_nothing), "not again within the period");
        assert_eq!(
            sentence(Holder::User(7), 2),
            "not all descriptors of 2 processes of user 7 were read: the search for who holds a socket would take too long"
        );
    }

    #[test]
    fn all_other_users_together_are_bounded() {
        let processes: Vec<(u32, u32, u32)> = (100..160).map(|pid| (pid, 62_000 + pid, 40)).collect();
        let (_tree, root) = tree(&processes);
        let mut budget = Budget::within(bounds(200));
        let links: usize = processes.iter().map(|(pid, ..)| budget.read(&root, Candidate::of(&root, *pid), &Stop::default()).links).sum();
        assert!((300..=400).contains(&links), "{links}");
    }

    #[test]
    fn a_search_ends_within_a_table() {
        let (_tree, root) = tree(&[(100, 0, 2_000)]);
        let looks = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let stop = Stop::when(move || looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= 2);
        let table = Budget::default().read(&root, Candidate::of(&root, 100), &stop);
        assert_eq!((table.sockets.len(), table.links, table.is_whole), (2 * LOOK, 2 * LOOK, false));
    }

    #[test]
    fn the_time_of_a_user_is_bounded() {
        let (_tree, root) = tree(&[(100, 63_001, 2_000)]);
        let mut narrow = bounds(1 << 20);
        narrow.user.time = Duration::from_nanos(2);
        let table = Budget::within(narrow).read(&root, Candidate::of(&root, 100), &Stop::default());
        assert!(table.links < LOOK && !table.is_whole, "{table:?}");
    }
}
