//! The pcap container (draft-ietf-opsawg-pcap).

use airmile_model::{Problem, Severity};

use super::capture::{ByteOrder, Captured, Frame, MAX_RECORD_BYTES, ParseStep};

const RECORD_HEADER_BYTES: usize = 16;

/// Maximum time between a record and the previous one for a header to be plausible after
/// damage: a day, chosen here.
const BELIEVABLE_STEP_S: u32 = 86_400;

/// Number of consecutive records that confirm the first of them (chosen here: each has
/// four fields that chance would have to match).
const VOUCHING_RECORDS: usize = 32;

/// The offset in `bytes`, from the middle of a pcap file with this header, at which a
/// record begins: one followed by that many records, each starting at the end of the
/// previous one. `last`: the file ends with `bytes`, so fewer suffice. `None`: this is no
/// pcap, or has no such record.
#[must_use]
pub fn pcap_boundary(header: &[u8; 24], bytes: &[u8], last: bool) -> Option<usize> {
    let magic = Magic::of(*header.first_chunk::<4>()?)?;
    (0..bytes.len()).find(|&at| {
        let mut pcap = Pcap::new(magic, header);
        let mut at = at;
        for _ in 0..VOUCHING_RECORDS {
            let rest = bytes.get(at..).unwrap_or_default();
            if rest.is_empty() {
                return last;
            }
            let Some(found) = pcap.header(rest).filter(|found| pcap.is_likely(*found)) else {
                return false;
            };
            pcap.last_s = Some(found.seconds);
            at += RECORD_HEADER_BYTES + magic.extra + found.captured as usize;
        }
        at <= bytes.len()
    })
}

/// Byte order and resolution, by the first four bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Magic {
    pub(super) order: ByteOrder,
    pub(super) nanoseconds: bool,
    /// The patched format of old Linux kernels has eight more bytes a record.
    extra: usize,
}

impl Magic {
    pub(super) const fn of(bytes: [u8; 4]) -> Option<Self> {
        let (big, nanoseconds, extra) = match bytes {
            [0xa1, 0xb2, 0xc3, 0xd4] => (true, false, 0),
            [0xd4, 0xc3, 0xb2, 0xa1] => (false, false, 0),
            [0xa1, 0xb2, 0x3c, 0x4d] => (true, true, 0),
            [0x4d, 0x3c, 0xb2, 0xa1] => (false, true, 0),
            [0xa1, 0xb2, 0xcd, 0x34] => (true, false, 8),
            [0x34, 0xcd, 0xb2, 0xa1] => (false, false, 8),
            _ => return None,
        };
        Some(Self { order: ByteOrder { big }, nanoseconds, extra })
    }
}

/// The state of a pcap file.
pub(super) struct Pcap {
    magic: Magic,
    link: u32,
    /// Snap length of the header; 0 if it has none.
    snap_bytes: u32,
    last_s: Option<u32>,
    searching: bool,
}

#[derive(Clone, Copy)]
struct Header {
    seconds: u32,
    fraction: u32,
    captured: u32,
    wire: u32,
}

impl Pcap {
    pub(super) fn new(magic: Magic, header: &[u8; 24]) -> Self {
        let snap_bytes = magic.order.u32(header, 16).unwrap_or(0);
        // The upper bits hold the length of a frame check sequence.
        let link = magic.order.u32(header, 20).unwrap_or(0) & 0x0fff_ffff;
        Self { magic, link, snap_bytes, last_s: None, searching: false }
    }

    #[inline]
    fn header(&self, bytes: &[u8]) -> Option<Header> {
        let order = self.magic.order;
        let header = bytes.first_chunk::<RECORD_HEADER_BYTES>()?;
        Some(Header {
            seconds: order.u32(header, 0)?,
            fraction: order.u32(header, 4)?,
            captured: order.u32(header, 8)?,
            wire: order.u32(header, 12)?,
        })
    }

