//! The captures that show the phone, and those that are left out.

use airmile_io::FileReport;
use airmile_io::error::Result;
use airmile_packets::phone::Phone;
use airmile_wire::clocks::{Unaligned, between_points};

use super::super::belong;

/// The phone in several captures.
pub(super) struct SeenAt {
    /// The capture nearest to it.
    pub(super) name: String,
    pub(super) first: Phone,
    /// The others with their names.
    pub(super) rest: Vec<(String, Phone)>,
    /// Captures that go on where the first one ends.
    parts: Vec<String>,
    /// Captures that are not used, and why.
    unused: Vec<(String, &'static str)>,
}

/// What to do with the parts of a capture that was written to several files.
const JOIN_PARTS: &str = "join the parts of a capture with `mergecap`";
/// What to do with files of one direction each.
const JOIN_WAYS: &str = "merge both (`mergecap -w both.pcapng FILE FILE`): it holds the packets of one \
    direction, those of the other are in";

impl SeenAt {
    /// By the captures' names and users; `None` without any.
    pub(super) fn of(mut seen: Vec<(String, Vec<Phone>)>) -> Option<Self> {
        // Nearest to the phone first: its connections are those over the air.
        seen.sort_by_key(|(_, users)| users.first().map(|user| (user.place, user.begun_ns())));
        let mut seen = seen.into_iter().filter(|(_, users)| !users.is_empty());
        let (name, users) = seen.next()?;
        let mut first = users.into_iter().next()?;
        let (mut rest, mut parts, mut unused) = (Vec::new(), Vec::new(), Vec::new());
        for (name, users) in seen {
            if users.first().is_some_and(|user| user.place == first.place) {
                if users.first().is_some_and(|user| first.is_other_way_of(user)) {
                    unused.push((name, JOIN_WAYS));
                } else if first.go_on(users) {
                    parts.push(name);
                } else {
                    unused.push((name, "it shows the same time at the same place as"));
                }
            } else {
                rest.extend(first.among(users).map(|user| (name, user)));
            }
        }
        Some(Self { name, first, rest, parts, unused })
    }

    /// Leaves out captures that have no connection in common with the first one, nor with another
    /// that is used.
    ///
    /// # Errors
    /// A capture is of another time, or has other connections between the same addresses and ports.
    pub(super) fn leave_out_strangers(&mut self) -> Result<()> {
        let own = (&*self.name, &self.first.arrivals);
        for (other, user) in &self.rest {
            if !self.first.shares_data_with(user) {
                belong::check_strangers(own, (other, &user.arrivals))?;
            } else if !self.first.shares_connections_with(user)
                && self.first.passages(user).is_empty()
            {
                let split = self.first.may_be_split_from(user);
                let line = between_points(&self.first.pairs(user)).ok().filter(|_| split);
                let line = line.ok_or(Unaligned::Unlike);
                belong::check_other_connections(own.0, other, &line)?;
            }
        }
        let (mut used, mut strange) = (Vec::new(), std::mem::take(&mut self.rest));
        // A proxy's other side is known by the capture at its near side.
        while let Some(at) = strange.iter().position(|(_, user)| {
            let shares = |(_, near): &(String, Phone)| near.shares_data_with(user);
            self.first.shares_data_with(user) || used.iter().any(shares)
        }) {
            used.push(strange.remove(at));
        }
        self.rest = used;
        let why = "none of its data is in";
        self.unused.extend(strange.into_iter().map(|(name, _)| (name, why)));
        Ok(())
    }

    /// Reports of a file what is not used, or not whole.
    pub(super) fn note(&self, file: &mut FileReport) {
        let unused = self.unused.iter().find(|(name, _)| *name == file.path);
        if let Some((_, why)) = unused {
            file.leave_out(&format!("{why} {}", self.name));
        } else if self.parts.contains(&file.path) {
            let what = "connections that go on from one to the other are not read whole";
            file.warn(format!("it goes on where {} ends: {what} ({JOIN_PARTS})", self.name));
        }
    }
}
