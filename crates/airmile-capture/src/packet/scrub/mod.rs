//! Captures that can be shared: addresses under pseudonyms, payload cut, all
//! that is not understood left out.
//!
//! [`CaptureScrubber`] takes a capture in pieces and gives the scrubbed one, in
//! the same container. What stays of a frame are its link header, IP header and
//! transport header, each field by field; behind them the frame is cut, and the
//! length on the wire is kept, as a capture with a small snap length has it.
//!
//! | stays | as it was | changed |
//! |---|---|---|
//! | link header | EtherType, tags, labels | MAC addresses, PPPoE session |
//! | IP | lengths, identification, TTL, fragment fields, flow label | addresses; options and extension headers that could name somebody are emptied |
//! | TCP | ports, sequence numbers, window, MSS, scale, SACK, timestamps | other options become no-operations |
//! | UDP, ICMP | ports; type, code, echo identifier | addresses within |
//! | GTP-U | type, length, sequence, QoS flow | tunnel endpoint |
//!
//! Checksums: where the whole of what one covers is still there, it is updated
//! by what changed (RFC 1624, equation 3), so that right stays right and wrong
//! stays wrong. One over a payload that is cut would tell 16 bits of it: it is
//! replaced by a pseudonym, which is as good for telling copies of a packet.

mod capture;
mod checksum;
mod frame;
mod network;
mod options;
mod transport;

pub use capture::CaptureScrubber;

#[cfg(test)]
mod tests;
