//! What the modem's records show: bursts, transfers, link demand, cell load, losses.
//!
//! Pure state machines: records go in, findings come out. No file, socket, thread or
//! clock. Everything that takes a stream has the verbs `push`, `poll` and `finish`.
//! Packets are the subject of `airmile-wire`; the two crates do not depend on each other,
//! and the facade joins their findings.
//!
//! - [`burst`]: when the downlink queue was not empty (BurstTracker).
//! - [`detect`]: transfers from the allocation alone, where none are given.
//! - [`gauge`]: the measures of one transfer, gathered piece by piece.
//! - [`load`]: how much of the cell other users hold, and what is free (CLAW).
//! - [`loss`]: what the radio lost, and what it only delayed.
//! - [`transfer`]: throughput time, link demand and verdict of a transfer.
//! - [`uplink`]: bursts of the uplink, from the phone's own buffer.
//! - [`usage`]: allocation and signal over a span.

pub mod burst;
pub mod detect;
mod few;
pub mod gauge;
mod held;
pub mod load;
pub mod loss;
mod spans;
pub mod transfer;
pub mod uplink;
pub mod usage;
