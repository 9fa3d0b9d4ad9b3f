//! Radio energy by an RRC model: promotion, connected, tail.

use super::opt64::Opt64;

/// Times and powers of a radio. The defaults are the LTE figures of Huang et
/// al., MobiSys 2012 (paper's reference 13); the tail is 10 s as in the paper.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RadioModel {
    /// From the last packet until the radio is idle, in nanoseconds.
    pub tail_ns: i64,
    /// A pause of this length ends continuous reception (DRX begins).
    pub active_gap_ns: i64,
    /// Promotion from idle in nanoseconds.
    pub promotion_ns: i64,
    /// Power in promotion in milliwatt.
    pub promotion_mw: f64,
    /// Power while data flows, without its bytes, in milliwatt.
    pub connected_mw: f64,
    /// Power in the tail, DRX cycles included, in milliwatt.
    pub tail_mw: f64,
    /// Additional power per Mbit/s towards the phone, in milliwatt.
    pub dl_mw_per_mbps: f64,
    /// Additional power per Mbit/s from the phone, in milliwatt.
    pub ul_mw_per_mbps: f64,
}

impl Default for RadioModel {
    fn default() -> Self {
        Self {
            tail_ns: 10_000_000_000,
            active_gap_ns: 100_000_000,
            promotion_ns: 260_100_000,
            promotion_mw: 1210.7,
            connected_mw: 1288.0,
            tail_mw: 1060.0,
            dl_mw_per_mbps: 51.97,
            ul_mw_per_mbps: 438.39,
        }
    }
}

/// The radio activity of one user.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RadioUse {
    last_ns: Opt64,
    /// Promotions.
    pub promotions: u64,
    /// Time with data in nanoseconds.
    pub active_ns: i64,
    /// Time in tails in nanoseconds.
    pub tail_ns: i64,
    /// IP bytes towards the phone and from it.
    bytes: [u64; 2],
}

impl RadioUse {
    /// Takes a packet.
    #[inline]
    pub fn push(&mut self, model: &RadioModel, at_ns: i64, ip_bytes: u32, up: bool) {
        match self.last_ns.get() {
            None => self.promotions += 1,
            Some(last) => {
                let gap = (at_ns - last).max(0);
                if gap > model.tail_ns {
                    self.tail_ns += model.tail_ns;
                    self.promotions += 1;
                } else if gap <= model.active_gap_ns {
                    self.active_ns += gap;
                } else {
                    self.tail_ns += gap;
                }
            }
        }
        self.last_ns = Opt64::some(self.last_ns.get().map_or(at_ns, |last| last.max(at_ns)));
        self.bytes[usize::from(up)] += u64::from(ip_bytes);
    }

    /// Whether the next packet finds both in the same state.
    fn is_abreast(&self, other: &Self) -> bool {
        self.last_ns == other.last_ns
    }

    /// The activity of this one minus another's.
    fn beyond(&self, other: &Self) -> Self {
        Self {
            last_ns: self.last_ns,
            promotions: self.promotions.wrapping_sub(other.promotions),
            active_ns: self.active_ns - other.active_ns,
            tail_ns: self.tail_ns - other.tail_ns,
            bytes: [0, 1].map(|way| self.bytes[way].wrapping_sub(other.bytes[way])),
        }
    }

    /// The state after the last tail.
    #[must_use]
    pub fn ended(mut self, model: &RadioModel) -> Self {
        if self.last_ns.take().is_some() {
            self.tail_ns += model.tail_ns;
        }
        self
    }

    /// Time connected in nanoseconds.
    #[must_use]
    pub const fn on_ns(&self) -> i64 {
        self.active_ns + self.tail_ns
    }

    /// Energy in millijoule.
    #[must_use]
    pub fn energy_mj(&self, model: &RadioModel) -> f64 {
        let promotions = self.promotions as f64 * model.promotion_ns as f64 * model.promotion_mw;
        let active = self.active_ns as f64 * model.connected_mw;
        let tail = self.tail_ns as f64 * model.tail_mw;
        let [down, up] = self.bytes.map(|bytes| bytes as f64 * 8e-6);
        (promotions + active + tail) / 1e9 + down * model.dl_mw_per_mbps + up * model.ul_mw_per_mbps
    }
}

/// The radio activity with some of the packets left out. Most of the time it equals that
/// with all packets, so only the difference is kept then.
#[derive(Debug, Clone, Copy)]
pub(super) enum Without {
    Behind(RadioUse),
    Apart(RadioUse),
}

impl Default for Without {
    fn default() -> Self {
        Self::Behind(RadioUse::default())
    }
}

impl Without {
    /// The radio activity itself, given the one with `all` packets.
    pub(super) fn radio(&self, all: &RadioUse) -> RadioUse {
        match self {
            Self::Behind(less) => all.beyond(less),
            Self::Apart(radio) => *radio,
        }
    }

    /// Whether a packet that this one also takes changes nothing here.
    #[inline]
    pub(super) const fn follows(&self) -> bool {
        matches!(self, Self::Behind(_))
    }

    /// `all` advanced from `before` with a packet, which this one may have taken.
    pub(super) fn push(
        &mut self,
        before: &RadioUse,
        all: &RadioUse,
        took: impl FnOnce(&mut RadioUse),
    ) {
        let mut radio = self.radio(before);
        took(&mut radio);
        *self = if radio.is_abreast(all) {
            Self::Behind(all.beyond(&radio))
        } else {
            Self::Apart(radio)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    #[test]
    fn two_bursts_and_a_late_fin() {
        let model = RadioModel::default();
        let mut radio = RadioUse::default();
        for at in [0, S / 20, S / 10, 12 * S] {
            radio.push(&model, at, 0, false);
        }
        let ended = radio.ended(&model);
        assert_eq!((ended.promotions, ended.active_ns, ended.tail_ns), (2, S / 10, 20 * S));
        let expected = 2.0 * 0.2601 * 1210.7 + 0.1 * 1288.0 + 20.0 * 1060.0;
        assert!((ended.energy_mj(&model) - expected).abs() < 1e-6);
    }

    /// Kept as a difference or by itself, it equals a radio without every third packet.
    #[test]
    fn a_radio_without_some_packets() {
        let model = RadioModel::default();
        let (mut all, mut plain, mut without) = Default::default();
        for (n, gap) in [0, 50, 3, 700, 90, 12_000, 40, 40, 9_000, 15_000].into_iter().enumerate() {
            let at = (0..=n as i64).sum::<i64>() * 1_000_000 + gap * 1_000_000;
            let before: RadioUse = all;
            all.push(&model, at, 100 + n as u32, n % 2 == 0);
            let take = |radio: &mut RadioUse| {
                if n % 3 != 2 {
                    radio.push(&model, at, 100 + n as u32, n % 2 == 0);
                }
            };
            take(&mut plain);
            Without::push(&mut without, &before, &all, take);
            let radio = without.radio(&all);
            assert_eq!((radio.promotions, radio.on_ns()), (plain.promotions, plain.on_ns()));
            assert!((radio.energy_mj(&model) - plain.energy_mj(&model)).abs() < 1e-9, "{n}");
        }
    }

    #[test]
    fn bytes_cost_by_their_direction() {
        let model = RadioModel::default();
        let mut radio = RadioUse::default();
        radio.push(&model, 0, 125_000, true);
        let without = RadioUse { bytes: [0; 2], ..radio };
        let more = radio.energy_mj(&model) - without.energy_mj(&model);
        assert!((more - 438.39).abs() < 1e-9, "{more}: 1 Mbit costs one second at 1 Mbit/s");
    }
}
