//! What types do not check.

use airmile_model::radio::LTE_BANDWIDTHS_PRB;

use super::{Competing, RlcConfig, RrcConfig, Scenario, ScenarioError, Traffic};

/// Whether a text is a TDD pattern that carries data both ways.
fn is_tdd_pattern(text: &str) -> bool {
    let known = text.bytes().all(|c| matches!(c, b'D' | b'S' | b'U'));
    known && matches!(text.len(), 5 | 10) && text.contains('D') && text.contains('U')
}

impl Scenario {
    /// Checks what the types do not.
    ///
    /// # Errors
    /// The first field that is out of range.
    pub fn validate(&self) -> Result<(), ScenarioError> {
        let link = &self.link;
        let measurement = &self.measurement;
        let rlc_timers = |rlc: &RlcConfig| rlc.t_poll_retransmit_ms > 0 && rlc.t_reordering_ms > 0;
        let finite = [
            link.shadowing_sigma_db,
            link.subband_sigma_db,
            link.snr_mean_db,
            link.fading_sigma_db,
            link.rsrp_mean_dbm,
            link.ul_snr_mean_db,
            self.cell.data_to_reference_power,
            measurement.error_sigma_db,
            measurement.snr_error_sigma_db,
        ];
        let checks = [
            (self.duration_ms > 0, "duration_ms", "at least 1"),
            (self.first_tti < 10_240, "first_tti", "below 10240"),
            (LTE_BANDWIDTHS_PRB.contains(&self.cell.n_prb), "cell.n_prb", "a bandwidth of LTE"),
            (self.cell.pci < 504, "cell.pci", "below 504"),
            // A modem's clock counts from 1980 on.
            (
                (315_964_800..4_102_444_800).contains(&(self.epoch_ns / 1_000_000_000)),
                "epoch_ns",
                "a time between 1980 and 2100",
            ),
            (matches!(self.cell.n_tx_antennas, 1 | 2), "cell.n_tx_antennas", "1 or 2"),
            (finite.iter().all(|x| x.is_finite()), "link", "finite numbers"),
            (link.fading_sigma_db >= 0.0, "link.fading_sigma_db", "0 or more"),
            (link.fading_coherence_ms > 0.0, "link.fading_coherence_ms", "above 0"),
            (link.shadowing_sigma_db >= 0.0, "link.shadowing_sigma_db", "0 or more"),
            (link.shadowing_coherence_ms > 0.0, "link.shadowing_coherence_ms", "above 0"),
            (link.subband_sigma_db >= 0.0, "link.subband_sigma_db", "0 or more"),
            (
                link.bler_target > 0.0 && link.bler_target < 0.5,
                "link.bler_target",
                "between 0 and 0.5",
            ),
            (self.cell.data_to_reference_power > 0.0, "cell.data_to_reference_power", "above 0"),
            (measurement.period_ms > 0, "measurement.period_ms", "above 0"),
            (
                measurement.error_sigma_db >= 0.0 && measurement.snr_error_sigma_db >= 0.0,
                "measurement",
                "deviations of 0 or more",
            ),
            (
                (0.0..=1.0).contains(&measurement.interference_share),
                "measurement.interference_share",
                "0 to 1",
            ),
            (
                measurement.interference_load > 0.0 && measurement.interference_load <= 1.0,
                "measurement.interference_load",
                "above 0, up to 1",
            ),
            (rlc_timers(&self.dl_rlc), "dl_rlc", "timers above 0"),
            (rlc_timers(&self.ul_rlc), "ul_rlc", "timers above 0"),
            (
                self.cell.secondary.as_ref().is_none_or(|s| LTE_BANDWIDTHS_PRB.contains(&s.n_prb)),
                "cell.secondary.n_prb",
                "a bandwidth of LTE",
            ),
            (self.cell.numerology <= 2, "cell.numerology", "0 to 2"),
            (
                self.cell.tdd.as_deref().is_none_or(is_tdd_pattern),
                "cell.tdd",
                "5 or 10 of D, S and U, with a D and a U",
            ),
            (self.cell.queue_bytes >= 10_000, "cell.queue_bytes", "at least 10000"),
            (self.core.is_possible(), "core", "loss of 0 to 1, rates and queues above 0"),
            (self.rrc.as_ref().is_none_or(RrcConfig::is_possible), "rrc", "times above 0"),
            (
                self.apps.is_empty() || self.traffic.is_empty(),
                "traffic",
                "not beside apps: either windows or transports",
            ),
            (self.apps.len() <= 200, "apps", "at most 200"),
            (self.other_phones() <= 200, "others", "at most 200 phones"),
            (self.uplink.max_prb >= 4, "uplink.max_prb", "at least 4"),
            (self.uplink.max_prb <= self.cell.n_prb, "uplink.max_prb", "at most cell.n_prb"),
            (self.uplink.sr_period_ms > 0, "uplink.sr_period_ms", "above 0"),
            (self.uplink.grant_every_tti > 0, "uplink.grant_every_tti", "above 0"),
            (self.competing_users() <= 2_000, "competing", "at most 2000 users"),
            (self.competing.iter().all(Competing::is_possible), "competing", "means above 0"),
            (
                self.traffic.iter().all(Traffic::is_possible),
                "traffic",
                "sizes and rates above 0, windows of 10 segments or more",
            ),
        ];
        match checks.into_iter().find(|(fine, ..)| !fine) {
            Some((_, field, why)) => Err(ScenarioError::OutOfRange { field, why }),
            None => Ok(()),
        }
    }

    /// Other phones with transports.
    pub(crate) fn other_phones(&self) -> usize {
        self.others.iter().map(|other| usize::from(other.count)).sum()
    }

    /// Users with traffic of bytes.
    pub(crate) fn competing_users(&self) -> usize {
        self.competing.iter().map(|competing| usize::from(competing.users())).sum()
    }
}
