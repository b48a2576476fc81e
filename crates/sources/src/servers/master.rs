//! Which processes are masters of a server of a known kind, and where their configuration begins.

use std::io::Read;

use chokepoint_foreign::open_link;
use chokepoint_recording::Outcome;
use chokepoint_servers::{ConfigurationPlace, MasterDef, Started, master_of_program};

use super::access::{Access, NEEDS, files};
use crate::root::Root;
use crate::text::error::TextLine;
use crate::text::process::stat::{self, Stat};

/// Most bytes of a command line to read.
const CMDLINE_BYTES_MAX: usize = 16 << 10;
/// Most bytes of an executable to search for its build options: nginx has 1 to 20 MB.
const EXE_BYTES_MAX: u64 = 32 << 20;

/// A master and where its configuration begins.
#[derive(Debug)]
pub(super) struct Master {
    /// Its process id: that of the parent, for a worker that stands for its master ([`MasterDef::is_apart`]).
    pub(super) pid: u32,
    pub(super) def: &'static MasterDef,
    /// Where its configuration begins; its main file and prefix are absolute.
    pub(super) place: ConfigurationPlace,
    /// The access to the files that it names.
    pub(super) access: Access,
}

/// The master with this pid, or whose worker this is if only its workers listen; nothing for any other process.
pub(super) fn master(root: &Root, pid: u32) -> Result<Option<Master>, Outcome> {
    let found = master_at(root, pid)?;
    if found.is_some() {
        return Ok(found);
    }
    let is_apart = || program(root, pid).is_some_and(|(_, def)| def.is_apart);
    let Some(parent) = stat_of(root, pid).map(|stat| stat.parent).filter(|_| is_apart()) else { return Ok(None) };
    let found = master_at(root, parent)?.filter(|master| master.def.is_apart);
    // If the worker ended meanwhile, its pid may be another process's.
    Ok(found.filter(|_| stat_of(root, pid).is_some_and(|stat| stat.parent == parent)))
}

/// What a process executes, as far as that may be known, and the kind of server whose program that is.
fn program(root: &Root, pid: u32) -> Option<(String, &'static MasterDef)> {
    let exe = match root.link_process(pid, "exe", Some(NEEDS)) {
        Outcome::Ok(target) => String::from_utf8_lossy(&target).trim_end_matches(" (deleted)").to_owned(),
        _ => String::new(),
    };
    // A process chooses its name, and with a link also what a set-uid program is called. What it executes is the kernel's word.
    let name =
        if exe.is_empty() { text(root, &format!("proc/{pid}/comm"))? } else { exe.rsplit('/').next().unwrap_or_default().to_owned() };
    master_of_program(&name).map(|def| (exe, def))
}

fn master_at(root: &Root, pid: u32) -> Result<Option<Master>, Outcome> {
    let Some(comm) = text(root, &format!("proc/{pid}/comm")) else { return Ok(None) };
    let Some((exe, def)) = program(root, pid) else { return Ok(None) };
    let start = || stat_of(root, pid).map(|stat| stat.start_ticks);
    let began = start();
    let words = words(root, pid, def);
    if !is_master(root, pid, def, &comm, &words) {
        return Ok(None);
    }
    let (files, access) = (files(root, pid)?, Access::of_process(root, pid)?);
    let started_in = match root.link_process(pid, "cwd", None) {
        Outcome::Ok(target) => String::from_utf8_lossy(&target).into_owned(),
        _ => "/".to_owned(),
    };
    let built_in = built_in(root, pid, def);
    let is_directory = |path: &str| files.locate(path).and_then(|found| found.metadata()).is_ok_and(|about| about.is_dir());
    let exists = |path: &str| path.strip_suffix("/.").map_or_else(|| files.exists(path), is_directory);
    let place = def.locate(&Started { words: &words, exe: &exe, built_in: &built_in, exists: &exists }, &started_in);
    // If another process got the pid meanwhile, the command line of one must not be combined with the rights of the other.
    Ok((start() == began).then_some(Master { pid, def, place, access }))
}

