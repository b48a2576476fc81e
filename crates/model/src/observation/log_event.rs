//! What a line of a server's error log tells, as far as it matters to the path.

use std::fmt;

/// An event in a server's error log. Recordings hold its text: "connect 99", "limiting requests login".
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogEvent {
    /// connect() to an upstream failed: 99 no free port, 111 nobody listens, 11 the queue of a unix socket is full, 110 timeout.
    ConnectFailed(Errno),
    /// An upstream did not accept or answer in time.
    UpstreamTimedOut,
    /// An upstream closed a connection on which a request had been sent and no answer begun.
    UpstreamClosed,
    /// An upstream closed before the end of its answer.
    UpstreamClosedWithinAnswer,
    /// An upstream reset a connection on which a request had been sent and no answer begun.
    UpstreamReset,
    /// Each upstream is down or was tried.
    NoLiveUpstreams,
    /// The header of an upstream's answer is larger than the buffer for it.
    AnswerHeaderTooBig,
    /// An upstream's answer breaks its protocol.
    AnswerInvalid,
    /// Another failure to read from or write to a connection.
    TransferFailed(Errno),
    /// A client closed before it had its answer.
    ClientClosed,
    /// A connection was refused: the process may hold no further one.
    ConnectionsExhausted,
    /// Connections without a request were closed to make room for others.
    ConnectionsReused,
    /// accept() failed.
    AcceptFailed(Errno),
    /// A socket or another descriptor could not be made.
    SocketFailed(Errno),
    /// A file could not be opened.
    OpenFailed(Errno),
    /// bind() or listen() failed.
    BindFailed(Errno),
    /// A limit of the rate refused a request.
    RateLimited(Named),
    /// A limit of the rate delayed a request.
    RateDelayed(Named),
    /// A limit of the connections of one client refused a request.
    ConnectionsLimited(Named),
    /// A body or answer went to a temporary file, because it did not fit into the buffers.
    BufferedToFile,
    /// A worker ended on a signal or with an error.
    WorkerDied,
    /// A pool has as many workers as it may have.
    WorkersExhausted(Named),
    /// A pool starts workers as fast as it may.
    SeemsBusy(Named),
    /// A request took longer than the pool's limit for the slow log.
    Slow(Named),
    /// A request was ended because it took too long.
    RequestTimedOut(Named),
    /// A worker of a pool ended on a signal or with an error.
    ChildDied(Named),
    /// A program wrote to its standard error.
    Output(Named),
    /// The server is ready.
    Ready,
    /// Anything else.
    Other,
}

/// The error number of a failed system call; `None` if the line has none.
type Errno = Option<u32>;
/// The name of the zone or pool, as its configuration has it; `None` if the line has none.
type Named = Option<String>;

const NUMBERED: &[fn(Errno) -> LogEvent] = &[
    LogEvent::ConnectFailed,
    LogEvent::TransferFailed,
    LogEvent::AcceptFailed,
    LogEvent::SocketFailed,
    LogEvent::OpenFailed,
    LogEvent::BindFailed,
];
const NAMED: &[fn(Named) -> LogEvent] = &[
    LogEvent::RateLimited,
    LogEvent::RateDelayed,
    LogEvent::ConnectionsLimited,
    LogEvent::WorkersExhausted,
    LogEvent::SeemsBusy,
    LogEvent::Slow,
    LogEvent::RequestTimedOut,
    LogEvent::ChildDied,
    LogEvent::Output,
];
const PLAIN: &[LogEvent] = &[
    LogEvent::UpstreamTimedOut,
    LogEvent::UpstreamClosed,
    LogEvent::UpstreamClosedWithinAnswer,
    LogEvent::UpstreamReset,
    LogEvent::NoLiveUpstreams,
    LogEvent::AnswerHeaderTooBig,
    LogEvent::AnswerInvalid,
    LogEvent::ClientClosed,
    LogEvent::ConnectionsExhausted,
    LogEvent::ConnectionsReused,
    LogEvent::BufferedToFile,
    LogEvent::WorkerDied,
    LogEvent::Ready,
];

