//! Chooses the flows to draw: those requested, or the most instructive ones.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::str::FromStr;

use airmile_model::flow::{FlowRow, TcpEvent};
use airmile_model::{Direction, Leg, Protocol, TcpEventKind};
use schemars::JsonSchema;
use serde::Serialize;

use airmile_io::error::{Error, Result};

/// Flows drawn of each kind (chosen here: a dozen can be looked through).
const LARGEST: usize = 4;
const OF_A_KIND: usize = 3;
/// Maximum number of requested flows to draw (chosen here: the page grows by at most a
/// megabyte per flow).
const MOST_ASKED: usize = 50;
/// A window limits a flow if it takes this share of its time (chosen here).
const WINDOW_SHARE: f64 = 0.05;
/// Minimum bandwidth windows for figure 22: 2 s of them (chosen here).
const MIN_AVAILABLE_NS: i64 = 2_000_000_000;

/// A flow by its number in the table `flows`, or by its two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowName {
    /// Number of the flow.
    Number(u64),
    /// Both ends, in any order.
    Ends(SocketAddr, SocketAddr),
}

impl FromStr for FlowName {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if let Ok(number) = text.parse() {
            return Ok(Self::Number(number));
        }
        let wrong = || {
            "give a flow's number, or its ends as 10.0.0.1:40000-192.0.2.1:443 \
             (IPv6 in brackets: [2001:db8::1]:443)"
                .to_owned()
        };
        let (a, b) = text.split_once('-').ok_or_else(wrong)?;
        match (a.trim().parse(), b.trim().parse()) {
            (Ok(a), Ok(b)) => Ok(Self::Ends(a, b)),
            _ => Err(wrong()),
        }
    }
}

impl std::fmt::Display for FlowName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Ends(a, b) => write!(f, "{a}-{b}"),
        }
    }
}

impl FlowName {
    fn is(&self, row: &FlowRow) -> bool {
        let end = |address: &str, port: u16| address.parse().map(|a| SocketAddr::new(a, port));
        match self {
            Self::Number(number) => row.flow == *number,
            Self::Ends(a, b) => {
                let client = end(&row.client, row.client_port);
                let server = end(&row.server, row.server_port);
                let ends = client.as_ref().ok().zip(server.as_ref().ok());
                ends.is_some_and(|ends| ends == (a, b) || ends == (b, a))
            }
        }
    }
}

/// Counts of flows with data, and of their events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FlowCounts {
    /// TCP flows with payload.
    pub flows: u64,
    /// Of them, with a retransmission.
    pub with_retransmissions: u64,
    /// Of them, with an undesired slow start.
    pub with_slow_starts: u64,
    /// Of them, limited by the receive window for over 5 % of their time.
    pub window_limited: u64,
}

impl FlowCounts {
    fn add(&mut self, row: &FlowRow) {
        self.flows += 1;
        self.with_retransmissions += u64::from(row.dl_retx + row.ul_retx > 0);
        self.with_slow_starts += u64::from(row.slow_starts > 0);
        self.window_limited += u64::from(window_share(row) > WINDOW_SHARE);
    }

    const fn without(self, other: Self) -> Self {
        Self {
            flows: self.flows.saturating_sub(other.flows),
            with_retransmissions: self
                .with_retransmissions
                .saturating_sub(other.with_retransmissions),
            with_slow_starts: self.with_slow_starts.saturating_sub(other.with_slow_starts),
            window_limited: self.window_limited.saturating_sub(other.window_limited),
        }
    }
}

/// Retransmissions in the drawn direction of a flow.
const fn retx(row: &FlowRow) -> u64 {
    if draws_downlink(row) { row.dl_retx } else { row.ul_retx }
}

/// Draws the direction with the most bytes.
pub(super) const fn draws_downlink(row: &FlowRow) -> bool {
    row.dl_bytes >= row.ul_bytes
}

