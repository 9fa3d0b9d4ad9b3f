//! Inputs: logs of our own emulator, lengthened with a continuous clock.

use airmile::codec::diag::{Deframer, Event, LogPacket, time};
use airmile::model::Record;
use airmile_decode::diag::encode;
use airmile_emulate::{Scenario, SchedulerKind, Traffic, named, run};
use anyhow::{Context, Result};

/// The period of the SFN.
const SFN_PERIOD_NS: i64 = 10_240_000_000;

/// A log of a video session.
pub fn generated() -> Result<Vec<u8>> {
    let scenario = named("sample-video").context("no sample-video")?.scenario();
    let trace = run(&scenario)?;
    Ok(encode::write(&trace.records, &encode::Options::default())?)
}

/// The log repeated up to at least `bytes`, each time later by whole SFN periods, so that
/// times and TTIs stay consistent.
pub fn repeated(log: &[u8], bytes: usize) -> Vec<u8> {
    let mut frames: Vec<(u8, u16, i64, Vec<u8>)> = Vec::new();
    let mut deframer = Deframer::new();
    deframer.push(log);
    deframer.finish();
    while let Some(event) = deframer.poll() {
        if let Event::Log(p) = event {
            frames.push((p.subscription, p.code, p.at.ns, p.payload.to_vec()));
        }
    }
    let times = || frames.iter().map(|(_, _, ns, _)| *ns);
    let span = times().max().unwrap_or(0) - times().min().unwrap_or(0);
    let step = (span / SFN_PERIOD_NS + 1) * SFN_PERIOD_NS;
    let mut out = Vec::with_capacity(bytes + log.len());
    let mut shift = 0;
    while out.len() < bytes && !frames.is_empty() {
        for (subscription, code, ns, payload) in &frames {
            let ts_raw = time::from_unix_ns(ns + shift);
            let at = time::stamp(ts_raw);
            let (subscription, code) = (*subscription, *code);
            LogPacket { offset: 0, subscription, code, ts_raw, at, payload }.emit_hdlc(&mut out);
        }
        shift += step;
    }
    out
}

/// Records of a long download, alone in the cell or with other users, and the TTIs that they span.
pub fn busy_records(shared: bool) -> Result<(Vec<Record>, u64)> {
    let mut scenario: Scenario = named("sample-download").context("no sample-download")?.scenario();
    scenario.competing = if shared { scenario.competing } else { Vec::new() };
    scenario.cell.scheduler = SchedulerKind::WholeTti;
    for traffic in &mut scenario.traffic {
        if let Traffic::Download { bytes, .. } = traffic {
            *bytes = if shared { 60_000_000 } else { 400_000_000 };
        }
    }
    scenario.duration_ms = 200_000;
    let trace = run(&scenario)?;
    let records: Vec<Record> = trace
        .records
        .into_iter()
        .filter(|r| matches!(r, Record::Grant(_) | Record::Rlc(_) | Record::CellInfo(_)))
        .collect();
    Ok((records, u64::from(trace.n_tti)))
}
