//! How a request ends, and which failure an error of the kernel means.

use std::io;

use chokepoint_model::load::Errors;
use rustix::io::Errno;

/// Why a request got no answer; one for each counter of [`Errors`] that a sent request can end in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    ConnectRefused,
    ConnectTimeout,
    ConnectFailed,
    TlsFailed,
    ResponseTimeout,
    Reset,
    ClosedBeforeAnswer,
    BadResponse,
    LocalPorts,
    LocalFiles,
    LocalMemory,
}

impl Failure {
    /// The failure that an error of socket(), connect() or the first write means.
    pub(crate) fn of_connect(error: &io::Error) -> Self {
        match Errno::from_io_error(error) {
            // A reset after the handshake but before the first write.
            Some(Errno::CONNRESET | Errno::PIPE) => Failure::Reset,
            Some(Errno::CONNREFUSED) => Failure::ConnectRefused,
            Some(Errno::TIMEDOUT) => Failure::ConnectTimeout,
            Some(Errno::ADDRNOTAVAIL) => Failure::LocalPorts,
            Some(errno) => Self::local(errno).unwrap_or(Failure::ConnectFailed),
            None => Failure::ConnectFailed,
        }
    }

    /// The failure that an error of read() or write() on an established connection means.
    pub(crate) fn of_established(error: &io::Error) -> Self {
        Errno::from_io_error(error).and_then(Self::local).unwrap_or(Failure::Reset)
    }

    /// ENOSPC is epoll's own limit, fs.epoll.max_user_watches.
    fn local(errno: Errno) -> Option<Self> {
        match errno {
            Errno::MFILE | Errno::NFILE => Some(Failure::LocalFiles),
            Errno::NOBUFS | Errno::NOMEM | Errno::NOSPC => Some(Failure::LocalMemory),
            _ => None,
        }
    }

    /// True where trying again at once would spin: the attempt cost the kernel next to nothing and will fail again.
    pub(crate) fn is_immediate(self) -> bool {
        matches!(self, Failure::ConnectRefused | Failure::ConnectFailed | Failure::LocalPorts | Failure::LocalFiles | Failure::LocalMemory)
    }

    /// Words for an example of this failure.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Failure::ConnectRefused => "connection refused",
            Failure::ConnectTimeout => "not connected within the timeout",
            Failure::ConnectFailed => "connect failed",
            Failure::TlsFailed => "TLS handshake failed",
            Failure::ResponseTimeout => "no complete answer within the timeout",
            Failure::Reset => "connection reset before the answer was complete",
            Failure::ClosedBeforeAnswer => "connection closed before the answer was complete",
            Failure::BadResponse => "bad response",
            Failure::LocalPorts => "no local port free",
            Failure::LocalFiles => "no file descriptor free",
            Failure::LocalMemory => "no socket memory",
        }
    }

    /// Its counter.
    pub(crate) fn counter(self, errors: &mut Errors) -> &mut u64 {
        match self {
            Failure::ConnectRefused => &mut errors.connect_refused,
            Failure::ConnectTimeout => &mut errors.connect_timeout,
            Failure::ConnectFailed => &mut errors.connect_failed,
            Failure::TlsFailed => &mut errors.tls_failed,
            Failure::ResponseTimeout => &mut errors.response_timeout,
            Failure::Reset => &mut errors.reset,
            Failure::ClosedBeforeAnswer => &mut errors.closed_before_answer,
            Failure::BadResponse => &mut errors.bad_response,
            Failure::LocalPorts => &mut errors.local_ports,
            Failure::LocalFiles => &mut errors.local_files,
            Failure::LocalMemory => &mut errors.local_memory,
        }
    }
}

/// What a request ended in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestEnd {
    /// An answer with this status, complete.
    Status(u16),
    /// No answer.
    Failure(Failure),
}

/// More about an end, for the examples in the result.
#[derive(Debug)]
pub(crate) enum Detail {
    /// Nothing more.
    None,
    /// The kernel's error.
    Io(io::Error),
    /// What was wrong with the answer.
    Text(&'static str),
}

/// A request that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) end: RequestEnd,
    /// The connection may carry the next request.
    pub(crate) reusable: bool,
    pub(crate) detail: Detail,
}

impl Ended {
    pub(crate) fn failed(failure: Failure, detail: Detail) -> Self {
        Ended { end: RequestEnd::Failure(failure), reusable: false, detail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_kernel_are_told_apart() {
        let of = |errno: Errno| Failure::of_connect(&io::Error::from(errno));
        assert_eq!(of(Errno::CONNREFUSED), Failure::ConnectRefused);
        assert_eq!(of(Errno::TIMEDOUT), Failure::ConnectTimeout);
        assert_eq!(of(Errno::HOSTUNREACH), Failure::ConnectFailed);
        assert_eq!(of(Errno::ADDRNOTAVAIL), Failure::LocalPorts);
        assert_eq!(of(Errno::MFILE), Failure::LocalFiles);
        assert_eq!(of(Errno::NFILE), Failure::LocalFiles);
        assert_eq!(of(Errno::NOBUFS), Failure::LocalMemory);
        assert_eq!(of(Errno::NOMEM), Failure::LocalMemory);
        assert_eq!(of(Errno::CONNRESET), Failure::Reset);
        assert_eq!(Failure::of_established(&io::Error::from(Errno::PIPE)), Failure::Reset);
        assert_eq!(Failure::of_established(&io::Error::from(Errno::NOBUFS)), Failure::LocalMemory);
        assert_eq!(Failure::of_connect(&io::Error::other("no errno")), Failure::ConnectFailed);
    }

    #[test]
    fn every_failure_has_a_counter_of_its_own() {
        use Failure::*;
        let all = [
            ConnectRefused,
            ConnectTimeout,
            ConnectFailed,
            TlsFailed,
            ResponseTimeout,
            Reset,
            ClosedBeforeAnswer,
            BadResponse,
            LocalPorts,
            LocalFiles,
            LocalMemory,
        ];
        let mut errors = Errors::default();
        for (nth, failure) in all.into_iter().enumerate() {
            *failure.counter(&mut errors) += 1;
            assert_eq!(errors.total(), nth as u64 + 1);
            assert_eq!(*failure.counter(&mut errors), 1, "{failure:?} shares its counter");
        }
    }
}
