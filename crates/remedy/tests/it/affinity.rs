//! The cores of a process and its children are set, verified, taken back, and left alone if someone else set them.
//!
//! Live beside others: processes of its own; their cores are judged.

use std::process::{Child, Command, Stdio};

use chokepoint_model::change::{Change, core_list};
use chokepoint_remedy::{ApplyError, Filter};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::servers::{children_of, start_ticks, until};
use crate::support::{Host, purpose};

/// A shell with a child.
struct Family(Child);

impl Family {
    fn start() -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 600; true"]).stdin(Stdio::null());
        let family = Self(shell.spawn().unwrap());
        until("no child was started", || children_of(family.0.id()).len() == 1);
        family
    }

    fn all(&self) -> Vec<u32> {
        [vec![self.0.id()], children_of(self.0.id())].concat()
    }

    fn change(&self, from: &str, to: &str) -> Change {
        let pid = self.0.id();
        let process = format!("sh (process {pid})");
        Change::Affinity { pid, start_ticks: start_ticks(pid), process, from: from.to_owned(), to: to.to_owned() }
    }

    fn cores(&self) -> Vec<String> {
        self.all().into_iter().map(|pid| core_list(&cores_of(Some(pid_of(pid))))).collect()
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        for pid in self.all() {
            crate::servers::kill(pid);
        }
        let _ = self.0.wait();
    }
}

fn pid_of(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
}

fn cores_of(pid: Option<Pid>) -> Vec<u32> {
    let set = sched_getaffinity(pid).unwrap();
    (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).map(|core| core as u32).collect()
}

/// All cores of this process, and its last one alone; nothing on a machine with one core.
fn cores() -> Option<(String, String)> {
    let all = cores_of(None);
    if all.len() < 2 {
        println!("skipped: this machine has only one usable core");
        return None;
    }
    Some((core_list(&all), core_list(&all[all.len() - 1..])))
}

#[test]
fn a_family_moves_to_a_core_and_back() {
    let Some((all, last)) = cores() else { return };
    let (host, family) = (Host::new(), Family::start());
    let mut guard = host.store().lock().unwrap();
    let moved = family.change(&all, &last);
    guard.apply(std::slice::from_ref(&moved), &purpose("experiment"), &mut |_| {}).unwrap();
    assert_eq!(family.cores(), [last.clone(), last.clone()]);
    let report = guard.undo(&Filter::All);
    assert!(report.is_clean() && report.restored.len() == 1, "{report:?}");
    assert_eq!(family.cores(), [all.clone(), all.clone()]);
    assert!(matches!(guard.apply(&[family.change(&last, &all)], &purpose("experiment"), &mut |_| {}), Err(ApplyError::Changed { .. })));
}

#[test]
fn cores_that_somebody_else_set_are_left_alone() {
    let Some((all, last)) = cores() else { return };
    let (host, family) = (Host::new(), Family::start());
    let mut guard = host.store().lock().unwrap();
    guard.apply(&[family.change(&all, &last)], &purpose("experiment"), &mut |_| {}).unwrap();
    let mut first = CpuSet::new();
    first.set(cores_of(None)[0] as usize);
    sched_setaffinity(Some(pid_of(family.0.id())), &first).unwrap();
    let report = guard.undo(&Filter::All);
    assert!(report.conflicts.len() == 1 && report.conflicts[0].found.contains(" and "), "{report:?}");
    // Its threads have different cores now, which no single list describes.
    let refused = guard.apply(&[family.change(&all, &last)], &purpose("experiment"), &mut |_| {});
    assert!(matches!(refused, Err(ApplyError::BadChange { .. })), "{refused:?}");
}

#[test]
fn the_change_of_a_process_that_ended_is_gone() {
    let Some((all, last)) = cores() else { return };
    let (host, family) = (Host::new(), Family::start());
    let mut guard = host.store().lock().unwrap();
    let change = family.change(&all, &last);
    for wrong in ["", "x", "1-0", "99999"] {
        let Change::Affinity { pid, start_ticks, process, from, .. } = change.clone() else { unreachable!() };
        let wrong = Change::Affinity { pid, start_ticks, process, from, to: wrong.to_owned() };
        assert!(guard.apply(std::slice::from_ref(&wrong), &purpose("experiment"), &mut |_| {}).is_err(), "{wrong:?}");
    }
    guard.apply(std::slice::from_ref(&change), &purpose("experiment"), &mut |_| {}).unwrap();
    drop(family);
    let report = guard.undo(&Filter::All);
    assert!(report.gone.len() == 1 && report.is_clean(), "{report:?}");
    assert!(matches!(guard.apply(&[change], &purpose("experiment"), &mut |_| {}), Err(ApplyError::Ended { .. })));
}
