//! The grant table: one row per transport block.

use std::io::{Read, Write};

use airmile_model::radio::RntiType;
use airmile_model::tti::{Position, Tti, TtiIndex, TtiSpan, nearest};
use airmile_model::{Clock, Grant, GrantSources, Stamp};

use super::rows::{CsvRows, RowRef, TableError};

/// Its columns as they are written.
const COLUMNS: [&str; 20] = [
    "tti",
    "time_us",
    "timing_segment",
    "dir",
    "cell",
    "n_prb",
    "n_prb_cell",
    "layers",
    "tb",
    "tbs_bytes",
    "mcs",
    "harq_id",
    "ndi",
    "rv",
    "retx",
    "crc_ok",
    "rnti",
    "padding_bytes",
    "data_bytes",
    "numerology",
];

/// Reads grants row by row.
pub struct GrantReader<R> {
    rows: CsvRows<R>,
    columns: GrantColumns,
    clock: Clock,
    /// By SFN: the last row's TTI and time, and one whose time the next row confirms.
    last: Option<(TtiIndex, Option<Stamp>)>,
    held: Option<Grant>,
}

struct GrantColumns {
    tti: Option<usize>,
    sfn: Option<usize>,
    subframe: Option<usize>,
    dir: usize,
    n_prb: usize,
    time_us: Option<usize>,
    timing_segment: Option<usize>,
    cell: Option<usize>,
    n_prb_cell: Option<usize>,
    layers: Option<usize>,
    tb: Option<usize>,
    tbs_bytes: Option<usize>,
    mcs: Option<usize>,
    harq_id: Option<usize>,
    ndi: Option<usize>,
    rv: Option<usize>,
    retx: Option<usize>,
    crc_ok: Option<usize>,
    rnti: Option<usize>,
    padding_bytes: Option<usize>,
    data_bytes: Option<usize>,
    numerology: Option<usize>,
}

impl<R: Read> GrantReader<R> {
    /// Reads the header. `clock` is the clock of the column `time_us`.
    ///
    /// # Errors
    ///
    /// A required column is missing: `dir`, `n_prb`, and `tti` or both of `sfn` and
    /// `subframe`.
    pub fn new(input: R, clock: Clock) -> Result<Self, TableError> {
        let mut rows = CsvRows::new(input)?;
        let tti = rows.column("tti");
        if rows.column("size_bytes").is_some() {
            // Joined with PDUs, of which a block has several.
            rows.required("tb")?;
        }
        // Without `tb`, two blocks of an assignment can have equal rows.
        if let Some(tti) = tti.filter(|_| rows.column("tb").is_some()) {
            rows.without_repetition(tti, COLUMNS);
        }
        if tti.is_none() {
            rows.required(if rows.column("sfn").is_some() { "subframe" } else { "tti" })?;
        }
        let columns = GrantColumns {
            tti,
            sfn: rows.column("sfn"),
            subframe: rows.column("subframe"),
            dir: rows.required("dir")?,
            n_prb: rows.required("n_prb")?,
            time_us: rows.column("time_us"),
            timing_segment: rows.column("timing_segment"),
            cell: rows.column("cell"),
            n_prb_cell: rows.column("n_prb_cell"),
            layers: rows.column("layers"),
            tb: rows.column("tb"),
            tbs_bytes: rows.column("tbs_bytes"),
            mcs: rows.column("mcs"),
            harq_id: rows.column("harq_id"),
            ndi: rows.column("ndi"),
            rv: rows.column("rv"),
            retx: rows.column("retx"),
            crc_ok: rows.column("crc_ok"),
            rnti: rows.column("rnti"),
            padding_bytes: rows.column("padding_bytes"),
            data_bytes: rows.column("data_bytes"),
            numerology: rows.column("numerology"),
        };
        Ok(Self { rows, columns, clock, last: None, held: None })
    }

    fn grant(&mut self) -> Option<Result<Grant, TableError>> {
        let Self { rows, columns, clock, .. } = self;
        Some(rows.next()?.and_then(|row| columns.read(row, *clock)))
    }

