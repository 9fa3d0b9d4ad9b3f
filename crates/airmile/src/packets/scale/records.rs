//! Packets as rows, from where one part of a study leaves them to where the next
//! takes them up.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use airmile_model::packet::{Address, Packet, SackBlocks, SeqNum, TcpFlags, TcpHeader, Transport};
use arrow_array::builder::BinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, Int64Array, PrimitiveArray, RecordBatch, UInt8Array, UInt16Array,
    UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::error::{Error, Result};

/// Rows that are read at a time (chosen here: 1 MB of them).
const BATCH_ROWS: usize = 8 * 1024;

/// Bits of the column `bits`: what is set or there.
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
    /// The control bits are from here on.
    pub const FLAGS_AT: u32 = 16;
}

/// The columns of a record: a packet's headers as they were read.
#[must_use]
pub fn record_schema() -> SchemaRef {
    use DataType::{Binary, Int64, UInt8, UInt16, UInt32, UInt64};
    let columns = [
        ("packet", UInt64),
        ("time_ns", Int64),
        ("clock_ns", Int64),
        ("src_high", UInt64),
        ("src_low", UInt64),
        ("dst_high", UInt64),
        ("dst_low", UInt64),
        ("src_port", UInt16),
        ("dst_port", UInt16),
        ("protocol", UInt8),
        ("bits", UInt32),
        ("ip_id", UInt16),
        ("ip_bytes", UInt32),
        ("payload_bytes", UInt32),
        ("seq", UInt32),
        ("ack", UInt32),
        ("window", UInt16),
        ("checksum", UInt16),
        ("mss_bytes", UInt16),
        ("window_scale", UInt8),
        ("ts_val", UInt32),
        ("ts_ecr", UInt32),
        ("sack", Binary),
        ("payload", Binary),
    ];
    let fields = columns.map(|(name, kind)| Field::new(name, kind, false));
    Arc::new(Schema::new(fields.to_vec()))
}

/// Rows of one bucket that wait to be written.
#[derive(Default)]
pub(super) struct Rows {
    packet: Vec<u64>,
    time_ns: Vec<i64>,
    clock_ns: Vec<i64>,
    addresses: [Vec<u64>; 4],
    ports: [Vec<u16>; 2],
    protocol: Vec<u8>,
    bits: Vec<u32>,
    ip_id: Vec<u16>,
    ip_bytes: Vec<u32>,
    payload_bytes: Vec<u32>,
    numbers: [Vec<u32>; 2],
    window: Vec<u16>,
    checksum: Vec<u16>,
    mss_bytes: Vec<u16>,
    window_scale: Vec<u8>,
    timestamps: [Vec<u32>; 2],
    sack: BinaryBuilder,
    payload: BinaryBuilder,
    /// Bytes of payload that wait.
    kept_bytes: usize,
}

impl Rows {
    pub(super) const fn len(&self) -> usize {
        self.packet.len()
    }

    pub(super) const fn kept_bytes(&self) -> usize {
        self.kept_bytes
    }

