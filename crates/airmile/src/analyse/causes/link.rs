//! The rate of the radio link during a transfer, and other users' part of the cell.

use airmile_model::tables::{McsTable, mcs_entry, tbs_bits};
use airmile_model::{Direction, TransferFinding};
use airmile_radio::usage::Usage;

use super::super::radio::{CellLoad, ROUGH_CONFIDENCE, RadioReport, TransferTrace};
use super::split::MOST_UNGAUGED;
use super::timeline::bursts_within;
use crate::fact::{LinkRate, LinkRateSource};

/// From this share of free PRBs while data waited on, they do not count as other users' (chosen
/// here: above the error of the load).
const IDLE_SHARE: f64 = 0.25;
/// Factor of IP and TCP headers with time stamps.
const HEADERS: f64 = 1_500.0 / 1_448.0;
/// Bursts show the link's rate if their throughput time reaches this and their average length
/// suffices: shorter ones do not fill the cell (both chosen here; a HARQ round trip is 8 TTIs).
const MIN_BURSTS_MS: f64 = 200.0;
const MIN_BURST_TTIS: f64 = 10.0;
/// Maximum number of layers (TS 36.213, 7.1.7.2.5: four with transmission mode 3 and 4).
const MAX_LAYERS: f64 = 4.0;

/// The link's rate: what it carried while data waited long enough; else the cell's free capacity, or
/// what all of its PRBs would have carried at this phone's efficiency.
/// Of the uplink, see [`uplink_rate`].
pub(in super::super) fn link_rate(
    finding: &TransferFinding,
    (usage, seen): (&Usage, Option<&TransferTrace>),
    report: &RadioReport,
) -> Option<LinkRate> {
    let of = |from| move |bps| LinkRate { bps, from };
    let bursts = finding.burst_throughput_bps.map(of(LinkRateSource::Bursts));
    if finding.dir == Direction::Ul {
        return uplink_rate(finding);
    }
    let capacity = capacity_bps(finding, (usage, seen), report).map(of(LinkRateSource::Capacity));
    let (n, ttis) = match seen.and_then(|seen| seen.bursts.as_ref()) {
        Some(bursts) => (bursts.count as f64, bursts.inside_until(finding.end_tti) as f64),
        None => bursts_within(finding, Direction::Dl, report).fold((0.0, 0.0), |(n, ttis), b| {
            let from = b.start_tti.max(finding.start_tti);
            (n + 1.0, ttis + b.end_tti.min(finding.end_tti).since(from) as f64)
        }),
    };
    match are_long(n, ttis, report.tti_ms) {
        true => bursts.into_iter().chain(capacity).max_by(|a, b| a.bps.total_cmp(&b.bps)),
        false => capacity
            .or_else(|| with_all_prbs_bps(finding, usage, report).map(of(LinkRateSource::Prbs)))
            .or(bursts),
    }
}

/// Whether bursts, their number and TTIs, show the link's rate.
fn are_long(count: f64, ttis: f64, tti_ms: f64) -> bool {
    ttis * tti_ms >= MIN_BURSTS_MS && ttis / count.max(1.0) >= MIN_BURST_TTIS
}

/// The rate inside the bursts of a transfer, if they are long: short ones come in the TTIs of low
/// capacity alone, in which their data did not fit.
pub(in super::super) fn long_bursts_bps(
    finding: &TransferFinding,
    seen: &TransferTrace,
    tti_ms: f64,
) -> Option<f64> {
    let bursts = seen.bursts.as_ref()?;
    let n_tti = bursts.inside_until(finding.end_tti);
    let is_long = are_long(bursts.count as f64, n_tti as f64, tti_ms);
    finding.burst_throughput_bps.filter(|_| is_long)
}

/// The rate of an upload's link: what it carried while data waited, or, if that was for a grant alone for a part,
/// the bytes over the rest, which left without it. From half of the time on, too many did, and it is unknown: at
/// the phone's maximum power, all PRBs carry less than this multiple of its few.
fn uplink_rate(finding: &TransferFinding) -> Option<LinkRate> {
    let [limited_ms, _, either_ms] = finding.counted_ms()?;
    let (bps, waited_ms) = (finding.burst_throughput_bps?, finding.throughput_time_ms?);
    if limited_ms >= waited_ms || either_ms > MOST_UNGAUGED * finding.duration_ms {
        return Some(LinkRate { bps, from: LinkRateSource::Bursts });
    }
    let bps = bps * waited_ms / limited_ms;
    (2.0 * limited_ms >= waited_ms).then_some(LinkRate { bps, from: LinkRateSource::Limited })
}

/// The maximum of the link's rate: the cell's free capacity, else all of its PRBs.
pub(super) fn fastest_bps(
    finding: &TransferFinding,
    (usage, seen): (&Usage, Option<&TransferTrace>),
    report: &RadioReport,
) -> Option<f64> {
    capacity_bps(finding, (usage, seen), report)
        .or_else(|| with_all_prbs_bps(finding, usage, report))
}

