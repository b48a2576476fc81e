//! Netlink sockets of one network namespace and bounded dumps through them (netlink(7), sock_diag(7), rtnetlink(7)).

pub(crate) mod wire;

use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use chokepoint_recording::Outcome;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, netlink, recvfrom, send, socket_with, sockopt};

use crate::root::outcome_of;
use wire::{Message, messages};

/// Most bytes of a dump.
pub(crate) const DUMP_BYTES_MAX: usize = 32 << 20;
/// A dump that was not consistent is read at most this many times (NLM_F_DUMP_INTR, netlink(7)).
const INTERRUPTED_READS_MAX: u32 = 3;
/// The kernel fills at most 32 KiB into one datagram of a dump (net/netlink/af_netlink.c, netlink_recvmsg).
const DATAGRAM_BYTES_MAX: usize = 64 << 10;
/// The kernel answers a dump at once. A longer silence is a fault.
const SILENCE_MAX: Duration = Duration::from_secs(2);

/// Buffer for multicast messages, and how long one wait for them lasts.
const MULTICAST_BYTES_MAX: usize = 8 << 20;
const MULTICAST_WAIT: Duration = Duration::from_millis(100);

/// Kinds of values that readers keep of a namespace.
const MEMORIES_MAX: usize = 6;

/// Protocol number zero, written as the default protocol.
const NETLINK_ROUTE: Option<rustix::net::Protocol> = None;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;

/// Why a dump gave nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DumpError {
    /// The system call failed, or the kernel refused.
    #[error("{0}")]
    System(#[from] io::Error),
    /// The dump was never consistent.
    #[error("the kernel's list changed while it was read, {INTERRUPTED_READS_MAX} times in a row")]
    Interrupted,
    /// A malformed message.
    #[error("{0}")]
    Wire(#[from] wire::WireError),
    /// A datagram longer than the buffer.
    #[error("a netlink datagram is longer than {DATAGRAM_BYTES_MAX} bytes")]
    Truncated,
    /// A dump longer than the bound.
    #[error("the dump is longer than {DUMP_BYTES_MAX} bytes")]
    TooLong,
}

impl DumpError {
    /// The error as the outcome of a reading; with the reason `missing` if this kernel has no such list.
    pub(crate) fn outcome(&self, missing: &str, needs: Option<&str>) -> Outcome {
        match self {
            // ENOENT: no handler for the family; EINVAL, EOPNOTSUPP and EPROTONOSUPPORT: built without it (net/core/sock_diag.c).
            DumpError::System(error) => match error.raw_os_error() {
                Some(libc::ENOENT | libc::EOPNOTSUPP | libc::EPROTONOSUPPORT | libc::EAFNOSUPPORT) => {
                    Outcome::Absent(missing.to_owned(), None)
                }
                _ => outcome_of(error, needs),
            },
            other => Outcome::Failed(other.to_string(), None),
        }
    }
}

/// The netlink sockets of one namespace: that of the thread which opened them.
#[derive(Debug)]
pub(crate) struct Sockets {
    diag: Netlink,
    route: Netlink,
    /// What readers keep of this namespace between reads, one value of each type.
    memory: [OnceCell<Box<dyn Any + Send>>; MEMORIES_MAX],
}

impl Sockets {
    /// Opens the sockets in the calling thread's namespace.
    pub(crate) fn open() -> io::Result<Self> {
        Ok(Self { diag: Netlink::sock_diag()?, route: Netlink::open(NETLINK_ROUTE)?, memory: Default::default() })
    }

    /// For sock_diag(7).
    pub(crate) fn diag(&self) -> &Netlink {
        &self.diag
    }

    /// What a reader keeps of this namespace between reads: the only value of its type, the default one at first.
    pub(crate) fn memory<T: Default + Send + 'static>(&self) -> &RefCell<T> {
        let new = || Box::new(RefCell::<T>::default()) as Box<dyn Any + Send>;
        let found = self.memory.iter().find_map(|slot| slot.get_or_init(new).downcast_ref());
        found.expect("there is a slot for each reader that keeps something")
    }

    /// For rtnetlink(7).
    pub(crate) fn route(&self) -> &Netlink {
        &self.route
    }
}