/// A worker's title says that it is a worker. Without titles, a master is a process whose parent is another program. A new worker still has its master's
/// title. A new master that takes over from another one, as in an upgrade of nginx's binary, has executed its program itself.
fn is_master(root: &Root, pid: u32, def: &MasterDef, comm: &str, words: &[String]) -> bool {
    let title = words.join(" ");
    if def.of_master(&title).is_some() {
        let is_copy = |own: Stat| {
            let parent_stack = || stat_of(root, own.parent).and_then(|parent| parent.start_stack);
            self::words(root, own.parent, def) == words && parent_stack() == own.start_stack
        };
        return !stat_of(root, pid).is_some_and(is_copy);
    }
    if def.said(&title).is_some() {
        return false;
    }
    let parent = stat_of(root, pid).map(|stat| stat.parent);
    parent.and_then(|parent| text(root, &format!("proc/{parent}/comm"))).is_none_or(|parent| parent != comm)
}

pub(super) fn stat_of(root: &Root, pid: u32) -> Option<Stat> {
    match root.read(&format!("proc/{pid}/stat"), stat::BYTES_MAX, None) {
        Outcome::Ok(bytes) => stat::parse(TextLine::new("server_config", 1), &bytes).ok(),
        _ => None,
    }
}

fn text(root: &Root, file: &str) -> Option<String> {
    match root.read(file, 4096, None) {
        Outcome::Ok(bytes) => Some(String::from_utf8_lossy(&bytes).trim_end().to_owned()),
        _ => None,
    }
}

/// The words of a process's command line or title.
pub(super) fn words(root: &Root, pid: u32, def: &MasterDef) -> Vec<String> {
    let bytes = root.command_line(pid, CMDLINE_BYTES_MAX).unwrap_or_default();
    def.words(&String::from_utf8_lossy(&bytes))
}

/// What the executable says of how it was built, from its texts. Nothing is run.
fn built_in(root: &Root, pid: u32, def: &MasterDef) -> Vec<String> {
    let mut bytes = Vec::new();
    if !def.says_how_it_was_built() {
        return Vec::new();
    }
    match open_link(&root.path(&format!("proc/{pid}/exe"))).and_then(|file| file.take(EXE_BYTES_MAX).read_to_end(&mut bytes)) {
        Ok(_) => def.built_in(&bytes),
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_and_other_programs_are_not_masters() {
        let tree = tempfile::tempdir().unwrap();
        let with_stack = |pid: u32, parent: u32, comm: &str, cmdline: &str, stack: u32| {
            let directory = tree.path().join(format!("proc/{pid}"));
            std::fs::create_dir_all(directory.join("root")).unwrap();
            std::fs::write(directory.join("comm"), format!("{comm}\n")).unwrap();
            std::fs::write(directory.join("stat"), format!("{pid} ({comm}) S {parent}{} {stack}", " 0".repeat(23))).unwrap();
            std::fs::write(directory.join("cmdline"), cmdline).unwrap();
            std::fs::write(directory.join("status"), "Uid:\t0 0 0 0\nGid:\t0 0 0 0\nGroups:\t\nCapEff:\t0\n").unwrap();
        };
        let process = |pid, parent, comm: &str, cmdline: &str| with_stack(pid, parent, comm, cmdline, 0);
        with_stack(10, 1, "nginx", "nginx: master process nginx", 700);
        with_stack(16, 10, "nginx", "nginx: master process nginx", 700); // forked only just now
        with_stack(17, 10, "nginx", "nginx: master process nginx", 800); // a new binary that takes over
        process(11, 10, "nginx", "nginx: worker process");
        process(12, 1, "nginx", "/usr/sbin/nginx\0-c\0/x\0");
        process(13, 12, "nginx", "/usr/sbin/nginx\0-c\0/x\0");
        process(14, 1, "php-fpm8.2", "php-fpm: pool www");
        process(15, 1, "java", "java\0nginx\0");
        // A set-uid program behind a link with that name: its command name and title are its own choice.
        process(18, 1, "nginx", "nginx: master process /usr/sbin/nginx -c /etc/nginx/nginx.conf");
        std::os::unix::fs::symlink("/usr/bin/passwd", tree.path().join("proc/18/exe")).unwrap();
        let root = Root::new(tree.path());
        let masters: Vec<u32> = (9..19).filter(|pid| master(&root, *pid).unwrap().is_some()).collect();
        assert_eq!(masters, [10, 12, 17]);
    }
}
