//! A row of each sniffer's table.
//!
//! - FALCON, tabs: time in s, SFN, subframe, RNTI, direction (0 UL, 1 DL),
//!   MCS, PRBs, TBS sum, TBS 0, TBS 1 (bits; -1 none), format, NDI 0, NDI 1,
//!   HARQ, first CCE, L, CFI, hits, DCI bits, DCI.
//! - NG-Scope 2 downlink, tabs: `SFN * 10 + subframe`, RNTI, PRBs of the cell,
//!   PRBs, MCS, RV, TBS (bits) twice, HARQ, time in us, NDI twice.
//! - NR-Scope, CSV with a header: columns by name.

use airmile_model::Direction;

use super::SnifferKind;

/// One DCI; RNTI 0 if the TTI has none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SniffedRow {
    pub(super) time_us: Option<i64>,
    pub(super) frame: i64,
    pub(super) slot: i64,
    pub(super) cell: u8,
    pub(super) rnti: u16,
    pub(super) dir: Direction,
    pub(super) n_prb: u16,
    pub(super) n_prb_cell: Option<u16>,
    pub(super) layers: Option<u8>,
    pub(super) mcs: [Option<u8>; 2],
    pub(super) rv: [Option<u8>; 2],
    pub(super) ndi: [Option<bool>; 2],
    pub(super) tbs_bytes: [Option<u32>; 2],
    pub(super) harq_id: Option<u8>,
    /// Slots from the grant to its block.
    pub(super) delay_slots: i64,
    /// Whether it is a retransmission, if the table states it.
    pub(super) retx: Option<bool>,
    /// Padding of the block, if the table states it.
    pub(super) padding_bytes: Option<u32>,
}

/// A grant in subframe n is sent in n + 4 (TS 36.213, 8.0, FDD).
const fn lte_delay(dir: Direction) -> i64 {
    match dir {
        Direction::Ul => 4,
        Direction::Dl => 0,
    }
}

/// The columns of NR-Scope's CSV.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Columns {
    names: Vec<String>,
}

impl Columns {
    pub(super) fn of_header(line: &str) -> Option<Self> {
        let names: Vec<String> = line
            .trim_start_matches('\u{feff}')
            .split(',')
            .map(|name| name.trim().to_ascii_lowercase())
            .collect();
        let wanted = ["system_frame_index", "slot_index", "rnti", "transport_block_size"];
        wanted.iter().all(|w| names.iter().any(|n| n == w)).then_some(Self { names })
    }

    fn get<'a>(&self, fields: &[&'a str], name: &str) -> Option<&'a str> {
        let at = self.names.iter().position(|n| n == name)?;
        fields.get(at).map(|field| field.trim()).filter(|field| !field.is_empty())
    }
}

/// Reads a row.
pub(super) fn row(
    kind: SnifferKind,
    line: &str,
    columns: Option<&Columns>,
) -> Result<SniffedRow, String> {
    match kind {
        SnifferKind::Falcon => falcon(line),
        SnifferKind::NgScope => ng_scope(line),
        SnifferKind::NrScope => nr_scope(line, columns.ok_or("has no header above it")?),
        SnifferKind::SrsRanLog | SnifferKind::SrsRanConsole | SnifferKind::OaiStatistics => {
            Err("is no table's".into())
        }
    }
}

fn number<T: std::str::FromStr>(fields: &[&str], at: usize, name: &str) -> Result<T, String> {
    let text = fields.get(at).map(|field| field.trim()).unwrap_or_default();
    text.parse().map_err(|_| format!("has {text:?} for {name}"))
}

/// A time in seconds, in microseconds.
fn seconds(text: &str) -> Option<i64> {
    let s: f64 = text.trim().parse().ok()?;
    (s.is_finite() && s.abs() < 9.0e12).then(|| (s * 1e6).round() as i64)
}

/// A size in bits, in bytes; none where it is 0 or negative.
fn size_bytes(bits: i64) -> Option<u32> {
    u32::try_from(bits / 8).ok().filter(|bytes| *bytes > 0)
}

fn within(value: i64, limit: i64, name: &str) -> Result<i64, String> {
    if (0..limit).contains(&value) { Ok(value) } else { Err(format!("has {value} for {name}")) }
}

