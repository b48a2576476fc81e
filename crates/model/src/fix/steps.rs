//! The steps of a person who carries out a remedy by hand: what to paste now, what keeps it across a reboot, and what takes it back.
//!
//! Kernel settings come first, also when they are taken back: listen(2) reads `net.core.somaxconn` when a server calls it.

mod owner;
mod server;

use crate::facts::Context;
use crate::fix::change::{Change, HOST_NETNS, pinned, quoted, written};
use crate::fix::remedies::Proposal;
use crate::fix::remedy::Step;
use crate::observation::NetnsId;
use crate::output::message::Message;

pub(in crate::fix) use owner::{CgroupOwner, plain_unit};
use server::ServerByHand;

/// The directories of files that set sysctls and load modules at boot (sysctl.d(5), modules-load.d(5)).
const SYSCTL_DIR: &str = "/etc/sysctl.d";
/// Begins the name of a file in it. The last file by name wins, and Debian's `99-sysctl.conf` is `/etc/sysctl.conf`, where an administrator may have set the key.
const SYSCTL_FILE: &str = "99-zz-chokepoint-";
const MODULES_DIR: &str = "/etc/modules-load.d";
/// Sysctls that exist only once this module is loaded. systemd-sysctl runs before anything else would load it (sysctl.d(5)).
const CONNTRACK_KEYS: &str = "net.netfilter.nf_conntrack_";
const CONNTRACK_MODULE: &str = "nf_conntrack";

/// The steps of a remedy.
#[derive(Debug, Default)]
pub(in crate::fix) struct Steps {
    pub(in crate::fix) runtime: Vec<Step>,
    pub(in crate::fix) persistent: Vec<Step>,
    pub(in crate::fix) undo: Vec<Step>,
    /// What stops while they are carried out.
    pub(in crate::fix) stops: Vec<Message>,
}

/// The steps for the changes of a remedy with this id.
pub(in crate::fix) fn of(ctx: &Context<'_>, id: &str, proposal: &Proposal) -> Steps {
    let is_kernel = |change: &&Change| !matches!(change, Change::Server { .. });
    let kernel: Vec<&Change> = proposal.change.iter().filter(is_kernel).collect();
    let mut steps = Steps {
        runtime: kernel.iter().filter_map(|change| kernel_step(ctx, change, change.to(), "step-set")).collect(),
        undo: kernel.iter().rev().filter_map(|change| kernel_step(ctx, change, change.from(), "step-set-back")).collect(),
        ..Steps::default()
    };
    keep(id, &kernel, &mut steps);
    let servers = servers(ctx, &proposal.change);
    for server in &servers {
        steps.runtime.extend(server.warning());
        steps.runtime.extend(server.edit());
        steps.runtime.extend(server.put_in_force());
        let stops = server.stops().filter(|stops| !steps.stops.contains(stops));
        steps.stops.extend(stops);
    }
    // A pool must not shrink while the server in front of it still keeps connections for the larger one.
    for server in servers.iter().rev() {
        steps.undo.extend(server.warning());
        steps.undo.extend(server.take_back());
        steps.undo.extend(server.put_in_force());
    }
    if let Some(server) = proposal.reload.as_ref().and_then(|change| ServerByHand::of(ctx, Vec::new(), vec![change])) {
        steps.runtime.extend(server.warning());
        steps.runtime.extend(server.put_in_force());
        steps.stops.extend(server.stops());
    }
    steps
}

/// The servers whose settings change, each with its changes, in their order: a server comes again where a change waits for that of another server.
fn servers<'a>(ctx: &'a Context<'_>, changes: &'a [Change]) -> Vec<ServerByHand<'a>> {
    let mut turns: Vec<(&str, Vec<&Change>)> = Vec::new();
    for change in changes {
        let Change::Server { file, .. } = change else { continue };
        match turns.last_mut().filter(|(known, _)| known == file) {
            Some((_, changes)) => changes.push(change),
            None => turns.push((file, vec![change])),
        }
    }
    let earlier = |at: usize| turns[..at].iter().filter(|turn| turn.0 == turns[at].0).flat_map(|turn| turn.1.clone()).collect();
    (0..turns.len()).filter_map(|at| ServerByHand::of(ctx, earlier(at), turns[at].1.clone())).collect()
}

