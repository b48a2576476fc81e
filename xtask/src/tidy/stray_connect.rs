//! Connections to unix sockets past the functions that know which socket it is.

use super::names;
use super::workspace::FileUse;
use super::{Breach, Rule};

/// Files that connect to a unix socket by themselves: the functions for sockets of servers, the load to a socket that the user named, and an own socket that was left.
const CONNECTORS: &[&str] = &["crates/foreign/src/socket.rs", "crates/load/src/protocol/stream.rs", "crates/dashboard/src/server.rs"];
/// Folders of what does not ship.
const TOOLS: &[&str] = &["xtask/", "benches/", "scoreboard/", "packaging/", "crates/hostile/"];

const CONNECTING: &[&str] = &[
    "std::os::unix::net::UnixStream::connect",
    "std::os::unix::net::UnixStream::connect_addr",
    "mio::net::UnixStream::connect",
    "mio::net::UnixStream::connect_addr",
    "tokio::net::UnixStream::connect",
    "rustix::net::SocketAddrUnix::new",
    "libc::sockaddr_un",
];

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "stray-connect",
    asks: "a unix socket that a configuration names is connected to through `chokepoint_foreign::ListeningSocket`, as the very socket on which a known server listens",
    check: |workspace| {
        let mut breaches = Vec::new();
        for (file, syntax) in workspace.parsed() {
            let is_tool = TOOLS.iter().any(|folder| file.path.starts_with(folder));
            if file.file_use != FileUse::Code || is_tool || CONNECTORS.contains(&file.path) {
                continue;
            }
            let connects = |name: &&names::Name| !name.in_test && CONNECTING.iter().any(|connecting| name.is_within(connecting));
            for name in names::names(syntax).iter().filter(connects) {
                breaches.push(Breach::new(file.path, name.line, format!("`{}` goes past `chokepoint_foreign`", name.path)));
            }
        }
        breaches
    },
};

#[cfg(test)]
mod tests {
    use super::super::tests::breaches;
    use super::RULE;

    const MANIFEST: (&str, &str) = ("crates/load/Cargo.toml", "[package]\nname = \"chokepoint-load\"");

    #[test]
    fn fires_on_a_connection_by_path() {
        for source in [
            "use std::os::unix::net::UnixStream; fn f() { UnixStream::connect(p); }",
            "use mio::net::UnixStream as S; fn f() { S::connect_addr(a); }",
            "use rustix::net::{SocketAddrUnix, connect}; fn f() { connect(s, &SocketAddrUnix::new(p)); }",
        ] {
            assert_eq!(breaches(&RULE, &[MANIFEST, ("crates/load/src/lib.rs", source)]), ["crates/load/src/lib.rs:1"], "{source}");
        }
    }

    #[test]
    fn silent_on_pairs_tests_and_what_was_checked() {
        for source in [
            "use std::os::unix::net::UnixStream; fn f() { UnixStream::pair(); UnixStream::from(socket.connect()); }",
            "#[cfg(test)] mod tests { fn f() { std::os::unix::net::UnixStream::connect(p); } }",
        ] {
            assert!(breaches(&RULE, &[MANIFEST, ("crates/load/src/lib.rs", source)]).is_empty(), "{source}");
        }
    }
}
