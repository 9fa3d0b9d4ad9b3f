//! The rows of an epoch, with TTIs that only continue a burst counted into the row after them.
//!
//! In most TTIs of a busy link nothing is to be decided: the next block of a bearer came,
//! without a poll, so data was left. Consecutive such TTIs are counted into the row of the last one.
//! That is right as long as an epoch with a poll is judged by polls (`fuse::decide_auto`), which do not
//! look at the padding of a TTI whose last PDU has none (`sign_of` in `fuse::polls`).

use super::tti_row::{Continued, PlainTti, TtiRow, TtiSequence};

/// The rows to be judged next.
#[derive(Debug, Clone)]
pub(super) struct Epoch {
    rows: Vec<TtiRow>,
    /// TTIs in these rows.
    n_tti: usize,
    /// Whether poll bits decide, wherever there are any.
    by_polls: bool,
    /// The last row with data, if a TTI can continue it.
    last: Option<PlainRow>,
}

/// A row that the next TTI may continue.
#[derive(Debug, Clone, Copy)]
struct PlainRow {
    tti: i64,
    bearer: u8,
    numerology: u8,
    is_padding_known: bool,
    /// Whether a row of retransmissions alone is after it.
    is_retx_next: bool,
}

impl Epoch {
    pub(super) const fn new(by_polls: bool) -> Self {
        Self { rows: Vec::new(), n_tti: 0, by_polls, last: None }
    }

    pub(super) fn rows(&self) -> &[TtiRow] {
        &self.rows
    }

    pub(super) const fn n_tti(&self) -> usize {
        self.n_tti
    }

    /// Adds a TTI.
    pub(super) fn push(&mut self, row: TtiRow) {
        self.n_tti += 1;
        let is_retx = row.grants.has_grant && !row.grants.new_data() && row.marks.is_empty();
        self.last = self.last.filter(|last| is_retx && last.is_before_retx(&row));
        if let Some(last) = &mut self.last {
            last.is_retx_next = true;
        }
        self.rows.push(row);
    }

    /// Adds a TTI that leaves data: counts the last row into it, if it continues that, right
    /// after it or after a TTI of retransmissions alone.
    #[inline]
    pub(super) fn push_plain(&mut self, tti: &PlainTti<'_>) {
        self.n_tti += 1;
        let padding = tti.grants.padding_bytes();
        let row = PlainRow {
            tti: tti.tti,
            bearer: tti.bearer,
            numerology: tti.grants.numerology,
            is_padding_known: padding.is_some(),
            is_retx_next: false,
        };
        let is_plain = self.by_polls && tti.grants.has_grant && padding.unwrap_or(0) == 0;
        match self.last.filter(|last| is_plain && last.is_continued_by(&row)) {
            Some(last) => self.join(&last, tti),
            None => self.rows.push(tti.row()),
        }
        self.last = is_plain.then_some(row);
    }

    #[inline]
    fn join(&mut self, last: &PlainRow, tti: &PlainTti<'_>) {
        if last.is_retx_next {
            self.rows.pop();
        }
        let Some(row) = self.rows.last_mut() else { return };
        let bytes = row.grants.data_bytes(row.rlc_bytes);
        if row.continued.is_none() {
            let ttis = TtiSequence { n_tti: 0, bytes: 0, ..row.own_tti() };
            row.continued = Some(Box::new(Continued { ttis, pauses: [0; 2] }));
        }
        if let Some(continued) = &mut row.continued {
            continued.ttis.n_tti += 1 + u32::from(last.is_retx_next);
            continued.ttis.bytes += bytes;
            continued.pauses[usize::from(last.is_retx_next)] += 1;
        }
        row.tti = tti.tti;
        row.grants.clone_from(tti.grants);
        row.rlc_bytes = tti.rlc_bytes;
    }

    /// A hole in the log: what comes after it continues nothing before it.
    pub(super) const fn add_hole(&mut self) {
        self.last = None;
    }

    /// Removes the TTIs that were counted into the first row.
    pub(super) fn take_continued(&mut self) -> Option<Box<Continued>> {
        let continued = self.rows.first_mut()?.continued.take()?;
        self.n_tti -= continued.ttis.n_tti as usize;
        Some(continued)
    }

    /// Removes the first rows.
    pub(super) fn remove(&mut self, n_rows: usize) {
        self.n_tti -= self.rows.drain(..n_rows).map(|row| row.n_tti()).sum::<usize>();
        let n_rows = self.rows.len();
        self.last = self.last.filter(|last| n_rows > usize::from(last.is_retx_next));
    }
}

impl PlainRow {
    fn is_before_retx(&self, row: &TtiRow) -> bool {
        !self.is_retx_next
            && self.tti.checked_add(1) == Some(row.tti)
            && self.numerology == row.grants.numerology
    }

    fn is_continued_by(&self, row: &Self) -> bool {
        let pause = 1 + i64::from(self.is_retx_next);
        self.tti.checked_add(pause) == Some(row.tti)
            && (self.bearer, self.numerology, self.is_padding_known)
                == (row.bearer, row.numerology, row.is_padding_known)
    }
}
