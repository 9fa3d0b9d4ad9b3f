//! The tracks of one subscription. Records are written as they arrive; memory holds the tracks,
//! each with its open TTI.

use std::collections::BTreeMap;
use std::io::{self, Write};

use airmile_model::{
    BsrReport, BufferStatus, Direction, Grant, Hole, Measurement, Record, TtiClock, TtiIndex,
    TtiSpan,
};

use super::args::grant_args;
use airmile_io::limits::{LimitFilter, Limits};
use airmile_io::perfetto::proto::Value;
use airmile_io::perfetto::stream::{Args, Name, Stream, TrackKind};
use airmile_radio::legs::{LegSorter, Rat};

/// BSR index 63: more than this many bytes (TS 36.321, table 6.1.3.1-1).
const BSR_MORE_THAN_BYTES: u32 = 150_000;

/// The modem's clock starts with GPS time: a stamp before 1980-01-06 is a time of day without its
/// date, from a text export.
const GPS_EPOCH_NS: u64 = 315_964_800_000_000_000;

/// Maximum length of a drawn gap, one day (chosen here): a longer one is damage, and would shift
/// everything after it.
const MAX_HOLE_TTIS: i64 = 86_400_000;

/// The leg, unless it is the first one, and the cell.
type Cell = (Option<Rat>, u8);

/// The content of a track, in the viewer's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shows {
    Verdict,
    /// One for each overlapping transfer.
    Transfers(u8),
    /// The causes of a page's wait.
    CriticalPath,
    /// Requests of pages, one track for each overlapping request.
    Requests(u8),
    Bursts(Direction),
    Prb(Direction, Cell),
    Grants(Direction, Cell),
    /// Grants that arrived after later TTIs had been written; further tracks for those that overlap
    /// again.
    LateGrants(Direction, Cell, u8),
    Buffer,
    Bsr(Option<Rat>, u8),
    CellLoad,
    OwnShare,
    LoadUnknown,
    Rsrp(u8),
    Rsrq(u8),
    Snr(u8),
    Holes,
}

impl Shows {
    fn name(self) -> String {
        let link = |dir| if dir == Direction::Dl { "Downlink" } else { "Uplink" };
        let of_leg = |what: String, leg| match leg {
            None => what,
            Some(Rat::Lte) => format!("{what}, LTE"),
            Some(Rat::Nr) => format!("{what}, NR"),
        };
        let of_cell = |what: String, cell: u8| match cell {
            0 => what,
            cell => format!("{what}, cell {cell}"),
        };
        let of = |what: String, (leg, cell): Cell| of_cell(of_leg(what, leg), cell);
        match self {
            Self::Verdict => "Verdict".into(),
            // Viewers show siblings of one name as one track.
            Self::Transfers(_) => "Transfers".into(),
            Self::CriticalPath => "What the page waited for".into(),
            Self::Requests(_) => "Requests".into(),
            Self::Bursts(dir) => format!("{} bursts", link(dir)),
            Self::Prb(dir, cell) => of(format!("{} PRBs per TTI", link(dir)), cell),
            Self::Grants(dir, cell) => of(format!("{} grants", link(dir)), cell),
            Self::LateGrants(dir, cell, _) => of(format!("{} grants, late", link(dir)), cell),
            Self::Buffer => "Uplink buffer".into(),
            Self::Bsr(leg, group) => of_leg(format!("Buffer status reports, group {group}"), leg),
            Self::CellLoad => "Cell load".into(),
            Self::OwnShare => "Own share of the cell".into(),
            Self::LoadUnknown => "Cell load unknown".into(),
            Self::Rsrp(cell) => of_cell("RSRP".into(), cell),
            Self::Rsrq(cell) => of_cell("RSRQ".into(), cell),
            Self::Snr(cell) => of_cell("SNR".into(), cell),
            Self::Holes => "Gaps in the log".into(),
        }
    }

