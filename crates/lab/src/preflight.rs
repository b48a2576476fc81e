//! The privileges and programs that a scenario needs, checked before anything is changed.

use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::machine::cgroup;
use crate::scenario::document::{ProgramKind, Scenario};

/// CAP_NET_ADMIN for links and rules, CAP_SYS_ADMIN for namespaces (capabilities(7)).
const CAPABILITIES_NEEDED: [(u32, &str); 2] = [(12, "CAP_NET_ADMIN"), (21, "CAP_SYS_ADMIN")];
/// CAP_SYS_RESOURCE raises a hard limit (setrlimit(2)).
pub(crate) const CAP_SYS_RESOURCE: u32 = 24;

/// System directories that are often missing from a user's PATH.
const SYSTEM_DIRECTORIES: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// One thing missing on the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// A program.
    Program {
        /// Its name.
        program: &'static str,
        /// Its Debian package.
        package: &'static str,
    },
    /// Privileges.
    Capability {
        /// The capability (capabilities(7)).
        capability: &'static str,
    },
    /// Cgroups with a CPU quota.
    Cgroups {
        /// Why they cannot be created.
        why: String,
    },
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::Program { program, package } => write!(f, "{program} is not installed: `apt-get install {package}` (Debian)"),
            Missing::Cgroups { why } => write!(f, "cannot create a cgroup with a CPU limit: {why}"),
            Missing::Capability { capability } => write!(f, "{capability} is missing: run it as root (with sudo)"),
        }
    }
}

/// Paths of the programs that a scenario needs.
#[derive(Debug, Clone)]
pub struct Tools {
    /// iproute2's `ip`.
    pub ip: PathBuf,
    /// iproute2's `tc`, where a link is shaped.
    pub tc: Option<PathBuf>,
    /// `nft`, where a host has a ruleset.
    pub nft: Option<PathBuf>,
    /// `nginx`, where a server needs it.
    pub nginx: Option<PathBuf>,
    /// php-fpm of any version, where a server needs it.
    pub php_fpm: Option<PathBuf>,
}

/// Checks the privileges and programs that a scenario needs.
///
/// # Errors
/// Everything that is missing, with its Debian package.
pub fn preflight(scenario: &Scenario) -> Result<Tools, Vec<Missing>> {
    let found = find_tools(scenario, &directories(), effective_capabilities());
    match cgroup::find() {
        Err(why) if !scenario.cgroups.is_empty() => {
            let missing = found.err().unwrap_or_default();
            Err(missing.into_iter().chain([Missing::Cgroups { why }]).collect())
        }
        _ => found,
    }
}

fn find_tools(scenario: &Scenario, directories: &[PathBuf], capabilities: u64) -> Result<Tools, Vec<Missing>> {
    let mut missing: Vec<Missing> = CAPABILITIES_NEEDED
        .iter()
        .filter(|(bit, _)| capabilities & (1 << bit) == 0)
        .map(|(_, capability)| Missing::Capability { capability })
        .collect();
    let has_kind = |kind| scenario.servers.iter().any(|server| server.kind == kind);
    let shaped = scenario.links.iter().any(|link| link.a.shape.is_some() || link.b.shape.is_some());
    let mut need = |needed: bool, program: &'static str, package: &'static str, found: Option<PathBuf>| {
        if needed && found.is_none() {
            missing.push(Missing::Program { program, package });
        }
        found.filter(|_| needed)
    };
    let ip = need(true, "ip", "iproute2", find_program("ip", directories));
    let tc = need(shaped, "tc", "iproute2", find_program("tc", directories));
    let nft = need(scenario.hosts.iter().any(|host| host.nftables.is_some()), "nft", "nftables", find_program("nft", directories));
    let nginx = need(has_kind(ProgramKind::Nginx), "nginx", "nginx-light", find_program("nginx", directories));
    let php_fpm = need(has_kind(ProgramKind::PhpFpm), "php-fpm", "php-fpm", find_php_fpm(directories));
    match ip {
        Some(ip) if missing.is_empty() => Ok(Tools { ip, tc, nft, nginx, php_fpm }),
        _ => Err(missing),
    }
}

/// The directories of PATH, then those of the system.
pub(crate) fn directories() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).filter(|dir| dir.is_absolute()).chain(SYSTEM_DIRECTORIES.iter().map(PathBuf::from)).collect()
}

pub(crate) fn find_program(name: &str, directories: &[PathBuf]) -> Option<PathBuf> {
    directories.iter().map(|dir| dir.join(name)).find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// `php-fpm`, else `php-fpmX.Y` (Debian) or `php-fpmXY` (other distributions) of the highest version.
fn find_php_fpm(directories: &[PathBuf]) -> Option<PathBuf> {
    if let Some(plain) = find_program("php-fpm", directories) {
        return Some(plain);
    }
    let entries = directories.iter().filter_map(|dir| std::fs::read_dir(dir).ok()).flatten().flatten();
    entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let version = name.strip_prefix("php-fpm")?;
            let version: Vec<u32> = version.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
            Some((version, entry.path())).filter(|(_, path)| is_executable(path))
        })
        .max_by(|(a, _), (b, _)| a.cmp(b))
        .map(|(_, path)| path)
}

/// The effective capabilities of this process as a bit mask; zero if they cannot be read.
pub(crate) fn effective_capabilities() -> u64 {
    let status = chokepoint_foreign::read_kernel("/proc/self/status", 1 << 16).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:")).map(str::trim);
    mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::tests::scenario_with;

    fn directory_with(programs: &[&str]) -> (tempfile::TempDir, Vec<PathBuf>) {
        let dir = tempfile::tempdir().unwrap();
        for program in programs {
            let path = dir.path().join(program);
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let directories = vec![dir.path().to_owned()];
        (dir, directories)
    }

    #[test]
    fn everything_missing_is_named_with_its_package() {
        let scenario = scenario_with(
            "[[host]]\nname = 'fw'\nnftables = 'table ip x {}'\n[[server]]\nname = 'web'\nhost = 'server'\nkind = 'nginx'\nconfig = 'x'\n\
             [[server]]\nname = 'php'\nhost = 'server'\nkind = 'php-fpm'\nconfig = 'x'\n",
        );
        let (_dir, directories) = directory_with(&[]);
        let missing = find_tools(&scenario, &directories, 0).unwrap_err();
        let text: Vec<String> = missing.iter().map(ToString::to_string).collect();
        for word in ["CAP_NET_ADMIN", "CAP_SYS_ADMIN", "iproute2", "nftables", "nginx-light", "php-fpm"] {
            assert!(text.iter().any(|line| line.contains(word)), "{word}: {text:?}");
        }
        assert!(!text.iter().any(|line| line.starts_with("tc ")));
        let (_dir, directories) = directory_with(&["ip", "nft", "nginx", "php-fpm8.2"]);
        assert!(find_tools(&scenario, &directories, u64::MAX).is_ok());
    }

    #[test]
    fn php_fpm_is_found_under_any_version() {
        let name = |programs: &[&str]| {
            let (_dir, directories) = directory_with(programs);
            find_php_fpm(&directories).map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        };
        assert_eq!(name(&["php-fpm8.2", "php-fpm8.10", "php-fpm7.4"]).as_deref(), Some("php-fpm8.10"));
        assert_eq!(name(&["php-fpm8.2", "php-fpm"]).as_deref(), Some("php-fpm"));
        assert_eq!(name(&["php-fpm82"]).as_deref(), Some("php-fpm82"));
        assert_eq!(name(&["php-fpm-something", "php8.2"]), None);
    }
}
