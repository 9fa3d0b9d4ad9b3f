//! Tables of transfers among the inputs.

use std::collections::HashSet;

use airmile_decode::table::{TableKind, read_transfers};
use airmile_io::FileReport;
use airmile_io::error::{Error, Result};
use airmile_io::input::Progress;
use airmile_io::recognise::Kind;
use airmile_model::{Clock, Severity, Transfer, printable_path};
use airmile_wire::clocks::Arrivals;

use super::{Inputs, Opened, Session};

/// What a table without rows lacks.
const NO_TRANSFER: &str = "holds no transfer: it is not used";

impl Session {
    /// As [`Self::open`], to judge transfers: those of a table are not replaced by others.
    ///
    /// # Errors
    /// As [`Self::open`], or no table of transfers has a readable row; a header alone in a directory
    /// is passed over.
    pub(crate) fn open_to_judge(inputs: &Inputs, progress: &Progress) -> Result<Self> {
        let session = Self::open(inputs, progress)?;
        let kind = Kind::Table(TableKind::Transfers).name();
        let mut tables = session.reports.values().filter(|file| file.kind == kind);
        if tables.clone().any(|file| file.items > file.bad_items) {
            return Ok(session);
        }
        let is_named =
            |file: &FileReport| inputs.paths().any(|one| printable_path(one) == file.path);
        let Some(file) = tables.find(|file| file.items > 0 || is_named(file)) else {
            return Ok(session);
        };
        let why = file.problems.iter().find(|problem| problem.severity == Severity::Damage);
        let why = why.map_or("it has no rows", |problem| &problem.what);
        let what = format!("holds no transfer that can be read: {why}");
        Err(Error::Unusable { path: (&file.path).into(), what })
    }

    /// Analyses the transfers that a capture shows, if no application's log is given and they have at least half
    /// of the bytes that the modem carried. A capture that follows (`followed`) less than four fifths of these lacks
    /// transfers: those of the modem log are analysed. States what no transfer has then, or what it lacks. Nothing lacks
    /// for certain where the modem's bytes may be `padded`.
    pub(crate) fn set_captured(
        &mut self,
        (shown, followed): (Vec<Transfer>, u64),
        carried: [&Arrivals; 2],
        padded: bool,
    ) -> Option<String> {
        let points = carried.iter().flat_map(|one| one.points());
        let carried: u64 = points.map(|(_, bytes)| u64::from(*bytes)).sum();
        let bytes: u64 = shown.iter().filter_map(|one| one.bytes).sum();
        let followed = if padded { followed.max(carried) } else { followed };
        if !self.applications.is_empty()
            || 2 * bytes < carried.max(1) && 5 * followed >= 4 * carried
        {
            return None;
        }
        let (carried_mb, followed_mb) = (carried as f64 / 1e6, followed as f64 / 1e6);
        let lacks = |what: &str| {
            format!(
                "its connections have {followed_mb:.1} MB of the {carried_mb:.1} MB that the modem log carried: {what}"
            )
        };
        if 5 * followed < 4 * carried {
            return Some(lacks("the transfers are those of the modem log, between guessed bounds"));
        }
        (self.transfers, self.is_captured) = (shown, true);
        (10 * followed < 9 * carried).then(|| lacks("no transfer has the rest"))
    }

    pub(super) fn read_transfers(&mut self, item: Opened) -> Result<()> {
        let mut report = FileReport::new(&item.input, item.kind);
        let path = item.input.path().to_owned();
        let bytes = item.input.decompressed();
        let content = read_transfers(item.input, Clock::Modem)
            .map_err(|source| Error::Table { path, source })?;
        report.bytes = bytes.bytes();
        report.items = content.rows.len() as u64 + content.bad_rows;
        report.bad_items = content.bad_rows;
        report.problems_of_reader(&content.problems);
        if report.items == 0 {
            report.warn(NO_TRANSFER.to_owned());
        }
        self.transfers.extend(content.rows);
        let repeated = keep_once(&mut self.transfers);
        if repeated > 0 {
            report.warn(format!("rows that repeat a transfer are left out: {repeated}"));
        }
        self.reports.insert(item.order, report);
        Ok(())
    }
}

