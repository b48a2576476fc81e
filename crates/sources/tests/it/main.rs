//! The integration tests of this crate, a file for each subject; each file says whether it is live or deterministic.

mod coming_and_going;
mod hostile;
mod leave_one_out;
mod live;
mod netlink_fixtures;
mod order;

#[global_allocator]
static ALLOCATOR: chokepoint_hostile::Allocator = chokepoint_hostile::Allocator;
