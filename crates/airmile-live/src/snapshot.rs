//! What is published: the state of things now, and what is new.

use std::collections::{BTreeMap, VecDeque};

use airmile::live::packets::{LiveFlow, PacketView};
use airmile::live::{LiveBurst, LiveTransfer, LiveView, State};
use airmile::model::{Direction, Verdict};
use airmile_host::source::SourceState;
use schemars::JsonSchema;
use serde::Serialize;

/// Bursts that are kept for those who ask (chosen here: some pages of them).
pub const KEPT_BURSTS: usize = 1_024;

/// The state of things.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Snapshot {
    /// Where bytes come from.
    pub source: SourceStatus,
    /// Counts since the start.
    pub totals: LiveTotals,
    /// What a file that ended here would say.
    #[serde(flatten)]
    pub view: LiveView,
    /// The last bursts that are decided, oldest first.
    #[serde(skip)]
    pub decided: VecDeque<LiveBurst>,
    /// What passes the interface; absent: none was asked for.
    pub packets: Option<Passing>,
}

/// What passes an interface, and how it is.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Passing {
    /// The interface.
    pub interface: SourceStatus,
    /// Packets that the kernel dropped, as we were too slow.
    pub dropped: u64,
    /// What passes.
    #[serde(flatten)]
    pub view: PacketView,
}

impl Snapshot {
    /// The last so many bursts, decided or not, oldest first.
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

/// Where bytes come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SourceStatus {
    /// Its name.
    pub name: String,
    /// How it is.
    #[serde(flatten)]
    pub state: SourceState,
    /// How often it was away.
    pub gaps: u64,
}

/// Counts since the start.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct LiveTotals {
    /// Bursts decided, downlink.
    pub dl_bursts: u64,
    /// Bursts decided, uplink.
    pub ul_bursts: u64,
    /// TTIs of the bursts decided, downlink.
    pub dl_burst_ttis: u64,
    /// TTIs of the bursts decided, uplink.
    pub ul_burst_ttis: u64,
    /// Transfers decided, by verdict.
    pub transfers: BTreeMap<Verdict, u64>,
}

/// Something new.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum LiveEvent {
    /// A burst has ended, or is decided.
    Burst(Box<LiveBurst>),
    /// A transfer was seen, has ended, or is decided.
    Transfer(Box<LiveTransfer>),
    /// The source or the interface came or went.
    Source(SourceStatus),
    /// A flow is over.
    Flow(Box<LiveFlow>),
}

impl LiveEvent {
    /// What kind it is.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Burst(_) => "burst",
            Self::Transfer(_) => "transfer",
            Self::Source(_) => "source",
            Self::Flow(_) => "flow",
        }
    }
}

/// Tells what is new by what was told before.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// End of each burst that was told, by direction and start.
    bursts: BTreeMap<(bool, i64), i64>,
    transfers: BTreeMap<String, (State, Verdict)>,
}

impl News {
    /// Bursts that are decided are told always, the others when they end and
    /// when their end moves.
    pub(crate) fn bursts(
        &mut self,
        decided: &[LiveBurst],
        view: &LiveView,
        tell: &mut dyn FnMut(LiveEvent),
    ) {
        for burst in decided {
            tell(LiveEvent::Burst(Box::new(burst.clone())));
        }
        let mut now = BTreeMap::new();
        for live in view.bursts.iter().filter(|live| live.state != State::Open) {
            let burst = &live.burst;
            let key = (burst.dir == Direction::Ul, burst.start_tti.0);
            if self.bursts.get(&key) != Some(&burst.end_tti.0) {
                tell(LiveEvent::Burst(Box::new(live.clone())));
            }
            now.insert(key, burst.end_tti.0);
        }
        self.bursts = now;
    }

    pub(crate) fn transfers(&mut self, view: &LiveView, tell: &mut dyn FnMut(LiveEvent)) {
        let mut now = BTreeMap::new();
        for transfer in &view.transfers {
            let id = &transfer.diagnosis.id;
            // While it goes on, its verdict is that of its part so far.
            let told = (transfer.state, transfer.diagnosis.verdict);
            let before = self.transfers.get(id);
            let still_open = before.is_some_and(|b| b.0 == State::Open) && told.0 == State::Open;
            if before != Some(&told) && !still_open {
                tell(LiveEvent::Transfer(Box::new(transfer.clone())));
            }
            now.insert(id.clone(), told);
        }
        self.transfers = now;
    }

    /// Transfers that are decided now and were not when last told.
    pub(crate) fn newly_decided<'a>(
        &'a self,
        view: &'a LiveView,
    ) -> impl Iterator<Item = &'a LiveTransfer> {
        view.transfers.iter().filter(|transfer| {
            let before = self.transfers.get(&transfer.diagnosis.id);
            transfer.state == State::Decided && before.is_none_or(|b| b.0 != State::Decided)
        })
    }
}
