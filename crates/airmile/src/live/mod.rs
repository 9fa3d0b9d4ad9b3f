//! The same engine as for files, fed with bytes as they arrive.
//!
//! [`Live::push`] takes bytes of a modem log; [`Live::take_bursts`] returns the decided bursts,
//! which equal those of the finished file. Records wait 2 s of log time for late ones, and
//! bursts are judged an epoch at a time, which is too long for a live view. [`Live::look`]
//! therefore returns the result for a file that ends now, from a copy of the engine: it is
//! provisional, and as recent as the last bytes.
//!
//! Memory is bounded: of the transfers that can no longer change, the last [`KEPT_TRANSFERS`]
//! of each direction are kept.
//!
//! ```no_run
//! let mut live = airmile::live::Live::new(airmile::RadioOptions::default())?;
//! live.push(&std::fs::read("log.mi2log").unwrap_or_default());
//! println!("{}", live.look().session.says);
//! # Ok::<(), airmile::Error>(())
//! ```

pub use airmile_packets::live as packets;

use std::collections::{BTreeMap, BTreeSet};

use airmile_decode::diag::{LogReader, Tagged};
use airmile_model::{Bound, Burst, Direction, Problem};
use airmile_radio::evidence::EvidenceCounts;
use schemars::JsonSchema;
use serde::Serialize;

use crate::analyse::aligned::AlignedInputs;
use crate::analyse::diagnose::{SessionVerdict, TransferDiagnosis, conclude};
use crate::analyse::radio::{CellLoad, Missing, RadioOptions, report};
use crate::analyse::subscription::{Keep, ServingCell, SubscriptionAnalysis, TimedBurst};
use crate::session::Loaded;
use airmile_io::error::{Error, Result};

/// Number of kept transfers of each direction that can no longer change (chosen here: some
/// screens).
pub const KEPT_TRANSFERS: usize = 64;

/// Whether a finding can still change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It is in progress.
    Open,
    /// It has ended; late records can still change it.
    Provisional,
    /// It is final.
    Decided,
}

/// A burst during the log.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LiveBurst {
    /// Whether it can still change.
    pub state: State,
    /// Start in microseconds since the Unix epoch, by the modem's clock.
    pub start_us: Option<i64>,
    /// End in microseconds since the Unix epoch, by the modem's clock.
    pub end_us: Option<i64>,
    /// Throughput time in ms.
    pub duration_ms: f64,
    /// Mean rate in bit/s while data waited: bytes and time without those of the last TTI.
    pub rate_bps: f64,
    /// The burst.
    #[serde(flatten)]
    pub burst: Burst,
}

/// A transfer during the log.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LiveTransfer {
    /// Whether it can still change.
    pub state: State,
    /// The verdict and its evidence.
    #[serde(flatten)]
    pub diagnosis: TransferDiagnosis,
}

/// The input so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Intake {
    /// Bytes.
    pub bytes: u64,
    /// Frames, good and bad.
    pub frames: u64,
    /// Frames with a bad CRC.
    pub bad_frames: u64,
    /// Last write time by the modem's clock, in microseconds since the Unix epoch.
    pub last_us: Option<i64>,
    /// Records that arrived after their time had been judged.
    pub late_records: u64,
    /// Whether bytes could not be read. A frame that is truncated where the log was rotated, or is
    /// still being written, is not damage.
    pub damaged: bool,
    /// Problems beyond those that are reported with their text.
    pub more_problems: u64,
}

impl Intake {
    /// With that of the next log, so far.
    fn and(self, reader: &LogReader) -> Self {
        let stats = reader.stats();
        Self {
            bytes: self.bytes + stats.bytes,
            frames: self.frames + stats.frames,
            bad_frames: self.bad_frames + stats.bad_frames,
            last_us: stats.last_ns.map(|ns| ns.div_euclid(1_000)),
            late_records: self.late_records + stats.late_records,
            damaged: self.damaged | stats.problems.damaged,
            more_problems: self.more_problems + stats.problems.more,
        }
    }
}

