//! The lines that a report draws next to the radio: bytes in flight, windows and round trips from a
//! capture, and the events of application logs, on the report's time axis.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use airmile_model::flow::PacketRow;
use airmile_model::{Direction, PlayerEventKind, TimeBase, TtiClock, TtiIndex};
use airmile_wire::attribute::CaptureSite;
use airmile_wire::tcp::{
    Echoes, FlightSum, PacketStudy, StudyOptions, Tables, Traced, TracedPacket,
};

use super::application::before_first_byte_ns;
use super::cause_marks::{CauseMark, cause_marks};
use super::clocks::ClockReport;
use super::diagnose::Diagnosis;
use super::frames::{FrameSpan, ahead_ns, frames};
use super::logged::{Logged, end_ms, take_logged};
use super::radio::RadioAnalysis;
use airmile_io::capture::read_capture;
use airmile_io::error::Result;
use airmile_io::input::Progress;
use airmile_radio::series::Series;

/// Maximum number of points of a line; beyond it neighbours are merged, keeping their minimum and
/// maximum (chosen here: a page of some MB, with more detail than visible).
const MOST_POINTS: usize = 400_000;
/// Maximum number of application marks; the rest are counted (chosen here).
const MOST_MARKS: usize = 200_000;
/// States of connections are put in order this often (chosen here).
const SETTLE_NS: i64 = 100_000_000;

/// Minimum and maximum of a measure during some TTIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangePoint {
    /// First TTI.
    pub tti: i64,
    /// Minimum.
    pub least: u32,
    /// Maximum.
    pub most: u32,
}

/// An event of an application log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkKind {
    /// A request, from its start to its end.
    Request,
    /// A wait for the first byte.
    Wait,
    /// A stall of the player.
    Stall,
    /// A change of bitrate, to the value in kbit/s.
    Switch,
    /// The player started to play.
    Playing,
    /// A failure.
    Failed,
}

impl MarkKind {
    /// All kinds, in the order of their codes.
    pub const ALL: [Self; 6] =
        [Self::Request, Self::Wait, Self::Stall, Self::Switch, Self::Playing, Self::Failed];

    /// The name in the page's data.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Wait => "wait",
            Self::Stall => "stall",
            Self::Switch => "switch",
            Self::Playing => "playing",
            Self::Failed => "failed",
        }
    }
}

/// A mark on the axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Its kind.
    pub kind: MarkKind,
    /// First TTI.
    pub from_tti: i64,
    /// End TTI.
    pub to_tti: i64,
    /// A number: bytes of a request, kbit/s of a bitrate.
    pub value: u32,
}

/// Everything drawn next to the radio.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lanes {
    /// The capture with the packets.
    pub capture: Option<String>,
    /// Bytes in flight to the phone, over all connections.
    pub flight_bytes: Vec<RangePoint>,
    /// Congestion window in bytes of the sending connection, if its packets show it.
    pub cwnd_bytes: Vec<RangePoint>,
    /// Receive window in bytes of the sending connection.
    pub rwnd_bytes: Vec<RangePoint>,
    /// Round trips in microseconds.
    pub rtt_us: Vec<RangePoint>,
    /// The player's buffer in ms.
    pub buffer_ms: Vec<RangePoint>,
    /// Events of application logs, by start.
    pub marks: Vec<Mark>,
    /// Further marks that were dropped.
    pub more_marks: u64,
    /// What limited the phone, in order: of transfers at the same time, the one that began first.
    pub causes: Vec<CauseMark>,
    /// For each transfer and each of its pieces of evidence, the numbers of the capture's first and last
    /// frame in that time.
    pub(crate) frames: Vec<Vec<FrameSpan>>,
}

impl Lanes {
    /// Collects the lines. `capture` is the one nearest to the phone.
    ///
    /// # Errors
    /// The capture cannot be read again.
    pub(crate) fn gather(
        capture: Option<(&str, CaptureSite)>,
        diagnosis: &Diagnosis,
        answer: &RadioAnalysis,
        series: &Series,
        progress: &Progress,
    ) -> Result<Self> {
        let axis = axis_clock(diagnosis, answer, series);
        let mut lanes = Self::default();
        if let Some((name, site)) = capture.filter(|_| !axis.is_empty()) {
            let clock = diagnosis.clocks.iter().find(|clock| clock.file == name && clock.corrected);
            let at_phone = site == CaptureSite::Phone;
            let mut wire = WireLanes::new(&axis, clock, at_phone);
            wire.read(Path::new(name), progress)?;
            lanes.capture = Some(name.to_owned());
            lanes.flight_bytes = wire.flight.points;
            lanes.cwnd_bytes = wire.cwnd.points;
            lanes.rwnd_bytes = wire.rwnd.points;
            lanes.rtt_us = wire.rtt.points;
            lanes.frames = frames(Path::new(name), diagnosis, (&axis, clock), progress)?;
        }
        lanes.causes = cause_marks(diagnosis, &axis);
        lanes.add_applications(answer, &axis);
        Ok(lanes)
    }

