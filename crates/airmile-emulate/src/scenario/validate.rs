//! Checks of scenarios that types do not express.

use airmile_model::radio::LTE_BANDWIDTHS_PRB;

use super::{
    Abr, AppConfig, CellConfig, Competing, CoreConfig, Discipline, INITIAL_WINDOW_SEGMENTS,
    LinkConfig, MSS_BYTES, MeasurementConfig, PathConfig, QuicConfig, RlcConfig, RrcConfig,
    Scenario, ScenarioError, SplitConfig, TcpConfig, Traffic, UplinkConfig, UplinkQueueConfig,
    VideoConfig, WindowConfig, Workload,
};

/// Maximum duration of a run in ms (chosen here: a day, as for link traces).
const DAY_MS: u32 = 86_400_000;

/// Maximum plausible jitter of a path, in ms (chosen here: a minute).
const MOST_JITTER_MS: f64 = 60_000.0;

/// An IPv4 packet has at most 65,535 bytes (RFC 791), 20 of them its header and up to 60
/// TCP's.
const MOST_MSS_BYTES: u16 = 65_535 - 20 - 60;

/// Minimum segment that carries data with the longest options (Linux: TCP_MIN_MSS).
const LEAST_MSS_BYTES: u16 = 88;

const BANDWIDTHS: &str = "6, 15, 25, 50, 75 or 100";

/// The first field that is out of range.
#[derive(Debug, Default)]
struct Checks {
    found: Option<ScenarioError>,
}

impl Checks {
    /// Records a field that is not `fine`, with its allowed values.
    fn that(&mut self, fine: bool, field: impl Into<String>, why: impl Into<String>) {
        if !fine && self.found.is_none() {
            self.found = Some(ScenarioError::OutOfRange { field: field.into(), why: why.into() });
        }
    }

    fn within(&mut self, value: f64, from: f64, to: f64, field: impl Into<String>) {
        self.that((from..=to).contains(&value), field, format!("{from} to {to}"));
    }

    fn finite(&mut self, value: f64, field: impl Into<String>) {
        self.that(value.is_finite(), field, "a finite number");
    }

    fn positive(&mut self, value: f64, field: impl Into<String>) {
        self.that(value.is_finite() && value > 0.0, field, "above 0");
    }

    fn deviation(&mut self, value: f64, field: impl Into<String>) {
        self.that(value.is_finite() && value >= 0.0, field, "0 or more");
    }

    fn at_least_1(&mut self, value: u64, field: impl Into<String>) {
        self.that(value > 0, field, "at least 1");
    }

    /// Checks that names are unique.
    fn names<'a>(&mut self, names: impl Iterator<Item = &'a str>, list: &str, key: &str) {
        let mut seen: Vec<&str> = Vec::new();
        for (n, name) in names.enumerate() {
            let field = format!("{list}.{n}.{key}");
            self.that(!name.trim().is_empty(), &field, "not empty");
            self.that(
                !seen.contains(&name),
                &field,
                format!("different from `{name}`, which is used before"),
            );
            seen.push(name);
        }
    }
}

