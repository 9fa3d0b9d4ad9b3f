//! The first pass: turns a part of a capture into records, partitioned by user and hour.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use airmile_capture::packet::{Dissector, FragmentCounts};
use airmile_model::packet::Packet;
use airmile_wire::tcp::{FlowEnds, PacketOwner, Quality, bucket_of};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use serde::{Deserialize, Serialize};

use super::ScaleOptions;
use super::records::{BucketRows, record_schema};
use airmile_io::FileReport;
use airmile_io::capture::{Beginning, Views, read_in_order, read_unsorted};
use airmile_io::error::{Error, Result};
use airmile_io::input::{Input, Progress};
use airmile_io::limits::LimitFilter;
use airmile_io::{Replacement, write_whole};

const HOUR_NS: i64 = 3_600_000_000_000;
/// Of a pcap file.
const HEADER_BYTES: u64 = 24;
/// Maximum number of rows waiting in all buckets together (chosen here: some 40 MB), and
/// of rows in a row group.
const WAITING_ROWS: usize = 1 << 19;
const GROUP_ROWS: usize = 1 << 17;
/// Minimum number of rows of a row group, except the last of an hour.
const LEAST_ROWS: usize = 1 << 12;

/// Where a part of a capture comes from.
pub enum DealSource {
    /// A file, or these bytes of it after the header of 24 bytes.
    File(PathBuf, Option<Range<u64>>),
    /// A stream with a name: the whole capture, or a header and some records.
    Stream(String, Box<dyn Read + Send>),
}

/// One row group: of one bucket and hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// The bucket.
    pub bucket: u32,
    /// Hours since the Unix epoch, by the capture's clock.
    pub hour: i64,
    /// Its rows.
    pub rows: u64,
}

/// The result of the first pass over a part.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DealReport {
    /// The file as read.
    pub file: FileReport,
    /// Its quality, as far as packets alone show it.
    pub quality: Quality,
    /// Time of the first packet, and whether it is a fragment or of fragments.
    pub first: Option<(i64, bool)>,
    /// Time of the last packet.
    pub last_ns: Option<i64>,
    /// The latest time.
    pub clock_ns: Option<i64>,
    /// Fragments, datagrams, incomplete ones, overlapping and left-out fragments, and
    /// bytes of the latter.
    pub fragments: [u64; 6],
    /// The row groups of the file of records, in order.
    pub groups: Vec<Group>,
    /// Number of pairs of ends whose packets disagree on which is the client.
    pub strays: u64,
}

/// Partitions a part of a capture: records to `out`, and next to it `.strays` (ends) and
/// `.syns` (marks of connections that begin), if there are any.
///
/// # Errors
/// The capture cannot be opened or is none, or a file cannot be written.
pub fn deal(source: DealSource, options: &ScaleOptions, out: &Path) -> Result<DealReport> {
    let progress = Progress::default();
    let from = match &source {
        DealSource::File(_, Some(range)) => range.start,
        _ => 0,
    };
    let begin = match &source {
        DealSource::File(path, _) if from <= HEADER_BYTES => Some(Beginning::of(path)?),
        _ => None,
    };
    // Parts are of files in order.
    let is_unsorted = begin.as_ref().is_some_and(Beginning::is_out_of_order);
    let read = match &source {
        DealSource::File(_, None) if is_unsorted => read_in_order,
        _ => read_unsorted,
    };
    let input = open(source, &progress)?;
    let mut dealer = Dealer::create(options, out)?;
    let mut dissector = Dissector::new();
    let mut limits = LimitFilter::default();
    let mut push = |packet: &Packet<'_>| dealer.push(packet);
    let mut file = placed(read(input, &mut limits, &mut dissector, &mut push)?, from);
    begin.iter().for_each(|begin| begin.note_clock(&mut file));
    dissector.finish(&mut |packet| packet.map_or((), |packet| dealer.push(packet)));
    let FragmentCounts { fragments, datagrams, incomplete, overlapping, left_out, left_out_bytes } =
        dissector.counts();
    let fragments = [fragments, datagrams, incomplete, overlapping, left_out, left_out_bytes];
    dealer.finish(file, fragments)
}

/// The bytes read before a later range were the header again: adjusts bytes and offsets
/// to the whole file.
fn placed(mut file: FileReport, from: u64) -> FileReport {
    if from > HEADER_BYTES {
        file.bytes = file.bytes.saturating_sub(HEADER_BYTES);
        let offsets = file.problems.iter_mut().filter_map(|problem| problem.offset.as_mut());
        offsets.for_each(|offset| *offset += from - HEADER_BYTES);
    }
    file
}

fn open(source: DealSource, progress: &Progress) -> Result<Input> {
    match source {
        DealSource::File(path, None) => Input::open(&path, progress),
        DealSource::File(path, Some(range)) => {
            let reader = ranged(&path, &range).map_err(|e| Error::read(&path, e))?;
            Input::from_reader(&path, None, reader, progress).map_err(|e| Error::read(&path, e))
        }
        DealSource::Stream(name, read) => {
            let path = Path::new(&name);
            Input::from_reader(path, None, read, progress).map_err(|e| Error::read(path, e))
        }
    }
}

