//! What parent and child send each other: a header of 16 bytes, with which descriptors travel, and so many bytes.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;

use rustix::fd::{AsFd, BorrowedFd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Most files of one question.
pub(crate) const FILES_MAX: usize = 16;
const HEADER_BYTES: usize = 16;

/// What a frame says of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// In a question the place of the reader in the table, in an answer whether it is one.
    pub(crate) code: u32,
    /// Descriptors that come with it.
    files: u32,
    /// Bytes that follow.
    pub(crate) length: u64,
}

/// Sends a frame.
pub(crate) fn send(mut socket: impl AsFd + Write, code: u32, files: &[File], bytes: &[u8]) -> io::Result<()> {
    assert!(files.len() <= FILES_MAX, "a reader gets at most {FILES_MAX} files");
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&code.to_le_bytes());
    header[4..8].copy_from_slice(&(files.len() as u32).to_le_bytes());
    header[8..].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    let descriptors: Vec<BorrowedFd<'_>> = files.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    let sent = sendmsg(&socket, &[IoSlice::new(&header)], &mut control, SendFlags::NOSIGNAL)?;
    // A stream takes a header whole, unless it is full to the byte.
    socket.write_all(&header[sent..])?;
    socket.write_all(bytes)
}

/// Waits for the next header and the descriptors that come with it; nothing where the other end has closed.
pub(crate) fn receive(mut socket: impl AsFd + Read) -> io::Result<Option<(Header, Vec<File>)>> {
    let mut header = [0; HEADER_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = loop {
        match recvmsg(&socket, &mut [IoSliceMut::new(&mut header)], &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            got => break got?.bytes,
        }
    };
    if got == 0 {
        return Ok(None);
    }
    let mut files = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            files.extend(descriptors.map(File::from));
        }
    }
    socket.read_exact(&mut header[got..])?;
    let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let header = Header { code: word(0), files: word(4), length: u64::from(word(8)) | u64::from(word(12)) << 32 };
    if header.files as usize != files.len() {
        return Err(io::Error::other("a descriptor was lost on its way"));
    }
    Ok(Some((header, files)))
}

#[cfg(test)]
mod tests {
    use std::io::Seek;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn bytes_and_descriptors_arrive_together_and_in_order() {
        let (near, far) = UnixStream::pair().unwrap();
        let files: Vec<File> = (0..FILES_MAX)
            .map(|number| {
                let mut file = tempfile::tempfile().unwrap();
                write!(file, "file {number}").unwrap();
                file.rewind().unwrap();
                file
            })
            .collect();
        send(&near, 7, &files, b"question").unwrap();
        send(&near, 8, &[], b"").unwrap();
        drop(near);
        let (header, got) = receive(&far).unwrap().unwrap();
        assert_eq!((header.code, header.length, got.len()), (7, 8, FILES_MAX));
        let mut bytes = vec![0; 8];
        (&far).read_exact(&mut bytes).unwrap();
        assert_eq!(bytes, b"question");
        for (number, mut file) in got.into_iter().enumerate() {
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, format!("file {number}"));
        }
        assert_eq!(receive(&far).unwrap().map(|(header, files)| (header.code, files.len())), Some((8, 0)));
        assert!(receive(&far).unwrap().is_none(), "the end");
    }
}
