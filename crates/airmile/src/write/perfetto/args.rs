//! What slices show when they are selected.

use airmile_model::{Grant, TransferFinding};

use crate::analyse::diagnose::TransferDiagnosis;
use airmile_io::perfetto::stream::Args;

/// A transfer, with the verdict of the report.
pub(super) fn transfer_args(answer: &TransferDiagnosis, finding: Option<&TransferFinding>) -> Args {
    let measures = &answer.finding;
    let mut why = answer.evidence.iter().map(|item| item.what.as_str()).collect::<Vec<_>>();
    why.extend(finding.iter().flat_map(|finding| &finding.notes).map(String::as_str));
    Args::default()
        .text("verdict", Some(answer.verdict.as_str()))
        .double("confidence", Some(answer.confidence))
        .text("dir", Some(measures.dir.as_str()))
        .double("link_demand", measures.link_demand)
        .double("duration_ms", Some(measures.duration_ms))
        .double("throughput_time_ms", measures.throughput_time_ms)
        .double("unknown_ms", finding.map(|finding| finding.unknown_ms))
        .int("bytes", measures.bytes)
        .double("link_throughput_bps", measures.link_throughput_bps)
        .double("burst_throughput_bps", measures.burst_throughput_bps)
        .text("evidence", finding.and_then(|finding| finding.evidence).map(|e| e.as_str()))
        .text("why", Some(why.join("; ")))
        .text("next_step", Some(answer.next_step.as_str()))
        .int("start_us", measures.start_us)
        .int("end_us", measures.end_us)
        .int("start_tti", Some(measures.start_tti.0))
        .int("end_tti", Some(measures.end_tti.0))
}

/// A block.
pub(super) fn grant_args(grant: &Grant) -> Args {
    Args::default()
        .int("tti", Some(grant.position.tti.0))
        .int("n_prb", grant.n_prb)
        .int("mcs", grant.mcs)
        .int("tbs_bytes", grant.tbs_bytes)
        .int("layers", grant.layers)
        .int("tb", Some(grant.tb))
        .int("harq_id", grant.harq_id)
        .int("rv", grant.rv)
        .bool("retx", grant.retx)
        .bool("crc_ok", grant.crc_ok)
        .int("padding_bytes", grant.padding_bytes)
}