    const fn unit(self) -> Option<&'static str> {
        match self {
            Self::Prb(..) => Some("PRB"),
            Self::Buffer | Self::Bsr(..) => Some("bytes"),
            Self::CellLoad | Self::OwnShare => Some("%"),
            Self::Rsrp(_) => Some("dBm"),
            Self::Rsrq(_) | Self::Snr(_) => Some("dB"),
            _ => None,
        }
    }

    /// Rank among the siblings: by direction, then by leg and cell.
    fn rank(self) -> i32 {
        let on = |dir, (leg, cell): Cell, of_three: i32| {
            let of_leg = if leg.is_some() { 100 } else { 0 };
            let first = of_leg + if dir == Direction::Dl { 1_000 } else { 2_000 };
            first + 10 + i32::from(cell) * 3 + of_three
        };
        match self {
            Self::Verdict => 0,
            Self::Transfers(lane) => 1 + i32::from(lane),
            Self::CriticalPath => 300,
            Self::Requests(lane) => 301 + i32::from(lane),
            Self::Bursts(Direction::Dl) => 1_000,
            Self::Bursts(Direction::Ul) => 2_000,
            Self::Prb(dir, cell) => on(dir, cell, 0),
            Self::Grants(dir, cell) => on(dir, cell, 1),
            Self::LateGrants(dir, cell, _) => on(dir, cell, 2),
            Self::Buffer => 3_000,
            Self::Bsr(_, group) => 3_001 + i32::from(group),
            Self::CellLoad => 4_000,
            Self::OwnShare => 4_001,
            Self::LoadUnknown => 4_002,
            Self::Rsrp(cell) => 4_010 + i32::from(cell) * 3,
            Self::Rsrq(cell) => 4_011 + i32::from(cell) * 3,
            Self::Snr(cell) => 4_012 + i32::from(cell) * 3,
            Self::Holes => 5_000,
        }
    }
}

/// A track that has been written to.
#[derive(Default)]
struct Track {
    uuid: u64,
    /// Start of its last slice.
    start_ns: u64,
    /// End of its last slice: slices of a track must not overlap partially.
    end_ns: u64,
    /// Number of open slices; they end at `end_ns`.
    open: u32,
    open_tti: Option<i64>,
    /// A counter's last value.
    last: Option<i64>,
}

/// One subscription's tracks, below a common parent.
pub struct Phone {
    name: String,
    root: u64,
    legs: LegSorter,
    /// The times of each leg's TTIs.
    clocks: [TtiClock; 2],
    filter: LimitFilter,
    tracks: BTreeMap<Shows, Track>,
    /// TTI and bytes of all logical channels of the last sample.
    buffer: Option<(i64, i64)>,
    /// First TTI of the axis, and the end of the last, in the records.
    pub span: Option<(i64, i64)>,
}

impl Phone {
    pub fn new(name: String, limits: Limits) -> Self {
        Self {
            name,
            root: 0,
            legs: LegSorter::default(),
            clocks: Default::default(),
            filter: LimitFilter::new(limits),
            tracks: BTreeMap::new(),
            buffer: None,
            span: None,
        }
    }

