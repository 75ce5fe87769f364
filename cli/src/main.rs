//! The `baton` command.
#![forbid(unsafe_code)]

fn main() {}
