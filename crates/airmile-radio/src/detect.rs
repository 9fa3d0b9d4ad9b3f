//! Transfers detected from the allocation alone: activity split at pauses, for logs
//! without an application log.

use std::collections::VecDeque;

use airmile_model::{Direction, Grant, Stamp, TtiIndex, TtiSpan};

/// How transfers are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DetectOptions {
    /// A pause of this many ms without new data ends an activity. Chosen here: well over
    /// an RTT, an RTO's minimum (RFC 6298, 2.4) and a long DRX cycle (TS 36.331, 320 ms),
    /// and shorter than pauses of users or players.
    pub pause_ms: u32,
    /// Activities of fewer bytes are counted, not reported. Chosen here: somewhat more
    /// than the ten segments of the initial window (RFC 6928): less is no evidence about
    /// a link.
    pub min_bytes: u64,
}

impl Default for DetectOptions {
    fn default() -> Self {
        Self { pause_ms: 500, min_bytes: 20_000 }
    }
}

/// A span of one direction's new data without a long pause.
#[derive(Debug, Clone, PartialEq)]
pub struct DetectedTransfer {
    /// The direction.
    pub dir: Direction,
    /// First TTI with new data.
    pub start_tti: TtiIndex,
    /// The TTI after the last one with new data.
    pub end_tti: TtiIndex,
    /// Time of the first TTI.
    pub start: Option<Stamp>,
    /// Time of the last TTI.
    pub last: Option<Stamp>,
    /// Bytes on data bearers if the MAC header was logged, else of the blocks minus their
    /// padding.
    pub bytes: u64,
}

/// Small transfers, counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SmallTransfers {
    /// How many.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Detects one direction's transfers from grants in TTI order.
#[derive(Debug, Clone)]
pub struct TransferDetector {
    dir: Direction,
    options: DetectOptions,
    current: Option<DetectedTransfer>,
    /// The pause that ends the current activity, in TTIs of its first grant.
    pause: TtiSpan,
    done: VecDeque<DetectedTransfer>,
    small: SmallTransfers,
}

impl TransferDetector {
    /// A detector for one direction.
    #[must_use]
    pub const fn new(dir: Direction, options: DetectOptions) -> Self {
        Self {
            dir,
            options,
            current: None,
            pause: TtiSpan(0),
            done: VecDeque::new(),
            small: SmallTransfers { count: 0, bytes: 0 },
        }
    }

    /// Takes a grant; those of the other direction, of other users and of retransmissions
    /// are skipped.
    pub fn push(&mut self, grant: &Grant) {
        let bytes = new_data_bytes(grant);
        if grant.dir != self.dir || bytes == 0 {
            return;
        }
        let tti = grant.position.tti;
        match &mut self.current {
            Some(activity) if tti.since(activity.end_tti) < self.pause.0 => {
                activity.end_tti = activity.end_tti.max(tti.plus(1));
                activity.last = grant.at.or(activity.last);
                activity.bytes += bytes;
            }
            _ => {
                self.close();
                self.pause =
                    TtiSpan::from_ms(i64::from(self.options.pause_ms), grant.position.numerology);
                self.current = Some(DetectedTransfer {
                    dir: self.dir,
                    start_tti: tti,
                    end_tti: tti.plus(1),
                    start: grant.at,
                    last: grant.at,
                    bytes,
                });
            }
        }
    }

    /// The activity in progress; a later grant can extend it.
    #[must_use]
    pub const fn current(&self) -> Option<&DetectedTransfer> {
        self.current.as_ref()
    }

    /// Advances time: no grant at or before a TTI is still to come, so activities whose
    /// pause is over end.
    pub fn advance(&mut self, tti: TtiIndex) {
        let is_over = |activity: &DetectedTransfer| tti.since(activity.end_tti) >= self.pause.0;
        if self.current.as_ref().is_some_and(is_over) {
            self.close();
        }
    }

    /// Activities so far that were too small.
    #[must_use]
    pub const fn small(&self) -> SmallTransfers {
        self.small
    }

    /// The next finished activity.
    pub fn poll(&mut self) -> Option<DetectedTransfer> {
        self.done.pop_front()
    }

    /// Ends the last activity; [`Self::poll`] returns the remaining ones.
    pub fn finish(&mut self) -> SmallTransfers {
        self.close();
        self.small
    }

    fn close(&mut self) {
        let Some(activity) = self.current.take() else { return };
        if activity.bytes < self.options.min_bytes {
            self.small.count += 1;
            self.small.bytes += activity.bytes;
        } else {
            self.done.push_back(activity);
        }
    }
}

