//! 0xB887, NR5G MAC PDSCH Status, as text: nested blocks (QXDM) or a table (QCAT).

use std::collections::HashMap;

use airmile_model::{Direction, Grant, GrantSources, Position, RntiType};

use super::fields::{Line, TextTable, key_value, normalise};
use super::lte::{modulation, rnti_type};
use super::{Bad, number};
use crate::diag::assemble::nr_order::NrDlBlock;
use crate::diag::msg::NrSlot;

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

/// Parses a body: the blocks in order, and the unreadable lines.
pub(super) fn pdsch_status(body: &[Line]) -> Result<(Vec<NrDlBlock>, Vec<Bad>), String> {
    match TextTable::first(body) {
        Some(table) => from_table(&table),
        None => Ok(from_blocks(body)),
    }
}

fn from_table(table: &TextTable<'_>) -> Result<(Vec<NrDlBlock>, Vec<Bad>), String> {
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

fn from_blocks(body: &[Line]) -> (Vec<NrDlBlock>, Vec<Bad>) {
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
            // Deeper than the nesting of any message.
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
) -> Result<NrDlBlock, String> {
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
    // The modem's own view: a retransmission whose first transmission it missed is new to
    // it.
    let new = number::<u8>(get, "newtxflag").ok().map(|flag| flag == 1);
    let again = number::<u32>(get, "numretx").ok().map(|n| n > 0);
    grant.retx = match (new, again) {
        (None, None) => None,
        _ => Some(new == Some(false) || again == Some(true)),
    };
    grant.sources = GrantSources::NR_PDSCH_STATUS;
    // Below 10 * 2^4, and checked above.
    let time = NrSlot { frame, slot: u8::try_from(slot).unwrap_or(u8::MAX), numerology: mu };
    Ok(NrDlBlock {
        time,
        carrier: Some(number(get, "carrierid").unwrap_or(0)),
        pci: number(get, "physicalcellid").ok(),
        arfcn: number(get, "earfcn").ok(),
        grant,
    })
}