    /// Why a record header is implausible, if it is.
    #[inline]
    const fn doubt(&self, header: Header) -> Option<&'static str> {
        let most = if self.magic.nanoseconds { 1_000_000_000 } else { 1_000_000 };
        if header.captured > MAX_RECORD_BYTES {
            return Some("captured length");
        }
        if header.fraction >= most {
            return Some("fraction of a second");
        }
        None
    }

    /// After damage a header must meet stricter criteria.
    fn is_likely(&self, header: Header) -> bool {
        let snap = if self.snap_bytes == 0 { MAX_RECORD_BYTES } else { self.snap_bytes };
        let near = |s: u32| header.seconds.abs_diff(s) <= BELIEVABLE_STEP_S;
        self.doubt(header).is_none()
            && header.captured > 0
            && header.captured <= snap
            && header.wire >= header.captured
            && header.wire <= MAX_RECORD_BYTES
            && self.last_s.is_none_or(near)
    }

    /// Searches for a record from the next byte on.
    pub(super) const fn search_on(&mut self) {
        self.searching = true;
    }

    /// Passes on the whole valid records at the start of `bytes`, in one loop; returns
    /// their length. The rest is for [`step`](Self::step).
    #[inline]
    pub(super) fn records(
        &mut self,
        bytes: &[u8],
        offset: u64,
        damaged: bool,
        sink: &mut impl FnMut(Captured<'_>),
    ) -> usize {
        if self.searching || damaged {
            return 0;
        }
        let head = RECORD_HEADER_BYTES + self.magic.extra;
        let unit = self.unit_ns();
        let mut at = 0;
        while let Some(rest) = bytes.get(at..)
            && let Some(header) = self.header(rest)
            && self.doubt(header).is_none()
            && let Some(data) = rest.get(head..head + header.captured as usize)
        {
            self.last_s = Some(header.seconds);
            let frame = self.frame(header, unit, offset + at as u64, data);
            at += head + data.len();
            sink(Captured::Frame(frame));
        }
        at
    }

    const fn unit_ns(&self) -> i64 {
        if self.magic.nanoseconds { 1 } else { 1_000 }
    }

    #[inline]
    fn frame<'a>(&self, header: Header, unit: i64, offset: u64, data: &'a [u8]) -> Frame<'a> {
        let at_ns = i64::from(header.seconds) * 1_000_000_000 + i64::from(header.fraction) * unit;
        // Some tools write only the captured length.
        let wire_bytes = header.wire.max(header.captured);
        Frame { offset, at_ns, interface: 0, link: self.link, wire_bytes, data }
    }

    pub(super) fn step<'a>(&mut self, bytes: &'a [u8], offset: u64) -> ParseStep<'a> {
        if self.searching {
            return self.search(bytes, offset);
        }
        let head = RECORD_HEADER_BYTES + self.magic.extra;
        let Some(header) = self.header(bytes).filter(|_| bytes.len() >= head) else {
            return ParseStep::Need(head);
        };
        if let Some(field) = self.doubt(header) {
            self.searching = true;
            let what = format!("record header: {field} makes no sense");
            return ParseStep::Damage(Problem::at(offset, Severity::Damage, what), 1);
        }
        let end = head + header.captured as usize;
        let Some(data) = bytes.get(head..end) else { return ParseStep::Need(end) };
        self.last_s = Some(header.seconds);
        ParseStep::Frame(self.frame(header, self.unit_ns(), offset, data), end)
    }

    /// Searches for a record header that is followed by another one.
    fn search<'a>(&mut self, bytes: &'a [u8], offset: u64) -> ParseStep<'a> {
        let Some(header) = self.header(bytes) else { return ParseStep::Need(RECORD_HEADER_BYTES) };
        let problem = || Problem::at(offset, Severity::Damage, "no record".into());
        if !self.is_likely(header) {
            return ParseStep::Damage(problem(), 1);
        }
        let next = RECORD_HEADER_BYTES + self.magic.extra + header.captured as usize;
        let Some(behind) = bytes.get(next..).and_then(|rest| self.header(rest)) else {
            return ParseStep::Need(next + RECORD_HEADER_BYTES);
        };
        if !self.is_likely(behind) || behind.seconds.abs_diff(header.seconds) > BELIEVABLE_STEP_S {
            return ParseStep::Damage(problem(), 1);
        }
        self.searching = false;
        self.step(bytes, offset)
    }
}
