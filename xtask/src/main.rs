//! Tidy checks and documentation generation.
fn main() {}
