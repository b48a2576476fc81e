//! Unix sockets that processes of a known server listen on, found by their files: what a path leads to is compared with what the kernel has, and never connected to by its name.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;

use chokepoint_foreign::{Files, Identity, ListeningSocket, SocketAtPath, SocketFile};
use chokepoint_recording::Outcome;

use super::message::{DiagSocket, parse_socket};
use super::unix;
use crate::netlink::Netlink;
use crate::netlink::wire::messages;
use crate::netns::enter::spawn_inside;
use crate::netns::{self, NetnsRef};
use crate::root::Root;
use crate::text::process::files::{parse, read_files};

/// Root hands listening sockets to servers (systemd's socket activation), and servers give up its rights after listen(2).
const ROOT: u32 = 0;

/// A listening unix socket and the file that it is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BoundListener {
    /// The socket's inode, by which processes hold it (proc_pid_fd(5)).
    pub(crate) inode: u64,
    pub(crate) file: SocketFile,
    /// The path that it was bound to, in the view of whoever bound it.
    pub(crate) path: Option<String>,
}

/// The listening unix sockets of a namespace that are bound to files; nothing if they cannot be listed.
pub(crate) fn bound_listeners(diag: &Netlink) -> Option<Vec<BoundListener>> {
    let request = unix::listener_files().first;
    let bytes = diag.dump(request.kind, &request.body).ok()?;
    let mut found = Vec::new();
    for message in messages(&bytes) {
        if let DiagSocket::Unix(socket) = parse_socket(&message.ok()?).ok()?
            && let (true, true, Some(file)) = (socket.listens, socket.is_stream, socket.file)
        {
            found.push(BoundListener { inode: socket.inode, file, path: socket.path });
        }
    }
    Some(found)
}

/// Why a unix socket is not connected to.
#[derive(Debug, thiserror::Error)]
pub enum SocketRefusal {
    /// Its path leads to no socket, or is not accessible.
    #[error("{0}: {1}")]
    Path(String, io::Error),
    /// No server is known that could be compared with it.
    #[error("no process is known that listens at {0}, so it is not asked")]
    Unknown(String),
    /// No process of the servers listens on the socket at the path.
    #[error("{0}: none of the servers behind listens on the socket to which this path leads now, so it is not asked")]
    Another(String),
}

/// The socket to which an absolute path leads in the view of the process `seen_by`, if one of the processes `holders` listens on that very socket, and the path that it was bound to.
/// It stays that socket, whatever the path leads to later.
///
/// # Errors
/// [`SocketRefusal`]: in all other cases, also if it cannot be found out.
pub fn listening_socket(
    root: &Root,
    seen_by: u32,
    path: &str,
    holders: &[u32],
) -> Result<(ListeningSocket, Option<String>), SocketRefusal> {
    let named = |error| SocketRefusal::Path(path.to_owned(), error);
    let files = Files::of_process(&root.path("proc"), seen_by).map_err(named)?;
    // First the file is held, then the kernel's list is read: so its number is this file's in the list.
    let found = SocketAtPath::new(locate(&files, path).map_err(named)?).map_err(named)?;
    let file = found.file().map_err(named)?;
    if holders.is_empty() {
        return Err(SocketRefusal::Unknown(path.to_owned()));
    }
    let mut asked = BTreeSet::new();
    for netns in holders.iter().filter_map(|pid| netns::of_process(root, *pid).ok()).filter(|netns| asked.insert(netns.id)) {
        let Some(listener) = listeners_of(netns, root).into_iter().find(|listener| listener.file == file) else { continue };
        let holding: Vec<u32> = holders.iter().copied().filter(|pid| holds(root, *pid, listener.inode)).collect();
        if holding.is_empty() {
            break;
        }
        let users = holding.iter().filter_map(|pid| Some(Identity::of(&root.path("proc"), *pid).ok()?.uid()));
        let socket = found.of_listener(listener.file, users.chain([ROOT]).collect()).map_err(named)?;
        return Ok((socket, listener.path));
    }
    Err(SocketRefusal::Another(path.to_owned()))
}

/// What another user leads the path to is waited for within that user's budget.
fn locate(files: &Files, path: &str) -> io::Result<File> {
    match files.first_owner(path).filter(|user| *user != rustix::process::geteuid().as_raw()) {
        Some(user) => {
            let (files, at) = (files.try_clone()?, path.to_owned());
            chokepoint_foreign::of_file(user, path, move || files.locate(at))?
        }
        None => files.locate(path),
    }
}

/// None if the namespace cannot be read.
fn listeners_of(netns: NetnsRef, root: &Root) -> Vec<BoundListener> {
    let thread = spawn_inside(netns, root.clone(), |inside| bound_listeners(inside.ok()?.sockets().diag()));
    thread.ok().and_then(|thread| thread.join().ok().flatten()).unwrap_or_default()
}

fn holds(root: &Root, pid: u32, inode: u64) -> bool {
    match read_files(root, pid) {
        Ok(Outcome::Ok(bytes)) => parse(&bytes).is_ok_and(|files| files.sockets.contains(&inode)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn of_this(path: &std::path::Path, holders: &[u32]) -> Result<(ListeningSocket, Option<String>), String> {
        let path = path.to_str().unwrap();
        listening_socket(&Root::default(), std::process::id(), path, holders).map_err(|error| error.to_string())
    }

    #[test]
    fn only_a_socket_that_a_process_of_the_server_listens_on_is_found() {
        let tree = tempfile::tempdir().unwrap();
        let (path, link) = (tree.path().join("s"), tree.path().join("link"));
        symlink("s", &link).unwrap();
        assert!(of_this(&path, &[std::process::id()]).unwrap_err().contains("No such file"));
        let listener = UnixListener::bind(&path).unwrap();
        for way in [&path, &link] {
            let (socket, bound) = of_this(way, &[std::process::id()]).unwrap();
            assert_eq!(bound.as_deref(), path.to_str());
            let _stream = socket.connect().unwrap();
            listener.accept().unwrap();
        }
        // Another process, which does not hold it, is the server; or none is known.
        let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let refused = of_this(&path, &[other.id()]).unwrap_err();
        let _ = (other.kill(), other.wait());
        assert!(refused.contains("none of the servers behind listens on the socket"), "{refused}");
        assert!(of_this(&path, &[]).unwrap_err().contains("no process is known"));
        assert!(of_this(tree.path(), &[std::process::id()]).unwrap_err().contains("it is not a socket"));
        // Its file is there, but nobody listens.
        drop(listener);
        assert!(of_this(&path, &[std::process::id()]).unwrap_err().contains("none of the servers behind"));
    }

    /// The kernel's numbers of a file are those of stat(2).
    #[test]
    fn the_kernel_lists_the_file_of_a_listener() {
        let tree = tempfile::tempdir().unwrap();
        let path = tree.path().join("s");
        let _listener = UnixListener::bind(&path).unwrap();
        let here = netns::of_process(&Root::default(), std::process::id()).unwrap();
        let listed: Vec<_> = listeners_of(here, &Root::default());
        let own = listed.iter().find(|listener| listener.path.as_deref() == path.to_str()).expect("the listener");
        let files = Files::of_directory(std::path::Path::new("/")).unwrap();
        assert_eq!(own.file, SocketAtPath::new(files.locate(&path).unwrap()).unwrap().file().unwrap());
    }
}
