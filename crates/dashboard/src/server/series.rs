//! Samples on their way to a client: read from the archive as it takes them. Of a client that takes nothing, one piece waits, and the archive is closed.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::channel::{Channel, Sender};
use hyper::body::{Bytes, Frame};
use tokio::time::timeout;

use super::STALLED_MAX;
use super::answers::PIECE_BYTES;
use crate::api::{Archive, Walk};

/// How long the archive is held open for a client that does not take a piece, and how often it is tried meanwhile.
const PATIENCE: Duration = Duration::from_millis(20);
const PAUSE: Duration = Duration::from_millis(1);

/// The body of a document with the samples of a walk.
pub(super) fn body(archive: Arc<dyn Archive>, walk: Walk) -> Channel<Bytes, io::Error> {
    let (sender, body) = Channel::new(1);
    tokio::spawn(send(archive, walk, sender));
    body
}

async fn send(archive: Arc<dyn Archive>, mut walk: Walk, mut sender: Sender<Bytes, io::Error>) {
    let mut piece = walk.head.clone();
    let mut is_begun = false;
    loop {
        let archive = Arc::clone(&archive);
        let read = move || {
            let is_over = fill(&*archive, &mut walk, &mut piece, &mut is_begun, &mut sender);
            (walk, piece, is_begun, sender, is_over)
        };
        let Ok(read) = tokio::task::spawn_blocking(read).await else { return };
        let is_over;
        (walk, piece, is_begun, sender, is_over) = read;
        match is_over {
            Ok(true) => piece.push_str(&walk.tail),
            Ok(false) => {}
            Err(why) => return sender.abort(io::Error::other(why)),
        }
        match timeout(STALLED_MAX, sender.send_data(Bytes::from(std::mem::take(&mut piece)))).await {
            Ok(Ok(())) if matches!(is_over, Ok(false)) => {}
            _ => return,
        }
    }
}

/// Reads on. False if the client does not take the piece that was read last; true at the end.
fn fill(
    archive: &dyn Archive,
    walk: &mut Walk,
    piece: &mut String,
    is_begun: &mut bool,
    sender: &mut Sender<Bytes, io::Error>,
) -> Result<bool, String> {
    let (span_s, from, to_s) = (walk.span_s, walk.from, walk.to_s);
    let mut is_over = true;
    archive.samples(span_s, from, to_s, &mut |next, sample| {
        walk.from = next;
        if std::mem::replace(is_begun, true) {
            piece.push(',');
        }
        piece.push_str(&sample);
        is_over = piece.len() < PIECE_BYTES || is_taken(piece, sender);
        is_over
    })?;
    Ok(is_over)
}

/// Hands a piece over to a client that takes it soon.
fn is_taken(piece: &mut String, sender: &mut Sender<Bytes, io::Error>) -> bool {
    let mut frame = Frame::data(Bytes::from(std::mem::take(piece)));
    let mut left = PATIENCE;
    loop {
        match sender.try_send(frame) {
            Ok(()) => return true,
            Err(back) => frame = back,
        }
        if left.is_zero() {
            let bytes = frame.into_data().unwrap_or_default();
            *piece = String::from_utf8_lossy(&bytes).into_owned();
            return false;
        }
        std::thread::sleep(PAUSE);
        left = left.saturating_sub(PAUSE);
    }
}