    /// Whether there is nothing to draw.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.flight_bytes.is_empty()
            && self.rtt_us.is_empty()
            && self.buffer_ms.is_empty()
            && self.marks.is_empty()
    }

    /// Calls `cover` for each part of the axis with drawings.
    pub(crate) fn cover(&self, cover: &mut dyn FnMut(i64, i64)) {
        for points in [&self.flight_bytes, &self.rtt_us, &self.buffer_ms] {
            points.iter().for_each(|point| cover(point.tti, point.tti.saturating_add(1)));
        }
        self.marks.iter().for_each(|m| cover(m.from_tti, m.to_tti.saturating_add(1)));
    }

    fn add_applications(&mut self, answer: &RadioAnalysis, axis: &TtiClock) {
        let mut buffer = Points::default();
        let mut logged = Logged::new();
        for application in &answer.applications {
            let log = &application.log;
            let mut earlier = logged.clone();
            // Events without a time of day can be placed only if there is nothing else.
            if log.scale.base != TimeBase::Wall && !answer.is_alone() {
                continue;
            }
            for transfer in &log.transfers {
                let before = take_logged(transfer, &mut earlier);
                if before.is_none() {
                    logged.entry(end_ms(transfer)).or_default().push(transfer);
                }
                let Some((from_tti, to_tti)) = place(axis, transfer.start_ns, transfer.end_ns)
                else {
                    continue;
                };
                let bytes = transfer.bytes.unwrap_or(0);
                if before.is_none() {
                    self.mark(MarkKind::Request, from_tti, to_tti, saturate(bytes));
                }
                let has_wait = before.is_some_and(|one| before_first_byte_ns(one).is_some());
                if let Some(ns) = before_first_byte_ns(transfer).filter(|_| !has_wait) {
                    let first = axis.tti_at(transfer.start_ns.saturating_add(ns));
                    let first = first.map_or(to_tti, |first| first.0.min(to_tti));
                    self.mark(MarkKind::Wait, from_tti, first, 0);
                }
                if transfer.failed && !before.is_some_and(|one| one.failed) {
                    self.mark(MarkKind::Failed, to_tti, to_tti, 0);
                }
            }
            for event in &log.events {
                let value = event.value.unwrap_or(0.0).max(0.0);
                let is_stall = event.kind == PlayerEventKind::Stall;
                let lasted_ns = if is_stall { (value * 1e6) as i64 } else { 0 };
                let end_ns = event.at_ns.saturating_add(lasted_ns);
                let Some((at, end)) = place(axis, event.at_ns, end_ns) else { continue };
                match event.kind {
                    PlayerEventKind::Stall => self.mark(MarkKind::Stall, at, end, 0),
                    PlayerEventKind::Switch => {
                        self.mark(MarkKind::Switch, at, at, saturate((value / 1e3) as u64));
                    }
                    PlayerEventKind::Started => self.mark(MarkKind::Playing, at, at, 0),
                    PlayerEventKind::Failed => self.mark(MarkKind::Failed, at, at, 0),
                    PlayerEventKind::Buffer => {
                        buffer.push(Some(TtiIndex(at)), saturate(value as u64));
                    }
                    _ => {}
                }
            }
        }
        buffer.points.sort_by_key(|point| point.tti);
        self.buffer_ms = buffer.points;
        self.marks.sort_by_key(|mark| mark.from_tti);
    }

    fn mark(&mut self, kind: MarkKind, from_tti: i64, to_tti: i64, value: u32) {
        if self.marks.len() < MOST_MARKS {
            self.marks.push(Mark { kind, from_tti, to_tti: to_tti.max(from_tti), value });
        } else {
            self.more_marks += 1;
        }
    }
}

