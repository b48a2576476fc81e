//! Tests that do not declare whether the machine may cause their failure. `cargo xtask test` repeats live tests and never deterministic ones.

use super::names::{self, Name};
use super::workspace::{FileUse, SourceFile, Workspace};
use super::{Breach, Rule};
use crate::test::declaration::{Declaration, declaration};
use crate::tree::directory_of;

/// Names for servers, load, namespaces and the clock. A deterministic file of integration tests may use them only in a module `live`.
const LIVE: &[&str] = &[
    "chokepoint_lab",
    "chokepoint_load",
    "harness::Server",
    "rustix::thread::move_into_link_name_space",
    "rustix::thread::move_into_thread_name_spaces",
    "rustix::thread::unshare",
    "rustix::thread::unshare_unsafe",
    "libc::setns",
    "libc::unshare",
    "std::net::TcpListener",
    "std::net::TcpStream",
    "std::net::UdpSocket",
    "std::os::unix::net",
    "std::thread::sleep",
    "std::time::Instant",
    "std::time::SystemTime",
];
/// The same for the tests beside the code. Fewer names are forbidden: many of these tests open a socket and read its state from the kernel without waiting.
const LIVE_BESIDE_CODE: &[&str] = &["chokepoint_lab::Lab", "chokepoint_load::measure", "chokepoint_load::run", "std::thread::sleep"];

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "undeclared-test",
    asks: "every file in tests/ says in its head `//! Live: why` or `//! Deterministic: why`; servers, load and waiting are for live files and modules named `live`",
    check: |workspace| {
        let mut breaches = Vec::new();
        for (file, syntax) in workspace.parsed() {
            let directory = file.package.and_then(|index| workspace.packages.get(index)).map_or("", |package| &package.directory);
            let names = names::names(syntax);
            if is_integration(file, directory) {
                check_integration(workspace, file, &names, &mut breaches);
            } else if is_beside_code(file.path, directory) {
                let is_test = |name: &&Name| name.in_test || file.file_use == FileUse::Test;
                check_names(file, names.iter().filter(is_test), LIVE_BESIDE_CODE, &mut breaches);
            }
        }
        breaches
    },
};

/// True for a file of tests: a target of its own, a file in `tests/it/`, or a file with tests in a folder there. The root of `tests/it/` is none.
fn is_integration(file: &SourceFile<'_>, package: &str) -> bool {
    let Some(below) = file.path.strip_prefix(&format!("{package}/tests/")) else { return false };
    let path = below.strip_prefix("it/").unwrap_or(below);
    below != "it/main.rs" && (!path.contains('/') || below != path && file.text.contains("#[test]"))
}

fn is_beside_code(path: &str, package: &str) -> bool {
    path.starts_with(&format!("{package}/src/")) && !path.ends_with("/live.rs")
}

fn check_integration(workspace: &Workspace<'_>, file: &SourceFile<'_>, names: &[Name], breaches: &mut Vec<Breach>) {
    // A file in a folder may leave the declaration to the folder's own file: tests/it/fix.rs speaks for tests/it/fix/stopping.rs.
    let folder_file = format!("{}.rs", directory_of(file.path));
    let inherited = || workspace.tree.text(&folder_file).and_then(declaration);
    match declaration(file.text).or_else(inherited) {
        None => breaches.push(Breach::new(
            file.path,
            1,
            "does not say in its head `//! Live: why`, `//! Live beside others: why` or `//! Deterministic: why`",
        )),
        Some(Declaration::LiveAlone | Declaration::LiveBesideOthers) => {}
        Some(Declaration::Deterministic) => check_names(file, names.iter(), LIVE, breaches),
    }
}

