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
    /// The same where they leave the phone: no uplink is between.
    pub(super) phone_stamps: Vec<(i64, u32)>,
    /// Data for the phone at the monitor: when, sequence number, bytes.
    pub(super) data: Vec<(i64, u32, u32)>,
    /// What the phone acknowledges at the monitor: when, up to which number.
    pub(super) acks: Vec<(i64, u32)>,
}

struct Monitor {
    study: PacketStudy,
    rows: Vec<PacketRow>,
    offset: u64,
    arrivals: Vec<(i64, u32)>,
    arrived_ip_bytes: Vec<(i64, u32)>,
    stamps: Vec<(i64, u32)>,
    phone_stamps: Vec<(i64, u32)>,
    data: Vec<(i64, u32, u32)>,
    acks: Vec<(i64, u32)>,
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
                if !to_phone && segment.flags.ack {
                    self.acks.push((at_ns, segment.ack));
                } else if to_phone && segment.payload_bytes() > 0 {
                    self.data.push((at_ns, segment.seq, segment.payload_bytes()));
                }
                self.study(at_ns, packet);
            }
            CapturePoint::Phone if to_phone && segment.payload_bytes() > 0 => {
                self.arrivals.push((at_ns, segment.payload_bytes()));
                self.arrived_ip_bytes.push((at_ns, packet.ip_bytes()));
            }
            CapturePoint::Phone if !to_phone => {
                if let Some((ts_val, _)) = segment.timestamps {
                    self.phone_stamps.push((at_ns, ts_val));
                }
            }
            _ => {}
        }
    }
}

/// Runs a scenario with a monitor between core and radio network: at the box
/// that the scenario has there.
pub(super) fn watch(scenario: &Scenario, options: &StudyOptions) -> Result<Seen> {
    let study = PacketStudy::new(StudyOptions { tables: Tables::ALL, ..options.clone() });
    let mut monitor = Monitor {
        study,
        rows: Vec::new(),
        offset: 0,
        arrivals: Vec::new(),
        arrived_ip_bytes: Vec::new(),
        stamps: Vec::new(),
        phone_stamps: Vec::new(),
        data: Vec::new(),
        acks: Vec::new(),
    };
    let outcome = run_into(scenario, &mut monitor).map_err(cannot)?;
    let Monitor { study, mut rows, arrivals, arrived_ip_bytes, stamps, phone_stamps, .. } = monitor;
    let (data, acks) = (monitor.data, monitor.acks);
    let summary = study.finish_with(&mut |row| rows.push(row));
    Ok(Seen {
        outcome,
        rows,
        summary,
        arrivals,
        arrived_ip_bytes,
        stamps,
        phone_stamps,
        data,
        acks,
    })
}
