//! A packet study at a point of a run, without a capture file between them.

use airmile_decode::packet::{Frame, dissect};
use airmile_emulate::net::{Packet, Transport};
use airmile_emulate::{CapturePoint, Outcome, Scenario, Sink, run_into};
use airmile_infer::tcp::{PacketStudy, StudyOptions, StudySummary, Tables};
use airmile_model::flow::PacketRow;

use super::runs::cannot;
use crate::error::Result;

/// LINKTYPE_RAW.
const RAW: u32 = 101;

/// What was seen.
pub(super) struct Seen {
    pub(super) outcome: Outcome,
    pub(super) rows: Vec<PacketRow>,
    pub(super) summary: StudySummary,
    /// When how much payload reached the phone.
    pub(super) arrivals: Vec<(i64, u32)>,
    /// The same with IP and TCP headers.
    pub(super) arrived_ip_bytes: Vec<(i64, u32)>,
    /// Time stamps from the phone at the monitor: when, and TSval.
    pub(super) stamps: Vec<(i64, u32)>,
}

struct Monitor {
    study: PacketStudy,
    rows: Vec<PacketRow>,
    offset: u64,
    arrivals: Vec<(i64, u32)>,
    arrived_ip_bytes: Vec<(i64, u32)>,
    stamps: Vec<(i64, u32)>,
}

impl Monitor {
    fn study(&mut self, at_ns: i64, packet: &Packet) {
        let data = packet.emit();
        let (offset, wire_bytes) = (self.offset, packet.ip_bytes());
        self.offset += u64::from(wire_bytes);
        let frame = Frame { offset, at_ns, interface: 0, link: RAW, wire_bytes, data: &data };
        if let Ok(packet) = dissect(&frame) {
            self.study.push(&packet);
        }
        while let Some(row) = self.study.poll() {
            self.rows.push(row);
        }
    }
}

impl Sink for Monitor {
    fn packet(&mut self, at_ns: i64, point: CapturePoint, packet: &Packet) {
        let Transport::Tcp(segment) = &packet.transport else { return };
        let to_phone = packet.dst.ip().is_private();
        match point {
            // The gateway, where the paper's monitor stood.
            CapturePoint::ProxyRan => {
                if let (false, Some((ts_val, _))) = (to_phone, segment.timestamps) {
                    self.stamps.push((at_ns, ts_val));
                }
                self.study(at_ns, packet);
            }
            CapturePoint::Phone if to_phone && segment.payload_bytes() > 0 => {
                self.arrivals.push((at_ns, segment.payload_bytes()));
                self.arrived_ip_bytes.push((at_ns, packet.ip_bytes()));
            }
            _ => {}
        }
    }
}

/// Runs a scenario with a monitor between core and radio network: at the box
/// that the scenario has there.
pub(super) fn watch(scenario: &Scenario, options: &StudyOptions) -> Result<Seen> {
    let study = PacketStudy::new(StudyOptions { tables: Tables::ALL, ..options.clone() });
    let (rows, stamps) = (Vec::new(), Vec::new());
    let (arrivals, arrived_ip_bytes) = (Vec::new(), Vec::new());
    let mut monitor = Monitor { study, rows, offset: 0, arrivals, arrived_ip_bytes, stamps };
    let outcome = run_into(scenario, &mut monitor).map_err(cannot)?;
    let Monitor { study, mut rows, arrivals, arrived_ip_bytes, stamps, .. } = monitor;
    let summary = study.finish_with(&mut |row| rows.push(row));
    Ok(Seen { outcome, rows, summary, arrivals, arrived_ip_bytes, stamps })
}
