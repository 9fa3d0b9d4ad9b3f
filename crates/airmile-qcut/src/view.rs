//! A running instance as a view on a terminal.

use std::io;
use std::net::SocketAddr;

use airmile_host::format::{mbps, size};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Stylize;
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Gauge, Paragraph, Row, Table, Wrap};
use ratatui::{DefaultTerminal, Frame};

use crate::status::GateStatus;
use crate::watch::{EVERY, ask};

/// Shows an instance until `q`, Esc or Ctrl-C, or until it ends.
///
/// # Errors
/// The terminal cannot be used, or the instance cannot be reached.
pub fn run(address: SocketAddr, token: Option<&str>) -> io::Result<()> {
    let first = ask(address, token)?;
    let mut terminal = ratatui::try_init()?;
    let shown = show(&mut terminal, first, &|| ask(address, token));
    ratatui::try_restore()?;
    shown
}

fn show(
    terminal: &mut DefaultTerminal,
    mut now: GateStatus,
    ask: &dyn Fn() -> io::Result<GateStatus>,
) -> io::Result<()> {
    loop {
        terminal.draw(|frame| draw(frame, &now))?;
        if event::poll(EVERY)?
            && let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
        {
            let interrupt =
                key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
            if interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) {
                return Ok(());
            }
        }
        now = ask()?;
    }
}

/// Draws a status.
pub fn draw(frame: &mut Frame<'_>, now: &GateStatus) {
    let areas = Layout::vertical([
        Constraint::Length(3),
        Constraint::Length(4),
        Constraint::Length(3),
        Constraint::Length(6),
        Constraint::Fill(1),
        Constraint::Length(1),
    ]);
    let [head, figures, gauge, classes, warnings, foot] = areas.areas(frame.area());
    let source = now.modem.as_ref().map_or_else(
        || "round trips, no modem's log".to_owned(),
        |modem| format!("{} {}, {} reports", modem.source, modem.state, modem.reports),
    );
    let words = format!("{} by {}: {source}", now.interface, now.deploy);
    let title = Block::bordered().title(" airmile qcut ");
    frame.render_widget(Paragraph::new(words).block(title), head);
    draw_figures(frame, figures, now);
    let ratio = now.occupancy_bytes as f64 / now.limit_bytes.max(1) as f64;
    let label = format!("{} of {}", size(now.occupancy_bytes), size(now.limit_bytes));
    let held = Block::bordered().title(" Modem buffer ");
    frame.render_widget(Gauge::default().ratio(ratio.min(1.0)).label(label).block(held), gauge);
    draw_classes(frame, classes, now);
    let lines: Vec<Line<'_>> =
        now.warnings.iter().map(|warning| Line::from(warning.as_str()).yellow()).collect();
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: true }), warnings);
    frame.render_widget(Line::from(vec![" q".bold(), " quits".dim()]), foot);
}

fn draw_figures(frame: &mut Frame<'_>, area: Rect, now: &GateStatus) {
    let ms = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1} ms"));
    let set = now.set_rate_bps.map_or_else(String::new, |bps| {
        format!(", shaper at {} ({} changes)", mbps(bps as f64), now.rate_changes)
    });
    let cpu = 100.0 * now.cpu_s / now.uptime_s.max(1e-3);
    let lines = vec![
        Line::from(format!(
            "rate {}{set}   RTT_F {} (least {})",
            mbps(now.rate_bps as f64),
            ms(now.rtt_f_ms),
            ms(now.least_rtt_f_ms),
        )),
        Line::from(format!(
            "limit {}   probes {}   silences {}   up {:.0} s   CPU {cpu:.1} %",
            now.limit, now.probes, now.silences, now.uptime_s
        )),
    ];
    frame.render_widget(Paragraph::new(lines).block(Block::bordered()), area);
}

fn draw_classes(frame: &mut Frame<'_>, area: Rect, now: &GateStatus) {
    let right = |text: String| Cell::from(Line::from(text).right_aligned());
    let rows = now.classes.iter().map(|class| {
        Row::new([
            Cell::from(class.class.clone()),
            right(class.held_packets.to_string()),
            right(size(class.held_bytes)),
            right(class.sent_packets.to_string()),
            right(size(class.sent_bytes)),
            right(class.dropped_aqm.to_string()),
            right(class.dropped_full.to_string()),
        ])
    });
    let widths = [12, 8, 9, 10, 9, 9, 9].map(Constraint::Length);
    let names = ["class", "held", "", "sent", "", "by CoDel", "for room"];
    let header = names.map(|name| right(name.to_owned()));
    let table = Table::new(rows, widths).header(Row::new(header).dim()).block(Block::bordered());
    frame.render_widget(table, area);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::tests::status;

    #[test]
    fn a_view() {
        let backend = ratatui::backend::TestBackend::new(80, 24);
        let mut terminal = ratatui::Terminal::new(backend).unwrap();
        terminal.draw(|frame| draw(frame, &status())).unwrap();
        let shown = terminal.backend().to_string();
        for words in ["12 kB of 30 kB", "normal", "nobody answers", "58.4 ms"] {
            assert!(shown.contains(words), "{words} in\n{shown}");
        }
    }
}
