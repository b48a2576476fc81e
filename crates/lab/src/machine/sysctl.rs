//! Kernel settings by their dotted names (sysctl(8)), read and written in their namespace.

use std::io;
use std::path::{Path, PathBuf};

use chokepoint_config::sysctl_d::path_of;

use super::netns;

const VALUE_BYTES_MAX: u64 = 64 * 1024;

/// Checks a setting's name. The error says what is wrong.
pub(crate) fn check_key(key: &str) -> Result<(), String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:@".contains(&byte);
    let parts = path_of(key);
    let good = key.len() <= 200
        && key.bytes().all(allowed)
        && parts.contains('/')
        && parts.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
    if good { Ok(()) } else { Err(format!("\"{key}\" is not the name of a setting, such as \"net.core.somaxconn\"")) }
}

/// True for settings that may belong to a network namespace.
pub(crate) fn is_net(key: &str) -> bool {
    path_of(key).starts_with("net/")
}

fn path(key: &str) -> PathBuf {
    Path::new("/proc/sys").join(path_of(key))
}

/// The namespace in which a setting is read and written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SysctlScope<'p> {
    /// The machine's own network namespace.
    Machine,
    /// The namespace at this path.
    Netns(&'p Path),
}

fn with_file<T: Send>(place: SysctlScope<'_>, key: &str, work: impl FnOnce(&Path) -> io::Result<T> + Send) -> io::Result<T> {
    let file = path(key);
    match place {
        // /proc/sys/net shows the settings of the calling thread's namespace.
        SysctlScope::Netns(netns) => netns::inside(netns, || work(&file))?,
        SysctlScope::Machine if is_net(key) => netns::inside(netns::machine_path(), || work(&file))?,
        SysctlScope::Machine => work(&file),
    }
}

/// True where the setting exists there.
pub(crate) fn exists(place: SysctlScope<'_>, key: &str) -> io::Result<bool> {
    with_file(place, key, |file| file.try_exists())
}

/// The value, with single blanks between words.
pub(crate) fn read(place: SysctlScope<'_>, key: &str) -> io::Result<String> {
    use io::Read;
    with_file(place, key, |file| {
        let mut text = String::new();
        std::fs::File::open(file)?.take(VALUE_BYTES_MAX).read_to_string(&mut text)?;
        Ok(normalized(&text))
    })
}

/// Sets a value and reads it back.
///
/// # Errors
/// One sentence: why it cannot be set, or that the kernel took another value.
pub(crate) fn set(place: SysctlScope<'_>, key: &str, value: &str) -> Result<(), String> {
    with_file(place, key, |file| {
        std::fs::OpenOptions::new().write(true).open(file).and_then(|mut file| io::Write::write_all(&mut file, value.as_bytes()))
    })
    .map_err(|error| explain(&error, place, value))?;
    let found = read(place, key).map_err(|error| format!("it was set but cannot be read back: {error}"))?;
    if found == normalized(value) {
        Ok(())
    } else {
        Err(format!("it was set to \"{value}\" but reads \"{found}\": the kernel does not accept that value"))
    }
}

fn explain(error: &io::Error, place: SysctlScope<'_>, value: &str) -> String {
    match (error.kind(), place) {
        (io::ErrorKind::NotFound, SysctlScope::Netns(_)) => {
            "there is no such setting in a namespace: it may be one of the whole machine ([host_sysctls]), or a module that is not in use \
             (net.netfilter. needs a ruleset with `ct state`)"
                .to_owned()
        }
        (io::ErrorKind::NotFound, SysctlScope::Machine) => {
            "this kernel has no such setting now; net.netfilter. appears when a host's ruleset uses conntrack (`ct state`)".to_owned()
        }
        (io::ErrorKind::PermissionDenied, SysctlScope::Netns(_)) => "it is read-only in a namespace: set it in [host_sysctls]".to_owned(),
        (io::ErrorKind::PermissionDenied, SysctlScope::Machine) => {
            "it is read-only here: this is not the machine's own network namespace (a container?), or root is needed".to_owned()
        }
        (io::ErrorKind::InvalidInput, _) => format!("the kernel does not accept the value \"{value}\""),
        _ => error.to_string(),
    }
}

/// A value with single blanks, since the kernel may print other whitespace than was written.
pub(crate) fn normalized(value: &str) -> String {
    value.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_paths() {
        assert_eq!(path_of("net.ipv4.ip_forward"), "net/ipv4/ip_forward");
        assert_eq!(path_of("net.ipv4.conf.eth0/5.rp_filter"), "net/ipv4/conf/eth0.5/rp_filter");
        assert_eq!(path_of("net/ipv4/conf/eth0.5/rp_filter"), "net/ipv4/conf/eth0.5/rp_filter");
        assert!(is_net("net.core.somaxconn") && !is_net("vm.swappiness") && !is_net("network.x"));
    }

    #[test]
    fn names_cannot_leave_proc_sys() {
        assert_eq!(check_key("net.core.somaxconn"), Ok(()));
        for bad in
            ["", "net", ".", "net..core", "../etc/passwd", "/etc/passwd", "net/../../etc", "net.core.", "a b.c", "net.core.x\n", "net.//.x"]
        {
            assert!(check_key(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn values_are_compared_by_their_words() {
        assert_eq!(normalized("4096\t131072 \t 6291456\n"), "4096 131072 6291456");
        assert!(read(SysctlScope::Machine, "kernel.osrelease").is_ok_and(|release| !release.is_empty()));
    }
}
