//! The binary `chokepoint`.
fn main() {}