/// The rate of all PRBs of the cells at this phone's efficiency.
fn with_all_prbs_bps(
    finding: &TransferFinding,
    usage: &Usage,
    report: &RadioReport,
) -> Option<f64> {
    let held_ms = usage.prb_share? * finding.duration_ms;
    let bits = finding.bytes? as f64 * 8.0 * HEADERS;
    let peak = peak_bps(finding, usage, report).unwrap_or(f64::MAX);
    (held_ms > 0.0).then(|| (bits * 1e3 / held_ms).min(peak))
}

/// The peak rate of the phone's cells during the transfer, of LTE: the best MCS on all PRBs and layers (TS
/// 36.213, tables 7.1.7.1-1A and 7.1.7.2.1-1).
fn peak_bps(finding: &TransferFinding, usage: &Usage, report: &RadioReport) -> Option<f64> {
    let i_tbs = mcs_entry(McsTable::Pdsch256Qam, BEST_256QAM_MCS)?.i_tbs?;
    let bits_per_prb = f64::from(tbs_bits(i_tbs, WIDEST_PRB)?) / f64::from(WIDEST_PRB);
    let n_tti = finding.end_tti.since(finding.start_tti) as f64;
    let share =
        usage.prb_share.filter(|share| *share > 0.0 && report.evidence_counts.nr_blocks == 0)?;
    let n_prb = usage.n_prb as f64 / (share * n_tti);
    Some(n_prb * bits_per_prb * MAX_LAYERS * 1e3 / report.tti_ms)
}

/// Mean capacity of the phone's only cell for it in the windows of a transfer: its own PRBs and free
/// ones (CLAW, section 4.2), at most its peak rate. `seen` has it without the report's list, which is not
/// always kept.
fn capacity_bps(
    finding: &TransferFinding,
    (usage, seen): (&Usage, Option<&TransferTrace>),
    report: &RadioReport,
) -> Option<f64> {
    if usage.cells > 1 {
        return None;
    }
    let peak = peak_bps(finding, usage, report).unwrap_or(f64::MAX);
    if let Some(seen) = seen {
        return seen.others.capacity_bps().map(|bps| bps.min(peak));
    }
    let inside = |tti: i64| tti >= finding.start_tti.0 && tti < finding.end_tti.0;
    let windows = report.cell_load.iter().filter(|window| inside(window.tti));
    let (n, sum) = windows
        .filter_map(|window| window.capacity_bps)
        .fold((0_u32, 0.0), |(n, sum), bps| (n + 1, sum + bps));
    (n > 0).then(|| (sum / f64::from(n)).min(peak))
}

/// Other users' share of the PRBs while this phone's data waited: all PRBs not its own, as a cell
/// with queued data leaves none free; if the load estimate shows many free ones, the others' part
/// of the load.
pub(super) fn others(
    finding: &TransferFinding,
    usage: &Usage,
    report: &RadioReport,
) -> Option<f64> {
    let demand = finding.link_demand.filter(|demand| *demand > 0.0)?;
    let not_own = (1.0 - usage.prb_share? / demand).clamp(0.0, 1.0);
    let sure = |window: &&CellLoad| window.confidence >= ROUGH_CONFIDENCE;
    let inside = |tti: i64| tti >= finding.start_tti.0 && tti < finding.end_tti.0;
    let windows = report.cell_load.iter().filter(|window| inside(window.tti)).filter(sure);
    let (n, sum) = windows.fold((0_u32, 0.0), |(n, sum), window| {
        (n + 1, sum + (window.load - window.own_share).max(0.0))
    });
    let by_load = (n > 0).then(|| sum / f64::from(n));
    Some(by_load.filter(|others| not_own - others > IDLE_SHARE).unwrap_or(not_own))
}

/// Bits carried by this phone's PRBs, relative to the best MCS of one layer (TS 36.213, tables
/// 7.1.7.1-1 and 7.1.7.2.1-1).
pub(super) fn efficiency(
    finding: &TransferFinding,
    usage: &Usage,
    report: &RadioReport,
) -> Option<f64> {
    let n_prb = report.n_prb_cell?;
    let best = tbs_bits(mcs_entry(McsTable::Pdsch64Qam, BEST_MCS)?.i_tbs?, n_prb)?;
    let could = usage.n_prb as f64 / f64::from(n_prb) * f64::from(best);
    let carried = finding.bytes? as f64 * 8.0 * HEADERS;
    (could > 0.0).then(|| (carried / could).clamp(0.01, 1.0))
}

/// The highest MCS with 64QAM, and with 256QAM (TS 36.213, tables 7.1.7.1-1 and 7.1.7.1-1A).
const BEST_MCS: u8 = 28;
const BEST_256QAM_MCS: u8 = 27;
/// PRBs of 20 MHz (TS 36.101, table 5.6-1).
const WIDEST_PRB: u16 = 100;
