//! Policers: a token bucket that drops packets above its rate and queues nothing.
//!
//! After Flach et al., "An Internet-Wide Analysis of Traffic Policing", SIGCOMM 2016,
//! section 2.2: a bucket that fills at the policer's rate is empty whenever a packet is
//! lost, and not when one passes. So between two losses the rate is the policer's, the
//! same each time; with random losses the rates vary. (The paper simulates one bucket
//! from the first loss to the last; a pause that fills the bucket invalidates that
//! simulation.)

use airmile_model::TcpEventKind;
use airmile_model::median::upper_median;

use super::sender_model::BACKED_OFF_NS;
use crate::tcp::TracedPacket;

/// Losses within this time count as one (chosen here: a burst above the rate loses many).
const EPISODE_NS: i64 = 50_000_000;
/// Minimum number of intervals between losses to infer a bucket, and minimum segments in
/// an interval to use it (chosen here; the paper asks for 15 lost packets).
const MIN_BETWEEN: usize = 6;
const APART_SEGMENTS: u32 = 20;
/// Maximum number of losses and of samples kept; above it, every second sample is dropped
/// (chosen here).
const MAX_LOSSES: usize = 1_024;
const MAX_SAMPLES: usize = 2_048;
/// Losses come from a bucket if this share of the rates between them lies within this
/// part of the usual rate (chosen here: with random losses a quarter does).
const ALIKE_SHARE: f64 = 0.75;
const ALIKE_PART: f64 = 0.1;
/// A packet that passes finds this many more segments in the bucket than a lost one (the
/// paper's two packets).
const FULLER_SEGMENTS: f64 = 2.0;

/// When a policer acted on a connection, and its rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PolicedSpan {
    /// Time of the first loss, in nanoseconds.
    pub from_ns: i64,
    /// Time of the last loss, in nanoseconds.
    pub to_ns: i64,
    /// Bits of payload per second.
    pub rate_bps: f64,
}

impl PolicedSpan {
    /// Whether it dropped packets within a time, or shortly before it: a sender may still wait for what
    /// was dropped.
    #[must_use]
    pub const fn acts_in(&self, from_ns: i64, to_ns: i64) -> bool {
        self.from_ns <= to_ns && self.to_ns.saturating_add(BACKED_OFF_NS) >= from_ns
    }
}

/// The packets and losses of one connection at a monitor after the policer.
#[derive(Debug, Clone, Default)]
pub(super) struct PolicerTest {
    bytes: u64,
    /// Time and bytes passed: at the start of each loss, and in between.
    losses: Vec<(i64, u64)>,
    samples: Vec<(i64, u64)>,
    /// Packets per sample, and those since the last one.
    every: u32,
    since: u32,
    last_loss_ns: Option<i64>,
}

impl PolicerTest {
    /// Takes a packet with payload from the server.
    pub(super) fn push(&mut self, now: i64, packet: &TracedPacket) {
        if packet.event == Some(TcpEventKind::Ahead) {
            let begins = self.last_loss_ns.is_none_or(|last| now - last > EPISODE_NS);
            if begins && self.losses.len() < MAX_LOSSES {
                self.losses.push((now, self.bytes));
            }
            self.last_loss_ns = Some(now);
        }
        self.bytes += packet.new_bytes;
        self.since += 1;
        if self.since < self.every.max(1) {
            return;
        }
        self.since = 0;
        if self.samples.len() >= MAX_SAMPLES {
            let mut keep = false;
            self.samples.retain(|_| {
                keep = !keep;
                keep
            });
            self.every = self.every.max(1) * 2;
        }
        self.samples.push((now, self.bytes));
    }

