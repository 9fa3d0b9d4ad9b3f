//! The thread that feeds the engine, evaluates it some times a second, and publishes.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use airmile::RadioOptions;
use airmile::live::packets::{LivePackets, PacketView};
use airmile::live::{Live, LiveBurst, LiveView};
use airmile::model::{Problem, Problems, Severity};
use airmile_host::source::{LogSource, SourceItem, SourceState, queue};
use airmile_host::thread::{StopFlag, Worker};
use thiserror::Error;
use tokio::sync::{broadcast, watch};

use crate::published::EventSenders;
pub use crate::published::{Events, Published};
use crate::snapshot::{
    ANOTHER_LOG, CountedBursts, KEPT_BURSTS, LiveEvent, LiveTotals, News, Passing, Snapshot,
    SourceStatus,
};
use crate::unlike::Head;

/// Interval of the engine's evaluation. Chosen here: with the modem's writing delay of
/// 300 ms, a verdict follows within a second of a burst's end, even on a busy machine.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// After this long without packets the machine's clock gives their time (chosen here:
/// above the delay of a batch).
const QUIET: Duration = Duration::from_millis(200);
/// Maximum share of the time for evaluation: a slow evaluation runs less often (chosen here).
const LOOK_SHARE: u32 = 2;
/// Maximum number of events waiting for a reader; a slower one misses some, and is notified.
const WAITING_EVENTS: usize = 512;

/// Maximum number of bytes held until they have a time (chosen here: hundreds of frames).
const HELD_BYTES: usize = 1 << 16;

/// Why an engine does not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The options are invalid here.
    #[error("{0}")]
    Options(#[from] airmile::Error),
    /// A thread cannot be started.
    #[error("starting a thread: {0}")]
    Thread(#[from] std::io::Error),
    /// The interface cannot be captured.
    #[error("{0}")]
    Interface(String),
}

/// A running engine, and its published state.
#[derive(Debug)]
pub struct Engine {
    snapshots: watch::Receiver<Arc<Snapshot>>,
    events: EventSenders,
    stop: StopFlag,
    refusal: Arc<OnceLock<String>>,
    worker: Worker,
}

impl Engine {
    /// Starts an engine on a source. `lines` receives every event, and blocks the engine
    /// while it is full; other readers never block it.
    ///
    /// # Errors
    /// The options are invalid here, or a thread cannot be started.
    pub fn start(
        source: &LogSource,
        options: RadioOptions,
        lines: Option<SyncSender<Arc<LiveEvent>>>,
    ) -> Result<Self, StartError> {
        Self::start_beside(source, None, options, lines)
    }

    /// As [`start`](Self::start), with the packets of an interface in addition.
    ///
    /// # Errors
    /// As [`start`](Self::start), or the interface cannot be captured.
    pub fn start_beside(
        source: &LogSource,
        interface: Option<&str>,
        options: RadioOptions,
        lines: Option<SyncSender<Arc<LiveEvent>>>,
    ) -> Result<Self, StartError> {
        let live = Live::new(options)?;
        let stop = StopFlag::new();
        let (feeder, snapshots) = Feeder::new(live, source.name(), interface, &stop);
        let events = feeder.events.clone();
        let (feed, inputs) = queue(&stop);
        if let Some(name) = interface {
            capture(name, feed.clone())?;
        }
        source.start(feed)?;
        let refusal = Arc::clone(&feeder.refusal);
        // A modem's port may begin with anything.
        let is_stored = matches!(source, LogSource::Follow(_) | LogSource::Stdin);
        let head = is_stored.then(Head::default);
        let feeder = Feeder { lines, head, is_stored, ..feeder };
        let worker = Worker::start("engine", stop.clone(), move |_| feeder.run(&inputs))?;
        Ok(Self { snapshots, events, stop, refusal, worker })
    }

    /// Its published state.
    #[must_use]
    pub fn published(&self) -> Published {
        Published { snapshots: self.snapshots.clone(), events: self.events.clone() }
    }

    /// Whether the source has ended, and all of its data has been reported.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.worker.has_ended()
    }

    /// Why the source cannot be a modem log, or is none any more: the engine has ended because of
    /// that.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.get().map(String::as_str)
    }

    /// Whether the log was ended: by a signal, by [`stop`](Self::stop), or because the reader of
    /// `lines` has gone.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop.is_set()
    }

    /// Ends the log at the first SIGINT or SIGTERM, as [`stop`](Self::stop) does; a second one ends
    /// the process.
    ///
    /// # Errors
    /// A handler cannot be installed.
    pub fn stop_by_signals(&self) -> std::io::Result<()> {
        self.stop.set_by_signals()
    }

    /// Ends the log: the rest is decided and reported.
    pub fn stop(&mut self) {
        self.worker.stop();
    }
}

#[cfg(target_os = "linux")]
fn capture(name: &str, feed: airmile_host::source::Feed) -> Result<(), StartError> {
    airmile_host::source::start_capture(name, feed)
        .map_err(|error| StartError::Interface(error.to_string()))
}

