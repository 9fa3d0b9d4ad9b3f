//! A page load, and its observation at the server.

use std::collections::{HashMap, VecDeque};

use airmile_emulate::net::{IpPacket, Transport};
use airmile_emulate::{
    CapturePoint, LoadedPage, Readers, RunSink, Scenario, SenderPlace, SenderState, run_with,
};

use crate::reproduce::estimate::quantile;
use crate::reproduce::runs::cannot;
use crate::run;
use airmile::Result;

const MS_NS: f64 = 1e6;

/// The page's server: the second application's.
const PAGE_SERVER: u8 = 2;

/// Time that a run continues once all phones have their pages, in ms (as the scenarios set
/// it for the measured one).
const TAIL_MS: u32 = 50;

/// Window for the maximum sending rate, in ns (chosen here: under a round trip, over the
/// range of a scheduler's timer).
const SENT_WINDOW_NS: i64 = 100_000_000;

/// A loaded page.
#[derive(Debug, Clone, Default)]
pub(super) struct Loaded {
    /// From the start to the last object; the whole run's length if unfinished.
    pub(super) page_ms: f64,
    /// Of each of its pages in order, from its start to its last object.
    pub(super) pages_ms: Vec<f64>,
    /// The same for the other phones' pages.
    pub(super) others_ms: Vec<f64>,
    /// Mean round trip of the page's packets at the server.
    pub(super) rtt_ms: f64,
    /// The server's window in kB, by ms since the page's start.
    pub(super) cwnd: Vec<(f64, f64)>,
    /// Shares of the cell's PRBs allocated to the phone, by ms since the page's start.
    pub(super) own_share: Vec<(f64, f64)>,
    /// Share of the cell's PRBs in use in the second before the page.
    pub(super) load_before: f64,
    /// Windows over the smoothed round trip, as rates in bit/s.
    pub(super) rates_bps: Vec<f64>,
    /// Maximum sending rate of the page's server over 100 ms in bit/s, including
    /// retransmissions: payload without the segment that ends them.
    pub(super) sent_bps: f64,
    /// Phones with unfinished pages at the end of the run.
    pub(super) unfinished: u64,
    /// Segments that the page's server sent and retransmitted.
    pub(super) sent: u64,
    pub(super) again: u64,
}

/// Observations during a run.
#[derive(Debug, Default)]
struct LoadMonitor {
    /// Ends of segments in flight, by port, with their send times; `None` if sent twice.
    under_way: HashMap<(u16, u32), Option<i64>>,
    rtts_ms: Vec<f64>,
    cwnd: Vec<(i64, f64)>,
    rates_bps: Vec<f64>,
    sent: u64,
    again: u64,
    /// Data sent within [`SENT_WINDOW_NS`], and the maximum so far.
    recent: VecDeque<(i64, u64)>,
    recent_bytes: u64,
    most_bytes: u64,
    /// For how long all phones have had their pages.
    done_ms: u32,
}

impl LoadMonitor {
    fn count(&mut self, at_ns: i64, bytes: u64) {
        while let Some(&(sent_ns, old)) = self.recent.front()
            && at_ns - sent_ns >= SENT_WINDOW_NS
        {
            self.recent.pop_front();
            self.recent_bytes -= old;
        }
        self.most_bytes = self.most_bytes.max(self.recent_bytes);
        self.recent_bytes += bytes;
        self.recent.push_back((at_ns, bytes));
    }
}

impl RunSink for LoadMonitor {
    fn packet(&mut self, at_ns: i64, point: CapturePoint, packet: &IpPacket) {
        let Transport::Tcp(segment) = &packet.transport else { return };
        if point != CapturePoint::Server {
            return;
        }
        if packet.src.ip().octets()[3] == PAGE_SERVER && packet.dst.ip().is_private() {
            if segment.payload_bytes() > 0 {
                let end = segment.seq.wrapping_add(segment.payload_bytes());
                let twice = self.under_way.contains_key(&(packet.dst.port(), end));
                self.sent += 1;
                self.again += u64::from(twice);
                self.count(at_ns, segment.payload_bytes().into());
                self.under_way.insert((packet.dst.port(), end), (!twice).then_some(at_ns));
            }
        } else if packet.dst.ip().octets()[3] == PAGE_SERVER
            && let Some(Some(since_ns)) = self.under_way.remove(&(packet.src.port(), segment.ack))
        {
            self.rtts_ms.push((at_ns - since_ns) as f64 / MS_NS);
        }
    }

    fn has_enough(&mut self, all_done: bool) -> bool {
        self.done_ms = if all_done { self.done_ms + 1 } else { 0 };
        self.done_ms > TAIL_MS
    }

    fn wants_senders(&self) -> bool {
        true
    }

