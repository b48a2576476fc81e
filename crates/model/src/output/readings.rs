//! The result of each source, for the report. A source that could not be read is listed with the privilege that it needs.

use std::collections::BTreeMap;

use crate::facts::path::Path;
use crate::observation::series::{Series, SeriesState};
use crate::observation::{LogExtent, NetnsView, Observation, ProcessView};
use crate::output::report::{SourceReport, SourceStatus};

/// The result of one source in one place: status, reason, privilege.
type Fate = (SourceStatus, Option<String>, Option<String>);

/// Every source of the observation, in the order host, namespaces, processes. Processes with the same result share one line.
pub fn readings(obs: &Observation, path: &Path) -> Vec<SourceReport> {
    let mut reports = Vec::new();
    let mut add = |source: String, fate: Option<Fate>| {
        if let Some((status, why, needs)) = fate {
            reports.push(SourceReport { source, status, why, needs });
        }
    };
    for (name, fate) in host(obs) {
        add(name.to_owned(), fate);
    }
    for (id, view) in &obs.netns {
        let place = view.name.clone().unwrap_or_else(|| id.to_string());
        for (name, fate) in netns(view) {
            add(format!("{name} ({place})"), fate);
        }
        for (key, series) in view.sysctls.iter().filter(|(key, _)| !key.ends_with(" mode")) {
            // It is normal that this kernel or this kind of namespace lacks a sysctl. A sysctl that could not be read is worth reporting.
            let news = match series.state() {
                SeriesState::Ok | SeriesState::Unread => false,
                SeriesState::Absent(lack) => lack.needs.is_some(),
                SeriesState::Failed(..) => true,
            };
            if news {
                add(format!("sysctl {key} ({place})"), fate(series));
            }
        }
    }
    for (pid, view) in &obs.servers {
        add(format!("server_config (pid {pid})"), fate(&view.config));
        for (path, log) in &view.access_logs {
            let fate = with_gap(fate(log), log.last().map(|log| log.extent));
            let blind = log.last().is_some_and(|log| !log.has_status);
            add(format!("server_log {path} (pid {pid})"), if blind { without_status(fate) } else { fate });
        }
        for (path, log) in &view.error_logs {
            add(format!("server_log {path} (pid {pid})"), with_gap(fate(log), log.last().map(|log| log.extent)));
        }
        for (item, status) in &view.status {
            add(format!("server_status {item} (pid {pid})"), fate(status));
        }
    }
    let mut alike: BTreeMap<(&str, String), (Fate, u32)> = BTreeMap::new();
    let groups = obs.cgroups.iter().map(|(place, series)| ("cgroup_cpu", place, fate(series)));
    let groups = groups.chain(obs.freezers.iter().map(|(place, series)| ("cgroup_freezer", place, fate(series))));
    let groups = groups.chain(obs.cgroup_io.iter().map(|(place, series)| ("cgroup_io", place, fate(series))));
    for (name, place, fate) in groups.chain(obs.cgroup_tasks.iter().map(|(place, series)| ("cgroup_tasks", place, fate(series)))) {
        add(format!("{name} ({place})"), fate);
    }
    for view in obs.processes.values() {
        for (name, fate) in process(view).into_iter().filter_map(|(name, fate)| Some((name, fate?))) {
            alike.entry((name, format!("{fate:?}"))).or_insert((fate, 0)).1 += 1;
        }
    }
    for tier in path.tiers.iter().filter(|tier| tier.pids.is_empty()) {
        let (why, needs) = match obs.processes_seen.state() {
            SeriesState::Ok => ("no process was found that holds this socket", None),
            _ => ("no process that this user may inspect holds this socket", Some("CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH".to_owned())),
        };
        add(format!("process_files (holder of {})", tier.name), Some((SourceStatus::Absent, Some(why.to_owned()), needs)));
    }
    for what in &obs.bounded {
        // The reading exists and is only sparser than its cadence. That is information and not a problem.
        add("bounds".to_owned(), Some((SourceStatus::Ok, Some(what.clone()), None)));
    }
    for ((name, _), (fate, count)) in alike {
        let noun = if count == 1 { "process" } else { "processes" };
        add(format!("{name} ({count} {noun})"), Some(fate));
    }
    reports
}

