//! Remedies of recorded diagnoses: a recording needs no load, and what it shows of the host can be changed before it is judged.

use std::collections::BTreeMap;
use std::path::Path;

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::diagnose::diagnose;
use chokepoint_model::observation::{BusyProcess, CgroupCpu, CgroupId, CgroupVersion, Identity, Observation, ServerConfig};
use chokepoint_model::reading::Reading;
use chokepoint_model::series::Series;
use chokepoint_sources::assemble;
use serde_json::Value;

use super::{Lab, named};
use crate::harness::repository;

/// A recorded observation.
pub(super) struct Recorded {
    pub(super) observation: Observation,
}

impl Recorded {
    /// The recording `tests/NAME.rec`.
    pub(super) fn of(name: &str) -> Self {
        Self::at(&repository(&format!("tests/{name}.rec")))
    }

    /// The recording at this path.
    pub(super) fn at(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap();
        Self { observation: assemble(&chokepoint_recording::read(&bytes).unwrap().entries) }
    }

    /// The same where this network namespace has another name; none if it is `None`.
    pub(super) fn renamed(mut self, netns: &str, name: Option<&str>) -> Self {
        let mut all = self.observation.netns.values_mut();
        all.find(|view| view.name.as_deref() == Some(netns)).unwrap().name = name.map(str::to_owned);
        self
    }

    /// The same where this network namespace is that of the host.
    pub(super) fn on_host(mut self, netns: &str) -> Self {
        for view in self.observation.netns.values_mut() {
            view.is_host = view.name.as_deref() == Some(netns);
            view.name = if view.is_host { Some("host".to_owned()) } else { view.name.take().filter(|name| name != "host") };
        }
        self
    }

    /// The master process of the server with this main configuration file.
    pub(super) fn master(&self, file: &str) -> u32 {
        let is_it = |config: &ServerConfig| match config {
            ServerConfig::Nginx(nginx) => nginx.files.iter().any(|(path, _)| path.ends_with(file)),
            ServerConfig::PhpFpm(php_fpm) => php_fpm.file.ends_with(file),
            ServerConfig::Stated(stated) => stated.file.ends_with(file),
        };
        let found = self.observation.servers.iter().find(|(_, view)| view.config.last().is_some_and(is_it));
        *found.unwrap_or_else(|| panic!("no server has {file}")).0
    }

    /// The same where this process was started by init in this cgroup.
    pub(super) fn started_in(mut self, pid: u32, cgroup: &str) -> Self {
        let process = self.observation.processes.get_mut(&pid).unwrap();
        process.cgroups = only([("name=systemd".to_owned(), cgroup.to_owned())].into());
        process.identity = only(Identity { parent: 1, ..process.identity.last().unwrap().clone() });
        self
    }

    /// The same where the server's files changed a day after it had read them.
    pub(super) fn changed_since_read(mut self, pid: u32) -> Self {
        let view = self.observation.servers.get_mut(&pid).unwrap();
        let mut config = view.config.last().unwrap().clone();
        let files = match &mut config {
            ServerConfig::Nginx(nginx) => &mut nginx.files,
            ServerConfig::PhpFpm(php_fpm) => &mut php_fpm.files,
            ServerConfig::Stated(stated) => &mut stated.files,
        };
        files.iter_mut().for_each(|(_, changed_s)| *changed_s += 86_400);
        view.config = only(config);
        self
    }

    /// The same where the kernel's interface to this cgroup is version 2, in this directory.
    pub(super) fn in_version_2(self, cgroup: &str, dir: &str) -> Self {
        let unified = |id: CgroupId| CgroupId { version: CgroupVersion::V2, ..id };
        let mut moved = self.with_cgroups(unified, |controllers| {
            controllers.remove("cpu").into_iter().for_each(|path| {
                controllers.insert(String::new(), path);
            })
        });
        let mut here = Series::default();
        let (_, series) = moved.observation.cgroups.iter_mut().find(|(id, _)| id.path == cgroup).unwrap();
        for (at_us, now) in series.points() {
            here.push(*at_us, Reading::Ok(CgroupCpu { dir: dir.to_owned(), ..now.clone() }));
        }
        *series = here;
        moved
    }

