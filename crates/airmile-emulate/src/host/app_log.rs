//! The applications' log, and the transfers derived from it.

use std::collections::BTreeMap;

use airmile_model::Direction;
use airmile_model::units::MS_NS;

use super::page_log::PageLog;
use super::workload::{AppEvent, AppEventKind, UnderWay};
use crate::scenario::AppConfig;

/// An entry of the log of an application on the measured phone.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct AppNote {
    /// Time in ns since the Unix epoch.
    pub at_ns: i64,
    /// The application.
    pub app: String,
    /// The event: `request`, `first_byte`, `end`, `failed`, `segment_chosen`,
    /// `playback_started`, `stalled`, `resumed`, `playback_ended`, `page_started`,
    /// `page_loaded`, `done`.
    pub event: &'static str,
    /// The transfer concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Application bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// A value of the event: bits per second of a chosen segment, or ms of a stall or page
    /// load that has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Further details as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
}

impl AppNote {
    pub(crate) fn new(at_ns: i64, app: &str) -> Self {
        let app = app.to_owned();
        Self { at_ns, app, event: "", id: None, bytes: None, value: None, what: None }
    }
}

/// A transfer as timed by its application.
#[derive(Debug, Clone)]
pub(crate) struct TimedTransfer {
    pub(crate) id: String,
    pub(crate) dir: Direction,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) bytes: u64,
    pub(crate) unfinished: bool,
}

/// A transfer in progress.
#[derive(Debug)]
struct StartedTransfer {
    app: usize,
    transfer: u64,
    start_ns: i64,
    upload_bytes: u64,
}

/// Identifier of an application's transfer.
fn transfer_id(app: &str, transfer: u64) -> String {
    format!("{app}-{}", transfer + 1)
}

/// Converts the applications' events to log entries and transfers.
#[derive(Debug, Default)]
pub(crate) struct AppLog {
    begun: Vec<StartedTransfer>,
    pub(crate) notes: Vec<AppNote>,
    pub(crate) ended: Vec<TimedTransfer>,
    /// Transfers that failed, or were cut off by the end of the run.
    pub(crate) unfinished: Vec<TimedTransfer>,
    /// Bitrates of segments, by application.
    pub(crate) choices: BTreeMap<String, Vec<u64>>,
    /// Pages.
    pub(crate) pages: PageLog,
}

impl AppLog {
    /// Processes an event of an application.
    pub(crate) fn ingest(&mut self, apps: &[AppConfig], app: usize, event: AppEvent) {
        let AppEvent { at_ns, kind } = event;
        let name = apps.get(app).map_or("app", |config| config.name.as_str());
        let id_of = |transfer: u64| transfer_id(name, transfer);
        self.pages.ingest(app, at_ns, &kind);
        let mut note = AppNote::new(at_ns, name);
        match kind {
            // Shown by a browser's developer tools, but not by a player's log.
            AppEventKind::Wanted { .. } | AppEventKind::Connected { .. } => return,
            AppEventKind::RequestStarted { transfer, path, upload_bytes, .. } => {
                self.begun.push(StartedTransfer { app, transfer, start_ns: at_ns, upload_bytes });
                note.event = "request";
                note.id = Some(id_of(transfer));
                note.what = Some(path);
                note.bytes = Some(upload_bytes).filter(|&bytes| bytes > 0);
            }
            AppEventKind::FirstByte { transfer } => {
                note.event = "first_byte";
                note.id = Some(id_of(transfer));
            }
            AppEventKind::Ended { transfer, bytes, failed } => {
                note.event = if failed { "failed" } else { "end" };
                note.id = Some(id_of(transfer));
                note.bytes = Some(bytes);
                self.end(app, transfer, bytes, failed, at_ns, id_of(transfer));
            }
            AppEventKind::SegmentChosen { segment, bitrate_bps, buffer_ns, .. } => {
                self.choose(name, segment, bitrate_bps);
                note.event = "segment_chosen";
                note.what = Some(format!("segment {segment}, {} ms in store", buffer_ns / MS_NS));
                note.value = Some(bitrate_bps as f64);
            }
            AppEventKind::PlaybackStarted => note.event = "playback_started",
            AppEventKind::Stalled => note.event = "stalled",
            AppEventKind::Resumed { stalled_ns } => {
                note.event = "resumed";
                note.value = Some(stalled_ns as f64 / 1e6);
            }
            AppEventKind::PlaybackEnded => note.event = "playback_ended",
            AppEventKind::PageStarted { page } => {
                note.event = "page_started";
                note.what = Some(format!("page {page}"));
            }
            AppEventKind::PageLoaded { page, bytes, duration_ns } => {
                note.event = "page_loaded";
                note.what = Some(format!("page {page}"));
                note.bytes = Some(bytes);
                note.value = Some(duration_ns as f64 / 1e6);
            }
            AppEventKind::Done => note.event = "done",
        }
        self.notes.push(note);
    }

    /// Records a segment's bitrate; a repeated request replaces the earlier one.
    fn choose(&mut self, app: &str, segment: u32, bitrate_bps: u64) {
        let segments = self.choices.entry(app.to_owned()).or_default();
        segments.truncate(segment as usize);
        segments.push(bitrate_bps);
    }

    fn end(
        &mut self,
        app: usize,
        transfer: u64,
        bytes: u64,
        failed: bool,
        end_ns: i64,
        id: String,
    ) {
        let found = self.begun.iter().position(|b| (b.app, b.transfer) == (app, transfer));
        let Some(begun) = found.map(|index| self.begun.swap_remove(index)) else { return };
        let uploads = begun.upload_bytes > bytes;
        let (dir, bytes) =
            if uploads { (Direction::Ul, begun.upload_bytes) } else { (Direction::Dl, bytes) };
        let start_ns = begun.start_ns;
        let timed = TimedTransfer { id, dir, start_ns, end_ns, bytes, unfinished: failed };
        if failed { self.unfinished.push(timed) } else { self.ended.push(timed) }
    }

    /// Ends the run: open transfers stay unfinished. Failed transfers remain if they were
    /// not retried.
    pub(crate) fn cut(&mut self, apps: &[AppConfig], under_way: &[(usize, UnderWay)], end_ns: i64) {
        let mut cut = Vec::new();
        for begun in &self.begun {
            let is_it = |(app, way): &&(usize, UnderWay)| {
                (*app, way.transfer) == (begun.app, begun.transfer)
            };
            let found = under_way.iter().find(is_it).map(|(_, way)| *way);
            let way = found.unwrap_or(UnderWay {
                transfer: begun.transfer,
                uploads: begun.upload_bytes > 0,
                bytes: 0,
            });
            let dir = if way.uploads { Direction::Ul } else { Direction::Dl };
            let name = apps.get(begun.app).map_or("app", |config| config.name.as_str());
            let (id, start_ns) = (transfer_id(name, begun.transfer), begun.start_ns);
            cut.push(TimedTransfer {
                id,
                dir,
                start_ns,
                end_ns,
                bytes: way.bytes,
                unfinished: true,
            });
        }
        let again = |failed: &TimedTransfer| {
            self.ended.iter().chain(&cut).any(|other| other.id == failed.id)
        };
        let mut kept: Vec<TimedTransfer> = Vec::new();
        for failed in self.unfinished.drain(..).rev().filter(|failed| !again(failed)) {
            if !kept.iter().any(|later| later.id == failed.id) {
                kept.push(failed);
            }
        }
        kept.extend(cut);
        self.unfinished = kept;
    }
}
