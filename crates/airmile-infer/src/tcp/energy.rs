//! Radio energy by an RRC model: promotion, connected, tail.

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
    /// More for each Mbit/s towards the phone, in milliwatt.
    pub dl_mw_per_mbps: f64,
    /// More for each Mbit/s from the phone, in milliwatt.
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

/// What the radio of one user did.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RadioUse {
    last_ns: Option<i64>,
    /// Promotions.
    pub promotions: u64,
    /// Time with data in nanoseconds.
    pub active_ns: i64,
    /// Time in tails in nanoseconds.
    pub tail_ns: i64,
    /// Energy of bytes in millijoule.
    bytes_mj: f64,
}

impl RadioUse {
    /// Takes a packet.
    pub fn push(&mut self, model: &RadioModel, at_ns: i64, ip_bytes: u32, up: bool) {
        match self.last_ns {
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
        self.last_ns = Some(self.last_ns.map_or(at_ns, |last| last.max(at_ns)));
        let per_mbit = if up { model.ul_mw_per_mbps } else { model.dl_mw_per_mbps };
        self.bytes_mj += f64::from(ip_bytes) * 8e-6 * per_mbit;
    }

    /// As it is once the last tail is over.
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
        (promotions + active + tail) / 1e9 + self.bytes_mj
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

    #[test]
    fn bytes_cost_by_their_direction() {
        let model = RadioModel::default();
        let mut radio = RadioUse::default();
        radio.push(&model, 0, 125_000, true);
        let without = RadioUse { bytes_mj: 0.0, ..radio };
        let more = radio.energy_mj(&model) - without.energy_mj(&model);
        assert!((more - 438.39).abs() < 1e-9, "{more}: 1 Mbit costs one second at 1 Mbit/s");
    }
}