    /// Writes a record.
    pub fn push<W: Write>(&mut self, out: &mut Stream<W>, record: &Record) -> io::Result<()> {
        if !self.filter.keeps(record) && !matches!(record, Record::CellInfo(_)) {
            return Ok(());
        }
        let known = self.legs.first();
        let leg = self.legs.take(record);
        if known.is_none() && self.legs.first() == Some(Rat::Nr) {
            self.span = None;
        }
        let (position, at) = match record {
            Record::Grant(r) => (r.position, r.at),
            Record::Rlc(r) => (r.position, r.at),
            Record::BufferStatus(r) => (r.position, r.at),
            Record::Bsr(r) => (r.position, r.at),
            Record::Measurement(r) => (r.position, r.at),
            Record::Hole(r) => (r.position, None),
            _ => return Ok(()),
        };
        let other = (self.axis() != leg).then_some(leg);
        let is_first = self.clocks.iter().all(TtiClock::is_empty);
        let clock = &mut self.clocks[leg as usize];
        if let Record::Grant(_) = record {
            clock.set_numerology(position.numerology);
        }
        at.into_iter().for_each(|at| clock.note(position.tti, at.ns));
        let tti = match other {
            None => Some(position.tti),
            Some(_) => at.and_then(|at| self.clock().tti_now(at.ns)),
        };
        if let Some(TtiIndex(tti)) = tti {
            let (first, end) = self.span.unwrap_or((tti, tti));
            self.span = Some((first.min(tti), end.max(tti.saturating_add(1))));
        }
        if let Some(ns) = at.and_then(|at| u64::try_from(at.ns).ok())
            && is_first
            && ns >= GPS_EPOCH_NS
        {
            out.clock(ns)?;
        }
        match record {
            Record::Grant(grant) if grant.rnti.is_user() => {
                self.push_grant(out, (leg, other), grant)
            }
            Record::BufferStatus(status) => self.push_buffer(out, status),
            Record::Bsr(report) => self.push_bsr(out, (leg, other), report),
            Record::Measurement(m) => self.push_measurement(out, m),
            Record::Hole(hole) => self.push_hole(out, leg, hole),
            _ => Ok(()),
        }
    }

    /// The leg whose TTIs are the axis.
    fn axis(&self) -> Rat {
        self.legs.first().unwrap_or(Rat::Lte)
    }

    /// The clock of the axis.
    pub fn clock(&mut self) -> &mut TtiClock {
        &mut self.clocks[self.axis() as usize]
    }

    /// Start of a TTI of the axis in nanoseconds.
    pub fn ns(&self, tti: i64) -> u64 {
        self.ns_of(self.axis(), tti)
    }

    /// Start of a TTI of a leg in nanoseconds, without any timed record since TTI 0; traces have no times
    /// before 0.
    fn ns_of(&self, leg: Rat, tti: i64) -> u64 {
        let clock = &self.clocks[leg as usize];
        let since_0 = || TtiSpan(tti).ns(clock.numerology());
        let ns = clock.ns_at(TtiIndex(tti)).unwrap_or_else(since_0);
        u64::try_from(ns).unwrap_or_default()
    }

    /// Length of a TTI of the axis in nanoseconds: `1 ms / 2^numerology` (TS 38.211, 4.3.2).
    pub fn tti_ns(&self) -> i64 {
        TtiSpan(1).ns(self.clocks[self.axis() as usize].numerology())
    }

