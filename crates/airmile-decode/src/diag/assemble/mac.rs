//! MAC transport blocks (0xB063, 0xB064): their own records, and their contribution to
//! the grants of their TTI.

use std::collections::VecDeque;

use airmile_model::tti::TtiIndex;
use airmile_model::window::SegmentTti;
use airmile_model::{Direction, MacBlock, RlcMode, RlcPdu, Stamp};

use super::Assembler;
use super::downlink::DlMacBlock;
use crate::diag::msg::mac_header::LCID_PADDING;
use crate::diag::msg::{
    MacContent, MacDl, MacDlBlock, MacDlReport, MacDlReportBlock, MacHeader, MacItem, MacUl,
    RlcFields,
};

/// MAC records within this distance on both sides show that the MAC layer was logged;
/// likewise for RLC records.
pub(super) const LOGGED_NEAR_TTIS: i64 = 400;

/// Logical channels of data bearers (TS 36.321, table 6.2.1-1: 1 and 2 are
/// the signalling bearers' in practice, TS 36.331 9.1.2).
const DATA_LCIDS: std::ops::RangeInclusive<u8> = 3..=10;

/// The largest serving-cell index (TS 36.331, 6.3.4 ServCellIndex-r10).
const MAX_CELL: u8 = 7;

impl Assembler {
    pub(super) fn mac_dl(&mut self, at: Stamp, m: &MacDl) {
        for block in m.subpackets.iter().flat_map(|s| &s.blocks) {
            let Some(position) = self.batched(at, block.tti, block.cell.unwrap_or(0)) else {
                continue;
            };
            self.mac_ttis.insert((position.timing_segment, position.tti));
            let header = block.subheaders();
            let data_bytes = dl_data_bytes(block, header.as_ref());
            self.dl_parts(position, block.rnti_type).add_mac(DlMacBlock {
                harq_id: block.harq_id,
                tbs_bytes: block.tbs_bytes.into(),
                padding_bytes: block.padding_bytes.into(),
                data_bytes,
            });
            let row = MacBlock {
                at: self.stamp(position),
                position,
                dir: Direction::Dl,
                rnti: block.rnti_type,
                harq_id: block.harq_id,
                tbs_bytes: block.tbs_bytes.into(),
                rlc_pdus: block.rlc_pdus,
                padding_bytes: block.padding_bytes.into(),
                data_bytes,
                lcids: header.as_ref().map(lcids).unwrap_or_default(),
            };
            self.hold(position, row);
        }
    }

    pub(super) fn mac_dl_report(&mut self, at: Stamp, m: &MacDlReport) {
        for block in &m.blocks {
            // An impossible carrier counts as not stated.
            let cell = if block.carrier <= MAX_CELL { block.carrier } else { 0 };
            let Some(position) = self.batched(at, block.tti, cell) else { continue };
            self.mac_ttis.insert((position.timing_segment, position.tti));
            let data_bytes = report_data_bytes(block);
            self.dl_parts(position, block.rnti_type).add_mac(DlMacBlock {
                harq_id: block.harq_id,
                tbs_bytes: block.tbs_bytes,
                padding_bytes: block.padding_bytes,
                data_bytes: Some(data_bytes),
            });
            let stamp = self.stamp(position);
            let mut rlc_pdus = 0_u8;
            for item in &block.items {
                let MacItem::Sdu { lcid, len_bytes, rlc, pdcp_groups, .. } = item else { continue };
                rlc_pdus = rlc_pdus.saturating_add(1);
                let (mode, data) = rlc_kind(*lcid, rlc, !pdcp_groups.is_empty());
                let row = RlcPdu {
                    at: stamp,
                    position,
                    dir: Direction::Dl,
                    bearer: *lcid,
                    signalling: Some(!DATA_LCIDS.contains(lcid)),
                    mode,
                    sn: (data && mode != RlcMode::Tm).then_some(rlc.sn.into()),
                    size_bytes: (*len_bytes).into(),
                    poll: (data && mode == RlcMode::Am).then_some(rlc.poll),
                    resegment: data && mode == RlcMode::Am && rlc.resegment,
                    status: !data,
                };
                self.hold_mac_rlc(position, row);
            }
            let row = MacBlock {
                at: stamp,
                position,
                dir: Direction::Dl,
                rnti: block.rnti_type,
                harq_id: block.harq_id,
                tbs_bytes: block.tbs_bytes,
                rlc_pdus,
                padding_bytes: block.padding_bytes,
                data_bytes: Some(data_bytes),
                lcids: report_lcids(block),
            };
            self.hold(position, row);
        }
    }

