//! QCut: figures 20 to 22 of its evaluation, and steps of the link. The available text is
//! the end of the paper, without values: rows have no values of the paper.

mod applications;
mod log;
mod steps;
mod upload;
mod watch;

use airmile_control::ControllerKind;
use airmile_control::qcut::Limit;
use airmile_emulate::{Discipline, ModemLogConfig, Scenario, UplinkQueueConfig};

pub(super) use applications::EXPERIMENT as FIGURE_22;
pub(super) use log::EXPERIMENT as LOG;
pub(super) use steps::EXPERIMENT as STEPS;
pub(super) use upload::{FIGURE_20, FIGURE_21};

const NO_VALUES: &str = "the available text of the paper has the figure's axes, but no values";

/// Mean uplink SNR in dB, and the base station's grants.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Signal {
    name: &'static str,
    ul_snr_mean_db: f64,
    snr_mean_db: f64,
}

/// Chosen for figure 21's axes: 8 and 3 Mbit/s.
const STRONG: Signal = Signal { name: "strong signal", ul_snr_mean_db: 12.0, snr_mean_db: 14.0 };
const WEAK: Signal = Signal { name: "weak signal", ul_snr_mean_db: 0.0, snr_mean_db: 2.0 };
/// Figure 20's second signal: between the two.
const FAIR: Signal = Signal { name: "fair signal", ul_snr_mean_db: 6.0, snr_mean_db: 8.0 };

impl Signal {
    fn set(self, scenario: &mut Scenario) {
        scenario.link.ul_snr_mean_db = self.ul_snr_mean_db;
        scenario.link.snr_mean_db = self.snr_mean_db;
    }
}

/// Initial rate of autorate's shaper in bit/s, which its user has to know: about the strong
/// signal's rate.
const AUTORATE_START_BPS: u64 = 6_000_000;

/// For rows that miss their bar: what the gate could do with all that the modem knows.
const BOUND_OF_LOG: &str = "bound: the same gate told at once, which reads each TTI when it ends";

/// The same modem without batches and without delay: the most that a gate can know.
fn told_at_once(modem_log: &ModemLogConfig) -> ModemLogConfig {
    ModemLogConfig { transmissions: 1, quiet_ms: 1, buffer_ms: 1, delay_ms: 0, ..modem_log.clone() }
}

/// Queueing of the phone with a congestion control.
#[derive(Debug, Clone, PartialEq)]
struct Variant {
    name: &'static str,
    discipline: Discipline,
    control: ControllerKind,
    /// With [`told_at_once`]: a bound, which has no bar.
    is_bound: bool,
}

impl Variant {
    fn new(name: &'static str, discipline: Discipline) -> Self {
        Self { name, discipline, control: ControllerKind::default(), is_bound: false }
    }

    fn bound(name: &'static str, discipline: Discipline) -> Self {
        Self { is_bound: true, ..Self::new(name, discipline) }
    }

    fn set(&self, scenario: &mut Scenario) {
        let modem_log = scenario.uplink_queue.as_ref().map(|queue| queue.modem_log.clone());
        let modem_log = modem_log.unwrap_or_default();
        scenario.uplink_queue = Some(UplinkQueueConfig {
            discipline: self.discipline.clone(),
            packets: 1_000, // Linux's txqueuelen
            modem_log: if self.is_bound { told_at_once(&modem_log) } else { modem_log },
        });
        scenario.phone_tcp.control = self.control;
    }
}

/// The variants of figure 21, and ours.
fn variants() -> Vec<Variant> {
    let qcut = |limit| Discipline::Qcut { limit };
    vec![
        Variant::new("Cubic", Discipline::Fifo),
        Variant { control: ControllerKind::Vegas, ..Variant::new("Vegas", Discipline::Fifo) },
        Variant::new("CoDel", Discipline::Codel { target_ms: 5 }),
        // Linux's tcp_limit_output_bytes at the time of the paper.
        Variant::new("TSQ", Discipline::Tsq { flow_bytes: 262_144 }),
        Variant::new("QCut-B (5 KB)", qcut(Limit::Bytes(5_000))),
        Variant::new("QCut-B (20 KB)", qcut(Limit::Bytes(20_000))),
        Variant::bound("QCut-B (5 KB) told at once", qcut(Limit::Bytes(5_000))),
        Variant::new("QCut-D (20 ms)", qcut(Limit::DelayMs(20))),
        Variant::bound("QCut-D (20 ms) told at once", qcut(Limit::DelayMs(20))),
        Variant::new(
            "gate by round trips (20 ms)",
            Discipline::RoundTrips { limit: Limit::DelayMs(20), told_base_ms: None },
        ),
        Variant::new("autorate's defaults", Discipline::Autorate { start_bps: AUTORATE_START_BPS }),
    ]
}
