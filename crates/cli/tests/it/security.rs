//! What other users must not achieve, what a user without privileges gets, and what must stay secret.
//!
//! Live: servers and programs of other users, and load; the tests check files, statuses and contents, not speed.

mod attacks;
mod connections;
mod other_users;
mod output_files;
mod privileges;
mod secrets;
