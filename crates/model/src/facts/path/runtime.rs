//! The runtime that a program is run by, from its executable: what is known of the runtime holds for every program of it.

use crate::observation::Identity;

/// A runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runtime {
    Java,
    Node,
    Php,
    /// CPython or PyPy; `true` if it was built without the global lock (PEP 703: "python3.13t").
    Python(bool),
    Ruby,
}

impl Runtime {
    /// The runtime of a process. Where the executable cannot be read, from its name, which the process may have chosen itself.
    pub(crate) fn of(identity: &Identity) -> Option<Self> {
        let name = identity.exe.as_deref().and_then(|exe| exe.rsplit('/').next()).unwrap_or(&identity.comm);
        let is = |program: &str| version(name, program).is_some_and(|rest| rest.is_empty());
        match name {
            _ if is("java") => Some(Self::Java),
            _ if is("node") || is("nodejs") => Some(Self::Node),
            _ if is("php-fpm") || is("php-cgi") || is("php") => Some(Self::Php),
            _ if is("python") || is("pypy") => Some(Self::Python(false)),
            _ if version(name, "python") == Some("t") => Some(Self::Python(true)),
            _ if is("ruby") => Some(Self::Ruby),
            _ => None,
        }
    }

    /// True if one lock lets only one thread of a process run the program's code at a time: the interpreter locks of CPython and PyPy (Python/ceval_gil.c) and of
    /// Ruby (thread_pthread.c).
    pub(crate) fn has_one_lock(self) -> bool {
        matches!(self, Self::Python(false) | Self::Ruby)
    }
}

/// The kind of server that processes are, for words that fit it: "nginx", the runtime that executes them, or "other".
pub(crate) fn words_for<'i>(identities: impl IntoIterator<Item = &'i Identity>) -> &'static str {
    let kind = |identity: &Identity| match Runtime::of(identity) {
        Some(Runtime::Java) => Some("java"),
        Some(Runtime::Node) => Some("node"),
        Some(Runtime::Php) => Some("php"),
        Some(Runtime::Python(_)) => Some("python"),
        Some(Runtime::Ruby) => Some("ruby"),
        None => (identity.comm == "nginx").then_some("nginx"),
    };
    identities.into_iter().find_map(kind).unwrap_or("other")
}

/// True if the lock of its interpreter lets only one thread of this process run the program's code at a time.
pub fn has_one_lock(identity: &Identity) -> bool {
    Runtime::of(identity).is_some_and(Runtime::has_one_lock)
}

/// What follows a program's name and its version: "t" for "python3.13t" and "python".
fn version<'n>(name: &'n str, program: &str) -> Option<&'n str> {
    name.strip_prefix(program).map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(exe: &str) -> Option<Runtime> {
        Runtime::of(&Identity { exe: Some(exe.to_owned()), comm: "main".to_owned(), ..Identity::default() })
    }

    #[test]
    fn a_runtime_is_known_by_its_executable() {
        assert_eq!(of("/usr/bin/python3.11"), Some(Runtime::Python(false)));
        assert_eq!(of("/usr/bin/python3.13t"), Some(Runtime::Python(true)));
        assert_eq!((of("/usr/sbin/php-fpm8.2"), of("/opt/jdk/bin/java")), (Some(Runtime::Php), Some(Runtime::Java)));
        assert_eq!((of("/srv/app/server"), of("/usr/bin/pythonesque")), (None, None));
        assert_eq!(Runtime::of(&Identity { comm: "ruby3.1".to_owned(), ..Identity::default() }), Some(Runtime::Ruby));
        assert!(Runtime::Ruby.has_one_lock() && !Runtime::Python(true).has_one_lock() && !Runtime::Java.has_one_lock());
    }
}
