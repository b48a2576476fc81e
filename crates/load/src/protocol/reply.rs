//! The answer of a connection in either protocol, and the state that a thread shares between its connections.

use crate::plan::{Plan, Protocol};
use crate::protocol::answer::{self, HeadCache};
use crate::protocol::completion::{BadAnswer, Completion};
use crate::protocol::fastcgi::answer as fastcgi;
use crate::protocol::fastcgi::answer::ErrorOutput;

/// State that a thread shares between its connections.
#[derive(Debug, Default)]
pub(crate) struct ThreadScratch {
    /// One cache for answers to HEAD and one for other methods: the same head means another body length.
    head_cache_for_head: HeadCache,
    head_cache: HeadCache,
    pub(crate) error_output: ErrorOutput,
}

/// An answer while it is parsed.
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

    /// Prepares for the next answer. `is_head`: the request's method is HEAD.
    pub(crate) fn reset(&mut self, is_head: bool) {
        match self {
            Reply::Http(answer) => answer.reset(is_head),
            Reply::FastCgi(answer) => answer.reset(),
        }
    }

    /// Parses the next bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8], scratch: &mut ThreadScratch) -> Result<Completion, BadAnswer> {
        match self {
            Reply::Http(answer) if answer.is_to_head_request() => answer.feed(bytes, &mut scratch.head_cache_for_head),
            Reply::Http(answer) => answer.feed(bytes, &mut scratch.head_cache),
            Reply::FastCgi(answer) => answer.feed(bytes, &mut scratch.error_output),
        }
    }

    /// The peer closed its side. True if that completes the answer. A FastCGI answer is only completed by a record.
    pub(crate) fn close(&mut self) -> Result<bool, BadAnswer> {
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

    /// Whether the connection can carry another request after this complete answer.
    pub(crate) fn reusable(&self) -> bool {
        match self {
            Reply::Http(answer) => answer.reusable(),
            Reply::FastCgi(answer) => answer.reusable(),
        }
    }
}
