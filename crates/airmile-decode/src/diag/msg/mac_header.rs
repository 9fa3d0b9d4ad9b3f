//! MAC subheaders and control elements (TS 36.321, 6.1.2, 6.1.3, 6.2.1).
//!
//! A subheader is R/F2/E/LCID, one byte, and for an SDU or a control element
//! of variable size that is not the last, a length: 7 or 15 bits after an F
//! bit, or 16 bits where F2 is set. The logged header holds all subheaders,
//! then the control elements' bytes; SDUs are not logged.

use airmile_model::tables::bsr_upper_bound_bytes;
use airmile_model::{BsrReport, Direction, Position, Stamp};
use serde::Serialize;
use smallvec::{SmallVec, smallvec};

use super::shared::hex;

/// The LCID of padding.
pub const LCID_PADDING: u8 = 31;

/// The header of a MAC PDU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MacHeader {
    /// The subheaders in order.
    pub subheaders: SmallVec<[MacSubheader; 2]>,
    /// Whether all of it was logged and its lengths fit the block.
    pub complete: bool,
    /// Logged header bytes: subheaders and control elements.
    pub header_bytes: u32,
    /// Direction of the block: the control elements differ.
    pub dir: Direction,
}

/// A subheader with its contents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MacSubheader {
    /// Logical channel identity, or the kind of control element.
    pub lcid: u8,
    /// Its contents.
    pub content: MacContent,
}

/// The contents of a subheader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MacContent {
    /// An SDU of a logical channel.
    Sdu {
        /// Its length in bytes; the last one's follows from the block's size,
        /// `None` where that does not fit.
        len_bytes: Option<u32>,
    },
    /// A control element.
    ControlElement(#[serde(serialize_with = "hex")] SmallVec<[u8; 8]>),
    /// Padding.
    Padding {
        /// Bytes after the SDUs; 0 for one- or two-byte padding, which consists of the
        /// subheaders themselves (6.1.2).
        len_bytes: Option<u32>,
    },
}

/// A buffer status report (TS 36.321, 6.1.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BsrElement {
    /// One group.
    Short {
        /// Logical channel group, 0 to 3.
        lcg: u8,
        /// Buffer size index, 0 to 63.
        index: u8,
        /// Whether other groups have data too.
        truncated: bool,
    },
    /// All groups.
    Long {
        /// Buffer size indexes of groups 0 to 3.
        indices: [u8; 4],
    },
}

impl BsrElement {
    /// The records of a report in a block, one for each group.
    pub(crate) fn records(
        self,
        at: Option<Stamp>,
        position: Position,
    ) -> impl Iterator<Item = BsrReport> {
        let groups: SmallVec<[(u8, u8); 4]> = match self {
            Self::Short { lcg, index, .. } => smallvec![(lcg, index)],
            Self::Long { indices } => (0..).zip(indices).collect(),
        };
        groups.into_iter().map(move |(lcg, index)| {
            let upper_bound_bytes = bsr_upper_bound_bytes(index);
            BsrReport { at, position, lcg, index, upper_bound_bytes }
        })
    }
}

/// The meaning of a subheader's LCID.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LcidKind {
    Sdu,
    /// A control element of a fixed size.
    Fixed(usize),
    /// A control element with a length field.
    Variable,
    Padding,
}

/// TS 36.321, tables 6.2.1-1 (downlink) and 6.2.1-2 (uplink).
const fn kind(direction: Direction, lcid: u8) -> LcidKind {
    match (direction, lcid) {
        (_, LCID_PADDING) => LcidKind::Padding,
        (Direction::Dl, 24) => LcidKind::Fixed(4), // Activation/Deactivation, 4 octets
        (Direction::Dl, 26) => LcidKind::Fixed(0), // Long DRX Command
        (Direction::Dl, 27) => LcidKind::Fixed(1), // Activation/Deactivation, 1 octet
        (Direction::Dl, 28) => LcidKind::Fixed(6), // UE Contention Resolution Identity
        (Direction::Dl, 29) => LcidKind::Fixed(1), // Timing Advance Command
        (Direction::Dl, 30) => LcidKind::Fixed(0), // DRX Command
        (Direction::Ul, 24 | 25) => LcidKind::Variable, // Dual Connectivity, Extended PHR
        (Direction::Ul, 26) => LcidKind::Fixed(1), // Power Headroom Report
        (Direction::Ul, 27) => LcidKind::Fixed(2), // C-RNTI
        (Direction::Ul, 28 | 29) => LcidKind::Fixed(1), // Truncated BSR, Short BSR
        (Direction::Ul, 30) => LcidKind::Fixed(3), // Long BSR
        _ => LcidKind::Sdu,
    }
}

