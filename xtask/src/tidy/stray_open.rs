//! Files that are opened without the functions that open them safely.

use super::names;
use super::workspace::FileUse;
use super::{Breach, Rule};

/// A crate and its files that open files by themselves.
struct Opener {
    folder: &'static str,
    files: &'static [&'static str],
}

/// The crates that ship read through `chokepoint_foreign`, but for these files, which open what no other user controls, or check whose it is. A crate that is not here has none.
const OPENERS: &[Opener] = &[
    // What it writes for the user (files.rs), the lock of a history, the directory of what is bisected, and namespaces.
    Opener {
        folder: "crates/cli/src/",
        files: &["run/bisect.rs", "run/changes.rs", "run/files.rs", "run/files/place.rs", "run/settings.rs", "verbs/watch/keeping.rs"],
    },
    // The kernel's file of its own memory.
    Opener { folder: "crates/confined/src/", files: &["memory.rs"] },
    // Its own socket.
    Opener { folder: "crates/dashboard/src/", files: &["server.rs"] },
    // Also what the kernel has in memory of a path (socket.rs).
    Opener { folder: "crates/foreign/src/", files: &["files.rs", "identity.rs", "socket.rs", "trust.rs"] },
    // Its own state, the machines that it makes, and the kernel's files for them. What an attack left is looked at without following a link and without waiting (`attack/hold.rs`).
    Opener {
        folder: "crates/lab/src/",
        files: &[
            "attack/hold.rs",
            "attack/step.rs",
            "attack/trial.rs",
            "down.rs",
            "machine/cgroup.rs",
            "machine/netns.rs",
            "machine/process.rs",
            "machine/spawn.rs",
            "machine/sysctl.rs",
            "preflight.rs",
            "server.rs",
            "server/ready.rs",
            "state.rs",
            "up.rs",
            "up/cgroups.rs",
            "up/network.rs",
            "up/servers.rs",
        ],
    },
    // A namespace's file, and calls that only take time.
    Opener { folder: "crates/load/src/", files: &["engine/run.rs", "host/warmth.rs"] },
    Opener { folder: "crates/profile/src/", files: &["host.rs", "tracefs.rs"] },
    // Its journal and state, the kernel's files, the file that it replaces (`file.rs`), the program that the kernel names (`trial.rs`).
    Opener {
        folder: "crates/remedy/src/",
        files: &[
            "conflict.rs",
            "host.rs",
            "journal.rs",
            "lock.rs",
            "memory.rs",
            "netns.rs",
            "process.rs",
            "server/file.rs",
            "server/listener.rs",
            "server/master.rs",
            "server/socket.rs",
            "server/trial.rs",
            "server/unread.rs",
            "setting/cgroup.rs",
            "setting/sysctl.rs",
            "state_dir.rs",
            "store.rs",
        ],
    },
    // The directory and the file of what is kept.
    Opener { folder: "crates/runs/src/", files: &["place.rs"] },
    // The kernel's own files (/proc, /sys, tracefs), in named functions. The same for `profile`.
    Opener { folder: "crates/sources/src/", files: &["root.rs"] },
];

/// Functions that read a file to its end, however long it is. No file is exempt.
const WHOLE: &[&str] = &["std::fs::read", "std::fs::read_to_string"];
/// Functions that follow a path regardless of its owner.
const OPENING: &[&str] = &[
    "std::fs::File::open",
    "std::fs::File::options",
    "std::fs::OpenOptions",
    "std::fs::read_link",
    "std::fs::read_dir",
    "std::fs::metadata",
    "std::fs::symlink_metadata",
    "std::fs::canonicalize",
    "std::fs::exists",
    "rustix::fs::open",
    "rustix::fs::openat",
    "rustix::fs::openat2",
    "rustix::fs::stat",
    "rustix::fs::lstat",
    "rustix::fs::statat",
    "rustix::fs::readlink",
    "rustix::fs::readlinkat",
    "libc::open",
    "libc::open64",
    "libc::openat",
    "libc::openat64",
    "libc::fopen",
    "libc::opendir",
    "libc::stat",
    "libc::lstat",
    "libc::fstatat",
    "libc::readlink",
    "libc::readlinkat",
];
/// The same as methods of a path; they take no arguments. `metadata` is missing because open files have a method of that name too.
const METHODS: &[&str] = &["exists", "try_exists", "read_dir", "read_link", "canonicalize", "symlink_metadata"];

