//! Counts and events of a connection: ground truth for its packets.

use std::ops::Range;

/// Reason for a retransmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Retransmission {
    /// Duplicate ACKs, SACK or RACK indicated a loss.
    Fast,
    /// The retransmission timer expired.
    Rto,
    /// A tail loss probe.
    TailProbe,
}

/// An event with its time.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct TcpEvent {
    /// Time of the event.
    #[serde(rename = "time_ns")]
    pub at_ns: i64,
    /// The event.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// Events of a connection.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// The handshake is done.
    Established,
    /// The peer has finished sending.
    PeerFinished,
    /// Both sides have finished.
    Closed,
    /// The peer reset the connection.
    Reset,
    /// No answer to the last of many timeouts.
    TimedOut,
    /// A segment was retransmitted.
    Retransmitted {
        /// The reason.
        kind: Retransmission,
        /// The bytes of the stream.
        range: Range<u64>,
    },
    /// Loss recovery began (RFC 6675).
    RecoveryBegan {
        /// Window before.
        cwnd_bytes: u64,
        /// Threshold after.
        ssthresh_bytes: u64,
        /// Bytes in flight.
        flight_size_bytes: u64,
    },
    /// Loss recovery ended.
    RecoveryEnded,
    /// The retransmission timer expired.
    RtoExpired {
        /// The timeout that expired.
        rto_ns: i64,
        /// Smoothed round-trip time then.
        srtt_ns: Option<i64>,
        /// Whether it expired while recovering from a loss: an undesired slow start follows
        /// (Huang et al. 2013, 5.2), if nothing more was lost.
        in_recovery: bool,
        /// Duplicate ACKs since the last new acknowledgement.
        dup_acks: u32,
    },
    /// A reduction was undone: it was spurious.
    Spurious,
    /// Slow-start restart after idle time.
    Restarted {
        /// Duration without sending.
        idle_ns: i64,
        /// Window before.
        cwnd_before_bytes: u64,
        /// Window after.
        cwnd_bytes: u64,
    },
    /// The peer's window is closed.
    WindowShut,
    /// The peer's window is open again.
    WindowOpened,
}

/// Factor that limits the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Nothing is in flight and nothing to send.
    #[default]
    Idle,
    /// The application: all written data is sent.
    Application,
    /// The congestion window.
    CongestionWindow,
    /// The peer's receive window.
    ReceiveWindow,
    /// Its own pacing.
    Pacing,
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Segments sent, acknowledgements included.
    pub segments_sent: u64,
    /// Segments that carried data.
    pub data_segments_sent: u64,
    /// Segments received.
    pub segments_received: u64,
    /// Bytes of data sent, including retransmissions.
    pub bytes_sent: u64,
    /// Bytes of data retransmitted.
    pub bytes_retransmitted: u64,
    /// Segments retransmitted because of duplicate ACKs, SACK or RACK.
    pub fast_retransmissions: u64,
    /// Segments retransmitted after a timeout.
    pub rto_retransmissions: u64,
    /// Tail loss probes that were retransmissions.
    pub probe_retransmissions: u64,
    /// Segments that the peer reported as duplicates (D-SACK).
    pub spurious_retransmissions: u64,
    /// Timeouts.
    pub rtos: u64,
    /// Loss recoveries.
    pub recoveries: u64,
    /// Reductions undone.
    pub undone: u64,
    /// Duplicate ACKs received.
    pub dup_acks: u64,
    /// Slow-start restarts.
    pub restarts: u64,
    /// Bytes of data received more than once.
    pub duplicate_bytes: u64,
    /// Window probes sent.
    pub window_probes: u64,
    /// Time limited by the application, with data in flight.
    pub application_limited_ns: i64,
    /// Time limited by the congestion window.
    pub cwnd_limited_ns: i64,
    /// Time limited by the peer's window.
    pub rwnd_limited_ns: i64,
    /// Time limited by pacing.
    pub pacing_limited_ns: i64,
}

impl Stats {
    /// Segments retransmitted, for any reason.
    #[must_use]
    pub fn retransmissions(&self) -> u64 {
        self.fast_retransmissions + self.rto_retransmissions + self.probe_retransmissions
    }
}

/// Current state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snapshot {
    /// Congestion window (RFC 5681); during recovery, the limit on the pipe.
    pub cwnd_bytes: u64,
    /// Slow-start threshold.
    pub ssthresh_bytes: u64,
    /// Sent and not acknowledged (RFC 5681, FlightSize).
    pub flight_size_bytes: u64,
    /// Estimated bytes in the network (RFC 6675, pipe).
    pub pipe_bytes: u64,
    /// The peer's receive window.
    pub rwnd_bytes: u64,
    /// Smoothed round-trip time.
    pub srtt_ns: Option<i64>,
    /// Its variation.
    pub rttvar_ns: i64,
    /// Minimum measured RTT.
    pub min_rtt_ns: Option<i64>,
    /// Retransmission timeout.
    pub rto_ns: i64,
    /// Factor that limits the sender.
    pub limit: Limit,
    /// Whether it is recovering from a loss.
    pub in_recovery: bool,
    /// Bytes acknowledged so far.
    pub acked_bytes: u64,
    /// Segments retransmitted so far, for any reason.
    pub retransmissions: u64,
    /// Own receive buffer in bytes; for a kernel's, the window that it advertises.
    pub receive_buffer_bytes: u64,
}
