//! State of the TCP senders as ground truth: windows, limits, and events.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;

use crate::host::ScenarioHost;
use crate::run::{RunSink, Simulation};
use crate::transport::tcp::{ConnectionEvent, Snapshot, TcpConnection};
use crate::user::UserId;

/// A sender of the measured phone's traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SenderPlace {
    /// The phone.
    Phone,
    /// The box, towards the phone.
    ProxyToPhone,
    /// The box, towards the server.
    ProxyToServer,
    /// The server.
    Server,
}

/// A sender's state at the end of a millisecond in which it changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderState {
    /// Time in ns since the Unix epoch.
    pub at_ns: i64,
    /// The host.
    pub place: SenderPlace,
    /// Its address.
    pub local: SocketAddrV4,
    /// Its peer's.
    pub remote: SocketAddrV4,
    /// The state.
    pub snapshot: Snapshot,
}

/// Checks the senders once a millisecond.
#[derive(Debug, Default)]
pub(crate) struct Senders {
    last: BTreeMap<(SenderPlace, SocketAddrV4, SocketAddrV4), Snapshot>,
}

impl Senders {
    /// Reports changes since the last check.
    pub(crate) fn look(
        &mut self,
        simulation: &mut Simulation<ScenarioHost>,
        sink: &mut impl RunSink,
    ) {
        let at_ns = simulation.now_ns();
        for at in [SenderPlace::Phone, SenderPlace::Server, SenderPlace::ProxyToPhone] {
            let host = match at {
                SenderPlace::Phone => simulation.phone(UserId::MEASURED),
                SenderPlace::Server => simulation.server(UserId::MEASURED),
                _ => simulation.proxy(UserId::MEASURED),
            };
            let Some(host) = host else { continue };
            while let Some((place, event)) = host.poll_sender_event(at) {
                sink.sender_event(place, &event);
            }
            host.senders(at, &mut |place, connection| {
                self.ingest(at_ns, place, connection, sink);
            });
        }
    }

    fn ingest(
        &mut self,
        at_ns: i64,
        place: SenderPlace,
        connection: &TcpConnection,
        sink: &mut impl RunSink,
    ) {
        let (local, remote) = (connection.local(), connection.remote());
        let snapshot = connection.snapshot();
        if self.last.insert((place, local, remote), snapshot) != Some(snapshot) {
            sink.sender_state(&SenderState { at_ns, place, local, remote, snapshot });
        }
    }
}

impl ScenarioHost {
    /// Passes each TCP connection of a host at `at` to `show`.
    fn senders(&self, at: SenderPlace, show: &mut dyn FnMut(SenderPlace, &TcpConnection)) {
        if let Self::Proxy(proxy) = self {
            use crate::core::proxy::Side::{Client, Server};
            proxy.connections(Client).for_each(|(_, c)| show(SenderPlace::ProxyToPhone, c));
            proxy.connections(Server).for_each(|(_, c)| show(SenderPlace::ProxyToServer, c));
        }
        for host in self.tcp_hosts() {
            host.connections().for_each(|(_, connection)| show(at, connection));
        }
    }

    fn poll_sender_event(&mut self, at: SenderPlace) -> Option<(SenderPlace, ConnectionEvent)> {
        if let Self::Proxy(proxy) = self {
            return proxy.poll_connection_event().map(|(side, event)| match side {
                crate::core::proxy::Side::Client => (SenderPlace::ProxyToPhone, event),
                crate::core::proxy::Side::Server => (SenderPlace::ProxyToServer, event),
            });
        }
        self.tcp_hosts_mut().find_map(|host| host.poll_connection_event()).map(|e| (at, e))
    }
}