/// One netlink socket.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
    sequence: Cell<u32>,
    /// Buffer for one datagram. It is kept: clearing it costs more than a dump of a few listeners.
    datagram: RefCell<Vec<u8>>,
}

impl Netlink {
    fn open(protocol: Option<rustix::net::Protocol>) -> io::Result<Self> {
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(SILENCE_MAX))?;
        Ok(Self { socket, sequence: Cell::new(0), datagram: RefCell::new(vec![0; DATAGRAM_BYTES_MAX]) })
    }

    /// A socket for sock_diag(7).
    pub(crate) fn sock_diag() -> io::Result<Self> {
        Self::open(Some(netlink::SOCK_DIAG))
    }

    /// A socket for nfnetlink (linux/netfilter/nfnetlink.h), for one dump: it is not needed often enough to keep.
    pub(crate) fn netfilter() -> io::Result<Self> {
        Self::open(Some(netlink::NETFILTER))
    }

    /// A socket that receives each TCP socket which the kernel destroys in this namespace (linux/sock_diag.h, SKNLGRP_INET_TCP_DESTROY and
    /// SKNLGRP_INET6_TCP_DESTROY: groups 1 and 3). It needs no privilege.
    pub(crate) fn open_destroyed() -> io::Result<Self> {
        const GROUPS: u32 = 0b101;
        let netlink = Self::open(Some(netlink::SOCK_DIAG))?;
        // More than the host's limit needs CAP_NET_ADMIN. A smaller buffer loses messages sooner, which is reported.
        if sockopt::set_socket_recv_buffer_size_force(&netlink.socket, MULTICAST_BYTES_MAX).is_err() {
            sockopt::set_socket_recv_buffer_size(&netlink.socket, MULTICAST_BYTES_MAX)?;
        }
        sockopt::set_socket_timeout(&netlink.socket, sockopt::Timeout::Recv, Some(MULTICAST_WAIT))?;
        bind(&netlink.socket, &SocketAddrNetlink::new(0, GROUPS))?;
        Ok(netlink)
    }

    /// Receives one multicast datagram and passes its messages to `each`; false if none came within the wait. Lost messages are the error ENOBUFS.
    pub(crate) fn receive_multicast(&self, each: &mut dyn FnMut(&[u8]) -> Result<(), DumpError>) -> Result<bool, DumpError> {
        let mut datagram = self.datagram.borrow_mut();
        match self.receive(&mut datagram) {
            Ok(length) => each(&datagram[..length]).map(|()| true),
            Err(DumpError::System(error)) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Requests a dump and returns its messages as the kernel wrote them, without the closing NLMSG_DONE.
    pub(crate) fn dump(&self, kind: u16, body: &[u8]) -> Result<Vec<u8>, DumpError> {
        for _ in 0..INTERRUPTED_READS_MAX {
            let mut bytes = Vec::new();
            let whole = self.dump_into(kind, body, &mut |message| {
                if bytes.len() + message.len() > DUMP_BYTES_MAX {
                    return Err(DumpError::TooLong);
                }
                bytes.extend_from_slice(message);
                Ok(())
            })?;
            if whole {
                return Ok(bytes);
            }
        }
        Err(DumpError::Interrupted)
    }

    /// Requests one object and returns its message.
    pub(crate) fn one(&self, kind: u16, body: &[u8]) -> Result<Vec<u8>, DumpError> {
        let sequence = self.sequence.get().wrapping_add(1);
        self.sequence.set(sequence);
        send(&self.socket, &wire::request(kind, NLM_F_REQUEST, sequence, body), SendFlags::empty()).map_err(io::Error::from)?;
        let mut datagram = self.datagram.borrow_mut();
        loop {
            let length = self.receive(&mut datagram)?;
            for message in messages(&datagram[..length]) {
                let message = message?;
                match end_of(&message) {
                    _ if message.sequence != sequence => {}
                    Some(Err(error)) => return Err(error.into()),
                    Some(Ok(())) => {}
                    None => return Ok(message.whole.to_vec()),
                }
            }
        }
    }

    /// Waits for a datagram of the kernel and returns its length.
    fn receive(&self, datagram: &mut [u8]) -> Result<usize, DumpError> {
        loop {
            let (_, length, from) = match recvfrom(&self.socket, &mut *datagram, RecvFlags::TRUNC) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other.map_err(io::Error::from)?,
            };
            // Only datagrams of the kernel count: any process may send to a netlink address that it guesses.
            if from.and_then(|from| SocketAddrNetlink::try_from(from).ok()).is_none_or(|from| from.pid() != 0) {
                continue;
            }
            return if length > datagram.len() { Err(DumpError::Truncated) } else { Ok(length) };
        }
    }

    /// Requests a dump and passes each message, header included, to `each`; false if the list changed during the dump.
    pub(crate) fn dump_into(
        &self,
        kind: u16,
        body: &[u8],
        each: &mut dyn FnMut(&[u8]) -> Result<(), DumpError>,
    ) -> Result<bool, DumpError> {
        let sequence = self.sequence.get().wrapping_add(1);
        self.sequence.set(sequence);
        send(&self.socket, &wire::request(kind, NLM_F_REQUEST | NLM_F_DUMP, sequence, body), SendFlags::empty())
            .map_err(io::Error::from)?;
        let mut datagram = self.datagram.borrow_mut();
        let mut whole = true;
        let mut failure = None;
        loop {
            let length = self.receive(&mut datagram)?;
            for message in messages(&datagram[..length]) {
                let message = message?;
                if message.sequence != sequence {
                    continue; // The rest of an earlier dump that was given up.
                }
                whole &= !message.interrupted();
                match end_of(&message) {
                    Some(Ok(())) => return failure.map_or(Ok(whole), Err),
                    Some(Err(error)) => return Err(error.into()),
                    // After a failure of `each` the dump is read to its end, so that the next one starts clean.
                    None if failure.is_none() => failure = each(message.whole).err(),
                    None => {}
                }
            }
        }
    }
}

