//! Packet captures to facts: bytes of a capture file become packets, packets become TCP streams, closed streams become a summary each and are
//! dropped. Pure: bytes come in through [`std::io::Read`], times come with the packets.
//!
//! Memory is bounded whatever the capture holds: see [`Limits`].

mod analyzer;
mod application;
pub mod capture;
mod decode;
mod edge;
mod edges;
pub mod filter;
mod flows;
mod histogram;
mod stream;
pub mod summary;
mod trace;

pub use analyzer::{Analyzer, Limits, Report, Sink, Totals};
pub use capture::{Capture, CaptureError, Packet};
pub use edge::{Edge, EdgeAddress, FlightCount};
pub use histogram::{Histogram, Quantiles};
pub use summary::StreamSummary;
pub use trace::{Mark, Trace, TracePoint};
