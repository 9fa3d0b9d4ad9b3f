//! Logs of an srsRAN Project gNB, by its documentation ("gNB log format") and public
//! excerpts. A base station logs what a sniffer cannot observe: retransmissions and
//! padding.
//!
//! - The log file at level `info` of the layers SCHED and MAC. A line is
//!   `YYYY-MM-DDTHH:MM:SS.UUUUUU [LAYER   ] [I] [SFN.slot] text`. Read are SCHED's
//!   `Slot decisions ...: DL: ue=0 c-rnti=0x4601 h_id=0 rb=[0..51) k1=4 newtx=true
//!   rv=0 tbs=1289 ri=2 dl_bo=0, UL: ...` and MAC's `DL PDU: ue=0 rnti=0x4601
//!   size=1289: SDU: lcid=4 nof_sdus=1 total_size=800`.
//! - The console trace: a row a second for each user, without times. Read against a
//!   real trace; the log file's lines were not tried on a whole real file.

use airmile_model::Direction;

use super::rows::SniffedRow;

/// The contents of a line of the log file.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum GnbLine {
    /// Grants of a slot.
    Decisions(Vec<SniffedRow>),
    /// A downlink block was built.
    DlPdu {
        frame: i64,
        slot: i64,
        rnti: u16,
        /// Bytes not filled by SDUs; `None` if parts have no size.
        padding_bytes: Option<u32>,
    },
    /// A line that is not read.
    Other,
}

/// A line's head: time, layer, slot, and the text after it.
struct LineHeader<'a> {
    time_us: i64,
    layer: &'a str,
    slot: Option<(i64, i64)>,
    text: &'a str,
}

fn head(line: &str) -> Option<LineHeader<'_>> {
    let (stamp, rest) = line.split_once(" [")?;
    let time_us = time_us(stamp)?;
    let (layer, rest) = rest.split_once(']')?;
    let rest = rest.trim_start().strip_prefix('[')?;
    let (level, rest) = rest.split_once(']')?;
    if !matches!(level.trim(), "E" | "W" | "I" | "D") {
        return None;
    }
    let rest = rest.trim_start();
    let in_brackets = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let slot = in_brackets.and_then(|(slot, _)| slot_of(slot));
    let text = match (slot, in_brackets) {
        (Some(_), Some((_, text))) => text.trim_start(),
        _ => rest,
    };
    Some(LineHeader { time_us, layer: layer.trim(), slot, text })
}

/// `SFN.slot`, with blanks before it.
fn slot_of(text: &str) -> Option<(i64, i64)> {
    let (frame, slot) = text.trim().split_once('.')?;
    let (frame, slot) = (frame.parse().ok()?, slot.parse().ok()?);
    ((0..1024).contains(&frame) && (0..160).contains(&slot)).then_some((frame, slot))
}

/// `2023-03-15T18:29:25.142200` as microseconds since the Unix epoch.
fn time_us(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    if bytes.len() != 26 || bytes.get(10) != Some(&b'T') || bytes.get(19) != Some(&b'.') {
        return None;
    }
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u32>().ok().map(i64::from);
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let fits = (1..=12).contains(&month) && (1..=31).contains(&day);
    if !fits || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Days since 1970-01-01 in the Gregorian calendar; years begin in March.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days =
        365 * y + y.div_euclid(4) - y.div_euclid(100) + y.div_euclid(400) + (153 * m + 2) / 5 + day
            - 1
            - 719_468;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000 + number(20, 26)?)
}

/// Whether a line is of the log file.
pub(super) fn is_log_line(line: &str) -> bool {
    const LAYERS: [&str; 14] = [
        "MAC", "RLC", "PDCP", "RRC", "SDAP", "NGAP", "GTPU", "RADIO", "FAPI", "F1U", "DU", "CU",
        "LIB", "SCHED",
    ];
    head(line).is_some_and(|head| LAYERS.iter().any(|layer| head.layer.starts_with(layer)))
}

