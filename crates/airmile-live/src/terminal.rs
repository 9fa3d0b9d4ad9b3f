//! The view on a terminal: the verdict first, then transfers and bursts.

use std::io;
use std::ops::Range;
use std::time::Duration;

use airmile::format_utc;
use airmile::live::{LiveBurst, LiveTransfer, State};
use airmile::model::{Verdict, confidence_percent};
use airmile_host::format::{mbps, size};
use airmile_host::source::SourceState;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table, Wrap};
use ratatui::{DefaultTerminal, Frame};

use crate::engine::Engine;
use crate::snapshot::{Passing, Snapshot};

/// Redraw interval.
const DRAW_EVERY: Duration = Duration::from_millis(250);
/// From this width on, the facts of the log fit in a line (chosen here).
const WIDE: u16 = 100;
/// Maximum number of bursts on a screen.
const SHOWN_BURSTS: usize = 200;

/// Shows the engine until `q`, Esc, Ctrl-C or a signal, or until it refuses its source.
///
/// # Errors
/// The terminal cannot be used.
pub fn run(engine: &Engine, listening: Option<&str>) -> io::Result<()> {
    let mut terminal = ratatui::try_init()?;
    let shown = show(&mut terminal, engine, listening);
    ratatui::try_restore()?;
    shown
}

fn show(
    terminal: &mut DefaultTerminal,
    engine: &Engine,
    listening: Option<&str>,
) -> io::Result<()> {
    let published = engine.published();
    while engine.refusal().is_none() && !engine.is_stopped() {
        let now = published.now();
        terminal.draw(|frame| draw(frame, &now, listening))?;
        if event::poll(DRAW_EVERY)?
            && let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
        {
            let interrupt =
                key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
            if interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) {
                break;
            }
        }
    }
    Ok(())
}

/// Draws the current state.
pub fn draw(frame: &mut Frame<'_>, now: &Snapshot, listening: Option<&str>) {
    let flows = if now.packets.is_some() { Constraint::Percentage(30) } else { Constraint::Max(0) };
    let transfers = if now.packets.is_some() { 25 } else { 45 };
    let areas = Layout::vertical([
        Constraint::Length(if frame.area().width < WIDE { 5 } else { 4 }),
        Constraint::Length(4),
        Constraint::Percentage(transfers),
        flows,
        Constraint::Fill(1),
        Constraint::Length(1),
    ]);
    let [head, verdict, transfers, flows, bursts, foot] = areas.areas(frame.area());
    if let Some(passing) = &now.packets {
        draw_flows(frame, flows, passing);
    }
    draw_head(frame, head, now);
    draw_verdict(frame, verdict, now);
    draw_transfers(frame, transfers, &now.view.transfers);
    draw_bursts(frame, bursts, now);
    let mut keys = vec![" q".bold(), " quits".dim()];
    if let Some(url) = listening {
        keys.push("   page: ".dim());
        keys.push(Span::raw(url.to_owned()));
    }
    frame.render_widget(Line::from(keys), foot);
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, now: &Snapshot) {
    let (state, why) = match &now.source.state {
        SourceState::Waiting(why) => ("waiting".yellow(), why.as_str()),
        SourceState::Connected(what) => ("connected".green(), what.as_str()),
        SourceState::Ended => ("ended".into(), ""),
    };
    let mut source = vec![now.source.name.clone().bold(), " ".into(), state];
    if !why.is_empty() {
        source.push(format!(" ({why})").dim());
    }
    if now.source.gaps > 0 {
        source.push(format!("  away {} times", now.source.gaps).yellow());
    }
    let view = &now.view;
    let intake = &view.intake;
    let clock = intake.last_us.map_or_else(|| "-".to_owned(), |us| time_of_day(us, 1));
    let mut facts =
        vec![format!("log time {clock}"), format!("{} frames", intake.frames), size(intake.bytes)];
    if intake.bad_frames > 0 {
        facts.push(format!("{} bad frames", intake.bad_frames));
    }
    let cell = view.cells.iter().max_by_key(|cell| cell.measurements);
    if let Some(pci) = cell.and_then(|cell| cell.pci) {
        facts.push(format!("PCI {pci}"));
    }
    if let Some(n_prb) = view.n_prb_cell {
        facts.push(format!("{n_prb} PRBs"));
    }
    if let Some(load) = &view.cell_load {
        facts.push(format!("cell load {:.0} %", load.load * 100.0));
    }
    // A fact is not broken.
    let facts: Vec<String> = facts.iter().map(|fact| fact.replace(' ', "\u{a0}")).collect();
    let lines = vec![Line::from(source), Line::from(facts.join("   "))];
    let text = Paragraph::new(lines).wrap(Wrap { trim: true });
    frame.render_widget(text.block(Block::bordered().title(" airmile live ")), area);
}

fn draw_verdict(frame: &mut Frame<'_>, area: Rect, now: &Snapshot) {
    let session = &now.view.session;
    let words = format!("{} ({:.0} % sure)", session.says, confidence_percent(session.confidence));
    let words = if session.verdict == Verdict::Unknown { session.says.clone() } else { words };
    let text = Paragraph::new(words).style(Style::new().fg(colour(session.verdict)).bold());
    let title = format!(" {} transfers ", now.view.transfers.len());
    let block = Block::bordered().title(" So far ").title_bottom(title);
    frame.render_widget(text.wrap(Wrap { trim: true }).block(block), area);
}

/// The hues of the HTML report, in the terminal's own shades.
const fn colour(verdict: Verdict) -> Color {
    match verdict {
        Verdict::Radio | Verdict::RadioContention | Verdict::RadioSignal => Color::Blue,
        Verdict::Mixed => Color::Magenta,
        Verdict::Unknown => Color::Reset,
        _ => Color::Yellow,
    }
}

