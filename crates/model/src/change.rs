//! Change intents: what a remedy would change, without saying how it is done. `remedy` carries them out.

use serde::{Deserialize, Serialize};

use crate::observation::NetnsId;

/// File of the lines that make a sysctl last (sysctl.d(5)).
const SYSCTL_FILE: &str = "/etc/sysctl.d/90-chokepoint.conf";
/// Name of the namespace of process 1.
pub const HOST_NETNS: &str = "host";

/// One change to one setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Change {
    /// A kernel parameter (sysctl(8)).
    Sysctl {
        /// Dotted name, "net.netfilter.nf_conntrack_max".
        key: String,
        /// The namespace in which it is set; host-only keys name the host's.
        netns: NetnsId,
        /// That namespace's name for the report ("host" for the one of process 1).
        netns_name: String,
        /// The value found when the change was proposed.
        from: String,
        /// The value to set.
        to: String,
    },
}

/// When a change takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// At once.
    Live,
    /// After the server reloaded its configuration.
    Reload,
    /// After the server was restarted.
    Restart,
}

impl Change {
    /// The exact command that makes the change now.
    pub fn command(&self) -> String {
        let Change::Sysctl { key, to, .. } = self;
        self.in_netns(&format!("sysctl -w {key}={}", quoted(to)))
    }

    /// The exact command that takes the change back.
    pub fn undo_command(&self) -> String {
        let Change::Sysctl { key, from, .. } = self;
        self.in_netns(&format!("sysctl -w {key}={}", quoted(from)))
    }

    /// The file and the line that make the change last over a boot; nothing where only what creates the namespace can.
    pub fn persistent(&self) -> Option<(String, String)> {
        let Change::Sysctl { key, to, netns_name, .. } = self;
        (netns_name == HOST_NETNS).then(|| (SYSCTL_FILE.to_owned(), format!("{key} = {to}")))
    }

    fn in_netns(&self, command: &str) -> String {
        let Change::Sysctl { netns_name, netns, .. } = self;
        if netns_name == HOST_NETNS {
            command.to_owned()
        } else if netns_name.starts_with("net:[") {
            // An unnamed namespace is entered through a process in it, which the reader must choose.
            format!("nsenter --net=/proc/PID/ns/net {command}   # PID: a process in {netns}")
        } else {
            format!("ip netns exec {netns_name} {command}")
        }
    }
}

/// A value as one word of a shell command.
fn quoted(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/:".contains(c);
    if !value.is_empty() && value.chars().all(plain) { value.to_owned() } else { format!("'{}'", value.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(netns_name: &str, to: &str) -> Change {
        let key = "net.ipv4.ip_local_port_range".to_owned();
        Change::Sysctl { key, netns: NetnsId(7), netns_name: netns_name.to_owned(), from: "20000 20050".to_owned(), to: to.to_owned() }
    }

    #[test]
    fn commands_are_exact_for_every_kind_of_namespace() {
        assert_eq!(change("host", "10000 65535").command(), "sysctl -w net.ipv4.ip_local_port_range='10000 65535'");
        assert_eq!(change("web", "1").command(), "ip netns exec web sysctl -w net.ipv4.ip_local_port_range=1");
        let unnamed = change("net:[7]", "1").command();
        assert!(unnamed.starts_with("nsenter --net=/proc/PID/ns/net sysctl -w"), "{unnamed}");
        assert_eq!(change("host", "1").undo_command(), "sysctl -w net.ipv4.ip_local_port_range='20000 20050'");
        assert_eq!(change("web", "1").persistent(), None);
    }
}
