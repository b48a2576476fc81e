//! Pure crates that use the host. They may use no disk, network, process, thread, environment or clock, so that a replay gives the same report.

use super::names::{self, Name};
use super::workspace::{FileUse, Package, Workspace};
use super::{Breach, Rule};

/// A crate without input and output.
struct PureCrate {
    /// The last part of its directory.
    package: &'static str,
    /// The packages of the workspace that it may depend on.
    ours: &'static [&'static str],
    /// The other packages that it may depend on.
    theirs: &'static [&'static str],
}

const PURE: &[PureCrate] = &[
    PureCrate { package: "statistics", ours: &[], theirs: &[] },
    PureCrate { package: "model", ours: &["chokepoint-statistics"], theirs: &["fluent-bundle", "serde", "thiserror", "unic-langid"] },
    PureCrate { package: "servers", ours: &["chokepoint-model"], theirs: &["serde"] },
    PureCrate { package: "sizing", ours: &["chokepoint-model", "chokepoint-servers", "chokepoint-statistics"], theirs: &["serde"] },
    PureCrate { package: "recorder", ours: &["chokepoint-model", "chokepoint-statistics"], theirs: &["serde", "serde_json"] },
    PureCrate { package: "recording", ours: &[], theirs: &["crc32fast", "flate2", "serde", "serde_json", "thiserror"] },
    PureCrate { package: "log_format", ours: &[], theirs: &["memchr", "thiserror"] },
    PureCrate {
        package: "config",
        ours: &["chokepoint-log-format", "chokepoint-model"],
        theirs: &["memchr", "percent-encoding", "regex-lite", "thiserror"],
    },
    PureCrate { package: "experiment", ours: &["chokepoint-model", "chokepoint-statistics"], theirs: &["serde", "thiserror", "toml"] },
    PureCrate { package: "packets", ours: &["chokepoint-model"], theirs: &["flate2", "ruzstd", "serde", "thiserror"] },
];
/// What the tests of a pure crate may depend on too.
const TEST_DEPENDENCIES: &[&str] = &["chokepoint-hostile", "insta", "proptest", "serde_json", "tempfile"];

/// Names that a pure crate may not use, and everything below them.
const FORBIDDEN: &[&str] = &[
    "std::fs",
    "std::process",
    "std::thread",
    "std::env",
    "std::os",
    "std::time::Instant",
    "std::time::SystemTime",
    "std::time::UNIX_EPOCH",
    "std::io::stdin",
    "std::io::stdout",
    "std::io::stderr",
    "std::io::Stdin",
    "std::io::Stdout",
    "std::io::Stderr",
    "print!",
    "println!",
    "eprint!",
    "eprintln!",
    "libc",
    "rustix",
    "nix",
    "tokio",
    "mio",
    "socket2",
];
/// The types of `std::net` that only hold addresses; the others send and receive.
const NET_ALLOWED: &[&str] =
    &["IpAddr", "Ipv4Addr", "Ipv6Addr", "SocketAddr", "SocketAddrV4", "SocketAddrV6", "AddrParseError", "Ipv6MulticastScope"];

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "impure-crate",
    asks: "model, statistics, experiment, sizing, recording, config and packets name no std::fs, net (but addresses), process, thread, env, time (but Duration), os, and no OS crate",
    check: |workspace| {
        let mut breaches = Vec::new();
        for package in &workspace.packages {
            if let Some(pure) = pure_crate(package.short_name(), &package.directory) {
                check_manifest(package, pure, &mut breaches);
            }
        }
        check_sources(workspace, &mut breaches);
        breaches
    },
};

fn pure_crate(package: &str, directory: &str) -> Option<&'static PureCrate> {
    PURE.iter().find(|pure| pure.package == package && directory == format!("crates/{package}"))
}

fn check_manifest(package: &Package, pure: &PureCrate, breaches: &mut Vec<Breach>) {
    let manifest = format!("{}/Cargo.toml", package.directory);
    let targets = package.manifest.get("target").and_then(toml::Value::as_table);
    let tables =
        std::iter::once(&package.manifest).chain(targets.into_iter().flat_map(|table| table.values().filter_map(toml::Value::as_table)));
    for table in tables {
        for (kind, for_tests) in [("dependencies", false), ("build-dependencies", false), ("dev-dependencies", true)] {
            let dependencies = table.get(kind).and_then(toml::Value::as_table);
            for (name, value) in dependencies.into_iter().flatten() {
                let real = value.get("package").and_then(toml::Value::as_str).unwrap_or(name);
                let allowed = pure.ours.contains(&real) || pure.theirs.contains(&real) || for_tests && TEST_DEPENDENCIES.contains(&real);
                if !allowed {
                    breaches.push(Breach::new(&manifest, 1, format!("`{}` is pure and may not depend on `{real}`", pure.package)));
                }
            }
        }
    }
}

