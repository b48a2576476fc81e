//! Constants of FastCGI records.

/// FCGI_VERSION_1.
pub(super) const VERSION: u8 = 1;
/// Bytes of a record's header.
pub(super) const HEADER_BYTES: usize = 8;
/// The id of the only request of a connection; 0 is for management records.
pub(super) const REQUEST_ID: u8 = 1;
// Types of records.
pub(super) const BEGIN_REQUEST: u8 = 1;
pub(super) const END_REQUEST: u8 = 3;
pub(super) const PARAMS: u8 = 4;
pub(super) const STDIN: u8 = 5;
pub(super) const STDOUT: u8 = 6;
pub(super) const STDERR: u8 = 7;
