//! Names of namespaces, interfaces, cgroups and files, made from a scenario's names within the kernel's limits.

/// The bridge's own interface in a host that is a switch.
pub(crate) const BRIDGE_INTERFACE: &str = "br0";

/// Longest interface name, bytes: IFNAMSIZ less the closing zero (include/uapi/linux/if.h).
pub(crate) const INTERFACE_BYTES_MAX: usize = 15;

/// Longest name of a scenario, host or server, bytes: keeps `cp-NAME-HOST` far below the 255 bytes of a file name.
pub(crate) const NAME_BYTES_MAX: usize = 40;

/// Name of a host's namespace in `ip netns`.
pub(crate) fn netns_name(scenario: &str, host: &str) -> String {
    format!("cp-{scenario}-{host}")
}

/// Files that the lab itself writes for a server, below the run directory.
pub(crate) fn server_files(server: &str) -> Vec<String> {
    ["conf", "stdout", "stderr", "pid", "error.log"].iter().map(|ending| format!("{server}.{ending}")).collect()
}

/// Name of a cgroup's directory.
pub(crate) fn cgroup_name(scenario: &str, cgroup: &str) -> String {
    format!("cp-{scenario}-{cgroup}")
}

/// Name of a host's `n`th interface (from 0) to `peer`: readable if it fits, else its beginning and a hash.
pub(crate) fn interface_name(peer: &str, n: usize) -> String {
    let readable = if n == 0 { format!("to-{peer}") } else { format!("to-{peer}-{}", n + 1) };
    if readable.len() <= INTERFACE_BYTES_MAX {
        return readable;
    }
    format!("{}-{:08x}", &readable[..INTERFACE_BYTES_MAX - 9], fnv1a(readable.as_bytes()))
}

/// FNV-1a, 32 bits, not cryptographic.
fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Checks a name that becomes part of namespace and file names. The error says what is wrong.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let edges = !name.starts_with('-') && !name.ends_with('-');
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(allowed) || !edges {
        return Err(format!(
            "\"{name}\" is not a valid name: use 1 to {NAME_BYTES_MAX} lower-case letters, digits and `-`, but no `-` at the ends"
        ));
    }
    Ok(())
}

/// Checks an interface name of a scenario. The error says what is wrong. Stricter than dev_valid_name() in net/core/dev.c: no unusual characters.
pub(crate) fn check_interface(name: &str) -> Result<(), String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let reserved = matches!(name, "lo" | "." | ".." | "all" | "default" | BRIDGE_INTERFACE) || name.starts_with('-');
    if name.is_empty() || name.len() > INTERFACE_BYTES_MAX || !name.bytes().all(allowed) || reserved {
        return Err(format!(
            "\"{name}\" is not a valid interface name: use 1 to {INTERFACE_BYTES_MAX} letters, digits, `-`, `_` and `.`; \
             lo, all, default and {} are taken",
            BRIDGE_INTERFACE
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interface_names_fit_and_differ() {
        assert_eq!(interface_name("server", 0), "to-server");
        assert_eq!(interface_name("server", 1), "to-server-2");
        let long = interface_name("a-very-long-name-of-a-host", 0);
        let other = interface_name("a-very-long-name-of-a-hose", 0);
        let second = interface_name("a-very-long-name-of-a-host", 1);
        assert!(long != other && long != second, "{long} {other} {second}");
        for peer in ["a", "twelve-bytes", "thirteen-byte", &"x".repeat(NAME_BYTES_MAX)] {
            for n in [0, 1, 199] {
                let name = interface_name(peer, n);
                assert!(name.len() <= INTERFACE_BYTES_MAX && check_interface(&name).is_ok(), "{name}");
            }
        }
    }

    #[test]
    fn names_are_checked() {
        for good in ["a", "conntrack-full", "web1", &"x".repeat(NAME_BYTES_MAX)] {
            assert_eq!(check_name(good), Ok(()));
        }
        for bad in ["", "A", "a b", "a/b", "../x", "a.b", "-a", "a-", "ä", &"x".repeat(NAME_BYTES_MAX + 1)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
        for bad in ["", "lo", "..", "a/b", "a b", "sixteen-bytes-xx", "-x", "br0"] {
            assert!(check_interface(bad).is_err(), "{bad}");
        }
        assert!(netns_name(&"n".repeat(NAME_BYTES_MAX), &"h".repeat(NAME_BYTES_MAX)).len() < 255);
    }
}
