//! CLAW's program on the phone (MobiSys 2017, 4 and 5): passes the modem's records through
//! the cell load analyzer, and reports to the server the window for which the cell has
//! room.
//!
//! [`RadioAgent`] does no I/O and has no clock: records and the time go in, reports come
//! out. The emulator runs it on emulated phones.

use airmile::agent::{PhoneCell, RoundTrip};
use airmile_control::RadioNeed;
use airmile_control::claw::{Bottleneck, Feedback};
use airmile_emulate::{PhoneView, RadioReader, ReaderSetup};
use airmile_model::Record;
use airmile_model::units::MS_NS;

/// The analyzer's window if no round trip is known (the paper's figure 10).
const ROUND_TRIP_NS: i64 = 200 * MS_NS;

/// The program on the phone.
#[derive(Debug)]
pub struct RadioAgent {
    setup: ReaderSetup,
    cell: PhoneCell,
    told_losses: u64,
    next_report_ns: i64,
    sequence: u64,
    /// Whether the last report was that the radio is idle.
    reported_idle: bool,
}

impl RadioAgent {
    /// An agent before its first record.
    #[must_use]
    pub fn new(setup: ReaderSetup) -> Self {
        Self {
            setup,
            cell: PhoneCell::new(),
            told_losses: 0,
            next_report_ns: i64::MIN,
            sequence: 0,
            reported_idle: true,
        }
    }

    fn say(&mut self, last: &RoundTrip, rate_bps: f64, round_trip_ns: i64, idle: bool) -> Feedback {
        self.sequence += 1;
        self.reported_idle = idle;
        self.told_losses = self.cell.radio_losses();
        let detects = self.setup.config.detector && self.setup.need == RadioNeed::Free;
        Feedback {
            sequence: self.sequence,
            w_claw_bytes: self.cell.window_bytes(rate_bps, round_trip_ns) as u64,
            load: last.load,
            bottleneck: if detects { self.cell.bottleneck() } else { Bottleneck::Cellular },
            idle,
            radio_losses: if self.setup.config.losses { self.told_losses } else { 0 },
            queue_losses: 0,
        }
    }
}

impl RadioReader for RadioAgent {
    fn record(&mut self, record: &Record) {
        self.cell.push(record);
    }

    fn poll(&mut self, now_ns: i64, phone: PhoneView) -> Option<Feedback> {
        self.cell.settle();
        let round_trip_ns = phone.min_rtt_ns.unwrap_or(ROUND_TRIP_NS);
        let last = self.cell.round_trip(round_trip_ns)?;
        // Equation 12; CQIC's client sees its own allocation instead.
        let free_bps = last.capacity_bps?;
        let rate_bps = match self.setup.need {
            RadioNeed::Free => free_bps,
            RadioNeed::Allocated => free_bps * last.own_prb / last.free_prb.max(1.0),
        };
        if !phone.busy {
            self.cell.rest();
            let goes_idle = !self.reported_idle;
            return goes_idle.then(|| self.say(&last, rate_bps, round_trip_ns, true));
        }
        self.cell.detect(now_ns, round_trip_ns, &last);
        let lost = self.setup.config.losses && self.cell.radio_losses() > self.told_losses;
        if !lost && !self.reported_idle && now_ns < self.next_report_ns {
            return None;
        }
        self.cell.reported(now_ns);
        self.next_report_ns = now_ns + i64::from(self.setup.config.every_ms) * MS_NS;
        Some(self.say(&last, rate_bps, round_trip_ns, false))
    }
}