/// Folders of what does not ship.
const TOOLS: &[&str] = &["xtask/", "benches/", "scoreboard/", "packaging/", "crates/hostile/"];

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "stray-open",
    asks: "files are opened through `chokepoint_foreign`, or in the files named in the rule; none is read without a bound",
    check: |workspace| {
        let mut breaches = Vec::new();
        for (file, syntax) in workspace.parsed() {
            if file.file_use != FileUse::Code || TOOLS.iter().any(|folder| file.path.starts_with(folder)) {
                continue;
            }
            let may_open = is_opener(file.path);
            for name in names::names(syntax).iter().filter(|name| !name.in_test) {
                let is_any = |of: &[&str]| of.iter().any(|function| name.is_within(function));
                if is_any(WHOLE) && !name.path.ends_with("::*") {
                    breaches.push(Breach::new(file.path, name.line, format!("`{}` reads without a bound", name.path)));
                } else if !may_open && is_any(OPENING) {
                    breaches.push(Breach::new(file.path, name.line, format!("`{}` goes past `chokepoint_foreign`", name.path)));
                }
            }
            names::method_calls(syntax, |call, name, line| {
                if !may_open && call.args.is_empty() && METHODS.contains(&name) {
                    breaches.push(Breach::new(file.path, line, format!("`.{name}()` goes past `chokepoint_foreign`")));
                }
            });
        }
        breaches
    },
};

fn is_opener(path: &str) -> bool {
    OPENERS.iter().any(|opener| path.strip_prefix(opener.folder).is_some_and(|file| opener.files.contains(&file)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::breaches;
    use super::RULE;

    const MANIFEST: (&str, &str) = ("crates/profile/Cargo.toml", "[package]\nname = \"chokepoint-profile\"");

    #[test]
    fn fires_on_functions_that_follow_a_path() {
        for source in [
            "use std::fs::File; fn f() { File::open(p); }",
            "use std::fs::File; fn f() { paths.map(File::open); }",
            "use std::fs; fn f() { fs::read_to_string(p); }",
            "fn f() { std::fs::metadata(p); }",
            "use std::fs::OpenOptions as O; fn f() { O::new().read(true).open(p); }",
            "use rustix::fs::{openat, Mode}; fn f() { openat(d, p, o, m); }",
            "fn f() { unsafe { libc::open(p, 0) }; }",
            "fn f() { path.exists(); }",
            "fn f() { Path::new(p).canonicalize(); }",
            "use std::fs::*;",
        ] {
            let found = breaches(&RULE, &[MANIFEST, ("crates/profile/src/lib.rs", source)]);
            assert!(!found.is_empty() && found.iter().all(|line| line == "crates/profile/src/lib.rs:1"), "{source}: {found:?}");
        }
    }

    #[test]
    fn silent_on_named_files_tests_and_open_files() {
        for source in [
            "use std::fs::File; fn f(file: &File) { file.metadata(); }",
            "fn f() { files.exists(p); root.open(p); Files::of_directory(p).open(q); }",
            "#[cfg(test)] mod tests { fn f() { std::fs::read(p); path.exists(); } }",
        ] {
            let found = breaches(&RULE, &[MANIFEST, ("crates/profile/src/lib.rs", source)]);
            assert!(found.is_empty(), "{source}: {found:?}");
        }
        let lib = ("crates/profile/src/lib.rs", "mod host;");
        assert!(
            breaches(&RULE, &[MANIFEST, lib, ("crates/profile/src/host.rs", "fn f() { File::open(p); std::fs::read_link(p); }")])
                .is_empty()
        );
        assert!(breaches(&RULE, &[("xtask/src/main.rs", "fn f() { std::fs::read(p); }")]).is_empty());
    }

    #[test]
    fn nothing_that_ships_reads_a_file_of_any_length() {
        for path in ["crates/cli/src/main.rs", "crates/profile/src/host.rs", "crates/foreign/src/files.rs"] {
            let files = [
                MANIFEST,
                ("crates/cli/Cargo.toml", "[package]\nname = \"chokepoint\""),
                ("crates/foreign/Cargo.toml", "[package]\nname = \"f\""),
            ];
            let roots = [("crates/profile/src/lib.rs", "mod host;"), ("crates/foreign/src/lib.rs", "mod files;")];
            let all: Vec<_> = files.into_iter().chain(roots).chain([(path, "use std::fs; fn f() { fs::read_to_string(p); }")]).collect();
            assert_eq!(breaches(&RULE, &all), [format!("{path}:1")]);
        }
    }
}
