//! Files that are opened without the functions that open them safely.

use super::names;
use super::workspace::FileUse;
use super::{Breach, Rule};

/// A folder whose code reads files of other processes.
struct BoundFolder {
    folder: &'static str,
    /// Its files that open the kernel's own files (/proc, /sys, tracefs), in named functions.
    except: &'static [&'static str],
}

const BOUND: &[BoundFolder] = &[
    BoundFolder { folder: "crates/sources/src/", except: &["root.rs"] },
    BoundFolder { folder: "crates/profile/src/", except: &["host.rs", "tracefs.rs"] },
    // Besides /proc: `file.rs` opens the directory in which it replaces a file, `trial.rs` opens the program that the kernel names and the pipe that it reads,
    // `socket.rs` looks at a name in a directory that was found to be trusted, `unread.rs` reads times and names of files that were.
    BoundFolder {
        folder: "crates/remedy/src/server/",
        except: &["activate.rs", "file.rs", "listener.rs", "master.rs", "socket.rs", "trial.rs", "unread.rs"],
    },
];

/// Functions that follow a path regardless of its owner.
const OPENING: &[&str] = &[
    "std::fs::File::open",
    "std::fs::File::options",
    "std::fs::OpenOptions",
    "std::fs::read",
    "std::fs::read_to_string",
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

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "stray-open",
    asks: "sources, profile and remedy's server open files of other processes through `chokepoint_foreign` and the kernel's own in the files named in the rule",
    check: |workspace| {
        let mut breaches = Vec::new();
        for (file, syntax) in workspace.parsed() {
            if file.file_use != FileUse::Code || !is_bound(file.path) {
                continue;
            }
            let opens = |name: &&names::Name| !name.in_test && OPENING.iter().any(|opening| name.is_within(opening));
            for name in names::names(syntax).iter().filter(opens) {
                breaches.push(Breach::new(file.path, name.line, format!("`{}` goes past `chokepoint_foreign`", name.path)));
            }
            names::method_calls(syntax, |call, name, line| {
                if call.args.is_empty() && METHODS.contains(&name) {
                    breaches.push(Breach::new(file.path, line, format!("`.{name}()` goes past `chokepoint_foreign`")));
                }
            });
        }
        breaches
    },
};

fn is_bound(path: &str) -> bool {
    let within = |bound: &BoundFolder| path.strip_prefix(bound.folder).is_some_and(|file| !bound.except.contains(&file));
    BOUND.iter().any(within)
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
        assert!(breaches(&RULE, &[MANIFEST, lib, ("crates/profile/src/host.rs", "fn f() { std::fs::read(p); }")]).is_empty());
        assert!(breaches(&RULE, &[("crates/cli/src/main.rs", "fn f() { std::fs::read(p); }")]).is_empty());
    }
}