/// The step that gives a sysctl or a cgroup's limit a value.
fn kernel_step(ctx: &Context<'_>, change: &Change, value: &str, text: &'static str) -> Option<Step> {
    let text = Message::new(text).with("key", change.key()).with("value", value);
    match change {
        Change::Sysctl { key, netns, netns_name, .. } => {
            let command = format!("sysctl -w {key}={}", quoted(value));
            Some(match enter(ctx, *netns, netns_name) {
                Enter::Here => Step::told(text, command),
                Enter::Through(prefix) => Step::told(text, format!("{prefix} {command}")),
                // The same command outside of the namespace would change the host.
                Enter::Unknown => {
                    let text = Message::new("step-set-in-netns").with("key", key.as_str()).with("value", value);
                    Step::words(text.with("netns", netns_name.as_str()))
                }
            })
        }
        Change::Cgroup { dir, file, .. } => Some(Step::told(text, written(dir, file, value))),
        Change::Affinity { pid, .. } => Some(Step::told(text, pinned(*pid, value))),
        Change::Server { .. } => None,
    }
}

/// How a command gets into a network namespace.
enum Enter {
    /// A shell of the host is in it.
    Here,
    /// With these words before the command.
    Through(String),
    /// It has no name and no process that is known.
    Unknown,
}

fn enter(ctx: &Context<'_>, netns: NetnsId, name: &str) -> Enter {
    if name == HOST_NETNS {
        return Enter::Here;
    }
    if !name.starts_with("net:[") {
        return Enter::Through(format!("ip netns exec {}", quoted(name)));
    }
    let is_in = |pid: &&u32| ctx.obs.processes.get(*pid).and_then(|process| process.identity.last()).is_some_and(|own| own.netns == netns);
    // The servers of the path live longest.
    let of_path = ctx.path.tiers.iter().flat_map(|tier| &tier.pids);
    match of_path.chain(ctx.obs.processes.keys()).find(is_in) {
        Some(pid) => Enter::Through(format!("nsenter -t {pid} -n")),
        None => Enter::Unknown,
    }
}

/// The command as it reads a network namespace from a shell of the host. `None` if it cannot get in: the same command outside would show another one.
pub(in crate::fix) fn read_in_netns(ctx: &Context<'_>, netns: NetnsId, command: &str) -> Option<String> {
    match enter(ctx, netns, &ctx.netns_name(netns)) {
        Enter::Here => Some(command.to_owned()),
        Enter::Through(prefix) => Some(format!("{prefix} {command}")),
        Enter::Unknown => None,
    }
}

/// The steps that keep sysctls across a reboot, and that remove what those add.
fn keep(id: &str, kernel: &[&Change], steps: &mut Steps) {
    let mut lines: Vec<String> = Vec::new();
    for change in kernel {
        let Change::Sysctl { key, netns_name, to, .. } = change else { continue };
        if netns_name == HOST_NETNS {
            lines.push(format!("{key} = {to}"));
        } else {
            let text = Message::new("step-keep-in-netns").with("key", key.as_str()).with("value", to.as_str());
            steps.persistent.push(Step::words(text.with("netns", netns_name.as_str())));
        }
    }
    if lines.is_empty() {
        return;
    }
    let mut added = Vec::new();
    if lines.iter().any(|line| line.starts_with(CONNTRACK_KEYS)) {
        let file = format!("{MODULES_DIR}/chokepoint-{id}.conf");
        let text = Message::new("step-load-module").with("module", CONNTRACK_MODULE);
        steps.persistent.push(Step::told(text, file_with(&[CONNTRACK_MODULE.to_owned()], &file)));
        added.push(file);
    }
    let file = format!("{SYSCTL_DIR}/{SYSCTL_FILE}{id}.conf");
    steps.persistent.push(Step::told(Message::new("step-keep-sysctl"), file_with(&lines, &file)));
    added.push(file);
    steps.undo.push(Step::told(Message::new("step-forget-sysctl"), format!("rm -f {}", added.join(" "))));
}