impl MacHeader {
    /// Parses the logged header of a block of `tbs_bytes` with `padding_bytes` after its
    /// SDUs.
    #[must_use]
    pub fn parse(direction: Direction, header: &[u8], tbs_bytes: u32, padding_bytes: u32) -> Self {
        let header_bytes = header.len() as u32;
        let (raw, mut rest, mut complete) = raw_subheaders(direction, header);
        let known: u32 = raw.iter().filter(|r| r.kind == LcidKind::Sdu).filter_map(|r| r.len).sum();
        let mut open_sdus = 0;
        let last_sdu = tbs_bytes
            .checked_sub(header_bytes)
            .and_then(|left| left.checked_sub(padding_bytes)?.checked_sub(known));
        let last = raw.len().saturating_sub(1);
        let mut subheaders = SmallVec::with_capacity(raw.len());
        for (i, RawSubheader { lcid, kind, len }) in raw.into_iter().enumerate() {
            let content = match kind {
                LcidKind::Sdu => {
                    open_sdus += u32::from(len.is_none());
                    let inferred = if complete { last_sdu } else { None };
                    MacContent::Sdu { len_bytes: len.or(inferred) }
                }
                LcidKind::Fixed(_) | LcidKind::Variable => {
                    let size = match kind {
                        LcidKind::Fixed(size) => size,
                        // The last one's length is not stated: it takes the rest.
                        _ => len.map_or(rest.len(), |len| len as usize),
                    };
                    complete &= size <= rest.len();
                    let (bytes, after) = rest.split_at(size.min(rest.len()));
                    rest = after;
                    MacContent::ControlElement(bytes.into())
                }
                LcidKind::Padding if i == last => {
                    MacContent::Padding { len_bytes: Some(padding_bytes) }
                }
                LcidKind::Padding => MacContent::Padding { len_bytes: Some(0) },
            };
            subheaders.push(MacSubheader { lcid, content });
        }
        // Without an SDU of open length the sizes must add up by themselves.
        complete &= rest.is_empty();
        complete &= if open_sdus == 0 { last_sdu == Some(0) } else { last_sdu.is_some() };
        Self { subheaders, complete, header_bytes, dir: direction }
    }

    /// Writes subheaders and control elements as a block's header; the last
    /// subheader carries no length (6.1.2).
    #[must_use]
    pub fn emit(direction: Direction, subheaders: &[MacSubheader]) -> Vec<u8> {
        let mut header = Vec::new();
        let mut elements = Vec::new();
        for (i, MacSubheader { lcid, content }) in subheaders.iter().enumerate() {
            let last = i + 1 == subheaders.len();
            let first = (lcid & 0x1f) | if last { 0 } else { 0x20 };
            let len = match content {
                MacContent::Sdu { len_bytes } => *len_bytes,
                MacContent::ControlElement(bytes) => {
                    elements.extend_from_slice(bytes);
                    (kind(direction, *lcid) == LcidKind::Variable).then_some(bytes.len() as u32)
                }
                MacContent::Padding { .. } => None,
            };
            match len {
                Some(len) if !last => match len {
                    0..=0x7f => header.extend([first, len as u8]),
                    0x80..=0x7fff => header.extend([first, 0x80 | (len >> 8) as u8, len as u8]),
                    _ => header.extend([first | 0x40, (len >> 8) as u8, len as u8]),
                },
                _ => header.push(first),
            }
        }
        header.extend(elements);
        header
    }

