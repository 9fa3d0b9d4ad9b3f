//! What a connection counted and what happened to it: the truth beside its
//! packets.

use std::ops::Range;

/// Why a segment was sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Retransmission {
    /// Duplicate ACKs, SACK or RACK said that it was lost.
    Fast,
    /// The retransmission timer expired.
    Rto,
    /// A tail loss probe.
    TailProbe,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct TcpEvent {
    /// When.
    #[serde(rename = "time_ns")]
    pub at_ns: i64,
    /// What.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// The handshake is done.
    Established,
    /// The peer sends no more.
    PeerFinished,
    /// Both sides are done.
    Closed,
    /// The peer reset it.
    Reset,
    /// No answer to the last of many timeouts.
    TimedOut,
    /// A segment was sent again.
    Retransmitted {
        /// Why.
        kind: Retransmission,
        /// Which bytes of the stream.
        range: Range<u64>,
    },
    /// Loss recovery began (RFC 6675).
    RecoveryBegan {
        /// Window before.
        cwnd_bytes: u64,
        /// Threshold after.
        ssthresh_bytes: u64,
        /// In flight.
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
        /// While recovering from a loss: what follows is an undesired slow
        /// start (Huang et al. 2013, 5.2), if nothing more was lost.
        in_recovery: bool,
        /// Duplicate ACKs since the last that acknowledged anything new.
        dup_acks: u32,
    },
    /// A reduction was undone: nothing had been lost.
    Spurious,
    /// Slow-start restart after idle time.
    Restarted {
        /// How long nothing was sent.
        idle_ns: i64,
        /// Window before.
        cwnd_before_bytes: u64,
        /// Window after.
        cwnd_bytes: u64,
    },
    /// The peer's window is shut.
    WindowShut,
    /// The peer's window is open again.
    WindowOpened,
}

/// What holds the sender up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Nothing is in flight and nothing to send.
    #[default]
    Idle,
    /// The application: all written is sent.
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
    /// Bytes of data sent, again included.
    pub bytes_sent: u64,
    /// Bytes of data sent again.
    pub bytes_retransmitted: u64,
    /// Segments sent again for duplicate ACKs, SACK or RACK.
    pub fast_retransmissions: u64,
    /// Segments sent again after a timeout.
    pub rto_retransmissions: u64,
    /// Tail loss probes that sent something again.
    pub probe_retransmissions: u64,
    /// Segments that the peer said it had received twice (D-SACK).
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
    /// Bytes of data received that had been received before.
    pub duplicate_bytes: u64,
    /// Window probes sent.
    pub window_probes: u64,
    /// Time held up by the application, with data in flight.
    pub application_limited_ns: i64,
    /// Time held up by the congestion window.
    pub cwnd_limited_ns: i64,
    /// Time held up by the peer's window.
    pub rwnd_limited_ns: i64,
    /// Time held up by pacing.
    pub pacing_limited_ns: i64,
}

impl Stats {
    /// Segments sent again, for any reason.
    #[must_use]
    pub fn retransmissions(&self) -> u64 {
        self.fast_retransmissions + self.rto_retransmissions + self.probe_retransmissions
    }
}

/// A connection's state as of now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snapshot {
    /// Congestion window (RFC 5681); while recovering, what may be in the pipe.
    pub cwnd_bytes: u64,
    /// Slow-start threshold.
    pub ssthresh_bytes: u64,
    /// Sent and not acknowledged (RFC 5681, FlightSize).
    pub flight_size_bytes: u64,
    /// Taken to be in the network (RFC 6675, pipe).
    pub pipe_bytes: u64,
    /// The peer's receive window.
    pub rwnd_bytes: u64,
    /// Smoothed round-trip time.
    pub srtt_ns: Option<i64>,
    /// Its variation.
    pub rttvar_ns: i64,
    /// The least measured.
    pub min_rtt_ns: Option<i64>,
    /// Retransmission timeout.
    pub rto_ns: i64,
    /// What holds the sender up.
    pub limit: Limit,
    /// Whether it recovers from a loss.
    pub in_recovery: bool,
    /// Bytes acknowledged so far.
    pub acked_bytes: u64,
    /// Segments sent again so far, for any reason.
    pub retransmissions: u64,
    /// Own receive buffer in bytes; of a kernel's, the window that it grants.
    pub receive_buffer_bytes: u64,
}