    /// The same where this cgroup has another path.
    pub(super) fn with_cgroup_at(self, cgroup: &str, path: &str) -> Self {
        let at = |of: &str| of.replace(cgroup, path);
        self.with_cgroups(|id| CgroupId { path: at(&id.path), ..id }, |controllers| controllers.values_mut().for_each(|of| *of = at(of)))
    }

    fn with_cgroups(mut self, id: impl Fn(CgroupId) -> CgroupId, of_process: impl Fn(&mut BTreeMap<String, String>)) -> Self {
        let all = std::mem::take(&mut self.observation.cgroups);
        self.observation.cgroups = all.into_iter().map(|(known, series)| (id(known), series)).collect();
        for process in self.observation.processes.values_mut() {
            if let Some(mut controllers) = process.cgroups.last().cloned() {
                of_process(&mut controllers);
                process.cgroups = only(controllers);
            }
        }
        self
    }

    /// The same where this sysctl of the host has another value.
    pub(super) fn with_sysctl_of_host(mut self, key: &str, value: String) -> Self {
        let host = self.observation.netns.values_mut().find(|view| view.is_host).unwrap();
        host.sysctls.insert(key.to_owned(), only(value));
        self
    }

    /// Changes the readings of busy processes. The flag is true for those of the path's servers.
    pub(super) fn change_busy(&mut self, change: impl Fn(BusyProcess, bool) -> BusyProcess) {
        let servers: Vec<u32> = self.observation.processes.keys().copied().collect();
        let points = self.observation.busy_processes.points().to_vec();
        self.observation.busy_processes = Series::default();
        for (at_us, processes) in points {
            let changed = processes.into_iter().map(|process| {
                let is_servers = servers.contains(&process.pid);
                change(process, is_servers)
            });
            self.observation.busy_processes.push(at_us, Reading::Ok(changed.collect()));
        }
    }

    /// A remedy, as the report has it.
    pub(super) fn remedy(&self, id: &str) -> Value {
        let report = serde_json::to_value(diagnose(&self.observation, &Catalogue::english())).unwrap();
        let lists = ["findings", "improvements"].map(|list| report[list].as_array().cloned().unwrap_or_default());
        let mut remedies = lists.iter().flatten().flat_map(|finding| finding["remedies"].as_array().unwrap());
        remedies.find(|remedy| remedy["id"] == id).unwrap_or_else(|| panic!("no {id}: {}", report["summary"])).clone()
    }

    /// A remedy for the lab that is up, which has the recorded lab's files in another directory and other masters.
    pub(super) fn remedy_in(&self, lab: &Lab<'_>, recorded: &str, id: &str) -> Value {
        let mut text = self.remedy(id).to_string();
        text = text.replace(&format!("/run/chokepoint/lab/{recorded}/run"), lab.run().to_str().unwrap());
        text = text.replace(&format!("cp-{recorded}-"), &format!("cp-{}-", lab.name));
        let nginx = std::fs::read_to_string(lab.run().join("nginx.pid")).unwrap_or_default();
        for pid in self.observation.servers.keys() {
            text = text.replace(&format!("kill -HUP {pid}\""), &format!("kill -HUP {}\"", nginx.trim()));
        }
        // A master starts its workers, which look like it.
        for master in self.observation.servers.values().filter_map(|view| view.files.master) {
            let haproxy = named(lab, "haproxy").into_iter().min().expect("the lab has the master of the recording");
            text = text.replace(&format!("kill -USR2 {}\"", master.pid), &format!("kill -USR2 {haproxy}\""));
        }
        serde_json::from_str(&text).unwrap()
    }
}

/// A series with this value alone.
pub(super) fn only<T>(value: T) -> Series<T> {
    let mut series = Series::default();
    series.push(0, Reading::Ok(value));
    series
}
