//! Connected UDP sockets of a process, from `/proc/PID/net/udp` (proc_net(5)): what it asks name servers, also where no thread waits in a call for the answer (Go).

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use chokepoint_model::observation::WaitKind;
use chokepoint_recording::Outcome;

use super::files::socket_inode;
use super::waits::Wait;
use crate::root::Root;

/// The table of a host with a thousand sockets.
const TABLE_BYTES_MAX: usize = 128 * 1024;
/// The port of name servers (RFC 1035, 4.2).
const NAME_SERVER_PORT: u16 = 53;
/// Descriptors of a process that are looked at, if its namespace has sockets that ask a name server.
const DESCRIPTORS_MAX: usize = 1_024;
/// Most sockets of one look that are told one by one. A resolver keeps one for each name server (resolv.conf(5): at most three), so that more are questions of their own.
const TOLD_MAX: usize = 8;

/// The tables of both versions of IP.
const TABLES: [&str; 2] = ["udp", "udp6"];

/// The name server that the socket with this inode asks, from a table of the process's namespace.
pub(super) fn name_server(root: &Root, pid: u32, table: &str, inode: u64) -> Option<SocketAddr> {
    asking(root, pid, &[table]).remove(&inode)
}

/// The name servers that a process asks, as waits with the number of sockets. Few sockets are told one by one, with their inode: which of them are kept for the next question shows
/// only over time.
pub(super) fn questions(root: &Root, pid: u32) -> BTreeMap<Wait, u32> {
    let asking = asking(root, pid, &TABLES);
    if asking.is_empty() {
        return BTreeMap::new();
    }
    let directory = format!("proc/{pid}/fd");
    let names = root.names(&directory, DESCRIPTORS_MAX, None).map_or_else(|_| Vec::new(), |(names, _)| names);
    let inode = |name: &str| match root.link_process(pid, &format!("fd/{name}"), None) {
        Outcome::Ok(target) => socket_inode(std::str::from_utf8(&target).ok()?),
        _ => None,
    };
    let own: Vec<(u64, &SocketAddr)> =
        names.iter().filter_map(|name| inode(name.to_str()?)).filter_map(|inode| Some((inode, asking.get(&inode)?))).collect();
    let is_told = own.len() <= TOLD_MAX;
    let mut waits: BTreeMap<Wait, u32> = BTreeMap::new();
    for (inode, server) in own {
        // The kernel numbers sockets by 32 bits (fs/inode.c, get_next_ino).
        let other = if is_told { inode as u32 } else { 0 };
        *waits.entry(Wait { kind: WaitKind::NameQuestion, object: server.to_string(), other }).or_default() += 1;
    }
    waits
}

/// The sockets in these tables of a process's namespace that are connected to a name server, by inode.
fn asking(root: &Root, pid: u32, tables: &[&str]) -> BTreeMap<u64, SocketAddr> {
    let mut found = BTreeMap::new();
    for table in tables {
        let Outcome::Ok(bytes) = root.read(&format!("proc/{pid}/net/{table}"), TABLE_BYTES_MAX, None) else { continue };
        found.extend(String::from_utf8_lossy(&bytes).lines().skip(1).filter_map(socket));
    }
    found.retain(|_, server| server.port() == NAME_SERVER_PORT);
    found
}

/// Inode and remote address of a line: words of the address as the host orders their bytes, the port in hexadecimal.
fn socket(line: &str) -> Option<(u64, SocketAddr)> {
    let mut fields = line.split_ascii_whitespace().skip(2);
    let (address, port) = fields.next()?.split_once(':')?;
    let inode = fields.nth(6)?.parse().ok()?;
    let word = |at: usize| u32::from_str_radix(address.get(8 * at..8 * at + 8)?, 16).ok().map(u32::to_ne_bytes);
    let ip = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?].concat();
            IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(words).ok()?)).to_canonical()
        }
        _ => return None,
    };
    Some((inode, SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEAD: &str =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n";

    fn line(inode: u64, remote: &str) -> String {
        format!("  77: 0100007F:8FD2 {remote} 01 00000000:00000000 00:00000000 00000000  1000        0 {inode} 2 0 0\n")
    }

    #[test]
    fn questions_are_the_processs_own_sockets_to_a_name_server() {
        let tree = tempfile::tempdir().unwrap();
        let process = tree.path().join("proc/42");
        std::fs::create_dir_all(process.join("fd")).unwrap();
        std::fs::create_dir_all(process.join("net")).unwrap();
        for (descriptor, inode) in [(3, 101), (4, 102), (5, 103), (6, 104)] {
            std::os::unix::fs::symlink(format!("socket:[{inode}]"), process.join(format!("fd/{descriptor}"))).unwrap();
        }
        let asked = u32::from_ne_bytes([127, 0, 0, 53]);
        let server = format!("{asked:08X}:0035");
        // The fourth is that of another process, the third goes elsewhere.
        let table = [line(101, &server), line(102, &server), line(103, "0100007F:1F90"), line(999, &server)].concat();
        std::fs::write(process.join("net/udp"), format!("{HEAD}{table}")).unwrap();
        let root = Root::new(tree.path());
        let found = || -> Vec<(String, u32, u32)> {
            questions(&root, 42).into_iter().map(|(wait, number)| (wait.object, wait.other, number)).collect()
        };
        let asked = |other: u32, number: u32| ("127.0.0.53:53".to_owned(), other, number);
        assert_eq!(found(), [asked(101, 1), asked(102, 1)]);
        assert_eq!((name_server(&root, 42, "udp", 101).map(|server| server.port()), name_server(&root, 42, "udp", 103)), (Some(53), None));
        for (descriptor, inode) in (7..20).zip(107..) {
            std::os::unix::fs::symlink(format!("socket:[{inode}]"), process.join(format!("fd/{descriptor}"))).unwrap();
        }
        let table: String = (107..120).map(|inode| line(inode, &server)).collect();
        std::fs::write(process.join("net/udp"), format!("{HEAD}{table}")).unwrap();
        assert_eq!(found(), [asked(0, 13)], "of many only the number");
    }

    #[test]
    fn the_remote_address_of_a_socket_is_found() {
        let little = |ip: &str| cfg!(target_endian = "little").then(|| (104, SocketAddr::new(ip.parse().unwrap(), 53)));
        assert_eq!(socket(&line(104, "3500007F:0035")).filter(|_| cfg!(target_endian = "little")), little("127.0.0.53"));
        let six = line(104, "B80D0120000000000000000001000000:0035");
        assert_eq!(socket(&six).filter(|_| cfg!(target_endian = "little")), little("2001:db8::1"));
        assert_eq!(socket(&line(104, "35:0035")), None);
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in "[ -~]{0,160}") {
            let _ = socket(&line);
        }
    }
}
