//! Converts the modem's log to reports on the gate's clock.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use airmile_control::qcut::{ModemReport, ReportExtractor};
use airmile_decode::diag::PromptReader;
use airmile_host::Attempt;
use airmile_host::clock::{monotonic_ns, wall_ns};
use airmile_host::source::{LogPiece, LogSource, ModemLink, SourceState, read_from_now};
use airmile_host::thread::{StopFlag, lock};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{Access, access};
use rustix::io::Errno;

use crate::error::Result;

/// Polling interval of a growing file (chosen here: a fifth of the time in which a log's
/// batch of transmissions fills).
const LOOK: Duration = Duration::from_millis(2);

/// Maximum age of a useful report (chosen here: five times as long as a modem may be
/// silent).
const OLDEST_NS: i64 = 1_000_000_000;

/// Reports a modem log that cannot be read at once; a missing one may still appear.
pub(crate) fn check_modem(source: Option<&LogSource>) -> Result<()> {
    let (Some(LogSource::Follow(path)) | Some(LogSource::Modem(ModemLink::Path(path)))) = source
    else {
        return Ok(());
    };
    // Not opened: opening a port or a pipe might block.
    let readable = match path.is_dir() {
        true => Err(Errno::ISDIR),
        false => access(path.as_path(), Access::READ_OK),
    };
    match readable {
        Err(e) if e != Errno::NOENT => Ok(Err(e).refused(
            || format!("cannot read the modem's log {}", path.display()),
            "Give a log that grows, a DIAG port (/dev/ttyUSB0) that no other program has, or - \
             for standard input; without --modem its buffer is estimated from round trips.",
        )?),
        _ => Ok(()),
    }
}

/// Whether a modem log's file or port does not exist, or not yet.
pub(crate) fn is_missing(source: &LogSource) -> bool {
    match source {
        LogSource::Follow(path) | LogSource::Modem(ModemLink::Path(path)) => !path.exists(),
        _ => false,
    }
}

/// Source of reports, and its state.
#[derive(Debug)]
pub(crate) struct Modem {
    name: String,
    reports: Receiver<ModemReport>,
    shared: Arc<ModemShared>,
}

#[derive(Debug)]
struct ModemShared {
    /// Becomes readable when a report arrives.
    wake: OwnedFd,
    state: Mutex<SourceState>,
    stop: StopFlag,
}

impl Modem {
    /// Starts to read a source.
    pub(crate) fn start(source: &LogSource) -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let state = Mutex::new(SourceState::Waiting("no data yet".to_owned()));
        let stop = StopFlag::new();
        let shared = Arc::new(ModemShared { wake, state, stop: stop.clone() });
        let (sender, reports) = channel();
        let mut reader = Reader::new(sender, shared.clone());
        read_from_now(source, LOOK, &stop, move |piece| reader.take(piece))?;
        Ok(Self { name: source.name(), reports, shared })
    }

    /// Name of the source as given by the user.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// State of the source.
    pub(crate) fn state(&self) -> SourceState {
        lock(&self.shared.state).clone()
    }

    /// Becomes readable when reports are available.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.shared.wake.as_fd()
    }

    /// Reports that arrived.
    pub(crate) fn receive(&self) -> impl Iterator<Item = ModemReport> + '_ {
        // Resets the counter; its value does not matter.
        let _ = rustix::io::read(&self.shared.wake, &mut [0_u8; 8]);
        self.reports.try_iter()
    }
}

impl Drop for Modem {
    fn drop(&mut self) {
        self.shared.stop.set();
    }
}

/// Converts log bytes to reports.
struct Reader {
    log: PromptReader,
    reported: ReportExtractor,
    alignment: Alignment,
    sender: Sender<ModemReport>,
    shared: Arc<ModemShared>,
}

impl Reader {
    fn new(sender: Sender<ModemReport>, shared: Arc<ModemShared>) -> Self {
        let (log, reported, alignment) =
            (PromptReader::new(), ReportExtractor::default(), Alignment::new());
        Self { log, reported, alignment, sender, shared }
    }

    fn take(&mut self, piece: LogPiece) {
        match piece {
            LogPiece::Bytes(bytes) => self.read(&bytes),
            // It is unknown what was sent during the gap.
            LogPiece::Gap => self.reported = ReportExtractor::default(),
            LogPiece::State(state) => {
                *lock(&self.shared.state) = state;
            }
        }
    }

