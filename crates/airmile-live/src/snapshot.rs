//! The published state, and new events.

use std::collections::{BTreeMap, VecDeque};

use airmile::live::packets::{LiveFlow, PacketView};
use airmile::live::{LiveBurst, LiveTransfer, LiveView, State};
use airmile::model::{Direction, Problem, Problems, Verdict};
use airmile_host::source::SourceState;
use schemars::JsonSchema;
use serde::Serialize;

/// Maximum number of bursts kept for requests (chosen here: some pages of them).
pub const KEPT_BURSTS: usize = 1_024;

/// The state of a source whose log was replaced.
pub const ANOTHER_LOG: &str = "another log, which begins before the end of the one before: transfers and bursts are those of \
     this one";

/// The current state.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Snapshot {
    /// The source of bytes.
    pub source: SourceStatus,
    /// Counts since the start.
    pub totals: LiveTotals,
    /// The result for a file that ended here.
    #[serde(flatten)]
    pub view: LiveView,
    /// The last decided bursts, oldest first.
    #[serde(skip)]
    pub decided: VecDeque<LiveBurst>,
    /// The problems of the input.
    #[serde(skip)]
    pub problems: Problems,
    /// The traffic of the interface; absent: none was requested.
    pub packets: Option<Passing>,
}

/// The traffic of an interface, and its state.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Passing {
    /// The interface.
    pub interface: SourceStatus,
    /// Packets that the kernel dropped because the reader was too slow.
    pub dropped: u64,
    /// The traffic.
    #[serde(flatten)]
    pub view: PacketView,
}

impl Snapshot {
    /// The last `n` bursts, decided or not, oldest first.
    #[must_use]
    pub fn last_bursts(&self, limit: usize) -> Vec<&LiveBurst> {
        let mut all: Vec<&LiveBurst> = self.decided.iter().chain(&self.view.bursts).collect();
        // The two directions are not decided at the same time.
        all.sort_by_key(|live| (live.burst.timing_segment, live.burst.start_tti));
        let past = all.len().saturating_sub(limit);
        all.drain(..past);
        all
    }
}

/// A source of bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SourceStatus {
    /// Its name.
    pub name: String,
    /// Its state.
    #[serde(flatten)]
    pub state: SourceState,
    /// Number of interruptions.
    pub gaps: u64,
}

impl SourceStatus {
    /// Whether another log begins here: names and TTIs of the findings do, too.
    #[must_use]
    pub fn begins_another_log(&self) -> bool {
        matches!(&self.state, SourceState::Connected(what) if what == ANOTHER_LOG)
    }
}

/// Counts since the start. Bursts count when they end; if later records revoke one, it
/// counts as corrected, so that no count decreases.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct LiveTotals {
    /// Bursts that ended, downlink.
    pub dl_bursts: u64,
    /// Bursts that ended, uplink.
    pub ul_bursts: u64,
    /// Throughput time of these bursts in ns, downlink.
    pub dl_burst_ns: u64,
    /// Throughput time of these bursts in ns, uplink.
    pub ul_burst_ns: u64,
    /// Ended downlink bursts that were revoked.
    pub dl_bursts_corrected: u64,
    /// Ended uplink bursts that were revoked.
    pub ul_bursts_corrected: u64,
    /// Throughput time in ns of ended downlink bursts that was revoked.
    pub dl_burst_ns_corrected: u64,
    /// Throughput time in ns of ended uplink bursts that was revoked.
    pub ul_burst_ns_corrected: u64,
    /// Transfers that ended, by the verdict at their end.
    pub transfers: BTreeMap<Verdict, u64>,
    /// Ended transfers that continued, or whose verdict changed, by their earlier verdict.
    pub transfers_corrected: BTreeMap<Verdict, u64>,
}

/// Bursts that are counted but not yet decided: the throughput time in ns counted for each, by
/// direction, timing segment and start.
#[derive(Debug, Default)]
pub(crate) struct CountedBursts(BTreeMap<(bool, u32, i64), u64>);

impl CountedBursts {
    /// Counts the bursts that have ended since the last call.
    pub(crate) fn count(
        &mut self,
        decided: &[LiveBurst],
        view: &LiveView,
        totals: &mut LiveTotals,
    ) {
        let key = |live: &LiveBurst| {
            let burst = &live.burst;
            (burst.dir == Direction::Ul, burst.timing_segment, burst.start_tti.0)
        };
        let ended = view.bursts.iter().filter(|live| live.state != State::Open);
        let mut open = BTreeMap::new();
        for (live, is_decided) in
            decided.iter().map(|live| (live, true)).chain(ended.map(|live| (live, false)))
        {
            let (key, ns) = (key(live), (live.duration_ms * 1e6) as u64);
            totals.burst(key.0, self.0.remove(&key), Some(ns));
            if !is_decided {
                open.insert(key, ns);
            }
        }
        // The remaining ones no longer exist with that start.
        for ((is_ul, ..), ns) in std::mem::replace(&mut self.0, open) {
            totals.burst(is_ul, Some(ns), None);
        }
    }
}

impl LiveTotals {
    /// Replaces the previous verdict on a transfer that has ended by the current one.
    fn transfer(&mut self, was: Option<Verdict>, is: Option<Verdict>) {
        if was == is {
            return;
        }
        for (counts, verdict) in [(&mut self.transfers_corrected, was), (&mut self.transfers, is)] {
            verdict.into_iter().for_each(|verdict| *counts.entry(verdict).or_default() += 1);
        }
    }

