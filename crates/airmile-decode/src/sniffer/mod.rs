//! Tables of passive sniffers, and logs of base stations, as grants of one user.
//!
//! A sniffer observes the control channel of a whole cell: every user's grants, but no
//! HARQ outcome, RLC or padding. One RNTI is selected, given or the one with the most
//! bytes; the grants of others are kept as the cell's use per TTI. The selection is known
//! only at the end, so the rows are kept, about 50 bytes each.

mod gnb;
mod oai;
mod rows;

use std::collections::{BTreeMap, HashMap};

use airmile_model::{
    CellUse, Clock, Direction, Grant, GrantSources, Position, Problem, Problems, Record, RntiType,
    Severity, Stamp, TtiIndex,
};

use self::gnb::{ConsoleSummary, GnbLine};
use self::oai::OaiSummary;
use self::rows::{Columns, SniffedRow};

/// RNTIs that can be a user's C-RNTI (TS 36.321, table 7.1-1).
const C_RNTIS: std::ops::RangeInclusive<u16> = 0x003d..=0xfff3;
/// Longer lines are no rows.
const MAX_LINE: usize = 8 * 1024;
/// The maximum number of rows that are held (chosen here: half an hour of a busy
/// cell, and some 3 GB of memory with what is made of them).
const MAX_ROWS: usize = 10_000_000;
/// Number of lines searched to recognise a base station's log.
const RECOGNISE_LINES: usize = 200;
/// Number of rows searched backwards for a block's grant (chosen here: the slots of a
/// frame, with a few users each).
const PDU_ROWS_BACK: usize = 200;
/// How long a process' NDI indicates a retransmission (chosen here: past the largest
/// number of HARQ round trips that cells allow, 8 of 8 ms).
const NDI_HOLDS_MS: i64 = 100;

/// The program that wrote a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnifferKind {
    /// FALCON's `FalconEye -D`: tabs, no header, a row per DCI.
    Falcon,
    /// NG-Scope 2's downlink log: tabs, no header, a row per DCI or empty TTI.
    NgScope,
    /// NR-Scope's CSV, with a header.
    NrScope,
    /// The log file of an srsRAN Project gNB.
    SrsRanLog,
    /// Its console trace.
    SrsRanConsole,
    /// The MAC statistics in the log of an OpenAirInterface gNB.
    OaiStatistics,
}

impl SnifferKind {
    /// Recognises a table by its first bytes.
    #[must_use]
    pub fn recognise(head: &[u8]) -> Option<Self> {
        let end = head.iter().position(|&b| b == b'\n').unwrap_or(head.len());
        let line = std::str::from_utf8(head.get(..end)?).ok()?.trim_end_matches('\r');
        if Columns::of_header(line).is_some() {
            return Some(Self::NrScope);
        }
        let fits = |kind: Self| rows::row(kind, line, None).is_ok();
        let table = [Self::Falcon, Self::NgScope].into_iter().find(|&kind| fits(kind));
        table.or_else(|| Self::recognise_gnb(head))
    }

    /// Logs of base stations may begin with other lines.
    fn recognise_gnb(head: &[u8]) -> Option<Self> {
        let lines = head.split(|&b| b == b'\n').take(RECOGNISE_LINES);
        lines
            .filter_map(|line| std::str::from_utf8(line.get(..line.len().min(MAX_LINE))?).ok())
            .find_map(|line| match line {
                _ if gnb::is_log_line(line) => Some(Self::SrsRanLog),
                _ if gnb::is_console_heading(line) => Some(Self::SrsRanConsole),
                _ => None,
            })
            .or_else(|| Self::recognise_oai(head))
    }