fn falcon(line: &str) -> Result<SniffedRow, String> {
    let f: Vec<&str> = line.split('\t').collect();
    if f.len() < 14 || f.len() > 24 {
        return Err(format!("has {} fields, not 20", f.len()));
    }
    // A time in whole seconds and a fraction, which distinguishes it from NG-Scope.
    let time = f.first().filter(|t| t.contains('.')).and_then(|t| seconds(t));
    let dir = match number::<u8>(&f, 4, "the direction")? {
        0 => Direction::Ul,
        1 => Direction::Dl,
        other => return Err(format!("has {other} for the direction")),
    };
    let mut tbs = [size_bytes(number(&f, 8, "TBS 0")?), size_bytes(number(&f, 9, "TBS 1")?)];
    if tbs == [None; 2] {
        tbs[0] = size_bytes(number(&f, 7, "the TBS")?);
    }
    let ndi = |at| Ok::<_, String>(number::<i8>(&f, at, "NDI")?).map(|n| u8::try_from(n).ok());
    Ok(SniffedRow {
        time_us: Some(time.ok_or("has no time in seconds")?),
        frame: within(number(&f, 1, "SFN")?, 1024, "SFN")?,
        slot: within(number(&f, 2, "the subframe")?, 10, "the subframe")?,
        cell: 0,
        rnti: number(&f, 3, "the RNTI")?,
        dir,
        n_prb: number(&f, 6, "PRBs")?,
        n_prb_cell: None,
        layers: None,
        mcs: [number::<i16>(&f, 5, "MCS")?.try_into().ok(), None],
        rv: [None; 2],
        ndi: [ndi(11)?.map(|n| n == 1), ndi(12)?.map(|n| n == 1)],
        tbs_bytes: tbs,
        // Uplink DCIs have none: the process follows from the subframe.
        harq_id: (dir == Direction::Dl).then(|| number(&f, 13, "HARQ").ok()).flatten(),
        delay_slots: lte_delay(dir),
        retx: None,
        padding_bytes: None,
    })
}

fn ng_scope(line: &str) -> Result<SniffedRow, String> {
    let f: Vec<&str> = line.trim_end().split('\t').collect();
    if f.len() != 14 {
        return Err(format!("has {} fields, not 14", f.len()));
    }
    let tti = within(number(&f, 0, "the TTI")?, 10_240, "the TTI")?;
    let rnti: u16 = number(&f, 1, "the RNTI")?;
    let blocks = [(4, 5, 6), (7, 8, 9)];
    let mut row = SniffedRow {
        time_us: Some(number(&f, 11, "the time")?),
        frame: tti / 10,
        slot: tti % 10,
        cell: 0,
        rnti,
        dir: Direction::Dl,
        n_prb: number(&f, 3, "PRBs")?,
        n_prb_cell: number(&f, 2, "the cell's PRBs").ok().filter(|n| *n > 0),
        layers: None,
        mcs: [None; 2],
        rv: [None; 2],
        ndi: [None; 2],
        tbs_bytes: [None; 2],
        harq_id: number(&f, 10, "HARQ").ok(),
        delay_slots: lte_delay(Direction::Dl),
        retx: None,
        padding_bytes: None,
    };
    for (tb, (mcs, rv, tbs)) in blocks.into_iter().enumerate() {
        row.tbs_bytes[tb] = size_bytes(number(&f, tbs, "the TBS")?);
        row.mcs[tb] = number::<i16>(&f, mcs, "MCS")?.try_into().ok();
        row.rv[tb] = number::<i16>(&f, rv, "RV")?.try_into().ok();
        row.ndi[tb] = number::<i16>(&f, 12 + tb, "NDI").ok().map(|n| n == 1);
    }
    Ok(row)
}

fn nr_scope(line: &str, columns: &Columns) -> Result<SniffedRow, String> {
    let f: Vec<&str> = line.split(',').collect();
    let get = |name: &str| columns.get(&f, name);
    let int = |name: &str| -> Result<i64, String> {
        let text = get(name).ok_or_else(|| format!("lacks {name}"))?;
        text.parse().map_err(|_| format!("has {text:?} for {name}"))
    };
    let small = |name: &str| int(name).ok().and_then(|n| u8::try_from(n).ok());
    let dir = match get("dci_format") {
        Some(format) if format.starts_with('0') => Direction::Ul,
        _ => Direction::Dl,
    };
    let rnti = get("rnti").ok_or("lacks rnti")?;
    let rnti = match rnti.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16).ok(),
        None => rnti.parse().ok(),
    };
    Ok(SniffedRow {
        time_us: get("timestamp").and_then(seconds),
        frame: within(int("system_frame_index")?, 1024, "the frame")?,
        slot: within(int("slot_index")?, 160, "the slot")?,
        cell: small("carrier_index").unwrap_or(0),
        rnti: rnti.ok_or("has no RNTI")?,
        dir,
        n_prb: int("frequency_length").ok().and_then(|n| u16::try_from(n).ok()).unwrap_or(0),
        n_prb_cell: None,
        layers: small("nof_layers"),
        mcs: [small("mcs_index"), None],
        rv: [small("redundancy_version"), None],
        ndi: [small("new_data_indicator").map(|n| n == 1), None],
        tbs_bytes: [size_bytes(int("transport_block_size")?), None],
        harq_id: small("harq_id"),
        delay_slots: 0,
        retx: None,
        padding_bytes: None,
    })
}

/// The minimum subcarrier spacing for the highest slot number of a frame; the table does
/// not state it.
pub(super) fn numerology(rows: &[SniffedRow]) -> u8 {
    let highest = rows.iter().map(|row| row.slot).max().unwrap_or(0);
    (0..4).find(|mu| highest < 10 << mu).unwrap_or(4)
}
