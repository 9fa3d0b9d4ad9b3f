//! State that only a direction with losses, reordering or copies has.

use std::collections::VecDeque;

use super::super::opt64::Opt64;
use super::super::ranges::Ranges;

/// Totals of a direction with losses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::tcp) struct LossTotals {
    pub(in crate::tcp) retx: u64,
    pub(in crate::tcp) retx_bytes: u64,
    pub(in crate::tcp) retx_fast: u64,
    pub(in crate::tcp) retx_timeout: u64,
    pub(in crate::tcp) retx_probe: u64,
    pub(in crate::tcp) retx_spurious: u64,
    pub(in crate::tcp) reordered: u64,
    pub(in crate::tcp) out_of_order: u64,
    pub(in crate::tcp) dup_acks: u64,
    pub(in crate::tcp) out_of_window: u64,
    /// Segments that passed after their own ACK.
    pub(in crate::tcp) late: u64,
}

/// State of a direction with losses.
#[derive(Debug, Default)]
pub(super) struct LossState {
    pub(super) losses: LossTotals,
    /// In order of their bytes.
    pub(super) holes: VecDeque<SequenceHole>,
    pub(super) sacked: Ranges,
    pub(super) d_sack: Option<(i64, i64)>,
    pub(super) early: Option<EarlyAck>,
    pub(super) last_dup_ns: i64,
    /// Recovery lasts until this is acknowledged (RFC 6582).
    pub(super) recovery_until: Opt64,
    pub(super) timeout_until: Opt64,
    /// Where the segment after an implausible jump would begin.
    pub(super) jump: Opt64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct SequenceHole {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) opened_ns: i64,
    pub(super) opener_id: Option<u16>,
    pub(super) opener_ts: Option<u32>,
}

/// Bytes that were acknowledged before they passed: taps or queues of a network card with
/// separate clocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct EarlyAck {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) acked_ns: i64,
}