    /// The first statistics come after hundreds of lines, which are of the gNB's components.
    fn recognise_oai(head: &[u8]) -> Option<Self> {
        let has = |text: &[u8]| memchr::memmem::find(head, text).is_some();
        let mut lines =
            head.split(|&b| b == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
        let statistics = has(b"dlsch_rounds ") && lines.any(oai::is_statistics);
        let is_gnb = || has(b"[NR_MAC]") && has(b"[NR_PHY]") && has(b"[GNB_APP]");
        (statistics || is_gnb()).then_some(Self::OaiStatistics)
    }

    /// The display name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Falcon => "FALCON DCI trace",
            Self::NgScope => "NG-Scope DCI log",
            Self::NrScope => "NR-Scope DCI log",
            Self::SrsRanLog => "srsRAN gNB log",
            Self::SrsRanConsole => "srsRAN gNB console trace",
            Self::OaiStatistics => "OpenAirInterface gNB log",
        }
    }
}

/// The contents of a sniffer's table.
#[derive(Debug, Clone, Default)]
pub struct SnifferStats {
    /// Bytes.
    pub bytes: u64,
    /// Rows.
    pub rows: u64,
    /// Rows that could not be read.
    pub bad_rows: u64,
    /// Its problems.
    pub problems: Problems,
    /// The RNTI of the returned grants, its bytes, and the number of RNTIs.
    pub chosen: Option<(u16, u64, usize)>,
}

/// Reads a sniffer's table in pieces; its records come at the end.
#[derive(Debug)]
pub struct SnifferReader {
    kind: SnifferKind,
    partial: Vec<u8>,
    line_at: u64,
    columns: Option<Columns>,
    rows: Vec<SniffedRow>,
    console: ConsoleSummary,
    oai: OaiSummary,
    stats: SnifferStats,
}

impl SnifferReader {
    /// At the start of a table.
    #[must_use]
    pub fn new(kind: SnifferKind) -> Self {
        let (partial, rows, stats) = (Vec::new(), Vec::new(), SnifferStats::default());
        let (console, oai) = (ConsoleSummary::default(), OaiSummary::default());
        Self { kind, partial, line_at: 0, columns: None, rows, console, oai, stats }
    }

