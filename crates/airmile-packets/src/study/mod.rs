//! The study as a document: the result of `airmile packets` with the paper's figures and
//! single flows as graphs. It stays small for captures of any size: distributions, cells
//! and merged lines, never single packets of all flows.
//!
//! The captures are read twice. The first pass sums up and chooses the flows for graphs,
//! the second traces those. For input that can be read only once (standard input) the
//! graphs are left out, with a note.

mod bandwidth;
mod choice;
mod density;
mod figures;
mod flow_plot;
mod headline;
mod line;
mod overview;
mod requests;
mod singles;
mod words;

use std::path::PathBuf;

use airmile_model::flow::PacketRow;
use airmile_wire::tcp::{PacketStudy, StudyOptions, StudySummary, Tables, Traced};
use schemars::JsonSchema;
use serde::Serialize;

use super::{PacketOptions, PacketReport, Rows, study_captures};
use airmile_io::capture::{CaptureReading, Captures, read_captures};
use airmile_io::error::Result;
use airmile_io::input::Progress;

pub use bandwidth::BandwidthTimeline;
pub use choice::{FlowCounts, FlowName};
pub use density::Density;
pub use figures::{Cumulative, Curve, Figure, PaperPoint, Plot};
pub use flow_plot::{AckLine, DataRuns, EventLine, FlowFacts, FlowPlot, RangeLine};
pub use headline::{Finding, Headline};
pub use requests::{Requests, Transfer};
pub use words::count;

use bandwidth::TimelineBuilder;
use choice::{Candidates, Chosen, DupAckBurst};
use density::DensityBuilder;
use flow_plot::FlowPlotBuilder;
pub(super) use headline::headline;
pub(super) use overview::Overview;
use requests::RequestsBuilder;
use singles::Singles;

pub(super) use figures::more_curves;

/// The part around a burst of duplicate ACKs for figures 15 and 16. The paper's span 1.5
/// s and more (chosen here).
const BEFORE_NS: i64 = 1_000_000_000;
const BEHIND_NS: i64 = 700_000_000;

/// A study with figures and flows.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Study {
    /// Notable results, and next steps.
    pub headline: Headline,
    /// The result of `airmile packets`.
    pub packets: PacketReport,
    /// The paper's figures 2, 3, 5 to 8, 10, 13 to 16 and 21 to 24.
    pub figures: Vec<Figure>,
    /// Flows as graphs.
    pub flows: Vec<FlowPlot>,
    /// Flows with data that are not among them.
    pub left_out: FlowCounts,
    /// Why there are no flows; null if there are.
    pub flows_missing: Option<String>,
}

/// Studies captures as [`packets`](super::packets), for a page: with figures and graphs
/// of flows, `asked` or, if that is empty, the most instructive ones.
///
/// # Errors
///
/// As [`packets`](super::packets); or a requested flow is missing.
pub fn study<'a>(
    captures: impl Into<Captures<'a>>,
    options: &PacketOptions,
    asked: &[FlowName],
    progress: &Progress,
) -> Result<(Study, Vec<(PathBuf, u64)>)> {
    let captures = captures.into();
    let mut rows = Rows::create(options, &captures)?;
    let mut first = FirstPass::new(asked, rows.wanted());
    let study = StudyOptions { tables: first.tables(), ..options.study.clone() };
    let (once, files) = (captures.read_once(), captures.files());
    let reading = CaptureReading { captures, limits: options.limits };
    let mut each = |row: PacketRow| {
        first.row(&row);
        rows.push(&row);
    };
    let (mut report, summary) =
        study_captures(reading, study, options.threads, progress, &mut each)?;
    let written = rows.finish()?;
    let chosen = first.candidates.choose()?;
    let bursts = &first.candidates.bursts;
    let mut second = SecondPass::new(&chosen, bursts, &summary);
    let flows_missing = if second.is_empty() {
        Some("The capture has no TCP flow with payload.".to_owned())
    } else if let Some(name) = once {
        second = SecondPass::default();
        Some(format!(
            "Graphs of flows take a second look at the capture, and {name} can be read only once: \
             save it to a file."
        ))
    } else {
        let traced = Traced::Flows(chosen.traced(bursts));
        let reading = CaptureReading { captures: (&files).into(), limits: options.limits };
        second.read(reading, StudyOptions { traced, ..options.study.clone() }, progress)?;
        None
    };
    let mut figures = figures::distributions(&summary, &report.summary);
    let singles = Singles {
        all: &report.summary,
        density: first.density.finish(),
        bursts,
        excerpts: second.excerpts.map(|graph| graph.map(FlowPlotBuilder::finish)),
        timelines: second.timelines.into_iter().map(TimelineBuilder::finish).collect(),
        window: chosen.window.as_ref().map(|row| (row, chosen.draws(row))),
        requests: second.requests.map(RequestsBuilder::finish),
        flows_missing: flows_missing.as_deref(),
    };
    figures.extend(singles.figures());
    figures.sort_by_key(|figure| figure.number);
    let is_at_phone = report.headline.as_ref().is_some_and(|headline| headline.at_phone.is_some());
    figures.iter_mut().filter(|_| is_at_phone).for_each(Figure::hide_sender);
    // The page has it elsewhere.
    report.headline = None;
    let study = Study {
        headline: headline(&summary, &first.overview, &report),
        figures,
        flows: second.flows.into_iter().map(FlowPlotBuilder::finish).collect(),
        left_out: chosen.left_out,
        flows_missing,
        packets: report,
    };
    Ok((study, written))
}

