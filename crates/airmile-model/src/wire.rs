//! Small enumerations of packets and flows, in the IETF's terms.
//!
//! Values are in the order of their names, which is the order of maps in documents.

use crate::vocabulary::vocabulary;

vocabulary! {
    /// Protocol over IP.
    Protocol {
        /// RFC 9293.
        Tcp = "tcp",
        /// RFC 768.
        Udp = "udp",
    }
}

vocabulary! {
    /// The rule that identified the client of a flow.
    ClientBy {
        /// Its address is in a network given as the clients'.
        Network = "client_net",
        /// It sent the first packet.
        FirstPacket = "first_packet",
        /// The other end has a port of a service.
        Port = "port",
        /// Its address is private (RFC 1918), the other one's is not.
        Private = "private",
        /// It sent the SYN.
        Syn = "syn",
    }
}

vocabulary! {
    /// The termination of a flow.
    Termination {
        /// The capture ended first.
        CaptureEnd = "capture_end",
        /// Too many flows were open (live).
        Crowded = "crowded",
        /// A FIN.
        Fin = "fin",
        /// Nothing passed for the idle time.
        Idle = "idle",
        /// It is still open (live).
        Open = "open",
        /// Another connection on the same ports.
        Replaced = "replaced",
        /// A RST.
        Rst = "rst",
        /// Only SYNs were captured.
        SynOnly = "syn_only",
    }
}

vocabulary! {
    /// One of the two legs of a connection that a proxy splits.
    Leg {
        /// Between client and proxy.
        Client = "client",
        /// Between proxy and server.
        Server = "server",
    }
}

vocabulary! {
    /// Congestion control of a sender, inferred from its window's reductions.
    CongestionControl {
        /// Does not reduce its window on a loss.
        Bbr = "bbr",
        /// Reduces it to 0.7 (RFC 9438).
        Cubic = "cubic",
        /// Halves it (RFC 5681).
        Reno = "reno",
        /// Too little was captured.
        Unknown = "unknown",
    }
}

vocabulary! {
    /// An event out of the ordinary of a TCP segment or its sender.
    TcpEventKind {
        /// After a gap in the sequence numbers.
        Ahead = "ahead",
        /// Duplicate SACK (RFC 2883).
        Dsack = "dsack",
        /// Duplicate ACK (RFC 5681, 2; RFC 6675).
        DupAck = "dup_ack",
        /// FIN again.
        FinAgain = "fin_again",
        /// Keep-alive probe (RFC 9293, 3.8.4).
        KeepAlive = "keep_alive",
        /// A loss was repaired without a slow start.
        Recovered = "recovered",
        /// Out of order, not a retransmission.
        Reordered = "reordered",
        /// Fast retransmission (RFC 5681, 3.2).
        RetxFast = "retx_fast",
        /// Retransmission without a known reason.
        RetxOther = "retx_other",
        /// Tail loss probe (RFC 8985, 7).
        RetxProbe = "retx_probe",
        /// Retransmission of data that had arrived.
        RetxSpurious = "retx_spurious",
        /// Retransmission after a timeout (RFC 6298).
        RetxTimeout = "retx_timeout",
        /// SACK block, in graphs.
        Sack = "sack",
        /// Slow start after duplicate ACKs (Huang et al., 4.3).
        SlowStart = "slow_start",
        /// SYN again.
        SynAgain = "syn_again",
        /// Sequence number far from the window.
        WildSequence = "wild_sequence",
        /// The sender filled the receive window.
        WindowFull = "window_full",
        /// Probe of a zero window (RFC 9293, 3.8.6.1).
        WindowProbe = "window_probe",
        /// The receiver advertises no window.
        ZeroWindow = "zero_window",
    }
}

impl TcpEventKind {
    /// Whether data was retransmitted.
    #[must_use]
    pub const fn is_retransmission(self) -> bool {
        matches!(
            self,
            Self::RetxFast
                | Self::RetxOther
                | Self::RetxProbe
                | Self::RetxSpurious
                | Self::RetxTimeout
        )
    }
}

vocabulary! {
    /// The source of a round-trip time.
    RttSource {
        /// A cumulative acknowledgement.
        Ack = "ack",
        /// The order of segments after duplicate ACKs without SACK.
        Order = "order",
        /// A SACK block (RFC 2018).
        Sack = "sack",
        /// The spin bit of QUIC (RFC 9000, 17.4).
        Spin = "spin",
    }
}

vocabulary! {
    /// The phase of a TCP sender.
    #[derive(Default)]
    SenderPhase {
        /// After an idle time.
        AfterIdle = "after_idle",
        /// After a timeout.
        AfterTimeout = "after_timeout",
        /// Congestion avoidance (RFC 5681, 3.1).
        CongestionAvoidance = "congestion_avoidance",
        /// Loss recovery (RFC 5681, 3.2).
        Recovery = "recovery",
        /// Slow start (RFC 5681, 3.1).
        #[default]
        SlowStart = "slow_start",
    }
}

vocabulary! {
    /// What shows which packets were marked.
    EcnSource {
        /// The counter in acknowledgements (RFC 9768), modulo 8: a lower bound.
        AccurateEcn = "accurate_ecn",
        /// The marked packets themselves.
        Arrivals = "arrivals",
        /// The echo in acknowledgements (RFC 3168): at most one for each round trip, a lower bound.
        EcnEcho = "ecn_echo",
        /// Nothing: the sender of the acknowledgements does not report marks, or encrypts it.
        Unknown = "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: impl Iterator<Item = &'static str>) {
        let names: Vec<_> = names.collect();
        assert!(names.is_sorted(), "{names:?}");
    }

    #[test]
    fn values_stand_in_the_order_of_their_names() {
        check(Protocol::ALL.iter().map(|one| one.as_str()));
        check(ClientBy::ALL.iter().map(|one| one.as_str()));
        check(Termination::ALL.iter().map(|one| one.as_str()));
        check(Leg::ALL.iter().map(|one| one.as_str()));
        check(CongestionControl::ALL.iter().map(|one| one.as_str()));
        check(TcpEventKind::ALL.iter().map(|one| one.as_str()));
        check(EcnSource::ALL.iter().map(|one| one.as_str()));
        check(RttSource::ALL.iter().map(|one| one.as_str()));
        check(SenderPhase::ALL.iter().map(|one| one.as_str()));
    }
}
