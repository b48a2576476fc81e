//! Unix listeners of one name that are different files. A name is the path that a program gave to bind(2), and in a mount namespace of their own anybody has any path: the kernel's list
//! shows two of the same name, and only one of them is where the path leads.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use chokepoint_foreign::{SocketFile, known_socket_file};
use chokepoint_recording::Outcome;

use super::message::{DiagSocket, parse_socket};
use super::unix::{self, UnixSocket};
use crate::netlink::wire::{HEADER_BYTES, messages};
use crate::table::Items;

/// The listeners whose name leads to another socket than theirs.
#[derive(Debug, Default)]
pub(super) struct Namesakes(BTreeSet<(String, SocketFile)>);

impl Namesakes {
    /// Learns from a list of listeners. Where none of several is the file to which the path leads here, all keep their name: each may be right where it is.
    pub(super) fn learn(&mut self, bytes: &[u8], leads_to: impl Fn(&Path) -> Option<SocketFile>) {
        let mut by_name: BTreeMap<String, BTreeSet<SocketFile>> = BTreeMap::new();
        for message in messages(bytes) {
            let Some(Ok(DiagSocket::Unix(socket))) = message.ok().map(|message| parse_socket(&message)) else { continue };
            if let (true, Some(path), Some(file)) = (socket.listens, socket.path.filter(|path| path.starts_with('/')), socket.file) {
                by_name.entry(path).or_default().insert(file);
            }
        }
        self.0.clear();
        for (path, files) in by_name.into_iter().filter(|(_, files)| files.len() > 1) {
            if let Some(here) = leads_to(Path::new(&path)).filter(|here| files.contains(here)) {
                self.0.extend(files.into_iter().filter(|file| *file != here).map(|file| (path.clone(), file)));
            }
        }
    }

    /// Marks the sockets of a list that belong to such listeners.
    pub(super) fn mark(&self, items: &mut Items) {
        for (_, outcome) in items.iter_mut().filter(|_| !self.0.is_empty()) {
            if let Outcome::Ok(bytes) = outcome {
                *bytes = self.marked(bytes);
            }
        }
    }

    /// The same of a list's bytes. What is no list stays as it is.
    pub(super) fn marked(&self, bytes: &[u8]) -> Vec<u8> {
        if self.0.is_empty() {
            return bytes.to_vec();
        }
        let mut all = Vec::with_capacity(bytes.len());
        for message in messages(bytes) {
            let Ok(message) = message else { return bytes.to_vec() };
            let is_namesake = matches!(parse_socket(&message), Ok(DiagSocket::Unix(socket)) if self.has(&socket));
            let mark = if is_namesake { unix::MARK.as_slice() } else { &[] };
            let body = message.body.len().next_multiple_of(4);
            let length = HEADER_BYTES + if mark.is_empty() { message.body.len() } else { body + mark.len() };
            all.extend_from_slice(&u32::try_from(length).unwrap_or(0).to_ne_bytes());
            all.extend_from_slice(&message.whole[4..HEADER_BYTES]);
            all.extend_from_slice(message.body);
            all.resize(all.len().next_multiple_of(4), 0);
            all.extend_from_slice(mark);
        }
        all
    }

    fn has(&self, socket: &UnixSocket) -> bool {
        let named = socket.path.clone().zip(socket.file);
        named.is_some_and(|named| self.0.contains(&named))
    }
}

/// Where a path leads in this program's view, from what the kernel knows without asking a file system: some do not answer.
pub(super) fn leads_to(path: &Path) -> Option<SocketFile> {
    known_socket_file(path)
}

#[cfg(test)]
mod tests {
    use chokepoint_model::observation::{ListenerAddress, SocketAddress, TcpState};

    use super::*;
    use crate::netlink::wire::request;
    use crate::sock_diag::listeners::parse_listeners;
    use crate::sock_diag::protocol::{AF_UNIX, SOCK_DIAG_BY_FAMILY};
    use crate::sock_diag::sockets::parse_sockets;

    const HERE: SocketFile = SocketFile { device: 27, inode: 5 };
    const ELSEWHERE: SocketFile = SocketFile { device: 91, inode: 2 };

    fn message(state: TcpState, inode: u32, path: &str, file: SocketFile) -> Vec<u8> {
        let mut body = vec![AF_UNIX, 1, state as u8, 0];
        body.extend_from_slice(&inode.to_ne_bytes());
        body.extend_from_slice(&[0; 8]);
        let vfs = [file.inode.to_ne_bytes(), file.device.to_ne_bytes()].concat();
        for (kind, value) in [(0_u16, path.as_bytes()), (1, vfs.as_slice())] {
            body.extend_from_slice(&((value.len() + 4) as u16).to_ne_bytes());
            body.extend_from_slice(&kind.to_ne_bytes());
            body.extend_from_slice(value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        request(SOCK_DIAG_BY_FAMILY, 2, 1, &body)
    }

    fn names(bytes: &[u8]) -> Vec<String> {
        parse_listeners(bytes)
            .unwrap()
            .into_iter()
            .map(|listener| match listener.address {
                ListenerAddress::Unix(path) => path,
                other => other.to_string(),
            })
            .collect()
    }

    #[test]
    fn of_several_sockets_of_one_name_only_the_one_at_the_path_has_it() {
        let listen = |inode, file| message(TcpState::Listen, inode, "/run/app.sock", file);
        let both = [listen(7, HERE), listen(8, ELSEWHERE), message(TcpState::Listen, 9, "/run/b.sock", ELSEWHERE)].concat();
        let mut namesakes = Namesakes::default();
        namesakes.learn(&both, |_| Some(HERE));
        assert_eq!(names(&namesakes.marked(&both)), ["/run/app.sock", "/run/app.sock (file 91:2)", "/run/b.sock"]);
        // What the other one accepted has its name.
        let accepted = message(TcpState::Established, 10, "/run/app.sock", ELSEWHERE);
        let sockets = parse_sockets(&namesakes.marked(&accepted)).unwrap();
        assert!(matches!(&sockets[0].address, SocketAddress::Unix { path: Some(path), .. } if path == "/run/app.sock (file 91:2)"));
        // Where the path leads to neither, or nowhere, each may be right where it is.
        for here in [None, Some(SocketFile { device: 1, inode: 1 })] {
            namesakes.learn(&both, |_| here);
            assert_eq!(namesakes.marked(&both), both);
        }
        namesakes.learn(&listen(8, ELSEWHERE), |_| Some(HERE));
        assert_eq!(names(&namesakes.marked(&listen(8, ELSEWHERE))), ["/run/app.sock"], "it is the only one");
    }
}
