//! Feedback of phones to servers about their radio.

use super::{Node, RunSink, Simulation, UserHosts};
use crate::host::radio::{RadioReader, Reporter};
use crate::net::{Host, IpPacket};
use crate::random::{Owner, Process};
use crate::scenario::Scenario;
use crate::user::UserId;

impl<H: Host> Simulation<H> {
    /// Installs a reader of the modem's log on a user's phone, whose reports go to the
    /// servers. Call before the first TTI.
    pub fn attach(&mut self, scenario: &Scenario, user: UserId, reader: Box<dyn RadioReader>) {
        let Some(place) = self.users.get_mut(user.index()) else { return };
        let owner = if user.is_measured() { Owner::PHONE } else { Owner::named(&place.name) };
        let losses = owner.random(scenario.seed, Process::ReportLoss);
        let config = scenario.radio_reports.clone();
        place.reporter = Some(Reporter::new(reader, config, losses, self.start_ns));
        if !user.is_measured() {
            self.cell.log_user(scenario, user, (&place.name, &place.link));
        }
    }

    /// Sends the reports that are due.
    pub(super) fn report(&mut self, now_ns: i64, sink: &mut impl RunSink) {
        for user in (0..self.users.len()).map(UserId) {
            let UserHosts { reporter, phone, address, .. } = &mut self.users[user.index()];
            let Some(reporter) = reporter.as_mut().filter(|r| r.is_due(now_ns)) else { continue };
            let Some(feedback) = reporter.ask(now_ns, phone.phone_view()) else { continue };
            let servers = phone.servers().into_iter();
            let packets: Vec<IpPacket> =
                servers.map(|server| reporter.packet(*address, server, &feedback)).collect();
            for packet in packets {
                self.depart(now_ns, user, Node::Phone, packet, sink);
            }
        }
    }
}
