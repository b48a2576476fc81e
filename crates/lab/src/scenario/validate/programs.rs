//! Checks of servers, prefills and the client.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use super::check::Check;
use crate::scenario::document::{ProgramKind, Ready, Server};
use crate::scenario::locate::Path;
use crate::scenario::names;
use crate::scenario::placeholder::ServerValues;
use crate::server::ready;

const SERVERS_MAX: usize = 100;
/// Each flow needs its own port of 1024 to 65535; some are left for others.
const FLOWS_MAX: u32 = 60_000;
/// Highest core number that CPU_SETSIZE (sched_setaffinity(2)) can name.
const CORE_MAX: u32 = 1023;

impl Check<'_> {
    pub(super) fn programs(&mut self) {
        let root = Path::root();
        let scenario = self.scenario;
        if scenario.servers.len() > SERVERS_MAX {
            self.problem(root.key("server"), format!("at most {SERVERS_MAX} servers are allowed"));
        }
        let mut seen = BTreeSet::new();
        for (index, server) in scenario.servers.iter().enumerate() {
            let path = root.key("server").index(index);
            self.result(path.key("name"), names::check_name(&server.name));
            if !seen.insert(&server.name) {
                self.problem(path.key("name"), format!("there is a server \"{}\" already", server.name));
            }
            self.server(server, &path);
        }
        for (index, prefill) in scenario.prefills.iter().enumerate() {
            let path = root.key("prefill").index(index);
            self.host_known(&prefill.host, path.key("host"));
            if let Some(to) = self.expanded(&prefill.to, None, path.key("to")) {
                self.socket_address(&to, path.key("to"));
            }
            if !(1..=FLOWS_MAX).contains(&prefill.flows) {
                self.problem(path.key("flows"), format!("1 to {FLOWS_MAX} are allowed; use several prefills for more"));
            }
        }
        let path = root.key("client");
        self.host_known(&scenario.client.host, path.key("host"));
        self.cpus(scenario.client.cpus.as_deref(), path.key("cpus"));
    }

    fn server(&mut self, server: &Server, path: &Path) {
        self.host_known(&server.host, path.key("host"));
        self.cpus(server.cpus.as_deref(), path.key("cpus"));
        let values =
            ServerValues { name: server.name.clone(), host: server.host.clone(), user: "user".into(), group: "group".into(), cores: 1 };
        match (server.kind, &server.config, &server.command) {
            (ProgramKind::Nginx | ProgramKind::PhpFpm, Some(config), None) => {
                if config.trim().is_empty() {
                    self.problem(path.key("config"), "the configuration is empty");
                }
                self.expanded(config, Some(&values), path.key("config"));
            }
            (ProgramKind::Nginx | ProgramKind::PhpFpm, _, Some(_)) => {
                self.problem(path.key("command"), "only kind \"command\" can have this")
            }
            (ProgramKind::Nginx | ProgramKind::PhpFpm, None, None) => {
                self.problem(path.clone(), "this kind of server needs `config`, the whole configuration")
            }
            (ProgramKind::Command, Some(_), _) => {
                self.problem(
                    path.key("config"),
                    "kind \"command\" has no `config`; write it with [[file]] and name {run}/FILE in the command",
                );
            }
            (ProgramKind::Command, None, None) => {
                self.problem(path.clone(), "kind \"command\" needs `command`: the program and its arguments")
            }
            (ProgramKind::Command, None, Some(command)) => self.command(command, &values, &path.key("command")),
        }
        if server.nofile.is_some_and(|nofile| !(16..=1 << 30).contains(&nofile)) {
            self.problem(path.key("nofile"), "16 to 1073741824 are allowed");
        }
        if server.user.as_ref().is_some_and(|user| user.is_empty() || user.contains([':', '/', '\n', ' '])) {
            self.problem(path.key("user"), "give the name of a user");
        }
        for (name, value) in &server.env {
            let at = path.key("env").key(name);
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                self.problem(at.clone(), "an environment variable's name has no `=`");
            }
            self.expanded(value, Some(&values), at);
        }
        if let Some(ready) = &server.ready {
            self.ready(ready, &values, &path.key("ready"));
        }
    }

    fn command(&mut self, command: &[String], values: &ServerValues, path: &Path) {
        if command.first().is_none_or(|program| program.is_empty()) {
            self.problem(path.clone(), "the first word must be the program");
        }
        for (index, word) in command.iter().enumerate() {
            if word.contains('\0') {
                self.problem(path.index(index), "a word of a command cannot contain a zero byte");
            }
            self.expanded(word, Some(values), path.index(index));
        }
    }

    fn ready(&mut self, ready: &Ready, values: &ServerValues, path: &Path) {
        let given = [ready.tcp.is_some(), ready.unix.is_some(), ready.http.is_some(), ready.listening.is_some(), ready.finished.is_some()];
        if given.iter().filter(|given| **given).count() != 1 {
            self.problem(path.clone(), "give one of `tcp`, `unix`, `http`, `listening` and `finished`");
        }
        if let Some(tcp) = &ready.tcp
            && let Some(tcp) = self.expanded(tcp, Some(values), path.key("tcp"))
        {
            self.socket_address(&tcp, path.key("tcp"));
        }
        if let Some(unix) = &ready.unix {
            self.expanded(unix, Some(values), path.key("unix"));
        }
        if let Some(http) = &ready.http
            && let Some(http) = self.expanded(http, Some(values), path.key("http"))
        {
            self.result(path.key("http"), ready::split_url(&http).map(|_| ()));
        }
        if ready.listening == Some(false) {
            self.problem(path.key("listening"), "only `true` is allowed; leave `ready` out for a program that does not listen");
        }
        if ready.finished == Some(false) {
            self.problem(path.key("finished"), "only `true` is allowed; leave `ready` out for a program that keeps running");
        }
        if ready.timeout.is_some_and(|timeout| timeout.0.is_zero() || timeout.0.as_secs() > 600) {
            self.problem(path.key("timeout"), "more than 0 and at most 600 s are allowed");
        }
    }

    fn socket_address(&mut self, text: &str, path: Path) {
        match text.parse::<SocketAddr>() {
            Ok(address) if address.port() != 0 => {}
            _ => self.problem(path, format!("\"{text}\" is not an address with a port, such as \"10.0.0.2:80\" or \"[fd00::2]:80\"")),
        }
    }

    fn cpus(&mut self, cpus: Option<&[u32]>, path: Path) {
        if cpus.is_some_and(|cpus| cpus.is_empty() || cpus.iter().any(|core| *core > CORE_MAX)) {
            self.problem(path, format!("give at least one core number from 0 to {CORE_MAX}"));
        }
    }
}