/// Reads a line of the log file.
pub(super) fn log_line(line: &str) -> Result<GnbLine, String> {
    let Some(head) = head(line) else { return Ok(GnbLine::Other) };
    let Some((frame, slot)) = head.slot else { return Ok(GnbLine::Other) };
    match head.layer {
        "SCHED" if head.text.starts_with("Slot decisions") => {
            let blank = blank_row(head.time_us, frame, slot);
            decisions(head.text, blank).map(GnbLine::Decisions)
        }
        "MAC" => Ok(dl_pdu(head.text, frame, slot).unwrap_or(GnbLine::Other)),
        _ => Ok(GnbLine::Other),
    }
}

const fn blank_row(time_us: i64, frame: i64, slot: i64) -> SniffedRow {
    SniffedRow {
        time_us: Some(time_us),
        frame,
        slot,
        cell: 0,
        rnti: 0,
        dir: Direction::Dl,
        n_prb: 0,
        n_prb_cell: None,
        layers: None,
        mcs: [None; 2],
        rv: [None; 2],
        ndi: [None; 2],
        tbs_bytes: [None; 2],
        harq_id: None,
        delay_slots: 0,
        retx: None,
        padding_bytes: None,
    }
}

/// The grants among the decisions of a slot: `DL:` and `UL:` begin one, any other word
/// with a colon (`SIB1:`, `RAR:`) something else.
fn decisions(text: &str, blank: SniffedRow) -> Result<Vec<SniffedRow>, String> {
    let mut out: Vec<SniffedRow> = Vec::new();
    let mut open = false;
    for word in text.split_whitespace() {
        let word = word.trim_end_matches(',');
        if let Some(name) = word.strip_suffix(':') {
            open = matches!(name, "DL" | "UL");
            if open {
                let dir = if name == "DL" { Direction::Dl } else { Direction::Ul };
                out.push(SniffedRow { dir, ..blank });
            }
            continue;
        }
        let Some(row) = out.last_mut().filter(|_| open) else { continue };
        let Some((key, value)) = word.split_once('=') else { continue };
        let bad = || format!("has {value:?} for {key}");
        match key {
            "rnti" | "c-rnti" | "tc-rnti" => row.rnti = hex16(value).ok_or_else(bad)?,
            "h_id" => row.harq_id = Some(value.parse().map_err(|_| bad())?),
            "rb" => row.n_prb = width(value).ok_or_else(bad)?,
            "rv" => row.rv[0] = Some(value.parse().map_err(|_| bad())?),
            "mcs" => row.mcs[0] = value.parse().ok(),
            "newtx" => row.retx = Some(value != "true"),
            "tbs" => row.tbs_bytes[0] = Some(value.parse().map_err(|_| bad())?),
            "ri" | "nof_layers" => row.layers = value.parse().ok(),
            // The block goes over the air k2 slots after its grant.
            "k2" if row.dir == Direction::Ul => {
                let slots: u8 = value.parse().map_err(|_| bad())?;
                row.delay_slots = slots.into();
            }
            _ => {}
        }
    }
    out.retain(|row| row.rnti != 0 && row.tbs_bytes[0].is_some());
    Ok(out)
}

fn dl_pdu(text: &str, frame: i64, slot: i64) -> Option<GnbLine> {
    let rest = text.strip_prefix("DL PDU: ")?;
    let (head, parts) = rest.split_once(": ")?;
    let field = |name: &str| head.split_whitespace().find_map(|word| word.strip_prefix(name));
    let rnti = field("rnti=").and_then(hex16)?;
    let size: u32 = field("size=")?.parse().ok()?;
    let mut left = Some(size);
    for part in parts.split(", ") {
        let sdu = part.trim_start().starts_with("SDU:");
        let total = part
            .split_whitespace()
            .find_map(|word| word.strip_prefix("total_size=")?.parse::<u32>().ok());
        left = match total.filter(|_| sdu) {
            Some(bytes) => left.and_then(|left| left.checked_sub(bytes)),
            None => None,
        };
    }
    Some(GnbLine::DlPdu { frame, slot, rnti, padding_bytes: left })
}

