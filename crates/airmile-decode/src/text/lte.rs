//! 0xB173 as text: a table of results, a second transport block in a row
//! whose leading columns are blank.

use airmile_model::{Modulation, RntiType, Tti};
use smallvec::SmallVec;

use super::fields::{Line, Row, TextTable, key_value, normalise};
use super::{Bad, number};
use crate::diag::msg::{PdschStat, PdschStatBlock, PdschStatRecord};

/// The version of a message read from text.
const NO_VERSION: u8 = 0;

const REQUIRED: [&str; 5] = ["subframenum", "framenum", "numrbs", "rntitype", "tbsizebytes"];

/// Parses a body: the results, and the unreadable lines.
pub(super) fn pdsch_stat(body: &[Line]) -> Result<(PdschStat, Vec<Bad>), String> {
    let table = TextTable::first(body).ok_or("has no table")?;
    if let Some(missing) = table.lacks(&REQUIRED) {
        return Err(format!("its table lacks the column `{missing}`"));
    }
    let mut records: Vec<PdschStatRecord> = Vec::new();
    let mut bad = Vec::new();
    // Whether the last leading row was read, so that a blank one continues it.
    let mut open = false;
    for row in table.rows() {
        let leads = row.get("subframenum").is_some();
        let read = if leads { record(&row).map(Some) } else { Ok(None) };
        let block = read.and_then(|record| Ok((record, block(&row)?)));
        match block {
            Ok((Some(mut record), block)) => {
                record.blocks.push(block);
                records.push(record);
                open = true;
            }
            Ok((None, block)) if open => {
                if let Some(record) = records.last_mut().filter(|r| r.blocks.len() < 2) {
                    record.blocks.push(block);
                }
            }
            Ok((None, _)) => bad.push(Bad::new(row.offset, "continues a row that was not read")),
            Err(what) => {
                open &= !leads;
                bad.push(Bad::new(row.offset, &what));
            }
        }
    }
    let version = version(body).and_then(|v| u8::try_from(v).ok()).unwrap_or(NO_VERSION);
    Ok((PdschStat { version, records }, bad))
}

/// The message version stated by a body.
pub(super) fn version(body: &[Line]) -> Option<u32> {
    let mut fields = body.iter().filter_map(|line| key_value(&line.text));
    fields.find(|(key, _)| key == "version").and_then(|(_, value)| value.parse().ok())
}

fn record(row: &Row<'_>) -> Result<PdschStatRecord, String> {
    if !row.whole() {
        return Err("has another number of cells than its table".into());
    }
    let get = |name: &'static str| row.get(name);
    let (sfn, subframe): (u16, u8) = (number(get, "framenum")?, number(get, "subframenum")?);
    let tti = Tti::new(sfn, subframe).filter(|_| sfn < 1024);
    Ok(PdschStatRecord {
        tti: Some(tti.ok_or("has no such subframe")?),
        n_prb: number(get, "numrbs")?,
        layers: number(get, "numlayers").unwrap_or(1),
        serving_cell: get("servingcellindex").map_or(0, serving_cell),
        hsic: None,
        alternative_tbs: None,
        blocks: SmallVec::new(),
        pmch_id: 0,
        area_id: 0,
    })
}

fn block(row: &Row<'_>) -> Result<PdschStatBlock, String> {
    if !row.whole() {
        return Err("has another number of cells than its table".into());
    }
    let get = |name: &'static str| row.get(name);
    Ok(PdschStatBlock {
        harq_id: number(get, "harqid")?,
        rv: number(get, "rv")?,
        ndi: number::<u8>(get, "ndi")? == 1,
        crc_ok: get("crcresult").is_some_and(|text| text.eq_ignore_ascii_case("pass")),
        rnti_type: get("rntitype").map_or(RntiType::Other, rnti_type),
        tb: number::<u8>(get, "tbindex")? & 1,
        discarded_retx: false,
        discard_mode: None,
        recombined: get("didrecombining").is_some_and(|text| text.eq_ignore_ascii_case("yes")),
        tbs_bytes: number(get, "tbsizebytes")?,
        mcs: number(get, "mcs")?,
        n_prb: number(get, "numrbs").unwrap_or(0),
        modulation: get("modulationtype").and_then(modulation),
        qed_status: None,
        qed_iterations: None,
    })
}

/// `PCELL`, `SCELL_1` or a number.
fn serving_cell(text: &str) -> u8 {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

pub(super) fn rnti_type(text: &str) -> RntiType {
    let name = normalise(text);
    match name.strip_suffix("rnti").unwrap_or(&name) {
        "c" | "0" => RntiType::C,
        "sps" => RntiType::Sps,
        "p" => RntiType::P,
        "ra" => RntiType::Ra,
        "tempc" | "tc" => RntiType::TempC,
        "si" => RntiType::Si,
        _ => RntiType::Other,
    }
}

pub(super) fn modulation(text: &str) -> Option<Modulation> {
    Modulation::parse(&normalise(text))
}
