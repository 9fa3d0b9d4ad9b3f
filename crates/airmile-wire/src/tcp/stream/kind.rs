//! Kinds of segments and acknowledgements.

/// The kind of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tcp) enum SegmentKind {
    /// The next bytes, or bytes after a hole.
    New {
        ahead: bool,
    },
    /// Nothing that occupies sequence numbers.
    Bare,
    /// Bytes that were reordered on the path.
    Reordered,
    /// Bytes that were sent before.
    Retransmission(RetransmissionCause),
    /// RFC 9293, 3.8.4.
    KeepAlive,
    /// RFC 9293, 3.8.6.1.
    WindowProbe,
    /// A repeated SYN or bare FIN.
    HandshakeAgain,
    CloseAgain,
    /// A sequence number far outside the window.
    OutOfWindow,
}

/// The cause of a retransmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tcp) enum RetransmissionCause {
    /// Duplicate ACKs or SACK (RFC 5681, 3.2; RFC 6675).
    Fast,
    /// The retransmission timer (RFC 6298, 5).
    Timeout,
    /// RFC 8985, 7.
    TailLossProbe,
    /// The receiver had acknowledged it when it passed.
    Spurious,
    /// Undetermined.
    Unknown,
}

/// The kind of an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tcp) enum AckKind {
    /// New bytes.
    Advance(Advance),
    /// RFC 5681, 2 or RFC 6675; RTT of the segment that triggered it, by SACK or
    /// by the order of segments.
    Duplicate { rtt_ns: Option<i64> },
    /// The same number with another window.
    WindowUpdate,
    /// Nothing new.
    Same,
    /// Older than a previous acknowledgement.
    Old,
}

/// New bytes acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tcp) struct Advance {
    /// Whole segments among them.
    pub(in crate::tcp) segments: u32,
    pub(in crate::tcp) rtt_ns: Option<i64>,
    /// When the last and the first of the segments were sent.
    pub(in crate::tcp) sent_ns: Option<i64>,
    pub(in crate::tcp) first_ns: Option<i64>,
}

/// The result of [`ByteStream::segment`](super::ByteStream::segment).
#[derive(Debug, Clone, Copy)]
pub(in crate::tcp) struct SegmentReport {
    pub(in crate::tcp) kind: SegmentKind,
    pub(in crate::tcp) start: i64,
    /// Payload that had not passed before.
    pub(in crate::tcp) new_bytes: u64,
}