impl Scenario {
    /// Checks everything that types do not express.
    ///
    /// # Errors
    /// The first field that is out of range.
    pub fn validate(&self) -> Result<(), ScenarioError> {
        let mut checks = Checks::default();
        let c = &mut checks;
        c.that((1..=DAY_MS).contains(&self.duration_ms), "duration_ms", "1 to 86400000, a day");
        c.that(self.tail_ms <= DAY_MS, "tail_ms", "0 to 86400000, a day");
        c.that(self.first_tti < 10_240, "first_tti", "0 to 10239");
        // A modem's clock counts from 1980 on.
        let epoch_s = self.epoch_ns.div_euclid(1_000_000_000);
        let why = "a time between 1980 and 2100";
        c.that((315_964_800..4_102_444_800).contains(&epoch_s), "epoch_ns", why);
        cell(c, &self.cell, "cell");
        if let Some(config) = &self.split {
            split(c, config);
            self.check_with_split(c);
        }
        link(c, &self.link, "link");
        measurement(c, &self.measurement);
        rlc(c, &self.dl_rlc, "dl_rlc");
        rlc(c, &self.ul_rlc, "ul_rlc");
        uplink(c, &self.uplink, self.cell.n_prb);
        if let Some(config) = &self.uplink_queue {
            uplink_queue(c, config);
        }
        core(c, &self.core, "core");
        if let Some(config) = &self.rrc {
            rrc(c, config);
        }
        c.that(
            self.apps.is_empty() || self.traffic.is_empty(),
            "traffic",
            "unset with apps: either windows or transports",
        );
        self.check_with_traffic(c);
        apps(c, &self.apps, "apps");
        tcp(c, &self.phone_tcp, "phone_tcp");
        tcp(c, &self.server_tcp, "server_tcp");
        if let Some(proxy) = &self.proxy {
            tcp(c, &proxy.tcp, "proxy.tcp");
        }
        c.that(self.other_phones() <= 500, "others", "at most 500 phones");
        c.at_least_1(self.radio_reports.every_ms.into(), "radio_reports.every_ms");
        c.within(self.radio_reports.loss, 0.0, 1.0, "radio_reports.loss");
        for (n, other) in self.others.iter().enumerate() {
            if let Some(config) = &other.link {
                link(c, config, &format!("others.{n}.link"));
            }
            core(c, &other.core, &format!("others.{n}.core"));
            apps(c, &other.apps, &format!("others.{n}.apps"));
        }
        c.that(self.competing_users() <= 2_000, "competing", "at most 2000 users");
        competing(c, &self.competing, "competing");
        let ids = self.traffic.iter().map(Traffic::id);
        c.names(ids, "traffic", "id");
        for (n, entry) in self.traffic.iter().enumerate() {
            traffic(c, entry, &format!("traffic.{n}"));
        }
        for (n, cause) in self.causes.iter().enumerate() {
            c.that(!cause.label.trim().is_empty(), format!("causes.{n}.label"), "not empty");
            let later = cause.to_ms.is_none_or(|to| to > cause.from_ms);
            c.that(later, format!("causes.{n}.to_ms"), "after from_ms");
        }
        checks.found.map_or(Ok(()), Err)
    }

    /// Rejects options that window senders do not support.
    fn check_with_traffic(&self, c: &mut Checks) {
        if self.traffic.is_empty() {
            return;
        }
        let paths = [(&self.core.down, "core.down"), (&self.core.up, "core.up")];
        for (path, field) in paths {
            let plain = *path == PathConfig::default();
            let why = "unset with traffic: window senders support no loss, jitter or rate limit";
            c.that(plain, field, why);
        }
        c.that(self.uplink_queue.is_none(), "uplink_queue", "unset with traffic: use apps");
        c.that(self.proxy.is_none(), "proxy", "unset with traffic: use apps");
        c.that(self.others.is_empty(), "others", "unset with traffic: use apps");
        c.that(self.cell.numerology == 0, "cell.numerology", "0 with traffic: use apps");
        let default = TcpConfig::default();
        let plain = self.phone_tcp == default && self.server_tcp == default;
        c.that(
            plain && self.quic == QuicConfig::default(),
            "phone_tcp, server_tcp or quic",
            "unset with traffic: window senders are not a transport",
        );
    }

