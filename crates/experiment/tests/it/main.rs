//! Experiments whose trials were recorded on a real machine.

mod recorded;
