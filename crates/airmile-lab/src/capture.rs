//! Packet captures of a run: pcapng, nanoseconds, raw IP.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use airmile::write::pcapng::{DataLink, PcapNgFile, PcapNgInterface, PcapNgPacket};
use airmile_emulate::net::IpPacket;
use airmile_emulate::tcp::ConnectionEvent;
use airmile_emulate::{CapturePoint, DropPoint, RunSink, SenderPlace, SenderState, UserId};
use airmile_model::Record;

use airmile::{Error, Replacement, Result};

/// Bytes kept of each packet: headers with all options and the start of a request (chosen
/// here).
pub(crate) const SNAP_BYTES: u32 = 256;

/// A dropped packet.
#[derive(Debug, Clone)]
pub(crate) struct Drop {
    pub(crate) at_ns: i64,
    pub(crate) user: UserId,
    pub(crate) point: DropPoint,
    pub(crate) bytes: u32,
}

/// A capture file.
struct Capture {
    path: PathBuf,
    out: Replacement,
    writer: PcapNgFile<BufWriter<File>>,
    packets: u64,
}

/// Output of a run while it is running: captures go to files, everything else is kept.
pub(crate) struct Recorder {
    dir: PathBuf,
    about: String,
    captures: [Option<Capture>; 3],
    pub(crate) records: Vec<Record>,
    pub(crate) drops: Vec<Drop>,
    pub(crate) senders: Vec<SenderState>,
    pub(crate) sender_events: Vec<(SenderPlace, ConnectionEvent)>,
    failed: Option<Error>,
}

/// The captures' names and interfaces.
const FILES: [(&str, &[(&str, &str)]); 3] = [
    ("phone.pcapng", &[("phone", "the phone's modem")]),
    ("proxy.pcapng", &[("ran", "towards the base station"), ("core", "towards the server")]),
    ("server.pcapng", &[("server", "the server's network")]),
];

/// File and interface of a capture point.
const fn place(point: CapturePoint) -> (usize, u32) {
    match point {
        CapturePoint::Phone => (0, 0),
        CapturePoint::ProxyRan => (1, 0),
        CapturePoint::ProxyCore => (1, 1),
        CapturePoint::Server => (2, 0),
    }
}

impl Recorder {
    /// Captures go to `dir`; `about` is a comment in each.
    pub(crate) fn new(dir: &Path, about: String) -> Self {
        Self {
            dir: dir.to_owned(),
            about,
            captures: [None, None, None],
            records: Vec::new(),
            drops: Vec::new(),
            senders: Vec::new(),
            sender_events: Vec::new(),
            failed: None,
        }
    }

    /// Closes the capture files and returns their names.
    ///
    /// # Errors
    /// The first write error.
    pub(crate) fn finish(&mut self) -> Result<Vec<String>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut names = Vec::new();
        for (n, capture) in self.captures.iter_mut().enumerate() {
            let Some(capture) = capture.take() else { continue };
            let mut file = capture.writer.into_inner();
            file.flush().map_err(|e| Error::write(&capture.path, e))?;
            capture.out.done()?;
            names.push(FILES[n].0.to_owned());
        }
        Ok(names)
    }

    fn write(&mut self, at_ns: i64, point: CapturePoint, packet: &IpPacket) -> Result<()> {
        let (file, interface_id) = place(point);
        let capture = match &mut self.captures[file] {
            Some(capture) => capture,
            empty => empty.insert(Capture::create(&self.dir, file, &self.about)?),
        };
        let bytes = packet.emit();
        let kept = &bytes[..bytes.len().min(SNAP_BYTES as usize)];
        let packet = PcapNgPacket {
            interface_id,
            at_ns,
            inbound: is_inbound(point, packet),
            data: kept,
            wire_bytes: packet.ip_bytes(),
        };
        capture.packets += 1;
        capture.writer.packet(&packet).map_err(|e| Error::write(&capture.path, e))
    }
}

/// Phones have private addresses, servers do not.
const fn is_inbound(point: CapturePoint, packet: &IpPacket) -> bool {
    let to_phone = packet.dst.ip().is_private();
    match point {
        CapturePoint::Phone | CapturePoint::ProxyCore => to_phone,
        CapturePoint::Server | CapturePoint::ProxyRan => !to_phone,
    }
}

impl Capture {
    fn create(dir: &Path, file: usize, about: &str) -> Result<Self> {
        let (name, interfaces) = FILES[file];
        let path = dir.join(name);
        let (out, created) = Replacement::begin(&path)?;
        // libpcap 1.10.3 (Debian 12) rejects a second interface whose link type has
        // different numbers in files and in memory, such as RAW (101, 12); IPV4 is 228 in
        // both.
        let link = if interfaces.len() > 1 { DataLink::IPV4 } else { DataLink::RAW };
        let described = |&(name, what)| PcapNgInterface { link, name, what };
        let interfaces: Vec<_> = interfaces.iter().map(described).collect();
        let out_file = BufWriter::new(created);
        let writer = PcapNgFile::begin(out_file, Some(about), SNAP_BYTES, &interfaces)
            .map_err(|e| Error::write(&path, e))?;
        Ok(Self { path, out, writer, packets: 0 })
    }
}

impl RunSink for Recorder {
    fn record(&mut self, record: Record) {
        self.records.push(record);
    }

    fn packet(&mut self, at_ns: i64, point: CapturePoint, packet: &IpPacket) {
        if self.failed.is_none()
            && let Err(error) = self.write(at_ns, point, packet)
        {
            self.failed = Some(error);
        }
    }

    fn dropped(&mut self, at_ns: i64, user: UserId, point: DropPoint, packet: &IpPacket) {
        let bytes = packet.ip_bytes();
        self.drops.push(Drop { at_ns, user, point, bytes });
    }

    fn wants_senders(&self) -> bool {
        true
    }

    fn sender_state(&mut self, state: &SenderState) {
        self.senders.push(*state);
    }

    fn sender_event(&mut self, place: SenderPlace, event: &ConnectionEvent) {
        self.sender_events.push((place, event.clone()));
    }
}