    /// Rejects options that a split bearer does not support.
    fn check_with_split(&self, c: &mut Checks) {
        let lte = self.cell.nr.is_none() && self.cell.numerology == 0;
        c.that(lte, "cell", "LTE with split: no nr, numerology 0");
        c.that(self.cell.secondary.is_none(), "cell.secondary", "unset with split");
        c.that(self.traffic.is_empty(), "traffic", "unset with split: use apps");
        c.that(self.others.is_empty(), "others", "unset with split");
        c.that(self.rrc.is_none(), "rrc", "unset with split: the phone is always connected");
        c.that(self.uplink_queue.is_none(), "uplink_queue", "unset with split");
        let acknowledged = !self.dl_rlc.unacknowledged && !self.ul_rlc.unacknowledged;
        c.that(acknowledged, "dl_rlc or ul_rlc", "acknowledged with split");
    }

    /// Valid settings that are probably unintended.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut out = Vec::new();
        for port in self.proxy.iter().flat_map(|proxy| &proxy.ports).map(|port| port.port) {
            if !self.apps.iter().any(|app| app.port == port) {
                out.push(format!("proxy.ports: no app uses port {port}: nothing is split there"));
            }
        }
        let starts = self.apps.iter().map(|app| (app.name.as_str(), app.start_ms));
        for (name, start_ms) in starts.chain(self.traffic.iter().map(|t| (t.id(), t.start_ms()))) {
            if start_ms >= self.duration_ms {
                out.push(format!("`{name}` would start at {start_ms} ms, after the run's end"));
            }
        }
        if self.apps.is_empty() && self.traffic.is_empty() {
            out.push("the phone has no transfers: there are no apps and no traffic".to_owned());
        }
        out
    }

    /// Other phones with transports.
    pub(crate) fn other_phones(&self) -> usize {
        self.others.iter().map(|other| usize::from(other.count)).sum()
    }

    /// Users with byte traffic.
    pub(crate) fn competing_users(&self) -> usize {
        self.competing.iter().map(|competing| usize::from(competing.users())).sum()
    }
}

/// Whether a text is a TDD pattern that carries data both ways.
fn is_tdd_pattern(text: &str) -> bool {
    let known = text.bytes().all(|c| matches!(c, b'D' | b'S' | b'U'));
    known && matches!(text.len(), 5 | 10) && text.contains('D') && text.contains('U')
}

fn cell(c: &mut Checks, cell: &CellConfig, at: &str) {
    let field = |name: &str| format!("{at}.{name}");
    let widths = |n_prb: u16| match cell.nr {
        // TS 38.101-1, table 5.3.2-1; TS 38.211, 4.4.2.
        Some(_) => (11..=275).contains(&n_prb),
        None => LTE_BANDWIDTHS_PRB.contains(&n_prb),
    };
    let (bandwidths, last_pci) = match cell.nr {
        Some(_) => ("11 to 275 with cell.nr", 1_007),
        None => (BANDWIDTHS, 503),
    };
    c.that(widths(cell.n_prb), field("n_prb"), bandwidths);
    c.that(cell.pci <= last_pci, field("pci"), format!("0 to {last_pci}"));
    c.that(matches!(cell.n_tx_antennas, 1 | 2), field("n_tx_antennas"), "1 or 2");
    c.positive(cell.data_to_reference_power, field("data_to_reference_power"));
    c.that(cell.queue_bytes >= 10_000, field("queue_bytes"), "at least 10000");
    // maxHARQ-Tx of TS 36.331, MAC-MainConfig: 1 to 28.
    let transmissions = (1..=28).contains(&cell.dl_harq_transmissions);
    c.that(transmissions, field("dl_harq_transmissions"), "1 to 28");
    c.that(cell.numerology <= 3, field("numerology"), "0 to 3");
    if let Some(nr) = &cell.nr {
        c.that((1..=4).contains(&nr.layers), field("nr.layers"), "1 to 4");
        c.that((1..=14).contains(&nr.symbols), field("nr.symbols"), "1 to 14");
        let data = u16::from(nr.dmrs_res) < 12 * u16::from(nr.symbols);
        c.that(data, field("nr.dmrs_res"), "less than 12 times nr.symbols");
        c.that(matches!(nr.rlc_sn_bits, 12 | 18), field("nr.rlc_sn_bits"), "12 or 18");
    }
    c.that(
        cell.tdd.as_deref().is_none_or(is_tdd_pattern),
        field("tdd"),
        "5 or 10 of D, S and U, with a D and a U",
    );
    if let Some(secondary) = &cell.secondary {
        c.that(widths(secondary.n_prb), field("secondary.n_prb"), bandwidths);
        c.that(secondary.pci <= last_pci, field("secondary.pci"), format!("0 to {last_pci}"));
        c.finite(secondary.snr_offset_db, field("secondary.snr_offset_db"));
        competing(c, &secondary.competing, &field("secondary.competing"));
    }
}

