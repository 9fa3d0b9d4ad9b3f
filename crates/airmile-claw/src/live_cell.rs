//! Estimates the cell from a log while it is written, for CLAW's reports (MobiSys 2017, 4).
//!
//! [`LiveCell::push`] takes bytes of a modem log; [`LiveCell::look`] returns the current
//! report from a finished copy of the reader: normally records wait 2 s of log time for
//! late ones, which is too long for a sender. The emulated phones evaluate records in the
//! same way (the agent's `PhoneCell`).

use airmile::agent::PhoneCell;
use airmile_control::claw::Bottleneck;
use airmile_control::claw::feedback::FeedbackReport;
use airmile_decode::diag::LogReader;
use airmile_model::units::MS_NS;
use airmile_model::window::SegmentTti;
use airmile_model::{Direction, Record};

/// If the last step ended this long before the log did, the radio counts as idle, in ms
/// (chosen here: the delay with which modems write, and one report).
const IDLE_MS: i64 = 500;

/// State of the cell. See the [module](self).
#[derive(Debug, Clone)]
pub struct LiveCell {
    reader: LogReader,
    /// The first subscription with measurements.
    subscription: Option<u8>,
    log: CellRecords,
    /// The timing segment of the last report: times refer to it.
    segment: Option<u32>,
    last: FeedbackReport,
}

/// The records so far.
#[derive(Debug, Clone)]
struct CellRecords {
    cell: PhoneCell,
    /// Timing segment and TTI of the latest record.
    latest: Option<SegmentTti>,
}

impl Default for LiveCell {
    fn default() -> Self {
        Self::new()
    }
}

impl LiveCell {
    /// The state before the first byte.
    #[must_use]
    pub fn new() -> Self {
        Self {
            reader: LogReader::new(),
            subscription: None,
            log: CellRecords { cell: PhoneCell::new(), latest: None },
            segment: None,
            last: FeedbackReport::default(),
        }
    }

    /// Processes the next bytes of the log.
    pub fn push(&mut self, bytes: &[u8]) {
        let Self { reader, subscription, log, .. } = self;
        reader.push(bytes, &mut |tagged| {
            if matches!(tagged.record, Record::Measurement(_)) {
                subscription.get_or_insert(tagged.subscription);
            }
            if subscription.is_none_or(|chosen| chosen == tagged.subscription) {
                log.push(&tagged.record);
            }
        });
    }

    /// The modem was away: records of that time are lost.
    pub fn note_gap(&mut self) {
        let Self { reader, subscription, log, .. } = self;
        reader.note_gap(&mut |tagged| {
            if subscription.is_none_or(|chosen| chosen == tagged.subscription) {
                log.push(&tagged.record);
            }
        });
    }

    /// The current report, without number and time; `None` until the cell's load is known.
    /// The window is for a minimum RTT of `rtt_ns`. `away`: no data arrives from the modem.
    /// `used`: the server's window follows these reports; if not, capacity that the phone
    /// leaves unused does not indicate a bottleneck.
    pub fn look(&mut self, rtt_ns: i64, away: bool, used: bool) -> Option<FeedbackReport> {
        let rtt_ns = rtt_ns.max(0);
        let mut reader = self.reader.clone();
        let mut log = self.log.clone();
        let chosen = self.subscription;
        reader.finish(&mut |tagged| {
            if chosen.is_none_or(|chosen| chosen == tagged.subscription) {
                log.push(&tagged.record);
            }
        });
        let (segment, now) = log.latest?;
        let mut cell = log.cell;
        cell.finish(now);
        let losses = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        self.last.radio_losses = self.last.radio_losses.max(losses(cell.radio_losses()));
        self.last.queue_losses = self.last.queue_losses.max(losses(cell.queue_losses()));
        if self.segment.replace(segment) != Some(segment) {
            cell.restart();
        }
        let last = cell.round_trip(rtt_ns);
        let is_now = |at: SegmentTti| at.0 == segment && now.0 - at.1.0 <= IDLE_MS;
        // Without a recent grant the MCS is unknown, and with it the window.
        let recent = last.filter(|last| is_now(last.at));
        self.last.idle = away || recent.is_none_or(|step| step.capacity_bps.is_none());
        if let Some(recent) = recent {
            let now_ns = now.0 * MS_NS;
            if !used || recent.own_prb <= 0.0 {
                cell.rest();
            }
            cell.detect(now_ns, rtt_ns, &recent);
            if let Some(rate_bps) = recent.capacity_bps {
                self.last.w_claw_bytes = cell.window_bytes(rate_bps, rtt_ns) as u32;
                if used && recent.own_prb > 0.0 {
                    cell.reported(now_ns);
                }
            }
            self.last.load = recent.load;
            self.last.bottleneck = cell.bottleneck();
        } else {
            cell.rest();
        }
        self.log.cell.learn(cell);
        (self.last.w_claw_bytes > 0).then_some(self.last)
    }

    /// The reason for a missing report, if any.
    #[must_use]
    pub const fn why_none(&self) -> Option<&'static str> {
        if self.last.w_claw_bytes > 0 {
            None
        } else if self.subscription.is_none() {
            Some("no serving cell measurements so far (LTE's 0xB193): is it a modem log?")
        } else {
            Some("no downlink grants so far (LTE's 0xB173): the cell's rate is unknown")
        }
    }

    /// Where the bottleneck is.
    #[must_use]
    pub const fn bottleneck(&self) -> Bottleneck {
        self.log.cell.bottleneck()
    }
}

impl CellRecords {
    fn push(&mut self, record: &Record) {
        self.cell.push(record);
        self.cell.settle();
        let at = match record {
            Record::Grant(grant) if grant.dir == Direction::Dl => grant.position,
            Record::Measurement(measurement) => measurement.position,
            _ => return,
        };
        let same = self.latest.filter(|(segment, _)| *segment == at.timing_segment);
        let tti = same.map_or(at.tti, |(_, tti)| tti.max(at.tti));
        self.latest = Some((at.timing_segment, tti));
    }
}