#[cfg(not(target_os = "linux"))]
fn capture(name: &str, _: airmile_host::source::Feed) -> Result<(), StartError> {
    Err(StartError::Interface(format!("{name}: capturing needs Linux")))
}

struct Feeder {
    live: Live,
    packets: LivePackets,
    /// When packets last arrived.
    packets_came: Option<Instant>,
    news: News,
    counted: CountedBursts,
    snapshot: Snapshot,
    sender: watch::Sender<Arc<Snapshot>>,
    events: EventSenders,
    stop: StopFlag,
    lines: Option<SyncSender<Arc<LiveEvent>>>,
    /// Whether the source is a file or standard input.
    is_stored: bool,
    /// `None`: the source is a modem's, or known as a log.
    head: Option<Head>,
    /// Whether the source was a log before it was replaced.
    was_log: bool,
    /// The first bytes after a gap, until they have a time.
    resumed: Option<Vec<u8>>,
    /// Why the source is no modem log.
    refusal: Arc<OnceLock<String>>,
}

impl Feeder {
    /// One without lines that reads any log, and its snapshots.
    fn new(
        live: Live,
        source: String,
        interface: Option<&str>,
        stop: &StopFlag,
    ) -> (Self, watch::Receiver<Arc<Snapshot>>) {
        let starting = |name: String| SourceStatus {
            name,
            state: SourceState::Waiting("starting".into()),
            gaps: 0,
        };
        let mut first = live.clone();
        let snapshot = Snapshot {
            source: starting(source),
            totals: LiveTotals::default(),
            view: first.look(),
            decided: VecDeque::new(),
            problems: Problems::default(),
            packets: interface.map(|name| Passing {
                interface: starting(name.to_owned()),
                dropped: 0,
                view: PacketView::default(),
            }),
        };
        let (sender, snapshots) = watch::channel(Arc::new(snapshot.clone()));
        let [radio, flows] = [(); 2].map(|()| broadcast::Sender::new(WAITING_EVENTS));
        let feeder = Self {
            live,
            packets: LivePackets::new(),
            packets_came: None,
            news: News::default(),
            counted: CountedBursts::default(),
            snapshot,
            sender,
            events: EventSenders { radio, flows },
            stop: stop.clone(),
            lines: None,
            is_stored: false,
            head: None,
            was_log: false,
            resumed: None,
            refusal: Arc::default(),
        };
        (feeder, snapshots)
    }

