//! Packets as rows, written by one part of a study and read by the next.
//!
//! Fields that are needed without reading a packet have a column: its number, its time,
//! the capture's clock. Everything else is one value of bytes, `headers`: 75 bytes for a
//! usual TCP segment, where a column for each field took 112:
//!
//! | bytes | what |
//! |---|---|
//! | 4, 4, 4 | `bits` (what is set or there), bytes of IP, bytes of payload |
//! | 2, 2, 2, 1 | ports of source and destination, IP identification, protocol |
//! | 4, 4 or 16, 16 | addresses of source and destination: IPv4 where both are |
//! | 4, 4, 2, 2 | TCP: sequence and acknowledgement number, window, checksum |
//! | 2, 1, 8, 8 each | where there: MSS, window scale, timestamps, SACK blocks |
//! | the rest | payload, as far as it was captured |
//!
//! Little endian. Writer and reader must have the same version (0025).

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use airmile_model::packet::{Address, Ecn, Packet, SeqNum, TcpFlags, TcpHeader, Transport};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array, BinaryArray, Int64Array, RecordBatch, UInt64Array};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use airmile_io::error::{Error, Result};

/// Rows read at a time (chosen here: half a MB of them).
const BATCH_ROWS: usize = 8 * 1024;
/// Maximum bytes of headers and payload of a row group, apart from its last packet
/// (chosen here).
const GROUP_BYTES: usize = 16 << 20;

/// Bits of a record: flags, and which fields are present.
mod bit {
    pub const TCP: u32 = 1;
    pub const IP_ID: u32 = 1 << 1;
    pub const FRAGMENTED: u32 = 1 << 2;
    pub const TUNNELLED: u32 = 1 << 3;
    pub const MSS: u32 = 1 << 4;
    pub const WINDOW_SCALE: u32 = 1 << 5;
    pub const SACK_PERMITTED: u32 = 1 << 6;
    pub const TIMESTAMPS: u32 = 1 << 7;
    pub const OPTIONS_CUT: u32 = 1 << 8;
    /// Both addresses are IPv4.
    pub const V4: u32 = 1 << 9;
    /// The number of SACK blocks, 0 to 4.
    pub const SACK_AT: u32 = 10;
    pub const SACK_MASK: u32 = 7;
    /// Position of the control bits.
    pub const FLAGS_AT: u32 = 16;
    /// Position of the ECN field.
    pub const ECN_AT: u32 = 24;
    pub const AE: u32 = 1 << 26;
}

/// The columns of a record: a packet's headers as read.
#[must_use]
pub fn record_schema() -> SchemaRef {
    use DataType::{Binary, Int64, UInt64};
    let columns =
        [("packet", UInt64), ("time_ns", Int64), ("clock_ns", Int64), ("headers", Binary)];
    let fields = columns.map(|(name, kind)| Field::new(name, kind, false));
    Arc::new(Schema::new(fields.to_vec()))
}

/// Rows of one bucket that wait to be written.
#[derive(Default)]
pub(super) struct BucketRows {
    packet: Vec<u64>,
    time_ns: Vec<i64>,
    clock_ns: Vec<i64>,
    /// Concatenated.
    headers: Vec<u8>,
    /// The end of each in `headers`.
    ends: Vec<i32>,
}

impl BucketRows {
    pub(super) const fn len(&self) -> usize {
        self.packet.len()
    }

    /// Whether they fill a row group of `most_rows`.
    pub(super) const fn is_full(&self, most_rows: usize) -> bool {
        self.packet.len() >= most_rows || self.headers.len() >= GROUP_BYTES
    }

    /// Adds a packet: the `number`-th, when the capture's clock was at `clock_ns`.
    pub(super) fn push(&mut self, packet: &Packet<'_>, number: u64, clock_ns: i64) {
        self.packet.push(number);
        self.time_ns.push(packet.at_ns);
        self.clock_ns.push(clock_ns);
        write_headers(packet, &mut self.headers);
        // Some MB: see GROUP_BYTES.
        self.ends.push(self.headers.len() as i32);
    }

