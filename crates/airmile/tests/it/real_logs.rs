//! Verdicts on real logs, checked against their records.

use airmile::model::{Bound, Burst, Direction, Grant, Record, RntiType, TransferFinding, Verdict};
use airmile::{Inputs, Progress, RadioOptions, RadioReport, diagnose, radio, read_inputs};
use airmile_testing::shared_data;

fn log(name: &str) -> Option<Inputs> {
    let path = shared_data(&format!("diag/{name}"))?;
    Some(Inputs { files: vec![path], ..Inputs::default() })
}

fn grants(inputs: &Inputs) -> Vec<Grant> {
    let mut out = Vec::new();
    read_inputs(inputs, &Progress::default(), &mut |tagged| {
        if let Record::Grant(grant) = tagged.record {
            out.push(grant);
        }
    })
    .unwrap();
    out
}

fn analysed(inputs: &Inputs) -> RadioReport {
    radio(inputs, &RadioOptions::default(), &Progress::default()).unwrap()
}

/// Conditions between any downlink transfer and the log's grants.
fn consistent(report: &RadioReport, grants: &[Grant], transfer: &TransferFinding) {
    let inside = |g: &&Grant| {
        g.dir == Direction::Dl
            && g.rnti == RntiType::C
            && (transfer.start_tti..transfer.end_tti).contains(&g.position.tti)
    };
    let data: u64 = grants
        .iter()
        .filter(inside)
        .filter(|g| g.retx != Some(true))
        .map(airmile_radio::detect::new_data_bytes)
        .sum();
    assert_eq!(transfer.bytes, Some(data), "{}", transfer.id);
    let mut ttis: Vec<i64> = grants.iter().filter(inside).map(|g| g.position.tti.0).collect();
    ttis.dedup();
    let active_ms = transfer.active_time_ms.unwrap();
    assert!(active_ms <= ttis.len() as f64, "{}: {active_ms} of {}", transfer.id, ttis.len());

    // From the allocation alone: queued data is served within some tens of ms, so that times
    // between blocks longer than 60 ms are no contention.
    let bound: i64 = ttis.windows(2).map(|w| w[1] - w[0]).filter(|gap| *gap <= 60).sum();
    let queued_ms = transfer.throughput_time_ms.unwrap();
    assert!(queued_ms <= bound as f64, "{}: {queued_ms} of {bound}", transfer.id);
    // Consecutive blocks form one burst, except the last.
    let full = |tti: i64| {
        grants
            .iter()
            .filter(inside)
            .any(|g| g.position.tti.0 == tti && g.padding_bytes == Some(0) && g.retx == Some(false))
    };
    let at_once = ttis.windows(2).filter(|w| w[1] - w[0] == 1 && full(w[0])).count();
    assert!(queued_ms >= at_once as f64 * 0.8, "{}: {queued_ms} under {at_once}", transfer.id);

    // Throughput time is the overlap of the bursts; a burst starts and ends with a block of the
    // log.
    let mut queued = 0;
    for burst in report.bursts.iter().filter(|b| b.dir == Direction::Dl) {
        let from = burst.start_tti.max(transfer.start_tti);
        let to = burst.end_tti.min(transfer.end_tti);
        if from >= to {
            continue;
        }
        queued += to.since(from);
        assert!(grants.iter().any(|g| g.position.tti == burst.start_tti), "{burst:?}");
        let cut = matches!(burst.closed_by, Bound::End | Bound::LogHole);
        assert!(cut || grants.iter().any(|g| g.position.tti == burst.end_tti), "{burst:?}");
    }
    assert_eq!(transfer.throughput_time_ms, Some(queued as f64));
    let demand = queued as f64 / transfer.duration_ms;
    assert_eq!(transfer.link_demand, Some(demand));
    assert_eq!(transfer.verdict, RadioOptions::default().thresholds.judge(demand));
}

