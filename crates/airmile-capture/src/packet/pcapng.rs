//! The pcapng container (draft-ietf-opsawg-pcapng).

use std::collections::BTreeMap;

use airmile_model::{Problem, Severity};

use super::capture::{ByteOrder, Frame, MAX_BLOCK_BYTES, ParseStep};

/// Type of a section header block; the same in either byte order.
pub(super) const SECTION_MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

/// Type, leading and trailing length: the framing of every block.
const FRAMING_BYTES: usize = 12;

#[derive(Clone, Copy)]
struct Interface {
    link: u32,
    snap_bytes: u32,
    /// Ticks per second.
    resolution: u64,
    offset_s: i64,
    /// Packets that it lost, by its latest statistics.
    lost: u64,
}

/// The state of a pcapng file.
pub(super) struct PcapNg {
    order: ByteOrder,
    /// Of this section.
    interfaces: Vec<Interface>,
    /// Number of interfaces in previous sections.
    before: u32,
    last_ns: i64,
    searching: bool,
    /// Blocks without a packet, by type.
    pub(super) passed: BTreeMap<u32, u64>,
    /// Packets lost by the interfaces of previous sections.
    lost_before: u64,
    /// Packets without a time.
    pub(super) timeless: u64,
    /// Packets whose time is none of a capture.
    pub(super) impossible: u64,
}

impl Default for PcapNg {
    fn default() -> Self {
        Self {
            order: ByteOrder { big: false },
            interfaces: Vec::new(),
            before: 0,
            last_ns: 0,
            searching: false,
            passed: BTreeMap::new(),
            lost_before: 0,
            timeless: 0,
            impossible: 0,
        }
    }
}

impl PcapNg {
    /// Searches for a block from the next byte on.
    pub(super) const fn search_on(&mut self) {
        self.searching = true;
    }

