//! What the load of a page waits for.

use crate::vocabulary::vocabulary;

vocabulary! {
    /// What a page waited for, at a moment of its critical path.
    PageCause {
        /// The page itself: parsing, scripts, timers; no request was under way.
        Browser = "browser",
        /// Another request held the connection, or the place in the browser's queue.
        Blocked = "blocked",
        /// Name lookup.
        Dns = "dns",
        /// Connection set-up: TCP and TLS, or QUIC; with the radio's own, where it is seen.
        Setup = "setup",
        /// The server's time to answer, and its pauses in an answer.
        Server = "server",
        /// A request on its way, and the first byte on its way back.
        RoundTrip = "round_trip",
        /// A congestion window that was still small.
        SlowStart = "slow_start",
        /// Lost packets, until they were sent again.
        Loss = "loss",
        /// The receiver's window was full.
        ReceiveWindow = "receive_window",
        /// The phone's own upload.
        UplinkQueue = "uplink_queue",
        /// A slower link before the radio.
        Wireline = "wireline",
        /// The radio link.
        Radio = "radio",
        /// Data came at the rate of the slowest link; which one is not known.
        Transfer = "transfer",
        /// The evidence does not tell.
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
        /// The request is written.
        Send = "send",
        /// Until the first byte of the answer.
        Wait = "wait",
        /// Until its last byte.
        Receive = "receive",
    }
}