    /// The contents so far.
    #[must_use]
    pub const fn stats(&self) -> &SnifferStats {
        &self.stats
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, after) = rest.split_at(end);
            rest = after.get(1..).unwrap_or_default();
            self.take(line);
            self.stats.bytes += end as u64 + 1;
            self.line();
            self.line_at = self.stats.bytes;
        }
        self.take(rest);
        self.stats.bytes += rest.len() as u64;
    }

    fn take(&mut self, part: &[u8]) {
        let room = (MAX_LINE + 1).saturating_sub(self.partial.len());
        self.partial.extend_from_slice(part.get(..part.len().min(room)).unwrap_or_default());
    }

    fn line(&mut self) {
        let bytes = std::mem::take(&mut self.partial);
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_end_matches('\r');
        if text.trim().is_empty() {
            return;
        }
        if self.kind == SnifferKind::NrScope && self.columns.is_none() {
            self.columns = Columns::of_header(text);
            return;
        }
        match self.kind {
            SnifferKind::SrsRanLog => return self.gnb_line(text),
            SnifferKind::SrsRanConsole => {
                if let Some(row) = gnb::console_row(text) {
                    self.stats.rows += 1;
                    self.console.push(row);
                }
                return;
            }
            SnifferKind::OaiStatistics => {
                if let Some(line) = oai::line_of(text) {
                    self.oai.push(line);
                    self.stats.rows = self.oai.rows;
                }
                return;
            }
            _ => {}
        }
        self.stats.rows += 1;
        let read = if bytes.len() > MAX_LINE {
            Err("is too long for a row".to_owned())
        } else if self.rows.len() >= MAX_ROWS {
            Err(format!("and all after it: over the limit `MAX_ROWS` ({MAX_ROWS})"))
        } else {
            rows::row(self.kind, text, self.columns.as_ref())
        };
        match read {
            Ok(row) => self.rows.push(row),
            Err(what) => self.bad_row(&what),
        }
    }

    fn bad_row(&mut self, what: &str) {
        self.stats.bad_rows += 1;
        let what = format!("{} row {what}", self.kind.name());
        self.stats.problems.push(Problem::at(self.line_at, Severity::Damage, what));
    }

    /// A line of a base station's log: most are irrelevant here.
    fn gnb_line(&mut self, text: &str) {
        match gnb::log_line(text) {
            Ok(GnbLine::Decisions(rows)) => {
                self.stats.rows += 1;
                self.rows.extend(rows);
            }
            Ok(GnbLine::DlPdu { frame, slot, rnti, padding_bytes }) => {
                self.stats.rows += 1;
                let grant = self.rows.iter_mut().rev().take(PDU_ROWS_BACK).find(|row| {
                    row.dir == Direction::Dl
                        && (row.frame, row.slot, row.rnti) == (frame, slot, rnti)
                });
                if let Some(row) = grant {
                    row.padding_bytes = padding_bytes;
                }
            }
            Ok(GnbLine::Other) => {}
            Err(what) => {
                self.stats.rows += 1;
                self.bad_row(&what);
            }
        }
    }

    /// Ends the table: returns the grants of `rnti`, or of the one with the most bytes,
    /// and the cell's use, in TTI order.
    pub fn finish(&mut self, rnti: Option<u16>, sink: &mut dyn FnMut(Record)) {
        if !self.partial.is_empty() {
            self.line();
        }
        let rows = std::mem::take(&mut self.rows);
        let mut bytes: BTreeMap<u16, u64> = BTreeMap::new();
        for row in rows.iter().filter(|row| C_RNTIS.contains(&row.rnti)) {
            let sum = row.tbs_bytes.iter().flatten().map(|&b| u64::from(b)).sum::<u64>();
            *bytes.entry(row.rnti).or_default() += sum;
        }
        let chosen = rnti.or_else(|| {
            // Of equal ones the lowest.
            bytes.iter().rev().max_by_key(|(_, bytes)| **bytes).map(|(rnti, _)| *rnti)
        });
        self.stats.chosen = chosen.map(|r| (r, bytes.get(&r).copied().unwrap_or(0), bytes.len()));
        let numerology = match self.kind {
            SnifferKind::NrScope | SnifferKind::SrsRanLog => rows::numerology(&rows),
            _ => 0,
        };
        let summary = match self.kind {
            SnifferKind::SrsRanConsole => Some(self.console.words()),
            SnifferKind::OaiStatistics => Some(self.oai.words()),
            _ => None,
        };
        if let Some(what) = summary {
            self.stats.problems.push(Problem::of_file(Severity::Normal, what));
        }
        for record in records(&rows, chosen, numerology) {
            sink(record);
        }
    }
}

/// All rows of a TTI and direction.
#[derive(Debug, Default)]
struct Use {
    at: Option<Stamp>,
    n_prb: u32,
    n_prb_own: u32,
    n_prb_cell: Option<u16>,
    rntis: Vec<u16>,
    grants: Vec<Grant>,
}

fn records(rows: &[SniffedRow], chosen: Option<u16>, numerology: u8) -> Vec<Record> {
    let mut uses: BTreeMap<(Position, Direction), Use> = BTreeMap::new();
    let mut unwrapper = Unwrapper { per_ms: 1 << numerology, last: None };
    for row in rows {
        let tti = unwrapper.unwrap(row);
        let cell = row.cell;
        let delay = row.delay_slots;
        let position = Position {
            timing_segment: 0,
            cell,
            numerology,
            tti: TtiIndex(tti.saturating_add(delay)),
        };
        let at = row.time_us.and_then(|us| us.checked_mul(1_000));
        let at = at.and_then(|ns| ns.checked_add((delay * 1_000_000) >> numerology));
        let at = at.map(|ns| Stamp { clock: Clock::Modem, ns });
        let entry = uses.entry((position, row.dir)).or_default();
        entry.at = entry.at.or(at);
        entry.n_prb_cell = entry.n_prb_cell.or(row.n_prb_cell);
        if row.rnti == 0 {
            continue;
        }
        entry.n_prb = entry.n_prb.saturating_add(u32::from(row.n_prb));
        if !entry.rntis.contains(&row.rnti) {
            entry.rntis.push(row.rnti);
        }
        if Some(row.rnti) == chosen {
            entry.n_prb_own = entry.n_prb_own.saturating_add(u32::from(row.n_prb));
            entry.grants.extend(grants(row, position, at));
        }
    }
    let mut ndi: HashMap<(u8, Direction, u8, u8), (bool, i64)> = HashMap::new();
    let mut out = Vec::new();
    for ((position, dir), mut entry) in uses {
        for grant in &mut entry.grants {
            settle(grant, &mut ndi);
        }
        let Use { at, n_prb, n_prb_own, n_prb_cell, rntis, grants } = entry;
        out.extend(grants.into_iter().map(Record::from));
        let n_rnti = u16::try_from(rntis.len()).unwrap_or(u16::MAX);
        out.push(CellUse { at, position, dir, n_prb, n_prb_own, n_prb_cell, n_rnti }.into());
    }
    out
}

