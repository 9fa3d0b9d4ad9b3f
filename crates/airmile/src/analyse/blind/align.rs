//! The clocks of application logs, aligned to a capture's.

use airmile_blind::CapturedPhone;
use airmile_model::{Clock, Direction};
use airmile_packets::phones::arrivals;
use airmile_packets::same_run::misfit;
use airmile_wire::attribute::CaptureSite;
use airmile_wire::clocks::{Aligned, Arrivals, ClockLine};

use super::super::aligned::TRANSFERS;
use super::super::belong;
use super::super::clocks::{self, ClockReport};
use super::Blind;
use crate::session::{Application, Session};
use crate::wording;
use airmile_io::error::Result;

impl Blind {
    /// Aligns the clock of the transfers, a log's or a table's, to the capture's.
    ///
    /// # Errors
    /// They do not show the same transfers.
    pub(super) fn align(&mut self, session: &Session) -> Result<()> {
        let given = session.transfers();
        let uploads = given.iter().all(|one| one.dir == Some(Direction::Ul));
        let (Some(phone), false) = (&self.phone, uploads) else { return Ok(()) };
        let log = session.applications().iter().find(|one| one.gave_transfers);
        let (spans, arrivals) = (clocks::spans(given, Direction::Dl), arrivals(phone));
        let name = log.map_or(TRANSFERS, |one| one.path.as_str());
        let by_requests = log.and_then(|one| by_requests(phone, one));
        if by_requests.is_none() {
            belong::check_transfers(name, &spans, (&self.name, &arrivals))?;
        }
        // Without enough requests on both sides: by when data arrived.
        let line = by_requests.map_or_else(|| clocks::of_application(&arrivals, &spans), Ok);
        if let Some(one) = log.filter(|_| by_requests.is_none())
            && let Some(why) = misfit_of(phone, one, &arrivals, &line)
        {
            self.doubt = Some(wording::not_joined(name, &self.name, &why));
            return Ok(());
        }
        self.clocks.push(ClockReport::of(TRANSFERS, &self.name, &line, true));
        self.application = line.ok().filter(ClockLine::differs);
        Ok(())
    }

    /// Aligns the clocks of the logs whose transfers are not the analysed ones. A log that may be of
    /// another run has no report; with a table, it is not joined.
    pub(super) fn align_others(&mut self, session: &Session) {
        let Some(phone) = self.phone.as_ref().filter(|_| self.doubt.is_none()) else { return };
        let arrivals = arrivals(phone);
        let is_alone = !session.applications().iter().any(|one| one.gave_transfers);
        let others = session.applications().iter().filter(|one| !one.gave_transfers);
        for one in others.filter(|one| one.has_placed_transfers()) {
            let by_requests = by_requests(phone, one).map(|line| (Ok(line), None));
            let (line, misfit) = by_requests.unwrap_or_else(|| {
                let spans = clocks::spans(&one.log.transfers_on(Clock::Modem), Direction::Dl);
                let line = clocks::of_application(&arrivals, &spans);
                let misfit = misfit_of(phone, one, &arrivals, &line);
                (line, misfit)
            });
            match misfit {
                None => self.clocks.push(ClockReport::of(&one.path, &self.name, &line, true)),
                Some(why) if is_alone => {
                    self.doubt = Some(wording::not_joined(&one.path, &self.name, &why));
                }
                Some(_) => {}
            }
        }
    }
}

/// A log's clock by its requests, which a capture at the phone shows.
fn by_requests(phone: &CapturedPhone, one: &Application) -> Option<ClockLine> {
    let is_near = matches!(phone.place, CaptureSite::Phone | CaptureSite::Inside);
    is_near.then(|| clocks::of_requests(phone.requests_ns(), &one.log.transfers)).flatten()
}

/// Why a log may be of another run than a capture at the phone.
fn misfit_of(
    phone: &CapturedPhone,
    one: &Application,
    arrivals: &Arrivals,
    line: &Aligned,
) -> Option<String> {
    let is_near = !matches!(phone.place, CaptureSite::Between | CaptureSite::Server);
    let found = || misfit(&one.log.transfers, arrivals, phone.requests_ns(), line);
    is_near.then(found).flatten()
}
