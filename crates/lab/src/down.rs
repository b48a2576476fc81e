//! Taking labs down from their state file alone: settings put back, processes ended, namespaces and files removed, and all of it verified.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use crate::error::LabError;
use crate::preflight;
use crate::process::{self, Leader};
use crate::spawn;
use crate::state::{self, LabDir, State};
use crate::sysctl::{self, SysctlScope};
use crate::{cgroup, names, netns};

/// How a lab is taken down.
#[derive(Debug, Clone, Copy, Default)]
pub struct DownOptions {
    /// True: settings of the machine are put back even where someone changed them since.
    pub force: bool,
}

/// A setting of the machine that holds neither the lab's value nor the one found before, and so was left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The setting.
    pub key: String,
    /// The value found before the lab.
    pub original: String,
    /// The value that the lab set.
    pub ours: String,
    /// The value that it has now.
    pub found: String,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Conflict { key, original, ours, found } = self;
        write!(
            f,
            "{key} is {found}: the lab had set {ours}, someone changed it since; before the lab it was {original}: `sysctl -w {key}='{original}'`"
        )
    }
}

/// What was taken away and what could not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DownReport {
    /// The lab.
    pub name: String,
    /// False where there was no such lab: nothing was to be done.
    pub found: bool,
    /// What was done, in order, one short phrase each.
    pub done: Vec<String>,
    /// Settings that were left alone because they are no longer the lab's.
    pub conflicts: Vec<Conflict>,
    /// What could not be taken away, one sentence each.
    pub problems: Vec<String>,
}

impl DownReport {
    pub(crate) fn new(name: &str) -> DownReport {
        DownReport { name: name.to_owned(), found: true, done: Vec::new(), conflicts: Vec::new(), problems: Vec::new() }
    }

    /// True where nothing of the lab is left.
    pub fn is_clean(&self) -> bool {
        self.conflicts.is_empty() && self.problems.is_empty()
    }
}

impl fmt::Display for DownReport {
    /// What is left, or that nothing is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.conflicts.iter().map(ToString::to_string).chain(self.problems.iter().cloned()).collect();
        if lines.is_empty() { write!(f, "nothing of lab \"{}\" is left", self.name) } else { write!(f, "{}", lines.join("\n")) }
    }
}

/// What is known of a lab that has a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftoverKind {
    /// Up, and meant to stay up.
    Up,
    /// Up, in use by a process that will take it down.
    InUse,
    /// Being built or taken down by a living process.
    Building,
    /// Left behind by a process that died, or by a reboot, or not taken down completely.
    Abandoned,
}

impl fmt::Display for LeftoverKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LeftoverKind::Up => "up",
            LeftoverKind::InUse => "in use by a running process",
            LeftoverKind::Building => "being built",
            LeftoverKind::Abandoned => "left behind",
        })
    }
}

/// A lab that has a state file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Its name.
    pub name: String,
    /// What is known of it.
    pub kind: LeftoverKind,
    /// The process that built it.
    pub creator_pid: Option<u32>,
    /// Settings of the machine that it has changed and not put back: name, value found before, value set.
    pub host_sysctls: Vec<(String, Option<String>, String)>,
    /// Why its state cannot be read, where it cannot.
    pub damaged: Option<String>,
}

/// The labs that have a state file, by name.
///
/// # Errors
/// Where the directory of the labs cannot be listed.
pub fn leftovers(run_root: &Path) -> Result<Vec<Leftover>, LabError> {
    let one = |name: String| match state::read(run_root, &name) {
        Ok(state) => {
            let sysctls = state.iter().flat_map(|state| &state.host_sysctls).filter(|sysctl| sysctl.begun);
            Leftover {
                kind: kind_of(state.as_ref()),
                creator_pid: state.as_ref().map(|state| state.creator.pid),
                host_sysctls: sysctls.map(|sysctl| (sysctl.key.clone(), sysctl.original.clone(), sysctl.ours.clone())).collect(),
                name,
                damaged: None,
            }
        }
        Err(error) => {
            Leftover { name, kind: LeftoverKind::Abandoned, creator_pid: None, host_sysctls: Vec::new(), damaged: Some(error.to_string()) }
        }
    };
    Ok(state::lab_names(run_root)?.into_iter().map(one).collect())
}

