//! Captures with known truth: reading, studying and keeping rows.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use airmile_capture::packet::{CaptureReader, Captured, Frame, dissect};
use airmile_model::TcpEventKind;
use airmile_model::flow::{BandwidthSample, FlowRow, PacketRow};
use airmile_wire::tcp::{PacketStudy, SendRateThreshold, StudyOptions, StudySummary, Tables};
use anyhow::Context;

/// A frame that is kept.
pub struct Kept {
    offset: u64,
    at_ns: i64,
    link: u32,
    wire_bytes: u32,
    data: Vec<u8>,
}

impl Kept {
    /// Capture time, in nanoseconds.
    pub const fn at_ns(&self) -> i64 {
        self.at_ns
    }

    fn frame(&self) -> Frame<'_> {
        Frame {
            offset: self.offset,
            at_ns: self.at_ns,
            interface: 0,
            link: self.link,
            wire_bytes: self.wire_bytes,
            data: &self.data,
        }
    }

    /// Bytes on the wire.
    pub fn wire_bytes(&self) -> f64 {
        f64::from(self.wire_bytes)
    }

    /// Whether a raw IPv4 packet is from this address.
    pub fn is_from(&self, address: [u8; 4]) -> bool {
        self.data.get(12..16) == Some(&address)
    }
}

/// Result of a study.
pub struct Studied {
    pub flows: Vec<FlowRow>,
    pub bandwidth: Vec<BandwidthSample>,
    pub summary: StudySummary,
}

/// All frames of a capture, and its problems.
pub fn frames(path: &Path) -> anyhow::Result<(Vec<Kept>, Vec<String>)> {
    let mut bytes = Vec::new();
    let file = File::open(path).with_context(|| path.display().to_string())?;
    if path.extension().is_some_and(|e| e == "gz") {
        flate2::read::MultiGzDecoder::new(file).read_to_end(&mut bytes)?;
    } else {
        let mut file = file;
        file.read_to_end(&mut bytes)?;
    }
    let (mut kept, mut problems) = (Vec::new(), Vec::new());
    let mut reader = CaptureReader::new();
    let mut sink = |captured: Captured<'_>| match captured {
        Captured::Frame(f) => kept.push(Kept {
            offset: f.offset,
            at_ns: f.at_ns,
            link: f.link,
            wire_bytes: f.wire_bytes,
            data: f.data.to_vec(),
        }),
        Captured::Problem(problem) => problems.push(problem.to_string()),
    };
    reader.push(&bytes, &mut sink);
    reader.finish(&mut sink);
    Ok((kept, problems))
}

/// The event of each frame that has one, by its number from 1; `copy` if the study
/// considers the frame a duplicate.
pub fn tagged_events(frames: &[Kept]) -> BTreeMap<usize, String> {
    let options = StudyOptions { tables: Tables::ALL, ..StudyOptions::default() };
    let mut study = PacketStudy::new(options);
    let mut events = BTreeMap::new();
    for (index, kept) in frames.iter().enumerate() {
        let before = study.quality().copies;
        if let Ok(packet) = dissect(&kept.frame()) {
            study.push(&packet);
        }
        if study.quality().copies > before {
            events.insert(index + 1, "copy".to_owned());
        }
        while let Some(row) = study.poll() {
            if let PacketRow::Tcp(row) = row
                && !matches!(
                    row.event,
                    TcpEventKind::SlowStart
                        | TcpEventKind::Recovered
                        | TcpEventKind::WindowFull
                        | TcpEventKind::ZeroWindow
                )
            {
                events.insert(index + 1, row.event.as_str().to_owned());
            }
        }
    }
    events
}

/// Studies frames.
pub fn study(frames: &[Kept], bar: SendRateThreshold) -> Studied {
    let options =
        StudyOptions { tables: Tables::ALL, send_rate_threshold: bar, ..StudyOptions::default() };
    let mut study = PacketStudy::new(options);
    let (mut flows, mut bandwidth) = (Vec::new(), Vec::new());
    let mut take = |row| match row {
        PacketRow::Flow(row) => flows.push(*row),
        PacketRow::Bandwidth(row) => bandwidth.push(row),
        _ => {}
    };
    for kept in frames {
        if let Ok(packet) = dissect(&kept.frame()) {
            study.push(&packet);
        }
        while let Some(row) = study.poll() {
            take(row);
        }
    }
    let summary = study.finish_with(&mut take);
    flows.sort_by_key(|row| row.flow);
    Studied { flows, bandwidth, summary }
}