fn hex16(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// The width of `[a..b)` or `[a, b)`, of which the latter is cut at its blank.
fn width(text: &str) -> Option<u16> {
    let inner = text.strip_prefix('[')?.strip_suffix(')')?;
    let (from, to) = inner.split_once("..")?;
    to.parse::<u16>().ok()?.checked_sub(from.parse().ok()?)
}

/// Whether a line is the heading of the console trace.
pub(super) fn is_console_heading(line: &str) -> bool {
    let has = |word| line.split_whitespace().any(|w| w == word);
    has("rnti") && has("brate") && has("dl_bs") && has("bsr")
}

/// A second of a user in the console trace.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct ConsoleRow {
    pub(super) rnti: u16,
    pub(super) dl_bits_per_s: f64,
    pub(super) dl_ok: u64,
    pub(super) dl_failed: u64,
    /// Bytes queued for the user at the base station.
    pub(super) dl_queue_bytes: f64,
    pub(super) ul_bits_per_s: f64,
    /// The user's own uplink buffer in bytes.
    pub(super) bsr_bytes: f64,
}

/// A row under the heading `pci rnti cqi ri mcs brate ok nok (%) dl_bs | pusch mcs brate
/// ok nok (%) bsr`; `None` for anything else.
pub(super) fn console_row(line: &str) -> Option<ConsoleRow> {
    let (dl, ul) = line.split_once('|')?;
    let dl: Vec<&str> = dl.split_whitespace().collect();
    let ul: Vec<&str> = ul.split_whitespace().collect();
    let (&[_, rnti, _, _, _, dl_rate, ok, nok, _, queue], &[_, _, ul_rate, .., bsr]) =
        (&dl[..], &ul[..])
    else {
        return None;
    };
    Some(ConsoleRow {
        rnti: u16::from_str_radix(rnti, 16).ok()?,
        dl_bits_per_s: scaled(dl_rate)?,
        dl_ok: ok.parse().ok()?,
        dl_failed: nok.parse().ok()?,
        dl_queue_bytes: scaled(queue)?,
        ul_bits_per_s: scaled(ul_rate)?,
        bsr_bytes: scaled(bsr)?,
    })
}

/// `17k`, `1.2M`, `0`.
fn scaled(text: &str) -> Option<f64> {
    let (digits, factor) = match text.as_bytes().last()? {
        b'k' => (text.strip_suffix('k')?, 1e3),
        b'M' => (text.strip_suffix('M')?, 1e6),
        b'G' => (text.strip_suffix('G')?, 1e9),
        _ => (text, 1.0),
    };
    let value: f64 = digits.parse().ok()?;
    (value.is_finite() && value >= 0.0).then_some(value * factor)
}

/// The content of a console trace, in words.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct ConsoleSummary {
    pub(super) rows: u64,
    rows_with_queue: u64,
    dl_bits: f64,
    ul_bits: f64,
    ok: u64,
    failed: u64,
}

impl ConsoleSummary {
    pub(super) fn push(&mut self, row: ConsoleRow) {
        self.rows += 1;
        self.rows_with_queue += u64::from(row.dl_queue_bytes > 0.0);
        self.dl_bits += row.dl_bits_per_s;
        self.ul_bits += row.ul_bits_per_s;
        self.ok = self.ok.saturating_add(row.dl_ok);
        self.failed = self.failed.saturating_add(row.dl_failed);
    }

