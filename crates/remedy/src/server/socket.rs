//! Moving the requests for a pool to a unix socket: where the socket may lie, who may connect to it, and who still uses the old address.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use chokepoint_config::php_fpm::PoolSocket;
use chokepoint_foreign::{Files, Rights, SocketAtPath, read_kernel, trusted, try_connecting};
use rustix::fs::{AtFlags, Mode, OFlags, fstat, openat, statat, unlinkat};
use rustix::io::Errno;

use super::listener::{self, ListenAddress};
use super::master::Master;

/// Where procfs is mounted.
const PROC: &str = "/proc";
/// How long no worker of the pool may be woken before its address is given up: a program that uses it every second or more often is seen within it.
const QUIET_TIME: Duration = Duration::from_secs(2);
/// Longest wait for that.
const QUIET_WAIT_MAX: Duration = Duration::from_secs(15);
/// How often to look. A look reads every TCP socket of the namespace.
const QUIET_POLL: Duration = Duration::from_millis(100);
/// The longest table of sockets that is read: 400,000 sockets.
const TABLE_BYTES_MAX: usize = 64 << 20;
/// States of a connection that a client holds, in `/proc/net/tcp` (include/net/tcp_states.h): established, and waiting for the handshake.
const HELD_STATES: [&str; 2] = ["01", "02"];

/// Checks that a pool's master can make a socket there: the directory exists, only root, this user and the pool's own users can change it, and the path is
/// free. The error is a clause.
pub(super) fn check_place(master: &Master, socket: &PoolSocket) -> Result<(), String> {
    let path = Path::new(&socket.path);
    let directory = path.parent().ok_or_else(|| format!("{} is not in a directory", socket.path))?;
    let name = path.file_name().ok_or_else(|| format!("{} has no name", socket.path))?;
    let own = rustix::process::geteuid().as_raw();
    let workers = master.workers().into_iter().filter_map(|worker| Rights::of_process(Path::new(PROC), worker.pid).ok());
    let users = std::iter::once(own).chain(workers.map(|rights| rights.uid()));
    let opened = users.map(|user| trusted(directory, user)).reduce(Result::or);
    let directory = opened.ok_or("no user is known")?.map_err(|why| why.to_string())?;
    match statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(format!("{}: {error}", socket.path)),
        Ok(_) => Err(format!("{} exists already", socket.path)),
    }
}

/// Checks that the sockets on which a master listens are its own: another program that holds them (systemd's socket activation) would go on listening.
pub(super) fn check_own(master: &Master, address: &str) -> Result<(), String> {
    let place = ListenAddress::parse(address).ok_or_else(|| format!("{address} is not a valid address"))?;
    let sockets = listener::of(&master.hold()?, master.pid(), &place)?;
    if sockets.is_empty() {
        return Err(format!("the server does not listen on {address}"));
    }
    let inodes: Vec<String> =
        sockets.iter().filter_map(|socket| fstat(socket).ok()).map(|stat| format!("socket:[{}]", stat.st_ino)).collect();
    let held = fs::read_dir(format!("{PROC}/1/fd"))
        .map(|entries| entries.flatten().filter_map(|entry| fs::read_link(entry.path()).ok()).collect());
    let held: Vec<std::path::PathBuf> = held.unwrap_or_default();
    let is_held = master.pid() != 1 && held.iter().any(|link| inodes.iter().any(|inode| link == Path::new(inode)));
    if is_held { Err(format!("process 1 listens on {address} as well (socket activation)")) } else { Ok(()) }
}

/// Checks that a master listens there and nowhere else where it is wanted. The error is a clause.
pub(super) fn check_listens(master: &Master, address: &str) -> Result<(), String> {
    let place = ListenAddress::parse(address).ok_or_else(|| format!("{address} is not a valid address"))?;
    // Without the right to inspect the sockets, the new workers are the evidence.
    match listener::of(&master.hold()?, master.pid(), &place) {
        Ok(sockets) if sockets.is_empty() => Err(format!("the server does not listen on {address}")),
        _ => Ok(()),
    }
}

/// Checks that nothing but file modes decides what the workers of a master may connect to. The error is a clause.
pub(super) fn check_unconfined(master: &Master) -> Result<(), String> {
    for worker in master.workers() {
        let label = read_kernel(format!("{PROC}/{}/attr/current", worker.pid), 1 << 12).unwrap_or_default();
        let label = label.trim_end_matches(['\0', '\n']).trim();
        let is_free = label.is_empty() || label == "unconfined" || label.ends_with("(complain)") || label.contains(":unconfined_");
        if !is_free {
            return Err(format!(
                "a security module confines {} ({label}), and whether that lets it connect to a new socket is not known",
                master.kind.name()
            ));
        }
    }
    Ok(())
}

/// Checks that a worker of a master may connect to a socket, by doing so with its rights. The error is a clause.
pub(super) fn check_reachable(master: &Master, path: &str) -> Result<(), String> {
    let Some(worker) = master.workers().into_iter().next() else { return Err(format!("{} has no worker", master.kind.name())) };
    let rights = Rights::of_process(Path::new(PROC), worker.pid).map_err(|error| format!("process {}: {error}", worker.pid))?;
    let files = Files::of_process(Path::new(PROC), worker.pid).map_err(|error| format!("process {}: {error}", worker.pid))?;
    let connected = try_connecting(&files, Path::new(path), &rights);
    match connected.map_err(|error| format!("chokepoint cannot act as user {} ({error})", rights.uid()))? {
        Ok(()) => Ok(()),
        // A full queue is a listener's.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(format!("user {} of {} cannot connect to {path} ({error})", rights.uid(), master.kind.name())),
    }
}

