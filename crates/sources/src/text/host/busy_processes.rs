//! The processes of the host that use most CPU time: who takes the cores that a server needs.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::str::FromStr;

use chokepoint_model::observation::{BusyProcess, CgroupId, CgroupVersion, Observation, RealTime, RealTimePolicy};
use chokepoint_recording::{Entry, Outcome};

use super::cpu;
use crate::root::{Root, reading_of};
use crate::table::{Cadence, Items, Phase, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::text::cgroup::mounts::Mounts;
use crate::text::cgroup::process;
use crate::text::error::{ParseError, TextLine, lines, whole};
use crate::text::plain::{one_line, one_word};
use crate::text::process::files::{TARGET_BYTES, socket_inode};
use crate::text::process::stat::{self, Stat};

const NAME: &str = "busy_processes";
/// Most processes of a host whose use is read: some 10 us each.
const PROCESSES_MAX: usize = 8_192;
/// The processes that are named: those that used most since the last reading.
const NAMED_MAX: usize = 12;
/// Ancestors of each: enough for what a shell of a service runs.
const PARENTS_MAX: usize = 8;
/// Descriptors of each that are looked at. A program that makes requests has its connections among the first ones.
const DESCRIPTORS_MAX: usize = 128;
/// Least busy share of some core since the last reading. Of idle cores nobody takes anything.
const BUSY_SHARE_MIN: f64 = 0.75;
/// The policy of programs that run only on cores that nobody else wants (include/uapi/linux/sched.h).
const SCHED_IDLE: u32 = 5;
const IDLE: &str = "idle";
/// The policies of programs that run before all others (the same; SCHED_FIFO, SCHED_RR, SCHED_DEADLINE), by their names.
const REALTIME: [(u32, RealTimePolicy, &str); 3] =
    [(1, RealTimePolicy::Fifo, "fifo"), (2, RealTimePolicy::RoundRobin, "rr"), (6, RealTimePolicy::Deadline, "deadline")];
const TASK_GROUPS: &str = "task_groups";
const STATUS_BYTES_MAX: usize = 16 << 10;
const CGROUP_BYTES_MAX: usize = 8 << 10;

/// Once a second while a core is busy: a line for each of the busiest processes, none the first time. "PID START GROWN CORE UID NICE SESSION PARENTS SOCKETS CGROUP NAME": clock ticks used since
/// the last reading, with those of children that ended, the core that it ran on last, its nice value, how its session is scheduled ("NICE,NUMBER,CLASS,GROUP"), ancestors, the inodes of its
/// TCP sockets ("?" where they cannot be read), and its control group.
pub(crate) const BUSY_PROCESSES: Source =
    Source { name: NAME, scope: ScopeKind::Host, cadence: Cadence::Slow, needs: None, read, put, redact: Redact::Text };

/// What the last reading saw.
#[derive(Debug, Default)]
struct Seen {
    /// By core: busy and all ticks.
    cores: BTreeMap<u32, (u64, u64)>,
    /// By pid and start.
    used: BTreeMap<(u32, u64), Use>,
}

/// The use of a process until then.
#[derive(Debug, Default, Clone, Copy)]
struct Use {
    ticks: u64,
    reaped: u64,
    parent: u32,
}

fn read(context: &ReadContext<'_>) -> Items {
    // This program's own use is told elsewhere.
    let own = context.root.is_live().then(std::process::id);
    let before = context.notes.get(NAME).map(|note| Seen::from_note(&note)).unwrap_or_default();
    let cores = cores(context.root);
    if context.phase != Phase::First && !are_busy(&before.cores, &cores) {
        context.notes.set(NAME, Seen { cores, used: before.used }.to_note());
        return Vec::new();
    }
    let pids = match context.root.pids() {
        Ok(pids) if pids.len() > PROCESSES_MAX => {
            return only_item(Outcome::Absent(format!("more than {PROCESSES_MAX} processes: too many to read"), None));
        }
        Ok(pids) => pids,
        Err(lack) => return only_item(lack),
    };
    let all: BTreeMap<u32, Stat> = pids.into_iter().filter_map(|pid| Some((pid, stat_of(context.root, pid)?))).collect();
    let used = all.values().map(|stat| ((stat.pid, stat.start_ticks), use_of(stat))).collect();
    let now = Seen { cores, used };
    context.notes.set(NAME, now.to_note());
    let mut text = String::new();
    if context.phase != Phase::First {
        let grown = before.grown(&now);
        let grown = |stat: &Stat| grown.get(&(stat.pid, stat.start_ticks)).copied().unwrap_or(0);
        let is_own = |stat: &Stat| own.is_some_and(|own| stat.pid == own || stat.parent == own);
        let mut busiest: Vec<&Stat> = all.values().filter(|stat| grown(stat) > 0 && !is_own(stat)).collect();
        busiest.sort_by_key(|stat| (std::cmp::Reverse(grown(stat)), stat.pid));
        busiest.iter().take(NAMED_MAX).for_each(|stat| line(context, &all, stat, grown(stat), &mut text));
    }
    only_item(Outcome::Ok(text.into_bytes()))
}

fn use_of(stat: &Stat) -> Use {
    Use { ticks: stat.user_ticks.saturating_add(stat.system_ticks), reaped: stat.reaped_ticks, parent: stat.parent }
}

fn stat_of(root: &Root, pid: u32) -> Option<Stat> {
    let Outcome::Ok(bytes) = root.read(&format!("proc/{pid}/stat"), stat::BYTES_MAX, None) else { return None };
    stat::parse(TextLine::new(NAME, 1), &bytes).ok()
}

fn cores(root: &Root) -> BTreeMap<u32, (u64, u64)> {
    let Outcome::Ok(bytes) = root.read("proc/stat", cpu::BYTES_MAX, None) else { return BTreeMap::new() };
    let times = cpu::parse(&bytes).unwrap_or_default();
    times.cores.iter().map(|(core, times)| (*core, (times.busy(), times.total()))).collect()
}

/// True if a core was busy in between, or if that is not known.
fn are_busy(before: &BTreeMap<u32, (u64, u64)>, now: &BTreeMap<u32, (u64, u64)>) -> bool {
    let is_busy = |(core, (busy, total)): (&u32, &(u64, u64))| {
        before.get(core).is_none_or(|(busy_then, total_then)| {
            busy.saturating_sub(*busy_then) as f64 >= BUSY_SHARE_MIN * total.saturating_sub(*total_then) as f64
        })
    };
    now.is_empty() || now.iter().any(is_busy)
}

fn line(context: &ReadContext<'_>, all: &BTreeMap<u32, Stat>, stat: &Stat, grown: u64, text: &mut String) {
    let root = context.root;
    let mut parents: Vec<String> = Vec::new();
    let mut next = stat.parent;
    while let Some(parent) = all.get(&next).filter(|_| parents.len() < PARENTS_MAX) {
        parents.push(parent.pid.to_string());
        next = parent.parent;
    }
    let pid = stat.pid;
    let uid = uid(root, pid).map_or_else(|| "?".to_owned(), |uid| uid.to_string());
    let core = stat.core.map_or_else(|| "?".to_owned(), |core| core.to_string());
    let cgroup = cgroup(root, pid);
    let scheduled = scheduled(context, pid, stat, cgroup.as_ref());
    let list = |parts: Vec<String>| if parts.is_empty() { "-".to_owned() } else { parts.join(",") };
    let sockets = sockets(root, pid).map_or_else(|| "?".to_owned(), |all| list(all.iter().map(u64::to_string).collect()));
    let (start, nice, parents) = (stat.start_ticks, stat.nice, list(parents));
    let (cgroup, name) = (one_word(cgroup.as_ref().map_or("", |cgroup| &cgroup.path)), one_line(&stat.comm));
    // Writing to a text cannot fail.
    let _ = writeln!(text, "{pid} {start} {grown} {core} {uid} {nice} {scheduled} {parents} {sockets} {cgroup} {name}");
}

/// The effective user.
fn uid(root: &Root, pid: u32) -> Option<u32> {
    let Outcome::Ok(bytes) = root.read(&format!("proc/{pid}/status"), STATUS_BYTES_MAX, None) else { return None };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    text.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// "NICE,NUMBER,CLASS,GROUP": the nice value and the number of its session where that is scheduled as one ("?" where not), its class ("other", "idle", or "fifo:50", "rr:10", "deadline:0"), and the control group with a share of its own.
fn scheduled(context: &ReadContext<'_>, pid: u32, stat: &Stat, cgroup: Option<&CgroupId>) -> String {
    let group = cgroup.map_or_else(|| Some("/".to_owned()), |cgroup| task_group(context, cgroup));
    // Sessions share what the root's own processes have (kernel/sched/autogroup.h, task_wants_autogroup).
    let session = if group.as_deref() == Some("/") { session(context.root, pid) } else { None };
    let (number, nice) = session.map_or_else(|| ("?".to_owned(), "?".to_owned()), |(number, nice)| (number.to_string(), nice.to_string()));
    let realtime = REALTIME.iter().find(|(policy, ..)| stat.policy == Some(*policy));
    let class = match realtime {
        Some((.., name)) => format!("{name}:{}", stat.realtime_priority.unwrap_or(0)),
        None if stat.policy == Some(SCHED_IDLE) => IDLE.to_owned(),
        None => "other".to_owned(),
    };
    format!("{nice},{number},{class},{}", group.map_or_else(|| "?".to_owned(), |group| one_word(&group)))
}

/// The number and the nice value of a process's session (sched(7), autogroup: "/autogroup-25 nice 0"). `None` where sessions are not scheduled as groups.
fn session(root: &Root, pid: u32) -> Option<(u64, i32)> {
    let text = |file: &str| match root.read(file, STATUS_BYTES_MAX, None) {
        Outcome::Ok(bytes) => String::from_utf8(bytes).ok(),
        _ => None,
    };
    let is_on = text("proc/sys/kernel/sched_autogroup_enabled")?.trim_end() == "1";
    let line = text(&format!("proc/{pid}/autogroup")).filter(|_| is_on)?;
    let (number, nice) = line.trim_end().strip_prefix("/autogroup-")?.split_once(" nice ")?;
    Some((number.parse().ok()?, nice.parse().ok()?))
}

/// The control group whose limits and share of CPU time a process is under. `None` where there are none.
fn cgroup(root: &Root, pid: u32) -> Option<CgroupId> {
    let Outcome::Ok(bytes) = root.read(&format!("proc/{pid}/cgroup"), CGROUP_BYTES_MAX, None) else { return None };
    CgroupId::of_cpu(&process::parse(&bytes).ok()?)
}

/// The nearest level with a share of its own: of version 2 one whose parent hands the controller on (Documentation/admin-guide/cgroup-v2.rst, "Enabling and Disabling"). `None` if
/// its directory cannot be seen.
fn task_group(context: &ReadContext<'_>, own: &CgroupId) -> Option<String> {
    if own.version == CgroupVersion::V1 {
        return Some(own.path.clone());
    }
    let mut known = context.notes.kept::<BTreeMap<String, Option<String>>>(TASK_GROUPS);
    if let Some(group) = known.get(&own.path) {
        return group.clone();
    }
    // Another process's own mounts could show anything.
    let mounts = Mounts::read(context.root, 1);
    let mut group = None;
    for level in own.levels() {
        let Some(dir) = mounts.dir(&level, "cpu") else { break };
        if level.path == "/" || matches!(context.root.read(&format!("{dir}/cpu.weight"), STATUS_BYTES_MAX, None), Outcome::Ok(_)) {
            group = Some(level.path);
            break;
        }
    }
    if known.len() < PROCESSES_MAX {
        known.insert(own.path.clone(), group.clone());
        context.notes.keep(TASK_GROUPS, &known);
    }
    group
}

/// The inodes of its TCP sockets among its first descriptors. `None` without the right to see them.
fn sockets(root: &Root, pid: u32) -> Option<Vec<u64>> {
    let directory = format!("proc/{pid}/fd");
    let (names, _) = root.names(&directory, DESCRIPTORS_MAX, None).ok()?;
    let mut inodes = Vec::new();
    for name in names.iter().filter_map(|name| name.to_str()) {
        let target = match root.link(&format!("{directory}/{name}"), None) {
            Outcome::Ok(target) if target.len() <= TARGET_BYTES => target,
            Outcome::Ok(_) | Outcome::Absent(..) => continue,
            Outcome::Failed(..) => return None,
        };
        let inode = std::str::from_utf8(&target).ok().and_then(socket_inode);
        inodes.extend(inode.filter(|_| is_tcp(&root.path(&format!("{directory}/{name}")))));
    }
    Some(inodes)
}

/// True unless the socket is known to be of another protocol (net/socket.c, sockfs_xattr_get: what `lsof` reads).
fn is_tcp(path: &std::path::Path) -> bool {
    let mut protocol = [0; 16];
    let length = rustix::fs::getxattr(path, "system.sockprotoname", &mut protocol).ok();
    length.and_then(|length| protocol.get(..length)).is_none_or(|name| name.starts_with(b"TCP"))
}

impl Seen {
    /// What each process used since this reading, itself and by children that ended. What those had used before counts for the time in which they did.
    fn grown(&self, now: &Self) -> BTreeMap<(u32, u64), u64> {
        let before = |id: &(u32, u64)| self.used.get(id).copied().unwrap_or_default();
        let mut reaped: BTreeMap<(u32, u64), u64> =
            now.used.iter().map(|(id, one)| (*id, one.reaped.saturating_sub(before(id).reaped))).collect();
        // The children before their parents: those add what they took over from them.
        let mut ended: Vec<(&(u32, u64), &Use)> = self.used.iter().filter(|(id, _)| !now.used.contains_key(id)).collect();
        ended.sort_by_key(|((pid, start), _)| std::cmp::Reverse((*start, *pid)));
        for (_, one) in ended {
            if let Some(taken_over) = self.reaper(one, &reaped).and_then(|id| reaped.get_mut(&id)) {
                *taken_over -= one.ticks + one.reaped;
            }
        }
        let grown = |(id, one): (&(u32, u64), &Use)| {
            let own = one.ticks.saturating_sub(before(id).ticks);
            (*id, own.saturating_add(reaped.get(id).copied().unwrap_or(0)))
        };
        now.used.iter().map(grown).collect()
    }

    /// The living process that took over what an ended one had used: its parent, or the nearest ancestor whose counter rose by as much, since an orphan goes to one of these or to
    /// the first process (PR_SET_CHILD_SUBREAPER(2const)).
    fn reaper(&self, ended: &Use, reaped: &BTreeMap<(u32, u64), u64>) -> Option<(u32, u64)> {
        let of_pid = |pid: u32| reaped.range((pid, 0)..=(pid, u64::MAX)).next_back().map(|(id, _)| *id);
        let rose = |id: &(u32, u64)| reaped.get(id).is_some_and(|ticks| *ticks >= ended.ticks + ended.reaped);
        let mut next = ended.parent;
        for _ in 0..PARENTS_MAX {
            if let Some(id) = of_pid(next).filter(rose) {
                return Some(id);
            }
            next = self.used.range((next, 0)..=(next, u64::MAX)).next_back().map_or(1, |(_, one)| one.parent);
        }
        of_pid(1).filter(rose)
    }

    fn to_note(&self) -> Vec<u8> {
        let mut text = String::new();
        for (core, (busy, total)) in &self.cores {
            let _ = writeln!(text, "c {core} {busy} {total}");
        }
        for ((pid, start), Use { ticks, reaped, parent }) in &self.used {
            let _ = writeln!(text, "p {pid} {start} {ticks} {reaped} {parent}");
        }
        text.into_bytes()
    }

    fn from_note(note: &[u8]) -> Self {
        let mut seen = Self::default();
        for line in String::from_utf8_lossy(note).lines() {
            let mut fields = line.split(' ');
            let kind = fields.next();
            let numbers: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
            let id = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
            match (kind, numbers.as_slice()) {
                (Some("c"), [core, busy, total]) => drop(seen.cores.insert(id(*core), (*busy, *total))),
                (Some("p"), [pid, start, ticks, reaped, parent]) => {
                    let one = Use { ticks: *ticks, reaped: *reaped, parent: id(*parent) };
                    seen.used.insert((id(*pid), *start), one);
                }
                _ => (),
            }
        }
        seen
    }
}

const EXPECTED: &str = "PID START GROWN CORE UID NICE SESSION PARENTS SOCKETS CGROUP NAME";

/// A number, or "?" where it could not be read.
fn known<T: FromStr>(place: TextLine, value: &str) -> Result<Option<T>, ParseError> {
    if value == "?" { Ok(None) } else { place.number(EXPECTED, Some(value)).map(Some) }
}

/// Numbers with commas between them, or "-" for none.
fn listed<T: FromStr>(place: TextLine, value: &str) -> Result<Vec<T>, ParseError> {
    if value == "-" { Ok(Vec::new()) } else { value.split(',').map(|part| place.number(EXPECTED, Some(part))).collect() }
}

/// "fifo:50"; `None` for every other class.
fn realtime(class: &str) -> Option<RealTime> {
    let (name, priority) = class.split_once(':')?;
    let (_, policy, _) = REALTIME.iter().find(|(.., known)| *known == name)?;
    Some(RealTime { policy: *policy, priority: priority.parse().ok()? })
}

pub(crate) fn parse(bytes: &[u8]) -> Result<Vec<BusyProcess>, ParseError> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let text = whole(NAME, bytes)?;
    let one = |(place, line): (TextLine, &str)| {
        let mut fields = line.splitn(11, ' ');
        let mut field = || fields.next().ok_or_else(|| place.expected(EXPECTED, line));
        let (pid, start, grown) = (field()?, field()?, field()?);
        let (core, uid, nice, session) = (field()?, field()?, field()?, field()?);
        // Older recordings have the nice value of the session alone.
        let mut scheduled = session.splitn(4, ',');
        let (session_nice, session, class, group) =
            (scheduled.next().unwrap_or("?"), scheduled.next().unwrap_or("?"), scheduled.next(), scheduled.next());
        let (parents, sockets, cgroup, name) = (field()?, field()?, field()?, field()?);
        Ok(BusyProcess {
            pid: place.number(EXPECTED, Some(pid))?,
            start_ticks: place.number(EXPECTED, Some(start))?,
            grown_ticks: place.number(EXPECTED, Some(grown))?,
            core: known(place, core)?,
            uid: known(place, uid)?,
            nice: place.number(EXPECTED, Some(nice))?,
            is_idle_class: class == Some(IDLE),
            realtime: class.and_then(realtime),
            session: known(place, session)?,
            session_nice: known(place, session_nice)?,
            task_group: group.filter(|path| *path != "?").map(str::to_owned),
            parents: listed(place, parents)?,
            sockets: if sockets == "?" { None } else { Some(listed(place, sockets)?) },
            cgroup: Some(cgroup).filter(|path| *path != "-").map(str::to_owned),
            comm: name.to_owned(),
        })
    };
    lines(NAME, &text).map(one).collect()
}

fn put(observation: &mut Observation, entry: &Entry) {
    observation.busy_processes.push(entry.at_us, reading_of(&entry.outcome, parse));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::table::Notes;

    fn stat(pid: u32, comm: &str, parent: u32, user: u64, reaped: u64) -> String {
        format!(
            "{pid} ({comm}) R {parent} 1 1 0 -1 4194560 0 0 0 0 {user} 5 {reaped} 0 20 0 1 0 77 0 0 18446744073709551615 1 1 1 0 0 0 0 0 0 0 0 0 17 1 0 0\n"
        )
    }

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn write(&self, file: &str, text: &str) {
            let path = self.0.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn look(&self, notes: &Notes, phase: Phase) -> Option<Vec<BusyProcess>> {
            let root = Root::new(self.0.path());
            let items = read(&ReadContext::new(&root, chokepoint_recording::Scope::Host, phase, notes));
            let (_, outcome) = items.into_iter().next()?;
            let Outcome::Ok(bytes) = outcome else { panic!("{outcome:?}") };
            Some(parse(&bytes).unwrap())
        }
    }

    #[test]
    fn the_busiest_come_first_and_idle_cores_cost_no_look() {
        let (tree, notes) = (Tree::new(), Notes::default());
        let cores = |busy: u64, idle: u64| tree.write("proc/stat", &format!("cpu0 {busy} 0 0 {idle}\ncpu1 0 0 0 {}\n", busy + idle));
        cores(100, 100);
        tree.write("proc/7/stat", &stat(7, "old server", 1, 90_000, 0));
        tree.write("proc/8/stat", &stat(8, "bash", 7, 10, 0));
        tree.write("proc/9/stat", &stat(9, "xz", 8, 20, 0));
        tree.write("proc/9/status", "Name:\txz\nUid:\t1000\t1001\t1000\t1000\n");
        tree.write("proc/9/autogroup", "/autogroup-25 nice -5\n");
        tree.write("proc/9/cgroup", "3:cpu,cpuacct:/backup\n0::/\n");
        assert_eq!(tree.look(&notes, Phase::First), Some(Vec::new()), "nothing to compare with");
        cores(110, 190);
        assert_eq!(tree.look(&notes, Phase::Running), None, "the cores were idle");
        cores(205, 195);
        tree.write("proc/8/stat", &stat(8, "bash", 7, 10, 30));
        tree.write("proc/9/stat", &stat(9, "xz", 8, 110, 0));
        let busiest = tree.look(&notes, Phase::Running).unwrap();
        let grown: Vec<(u32, u64)> = busiest.iter().map(|one| (one.pid, one.grown_ticks)).collect();
        assert_eq!(grown, [(9, 90), (8, 30)], "what did not grow is left out");
        let xz = &busiest[0];
        assert_eq!((xz.comm.as_str(), xz.core, xz.uid, xz.cgroup.as_deref()), ("xz", Some(1), Some(1001), Some("/backup")));
        assert_eq!((xz.parents.as_slice(), xz.sockets.as_deref()), ([8, 7].as_slice(), None), "the descriptors could not be read");
        assert_eq!((xz.nice, xz.is_idle_class, xz.session_nice), (0, false, None), "a group of its own");
        assert_eq!((busiest[1].uid, busiest[1].session), (None, None), "nothing says that sessions are groups");
    }

    /// What is read of process 9 in a tree with these files.
    fn read_of(files: &[(&str, &str)]) -> BusyProcess {
        let (tree, notes) = (Tree::new(), Notes::default());
        tree.write("proc/stat", "cpu0 1 0 0 0\n");
        tree.look(&notes, Phase::First).unwrap();
        tree.write("proc/9/stat", &stat(9, "xz", 1, 20, 0).replace("17 1 0 0", "17 1 0 5"));
        files.iter().for_each(|(file, text)| tree.write(file, text));
        tree.look(&notes, Phase::Running).unwrap().remove(0)
    }

    #[test]
    fn a_session_counts_only_where_it_is_a_group() {
        let (on, session) = (("proc/sys/kernel/sched_autogroup_enabled", "1\n"), ("proc/9/autogroup", "/autogroup-25 nice -5\n"));
        let of = |files: &[(&str, &str)]| {
            let read = read_of(files);
            assert!(read.is_idle_class);
            (read.session, read.session_nice, read.task_group)
        };
        let root = Some("/".to_owned());
        assert_eq!(of(&[on, session]), (Some(25), Some(-5), root.clone()));
        assert_eq!(of(&[("proc/sys/kernel/sched_autogroup_enabled", "0\n"), session]), (None, None, root.clone()));
        assert_eq!(of(&[session]), (None, None, root.clone()));
        assert_eq!(of(&[on, session, ("proc/9/cgroup", "3:cpu,cpuacct:/backup\n")]), (None, None, Some("/backup".into())));
        assert_eq!(of(&[on, session, ("proc/9/cgroup", "3:cpu,cpuacct:/\n")]), (Some(25), Some(-5), root.clone()));
        // Version 2: the controller may end above the process's own group.
        let (own, mount) = (("proc/9/cgroup", "0::/a/b/c\n"), ("proc/1/mountinfo", "30 24 0:26 / /cg rw - cgroup2 cgroup2 rw\n"));
        assert_eq!(of(&[on, session, own]), (None, None, None), "no mount is seen");
        assert_eq!(of(&[on, session, own, mount]), (Some(25), Some(-5), root));
        let weights = [("proc/1/root/cg/a/cpu.weight", "100\n"), ("proc/1/root/cg/a/b/cpu.weight", "100\n")];
        assert_eq!(of(&[on, session, own, mount, weights[0], weights[1]]), (None, None, Some("/a/b".into())));
    }

    #[test]
    fn a_real_time_program_is_read_with_its_priority() {
        let of = |policy: u32, priority: u32| {
            let (tree, notes) = (Tree::new(), Notes::default());
            tree.write("proc/stat", "cpu0 1 0 0 0\n");
            tree.look(&notes, Phase::First).unwrap();
            tree.write("proc/9/stat", &stat(9, "xz", 1, 20, 0).replace("17 1 0 0", &format!("17 1 {priority} {policy}")));
            let read = tree.look(&notes, Phase::Running).unwrap().remove(0);
            (read.realtime, read.is_idle_class)
        };
        let with = |policy, priority| Some(RealTime { policy, priority });
        assert_eq!(of(1, 50), (with(RealTimePolicy::Fifo, 50), false));
        assert_eq!(of(2, 10), (with(RealTimePolicy::RoundRobin, 10), false));
        assert_eq!(of(6, 0), (with(RealTimePolicy::Deadline, 0), false));
        assert_eq!(of(0, 0), (None, false));
        assert_eq!(of(3, 0), (None, false), "SCHED_BATCH");
        assert_eq!(of(5, 0), (None, true));
        for damaged in ["fifo:", "fifo:x", "fifo", ":5", "other:5", "fifo:99999999999"] {
            assert_eq!(realtime(damaged), None, "{damaged}");
        }
    }

    #[test]
    fn lines_of_older_recordings_are_read() {
        let one = parse(b"9 77 20 1 1000 5 -5 8,7 - /a b c\n").unwrap().remove(0);
        assert_eq!((one.session_nice, one.session, one.is_idle_class, one.task_group), (Some(-5), None, false, None));
        assert_eq!(one.comm, "b c");
    }

    #[test]
    fn a_child_counts_once() {
        let (tree, notes) = (Tree::new(), Notes::default());
        tree.write("proc/stat", "cpu0 100 0 0 0\n");
        tree.write("proc/8/stat", &stat(8, "make", 1, 10, 50));
        tree.write("proc/9/stat", &stat(9, "cc1", 8, 400, 0));
        tree.look(&notes, Phase::First).unwrap();
        // It ends after 20 more ticks; its 405 were counted before. Another one came and went in between: 7.
        tree.write("proc/stat", "cpu0 200 0 0 0\n");
        std::fs::remove_dir_all(tree.0.path().join("proc/9")).unwrap();
        tree.write("proc/8/stat", &stat(8, "make", 1, 10, 50 + 425 + 7));
        let busiest = tree.look(&notes, Phase::Running).unwrap();
        assert_eq!((busiest.len(), busiest[0].grown_ticks), (1, 27));
    }

    #[test]
    fn names_cannot_forge_a_line() {
        let (tree, notes) = (Tree::new(), Notes::default());
        tree.write("proc/stat", "cpu0 1 0 0 0\n");
        tree.look(&notes, Phase::First).unwrap();
        tree.write("proc/9/stat", &stat(9, "a\n1 1 1 1 1 0 0 - - - b", 1, 20, 0));
        let busiest = tree.look(&notes, Phase::Running).unwrap();
        assert_eq!((busiest.len(), busiest[0].comm.as_str()), (1, "a?1 1 1 1 1 0 0 - - - b"));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..300), line in "[0-9?, -]{0,60}\n") {
            let _ = (parse(&bytes), parse(line.as_bytes()), Seen::from_note(&bytes));
        }
    }
}