/// What a state says of its lab.
pub(crate) fn kind_of(state: Option<&State>) -> LeftoverKind {
    let Some(state) = state else { return LeftoverKind::Abandoned };
    let creator_alive = process::is_alive(state.creator.pid, state.creator.start_ticks);
    match (state.boot_id == state::boot_id(), state.complete, state.outlive) {
        (false, ..) => LeftoverKind::Abandoned,
        _ if state.unclean => LeftoverKind::Abandoned,
        (true, true, true) => LeftoverKind::Up,
        (true, true, false) if creator_alive => LeftoverKind::InUse,
        (true, false, _) if creator_alive => LeftoverKind::Building,
        _ => LeftoverKind::Abandoned,
    }
}

/// Takes a lab down. Needs nothing but its state file, may be called again and again, and says so where there is no such lab.
/// Where something could not be taken away, its state is kept, so that a later call goes on from there.
///
/// # Errors
/// [`LabError::Busy`] while another process builds it or takes it down, [`LabError::State`] where its state is damaged, or
/// [`LabError::Io`].
pub fn down(run_root: &Path, name: &str, options: DownOptions) -> Result<DownReport, LabError> {
    names::check_name(name).map_err(LabError::Scenario)?;
    let Some(dir) = LabDir::lock(run_root, name)? else {
        return Ok(DownReport { found: false, ..DownReport::new(name) });
    };
    let state = state::read(run_root, name)?;
    take_down(dir, state, run_root, name, options)
}

/// Takes every lab down, in the order of their names. A lab that could not even be begun with has that as its problem.
///
/// # Errors
/// Where the directory of the labs cannot be listed.
pub fn down_all(run_root: &Path, options: DownOptions) -> Result<Vec<DownReport>, LabError> {
    let one = |name: &String| {
        down(run_root, name, options).unwrap_or_else(|error| DownReport { problems: vec![error.to_string()], ..DownReport::new(name) })
    };
    Ok(state::lab_names(run_root)?.iter().map(one).collect())
}

/// Takes down what the state tells, in a directory that is locked.
pub(crate) fn take_down(
    dir: LabDir,
    state: Option<State>,
    run_root: &Path,
    name: &str,
    options: DownOptions,
) -> Result<DownReport, LabError> {
    let mut report = DownReport::new(name);
    // After a reboot there is nothing of it but its files.
    if let Some(mut state) = state.filter(|state| state.boot_id == state::boot_id()) {
        state.complete = false;
        restore_settings(&mut state, &mut report, options);
        let ours = own_namespaces(&mut state, &mut report);
        end_processes(&state, &ours, &mut report);
        let (done, problems) = cgroup::remove(&mut state.cgroups);
        report.done.extend(done);
        report.problems.extend(problems);
        remove_namespaces(&mut state, &mut report);
        if !report.is_clean() {
            state.unclean = true;
            dir.save(&state)?;
        }
    }
    match dir.remove_run_path() {
        Ok(()) => report.done.push("files removed".to_owned()),
        Err(error) => report.problems.push(format!("{}: {error}", dir.run_path().display())),
    }
    if report.is_clean() {
        dir.remove(run_root)?;
    }
    Ok(report)
}

