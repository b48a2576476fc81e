//! The integration tests of this crate, a file for each subject; each file says whether it is live or deterministic.

mod hostile;
mod logs;
mod nginx_agreement;
mod php_fpm_agreement;
mod recorded_edits;

#[global_allocator]
static ALLOCATOR: chokepoint_hostile::Allocator = chokepoint_hostile::Allocator;