fn check_sources(workspace: &Workspace<'_>, breaches: &mut Vec<Breach>) {
    for (file, syntax) in workspace.parsed() {
        let package = file.package.and_then(|index| workspace.packages.get(index));
        let is_pure = package.is_some_and(|package| pure_crate(package.short_name(), &package.directory).is_some());
        if !is_pure || file.file_use != FileUse::Code {
            continue;
        }
        for name in names::names(syntax).iter().filter(|name| !name.in_test && is_forbidden(name)) {
            let text = format!("`{}` in `{}`, which is pure", name.path, workspace.package_name(file));
            breaches.push(Breach::new(file.path, name.line, text));
        }
    }
}

fn is_forbidden(name: &Name) -> bool {
    if let Some(rest) = name.path.strip_prefix("std::net::") {
        return !NET_ALLOWED.contains(&rest.split("::").next().unwrap_or_default());
    }
    FORBIDDEN.iter().any(|forbidden| name.is_within(forbidden))
}

#[cfg(test)]
mod tests {
    use super::super::tests::breaches;
    use super::RULE;

    const MANIFEST: (&str, &str) =
        ("crates/model/Cargo.toml", "[package]\nname = \"chokepoint-model\"\n[dependencies]\nserde.workspace = true");

    fn lines(source: &str) -> Vec<String> {
        breaches(&RULE, &[MANIFEST, ("crates/model/src/lib.rs", source)])
    }

    #[test]
    fn fires_on_every_way_to_reach_the_host() {
        for source in [
            "use std::fs;",
            "use std::{fs::File, fmt};",
            "use std::fs as disk;",
            "use std::net::*;",
            "use std::*;",
            "fn f() { std::net::TcpStream::connect(a); }",
            "fn f(a: impl std::net::ToSocketAddrs) {}",
            "use std::net; type T = net::UdpSocket;",
            "fn f() { let t = std::time::Instant::now(); }",
            "use std::time::{Duration, SystemTime};",
            "fn f() { vec![std::env::args()]; }",
            "fn f() { println!(\"x\"); }",
            "fn f() { std::thread::spawn(g); }",
            "use std as s; fn f() { s::process::exit(1); }",
            "use std::os::fd::RawFd;",
            "extern crate libc;",
            "fn f() { ::std::fs::read(p); }",
            "fn f() { rustix::time::clock_gettime(c); }",
        ] {
            let found = lines(source);
            assert!(!found.is_empty() && found.iter().all(|line| line == "crates/model/src/lib.rs:1"), "{source}: {found:?}");
        }
    }

    #[test]
    fn silent_on_addresses_durations_and_tests() {
        for source in [
            "use std::net::{IpAddr, Ipv4Addr, SocketAddr};",
            "use std::time::Duration; const A: Duration = Duration::from_secs(1);",
            "use std::net; fn f(a: net::IpAddr) {}",
            "const NAME: &str = env!(\"CARGO_PKG_NAME\"); const B: &str = include_str!(\"b\");",
            "use std::io::{Read, Write}; use std::collections::BTreeMap;",
            "mod process { pub fn a() {} } fn f() { process::a(); }",
            "#[cfg(test)] mod tests { use std::fs; fn f() { println!(\"skipped: x\"); fs::read(p); } }",
            "/// std::fs is not used.\nfn f() { let text = \"std::fs\"; }",
        ] {
            assert!(lines(source).is_empty(), "{source}: {:?}", lines(source));
        }
    }

    #[test]
    fn fires_on_dependencies_outside_the_list() {
        let manifest = |text: &str| breaches(&RULE, &[("crates/model/Cargo.toml", &format!("[package]\nname = \"m\"\n{text}"))]);
        assert_eq!(manifest("[dependencies]\ntokio = \"1\"").len(), 1);
        assert_eq!(manifest("[dependencies]\nchokepoint-sources.workspace = true").len(), 1);
        assert_eq!(manifest("[dependencies]\nserde = { package = \"libc\", version = \"1\" }").len(), 1);
        assert_eq!(manifest("[target.'cfg(unix)'.dependencies]\nrustix = \"1\"").len(), 1);
        assert_eq!(manifest("[build-dependencies]\ncc = \"1\"").len(), 1);
        assert_eq!(manifest("[dev-dependencies]\ntokio = \"1\"").len(), 1);
    }

    #[test]
    fn silent_on_other_crates_and_allowed_dependencies() {
        let files = [
            ("crates/sources/Cargo.toml", "[package]\nname = \"s\"\n[dependencies]\nrustix = \"1\""),
            ("crates/sources/src/lib.rs", "use std::fs;"),
            ("crates/model/Cargo.toml", "[package]\nname = \"m\"\n[dependencies]\nserde = \"1\"\n[dev-dependencies]\nproptest = \"1\""),
        ];
        assert!(breaches(&RULE, &files).is_empty());
    }
}
