//! From packet captures to facts: the bytes of a capture become packets, packets become TCP streams, and closed streams become summaries and
//! are dropped. The crate is pure: bytes come through [`std::io::Read`], and times come with the packets.
//!
//! Memory is limited for any capture: see [`Limits`].

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
mod traffic;

pub use analyzer::{Analyzer, Limits, Report, Sink, Totals};
pub use capture::{Capture, CaptureError, Packet};
pub use edge::{Edge, EdgeAddress, FlightCount};
pub use histogram::{Histogram, Quantiles};
pub use summary::StreamSummary;
pub use trace::{Mark, Trace, TracePoint};
pub use traffic::{Step, Traffic};
