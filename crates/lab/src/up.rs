//! Building a lab step by step, each step recorded before it is taken; and the lab once it is up.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::down::{self, DownOptions, DownReport};
use crate::error::LabError;
use crate::placeholder::{self, ServerValues, Values};
use crate::preflight::{self, Tools};
use crate::scenario::{FileSpec, Kind, Scenario, Server};
use crate::server::{self, User};
use crate::spawn::Placement;
use crate::state::{self, HostSysctlState, LabDir, NamespaceState, ProcessState, ServerState, State};
use crate::sysctl::{self, SysctlScope};
use crate::topology::Topology;
use crate::{cores, names, netns, prefill, process};

const CONNTRACK_MAX: &str = "net.netfilter.nf_conntrack_max";
const CONNTRACK_COUNT: &str = "net.netfilter.nf_conntrack_count";

/// How a lab is built.
pub struct Options<'o> {
    /// The directory for state and run files; [`crate::run_root`] gives the usual one.
    pub run_root: PathBuf,
    /// True: the lab stays when this process ends (`lab up`). False: dropping the [`Lab`] takes it down, and what a killed process leaves
    /// counts as left behind.
    pub outlive: bool,
    /// A lab that is up and will stay up for longer than this one: a setting of the machine that it has set may be set anew, since this lab puts
    /// back what it found before that one does.
    pub within: Option<&'o str>,
    /// Building stops soon after this becomes true (Ctrl-C), and takes away what it has built.
    pub cancelled: Option<&'o AtomicBool>,
    /// Told what comes next, before each step.
    pub on_step: &'o mut dyn FnMut(&str),
}

/// A server that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    /// Its name in the scenario.
    pub name: String,
    /// The host it runs on.
    pub host: String,
    /// The process that was started; its workers are its children.
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

pub(crate) struct Builder<'b, 'o> {
    pub(crate) scenario: &'b Scenario,
    pub(crate) tools: Tools,
    pub(crate) topology: Topology,
    pub(crate) dir: LabDir,
    pub(crate) state: State,
    pub(crate) sysctls_set: BTreeSet<(String, String)>,
    options: &'b mut Options<'o>,
    cores: Vec<u32>,
    notes: Vec<String>,
    children: Vec<Child>,
}

impl Lab {
    /// Builds a scenario. On failure everything that was built is taken away again.
    ///
    /// # Errors
    /// [`LabError`]; [`LabError::Unclean`] where something could not be taken away.
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
                // The lock is kept, so that nobody else cleans up at the same time.
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

    /// A lab that another process has built and left up.
    ///
    /// # Errors
    /// [`LabError::NotUp`] where there is none of this name or it is not complete.
    pub fn attach(run_root: &Path, name: &str) -> Result<Lab, LabError> {
        names::check_name(name).map_err(LabError::Scenario)?;
        let state = state::read(run_root, name)?.filter(|state| state.complete && state.boot_id == state::boot_id());
        let mut state = state.ok_or_else(|| LabError::NotUp(name.to_owned()))?;
        let scenario = Scenario::parse(&state.scenario, &state.origin).map_err(|error| LabError::Scenario(error.to_string()))?;
        let topology = Topology::of(&scenario);
        let url = expand_url(&scenario, &topology)?;
        let (client_cpus, note) = cores::choose("the load generator", scenario.client.cpus.as_deref(), &cores::allowed());
        // It belongs to itself: dropping this must not take it down.
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

    /// The scenario that it was built from.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The URL to load, placeholders replaced.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Name of a host's namespace, as `ip netns` shows it; `None` where the scenario has no such host.
    pub fn netns_name(&self, host: &str) -> Option<String> {
        self.scenario.host(host).map(|host| names::netns_name(&self.scenario.name, &host.name))
    }

    /// Path by which a host's namespace is entered.
    pub fn netns_path(&self, host: &str) -> Option<PathBuf> {
        self.netns_name(host).map(|name| netns::path(&name))
    }

    /// Path of the namespace from which the load comes.
    pub fn client_netns_path(&self) -> PathBuf {
        netns::path(&names::netns_name(&self.scenario.name, &self.scenario.client.host))
    }

    /// Cores for the load generator; `None` where it is not to be pinned.
    pub fn client_cpus(&self) -> Option<&[u32]> {
        self.client_cpus.as_deref()
    }

    /// Directory of the servers' files, configurations and logs.
    pub fn run_path(&self) -> PathBuf {
        state::labs_path(&self.run_root).join(&self.scenario.name).join("run")
    }

    /// The servers, in the order in which they were started.
    pub fn servers(&self) -> Vec<ServerInfo> {
        let host = |name: &str| self.scenario.servers.iter().find(|server| server.name == name).map(|server| server.host.clone());
        let info = |server: &ServerState| ServerInfo {
            name: server.name.clone(),
            host: host(&server.name).unwrap_or_default(),
            pid: server.process.pid,
        };
        self.state.servers.iter().map(info).collect()
    }

    /// Settings of the whole machine that it has changed: name, value found, value set.
    pub fn host_sysctls(&self) -> Vec<(String, String, String)> {
        let one = |sysctl: &HostSysctlState| (sysctl.key.clone(), sysctl.original.clone().unwrap_or_default(), sysctl.ours.clone());
        self.state.host_sysctls.iter().map(one).collect()
    }

    /// Things to know that are no errors: pinning skipped, limits not reached, logs outside the run directory.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Takes it down; see [`crate::down()`].
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
            // There is nobody to tell; what could not be taken away is still in the state file and shows as left behind.
            let _ = self.take_down();
        }
    }
}

