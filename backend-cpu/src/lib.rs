//! Runs ops on the CPU.
