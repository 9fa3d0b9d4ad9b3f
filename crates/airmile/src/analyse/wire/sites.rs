//! The captures of a phone: the clocks of all, and the one at a server.

use std::cmp::Reverse;

use airmile_packets::phone::Phone;
use airmile_wire::clocks::{Aligned, ClockLine, Unaligned, between_points};

use crate::analyse::clocks::ClockReport;

/// The captures other than the one nearest to the phone, with their names, and their clocks relative to
/// that one's by their common traffic.
pub(super) struct Sites<'a> {
    rest: &'a [(String, Phone)],
    direct: Vec<Aligned>,
}

/// The capture at a server that has the most of the phone's data.
pub(super) struct AtServer<'a> {
    pub(super) name: &'a str,
    pub(super) phone: &'a Phone,
    /// Its clock: an offset is the same for all, its drift is applied where it is known.
    line: Option<ClockLine>,
}

impl AtServer<'_> {
    pub(super) const fn line(&self) -> Option<&ClockLine> {
        self.line.as_ref()
    }
}

impl<'a> Sites<'a> {
    pub(super) fn of(first: &Phone, rest: &'a [(String, Phone)]) -> Self {
        let direct = rest.iter().map(|(_, user)| between_points(&first.pairs(user))).collect();
        Self { rest, direct }
    }

    /// A report of each clock, relative to that of the capture `name`.
    pub(super) fn clocks(&self, name: &str) -> Vec<ClockReport> {
        let each = self.rest.iter().enumerate();
        each.map(|(at, (other, _))| ClockReport::of(other, name, &self.clock_of(at), false))
            .collect()
    }

    /// The captures at servers.
    pub(super) fn servers(&self) -> impl Iterator<Item = &'a Phone> {
        self.rest.iter().map(|(_, user)| user).filter(|user| user.is_at_server())
    }

    pub(super) fn at_server(&self, first: &Phone) -> Option<AtServer<'a>> {
        let servers = self.rest.iter().enumerate().filter(|(_, (_, user))| user.is_at_server());
        let most = servers.max_by_key(|(at, (_, user))| (first.shared_bytes(user), Reverse(*at)));
        most.map(|(at, (name, phone))| AtServer {
            name,
            phone,
            line: self.clock_of(at).ok().filter(ClockLine::differs),
        })
    }

    /// The offset of a capture's clock from the first one's: directly, from their common traffic, or via a
    /// capture between them, as at a proxy that splits, if that is more precise.
    fn clock_of(&self, at: usize) -> Aligned {
        let (own, (_, user)) =
            self.direct.get(at).zip(self.rest.get(at)).ok_or(Unaligned::Nothing)?;
        let others = self.rest.iter().zip(&self.direct).enumerate().filter(|(n, _)| *n != at);
        let by_way = others.filter_map(|(_, ((_, between), there))| {
            Some(there.as_ref().ok()?.then(&between_points(&between.pairs(user)).ok()?))
        });
        let found = own.iter().copied().chain(by_way).min_by_key(|line| line.error_ns);
        found.map_or(*own, Ok)
    }
}
