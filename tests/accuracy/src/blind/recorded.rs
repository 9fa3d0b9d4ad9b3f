//! Rows of transfers over the kernel's TCP: features from captures of our own hosts, and
//! what limited them by design (`tests/accuracy/data/kernel_rows.csv`).
//!
//! Kernel TCP (Cubic, BBR, Reno) and QUIC between two network namespaces over a path and a
//! cell that are not the emulator's. The label is the queue at the cell, otherwise the
//! injected cause if it cost 10 % or more of the time.

use airmile_blind::{FeatureValues, Features, N_FEATURES, Suspect, TransportKind};
use airmile_wire::attribute::CaptureSite;
use anyhow::{Context, bail};

use super::rows::{Row, View};

const TABLE: &str = include_str!("../../data/kernel_rows.csv");
/// Weight of a row relative to one of the emulator, which are four times as many (chosen
/// here).
const WEIGHT: f64 = 4.0;
/// Name of this family.
pub const FAMILY: &str = "kernel";

/// The rows of the table.
pub fn rows() -> anyhow::Result<Vec<Row>> {
    TABLE.lines().skip(1).enumerate().map(|(n, line)| row(n as u64, line)).collect()
}

fn row(number: u64, line: &str) -> anyhow::Result<Row> {
    let cells: Vec<&str> = line.split(',').collect();
    let [view, place, carrier, base, ns, bytes, truth, values @ ..] = cells.as_slice() else {
        bail!("row {number}: too few columns");
    };
    let fails = || format!("row {number}");
    let view = match *view {
        "phone" => View::Phone,
        "late" => View::Late,
        "server" => View::Server,
        other => bail!("row {number}: view {other}"),
    };
    let place = match *place {
        "Phone" => CaptureSite::Phone,
        "Server" => CaptureSite::Server,
        "Between" => CaptureSite::Between,
        _ => CaptureSite::default(),
    };
    let carrier = match *carrier {
        "Stamped" => TransportKind::Stamped,
        "Plain" => TransportKind::Plain,
        "Datagrams" => TransportKind::Datagrams,
        other => bail!("row {number}: carrier {other}"),
    };
    let truth = Suspect::ALL.into_iter().find(|one| one.as_str() == *truth).with_context(fails)?;
    if values.len() != N_FEATURES {
        bail!("row {number}: {} numbers", values.len());
    }
    let base_rtt_ns: i64 = base.parse().with_context(fails)?;
    let values = FeatureValues(std::array::from_fn(|at| values[at].parse().unwrap_or(f64::NAN)));
    let features = Features {
        values,
        transport: carrier,
        place,
        one_way: false,
        damaged: false,
        begun_before: false,
        is_quic: true,
        uploads: values.show_upload(),
        // Not recorded.
        line_loses: true,
        paused_before: true,
        base_rtt_ns: (base_rtt_ns >= 0).then_some(base_rtt_ns),
        ns: ns.parse().with_context(fails)?,
        bytes: bytes.parse().with_context(fails)?,
        queue_ms: None,
        is_served_evenly: false,
        rate: 0.0,
        path_queue: None,
        loses_on_path: false,
        behind_proxy: false,
    };
    Ok(Row {
        family: FAMILY,
        seed: number,
        view,
        features,
        each: vec![(features.ns, Some(features))],
        truth,
        demand: 0.0,
        cost: 0.0,
        weight: WEIGHT,
    })
}
