//! The messages and versions that are read, and the evidence for each: the table of
//! docs/versions.md.

use std::fmt::Write as _;

use super::msg::{
    IntraFreqMeas, MacDl, MacDlReport, MacUl, NeighbourMeas, NrMeas, NrPdschStats, NrRrcOta,
    NrServCell, NrUlTbStats, PdcchDecoding, PdcpCipher, PdschDecoding, PdschPacket, PdschStat,
    PuschTx, RlcCounters, RlcDl, RlcUl, RlmReport, RrcMib, RrcOta, RrcServCell, ServCellMeas,
    UlBufferStatus, UlTxStatistics,
};
use super::names;

/// The evidence for reading a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reading {
    /// Real records were read, and agree with another decoder or with the standard's
    /// limits.
    Confirmed,
    /// A public layout; no sample was available.
    PublicLayout,
    /// A layout that each record must prove to fit; others are counted and not read.
    SelfChecked,
    /// Known to be logged, and counted by name.
    NotRead,
}

impl Reading {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 4] =
        [Self::Confirmed, Self::PublicLayout, Self::SelfChecked, Self::NotRead];

    /// The heading of the table's column.
    #[must_use]
    pub const fn heading(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed on real bytes",
            Self::PublicLayout => "public layout",
            Self::SelfChecked => "read where it adds up",
            Self::NotRead => "not read",
        }
    }
}

/// A message and one of its versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionRow {
    /// Log code.
    pub code: u16,
    /// Version as `inspect` prints it: `24`, `1/4` with a subpacket's, `3.13` of NR.
    pub version: String,
    /// The evidence for reading it.
    pub reading: Reading,
}

/// Every message and version that is read, then those known but not read.
#[must_use]
pub fn table() -> Vec<VersionRow> {
    let mut rows = Vec::new();
    let mut add = |code: u16, version: String, reading| {
        rows.push(VersionRow { code, version, reading });
    };
    let by = |confirmed: &[u8], version: u8| {
        if confirmed.contains(&version) { Reading::Confirmed } else { Reading::PublicLayout }
    };
    for (code, versions, confirmed) in PLAIN {
        versions.iter().for_each(|v| add(*code, v.to_string(), by(confirmed, *v)));
    }
    for (code, versions, confirmed) in WITH_SUBPACKETS {
        versions.iter().for_each(|v| add(*code, format!("1/{v}"), by(confirmed, *v)));
    }
    for (code, versions) in CHECKED {
        versions.iter().for_each(|v| add(*code, format!("1/{v}"), Reading::SelfChecked));
    }
    for (code, versions, confirmed) in NR {
        for &(major, minor) in *versions {
            let reading = if confirmed.contains(&(major, minor)) {
                Reading::Confirmed
            } else {
                Reading::PublicLayout
            };
            let version = if major == 0 { minor.to_string() } else { format!("{major}.{minor}") };
            add(*code, version, reading);
        }
    }
    for (code, version, reading) in OTHERS {
        add(*code, (*version).to_owned(), *reading);
    }
    rows.sort_by_key(|row| row.code);
    rows
}

type Rows<T> = &'static [(u16, &'static [T], &'static [T])];

/// Code, versions that have a layout, and those of them that real bytes confirmed.
const PLAIN: Rows<u8> = &[
    (0xB063, MacDlReport::VERSIONS, &[50]),
    (0xB0C0, RrcOta::VERSIONS, &[7, 8, 9, 13, 20, 26]),
    (0xB0C1, RrcMib::VERSIONS, &[2]),
    (0xB0C2, RrcServCell::VERSIONS, &[2, 3]),
    (0xB126, PdschPacket::VERSIONS, &[23, 104, 123]),
    (0xB130, PdcchDecoding::VERSIONS, &[101, 121]),
    (0xB132, PdschDecoding::VERSIONS, &[106]),
    (0xB139, PuschTx::VERSIONS, &[43, 102, 124]),
    (0xB173, PdschStat::VERSIONS, &[16, 24, 48]),
    (0xB179, IntraFreqMeas::VERSIONS, &[3, 4]),
    (0xB18A, RlmReport::VERSIONS, &[1]),
    (0xB821, NrRrcOta::VERSIONS, &[8]),
];

