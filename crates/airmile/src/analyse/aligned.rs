//! Inputs in addition to the radio's records: captures and the application's own transfers, aligned
//! to the modem log's clock.

use std::path::PathBuf;

use airmile_model::{Clock, Direction};
use airmile_packets::phones::{Downloads, hidden_queue};
use airmile_packets::same_run::misfit;
use airmile_wire::attribute::CaptureSite;
use airmile_wire::clocks::{Aligned, Arrivals, ClockLine, Unaligned};

use super::belong;
use super::blind::Blind;
use super::clocks::{self, ClockReport, Delivered};
use super::page::is_of_browser;
use super::radio::RadioOptions;
use super::wire::{self, Wire};
use crate::fact::Restarter;
use crate::session::{Application, Inputs, Session};
use crate::wording;
use airmile_io::FileReport;
use airmile_io::error::Result;
use airmile_io::input::{Progress, comes_once};

/// The evidence in addition to the radio's records; empty by default.
#[derive(Debug, Default)]
pub(crate) struct AlignedInputs {
    /// The inputs with the radio's records and transfers.
    pub(crate) radio: Inputs,
    pub(crate) wire: Option<Wire>,
    /// The evidence of captures, if there is none of the radio.
    pub(crate) blind: Option<Blind>,
    /// A report of each capture.
    pub(crate) captures: Vec<FileReport>,
    /// A report of each file that was not read.
    pub(crate) unread: Vec<FileReport>,
    pub(crate) clocks: Vec<ClockReport>,
    /// Why the application's log is not joined with the captures: it may be of another run.
    pub(crate) doubt: Option<String>,
    /// Why the captures are not joined with the modem log.
    pub(crate) unjoined: Option<String>,
}

impl AlignedInputs {
    /// Reads captures and aligns the clocks of all inputs. Also returns the radio's inputs, opened,
    /// with the transfers' clock corrected.
    ///
    /// # Errors
    /// A file cannot be read, or options contradict each other.
    pub(crate) fn gather(
        inputs: &Inputs,
        options: &RadioOptions,
        progress: &Progress,
    ) -> Result<(Session, Self)> {
        options.check()?;
        let (radio, captures, unread) = wire::part(inputs)?;
        if let Some((session, blind)) = Blind::gather(&radio, &captures, options, progress)? {
            let clocks = blind.clocks().to_vec();
            let doubt = blind.doubt().map(str::to_owned);
            let blind = Some(blind);
            let aligned = Self { radio, blind, unread, clocks, doubt, ..Self::default() };
            return Ok((session, aligned));
        }
        let paths = captures;
        let pause_ns = i64::from(options.detect.pause_ms) * 1_000_000;
        let (mut wire, captures) = Wire::read(&paths, Some(pause_ns.max(1)), progress)?;
        if let Some(wire) = wire.as_mut().filter(|wire| wire.asks_arrivals())
            && let Some(path) = paths.iter().find(|path| path.display().to_string() == wire.name())
        {
            let downloads = Downloads::new(options.detect.min_bytes, options.detect.pause_ms);
            wire.set_hidden_queue(hidden_queue(path, downloads, progress)?);
        }
        let mut aligned = Self { radio, wire, captures, unread, ..Self::default() };
        let session = aligned.align(&paths, options, progress)?;
        Ok((session, aligned))
    }

    /// Whether bursts are needed: packets and pages are split by them.
    pub(crate) fn asks_bursts(&self, session: &Session) -> bool {
        let mut applications = session.applications().iter();
        self.wire.is_some() || applications.any(|one| is_of_browser(one.format))
    }

    /// The capture that is drawn, which is the nearest to the phone, and where it was taken.
    pub(crate) fn capture(&self) -> Option<(String, CaptureSite)> {
        let of_wire = self.wire.as_ref().map(|wire| (wire.name().to_owned(), wire.place));
        of_wire.or_else(|| {
            let blind = self.blind.as_ref()?;
            Some((blind.drawn()?.to_owned(), blind.capture_site()))
        })
    }