    fn sender_state(&mut self, state: &SenderState) {
        if state.place == SenderPlace::Server && state.local.ip().octets()[3] == PAGE_SERVER {
            self.cwnd.push((state.at_ns, state.snapshot.cwnd_bytes as f64 / 1e3));
            if let Some(srtt_ns) = state.snapshot.srtt_ns.filter(|ns| *ns > 0) {
                let bits = state.snapshot.cwnd_bytes as f64 * 8.0;
                self.rates_bps.push(bits * 1e9 / srtt_ns as f64);
            }
        }
    }
}

/// Loads a scenario's page.
pub(super) fn load(scenario: &Scenario) -> Result<Loaded> {
    load_with(scenario, &run::reader)
}

/// The same with other readers of the modems' logs.
pub(super) fn load_with(scenario: &Scenario, readers: &Readers<'_>) -> Result<Loaded> {
    let mut watch = LoadMonitor::default();
    let outcome = run_with(scenario, &mut watch, Some(readers)).map_err(cannot)?;
    let longest_ms = f64::from(scenario.duration_ms);
    let mut unfinished = 0;
    let mut loaded = |notes: &[airmile_emulate::AppNote]| {
        let of = |event: &str| notes.iter().find(|n| n.app == "page" && n.event == event);
        let begin_ns = of("page_started").map_or(0, |note| note.at_ns);
        let page_ms = of("page_loaded").and_then(|note| note.value);
        unfinished += u64::from(page_ms.is_none());
        (begin_ns, page_ms.unwrap_or(longest_ms))
    };
    let (begin_ns, page_ms) = loaded(&outcome.notes);
    let others_ms = outcome.others.iter().map(|notes| loaded(notes).1).collect();
    let pages = outcome.pages.iter().filter(|page| scenario.apps[page.app].name == "page");
    let took_ms = |page: &LoadedPage| Some((page.loaded_ns? - page.start_ns) as f64 / MS_NS);
    let pages_ms = pages.filter_map(took_ms).collect();
    let cell_prb = f64::from(scenario.cell.n_prb);
    let ms_of = |tti: i64| ((outcome.epoch_ns - begin_ns) / outcome.slot_ns + tti) as f64;
    let mut own_share: Vec<(f64, f64)> = Vec::new();
    for run in outcome.truth.allocated.iter().filter(|run| run.user == 0 && run.carrier == 0) {
        let is_down = run.dir == airmile_model::Direction::Dl;
        for n in (0..i64::from(run.n_tti)).filter(|_| is_down) {
            let at_ms = ms_of(run.tti.0 + n);
            if (0.0..=page_ms).contains(&at_ms) {
                own_share.push((at_ms, f64::from(run.n_prb) / cell_prb));
            }
        }
    }
    let mut before = 0.0;
    for run in &outcome.truth.cell_use {
        for n in 0..i64::from(run.n_tti) {
            if (-1_000.0..0.0).contains(&ms_of(run.tti.0 + n)) {
                before += f64::from(run.n_prb) / cell_prb / 1_000.0;
            }
        }
    }
    let since = |at_ns: i64| (at_ns - begin_ns) as f64 / MS_NS;
    let rtts = &watch.rtts_ms;
    Ok(Loaded {
        page_ms,
        pages_ms,
        others_ms,
        rtt_ms: rtts.iter().sum::<f64>() / rtts.len() as f64,
        cwnd: watch.cwnd.iter().map(|(at_ns, kb)| (since(*at_ns), *kb)).collect(),
        own_share,
        load_before: before,
        rates_bps: watch.rates_bps,
        sent_bps: watch.most_bytes as f64 * 8e9 / SENT_WINDOW_NS as f64,
        unfinished,
        sent: watch.sent,
        again: watch.again,
    })
}

impl Loaded {
    /// The window in kB at a time in ms since the page's start.
    pub(super) fn cwnd_at(&self, ms: f64) -> f64 {
        self.cwnd.iter().rev().find(|(at, _)| *at <= ms).map_or(f64::NAN, |(_, kb)| *kb)
    }

    /// The maximum rate requested by a window, in bit/s.
    pub(super) fn asked_bps(&self) -> f64 {
        self.rates_bps.iter().copied().fold(0.0, f64::max)
    }

    /// Share in percent of the cell's PRBs allocated to the phone between two times, in ms
    /// since the page's start.
    pub(super) fn share_between(&self, from_ms: f64, to_ms: f64) -> f64 {
        let within = self.own_share.iter().filter(|(at, _)| (from_ms..to_ms).contains(at));
        100.0 * within.map(|(_, share)| share).sum::<f64>() / (to_ms - from_ms).max(1.0)
    }
}

/// The worst of the load times.
pub(super) fn worst(values: &[f64]) -> crate::reproduce::estimate::Estimate {
    quantile(values, 1.0)
}
