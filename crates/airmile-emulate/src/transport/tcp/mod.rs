//! TCP without I/O: RFC 9293 with RFC 5681 (congestion control by [`airmile_control`]),
//! 6298 (timer), 2018, 2883 and 6675 (SACK), 6582 (without SACK), 6937 (proportional
//! reduction), 8985 (RACK and tail loss probe), 3042 (limited transmit), 7323 (timestamps,
//! window scale), 2861 (restart after idle), 3522 and 4015 (undoing spurious reductions).
//!
//! Not supported: simultaneous open, urgent data, ECN, fast open, path MTU discovery.

mod connection;
mod endpoint;
mod ranges;
mod receiver;
mod recovery;
mod rtt;
mod scoreboard;
mod sender;
mod stats;
mod stream;
mod timers;
mod undo;

pub use connection::{TcpConnection, TcpState};
pub use endpoint::{ConnectionEvent, ConnectionId, Endpoint};
pub use ranges::RangeSet;
pub use stats::{EventKind, Limit, Retransmission, Snapshot, Stats, TcpEvent};

pub use crate::net::{Flags, Literal, SackBlock, TcpSegment, bytes_of};
pub use crate::scenario::{
    AckConfig, LossDetection, ReceiveConfig, RtoConfig, RttSource, TcpConfig,
};
