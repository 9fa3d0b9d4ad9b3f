//! The RLC table: one row per PDU.

use std::io::{Read, Write};

use airmile_model::radio::RlcMode;
use airmile_model::tti::{Position, TtiIndex};
use airmile_model::{Clock, RlcPdu, Stamp};

use super::grants::text;
use super::rows::{CsvRows, RowRef, TableError};

/// Relates a clock to TTIs, for tables that give only times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TtiTimes {
    /// A TTI.
    pub tti: TtiIndex,
    /// Its time in microseconds.
    pub time_us: i64,
}

impl TtiTimes {
    /// The LTE TTI (1 ms) at a time.
    #[must_use]
    pub fn tti_at(self, time_us: i64) -> TtiIndex {
        self.tti.plus(time_us.saturating_sub(self.time_us).div_euclid(1_000))
    }
}

/// Reads RLC PDUs row by row.
pub struct RlcReader<R> {
    rows: CsvRows<R>,
    columns: RlcColumns,
    clock: Clock,
    times: Option<TtiTimes>,
}

struct RlcColumns {
    tti: Option<usize>,
    time_us: Option<usize>,
    timing_segment: Option<usize>,
    dir: usize,
    bearer: Option<usize>,
    mode: Option<usize>,
    sn: Option<usize>,
    size_bytes: usize,
    poll: Option<usize>,
    segment: Option<usize>,
    numerology: Option<usize>,
    status: Option<usize>,
    signalling: Option<usize>,
}

impl<R: Read> RlcReader<R> {
    /// Reads the header. `times` places rows that have a time but no TTI;
    /// without it their TTI is their time in ms.
    ///
    /// # Errors
    /// A required column is missing: `dir`, `size_bytes`, and `tti` or `time_us`.
    pub fn new(input: R, clock: Clock, times: Option<TtiTimes>) -> Result<Self, TableError> {
        let rows = CsvRows::new(input)?;
        if rows.column("time_us").is_none() {
            rows.required("tti")?;
        }
        let columns = RlcColumns {
            tti: rows.column("tti"),
            time_us: rows.column("time_us"),
            timing_segment: rows.column("timing_segment"),
            dir: rows.required("dir")?,
            bearer: rows.column("bearer"),
            mode: rows.column("mode"),
            sn: rows.column("sn"),
            size_bytes: rows.required("size_bytes")?,
            poll: rows.column("poll"),
            segment: rows.column("segment"),
            numerology: rows.column("numerology"),
            status: rows.column("status"),
            signalling: rows.column("signalling"),
        };
        Ok(Self { rows, columns, clock, times })
    }
}

impl RlcColumns {
    fn read(
        &self,
        row: RowRef<'_>,
        clock: Clock,
        times: Option<TtiTimes>,
    ) -> Result<RlcPdu, TableError> {
        let at = row.time(("time_us", self.time_us), clock)?;
        let tti = match (row.tti(("tti", self.tti))?, at) {
            (Some(tti), _) => tti,
            (None, Some(at)) => {
                times.unwrap_or(TtiTimes { tti: TtiIndex(0), time_us: 0 }).tti_at(at.micros())
            }
            (None, None) => return Err(row.empty("tti")),
        };
        let dir = row.direction(Some(self.dir))?.ok_or_else(|| row.empty("dir"))?;
        let poll = row.flag(("poll", self.poll))?;
        let mode = row.parsed(("mode", self.mode), "tm, um or am", RlcMode::parse)?;
        let status = row.flag(("status", self.status))?.unwrap_or(false);
        Ok(RlcPdu {
            at,
            position: Position {
                timing_segment: row
                    .int(("timing_segment", self.timing_segment))?
                    .unwrap_or_default(),
                numerology: row.numerology(("numerology", self.numerology))?,
                ..Position::lte(tti.0)
            },
            dir,
            bearer: row.int(("bearer", self.bearer))?.unwrap_or_default(),
            signalling: row.flag(("signalling", self.signalling))?,
            mode: mode.unwrap_or(if poll.is_some() || status { RlcMode::Am } else { RlcMode::Um }),
            sn: row.int(("sn", self.sn))?,
            size_bytes: row
                .int(("size_bytes", Some(self.size_bytes)))?
                .ok_or_else(|| row.empty("size_bytes"))?,
            poll,
            resegment: row.flag(("segment", self.segment))?.unwrap_or(false),
            status,
        })
    }
}

