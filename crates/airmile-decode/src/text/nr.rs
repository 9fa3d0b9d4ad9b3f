//! 0xB887, NR5G MAC PDSCH Status, as text: nested blocks (QXDM) or a table
//! (QCAT). The message has no public binary layout.
//!
//! Slots are counted in the record's own numerology, 10 * 2^mu a frame
//! (TS 38.211, 4.3.2). Frames, 0 to 1023, are unwrapped by the time of
//! writing, as subframes are in LTE.

use std::collections::{BTreeMap, HashMap};

use airmile_model::{
    CellInfo, Direction, Grant, GrantSources, Position, Record, RntiType, Stamp, TtiIndex,
};

use super::fields::{Line, Table, key_value, normalise};
use super::lte::{modulation, rnti_type};
use super::{Bad, number};

/// One block's status.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Status {
    mu: u8,
    frame: u16,
    slot: u16,
    carrier: u8,
    pci: Option<u16>,
    arfcn: Option<u32>,
    grant: Grant,
}

/// When a record's blocks were received.
#[derive(Debug, Clone, Copy, Default)]
struct SystemTime {
    slot: Option<u16>,
    mu: Option<u8>,
    frame: Option<u16>,
}

impl SystemTime {
    fn set(&mut self, key: &str, value: &str) {
        match key {
            "slot" => self.slot = value.parse().ok(),
            "numerology" => self.mu = numerology(value),
            "frame" => self.frame = value.parse().ok(),
            _ => {}
        }
    }
}

/// `30kHz` (TS 38.211, table 4.2-1).
fn numerology(text: &str) -> Option<u8> {
    match text.trim_end_matches(|c: char| c.is_ascii_alphabetic()) {
        "15" => Some(0),
        "30" => Some(1),
        "60" => Some(2),
        "120" => Some(3),
        "240" => Some(4),
        _ => None,
    }
}

/// Reads a body: the blocks in order, and the lines that could not be read.
pub(super) fn pdsch_status(body: &[Line]) -> Result<(Vec<Status>, Vec<Bad>), String> {
    match Table::first(body) {
        Some(table) => from_table(&table),
        None => Ok(from_blocks(body)),
    }
}

fn from_table(table: &Table<'_>) -> Result<(Vec<Status>, Vec<Bad>), String> {
    if let Some(missing) = table.lacks(&["slot", "frame", "tbsize", "numrbs"]) {
        return Err(format!("its table lacks the column `{missing}`"));
    }
    let (mut out, mut bad) = (Vec::new(), Vec::new());
    let mut time = SystemTime::default();
    for row in table.rows() {
        if row.get("slot").is_some() {
            time = SystemTime::default();
        }
        for key in ["slot", "numerology", "frame"] {
            if let Some(value) = row.get(key) {
                time.set(key, value);
            }
        }
        let read = if row.whole() {
            status(time, &|name| row.get(name))
        } else {
            Err("has another number of cells than its table".into())
        };
        match read {
            Ok(status) => out.push(status),
            Err(what) => bad.push(Bad::new(row.offset, &what)),
        }
    }
    Ok((out, bad))
}

fn from_blocks(body: &[Line]) -> (Vec<Status>, Vec<Bad>) {
    let (mut out, mut bad) = (Vec::new(), Vec::new());
    let mut time = SystemTime::default();
    let mut inside: Vec<String> = Vec::new();
    let mut fields: HashMap<String, &str> = HashMap::new();
    let mut began = 0;
    for line in body {
        let text = line.text.trim();
        if let Some(name) = text.strip_suffix('{') {
            let name = normalise(name);
            if name.starts_with("records") {
                time = SystemTime::default();
            } else if name.starts_with("pdschstatusinfo") {
                fields.clear();
                began = line.offset;
            }
            // Deeper than any message nests: not one.
            if inside.len() < 64 {
                inside.push(name);
            }
        } else if text == "}" {
            if inside.pop().is_some_and(|name| name.starts_with("pdschstatusinfo")) {
                match status(time, &|name| fields.get(name).copied()) {
                    Ok(status) => out.push(status),
                    Err(what) => bad.push(Bad::new(began, &what)),
                }
            }
        } else if let (Some((key, value)), Some(block)) = (key_value(text), inside.last()) {
            if block == "systemtime" {
                time.set(&key, value);
            } else if block.starts_with("pdschstatusinfo") {
                fields.insert(key, value);
            }
        }
    }
    if inside.iter().any(|name| name.starts_with("pdschstatusinfo")) {
        bad.push(Bad::new(began, "breaks off inside a status"));
    }
    (out, bad)
}

fn status<'a>(
    time: SystemTime,
    get: &dyn Fn(&'static str) -> Option<&'a str>,
) -> Result<Status, String> {
    let mu = time.mu.or_else(|| number(get, "scsmu").ok()).ok_or("has no numerology")?;
    let slot = time.slot.filter(|slot| *slot < 10 << mu.min(4)).ok_or("has no such slot")?;
    let frame = time.frame.filter(|frame| *frame < 1024).ok_or("has no such frame")?;
    if mu > 4 {
        return Err("has no such numerology".into());
    }
    let mut grant = Grant::new(Position::default(), Direction::Dl, number(get, "numrbs")?);
    grant.tb = number(get, "tbindex").unwrap_or(0);
    grant.tbs_bytes = Some(number(get, "tbsize")?);
    grant.mcs = number(get, "mcs").ok();
    grant.modulation = get("modtype").and_then(modulation);
    grant.harq_id = number(get, "harqormbsfnareaid").ok();
    grant.ndi = number::<u8>(get, "ndi").ok().map(|ndi| ndi == 1);
    grant.rv = number(get, "rv").ok();
    grant.layers = number(get, "numlayers").ok();
    grant.rnti = get("rntitype").map_or(RntiType::Other, rnti_type);
    grant.crc_ok = get("crcstate").or(get("crcstatus")).map(|t| t.eq_ignore_ascii_case("pass"));
    // The modem's own view: a retransmission whose first transmission it
    // missed is new to it.
    let new = number::<u8>(get, "newtxflag").ok().map(|flag| flag == 1);
    let again = number::<u32>(get, "numretx").ok().map(|n| n > 0);
    grant.retx = match (new, again) {
        (None, None) => None,
        _ => Some(new == Some(false) || again == Some(true)),
    };
    grant.sources = GrantSources::NR_PDSCH_STATUS;
    Ok(Status {
        mu,
        frame,
        slot,
        carrier: number(get, "carrierid").unwrap_or(0),
        pci: number(get, "physicalcellid").ok(),
        arfcn: number(get, "earfcn").ok(),
        grant,
    })
}