    /// The row that is held, its SFN and subframe as an index: going forward from the last row; by the
    /// time column if there is one, as more than a period may have passed.
    fn unwrapped(&mut self, next: Option<Stamp>) -> Option<Grant> {
        let mut grant = self.held.take()?;
        if let Some((last, last_at)) = self.last {
            let times = last_at.zip(grant.at);
            let right = times.filter(|(last, at)| {
                !next.is_some_and(|next| Stamp::is_lone(last.ns, at.ns, next.ns))
            });
            let since_ns = right.map_or(0, |(last, at)| at.ns.saturating_sub(last.ns));
            let counter = grant.position.tti.wrapped();
            grant.position.tti = nearest(last.plus(since_ns / 1_000_000), counter);
            if let (Some((at, _)), None) = (times, right) {
                let since = TtiSpan(grant.position.tti.since(last));
                grant.at = Some(Stamp { ns: at.ns.saturating_add(since.ns(0)), ..at });
            }
        }
        self.last = Some((grant.position.tti, grant.at));
        Some(grant)
    }
}

impl GrantColumns {
    fn read(&self, row: RowRef<'_>, clock: Clock) -> Result<Grant, TableError> {
        let at = row.time(("time_us", self.time_us), clock)?;
        let tti = match (self.tti, row.tti(("tti", self.tti))?) {
            (_, Some(tti)) => tti,
            (Some(_), None) => return Err(row.empty("tti")),
            (None, None) => TtiIndex(i64::from(self.counter(row)?.count())),
        };
        let dir = row.direction(Some(self.dir))?.ok_or_else(|| row.empty("dir"))?;
        let rnti = row.parsed(("rnti", self.rnti), "c, si, p or ra", RntiType::parse)?;
        let n_prb: Option<u16> = row.int(("n_prb", Some(self.n_prb)))?;
        let n_prb_cell: Option<u16> = row.int(("n_prb_cell", self.n_prb_cell))?;
        if let Some(held) = n_prb.filter(|held| n_prb_cell.is_some_and(|cell| *held > cell)) {
            return Err(row.bad("n_prb", &held.to_string(), "at most n_prb_cell"));
        }
        let tbs_bytes: Option<u32> = row.int(("tbs_bytes", self.tbs_bytes))?;
        let retx = row.flag(("retx", self.retx))?;
        // Some simulators write a negative number for unknown.
        let padding_bytes = row
            .int::<i64>(("padding_bytes", self.padding_bytes))?
            .and_then(|bytes| u32::try_from(bytes).ok());
        // In modem logs, a retransmission's size (0xB139) can be another than that of the block as
        // it was built (0xB064).
        if let Some(padding) = padding_bytes.filter(|_| retx != Some(true))
            && tbs_bytes.is_some_and(|block| padding > block)
        {
            return Err(row.bad("padding_bytes", &padding.to_string(), "at most tbs_bytes"));
        }
        Ok(Grant {
            at,
            position: Position {
                timing_segment: row
                    .int(("timing_segment", self.timing_segment))?
                    .unwrap_or_default(),
                cell: row.int(("cell", self.cell))?.unwrap_or_default(),
                numerology: row.numerology(("numerology", self.numerology))?,
                tti,
            },
            dir,
            n_prb,
            n_prb_cell,
            layers: row.int(("layers", self.layers))?,
            tb: row.int(("tb", self.tb))?.unwrap_or_default(),
            tbs_bytes,
            mcs: row.int(("mcs", self.mcs))?,
            modulation: None,
            harq_id: row.int(("harq_id", self.harq_id))?,
            ndi: row.flag(("ndi", self.ndi))?,
            rv: row.int(("rv", self.rv))?,
            retx,
            crc_ok: row.flag(("crc_ok", self.crc_ok))?,
            rnti: rnti.unwrap_or(RntiType::C),
            padding_bytes,
            data_bytes: row.int(("data_bytes", self.data_bytes))?,
            sources: GrantSources::TABLE,
        })
    }

    fn counter(&self, row: RowRef<'_>) -> Result<Tti, TableError> {
        let sfn: u16 = row.int(("sfn", self.sfn))?.ok_or_else(|| row.empty("tti"))?;
        let subframe: u8 =
            row.int(("subframe", self.subframe))?.ok_or_else(|| row.empty("subframe"))?;
        Tti::new(sfn, subframe)
            .ok_or_else(|| row.bad("subframe", &subframe.to_string(), "a subframe, 0 to 9"))
    }
}

impl<R: Read> Iterator for GrantReader<R> {
    type Item = Result<Grant, TableError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let next = match self.grant() {
                Some(Ok(grant)) if self.columns.tti.is_none() => grant,
                None => return self.unwrapped(None).map(Ok),
                other => return other,
            };
            let before = self.unwrapped(next.at);
            self.held = Some(next);
            if before.is_some() {
                return before.map(Ok);
            }
        }
    }
}

/// Writes the grant table row by row.
pub struct GrantWriter<W: Write> {
    writer: csv::Writer<W>,
}