/// Share of a flow's time in which the client's window limited it.
pub(super) fn window_share(row: &FlowRow) -> f64 {
    row.window_full_ns as f64 / row.duration_ns.max(1) as f64
}

/// The best few of a kind, best first.
#[derive(Debug)]
struct Top {
    most: usize,
    rows: Vec<(f64, FlowRow)>,
}

impl Top {
    const fn new(most: usize) -> Self {
        Self { most, rows: Vec::new() }
    }

    /// Offers a flow with a score; of equals the first stays.
    fn offer(&mut self, score: f64, row: &FlowRow) {
        let worst = self.rows.last().map_or(f64::NEG_INFINITY, |last| last.0);
        if score <= 0.0 || self.rows.len() >= self.most && score <= worst {
            return;
        }
        let at = self.rows.partition_point(|(other, _)| *other >= score);
        self.rows.insert(at, (score, row.clone()));
        self.rows.truncate(self.most);
    }

    fn rows(&self) -> impl Iterator<Item = &FlowRow> {
        self.rows.iter().map(|(_, row)| row)
    }
}

/// A burst of duplicate ACKs for figures 15 and 16.
#[derive(Debug, Clone)]
pub(super) struct DupAckBurst {
    pub(super) event: TcpEvent,
    pub(super) row: Option<FlowRow>,
}

/// Selects flows for the second pass from the rows of the first.
#[derive(Debug)]
pub(super) struct Candidates {
    asked: Vec<FlowName>,
    found: Vec<FlowRow>,
    largest: Top,
    slow_starts: Top,
    retransmissions: Top,
    window: Top,
    available: Top,
    counts: FlowCounts,
    /// Best burst followed by a slow start, and best without one.
    pub(super) bursts: [Option<DupAckBurst>; 2],
}

/// Flows to draw, and why.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) flows: Vec<(FlowRow, Vec<String>)>,
    pub(super) left_out: FlowCounts,
    /// For figure 22.
    pub(super) available: Vec<FlowRow>,
    /// For figure 23.
    pub(super) window: Option<FlowRow>,
}

impl Candidates {
    pub(super) const fn new(asked: Vec<FlowName>) -> Self {
        Self {
            asked,
            found: Vec::new(),
            largest: Top::new(LARGEST),
            slow_starts: Top::new(OF_A_KIND),
            retransmissions: Top::new(OF_A_KIND),
            window: Top::new(OF_A_KIND),
            available: Top::new(2),
            counts: FlowCounts {
                flows: 0,
                with_retransmissions: 0,
                with_slow_starts: 0,
                window_limited: 0,
            },
            bursts: [None, None],
        }
    }

    /// Takes the row of a flow.
    pub(super) fn flow(&mut self, row: &FlowRow) {
        for burst in self.bursts.iter_mut().flatten() {
            if burst.event.flow == row.flow {
                burst.row = Some(row.clone());
            }
        }
        let asked = self.asked.iter().any(|name| name.is(row));
        if asked && self.found.len() < MOST_ASKED {
            self.found.push(row.clone());
        }
        let counts = row.protocol == Protocol::Tcp && row.leg != Some(Leg::Server);
        if !counts || row.dl_bytes + row.ul_bytes == 0 {
            return;
        }
        self.counts.add(row);
        self.largest.offer((row.dl_bytes + row.ul_bytes) as f64, row);
        self.slow_starts.offer(row.slow_starts as f64, row);
        self.retransmissions.offer(retx(row) as f64, row);
        if window_share(row) > WINDOW_SHARE && row.dl_bytes > 0 {
            self.window.offer(row.window_full_ns as f64, row);
        }
        if row.available_bps.is_some() && row.dl_data_ns > MIN_AVAILABLE_NS {
            self.available.offer(row.dl_bytes as f64, row);
        }
    }

