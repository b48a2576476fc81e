//! The cgroups of a lab, made before its servers.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use super::builder::Builder;
use crate::error::LabError;
use crate::machine::cgroup;
use crate::scenario::names;
use crate::state::CgroupState;

impl Builder<'_, '_> {
    /// Creates the cgroups, parents first.
    pub(super) fn cgroups(&mut self) -> Result<(), LabError> {
        let scenario = self.scenario;
        if scenario.cgroups.is_empty() {
            return Ok(());
        }
        let hierarchy = cgroup::find().map_err(|why| LabError::Scenario(format!("cannot create a cgroup: {why}")))?;
        for cgroup in &scenario.cgroups {
            let parent = cgroup.within.as_ref().and_then(|name| self.state.cgroups.iter().find(|made| made.name == *name));
            let roots = parent.map_or_else(|| hierarchy.roots(), |parent| parent.dirs.clone());
            let dirs: Vec<PathBuf> = roots.iter().map(|root| root.join(names::cgroup_name(&scenario.name, &cgroup.name))).collect();
            if let Some(taken) = dirs.iter().find(|dir| dir.exists()) {
                return Err(LabError::io("cannot make", taken)(ErrorKind::AlreadyExists.into()));
            }
            let made = CgroupState { name: cgroup.name.clone(), dirs: dirs.clone(), begun: true };
            self.step(&format!("cgroup {}: {} cores", cgroup.name, cgroup.cores), |state| state.cgroups.push(made))?;
            for dir in &dirs {
                fs::create_dir(dir).map_err(LabError::io("cannot make", dir))?;
            }
            if let Some(dir) = dirs.first() {
                hierarchy.limit(cgroup, dir).map_err(LabError::io("cannot limit", dir))?;
            }
        }
        Ok(())
    }
}