    /// The host that restarts slow start, by the captures.
    pub(crate) fn restarter(&self) -> Restarter {
        let of_wire = self.wire.as_ref().map(|wire| wire.restarter);
        let known = of_wire.or_else(|| self.blind.as_ref().map(|blind| blind.restarter));
        known.unwrap_or(Restarter::SenderOrMiddlebox)
    }

    /// The capture nearest to the phone, on any clock; `None` where a log is not joined with it.
    pub(crate) fn nearest_capture(&self) -> Option<String> {
        let of_wire = self.wire.as_ref().map(Wire::name);
        let nearest = of_wire.or_else(|| Some(self.blind.as_ref()?.name()));
        nearest.filter(|_| self.doubt.is_none()).map(str::to_owned)
    }

    fn align(
        &mut self,
        captures: &[PathBuf],
        options: &RadioOptions,
        progress: &Progress,
    ) -> Result<Session> {
        if let Some(wire) = &self.wire {
            self.clocks.extend(wire.clocks().iter().cloned());
        }
        let mut session = Session::open_to_judge(&self.radio, progress)?;
        session.check_one_har()?;
        if self.wire.as_ref().is_some_and(Wire::is_at_phone) && session.has_clocked_application() {
            let blind = Blind::of(&session, captures, options, progress)?;
            self.doubt = blind.doubt().map(str::to_owned);
        }
        let is_apart = self.doubt.is_some();
        session.set_apart(is_apart);
        let given = session.transfers().to_vec();
        let timed = given.iter().any(|t| t.time.is_some() && t.tti.is_none());
        let nothing = session.is_without_radio()
            || (!timed && self.wire.is_none() && session.applications().is_empty());
        if nothing {
            return Ok(session);
        }
        // A pipe cannot be read twice, first for its clock.
        let mut files = self.radio.files.iter().chain(&self.radio.transfers);
        if files.any(|path| comes_once(path)) {
            self.cannot_align("a pipe cannot be read twice");
            return Ok(session);
        }
        let delivered = Delivered::read(session)?;
        let partial = delivered.is_partial();
        let (untimed, padded) = (delivered.is_untimed(), delivered.is_padded());
        let [radio, sent] = delivered.arrivals(options.subscription);
        if untimed {
            self.cannot_align(clocks::UNTIMED);
            self.unjoined = self.clocks.last().map(|clock| clock.says.clone());
        } else {
            self.align_capture(&radio, partial)?;
        }
        let mut session = Session::open_to_judge(&self.radio, progress)?;
        session.set_apart(is_apart);
        let wire = self.wire.as_ref().filter(|_| given.is_empty());
        if let Some((wire, shown)) =
            wire.and_then(|one| Some((one, one.exchanged(options.detect)?)))
            && let Some(what) = session.set_captured(shown, [&radio, &sent], padded)
        {
            let of_wire = self.captures.iter_mut().filter(|file| file.path == wire.name());
            of_wire.for_each(|file| file.warn(what.clone()));
        }
        if timed {
            // Uploads alone: by what the phone sent.
            let uploads = clocks::spans(&given, Direction::Dl).is_empty();
            let (dir, came) =
                if uploads { (Direction::Ul, &sent) } else { (Direction::Dl, &radio) };
            let spans = clocks::spans(&given, dir);
            let log = session.applications().iter().find(|one| one.gave_transfers);
            let name = log.map_or("the list of transfers", |one| &one.path);
            belong::check_transfers(name, &spans, (MODEM, came))?;
            let line = match uploads {
                true => clocks::of_uploads([&sent, &radio], &spans),
                false => clocks::of_application(&radio, &spans),
            };
            if let Some(log) = log.filter(|_| !uploads && !partial)
                && self.is_of_another_run(log, came, &line)
            {
                session.set_apart(true);
                return Ok(session);
            }
            if uploads && log.is_some() && line.is_err() && !clocks::are_within(&spans, came) {
                session.set_apart(true);
                self.clocks.push(ClockReport::new(TRANSFERS, MODEM, Err(clocks::UNPLACED), true));
                return Ok(session);
            }
            self.clocks.push(ClockReport::of(TRANSFERS, MODEM, &line, true));
            if let Some(line) = line.ok().filter(ClockLine::differs) {
                session.set_clock(&line);
            }
        }
        if !is_apart {
            self.align_others((&radio, partial), &mut session)?;
        }
        Ok(session)
    }