fn check_names<'a>(file: &SourceFile<'_>, names: impl Iterator<Item = &'a Name>, live: &[&str], breaches: &mut Vec<Breach>) {
    for name in names.filter(|name| !name.in_live) {
        let path = name.path.trim_start_matches("crate::").trim_start_matches("super::");
        let within = Name { path: path.to_owned(), ..*name };
        if live.iter().any(|live| within.is_within(live)) {
            breaches.push(Breach::new(
                file.path,
                name.line,
                format!("`{path}` in a deterministic test; move the test into a module `live`"),
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::breaches;
    use super::RULE;

    const CLI: (&str, &str) = ("crates/cli/Cargo.toml", "[package]\nname = \"chokepoint\"");

    #[test]
    fn fires_on_a_file_that_does_not_say_which() {
        for path in ["crates/cli/tests/a.rs", "crates/cli/tests/it/a.rs"] {
            assert_eq!(breaches(&RULE, &[CLI, (path, "//! Tests.\nfn a() {}")]), [format!("{path}:1")]);
        }
    }

    #[test]
    fn a_file_in_a_folder_may_leave_the_declaration_to_the_folder() {
        let folder = |head: &str| ("crates/cli/tests/it/fix.rs", format!("//! Fixes.\n{head}\nmod stopping;"));
        let below = ("crates/cli/tests/it/fix/stopping.rs", "//! Stops.\nuse std::thread::sleep;\n#[test]\nfn a() {}");
        for (head, expected) in [
            ("//! Live: a server.", &[][..]),
            ("//! Deterministic: none.", &["crates/cli/tests/it/fix/stopping.rs:2"]),
            ("", &["crates/cli/tests/it/fix.rs:1", "crates/cli/tests/it/fix/stopping.rs:1"]),
        ] {
            let (path, text) = folder(head);
            assert_eq!(breaches(&RULE, &[CLI, (path, &text), below]), expected, "{head}");
        }
        assert!(breaches(&RULE, &[CLI, ("crates/cli/tests/it/harness/server.rs", "//! A server.\nuse std::net::TcpListener;")]).is_empty());
    }

    #[test]
    fn fires_on_live_names_in_deterministic_tests() {
        for source in [
            "use std::thread::sleep;",
            "fn f() { std::net::TcpListener::bind(a); }",
            "use harness::{Chokepoint, Server};",
            "use chokepoint_lab::Lab;",
            "use std::time; fn f() { time::Instant::now(); }",
            "mod tests { fn f() { super::harness::Server::start(a); } }",
        ] {
            let found = breaches(&RULE, &[CLI, ("crates/cli/tests/a.rs", &format!("//! Deterministic: none.\n{source}"))]);
            assert!(!found.is_empty() && found.iter().all(|line| line == "crates/cli/tests/a.rs:2"), "{source}: {found:?}");
        }
        let beside = "#[cfg(test)] mod tests { fn f() { std::thread::sleep(d); } }";
        assert_eq!(breaches(&RULE, &[CLI, ("crates/cli/src/main.rs", beside)]), ["crates/cli/src/main.rs:1"]);
    }

    #[test]
    fn silent_on_declared_tests() {
        let sleeps = "fn f() { std::thread::sleep(d); harness::Server::start(a); }";
        for source in [
            format!("//! Live: a server.\n{sleeps}"),
            format!("//! Deterministic: but for one.\nmod live {{ {sleeps} }}"),
            "//! Deterministic: none.\nuse harness::Chokepoint; use std::time::Duration;".to_owned(),
        ] {
            assert!(breaches(&RULE, &[CLI, ("crates/cli/tests/a.rs", &source)]).is_empty(), "{source}");
        }
        let beside = "#[cfg(test)] mod tests { use chokepoint_lab::Problem; mod live { fn f() { std::thread::sleep(d); } } }";
        assert!(breaches(&RULE, &[CLI, ("crates/cli/src/main.rs", beside)]).is_empty());
        assert!(breaches(&RULE, &[CLI, ("crates/cli/tests/it/harness/mod.rs", "//! Harness.\nuse std::net::TcpListener;")]).is_empty());
        assert!(breaches(&RULE, &[CLI, ("crates/cli/src/main.rs", "fn f() { std::thread::sleep(d); }")]).is_empty());
    }
}