    /// Takes the rows pushed since the last call.
    pub(super) fn take(&mut self) -> std::result::Result<RecordBatch, ArrowError> {
        fn all<T>(values: &mut Vec<T>) -> Vec<T> {
            let room = Vec::with_capacity(values.len());
            std::mem::replace(values, room)
        }
        let ends = [0].into_iter().chain(self.ends.drain(..)).collect();
        let headers = Buffer::from_vec(all(&mut self.headers));
        let headers = BinaryArray::try_new(OffsetBuffer::new(ends), headers, None)?;
        RecordBatch::try_new(
            record_schema(),
            vec![
                Arc::new(UInt64Array::from(all(&mut self.packet))),
                Arc::new(Int64Array::from(all(&mut self.time_ns))),
                Arc::new(Int64Array::from(all(&mut self.clock_ns))),
                Arc::new(headers),
            ],
        )
    }
}

/// Two numbers as one, the first in front: fewer writes.
const fn pair(first: u32, second: u32) -> [u8; 8] {
    (first as u64 | (second as u64) << 32).to_le_bytes()
}

const fn ports(source: u16, destination: u16) -> u32 {
    source as u32 | (destination as u32) << 16
}

fn write_headers(packet: &Packet<'_>, out: &mut Vec<u8>) {
    let none = TcpHeader::default();
    let tcp = packet.tcp();
    let header = tcp.unwrap_or(&none);
    let blocks = header.sack.as_slice();
    let v4 = packet.src.is_v4() && packet.dst.is_v4();
    let has = |there: bool, bit: u32| if there { bit } else { 0 };
    let bits = has(tcp.is_some(), bit::TCP)
        | has(packet.ip_id.is_some(), bit::IP_ID)
        | has(packet.fragmented, bit::FRAGMENTED)
        | has(packet.tunnelled, bit::TUNNELLED)
        | has(header.mss_bytes.is_some(), bit::MSS)
        | has(header.window_scale.is_some(), bit::WINDOW_SCALE)
        | has(header.sack_permitted, bit::SACK_PERMITTED)
        | has(header.timestamps.is_some(), bit::TIMESTAMPS)
        | has(header.options_cut, bit::OPTIONS_CUT)
        | has(v4, bit::V4)
        | (blocks.len() as u32) << bit::SACK_AT
        | has(header.ae, bit::AE)
        | u32::from(header.flags.0) << bit::FLAGS_AT
        | (packet.ecn as u32) << bit::ECN_AT;
    out.extend_from_slice(&pair(bits, packet.ip_bytes));
    out.extend_from_slice(&pair(packet.payload_bytes, ports(packet.src_port, packet.dst_port)));
    let [low, high] = packet.ip_id.unwrap_or(0).to_le_bytes();
    out.extend_from_slice(&[low, high, packet.protocol]);
    let [[src_high, src_low], [dst_high, dst_low]] = [packet.src.words(), packet.dst.words()];
    if v4 {
        out.extend_from_slice(&pair(src_low as u32, dst_low as u32));
    } else {
        let words = [src_high, src_low, dst_high, dst_low];
        words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
    }
    if tcp.is_some() {
        out.extend_from_slice(&pair(header.seq.0, header.ack.0));
        out.extend_from_slice(&ports(header.window, header.checksum).to_le_bytes());
        if let Some(mss_bytes) = header.mss_bytes {
            out.extend_from_slice(&mss_bytes.to_le_bytes());
        }
        out.extend(header.window_scale);
        if let Some((value, echo)) = header.timestamps {
            out.extend_from_slice(&pair(value, echo));
        }
        blocks.iter().for_each(|(left, right)| out.extend_from_slice(&pair(left.0, right.0)));
    }
    out.extend_from_slice(packet.payload);
}

/// The rest of a record's bytes.
struct Left<'a>(&'a [u8]);

impl Left<'_> {
    const fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let Some((first, rest)) = self.0.split_first_chunk() else { return None };
        self.0 = rest;
        Some(*first)
    }

    fn pair(&mut self) -> Option<(u32, u32)> {
        let both = u64::from_le_bytes(self.take()?);
        Some((both as u32, (both >> 32) as u32))
    }

    fn address(&mut self) -> Option<Address> {
        let [high, low] = [self.take()?, self.take()?].map(u64::from_le_bytes);
        Some(Address::from_words([high, low]))
    }

    fn tcp(&mut self, bits: u32) -> Option<TcpHeader> {
        let has = |bit: u32| bits & bit != 0;
        let (seq, ack) = self.pair()?;
        let [w0, w1, c0, c1] = self.take()?;
        let mut header = TcpHeader {
            seq: SeqNum(seq),
            ack: SeqNum(ack),
            flags: TcpFlags((bits >> bit::FLAGS_AT) as u8),
            ae: has(bit::AE),
            window: u16::from_le_bytes([w0, w1]),
            checksum: u16::from_le_bytes([c0, c1]),
            sack_permitted: has(bit::SACK_PERMITTED),
            options_cut: has(bit::OPTIONS_CUT),
            ..TcpHeader::default()
        };
        if has(bit::MSS) {
            header.mss_bytes = Some(u16::from_le_bytes(self.take()?));
        }
        if has(bit::WINDOW_SCALE) {
            let [scale] = self.take()?;
            header.window_scale = Some(scale);
        }
        if has(bit::TIMESTAMPS) {
            header.timestamps = Some(self.pair()?);
        }
        for _ in 0..bits >> bit::SACK_AT & bit::SACK_MASK {
            let (left, right) = self.pair()?;
            header.sack.push(SeqNum(left), SeqNum(right));
        }
        Some(header)
    }
}

