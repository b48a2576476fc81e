//! TCP_INFO of connections as raw bytes. `chokepoint_sources::TcpInfo` parses them.
#![allow(unsafe_code, reason = "no safe library gives the structure whole, whatever the kernel's version")]

use std::os::fd::{AsRawFd, BorrowedFd};

/// Room for the structure, bytes. It grows with the kernel's versions (280 in 6.18).
const BYTES_MAX: usize = 1024;

/// Reads the structure of a TCP socket (tcp(7), TCP_INFO); none if the kernel refuses.
pub(crate) fn read(socket: BorrowedFd<'_>) -> Option<Vec<u8>> {
    let mut bytes = vec![0_u8; BYTES_MAX];
    let mut length = BYTES_MAX as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into the buffer, which is that long, and their number into `length`; the descriptor stays open while
    // it is borrowed.
    let result =
        unsafe { libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, bytes.as_mut_ptr().cast(), &raw mut length) };
    bytes.truncate(length as usize);
    (result == 0).then_some(bytes)
}
