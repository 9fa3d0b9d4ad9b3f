//! Transports without I/O: TCP, QUIC, and window senders; and the sockets through which
//! applications use them.

pub mod quic;
pub mod socket;
pub mod tcp;
pub(crate) mod window;