/// Bytes of new user data in a grant: of data bearers if the MAC header was logged, else
/// the block minus its padding; 0 for a retransmission, a block of another RNTI, or
/// padding alone.
#[must_use]
pub fn new_data_bytes(grant: &Grant) -> u64 {
    if !grant.rnti.is_user() || grant.retx == Some(true) {
        return 0;
    }
    let block = grant.tbs_bytes.unwrap_or(0);
    let bytes =
        grant.data_bytes.unwrap_or_else(|| block.saturating_sub(grant.padding_bytes.unwrap_or(0)));
    u64::from(bytes)
}

#[cfg(test)]
mod tests {
    use airmile_model::Position;
    use proptest::prelude::*;

    use super::*;

    fn grant(tti: i64, bytes: u32) -> Grant {
        let mut grant = Grant::new(Position::lte(tti), Direction::Dl, 10);
        grant.tbs_bytes = Some(bytes);
        grant
    }

    fn split(grants: &[Grant]) -> (Vec<(i64, i64, u64)>, SmallTransfers) {
        let options = DetectOptions { pause_ms: 100, min_bytes: 1_000 };
        let mut detector = TransferDetector::new(Direction::Dl, options);
        grants.iter().for_each(|g| detector.push(g));
        let small = detector.finish();
        let mut found = Vec::new();
        while let Some(a) = detector.poll() {
            found.push((a.start_tti.0, a.end_tti.0, a.bytes));
        }
        (found, small)
    }

    #[test]
    fn splits_at_a_pause_and_counts_the_small() {
        let grants = [grant(5, 900), grant(50, 900), grant(151, 900), grant(152, 200)];
        let (found, small) = split(&grants);
        assert_eq!(found, [(5, 51, 1_800), (151, 153, 1_100)]);
        assert_eq!(small, SmallTransfers::default());
        let (found, small) = split(&[grant(5, 900), grant(500, 1_000)]);
        assert_eq!(found, [(500, 501, 1_000)]);
        assert_eq!(small, SmallTransfers { count: 1, bytes: 900 });
    }

    #[test]
    fn retransmissions_control_and_others_are_no_data() {
        let mut retx = grant(5, 900);
        retx.retx = Some(true);
        let mut control = grant(6, 900);
        control.data_bytes = Some(0);
        let mut paging = grant(7, 900);
        paging.rnti = airmile_model::RntiType::P;
        let mut uplink = grant(8, 9_000);
        uplink.dir = Direction::Ul;
        assert_eq!(split(&[retx, control, paging, uplink]).0, []);
    }

    /// Transfers of activity given in ms (pause before, length, bytes a ms), on a carrier
    /// of a numerology: start and end in ms and bytes, and the small ones.
    fn transfers_of(
        activity: &[(i64, i64, u32)],
        numerology: u8,
        options: DetectOptions,
    ) -> (Vec<(f64, f64, u64)>, SmallTransfers) {
        let mut detector = TransferDetector::new(Direction::Dl, options);
        let mut at_ms = 0;
        for &(pause_ms, n_ms, bytes) in activity {
            let start = TtiSpan::from_ms(at_ms + pause_ms, numerology).0;
            at_ms += pause_ms + n_ms;
            let end = TtiSpan::from_ms(at_ms, numerology).0;
            // The advance of the log ends a transfer as the next grant would.
            detector.advance(TtiIndex(start));
            for tti in start..end {
                let mut grant = grant(tti, bytes >> numerology);
                grant.position.numerology = numerology;
                detector.push(&grant);
            }
        }
        let small = detector.finish();
        let mut found = Vec::new();
        while let Some(one) = detector.poll() {
            let ms = |tti: TtiIndex| TtiSpan(tti.0).ms(numerology);
            found.push((ms(one.start_tti), ms(one.end_tti), one.bytes));
        }
        (found, small)
    }

    proptest! {
        /// The pause is a time: the same traffic in shorter TTIs gives the same transfers.
        #[test]
        fn the_numerology_changes_no_transfer(
            activity in prop::collection::vec((0_i64..400, 1_i64..20, 1_u32..20), 1..20),
            numerology in 1_u8..=4,
            pause_ms in 1_u32..300,
        ) {
            let activity: Vec<_> =
                activity.into_iter().map(|(pause, n, bytes)| (pause, n, bytes * 160)).collect();
            let options = DetectOptions { pause_ms, min_bytes: 5_000 };
            let lte = transfers_of(&activity, 0, options);
            prop_assert_eq!(transfers_of(&activity, numerology, options), lte);
        }
    }
}