/// The result for a file that ends now, for its last part.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LiveView {
    /// The input so far.
    pub intake: Intake,
    /// The verdict on the transfers below together.
    pub session: SessionVerdict,
    /// The last transfers, by their start.
    pub transfers: Vec<LiveTransfer>,
    /// Undecided bursts, by their start.
    pub bursts: Vec<LiveBurst>,
    /// Load of the primary cell in the last window with a known load.
    pub cell_load: Option<CellLoad>,
    /// The amount of each kind of evidence.
    pub evidence_counts: EvidenceCounts,
    /// Serving cells.
    pub cells: Vec<ServingCell>,
    /// Downlink bandwidth in PRBs.
    pub n_prb_cell: Option<u16>,
    /// The analysed subscription.
    pub subscription: u8,
    /// What is missing for a better result, and how to capture it.
    pub missing: Vec<Missing>,
}

/// Messages of several tasks are not written in order (a few ms in logs; the rest is margin).
const OUT_OF_ORDER_NS: i64 = 1_000_000_000;

/// The engine. See the [module](self).
#[derive(Debug, Clone)]
pub struct Live {
    options: RadioOptions,
    /// The logs before this one.
    before: Intake,
    reader: LogReader,
    /// Problems of the reader that were taken.
    taken_problems: usize,
    by_subscription: BTreeMap<u8, SubscriptionAnalysis>,
}

impl Live {
    /// An engine without input.
    ///
    /// # Errors
    /// The options contradict each other, or limit the time, which is not possible for a live log.
    pub fn new(options: RadioOptions) -> Result<Self> {
        options.check()?;
        if options.limits.are_given() {
            return Err(Error::Option("live: --from and --to are for files".into()));
        }
        Ok(Self::after(Intake::default(), options))
    }

    fn after(before: Intake, options: RadioOptions) -> Self {
        let (reader, by_subscription) = (LogReader::new(), BTreeMap::new());
        Self { options, before, reader, taken_problems: 0, by_subscription }
    }

    fn read(&mut self, read: impl FnOnce(&mut LogReader, &mut dyn FnMut(Tagged))) {
        let Self { options, reader, by_subscription, .. } = self;
        read(reader, &mut |tagged| {
            let new = || SubscriptionAnalysis::new(options, &[], Keep::Lists);
            by_subscription.entry(tagged.subscription).or_insert_with(new).push(&tagged.record);
        });
    }

    /// Whether the log that begins with these bytes begins before the end of this one, by more than
    /// messages are out of order; `None` if they hold no time.
    #[must_use]
    pub fn begins_before_end(&self, head: &[u8]) -> Option<bool> {
        let first_ns = LogReader::first_stamp_ns(head)?;
        let last_ns = self.reader.stats().last_ns;
        Some(last_ns.is_some_and(|last_ns| first_ns < last_ns.saturating_sub(OUT_OF_ORDER_NS)))
    }

    /// The engine of another log: the input is counted on.
    #[must_use]
    pub fn anew(&self) -> Self {
        Self::after(self.before.and(&self.reader), self.options)
    }

    /// Takes the next bytes of the log.
    pub fn push(&mut self, bytes: &[u8]) {
        self.read(|reader, sink| reader.push(bytes, sink));
    }

    /// The modem was absent: what it logged during that time is lost.
    pub fn note_gap(&mut self) {
        self.read(|reader, sink| reader.note_gap(sink));
    }

    /// Bursts of the subscription decided since the last call, downlink before uplink, each in
    /// order.
    pub fn take_bursts(&mut self) -> Vec<LiveBurst> {
        let chosen = self.subscription();
        let mut out = Vec::new();
        for (subscription, tracks) in &mut self.by_subscription {
            let bursts = tracks.take_bursts();
            if *subscription == chosen {
                out.extend(bursts.into_iter().map(|burst| live(burst, State::Decided)));
            }
        }
        out
    }

    /// The result for a file that ends now: undecided findings and the last transfers. Take decided
    /// bursts first.
    #[must_use]
    pub fn look(&mut self) -> LiveView {
        let chosen = self.subscription();
        let mut whole = BTreeSet::new();
        if let Some(tracks) = self.by_subscription.get_mut(&chosen) {
            tracks.gather();
            whole.extend(tracks.whole().map(str::to_owned));
        }
        let view = self.clone().into_view(chosen, &whole);
        self.by_subscription.values_mut().for_each(|tracks| tracks.retire(KEPT_TRANSFERS));
        view
    }

