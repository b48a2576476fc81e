//! Connecting from an address of one's own choice, whose local ports are its own.
#![allow(unsafe_code, reason = "no safe library sets IP_BIND_ADDRESS_NO_PORT")]

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

use mio::net::TcpStream;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

/// Calls connect() from this address. The kernel takes the port with the connection and not before, when all that it may not share with is known
/// (ip(7), IP_BIND_ADDRESS_NO_PORT): the ports of one address serve once for each server and not once in all.
pub(crate) fn connect(from: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = socket(from)?;
    match rustix::net::connect(&socket, &to) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(TcpStream::from_std(socket.into())),
        Err(error) => Err(error.into()),
    }
}

/// An error where connections cannot come from this address, EADDRNOTAVAIL where it is none of this network namespace.
pub(crate) fn check(from: IpAddr) -> io::Result<()> {
    socket(from).map(drop)
}

fn socket(from: IpAddr) -> io::Result<OwnedFd> {
    let family = if from.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?;
    let on: libc::c_int = 1;
    // SAFETY: the descriptor is open, and the kernel reads as many bytes at the pointer as the length says, those of a c_int that lives on.
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
