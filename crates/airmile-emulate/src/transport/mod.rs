//! Transports without I/O: TCP, QUIC, and senders that are windows alone; and the sockets
//! by which applications use them.

pub mod quic;
pub mod socket;
pub mod tcp;
pub(crate) mod window;