impl<W: Write> GrantWriter<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// As the output gives them.
    pub fn new(out: W) -> csv::Result<Self> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(COLUMNS)?;
        Ok(Self { writer })
    }

    /// Writes a grant.
    ///
    /// # Errors
    /// As the output gives them.
    pub fn push(&mut self, grant: &Grant) -> csv::Result<()> {
        self.writer.write_record([
            grant.position.tti.to_string(),
            text(grant.at.map(Stamp::micros)),
            grant.position.timing_segment.to_string(),
            grant.dir.to_string(),
            grant.position.cell.to_string(),
            text(grant.n_prb),
            text(grant.n_prb_cell),
            text(grant.layers),
            grant.tb.to_string(),
            text(grant.tbs_bytes),
            text(grant.mcs),
            text(grant.harq_id),
            text(grant.ndi.map(u8::from)),
            text(grant.rv),
            text(grant.retx.map(u8::from)),
            text(grant.crc_ok.map(u8::from)),
            grant.rnti.to_string(),
            text(grant.padding_bytes),
            text(grant.data_bytes),
            grant.position.numerology.to_string(),
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

/// Writes grants as the grant table.
///
/// # Errors
/// As the output gives them.
pub fn write_grants<'a, W: Write>(
    out: W,
    grants: impl IntoIterator<Item = &'a Grant>,
) -> csv::Result<()> {
    let mut writer = GrantWriter::new(out)?;
    grants.into_iter().try_for_each(|grant| writer.push(grant))?;
    writer.finish()
}

/// A value, or nothing where it is unknown.
pub(super) fn text<T: ToString>(value: Option<T>) -> String {
    value.map(|v| v.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use airmile_model::Direction;
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Vec<Result<Grant, TableError>> {
        GrantReader::new(text.as_bytes(), Clock::Modem).unwrap().collect()
    }

    #[test]
    fn any_column_order_and_unknown_columns() {
        let rows = read("colour,n_prb,dir,tti\nred,7,dl,12\nblue,,ul,13\n");
        let first = rows[0].as_ref().unwrap();
        assert_eq!((first.position.tti, first.n_prb), (TtiIndex(12), Some(7)));
        assert_eq!(rows[1].as_ref().unwrap().n_prb, None);
    }

    #[test]
    fn sfn_wraps_and_sleeps() {
        let rows = read("sfn,subframe,dir,n_prb\n1023,9,dl,1\n0,0,dl,1\n");
        assert_eq!(rows[1].as_ref().unwrap().position.tti, TtiIndex(10_240));
        let rows = read("sfn,subframe,dir,n_prb,time_us\n0,0,dl,1,0\n0,0,dl,1,30720000\n");
        assert_eq!(rows[1].as_ref().unwrap().position.tti, TtiIndex(30_720));
        for off_us in [-90_000_000, -10_000_000, -500_000, 500_000, 10_000_000, 90_000_000] {
            let row = |i: i64| (1_000 + i) * 1_000 + if i == 2 { off_us } else { 0 };
            let rows: String = (0..5).map(|i| format!("100,{i},dl,1,{}\n", row(i))).collect();
            let rows = read(&format!("sfn,subframe,dir,n_prb,time_us\n{rows}"));
            for (i, row) in (0..5).zip(rows) {
                let row = row.unwrap();
                assert_eq!(row.position.tti, TtiIndex(1_000 + i), "{off_us}");
                assert_eq!(row.at, Some(Stamp::modem((1_000 + i) * 1_000_000)), "{off_us}");
            }
        }
    }

    #[test]
    fn a_bad_row_is_named_and_the_next_is_read() {
        let rows = read("tti,dir,n_prb\n1,dl,3\n2,sideways,3\n3,dl,x\n4,dl,5\n");
        let error = rows[1].as_ref().unwrap_err();
        assert_eq!(error.to_string(), r#"line 3, column `dir`: "sideways" is not dl or ul"#);
        assert_eq!(error.offset(), 21);
        // With CR and LF at each line's end, the row begins two bytes later.
        let rows = read("tti,dir,n_prb\r\n1,DL,3\r\n2,sideways,3\r\n3,dl,x\r\n");
        let errors: Vec<_> = rows[1..].iter().map(|row| row.as_ref().unwrap_err()).collect();
        assert_eq!(errors[0].to_string(), error.to_string());
        assert_eq!((errors[0].offset(), errors[1].offset()), (23, 37));
        let rows = read("tti,dir,n_prb\n1,dl,3\n2,sideways,3\n3,dl,x\n4,dl,5\n");
        assert!(rows[2].is_err());
        assert_eq!(rows[3].as_ref().unwrap().position.tti, TtiIndex(4));
    }

    #[test]
    fn a_block_has_at_most_the_prbs_of_its_cell() {
        let rows = read("tti,dir,n_prb,n_prb_cell\n1,dl,50,50\n2,dl,51,50\n3,dl,51,\n");
        assert!(rows[0].is_ok() && rows[2].is_ok());
        let error = rows[1].as_ref().unwrap_err();
        assert_eq!(error.to_string(), r#"line 3, column `n_prb`: "51" is not at most n_prb_cell"#);
    }

    #[test]
    fn a_new_block_holds_its_padding() {
        let rows = read(
            "tti,dir,n_prb,tbs_bytes,padding_bytes,retx\n1,dl,5,90,90,0\n2,dl,5,90,91,0\n\
             3,dl,5,90,-1,0\n4,ul,5,90,91,1\n5,dl,5,,91,\n",
        );
        let error = rows[1].as_ref().unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"line 3, column `padding_bytes`: "91" is not at most tbs_bytes"#
        );
        assert_eq!(rows.iter().filter(|row| row.is_ok()).count(), 4);
    }

    #[test]
    fn a_row_has_a_field_for_each_column() {
        let rows = read("tti,dir,n_prb,tbs_bytes\n1,dl,5,90\n2,dl,5,90,7\n3,ul,5,90\n4,dl,12");
        let errors: Vec<_> = rows.iter().filter_map(|row| row.as_ref().err()).collect();
        let told: Vec<_> = errors.iter().map(|error| (error.offset(), error.to_string())).collect();
        assert_eq!(
            told,
            [
                (34, "line 3: 5 fields, and the header has 4".to_owned()),
                (56, "line 5: the row ends in the column `n_prb`, with 3 of 4 fields".to_owned()),
            ]
        );
        assert_eq!(rows.len(), 4);
    }

    #[test]
    fn a_block_is_listed_once() {
        let errors = |text: &str| {
            let rows = read(text).into_iter();
            rows.filter_map(Result::err).map(|error| error.to_string()).collect::<Vec<_>>()
        };
        let rows = "1,dl,5,0\n1,dl,5,1\n1,dl,5,0\n2,dl,5,0\n";
        assert_eq!(
            errors(&format!("tti,dir,n_prb,tb\n{rows}")),
            ["line 4: the row repeats one of the same TTI"]
        );
        // Joined with a table of PDUs.
        assert_eq!(
            errors("tti,dir,n_prb,tb,size_bytes\n1,dl,5,0,70\n1,dl,5,0,90\n1,dl,5,1,90\n"),
            ["line 3: the row repeats one of the same TTI"]
        );
        let joined = "tti,dir,n_prb,size_bytes\n1,dl,5,70\n1,dl,5,90\n";
        let error = GrantReader::new(joined.as_bytes(), Clock::Modem).err().unwrap();
        assert!(error.is_refusal() && error.to_string().contains("lacks the column `tb`"));
        // Rows that do not say which block they are.
        assert_eq!(errors(&format!("tti,dir,n_prb,mcs\n{rows}")), [""; 0]);
    }

    #[test]
    fn a_missing_column_is_fatal() {
        let error = GrantReader::new("tti,dir\n".as_bytes(), Clock::Modem).err().unwrap();
        assert!(error.is_fatal());
        assert!(error.to_string().contains("n_prb"));
    }

    proptest! {
        #[test]
        fn written_rows_read_back(tti in -5i64..1_000_000, n_prb in proptest::option::of(0u16..110),
                                  tbs in proptest::option::of(0u32..100_000),
                                  ndi in proptest::option::of(any::<bool>()), us in proptest::option::of(0i64..1_i64 << 50)) {
            let mut grant = Grant::new(Position::lte(tti), Direction::Ul, 1);
            grant.n_prb = n_prb;
            grant.tbs_bytes = tbs;
            grant.ndi = ndi;
            grant.at = us.map(|us| Stamp::modem(us * 1_000));
            grant.sources = GrantSources::TABLE;
            let mut out = Vec::new();
            write_grants(&mut out, [&grant]).unwrap();
            let back = GrantReader::new(&out[..], Clock::Modem).unwrap().next().unwrap().unwrap();
            prop_assert_eq!(back, grant);
        }

        #[test]
        fn no_input_panics(text in ".{0,200}") {
            if let Ok(reader) = GrantReader::new(text.as_bytes(), Clock::Modem) {
                reader.for_each(drop);
            }
        }
    }
}
