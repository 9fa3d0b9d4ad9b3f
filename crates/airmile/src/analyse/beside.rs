//! What there is beside the radio's records: captures and the application's own
//! transfers, set to the modem log's clock.

use std::path::Path;

use airmile_infer::clocks::ClockLine;

use super::clocks::{self, ClockReport, Delivered};
use super::radio::RadioOptions;
use super::wire::{self, Wire};
use crate::error::Result;
use crate::input::Progress;
use crate::session::{FileReport, Inputs, Session};

/// What a diagnosis rests on beside the radio's records.
#[derive(Debug)]
pub(crate) struct Beside {
    /// The inputs that hold the radio's records and transfers.
    pub(super) radio: Inputs,
    pub(crate) wire: Option<Wire>,
    /// A report of each capture.
    pub(crate) captures: Vec<FileReport>,
    pub(crate) clocks: Vec<ClockReport>,
    /// How far the given transfers' clock is to be set.
    transfers: Option<ClockLine>,
}

impl Beside {
    /// Reads captures, and aligns the clocks of all that is given.
    ///
    /// # Errors
    /// A file cannot be read; there are captures alone.
    pub(crate) fn gather(
        inputs: &Inputs,
        options: &RadioOptions,
        progress: &Progress,
    ) -> Result<Self> {
        let (radio, captures) = wire::part(inputs)?;
        let (wire, captures) = Wire::read(&captures, progress)?;
        let mut beside = Self { radio, wire, captures, clocks: Vec::new(), transfers: None };
        beside.align(options, progress)?;
        Ok(beside)
    }

    /// The radio's inputs, and how far the transfers' clock is to be set.
    pub(crate) const fn radio(&self) -> (&Inputs, Option<&ClockLine>) {
        (&self.radio, self.transfers.as_ref())
    }

    fn align(&mut self, options: &RadioOptions, progress: &Progress) -> Result<()> {
        let once = self.radio.files.iter().chain(&self.radio.transfers).any(|path| is_once(path));
        if let Some(wire) = &self.wire {
            self.clocks.extend(wire.clocks().iter().cloned());
        }
        if once {
            return Ok(());
        }
        let session = Session::open(&self.radio, progress)?;
        let given = session.transfers();
        let timed = given.iter().any(|t| t.time.is_some() && t.tti.is_none());
        if session.has_applications_alone() || (!timed && self.wire.is_none()) {
            return Ok(());
        }
        let radio = Delivered::read(&self.radio, progress)?.arrivals(options.subscription);
        if let Some(wire) = self.wire.as_mut().filter(|wire| wire.is_at_phone()) {
            let line = clocks::of_capture(&radio, wire.arrivals());
            self.clocks.push(ClockReport::new(wire.name(), MODEM, line.as_ref(), true));
            if let Some(line) = line.filter(ClockLine::differs) {
                wire.set_clock(&line);
            }
        }
        if timed {
            let line = clocks::of_application(&radio, given);
            self.clocks.push(ClockReport::new(TRANSFERS, MODEM, line.as_ref(), true));
            self.transfers = line.filter(ClockLine::differs);
        }
        Ok(())
    }
}

/// What the application's transfers are called.
pub(super) const TRANSFERS: &str = "transfers";
/// What the reference is called.
const MODEM: &str = "the modem log";

/// What comes once cannot be read for its clock first.
fn is_once(path: &Path) -> bool {
    path.as_os_str() == "-" || !(path.is_file() || path.is_dir())
}
