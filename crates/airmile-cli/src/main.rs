//! The `airmile` command.
fn main() {}