impl<R: Read> Iterator for RlcReader<R> {
    type Item = Result<RlcPdu, TableError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Self { rows, columns, clock, times } = self;
        Some(rows.next()?.and_then(|row| columns.read(row, *clock, *times)))
    }
}

/// Writes the RLC table row by row.
pub struct RlcWriter<W: Write> {
    writer: csv::Writer<W>,
}

impl<W: Write> RlcWriter<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// As the output gives them.
    pub fn new(out: W) -> csv::Result<Self> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record([
            "tti",
            "time_us",
            "timing_segment",
            "dir",
            "bearer",
            "mode",
            "sn",
            "size_bytes",
            "poll",
            "segment",
            "status",
            "signalling",
            "numerology",
        ])?;
        Ok(Self { writer })
    }

    /// Writes a PDU.
    ///
    /// # Errors
    /// As the output gives them.
    pub fn push(&mut self, pdu: &RlcPdu) -> csv::Result<()> {
        self.writer.write_record([
            pdu.position.tti.to_string(),
            text(pdu.at.map(Stamp::micros)),
            pdu.position.timing_segment.to_string(),
            pdu.dir.to_string(),
            pdu.bearer.to_string(),
            pdu.mode.to_string(),
            text(pdu.sn),
            pdu.size_bytes.to_string(),
            text(pdu.poll.map(u8::from)),
            u8::from(pdu.resegment).to_string(),
            u8::from(pdu.status).to_string(),
            text(pdu.signalling.map(u8::from)),
            pdu.position.numerology.to_string(),
        ])
    }

    /// Flushes.
    ///
    /// # Errors
    /// As the output gives them.
    pub fn finish(mut self) -> csv::Result<()> {
        Ok(self.writer.flush()?)
    }
}

/// Writes PDUs as the RLC table.
///
/// # Errors
/// As the output gives them.
pub fn write_rlc<'a, W: Write>(
    out: W,
    pdus: impl IntoIterator<Item = &'a RlcPdu>,
) -> csv::Result<()> {
    let mut writer = RlcWriter::new(out)?;
    pdus.into_iter().try_for_each(|pdu| writer.push(pdu))?;
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmile_model::Direction;

    #[test]
    fn reads_what_it_writes() {
        let pdu = RlcPdu {
            at: Some(Stamp::modem(1_000)),
            position: Position { numerology: 1, ..Position::lte(44) },
            dir: Direction::Dl,
            bearer: 3,
            signalling: Some(false),
            mode: RlcMode::Am,
            sn: Some(1023),
            size_bytes: 1402,
            poll: Some(true),
            resegment: false,
            status: false,
        };
        let mut out = Vec::new();
        write_rlc(&mut out, [&pdu]).unwrap();
        let mut reader = RlcReader::new(&out[..], Clock::Modem, None).unwrap();
        assert_eq!(reader.next().unwrap().unwrap(), pdu);
        assert!(reader.next().is_none());
    }

    #[test]
    fn rows_that_were_cut_and_rows_that_repeat() {
        let text = "tti,dir,size_bytes\n1,dl,9\n1,dl,9\n2,dl";
        let rows: Vec<_> = RlcReader::new(text.as_bytes(), Clock::Modem, None).unwrap().collect();
        // PDUs of one TTI can be equal in all that the table has.
        assert!(rows[0].is_ok() && rows[1].is_ok());
        let error = rows[2].as_ref().unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 4: the row ends in the column `dir`, with 2 of 3 fields"
        );
    }

    #[test]
    fn a_time_alone_places_a_row() {
        let times = TtiTimes { tti: TtiIndex(500), time_us: 1_000_000 };
        let text = "time_us,dir,size_bytes\n1003999,dl,9\n999999,dl,9\n";
        let reader = RlcReader::new(text.as_bytes(), Clock::Modem, Some(times)).unwrap();
        let ttis: Vec<_> = reader.map(|r| r.unwrap().position.tti.0).collect();
        assert_eq!(ttis, [503, 499]);
    }
}
