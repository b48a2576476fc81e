//! The steps from a command line to a report: plans, measurements, recordings, changes and background tasks.

pub(crate) mod background_task;
pub(crate) mod bisect;
pub(crate) mod calls;
pub(crate) mod changes;
pub(crate) mod confirm;
pub(crate) mod files;
pub(crate) mod keeping;
pub(crate) mod last_third;
pub(crate) mod listeners;
pub(crate) mod measure;
pub(crate) mod memory;
pub(crate) mod ongoing;
pub(crate) mod packet_capture;
pub(crate) mod plan;
pub(crate) mod readers;
pub(crate) mod recordings;
pub(crate) mod route;
pub(crate) mod settings;
pub(crate) mod tls;
