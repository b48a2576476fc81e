//! Unix sockets at paths that another user may control: found once, compared with the socket on which a server listens, and connected to as the very file that was
//! compared.
//!
//! A path may lead to another socket between a check and connect(2). So the path is followed once, to a descriptor that only names its file (open(2), `O_PATH`), and each
//! connection goes through that descriptor's own link (proc_pid_fd(5)). While it is open its file's number belongs to no other file, and only the socket that was bound to a
//! file answers there: no later one can be (bind(2), `EADDRINUSE`).

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatxFlags, openat2, statx};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::files::{Files, OWN};
use crate::rights::Rights;

/// The file of a socket as the kernel's list of unix sockets names it (linux/unix_diag.h, `struct unix_diag_vfs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SocketFile {
    /// `udiag_vfs_dev`: the device of its file system as the kernel writes it, 12 bits of the major number above 20 of the minor one.
    pub device: u32,
    /// `udiag_vfs_ino`: the lower 32 bits of the inode's number.
    pub inode: u32,
}

impl SocketFile {
    fn of(device: u64, inode: u64) -> Self {
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        Self { device: major << 20 | minor & 0xf_ffff, inode: inode as u32 }
    }
}

/// The file to which an absolute path leads in this program's view, without asking a file system: from the names that the kernel has in memory, as it has those of all sockets that are bound
/// (openat2(2), `RESOLVE_CACHED`, Linux 5.12). `None` if that is not enough, and for what is no socket.
pub fn known_socket_file(path: &Path) -> Option<SocketFile> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::CACHED | ResolveFlags::NO_MAGICLINKS).ok()?;
    let meta = statx(&file, c"", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, StatxFlags::BASIC_STATS).ok()?;
    let is_socket = FileType::from_raw_mode(u32::from(meta.stx_mode)) == FileType::Socket;
    is_socket.then(|| SocketFile::of(rustix::fs::makedev(meta.stx_dev_major, meta.stx_dev_minor), meta.stx_ino))
}

/// A socket at a path, opened only as a name.
#[derive(Debug)]
pub struct SocketAtPath(File);

impl SocketAtPath {
    /// From a file that was opened as a name ([`Files::locate`]).
    ///
    /// # Errors
    /// "it is not a socket".
    pub fn new(file: File) -> io::Result<Self> {
        match file.metadata()?.file_type().is_socket() {
            true => Ok(Self(file)),
            false => Err(io::Error::other("it is not a socket")),
        }
    }

    /// Its identity, in the numbers of the kernel's list. Some file systems show other numbers to stat(2) than the kernel has (btrfs, overlays of several
    /// file systems): then they are of no listener.
    ///
    /// # Errors
    /// As of fstat(2).
    pub fn file(&self) -> io::Result<SocketFile> {
        let meta = self.0.metadata()?;
        Ok(SocketFile::of(meta.dev(), meta.ino()))
    }

    /// True if nobody listens on it any more (connect(2), ECONNREFUSED). Nothing is sent.
    pub fn is_left(&self) -> bool {
        connect_to(&self.0).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    }

    /// The same as the socket of a server, if it is the file to which the server's listening socket is bound. `listening` must have been read since this was opened, and the
    /// caller knows that a process of the server holds that socket. `users` are those who may have called listen(2) for it.
    ///
    /// # Errors
    /// "another socket stands there than the one on which the server listens".
    pub fn of_listener(self, listening: SocketFile, users: Vec<u32>) -> io::Result<ListeningSocket> {
        if self.file()? != listening {
            return Err(io::Error::other(ANOTHER));
        }
        Ok(ListeningSocket { file: self.0, users })
    }
}

/// Why a path is not connected to.
const ANOTHER: &str = "another socket stands there than the one on which the server listens";

/// A socket on which a known server listens, as the very file that was checked, whatever its path leads to by now.
#[derive(Debug)]
pub struct ListeningSocket {
    file: File,
    users: Vec<u32>,
}

impl ListeningSocket {
    /// Connects without waiting; the new socket does not block. Nothing is sent before the kernel has said who listens (SO_PEERCRED, unix(7)).
    ///
    /// # Errors
    /// As of connect(2): ECONNREFUSED if nobody listens any more, EAGAIN if the queue is full; "another user listens there".
    pub fn connect(&self) -> io::Result<OwnedFd> {
        let socket = connect_to(&self.file)?;
        let user = socket_peercred(&socket)?.uid.as_raw();
        if !self.users.contains(&user) {
            return Err(io::Error::other("another user listens there, so it is not asked"));
        }
        Ok(socket)
    }
}