/// Collects ended children, so that no zombie is left; those that still run are left to run.
fn reap(children: Vec<Child>) {
    for mut child in children {
        let _ = child.try_wait();
    }
}

/// Makes the lab's directory and first state, after seeing that nothing of it is in anyone's way.
fn claim(scenario: &Scenario, options: &Options<'_>) -> Result<(LabDir, State), LabError> {
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
    let host_sysctl = |(key, value): (&String, &crate::scenario::Setting)| HostSysctlState {
        key: key.clone(),
        ours: sysctl::normal(&value.0),
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

fn expand_url(scenario: &Scenario, topology: &Topology) -> Result<String, LabError> {
    let values = Values { lab: &scenario.name, topology, run: None, server: None };
    placeholder::expand(&scenario.load.url, &values).map_err(LabError::Scenario)
}

impl Builder<'_, '_> {
    /// Takes the next step: tells it, records what it begins, and only then lets it happen.
    pub(crate) fn step(&mut self, text: &str, begin: impl FnOnce(&mut State)) -> Result<(), LabError> {
        (self.options.on_step)(text);
        if self.is_cancelled() {
            return Err(LabError::Interrupted);
        }
        begin(&mut self.state);
        self.dir.save(&self.state)
    }

    fn is_cancelled(&self) -> bool {
        self.options.cancelled.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    fn build(&mut self) -> Result<(String, Option<Vec<u32>>), LabError> {
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

    /// Sets the settings of the whole machine.
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

    fn values<'v>(&'v self, run: &'v str, server: Option<&'v ServerValues>) -> Values<'v> {
        Values { lab: &self.scenario.name, topology: &self.topology, run: Some(run), server }
    }

    /// Writes the files.
    fn files(&mut self) -> Result<(), LabError> {
        let scenario = self.scenario;
        if scenario.files.is_empty() {
            return Ok(());
        }
        self.step("files", |_| ())?;
        let run = self.dir.run_path();
        let run_text = run.display().to_string();
        for file in &scenario.files {
            let path = run.join(&file.path);
            if let Some(parent) = path.parent() {
                make_directories(&run, parent).map_err(LabError::io("cannot make", parent))?;
            }
            let values = self.values(&run_text, None);
            let content = file.content.as_deref().map(|content| placeholder::expand(content, &values)).transpose();
            let content = content.map_err(|why| LabError::Scenario(format!("file \"{}\": {why}", file.path)))?;
            write_file(&path, file, content.as_deref()).map_err(LabError::io("cannot write", &path))?;
        }
        Ok(())
    }

    fn server(&mut self, server: &Server) -> Result<(), LabError> {
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

    /// The unprivileged user of a server. Where there is one, it must be able to reach the files of the lab.
    fn user(&self, server: &Server, run: &Path) -> Result<User, LabError> {
        let missing = || {
            LabError::Scenario(format!("server \"{}\": there is no user \"{}\"", server.name, server.user.as_deref().unwrap_or("nobody")))
        };
        let user = server::find_user(server.user.as_deref());
        if server.kind == Kind::Command && server.user.is_none() {
            let root = User { name: "root".to_owned(), uid: 0, gid: 0, group: "root".to_owned() };
            return Ok(user.unwrap_or(root));
        }
        let user = user.ok_or_else(missing)?;
        match state::closed_to_others(run) {
            Some(closed) if user.uid != 0 => Err(LabError::Scenario(format!(
                "user \"{}\" of server \"{}\" cannot pass through {}: `chmod o+x` it or choose another CHOKEPOINT_RUN_DIR",
                user.name,
                server.name,
                closed.display()
            ))),
            _ => Ok(user),
        }
    }

    /// The limit of open files that can be set: as asked for, or the hard limit where more is not ours to give.
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

    fn prefills(&mut self) -> Result<(), LabError> {
        let scenario = self.scenario;
        let mut ports = prefill::Ports::default();
        for prefill in &scenario.prefills {
            let to = placeholder::expand(&prefill.to, &self.values("", None)).map_err(LabError::Scenario)?;
            let address = to.parse().map_err(|_| LabError::Scenario(format!("prefill: \"{to}\" is no address with port")))?;
            self.step(&format!("{} flows from {} to {to}", prefill.flows, prefill.host), |_| ())?;
            let failed = |error| LabError::Scenario(format!("prefill from host \"{}\" to {to}: {error}", prefill.host));
            ports.send(&prefill.host, &self.netns_path(&prefill.host), address, prefill.flows).map_err(failed)?;
        }
        Ok(())
    }
}

/// The most that RLIMIT_NOFILE can be, even for root (fs.nr_open).
fn nr_open() -> Option<u64> {
    sysctl::read(SysctlScope::Machine, "fs.nr_open").ok()?.parse().ok()
}

/// The table of connections has one maximum for all namespaces: refuses one that the machine's own connections would run into.
fn check_host_use(key: &str, wanted: &str) -> Result<(), LabError> {
    if key != CONNTRACK_MAX {
        return Ok(());
    }
    let used = sysctl::read(SysctlScope::Machine, CONNTRACK_COUNT).ok().and_then(|count| count.parse::<u64>().ok()).unwrap_or(0);
    match wanted.parse::<u64>() {
        // Zero means without limit.
        Ok(max) if max > 0 && used > max / 2 => Err(LabError::HostInUse {
            key: key.to_owned(),
            wanted: wanted.to_owned(),
            why: format!("its own table holds {used} connections now, and the maximum counts for all namespaces"),
        }),
        _ => Ok(()),
    }
}

fn make_directories(root: &Path, directory: &Path) -> std::io::Result<()> {
    let mut path = root.to_owned();
    for part in directory.strip_prefix(root).unwrap_or(Path::new("")) {
        path.push(part);
        match fs::DirBuilder::new().mode(0o755).create(&path) {
            Ok(()) => fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?,
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn write_file(path: &Path, spec: &FileSpec, content: Option<&str>) -> std::io::Result<()> {
    let mut file = fs::File::create_new(path)?;
    match (content, spec.size) {
        (Some(content), _) => file.write_all(content.as_bytes())?,
        (None, size) => write_noise(&mut file, size.map_or(0, |size| size.0))?,
    }
    file.set_permissions(fs::Permissions::from_mode(spec.mode.map_or(0o644, |mode| mode.0)))
}

/// Bytes that do not compress and are the same every time (xorshift64, Marsaglia 2003).
fn write_noise(file: &mut fs::File, bytes: u64) -> std::io::Result<()> {
    let mut word = 0x9e37_79b9_7f4a_7c15_u64;
    let mut left = bytes;
    while left > 0 {
        let mut block = Vec::with_capacity(8192);
        for _ in 0..1024 {
            word ^= word << 13;
            word ^= word >> 7;
            word ^= word << 17;
            block.extend_from_slice(&word.to_le_bytes());
        }
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
        file.write_all(&block[..length])?;
        left -= length as u64;
    }
    Ok(())
}