/// The command that writes a file with these lines.
fn file_with(lines: &[String], file: &str) -> String {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    format!("{} | tee {}", printed(text.as_bytes()), quoted(file))
}

/// The command that prints these lines. A quoted line keeps its blanks wherever the command is pasted, which a here-document does not if it is indented.
/// A tab or a byte beyond ASCII is an escape of printf(1): a terminal completes words at a pasted tab, and shows other characters than the file has.
fn printed(text: &[u8]) -> String {
    let lines = text.strip_suffix(b"\n").unwrap_or(text).split(|byte| *byte == b'\n');
    let is_plain = text.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\n'));
    let lines: Vec<String> = lines.map(|line| line.iter().map(|byte| written_byte(*byte, is_plain)).collect()).collect();
    let format = if is_plain { "%s" } else { "%b" };
    match &lines[..] {
        [line] => format!("printf '{format}\\n' '{line}'"),
        lines => format!("printf '{format}\\n' \\\n  '{}'", lines.join("' \\\n  '")),
    }
}

/// A byte between single quotes: as it is, or as `%b` of printf(1) reads it.
fn written_byte(byte: u8, is_plain: bool) -> String {
    match byte {
        b'\'' => "'\\''".to_owned(),
        b'\\' if !is_plain => "\\\\".to_owned(),
        b'\t' => "\\t".to_owned(),
        b'\r' => "\\r".to_owned(),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\0{byte:03o}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sysctl(key: &str, netns_name: &str) -> Change {
        let (key, netns_name) = (key.to_owned(), netns_name.to_owned());
        Change::Sysctl { key, netns: NetnsId(7), netns_name, from: "1 2".to_owned(), to: "3 4".to_owned() }
    }

    #[test]
    fn a_conntrack_sysctl_takes_its_module_at_boot_and_the_undo_removes_both_files() {
        let (one, other) = (sysctl("net.netfilter.nf_conntrack_max", "host"), sysctl("net.core.somaxconn", "host"));
        let mut steps = Steps::default();
        keep("x", &[&one, &other], &mut steps);
        let commands: Vec<&str> = steps.persistent.iter().filter_map(|step| step.command.as_deref()).collect();
        assert_eq!(commands[0], "printf '%s\\n' 'nf_conntrack' | tee /etc/modules-load.d/chokepoint-x.conf");
        let lines = "'net.netfilter.nf_conntrack_max = 3 4' \\\n  'net.core.somaxconn = 3 4'";
        assert_eq!(commands[1], format!("printf '%s\\n' \\\n  {lines} | tee /etc/sysctl.d/99-zz-chokepoint-x.conf"));
        let undo = steps.undo[0].command.as_deref();
        assert_eq!(undo, Some("rm -f /etc/modules-load.d/chokepoint-x.conf /etc/sysctl.d/99-zz-chokepoint-x.conf"));
    }

    #[test]
    fn what_a_terminal_would_change_is_an_escape() {
        assert_eq!(printed(b"a 'b'\\n\n"), "printf '%s\\n' 'a '\\''b'\\''\\n'");
        assert_eq!(printed(b"-\ta\\\r\n+\xe9\n\n"), "printf '%b\\n' \\\n  '-\\ta\\\\\\r' \\\n  '+\\0351' \\\n  ''");
    }

    #[test]
    fn a_namespace_of_its_own_is_kept_by_whatever_makes_it() {
        let mut steps = Steps::default();
        keep("x", &[&sysctl("net.core.somaxconn", "web")], &mut steps);
        assert_eq!((steps.persistent.len(), &steps.persistent[0].command, steps.undo.len()), (1, &None, 0));
    }
}
