//! Causes of a page's load time.

use crate::vocabulary::vocabulary;

vocabulary! {
    /// What a page waited for, at a moment of its critical path.
    PageCause {
        /// The page itself: parsing, scripts, timers; no request was in progress.
        Browser = "browser",
        /// Requests that the browser's log lacks, although packets show their responses.
        Unlogged = "unlogged",
        /// Another request held the connection, or the place in the browser's queue.
        Blocked = "blocked",
        /// Name lookup.
        Dns = "dns",
        /// Connection set-up: TCP and TLS, or QUIC; including the radio's, if it is known.
        Setup = "setup",
        /// The server's response time, and its pauses in an answer.
        Server = "server",
        /// The round trip of a request and the first byte of its answer.
        RoundTrip = "round_trip",
        /// A congestion window that was still small.
        SlowStart = "slow_start",
        /// Packet losses, until the retransmission.
        Loss = "loss",
        /// The receiver's window was full.
        ReceiveWindow = "receive_window",
        /// The phone's own upload.
        UplinkQueue = "uplink_queue",
        /// A slower link before the radio.
        Wireline = "wireline",
        /// The radio link.
        Radio = "radio",
        /// Data came at the rate of the slowest link; which one is unknown.
        Transfer = "transfer",
        /// The evidence is insufficient.
        Unknown = "unknown",
    }
}

vocabulary! {
    /// A phase of a request, in order.
    RequestPhase {
        /// In the browser's queue.
        Blocked = "blocked",
        /// Name lookup.
        Dns = "dns",
        /// TCP handshake, or QUIC's with its TLS.
        Connect = "connect",
        /// TLS handshake.
        Tls = "tls",
        /// Sending the request.
        Send = "send",
        /// Until the first byte of the answer.
        Wait = "wait",
        /// Until its last byte.
        Receive = "receive",
    }
}
