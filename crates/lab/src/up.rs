//! Building a lab step by step. Each step is recorded before it is taken.

pub(crate) mod builder;
mod cgroups;
mod files;
mod network;
mod prefill;
mod servers;

use std::fs;

use crate::down;
use crate::error::LabError;
use crate::machine::sysctl::{self, SysctlScope};
use crate::machine::{cores, netns};
use crate::scenario::document::{Scenario, Setting};
use crate::scenario::names;
use crate::scenario::placeholder::{self, Values};
use crate::scenario::topology::Topology;
use crate::state::{self, HostSysctlState, LabDir, NamespaceState, State};
use builder::{Builder, Options};

const CONNTRACK_MAX: &str = "net.netfilter.nf_conntrack_max";
const CONNTRACK_COUNT: &str = "net.netfilter.nf_conntrack_count";

/// Creates the lab's directory and first state, after checking that it conflicts with no other lab.
pub(crate) fn claim(scenario: &Scenario, options: &Options<'_>) -> Result<(LabDir, State), LabError> {
    let run_root = &options.run_root;
    let _labs = state::lock_labs(run_root)?;
    let ours: Vec<(String, String)> =
        scenario.hosts.iter().map(|host| (host.name.clone(), names::netns_name(&scenario.name, &host.name))).collect();
    for name in state::lab_names(run_root)? {
        let other = state::read(run_root, &name)?;
        if name == scenario.name {
            return Err(LabError::Exists { how: down::kind_of(other.as_ref()).to_string(), name });
        }
        let Some(other) = other.filter(|other| other.boot_id == state::boot_id()) else { continue };
        let mut taken = other.host_sysctls.iter().filter(|_| options.within != Some(name.as_str()));
        if let Some(taken) = taken.find(|taken| scenario.host_sysctls.contains_key(&taken.key)) {
            return Err(LabError::SysctlTaken { other: name, key: taken.key.clone() });
        }
        let taken = other.namespaces.iter().find(|taken| ours.iter().any(|(_, netns)| *netns == taken.netns));
        if let Some(taken) = taken {
            return Err(LabError::NamespaceTaken { netns: taken.netns.clone(), by: Some(name) });
        }
    }
    if let Some((_, netns)) = ours.iter().find(|(_, netns)| fs::symlink_metadata(netns::path(netns)).is_ok()) {
        return Err(LabError::NamespaceTaken { netns: netns.clone(), by: None });
    }
    let namespaces = ours.into_iter().map(|(host, netns)| NamespaceState { host, netns, begun: false, inode: None });
    let host_sysctl = |(key, value): (&String, &Setting)| HostSysctlState {
        key: key.clone(),
        ours: sysctl::normalized(&value.0),
        begun: false,
        original: None,
    };
    let state = State {
        schema: 1,
        name: scenario.name.clone(),
        boot_id: state::boot_id(),
        creator: state::own_process(),
        outlive: options.outlive,
        complete: false,
        unclean: false,
        origin: scenario.origin().to_owned(),
        scenario: scenario.text().to_owned(),
        namespaces: namespaces.collect(),
        host_sysctls: scenario.host_sysctls.iter().map(host_sysctl).collect(),
        cgroups: Vec::new(),
        servers: Vec::new(),
    };
    let dir = LabDir::create(run_root, &scenario.name)?;
    dir.save(&state)?;
    Ok((dir, state))
}

/// The URL to load, placeholders replaced.
pub(crate) fn expand_url(scenario: &Scenario, topology: &Topology) -> Result<String, LabError> {
    let values = Values { lab: &scenario.name, topology, run: None, server: None };
    placeholder::expand(&scenario.load.url, &values).map_err(LabError::Scenario)
}

impl Builder<'_, '_> {
    /// Builds everything. Returns the URL to load and the cores for the load generator.
    pub(crate) fn build(&mut self) -> Result<(String, Option<Vec<u32>>), LabError> {
        let scenario = self.scenario;
        self.dir.make_run_path()?;
        self.namespaces()?;
        self.hosts()?;
        self.links()?;
        self.routes()?;
        self.rulesets()?;
        self.host_sysctls()?;
        self.cgroups()?;
        self.files()?;
        for server in &scenario.servers {
            self.server(server)?;
        }
        self.prefills()?;
        let url = expand_url(scenario, &self.topology)?;
        let (client_cpus, note) = cores::choose("the load generator", scenario.client.cpus.as_deref(), &self.cores);
        self.notes.extend(note);
        self.step("up", |state| state.complete = true)?;
        Ok((url, client_cpus))
    }

    /// Sets the machine's settings.
    fn host_sysctls(&mut self) -> Result<(), LabError> {
        for index in 0..self.state.host_sysctls.len() {
            let HostSysctlState { key, ours, .. } = self.state.host_sysctls[index].clone();
            let failed = |why: String| LabError::Sysctl { key: key.clone(), place: "on this machine".to_owned(), why };
            let exists = sysctl::exists(SysctlScope::Machine, &key).map_err(|error| failed(error.to_string()))?;
            if !exists {
                return Err(failed(
                    "this kernel has no such setting now; net.netfilter. appears when a host's ruleset uses conntrack".to_owned(),
                ));
            }
            let original = sysctl::read(SysctlScope::Machine, &key).map_err(|error| failed(error.to_string()))?;
            check_host_use(&key, &ours)?;
            self.step(&format!("{key} = {ours} on this machine (was {original})"), |state| {
                let sysctl = &mut state.host_sysctls[index];
                sysctl.begun = true;
                sysctl.original = Some(original);
            })?;
            sysctl::set(SysctlScope::Machine, &key, &ours).map_err(failed)?;
        }
        Ok(())
    }
}

/// The conntrack table has one maximum for all namespaces. Refuses one that the machine's own connections might reach.
fn check_host_use(key: &str, wanted: &str) -> Result<(), LabError> {
    if key != CONNTRACK_MAX {
        return Ok(());
    }
    let used = sysctl::read(SysctlScope::Machine, CONNTRACK_COUNT).ok().and_then(|count| count.parse::<u64>().ok()).unwrap_or(0);
    match wanted.parse::<u64>() {
        // Zero means no limit.
        Ok(max) if max > 0 && used > max / 2 => Err(LabError::HostInUse {
            key: key.to_owned(),
            wanted: wanted.to_owned(),
            why: format!("its own table has {used} connections now, and the maximum applies to all namespaces"),
        }),
        _ => Ok(()),
    }
}
