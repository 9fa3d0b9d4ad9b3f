//! The states of a connection.

/// State of a connection (RFC 9293, 3.3.2). Listening is handled by
/// [`Endpoint`](super::super::Endpoint).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TcpState {
    /// SYN sent.
    SynSent,
    /// SYN received and answered.
    SynReceived,
    /// Open on both sides.
    Established,
    /// Closed by this side, not yet acknowledged.
    FinWait1,
    /// Closed by this side and acknowledged.
    FinWait2,
    /// Closed by the peer.
    CloseWait,
    /// Closed on both sides, not yet acknowledged here.
    Closing,
    /// Closed by the peer and then by this side, not yet acknowledged.
    LastAck,
    /// Closed, waiting for stray segments.
    TimeWait,
    /// Fully closed.
    Closed,
}

impl TcpState {
    /// Whether the handshake is still in progress.
    #[must_use]
    pub fn is_opening(self) -> bool {
        matches!(self, Self::SynSent | Self::SynReceived)
    }
}
