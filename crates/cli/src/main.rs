//! The `flagstone` command.
fn main() {}
