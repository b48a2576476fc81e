//! What `chokepoint watch` keeps of servers over time: samples of a second, the longer samples that they add up to, the drops among them, and the incidents that drops
//! are. Pure: times come in with the data.

#![deny(unsafe_code)]

pub mod drop;
mod grown;
mod host;
pub mod incident;
mod largest;
mod levels;
mod response;
mod ring;
mod sample;
mod staleness;

pub use grown::{GrownPlace, grown_places};
pub use host::{BusierProgram, Host, busier_programs};
pub use levels::{Level, Levels};
pub use response::{ResponseSource, ResponseTimes, Unanswered};
pub use ring::Ring;
pub use sample::{Connections, Durations, GroupUse, Logged, Loss, Mean, PoolUse, Ports, Queue, Sample, Standing, TargetSample};
pub use staleness::{STALE_AFTER, is_stale};
