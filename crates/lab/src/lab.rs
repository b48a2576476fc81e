//! A lab that is up.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Child;

use crate::down::report::DownReport;
use crate::down::{self, DownOptions};
use crate::error::LabError;
use crate::machine::{cores, netns};
use crate::preflight;
use crate::scenario::document::Scenario;
use crate::scenario::names;
use crate::scenario::topology::Topology;
use crate::state::{self, HostSysctlState, ServerState, State};
use crate::up::builder::{Builder, Options};
use crate::up::{claim, expand_url};

/// A started server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    /// Its name in the scenario.
    pub name: String,
    /// The host it runs on.
    pub host: String,
    /// The started process; workers are its children.
    pub pid: u32,
}

/// A lab that is up.
#[derive(Debug)]
pub struct Lab {
    scenario: Scenario,
    run_root: PathBuf,
    state: State,
    url: String,
    client_cpus: Option<Vec<u32>>,
    notes: Vec<String>,
    children: Vec<Child>,
    is_down: bool,
}

impl Lab {
    /// Builds a scenario. On failure everything built so far is removed.
    ///
    /// # Errors
    /// [`LabError`]; [`LabError::Unclean`] where something could not be removed.
    pub fn up(scenario: &Scenario, mut options: Options<'_>) -> Result<Lab, LabError> {
        let tools = preflight::preflight(scenario).map_err(|missing| LabError::Preflight { missing })?;
        let (dir, state) = claim(scenario, &options)?;
        let run_root = options.run_root.clone();
        let mut builder = Builder {
            scenario,
            tools,
            topology: Topology::of(scenario),
            dir,
            state,
            sysctls_set: BTreeSet::new(),
            options: &mut options,
            cores: cores::allowed(),
            notes: Vec::new(),
            children: Vec::new(),
        };
        match builder.build() {
            Ok((url, client_cpus)) => Ok(Lab {
                scenario: scenario.clone(),
                run_root,
                state: builder.state,
                url,
                client_cpus,
                notes: builder.notes,
                children: builder.children,
                is_down: false,
            }),
            Err(cause) => {
                let Builder { dir, state, children, .. } = builder;
                // The lock is kept, so that no other process cleans up at the same time.
                let report = down::take_down(dir, Some(state), &run_root, &scenario.name, DownOptions::default());
                reap(children);
                match report {
                    Ok(report) if report.is_clean() => Err(cause),
                    Ok(report) => Err(LabError::Unclean { cause: Box::new(cause), report: Box::new(report) }),
                    Err(error) => {
                        let mut report = DownReport::new(&scenario.name);
                        report.problems.push(error.to_string());
                        Err(LabError::Unclean { cause: Box::new(cause), report: Box::new(report) })
                    }
                }
            }
        }
    }

    /// A lab that another process built and left up.
    ///
    /// # Errors
    /// [`LabError::NotUp`] where there is no complete lab of this name.
    pub fn attach(run_root: &Path, name: &str) -> Result<Lab, LabError> {
        names::check_name(name).map_err(LabError::Scenario)?;
        let state = state::read(run_root, name)?.filter(|state| state.complete && state.boot_id == state::boot_id());
        let mut state = state.ok_or_else(|| LabError::NotUp(name.to_owned()))?;
        let scenario = Scenario::parse(&state.scenario, &state.origin).map_err(|error| LabError::Scenario(error.to_string()))?;
        let topology = Topology::of(&scenario);
        let url = expand_url(&scenario, &topology)?;
        let (client_cpus, note) = cores::choose("the load generator", scenario.client.cpus.as_deref(), &cores::allowed());
        // Dropping this handle must not take the lab down.
        state.outlive = true;
        Ok(Lab {
            scenario,
            run_root: run_root.to_owned(),
            state,
            url,
            client_cpus,
            notes: note.into_iter().collect(),
            children: Vec::new(),
            is_down: false,
        })
    }

    /// Its scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The URL to load, placeholders replaced.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Name of a host's namespace in `ip netns`; `None` where the scenario has no such host.
    pub fn netns_name(&self, host: &str) -> Option<String> {
        self.scenario.host(host).map(|host| names::netns_name(&self.scenario.name, &host.name))
    }

    /// Path of a host's namespace.
    pub fn netns_path(&self, host: &str) -> Option<PathBuf> {
        self.netns_name(host).map(|name| netns::path(&name))
    }

    /// Path of the load generator's namespace.
    pub fn client_netns_path(&self) -> PathBuf {
        netns::path(&names::netns_name(&self.scenario.name, &self.scenario.client.host))
    }

    /// Cores for the load generator; `None` where it is not pinned.
    pub fn client_cpus(&self) -> Option<&[u32]> {
        self.client_cpus.as_deref()
    }

    /// Directory of the servers' files.
    pub fn run_path(&self) -> PathBuf {
        state::labs_path(&self.run_root).join(&self.scenario.name).join("run")
    }

    /// The servers in the order of their start.
    pub fn servers(&self) -> Vec<ServerInfo> {
        let host = |name: &str| self.scenario.servers.iter().find(|server| server.name == name).map(|server| server.host.clone());
        let info = |server: &ServerState| ServerInfo {
            name: server.name.clone(),
            host: host(&server.name).unwrap_or_default(),
            pid: server.process.pid,
        };
        self.state.servers.iter().map(info).collect()
    }

    /// Machine settings that the lab has changed: name, value before, value set.
    pub fn host_sysctls(&self) -> Vec<(String, String, String)> {
        let one = |sysctl: &HostSysctlState| (sysctl.key.clone(), sysctl.original.clone().unwrap_or_default(), sysctl.ours.clone());
        self.state.host_sysctls.iter().map(one).collect()
    }

    /// Remarks that are not errors: pinning skipped, limits not reached, logs outside the run directory.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Takes the lab down, as [`crate::down()`].
    ///
    /// # Errors
    /// As [`crate::down()`].
    pub fn down(mut self) -> Result<DownReport, LabError> {
        self.take_down()
    }

    fn take_down(&mut self) -> Result<DownReport, LabError> {
        self.is_down = true;
        let report = down::down(&self.run_root, &self.scenario.name, DownOptions::default());
        reap(std::mem::take(&mut self.children));
        report
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if !self.is_down && !self.state.outlive {
            // Nobody reads the result. What could not be removed is still in the state file and counts as left behind.
            let _ = self.take_down();
        }
    }
}

/// Reaps ended children, so that no zombie is left. Running ones keep running.
fn reap(children: Vec<Child>) {
    for mut child in children {
        let _ = child.try_wait();
    }
}
