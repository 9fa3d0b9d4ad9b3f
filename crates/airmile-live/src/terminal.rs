//! The view on a terminal: the verdict first, then transfers and bursts.

use std::io;
use std::time::Duration;

use airmile::Zone;
use airmile::live::{LiveBurst, LiveTransfer, State};
use airmile::model::{Verdict, confidence_percent};
use airmile_host::format::{mbps, size, unbroken};
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
pub fn run(engine: &Engine, listening: Option<&str>, zone: Zone) -> io::Result<()> {
    let mut terminal = ratatui::try_init()?;
    let shown = show(&mut terminal, engine, listening, zone);
    ratatui::try_restore()?;
    shown
}

fn show(
    terminal: &mut DefaultTerminal,
    engine: &Engine,
    listening: Option<&str>,
    zone: Zone,
) -> io::Result<()> {
    let published = engine.published();
    while engine.refusal().is_none() && !engine.is_stopped() {
        let now = published.now();
        terminal.draw(|frame| draw(frame, &now, listening, zone))?;
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
pub fn draw(frame: &mut Frame<'_>, now: &Snapshot, listening: Option<&str>, zone: Zone) {
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
    draw_head(frame, head, now, zone);
    draw_verdict(frame, verdict, now);
    draw_transfers(frame, transfers, &now.view.transfers, zone);
    draw_bursts(frame, bursts, now, zone);
    let mut keys = vec![" q".bold(), " quits".dim()];
    if let Some(url) = listening {
        keys.push("   page: ".dim());
        keys.push(Span::raw(url.to_owned()));
    }
    frame.render_widget(Line::from(keys), foot);
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, now: &Snapshot, zone: Zone) {
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
    let clock = intake.last_us.map_or_else(
        || "-".to_owned(),
        |us| format!("{} {}", date_and_time(zone, us, 1), zone.name_at(us)),
    );
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
    let text =
        Paragraph::new(unbroken(&words)).style(Style::new().fg(colour(session.verdict)).bold());
    let n = now.view.transfers.len();
    let title = format!(" {n} transfer{} ", if n == 1 { "" } else { "s" });
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

fn draw_transfers(frame: &mut Frame<'_>, area: Rect, transfers: &[LiveTransfer], zone: Zone) {
    let shown = usize::from(area.height.saturating_sub(3));
    let mut columns = [
        ViewColumn::text("id"),
        ViewColumn::text("start"),
        ViewColumn::number("lasts"),
        ViewColumn::number("bytes"),
        ViewColumn::number("demand"),
        ViewColumn::number("link"),
        ViewColumn::text("verdict"),
        ViewColumn::text("state"),
    ];
    for transfer in transfers.iter().rev().take(shown) {
        let diagnosis = &transfer.diagnosis;
        let m = &diagnosis.finding;
        let cells = [
            diagnosis.id.clone(),
            m.start_us.map_or_else(|| "-".to_owned(), |us| time_of_day(zone, us, 1)),
            format!("{:.1} s", m.duration_ms / 1e3),
            m.bytes.map_or_else(|| "-".to_owned(), size),
            m.link_demand.map_or_else(|| "-".to_owned(), |d| format!("{:.0} %", d * 100.0)),
            m.link_throughput_bps.map_or_else(|| "-".to_owned(), mbps),
            diagnosis.verdict.to_string(),
            state_words(transfer.state).to_owned(),
        ];
        add_row(&mut columns, cells, [(VERDICT, colour(diagnosis.verdict))]);
    }
    let title = " Transfers, the last first ".to_owned();
    draw_table(frame, area, title, columns, &["lasts", "state", "start", "bytes"]);
}

fn draw_flows(frame: &mut Frame<'_>, area: Rect, passing: &Passing) {
    let shown = usize::from(area.height.saturating_sub(3));
    let mut columns = [
        ViewColumn::text("server"),
        ViewColumn::text("by"),
        ViewColumn::number("lasts"),
        ViewColumn::number("down"),
        ViewColumn::number("down now"),
        ViewColumn::number("up now"),
        ViewColumn::number("RTT"),
        ViewColumn::number("again"),
    ];
    for flow in passing.view.flows.iter().take(shown) {
        let rate = |bps: Option<f64>| bps.map_or_else(|| "-".to_owned(), mbps);
        let cells = [
            flow.server_name.clone().unwrap_or_else(|| flow.server.clone()),
            flow.application.clone().unwrap_or_else(|| flow.protocol.to_string()),
            format!("{:.1} s", flow.duration_ms / 1e3),
            size(flow.dl_bytes),
            rate(flow.dl_bps),
            rate(flow.ul_bps),
            flow.path_rtt_ms().map_or_else(|| "-".to_owned(), |ms| format!("{ms:.0} ms")),
            (flow.dl_retx + flow.ul_retx).to_string(),
        ];
        add_row(&mut columns, cells, []);
    }
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
    draw_table(frame, area, title, columns, &["lasts", "by", "again", "down"]);
}

fn draw_bursts(frame: &mut Frame<'_>, area: Rect, now: &Snapshot, zone: Zone) {
    let shown = usize::from(area.height.saturating_sub(3));
    let bursts = now.last_bursts(SHOWN_BURSTS);
    let mut columns = [
        ViewColumn::text("dir"),
        ViewColumn::text("start"),
        ViewColumn::number("lasts"),
        ViewColumn::number("bytes"),
        ViewColumn::number("rate"),
        ViewColumn::text("ended"),
        ViewColumn::text("state"),
    ];
    for live in bursts.into_iter().rev().take(shown) {
        let burst: &LiveBurst = live;
        let ended = match live.state {
            State::Open => "goes on".to_owned(),
            _ => format!("by {}", burst.burst.closed_by),
        };
        let cells = [
            burst.burst.dir.to_string(),
            live.start_us.map_or_else(|| "-".to_owned(), |us| time_of_day(zone, us, 3)),
            format!("{:.0} ms", live.duration_ms),
            size(burst.burst.bytes),
            mbps(live.rate_bps),
            ended,
            state_words(live.state).to_owned(),
        ];
        add_row(&mut columns, cells, []);
    }
    let title = " Bursts: data waited at the base station (dl), in the phone (ul) ".to_owned();
    draw_table(frame, area, title, columns, &["state", "ended", "start"]);
}

/// A column, as wide as its content.
struct ViewColumn {
    name: &'static str,
    is_number: bool,
    cells: Vec<(String, Color)>,
}

/// Minimum width of a text of which the end is cut (chosen here: a server's own name).
const LEAST_TEXT: usize = 12;

impl ViewColumn {
    const fn text(name: &'static str) -> Self {
        Self { name, is_number: false, cells: Vec::new() }
    }

    const fn number(name: &'static str) -> Self {
        Self { name, is_number: true, cells: Vec::new() }
    }

    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|(text, _)| text.chars().count());
        cells.chain([self.name.len()]).max().unwrap_or(0)
    }

    fn cell(&self, text: String, colour: Color) -> Cell<'static> {
        let line = Line::from(text);
        let line = if self.is_number { line.right_aligned() } else { line };
        Cell::from(line).fg(colour)
    }
}

