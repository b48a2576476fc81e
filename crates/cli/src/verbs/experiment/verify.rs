//! Whether a variant is what it claims: libraries mapped, cores, workers, kernel parameters, kept connections. A variant that is not fails the experiment,
//! because its figures would be those of something else.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use chokepoint_experiment::Variant;
use chokepoint_lab::Lab;
use chokepoint_model::figures::Figures;
use chokepoint_model::load::LoadResult;
use chokepoint_recording::Outcome;
use chokepoint_remedy::family;
use chokepoint_sources::{Root, netns};

/// The most bytes of a process's mappings that are read: a process has at most 65,530 of them (vm.max_map_count).
const MAPS_BYTES_MAX: usize = 16 << 20;
/// From this many opened connections for a good answer on, connections are not kept.
const OPENED_KEPT_MAX: f64 = 0.5;

/// Where the servers of an experiment are: in a lab, or on this host.
pub(super) trait Subjects {
    /// The first process of a server.
    fn pid_of(&mut self, server: &str) -> Result<u32>;

    /// Name and path of the network namespace of a host.
    fn netns_of(&mut self, host: &str) -> Result<(String, PathBuf)>;
}

impl Subjects for &Lab {
    fn pid_of(&mut self, server: &str) -> Result<u32> {
        let found = self.servers().into_iter().find(|info| info.name == server);
        found.map(|info| info.pid).with_context(|| format!("the scenario has no server {server}"))
    }

    fn netns_of(&mut self, host: &str) -> Result<(String, PathBuf)> {
        let path = self.netns_path(host).with_context(|| format!("the scenario has no host {host}"))?;
        Ok((host.to_owned(), path))
    }
}

/// Checks what can be seen before the load. Returns what was verified, in words.
pub(super) fn before(subjects: &mut dyn Subjects, variant: &Variant) -> Result<Vec<String>> {
    let (root, verify) = (Root::default(), &variant.change.verify);
    let mut seen = Vec::new();
    for (server, library) in &verify.mapped {
        let all = family(subjects.pid_of(server)?);
        for pid in &all {
            if !has_mapped(&root, *pid, library)? {
                bail!("process {pid} of {server} has not mapped {library}: the variant changes nothing");
            }
        }
        seen.push(format!("{library} is mapped in {} processes of {server}", all.len()));
    }
    for (server, library) in &verify.not_mapped {
        for pid in family(subjects.pid_of(server)?) {
            if has_mapped(&root, pid, library)? {
                bail!("process {pid} of {server} has mapped {library}, which this variant is to do without");
            }
        }
        seen.push(format!("{library} is not mapped in {server}"));
    }
    for (server, wanted) in &verify.workers {
        let found = family(subjects.pid_of(server)?).len() - 1;
        if found != *wanted as usize {
            bail!("{server} runs {found} workers, not {wanted}");
        }
        seen.push(format!("{server} runs {found} workers"));
    }
    for (server, wanted) in &variant.change.cpus {
        for pid in family(subjects.pid_of(server)?) {
            let found = cores(pid)?;
            if found != *wanted {
                bail!("process {pid} of {server} may run on cores {found:?}, not on {wanted:?}");
            }
        }
        seen.push(format!("{server} runs on cores {wanted:?}"));
    }
    for (host, sysctls) in &variant.change.sysctls {
        let (host, path) = subjects.netns_of(host)?;
        for (key, wanted) in sysctls {
            let found = sysctl(&path, key)?;
            if normal(&found) != normal(&wanted.to_string()) {
                bail!("{key} of {host} is \"{found}\", not \"{wanted}\"");
            }
            seen.push(format!("{key} of {host} is {}", normal(&found)));
        }
    }
    Ok(seen)
}

/// Checks what a load shows: whether connections were kept. Returns what was verified, in words.
pub(super) fn after(subjects: &mut dyn Subjects, variant: &Variant, figures: &Figures, load: &LoadResult) -> Result<Vec<String>> {
    let mut seen = Vec::new();
    for (host, kept) in &variant.change.verify.kept {
        let (host, path) = subjects.netns_of(host)?;
        let id = netns::resolve(&Root::default(), &path.to_string_lossy())?.id;
        let accepted = figures.accepted.get(&id).with_context(|| format!("it was not read how many connections {host} accepted"))?;
        let per_answer = *accepted as f64 / load.good.max(1) as f64;
        let found = per_answer < OPENED_KEPT_MAX;
        if found != *kept {
            let (is, not) = if *kept { ("not kept", "kept") } else { ("kept", "not kept") };
            bail!("connections to {host} are {is} ({per_answer:.2} were opened for each answer), but this variant is to have them {not}");
        }
        seen.push(format!("{per_answer:.2} connections to {host} were opened for each answer"));
    }
    Ok(seen)
}

fn has_mapped(root: &Root, pid: u32, library: &str) -> Result<bool> {
    match root.read_process(pid, "maps", MAPS_BYTES_MAX, Some("CAP_SYS_PTRACE")) {
        Outcome::Ok(maps) => Ok(String::from_utf8_lossy(&maps).lines().filter_map(path_of).any(|path| path.contains(library))),
        Outcome::Absent(why, _) | Outcome::Failed(why, _) => bail!("the mappings of process {pid} could not be read: {why}"),
    }
}

/// The path in a line of proc_pid_maps(5), the sixth field, which may contain blanks.
fn path_of(line: &str) -> Option<&str> {
    line.find('/').map(|at| &line[at..])
}

/// The cores on which a process may run.
pub(super) fn cores(pid: u32) -> Result<Vec<u32>> {
    let pid_of = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw).context("no process has this number")?;
    let set = rustix::thread::sched_getaffinity(Some(pid_of)).with_context(|| format!("the cores of process {pid} could not be read"))?;
    Ok((0..rustix::thread::CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).filter_map(|core| u32::try_from(core).ok()).collect())
}

/// A kernel parameter of a network namespace.
pub(super) fn sysctl(netns: &Path, key: &str) -> Result<String> {
    let file = format!("proc/sys/{}", key.replace('.', "/"));
    let read = chokepoint_lab::inside(netns, || Root::default().read(&file, 4096, None))?;
    match read {
        Outcome::Ok(value) => Ok(String::from_utf8_lossy(&value).trim().to_owned()),
        Outcome::Absent(why, _) | Outcome::Failed(why, _) => bail!("{key} could not be read: {why}"),
    }
}

/// A value with single blanks: the kernel separates numbers by tabs.
pub(super) fn normal(value: &str) -> String {
    value.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_and_mappings_of_the_own_process_are_read() {
        let own = std::process::id();
        assert!(!cores(own).unwrap().is_empty());
        assert!(has_mapped(&Root::default(), own, "definitely-no-library").is_ok_and(|mapped| !mapped));
    }

    #[test]
    fn a_path_with_blanks_is_one_path() {
        assert_eq!(path_of("7f-8f r-xp 00000000 fe:00 12 /srv/a b.so (deleted)"), Some("/srv/a b.so (deleted)"));
        assert_eq!((path_of("7f-8f rw-p 00000000 00:00 0 [heap]"), path_of("")), (None, None));
        assert_eq!(normal("32768\t60999"), normal("32768 60999"));
    }
}