fn saturate(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// The TTIs of a span of time, both in the same log.
fn place(axis: &TtiClock, from_ns: i64, to_ns: i64) -> Option<(i64, i64)> {
    let (from, to) = axis.place((from_ns, to_ns), true)?;
    Some((from.0, to?.0))
}

/// The clock of the axis: the modem log's; without one, by the transfers, whose TTIs are milliseconds.
fn axis_clock(diagnosis: &Diagnosis, answer: &RadioAnalysis, series: &Series) -> TtiClock {
    let mut clock = series.clock.clone();
    if clock.is_empty() {
        let placed = diagnosis.transfers.iter().find_map(|transfer| {
            let us = transfer.finding.start_us?;
            Some((transfer.finding.start_tti, us.saturating_mul(1_000)))
        });
        let logs = answer.applications.iter().filter(|_| answer.is_alone());
        let mut first = logs.filter_map(|one| one.log.transfers.first());
        let placed = placed.or_else(|| first.next().map(|first| (TtiIndex(0), first.start_ns)));
        placed.into_iter().for_each(|(tti, ns)| clock.note(tti, ns));
    }
    clock
}

/// A line in bounded memory.
#[derive(Debug, Default)]
struct Points {
    points: Vec<RangePoint>,
    /// Binary logarithm of the TTIs per bin.
    bits: u32,
}

impl Points {
    /// Adds a point, if it has a place on the axis.
    fn push(&mut self, tti: Option<TtiIndex>, value: u32) {
        let Some(TtiIndex(tti)) = tti else { return };
        self.merge(RangePoint { tti, least: value, most: value });
        while self.points.len() > MOST_POINTS {
            self.bits += 1;
            for point in std::mem::take(&mut self.points) {
                self.merge(point);
            }
        }
    }

    fn merge(&mut self, point: RangePoint) {
        match self.points.last_mut() {
            // If the clock was set back, late points go to the last bin.
            Some(last) if point.tti >> self.bits <= last.tti >> self.bits => {
                last.least = last.least.min(point.least);
                last.most = last.most.max(point.most);
            }
            _ => self.points.push(point),
        }
    }
}

/// The lines of a capture.
struct WireLanes<'a> {
    axis: &'a TtiClock,
    clock: Option<&'a ClockReport>,
    in_flight: FlightSum,
    /// The time of the last packet, and when states were last put in order.
    newest_ns: i64,
    settled_ns: i64,
    /// When the last data passed: nothing is drawn after it.
    last_data_ns: i64,
    /// The capture is the phone's: the echoed time stamps show what its senders had in flight.
    /// Connections without time stamps are handled as at any other place.
    at_phone: bool,
    echoes: HashMap<u64, Echoes>,
    /// The last round trip on each connection's server side.
    beyond_ns: BTreeMap<u64, i64>,
    flight: Points,
    cwnd: Points,
    rwnd: Points,
    rtt: Points,
}

impl<'a> WireLanes<'a> {
    fn new(axis: &'a TtiClock, clock: Option<&'a ClockReport>, at_phone: bool) -> Self {
        Self {
            axis,
            clock,
            in_flight: FlightSum::default(),
            newest_ns: i64::MIN,
            settled_ns: i64::MIN,
            last_data_ns: i64::MIN,
            at_phone,
            echoes: HashMap::new(),
            beyond_ns: BTreeMap::new(),
            flight: Points::default(),
            cwnd: Points::default(),
            rwnd: Points::default(),
            rtt: Points::default(),
        }
    }

    fn read(&mut self, path: &Path, progress: &Progress) -> Result<()> {
        let tables =
            Tables { flows: true, rtt_samples: true, inflight_samples: true, ..Tables::NONE };
        let traced = if self.at_phone { Traced::All } else { StudyOptions::default().traced };
        let options = StudyOptions { tables, traced, ..StudyOptions::default() };
        let mut study = PacketStudy::new(options);
        read_capture(path, progress, &mut |packet| {
            study.push(packet);
            while let Some(packet) = study.poll_trace() {
                self.echo(&packet);
            }
            while let Some(row) = study.poll() {
                self.take(&row);
            }
        })?;
        let _ = study.finish_with(&mut |row| self.take(&row));
        self.settle(i64::MAX);
        Ok(())
    }

    /// Draws the bytes in flight until a time. Acknowledgements that no data followed have arrived,
    /// too.
    fn settle(&mut self, until_ns: i64) {
        for (flow, echoes) in &mut self.echoes {
            for (at_ns, bytes) in echoes.settled(until_ns) {
                self.in_flight.push(*flow, at_ns, bytes);
            }
        }
        while let Some((at_ns, bytes)) = self.in_flight.poll(until_ns) {
            if at_ns <= self.last_data_ns {
                let tti = self.tti(at_ns);
                self.flight.push(tti, saturate(bytes));
            }
        }
    }

    fn passes(&mut self, at_ns: i64) {
        self.newest_ns = self.newest_ns.max(at_ns);
        if self.newest_ns.saturating_sub(self.settled_ns) >= SETTLE_NS {
            self.settled_ns = self.newest_ns;
            self.settle(self.newest_ns.saturating_sub(FlightSum::LATE_NS));
        }
    }