    /// Takes a burst of duplicate ACKs that is over.
    pub(super) fn event(&mut self, event: &TcpEvent) {
        let place = match event.event {
            TcpEventKind::SlowStart => 0,
            TcpEventKind::Recovered => 1,
            _ => return,
        };
        // The best burst has traffic in both windows of R_ss.
        let score = |e: &TcpEvent| (e.r_ss.is_some_and(|r| r > 0.0), e.dup_acks.unwrap_or(0));
        let [slow, recovered] = &mut self.bursts;
        let best = if place == 0 { slow } else { recovered };
        if event.dir == Direction::Dl
            && best.as_ref().is_none_or(|best| score(event) > score(&best.event))
        {
            *best = Some(DupAckBurst { event: event.clone(), row: None });
        }
    }

    /// # Errors
    ///
    /// A requested flow is missing, or is no TCP flow.
    pub(super) fn choose(&mut self) -> Result<Chosen> {
        for name in &self.asked {
            let Some(row) = self.found.iter().find(|row| name.is(row)) else {
                let what = format!(
                    "--flow {name}: no such flow; `--out DIR` writes the table `flows`, \
                     which numbers them"
                );
                return Err(Error::Option(what));
            };
            if row.protocol != Protocol::Tcp {
                let what = format!("--flow {name}: is a UDP flow; only TCP has sequence numbers");
                return Err(Error::Option(what));
            }
        }
        let mut flows: Vec<(FlowRow, Vec<String>)> = Vec::new();
        if self.asked.is_empty() {
            let mut add = |row: &FlowRow, why: String| match flows
                .iter_mut()
                .find(|(other, _)| other.flow == row.flow)
            {
                Some((_, reasons)) => reasons.push(why),
                None => flows.push((row.clone(), vec![why])),
            };
            for (at, row) in self.largest.rows().enumerate() {
                add(row, if at == 0 { "the largest".into() } else { "among the largest".into() });
            }
            for row in self.slow_starts.rows() {
                add(row, format!("undesired slow starts: {}", row.slow_starts));
            }
            for row in self.retransmissions.rows() {
                add(row, format!("retransmissions: {}", retx(row)));
            }
            for row in self.window.rows() {
                add(
                    row,
                    format!("receive window full {:.0} % of its time", 100.0 * window_share(row)),
                );
            }
        } else {
            flows = self.found.drain(..).map(|row| (row, vec!["asked for".into()])).collect();
        }
        let mut drawn = FlowCounts::default();
        flows.iter().for_each(|(row, _)| drawn.add(row));
        Ok(Chosen {
            left_out: self.counts.without(drawn),
            available: self.available.rows().cloned().collect(),
            window: self.window.rows().next().cloned(),
            flows,
        })
    }
}

impl Chosen {
    /// Whether a flow is drawn.
    pub(super) fn draws(&self, row: &FlowRow) -> bool {
        self.flows.iter().any(|(drawn, _)| drawn.flow == row.flow)
    }

    /// Numbers of all flows whose packets are needed.
    pub(super) fn traced(&self, bursts: &[Option<DupAckBurst>; 2]) -> Vec<u64> {
        let mut all: BTreeSet<u64> = self.flows.iter().map(|(row, _)| row.flow).collect();
        all.extend(self.available.iter().map(|row| row.flow));
        all.extend(bursts.iter().flatten().map(|burst| burst.event.flow));
        all.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_flows() {
        let ends = |a: &str, b: &str| FlowName::Ends(a.parse().unwrap(), b.parse().unwrap());
        let check = |text: &str, expected: Option<FlowName>| {
            assert_eq!(text.parse::<FlowName>().ok(), expected, "{text}");
        };
        check("17", Some(FlowName::Number(17)));
        check("10.0.0.1:40000-192.0.2.1:443", Some(ends("10.0.0.1:40000", "192.0.2.1:443")));
        check("[2001:db8::1]:443-[::1]:9", Some(ends("[2001:db8::1]:443", "[::1]:9")));
        check("10.0.0.1-192.0.2.1:443", None);
        check("-3", None);
        check("", None);
    }
}