impl LogEvent {
    /// The event with this text. [`LogEvent::Other`] for a text that no event has.
    pub fn of_text(text: &str) -> Self {
        if let Some(plain) = PLAIN.iter().find(|plain| plain.words() == text) {
            return plain.clone();
        }
        let errno_after = |words: &str| match text.strip_prefix(words)? {
            "" => Some(None),
            rest => Some(Some(rest.strip_prefix(' ')?.parse().ok()?)),
        };
        let name_after = |words: &str| match text.strip_prefix(words)? {
            "" => Some(None),
            rest => Some(Some(rest.strip_prefix(' ')?.to_owned())),
        };
        let numbered = NUMBERED.iter().find_map(|event| Some(event(errno_after(event(None).words())?)));
        let named = || NAMED.iter().find_map(|event| Some(event(name_after(event(None).words())?)));
        numbered.or_else(named).unwrap_or(Self::Other)
    }

    /// True if findings may quote the first line of such an event. Nothing follows from other lines, and some of them, such as a program's output, hold what
    /// users wrote.
    pub fn is_quoted(&self) -> bool {
        let is_of_no_use = matches!(self, Self::BufferedToFile | Self::WorkerDied | Self::Ready | Self::Other);
        let is_of_users =
            matches!(self, Self::SeemsBusy(_) | Self::Slow(_) | Self::RequestTimedOut(_) | Self::ChildDied(_) | Self::Output(_));
        !is_of_no_use && !is_of_users
    }

    /// The text without the number or name.
    fn words(&self) -> &'static str {
        match self {
            Self::ConnectFailed(_) => "connect",
            Self::UpstreamTimedOut => "upstream timed out",
            Self::UpstreamClosed => "upstream closed",
            Self::UpstreamClosedWithinAnswer => "upstream closed within its answer",
            Self::UpstreamReset => "upstream reset",
            Self::NoLiveUpstreams => "no live upstreams",
            Self::AnswerHeaderTooBig => "header too big",
            Self::AnswerInvalid => "invalid answer",
            Self::TransferFailed(_) => "transfer",
            Self::ClientClosed => "client closed",
            Self::ConnectionsExhausted => "worker_connections",
            Self::ConnectionsReused => "worker_connections reused",
            Self::AcceptFailed(_) => "accept",
            Self::SocketFailed(_) => "socket",
            Self::OpenFailed(_) => "open",
            Self::BindFailed(_) => "bind",
            Self::RateLimited(_) => "limiting requests",
            Self::RateDelayed(_) => "delaying requests",
            Self::ConnectionsLimited(_) => "limiting connections",
            Self::BufferedToFile => "buffered to file",
            Self::WorkerDied => "worker died",
            Self::WorkersExhausted(_) => "max_children",
            Self::SeemsBusy(_) => "seems busy",
            Self::Slow(_) => "slow",
            Self::RequestTimedOut(_) => "timed out",
            Self::ChildDied(_) => "child died",
            Self::Output(_) => "output",
            Self::Ready => "ready",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for LogEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())?;
        match self {
            Self::ConnectFailed(Some(errno))
            | Self::TransferFailed(Some(errno))
            | Self::AcceptFailed(Some(errno))
            | Self::SocketFailed(Some(errno))
            | Self::OpenFailed(Some(errno))
            | Self::BindFailed(Some(errno)) => write!(f, " {errno}"),
            Self::RateLimited(Some(name))
            | Self::RateDelayed(Some(name))
            | Self::ConnectionsLimited(Some(name))
            | Self::WorkersExhausted(Some(name))
            | Self::SeemsBusy(Some(name))
            | Self::Slow(Some(name))
            | Self::RequestTimedOut(Some(name))
            | Self::ChildDied(Some(name))
            | Self::Output(Some(name)) => write!(f, " {name}"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_is_read_back_from_its_text() {
        let numbered = NUMBERED.iter().flat_map(|event| [event(None), event(Some(0)), event(Some(111))]);
        let named = NAMED.iter().flat_map(|event| [event(None), event(Some("www".to_owned())), event(Some("two words".to_owned()))]);
        let all: Vec<LogEvent> = numbered.chain(named).chain(PLAIN.iter().cloned()).chain([LogEvent::Other]).collect();
        let mut texts = std::collections::BTreeSet::new();
        for event in &all {
            let text = event.to_string();
            assert_eq!(LogEvent::of_text(&text), *event, "{text}");
            assert!(texts.insert(text.clone()), "{text} stands for two events");
        }
    }

    #[test]
    fn an_unknown_text_is_no_event_of_ours() {
        for text in ["", "connect x", "connect 4294967296", "connected 11", "limiting", "slowly", "upstream closed soon"] {
            assert_eq!(LogEvent::of_text(text), LogEvent::Other, "{text}");
        }
    }
}
