//! Transfers detected from the allocation alone: activity split at pauses, for logs
//! without an application log.

use std::collections::VecDeque;

use airmile_model::{Direction, Grant, Stamp, TtiClock, TtiIndex, TtiSpan};

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

/// Blocks of unknown content that have fewer bytes together (one packet on Ethernet) and are farther than
/// [`ALONE_MS`] from others are control elements or a keep-alive, which come in a pause, too (chosen here).
const ALONE_BYTES: u64 = 1_500;
/// Chosen here: above most round trips, below a long DRX cycle (TS 38.331, 320 ms).
const ALONE_MS: u32 = 200;

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

impl DetectedTransfer {
    /// With the next data.
    fn and(self, next: Self) -> Self {
        Self {
            end_tti: self.end_tti.max(next.end_tti),
            last: next.last.or(self.last),
            start: self.start.or(next.start),
            bytes: self.bytes + next.bytes,
            ..self
        }
    }
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
    /// Blocks after it that may be alone.
    alone: Option<DetectedTransfer>,
    /// The end of the last blocks that were alone.
    alone_end: Option<TtiIndex>,
    /// The pause that ends the current activity, in TTIs of its first grant.
    pause: TtiSpan,
    clock: TtiClock,
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
            alone: None,
            alone_end: None,
            pause: TtiSpan(0),
            clock: TtiClock::new(),
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
        if let Some(at) = grant.at {
            self.clock.set_numerology(grant.position.numerology);
            if self.clock.begins_log(tti, at.ns) {
                self.finish();
            }
            self.clock.note(tti, at.ns);
            self.clock.forget_before(tti);
        }
        let mut group = DetectedTransfer {
            dir: self.dir,
            start_tti: tti,
            end_tti: tti.plus(1),
            start: grant.at,
            last: grant.at,
            bytes,
        };
        let of = |ms: u32| TtiSpan::from_ms(i64::from(ms), grant.position.numerology);
        let near = of(ALONE_MS.min(self.options.pause_ms));
        if let Some(before) = self.alone.take() {
            if tti.since(before.end_tti) < near.0 {
                group = before.and(group);
            } else {
                self.leave_alone(&before);
            }
        }
        let is_hidden = grant.data_bytes.is_none() && grant.padding_bytes.is_none();
        let follows = |activity: &DetectedTransfer| tti.since(activity.end_tti) < near.0;
        let is_small = group.bytes < ALONE_BYTES.min(self.options.min_bytes);
        if is_hidden && is_small && !self.current.as_ref().is_some_and(follows) {
            if self.current.is_none() {
                self.pause = of(self.options.pause_ms);
            }
            self.alone = Some(group);
            return;
        }
        match self.current.take() {
            Some(activity) if group.start_tti.since(activity.end_tti) < self.pause.0 => {
                self.current = Some(activity.and(group));
            }
            before => {
                self.current = before;
                self.close();
                self.pause = of(self.options.pause_ms);
                self.current = Some(group);
            }
        }
    }

    /// Counts blocks that were alone, those without a pause between them once.
    fn leave_alone(&mut self, blocks: &DetectedTransfer) {
        let follows = |end: TtiIndex| blocks.start_tti.since(end) < self.pause.0;
        let activity = self.current.as_ref().map(|activity| activity.end_tti);
        let is_apart = !self.alone_end.into_iter().chain(activity).any(follows);
        self.small.count += u64::from(is_apart);
        self.small.bytes += blocks.bytes;
        self.alone_end = Some(blocks.end_tti);
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
        if let Some(blocks) = self.alone.take() {
            self.leave_alone(&blocks);
        }
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
    fn splits_where_the_clock_was_set_back() {
        let at = |tti: i64, ms: i64| {
            let at = Some(Stamp::modem(ms * 1_000_000));
            Grant { at, ..grant(tti, 1_000) }
        };
        let (found, _) = split(&[at(5, 9_005), at(6, 9_006), at(8, 4_000), at(9, 4_001)]);
        assert_eq!(found, [(5, 7, 2_000), (8, 10, 2_000)]);
        // Stamps of one log may be some ms early.
        let (found, _) = split(&[at(5, 9_005), at(6, 8_900)]);
        assert_eq!(found, [(5, 7, 2_000)]);
    }

    /// A block every 320 ms, as of a sleeping phone, does not join two transfers; where its content is
    /// known, it is data.
    #[test]
    fn blocks_that_are_alone_end_no_pause() {
        let options = DetectOptions::default();
        let found = |data_bytes: Option<u32>| {
            let mut detector = TransferDetector::new(Direction::Dl, options);
            let large = |tti: i64| grant(tti, 30_000);
            let lone = |tti: i64| Grant { data_bytes, ..grant(tti, 400) };
            let alone = (1..7).map(|n| lone(100 + n * 320));
            let grants = [large(0), large(100)].into_iter().chain(alone);
            // The handshake of the next transfer.
            let grants = grants.chain([lone(2_260), lone(2_290), large(2_300)]);
            grants.for_each(|grant| detector.push(&grant));
            let small = detector.finish();
            let mut found = Vec::new();
            while let Some(one) = detector.poll() {
                found.push((one.start_tti.0, one.end_tti.0, one.bytes));
            }
            (found, small)
        };
        let (hidden, small) = found(None);
        assert_eq!(hidden, [(0, 101, 60_000), (2_260, 2_301, 30_800)]);
        assert_eq!(small, SmallTransfers { count: 0, bytes: 2_400 });
        assert_eq!(found(Some(400)).0, [(0, 2_301, 93_200)]);
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