    fn run(mut self, inputs: &Receiver<SourceItem>) {
        let mut due = Instant::now();
        let mut changed = true;
        while !self.stop.is_set() {
            let wait = due.saturating_duration_since(Instant::now());
            match inputs.recv_timeout(wait) {
                Ok(item) => {
                    changed |= matches!(item, SourceItem::Bytes(_) | SourceItem::Gap);
                    if !self.receive(item) {
                        break;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if Instant::now() >= due {
                let begun = Instant::now();
                self.look_at_packets();
                if std::mem::take(&mut changed) {
                    self.look();
                }
                due = Instant::now() + LOOK_EVERY.max(begun.elapsed() * LOOK_SHARE);
            }
        }
        if self.stop.is_set() {
            // What waits came before the end.
            let _ = inputs.try_iter().all(|item| self.receive(item));
        }
        if self.was_log || self.refusal.get().is_none() {
            self.finish();
        }
    }

    /// Takes an item; returns whether more may follow.
    fn receive(&mut self, item: SourceItem) -> bool {
        match item {
            SourceItem::Bytes(bytes) => {
                match self.head.as_mut().and_then(|head| head.push(&bytes)) {
                    Some(Ok(())) => self.head = None,
                    Some(Err(what)) => {
                        self.refuse(what);
                        return false;
                    }
                    None => {}
                }
                self.resume(bytes);
            }
            SourceItem::Gap => {
                self.live.note_gap();
                // Another file may be there now.
                self.was_log |= self.is_stored && self.head.is_none();
                self.head = self.is_stored.then(Head::default);
                self.resumed = Some(self.resumed.take().unwrap_or_default());
                self.snapshot.source.gaps += 1;
            }
            SourceItem::State(state) => {
                let ended = state == SourceState::Ended;
                self.source_is(state);
                if ended && let Some(Err(what)) = self.head.as_ref().map(Head::end) {
                    self.refuse(what);
                } else if ended && !self.stop.is_set() {
                    self.take_held();
                    self.live.end_input();
                }
                return !ended;
            }
            SourceItem::Packets(bytes) => {
                self.packets.push(&bytes);
                self.packets_came = Some(Instant::now());
            }
            SourceItem::Interface(state) => self.interface_is(state),
            SourceItem::Dropped(n) => {
                self.snapshot.packets.iter_mut().for_each(|passing| passing.dropped = n);
            }
        }
        true
    }

    /// Takes bytes of the log. After a gap they may be of another log, whose times are not after those
    /// of the one before: that one ends, and the analysis begins anew.
    fn resume(&mut self, bytes: Vec<u8>) {
        let bytes = match self.resumed.take() {
            Some(held) => [held, bytes].concat(),
            None => return self.live.push(&bytes),
        };
        match self.live.begins_before_end(&bytes) {
            None if bytes.len() < HELD_BYTES => self.resumed = Some(bytes),
            Some(true) => {
                let next = self.live.anew();
                let old = std::mem::replace(&mut self.live, next);
                self.end(old);
                (self.news, self.counted) = Default::default();
                self.snapshot.decided.clear();
                self.source_is(SourceState::Connected(ANOTHER_LOG.into()));
                self.live.push(&bytes);
            }
            _ => self.live.push(&bytes),
        }
    }

    /// The source cannot be a modem log. What it held since it was replaced is of none. Nobody else
    /// sets this.
    fn refuse(&mut self, what: String) {
        self.resumed = None;
        let what = if self.was_log { format!("it was replaced, and now {what}") } else { what };
        let _ = self.refusal.set(what);
    }

    fn source_is(&mut self, state: SourceState) {
        self.snapshot.source.state = state;
        self.emit(LiveEvent::Source(self.snapshot.source.clone()));
        self.publish();
    }

    fn interface_is(&mut self, state: SourceState) {
        let Some(passing) = &mut self.snapshot.packets else { return };
        let was_away = matches!(passing.interface.state, SourceState::Waiting(_));
        if was_away && matches!(state, SourceState::Connected(_)) {
            // A new capture begins; open flows continue.
            self.packets.note_gap();
        }
        passing.interface.gaps += u64::from(!was_away && matches!(state, SourceState::Waiting(_)));
        passing.interface.state = state;
        let event = LiveEvent::Source(passing.interface.clone());
        self.emit(event);
        self.publish();
    }

    fn look_at_packets(&mut self) {
        if self.snapshot.packets.is_none() {
            return;
        }
        // While packets arrive, their time is the clock: a backlog is read in its own
        // time. A clock before 1970 is ignored.
        let come = self.packets_came.is_some_and(|at| at.elapsed() < QUIET);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok().filter(|_| !come);
        let view = self.packets.look(now.and_then(|now| i64::try_from(now.as_nanos()).ok()));
        for flow in self.packets.take_ended() {
            self.emit(LiveEvent::Flow(Box::new(flow)));
        }
        if let Some(passing) = &mut self.snapshot.packets {
            passing.view = view;
        }
        self.publish();
    }

    fn look(&mut self) {
        let decided = self.live.take_bursts();
        let problems = self.live.take_problems();
        let view = self.live.look();
        self.take(&decided, view, problems);
    }

    fn finish(mut self) {
        self.look_at_packets();
        self.take_held();
        let live = self.live.clone();
        self.end(live);
    }

    fn take_held(&mut self) {
        self.resumed.take().into_iter().for_each(|held| self.live.push(&held));
    }

    /// Decides and reports the rest of a log.
    fn end(&mut self, mut live: Live) {
        let problems = live.last_problems();
        let decided = live.take_bursts();
        let mut view = live.finish();
        let rest = std::mem::take(&mut view.bursts);
        let all = [decided, rest].concat();
        self.take(&all, view, problems);
    }

    fn take(&mut self, decided: &[LiveBurst], view: LiveView, problems: Vec<Problem>) {
        for problem in problems.into_iter().filter(|one| one.severity != Severity::Normal) {
            self.snapshot.problems.push(problem.clone());
            self.emit(LiveEvent::Problem(problem));
        }
        let mut new = Vec::new();
        self.news.bursts(decided, &view, &mut |event| new.push(event));
        let totals = &mut self.snapshot.totals;
        self.news.transfers(&view, totals, &mut |event| new.push(event));
        new.into_iter().for_each(|event| self.emit(event));
        self.counted.count(decided, &view, &mut self.snapshot.totals);
        let kept = &mut self.snapshot.decided;
        kept.extend(decided.iter().cloned());
        let old = kept.len().saturating_sub(KEPT_BURSTS);
        kept.drain(..old);
        self.snapshot.view = view;
        self.publish();
    }

    fn emit(&mut self, event: LiveEvent) {
        let event = Arc::new(event);
        if let Some(lines) = &self.lines
            && lines.send(Arc::clone(&event)).is_err()
        {
            // Its reader has ended (`| head`).
            self.lines = None;
            self.stop.set();
        }
        let events = match *event {
            LiveEvent::Flow(_) => &self.events.flows,
            _ => &self.events.radio,
        };
        // There may be no receiver.
        let _ = events.send(event);
    }

    fn publish(&self) {
        self.sender.send_replace(Arc::new(self.snapshot.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_when_an_engine_stops_is_counted() {
        let stop = StopFlag::new();
        stop.set();
        let live = Live::new(RadioOptions::default()).unwrap();
        let (feeder, snapshots) = Feeder::new(live, String::new(), None, &stop);
        let (items, inputs) = std::sync::mpsc::channel();
        items.send(SourceItem::Bytes(vec![0; 100])).unwrap();
        items.send(SourceItem::Gap).unwrap();
        feeder.run(&inputs);
        let now = snapshots.borrow();
        assert_eq!((now.view.intake.bytes, now.source.gaps), (100, 1));
    }
}
