//! dash.js 4 and 5: events of `dashjs.MediaPlayer.events` (MediaPlayerEvents,
//! `FragmentRequest`; cdn.dashjs.org/latest/jsdoc) by their own names.

use airmile_model::{PlayerEventKind, TransferKind};
use serde_json::Value;

use super::{Asked, Gathered, Got, LoggedEvent, Notes};

pub(super) fn take(event: &LoggedEvent<'_>, notes: &mut Notes, found: &mut Gathered) -> bool {
    let (at_ns, entry) = (event.at_ns, &event.entry);
    let text = |path: &str| entry.get(path).and_then(Value::as_str);
    // An event without a type is assumed to be video.
    let video = matches!(text("mediaType"), None | Some("video"));
    match event.name {
        "fragmentLoadingStarted" => {
            let asked = Asked {
                at_ns: event.time("request.startDate", found).unwrap_or(at_ns),
                first_byte_ns: None,
                url: text("request.url").map(str::to_owned),
                kind: kind(text("request.type")),
                bitrate_bps: bitrate(event, found),
                ..Asked::default()
            };
            if text("request.mediaType") == Some("video") {
                notes.bitrate(asked.at_ns, asked.bitrate_bps, found);
            }
            notes.ask(id(event), asked);
        }
        "fragmentLoadingCompleted" | "fragmentLoadingAbandoned" => {
            let start_ns = event.time("request.startDate", found);
            let got = Got {
                start_ns,
                first_byte_ns: event.time("request.firstByteDate", found),
                end_ns: event.end("request.endDate", start_ns, found),
                bytes: entry.count("request.bytesLoaded", found),
                bitrate_bps: bitrate(event, found),
                url: text("request.url").map(str::to_owned),
                kind: kind(text("request.type")),
                failed: event.name != "fragmentLoadingCompleted" || entry.get("error").is_some(),
            };
            notes.got(&id(event), got, found);
        }
        // In seconds, of each kind of media.
        "bufferLevelUpdated" if video => {
            let ms = entry.number("bufferLevel", found).map(|s| s * 1e3);
            found.event(at_ns, PlayerEventKind::Buffer, ms);
        }
        "bufferStalled" | "playbackStalled" | "playbackWaiting" if video => notes.stalled(at_ns),
        "playbackPlaying" | "playbackStarted" => notes.playing(at_ns, found),
        "playbackEnded" => notes.ended(at_ns, found),
        "error" => found.event(at_ns, PlayerEventKind::Failed, None),
        "qualityChangeRendered" | "bufferLoaded" | "bufferLevelUpdated" | "bufferStalled" => {}
        "playbackStalled" | "playbackWaiting" => {}
        _ => return false,
    }
    true
}

/// Media type and number, or the object fetched.
fn id(event: &LoggedEvent<'_>) -> String {
    let part = |path: &str| event.entry.name(path).filter(|part| part != "NaN");
    let media = part("request.mediaType").or_else(|| part("request.type"));
    let number = part("request.index").or_else(|| event.file_name("request.url"));
    let words: Vec<String> = media.into_iter().chain(number).collect();
    words.join("-")
}

fn kind(name: Option<&str>) -> Option<TransferKind> {
    Some(match name? {
        "MPD" | "XLinkExpansion" => TransferKind::Manifest,
        "MediaSegment" | "InitializationSegment" | "IndexSegment" => TransferKind::Media,
        _ => TransferKind::Other,
    })
}

/// In version 5 of the representation, before that of the request.
fn bitrate(event: &LoggedEvent<'_>, found: &mut Gathered) -> Option<f64> {
    let entry = &event.entry;
    let paths = ["request.representation.bandwidth", "request.bandwidth"];
    paths.into_iter().find_map(|path| entry.number(path, found)).filter(|bps| *bps > 0.0)
}
