//! Makes captures that can be shared: addresses are replaced by pseudonyms, payload is
//! cut, and unknown data is left out.
//!
//! [`CaptureScrubber`] takes a capture in pieces and returns the scrubbed one, in the
//! same container. Of a frame, its link header, IP header and transport header are kept,
//! field by field; after them the frame is cut, and the length on the wire is kept, as in
//! a capture with a small snap length.
//!
//! | stays | as it was | changed |
//! |---|---|---|
//! | link header | EtherType, tags, labels | MAC addresses, PPPoE session |
//! | IP | lengths, identification, TTL, fragment fields, flow label | addresses; options and extension headers that could name somebody are emptied |
//! | TCP | ports, sequence numbers, window, MSS, scale, SACK, timestamps | other options become no-operations |
//! | UDP, ICMP | ports; type, code, echo identifier | addresses within |
//! | GTP-U | type, length, sequence, QoS flow | tunnel endpoint |
//!
//! Checksums: if all data covered by one is kept, it is updated incrementally (RFC 1624,
//! equation 3), so that right stays right and wrong stays wrong. A checksum over cut
//! payload would reveal 16 bits of it: it is replaced by a pseudonym, which serves
//! equally to identify copies of a packet.

mod capture;
mod checksum;
mod frame;
mod network;
mod options;
mod transport;

pub use capture::CaptureScrubber;

#[cfg(test)]
mod tests;
