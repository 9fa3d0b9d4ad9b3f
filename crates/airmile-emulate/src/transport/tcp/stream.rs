//! The application's side of a connection: writing, reading, finishing.

use std::sync::Arc;

use super::connection::{TcpConnection, TcpState};
use super::stats::TcpEvent;
use crate::net::Literal;

impl TcpConnection {
    /// Events since the last call.
    pub fn take_events(&mut self) -> Vec<TcpEvent> {
        std::mem::take(&mut self.sender.events)
    }

    /// Bytes that can be written now.
    #[must_use]
    pub fn writable_bytes(&self) -> u64 {
        if self.sender.finished { 0 } else { self.sender.writable_bytes() }
    }

    /// Writes bytes that are only counted; returns how many there was room for.
    pub fn write(&mut self, bytes: u64) -> u64 {
        let bytes = bytes.min(self.writable_bytes());
        self.sender.written_bytes += bytes;
        bytes
    }

    /// Writes bytes literally, all or none.
    pub fn write_literal(&mut self, bytes: &[u8]) -> bool {
        self.write_shared(&Arc::from(bytes))
    }

    /// The same without a copy.
    pub fn write_shared(&mut self, bytes: &Arc<[u8]>) -> bool {
        if bytes.is_empty() || bytes.len() as u64 > self.writable_bytes() {
            return bytes.is_empty();
        }
        let offset = self.sender.written_bytes;
        self.sender.add_literal(&Literal { offset, bytes: Arc::clone(bytes) });
        self.sender.written_bytes += bytes.len() as u64;
        true
    }

    /// Bytes that can be read now.
    #[must_use]
    pub fn readable_bytes(&self) -> u64 {
        self.receiver.readable_bytes()
    }

    /// Bytes that can be read now and are only counted, up to the next literal.
    #[must_use]
    pub fn readable_filler_bytes(&self) -> u64 {
        self.receiver.readable_filler_bytes()
    }

    /// Length of the next literal in the stream, once it is complete.
    #[must_use]
    pub fn readable_literal_bytes(&self) -> u64 {
        self.receiver.literal().map_or(0, |literal| literal.bytes.len() as u64)
    }

    /// Reads up to `max_bytes` bytes; returns the number.
    pub fn read(&mut self, now_ns: i64, max_bytes: u64) -> u64 {
        let bytes = self.readable_bytes().min(max_bytes);
        if bytes > 0 {
            self.receiver.on_read(now_ns, bytes, self.sender.mss_bytes);
        }
        bytes
    }

    /// Reads the next literal in the stream, once it is complete.
    pub fn read_literal(&mut self, now_ns: i64) -> Option<Arc<[u8]>> {
        let bytes = Arc::clone(&self.receiver.literal()?.bytes);
        self.read(now_ns, bytes.len() as u64);
        Some(bytes)
    }

    /// Whether the peer has finished and all its data has been read.
    #[must_use]
    pub fn is_read_to_end(&self) -> bool {
        self.receiver.fin_received() && self.receiver.readable_bytes() == 0
    }

    /// Finishes writing: a FIN follows the data.
    pub fn finish(&mut self) {
        self.sender.finished = true;
    }

    /// Drops the connection with a RST.
    pub fn abort(&mut self, now_ns: i64) {
        self.reset_due = !matches!(self.state, TcpState::Closed | TcpState::SynSent);
        self.close(now_ns);
    }
}
