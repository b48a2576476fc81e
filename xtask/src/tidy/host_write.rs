//! Writes to the host outside the crate that can undo its changes.

use syn::{Expr, Lit};

use super::names;
use super::workspace::FileUse;
use super::{Breach, Rule};

/// Packages that may write: `remedy` keeps a journal, `lab` tears down what it builds, `xtask` writes the repository's own pages, `hostile` stores the input on
/// which a test failed, `scoreboard` writes drawn scenarios, `packaging` writes pages and pictures.
const WRITERS: &[&str] = &["remedy", "lab", "xtask", "hostile", "scoreboard", "packaging"];
/// Other files that write. Those of `cli` write files that the user names by a flag (`--record`, `--html`, ...), never the host's state.
/// `place.rs` of `runs` makes the directory and the file in which runs are kept; `server.rs` of `dashboard` its own socket, where the user named one.
const OUTPUT_FILES: &[&str] =
    &["crates/cli/src/run/recordings.rs", "crates/cli/src/run/files.rs", "crates/dashboard/src/server.rs", "crates/runs/src/place.rs"];

/// Functions and types that write, and everything below them.
const WRITING: &[&str] = &[
    "std::fs::write",
    "std::fs::copy",
    "std::fs::rename",
    "std::fs::remove_file",
    "std::fs::remove_dir",
    "std::fs::remove_dir_all",
    "std::fs::create_dir",
    "std::fs::create_dir_all",
    "std::fs::DirBuilder",
    "std::fs::hard_link",
    "std::fs::soft_link",
    "std::fs::set_permissions",
    "std::fs::File::create",
    "std::fs::File::create_new",
    "std::fs::File::options",
    "std::os::unix::fs::symlink",
    "std::os::unix::fs::chown",
    "std::os::unix::fs::lchown",
    "std::os::unix::fs::fchown",
    "rustix::fs::unlink",
    "rustix::fs::unlinkat",
    "rustix::fs::rename",
    "rustix::fs::renameat",
    "rustix::fs::mkdir",
    "rustix::fs::mkdirat",
    "rustix::fs::rmdir",
    "rustix::fs::chmod",
    "rustix::fs::chmodat",
    "rustix::fs::chown",
    "rustix::fs::chownat",
    "rustix::fs::symlink",
    "rustix::fs::symlinkat",
    "rustix::fs::link",
    "rustix::fs::linkat",
    "rustix::fs::mknodat",
    "rustix::fs::truncate",
    "rustix::fs::ftruncate",
    "rustix::mount",
    "libc::unlink",
    "libc::rename",
    "libc::mkdir",
    "libc::rmdir",
    "libc::chmod",
    "libc::chown",
    "libc::symlink",
    "libc::truncate",
    "libc::ftruncate",
    "libc::creat",
    "libc::mount",
    "libc::umount2",
];
/// Methods of `OpenOptions` that make it write if their argument is `true`. No other method of these names takes a boolean.
const WRITING_OPTIONS: &[&str] = &["write", "append", "create", "create_new", "truncate"];

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "host-write",
    asks: "only remedy (and the lab) writes files, directories or permissions; the cli's report files are named in the rule",
    check: |workspace| {
        let mut breaches = Vec::new();
        for (file, syntax) in workspace.parsed() {
            let allowed = WRITERS.contains(&workspace.package_name(file)) || OUTPUT_FILES.contains(&file.path);
            if allowed || file.file_use != FileUse::Code {
                continue;
            }
            for name in names::names(syntax).iter().filter(|name| !name.in_test) {
                let writes = !name.path.ends_with('*') && WRITING.iter().any(|writing| name.is_within(writing));
                if writes {
                    breaches.push(Breach::new(file.path, name.line, format!("`{}` writes to the host", name.path)));
                }
            }
            names::method_calls(syntax, |call, name, line| {
                let is_true =
                    matches!(call.args.first(), Some(Expr::Lit(literal)) if matches!(&literal.lit, Lit::Bool(value) if value.value));
                if is_true && call.args.len() == 1 && WRITING_OPTIONS.contains(&name) {
                    breaches.push(Breach::new(file.path, line, format!("`.{name}(true)` opens a file to write")));
                }
            });
        }
        breaches
    },
};

#[cfg(test)]
mod tests {
    use super::super::tests::breaches;
    use super::RULE;

    const SOURCES: (&str, &str) = ("crates/sources/Cargo.toml", "[package]\nname = \"chokepoint-sources\"");
    const REMEDY: (&str, &str) = ("crates/remedy/Cargo.toml", "[package]\nname = \"chokepoint-remedy\"");

    #[test]
    fn fires_on_writes_however_they_are_spelled() {
        for source in [
            "fn f() { std::fs::write(p, b); }",
            "use std::fs::File; fn f() { File::create(p); }",
            "use std::fs; fn f() { fs::remove_dir_all(p); }",
            "use std::fs::rename as mv; fn f() { mv(p, q); }",
            "use std::fs::OpenOptions; fn f() { OpenOptions::new().read(true).append(true).open(p); }",
            "fn f() { rustix::fs::mkdir(p, m); }",
            "fn f() { unsafe { libc::unlink(p) }; }",
        ] {
            let found = breaches(&RULE, &[SOURCES, ("crates/sources/src/lib.rs", source)]);
            assert!(!found.is_empty() && found.iter().all(|line| line == "crates/sources/src/lib.rs:1"), "{source}: {found:?}");
        }
    }

    #[test]
    fn silent_on_reads_writers_and_tests() {
        for source in [
            "use std::fs; fn f() { fs::read(p); fs::File::open(p); }",
            "use std::fs::OpenOptions; fn f() { OpenOptions::new().read(true).write(false).open(p); }",
            "use std::io::Write; fn f() { socket.write(bytes); }",
            "use std::fmt::Write; fn f() { text.write_str(s); }",
            "#[cfg(test)] mod tests { fn f() { std::fs::write(p, b); OpenOptions::new().write(true); } }",
        ] {
            let found = breaches(&RULE, &[SOURCES, ("crates/sources/src/lib.rs", source)]);
            assert!(found.is_empty(), "{source}: {found:?}");
        }
        let write = "fn f() { std::fs::write(p, b); }";
        assert!(breaches(&RULE, &[REMEDY, ("crates/remedy/src/lib.rs", write)]).is_empty());
        assert!(breaches(&RULE, &[SOURCES, ("crates/sources/tests/a.rs", write)]).is_empty());
    }
}