const WITH_SUBPACKETS: Rows<u8> = &[
    (0xB063, MacDl::VERSIONS, &[2, 4]),
    (0xB064, MacUl::VERSIONS, &[1, 2]),
    (0xB066, UlBufferStatus::VERSIONS, &[3, 24]),
    (0xB067, UlTxStatistics::VERSIONS, &[2]),
    (0xB082, RlcDl::VERSIONS, &[3]),
    (0xB087, RlcCounters::<0xB087>::VERSIONS, &[3]),
    (0xB092, RlcUl::VERSIONS, &[3]),
    (0xB097, RlcCounters::<0xB097>::VERSIONS, &[1]),
    (0xB0A3, PdcpCipher::<0xB0A3>::VERSIONS, &[1, 24]),
    (0xB0B3, PdcpCipher::<0xB0B3>::VERSIONS, &[1, 26]),
    (0xB193, ServCellMeas::VERSIONS, &[4, 18, 19, 22, 36]),
    (0xB195, NeighbourMeas::VERSIONS, &[4]),
];

const CHECKED: &[(u16, &[u8])] =
    &[(0xB064, MacUl::CHECKED_VERSIONS), (0xB193, ServCellMeas::CHECKED_VERSIONS)];

const NR: Rows<(u16, u16)> = &[
    (0xB823, NrServCell::VERSIONS, &[(0, 4), (3, 2)]),
    (0xB881, NrUlTbStats::VERSIONS, &[]),
    (0xB888, NrPdschStats::VERSIONS, &[]),
    (0xB97F, NrMeas::VERSIONS, &[(2, 7), (2, 9), (2, 10), (3, 0)]),
];

/// Messages without their own list of versions, or not read.
const OTHERS: &[(u16, &str, Reading)] = &[
    (0xB887, "2.5", Reading::Confirmed),
    (0xB887, "2.x", Reading::SelfChecked),
    (0xB887, "3.x", Reading::SelfChecked),
    (0xB872, "4", Reading::SelfChecked),
    (0xB872, "2.x", Reading::SelfChecked),
    (0xB872, "3.x", Reading::SelfChecked),
    (0xB083, "48", Reading::NotRead),
    (0xB0A1, "53", Reading::NotRead),
    (0xB0B6, "56", Reading::NotRead),
    (0xB114, "1, 122, 141, 161", Reading::NotRead),
    (0xB126, "163", Reading::NotRead),
    (0xB12A, "161", Reading::NotRead),
    (0xB132, "42", Reading::NotRead),
    (0xB139, "161, 162", Reading::NotRead),
    (0xB16C, "48 to 50", Reading::NotRead),
    (0xB16D, "49", Reading::NotRead),
    (0xB179, "56", Reading::NotRead),
    (0xB184, "50", Reading::NotRead),
    (0xB18F, "54", Reading::NotRead),
    (0xB195, "1/24", Reading::NotRead),
    (0xB196, "41", Reading::NotRead),
    (0xB197, "2", Reading::NotRead),
    (0xB825, "all", Reading::NotRead),
    (0xB840, "all", Reading::NotRead),
    (0xB842, "all", Reading::NotRead),
    (0xB857, "6 (`--experimental`)", Reading::SelfChecked),
    (0xB870, "all", Reading::NotRead),
    (0xB873, "all", Reading::NotRead),
    (0xB883, "all", Reading::NotRead),
    (0xB885, "all", Reading::NotRead),
    (0xB88A, "all", Reading::NotRead),
    (0xB890, "all", Reading::NotRead),
    (0xB8A7, "all", Reading::NotRead),
];

/// The table of docs/versions.md: a row per message.
#[must_use]
pub fn markdown() -> String {
    let rows = table();
    let mut out = String::from("| code | message |");
    for reading in Reading::ALL {
        let _ = write!(out, " {} |", reading.heading());
    }
    out.push_str("\n|---|---|---|---|---|---|\n");
    for group in rows.chunk_by(|a, b| a.code == b.code) {
        let Some(first) = group.first() else { continue };
        let _ = write!(out, "| 0x{:04X} | {} |", first.code, names::name(first.code).unwrap_or(""));
        for reading in Reading::ALL {
            let versions: Vec<&str> = group
                .iter()
                .filter(|row| row.reading == reading)
                .map(|row| row.version.as_str())
                .collect();
            let _ = write!(out, " {} |", versions.join(", "));
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Message;

    #[test]
    fn every_message_that_is_read_is_in_the_table() {
        let rows = table();
        for code in Message::CODES {
            let read = rows.iter().any(|r| r.code == *code && r.reading != Reading::NotRead);
            assert!(read, "0x{code:04X}");
        }
        assert!(rows.iter().all(|row| names::name(row.code).is_some()));
    }

    #[test]
    fn what_is_confirmed_has_a_layout() {
        for (code, versions, confirmed) in PLAIN.iter().chain(WITH_SUBPACKETS) {
            assert!(confirmed.iter().all(|v| versions.contains(v)), "0x{code:04X}");
        }
        for (code, versions, confirmed) in NR {
            assert!(confirmed.iter().all(|v| versions.contains(v)), "0x{code:04X}");
        }
    }
}
