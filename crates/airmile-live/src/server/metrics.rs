//! Metrics in Prometheus' text format (exposition format 0.0.4).

use airmile::live::State;
use airmile::model::Verdict;
use airmile_host::http::Metrics;
use airmile_host::source::SourceState;

use crate::snapshot::{Passing, Snapshot};

/// All metrics.
pub(super) fn text(now: &Snapshot) -> String {
    let mut out = Metrics::default();
    let connected = matches!(now.source.state, SourceState::Connected(_));
    let view = &now.view;
    out.one("airmile_source_connected", "gauge", "Whether the source is there.", connected.into());
    out.one(
        "airmile_source_gaps_total",
        "counter",
        "Times the source was away.",
        of(now.source.gaps),
    );
    out.one("airmile_input_bytes_total", "counter", "Bytes read.", of(view.intake.bytes));
    out.one(
        "airmile_frames_total",
        "counter",
        "DIAG frames, good and bad.",
        of(view.intake.frames),
    );
    let bad = view.intake.bad_frames;
    out.one("airmile_bad_frames_total", "counter", "DIAG frames with a bad CRC.", of(bad));
    if let Some(us) = view.intake.last_us {
        let help = "Last time of writing by the modem's clock.";
        out.one("airmile_log_time_seconds", "gauge", help, us as f64 / 1e6);
    }
    let t = &now.totals;
    let bursts = [("dl", of(t.dl_bursts)), ("ul", of(t.ul_bursts))];
    out.many("airmile_bursts_total", "counter", "Bursts that ended.", "dir", &bursts);
    let corrected = [("dl", of(t.dl_bursts_corrected)), ("ul", of(t.ul_bursts_corrected))];
    let help = "Ended bursts that later records revoked.";
    out.many("airmile_bursts_corrected_total", "counter", help, "dir", &corrected);
    let seconds = |ns: u64| ns as f64 / 1e9;
    let burst_seconds = [("dl", seconds(t.dl_burst_ns)), ("ul", seconds(t.ul_burst_ns))];
    let help = "Throughput time: time in bursts that ended.";
    out.many("airmile_burst_seconds_total", "counter", help, "dir", &burst_seconds);
    let corrected =
        [("dl", seconds(t.dl_burst_ns_corrected)), ("ul", seconds(t.ul_burst_ns_corrected))];
    let help = "Part of that time that later records revoked.";
    out.many("airmile_burst_seconds_corrected_total", "counter", help, "dir", &corrected);
    let session = &view.session;
    let dir = session.dir.map_or("none", |dir| dir.as_str());
    let verdicts = Verdict::ALL.iter().map(|verdict| {
        (
            format!("dir=\"{dir}\",verdict=\"{}\"", verdict.as_str()),
            f64::from(*verdict == session.verdict),
        )
    });
    let help = "The verdict on the last transfers together: 1 for the current one.";
    out.labelled("airmile_verdict", "gauge", help, verdicts);
    for (name, counts, help) in [
        ("airmile_transfers_total", &t.transfers, "Transfers that ended, by verdict."),
        (
            "airmile_transfers_corrected_total",
            &t.transfers_corrected,
            "Ended transfers that continued or whose verdict changed, by their earlier verdict.",
        ),
    ] {
        let of_verdict = |v: &Verdict| (v.as_str(), of(counts.get(v).copied().unwrap_or(0)));
        let counts: Vec<_> = Verdict::ALL.iter().map(of_verdict).collect();
        out.many(name, "counter", help, "verdict", &counts);
    }
    let open = view.transfers.iter().filter(|t| t.state == State::Open).count();
    out.one("airmile_transfers_open", "gauge", "Transfers in progress.", open as f64);
    if let Some(demand) = view.session.link_demand {
        let help = "Link demand of the last transfers, 0 to 1.";
        out.one("airmile_link_demand_ratio", "gauge", help, demand);
    }
    if let Some(load) = &view.cell_load {
        let help = "Share of the cell's PRBs in use, 0 to 1.";
        out.one("airmile_cell_load_ratio", "gauge", help, load.load);
    }
    let late = view.intake.late_records;
    out.one("airmile_late_records_total", "counter", "Records that arrived too late.", of(late));
    if let Some(passing) = &now.packets {
        packets(&mut out, passing);
    }
    out.into_text()
}

fn packets(out: &mut Metrics, passing: &Passing) {
    let view = &passing.view;
    let connected = matches!(passing.interface.state, SourceState::Connected(_));
    let help = "Whether the interface is there.";
    out.one("airmile_interface_connected", "gauge", help, connected.into());
    let help = "Times the interface was away.";
    out.one("airmile_interface_gaps_total", "counter", help, of(passing.interface.gaps));
    out.one("airmile_packets_total", "counter", "IP packets.", of(view.packets));
    let help = "Bytes of IP packets.";
    out.one("airmile_packet_bytes_total", "counter", help, of(view.ip_bytes));
    let help = "Packets that the kernel dropped because the reader was too slow.";
    out.one("airmile_packets_dropped_total", "counter", help, of(passing.dropped));
    let help = "Unreadable packets.";
    out.one("airmile_packets_unread_total", "counter", help, of(view.unread));
    let help = "Retransmitted TCP segments, both directions.";
    out.one("airmile_retransmissions_total", "counter", help, of(view.retransmissions));
    out.one("airmile_flows_open", "gauge", "Flows that are open.", of(view.flows_open));
    let help = "Flows that are over.";
    out.one("airmile_flows_ended_total", "counter", help, of(view.flows_total));
    let ends = [("client", view.rtt_median_ms), ("server", view.server_rtt_median_ms)];
    let known: Vec<_> =
        ends.iter().filter_map(|(end, ms)| Some((*end, ms.as_ref()? / 1e3))).collect();
    let help = "Median RTT between here and that end in the last 10 s.";
    out.many("airmile_rtt_median_seconds", "gauge", help, "to", &known);
}

const fn of(n: u64) -> f64 {
    n as f64
}
