//! What types do not check.

use airmile_model::radio::LTE_BANDWIDTHS_PRB;

use super::{
    Competing, LinkConfig, PathConfig, RlcConfig, RrcConfig, Scenario, ScenarioError, Traffic,
};
use crate::quic::QuicConfig;
use crate::tcp::Config;

/// Whether something is fine; the field, and what it may be.
type Check = (bool, &'static str, &'static str);

/// An IPv4 packet has 65,535 bytes at most (RFC 791), 20 of them its header and
/// up to 60 TCP's.
const MAX_MSS_BYTES: u16 = 65_535 - 20 - 60;

/// The first field of a link that is out of range, and what it may be.
fn link_fault(link: &LinkConfig) -> Option<&'static str> {
    let finite = f64::is_finite;
    let spread = |sigma_db: f64| sigma_db.is_finite() && sigma_db >= 0.0;
    let positive = |ms: f64| ms.is_finite() && ms > 0.0;
    let checks = [
        (finite(link.snr_mean_db), "snr_mean_db: a finite number"),
        (finite(link.ul_snr_mean_db), "ul_snr_mean_db: a finite number"),
        (finite(link.rsrp_mean_dbm), "rsrp_mean_dbm: a finite number"),
        (spread(link.fading_sigma_db), "fading_sigma_db: 0 or more"),
        (spread(link.shadowing_sigma_db), "shadowing_sigma_db: 0 or more"),
        (spread(link.subband_sigma_db), "subband_sigma_db: 0 or more"),
        (positive(link.fading_coherence_ms), "fading_coherence_ms: above 0"),
        (positive(link.shadowing_coherence_ms), "shadowing_coherence_ms: above 0"),
        (link.bler_target > 0.0 && link.bler_target < 0.5, "bler_target: between 0 and 0.5"),
    ];
    checks.into_iter().find(|(fine, _)| !fine).map(|(_, why)| why)
}

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
        match checks
            .into_iter()
            .chain(self.traffic_checks())
            .chain(self.nested_checks())
            .find(|(fine, ..)| !fine)
        {
            Some((_, field, why)) => Err(ScenarioError::OutOfRange { field, why }),
            None => Ok(()),
        }
    }

    /// What window senders do without: beside them it is refused, not ignored.
    fn traffic_checks(&self) -> [Check; 6] {
        let alone = self.traffic.is_empty();
        let plain = |path: &PathConfig| alone || *path == PathConfig::default();
        let why = "not beside traffic: window senders know no loss, jitter or rate limit";
        [
            (plain(&self.core.down), "core.down", why),
            (plain(&self.core.up), "core.up", why),
            (alone || self.proxy.is_none(), "proxy", "not beside traffic: use apps"),
            (alone || self.others.is_empty(), "others", "not beside traffic: use apps"),
            (alone || self.cell.numerology == 0, "cell.numerology", "0 beside traffic: use apps"),
            (
                alone || !self.has_transport_settings(),
                "phone_tcp, server_tcp or quic",
                "not beside traffic: window senders are no transport",
            ),
        ]
    }

    /// The same of what lies deeper: other phones, the secondary carrier, TCP.
    fn nested_checks(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        for other in &self.others {
            let fault = other.link.as_ref().and_then(link_fault);
            checks.push((fault.is_none(), "others.link", fault.unwrap_or("possible")));
            let why = "loss of 0 to 1, rates and queues above 0";
            checks.push((other.core.is_possible(), "others.core", why));
            checks.push((other.apps.len() <= 200, "others.apps", "at most 200"));
        }
        if let Some(second) = &self.cell.secondary {
            let users: usize = second.competing.iter().map(|c| usize::from(c.users())).sum();
            let offset_db = second.snr_offset_db;
            let possible = second.competing.iter().all(Competing::is_possible);
            checks.extend([
                (second.pci < 504, "cell.secondary.pci", "below 504"),
                (offset_db.is_finite(), "cell.secondary.snr_offset_db", "a finite number"),
                (possible, "cell.secondary.competing", "means above 0"),
                (users <= 2_000, "cell.secondary.competing", "at most 2000 users"),
            ]);
        }
        let fits = |config: &Config| (1..=MAX_MSS_BYTES).contains(&config.mss_bytes);
        checks.extend([
            (fits(&self.phone_tcp), "phone_tcp.mss_bytes", "1 to 65455"),
            (fits(&self.server_tcp), "server_tcp.mss_bytes", "1 to 65455"),
        ]);
        checks
    }

    fn has_transport_settings(&self) -> bool {
        let tcp = Config::default();
        self.phone_tcp != tcp || self.server_tcp != tcp || self.quic != QuicConfig::default()
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
