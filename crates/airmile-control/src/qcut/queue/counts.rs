//! Counts of packets and bytes through the queues.

/// Packets and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Packets.
    pub packets: u64,
    /// Their IP bytes.
    pub bytes: u64,
}

impl Tally {
    pub(super) const fn sum(&self, other: &Self) -> Self {
        Self { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }

    pub(super) const fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }

    pub(super) const fn subtract(&mut self, bytes: u32) {
        self.packets = self.packets.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes as u64);
    }
}

/// Packet counts by outcome: `arrived` is always the sum of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueCounts {
    /// Arrived at the queues.
    pub arrived: Tally,
    /// Sent on.
    pub sent: Tally,
    /// Dropped by CoDel.
    pub dropped_aqm: Tally,
    /// Dropped because the queues were full.
    pub dropped_full: Tally,
    /// Waiting.
    pub waiting: Tally,
}

impl QueueCounts {
    pub(super) const fn sum(&self, other: &Self) -> Self {
        Self {
            arrived: self.arrived.sum(&other.arrived),
            sent: self.sent.sum(&other.sent),
            dropped_aqm: self.dropped_aqm.sum(&other.dropped_aqm),
            dropped_full: self.dropped_full.sum(&other.dropped_full),
            waiting: self.waiting.sum(&other.waiting),
        }
    }
}

/// Why a packet was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// CoDel.
    Aqm,
    /// No room.
    Full,
}
