//! A simulated run: parsing, and scoring a kind of evidence on it.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use airmile_decode::table::{GrantReader, RlcReader, read_transfer_truth, read_transfers};
use airmile_model::{Clock, Record, Transfer, TransferFinding, TransferTruth, VerdictThresholds};
use airmile_radio::burst::BurstOptions;
use airmile_radio::transfer::Timeline;
use anyhow::Context;
use flate2::read::MultiGzDecoder;

use crate::score::{Kind, Score};

/// Data to remove from a run, to test estimates without it.
#[derive(Debug, Clone, Copy)]
pub enum Spoil {
    /// A separate log for each transfer, with little to learn from.
    EachAlone,
    /// All records of some TTIs.
    Lost {
        /// Of a hundred TTIs.
        percent: i64,
    },
    /// The RLC table.
    NoRlc,
    /// Padding.
    NoPadding,
}

/// A run's records in TTI order, its transfers and their truth.
pub struct Run {
    name: String,
    records: Vec<Record>,
    transfers: Vec<Transfer>,
    /// Truth of each transfer.
    pub truth: Vec<TransferTruth>,
    /// Rows that could not be read.
    pub bad_rows: usize,
}

impl Run {
    /// A run of the emulator: records in time order, and its downlink transfers.
    pub const fn emulated(
        name: String,
        records: Vec<Record>,
        transfers: Vec<Transfer>,
        truth: Vec<TransferTruth>,
    ) -> Self {
        Self { name, records, transfers, truth, bad_rows: 0 }
    }

    /// Parses a run's folder. `meta.csv` is ignored.
    pub fn read(folder: &Path) -> anyhow::Result<Self> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let context = |file: &'static str| format!("{name}/{file}");
        let mut records: Vec<Record> = Vec::new();
        let mut bad_rows = 0;
        let grants = open(&folder.join("grants.csv.gz"))?;
        for grant in GrantReader::new(grants, Clock::Modem).with_context(|| context("grants"))? {
            // A bad row is skipped, as elsewhere; the count is printed.
            match grant {
                Ok(grant) => records.push(Record::Grant(grant)),
                Err(_) => bad_rows += 1,
            }
        }
        let rlc = folder.join("rlc.csv.gz");
        if rlc.is_file() {
            let reader = RlcReader::new(open(&rlc)?, Clock::Modem, None);
            for pdu in reader.with_context(|| context("rlc"))? {
                match pdu {
                    Ok(pdu) => records.push(Record::Rlc(pdu)),
                    Err(_) => bad_rows += 1,
                }
            }
        }
        records.sort_by_key(tti_of);
        let transfers = read_transfers(File::open(folder.join("transfers.csv"))?, Clock::Modem)
            .with_context(|| context("transfers"))?
            .rows;
        let truth = read_transfer_truth(File::open(folder.join("transfer_truth.csv"))?)
            .with_context(|| context("transfer_truth"))?
            .rows;
        Ok(Self { name, records, transfers, truth, bad_rows })
    }

    /// The run with some data removed.
    pub fn spoil(&self, how: Spoil) -> Vec<Self> {
        match how {
            Spoil::EachAlone => self.transfers.iter().map(|t| self.alone(t)).collect(),
            Spoil::Lost { percent } => {
                // The same TTIs each time: a congruence suffices.
                let lost = |tti: i64| {
                    (tti.wrapping_mul(2_654_435_761).rem_euclid(1 << 32) >> 16) % 100 < percent
                };
                vec![self.keep(|record| !lost(tti_of(record)))]
            }
            Spoil::NoRlc => vec![self.keep(|record| !matches!(record, Record::Rlc(_)))],
            Spoil::NoPadding => {
                let mut spoilt = self.keep(|_| true);
                for record in &mut spoilt.records {
                    if let Record::Grant(grant) = record {
                        grant.padding_bytes = None;
                    }
                }
                vec![spoilt]
            }
        }
    }

    /// The run without the records in stretches of `ttis`, which together are `percent` of
    /// the time; the gaps are not marked.
    pub fn holes(&self, ttis: i64, percent: i64) -> Self {
        // The same stretches each time, spread by a multiplicative hash.
        let lost = |tti: i64| {
            let at = tti.div_euclid(ttis);
            (at.wrapping_mul(2_654_435_761).rem_euclid(1 << 32) >> 16) % 100 < percent
        };
        self.keep(|record| !lost(tti_of(record)))
    }

    /// A log with one transfer and its surroundings.
    fn alone(&self, transfer: &Transfer) -> Self {
        let (start, end) = transfer.tti.unwrap_or_default();
        let mut alone = self.keep(|record| (start.0 - 20..end.0 + 40).contains(&tti_of(record)));
        alone.transfers = vec![transfer.clone()];
        alone
    }

    fn keep(&self, keep: impl Fn(&Record) -> bool) -> Self {
        Self {
            name: self.name.clone(),
            records: self.records.iter().filter(|r| keep(r)).cloned().collect(),
            transfers: self.transfers.clone(),
            truth: self.truth.clone(),
            bad_rows: self.bad_rows,
        }
    }

    /// The scores of all transfers with one kind of evidence.
    pub fn score(&self, kind: Kind) -> Vec<Score> {
        let options = BurstOptions { evidence: kind.evidence(), ..BurstOptions::default() };
        let timeline = Timeline::from_downlink_records(&self.records, &options);
        let findings = timeline.findings(&self.transfers, &VerdictThresholds::default());
        findings.iter().filter_map(|finding| self.compare(kind, finding)).collect()
    }

    fn compare(&self, kind: Kind, finding: &TransferFinding) -> Option<Score> {
        let truth = self.truth.iter().find(|truth| truth.id == finding.id)?;
        let estimate_ms = match kind {
            Kind::Active => finding.active_time_ms,
            _ => finding.throughput_time_ms,
        };
        Some(Score {
            run: self.name.clone(),
            transfer: finding.id.clone(),
            kind,
            estimate_ms,
            truth_ms: truth.throughput_time_ms,
            duration_ms: finding.duration_ms,
            verdict: finding.verdict,
            confidence: finding.confidence,
        })
    }
}

/// Reads a gzipped file.
pub fn open(path: &Path) -> anyhow::Result<Box<dyn Read>> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    Ok(Box::new(MultiGzDecoder::new(BufReader::new(file))))
}

fn tti_of(record: &Record) -> i64 {
    match record {
        Record::Grant(grant) => grant.position.tti.0,
        Record::Rlc(pdu) => pdu.position.tti.0,
        _ => 0,
    }
}