    /// Blanks identities among the control elements of a header: the contention
    /// resolution identity and the C-RNTI (6.1.3.2, 6.1.3.4); and bytes after them, which
    /// are no header. Returns how many were blanked.
    pub fn blank_identities(direction: Direction, header: &mut [u8]) -> u64 {
        let length = header.len();
        let (raw, rest, _) = raw_subheaders(direction, header);
        let mut at = length - rest.len();
        let mut blanked = 0;
        for RawSubheader { lcid, kind, len } in raw {
            let size = match kind {
                LcidKind::Fixed(size) => size,
                LcidKind::Variable => len.map_or(length - at, |len| len as usize),
                LcidKind::Sdu | LcidKind::Padding => 0,
            };
            let end = (at + size).min(length);
            if matches!((direction, lcid), (Direction::Dl, 28) | (Direction::Ul, 27)) {
                header[at..end].fill(0);
                blanked += u64::from(end > at);
            }
            at = end;
        }
        let behind = &mut header[at..];
        blanked += u64::from(behind.iter().any(|&byte| byte != 0));
        behind.fill(0);
        blanked
    }

    /// The buffer status report, if the block carries one. Uplink only.
    #[must_use]
    pub fn bsr(&self) -> Option<BsrElement> {
        if self.dir != Direction::Ul {
            return None;
        }
        self.subheaders.iter().find_map(|subheader| match (&subheader.content, subheader.lcid) {
            (MacContent::ControlElement(bytes), 28..=30) => {
                BsrElement::parse(subheader.lcid, bytes)
            }
            _ => None,
        })
    }

    /// Bytes of SDUs on logical channels in `lcids`; `None` where a length is
    /// not known.
    #[must_use]
    pub fn sdu_bytes(&self, lcids: std::ops::RangeInclusive<u8>) -> Option<u32> {
        if !self.complete {
            return None;
        }
        let mut sum = 0;
        for subheader in &self.subheaders {
            if let MacContent::Sdu { len_bytes } = subheader.content
                && lcids.contains(&subheader.lcid)
            {
                sum += len_bytes?;
            }
        }
        Some(sum)
    }
}

impl BsrElement {
    /// From a control element's LCID (28 truncated, 29 short, 30 long) and bytes.
    #[must_use]
    pub const fn parse(lcid: u8, bytes: &[u8]) -> Option<Self> {
        match (lcid, bytes) {
            (28 | 29, &[byte]) => {
                Some(Self::Short { lcg: byte >> 6, index: byte & 0x3f, truncated: lcid == 28 })
            }
            (30, &[a, b, c]) => Some(Self::Long {
                indices: [a >> 2, (a & 3) << 4 | b >> 4, (b & 0xf) << 2 | c >> 6, c & 0x3f],
            }),
            _ => None,
        }
    }

    /// LCID and bytes of the control element.
    #[must_use]
    pub fn emit(self) -> (u8, Vec<u8>) {
        match self {
            Self::Short { lcg, index, truncated } => {
                (if truncated { 28 } else { 29 }, vec![(lcg & 3) << 6 | (index & 0x3f)])
            }
            Self::Long { indices } => {
                let [a, b, c, d] = indices.map(|index| index & 0x3f);
                (30, vec![a << 2 | b >> 4, b << 4 | c >> 2, c << 6 | d])
            }
        }
    }
}

struct RawSubheader {
    lcid: u8,
    kind: LcidKind,
    len: Option<u32>,
}

