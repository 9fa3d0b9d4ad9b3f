//! Backlog of users with byte traffic.

use crate::random::Random;
use crate::scenario::Competing;

/// A queue of bytes with the process that fills it.
#[derive(Debug, Clone)]
pub(crate) struct Backlog {
    bytes: u64,
    source: ByteSource,
    random: Random,
}

#[derive(Debug, Clone)]
enum ByteSource {
    /// Never empty.
    Full,
    /// Whole objects; the next one arrives some time after the end of the last.
    Objects { sizes: Sizes, next: Next },
    /// An object every `period` ms.
    Periodic { bytes: u64, period: i64, next: i64 },
    /// A rate, on until one millisecond, off until another.
    OnOff { bytes_per_ms: f64, credit: f64, on: bool, until: i64, mean_on: f64, mean_off: f64 },
}

#[derive(Debug, Clone)]
struct Sizes {
    mean_bytes: f64,
    /// Objects of a page, and the rest of this page's.
    per_page: u16,
    left: u16,
    between: i64,
    mean_pause: f64,
}

/// When the next object arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    At(i64),
    AfterThisOne,
}

impl Backlog {
    pub(crate) fn new(competing: &Competing, first_ms: i64, mut random: Random) -> Self {
        let dice = &mut random;
        let objects = |per_page: u16, mean_bytes: u32, between: u32, mean_pause: u32| {
            let sizes = Sizes {
                mean_bytes: mean_bytes.into(),
                per_page,
                left: per_page,
                between: between.into(),
                mean_pause: mean_pause.into(),
            };
            ByteSource::Objects { sizes, next: Next::At(first_ms) }
        };
        let source = match *competing {
            Competing::FullBuffer { .. } => ByteSource::Full,
            Competing::Sporadic { mean_file_bytes, mean_pause_ms, .. } => {
                objects(1, mean_file_bytes, 0, mean_pause_ms)
            }
            Competing::Web {
                objects: per_page,
                mean_object_bytes,
                round_trip_ms,
                mean_reading_ms,
                ..
            } => {
                let mut source =
                    objects(per_page, mean_object_bytes, round_trip_ms, mean_reading_ms);
                // Readers do not start together.
                if let ByteSource::Objects { next, .. } = &mut source {
                    let wait = dice.uniform() * f64::from(mean_reading_ms);
                    *next = Next::At(first_ms + wait as i64);
                }
                source
            }
            Competing::Video { segment_ms, bitrate_bps, .. } => {
                let period = i64::from(segment_ms);
                // Players start at different times.
                let next = first_ms + (dice.uniform() * period as f64) as i64;
                let bytes = u64::from(bitrate_bps) * u64::from(segment_ms) / 8_000;
                ByteSource::Periodic { bytes: bytes.max(1), period, next }
            }
            Competing::OnOff { rate_bps, mean_on_ms, mean_off_ms, .. } => {
                let (mean_on, mean_off) = (f64::from(mean_on_ms), f64::from(mean_off_ms));
                let on = dice.chance(mean_on / (mean_on + mean_off).max(1.0));
                let rest = exponential(dice, if on { mean_on } else { mean_off });
                ByteSource::OnOff {
                    bytes_per_ms: f64::from(rate_bps) / 8_000.0,
                    credit: 0.0,
                    on,
                    until: first_ms + rest as i64,
                    mean_on,
                    mean_off,
                }
            }
        };
        Self { bytes: 0, source, random }
    }

    /// Bytes waiting.
    pub(crate) const fn bytes(&self) -> u64 {
        if matches!(self.source, ByteSource::Full) { u64::MAX } else { self.bytes }
    }

    /// Removes bytes.
    pub(crate) const fn remove(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Adds the bytes that arrive in a millisecond.
    pub(crate) fn arrive(&mut self, ms: i64) {
        let dice = &mut self.random;
        match &mut self.source {
            ByteSource::Full => {}
            ByteSource::Objects { sizes, next } => {
                if self.bytes > 0 {
                    return;
                }
                match *next {
                    Next::AfterThisOne => {
                        sizes.left = sizes.left.saturating_sub(1);
                        let wait = if sizes.left > 0 {
                            sizes.between
                        } else {
                            sizes.left = sizes.per_page;
                            exponential(dice, sizes.mean_pause) as i64
                        };
                        *next = Next::At(ms + wait);
                    }
                    Next::At(at) if at <= ms => {
                        self.bytes = 1 + exponential(dice, sizes.mean_bytes) as u64;
                        *next = Next::AfterThisOne;
                    }
                    Next::At(_) => {}
                }
            }
            ByteSource::Periodic { bytes, period, next } => {
                if *next <= ms {
                    self.bytes += *bytes;
                    *next += *period;
                }
            }
            ByteSource::OnOff { bytes_per_ms, credit, on, until, mean_on, mean_off } => {
                if *until <= ms {
                    *on = !*on;
                    let mean = if *on { *mean_on } else { *mean_off };
                    *until = ms + 1 + exponential(dice, mean) as i64;
                }
                if *on {
                    *credit += *bytes_per_ms;
                    let whole = credit.floor();
                    *credit -= whole;
                    self.bytes += whole as u64;
                }
            }
        }
    }
}

/// An exponentially distributed number.
fn exponential(dice: &mut Random, mean: f64) -> f64 {
    -mean * (1.0 - dice.uniform()).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that arrive within a minute if 5,000 bytes can leave each ms.
    fn arrived(competing: &Competing) -> f64 {
        let mut backlog = Backlog::new(competing, 0, Random::new(1, 1));
        let mut total = 0;
        for ms in 0..60_000 {
            backlog.arrive(ms);
            let left = backlog.bytes().min(5_000);
            total += left;
            backlog.remove(left);
        }
        total as f64
    }

    #[test]
    fn as_much_comes_as_the_means_say() {
        // Bytes expected in 60 s, by hand; random ones within 15 %.
        let file = Competing::Sporadic { users: 1, mean_file_bytes: 50_000, mean_pause_ms: 90 };
        let web = Competing::Web {
            users: 1,
            objects: 10,
            mean_object_bytes: 5_000,
            round_trip_ms: 50,
            mean_reading_ms: 500,
        };
        let video = Competing::Video { users: 1, segment_ms: 2_000, bitrate_bps: 1_000_000 };
        let on_off =
            Competing::OnOff { users: 1, rate_bps: 2_000_000, mean_on_ms: 100, mean_off_ms: 100 };
        let full = Competing::FullBuffer { users: 1 };
        for (competing, expected) in [
            // 10 TTIs to empty, 90 ms of pause: 600 files.
            (file, 30e6),
            // 10 objects of 1 to 2 TTIs, 9 waits of 50 ms, 500 ms: 0.97 s a page.
            (web, 60.0 / 0.97 * 50_000.0),
            (video, 7.5e6),
            (on_off, 7.5e6),
            (full, 300e6),
        ] {
            let got = arrived(&competing);
            assert!((got / expected - 1.0).abs() < 0.15, "{competing:?}: {got} of {expected}");
        }
    }
}
