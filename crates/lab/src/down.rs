//! Taking labs down from their state file alone: settings restored, processes ended, namespaces and files removed, and all of it verified.

pub(crate) mod report;

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use self::report::{Conflict, DownReport};
use crate::error::LabError;
use crate::machine::process::{self, SessionLeader};
use crate::machine::sysctl::{self, SysctlScope};
use crate::machine::{cgroup, netns, spawn};
use crate::preflight;
use crate::scenario::names;
use crate::state::{self, CgroupState, LabDir, State};

/// How a lab is taken down.
#[derive(Debug, Clone, Copy, Default)]
pub struct DownOptions {
    /// True: machine settings are restored even if someone changed them since.
    pub force: bool,
}

/// The condition of a lab that has a state file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftoverKind {
    /// Up, and meant to stay up.
    Up,
    /// Up, and in use by a process that will take it down.
    InUse,
    /// Being built or taken down by a living process.
    Building,
    /// Left behind by a dead process or a reboot, or not taken down completely.
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
    /// Its condition.
    pub kind: LeftoverKind,
    /// The process that built it.
    pub creator_pid: Option<u32>,
    /// Machine settings that it has changed and not restored: name, value before, value set.
    pub host_sysctls: Vec<(String, Option<String>, String)>,
    /// Why its state cannot be read.
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

/// The condition of a lab by its state.
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

/// Takes a lab down. Needs only its state file and is safe to repeat. If something could not be removed, the state is kept for the next call. Where
/// there is no such lab, the report says so.
///
/// # Errors
/// [`LabError::Busy`] while another process builds or removes it, [`LabError::State`] where its state is damaged, or [`LabError::Io`].
pub fn down(run_root: &Path, name: &str, options: DownOptions) -> Result<DownReport, LabError> {
    names::check_name(name).map_err(LabError::Scenario)?;
    let Some(dir) = LabDir::lock(run_root, name)? else {
        return Ok(DownReport { found: false, ..DownReport::new(name) });
    };
    let state = state::read(run_root, name)?;
    take_down(dir, state, run_root, name, options)
}

/// Takes down every lab, in the order of their names. The error of a lab becomes a problem in its report.
///
/// # Errors
/// Where the directory of the labs cannot be listed.
pub fn down_all(run_root: &Path, options: DownOptions) -> Result<Vec<DownReport>, LabError> {
    let one = |name: &String| {
        down(run_root, name, options).unwrap_or_else(|error| DownReport { problems: vec![error.to_string()], ..DownReport::new(name) })
    };
    Ok(state::lab_names(run_root)?.iter().map(one).collect())
}

/// Takes down a lab by its state, in its locked directory.
pub(crate) fn take_down(
    dir: LabDir,
    state: Option<State>,
    run_root: &Path,
    name: &str,
    options: DownOptions,
) -> Result<DownReport, LabError> {
    let mut report = DownReport::new(name);
    // After a reboot only its files are left.
    if let Some(mut state) = state.filter(|state| state.boot_id == state::boot_id()) {
        state.complete = false;
        restore_settings(&mut state, &mut report, options);
        let ours = own_namespaces(&mut state, &mut report);
        end_processes(&state, &ours, &mut report);
        remove_cgroups(&mut state.cgroups, &mut report);
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

/// Restores the machine's settings. They come first, since they affect others.
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

/// The inodes of the lab's namespaces that still exist. Another namespace of the same name is left alone.
fn own_namespaces(state: &mut State, report: &mut DownReport) -> BTreeSet<u64> {
    let mut ours = BTreeSet::new();
    for namespace in state.namespaces.iter_mut().filter(|namespace| namespace.begun) {
        match (netns::inode(&netns::path(&namespace.netns)), namespace.inode) {
            (Ok(found), Some(made)) if found != made => {
                report.problems.push(format!("namespace {} is not the one that the lab created, so it was left alone", namespace.netns));
                namespace.begun = false;
            }
            (Ok(found), _) => {
                ours.insert(found);
            }
            // Its name was removed by hand; it lives on while a process is in it. The inode may have been reused, so it counts only if a server
            // that is certainly the lab's runs in it.
            (Err(_), Some(made)) => {
                let is_ours = state
                    .servers
                    .iter()
                    .map(|server| &server.process)
                    .any(|server| process::is_alive(server.pid, server.start_ticks) && process::netns_inode(server.pid) == Some(made));
                if is_ours {
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
    let leaders: Vec<SessionLeader> = known.map(|process| SessionLeader { pid: process.pid, start_ticks: process.start_ticks }).collect();
    let own_ancestry = process::own_ancestry();
    let find = || process::of_lab(namespaces, &leaders);
    // This command may have been started from a shell in the lab. That shell must not be ended.
    let (ancestors, found): (Vec<_>, Vec<_>) = find().into_iter().partition(|process| own_ancestry.contains(&process.pid));
    let left = process::end(|| find().into_iter().filter(|process| !own_ancestry.contains(&process.pid)).collect());
    if !found.is_empty() {
        report.done.push(format!("{} processes ended", found.len() - left.len().min(found.len())));
    }
    for process in left {
        report.problems.push(format!("process {} ({}) does not exit", process.pid, process::name(process.pid)));
    }
    for process in ancestors {
        let name = process::name(process.pid);
        report
            .problems
            .push(format!("this command runs below process {} ({name}), which is in the lab: leave the lab and try again", process.pid));
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
                let why = removed.err().map_or_else(|| "it still exists".to_owned(), |error| error.to_string());
                report.problems.push(format!("namespace {} cannot be removed: {why}", namespace.netns));
                continue;
            }
            report.done.push(format!("namespace {} removed", namespace.netns));
        }
        namespace.begun = false;
    }
}

/// Removes the cgroups, the inner ones first.
fn remove_cgroups(cgroups: &mut [CgroupState], report: &mut DownReport) {
    for cgroup in cgroups.iter_mut().rev().filter(|cgroup| cgroup.begun) {
        let failed: Vec<String> =
            cgroup.dirs.iter().filter_map(|dir| cgroup::remove(dir).err().map(|error| format!("{}: {error}", dir.display()))).collect();
        cgroup.begun = !failed.is_empty();
        match failed.is_empty() {
            true => report.done.push(format!("cgroup {} removed", cgroup.name)),
            false => report.problems.extend(failed.iter().map(|why| format!("cgroup {} cannot be removed: {why}", cgroup.name))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_cgroup_counts_as_removed_and_one_in_use_is_reported() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("a");
        std::fs::create_dir(&dir).unwrap();
        let state =
            |dirs: &[&Path]| vec![CgroupState { name: "a".into(), dirs: dirs.iter().map(|dir| dir.to_path_buf()).collect(), begun: true }];
        let (mut made, mut report) = (state(&[&dir, &root.path().join("none")]), DownReport::new("x"));
        remove_cgroups(&mut made, &mut report);
        assert!(report.done == ["cgroup a removed"] && report.is_clean() && !made[0].begun && !dir.exists());
        std::fs::create_dir_all(dir.join("within")).unwrap();
        let mut held = state(&[&dir]);
        remove_cgroups(&mut held, &mut report);
        assert!(report.problems.len() == 1 && held[0].begun);
    }
}
