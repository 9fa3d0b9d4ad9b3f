//! The effects of hostile files: limits, damage, overflow.

use std::io::{self, Cursor, Read};

use airmile_decode::table::{
    GrantReader, MAX_COLUMNS, MAX_KEPT_ROWS, MAX_RECORD_BYTES, read_transfers,
};
use airmile_model::Clock;

/// Counts the bytes requested.
struct Asked<R>(R, u64);

impl<R: Read> Read for Asked<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.0.read(buf)?;
        self.1 += n as u64;
        Ok(n)
    }
}

#[test]
fn tables_a_field_without_end_is_refused_by_the_limits_name() {
    let head = Cursor::new("tti,dir,n_prb\n1,dl,");
    let mut input = Asked(head.chain(io::repeat(b'7').take(64 << 20)), 0);
    let rows: Vec<_> = GrantReader::new(&mut input, Clock::Modem).unwrap().take(2).collect();
    let error = rows[0].as_ref().unwrap_err();
    assert!(error.is_refusal(), "{error}");
    assert_eq!(error.to_string(), "line 2: over the limit `MAX_RECORD_BYTES` (1048576)");
    assert!(input.1 < 2 * MAX_RECORD_BYTES, "{} bytes were read", input.1);
}

#[test]
fn tables_columns_are_limited() {
    let header = |n: usize| format!("tti,dir,n_prb{}\n1,dl,5\n", ",x".repeat(n));
    let read =
        |text: String| GrantReader::new(Cursor::new(text), Clock::Modem).map(Iterator::count);
    assert_eq!(read(header(MAX_COLUMNS - 3)).unwrap(), 1);
    let error = read(header(MAX_COLUMNS - 2)).unwrap_err();
    assert_eq!(error.to_string(), "line 1: over the limit `MAX_COLUMNS` (16384)");
    // Five million end at the limit on a row.
    let error = read(header(5_000_000)).unwrap_err();
    assert!(error.to_string().contains("MAX_RECORD_BYTES"), "{error}");
}

/// Endless rows, generated while they are read.
struct Lines {
    line: &'static [u8],
    at: usize,
    given: u64,
}

impl Read for Lines {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        for byte in buf.iter_mut() {
            *byte = self.line[self.at % self.line.len()];
            self.at += 1;
        }
        self.given += buf.len() as u64;
        Ok(buf.len())
    }
}

#[test]
fn tables_kept_rows_are_limited() {
    let lines = Lines { line: b"a,1,2\n", at: 0, given: 0 };
    let input = Cursor::new("id,start_us,end_us\n").chain(lines.take(40 << 20));
    let error = read_transfers(input, Clock::Modem).unwrap_err();
    let expected = format!("line {}: over the limit `MAX_KEPT_ROWS` (1000000)", MAX_KEPT_ROWS + 2);
    assert_eq!(error.to_string(), expected);
}

#[test]
fn tables_bad_rows_are_counted_and_the_first_are_described() {
    let text = format!("id,start_us,end_us\n{}", "a,x,2\n".repeat(1_000));
    let content = read_transfers(text.as_bytes(), Clock::Modem).unwrap();
    assert_eq!((content.bad_rows, content.problems.kept.len()), (1_000, 100));
}

#[test]
fn tables_errors_quote_the_start_of_a_field() {
    let text = format!("tti,dir,n_prb\n1,{},5\n", "x".repeat(100_000));
    let mut rows = GrantReader::new(text.as_bytes(), Clock::Modem).unwrap();
    let error = rows.next().unwrap().unwrap_err();
    assert!(error.to_string().len() < 300, "{} bytes", error.to_string().len());
}

#[test]
fn overflow_numerologies_that_there_are_not() {
    for (numerology, is_read) in
        [("0", true), ("6", true), ("7", false), ("64", false), ("255", false)]
    {
        let text = format!("tti,dir,n_prb,numerology\n1,dl,5,{numerology}\n");
        let row = GrantReader::new(text.as_bytes(), Clock::Modem).unwrap().next().unwrap();
        assert_eq!(row.is_ok(), is_read, "{numerology}");
    }
}
