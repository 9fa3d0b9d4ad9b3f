//! Transfers from an application's log.

use std::io::{Read, Write};

use airmile_model::transfer::MAX_TRANSFER_BYTES;
use airmile_model::{Clock, Transfer};

use super::TableContent;
use super::grants::text;
use super::rows::{CsvRows, RowRef, TableError};

/// Reads transfers: `id,start_us,end_us,bytes`, or `start_tti,end_tti`, or both; `dir` if
/// it is known, `unfinished` (1, true or yes) if it had not ended. `clock` is the clock
/// of the times.
///
/// # Errors
///
/// A required column is missing; bad rows are problems.
pub fn read_transfers<R: Read>(
    input: R,
    clock: Clock,
) -> Result<TableContent<Transfer>, TableError> {
    let rows = CsvRows::new(input)?;
    let columns = TransferColumns {
        id: rows.required("id")?,
        start_tti: rows.column("start_tti"),
        end_tti: rows.column("end_tti"),
        start_us: rows.column("start_us"),
        end_us: rows.column("end_us"),
        bytes: rows.column("bytes"),
        dir: rows.column("dir"),
        unfinished: rows.column("unfinished"),
    };
    if columns.start_tti.is_none() || columns.end_tti.is_none() {
        rows.required("start_us")?;
        rows.required("end_us")?;
    }
    rows.keep_all(|row| read_row(row, clock, &columns), |transfer| transfer.id.len())
}

/// The indices of the columns.
struct TransferColumns {
    id: usize,
    start_tti: Option<usize>,
    end_tti: Option<usize>,
    start_us: Option<usize>,
    end_us: Option<usize>,
    bytes: Option<usize>,
    dir: Option<usize>,
    unfinished: Option<usize>,
}

fn read_row(
    row: RowRef<'_>,
    clock: Clock,
    columns: &TransferColumns,
) -> Result<Transfer, TableError> {
    let TransferColumns { id, start_tti, end_tti, start_us, end_us, .. } = *columns;
    let span_tti = match (row.tti(("start_tti", start_tti))?, row.tti(("end_tti", end_tti))?) {
        (Some(start), Some(end)) if start > end => {
            return Err(row.bad("end_tti", &end.to_string(), "at or after start_tti"));
        }
        (Some(start), Some(end)) => Some((start, end)),
        _ => None,
    };
    let time = row.time(("start_us", start_us), clock)?.zip(row.time(("end_us", end_us), clock)?);
    if let Some((_, end)) = time.filter(|(start, end)| start.ns > end.ns) {
        return Err(row.bad("end_us", &end.micros().to_string(), "at or after start_us"));
    }
    // A TTI lasts 0.125 to 1 ms; clocks of phone and modem differ by less than their tenth part.
    if let Some(((from, to), (start, end))) = span_tti.zip(time)
        && to.since(from) >= 10
        && !(12_500..=10_000_000).contains(&((end.ns - start.ns) / to.since(from)))
    {
        let expected = "as long after `start_us` as its TTIs last: is it in microseconds?";
        return Err(row.bad("end_us", &end.micros().to_string(), expected));
    }
    if span_tti.is_none() && time.is_none() {
        return Err(row.empty(if start_us.is_some() { "start_us" } else { "start_tti" }));
    }
    Ok(Transfer {
        id: row.string(Some(id)).ok_or_else(|| row.empty("id"))?,
        time,
        tti: span_tti,
        bytes: row.int(("bytes", columns.bytes))?.filter(|bytes| *bytes <= MAX_TRANSFER_BYTES),
        dir: row.direction(columns.dir)?,
        unfinished: row
            .parsed(("unfinished", columns.unfinished), "true or false", parse_flag)?
            .unwrap_or(false),
    })
}

fn parse_flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" => Some(true),
        "0" | "false" | "no" => Some(false),
        _ => None,
    }
}

