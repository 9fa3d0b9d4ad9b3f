//! What there is beside the radio's records: captures and the application's own
//! transfers, set to the modem log's clock.

use airmile_infer::clocks::ClockLine;

use super::clocks::{self, ClockReport, Delivered};
use super::radio::RadioOptions;
use super::wire::{self, Wire};
use crate::error::Result;
use crate::input::{Progress, comes_once};
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
}

impl Beside {
    /// Reads captures, and aligns the clocks of all that is given; with the radio's
    /// inputs, opened and their transfers' clock set.
    ///
    /// # Errors
    /// A file cannot be read; there are captures alone; options do not go together.
    pub(crate) fn gather(
        inputs: &Inputs,
        options: &RadioOptions,
        progress: &Progress,
    ) -> Result<(Session, Self)> {
        options.check()?;
        let (radio, captures) = wire::part(inputs)?;
        let (wire, captures) = Wire::read(&captures, progress)?;
        let mut beside = Self { radio, wire, captures, clocks: Vec::new() };
        let session = beside.align(options, progress)?;
        Ok((session, beside))
    }

    fn align(&mut self, options: &RadioOptions, progress: &Progress) -> Result<Session> {
        if let Some(wire) = &self.wire {
            self.clocks.extend(wire.clocks().iter().cloned());
        }
        let session = Session::open(&self.radio, progress)?;
        let given = session.transfers().to_vec();
        let timed = given.iter().any(|t| t.time.is_some() && t.tti.is_none());
        let nothing = session.has_applications_alone() || (!timed && self.wire.is_none());
        // What comes once cannot be read for its clock first.
        let mut files = self.radio.files.iter().chain(&self.radio.transfers);
        if nothing || files.any(|path| comes_once(path)) {
            return Ok(session);
        }
        let radio = Delivered::read(session)?.arrivals(options.subscription);
        if let Some(wire) = self.wire.as_mut().filter(|wire| wire.is_at_phone()) {
            let line = clocks::of_capture(&radio, wire.arrivals());
            self.clocks.push(ClockReport::new(wire.name(), MODEM, line.as_ref(), true));
            if let Some(line) = &line {
                wire.set_clock_error(line.error_ns);
            }
            if let Some(line) = line.filter(ClockLine::differs) {
                wire.set_clock(&line);
            }
        }
        let mut session = Session::open(&self.radio, progress)?;
        if timed {
            let line = clocks::of_application(&radio, &given);
            self.clocks.push(ClockReport::new(TRANSFERS, MODEM, line.as_ref(), true));
            if let Some(line) = line.filter(ClockLine::differs) {
                session.set_clock(&line);
            }
        }
        Ok(session)
    }
}

/// What the application's transfers are called.
pub(super) const TRANSFERS: &str = "transfers";
/// What the reference is called.
const MODEM: &str = "the modem log";