/// A batch follows its first record by less than this (as in LTE, with room).
const HORIZON_NS: i64 = 2_000_000_000;
/// A frame counter off the clock by more than this is another timing.
const MAX_OFF_FRAMES: i64 = 100;
const FRAME_NS: i64 = 10_000_000;

/// Frames count to 1023 (TS 38.211, 4.3.1).
const PERIOD_NS: i64 = 1024 * FRAME_NS;

/// Places blocks in time and gives them in order.
///
/// A block was written at or after its slot, so the least of `time of writing
/// - slot` over a timing segment is taken for the clock at slot 0.
#[derive(Debug, Default)]
pub(super) struct NrOrder {
    /// Clock at slot 0 of frame 0, of the block that was delayed least.
    origin_ns: Option<i64>,
    segment: u32,
    cells: BTreeMap<u8, (Option<u16>, Option<u32>)>,
    /// By timing segment and time since frame 0.
    waiting: BTreeMap<(u32, i64), Vec<Record>>,
    /// `origin_ns` of the segments that have ended.
    ended: BTreeMap<u32, i64>,
}

impl NrOrder {
    pub(super) fn push(&mut self, at: Stamp, status: Status) {
        let cell = (status.pci, status.arfcn);
        let known = self.cells.insert(status.carrier, cell);
        if known.is_some_and(|known| known != cell) && status.carrier == 0 {
            self.next_segment();
        }
        let slots = 10_i64 << status.mu;
        let in_frame_ns = i64::from(status.slot) * FRAME_NS / slots;
        let counted = self.unwrap(at.ns, i64::from(status.frame) * FRAME_NS + in_frame_ns);
        if known != Some(cell) {
            let info = CellInfo {
                at: Some(at),
                timing_segment: self.segment,
                cell: status.carrier,
                pci: status.pci,
                earfcn: status.arfcn,
                n_prb_dl: None,
                n_prb_ul: None,
                n_tx_antennas: None,
                band: None,
                source: "0xB887",
            };
            self.waiting.entry((self.segment, counted)).or_default().push(info.into());
        }
        let mut grant = status.grant;
        grant.position = Position {
            timing_segment: self.segment,
            cell: status.carrier,
            numerology: status.mu,
            tti: TtiIndex(counted.div_euclid(FRAME_NS) * slots + i64::from(status.slot)),
        };
        self.waiting.entry((self.segment, counted)).or_default().push(grant.into());
    }

    fn next_segment(&mut self) {
        if let Some(origin_ns) = self.origin_ns.take() {
            self.ended.insert(self.segment, origin_ns);
        }
        self.segment += 1;
    }

    /// Time since frame 0 of a slot, of which the time since the last frame 0
    /// and the time of writing are known.
    fn unwrap(&mut self, at_ns: i64, in_period_ns: i64) -> i64 {
        let Some(origin_ns) = self.origin_ns else {
            self.origin_ns = Some(at_ns.saturating_sub(in_period_ns));
            return in_period_ns;
        };
        let latest = at_ns.saturating_sub(origin_ns);
        let periods =
            latest.saturating_sub(in_period_ns).saturating_add(PERIOD_NS / 2).div_euclid(PERIOD_NS);
        let counted = in_period_ns.saturating_add(periods.saturating_mul(PERIOD_NS));
        let ahead = counted.saturating_sub(latest);
        if ahead.saturating_abs() > MAX_OFF_FRAMES * FRAME_NS {
            self.next_segment();
            self.origin_ns = Some(at_ns.saturating_sub(counted));
        } else if ahead > 0 {
            self.origin_ns = Some(origin_ns.saturating_sub(ahead));
        }
        counted
    }

    /// Gives what is before the horizon, or all, with its times.
    pub(super) fn release(&mut self, now_ns: Option<i64>, sink: &mut dyn FnMut(Record)) {
        let until = now_ns
            .zip(self.origin_ns)
            .map(|(now, origin)| now.saturating_sub(origin).saturating_sub(HORIZON_NS));
        while let Some(entry) = self.waiting.first_entry() {
            let (segment, counted) = *entry.key();
            let old = segment < self.segment || now_ns.is_none() || Some(counted) < until;
            if !old {
                break;
            }
            let origin = self.ended.get(&segment).copied().or(self.origin_ns);
            for mut record in entry.remove() {
                if let Record::Grant(grant) = &mut record {
                    grant.at = origin.map(|origin| Stamp::modem(origin.saturating_add(counted)));
                }
                sink(record);
            }
        }
        let first = self.waiting.first_key_value().map_or(self.segment, |(key, _)| key.0);
        self.ended.retain(|segment, _| *segment >= first);
    }
}