    pub(super) fn words(&self) -> String {
        let n = self.rows.max(1) as f64;
        let sent = self.ok.saturating_add(self.failed).max(1) as f64;
        format!(
            "console trace of a gNB, {} user-seconds: downlink {:.0} kbit/s, uplink {:.0} kbit/s, \
             {:.1} % of downlink blocks failed, data waited at the base station in {:.0} % of the \
             rows. It has no times and no slots: transfers need the log file at level info of \
             SCHED and MAC",
            self.rows,
            self.dl_bits / n / 1e3,
            self.ul_bits / n / 1e3,
            100.0 * self.failed as f64 / sent,
            100.0 * self.rows_with_queue as f64 / n,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_of_a_slot() {
        let line = "2026-04-27T11:25:31.257380 [SCHED   ] [I] [   30.16] Slot decisions pci=1 \
                    t=26us (1 PDSCH, 1 PUSCH, 0 PUCCHs): SIB1: rnti=0xffff rb=[0..9) tbs=96, \
                    DL: ue=1 c-rnti=0x4611 h_id=3 ss_id=2 rb=[4..55) k1=11 newtx=true rv=0 \
                    tbs=3240 ri=2 dl_bo=100, UL: ue=1 rnti=0x4611 h_id=2 ss_id=2 rb=[0..5) k2=4 \
                    newtx=false rv=2 tbs=36";
        assert!(is_log_line(line));
        let Ok(GnbLine::Decisions(rows)) = log_line(line) else { panic!("no decisions") };
        let [dl, ul] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((dl.frame, dl.slot, dl.rnti, dl.dir), (30, 16, 0x4611, Direction::Dl));
        assert_eq!((dl.n_prb, dl.tbs_bytes[0], dl.layers), (51, Some(3240), Some(2)));
        assert_eq!((dl.retx, dl.rv[0], dl.harq_id), (Some(false), Some(0), Some(3)));
        assert_eq!((ul.dir, ul.retx, ul.delay_slots), (Direction::Ul, Some(true), 4));
        // 2026-04-27 11:25:31 UTC.
        assert_eq!(dl.time_us, Some(1_777_289_131_257_380));
    }

    #[test]
    fn a_block_and_its_padding() {
        let of = |parts: &str| {
            let line = format!(
                "2026-04-27T11:25:31.257399 [MAC     ] [I] [    30.6] DL PDU: ue=1 rnti=0x4611 \
                 size=36: {parts}"
            );
            match log_line(&line) {
                Ok(GnbLine::DlPdu { frame: 30, slot: 6, rnti: 0x4611, padding_bytes }) => {
                    padding_bytes
                }
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(of("SDU: lcid=2 nof_sdus=1 total_size=5"), Some(31));
        assert_eq!(of("SDU: lcid=4 nof_sdus=1 total_size=20, SDU: lcid=2 total_size=16"), Some(0));
        assert_eq!(of("CON_RES: id=1122, SDU: lcid=0 total_size=16"), None);
        assert_eq!(of("SDU: lcid=4 nof_sdus=1 total_size=37"), None);
    }

    #[test]
    fn other_lines_are_left_alone() {
        for line in [
            "2023-03-15T18:29:25.142204 [RLC     ] [I] ue=0 SRB1 UL: RX PDU. pdu_len=96 p=1",
            "2023-03-15T18:29:25.142249 [RRC     ] [D] Content: [",
            "      {",
            "",
            "2023-13-15T18:29:25.142249 [MAC     ] [I] [    30.6] DL PDU: rnti=0x1 size=1: x",
        ] {
            assert_eq!(log_line(line), Ok(GnbLine::Other), "{line}");
        }
        let bad = "2023-03-15T18:29:25.142249 [SCHED   ] [I] [    30.6] Slot decisions: DL: \
                   rnti=0x4601 tbs=many";
        assert_eq!(log_line(bad), Err("has \"many\" for tbs".to_owned()));
    }

    #[test]
    fn console_rows() {
        assert!(is_console_heading(
            " pci rnti  cqi  ri  mcs  brate   ok  nok  (%)  dl_bs | pusch  mcs  brate   ok  nok  \
             (%)    bsr"
        ));
        let row = console_row(
            "   1 4601   15   1   26    17k   20    1   4%   1.5k |  65.5   27   107k   40    0   \
             0%      0",
        );
        let row = row.unwrap();
        assert_eq!((row.rnti, row.dl_bits_per_s, row.dl_queue_bytes), (0x4601, 17e3, 1500.0));
        assert_eq!((row.dl_ok, row.dl_failed, row.ul_bits_per_s), (20, 1, 107e3));
        assert_eq!(console_row("Type <t> to view trace"), None);
        assert_eq!(console_row("a | b"), None);
    }
}
