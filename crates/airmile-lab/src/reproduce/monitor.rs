//! A packet study at a point of a run: in virtual time without an intermediate capture
//! file, in real time from the run's files.

use std::net::IpAddr;
use std::path::Path;

use airmile_capture::packet::{Frame, dissect};
use airmile_emulate::net::{IpPacket, Transport};
use airmile_emulate::{CapturePoint, PHONE_ADDRESS, RunSink, Scenario, run_into};
use airmile_model::flow::PacketRow;
use airmile_model::{Direction, packet};
use airmile_wire::tcp::{PacketStudy, StudyOptions, StudySummary, Tables};

use super::runs::{cannot, downlink};
use airmile::Progress;
use airmile::read_capture;
use airmile::{Error, Result};

/// LINKTYPE_RAW.
const RAW: u32 = 101;

/// Observations of a run.
pub(super) struct Observation {
    /// Duration of the first download; absent: none ended.
    pub(super) download_ms: Option<f64>,
    pub(super) rows: Vec<PacketRow>,
    pub(super) summary: StudySummary,
    /// Time and amount of payload that reached the phone.
    pub(super) arrivals: Vec<(i64, u32)>,
    /// The same with IP and TCP headers.
    pub(super) arrived_ip_bytes: Vec<(i64, u32)>,
    /// Timestamps from the phone at the monitor: time, and TSval.
    pub(super) stamps: Vec<(i64, u32)>,
    /// The same where they leave the phone, without the uplink.
    pub(super) phone_stamps: Vec<(i64, u32)>,
    /// Data for the phone at the monitor: time, sequence number, bytes.
    pub(super) data: Vec<(i64, u32, u32)>,
    /// The phone's acknowledgements at the monitor: time, acknowledgement number.
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
    fn study(&mut self, at_ns: i64, packet: &IpPacket) {
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

impl RunSink for Monitor {
    fn packet(&mut self, at_ns: i64, point: CapturePoint, packet: &IpPacket) {
        let Transport::Tcp(segment) = &packet.transport else { return };
        let to_phone = packet.dst.ip().is_private();
        match point {
            // The gateway, the place of the paper's monitor.
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

impl Monitor {
    fn new(options: &StudyOptions) -> Self {
        Self {
            study: PacketStudy::new(StudyOptions { tables: Tables::ALL, ..options.clone() }),
            rows: Vec::new(),
            offset: 0,
            arrivals: Vec::new(),
            arrived_ip_bytes: Vec::new(),
            stamps: Vec::new(),
            phone_stamps: Vec::new(),
            data: Vec::new(),
            acks: Vec::new(),
        }
    }

    fn finish(self, download_ms: Option<f64>) -> Observation {
        let Self { study, mut rows, arrivals, arrived_ip_bytes, stamps, phone_stamps, .. } = self;
        let (data, acks) = (self.data, self.acks);
        let summary = study.finish_with(&mut |row| rows.push(row));
        Observation {
            download_ms,
            rows,
            summary,
            arrivals,
            arrived_ip_bytes,
            stamps,
            phone_stamps,
            data,
            acks,
        }
    }

    /// A packet of a capture on the radio side of the gateway.
    fn at_gateway(&mut self, packet: &packet::Packet<'_>) {
        if let packet::Transport::Tcp(tcp) = &packet.transport {
            let at_ns = packet.at_ns;
            if packet.dst == IpAddr::V4(PHONE_ADDRESS).into() {
                if packet.payload_bytes > 0 {
                    self.data.push((at_ns, tcp.seq.0, packet.payload_bytes));
                }
            } else {
                self.stamps.extend(tcp.timestamps.map(|(ts_val, _)| (at_ns, ts_val)));
                if tcp.flags.has(packet::TcpFlags::ACK) {
                    self.acks.push((at_ns, tcp.ack.0));
                }
            }
        }
        self.study.push(packet);
        while let Some(row) = self.study.poll() {
            self.rows.push(row);
        }
    }

    /// A packet of the phone's capture.
    fn at_phone(&mut self, packet: &packet::Packet<'_>) {
        let packet::Transport::Tcp(tcp) = &packet.transport else { return };
        let at_ns = packet.at_ns;
        if packet.dst != IpAddr::V4(PHONE_ADDRESS).into() {
            self.phone_stamps.extend(tcp.timestamps.map(|(ts_val, _)| (at_ns, ts_val)));
        } else if packet.payload_bytes > 0 {
            self.arrivals.push((at_ns, packet.payload_bytes));
            self.arrived_ip_bytes.push((at_ns, packet.ip_bytes));
        }
    }
}

/// Runs a scenario with a monitor between core and radio network: at the scenario's box
/// there.
pub(super) fn watch(scenario: &Scenario, options: &StudyOptions) -> Result<Observation> {
    let mut monitor = Monitor::new(options);
    let outcome = run_into(scenario, &mut monitor).map_err(cannot)?;
    let ended = downlink(&outcome.transfers).next();
    Ok(monitor.finish(ended.and_then(|t| t.truth.duration_ms)))
}

/// The same from a run's directory. Its scenario has a box.
pub(super) fn read_run(dir: &Path, options: &StudyOptions) -> Result<Observation> {
    let mut monitor = Monitor::new(options);
    let progress = Progress::default();
    read_capture(&dir.join("proxy.pcapng"), &progress, &mut |packet| {
        // The first interface is on the radio side.
        if packet.interface == 0 {
            monitor.at_gateway(packet);
        }
    })?;
    read_capture(&dir.join("phone.pcapng"), &progress, &mut |packet| monitor.at_phone(packet))?;
    let download = spans(dir)?.into_iter().next();
    Ok(monitor.finish(download.map(|(from_ns, to_ns)| (to_ns - from_ns) as f64 / 1e6)))
}

/// Start and end in ns of the downloads of a run.
pub(super) fn spans(dir: &Path) -> Result<Vec<(i64, i64)>> {
    #[derive(serde::Deserialize)]
    struct Row {
        start_us: i64,
        end_us: i64,
        dir: String,
    }
    let path = dir.join("transfers.csv");
    let wrong = |e: csv::Error| Error::read(&path, std::io::Error::other(e));
    let mut reader = csv::Reader::from_path(&path).map_err(wrong)?;
    let rows = reader.deserialize().collect::<std::result::Result<Vec<Row>, _>>().map_err(wrong)?;
    let downloads = rows.into_iter().filter(|row| row.dir == Direction::Dl.as_str());
    Ok(downloads.map(|row| (row.start_us * 1_000, row.end_us * 1_000)).collect())
}
