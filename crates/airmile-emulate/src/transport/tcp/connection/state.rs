//! The states of a connection.

/// Where a connection is in its life (RFC 9293, 3.3.2). Listening is the
/// business of [`Endpoint`](super::super::Endpoint).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TcpState {
    /// SYN sent.
    SynSent,
    /// SYN received and answered.
    SynReceived,
    /// Open on both sides.
    Established,
    /// Closed here, not yet acknowledged.
    FinWait1,
    /// Closed here and acknowledged.
    FinWait2,
    /// Closed there.
    CloseWait,
    /// Closed on both sides, not yet acknowledged here.
    Closing,
    /// Closed there and then here, not yet acknowledged.
    LastAck,
    /// Closed, and waiting for stray segments.
    TimeWait,
    /// Gone.
    Closed,
}

impl TcpState {
    /// The handshake is not done.
    #[must_use]
    pub fn is_opening(self) -> bool {
        matches!(self, Self::SynSent | Self::SynReceived)
    }
}
