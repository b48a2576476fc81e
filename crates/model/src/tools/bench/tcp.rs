//! The kernel's measurements of a sample of the load's own TCP connections at its end, and what limited them.

use serde::Serialize;

/// One connection of the sample (tcp(7), TCP_INFO). Fields that the kernel does not report are absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TcpConnection {
    /// Smoothed round-trip time, microseconds.
    pub rtt_us: Option<u64>,
    /// Smallest round-trip time, microseconds.
    pub rtt_us_min: Option<u64>,
    /// Congestion window, segments.
    pub cwnd: Option<u64>,
    /// Retransmitted segments.
    pub retransmits: Option<u64>,
    /// Time with data to send or unacknowledged, microseconds.
    pub busy_us: Option<u64>,
    /// Part of it limited by the server's receive window.
    pub rwnd_limited_us: Option<u64>,
    /// Part of it limited by the generator's send buffer.
    pub sndbuf_limited_us: Option<u64>,
}

/// Smallest, median and largest of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Spread {
    pub min: u64,
    pub median: u64,
    pub max: u64,
}

/// The sample.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TcpSample {
    /// Smoothed round-trip times, microseconds.
    pub rtt_us: Option<Spread>,
    /// Congestion windows, segments.
    pub cwnd: Option<Spread>,
    /// Retransmitted segments of all connections.
    pub retransmits: Option<u64>,
    /// Sums over all connections.
    pub busy_us: Option<u64>,
    /// Part of it limited by the server's receive window.
    pub rwnd_limited_us: Option<u64>,
    /// Part of it limited by the generator's send buffer.
    pub sndbuf_limited_us: Option<u64>,
    /// The connections, at most 64.
    pub connections: Vec<TcpConnection>,
}

impl TcpSample {
    /// The sample of these connections. `None` if there is none.
    pub fn of(connections: Vec<TcpConnection>) -> Option<Self> {
        if connections.is_empty() {
            return None;
        }
        let all = |of: fn(&TcpConnection) -> Option<u64>| connections.iter().filter_map(of).collect::<Vec<u64>>();
        let sum = |of| Some(all(of)).filter(|values| !values.is_empty()).map(|values| values.iter().sum());
        Some(TcpSample {
            rtt_us: spread(all(|connection| connection.rtt_us)),
            cwnd: spread(all(|connection| connection.cwnd)),
            retransmits: sum(|connection| connection.retransmits),
            busy_us: sum(|connection| connection.busy_us),
            rwnd_limited_us: sum(|connection| connection.rwnd_limited_us),
            sndbuf_limited_us: sum(|connection| connection.sndbuf_limited_us),
            connections,
        })
    }
}

fn spread(mut values: Vec<u64>) -> Option<Spread> {
    values.sort_unstable();
    let (min, max) = (*values.first()?, *values.last()?);
    Some(Spread { min, median: values[values.len() / 2], max })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_does_not_tell_is_absent_and_not_zero() {
        let told = |rtt_us| TcpConnection { rtt_us, retransmits: Some(2), ..TcpConnection::default() };
        let sample = TcpSample::of(vec![told(Some(30)), told(None), told(Some(10)), told(Some(500))]).expect("there are some");
        assert_eq!(sample.rtt_us, Some(Spread { min: 10, median: 30, max: 500 }));
        assert_eq!((sample.retransmits, sample.cwnd, sample.busy_us), (Some(8), None, None));
        assert_eq!(TcpSample::of(Vec::new()), None);
    }
}
