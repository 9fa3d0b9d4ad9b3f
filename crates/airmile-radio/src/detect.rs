//! Transfers detected from the allocation alone: activity split at pauses, for logs
//! without an application log.

mod guess;
#[cfg(test)]
mod tests;
mod thin;

use std::collections::VecDeque;

use airmile_model::{Direction, Grant, Stamp, TtiClock, TtiIndex, TtiSpan};

pub use guess::judge_guess;

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

impl DetectOptions {
    /// The pause unless another is given.
    pub const PAUSE_MS: u32 = 500;
    /// The bytes unless others are given.
    pub const MIN_BYTES: u64 = 20_000;
}

impl Default for DetectOptions {
    fn default() -> Self {
        Self { pause_ms: Self::PAUSE_MS, min_bytes: Self::MIN_BYTES }
    }
}

/// Blocks of unknown content that have fewer bytes together (one packet on Ethernet) and are farther than
/// [`ALONE_MS`] from others are control elements or a keep-alive, which come in a pause, too (chosen here).
const ALONE_BYTES: u64 = 1_500;
/// Chosen here: above most round trips, below a long DRX cycle (TS 38.331, 320 ms).
const ALONE_MS: u32 = 200;

/// Small packets go on after a transfer, and before it: keep-alives, acknowledgements, a handshake. They are
/// none of its data if they carry less than this part of its rate, and a few packets plus the rate of a voice
/// call (chosen here). An activity of that rate is slow.
const TRICKLE_PART: f64 = 0.05;
const TRICKLE_BYTES: f64 = 4_000.0;
const TRICKLE_BYTES_PER_MS: f64 = 8.0;

