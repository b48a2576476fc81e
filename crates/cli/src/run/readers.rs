//! The readers of what others wrote, which run in a child without rights where this program has rights to lose: a line each.

use chokepoint_confined::Format;

use crate::run::packet_capture::CaptureReader;
use crate::verbs::diagnose::RecordingReader;
use crate::verbs::profile::ProfileReader;

/// The formats, in no order.
pub(crate) const READERS: &[Format] = &[
    Format::of::<RecordingReader>(),
    Format::of::<ProfileReader>(),
    Format::of::<CaptureReader>(),
    chokepoint_profile::FUNCTION_READER,
    chokepoint_profile::PERF_MAP_READER,
];
