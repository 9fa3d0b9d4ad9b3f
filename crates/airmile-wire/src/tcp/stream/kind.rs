//! What a segment and an acknowledgement are.

/// What a segment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tcp) enum SegmentKind {
    /// The next bytes, or bytes ahead of a hole.
    New {
        ahead: bool,
    },
    /// Nothing that takes sequence numbers.
    Bare,
    /// Bytes that were overtaken on the way.
    Reordered,
    /// Bytes that were sent before.
    Retransmission(RetransmissionCause),
    /// RFC 9293, 3.8.4.
    KeepAlive,
    /// RFC 9293, 3.8.6.1.
    WindowProbe,
    /// A SYN or a bare FIN once more.
    HandshakeAgain,
    CloseAgain,
    /// A sequence number far from all that may be sent.
    OutOfWindow,
}

/// Why something was sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tcp) enum RetransmissionCause {
    /// Duplicate ACKs or SACK asked for it (RFC 5681, 3.2; RFC 6675).
    Fast,
    /// The timer went off (RFC 6298, 5).
    Timeout,
    /// RFC 8985, 7.
    TailLossProbe,
    /// The receiver had acknowledged it when it passed.
    Spurious,
    /// Cannot be told.
    Unknown,
}

/// What an acknowledgement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tcp) enum AckKind {
    /// New bytes acknowledged; when the last segment of them was sent, and the first.
    Advance { segments: u32, rtt_ns: Option<i64>, sent_ns: Option<i64>, first_ns: Option<i64> },
    /// RFC 5681, 2 or RFC 6675; RTT of the segment that triggered it, by SACK or
    /// by the order of segments.
    Duplicate { rtt_ns: Option<i64> },
    /// The same number, another window.
    WindowUpdate,
    /// Nothing new.
    Same,
    /// Older than what was acknowledged.
    Old,
}

/// What [`ByteStream::segment`](super::ByteStream::segment) found.
#[derive(Debug, Clone, Copy)]
pub(in crate::tcp) struct SegmentReport {
    pub(in crate::tcp) kind: SegmentKind,
    pub(in crate::tcp) start: i64,
    /// Payload that had not passed before.
    pub(in crate::tcp) new_bytes: u64,
}