#[test]
fn web_like_download_of_a_weak_cell() {
    let Some(inputs) = log("pixelxl_2018_download.mi2log") else { return };
    let (report, grants) = (analysed(&inputs), grants(&inputs));
    let user = |g: &&Grant| g.dir == Direction::Dl && g.rnti == RntiType::C;
    // The log has downlink data for this user in a few hundred subframes of 12.7 s: the queue
    // cannot have been full all the time.
    let mut ttis: Vec<i64> = grants.iter().filter(user).map(|g| g.position.tti.0).collect();
    ttis.dedup();
    assert!((600..=650).contains(&ttis.len()), "{}", ttis.len());
    let bits: u64 =
        grants.iter().filter(user).map(|g| u64::from(g.tbs_bytes.unwrap_or(0)) * 8).sum();
    assert!((5_500_000..6_100_000).contains(&bits), "{bits}");
    assert_eq!(report.n_prb_cell, Some(50));
    assert_eq!(report.cells[0].pci, Some(70));
    let downlink: Vec<_> = report.transfers.iter().filter(|t| t.dir == Direction::Dl).collect();
    assert!(!downlink.is_empty());
    for transfer in downlink {
        consistent(&report, &grants, transfer);
    }
    // It contains bursts of 70 to 150 ms with nearly all PRBs.
    let long = |b: &&Burst| b.dir == Direction::Dl && b.n_tti() >= 50;
    assert!(report.bursts.iter().filter(long).count() >= 2);
    for burst in report.bursts.iter().filter(long) {
        let mut prb: Vec<u16> = grants
            .iter()
            .filter(user)
            .filter(|g| (burst.start_tti..burst.end_tti).contains(&g.position.tti))
            .filter_map(|g| g.n_prb)
            .collect();
        prb.sort_unstable();
        assert!(prb[prb.len() / 2] >= 40, "{burst:?}");
    }
    let answer = diagnose(&inputs, &RadioOptions::default(), &Progress::default()).unwrap();
    assert_eq!(answer.session.verdict, Verdict::NotRadio);
}

#[test]
fn steady_rate_limited_download() {
    let Some(inputs) = log("insightshare_tmobile_nexus6p_20160118_0512.mi2log") else { return };
    let (report, grants) = (analysed(&inputs), grants(&inputs));
    assert_eq!((report.n_prb_cell, report.n_prb_cell_from), (Some(75), Some("inferred")));
    let transfer = report.transfers.iter().find(|t| t.dir == Direction::Dl).unwrap();
    consistent(&report, &grants, transfer);
    // About 0.8 Mbit/s over the whole log, on about 5 % of the PRBs.
    let bps = transfer.bytes.unwrap() as f64 * 8_000.0 / transfer.duration_ms;
    assert!((600_000.0..900_000.0).contains(&bps), "{bps}");
    assert!(report.usage[0].prb_share.unwrap() < 0.07);
    assert_eq!(transfer.verdict, Verdict::NotRadio);
    assert!(report.missing.iter().any(|m| m.what.contains("0xB082")));
}

#[test]
fn an_upload_is_about_the_uplink() {
    let Some(inputs) = log("seoul2021_upload_500KB.mi2log") else { return };
    let report = analysed(&inputs);
    let upload = report.transfers.iter().find(|t| t.dir == Direction::Ul).unwrap();
    // 500 KB of payload, plus headers.
    assert!((500_000..600_000).contains(&upload.bytes.unwrap()), "{:?}", upload.bytes);
    assert!(upload.link_demand.unwrap() > 0.5);
}

#[test]
fn a_log_without_allocations_cannot_tell() {
    let Some(inputs) = log("mi_bler_sample.mi2log") else { return };
    let answer = diagnose(&inputs, &RadioOptions::default(), &Progress::default()).unwrap();
    assert_eq!(answer.session.verdict, Verdict::Unknown);
    assert!(answer.missing[0].what.contains("allocations"));
}
