//! What created a cgroup, as its path shows: a systemd unit, a container engine, Kubernetes.

/// Length of the hexadecimal id of a container.
const CONTAINER_ID_LENGTH: usize = 64;
/// Characters of the id that are shown.
const CONTAINER_ID_SHOWN: usize = 12;

/// What created a cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::fix) enum CgroupOwner<'a> {
    /// Kubernetes, for a container of a pod.
    Kubernetes,
    /// A container engine.
    Container {
        /// Its command.
        engine: &'static str,
        /// The short id of the container.
        id: &'a str,
    },
    /// systemd, for this unit.
    Unit(&'a str),
    /// Something else.
    Unknown,
}

impl<'a> CgroupOwner<'a> {
    /// What created the cgroup with this path.
    pub(in crate::fix) fn of(path: &'a str) -> Self {
        let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        let last = names.last().copied().unwrap_or_default();
        if names.iter().any(|name| name.starts_with("kubepods")) {
            return Self::Kubernetes;
        }
        let engine = names.iter().find_map(|name| match name {
            name if name.starts_with("docker") => Some("docker"),
            name if name.starts_with("libpod") => Some("podman"),
            _ => None,
        });
        if let (Some(engine), Some(id)) = (engine, container(last)) {
            return Self::Container { engine, id };
        }
        // systemd creates cgroups for units. The innermost name with a unit's suffix is the unit.
        let is_unit = |name: &&&str| [".service", ".scope", ".slice"].iter().any(|ending| name.ends_with(ending));
        names.iter().rev().find(is_unit).map_or(Self::Unknown, |unit| Self::Unit(unit))
    }

    /// The service that a process with this cgroup belongs to, if the system's manager started it. A scope is a session or a container, and a user's
    /// manager does not answer to root's systemctl.
    pub(super) fn service(path: &'a str) -> Option<&'a str> {
        match Self::of(path) {
            Self::Unit(unit) if unit.ends_with(".service") && !path.contains("/user.slice/") => Some(unit),
            _ => None,
        }
    }
}

/// The unit that root's service manager started in this very cgroup, if its name may stand in a command as it is: names that somebody else chose are in none.
pub(in crate::fix) fn plain_unit(path: &str) -> Option<&str> {
    let is_plain = |name: &&str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"@._-".contains(&byte));
    path.strip_prefix("/system.slice/").filter(|name| name.ends_with(".service")).filter(is_plain)
}

/// The short id of a container, from "ID", "docker-ID.scope" or "libpod-ID".
fn container(name: &str) -> Option<&str> {
    let is_id = |part: &&str| part.len() == CONTAINER_ID_LENGTH && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.split(['-', '.']).find(is_id).and_then(|id| id.get(..CONTAINER_ID_SHOWN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_service_of_the_system_is_reloaded_by_systemctl() {
        for (path, service) in [
            ("/system.slice/nginx.service", Some("nginx.service")),
            ("/system.slice/system-php.slice/php@8.2.service/worker", Some("php@8.2.service")),
            ("/user.slice/user-1000.slice/session-3.scope", None),
            ("/user.slice/user-1000.slice/user@1000.service/app.slice/web.service", None),
            ("/docker/ab", None),
            ("/", None),
        ] {
            assert_eq!(CgroupOwner::service(path), service, "{path}");
        }
    }
}
