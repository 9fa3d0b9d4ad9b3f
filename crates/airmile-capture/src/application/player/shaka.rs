//! Shaka Player 4 and 5: events of `shaka.Player` (`adaptation`, `buffering`), what a
//! response filter is given (`shaka.extern.Response`), and `getStats()`
//! (`shaka.extern.Stats`; shaka-player-demo.appspot.com/docs/api).

use airmile_model::{PlayerEventKind, TransferKind};
use serde_json::Value;

use super::{Gathered, Got, LoggedEvent, Notes};

pub(super) fn take(event: &LoggedEvent<'_>, notes: &mut Notes, found: &mut Gathered) -> bool {
    let (at_ns, entry) = (event.at_ns, &event.entry);
    match event.name {
        // `type`, `uri`, `timeMs`, `fromCache`, and `bytes`: `data.byteLength`.
        "response" => {
            if entry.get("fromCache") == Some(&Value::Bool(true)) {
                found.log.from_cache += 1;
                return true;
            }
            let uri = entry.text("uri", found).map(str::to_owned);
            let took_ns = entry.ms("timeMs", found);
            let got = Got {
                start_ns: took_ns.map(|ns| at_ns.saturating_sub(ns)),
                end_ns: at_ns,
                bytes: entry.count("bytes", found),
                bitrate_bps: entry.number("bandwidth", found),
                kind: kind(entry.get("type")),
                url: uri,
                ..Got::default()
            };
            if took_ns.is_none() {
                found.bad(entry.offset, "timeMs: missing; how long it took is not known".into());
                return true;
            }
            notes.got(&found.log.items.to_string(), got, found);
        }
        "adaptation" | "variantchanged" => {
            let bps = entry.number("newTrack.bandwidth", found);
            notes.bitrate(at_ns, bps, found);
        }
        "buffering" => match entry.get("buffering") {
            Some(Value::Bool(true)) => notes.stalled(at_ns),
            _ => notes.playing(at_ns, found),
        },
        "stats" => {
            if let Some(bps) = entry.number("stats.estimatedBandwidth", found) {
                found.event(at_ns, PlayerEventKind::Estimate, Some(bps));
            }
            if let Some(ms) = entry.number("buffer_ms", found) {
                found.event(at_ns, PlayerEventKind::Buffer, Some(ms));
            }
        }
        _ => return false,
    }
    true
}

/// `shaka.net.NetworkingEngine.RequestType`.
fn kind(code: Option<&Value>) -> Option<TransferKind> {
    Some(match code?.as_i64()? {
        0 => TransferKind::Manifest,
        1 => TransferKind::Media,
        _ => TransferKind::Other,
    })
}
