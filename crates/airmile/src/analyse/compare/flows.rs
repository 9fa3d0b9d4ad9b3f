//! Captures of a run: the phone's connections, their exchanges and round trips.

use std::collections::HashMap;
use std::path::PathBuf;

use airmile_model::median::upper_median;
use airmile_model::packet::Address;
use airmile_packets::connections::{Connection, ConnectionReader, HandshakeSides};

use airmile_io::FileReport;
use airmile_io::capture::read_capture;
use airmile_io::error::Result;
use airmile_io::input::Progress;

/// Captures of which the client's side is below this share of the round trip are equally near to the
/// client (chosen here). Only the nearest ones are kept; a diagnosis also asks whether a radio link was
/// crossed (`airmile_wire::attribute::CaptureSite`).
const NEAR_CLIENT_SHARE: f64 = 0.1;

/// A capture's connections.
#[derive(Debug)]
pub(super) struct Captured {
    pub(super) name: String,
    pub(super) report: FileReport,
    pub(super) flows: Vec<Connection>,
    sides: HandshakeSides,
}

/// Reads captures and keeps those nearest to the client.
///
/// # Errors
/// One cannot be read.
pub(super) fn read(
    captures: &[PathBuf],
    progress: &Progress,
) -> Result<(Vec<Captured>, Vec<FileReport>)> {
    let mut all = Vec::new();
    for path in captures {
        let mut reading = ConnectionReader::default();
        let report = read_capture(path, progress, &mut |packet| reading.push(packet))?;
        let (flows, sides) = reading.finish();
        all.push(Captured { name: report.path.clone(), report, flows, sides });
    }
    let nearest = all
        .iter()
        .filter_map(|one| one.sides.client_share())
        .reduce(f64::min)
        .map_or(1.0, |least| least.max(NEAR_CLIENT_SHARE));
    // Without a handshake the place of a capture is unknown: one is kept if no place is known.
    let used = all.iter().position(|one| one.sides.client_share().is_some()).unwrap_or_default();
    let used_name = all.get(used).map(|one| one.name.clone()).unwrap_or_default();
    for (at, one) in all.iter_mut().enumerate() {
        if one.sides.client_share().is_none() && at != used {
            let why = "no handshake in it shows its place on the path";
            one.report.leave_out(&format!("{why}: {used_name} is used"));
        }
    }
    let reports = all.iter().map(|one| one.report.clone()).collect();
    let is_near = |one: &Captured| one.sides.client_share().is_none_or(|share| share <= nearest);
    all.retain(|one| one.report.left_out.is_none() && is_near(one));
    // A proxy is a client of the server, too, with a shorter path to it.
    let longest = all.iter().filter_map(Captured::round_trip_ns).max().unwrap_or(0);
    all.retain(|one| one.round_trip_ns().is_none_or(|rtt_ns| rtt_ns >= longest / 2));
    least_round_trips(&mut all);
    Ok((all, reports))
}

impl Captured {
    /// Whether it was taken nearer to the server than to the client; `None` without handshakes.
    pub(super) fn is_nearer_server(&self) -> Option<bool> {
        self.sides.client_share().map(|_| self.sides.is_nearer_server())
    }

    /// The median round trip of handshakes, in nanoseconds.
    fn round_trip_ns(&self) -> Option<i64> {
        let mut all: Vec<i64> = self.flows.iter().filter_map(|flow| flow.rtt_ns).collect();
        upper_median(&mut all, i64::cmp)
    }
}

/// Sets each connection's round trip to the minimum of those to its server's port: a handshake may
/// have waited for the radio.
fn least_round_trips(all: &mut [Captured]) {
    let mut least: HashMap<(Address, u16), i64> = HashMap::new();
    for flow in all.iter().flat_map(|one| &one.flows) {
        if let Some(own) = flow.rtt_ns {
            let slot = least.entry((flow.server, flow.port)).or_insert(own);
            *slot = (*slot).min(own);
        }
    }
    for flow in all.iter_mut().flat_map(|one| &mut one.flows) {
        flow.rtt_ns = least.get(&(flow.server, flow.port)).copied();
    }
}