/// Leaves out what repeats an earlier one; returns the number.
fn keep_once(transfers: &mut Vec<Transfer>) -> usize {
    let (n, mut seen) = (transfers.len(), HashSet::new());
    let is_new = |Transfer { id, time, tti, bytes, dir, unfinished }: &Transfer| {
        seen.insert((id.clone(), *time, *tti, *bytes, *dir, *unfinished))
    };
    transfers.retain(is_new);
    n - transfers.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_row_is_one_transfer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.csv");
        std::fs::write(&path, "id,start_us,end_us,bytes\na,5,9,1\nb,5,9,1\na,5,9,1\na,5,8,1\n")
            .unwrap();
        let inputs = Inputs { files: vec![path], ..Inputs::default() };
        let session = Session::open(&inputs, &Progress::default()).unwrap();
        assert_eq!(session.transfers.len(), 3);
        let file = session.reports.values().next().unwrap();
        let what = "rows that repeat a transfer are left out: 1";
        assert!(!file.damaged && file.problems[0].what == what, "{file:?}");
    }

    #[test]
    fn a_table_without_a_readable_row_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let table = dir.path().join("t.csv");
        let opened = |rows: &str, named: bool| {
            std::fs::write(&table, format!("id,start_us,end_us,bytes\n{rows}")).unwrap();
            let path = if named { table.clone() } else { dir.path().to_owned() };
            let inputs = Inputs { files: vec![path], ..Inputs::default() };
            let judged = Session::open_to_judge(&inputs, &Progress::default());
            // `inspect` and `decode` read it.
            assert!(Session::open(&inputs, &Progress::default()).is_ok());
            judged.map(|session| session.transfers.len()).map_err(|error| error.to_string())
        };
        assert_eq!(opened("a,5,9,1\nb,9,5,1\n", true), Ok(1));
        for named in [true, false] {
            let error = opened("a,2026-01-05T09:00:04,9,1\n", named).unwrap_err();
            let what = "t.csv: holds no transfer that can be read: line 2, column `start_us`: \
                        \"2026-01-05T09:00:04\" is not a whole number in range";
            assert!(error.ends_with(what), "{error}");
        }
        assert!(opened("", true).unwrap_err().ends_with("it has no rows"));
        assert_eq!(opened("", false), Ok(0));
    }

    /// Of 100 MB that the modem carried.
    #[test]
    fn a_capture_that_lacks_bytes_hides_no_transfer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.csv");
        std::fs::write(&path, "id,start_us,end_us,bytes\n").unwrap();
        let mut carried = Arrivals::new();
        carried.add(0, 100_000_000);
        let set = |shown: u64, followed: u64, padded: bool| {
            let inputs = Inputs { files: vec![path.clone()], ..Inputs::default() };
            let mut session = Session::open(&inputs, &Progress::default()).unwrap();
            let shown = Transfer {
                id: "dl0".into(),
                time: None,
                tti: None,
                bytes: Some(shown * 1_000_000),
                dir: None,
                unfinished: false,
            };
            let shown = (vec![shown], followed * 1_000_000);
            let says = session.set_captured(shown, [&carried, &Arrivals::new()], padded);
            (session.is_captured, says.map(|says| says.split_once(": ").unwrap().1.to_owned()))
        };
        assert_eq!(set(95, 96, false), (true, None));
        assert_eq!(set(80, 85, false), (true, Some("no transfer has the rest".into())));
        assert_eq!(set(40, 95, false), (false, None));
        let guessed = "the transfers are those of the modem log, between guessed bounds";
        assert_eq!(set(60, 60, false), (false, Some(guessed.into())));
        // Of these, 40 MB may be padding.
        assert_eq!(set(60, 60, true), (true, None));
        assert_eq!(set(40, 40, true), (false, None));
    }
}