/// `None`: the bytes are truncated.
fn read_headers(at_ns: i64, bytes: &[u8]) -> Option<Packet<'_>> {
    let mut left = Left(bytes);
    let (bits, ip_bytes) = left.pair()?;
    let (payload_bytes, ports) = left.pair()?;
    let [low, high, protocol] = left.take()?;
    let has = |bit: u32| bits & bit != 0;
    let (src, dst) = if has(bit::V4) {
        let (src, dst) = left.pair()?;
        (Address::v4(src.to_be_bytes()), Address::v4(dst.to_be_bytes()))
    } else {
        (left.address()?, left.address()?)
    };
    let transport = if has(bit::TCP) { Transport::Tcp(left.tcp(bits)?) } else { Transport::Udp };
    Some(Packet {
        at_ns,
        src,
        dst,
        src_port: ports as u16,
        dst_port: (ports >> 16) as u16,
        protocol,
        transport,
        ecn: Ecn::of((bits >> bit::ECN_AT) as u8),
        ip_id: has(bit::IP_ID).then(|| u16::from_le_bytes([low, high])),
        ip_bytes,
        payload_bytes,
        payload: left.0,
        fragmented: has(bit::FRAGMENTED),
        tunnelled: has(bit::TUNNELLED),
        interface: 0,
    })
}

/// A packet read from a record.
pub(super) struct Recorded<'a> {
    pub(super) number: u64,
    pub(super) clock_ns: i64,
    pub(super) packet: Packet<'a>,
}

/// The columns of a batch of records.
pub(super) struct Columns<'a> {
    packet: &'a UInt64Array,
    time_ns: &'a Int64Array,
    clock_ns: &'a Int64Array,
    headers: &'a BinaryArray,
}

impl<'a> Columns<'a> {
    /// # Errors
    /// These are no records.
    pub(super) fn of(batch: &'a RecordBatch) -> Result<Self> {
        let column = |name: &str| batch.column_by_name(name).filter(|c| c.null_count() == 0);
        let i64s = |name: &str| column(name)?.as_primitive_opt::<Int64Type>();
        let columns = || {
            Some(Self {
                packet: column("packet")?.as_primitive_opt::<UInt64Type>()?,
                time_ns: i64s("time_ns")?,
                clock_ns: i64s("clock_ns")?,
                headers: column("headers")?.as_binary_opt::<i32>()?,
            })
        };
        let what = "these are no records of packets: columns are missing or of another type";
        columns().ok_or_else(|| Error::Arrow { table: "records", what: what.into() })
    }

    /// The packet of a row of the batch.
    ///
    /// # Errors
    ///
    /// Its bytes are truncated.
    pub(super) fn packet(&self, row: usize) -> Result<Recorded<'a>> {
        let number = self.packet.value(row);
        let (time_ns, clock_ns) = (self.time_ns.value(row), self.clock_ns.value(row));
        match read_headers(time_ns, self.headers.value(row)) {
            Some(packet) => Ok(Recorded { number, clock_ns, packet }),
            None => Err(Error::Arrow {
                table: "records",
                what: format!("the headers of packet {number} end in the middle"),
            }),
        }
    }
}

