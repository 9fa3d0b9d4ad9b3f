//! Media3 ExoPlayer: callbacks of `AnalyticsListener` by their own names, with the
//! fields of `LoadEventInfo`, `MediaLoadData` and `EventTime`
//! (developer.android.com/reference/androidx/media3/exoplayer/analytics).

use airmile_model::{PlayerEventKind, TransferKind};

use super::{Asked, Gathered, Got, LoggedEvent, Notes};

/// `C.DATA_TYPE_MEDIA`, `C.DATA_TYPE_MANIFEST`.
const DATA_TYPE_MEDIA: u64 = 1;
const DATA_TYPE_MANIFEST: u64 = 4;
/// `C.TRACK_TYPE_AUDIO`.
const TRACK_TYPE_AUDIO: u64 = 1;
/// `Player.STATE_BUFFERING`, `STATE_READY`, `STATE_ENDED`.
const STATE_BUFFERING: u64 = 2;
const STATE_READY: u64 = 3;
const STATE_ENDED: u64 = 4;

pub(super) fn take(event: &LoggedEvent<'_>, notes: &mut Notes, found: &mut Gathered) -> bool {
    let (at_ns, entry) = (event.at_ns, &event.entry);
    let audio = |found: &mut Gathered| entry.count("trackType", found) == Some(TRACK_TYPE_AUDIO);
    match event.name {
        "onLoadStarted" => {
            let url = entry.text("uri", found).map(str::to_owned);
            let bitrate_bps = entry.number("bitrate", found).filter(|bps| *bps > 0.0);
            let kind = kind(event, found);
            notes.ask(id(event), Asked { at_ns, url, kind, bitrate_bps, ..Asked::default() });
        }
        "onLoadCompleted" | "onLoadCanceled" | "onLoadError" => {
            let took_ns = entry.ms("loadDurationMs", found);
            let got = Got {
                start_ns: took_ns.map(|ns| at_ns.saturating_sub(ns)),
                end_ns: at_ns,
                bytes: entry.count("bytesLoaded", found),
                bitrate_bps: entry.number("bitrate", found).filter(|bps| *bps > 0.0),
                url: entry.text("uri", found).map(str::to_owned),
                kind: kind(event, found),
                failed: event.name != "onLoadCompleted",
                ..Got::default()
            };
            notes.got(&id(event), got, found);
        }
        "onDownstreamFormatChanged" => {
            if !audio(found) {
                let bps = entry.number("bitrate", found);
                notes.bitrate(at_ns, bps, found);
            }
        }
        "onPlaybackStateChanged" => match entry.count("state", found) {
            Some(STATE_BUFFERING) => notes.stalled(at_ns),
            Some(STATE_READY) => notes.playing(at_ns, found),
            Some(STATE_ENDED) => notes.ended(at_ns, found),
            _ => {}
        },
        "onBandwidthEstimate" => {
            let bps = entry.number("bitrateEstimate", found);
            found.event(at_ns, PlayerEventKind::Estimate, bps);
        }
        "onPlayerError" => found.event(at_ns, PlayerEventKind::Failed, None),
        _ => return false,
    }
    // `EventTime.totalBufferedDurationMs` is with every callback.
    if let Some(ms) = entry.number("totalBufferedDurationMs", found) {
        found.event(at_ns, PlayerEventKind::Buffer, Some(ms));
    }
    true
}

fn id(event: &LoggedEvent<'_>) -> String {
    event.entry.name("loadTaskId").or_else(|| event.file_name("uri")).unwrap_or_default()
}

fn kind(event: &LoggedEvent<'_>, found: &mut Gathered) -> Option<TransferKind> {
    Some(match event.entry.count("dataType", found)? {
        DATA_TYPE_MEDIA => TransferKind::Media,
        DATA_TYPE_MANIFEST => TransferKind::Manifest,
        _ => TransferKind::Other,
    })
}
