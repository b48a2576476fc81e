//! A configuration that is read again: only after the server has read it, and only if it says something else.

use super::*;

impl Host {
    /// A process beside the master. The address is that of its stack.
    fn process(&self, pid: u32, parent: u32, title: &str, stack: u64) {
        let directory = self.tree.path().join(format!("proc/{pid}"));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("comm"), "server\n").unwrap();
        std::fs::write(directory.join("stat"), format!("{pid} (server) S {parent}{} {stack}", " 0".repeat(23))).unwrap();
        std::fs::write(directory.join("cmdline"), title).unwrap();
    }

    /// The children of the master: each with its title, and a stack at this address in all of them.
    fn children(&self, of: &[(u32, &str)], stack: u64, is_listed: bool) {
        let task = self.tree.path().join("proc/42/task/42");
        std::fs::create_dir_all(&task).unwrap();
        let names: String = of.iter().map(|(pid, _)| format!("{pid} ")).collect();
        match is_listed {
            true => std::fs::write(task.join("children"), names).unwrap(),
            false => drop(std::fs::remove_file(task.join("children"))),
        }
        for pid in (50..90).filter(|pid| of.iter().all(|(child, _)| child != pid)) {
            let _ = std::fs::remove_dir_all(self.tree.path().join(format!("proc/{pid}")));
        }
        of.iter().for_each(|(pid, title)| self.process(*pid, 42, title, stack));
    }

    /// What is said again: the value of a setting in the text, if there is a text.
    fn again(&self, setting: &str) -> Option<String> {
        self.said(Phase::Running, setting)
    }

    fn said(&self, phase: Phase, setting: &str) -> Option<String> {
        let entries = self.read(&SERVER_CONFIG, phase);
        let Outcome::Ok(text) = &entries.first()?.outcome else { panic!("{entries:?}") };
        let text = String::from_utf8_lossy(text).into_owned();
        let value = text.split_once(setting).unwrap_or_else(|| panic!("{text}")).1;
        Some(value.trim_start_matches([' ', '=']).split([';', '\n']).next()?.to_owned())
    }
}

const WORKER: &str = "nginx: worker process";
const ENDS: &str = "nginx: worker process is shutting down";

#[test]
fn an_edited_file_of_nginx_counts_once_other_workers_have_taken_over() {
    for is_listed in [true, false] {
        let host = Host::nginx();
        let edit = |connections: u32| host.write(MAIN, &NGINX.replace("64", &connections.to_string()));
        let children = |of: &[(u32, &str)]| host.children(of, 0, is_listed);
        children(&[(50, WORKER), (51, WORKER), (60, "nginx: cache manager process")]);
        assert_eq!(host.said(Phase::First, "worker_connections").as_deref(), Some("64"));
        assert_eq!(host.again("worker_connections"), None);
        edit(128);
        assert_eq!(host.again("worker_connections"), None, "it is not in force");
        children(&[(50, WORKER), (52, WORKER), (60, "nginx: cache manager process")]);
        assert_eq!(host.again("worker_connections"), None, "a worker that died was replaced");
        children(&[(50, WORKER), (53, WORKER), (54, WORKER)]);
        assert_eq!(host.again("worker_connections"), None, "the old ones have not been told yet");
        children(&[(50, ENDS), (53, WORKER), (54, WORKER)]);
        assert_eq!(host.again("worker_connections").as_deref(), Some("128"), "one that ends goes on for as long as a connection does");
        edit(256);
        children(&[(50, ENDS), (53, WORKER), (54, WORKER)]);
        assert_eq!(host.again("worker_connections"), None);
        children(&[]);
        assert_eq!(host.again("worker_connections"), None, "no worker is there yet");
        children(&[(55, WORKER), (56, WORKER)]);
        assert_eq!(host.again("worker_connections").as_deref(), Some("256"));
        children(&[(57, WORKER)]);
        assert_eq!(host.again("worker_connections"), None, "it says the same");
    }
}

#[test]
fn an_edited_file_of_php_fpm_counts_once_its_master_has_executed_its_program_again() {
    let pool = |children: u32| format!("[www]\nlisten = 127.0.0.1:9000\npm = dynamic\npm.max_children = {children}\n");
    // Without the right to trace the master only its workers tell.
    for may_trace in [true, false] {
        let host = Host::new("php-fpm8.2", "php-fpm: master process (/etc/fpm.conf)\0\0");
        let state = |stack: u64, of: &[(u32, &str)]| {
            let stack = if may_trace { stack } else { 0 };
            std::fs::write(host.tree.path().join("proc/42/stat"), format!("42 (php-fpm8.2) S 1{} {stack}", " 0".repeat(23))).unwrap();
            host.children(of, stack, true);
        };
        const POOL: &str = "php-fpm: pool www";
        host.write("/etc/fpm.conf", &pool(5));
        state(700, &[(50, POOL), (51, POOL)]);
        assert_eq!(host.said(Phase::First, "pm.max_children").as_deref(), Some("5"));
        host.write("/etc/fpm.conf", &pool(9));
        state(700, &[(51, POOL), (52, POOL), (53, POOL)]);
        assert_eq!(host.again("pm.max_children"), None, "pools begin and end workers at any time");
        if may_trace {
            state(700, &[(54, POOL), (55, POOL)]);
            assert_eq!(host.again("pm.max_children"), None, "all of them too");
        }
        state(800, &[(56, POOL), (57, POOL)]);
        assert_eq!(host.again("pm.max_children").as_deref(), Some("9"));
        assert_eq!(host.again("pm.max_children"), None);
    }
}
