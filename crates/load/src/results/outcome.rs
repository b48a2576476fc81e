//! How a request ends, and which failure a kernel error means.

use std::io;

use chokepoint_model::load::Errors;
use rustix::io::Errno;

/// Why a request got no answer. Each variant that a sent request can end in has its counter in [`Errors`].
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
    /// The failure for an error of socket(), connect() or the first write.
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

    /// The failure for an error of read() or write() on an established connection.
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

    /// Whether trying again at once would spin: the attempt cost the kernel almost nothing and will fail again.
    pub(crate) fn is_immediate(self) -> bool {
        matches!(self, Failure::ConnectRefused | Failure::ConnectFailed | Failure::LocalPorts | Failure::LocalFiles | Failure::LocalMemory)
    }

    /// The text of this failure in an example.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Failure::ConnectRefused => "connection refused",
            Failure::ConnectTimeout => "not connected within the timeout",
            Failure::ConnectFailed => "connect failed",
            Failure::TlsFailed => "TLS handshake failed",
            Failure::ResponseTimeout => "no complete response within the timeout",
            Failure::Reset => "connection reset before the response was complete",
            Failure::ClosedBeforeAnswer => "connection closed before the response was complete",
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

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestEnd {
    /// With a complete answer of this status.
    Status(u16),
    /// Without an answer.
    Failure(Failure),
}

/// Details of an end, for the examples in the result.
#[derive(Debug)]
pub(crate) enum Detail {
    /// No details.
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
    /// The connection can carry the next request.
    pub(crate) reusable: bool,
    pub(crate) detail: Detail,
}

impl Ended {
    pub(crate) fn failed(failure: Failure, detail: Detail) -> Self {
        Ended { end: RequestEnd::Failure(failure), reusable: false, detail }
    }
}

/// Adds the counts of `other` to `sum`.
pub(crate) fn add_errors(sum: &mut Errors, other: &Errors) {
    // Destructured by name, so that a new counter cannot be forgotten here.
    let Errors {
        connect_refused,
        connect_timeout,
        connect_failed,
        tls_failed,
        response_timeout,
        reset,
        closed_before_answer,
        bad_response,
        local_ports,
        local_files,
        local_memory,
        never_sent,
    } = other;
    sum.connect_refused += connect_refused;
    sum.connect_timeout += connect_timeout;
    sum.connect_failed += connect_failed;
    sum.tls_failed += tls_failed;
    sum.response_timeout += response_timeout;
    sum.reset += reset;
    sum.closed_before_answer += closed_before_answer;
    sum.bad_response += bad_response;
    sum.local_ports += local_ports;
    sum.local_files += local_files;
    sum.local_memory += local_memory;
    sum.never_sent += never_sent;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_errors_map_to_failures() {
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
    fn every_failure_has_its_own_counter() {
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
