//! Settles flows whose client only their first packet shows: a SYN from the port of a
//! server, or two peers.

use std::collections::HashSet;
use std::path::Path;

use airmile_wire::tcp::{FlowEnds, PacketRouter, bucket_of};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::ScaleOptions;
use super::bucket::BucketPart;
use super::deal::{Group, refused, write_group};
use super::records::{BucketRows, Columns, record_schema};
use airmile_io::Replacement;
use airmile_io::error::Result;

/// Maximum rows of a row group (chosen here).
const GROUP_ROWS: usize = 1 << 14;

/// Partitions the records between `strays` ends again, by each flow's client in the whole
/// capture. `parts` are those of all buckets that received strays, each a part of the
/// capture with its buckets; the records go to `out`. Returns its row groups.
///
/// # Errors
/// Records cannot be read, or the file cannot be written.
pub fn settle(
    parts: Vec<Vec<BucketPart>>,
    strays: &HashSet<FlowEnds>,
    options: &ScaleOptions,
    out: &Path,
) -> Result<Vec<Group>> {
    let (replacement, file) = Replacement::begin(out)?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).unwrap_or_default()))
        .build();
    let mut writer = ArrowWriter::try_new(file, record_schema(), Some(properties))
        .map_err(|e| refused(out, &e))?;
    let mut buckets: Vec<BucketRows> =
        (0..options.buckets.max(1)).map(|_| BucketRows::default()).collect();
    let mut router = PacketRouter::new(options.study.clone());
    let mut changes = Vec::new();
    let mut groups = Vec::new();
    for part in parts {
        for record in sorted(part, strays)? {
            let packet = Columns::of(&record.batch)?.packet(0)?.packet;
            let (number, clock_ns) = (record.number, record.clock_ns);
            let route = router.place(&packet, number, clock_ns, &mut changes);
            changes.clear();
            let Some(client) = route.and_then(|route| router.client(route)) else { continue };
            let bucket = bucket_of(client, options.buckets);
            let Some(rows) = buckets.get_mut(bucket as usize) else { continue };
            rows.push(&packet, number, clock_ns);
            if rows.is_full(GROUP_ROWS) {
                groups.push(Group { bucket, hour: 0, rows: rows.len() as u64 });
                write_group(&mut writer, rows, out)?;
            }
        }
    }
    for (bucket, rows) in buckets.iter_mut().enumerate().filter(|(_, rows)| rows.len() > 0) {
        groups.push(Group { bucket: bucket as u32, hour: 0, rows: rows.len() as u64 });
        write_group(&mut writer, rows, out)?;
    }
    writer.close().map_err(|e| refused(out, &e))?;
    replacement.done()?;
    Ok(groups)
}

/// One record by itself.
struct Stray {
    number: u64,
    clock_ns: i64,
    batch: arrow_array::RecordBatch,
}

/// The strays of one part of the capture, in its order: buckets hold them separately.
fn sorted(part: Vec<BucketPart>, strays: &HashSet<FlowEnds>) -> Result<Vec<Stray>> {
    let mut found = Vec::new();
    for BucketPart { batches, first_packet, clock_ns } in part {
        for batch in batches {
            let batch = batch?;
            let columns = Columns::of(&batch)?;
            for row in 0..batch.num_rows() {
                let record = columns.packet(row)?;
                if strays.contains(&FlowEnds::from_packet(&record.packet)) {
                    let number = first_packet + record.number;
                    let clock_ns = record.clock_ns.max(clock_ns.unwrap_or(i64::MIN));
                    found.push(Stray { number, clock_ns, batch: batch.slice(row, 1) });
                }
            }
        }
    }
    found.sort_by_key(|stray| stray.number);
    Ok(found)
}
