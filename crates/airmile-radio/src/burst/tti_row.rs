//! Scheduled TTIs of the user, with everything known of them.

use smallvec::SmallVec;

use super::gap;
use super::grants::GrantSummary;
use super::poll_model::PollMark;

/// Consecutive TTIs, all scheduled or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TtiSequence {
    pub segment: u32,
    pub numerology: u8,
    pub first_tti: i64,
    pub n_tti: u32,
    /// Time of the first one.
    pub at_ns: Option<i64>,
    pub has_grant: bool,
    /// Their data bytes.
    pub bytes: u64,
}

/// TTIs that only continued a burst, before the row into which they are counted: scheduled,
/// each with data of the row's bearer or with retransmissions alone.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Continued {
    pub ttis: TtiSequence,
    /// Those with data, by the pause to the next data: one TTI, and two.
    pub pauses: [u32; 2],
}

impl Continued {
    /// TTIs with data by the bin of the pause to the next data.
    pub(super) fn pauses_by_bin(&self) -> [(usize, u32); 2] {
        let [once, twice] = self.pauses;
        [(gap::bin(Some(1)), once), (gap::bin(Some(2)), twice)]
    }

    /// TTIs with data.
    pub(super) fn n_data(&self) -> u64 {
        self.pauses.into_iter().map(u64::from).sum()
    }
}

/// One scheduled TTI of the user, and the TTIs that are counted into its row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TtiRow {
    pub segment: u32,
    pub tti: i64,
    pub grants: GrantSummary,
    /// A STATUS PDU was in it; of those counted into it, in the first.
    pub has_status: bool,
    /// RLC data bytes, headers included.
    pub rlc_bytes: u32,
    /// Its data bearers' last PDUs.
    pub marks: SmallVec<[PollMark; 1]>,
    /// TTIs before it that it continues.
    pub continued: Option<Box<Continued>>,
}

impl TtiRow {
    /// The PRBs of the largest assignment; 0 if none is known.
    pub(super) fn largest_prb(rows: &[Self]) -> u32 {
        rows.iter().filter_map(|row| row.grants.prb).max().unwrap_or(0)
    }

    /// Its own TTI.
    pub(super) fn own_tti(&self) -> TtiSequence {
        TtiSequence {
            segment: self.segment,
            numerology: self.grants.numerology,
            first_tti: self.tti,
            n_tti: 1,
            at_ns: self.grants.at_ns,
            has_grant: self.grants.has_grant,
            bytes: self.grants.data_bytes(self.rlc_bytes),
        }
    }

    /// The first TTI that is counted into it.
    pub(super) fn first_tti(&self) -> i64 {
        self.continued.as_ref().map_or(self.tti, |continued| continued.ttis.first_tti)
    }

    /// TTIs that are counted into it, its own included.
    pub(super) fn n_tti(&self) -> usize {
        1 + self.continued.as_ref().map_or(0, |continued| continued.ttis.n_tti as usize)
    }
}

/// A TTI of which RLC shows only that data was left: the next PDU of one bearer, without a
/// poll.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlainTti<'a> {
    pub segment: u32,
    pub tti: i64,
    pub grants: &'a GrantSummary,
    pub has_status: bool,
    pub rlc_bytes: u32,
    pub bearer: u8,
}

impl PlainTti<'_> {
    /// As a row.
    pub(super) fn row(&self) -> TtiRow {
        TtiRow {
            segment: self.segment,
            tti: self.tti,
            grants: self.grants.clone(),
            has_status: self.has_status,
            rlc_bytes: self.rlc_bytes,
            marks: SmallVec::from_buf([PollMark::plain(self.bearer)]),
            continued: None,
        }
    }
}
