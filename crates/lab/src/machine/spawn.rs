//! Starting programs: the tools that build the network, with a timeout, and servers with their namespace, cores and limits.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::error::LabError;

/// Timeout of a tool.
const TOOL_TIME_MAX: Duration = Duration::from_secs(30);
/// Most bytes kept of a tool's output. The rest is discarded.
const OUTPUT_BYTES_MAX: u64 = 64 * 1024;

/// Runs a tool to its end, in a network namespace if one is given.
///
/// # Errors
/// [`LabError::Tool`] with its output, where the tool cannot be started, fails, or takes longer than 30 s.
pub(crate) fn tool(program: &Path, arguments: &[&str], netns: Option<&Path>) -> Result<(), LabError> {
    let shown = format!("{} {}", program.display(), arguments.join(" "));
    let failed = |output: String| LabError::Tool { command: shown.clone(), output };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // Ctrl-C must reach this process only, not end a tool half way.
    command.process_group(0);
    if let Some(netns) = netns {
        let namespace = File::open(netns).map_err(|error| failed(format!("{}: {error}", netns.display())))?;
        place(&mut command, Placement { netns: Some(namespace), ..Placement::default() });
    }
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    let stderr = child.stderr.take();
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut stderr) = stderr {
            // Reading to the end keeps the tool from blocking on a full pipe. After a failed read the text so far is kept.
            let _ = stderr.by_ref().take(OUTPUT_BYTES_MAX).read_to_end(&mut text);
            let _ = io::copy(&mut stderr, &mut io::sink());
        }
        String::from_utf8_lossy(&text).trim().to_owned()
    });
    let status = wait(&mut child, TOOL_TIME_MAX).map_err(|error| failed(error.to_string()))?;
    let Some(status) = status else {
        return Err(failed(format!("it did not end within {} s", TOOL_TIME_MAX.as_secs())));
    };
    if status.success() {
        return Ok(());
    }
    let output = reader.join().unwrap_or_default();
    Err(failed(if output.is_empty() { status.to_string() } else { output }))
}

/// Waits for a child. Kills it after `time_max` and returns `None`.
fn wait(child: &mut Child, time_max: Duration) -> io::Result<Option<std::process::ExitStatus>> {
    let deadline = Instant::now() + time_max;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Namespace, cgroups, cores, limits and user of a program.
#[derive(Default)]
pub(crate) struct Placement {
    pub(crate) netns: Option<File>,
    /// `cgroup.procs` of its cgroups, open for writing.
    pub(crate) cgroups: Vec<File>,
    pub(crate) cpus: Option<Vec<u32>>,
    /// RLIMIT_NOFILE, soft and hard.
    pub(crate) nofile: Option<u64>,
    /// User and group id.
    pub(crate) user: Option<(u32, u32)>,
    /// True: a new session, so that no terminal reaches the program and the session identifies its descendants.
    pub(crate) session: bool,
}

/// Makes a command start with a placement.
pub(crate) fn place(command: &mut Command, placement: Placement) {
    let cpus = placement.cpus.as_deref().map(cpu_set);
    let prepare = move || {
        if let Some(netns) = &placement.netns {
            // SAFETY: setns(2) takes an open descriptor and a flag; the file is owned by this closure and so still open.
            check(unsafe { libc::setns(netns.as_raw_fd(), libc::CLONE_NEWNET) })?;
        }
        for cgroup in &placement.cgroups {
            // "0" stands for the writing process (cgroups(7)).
            // SAFETY: write(2) reads one byte from a pointer to one; the file is owned by this closure and so still open.
            let written = unsafe { libc::write(cgroup.as_raw_fd(), c"0".as_ptr().cast(), 1) };
            check(if written == 1 { 0 } else { -1 })?;
        }
        if let Some(cpus) = &cpus {
            // SAFETY: the set is a whole, initialised cpu_set_t of exactly the size given.
            check(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), cpus) })?;
        }
        if let Some(nofile) = placement.nofile {
            let limit = libc::rlimit { rlim_cur: nofile, rlim_max: nofile };
            // SAFETY: the pointer is to a whole, initialised rlimit that outlives the call.
            check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) })?;
        }
        if placement.session {
            // SAFETY: setsid(2) takes nothing and touches no memory.
            check(unsafe { libc::setsid() })?;
        }
        if let Some((user, group)) = placement.user {
            // SAFETY: setgroups(2) reads one gid_t from a pointer to one; the id calls take plain numbers. Groups come first: without root they
            // could not be changed.
            check(unsafe { libc::setgroups(1, &raw const group) })?;
            // SAFETY: as above.
            check(unsafe { libc::setgid(group) })?;
            // SAFETY: as above.
            check(unsafe { libc::setuid(user) })?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes plain system calls on memory prepared before, all async-signal-safe. It allocates nothing and
    // takes no lock.
    unsafe { command.pre_exec(prepare) };
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn cpu_set(cores: &[u32]) -> libc::cpu_set_t {
    // SAFETY: cpu_set_t is an array of integers, for which all zero bits are a value: the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for core in cores.iter().filter(|core| **core < libc::CPU_SETSIZE as u32) {
        // SAFETY: the core is below CPU_SETSIZE, so the bit lies within the set.
        unsafe { libc::CPU_SET(*core as usize, &mut set) };
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_tool_reports_its_output() {
        assert!(tool(Path::new("/bin/true"), &[], None).is_ok());
        let error = tool(Path::new("/bin/sh"), &["-c", "echo bad thing >&2; exit 3"], None).unwrap_err().to_string();
        assert!(error.contains("/bin/sh -c") && error.ends_with("bad thing"), "{error}");
        let error = tool(Path::new("/bin/false"), &[], None).unwrap_err().to_string();
        assert!(error.contains("exit status: 1"), "{error}");
        assert!(tool(Path::new("/nonexistent"), &[], None).is_err());
        assert!(tool(Path::new("/bin/true"), &[], Some(Path::new("/nonexistent"))).is_err());
    }

    #[test]
    fn a_large_output_does_not_block_a_tool() {
        let error = tool(Path::new("/bin/sh"), &["-c", "head -c 300000 /dev/zero | tr '\\0' x >&2; exit 1"], None).unwrap_err();
        assert!(matches!(error, LabError::Tool { output, .. } if output.len() as u64 == OUTPUT_BYTES_MAX));
    }

    #[test]
    fn a_program_starts_with_its_cores_and_limits() {
        let core = super::super::cores::allowed()[0];
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -n; ulimit -Hn; grep Cpus_allowed_list /proc/self/status; cut -d' ' -f1,6 /proc/$$/stat"]);
        place(&mut command, Placement { cpus: Some(vec![core]), nofile: Some(64), session: true, ..Placement::default() });
        let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let lines: Vec<&str> = output.lines().collect();
        assert_eq!(lines[..3], ["64", "64", &format!("Cpus_allowed_list:\t{core}")]);
        let (pid, session) = lines[3].split_once(' ').unwrap();
        assert_eq!(pid, session);
    }

    #[test]
    fn a_child_that_hangs_is_killed() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert!(wait(&mut child, Duration::from_millis(20)).unwrap().is_none());
    }
}