    /// Ends the log: the view includes bursts not yet taken, all decided.
    #[must_use]
    pub fn finish(self) -> LiveView {
        let chosen = self.subscription();
        let mut view = self.into_view(chosen, &BTreeSet::new());
        view.transfers.iter_mut().for_each(|transfer| transfer.state = State::Decided);
        view.bursts.iter_mut().for_each(|burst| burst.state = State::Decided);
        view
    }

    /// The input has ended by itself: a truncated last frame is lost.
    pub fn end_input(&mut self) {
        self.read(|reader, sink| reader.finish(sink));
    }

    /// Problems found since the last call.
    pub fn take_problems(&mut self) -> Vec<Problem> {
        let new = self.reader.problems().get(self.taken_problems..).unwrap_or_default().to_vec();
        self.taken_problems += new.len();
        new
    }

    /// Those that were not taken, and those of the whole log.
    #[must_use]
    pub fn last_problems(&self) -> Vec<Problem> {
        self.reader.stats().problems.kept.split_off(self.taken_problems)
    }

    /// The requested subscription, else the one with the most data.
    fn subscription(&self) -> u8 {
        let most = || self.by_subscription.iter().max_by_key(|(_, tracks)| tracks.blocks());
        self.options.subscription.or_else(|| most().map(|(s, _)| *s)).unwrap_or_default()
    }

    fn into_view(mut self, chosen: u8, whole: &BTreeSet<String>) -> LiveView {
        // A frame that is being written is no damage.
        let damaged = self.before.damaged || self.reader.is_damaged();
        self.read(|reader, sink| reader.finish(sink));
        let Self { options, before, reader, by_subscription, .. } = &mut self;
        let intake = Intake { damaged, ..before.and(reader) };
        let tracks = by_subscription.remove(&chosen);
        let mut tracks =
            tracks.unwrap_or_else(|| SubscriptionAnalysis::new(options, &[], Keep::Lists));
        let under_way = tracks.under_way();
        let done = tracks.finish();
        let times = done.burst_times();
        let answer = report(Loaded::default(), chosen, done, options);
        let diagnosis = conclude(&answer, AlignedInputs::default(), &options.thresholds);
        let state = |transfer: &TransferDiagnosis| {
            let finding = &transfer.finding;
            if whole.contains(&transfer.id) {
                State::Decided
            } else if under_way[usize::from(finding.dir == Direction::Ul)]
                == Some(finding.start_tti)
            {
                State::Open
            } else {
                State::Provisional
            }
        };
        let judged = |diagnosis| LiveTransfer { state: state(&diagnosis), diagnosis };
        let mut transfers: Vec<_> = diagnosis.transfers.into_iter().map(judged).collect();
        transfers.sort_by_key(|transfer| transfer.diagnosis.finding.start_tti);
        let mut bursts: Vec<LiveBurst> = times
            .into_iter()
            .map(|burst| {
                let open = burst.burst.closed_by == Bound::End;
                live(burst, if open { State::Open } else { State::Provisional })
            })
            .collect();
        bursts.sort_by_key(|burst| burst.burst.start_tti);
        LiveView {
            intake,
            session: diagnosis.session,
            transfers,
            bursts,
            cell_load: answer.report.cell_load.last().cloned(),
            evidence_counts: diagnosis.evidence_counts,
            cells: diagnosis.cells,
            n_prb_cell: diagnosis.n_prb_cell,
            subscription: chosen,
            missing: diagnosis.missing,
        }
    }
}

fn live(burst: TimedBurst, state: State) -> LiveBurst {
    let TimedBurst { burst, start_us, end_us, numerology } = burst;
    let (duration_ms, rate_bps) = (burst.duration_ms(numerology), burst.rate_bps(numerology));
    LiveBurst { state, start_us, end_us, duration_ms, rate_bps, burst }
}
