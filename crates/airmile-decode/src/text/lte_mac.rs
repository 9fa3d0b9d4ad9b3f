//! 0xB063 of versions 49 and 50 as text: a table of blocks, and for each block a table of
//! its SDUs and control elements.

use airmile_model::{RntiType, Tti};

use super::fields::{Line, Row, TextTable};
use super::lte::{rnti_type, version};
use super::{Bad, number};
use crate::diag::msg::{MacDlReport, MacDlReportBlock, MacItem, RlcFields};

const REQUIRED: [&str; 5] = ["tbsize", "numpadbytes", "frame", "subframe", "machdrlen"];

fn read_version(body: &[Line]) -> Option<u8> {
    let version = version(body).and_then(|v| u8::try_from(v).ok());
    version.filter(|v| MacDlReport::VERSIONS.contains(v))
}

/// Whether a body has a supported version.
pub(super) fn is_read(body: &[Line]) -> bool {
    read_version(body).is_some()
}

/// Parses a body: the blocks, and the unreadable lines.
pub(super) fn mac_dl_report(body: &[Line]) -> Result<(MacDlReport, Vec<Bad>), String> {
    let version = read_version(body).ok_or("has a version that is not read as text")?;
    let mut blocks: Vec<MacDlReportBlock> = Vec::new();
    let mut bad = Vec::new();
    // The block of the next table of contents.
    let mut next = 0;
    for table in TextTable::all(body) {
        if table.lacks(&["tbsize"]).is_none() {
            if let Some(missing) = table.lacks(&REQUIRED) {
                return Err(format!("its table lacks the column `{missing}`"));
            }
            next = blocks.len();
            for row in table.rows() {
                match block(&row) {
                    Ok(block) => blocks.push(block),
                    Err(what) => bad.push(Bad::new(row.offset, &what)),
                }
            }
        } else if table.lacks(&["lcid", "sdulen"]).is_none() {
            for row in table.rows() {
                match (item(&row), blocks.get_mut(next)) {
                    (Ok(item), Some(block)) => block.items.push(item),
                    (Ok(_), None) => bad.push(Bad::new(row.offset, "is of no block")),
                    (Err(what), _) => bad.push(Bad::new(row.offset, &what)),
                }
            }
            next += 1;
        }
    }
    if blocks.is_empty() {
        return Err("has no table of blocks".into());
    }
    Ok((MacDlReport { version, n_lcids: 0, reason: 0, blocks }, bad))
}

fn whole(row: &Row<'_>) -> Result<(), String> {
    if row.whole() { Ok(()) } else { Err("has another number of cells than its table".into()) }
}

fn block(row: &Row<'_>) -> Result<MacDlReportBlock, String> {
    whole(row)?;
    let get = |name: &'static str| row.get(name);
    let (sfn, subframe): (u16, u8) = (number(get, "frame")?, number(get, "subframe")?);
    let tti = Tti::new(sfn, subframe).filter(|_| sfn < 1024);
    Ok(MacDlReportBlock {
        tbs_bytes: number(get, "tbsize")?,
        padding_bytes: number(get, "numpadbytes")?,
        tti: Some(tti.ok_or("has no such subframe")?),
        reparse: get("reparseflag") == Some("1"),
        rnti_type: get("rntitype").map_or(RntiType::Other, rnti_type),
        // Exports also print a word there; the first carrier is 0.
        carrier: number(get, "ccid").unwrap_or(0),
        harq_id: number(get, "harqid")?,
        header_bytes: number(get, "machdrlen")?,
        items: Vec::new(),
    })
}

fn item(row: &Row<'_>) -> Result<MacItem, String> {
    whole(row)?;
    let get = |name: &'static str| row.get(name);
    let len_bytes = number(get, "sdulen")?;
    if get("ismce") == Some("1") {
        // Names of control elements are not distinguished here.
        let lcid = number(get, "lcid").unwrap_or(0);
        return Ok(MacItem::ControlElement { lcid, len_bytes, payload: [0; 9] });
    }
    let is_set = |name: &'static str| get(name) == Some("1");
    Ok(MacItem::Sdu {
        lcid: number(get, "lcid")?,
        len_bytes,
        rlc: RlcFields {
            sn: number(get, "sn").unwrap_or(0),
            data: is_set("dc"),
            poll: is_set("p"),
            resegment: is_set("rf"),
            extension: is_set("e"),
            framing: number(get, "fi").unwrap_or(0),
            last_segment: is_set("lsf"),
            segment_offset_bytes: number(get, "so").unwrap_or(0),
        },
        length_indicators: Vec::new(),
        pdcp_groups: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = "\
Version = 50
TB Log Buff
   TB Info[0]
      TB Common Info[0]
         -----------------------------------------------------------------------
         |   |        |           |     |        |       |         |  |    |Num|       |
         |   |        |Num Pad    |     |        |Reparse|         |CC|HARQ|MAC|MAC Hdr|
         |#  |TB Size |Bytes      |Frame|SubFrame|Flag   |RNTI Type|ID|ID  |Sdu|Len    |
         -----------------------------------------------------------------------
         |  0|     100|          7|  638|       3|      1|   C_RNTI| 0|   2|  2|      4|
      MAC Sdu Info[0]
         -------------------------------------------------------
         |   |   SDU CE Info                                   |
         |   |Is |    |       |   |  | |  | |  |   |  |
         |#  |MCE|LCID|Sdu Len|SN |DC|P|RF|E|FI|LSF|SO|
         -------------------------------------------------------
         |  0|  0|   3|     86|  7| 1|1| 0|0| 2|  0| 0|
         |  1|  1|  29|      1|   |  | |  | |  |   |  |
";

    fn lines(text: &str) -> Vec<Line> {
        text.lines().map(|text| Line { offset: 0, text: text.to_owned() }).collect()
    }

    #[test]
    fn blocks_and_what_is_in_them() {
        let (report, bad) = mac_dl_report(&lines(BODY)).unwrap();
        assert_eq!(bad, []);
        let [block] = &report.blocks[..] else { panic!("{report:?}") };
        assert_eq!((block.tbs_bytes, block.padding_bytes, block.harq_id), (100, 7, 2));
        assert_eq!(block.tti, Tti::new(638, 3));
        let [MacItem::Sdu { lcid: 3, len_bytes: 86, rlc, .. }, MacItem::ControlElement { .. }] =
            &block.items[..]
        else {
            panic!("{block:?}")
        };
        assert!(rlc.poll && rlc.data && rlc.sn == 7 && rlc.framing == 2);
    }

    #[test]
    fn another_version_is_not_read() {
        let other = lines(&BODY.replace("Version = 50", "Version = 4"));
        assert!(!is_read(&other) && mac_dl_report(&other).is_err());
    }

    #[test]
    fn a_row_that_is_cut_is_bad() {
        let cut = lines(&BODY.replace("|  1|  1|  29|", "|  1|  29|"));
        let (report, bad) = mac_dl_report(&cut).unwrap();
        assert_eq!((report.blocks[0].items.len(), bad.len()), (1, 1));
    }
}