    /// The policer that the losses show, if any; `mss` is a segment's payload in bytes.
    pub(super) fn found(&self, mss: i64) -> Option<PolicedSpan> {
        let apart_bytes = u64::from(APART_SEGMENTS) * mss.max(1).unsigned_abs();
        let between: Vec<Between> = self
            .losses
            .windows(2)
            .filter_map(|pair| Between::of(*pair.first()?, *pair.get(1)?))
            .filter(|one| one.bytes >= apart_bytes)
            .collect();
        if between.len() < MIN_BETWEEN {
            return None;
        }
        let mut rates: Vec<f64> = between.iter().map(Between::bytes_per_ns).collect();
        let usual = upper_median(&mut rates, f64::total_cmp)?;
        let alike = rates.iter().filter(|rate| (**rate / usual - 1.0).abs() <= ALIKE_PART).count();
        let mut tokens: Vec<f64> =
            between.iter().flat_map(|one| one.tokens(&self.samples)).collect();
        let policed = alike as f64 >= ALIKE_SHARE * between.len() as f64
            && upper_median(&mut tokens, f64::total_cmp)? >= FULLER_SEGMENTS * mss as f64;
        policed.then_some(PolicedSpan {
            from_ns: between.first()?.from.0,
            to_ns: between.last()?.to_ns,
            rate_bps: usual * 8e9,
        })
    }
}

/// Packets between two losses.
#[derive(Debug, Clone, Copy)]
struct Between {
    from: (i64, u64),
    to_ns: i64,
    bytes: u64,
}

impl Between {
    fn of(from: (i64, u64), to: (i64, u64)) -> Option<Self> {
        let bytes = to.1.saturating_sub(from.1);
        (to.0 > from.0).then_some(Self { from, to_ns: to.0, bytes })
    }

    fn bytes_per_ns(&self) -> f64 {
        self.bytes as f64 / (self.to_ns - self.from.0) as f64
    }

    /// The bucket's fill level at each sample, assuming it was empty at both losses.
    fn tokens<'a>(&'a self, samples: &'a [(i64, u64)]) -> impl Iterator<Item = f64> + 'a {
        let first = samples.partition_point(|(at, _)| *at <= self.from.0);
        let inside = samples.iter().skip(first).take_while(|(at, _)| *at < self.to_ns);
        inside.map(|(at, passed)| {
            self.bytes_per_ns() * (at - self.from.0) as f64
                - passed.saturating_sub(self.from.1) as f64
        })
    }
}

#[cfg(test)]
mod tests {
    use airmile_model::Direction;

    use super::*;

    const MSS: i64 = 1_000;

    fn segment(event: Option<TcpEventKind>) -> TracedPacket {
        TracedPacket {
            dir: Direction::Dl,
            event,
            payload_bytes: MSS as u32,
            new_bytes: MSS as u64,
            ..TracedPacket::EXAMPLE
        }
    }

    /// A sender whose window grows each round of 40 ms until a packet is dropped, which
    /// halves it; `drops` decides for each packet, given the time in ms.
    fn rounds(mut drops: impl FnMut(i64) -> bool) -> Option<PolicedSpan> {
        let mut test = PolicerTest::default();
        let mut window = 10;
        let mut lost = false;
        for round in 0..400_i64 {
            let mut cut = false;
            for n in 0..window {
                let ms = round * 40 + n * 40 / window;
                if drops(ms) {
                    (lost, cut) = (true, true);
                } else {
                    test.push(ms * 1_000_000, &segment(lost.then_some(TcpEventKind::Ahead)));
                    lost = false;
                }
            }
            window = if cut { (window / 2).max(2) } else { window + 2 };
        }
        test.found(MSS)
    }

    #[test]
    fn a_bucket_is_empty_at_each_loss() {
        // 4 Mbit/s, 30 kB deep.
        let (mut tokens, mut at) = (30_000.0_f64, 0);
        let found = rounds(|ms| {
            tokens = (tokens + (ms - at) as f64 * 500.0).min(30_000.0);
            at = ms;
            let drops = tokens < MSS as f64;
            tokens -= if drops { 0.0 } else { MSS as f64 };
            drops
        });
        let rate = found.unwrap().rate_bps;
        assert!((3.8e6..4.2e6).contains(&rate), "{rate}");
    }

    /// Drops about one packet in 200, at random (splitmix64).
    #[test]
    fn chance_is_no_bucket() {
        for seed in 1..20_u64 {
            let mut state = seed;
            let found = rounds(|_| {
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut z = state;
                z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
                (z ^ z >> 31) % 200 == 0
            });
            assert_eq!(found, None, "{seed}");
        }
    }

    #[test]
    fn few_losses_show_nothing() {
        let mut n = 0;
        let found = rounds(|_| {
            n += 1;
            n % 30_000 == 0
        });
        assert_eq!(found, None);
    }
}
