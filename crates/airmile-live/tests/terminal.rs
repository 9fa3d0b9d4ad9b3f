//! The view on a terminal, as text.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test may")]

mod common;

use airmile::RadioOptions;
use airmile_live::engine::Engine;
use airmile_live::source::Source;
use airmile_live::terminal::draw;
use common::{append, sample, taken, wait_until};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

#[test]
fn the_verdict_comes_first_and_nothing_is_cut() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let bytes = sample("sample-download");
    append(&path, &bytes);
    let engine = Engine::start(&Source::Follow(path), RadioOptions::default(), None).unwrap();
    let published = engine.published();
    wait_until("the log is read", || taken(&published.now()) == bytes.len() as u64);
    let mut terminal = Terminal::new(TestBackend::new(100, 36)).unwrap();
    let now = published.now();
    terminal.draw(|frame| draw(frame, &now, Some("http://127.0.0.1:8787/"))).unwrap();
    let text = terminal.backend().to_string();
    println!("{text}");
    for words in
        ["connected", "was the bottleneck", "Transfers, the last first", "radio", "q quits"]
    {
        assert!(text.contains(words), "{words}:\n{text}");
    }
    let verdict = text.find("was the bottleneck").unwrap();
    assert!(verdict < text.find("Transfers").unwrap() && verdict < text.find("Bursts").unwrap());
    // The smallest window is not a reason to fail.
    let mut terminal = Terminal::new(TestBackend::new(20, 5)).unwrap();
    terminal.draw(|frame| draw(frame, &now, None)).unwrap();
}