    /// Ends everything open.
    pub fn finish<W: Write>(&mut self, out: &mut Stream<W>) -> io::Result<()> {
        self.write_buffer(out)?;
        let grants: Vec<Shows> = self.tracks.keys().copied().collect();
        for shows in grants {
            match shows {
                Shows::Grants(dir, cell) => self.close_tti(out, shows, None, (dir, cell))?,
                Shows::LateGrants(..) => self.end_open(out, shows)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// A slice. If it overlaps the last one of its track, it starts after it.
    pub fn slice<W: Write>(
        &mut self,
        out: &mut Stream<W>,
        shows: Shows,
        (start_ns, end_ns): (u64, u64),
        name: Name<'_>,
        args: Args,
    ) -> io::Result<()> {
        let track = self.track(out, shows)?;
        let start_ns = start_ns.max(track.end_ns);
        track.start_ns = start_ns;
        track.end_ns = end_ns.max(start_ns);
        let (uuid, end_ns) = (track.uuid, track.end_ns);
        out.begin(uuid, start_ns, name, args)?;
        out.end(uuid, end_ns)
    }

    /// Tracks and clock anchors: everything whose number can grow.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.tracks.len() + self.clocks.iter().flat_map(TtiClock::anchors).count()
    }

    /// The end of a track's last slice.
    pub fn end_ns(&self, shows: Shows) -> u64 {
        self.tracks.get(&shows).map_or(0, |track| track.end_ns)
    }

    /// A counter's value from a time on; nothing is written if it is unchanged.
    pub fn count<W: Write>(
        &mut self,
        out: &mut Stream<W>,
        shows: Shows,
        ns: u64,
        value: i64,
    ) -> io::Result<()> {
        let track = self.track(out, shows)?;
        if track.last.replace(value) == Some(value) {
            return Ok(());
        }
        let uuid = track.uuid;
        out.count(uuid, ns, Value::Int(value))
    }

    /// A measured value from a time on.
    pub fn measure<W: Write>(
        &mut self,
        out: &mut Stream<W>,
        shows: Shows,
        ns: u64,
        value: f64,
    ) -> io::Result<()> {
        let uuid = self.track(out, shows)?.uuid;
        out.count(uuid, ns, Value::Double(value))
    }

    fn track<W: Write>(&mut self, out: &mut Stream<W>, shows: Shows) -> io::Result<&mut Track> {
        if self.root == 0 {
            let kind = TrackKind { name: &self.name, parent: 0, rank: 0, unit: None };
            self.root = out.track(&kind)?;
        }
        let track = self.tracks.entry(shows).or_default();
        if track.uuid == 0 {
            let name = shows.name();
            let (rank, unit) = (shows.rank(), shows.unit());
            track.uuid = out.track(&TrackKind { name: &name, parent: self.root, rank, unit })?;
        }
        Ok(track)
    }

    /// A slice of one TTI; the second block of an assignment is below the first.
    fn push_grant<W: Write>(
        &mut self,
        out: &mut Stream<W>,
        (leg, other): (Rat, Option<Rat>),
        grant: &Grant,
    ) -> io::Result<()> {
        let tti = grant.position.tti.0;
        let of = (grant.dir, (other, grant.position.cell));
        let on_time = Shows::Grants(of.0, of.1);
        let start_ns = self.ns_of(leg, tti);
        let end_ns = start_ns.saturating_add_signed(TtiSpan(1).ns(grant.position.numerology));
        let open_tti = self.track(out, on_time)?.open_tti;
        let late = open_tti.is_some_and(|open| tti < open);
        let shows = if late { self.late_lane(of, tti, start_ns) } else { on_time };
        if late {
            if self.track(out, shows)?.open_tti != Some(tti) {
                self.end_open(out, shows)?;
            }
        } else if open_tti.is_some_and(|open| tti > open) {
            self.close_tti(out, shows, Some(tti), of)?;
        }
        let track = self.track(out, shows)?;
        if track.open == 0 {
            track.start_ns = start_ns.max(track.end_ns);
            track.end_ns = end_ns.max(track.start_ns);
        }
        track.open += 1;
        track.open_tti = Some(tti);
        let (uuid, start_ns) = (track.uuid, track.start_ns);
        if let (false, Some(n_prb)) = (late, grant.n_prb) {
            self.count(out, Shows::Prb(of.0, of.1), start_ns, n_prb.into())?;
        }
        // Viewers colour by name: the MCS shows the signal.
        let name = match (grant.retx, grant.mcs) {
            (Some(true), _) => "retransmission".to_owned(),
            (_, Some(mcs)) => format!("MCS {mcs}"),
            (_, None) => "grant".to_owned(),
        };
        out.begin(uuid, start_ns, Name::Common(&name), grant_args(grant))
    }

    /// A track of late grants on which a TTI is free or open.
    fn late_lane(&self, (dir, cell): (Direction, Cell), tti: i64, start_ns: u64) -> Shows {
        let has_room = |shows: &Shows| {
            self.tracks.get(shows).is_none_or(|track| {
                track.end_ns <= start_ns || (track.open > 0 && track.open_tti == Some(tti))
            })
        };
        let lane = |lane| Shows::LateGrants(dir, cell, lane);
        (0..u8::MAX).map(lane).find(has_room).unwrap_or(lane(u8::MAX))
    }

    /// Ends the slices of a track's TTI; if no TTI follows directly, nothing is scheduled after it.
    fn close_tti<W: Write>(
        &mut self,
        out: &mut Stream<W>,
        shows: Shows,
        next: Option<i64>,
        (dir, cell): (Direction, Cell),
    ) -> io::Result<()> {
        self.end_open(out, shows)?;
        let track = self.track(out, shows)?;
        let (end_ns, tti) = (track.end_ns, track.open_tti);
        let adjoins = tti.zip(next).is_some_and(|(tti, next)| next.saturating_sub(tti) <= 1);
        if adjoins || !self.tracks.contains_key(&Shows::Prb(dir, cell)) {
            return Ok(());
        }
        self.count(out, Shows::Prb(dir, cell), end_ns, 0)
    }

    fn end_open<W: Write>(&mut self, out: &mut Stream<W>, shows: Shows) -> io::Result<()> {
        let track = self.track(out, shows)?;
        let (uuid, end_ns) = (track.uuid, track.end_ns);
        let open = std::mem::take(&mut track.open);
        (0..open).try_for_each(|_| out.end(uuid, end_ns))
    }

    /// The buffer of all logical channels together.
    fn push_buffer<W: Write>(
        &mut self,
        out: &mut Stream<W>,
        status: &BufferStatus,
    ) -> io::Result<()> {
        let tti = status.position.tti.0;
        if self.buffer.is_some_and(|(open, _)| open != tti) {
            self.write_buffer(out)?;
        }
        let bytes =
            [status.new_bytes, status.retx_bytes, status.control_bytes].map(i64::from).iter().sum();
        let (_, sum) = self.buffer.unwrap_or((tti, 0));
        self.buffer = Some((tti, sum.saturating_add(bytes)));
        Ok(())
    }

    fn write_buffer<W: Write>(&mut self, out: &mut Stream<W>) -> io::Result<()> {
        let Some((tti, bytes)) = self.buffer.take() else { return Ok(()) };
        self.count(out, Shows::Buffer, self.ns_of(Rat::Lte, tti), bytes)
    }

    fn push_bsr<W: Write>(
        &mut self,
        out: &mut Stream<W>,
        (leg, other): (Rat, Option<Rat>),
        report: &BsrReport,
    ) -> io::Result<()> {
        let bytes = report.upper_bound_bytes.unwrap_or(BSR_MORE_THAN_BYTES);
        let ns = self.ns_of(leg, report.position.tti.0);
        self.count(out, Shows::Bsr(other, report.lcg), ns, bytes.into())
    }

    fn push_measurement<W: Write>(
        &mut self,
        out: &mut Stream<W>,
        m: &Measurement,
    ) -> io::Result<()> {
        let cell = m.position.cell;
        let ns = self.ns_of(Rat::Lte, m.position.tti.0);
        let snr_db = m.snr_db();
        for (shows, value) in [
            (Shows::Rsrp(cell), m.rsrp_dbm),
            (Shows::Rsrq(cell), m.rsrq_db),
            (Shows::Snr(cell), snr_db),
        ] {
            if let Some(value) = value {
                self.measure(out, shows, ns, value.into())?;
            }
        }
        Ok(())
    }

    fn push_hole<W: Write>(
        &mut self,
        out: &mut Stream<W>,
        leg: Rat,
        hole: &Hole,
    ) -> io::Result<()> {
        let tti = hole.position.tti.0;
        let end = tti.saturating_add(hole.n_tti.clamp(0, MAX_HOLE_TTIS));
        let span = (self.ns_of(leg, tti), self.ns_of(leg, end));
        let args = Args::default()
            .text("why", Some(hole.why))
            .int("tti", Some(tti))
            .int("n_tti", Some(hole.n_tti));
        self.slice(out, Shows::Holes, span, Name::Common("hole"), args)
    }
}