    fn align_capture(&mut self, radio: &Arrivals, partial: bool) -> Result<()> {
        let Some(wire) = self.wire.as_mut() else { return Ok(()) };
        belong::check_capture(wire.name(), wire.arrivals(), radio)?;
        if !wire.is_at_phone() {
            let why = match wire.round_trip_ns {
                0 => "it shows no round trips, so where it was taken is not known",
                _ => {
                    "it was not taken at the phone, and packets there still wait in the cell's queue"
                }
            };
            self.cannot_align(why);
            return Ok(());
        }
        let mut line = clocks::of_capture(radio, wire.shown());
        belong::check_bytes(wire.name(), wire.arrivals(), (radio, partial), &mut line)?;
        self.clocks.push(ClockReport::of(wire.name(), MODEM, &line, true));
        if line == Err(Unaligned::Jumps) {
            let why = format!("{} is not joined with {MODEM}: {}", wire.name(), clocks::JUMPS);
            self.captures.iter_mut().for_each(|file| file.leave_out(&why));
            self.unjoined = self.clocks.last().map(|clock| clock.says.clone());
            self.wire = None;
            return Ok(());
        }
        if let Ok(line) = &line {
            wire.set_clock_error(line.error_ns);
        }
        if let Some(line) = line.ok().filter(ClockLine::differs) {
            wire.set_clock(&line);
        }
        Ok(())
    }

    /// Aligns the clocks of application logs whose transfers are not the analysed ones.
    fn align_others(
        &mut self,
        (radio, partial): (&Arrivals, bool),
        session: &mut Session,
    ) -> Result<()> {
        for at in 0..session.applications().len() {
            let Some(one) = session.applications().get(at).filter(|one| !one.gave_transfers) else {
                continue;
            };
            let spans = clocks::spans(&one.log.transfers_on(Clock::Modem), Direction::Dl);
            if spans.is_empty() {
                continue;
            }
            belong::check_transfers(&one.path, &spans, (MODEM, radio))?;
            let line = clocks::of_application(radio, &spans);
            if !partial && self.is_of_another_run(one, radio, &line) {
                continue;
            }
            self.clocks.push(ClockReport::of(&one.path, MODEM, &line, true));
            if let Some(line) = line.ok().filter(ClockLine::differs) {
                session.retime_application(at, &line);
            }
        }
        Ok(())
    }

    /// Whether a browser's log may be of another run than the modem log, by the bytes that it received;
    /// a capture at the phone shows more.
    fn is_of_another_run(&mut self, log: &Application, radio: &Arrivals, line: &Aligned) -> bool {
        let is_asked =
            is_of_browser(log.format) && !self.wire.as_ref().is_some_and(Wire::is_at_phone);
        let why = is_asked.then(|| misfit(&log.log.transfers, radio, &[], line)).flatten();
        let Some(why) = why.map(|why| why.replace("the capture", MODEM)) else { return false };
        self.doubt = Some(wording::not_joined(&log.path, MODEM, &why));
        true
    }

    fn cannot_align(&mut self, why: &str) {
        if let Some(wire) = &self.wire {
            self.clocks.push(ClockReport::new(wire.name(), MODEM, Err(why), true));
        }
    }
}

/// The name of the application's transfers in clock reports.
pub(crate) const TRANSFERS: &str = "transfers";
/// The name of the reference clock in clock reports.
pub(super) const MODEM: &str = "the modem log";
