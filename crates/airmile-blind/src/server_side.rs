//! A capture at the server and one at the phone: a second judgement of the same transfers.

use airmile_wire::attribute::PathQueue;

use super::features::Features;
use super::model::Model;
use super::phone::CapturedPhone;
use super::span::TransferSpan;
use super::suspect::Suspicion;

/// The two captures show the same transfer if its payload differs by at most this share (chosen
/// here: retransmissions and what a capture lacks).
const MAX_OTHER_BYTES: f64 = 0.1;

/// The phone as the capture at the server shows it.
#[derive(Debug)]
pub struct ServerSide {
    phone: CapturedPhone,
    /// The server's clock minus the phone's, in nanoseconds.
    offset_ns: i64,
    transfers: Vec<TransferSpan>,
}

impl ServerSide {
    /// From a capture whose clock is `offset_ns` ahead of the phone's; smaller transfers than
    /// `min_bytes` are not used.
    #[must_use]
    pub fn new(phone: CapturedPhone, offset_ns: i64, min_bytes: u64) -> Self {
        let transfers = phone.transfers(min_bytes);
        Self { phone, offset_ns, transfers }
    }

    /// The transfer of a span of the phone's capture.
    fn same(&self, span: &TransferSpan) -> Option<TransferSpan> {
        let to_ns = span.to_ns.saturating_add(self.offset_ns);
        let from_ns = span.from_ns.saturating_add(self.offset_ns);
        let overlap =
            |one: &TransferSpan| one.to_ns.min(to_ns).saturating_sub(one.from_ns.max(from_ns));
        let nearest = self.transfers.iter().max_by_key(|one| overlap(one))?;
        let differs = nearest.bytes.abs_diff(span.bytes) as f64;
        let alike = differs <= MAX_OTHER_BYTES * span.bytes as f64;
        (overlap(nearest) > 0 && alike).then_some(*nearest)
    }

    /// Probabilities of all suspects from both captures; `own` are those of the phone's, and `path` is
    /// what both show of the queue between them. `own` stays if the server's does not show the
    /// transfer. `bytes` is as in [`Model::judge_transfer`].
    #[must_use]
    pub fn pool(
        &self,
        own: Vec<Suspicion>,
        span: &TransferSpan,
        bytes: Option<u64>,
        path: &PathQueue,
    ) -> Vec<Suspicion> {
        let same = self.same(span);
        let features = same.and_then(|same| Features::from_spans(&self.phone, &[same]));
        let features = features.map(|features| features.on_path(path, &[*span]));
        let others = features.map(|features| Model::judge_transfer(&features, bytes));
        match others {
            Some(others) if !others.is_empty() && !own.is_empty() => Model::pool(&own, &others),
            _ => own,
        }
    }
}