fn grants(row: &SniffedRow, position: Position, at: Option<Stamp>) -> Vec<Grant> {
    let blocks = row.tbs_bytes.iter().enumerate().filter_map(|(tb, bytes)| Some((tb, (*bytes)?)));
    let n_blocks = row.tbs_bytes.iter().flatten().count() as u8;
    blocks
        .map(|(tb, bytes)| {
            let mut grant = Grant::new(position, row.dir, row.n_prb);
            grant.at = at;
            grant.n_prb_cell = row.n_prb_cell;
            grant.layers = row.layers.or((n_blocks == 2).then_some(2));
            grant.tb = tb as u8;
            grant.tbs_bytes = Some(bytes);
            grant.mcs = row.mcs.get(tb).copied().flatten();
            grant.rv = row.rv.get(tb).copied().flatten();
            grant.ndi = row.ndi.get(tb).copied().flatten();
            grant.harq_id = row.harq_id;
            grant.rnti = if C_RNTIS.contains(&row.rnti) { RntiType::C } else { RntiType::Other };
            grant.retx = row.retx;
            grant.padding_bytes = row.padding_bytes;
            grant.sources = GrantSources::SNIFFER;
            grant
        })
        .collect()
}

/// Whether data is new: by the MCS, or by the NDI of the process.
fn settle(grant: &mut Grant, ndi: &mut HashMap<(u8, Direction, u8, u8), (bool, i64)>) {
    let lte = grant.position.numerology == 0;
    if lte && grant.dir == Direction::Dl && grant.mcs.is_some_and(|mcs| mcs >= 29) {
        grant.retx = Some(true);
    }
    let (Some(harq_id), Some(now)) = (grant.harq_id, grant.ndi) else { return };
    let key = (grant.position.cell, grant.dir, harq_id, grant.tb);
    let tti = grant.position.tti.0;
    let holds = NDI_HOLDS_MS << grant.position.numerology;
    let before = ndi.insert(key, (now, tti)).filter(|(_, at)| tti - at <= holds);
    if grant.retx.is_none() {
        grant.retx = Some(before.is_some_and(|(ndi, _)| ndi == now));
    }
}

/// Unwraps counters to indexes, by the time if rows have one.
struct Unwrapper {
    per_ms: i64,
    last: Option<(i64, Option<i64>)>,
}

impl Unwrapper {
    fn unwrap(&mut self, row: &SniffedRow) -> i64 {
        let period = 10_240 * self.per_ms;
        let wrapped = row.frame * 10 * self.per_ms + row.slot;
        let tti = match self.last {
            None => wrapped,
            Some((last, last_us)) => {
                let gone = match (last_us, row.time_us) {
                    (Some(then), Some(now)) => {
                        now.saturating_sub(then).saturating_mul(self.per_ms) / 1_000
                    }
                    _ => 0,
                };
                let predicted = last.saturating_add(gone);
                let gone = predicted.saturating_sub(wrapped).saturating_add(period / 2);
                wrapped.saturating_add(gone.div_euclid(period).saturating_mul(period))
            }
        };
        self.last = Some((tti, row.time_us));
        tti
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, rnti: Option<u16>) -> (Vec<Record>, SnifferStats) {
        let kind = SnifferKind::recognise(text.as_bytes()).unwrap();
        let mut reader = SnifferReader::new(kind);
        for piece in text.as_bytes().chunks(7) {
            reader.push(piece);
        }
        let mut out = Vec::new();
        reader.finish(rnti, &mut |record| out.push(record));
        (out, reader.stats().clone())
    }

