//! The uplink: the phone's buffer from samples or reports, compared with the simulator's
//! count of the same queue.

use std::io::{BufRead, BufReader};
use std::path::Path;

use airmile_decode::table::GrantReader;
use airmile_model::tables::bsr_upper_bound_bytes;
use airmile_model::{BsrReport, BufferStatus, Clock, Direction, Position, Record};
use airmile_radio::uplink::{UplinkOptions, UplinkTracker};
use anyhow::Context;

use crate::run::open;

/// The simulator's sample of ms `t` is taken after subframe `t + 1` was filled
/// (subframes count from 1), so it is the buffer at the start of TTI `t + 2`.
const SAMPLE_TTIS: i64 = 2;

/// Prints the throughput time of an uplink run from samples and from reports, compared with
/// the count of TTIs with a non-empty queue; returns the error of the samples in percent.
pub fn print(folder: &Path) -> anyhow::Result<f64> {
    let queue: Vec<(i64, u32)> = rows(&folder.join("ul_queue.csv.gz"))?
        .iter()
        .filter_map(|row| Some((row.first()?.parse().ok()?, row.get(1)?.parse().ok()?)))
        .collect();
    let reports: Vec<(i64, Vec<u8>)> = rows(&folder.join("ul_bsr.csv.gz"))?
        .iter()
        .filter_map(|row| {
            let indexes = row[1..].iter().map(|field| field.parse().ok()).collect::<Option<_>>()?;
            Some((row.first()?.parse().ok()?, indexes))
        })
        .collect();
    let mut grants = Vec::new();
    let reader = GrantReader::new(open(&folder.join("grants.csv.gz"))?, Clock::Modem)?;
    grants.extend(reader.filter_map(Result::ok).filter(|grant| grant.dir == Direction::Ul));

    // The TTI that empties the queue is LAST_ACTIVE and does not count.
    let filled = |at: &(i64, u32)| at.1 > 0;
    let waiting = queue.iter().filter(|at| filled(at)).count();
    let emptied = queue.windows(2).filter(|w| filled(&w[0]) && !filled(&w[1])).count();
    let truth = (waiting - emptied) as f64;
    let samples = queue.iter().map(|&(tti, new_bytes)| {
        Record::BufferStatus(BufferStatus {
            at: None,
            position: Position::lte(tti + SAMPLE_TTIS),
            lcid: Some(3),
            priority: None,
            new_bytes,
            retx_bytes: 0,
            control_bytes: 0,
        })
    });
    let reported = reports.iter().flat_map(|(tti, indexes)| {
        (0_u8..).zip(indexes).map(|(lcg, &index)| {
            Record::Bsr(BsrReport {
                at: None,
                position: Position::lte(*tti),
                lcg,
                index,
                upper_bound_bytes: bsr_upper_bound_bytes(index),
            })
        })
    });
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    println!("Uplink, {name}: the queue was non-empty for {truth:.0} ms");
    let mut error = f64::NAN;
    let sources: [(&str, Vec<Record>); 2] =
        [("buffer samples", samples.collect()), ("buffer status reports", reported.collect())];
    for (source, mut records) in sources {
        records.extend(grants.iter().cloned().map(Record::Grant));
        let mut tracker = UplinkTracker::new(UplinkOptions::default());
        // Samples and grants are each in order; merged by TTI, samples first.
        records.sort_by_key(|record| match record {
            Record::Grant(grant) => grant.position.tti.0,
            Record::BufferStatus(status) => status.position.tti.0,
            Record::Bsr(bsr) => bsr.position.tti.0,
            _ => 0,
        });
        records.iter().for_each(|record| tracker.push(record));
        let bursts: i64 = tracker.finish().iter().map(|burst| burst.n_tti()).sum();
        let waits = std::iter::from_fn(|| tracker.poll_wait());
        let waits: i64 = waits.map(|wait| wait.end_tti.since(wait.start_tti)).sum();
        let off = 100.0 * ((bursts + waits) as f64 - truth).abs() / truth;
        println!("  by {source:<22} throughput time {bursts} ms + wait {waits} ms: {off:.2} % off");
        if error.is_nan() {
            error = off;
        }
    }
    println!();
    Ok(error)
}

fn rows(path: &Path) -> anyhow::Result<Vec<Vec<String>>> {
    let lines = BufReader::new(open(path)?).lines().skip(1);
    lines
        .map(|line| Ok(line?.split(',').map(str::to_owned).collect()))
        .collect::<anyhow::Result<_>>()
        .with_context(|| path.display().to_string())
}