fn split(c: &mut Checks, split: &SplitConfig) {
    cell(c, &split.cell, "split.cell");
    c.that(split.cell.nr.is_some(), "split.cell.nr", "set: the second leg is NR's");
    c.that(split.cell.secondary.is_none(), "split.cell.secondary", "absent");
    competing(c, &split.competing, "split.competing");
    c.finite(split.snr_offset_db, "split.snr_offset_db");
    let fits = (4..=split.cell.n_prb).contains(&split.uplink_max_prb);
    c.that(fits, "split.uplink_max_prb", format!("4 to {}", split.cell.n_prb));
    c.at_least_1(split.lte_queue_bytes, "split.lte_queue_bytes");
    c.at_least_1(split.nr_queue_bytes, "split.nr_queue_bytes");
    c.that(split.x2_delay_ms <= 1_000, "split.x2_delay_ms", "0 to 1000");
    c.at_least_1(split.t_reordering_ms.into(), "split.t_reordering_ms");
}

fn link(c: &mut Checks, link: &LinkConfig, at: &str) {
    let field = |name: &str| format!("{at}.{name}");
    c.finite(link.snr_mean_db, field("snr_mean_db"));
    c.finite(link.ul_snr_mean_db, field("ul_snr_mean_db"));
    c.deviation(link.fading_sigma_db, field("fading_sigma_db"));
    c.positive(link.fading_coherence_ms, field("fading_coherence_ms"));
    c.deviation(link.shadowing_sigma_db, field("shadowing_sigma_db"));
    c.positive(link.shadowing_coherence_ms, field("shadowing_coherence_ms"));
    c.deviation(link.subband_sigma_db, field("subband_sigma_db"));
    // What phones report: TS 36.133, 9.1.4.
    c.within(link.rsrp_mean_dbm, -140.0, -44.0, field("rsrp_mean_dbm"));
    let bler = link.bler_target > 0.0 && link.bler_target < 0.5;
    c.that(bler, field("bler_target"), "above 0, below 0.5");
}

fn measurement(c: &mut Checks, measurement: &MeasurementConfig) {
    c.at_least_1(measurement.period_ms.into(), "measurement.period_ms");
    c.deviation(measurement.error_sigma_db, "measurement.error_sigma_db");
    c.deviation(measurement.snr_error_sigma_db, "measurement.snr_error_sigma_db");
    c.within(measurement.interference_share, 0.0, 1.0, "measurement.interference_share");
    let load = measurement.interference_load > 0.0 && measurement.interference_load <= 1.0;
    c.that(load, "measurement.interference_load", "above 0, up to 1");
}

fn rlc(c: &mut Checks, rlc: &RlcConfig, at: &str) {
    c.at_least_1(rlc.t_poll_retransmit_ms.into(), format!("{at}.t_poll_retransmit_ms"));
    c.at_least_1(rlc.t_reordering_ms.into(), format!("{at}.t_reordering_ms"));
}

fn uplink(c: &mut Checks, uplink: &UplinkConfig, n_prb: u16) {
    let fits = (4..=n_prb).contains(&uplink.max_prb);
    c.that(fits, "uplink.max_prb", format!("4 to cell.n_prb, which is {n_prb}"));
    c.at_least_1(uplink.sr_period_ms.into(), "uplink.sr_period_ms");
    c.at_least_1(uplink.grant_every_tti.into(), "uplink.grant_every_tti");
}