/// A span of one direction's new data without a long pause.
#[derive(Debug, Clone, Copy, PartialEq)]
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
    /// TTIs in it that may lie before it or between two: without data, or with small packets alone, for longer
    /// than a round trip takes, but not for a whole pause.
    pub doubtful_ttis: i64,
    /// TTIs of small packets before and after it, a pause at most after it, which may be of it: an application may
    /// wait in them.
    pub around_ttis: i64,
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
    /// The transfer in progress up to its last data; of a slow one, up to a pause before the last.
    current: Option<DetectedTransfer>,
    /// What came after it, or all if there is no transfer yet, in order: small packets or the next data.
    pending: Vec<DetectedTransfer>,
    pending_bytes: u64,
    /// Blocks after these that may be alone.
    alone: Option<DetectedTransfer>,
    /// The end of the last blocks that were alone.
    alone_end: Option<TtiIndex>,
    /// Of the last grant.
    numerology: u8,
    /// No grant is before it: of the last one, or as the log advanced.
    seen: TtiIndex,
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
            pending: Vec::new(),
            pending_bytes: 0,
            alone: None,
            alone_end: None,
            numerology: 0,
            seen: TtiIndex(i64::MIN),
            clock: TtiClock::new(),
            done: VecDeque::new(),
            small: SmallTransfers { count: 0, bytes: 0 },
        }
    }

    fn ttis(&self, ms: u32) -> i64 {
        TtiSpan::from_ms(i64::from(ms), self.numerology).0
    }

    /// Whole ms, so that the length of a TTI changes nothing.
    fn ms(&self, ttis: i64) -> f64 {
        TtiSpan(ttis).ms(self.numerology).floor()
    }

    fn pause(&self) -> i64 {
        self.ttis(self.options.pause_ms)
    }

    fn near(&self) -> i64 {
        self.ttis(ALONE_MS.min(self.options.pause_ms))
    }

    /// Whether bytes in this many TTIs are a trickle compared with data of `of_bytes` in `of_ttis`.
    fn is_trickle(&self, (bytes, ttis): (u64, i64), of: (u64, i64)) -> bool {
        let most = TRICKLE_BYTES + TRICKLE_BYTES_PER_MS * self.ms(ttis);
        bytes as f64 <= most.min(self.trickle_part(ttis, of))
    }

    /// The bytes of a trickle in this many TTIs by the rate of the data alone.
    fn trickle_part(&self, ttis: i64, (of_bytes, of_ttis): (u64, i64)) -> f64 {
        let of_ms = self.ms(of_ttis.max(self.near())).max(1.0);
        of_bytes as f64 / of_ms * TRICKLE_PART * self.ms(ttis)
    }

    fn is_slow(&self, one: &DetectedTransfer) -> bool {
        one.bytes as f64 <= TRICKLE_BYTES_PER_MS * self.ms(one.end_tti.since(one.start_tti))
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
        self.seen = self.seen.max(tti);
        let mut group = DetectedTransfer {
            dir: self.dir,
            start_tti: tti,
            end_tti: tti.plus(1),
            start: grant.at,
            last: grant.at,
            bytes,
            doubtful_ttis: 0,
            around_ttis: 0,
        };
        self.numerology = grant.position.numerology;
        let near = self.near();
        if let Some(before) = self.alone.take() {
            if tti.since(before.end_tti) < near {
                group = before.and(group);
            } else {
                self.leave_alone(&before);
            }
        }
        let is_hidden = grant.data_bytes.is_none() && grant.padding_bytes.is_none();
        let follows = |end: TtiIndex| tti.since(end) < near;
        let is_small = group.bytes < ALONE_BYTES.min(self.options.min_bytes);
        if is_hidden && is_small && !self.last_end().is_some_and(follows) {
            self.alone = Some(group);
            return;
        }
        self.take(group);
    }

    /// The end of the last data or small packets.
    fn last_end(&self) -> Option<TtiIndex> {
        self.pending.last().or(self.current.as_ref()).map(|last| last.end_tti)
    }

    fn take(&mut self, mut group: DetectedTransfer) {
        // A ms is whole before it counts, however long a TTI is.
        let ms = |tti: TtiIndex| self.ms(tti.0);
        if self.last_end().is_some_and(|end| ms(end.plus(-1)) < ms(group.start_tti)) {
            self.decide(group.start_tti);
        }
        // What lies in adjacent TTIs counts from its first on, however long a TTI is.
        let adjoins = |last: &mut DetectedTransfer| last.end_tti >= group.start_tti;
        if let Some(last) = self.pending.pop_if(adjoins) {
            self.pending_bytes = self.pending_bytes.saturating_sub(last.bytes);
            group = last.and(group);
        }
        self.end_before(group.start_tti);
        if let Some(current) = self.current.filter(|one| !self.is_slow(one)) {
            let gap = group.start_tti.since(current.end_tti);
            let since = (self.pending_bytes + group.bytes, gap);
            let whole = (current.bytes, current.end_tti.since(current.start_tti));
            if !self.is_trickle(since, whole) {
                let doubtful_ttis = current.doubtful_ttis + self.if_long(gap);
                let rest = self.take_pending(self.pending.len()).into_iter().chain([group]);
                let whole = rest.fold(current, DetectedTransfer::and);
                self.current = Some(DetectedTransfer { doubtful_ttis, ..whole });
                return;
            }
        }
        self.pending_bytes += group.bytes;
        self.pending.push(group);
        self.thin_pending();
    }

    /// Takes the first `n` of what is pending, as one.
    fn take_pending(&mut self, n: usize) -> Option<DetectedTransfer> {
        let taken = self.pending.drain(..n).reduce(DetectedTransfer::and)?;
        self.pending_bytes = self.pending_bytes.saturating_sub(taken.bytes);
        Some(taken)
    }

    /// TTIs of small packets or of none, if they are more than a round trip takes.
    fn if_long(&self, ttis: i64) -> i64 {
        if ttis >= self.near() { ttis } else { 0 }
    }

    /// Begins a transfer, or decides on what came after a slow one: it goes on, or is the trickle before the next.
    fn decide(&mut self, now: TtiIndex) {
        if self.current.is_some_and(|one| !self.is_slow(&one)) {
            return;
        }
        let is_enough = self.pending_bytes >= self.options.min_bytes;
        if self.current.is_none() && !is_enough {
            return;
        }
        let Some((first, last)) = self.pending.first().copied().zip(self.pending.last()) else {
            return;
        };
        let whole = DetectedTransfer { bytes: 0, ..first }
            .and(DetectedTransfer { bytes: self.pending_bytes, ..*last });
        let before = |slow: &DetectedTransfer| {
            let ttis = whole.start_tti.since(slow.start_tti);
            self.is_trickle((slow.bytes, ttis), (whole.bytes, whole.end_tti.since(whole.start_tti)))
        };
        match self.current {
            None if !self.is_slow(&whole) => {
                // The rate of what follows must show.
                let mut bytes = 0;
                let enough = self.pending.iter().find(|one| {
                    bytes += one.bytes;
                    bytes >= self.options.min_bytes
                });
                if enough.is_some_and(|one| now.since(one.start_tti) >= self.near()) {
                    self.begin(None);
                }
            }
            Some(slow) if is_enough && before(&slow) => self.begin(Some(slow)),
            slow => {
                // What came in the last pause may be of the next.
                let end = whole.end_tti.plus(-self.pause());
                let old = self.pending.partition_point(|one| one.start_tti <= end);
                let old = self.take_pending(old);
                self.current = slow.into_iter().chain(old).reduce(DetectedTransfer::and);
                if let Some(fast) = self.current.filter(|one| !self.is_slow(one)) {
                    let rest = self.take_pending(self.pending.len());
                    self.current = Some(rest.into_iter().fold(fast, DetectedTransfer::and));
                }
            }
        }
    }

    /// What is pending is a transfer. Small packets a pause or more before its data are not of it; those of the
    /// last pause are, from the last time without any on. However long small packets came before, its first data is
    /// none of them. After a slow transfer, whose packets these may be, it is from a shorter time without any on, or
    /// from its data.
    fn begin(&mut self, slow: Option<DetectedTransfer>) {
        let Some((first, end)) = self.pending.first().map(|one| one.start_tti).zip(self.last_end())
        else {
            return;
        };
        let from = slow.map_or(first, |slow| slow.end_tti);
        let apart = if slow.is_some() { self.near() / 2 } else { self.near() };
        let (mut data, mut near) = ((0, first), (0, first));
        let (mut bytes, mut skipped) = (0, (0, from));
        for (at, pair) in self.pending.windows(2).enumerate() {
            let [earlier, later] = pair else { continue };
            bytes += earlier.bytes;
            let (start, gap) = (later.start_tti, later.start_tti.since(earlier.end_tti));
            let rest = (self.pending_bytes.saturating_sub(bytes), end.since(start));
            let newest = self.trickle_part(start.since(skipped.1), rest);
            if gap > 0
                && self.is_trickle((bytes, start.since(from)), rest)
                && (bytes - skipped.0) as f64 <= newest
            {
                (data, skipped) = ((at + 1, start), (bytes, start));
                if gap >= apart {
                    near = data;
                }
            }
        }
        let follows = slow.is_some() && first.since(from) < apart;
        let is_long = |from: TtiIndex| data.1.since(from) >= self.pause();
        let (begin, start) = match near {
            (0, _) if follows => data,
            (_, at) if is_long(at) => data,
            _ if slow.is_none() && !is_long(first) => (0, first),
            near => near,
        };
        let before = slow.into_iter().chain(self.take_pending(begin));
        before.reduce(DetectedTransfer::and).into_iter().for_each(|one| self.leave(one));
        self.current = self.take_pending(self.pending.len());
        let doubtful_ttis = self.if_long(data.1.since(start));
        if let Some(current) = &mut self.current {
            current.doubtful_ttis = doubtful_ttis;
            current.around_ttis = if slow.is_none() { start.since(first) } else { 0 };
        }
    }

    /// Ends what a pause before this TTI ends.
    fn end_before(&mut self, tti: TtiIndex) {
        let pause = self.pause();
        self.end(tti, |one| tti.since(one.end_tti) >= pause);
    }

    fn end(&mut self, now: TtiIndex, is_over: impl Fn(&DetectedTransfer) -> bool) {
        let is_all_over =
            |this: &Self| this.pending.last().or(this.current.as_ref()).is_some_and(&is_over);
        if is_all_over(self) {
            self.decide(now);
        }
        loop {
            match self.current {
                Some(slow) if self.is_slow(&slow) => {
                    if !is_all_over(self) {
                        return;
                    }
                    self.current = None;
                    let rest = self.take_pending(self.pending.len());
                    self.leave(rest.into_iter().fold(slow, DetectedTransfer::and));
                }
                Some(one) if is_over(&one) => {
                    self.current = None;
                    self.leave_with_tail(one);
                    self.decide(now);
                }
                None if is_all_over(self) && self.pending_bytes >= self.options.min_bytes => {
                    self.begin(None);
                }
                None if is_all_over(self) => {
                    let whole = self.take_pending(self.pending.len());
                    whole.into_iter().for_each(|one| self.leave(one));
                }
                _ => return,
            }
        }
    }

    /// An upload ends with its answer, which the phone acknowledges: small packets after it are of it, up to the
    /// last before a gap of [`ALONE_MS`], unless they go on.
    fn leave_with_tail(&mut self, mut one: DetectedTransfer) {
        let data_end = one.end_tti;
        if self.dir == Direction::Ul {
            let (mut end, mut longest) = (data_end, 0);
            let is_next = |next: &&DetectedTransfer| {
                let gap = next.start_tti.since(end);
                let follows = gap < self.near();
                if follows {
                    (end, longest) = (next.end_tti, longest.max(gap));
                }
                follows
            };
            let n = self.pending.iter().take_while(is_next).count();
            // What the log does not show is no silence.
            let quiet_to = data_end.plus(self.pause()).min(self.seen);
            if quiet_to.since(end) > longest {
                one = self.take_pending(n).into_iter().fold(one, DetectedTransfer::and);
                one.doubtful_ttis += self.if_long(end.since(data_end));
            }
        }
        let after = self.pending.last().map_or(0, |last| last.end_tti.since(one.end_tti));
        one.around_ttis += after;
        self.leave(one);
    }

    /// It has ended, as a transfer or too small for one.
    fn leave(&mut self, one: DetectedTransfer) {
        if one.bytes >= self.options.min_bytes {
            self.done.push_back(one);
        } else {
            self.small.count += 1;
            self.small.bytes += one.bytes;
        }
    }

    /// Counts blocks that were alone, those without a pause between them once.
    fn leave_alone(&mut self, blocks: &DetectedTransfer) {
        let follows = |end: TtiIndex| blocks.start_tti.since(end) < self.pause();
        let is_apart = !self.alone_end.into_iter().chain(self.last_end()).any(follows);
        self.small.count += u64::from(is_apart);
        self.small.bytes += blocks.bytes;
        self.alone_end = Some(blocks.end_tti);
    }

    /// The activity in progress, up to its last data; a later grant can extend it. Where it is not a transfer
    /// yet, from when it may be one: then it has no length.
    #[must_use]
    pub fn current(&self) -> Option<DetectedTransfer> {
        let begun =
            |first: &DetectedTransfer| DetectedTransfer { end_tti: first.start_tti, ..*first };
        self.current.or_else(|| self.pending.first().map(begun))
    }

    /// Advances time: no grant at or before a TTI is still to come, so activities whose
    /// pause is over end.
    pub fn advance(&mut self, tti: TtiIndex) {
        self.seen = self.seen.max(tti);
        // Blocks that may be alone may still be of them.
        let waits = self.alone.as_ref().filter(|blocks| tti.since(blocks.end_tti) < self.near());
        self.end_before(waits.map_or(tti, |blocks| blocks.start_tti.min(tti)));
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
        if let Some(blocks) = self.alone.take() {
            self.leave_alone(&blocks);
        }
        self.end(TtiIndex(i64::MAX), |_| true);
        self.small
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