/// The subheaders, the bytes after them, and whether the last one was there.
fn raw_subheaders(
    direction: Direction,
    header: &[u8],
) -> (SmallVec<[RawSubheader; 4]>, &[u8], bool) {
    let mut out = SmallVec::new();
    let mut rest = header;
    loop {
        let Some((&first, after)) = rest.split_first() else { return (out, rest, false) };
        rest = after;
        let lcid = first & 0x1f;
        let more = first & 0x20 != 0;
        let long = first & 0x40 != 0;
        let kind = kind(direction, lcid);
        let len = if more && matches!(kind, LcidKind::Sdu | LcidKind::Variable) {
            let (len, used) = match (long, rest) {
                (true, &[high, low, ..]) => (u32::from(high) << 8 | u32::from(low), 2),
                (false, &[high, low, ..]) if high & 0x80 != 0 => {
                    (u32::from(high & 0x7f) << 8 | u32::from(low), 2)
                }
                (false, &[len, ..]) if len & 0x80 == 0 => (len.into(), 1),
                _ => return (out, &[], false),
            };
            rest = &rest[used..];
            Some(len)
        } else {
            None
        };
        out.push(RawSubheader { lcid, kind, len });
        if !more {
            return (out, rest, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sdu(lcid: u8, len_bytes: u32) -> MacSubheader {
        MacSubheader { lcid, content: MacContent::Sdu { len_bytes: Some(len_bytes) } }
    }

    #[test]
    fn the_last_sdu_takes_what_is_left() {
        // One subheader, no length, no padding: 1000 bytes of block.
        let header = MacHeader::parse(Direction::Dl, &[0x03], 1000, 0);
        assert_eq!(header.subheaders[..], [sdu(3, 999)]);
        assert!(header.complete);
        assert_eq!(header.sdu_bytes(3..=10), Some(999));
    }

    #[test]
    fn fifteen_bit_length_then_padding() {
        // E and LCID 3; F and 700 = 0x2bc; padding: 800 = 4 + 700 + 96.
        let header = MacHeader::parse(Direction::Dl, &[0x23, 0x82, 0xbc, 0x1f], 800, 96);
        let padding = MacContent::Padding { len_bytes: Some(96) };
        let last = MacSubheader { lcid: LCID_PADDING, content: padding };
        assert_eq!(header.subheaders[..], [sdu(3, 700), last]);
        assert!(header.complete);
    }

    #[test]
    fn a_cut_header_is_not_complete() {
        let header = MacHeader::parse(Direction::Dl, &[0x23, 0x82], 800, 96);
        assert!(!header.complete);
        assert_eq!(header.sdu_bytes(3..=10), None);
    }

    proptest! {
        #[test]
        fn bsr_both_ways(lcg in 0u8..4, index in 0u8..64, truncated: bool,
                         indices in proptest::array::uniform4(0u8..64)) {
            for bsr in [BsrElement::Short { lcg, index, truncated }, BsrElement::Long { indices }] {
                let (lcid, bytes) = bsr.emit();
                prop_assert_eq!(BsrElement::parse(lcid, &bytes), Some(bsr));
            }
        }

        #[test]
        fn headers_both_ways(lens in prop::collection::vec((0u8..11, 0u32..40_000), 1..6),
                             bsr in prop::option::of(0u8..64), padding in 0u32..200) {
            let mut subheaders = Vec::new();
            if let Some(index) = bsr {
                let (lcid, bytes) = BsrElement::Short { lcg: 1, index, truncated: false }.emit();
                subheaders.push(MacSubheader { lcid, content: MacContent::ControlElement(bytes.into()) });
            }
            subheaders.extend(lens.iter().map(|&(lcid, len)| sdu(lcid, len)));
            if padding > 0 {
                let content = MacContent::Padding { len_bytes: Some(padding) };
                subheaders.push(MacSubheader { lcid: LCID_PADDING, content });
            }
            let bytes = MacHeader::emit(Direction::Ul, &subheaders);
            let sdus: u32 = lens.iter().map(|&(_, len)| len).sum();
            let tbs = bytes.len() as u32 + sdus + padding;
            let header = MacHeader::parse(Direction::Ul, &bytes, tbs, padding);
            prop_assert!(header.complete);
            prop_assert_eq!(header.subheaders.to_vec(), subheaders);
        }

        #[test]
        fn no_panic(bytes in prop::collection::vec(any::<u8>(), 0..40), tbs: u32, padding: u32) {
            let _ = MacHeader::parse(Direction::Dl, &bytes, tbs, padding);
            let _ = MacHeader::parse(Direction::Ul, &bytes, tbs, padding);
        }
    }
}