/// Puts the machine's settings back, first of all: they are what harms others.
fn restore_settings(state: &mut State, report: &mut DownReport, options: DownOptions) {
    for sysctl in state.host_sysctls.iter_mut().filter(|sysctl| sysctl.begun) {
        let Some(original) = sysctl.original.clone() else { continue };
        let key = &sysctl.key;
        let found = match sysctl::read(SysctlScope::Machine, key) {
            Ok(found) => found,
            Err(error) => {
                report.problems.push(format!("{key} cannot be read: {error}; before the lab it was {original}"));
                continue;
            }
        };
        if found != original && found != sysctl.ours && !options.force {
            report.conflicts.push(Conflict { key: key.clone(), original, ours: sysctl.ours.clone(), found });
            continue;
        }
        if found != original {
            match sysctl::set(SysctlScope::Machine, key, &original) {
                Ok(()) => report.done.push(format!("{key} is {original} again")),
                Err(why) => {
                    report.problems.push(format!("{key} cannot be set back to {original}: {why}"));
                    continue;
                }
            }
        }
        sysctl.begun = false;
    }
}

/// The inodes of the namespaces that are still there and ours. A namespace that bears our name but is another one is left alone.
fn own_namespaces(state: &mut State, report: &mut DownReport) -> BTreeSet<u64> {
    let mut ours = BTreeSet::new();
    for namespace in state.namespaces.iter_mut().filter(|namespace| namespace.begun) {
        match (netns::inode(&netns::path(&namespace.netns)), namespace.inode) {
            (Ok(found), Some(made)) if found != made => {
                report.problems.push(format!("namespace {} is not the one that was made: it was left alone", namespace.netns));
                namespace.begun = false;
            }
            (Ok(found), _) => {
                ours.insert(found);
            }
            // Removed by hand: it lives on without its name while a process is in it. A server that is certainly ours vouches for it, since
            // the number alone may belong to another namespace by now.
            (Err(_), Some(made)) => {
                let vouched = state
                    .servers
                    .iter()
                    .map(|server| &server.process)
                    .any(|server| process::is_alive(server.pid, server.start_ticks) && process::netns_inode(server.pid) == Some(made));
                if vouched {
                    ours.insert(made);
                }
            }
            (Err(_), None) => {}
        }
    }
    ours
}

fn end_processes(state: &State, namespaces: &BTreeSet<u64>, report: &mut DownReport) {
    let known = state.servers.iter().map(|server| &server.process).filter(|process| process.start_ticks != 0);
    let leaders: Vec<Leader> = known.map(|process| Leader { pid: process.pid, start_ticks: process.start_ticks }).collect();
    let own_line = process::own_line();
    let find = || process::of_lab(namespaces, &leaders);
    // A shell in the lab from which this very command was started must not be ended under it.
    let (above, begun): (Vec<_>, Vec<_>) = find().into_iter().partition(|process| own_line.contains(&process.pid));
    let left = process::end(|| find().into_iter().filter(|process| !own_line.contains(&process.pid)).collect());
    if !begun.is_empty() {
        report.done.push(format!("{} processes ended", begun.len() - left.len().min(begun.len())));
    }
    for process in left {
        report.problems.push(format!("process {} ({}) does not end", process.pid, process::name(process.pid)));
    }
    for process in above {
        let name = process::name(process.pid);
        report
            .problems
            .push(format!("process {} ({name}) is in the lab, and this command runs below it: leave it and try again", process.pid));
    }
}

fn remove_namespaces(state: &mut State, report: &mut DownReport) {
    let Some(ip) = preflight::find_program("ip", &preflight::directories()) else {
        report.problems.push("ip is not installed (Debian package iproute2): namespaces cannot be removed".to_owned());
        return;
    };
    for namespace in state.namespaces.iter_mut().filter(|namespace| namespace.begun) {
        let path = netns::path(&namespace.netns);
        if std::fs::symlink_metadata(&path).is_ok() {
            let removed = spawn::tool(&ip, &["netns", "del", &namespace.netns], None);
            if std::fs::symlink_metadata(&path).is_ok() {
                let why = removed.err().map_or_else(|| "it is still there".to_owned(), |error| error.to_string());
                report.problems.push(format!("namespace {} cannot be removed: {why}", namespace.netns));
                continue;
            }
            report.done.push(format!("namespace {} removed", namespace.netns));
        }
        namespace.begun = false;
    }
}