/// Whether a user may connect to the socket at a path, found out with that user's rights. Nothing is sent.
///
/// # Errors
/// The rights cannot be taken; within, as of [`Files::locate`] and connect(2).
pub fn try_connecting(files: &Files, path: &Path, rights: &Rights) -> io::Result<io::Result<()>> {
    rights.run(|| connect_to(&SocketAtPath::new(files.locate(path)?)?.0).map(drop))
}

/// The only place that connects to the socket at somebody else's path. The descriptor's link leads to the file itself, whatever the length of its path.
fn connect_to(file: &File) -> io::Result<OwnedFd> {
    let address = SocketAddrUnix::new(format!("{OWN}/{}", file.as_raw_fd()))?;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    connect(&socket, &address)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn the_file_of_a_bound_socket_is_known_to_the_kernel() {
        let tree = tempfile::tempdir().unwrap();
        let at = |name: &str| tree.path().join(name);
        let _listening = UnixListener::bind(at("own")).unwrap();
        fs::write(at("file"), "").unwrap();
        let held = SocketAtPath::new(Files::of_directory(Path::new("/")).unwrap().locate(at("own")).unwrap()).unwrap();
        match known_socket_file(&at("own")) {
            Some(known) => assert_eq!(known, held.file().unwrap()),
            None => println!("skipped: no RESOLVE_CACHED before Linux 5.12"),
        }
        assert_eq!([at("file"), at("none"), tree.path().to_owned()].map(|path| known_socket_file(&path)), [None; 3]);
    }

    #[test]
    fn a_path_that_is_led_elsewhere_after_the_check_still_leads_to_the_socket_that_was_checked() {
        let tree = tempfile::tempdir().unwrap();
        let at = |name: &str| tree.path().join(name);
        let (own, secret) = (UnixListener::bind(at("own")).unwrap(), UnixListener::bind(at("secret")).unwrap());
        symlink("own", at("app.sock")).unwrap();
        let files = Files::of_directory(Path::new("/")).unwrap();
        let find = |name: &str| SocketAtPath::new(files.locate(at(name)).unwrap()).unwrap();
        let listening = find("own").file().unwrap();
        let me = rustix::process::geteuid().as_raw();
        let held = find("app.sock").of_listener(listening, vec![me]).unwrap();
        // The owner of the directory leads the path to the other socket.
        fs::remove_file(at("app.sock")).unwrap();
        symlink("secret", at("app.sock")).unwrap();
        secret.set_nonblocking(true).unwrap();
        for _ in 0..3 {
            let _connected = held.connect().unwrap();
            own.accept().unwrap();
        }
        assert_eq!(secret.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock, "nothing came there");
        assert_eq!(find("app.sock").of_listener(listening, vec![me]).unwrap_err().to_string(), ANOTHER);
        // A socket that is bound to the path anew is another one.
        fs::rename(at("own"), at("kept")).unwrap();
        let again = UnixListener::bind(at("own")).unwrap();
        assert_eq!(find("own").of_listener(listening, vec![me]).unwrap_err().to_string(), ANOTHER);
        drop(own);
        assert_eq!(held.connect().unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        drop(again);
    }

    #[test]
    fn nobody_but_the_servers_user_is_asked_and_nothing_but_a_socket() {
        let tree = tempfile::tempdir().unwrap();
        let path = tree.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let files = Files::of_directory(Path::new("/")).unwrap();
        let located = || SocketAtPath::new(files.locate(&path).unwrap()).unwrap();
        let (file, me) = (located().file().unwrap(), rustix::process::geteuid().as_raw());
        let other = located().of_listener(file, vec![me + 1]).unwrap();
        assert!(other.connect().unwrap_err().to_string().contains("another user listens there"));
        assert!(located().of_listener(file, vec![me + 1, me]).unwrap().connect().is_ok());
        assert!(try_connecting(&files, &path, &Rights::new(me, me, Vec::new())).unwrap().is_ok());
        assert!(!located().is_left());
        drop(listener);
        assert!(located().is_left());
        assert!(try_connecting(&files, &path, &Rights::new(me, me, Vec::new())).unwrap().is_err());
        assert_eq!(SocketAtPath::new(files.locate(tree.path()).unwrap()).unwrap_err().to_string(), "it is not a socket");
    }
}
