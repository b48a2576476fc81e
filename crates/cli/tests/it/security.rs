//! What other users, crafted files and missing privileges must not achieve, and what must stay secret.
//!
//! Live: servers and programs of other users, and load.

mod other_users;
mod output_files;
mod privileges;
mod recording_bounds;
mod secrets;
