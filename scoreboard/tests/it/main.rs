//! The integration tests of the score-board, a file for each subject; each file says whether it is live or deterministic.

mod live;
mod usage;