/// A capture's header, then some of its records.
fn ranged(path: &Path, range: &Range<u64>) -> std::io::Result<impl Read + Send + 'static> {
    use std::io::{Cursor, Seek, SeekFrom};
    let mut file = File::open(path)?;
    let mut header = [0; HEADER_BYTES as usize];
    file.read_exact(&mut header)?;
    let from = range.start.max(HEADER_BYTES);
    file.seek(SeekFrom::Start(from))?;
    Ok(Cursor::new(header).chain(file.take(range.end.saturating_sub(from))))
}

struct Dealer<'a> {
    options: &'a ScaleOptions,
    out: &'a Path,
    replacement: Replacement,
    writer: ArrowWriter<File>,
    buckets: Vec<BucketRows>,
    group_rows: usize,
    hour: i64,
    groups: Vec<Group>,
    quality: Quality,
    first: Option<(i64, bool)>,
    last_ns: Option<i64>,
    clock_ns: i64,
    strays: BTreeSet<FlowEnds>,
    syns: Vec<u8>,
    failed: Option<Error>,
}

impl<'a> Dealer<'a> {
    fn create(options: &'a ScaleOptions, out: &'a Path) -> Result<Self> {
        let (replacement, file) = Replacement::begin(out)?;
        // Read once and then removed: time counts more than size (zstd's lowest level
        // takes as long as everything else here).
        let properties = WriterProperties::builder()
            .set_compression(Compression::UNCOMPRESSED)
            .set_dictionary_enabled(false)
            .set_encoding(Encoding::PLAIN)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_max_row_group_row_count(None)
            .build();
        let writer = ArrowWriter::try_new(file, record_schema(), Some(properties))
            .map_err(|e| refused(out, &e))?;
        let buckets = options.buckets.max(1) as usize;
        Ok(Self {
            options,
            out,
            replacement,
            writer,
            group_rows: (WAITING_ROWS / buckets).clamp(LEAST_ROWS, GROUP_ROWS),
            buckets: (0..buckets).map(|_| BucketRows::default()).collect(),
            hour: i64::MIN,
            groups: Vec::new(),
            quality: Quality::default(),
            first: None,
            last_ns: None,
            clock_ns: i64::MIN,
            strays: BTreeSet::new(),
            syns: Vec::new(),
            failed: None,
        })
    }

    fn push(&mut self, packet: &Packet<'_>) {
        if let Some(last_ns) = self.last_ns.filter(|last| packet.at_ns < *last)
            && !packet.fragmented
        {
            self.quality.stepped_back(last_ns - packet.at_ns);
        }
        self.first.get_or_insert((packet.at_ns, packet.fragmented));
        self.last_ns = Some(packet.at_ns);
        self.clock_ns = self.clock_ns.max(packet.at_ns);
        let number = self.quality.packets;
        self.quality.packet(packet);
        if let Some(mark) = Views::mark(packet) {
            self.syns.extend(mark.to_le_bytes());
        }
        let Some(placing) = PacketOwner::from_packet(packet, &self.options.study.client_networks)
        else {
            return;
        };
        if !placing.sure {
            self.strays.insert(FlowEnds::from_packet(packet));
        }
        let hour = self.clock_ns.div_euclid(HOUR_NS);
        if hour != self.hour {
            self.flush_all();
            self.hour = hour;
        }
        let bucket = bucket_of(placing.client, self.options.buckets);
        let Some(rows) = self.buckets.get_mut(bucket as usize) else { return };
        rows.push(packet, number, self.clock_ns);
        if rows.is_full(self.group_rows) {
            self.flush(bucket as usize);
        }
    }

    fn flush_all(&mut self) {
        (0..self.buckets.len()).for_each(|bucket| self.flush(bucket));
    }

    fn flush(&mut self, bucket: usize) {
        let Some(rows) = self.buckets.get_mut(bucket).filter(|rows| rows.len() > 0) else { return };
        if self.failed.is_some() {
            return;
        }
        let n = rows.len() as u64;
        self.failed = write_group(&mut self.writer, rows, self.out).err();
        self.groups.push(Group { bucket: bucket as u32, hour: self.hour, rows: n });
    }

    fn finish(mut self, file: FileReport, fragments: [u64; 6]) -> Result<DealReport> {
        self.flush_all();
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.writer.close().map_err(|e| refused(self.out, &e))?;
        self.replacement.done()?;
        let strays: Vec<u8> = self.strays.iter().flat_map(|ends| *ends.bytes()).collect();
        for (extension, bytes) in [("strays", &strays), ("syns", &self.syns)] {
            if !bytes.is_empty() {
                let path = self.out.with_extension(extension);
                write_whole(&path, bytes)?;
            }
        }
        Ok(DealReport {
            file,
            quality: self.quality,
            first: self.first,
            last_ns: self.last_ns,
            clock_ns: self.first.map(|_| self.clock_ns),
            fragments,
            groups: self.groups,
            strays: self.strays.len() as u64,
        })
    }
}

/// Writes rows as a row group of their own.
pub(super) fn write_group(
    writer: &mut ArrowWriter<File>,
    rows: &mut BucketRows,
    path: &Path,
) -> Result<()> {
    let batch = rows.take().map_err(|e| refused(path, &e))?;
    writer.write(&batch).map_err(|e| refused(path, &e))?;
    writer.flush().map_err(|e| refused(path, &e))
}

pub(super) fn refused(path: &Path, what: &dyn std::fmt::Display) -> Error {
    Error::Parquet { path: path.to_owned(), what: what.to_string() }
}