fn fate<T>(series: &Series<T>) -> Option<Fate> {
    match series.state() {
        SeriesState::Unread => None,
        SeriesState::Ok => Some((SourceStatus::Ok, None, None)),
        SeriesState::Absent(lack) => Some((SourceStatus::Absent, Some(lack.why.clone()), lack.needs.clone())),
        SeriesState::Failed(lack, times) => {
            let why = if times == 1 { lack.why.clone() } else { format!("{} ({times} times)", lack.why) };
            Some((SourceStatus::Failed, Some(why), lack.needs.clone()))
        }
    }
}

/// The result of a log, with what is missing from it.
fn with_gap(fate: Option<Fate>, extent: Option<LogExtent>) -> Option<Fate> {
    let (status, why, needs) = fate?;
    let gap = match extent.map(|extent| (extent.rotated, extent.skipped_bytes)) {
        Some((true, 0)) => Some("it was replaced or truncated during the measurement: lines may be missing".to_owned()),
        Some((rotated, skipped @ 1..)) => {
            let also = if rotated { ", and it was replaced or truncated during the measurement" } else { "" };
            Some(format!("only its end was read: {skipped} bytes were skipped{also}"))
        }
        _ => None,
    };
    Some((status, why.or(gap), needs))
}

/// The result of a log whose lines do not say how a request was answered.
fn without_status(fate: Option<Fate>) -> Option<Fate> {
    let (status, why, needs) = fate?;
    let blind = "its format has no status: good and failed responses cannot be distinguished";
    Some((status, Some(why.map_or_else(|| blind.to_owned(), |why| format!("{why}; {blind}"))), needs))
}

fn host(obs: &Observation) -> Vec<(&'static str, Option<Fate>)> {
    let mut all = vec![
        ("kernel", fate(&obs.kernel)),
        ("cpu", fate(&obs.cpu)),
        ("memory", fate(&obs.memory)),
        ("user_tasks", fate(&obs.user_tasks)),
        ("task_limits", fate(&obs.task_limits)),
        ("softnet", fate(&obs.softnet)),
        ("kernel_log", fate(&obs.kernel_log)),
        ("namespaces", fate(&obs.namespaces_seen)),
        ("processes", fate(&obs.processes_seen)),
        ("profile", fate(&obs.profile)),
        ("wire", fate(&obs.wire)),
    ];
    let ksoftirqd = obs.ksoftirqd.values().map(fate).max_by_key(|fate| fate.as_ref().map(|fate| fate.0 as u8));
    all.push(("ksoftirqd", ksoftirqd.flatten()));
    all
}

fn netns(view: &NetnsView) -> [(&'static str, Option<Fate>); 15] {
    [
        ("netstat", fate(&view.netstat)),
        ("sockstat", fate(&view.sockstat)),
        ("conntrack_count", fate(&view.conntrack_count)),
        ("conntrack_cpus", fate(&view.conntrack_cpus)),
        ("conntrack_states", fate(&view.conntrack_states)),
        ("conntrack_translations", fate(&view.conntrack_translations)),
        ("listeners", fate(&view.listeners)),
        ("sockets", fate(&view.sockets)),
        ("time_wait", fate(&view.time_waits)),
        ("tcp_info", fate(&view.tcp_samples)),
        ("requests", fate(&view.request_samples)),
        ("links", fate(&view.links)),
        ("qdiscs", fate(&view.qdiscs)),
        ("addresses", fate(&view.addresses)),
        ("filter_rules", fate(&view.filter_rules)),
    ]
}

fn process(view: &ProcessView) -> [(&'static str, Option<Fate>); 12] {
    [
        ("process_identity", fate(&view.identity)),
        ("process_cpu", fate(&view.cpu)),
        ("process_files", fate(&view.files)),
        ("process_fd_count", fate(&view.fd_count)),
        ("process_syscall", fate(&view.syscall)),
        ("process_threads", fate(&view.thread_looks)),
        ("process_tracing", fate(&view.tracing)),
        ("process_thread_names", fate(&view.thread_names)),
        ("process_memory", fate(&view.memory)),
        ("process_limits", fate(&view.limits)),
        ("process_mappings", fate(&view.mappings)),
        ("process_cgroups", fate(&view.cgroups)),
    ]
}