    fn read(&mut self, bytes: &[u8]) {
        let (now_ns, wall_ns) = (monotonic_ns(), wall_ns());
        let Self { log, reported, .. } = self;
        let mut found = Vec::new();
        log.push(bytes, &mut |record| found.extend(reported.push(&record)));
        for report in &found {
            self.alignment.push(now_ns, wall_ns, time_of(report));
        }
        let mut is_any = false;
        for report in found {
            let report = shifted(report, self.alignment.offset_ns());
            if now_ns - time_of(&report) <= OLDEST_NS {
                is_any |= self.sender.send(report).is_ok();
            }
        }
        if is_any {
            let _ = rustix::io::write(&self.shared.wake, &1_u64.to_ne_bytes());
        }
    }
}

const fn time_of(report: &ModemReport) -> i64 {
    match report {
        ModemReport::Sent { to_ns, .. } => *to_ns,
        ModemReport::Waiting { at_ns, .. } => *at_ns,
    }
}

const fn shifted(mut report: ModemReport, by_ns: i64) -> ModemReport {
    match &mut report {
        ModemReport::Sent { from_ns, to_ns, .. } => {
            *from_ns += by_ns;
            *to_ns += by_ns;
        }
        ModemReport::Waiting { at_ns, .. } => *at_ns += by_ns,
    }
    report
}

/// The gate's clock less the modem's. If the modem's clock agrees with the host's wall
/// clock within a log's possible delay, the offset is known. Otherwise the fastest report
/// is assumed to arrive [`Self::LEAST_DELAY_NS`] after the time that it describes.
#[derive(Debug)]
struct Alignment {
    /// Wall clock less modem's clock, the minimum of the last windows: the minimum delay,
    /// if the clocks agree.
    least_ns: [Option<i64>; 2],
    began_ns: i64,
    /// The gate's clock less the wall clock.
    wall_offset_ns: i64,
}

impl Alignment {
    /// Length of a window (chosen here: clocks drift by at most 1 ms in it).
    const WINDOW_NS: i64 = 10_000_000_000;
    /// Possible delays of the fastest messages of a log (chosen here).
    const DELAYS_NS: std::ops::Range<i64> = -2_000_000..250_000_000;
    /// Delay from the air interface to the host, if the clocks do not show it (chosen here:
    /// as for the lab's phone).
    const LEAST_DELAY_NS: i64 = 5_000_000;

    const fn new() -> Self {
        Self { least_ns: [None; 2], began_ns: i64::MIN, wall_offset_ns: 0 }
    }

    fn push(&mut self, now_ns: i64, wall_ns: i64, at_ns: i64) {
        if now_ns.saturating_sub(self.began_ns) > Self::WINDOW_NS {
            self.least_ns = [None, self.least_ns[0]];
            self.began_ns = now_ns;
        }
        let delay_ns = wall_ns - at_ns;
        let least = &mut self.least_ns[0];
        *least = Some(least.map_or(delay_ns, |least| least.min(delay_ns)));
        self.wall_offset_ns = now_ns - wall_ns;
    }

    fn offset_ns(&self) -> i64 {
        let least_ns = self.least_ns.into_iter().flatten().min().unwrap_or(0);
        let agree = Self::DELAYS_NS.contains(&least_ns);
        let clocks_ns = if agree { 0 } else { least_ns - Self::LEAST_DELAY_NS };
        self.wall_offset_ns + clocks_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_is_not_there_is_missing() {
        let missing = |path: &str| is_missing(&LogSource::Follow(path.into()));
        assert!(missing("/nonexistent/log.qmdl") && !missing("/dev/null"));
        assert!(!is_missing(&LogSource::Stdin));
    }

    #[test]
    fn clocks_that_agree_are_believed() {
        const MS: i64 = 1_000_000;
        let check = |delays_ms: &[i64], expected_ms: i64| {
            let mut alignment = Alignment::new();
            for (n, delay_ms) in (0..).zip(delays_ms) {
                // The gate's clock started 1000 ms after the wall clock.
                let wall_ns = (5_000 + n * 10) * MS;
                alignment.push(wall_ns - 1_000 * MS, wall_ns, wall_ns - delay_ms * MS);
            }
            assert_eq!(alignment.offset_ns(), expected_ms * MS, "{delays_ms:?}");
        };
        check(&[], 0);
        check(&[30, 12, 40], -1_000);
        // A modem whose clock is an hour behind: its fastest report arrived 5 ms late.
        check(&[3_600_040, 3_600_012], -1_000 + 3_600_012 - 5);
        // One whose clock is ahead.
        check(&[-700, -690], -1_000 - 700 - 5);
    }
}