    /// Adds a packet: the `number`-th, when the capture's clock was at `clock_ns`.
    pub(super) fn push(&mut self, packet: &Packet<'_>, number: u64, clock_ns: i64) {
        let none = TcpHeader::default();
        let tcp = packet.tcp();
        let has = |there: bool, bit: u32| if there { bit } else { 0 };
        let header = tcp.unwrap_or(&none);
        let bits = has(tcp.is_some(), bit::TCP)
            | has(packet.ip_id.is_some(), bit::IP_ID)
            | has(packet.fragmented, bit::FRAGMENTED)
            | has(packet.tunnelled, bit::TUNNELLED)
            | has(header.mss_bytes.is_some(), bit::MSS)
            | has(header.window_scale.is_some(), bit::WINDOW_SCALE)
            | has(header.sack_permitted, bit::SACK_PERMITTED)
            | has(header.timestamps.is_some(), bit::TIMESTAMPS)
            | has(header.options_cut, bit::OPTIONS_CUT)
            | u32::from(header.flags.0) << bit::FLAGS_AT;
        self.packet.push(number);
        self.time_ns.push(packet.at_ns);
        self.clock_ns.push(clock_ns);
        let words = [packet.src.words(), packet.dst.words()];
        for (column, word) in self.addresses.iter_mut().zip(words.as_flattened()) {
            column.push(*word);
        }
        self.ports[0].push(packet.src_port);
        self.ports[1].push(packet.dst_port);
        self.protocol.push(packet.protocol);
        self.bits.push(bits);
        self.ip_id.push(packet.ip_id.unwrap_or(0));
        self.ip_bytes.push(packet.ip_bytes);
        self.payload_bytes.push(packet.payload_bytes);
        self.numbers[0].push(header.seq.0);
        self.numbers[1].push(header.ack.0);
        self.window.push(header.window);
        self.checksum.push(header.checksum);
        self.mss_bytes.push(header.mss_bytes.unwrap_or(0));
        self.window_scale.push(header.window_scale.unwrap_or(0));
        let (value, echo) = header.timestamps.unwrap_or((0, 0));
        self.timestamps[0].push(value);
        self.timestamps[1].push(echo);
        let mut sack = [0; 32];
        let blocks = header.sack.as_slice();
        for (bytes, (left, right)) in sack.chunks_exact_mut(8).zip(blocks) {
            bytes.copy_from_slice(&(u64::from(left.0) << 32 | u64::from(right.0)).to_be_bytes());
        }
        self.sack.append_value(sack.get(..8 * blocks.len()).unwrap_or_default());
        self.payload.append_value(packet.payload);
        self.kept_bytes += packet.payload.len();
    }

    /// What was pushed since the last call.
    pub(super) fn take(&mut self) -> std::result::Result<RecordBatch, ArrowError> {
        fn column<T: arrow_array::types::ArrowPrimitiveType>(
            values: &mut Vec<T::Native>,
        ) -> ArrayRef
        where
            PrimitiveArray<T>: From<Vec<T::Native>>,
        {
            let room = Vec::with_capacity(values.len());
            Arc::new(PrimitiveArray::<T>::from(std::mem::replace(values, room)))
        }
        self.kept_bytes = 0;
        let [src_high, src_low, dst_high, dst_low] = &mut self.addresses;
        let [src_port, dst_port] = &mut self.ports;
        let [seq, ack] = &mut self.numbers;
        let [value, echo] = &mut self.timestamps;
        let columns = vec![
            column::<UInt64Type>(&mut self.packet),
            column::<Int64Type>(&mut self.time_ns),
            column::<Int64Type>(&mut self.clock_ns),
            column::<UInt64Type>(src_high),
            column::<UInt64Type>(src_low),
            column::<UInt64Type>(dst_high),
            column::<UInt64Type>(dst_low),
            column::<UInt16Type>(src_port),
            column::<UInt16Type>(dst_port),
            column::<UInt8Type>(&mut self.protocol),
            column::<UInt32Type>(&mut self.bits),
            column::<UInt16Type>(&mut self.ip_id),
            column::<UInt32Type>(&mut self.ip_bytes),
            column::<UInt32Type>(&mut self.payload_bytes),
            column::<UInt32Type>(seq),
            column::<UInt32Type>(ack),
            column::<UInt16Type>(&mut self.window),
            column::<UInt16Type>(&mut self.checksum),
            column::<UInt16Type>(&mut self.mss_bytes),
            column::<UInt8Type>(&mut self.window_scale),
            column::<UInt32Type>(value),
            column::<UInt32Type>(echo),
            Arc::new(self.sack.finish()),
            Arc::new(self.payload.finish()),
        ];
        RecordBatch::try_new(record_schema(), columns)
    }
}

/// A packet out of a record.
pub(super) struct Recorded<'a> {
    pub(super) number: u64,
    pub(super) clock_ns: i64,
    pub(super) packet: Packet<'a>,
}

