//! hls.js 1: events of `Hls.Events` by their own names (docs/API.md of hls.js,
//! "Runtime Events" and "Loader Stats"), and the video element's `playing`,
//! `waiting`, `ended`.

use airmile_model::{PlayerEventKind, TransferKind};
use serde_json::Value;

use super::{Asked, Gathered, Got, LoggedEvent, Notes};

pub(super) fn take(event: &LoggedEvent<'_>, notes: &mut Notes, found: &mut Gathered) -> bool {
    let (at_ns, entry) = (event.at_ns, &event.entry);
    let url = || entry.get("frag.url").and_then(Value::as_str).map(str::to_owned);
    match event.name {
        // The end of an initialisation segment is not reported.
        "hlsFragLoading" if entry.name("frag.sn").as_deref() == Some("initSegment") => {}
        "hlsFragLoading" => {
            let asked =
                Asked { at_ns, url: url(), kind: Some(TransferKind::Media), ..Asked::default() };
            notes.ask(id(event), asked);
        }
        "hlsFragLoaded" | "hlsFragLoadEmergencyAborted" => {
            let bitrate_bps = entry.number("bitrate", found);
            let is_main =
                entry.get("frag.type").and_then(Value::as_str).is_none_or(|t| t == "main");
            let start_ns = event.time("frag.stats.loading.start", found);
            if is_main {
                notes.bitrate(start_ns.unwrap_or(at_ns), bitrate_bps, found);
            }
            let got = Got {
                start_ns,
                first_byte_ns: event.time("frag.stats.loading.first", found),
                end_ns: event.end("frag.stats.loading.end", start_ns, found),
                bytes: entry.count("frag.stats.loaded", found),
                bitrate_bps,
                url: url(),
                kind: Some(TransferKind::Media),
                failed: event.name != "hlsFragLoaded",
            };
            notes.got(&id(event), got, found);
        }
        // The level shown from here on; its bitrate is in `hls.levels`.
        "hlsLevelSwitched" => {
            let bps = entry.number("bitrate", found);
            notes.bitrate(at_ns, bps, found);
        }
        "hlsError" => match entry.get("details").and_then(Value::as_str) {
            Some("bufferStalledError") => notes.stalled(at_ns),
            _ => found.event(at_ns, PlayerEventKind::Failed, None),
        },
        "buffer" => {
            let ms = entry.number("buffer_ms", found);
            found.event(at_ns, PlayerEventKind::Buffer, ms);
        }
        "waiting" => notes.stalled(at_ns),
        "playing" => notes.playing(at_ns, found),
        "ended" => notes.ended(at_ns, found),
        _ => return false,
    }
    true
}

/// Kind, level and number.
fn id(event: &LoggedEvent<'_>) -> String {
    let part = |path: &str| event.entry.name(path);
    let media = part("frag.type").unwrap_or_else(|| "main".into());
    let number = part("frag.sn").or_else(|| event.file_name("frag.url")).unwrap_or_default();
    match part("frag.level") {
        Some(level) => format!("{media}-{level}-{number}"),
        None => format!("{media}-{number}"),
    }
}