fn uplink_queue(c: &mut Checks, config: &UplinkQueueConfig) {
    use airmile_control::qcut::Limit;
    let of = |field: &str| format!("uplink_queue.discipline.{field}");
    match config.discipline {
        Discipline::Fifo => {}
        Discipline::Codel { target_ms } | Discipline::FqCodel { target_ms } => {
            c.at_least_1(target_ms.into(), of("target_ms"));
        }
        Discipline::Tsq { flow_bytes } => c.at_least_1(flow_bytes, of("flow_bytes")),
        Discipline::Qcut { limit }
        | Discipline::RoundTrips { limit, .. }
        | Discipline::Stop { limit }
        | Discipline::Htb { limit, .. } => match limit {
            Limit::Bytes(bytes) => c.at_least_1(bytes, of("limit.bytes")),
            Limit::DelayMs(ms) => c.at_least_1(ms.into(), of("limit.delay_ms")),
        },
        Discipline::Autorate { start_bps } => c.at_least_1(start_bps, of("start_bps")),
    }
    c.at_least_1(config.packets.into(), "uplink_queue.packets");
    let log = &config.modem_log;
    c.at_least_1(log.transmissions.into(), "uplink_queue.modem_log.transmissions");
    c.at_least_1(log.buffer_ms.into(), "uplink_queue.modem_log.buffer_ms");
    let later = log.silent_ms.is_none_or(|(from, to)| from < to);
    c.that(later, "uplink_queue.modem_log.silent_ms", "from, and a later end");
}

fn core(c: &mut Checks, core: &CoreConfig, at: &str) {
    path(c, &core.down, &format!("{at}.down"));
    path(c, &core.up, &format!("{at}.up"));
}

fn path(c: &mut Checks, path: &PathConfig, at: &str) {
    c.within(path.jitter_ms, 0.0, MOST_JITTER_MS, format!("{at}.jitter_ms"));
    c.within(path.loss, 0.0, 1.0, format!("{at}.loss"));
    if let Some(limit) = &path.limit {
        c.at_least_1(limit.rate_bps, format!("{at}.limit.rate_bps"));
        c.at_least_1(limit.queue_bytes, format!("{at}.limit.queue_bytes"));
        let later = limit.to_ms.is_none_or(|to| to > limit.from_ms);
        c.that(later, format!("{at}.limit.to_ms"), "after from_ms");
    }
}

fn rrc(c: &mut Checks, rrc: &RrcConfig) {
    c.at_least_1(rrc.paging_ms.into(), "rrc.paging_ms");
    c.at_least_1(rrc.tail_ms.into(), "rrc.tail_ms");
    if let Some(drx) = &rrc.drx {
        c.at_least_1(drx.cycle_ms.into(), "rrc.drx.cycle_ms");
        let listens = (1..=drx.cycle_ms).contains(&drx.on_ms);
        c.that(listens, "rrc.drx.on_ms", format!("1 to cycle_ms, which is {}", drx.cycle_ms));
    }
}

fn tcp(c: &mut Checks, tcp: &TcpConfig, at: &str) {
    let mss = (LEAST_MSS_BYTES..=MOST_MSS_BYTES).contains(&tcp.mss_bytes);
    c.that(mss, format!("{at}.mss_bytes"), format!("{LEAST_MSS_BYTES} to {MOST_MSS_BYTES}"));
}

fn apps(c: &mut Checks, apps: &[AppConfig], at: &str) {
    c.that(apps.len() <= 200, at, "at most 200");
    c.names(apps.iter().map(|app| app.name.as_str()), at, "name");
    for (n, app) in apps.iter().enumerate() {
        workload(c, &app.workload, &format!("{at}.{n}.workload"));
    }
}