fn draw_transfers(frame: &mut Frame<'_>, area: Rect, transfers: &[LiveTransfer]) {
    let shown = usize::from(area.height.saturating_sub(3));
    let rows = transfers.iter().rev().take(shown).map(|transfer| {
        let diagnosis = &transfer.diagnosis;
        let m = &diagnosis.finding;
        let verdict = Cell::from(diagnosis.verdict.to_string()).fg(colour(diagnosis.verdict));
        Row::new([
            Cell::from(diagnosis.id.clone()),
            Cell::from(m.start_us.map_or_else(|| "-".to_owned(), |us| time_of_day(us, 1))),
            right(format!("{:.1} s", m.duration_ms / 1e3)),
            right(m.bytes.map_or_else(|| "-".to_owned(), size)),
            right(m.link_demand.map_or_else(|| "-".to_owned(), |d| format!("{:.0} %", d * 100.0))),
            right(m.link_throughput_bps.map_or_else(|| "-".to_owned(), mbps)),
            verdict,
            Cell::from(state_words(transfer.state)),
        ])
    });
    let widths = [8, 11, 9, 10, 7, 9, 10, 10].map(Constraint::Length);
    let header = ["id", "start", "lasts", "bytes", "demand", "link", "verdict", ""];
    let table = Table::new(rows, widths)
        .header(heading(&header, 2..6))
        .block(Block::bordered().title(" Transfers, the last first "));
    frame.render_widget(table, area);
}

fn draw_flows(frame: &mut Frame<'_>, area: Rect, passing: &Passing) {
    let shown = usize::from(area.height.saturating_sub(3));
    let rows = passing.view.flows.iter().take(shown).map(|flow| {
        let rate = |bps: Option<f64>| right(bps.map_or_else(|| "-".to_owned(), mbps));
        Row::new([
            Cell::from(flow.server_name.clone().unwrap_or_else(|| flow.server.clone())),
            Cell::from(flow.application.clone().unwrap_or_else(|| flow.protocol.to_string())),
            right(format!("{:.1} s", flow.duration_ms / 1e3)),
            right(size(flow.dl_bytes)),
            rate(flow.dl_bps),
            rate(flow.ul_bps),
            right(flow.path_rtt_ms().map_or_else(|| "-".to_owned(), |ms| format!("{ms:.0} ms"))),
            right((flow.dl_retx + flow.ul_retx).to_string()),
        ])
    });
    let widths = [24, 8, 9, 9, 11, 11, 8, 6].map(Constraint::Length);
    let header = ["server", "", "lasts", "down", "down now", "up now", "RTT", "again"];
    let (view, interface) = (&passing.view, &passing.interface);
    let mut title = match &interface.state {
        SourceState::Waiting(why) => format!(" {}: waiting ({why}) ", interface.name),
        _ => format!(" {}: flows open: {} ", interface.name, view.flows_open),
    };
    if let Some(bps) = view.bps {
        title += &format!("{} ", mbps(bps));
    }
    for (ms, end) in [(view.rtt_median_ms, "client"), (view.server_rtt_median_ms, "server")] {
        if let Some(ms) = ms {
            title += &format!(" RTT {ms:.0} ms to the {end} ");
        }
    }
    if passing.dropped > 0 {
        title += &format!(" {} packets dropped ", passing.dropped);
    }
    let table = Table::new(rows, widths)
        .header(heading(&header, 2..8))
        .block(Block::bordered().title(title));
    frame.render_widget(table, area);
}

fn draw_bursts(frame: &mut Frame<'_>, area: Rect, now: &Snapshot) {
    let shown = usize::from(area.height.saturating_sub(3));
    let bursts = now.last_bursts(SHOWN_BURSTS);
    let rows = bursts.into_iter().rev().take(shown).map(|live: &LiveBurst| {
        let burst = &live.burst;
        Row::new([
            Cell::from(burst.dir.to_string()),
            Cell::from(live.start_us.map_or_else(|| "-".to_owned(), |us| time_of_day(us, 3))),
            right(format!("{:.0} ms", live.duration_ms)),
            right(size(burst.waited_bytes())),
            right(mbps(live.rate_bps)),
            Cell::from(if live.state == State::Open {
                "goes on".to_owned()
            } else {
                format!("by {}", burst.closed_by)
            }),
            Cell::from(state_words(live.state)),
        ])
    });
    let widths = [4, 13, 10, 10, 9, 14, 10].map(Constraint::Length);
    let header = ["", "start", "lasts", "bytes", "rate", "ended", ""];
    let table = Table::new(rows, widths).header(heading(&header, 2..5)).block(
        Block::bordered()
            .title(" Bursts: data waited at the base station (dl), in the phone (ul) "),
    );
    frame.render_widget(table, area);
}

/// Headings, those of numbers to the right.
fn heading(names: &[&'static str], numbers: Range<usize>) -> Row<'static> {
    let cell = |(i, name): (usize, &&'static str)| match numbers.contains(&i) {
        true => right((*name).to_owned()),
        false => Cell::from(*name),
    };
    Row::new(names.iter().enumerate().map(cell).collect::<Vec<_>>()).dim()
}

fn right(text: String) -> Cell<'static> {
    Cell::from(Line::from(text).right_aligned())
}

const fn state_words(state: State) -> &'static str {
    match state {
        State::Open => "goes on",
        State::Provisional => "ended",
        State::Decided => "decided",
    }
}

/// Time of day in UTC with this many decimals.
#[must_use]
pub fn time_of_day(us: i64, decimals: usize) -> String {
    let text = format_utc(us.saturating_mul(1_000));
    let time = text.split_once(' ').map_or(text.as_str(), |(_, time)| time);
    time.get(..9 + decimals).unwrap_or(time).to_owned()
}
