//! Starting the servers of a lab.

use std::fs::{self, File, OpenOptions};
use std::path::Path;
use std::sync::atomic::Ordering;

use super::builder::Builder;
use crate::error::LabError;
use crate::machine::spawn::Placement;
use crate::machine::sysctl::{self, SysctlScope};
use crate::machine::{cores, process};
use crate::preflight;
use crate::scenario::document::{ProgramKind, Server};
use crate::scenario::placeholder::ServerValues;
use crate::server::{self, User};
use crate::state::{self, ProcessState, ServerState};

impl Builder<'_, '_> {
    pub(super) fn server(&mut self, server: &Server) -> Result<(), LabError> {
        let run = self.dir.run_path();
        let run_text = run.display().to_string();
        let user = self.user(server, &run)?;
        let (cpus, note) = cores::choose(&format!("server \"{}\"", server.name), server.cpus.as_deref(), &self.cores);
        self.notes.extend(note);
        let values = ServerValues {
            name: server.name.clone(),
            host: server.host.clone(),
            user: user.name.clone(),
            group: user.group.clone(),
            cores: cpus.as_ref().unwrap_or(&self.cores).len().max(1),
        };
        let plan = server::plan(server, &self.values(&run_text, Some(&values)), &self.tools, &run, &user)?;
        self.notes.extend(plan.notes.iter().cloned());
        self.step(&format!("server {}", server.name), |_| ())?;
        if let Some(config) = &plan.config {
            let path = run.join(format!("{}.conf", server.name));
            fs::write(&path, config).map_err(LabError::io("cannot write", &path))?;
        }
        let netns_path = self.netns_path(&server.host);
        let netns = fs::File::open(&netns_path).map_err(|source| LabError::Netns { host: server.host.clone(), source })?;
        let nofile = self.nofile(server);
        let cgroups = self.cgroup_files(server)?;
        let placement = Placement { netns: Some(netns), cgroups, cpus, nofile, user: plan.user, session: true };
        let child = server::start(&server.name, &plan, &run, placement)?;
        let pid = child.id();
        let start_ticks = process::read(pid).map_or(0, |process| process.start_ticks);
        self.children.push(child);
        self.state.servers.push(ServerState { name: server.name.clone(), process: ProcessState { pid, start_ticks } });
        self.dir.save(&self.state)?;
        let flag = self.options.cancelled;
        let cancelled = || flag.is_some_and(|flag| flag.load(Ordering::Relaxed));
        match self.children.last_mut() {
            Some(child) => server::wait_ready(&server.name, &plan, child, &run, &netns_path, &cancelled),
            None => Ok(()),
        }
    }

    /// The unprivileged user of a server. It must be able to reach the lab's files.
    fn user(&self, server: &Server, run: &Path) -> Result<User, LabError> {
        let missing = || {
            LabError::Scenario(format!("server \"{}\": there is no user \"{}\"", server.name, server.user.as_deref().unwrap_or("nobody")))
        };
        let user = server::find_user(server.user.as_deref());
        if server.kind == ProgramKind::Command && server.user.is_none() {
            let root = User { name: "root".to_owned(), uid: 0, gid: 0, group: "root".to_owned() };
            return Ok(user.unwrap_or(root));
        }
        let user = user.ok_or_else(missing)?;
        match state::closed_to_others(run) {
            Some(closed) if user.uid != 0 => Err(LabError::Scenario(format!(
                "user \"{}\" of server \"{}\" has no access to {}: run `chmod o+x` on it, or choose another CHOKEPOINT_RUN_DIR",
                user.name,
                server.name,
                closed.display()
            ))),
            _ => Ok(user),
        }
    }

    /// The limit of open files: the wanted one, or the highest that this process may set.
    fn nofile(&mut self, server: &Server) -> Option<u64> {
        let wanted = server.nofile?;
        let may_raise = preflight::effective_capabilities() & (1 << preflight::CAP_SYS_RESOURCE) != 0;
        let hard = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
        let bound = if may_raise { nr_open() } else { hard };
        match bound {
            Some(bound) if wanted > bound => {
                self.notes.push(format!("server \"{}\" may open {bound} files, not {wanted}: this machine's limit", server.name));
                Some(bound)
            }
            _ => Some(wanted),
        }
    }

    /// The open `cgroup.procs` files through which a server enters its cgroup.
    fn cgroup_files(&self, server: &Server) -> Result<Vec<File>, LabError> {
        let made = self.state.cgroups.iter().filter(|made| Some(&made.name) == server.cgroup.as_ref());
        let files = made.flat_map(|made| &made.dirs).map(|dir| dir.join("cgroup.procs"));
        files.map(|path| OpenOptions::new().write(true).open(&path).map_err(LabError::io("cannot open", &path))).collect()
    }
}

/// Highest RLIMIT_NOFILE, even for root (fs.nr_open).
fn nr_open() -> Option<u64> {
    sysctl::read(SysctlScope::Machine, "fs.nr_open").ok()?.parse().ok()
}