    /// Replaces the previous state of a burst by the current one.
    const fn burst(&mut self, is_ul: bool, was: Option<u64>, is: Option<u64>) {
        let (bursts, ns, no_bursts, no_ns) = match is_ul {
            false => (
                &mut self.dl_bursts,
                &mut self.dl_burst_ns,
                &mut self.dl_bursts_corrected,
                &mut self.dl_burst_ns_corrected,
            ),
            true => (
                &mut self.ul_bursts,
                &mut self.ul_burst_ns,
                &mut self.ul_bursts_corrected,
                &mut self.ul_burst_ns_corrected,
            ),
        };
        let (before, now) = match (was, is) {
            (None, None) => return,
            (None, Some(now)) => {
                *bursts += 1;
                (0, now)
            }
            (Some(before), None) => {
                *no_bursts += 1;
                (before, 0)
            }
            (Some(before), Some(now)) => (before, now),
        };
        *ns += now.saturating_sub(before);
        *no_ns += before.saturating_sub(now);
    }
}

/// A new event.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum LiveEvent {
    /// A burst has ended, or is decided.
    Burst(Box<LiveBurst>),
    /// A transfer was detected, has ended, or is decided.
    Transfer(Box<LiveTransfer>),
    /// The state of the source or the interface changed.
    Source(SourceStatus),
    /// Bytes of the log could not be read, or hold something notable.
    Problem(Problem),
    /// A flow has ended.
    Flow(Box<LiveFlow>),
}

impl LiveEvent {
    /// Its kind.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Burst(_) => "burst",
            Self::Transfer(_) => "transfer",
            Self::Source(_) => "source",
            Self::Problem(_) => "problem",
            Self::Flow(_) => "flow",
        }
    }
}

/// Derives new events from those already reported.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// End of each reported burst, by direction and start.
    bursts: BTreeMap<(bool, i64), i64>,
    transfers: BTreeMap<String, (State, Verdict)>,
}

impl News {
    /// Decided bursts are always reported, the others when they end and when their end moves.
    pub(crate) fn bursts(
        &mut self,
        decided: &[LiveBurst],
        view: &LiveView,
        report: &mut dyn FnMut(LiveEvent),
    ) {
        for burst in decided {
            report(LiveEvent::Burst(Box::new(burst.clone())));
        }
        let mut now = BTreeMap::new();
        for live in view.bursts.iter().filter(|live| live.state != State::Open) {
            let burst = &live.burst;
            let key = (burst.dir == Direction::Ul, burst.start_tti.0);
            if self.bursts.get(&key) != Some(&burst.end_tti.0) {
                report(LiveEvent::Burst(Box::new(live.clone())));
            }
            now.insert(key, burst.end_tti.0);
        }
        self.bursts = now;
    }

    /// Transfers are reported when they begin, when they end and when their verdict changes; the
    /// ended ones are counted.
    pub(crate) fn transfers(
        &mut self,
        view: &LiveView,
        totals: &mut LiveTotals,
        report: &mut dyn FnMut(LiveEvent),
    ) {
        let ended =
            |(state, verdict): &(State, Verdict)| (*state != State::Open).then_some(*verdict);
        let mut now = BTreeMap::new();
        for transfer in &view.transfers {
            let id = &transfer.diagnosis.id;
            // While it is in progress, its verdict is that of the part so far.
            let current = (transfer.state, transfer.diagnosis.verdict);
            let before = self.transfers.remove(id);
            totals.transfer(before.as_ref().and_then(ended), ended(&current));
            let still_open = before.is_some_and(|b| b.0 == State::Open) && current.0 == State::Open;
            if before != Some(current) && !still_open {
                report(LiveEvent::Transfer(Box::new(transfer.clone())));
            }
            now.insert(id.clone(), current);
        }
        // A decided one leaves the view by its age, the others because they no longer exist.
        for before in std::mem::replace(&mut self.transfers, now).into_values() {
            if before.0 != State::Decided {
                totals.transfer(ended(&before), None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_counts_at_its_end_and_what_is_taken_back_apart() {
        let mut totals = LiveTotals::default();
        let mut check = |was, is, bursts: (u64, u64), ns: (u64, u64)| {
            totals.burst(false, was, is);
            assert_eq!((totals.dl_bursts, totals.dl_bursts_corrected), bursts);
            assert_eq!((totals.dl_burst_ns, totals.dl_burst_ns_corrected), ns);
        };
        check(None, Some(100), (1, 0), (100, 0));
        // It continued a little, and was decided as shorter.
        check(Some(100), Some(120), (1, 0), (120, 0));
        check(Some(120), Some(90), (1, 0), (120, 30));
        // Another one was revoked.
        check(None, Some(5), (2, 0), (125, 30));
        check(Some(5), None, (2, 1), (125, 35));
    }

    #[test]
    fn a_transfer_counts_at_its_end_and_a_changed_verdict_apart() {
        let mut totals = LiveTotals::default();
        let mut check = |was, is, radio: (u64, u64), mixed: (u64, u64)| {
            totals.transfer(was, is);
            let count = |verdict| {
                let of = |counts: &BTreeMap<_, _>| counts.get(&verdict).copied().unwrap_or(0);
                (of(&totals.transfers), of(&totals.transfers_corrected))
            };
            assert_eq!((count(Verdict::Radio), count(Verdict::Mixed)), (radio, mixed));
        };
        check(None, None, (0, 0), (0, 0));
        check(None, Some(Verdict::Radio), (1, 0), (0, 0));
        check(Some(Verdict::Radio), Some(Verdict::Radio), (1, 0), (0, 0));
        check(Some(Verdict::Radio), Some(Verdict::Mixed), (1, 1), (1, 0));
        // It continues.
        check(Some(Verdict::Mixed), None, (1, 1), (1, 1));
    }
}