/// Writes transfers.
///
/// # Errors
/// As the output gives them.
pub fn write_transfers<'a, W: Write>(
    out: W,
    transfers: impl IntoIterator<Item = &'a Transfer>,
) -> csv::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record([
        "id",
        "start_us",
        "end_us",
        "start_tti",
        "end_tti",
        "bytes",
        "dir",
        "unfinished",
    ])?;
    for transfer in transfers {
        writer.write_record([
            transfer.id.clone(),
            text(transfer.time.map(|(start, _)| start.micros())),
            text(transfer.time.map(|(_, end)| end.micros())),
            text(transfer.tti.map(|(start, _)| start)),
            text(transfer.tti.map(|(_, end)| end)),
            text(transfer.bytes),
            text(transfer.dir),
            transfer.unfinished.to_string(),
        ])?;
    }
    Ok(writer.flush()?)
}

#[cfg(test)]
mod tests {
    use airmile_model::tti::TtiIndex;
    use airmile_model::{Direction, Stamp};

    use super::*;

    #[test]
    fn by_time_by_tti_and_bad_rows() {
        let text = "id,start_us,end_us,bytes\na,5,9,100\nb,9,5,1\nc,,,\n";
        let content = read_transfers(text.as_bytes(), Clock::Player).unwrap();
        assert_eq!(content.rows.len(), 1);
        assert_eq!(content.rows[0].time.unwrap().0.clock, Clock::Player);
        assert_eq!(content.problems.kept.len(), 2);
        let text = "id,start_us,end_us,unfinished\na,1,2,\nb,1,2,yes\nc,1,2,False\nd,1,2,perhaps\n";
        let content = read_transfers(text.as_bytes(), Clock::Player).unwrap();
        let unfinished: Vec<_> = content.rows.iter().map(|row| row.unfinished).collect();
        assert_eq!((unfinished, content.problems.kept.len()), (vec![false, true, false], 1));
        // Unquoted commas in a name, and a file that was cut.
        let text = "id,start_us,end_us,bytes\n7,1,5,9,100\nb,5,9,1\nc,5,";
        let content = read_transfers(text.as_bytes(), Clock::Player).unwrap();
        assert_eq!((content.rows.len(), content.bad_rows), (1, 2));
        let text = "id,start_us,end_us,bytes\na,1,5,-1\nb,1,5,1\nc,1,5,\n";
        let content = read_transfers(text.as_bytes(), Clock::Player).unwrap();
        let bytes: Vec<_> = content.rows.iter().map(|row| row.bytes).collect();
        assert_eq!((bytes, content.bad_rows), (vec![Some(1), None], 1));
        let text = "id,start_us,end_us\na,1767603604001500000,1767603604381000000\n";
        let content = read_transfers(text.as_bytes(), Clock::Player).unwrap();
        let what = "line 2, column `start_us`: \"1767603604001500000\" is not a time in \
                    microseconds: is it in nanoseconds?";
        assert_eq!(content.problems.kept[0].what, what);
        let text =
            "id,start_us,end_us,start_tti,end_tti\na,1767603607503,1767603618052,7503,18052\n";
        let content = read_transfers(text.as_bytes(), Clock::Modem).unwrap();
        let what = &content.problems.kept[0].what;
        assert!(what.contains("`end_us`") && what.contains("is it in microseconds?"), "{what}");
        let content = read_transfers("id,start_tti,end_tti\n0,1,4\n".as_bytes(), Clock::Modem);
        assert_eq!(content.unwrap().rows[0].tti, Some((TtiIndex(1), TtiIndex(4))));
    }

    #[test]
    fn reads_what_it_writes() {
        let transfer = Transfer {
            id: "segment, 3".into(),
            time: Some((Stamp::modem(2_000), Stamp::modem(9_000))),
            tti: Some((TtiIndex(2), TtiIndex(9))),
            bytes: Some(77),
            dir: Some(Direction::Ul),
            unfinished: true,
        };
        let mut out = Vec::new();
        write_transfers(&mut out, [&transfer]).unwrap();
        assert_eq!(read_transfers(&out[..], Clock::Modem).unwrap().rows, [transfer]);
    }
}