fn workload(c: &mut Checks, workload: &Workload, at: &str) {
    let field = |name: &str| format!("{at}.{name}");
    match *workload {
        Workload::Video(ref config) => video(c, config, at),
        Workload::Paced { rate_bps, block_bytes, .. } => {
            c.at_least_1(rate_bps, field("rate_bps"));
            c.at_least_1(block_bytes.unwrap_or(1), field("block_bytes"));
        }
        Workload::OnOff { on_ms, rate_bps, .. } => {
            c.at_least_1(on_ms, field("on_ms"));
            c.at_least_1(rate_bps.unwrap_or(1), field("rate_bps"));
        }
        Workload::SlowReader { read_rate_bps, .. } => {
            c.at_least_1(read_rate_bps, field("read_rate_bps"));
        }
        Workload::Interactive { gap_ms, period_ms, .. } => {
            let one = period_ms.is_none() || gap_ms == 0;
            c.that(one, field("period_ms"), "unset with gap_ms");
        }
        Workload::File { .. }
        | Workload::Web(_)
        | Workload::Upload { .. }
        | Workload::Periodic { .. } => {}
    }
}

fn video(c: &mut Checks, config: &VideoConfig, at: &str) {
    let field = |name: &str| format!("{at}.{name}");
    let rates = &config.bitrates_bps;
    c.that(!rates.is_empty(), field("bitrates_bps"), "at least one");
    let ascending = rates.is_sorted_by(|a, b| a < b) && rates.first() != Some(&0);
    c.that(ascending, field("bitrates_bps"), "above 0 and ascending");
    c.that(!config.chosen_bps.contains(&0), field("chosen_bps"), "above 0");
    c.at_least_1(config.segment_ms, field("segment_ms"));
    c.at_least_1(config.duration_ms, field("duration_ms"));
    c.within(config.variation, 0.0, 1.0, field("variation"));
    if let Abr::Rate { safety } = config.abr {
        c.positive(safety, field("abr.safety"));
    }
}

fn competing(c: &mut Checks, competing: &[Competing], at: &str) {
    for (n, kind) in competing.iter().enumerate() {
        match *kind {
            Competing::Web { objects, .. } => {
                c.at_least_1(objects.into(), format!("{at}.{n}.objects"));
            }
            Competing::Video { segment_ms, .. } => {
                c.at_least_1(segment_ms.into(), format!("{at}.{n}.segment_ms"));
            }
            Competing::Sporadic { .. } | Competing::FullBuffer { .. } | Competing::OnOff { .. } => {
            }
        }
    }
}

fn traffic(c: &mut Checks, traffic: &Traffic, at: &str) {
    let field = |name: &str| format!("{at}.{name}");
    let opens = |c: &mut Checks, window: &WindowConfig| {
        let least = INITIAL_WINDOW_SEGMENTS * MSS_BYTES;
        let fine = u64::from(window.max_bytes) >= least;
        c.that(fine, field("window.max_bytes"), format!("at least {least}, ten segments"));
    };
    match traffic {
        Traffic::Download { bytes, window, .. } | Traffic::Upload { bytes, window, .. } => {
            opens(c, window);
            c.at_least_1(*bytes, field("bytes"));
        }
        Traffic::Paced { bytes, rate_bps, .. } => {
            c.at_least_1(*bytes, field("bytes"));
            c.at_least_1(*rate_bps, field("rate_bps"));
        }
        Traffic::Video { segments, segment_ms, bitrate_bps, window, .. } => {
            opens(c, window);
            c.at_least_1((*segments).into(), field("segments"));
            c.at_least_1((*segment_ms).into(), field("segment_ms"));
            let bits = bitrate_bps.checked_mul(u64::from(*segment_ms));
            let fine = bits.is_some_and(|bits| bits >= 8_000);
            c.that(fine, field("bitrate_bps"), "at least a byte a segment, within 64 bits");
        }
    }
}
