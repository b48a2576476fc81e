//! Connects from a given source address. Each server has its own range of local ports.
#![allow(unsafe_code, reason = "no safe library sets IP_BIND_ADDRESS_NO_PORT")]

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

use mio::net::TcpStream;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

/// Calls connect() from this address. The kernel chooses the port only when connecting, when it knows the server (ip(7), IP_BIND_ADDRESS_NO_PORT). So the ports
/// of one address can be used once for each server, not once in all.
pub(crate) fn connect(from: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = socket(from)?;
    match rustix::net::connect(&socket, &to) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(TcpStream::from_std(socket.into())),
        Err(error) => Err(error.into()),
    }
}

/// Checks that connections can come from this address; EADDRNOTAVAIL if it does not belong to this network namespace.
pub(crate) fn check(from: IpAddr) -> io::Result<()> {
    socket(from).map(drop)
}

fn socket(from: IpAddr) -> io::Result<OwnedFd> {
    let family = if from.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?;
    let on: libc::c_int = 1;
    // SAFETY: the descriptor is open, and the kernel reads as many bytes as the length says: those of a c_int that outlives the call.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            std::ptr::from_ref(&on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    };
    if set != 0 {
        return Err(io::Error::last_os_error());
    }
    rustix::net::bind(&socket, &SocketAddr::new(from, 0))?;
    Ok(socket)
}
