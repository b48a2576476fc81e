//! The answer of a connection in either protocol, behind one face, and what a thread remembers beside its connections.

use crate::plan::{Plan, Protocol};
use crate::protocol::answer::{self, Bad, Fed, Memo};
use crate::protocol::fastcgi::{self, Complaints};

/// What a thread remembers beside its connections.
#[derive(Debug, Default)]
pub(crate) struct ThreadScratch {
    /// Of answers to HEAD, and to other methods: the same head means another length there.
    memo_head: Memo,
    memo: Memo,
    pub(crate) complaints: Complaints,
}

/// One answer in the making.
#[derive(Debug)]
pub(crate) enum Reply {
    Http(answer::Answer),
    FastCgi(fastcgi::Answer),
}

impl Reply {
    pub(crate) fn new(plan: &Plan) -> Self {
        match plan.protocol {
            Protocol::Http => Reply::Http(answer::Answer::new(plan.method == "HEAD")),
            Protocol::FastCgi { .. } => Reply::FastCgi(fastcgi::Answer::new(plan.keep_alive)),
        }
    }

    /// Makes ready for the next answer. `is_head`: to a request whose method is HEAD.
    pub(crate) fn reset(&mut self, is_head: bool) {
        match self {
            Reply::Http(answer) => answer.reset(is_head),
            Reply::FastCgi(answer) => answer.reset(),
        }
    }

    /// Takes the next bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8], aside: &mut ThreadScratch) -> Result<Fed, Bad> {
        match self {
            Reply::Http(answer) if answer.is_to_head_request() => answer.feed(bytes, &mut aside.memo_head),
            Reply::Http(answer) => answer.feed(bytes, &mut aside.memo),
            Reply::FastCgi(answer) => answer.feed(bytes, &mut aside.complaints),
        }
    }

    /// The peer closed in order: true where that completes the answer. One of FastCGI is completed by a record alone.
    pub(crate) fn close(&mut self) -> Result<bool, Bad> {
        match self {
            Reply::Http(answer) => answer.close(),
            Reply::FastCgi(_) => Ok(false),
        }
    }

    /// Status of a complete answer.
    pub(crate) fn status(&self) -> u16 {
        match self {
            Reply::Http(answer) => answer.status(),
            Reply::FastCgi(answer) => answer.status(),
        }
    }

    /// True where the connection may carry another request after this complete answer.
    pub(crate) fn reusable(&self) -> bool {
        match self {
            Reply::Http(answer) => answer.reusable(),
            Reply::FastCgi(answer) => answer.reusable(),
        }
    }
}
