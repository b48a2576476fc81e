//! Drawn stacks built for real. Live: servers in network namespaces; needs root.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use chokepoint_lab::{Lab, Options, inside, leftovers, preflight};

use super::{With, draw};

#[test]
fn every_kind_of_stack_comes_up_and_answers() {
    let root = tempfile::tempdir().unwrap();
    // Another user's servers must reach the files of the lab.
    std::fs::set_permissions(root.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut kinds = BTreeSet::new();
    for index in 0..400 {
        let draw = draw(2, index);
        let stack = draw.stack;
        let is_new = kinds.insert(format!("{:?} {:?} {:?} {}", stack.servers, stack.transport, stack.network, stack.ip));
        let scenario = draw.scenario(With::None).unwrap();
        // Settings of the whole machine stay as they are.
        if !is_new || !scenario.host_sysctls.is_empty() {
            continue;
        }
        if let Err(missing) = preflight(&scenario) {
            println!("skipped: {}", missing[0]);
            return;
        }
        let options = Options { run_root: root.path().to_owned(), outlive: false, within: None, cancelled: None, on_step: &mut |_| () };
        let lab = Lab::up(&scenario, options).unwrap_or_else(|error| panic!("{}\n{error}\n{}", draw.words(), scenario.text()));
        let (authority, path) = lab.url().strip_prefix("http://").unwrap().split_once('/').unwrap();
        let address = if authority.ends_with(":8080") { authority.to_owned() } else { format!("{authority}:80") };
        let mut stream = inside(&lab.client_netns_path(), || TcpStream::connect(&address).unwrap()).unwrap();
        write!(stream, "GET /{path} HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let head = String::from_utf8_lossy(&answer[..answer.len().min(200)]).into_owned();
        assert!(head.starts_with("HTTP/1.1 200"), "{}\n{head}", draw.words());
        assert!(lab.down().unwrap().is_clean());
        assert!(leftovers(root.path()).unwrap().is_empty());
    }
    assert!(kinds.len() >= 18, "{kinds:?}");
}
