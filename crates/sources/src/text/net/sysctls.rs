//! Kernel settings as one namespace sees them, and whether it may change them.

use std::os::unix::fs::PermissionsExt;

use chokepoint_model::observation::Observation;
use chokepoint_recording::{Entry, Outcome};

use crate::root::{Root, reading_of};
use crate::scope::netns_view;
use crate::table::{Cadence, Items, ReadContext, Redact, ScopeKind, Source};
use crate::text::error::{ParseError, TextLine};

const NAME: &str = "sysctls";
/// The longest is `ip_local_reserved_ports`: with every second port it has 192 KiB.
const BYTES_MAX: usize = 256 << 10;

/// The settings that stations, findings and remedies use. Some exist only in the first namespace or on newer kernels and are absent elsewhere. Settings under
/// fs apply to the whole host and are visible in every namespace.
pub(crate) const KEYS: &[&str] = &[
    "fs.file-max",
    "fs.file-nr",
    "fs.nr_open",
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.netdev_max_backlog",
    "net.core.somaxconn",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_abort_on_overflow",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_syn_linear_timeouts",
    "net.ipv4.tcp_syn_retries",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_tw_reuse_delay",
    "net.ipv4.tcp_wmem",
    "net.netfilter.nf_conntrack_buckets",
    "net.netfilter.nf_conntrack_max",
    "net.netfilter.nf_conntrack_tcp_timeout_close",
    "net.netfilter.nf_conntrack_tcp_timeout_close_wait",
    "net.netfilter.nf_conntrack_tcp_timeout_established",
    "net.netfilter.nf_conntrack_tcp_timeout_fin_wait",
    "net.netfilter.nf_conntrack_tcp_timeout_last_ack",
    "net.netfilter.nf_conntrack_tcp_timeout_syn_recv",
    "net.netfilter.nf_conntrack_tcp_timeout_syn_sent",
    "net.netfilter.nf_conntrack_tcp_timeout_time_wait",
    "net.netfilter.nf_conntrack_udp_timeout",
    "net.netfilter.nf_conntrack_udp_timeout_stream",
];

/// Ends the item that says whether a key is writable.
const MODE: &str = " mode";

/// At both ends in each namespace: item "KEY" is the file's text, item "KEY mode" is "rw" or "ro" by the file's mode bits and its mount (a
/// container has /proc/sys read-only).
pub(crate) const SYSCTLS: Source =
    Source { name: NAME, scope: ScopeKind::Netns, cadence: Cadence::Ends, needs: None, read, put, redact: Redact::None };

fn read(context: &ReadContext<'_>) -> Items {
    let mut entries = Vec::with_capacity(KEYS.len() * 2);
    for key in KEYS {
        let file = file(key);
        let value = context.root.read(&file, BYTES_MAX, None);
        let is_there = matches!(value, Outcome::Ok(_));
        entries.push(((*key).to_owned(), value));
        if let Some(mode) = mode(context.root, &file).filter(|_| is_there) {
            entries.push((format!("{key}{MODE}"), Outcome::Ok(mode.as_bytes().to_vec())));
        }
    }
    entries
}

/// The file of a key (sysctl(8)). No key of the table has a dot or a slash within a name.
fn file(key: &str) -> String {
    format!("proc/sys/{}", key.replace('.', "/"))
}

/// "rw" if a write bit is set and the mount is writable, else "ro". The kernel clears the write bits of settings that a namespace may not change:
/// `nf_conntrack_max` is 0644 in the first namespace and 0444 in all others.
pub(crate) fn mode(root: &Root, file: &str) -> Option<&'static str> {
    let bits = root.metadata(file).ok()?.permissions().mode();
    let mount = rustix::fs::statvfs(root.path(file)).ok()?;
    let writable = bits & 0o222 != 0 && !mount.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY);
    Some(if writable { "rw" } else { "ro" })
}

/// Parses the value, without its final newline. Tabs between several numbers stay.
pub(crate) fn parse(bytes: &[u8]) -> Result<String, ParseError> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err(TextLine::new(NAME, 1).expected("text", &String::from_utf8_lossy(bytes)));
    };
    // An empty value is valid: no port is reserved.
    let value = text.strip_suffix('\n').unwrap_or(text);
    if value.contains(['\n', '\0']) {
        return Err(TextLine::new(NAME, 1).expected("one line", value));
    }
    Ok(value.to_owned())
}

fn put(observation: &mut Observation, entry: &Entry) {
    let item = entry.item.clone();
    if let Some(netns) = netns_view(observation, entry) {
        netns.sysctls.entry(item).or_default().push(entry.at_us, reading_of(&entry.outcome, parse));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_sorted_and_unique() {
        assert!(KEYS.is_sorted_by(|a, b| a < b));
        assert!(KEYS.iter().all(|key| !key.contains(['/', ' '])));
    }

    #[test]
    fn values_keep_their_tabs_and_lose_their_newline() {
        assert_eq!(parse(b"32768\t60999\n").unwrap(), "32768\t60999");
        assert_eq!(parse(b"\n").unwrap(), "");
        assert_eq!(parse(b"rw").unwrap(), "rw");
        assert!(parse(b"1\n2\n").is_err());
        assert!(parse(b"\xff\n").is_err());
        assert!(parse(b"1\0\n").is_err());
    }

    #[test]
    fn mode_bits_decide_what_is_writable() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::write(tree.path().join("a"), "1\n").unwrap();
        let root = Root::new(tree.path());
        assert_eq!(mode(&root, "a"), Some("rw"));
        std::fs::set_permissions(tree.path().join("a"), std::fs::Permissions::from_mode(0o444)).unwrap();
        assert_eq!(mode(&root, "a"), Some("ro"));
        assert_eq!(mode(&root, "none"), None);
    }
}
