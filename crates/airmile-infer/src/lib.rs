//! Records to findings: bursts, throughput time, link demand.
//!
//! Pure state machines: records go in, findings come out; no file, socket,
//! thread or clock. The three verbs are `push`, `poll` and `finish`.
//!
//! - [`attribute`]: which cause each moment of a transfer went to.
//! - [`blind`]: who the bottleneck was where the radio is not seen, as probabilities.
//! - [`burst`]: when was the downlink queue not empty (BurstTracker).
//! - [`clocks`]: clocks of different files, aligned by what passed in both.
//! - [`compare`]: runs or ports held against each other: restarts, a rate held down.
//! - [`detect`]: transfers from the allocation alone, where none are given.
//! - [`distribution`]: quantiles in little memory.
//! - [`gauge`]: what is measured of a transfer, piece by piece.
//! - [`load`]: how much of the cell others hold, and what is free (CLAW).
//! - [`loss`]: what the radio lost, and what it only delayed.
//! - [`usage`]: how allocation and signal looked over a span.
//! - [`tcp`]: what the wire saw: flows, RTTs, losses, available bandwidth (Huang).
//! - [`transfer`]: throughput time, link demand and verdict of a transfer.
//! - [`uplink`]: the same of the uplink, from the phone's own buffer.

mod app;
pub mod attribute;
pub mod blind;
pub mod burst;
pub mod clocks;
pub mod compare;
pub mod detect;
pub mod distribution;
mod few;
pub mod gauge;
mod held;
pub mod load;
pub mod loss;
mod spans;
pub mod tcp;
pub mod transfer;
pub mod uplink;
pub mod usage;
