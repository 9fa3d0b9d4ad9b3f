//! The view on a terminal, as text.

use crate::common::{append, taken, wait_until};
use airmile::live::packets::LivePackets;
use airmile::{RadioOptions, Zone};
use airmile_host::format::{mbps, size};
use airmile_host::source::{LogSource, SourceState};
use airmile_live::engine::Engine;
use airmile_live::snapshot::{Passing, SourceStatus};
use airmile_live::terminal::{draw, time_of_day};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

#[test]
fn the_verdict_comes_first_and_nothing_is_cut() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    airmile_lab::run_scenario("sample-download", None, &dir.path().join("run")).unwrap();
    let bytes = std::fs::read(dir.path().join("run/modem.mi2log")).unwrap();
    append(&path, &bytes);
    let engine = Engine::start(&LogSource::Follow(path), RadioOptions::default(), None).unwrap();
    let published = engine.published();
    wait_until("the log is read", || taken(&published.now()) == bytes.len() as u64);
    let mut terminal = Terminal::new(TestBackend::new(100, 36)).unwrap();
    let now = published.now();
    terminal.draw(|frame| draw(frame, &now, Some("http://127.0.0.1:8787/"), Zone::UTC)).unwrap();
    let text = terminal.backend().to_string();
    println!("{text}");
    for words in
        ["connected", "was the bottleneck", "Transfers, the last first", "radio", "q quits"]
    {
        assert!(text.contains(words), "{words}:\n{text}");
    }
    let verdict = text.find("was the bottleneck").unwrap();
    assert!(verdict < text.find("Transfers").unwrap() && verdict < text.find("Bursts").unwrap());
    // At 80 columns no fact is cut.
    let mut terminal = Terminal::new(TestBackend::new(80, 36)).unwrap();
    let mut busy = (*now).clone();
    busy.view.cell_load.as_mut().unwrap().load = 1.0;
    busy.view.intake.bytes = 123_456_789;
    terminal.draw(|frame| draw(frame, &busy, None, Zone::UTC)).unwrap();
    let narrow = terminal.backend().to_string().replace('\u{a0}', " ");
    assert!(narrow.contains("50 PRBs") && narrow.contains("cell load 100 %"), "{narrow}");
    // Nor a digit, at any width: a column is left out, and the title names it.
    let transfer = &now.view.transfers[0].diagnosis.finding;
    let mut numbers = vec![mbps(transfer.link_throughput_bps.unwrap())];
    let last = now.last_bursts(3);
    numbers.extend(last.iter().flat_map(|live| [mbps(live.rate_bps), size(live.burst.bytes)]));
    for width in [40, 50, 60, 80, 100, 120, 200] {
        let mut terminal = Terminal::new(TestBackend::new(width, 36)).unwrap();
        terminal.draw(|frame| draw(frame, &now, None, Zone::UTC)).unwrap();
        let shown = terminal.backend().to_string();
        for number in &numbers {
            assert!(shown.contains(&format!(" {number} ")), "{number} at {width}:\n{shown}");
        }
        for live in &last {
            let start = time_of_day(Zone::UTC, live.start_us.unwrap(), 3);
            let is_left_out = width < 50;
            assert_eq!(shown.contains(&start), !is_left_out, "{start} at {width}:\n{shown}");
        }
    }
    assert!(narrow.contains(" 1 transfer "), "{narrow}");
    assert!(narrow.contains(" UTC"), "{narrow}");
    let mut terminal = Terminal::new(TestBackend::new(100, 36)).unwrap();
    // With an interface, its flows are shown between transfers and bursts.
    let mut now = (*now).clone();
    let mut packets = LivePackets::new();
    airmile_lab::run_scenario("busy-file", None, &dir.path().join("packets")).unwrap();
    packets.push(&std::fs::read(dir.path().join("packets/phone.pcapng")).unwrap());
    let (name, state) = ("wlan0".to_owned(), SourceState::Connected(String::new()));
    let interface = SourceStatus { name, state, gaps: 0 };
    now.packets = Some(Passing { interface, dropped: 3, view: packets.look(None) });
    terminal.draw(|frame| draw(frame, &now, None, Zone::UTC)).unwrap();
    let text = terminal.backend().to_string();
    println!("{text}");
    let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}:\n{text}"));
    assert!(place("Transfers") < place("wlan0: ") && place("3 packets dropped") < place("Bursts"));
    assert!(place("server.airmile.test") > place("down now"));
    // The smallest window must not fail.
    let mut terminal = Terminal::new(TestBackend::new(20, 5)).unwrap();
    terminal.draw(|frame| draw(frame, &now, None, Zone::UTC)).unwrap();
}