    pub(super) fn step<'a>(&mut self, bytes: &'a [u8], offset: u64) -> ParseStep<'a> {
        if self.searching {
            return self.search(bytes, offset);
        }
        let Some(&head) = bytes.first_chunk::<12>() else { return ParseStep::Need(12) };
        if head.starts_with(&SECTION_MAGIC) {
            self.order = match head.get(8..) {
                Some([0x1a, 0x2b, 0x3c, 0x4d]) => ByteOrder { big: true },
                Some([0x4d, 0x3c, 0x2b, 0x1a]) => ByteOrder { big: false },
                _ => return self.damage(offset, "section header: byte order magic"),
            };
        }
        let (kind, length) = (self.order.u32(&head, 0), self.order.u32(&head, 4));
        let (Some(kind), Some(length)) = (kind, length) else { return ParseStep::Need(12) };
        if !is_length(length) {
            return self.damage(offset, "block header: total length");
        }
        let end = length as usize;
        let Some(block) = bytes.get(..end) else { return ParseStep::Need(end) };
        if self.order.u32(block, end - 4) != Some(length) {
            return self.damage(offset, "block trailer: total length differs from the header's");
        }
        let body = block.get(8..end - 4).unwrap_or_default();
        self.block(kind, body, offset, end)
    }

    fn block<'a>(&mut self, kind: u32, body: &'a [u8], offset: u64, end: usize) -> ParseStep<'a> {
        let read = match kind {
            SECTION => {
                self.before += u32::try_from(self.interfaces.len()).unwrap_or(0);
                self.lost_before = self.lost();
                self.interfaces.clear();
                return ParseStep::Skip(end);
            }
            INTERFACE => match self.interface(body) {
                Ok(interface) => {
                    self.interfaces.push(interface);
                    return ParseStep::Skip(end);
                }
                Err(field) => Err(format!("interface description block: {field}")),
            },
            ENHANCED_PACKET | OBSOLETE_PACKET => {
                self.packet(kind, body, offset).ok_or_else(|| unread("packet block"))
            }
            SIMPLE_PACKET => self.simple(body, offset).ok_or_else(|| unread("simple packet block")),
            other => {
                if other == STATISTICS {
                    self.statistics(body);
                }
                *self.passed.entry(other).or_default() += 1;
                return ParseStep::Skip(end);
            }
        };
        match read {
            Ok(frame) => ParseStep::Frame(frame, end),
            Err(what) => ParseStep::Damage(Problem::at(offset, Severity::Damage, what), end),
        }
    }

    fn interface(&self, body: &[u8]) -> Result<Interface, String> {
        let fixed = self.order.u16(body, 0).zip(self.order.u32(body, 4));
        let (link, snap_bytes) = fixed.ok_or("too short")?;
        let link = u32::from(link);
        let mut interface =
            Interface { link, snap_bytes, resolution: 1_000_000, offset_s: 0, lost: 0 };
        for (code, value) in self.options(body.get(8..).unwrap_or_default()) {
            match (code, value) {
                // if_tsresol: a power of ten, or of two with the top bit.
                (9, &[power, ..]) => {
                    let none = || format!("if_tsresol: {power} is no resolution of 64 bits");
                    interface.resolution = resolution(power).ok_or_else(none)?;
                }
                (14, offset) => {
                    let offset_s = self.order.u64(offset, 0).ok_or("if_tsoffset: too short")?;
                    interface.offset_s = offset_s.cast_signed();
                }
                _ => {}
            }
        }
        Ok(interface)
    }

    /// Options by code, up to their end.
    fn options<'a>(&self, bytes: &'a [u8]) -> impl Iterator<Item = (u16, &'a [u8])> + use<'a> {
        let (order, mut rest) = (self.order, bytes);
        std::iter::from_fn(move || {
            let code = order.u16(rest, 0).filter(|code| *code != 0)?;
            let length = usize::from(order.u16(rest, 2)?);
            let value = rest.get(4..4 + length).unwrap_or_default();
            rest = rest.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
            Some((code, value))
        })
    }

    /// Packets that the capture says it lost.
    pub(super) fn lost(&self) -> u64 {
        self.interfaces.iter().map(|one| one.lost).fold(self.lost_before, u64::saturating_add)
    }

    /// The packets that an interface lost so far: `isb_ifdrop` and `isb_osdrop`.
    fn statistics(&mut self, body: &[u8]) {
        let Some(id) = self.order.u32(body, 0) else { return };
        let drops = self.options(body.get(12..).unwrap_or_default());
        let drops = drops.filter(|(code, _)| matches!(code, 5 | 7));
        // All ones: unknown.
        let counts = drops.filter_map(|(_, value)| self.order.u64(value, 0));
        let lost = counts.filter(|n| *n != u64::MAX).fold(0, u64::saturating_add);
        if let Some(interface) = self.interfaces.get_mut(id as usize) {
            interface.lost = lost;
        }
    }

    fn packet<'a>(&mut self, kind: u32, body: &'a [u8], offset: u64) -> Option<Frame<'a>> {
        let order = self.order;
        let id = match kind {
            ENHANCED_PACKET => order.u32(body, 0)?,
            _ => u32::from(order.u16(body, 0)?),
        };
        let interface = *self.interfaces.get(id as usize)?;
        let ticks = u64::from(order.u32(body, 4)?) << 32 | u64::from(order.u32(body, 8)?);
        let captured = order.u32(body, 12)? as usize;
        let wire_bytes = order.u32(body, 16)?.max(u32::try_from(captured).ok()?);
        let data = body.get(20..20 + captured)?;
        let stamp_ns = interface.time_ns(ticks);
        let at_ns = stamp_ns.clamp(0, LATEST_NS);
        self.impossible += u64::from(at_ns != stamp_ns);
        self.last_ns = at_ns;
        let interface_id = self.before.saturating_add(id);
        Some(Frame {
            offset,
            at_ns,
            interface: interface_id,
            link: interface.link,
            wire_bytes,
            data,
        })
    }

    /// A simple packet has no time: the previous one's is used.
    fn simple<'a>(&mut self, body: &'a [u8], offset: u64) -> Option<Frame<'a>> {
        let interface = self.interfaces.first()?;
        let wire_bytes = self.order.u32(body, 0)?;
        let snap = if interface.snap_bytes == 0 { u32::MAX } else { interface.snap_bytes };
        let rest = body.get(4..)?;
        let data = rest.get(..wire_bytes.min(snap) as usize).unwrap_or(rest);
        let (at_ns, link) = (self.last_ns, interface.link);
        self.timeless += 1;
        Some(Frame { offset, at_ns, interface: self.before, link, wire_bytes, data })
    }

    fn damage<'a>(&mut self, offset: u64, field: &str) -> ParseStep<'a> {
        self.searching = true;
        let what = format!("{field} makes no sense");
        ParseStep::Damage(Problem::at(offset, Severity::Damage, what), 1)
    }

    /// Searches for a block with the same length at both ends.
    fn search<'a>(&mut self, bytes: &'a [u8], offset: u64) -> ParseStep<'a> {
        if bytes.len() < FRAMING_BYTES {
            return ParseStep::Need(FRAMING_BYTES);
        }
        let problem = || Problem::at(offset, Severity::Damage, "no block".into());
        if self.is_block_kind(bytes) {
            let length = self.order.u32(bytes, 4).filter(|length| is_length(*length));
            if let Some(length) = length {
                let end = length as usize;
                if bytes.len() < end {
                    return ParseStep::Need(end);
                }
                if self.order.u32(bytes, end - 4) == Some(length) {
                    self.searching = false;
                    return self.step(bytes, offset);
                }
            }
        }
        ParseStep::Damage(problem(), 1)
    }

    fn is_block_kind(&self, bytes: &[u8]) -> bool {
        bytes.starts_with(&SECTION_MAGIC)
            || self.order.u32(bytes, 0).is_some_and(|kind| (1..=0x0b).contains(&kind))
    }
}

/// Times are from 1970 to 2116, so that the difference of any two fits.
const LATEST_NS: i64 = 1 << 62;

fn is_length(length: u32) -> bool {
    length as usize >= FRAMING_BYTES && length.is_multiple_of(4) && length <= MAX_BLOCK_BYTES
}

fn unread(block: &str) -> String {
    format!("{block}: too short, or of an interface that is not described")
}

fn resolution(power: u8) -> Option<u64> {
    let exponent = u32::from(power & 0x7f);
    if power & 0x80 == 0 { 10_u64.checked_pow(exponent) } else { 1_u64.checked_shl(exponent) }
}

impl Interface {
    fn time_ns(self, ticks: u64) -> i64 {
        let scaled = u128::from(ticks) * 1_000_000_000 / u128::from(self.resolution.max(1));
        let ns = i64::try_from(scaled).unwrap_or(i64::MAX);
        ns.saturating_add(self.offset_s.saturating_mul(1_000_000_000))
    }
}