    fn take(&mut self, row: &PacketRow) {
        match row {
            PacketRow::Inflight(sample) if sample.dir == Direction::Dl => {
                let tti = self.tti(sample.time_ns);
                self.passes(sample.time_ns);
                self.last_data_ns = self.last_data_ns.max(sample.time_ns);
                if !self.has_echoes(sample.flow) {
                    self.in_flight.push(sample.flow, sample.time_ns, sample.sender_flight_bytes);
                }
                if let Some(cwnd) = sample.cwnd_bytes {
                    self.cwnd.push(tti, saturate(cwnd));
                }
                if let Some(rwnd) = sample.rwnd_bytes {
                    self.rwnd.push(tti, saturate(rwnd));
                }
            }
            PacketRow::Rtt(sample) if self.has_echoes(sample.flow) => {}
            PacketRow::Rtt(sample) => {
                // The round trip to the server is known only at handshakes and requests; that to
                // the phone at each acknowledgement.
                let whole_ns = if sample.dir == Direction::Ul {
                    self.beyond_ns.insert(sample.flow, sample.rtt_ns);
                    sample.rtt_ns
                } else {
                    let beyond_ns = self.beyond_ns.get(&sample.flow).copied().unwrap_or(0);
                    // At the phone its own side is not informative.
                    if sample.rtt_ns < beyond_ns / 10 {
                        return;
                    }
                    beyond_ns.saturating_add(sample.rtt_ns)
                };
                let tti = self.tti(sample.time_ns);
                self.rtt.push(tti, saturate(u64::try_from(whole_ns / 1_000).unwrap_or(0)));
            }
            PacketRow::Flow(flow) => {
                if let Some(mut echoes) = self.echoes.remove(&flow.flow) {
                    for (at_ns, bytes) in echoes.settled(i64::MAX) {
                        self.in_flight.push(flow.flow, at_ns, bytes);
                    }
                }
                // A flow may end before any data came.
                if self.last_data_ns > i64::MIN {
                    self.in_flight.push(flow.flow, self.newest_ns, 0);
                }
                self.beyond_ns.remove(&flow.flow);
            }
            _ => {}
        }
    }

    fn has_echoes(&self, flow: u64) -> bool {
        self.echoes.get(&flow).is_some_and(|echoes| echoes.base_ns.is_some())
    }

    /// Processes a packet of the phone's capture: the acknowledgement that released it shows when
    /// it was sent, and what was in flight then.
    fn echo(&mut self, packet: &TracedPacket) {
        self.passes(packet.at_ns);
        if packet.dir == Direction::Dl && packet.payload_bytes > 0 {
            self.last_data_ns = self.last_data_ns.max(packet.at_ns);
        }
        let echoes = self.echoes.entry(packet.flow).or_default();
        if packet.dir == Direction::Ul {
            return echoes.sent(packet);
        }
        let Some(released) = echoes.released(packet) else { return };
        let end = packet.offset_bytes.saturating_add(i64::from(packet.payload_bytes));
        let flight = u64::try_from(end.saturating_sub(released.acked)).unwrap_or(0);
        let rtt_ns = packet.at_ns.saturating_sub(released.at_ns);
        let base_ns = echoes.base_ns.map_or(rtt_ns, |base| base.min(rtt_ns));
        echoes.base_ns = Some(base_ns);
        let sent_ns = released.at_ns.saturating_add(base_ns / 2);
        for (at_ns, bytes) in echoes.drained(sent_ns, end) {
            self.in_flight.push(packet.flow, at_ns, bytes);
        }
        self.in_flight.push(packet.flow, sent_ns, flight);
        // A packet alone in flight may have waited for its application, too.
        if !released.waited && flight > u64::from(packet.payload_bytes) {
            let tti = self.tti(packet.at_ns);
            self.rtt.push(tti, saturate(u64::try_from(rtt_ns / 1_000).unwrap_or(0)));
        }
    }

    /// The TTI on the axis.
    fn tti(&self, ns: i64) -> Option<TtiIndex> {
        self.axis.tti_at(ns.saturating_sub(ahead_ns(self.clock, ns)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_bounded_and_keeps_its_extremes() {
        let mut points = Points::default();
        let n = 3 * MOST_POINTS as i64;
        for tti in 0..n {
            let value = if tti == 777_777 { 9_000 } else { 1_000 + (tti % 5) as u32 };
            points.push(Some(TtiIndex(tti)), value);
        }
        assert!(points.points.len() <= MOST_POINTS, "{}", points.points.len());
        assert!(points.points.windows(2).all(|pair| pair[0].tti < pair[1].tti));
        assert_eq!(points.points.iter().map(|p| p.most).max(), Some(9_000));
        assert_eq!(points.points.iter().map(|p| p.least).min(), Some(1_000));
    }
}