    fn grants(records: &[Record]) -> Vec<&Grant> {
        let grant = |r: &'_ Record| matches!(r, Record::Grant(_));
        records.iter().filter(|r| grant(r)).filter_map(as_grant).collect()
    }

    fn as_grant(record: &Record) -> Option<&Grant> {
        match record {
            Record::Grant(grant) => Some(grant),
            _ => None,
        }
    }

    const FALCON: &str = "\
1000.000\t1023\t9\t100\t1\t10\t20\t8000\t8000\t-1\t1\t0\t0\t3\t0\t2\t2\t9\t40\tff\n\
1000.000\t1023\t9\t200\t1\t10\t5\t800\t800\t-1\t1\t0\t0\t3\t0\t2\t2\t9\t40\tff\n\
1000.009\t0\t8\t100\t1\t29\t20\t8000\t8000\t-1\t1\t0\t0\t3\t0\t2\t2\t9\t40\tff\n\
1000.010\t0\t9\t100\t0\t10\t4\t400\t400\t-1\t0\t1\t0\t0\t0\t2\t2\t9\t40\tff\n";

    #[test]
    fn falcon_takes_the_rnti_with_most_bytes() {
        let (records, stats) = read(FALCON, None);
        assert_eq!(stats.chosen, Some((100, 2_050, 2)));
        let grants = grants(&records);
        let rows: Vec<_> =
            grants.iter().map(|g| (g.position.tti.0, g.dir, g.tbs_bytes, g.retx)).collect();
        let expected = [
            (10_239, Direction::Dl, Some(1_000), Some(false)),
            (10_248, Direction::Dl, Some(1_000), Some(true)),
            (10_253, Direction::Ul, Some(50), None),
        ];
        assert_eq!(rows, expected);
        let first = records.iter().find_map(|r| match r {
            Record::CellUse(used) => Some((used.n_prb, used.n_prb_own, used.n_rnti)),
            _ => None,
        });
        assert_eq!(first, Some((25, 20, 2)));
    }

    #[test]
    fn the_rnti_can_be_chosen() {
        let (records, _) = read(FALCON, Some(200));
        assert_eq!(grants(&records).len(), 1);
    }

    #[test]
    fn ng_scope_has_empty_subframes_and_two_blocks() {
        let text = "\
10239\t100\t50\t20\t10\t0\t8000\t12\t0\t9000\t3\t1000000\t1\t0\n\
0\t0\t50\t0\t0\t0\t0\t0\t0\t0\t0\t1001000\t0\t0\n";
        let (records, stats) = read(text, None);
        assert_eq!((stats.bad_rows, grants(&records).len()), (0, 2));
        let last = records.last().unwrap();
        assert!(matches!(last, Record::CellUse(CellUse { n_prb: 0, position, .. })
            if position.tti.0 == 10_240));
    }

    #[test]
    fn nr_scope_by_its_header() {
        let text = "timestamp,system_frame_index,slot_index,rnti,rnti_type,dci_format,\
                    frequency_length,nof_layers,mcs_index,transport_block_size,\
                    redundancy_version,new_data_indicator,harq_id\n\
                    10.0,5,13,17921,C-RNTI,1_1,51,2,20,80000,0,1,4\nbroken\n";
        let (records, stats) = read(text, None);
        let grant = grants(&records)[0];
        assert_eq!((grant.position.numerology, grant.position.tti.0), (1, 113));
        assert_eq!((grant.tbs_bytes, grant.layers), (Some(10_000), Some(2)));
        assert_eq!((stats.bad_rows, stats.problems.kept.len()), (1, 1));
    }
}