/// Batches of records, in the order of the capture.
pub type RecordBatches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// Row groups of a file of records. The file is opened on the first request, and closed
/// after the last: a bucket has some in every file of a capture.
#[must_use]
pub fn records_of(path: &Path, groups: Vec<usize>) -> RecordBatches {
    let mut unread = Some((path.to_owned(), groups));
    let path = path.to_owned();
    let mut reader = None;
    Box::new(std::iter::from_fn(move || {
        if let Some((path, groups)) = unread.take() {
            match open(&path, groups) {
                Ok(opened) => reader = Some(opened),
                Err(error) => return Some(Err(error)),
            }
        }
        let batch = reader.as_mut()?.next();
        if batch.is_none() {
            reader = None;
        }
        batch.map(|batch| batch.map_err(|e| refused(&path, e.to_string())))
    }))
}

fn refused(path: &Path, what: String) -> Error {
    Error::Parquet { path: path.to_owned(), what }
}

fn open(path: &Path, groups: Vec<usize>) -> Result<ParquetRecordBatchReader> {
    let file = File::open(path).map_err(|e| Error::read(path, e))?;
    let builder =
        ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| refused(path, e.to_string()))?;
    let most = builder.metadata().num_row_groups();
    if groups.iter().any(|group| *group >= most) {
        let what = format!("it has {most} row groups, and one beyond is asked for");
        return Err(refused(path, what));
    }
    let reader = builder.with_row_groups(groups).with_batch_size(BATCH_ROWS).build();
    reader.map_err(|e| refused(path, e.to_string()))
}

#[cfg(test)]
mod tests {
    use airmile_model::packet::SackBlocks;
    use proptest::prelude::*;

    use super::*;

    fn header() -> impl Strategy<Value = TcpHeader> {
        let numbers = (any::<u32>(), any::<u32>(), any::<u8>(), any::<u16>(), any::<u16>());
        let options = (
            any::<Option<u16>>(),
            any::<Option<u8>>(),
            any::<bool>(),
            any::<Option<(u32, u32)>>(),
            any::<(bool, bool)>(),
            prop::collection::vec(any::<(u32, u32)>(), 0..5),
        );
        (numbers, options).prop_map(|((seq, ack, flags, window, checksum), options)| {
            let (mss_bytes, window_scale, sack_permitted, timestamps, (options_cut, ae), edges) =
                options;
            let mut sack = SackBlocks::default();
            edges.iter().for_each(|(left, right)| sack.push(SeqNum(*left), SeqNum(*right)));
            TcpHeader {
                seq: SeqNum(seq),
                ack: SeqNum(ack),
                flags: TcpFlags(flags),
                ae,
                window,
                checksum,
                mss_bytes,
                window_scale,
                sack_permitted,
                timestamps,
                sack,
                options_cut,
            }
        })
    }

    fn address() -> impl Strategy<Value = Address> {
        let v4 = any::<[u8; 4]>().prop_map(Address::v4);
        prop_oneof![v4, any::<[u8; 16]>().prop_map(Address::v6)]
    }

    proptest! {
        #[test]
        fn a_packet_comes_back(
            tcp in prop::option::of(header()),
            ends in (address(), address(), any::<(u16, u16)>()),
            sizes in any::<(Option<u16>, u32, u32, bool, bool, u8)>(),
            times in any::<(u64, i64, i64)>(),
            payload in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let (ip_id, ip_bytes, payload_bytes, fragmented, tunnelled, traffic_class) = sizes;
            let packet = Packet {
                at_ns: times.1,
                src: ends.0,
                dst: ends.1,
                src_port: ends.2.0,
                dst_port: ends.2.1,
                protocol: if tcp.is_some() { 6 } else { 17 },
                transport: tcp.map_or(Transport::Udp, Transport::Tcp),
                ecn: Ecn::of(traffic_class),
                ip_id,
                ip_bytes,
                payload_bytes,
                payload: &payload,
                fragmented,
                tunnelled,
                interface: 0,
            };
            let mut rows = BucketRows::default();
            for _ in 0..2 {
                rows.push(&packet, times.0, times.2);
                rows.push(&packet, times.0, times.2);
                prop_assert_eq!(rows.len(), 2);
                let batch = rows.take().unwrap();
                prop_assert_eq!(rows.len(), 0);
                let columns = Columns::of(&batch).unwrap();
                for row in [0, 1] {
                    let back = columns.packet(row).unwrap();
                    prop_assert_eq!((back.number, back.clock_ns), (times.0, times.2));
                    prop_assert_eq!(back.packet, packet);
                }
            }
            let mut whole = Vec::new();
            write_headers(&packet, &mut whole);
            let headers = whole.len() - payload.len();
            for n in 0..headers {
                prop_assert_eq!(read_headers(times.1, &whole[..n]), None);
            }
        }
    }
}