    pub(super) fn mac_ul(&mut self, at: Stamp, m: &MacUl) {
        for block in m.subpackets.iter().flat_map(|s| &s.blocks) {
            let Some(position) = self.batched(at, block.tti, block.cell.unwrap_or(0)) else {
                continue;
            };
            let header = block.subheaders();
            let data_bytes = header.sdu_bytes(DATA_LCIDS);
            self.ul_parts(position, block.rnti_type).add_mac(block, data_bytes);
            let stamp = self.stamp(position);
            for report in header.bsr().into_iter().flat_map(|bsr| bsr.records(stamp, position)) {
                self.hold(position, report);
            }
            let row = MacBlock {
                at: stamp,
                position,
                dir: Direction::Ul,
                rnti: block.rnti_type,
                harq_id: block.harq_id,
                tbs_bytes: block.grant_bytes.into(),
                rlc_pdus: block.rlc_pdus,
                padding_bytes: block.padding_bytes.into(),
                data_bytes,
                lcids: lcids(&header),
            };
            self.hold(position, row);
        }
    }
}

/// TTIs in which a layer logged something, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct LoggedTtis(VecDeque<SegmentTti>);

impl LoggedTtis {
    pub(super) fn insert(&mut self, at: SegmentTti) {
        match self.0.back() {
            Some(newest) if *newest >= at => {
                if let Err(here) = self.0.binary_search(&at) {
                    self.0.insert(here, at);
                }
            }
            _ => self.0.push_back(at),
        }
    }

    pub(super) fn forget_before(&mut self, at: SegmentTti) {
        while self.0.front().is_some_and(|oldest| *oldest < at) {
            self.0.pop_front();
        }
    }

    /// Whether one is within [`LOGGED_NEAR_TTIS`] on either side.
    pub(super) fn near(&self, (segment, tti): SegmentTti) -> bool {
        let first = self.0.partition_point(|at| *at < (segment, tti.plus(-LOGGED_NEAR_TTIS)));
        self.0.get(first).is_some_and(|at| *at <= (segment, tti.plus(LOGGED_NEAR_TTIS)))
    }

    /// Whether there are some within [`LOGGED_NEAR_TTIS`] on both sides.
    pub(super) fn around(&self, (segment, tti): SegmentTti) -> bool {
        let within = |from: TtiIndex, to: TtiIndex| {
            let first = self.0.partition_point(|at| *at < (segment, from));
            self.0.get(first).is_some_and(|at| *at < (segment, to))
        };
        within(tti.plus(-LOGGED_NEAR_TTIS), tti) && within(tti.plus(1), tti.plus(LOGGED_NEAR_TTIS))
    }
}

/// Bytes of data bearers' SDUs in a block; `None` if the header was not logged
/// completely, zero in a block of another RNTI.
fn dl_data_bytes(block: &MacDlBlock, header: Option<&MacHeader>) -> Option<u32> {
    match header {
        Some(header) => header.sdu_bytes(DATA_LCIDS),
        None if block.rnti_type.is_user() => None,
        None => Some(0),
    }
}

fn report_data_bytes(block: &MacDlReportBlock) -> u32 {
    let sdus = block.items.iter().filter_map(|item| match item {
        MacItem::Sdu { lcid, len_bytes, .. } if DATA_LCIDS.contains(lcid) => Some(*len_bytes),
        _ => None,
    });
    sdus.map(u32::from).sum()
}

/// RLC mode of an SDU, and whether it is a data PDU. The common control channel has no
/// RLC header (TS 36.322, 4.2.1.1). Elsewhere, D/C set means acknowledged mode; clear
/// with PDCP PDUs inside means unacknowledged mode, which has no such bit; clear without
/// them means a STATUS PDU.
const fn rlc_kind(lcid: u8, rlc: &RlcFields, carries_pdcp: bool) -> (RlcMode, bool) {
    match (lcid, rlc.data, carries_pdcp) {
        (0, ..) => (RlcMode::Tm, true),
        (_, true, _) => (RlcMode::Am, true),
        (_, false, true) => (RlcMode::Um, true),
        (_, false, false) => (RlcMode::Am, false),
    }
}

/// A block's subheaders as text.
fn report_lcids(block: &MacDlReportBlock) -> String {
    let mut out = String::with_capacity(8 * block.items.len() + 3);
    let mut push = |lcid: u8, len_bytes: Option<u16>| {
        if !out.is_empty() {
            out.push(' ');
        }
        push_number(&mut out, lcid.into());
        if let Some(bytes) = len_bytes {
            out.push(':');
            push_number(&mut out, bytes.into());
        }
    };
    for item in &block.items {
        push(item.lcid(), matches!(item, MacItem::Sdu { .. }).then(|| item.len_bytes()));
    }
    if block.padding_bytes > 0 {
        push(LCID_PADDING, None);
    }
    out
}

/// The header's subheaders as text.
fn lcids(header: &MacHeader) -> String {
    let mut out = String::with_capacity(8 * header.subheaders.len());
    for s in &header.subheaders {
        if !out.is_empty() {
            out.push(' ');
        }
        push_number(&mut out, s.lcid.into());
        if let MacContent::Sdu { len_bytes: Some(bytes) } = s.content {
            out.push(':');
            push_number(&mut out, bytes);
        }
    }
    out
}

/// Writes a number without the formatter's cost: every block has one or two.
fn push_number(out: &mut String, n: u32) {
    if n >= 10 {
        push_number(out, n / 10);
    }
    out.push(char::from(b'0' + (n % 10) as u8));
}
