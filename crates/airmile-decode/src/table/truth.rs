//! Ground truth of a lab or a simulator.

use std::io::{Read, Write};

use airmile_model::tti::TtiIndex;
use airmile_model::{TransferTruth, TruthRun, TtiState};

use super::TableContent;
use super::grants::text;
use super::rows::{CsvRows, RowRef, TableError};

/// Reads the run-length coded truth of the queue.
///
/// # Errors
///
/// A required column is missing; bad rows are problems.
pub fn read_truth<R: Read>(input: R) -> Result<TableContent<TruthRun>, TableError> {
    let rows = CsvRows::new(input)?;
    let tti = rows.required("tti")?;
    let n_tti = rows.required("n_tti")?;
    let queue = rows.required("queue_bytes")?;
    let state = rows.required("state")?;
    let before = rows.column("before_first_tx");
    let read = |row: RowRef<'_>| {
        Ok(TruthRun {
            tti: TtiIndex(row.int(("tti", Some(tti)))?.ok_or_else(|| row.empty("tti"))?),
            n_tti: row.int(("n_tti", Some(n_tti)))?.unwrap_or(1),
            queue_bytes: row
                .int::<i64>(("queue_bytes", Some(queue)))?
                .and_then(|b| u64::try_from(b).ok())
                .unwrap_or_default(),
            state: row
                .parsed(("state", Some(state)), "a TTI state", TtiState::parse)?
                .ok_or_else(|| row.empty("state"))?,
            before_first_tx: row.flag(("before_first_tx", before))?,
        })
    };
    rows.keep_all(read, |_| 0)
}

/// Writes the truth of the queue.
///
/// # Errors
/// As the output gives them.
pub fn write_truth<'a, W: Write>(
    out: W,
    runs: impl IntoIterator<Item = &'a TruthRun>,
) -> csv::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(["tti", "n_tti", "queue_bytes", "state", "before_first_tx"])?;
    for run in runs {
        writer.write_record([
            run.tti.to_string(),
            run.n_tti.to_string(),
            run.queue_bytes.to_string(),
            run.state.as_str().to_owned(),
            text(run.before_first_tx.map(u8::from)),
        ])?;
    }
    Ok(writer.flush()?)
}

/// Reads the truth of transfers.
///
/// # Errors
///
/// A required column is missing; bad rows are problems.
pub fn read_transfer_truth<R: Read>(input: R) -> Result<TableContent<TransferTruth>, TableError> {
    let rows = CsvRows::new(input)?;
    let id = rows.required("id")?;
    let throughput = rows.required("throughput_time_ms")?;
    let duration = rows.column("duration_ms");
    let read = |row: RowRef<'_>| {
        Ok(TransferTruth {
            id: row.string(Some(id)).ok_or_else(|| row.empty("id"))?,
            throughput_time_ms: row
                .number(("throughput_time_ms", Some(throughput)))?
                .ok_or_else(|| row.empty("throughput_time_ms"))?,
            duration_ms: row.number(("duration_ms", duration))?,
        })
    };
    rows.keep_all(read, |truth| truth.id.len())
}

/// Writes the truth of transfers.
///
/// # Errors
/// As the output gives them.
pub fn write_transfer_truth<'a, W: Write>(
    out: W,
    truths: impl IntoIterator<Item = &'a TransferTruth>,
) -> csv::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(["id", "throughput_time_ms", "duration_ms"])?;
    for truth in truths {
        writer.write_record([
            truth.id.clone(),
            truth.throughput_time_ms.to_string(),
            text(truth.duration_ms),
        ])?;
    }
    Ok(writer.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truth_reads_back() {
        let run = TruthRun {
            tti: TtiIndex(514),
            n_tti: 3,
            queue_bytes: 58,
            state: TtiState::LastActive,
            before_first_tx: Some(false),
        };
        let mut out = Vec::new();
        write_truth(&mut out, [&run]).unwrap();
        assert_eq!(read_truth(&out[..]).unwrap().rows, [run]);

        let truth =
            TransferTruth { id: "0".into(), throughput_time_ms: 12.5, duration_ms: Some(40.0) };
        let mut out = Vec::new();
        write_transfer_truth(&mut out, [&truth]).unwrap();
        assert_eq!(read_transfer_truth(&out[..]).unwrap().rows, [truth]);
    }

    #[test]
    fn an_unknown_state_is_a_problem() {
        let content = read_truth("tti,n_tti,queue_bytes,state\n1,1,0,ASLEEP\n".as_bytes());
        assert_eq!(content.unwrap().problems.kept.len(), 1);
    }
}
