//! BurstTracker, figures 7 and 8: what the server lets go at once arrives
//! slowly, where a middlebox restarts.

use std::collections::BTreeMap;

use airmile_emulate::net::{Packet, Transport};
use airmile_emulate::{AppNote, CapturePoint, Scenario, Sink, run_into};

use super::estimate::quantile;
use super::runs::{cannot, for_each, read};
use super::{Experiment, Row, Size};
use crate::error::Result;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "bursttracker-fig7",
    source: "BurstTracker, MobiCom 2019, figures 7 and 8",
    what: "a segment's release by the server against its delivery by the radio",
    run: run_all,
};

const SCENARIO: &str = include_str!("../../../experiments/fig7-release.toml");

/// When data for the phone passes the server and the phone.
#[derive(Default)]
struct Passing {
    server_ns: Vec<i64>,
    phone_ns: Vec<i64>,
}

impl Sink for Passing {
    fn packet(&mut self, at_ns: i64, point: CapturePoint, packet: &Packet) {
        let Transport::Tcp(segment) = &packet.transport else { return };
        if !packet.dst.ip().is_private() || segment.payload_bytes() == 0 {
            return;
        }
        match point {
            CapturePoint::Server => self.server_ns.push(at_ns),
            CapturePoint::Phone => self.phone_ns.push(at_ns),
            CapturePoint::ProxyRan | CapturePoint::ProxyCore => {}
        }
    }
}

/// Begin and end of each transfer as the application noted them.
fn spans(notes: &[AppNote]) -> Vec<(i64, i64)> {
    let mut begun = BTreeMap::new();
    let mut spans = Vec::new();
    for note in notes {
        let Some(id) = &note.id else { continue };
        match note.event {
            "request" => _ = begun.insert(id, note.at_ns),
            "end" => spans.extend(begun.remove(id).map(|from| (from, note.at_ns))),
            _ => {}
        }
    }
    spans.sort_unstable();
    spans
}

/// First to last within a span, in ms.
fn width_ms(times: &[i64], (from, to): (i64, i64)) -> f64 {
    let within = || times.iter().filter(|t| (from..=to).contains(*t));
    match (within().min(), within().max()) {
        (Some(first), Some(last)) => (last - first) as f64 / 1e6,
        _ => f64::NAN,
    }
}

/// Release and delivery in ms of each segment but the first, whose windows are
/// new on both sides.
fn widths(scenario: &Scenario) -> Result<Vec<(f64, f64)>> {
    let mut passing = Passing::default();
    let outcome = run_into(scenario, &mut passing).map_err(cannot)?;
    let spans = spans(&outcome.notes);
    let widths = spans.iter().skip(1);
    let width = |span: &(i64, i64)| {
        (width_ms(&passing.server_ns, *span), width_ms(&passing.phone_ns, *span))
    };
    Ok(widths.map(width).collect())
}

fn run_all(size: Size) -> Result<Vec<Row>> {
    let restarting = read(SCENARIO)?;
    // The scenario's own cause, taken out.
    let mut scenarios = Vec::new();
    for seed in 0..size.of(1, 4, 20) {
        let mut with = restarting.clone();
        with.seed = 47_000 + seed;
        let without = with.without(0).map_err(cannot)?;
        scenarios.extend([with, without]);
    }
    let found = for_each(&scenarios, widths)?;
    let of = |which: usize, side: fn(&(f64, f64)) -> f64| {
        let segments = found.iter().skip(which).step_by(2).flatten();
        quantile(&segments.map(side).collect::<Vec<_>>(), 0.5)
    };
    const SEGMENT: &str = "the paper shows one segment; size and round trip are chosen to give a \
                           segment of its order, and are not its own";
    const WITHOUT: &str = "figure 8b: on another port the throughput does not begin again";
    Ok(vec![
        Row::new("release by the server, median of segments", "ms", of(0, |w| w.0))
            .paper(25.0)
            .note(SEGMENT),
        Row::new("delivery to the phone, the middlebox restarts", "ms", of(0, |w| w.1))
            .paper(700.0)
            .note(SEGMENT),
        Row::new("delivery to the phone, no restart", "ms", of(1, |w| w.1)).note(WITHOUT),
    ])
}
