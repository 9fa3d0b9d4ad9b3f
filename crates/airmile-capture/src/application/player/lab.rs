//! The lab's own events: its emulated players and pages (`app.jsonl`), and
//! `lab/player`, which is dash.js in Chromium (`command.jsonl`); docs/lab.md.

use airmile_model::PlayerEventKind;

use super::{Asked, Gathered, Got, LoggedEvent, Notes};

pub(super) fn take(event: &LoggedEvent<'_>, notes: &mut Notes, found: &mut Gathered) -> bool {
    // Only the lab's lines have integer nanoseconds.
    if event.entry.get("at_ns").is_none() {
        return false;
    }
    let (at_ns, entry) = (event.at_ns, &event.entry);
    let id = entry.name("id").unwrap_or_default();
    match event.name {
        "segment_chosen" => {
            let bps = entry.number("value", found);
            notes.bitrate(at_ns, bps, found);
        }
        "request" if !id.is_empty() => {
            let bitrate_bps = notes.bitrate_bps.filter(|_| id.starts_with("segment"));
            let url = entry.text("what", found).map(str::to_owned);
            let sent_bytes = entry.count("bytes", found);
            notes.ask(id, Asked { at_ns, url, bitrate_bps, sent_bytes, ..Asked::default() });
        }
        "first_byte" => notes.first_byte(&id, at_ns),
        "end" | "failed" if !id.is_empty() => {
            let bitrate_bps = entry.number("value", found).filter(|_| event.name == "end");
            let bytes = entry.count("bytes", found);
            let failed = event.name == "failed";
            notes.got(
                &id,
                Got { end_ns: at_ns, bytes, bitrate_bps, failed, ..Got::default() },
                found,
            );
        }
        "failed" => found.event(at_ns, PlayerEventKind::Failed, None),
        "playback_started" => notes.playing(at_ns, found),
        "stalled" => notes.stalled(at_ns),
        "resumed" => notes.resumed(at_ns, found),
        "playback_ended" => notes.ended(at_ns, found),
        "buffer" => {
            let ms = entry.number("value", found);
            found.event(at_ns, PlayerEventKind::Buffer, ms);
        }
        // In bytes per second.
        "speed_test" => {
            let bps = entry.number("value", found).map(|bytes| bytes * 8.0);
            found.event(at_ns, PlayerEventKind::Estimate, bps);
        }
        "page_started" | "page_loaded" | "keep_warm" | "done" | "request" | "end" => {}
        _ => return false,
    }
    true
}