/// Waits until nobody uses the address of a pool any more: no client is connected, and no worker is woken, which each connection does. The error is a clause.
pub(super) fn wait_until_unused(master: &Master, pool: &str, address: &str) -> Result<(), String> {
    let (start, mut quiet_since) = (Instant::now(), Instant::now());
    let mut woken = wakes(master, pool);
    loop {
        thread::sleep(QUIET_POLL);
        let now = wakes(master, pool);
        let is_used = connected_to(master.pid(), address)? > 0 || now.iter().any(|(pid, count)| woken.get(pid) != Some(count));
        if is_used {
            (woken, quiet_since) = (now, Instant::now());
        }
        if quiet_since.elapsed() >= QUIET_TIME {
            return Ok(());
        }
        if start.elapsed() >= QUIET_WAIT_MAX {
            return Err(format!("requests still come to {address}: another program uses it, too"));
        }
    }
}

/// How often each worker of a pool went to sleep so far (proc_pid_status(5)). An idle one waits in accept(2), without a timer.
fn wakes(master: &Master, pool: &str) -> BTreeMap<u32, u64> {
    let title = format!("php-fpm: pool {pool}");
    let sleeps = |pid: u32| {
        let status = read_kernel(format!("{PROC}/{pid}/status"), 1 << 20).ok()?;
        status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")?.trim().parse().ok())
    };
    master
        .workers()
        .into_iter()
        .filter(|worker| worker.title == title)
        .filter_map(|worker| Some((worker.pid, sleeps(worker.pid)?)))
        .collect()
}

/// The number of connections of clients to an address, in the network namespace of a process.
fn connected_to(pid: u32, address: &str) -> Result<usize, String> {
    let at = address.replace("localhost:", "127.0.0.1:");
    let at: SocketAddr = at.parse().map_err(|_| format!("{address} is not an address and a port"))?;
    let table = |name: &str| read_kernel(format!("{PROC}/{pid}/net/{name}"), TABLE_BYTES_MAX);
    let four = table("tcp").map_err(|error| format!("{PROC}/{pid}/net/tcp: {error}"))?;
    let six = match table("tcp6") {
        // A kernel without IPv6 has no such file.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        six => six.map_err(|error| format!("{PROC}/{pid}/net/tcp6: {error}"))?,
    };
    Ok(four.lines().chain(six.lines()).filter(|line| is_held_to(line, at.port())).count())
}

/// True for a client's connection to this port of a loopback address: "0: 0100007F:9C40 0100007F:2328 01 ..." (proc_net_tcp(5)).
fn is_held_to(line: &str, port: u16) -> bool {
    let mut words = line.split_whitespace().skip(2);
    let (Some(remote), Some(state)) = (words.next(), words.next()) else { return false };
    let is_loopback = |address: &str| match address.len() {
        8 => address.ends_with("7F"),
        // ::1, and ::ffff:127.0.0.0/8.
        _ => address == "00000000000000000000000001000000" || (address.starts_with("0000000000000000FFFF0000") && address.ends_with("7F")),
    };
    let Some((address, number)) = remote.split_once(':') else { return false };
    HELD_STATES.contains(&state) && u16::from_str_radix(number, 16) == Ok(port) && is_loopback(address)
}

/// Removes a socket that its server left behind: php-fpm removes it itself, unless it was killed. A socket on which somebody listens stays, and so does one in
/// a directory that others than its owner and root can change.
pub(super) fn remove_left(path: &str) {
    let path = Path::new(path);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return };
    let Ok(seen) = statat(rustix::fs::CWD, path, AtFlags::SYMLINK_NOFOLLOW) else { return };
    let Ok(directory) = trusted(parent, seen.st_uid) else { return };
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(file) = openat(&directory, name, flags, Mode::empty()) else { return };
    let is_seen = fstat(&file).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == (seen.st_dev, seen.st_ino));
    if is_seen && SocketAtPath::new(file.into()).is_ok_and(|socket| socket.is_left()) {
        // Left where it cannot be removed: nobody listens on it.
        let _ = unlinkat(&directory, name, AtFlags::empty());
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_clients_connection_is_told_from_the_servers_end_and_from_what_has_ended() {
        let line =
            |local: &str, remote: &str, state: &str| format!("   0: {local} {remote} {state} 00000000:00000000 00:00000000 00000000 33");
        let (client, server) = ("0100007F:9C40", "0100007F:2328");
        for (line, held) in [
            (line(client, server, "01"), true),
            (line(client, server, "02"), true),
            (line(server, client, "01"), false),
            (line(client, server, "06"), false),
            (line(client, "0200000A:2328", "01"), false),
            (line(client, "00000000000000000000000001000000:2328", "01"), true),
            (line(client, "0000000000000000FFFF00000100007F:2328", "01"), true),
            ("  sl  local_address rem_address   st".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(is_held_to(&line, 9000), held, "{line}");
        }
    }

    #[test]
    fn a_connection_that_stays_is_seen_and_one_that_ends_is_waited_for() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        assert_eq!(connected_to(std::process::id(), &address), Ok(0));
        let client = std::net::TcpStream::connect(&address).unwrap();
        assert_eq!(connected_to(std::process::id(), &address), Ok(1));
        drop(client);
        assert_eq!(connected_to(std::process::id(), &address), Ok(0));
        assert!(connected_to(std::process::id(), "php:9000").is_err());
    }

    #[test]
    fn only_a_socket_that_nobody_listens_on_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.sock");
        let (name, file) = (path.to_str().unwrap(), dir.path().join("file"));
        let listener = UnixListener::bind(&path).unwrap();
        remove_left(name);
        assert!(path.exists(), "somebody listens");
        drop(listener);
        remove_left(name);
        assert!(!path.exists());
        fs::write(&file, "x").unwrap();
        remove_left(file.to_str().unwrap());
        assert!(file.exists(), "not a socket");
    }
}
