//! Writes a run's output in a separate thread, so that a slow disk does not delay the cell.

use std::borrow::Cow;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use airmile_emulate::net::IpPacket;
use airmile_emulate::{CapturePoint, DropPoint, RunSink, SenderState, UserId};
use airmile_host::Attempt;
use airmile_lab::RunWriter;
use airmile_model::Record;

use crate::error::{Error, Result};
use crate::marking::Marking;

/// An item for a run's files.
#[derive(Debug)]
enum RecordedEvent {
    Record(Record),
    Packet(i64, CapturePoint, IpPacket),
    Dropped(i64, UserId, DropPoint, IpPacket),
    Sender(SenderState),
    /// All items up to this time, in ns since the Unix epoch, have been sent.
    Tick(i64),
}

/// Sends a run's output to the writing thread, a TTI at a time.
#[derive(Debug)]
pub(crate) struct Feed {
    batch: Vec<RecordedEvent>,
    /// Absent if no output is wanted.
    out: Option<mpsc::Sender<Vec<RecordedEvent>>>,
    /// A modem that marks packets.
    marking: Option<Marking>,
}

impl Feed {
    /// A recorder that discards everything.
    pub(crate) const fn none() -> Self {
        Self { batch: Vec::new(), out: None, marking: None }
    }

    /// A recorder into a run's files, and a handle that returns them when the feed has
    /// ended.
    pub(crate) fn into(mut writer: RunWriter) -> Result<(Self, Recording)> {
        let (out, batches) = mpsc::channel::<Vec<RecordedEvent>>();
        let write = move || {
            for event in batches.into_iter().flatten() {
                match event {
                    RecordedEvent::Record(record) => writer.record(record),
                    RecordedEvent::Packet(at_ns, point, packet) => {
                        writer.packet(at_ns, point, &packet)
                    }
                    RecordedEvent::Dropped(at_ns, user, point, packet) => {
                        writer.dropped(at_ns, user, point, &packet);
                    }
                    RecordedEvent::Sender(state) => writer.sender_state(&state),
                    RecordedEvent::Tick(now_ns) => writer.tick(now_ns),
                }
            }
            writer
        };
        let thread = thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(write)
            .attempt(|| "cannot start the thread that writes".to_owned())?;
        Ok((Self { batch: Vec::new(), out: Some(out), marking: None }, Recording(thread)))
    }

    /// With a modem that marks packets; `None`: one that does not.
    pub(crate) fn with_marking(self, marking: Option<Marking>) -> Self {
        Self { marking, ..self }
    }

    /// The modem's mark on a packet that is handed to its host.
    pub(crate) fn hand_out(&mut self, bytes: &mut [u8]) {
        self.marking.iter_mut().for_each(|marking| marking.hand_out(bytes));
    }

    /// For the state of senders; `None` if nothing is kept.
    pub(crate) fn senders(&self) -> Option<Senders> {
        self.out.clone().map(Senders)
    }

    /// Whether output is kept.
    pub(crate) const fn keeps(&self) -> bool {
        self.out.is_some()
    }

    /// Ends a TTI at a time in ns since the Unix epoch.
    pub(crate) fn flush(&mut self, now_ns: i64) {
        self.push(|| RecordedEvent::Tick(now_ns));
        if let Some(out) = self.out.as_ref().filter(|_| !self.batch.is_empty()) {
            // The thread ends after this one, so its end of the channel exists.
            let _ = out.send(std::mem::take(&mut self.batch));
        }
    }

    fn push(&mut self, event: impl FnOnce() -> RecordedEvent) {
        if self.keeps() {
            self.batch.push(event());
        }
    }
}

/// Sends the state of TCP senders to the writing thread, which ends only after all of these
/// are dropped, too.
#[derive(Debug, Clone)]
pub(crate) struct Senders(mpsc::Sender<Vec<RecordedEvent>>);

impl Senders {
    /// A sender's state changed.
    pub(crate) fn send(&self, state: SenderState) {
        // As in `flush`.
        let _ = self.0.send(vec![RecordedEvent::Sender(state)]);
    }
}

impl RunSink for Feed {
    fn record(&mut self, record: Record) {
        self.push(|| RecordedEvent::Record(record));
    }

    fn packet(&mut self, at_ns: i64, point: CapturePoint, packet: &IpPacket) {
        let packet = match &mut self.marking {
            Some(marking) => marking.passes(at_ns, point, packet),
            None => Cow::Borrowed(packet),
        };
        self.push(|| RecordedEvent::Packet(at_ns, point, packet.into_owned()));
    }

    fn dropped(&mut self, at_ns: i64, user: UserId, point: DropPoint, packet: &IpPacket) {
        self.push(|| RecordedEvent::Dropped(at_ns, user, point, packet.clone()));
    }
}

/// The writing thread.
#[derive(Debug)]
pub(crate) struct Recording(JoinHandle<RunWriter>);

impl Recording {
    /// The run's files, when everything is written.
    pub(crate) fn finish(self) -> Result<RunWriter> {
        self.0.join().map_err(|_| Error::Thread("the recorder"))
    }
}