/// State of the first pass over the captures.
struct FirstPass {
    wanted: Tables,
    candidates: Candidates,
    overview: Overview,
    density: DensityBuilder,
}

impl FirstPass {
    fn new(asked: &[FlowName], wanted: Tables) -> Self {
        Self {
            wanted,
            candidates: Candidates::new(asked.to_vec()),
            overview: Overview::default(),
            density: DensityBuilder::default(),
        }
    }

    const fn tables(&self) -> Tables {
        Tables { flows: true, tcp_events: true, rtt_samples: true, ..self.wanted }
    }

    fn row(&mut self, row: &PacketRow) {
        match row {
            PacketRow::Flow(row) => {
                self.candidates.flow(row);
                self.overview.flow(row);
            }
            PacketRow::Tcp(row) => self.candidates.event(row),
            PacketRow::Rtt(row) => self.density.push(row),
            _ => {}
        }
    }
}

/// State of the chosen flows.
#[derive(Default)]
struct SecondPass {
    flows: Vec<FlowPlotBuilder>,
    /// Figures 16 and 15.
    excerpts: [Option<FlowPlotBuilder>; 2],
    timelines: Vec<TimelineBuilder>,
    requests: Option<RequestsBuilder>,
}

impl SecondPass {
    fn new(chosen: &Chosen, bursts: &[Option<DupAckBurst>; 2], summary: &StudySummary) -> Self {
        let whole = |(row, why): &(_, Vec<String>)| FlowPlotBuilder::whole(row, why.clone());
        let excerpt = |burst: &Option<DupAckBurst>| {
            let burst = burst.as_ref()?;
            let last = burst.event.time_ns;
            let span = (last - BEFORE_NS, last + BEHIND_NS);
            let dup_acks = burst.event.dup_acks.unwrap_or_default();
            let why = format!("a burst of {dup_acks} duplicate ACKs");
            Some(FlowPlotBuilder::excerpt(burst.row.as_ref()?, why, span))
        };
        Self {
            flows: chosen.flows.iter().map(whole).collect(),
            excerpts: [excerpt(&bursts[0]), excerpt(&bursts[1])],
            timelines: chosen.available.iter().map(TimelineBuilder::new).collect(),
            requests: RequestsBuilder::of(&summary.periodic),
        }
    }

    fn is_empty(&self) -> bool {
        self.flows.is_empty() && self.requests.is_none()
    }

    fn read(
        &mut self,
        reading: CaptureReading<'_>,
        options: StudyOptions,
        progress: &Progress,
    ) -> Result<()> {
        let tables =
            Tables { rtt_samples: true, tcp_events: true, bandwidth_samples: true, ..Tables::NONE };
        let mut study = PacketStudy::new(StudyOptions { tables, ..options });
        read_captures(reading, progress, &mut |packet| {
            study.push(packet);
            self.take(&mut study);
            if let Some(requests) = &mut self.requests {
                requests.packet(packet);
            }
        })?;
        let _ = study.finish_with(&mut |row| self.row(&row));
        Ok(())
    }

    fn take(&mut self, study: &mut PacketStudy) {
        while let Some(packet) = study.poll_trace() {
            self.graphs(packet.flow).for_each(|graph| graph.packet(&packet));
            let timelines = self.timelines.iter_mut().filter(|t| t.flow() == packet.flow);
            timelines.for_each(|timeline| timeline.packet(&packet));
        }
        while let Some(row) = study.poll() {
            self.row(&row);
        }
    }

    fn graphs(&mut self, flow: u64) -> impl Iterator<Item = &mut FlowPlotBuilder> {
        let excerpts = self.excerpts.iter_mut().flatten();
        self.flows.iter_mut().chain(excerpts).filter(move |graph| graph.flow() == flow)
    }

    fn row(&mut self, row: &PacketRow) {
        match row {
            PacketRow::Rtt(row) => self.graphs(row.flow).for_each(|graph| graph.rtt(row)),
            PacketRow::Tcp(row) => self.graphs(row.flow).for_each(|graph| graph.finding(row)),
            PacketRow::Bandwidth(row) => {
                let timelines = self.timelines.iter_mut().filter(|t| Some(t.flow()) == row.flow);
                timelines.for_each(|timeline| timeline.sample(row));
            }
            _ => {}
        }
    }
}