/// How a message ends the dump, if it does. NLMSG_DONE carries an error number of its own (net/netlink/af_netlink.c).
fn end_of(message: &Message<'_>) -> Option<io::Result<()>> {
    const NLMSG_ERROR: u16 = 2;
    const NLMSG_DONE: u16 = 3;
    if message.kind != NLMSG_DONE && message.kind != NLMSG_ERROR {
        return None;
    }
    let code = message.body.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
    Some(if code < 0 { Err(io::Error::from_raw_os_error(code.saturating_neg())) } else { Ok(()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_message_ends_the_dump() {
        let mut bytes = wire::request(2, 0, 1, &(-libc::ENOENT).to_ne_bytes());
        let message = messages(&bytes).next().unwrap().unwrap();
        assert_eq!(end_of(&message).unwrap().unwrap_err().raw_os_error(), Some(libc::ENOENT));
        bytes[4] = 3;
        bytes[16..20].copy_from_slice(&0_i32.to_ne_bytes());
        assert!(end_of(&messages(&bytes).next().unwrap().unwrap()).unwrap().is_ok());
        bytes[4] = 20;
        assert!(end_of(&messages(&bytes).next().unwrap().unwrap()).is_none());
        // An error number that has no negation must not overflow.
        let worst = wire::request(2, 0, 1, &i32::MIN.to_ne_bytes());
        assert!(end_of(&messages(&worst).next().unwrap().unwrap()).unwrap().is_err());
    }

    #[test]
    fn an_unknown_family_is_absent_and_leaves_the_socket_usable() {
        let sockets = Sockets::open().unwrap();
        let mut request = [0_u8; 56];
        request[0] = libc::AF_AX25 as u8;
        let error = sockets.diag().dump(20, &request).unwrap_err();
        assert!(matches!(error.outcome("no such list", None), Outcome::Absent(why, None) if why == "no such list"), "{error:?}");
        request[0] = libc::AF_INET as u8;
        request[1] = libc::IPPROTO_TCP as u8;
        assert!(sockets.diag().dump(20, &request).is_ok());
    }

    #[test]
    fn a_failure_of_the_caller_drains_the_dump() {
        let sockets = Sockets::open().unwrap();
        let refused = sockets.route().dump_into(18, &[0; 16], &mut |_| Err(DumpError::TooLong));
        assert!(matches!(refused, Err(DumpError::TooLong)));
        assert!(!sockets.route().dump(18, &[0; 16]).unwrap().is_empty(), "the loopback interface at least");
    }
}
