//! A modem's log that grows while the cell runs, for those who watch it live.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use airmile::write::modem_log;
use airmile_model::{CellInfo, Record};

use crate::error::{Attempt, Result};

/// TTIs of a batch (chosen here: as phones hand their logs over, some ten times a second).
const BATCH_TTIS: u32 = 40;

/// Takes what the phone's modem would log to a thread that writes it.
///
/// Each batch is a log of its own, one after the other: what a modem would still hold
/// back at its end is in it, up to 300 ms earlier than a modem would write it.
#[derive(Debug)]
pub(crate) struct LiveModem {
    pub(crate) batch: Vec<Record>,
    ttis: u32,
    out: mpsc::Sender<Vec<Record>>,
}

impl LiveModem {
    /// Into a new file.
    pub(crate) fn new(path: &Path) -> Result<Self> {
        let mut file = File::create(path).attempt(|| path.display().to_string())?;
        let (out, batches) = mpsc::channel::<Vec<Record>>();
        let write = move || {
            let mut cells = Cells::default();
            for batch in batches {
                let records = cells.with_cell(batch);
                let log = modem_log::write(&records, &modem_log::Options::default());
                // Without a cell there is nothing to log yet; a reader that has gone, or
                // a disk that is full, does not hold up the cell.
                if let Ok(log) = log
                    && file.write_all(&log).is_err()
                {
                    break;
                }
            }
        };
        thread::Builder::new()
            .name("modem".to_owned())
            .spawn(write)
            .attempt(|| "cannot start the thread of the modem's log".to_owned())?;
        Ok(Self { batch: Vec::new(), ttis: 0, out })
    }

    /// A TTI has ended.
    pub(crate) fn flush(&mut self) {
        self.ttis += 1;
        if self.ttis >= BATCH_TTIS && !self.batch.is_empty() {
            self.ttis = 0;
            // As of the recorder.
            let _ = self.out.send(std::mem::take(&mut self.batch));
        }
    }
}

/// The cell, which each log names.
#[derive(Debug, Default)]
struct Cells {
    last: Option<CellInfo>,
}

impl Cells {
    fn with_cell(&mut self, batch: Vec<Record>) -> Vec<Record> {
        let told = batch.iter().find_map(|record| match record {
            Record::CellInfo(info) if info.cell == 0 => Some(info.clone()),
            _ => None,
        });
        if told.is_some() {
            self.last = told;
            return batch;
        }
        let at = batch.iter().find_map(Record::at);
        let again = self.last.clone().map(|cell| Record::CellInfo(CellInfo { at, ..cell }));
        again.into_iter().chain(batch).collect()
    }
}