/// The columns of a batch of records.
pub(super) struct Columns<'a> {
    packet: &'a UInt64Array,
    times: [&'a Int64Array; 2],
    addresses: [&'a UInt64Array; 4],
    ports: [&'a UInt16Array; 2],
    protocol: &'a UInt8Array,
    bits: &'a UInt32Array,
    ip_id: &'a UInt16Array,
    bytes: [&'a UInt32Array; 2],
    numbers: [&'a UInt32Array; 2],
    window: &'a UInt16Array,
    checksum: &'a UInt16Array,
    mss_bytes: &'a UInt16Array,
    window_scale: &'a UInt8Array,
    timestamps: [&'a UInt32Array; 2],
    sack: &'a BinaryArray,
    payload: &'a BinaryArray,
}

impl<'a> Columns<'a> {
    /// `None`: these are no records.
    pub(super) fn of(batch: &'a RecordBatch) -> Option<Self> {
        let column = |name: &str| batch.column_by_name(name).filter(|c| c.null_count() == 0);
        let u64s = |name: &str| column(name)?.as_primitive_opt::<UInt64Type>();
        let i64s = |name: &str| column(name)?.as_primitive_opt::<Int64Type>();
        let u32s = |name: &str| column(name)?.as_primitive_opt::<UInt32Type>();
        let u16s = |name: &str| column(name)?.as_primitive_opt::<UInt16Type>();
        let u8s = |name: &str| column(name)?.as_primitive_opt::<UInt8Type>();
        let bytes = |name: &str| column(name)?.as_binary_opt::<i32>();
        Some(Self {
            packet: u64s("packet")?,
            times: [i64s("time_ns")?, i64s("clock_ns")?],
            addresses: [u64s("src_high")?, u64s("src_low")?, u64s("dst_high")?, u64s("dst_low")?],
            ports: [u16s("src_port")?, u16s("dst_port")?],
            protocol: u8s("protocol")?,
            bits: u32s("bits")?,
            ip_id: u16s("ip_id")?,
            bytes: [u32s("ip_bytes")?, u32s("payload_bytes")?],
            numbers: [u32s("seq")?, u32s("ack")?],
            window: u16s("window")?,
            checksum: u16s("checksum")?,
            mss_bytes: u16s("mss_bytes")?,
            window_scale: u8s("window_scale")?,
            timestamps: [u32s("ts_val")?, u32s("ts_ecr")?],
            sack: bytes("sack")?,
            payload: bytes("payload")?,
        })
    }

    /// The packet of a row that the batch has.
    pub(super) fn packet(&self, row: usize) -> Recorded<'a> {
        let bits = self.bits.value(row);
        let has = |bit: u32| bits & bit != 0;
        let tcp = || TcpHeader {
            seq: SeqNum(self.numbers[0].value(row)),
            ack: SeqNum(self.numbers[1].value(row)),
            flags: TcpFlags((bits >> bit::FLAGS_AT) as u8),
            window: self.window.value(row),
            checksum: self.checksum.value(row),
            mss_bytes: has(bit::MSS).then(|| self.mss_bytes.value(row)),
            window_scale: has(bit::WINDOW_SCALE).then(|| self.window_scale.value(row)),
            sack_permitted: has(bit::SACK_PERMITTED),
            timestamps: has(bit::TIMESTAMPS)
                .then(|| (self.timestamps[0].value(row), self.timestamps[1].value(row))),
            sack: blocks(self.sack.value(row)),
            options_cut: has(bit::OPTIONS_CUT),
        };
        let [src_high, src_low, dst_high, dst_low] = self.addresses.map(|words| words.value(row));
        let packet = Packet {
            at_ns: self.times[0].value(row),
            src: Address::from_words([src_high, src_low]),
            dst: Address::from_words([dst_high, dst_low]),
            src_port: self.ports[0].value(row),
            dst_port: self.ports[1].value(row),
            protocol: self.protocol.value(row),
            transport: if has(bit::TCP) { Transport::Tcp(tcp()) } else { Transport::Udp },
            ip_id: has(bit::IP_ID).then(|| self.ip_id.value(row)),
            ip_bytes: self.bytes[0].value(row),
            payload_bytes: self.bytes[1].value(row),
            payload: self.payload.value(row),
            fragmented: has(bit::FRAGMENTED),
            tunnelled: has(bit::TUNNELLED),
            interface: 0,
        };
        Recorded { number: self.packet.value(row), clock_ns: self.times[1].value(row), packet }
    }
}

fn blocks(bytes: &[u8]) -> SackBlocks {
    let mut blocks = SackBlocks::default();
    for block in bytes.chunks_exact(8).filter_map(|bytes| bytes.first_chunk::<8>()) {
        let edges = u64::from_be_bytes(*block);
        blocks.push(SeqNum((edges >> 32) as u32), SeqNum(edges as u32));
    }
    blocks
}

/// Batches of records, in the order of the capture.
pub type RecordBatches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// Row groups of a file of records.
///
/// # Errors
/// The file cannot be opened or is no Parquet.
pub fn records_of(path: &Path, groups: Vec<usize>) -> Result<RecordBatches> {
    let refused = |what: String| Error::Parquet { path: path.to_owned(), what };
    let file = File::open(path).map_err(|e| Error::read(path, e))?;
    let builder =
        ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| refused(e.to_string()))?;
    let most = builder.metadata().num_row_groups();
    if groups.iter().any(|group| *group >= most) {
        return Err(refused(format!("it has {most} row groups, and one beyond is asked for")));
    }
    let reader = builder.with_row_groups(groups).with_batch_size(BATCH_ROWS).build();
    let reader = reader.map_err(|e| refused(e.to_string()))?;
    let path = path.to_owned();
    Ok(Box::new(reader.map(move |batch| {
        batch.map_err(|e| Error::Parquet { path: path.clone(), what: e.to_string() })
    })))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header() -> impl Strategy<Value = TcpHeader> {
        let numbers = (any::<u32>(), any::<u32>(), any::<u8>(), any::<u16>(), any::<u16>());
        let options = (
            any::<Option<u16>>(),
            any::<Option<u8>>(),
            any::<bool>(),
            any::<Option<(u32, u32)>>(),
            any::<bool>(),
            prop::collection::vec(any::<(u32, u32)>(), 0..5),
        );
        (numbers, options).prop_map(|((seq, ack, flags, window, checksum), options)| {
            let (mss_bytes, window_scale, sack_permitted, timestamps, options_cut, edges) = options;
            let mut sack = SackBlocks::default();
            edges.iter().for_each(|(left, right)| sack.push(SeqNum(*left), SeqNum(*right)));
            TcpHeader {
                seq: SeqNum(seq),
                ack: SeqNum(ack),
                flags: TcpFlags(flags),
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

    proptest! {
        #[test]
        fn a_packet_comes_back(
            tcp in prop::option::of(header()),
            ends in any::<([u64; 2], [u64; 2], u16, u16)>(),
            sizes in any::<(Option<u16>, u32, u32, bool, bool)>(),
            times in any::<(u64, i64, i64)>(),
            payload in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let (ip_id, ip_bytes, payload_bytes, fragmented, tunnelled) = sizes;
            let packet = Packet {
                at_ns: times.1,
                src: Address::from_words(ends.0),
                dst: Address::from_words(ends.1),
                src_port: ends.2,
                dst_port: ends.3,
                protocol: if tcp.is_some() { 6 } else { 17 },
                transport: tcp.map_or(Transport::Udp, Transport::Tcp),
                ip_id,
                ip_bytes,
                payload_bytes,
                payload: &payload,
                fragmented,
                tunnelled,
                interface: 0,
            };
            let mut rows = Rows::default();
            rows.push(&packet, times.0, times.2);
            rows.push(&packet, times.0, times.2);
            prop_assert_eq!((rows.len(), rows.kept_bytes()), (2, 2 * payload.len()));
            let batch = rows.take().unwrap();
            prop_assert_eq!((rows.len(), rows.kept_bytes()), (0, 0));
            let columns = Columns::of(&batch).unwrap();
            for row in [0, 1] {
                let back = columns.packet(row);
                prop_assert_eq!((back.number, back.clock_ns), (times.0, times.2));
                prop_assert_eq!(back.packet, packet);
            }
        }
    }
}