/// Index of the verdict among the columns of transfers.
const VERDICT: usize = 6;

/// Adds a row; cells are coloured by their index.
fn add_row<const N: usize, const M: usize>(
    columns: &mut [ViewColumn; N],
    cells: [String; N],
    coloured: [(usize, Color); M],
) {
    for (at, (column, cell)) in columns.iter_mut().zip(cells).enumerate() {
        let colour = coloured.iter().find(|(index, _)| *index == at);
        column.cells.push((cell, colour.map_or(Color::Reset, |(_, colour)| *colour)));
    }
}

/// Draws a table of which no number is cut: columns that `may_go`, the least useful first, are left
/// out where the terminal is too narrow, and the title names them.
fn draw_table<const N: usize>(
    frame: &mut Frame<'_>,
    area: Rect,
    mut title: String,
    columns: [ViewColumn; N],
    may_go: &[&str],
) {
    let mut columns = Vec::from(columns);
    let inner = usize::from(area.width.saturating_sub(2));
    let over = |columns: &[ViewColumn]| {
        let total: usize = columns.iter().map(|column| column.width() + 1).sum();
        total.saturating_sub(inner + 1)
    };
    let mut left_out = Vec::new();
    for name in may_go {
        if over(&columns) > 0 {
            columns.retain(|column| column.name != *name);
            left_out.push(*name);
        }
    }
    if !left_out.is_empty() {
        title.push_str(&format!("(without {}) ", left_out.join(", ")));
    }
    let mut widths: Vec<usize> = columns.iter().map(ViewColumn::width).collect();
    let over = over(&columns);
    if let Some(first) = widths.first_mut().filter(|_| over > 0) {
        *first = first.saturating_sub(over).max(LEAST_TEXT.min(*first));
    }
    let header = columns.iter().map(|column| column.cell(column.name.to_owned(), Color::Reset));
    let header = Row::new(header.collect::<Vec<_>>()).dim();
    let n = columns.iter().map(|column| column.cells.len()).max().unwrap_or(0);
    let rows = (0..n).map(|at| {
        let cells = columns.iter().filter_map(|column| {
            let (text, colour) = column.cells.get(at)?;
            Some(column.cell(text.clone(), *colour))
        });
        Row::new(cells.collect::<Vec<_>>())
    });
    let widths =
        widths.iter().map(|width| Constraint::Length(u16::try_from(*width).unwrap_or(u16::MAX)));
    let table = Table::new(rows, widths).header(header).block(Block::bordered().title(title));
    frame.render_widget(table, area);
}

const fn state_words(state: State) -> &'static str {
    match state {
        State::Open => "goes on",
        State::Provisional => "ended",
        State::Decided => "decided",
    }
}

/// Date.
#[must_use]
pub fn date(zone: Zone, us: i64) -> String {
    date_and_time(zone, us, 0).split(' ').next().unwrap_or_default().to_owned()
}

/// Date and time of day with this many decimals.
fn date_and_time(zone: Zone, us: i64, decimals: usize) -> String {
    let text = zone.show(us);
    // "YYYY-MM-DD HH:MM:SS."
    text.get(..20 + decimals).unwrap_or(&text).to_owned()
}

/// Time of day with this many decimals.
#[must_use]
pub fn time_of_day(zone: Zone, us: i64, decimals: usize) -> String {
    let text = date_and_time(zone, us, decimals);
    text.split_once(' ').map_or(text.clone(), |(_, time)| time.to_owned())
}
