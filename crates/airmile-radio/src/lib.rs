//! Analyses the modem's records: bursts, transfers, link demand, cell load, losses.
//!
//! Pure state machines: records go in, findings come out. No file, socket, thread or
//! clock. Everything that takes a stream has the verbs `push`, `poll` and `finish`.
//! Packets are the subject of `airmile-wire`; the two crates do not depend on each other,
//! and the facade joins their findings.
//!
//! - [`burst`]: when the downlink queue was not empty (BurstTracker).
//! - [`decided`]: how far the findings of a tracker are complete.
//! - [`detect`]: transfers from the allocation alone, where none are given.
//! - [`meter`]: the measures of one transfer, summed while the log is read.
//! - [`evidence`]: how much of each kind the records hold.
//! - [`legs`]: LTE and NR at once: the findings of both legs of a bearer, joined.
//! - [`load`]: how much of the cell other users hold, and what is free (CLAW).
//! - [`loss`]: residual losses of the radio, and retransmissions.
//! - [`series`]: allocation and signal of each TTI, as a report draws them.
//! - [`transfer`]: throughput time, link demand and verdict of a transfer.
//! - [`uplink`]: bursts of the uplink, from the phone's own buffer.
//! - [`usage`]: allocation and signal over a span.
//! - [`watch`]: the transfers of one direction while the log is read.

pub mod burst;
pub mod decided;
pub mod detect;
pub mod evidence;
mod fifo;
pub mod legs;
pub mod load;
pub mod loss;
pub mod meter;
mod reorder;
pub mod series;
mod small_map;
mod spans;
pub mod transfer;
pub mod uplink;
pub mod usage;
pub mod watch;
