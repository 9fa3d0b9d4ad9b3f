//! Players' logs: one object per line, each an event under the player's own name with the
//! fields of its API. `docs/application-logs.md` has the short programs that write one.

mod dashjs;
mod hlsjs;
mod lab;
mod media3;
mod shaka;

use std::collections::HashMap;

use airmile_model::{AppTransfer, Direction, PlayerEventKind, TimeBase, TransferKind};
use serde_json::Value;

use super::fields::{Entry, ns_of_ms, ns_of_rfc3339, parse};
use super::{FormatReader, Gathered};

pub(super) const WANTED: &[&str] = &["[]", "events[]"];

/// Earlier times are not times of day, but count from some start (chosen here: 1980).
const EARLIEST_DAY_NS: i64 = 315_532_800_000_000_000;

/// Whether a line belongs to a player's log.
pub(super) fn is_line(line: &[u8]) -> bool {
    let Ok(Value::Object(object)) = serde_json::from_slice(line) else { return false };
    let timed = object.contains_key("at_ms") || object.contains_key("at_ns");
    object.get("event").is_some_and(Value::is_string) && timed
        || object.contains_key("player") && !object.contains_key("events")
}

/// Whether an array of such events begins here.
pub(super) fn is_array(head: &[u8]) -> bool {
    let has = |name: &str| memchr::memmem::find(head, name.as_bytes()).is_some();
    has("\"event\"") && (has("\"at_ms\"") || has("\"at_ns\""))
}

/// The same moment on the wall clock and on the log's clock.
#[derive(Debug, Clone, Copy, Default)]
struct Anchor {
    wall_ms: Option<f64>,
    monotonic_ms: Option<f64>,
}

impl Anchor {
    /// Converts a time of the log to the wall clock, if the head has both clocks and the
    /// time is not on the wall clock already.
    fn placed(self, ns: i64) -> i64 {
        if ns >= EARLIEST_DAY_NS {
            return ns;
        }
        let offset = self.wall_ms.and_then(ns_of_ms).zip(self.monotonic_ms.and_then(ns_of_ms));
        offset.map_or(ns, |(wall, monotonic)| ns.saturating_add(wall).saturating_sub(monotonic))
    }
}

/// Reads events.
#[derive(Debug, Default)]
pub(super) struct Player {
    notes: Notes,
    player: Option<String>,
    version: Option<String>,
    anchor: Anchor,
    unknown: u64,
    first_unknown: Option<(u64, String)>,
}

impl FormatReader for Player {
    fn value(&mut self, path: &str, offset: u64, bytes: &[u8], found: &mut Gathered) {
        match path {
            "" | "[]" | "events[]" => {}
            // In addition to an array of events.
            "player" | "version" | "wall_ms" | "monotonic_ms" => {
                if let Some(value) = parse(bytes, offset, path, found) {
                    self.head(path, &value);
                }
                return;
            }
            _ => return,
        }
        found.log.items += 1;
        let Some(value) = parse(bytes, offset, "event", found) else { return };
        let entry = Entry { value: &value, offset };
        let Some(name) = entry.text("event", found) else {
            let heads = ["player", "version", "wall_ms", "monotonic_ms"];
            let present = heads.iter().filter_map(|name| Some((*name, value.get(*name)?)));
            present.for_each(|(name, value)| self.head(name, value));
            if value.get("player").is_none() {
                found.bad(offset, "event: missing".into());
            }
            return;
        };
        let at = match entry.get("at_ns").and_then(Value::as_i64) {
            Some(ns) => Some(ns),
            None => entry.ms("at_ms", found),
        };
        let Some(at_ns) = at.map(|ns| self.anchor.placed(ns)) else {
            found.unreadable(offset, "at_ms (or at_ns): no time; the event is left out".into());
            return;
        };
        self.notes.last_ns = self.notes.last_ns.max(Some(at_ns));
        let event = LoggedEvent { name, at_ns, entry, anchor: self.anchor };
        let known = [lab::take, dashjs::take, hlsjs::take, shaka::take, media3::take]
            .into_iter()
            .any(|take| take(&event, &mut self.notes, found));
        if !known {
            self.unknown += 1;
            let name = name.to_owned();
            self.first_unknown.get_or_insert((offset, name));
        }
    }

    fn finish(&mut self, found: &mut Gathered) {
        self.notes.finish(found);
        let words: Vec<&str> =
            self.player.iter().chain(&self.version).map(String::as_str).collect();
        found.log.made_by = Some(words.join(" ")).filter(|words| !words.is_empty());
        if let Some((offset, name)) = self.first_unknown.take() {
            let n = self.unknown;
            found.warn(offset, format!("{n} events that are of no use here, the first {name:?}"));
        }
        let first = found.log.span_ns().map(|(first, _)| first);
        if first.is_some_and(|first| first < EARLIEST_DAY_NS) {
            found.log.scale.base = TimeBase::Unplaced;
            let what = "times since some start: put {\"player\":…,\"wall_ms\":…,\"monotonic_ms\":…} \
                        before the first event, so that they can be placed";
            found.note(what.into());
        }
        found.log.scale.placed_within_ns = 1_000_000;
    }
}

impl Player {
    fn head(&mut self, name: &str, value: &Value) {
        let text = || value.as_str().map(str::to_owned);
        match name {
            "player" => self.player = text(),
            "version" => self.version = text(),
            "wall_ms" => self.anchor.wall_ms = value.as_f64(),
            _ => self.anchor.monotonic_ms = value.as_f64(),
        }
    }
}

/// An event, with its player's fields.
struct LoggedEvent<'a> {
    name: &'a str,
    at_ns: i64,
    entry: Entry<'a>,
    anchor: Anchor,
}

impl LoggedEvent<'_> {
    /// The last part of a URL's path, as a name: the rest may hold tokens.
    fn file_name(&self, path: &str) -> Option<String> {
        let url = self.entry.get(path)?.as_str()?;
        let path = url.split(['?', '#']).next()?;
        path.rsplit('/').next().map(str::to_owned)
    }

    /// A time in ms on the log's clock, or a date.
    fn time(&self, path: &str, found: &mut Gathered) -> Option<i64> {
        match self.entry.get(path)? {
            Value::String(text) if text.contains('T') => ns_of_rfc3339(text),
            // Players leave unknown times at 0.
            _ => self.entry.ms(path, found).filter(|ns| *ns > 0).map(|ns| self.anchor.placed(ns)),
        }
    }

    /// The end of a request; the event's time if the log has none, or an impossible one.
    fn end(&self, path: &str, start_ns: Option<i64>, found: &mut Gathered) -> i64 {
        let Some(end_ns) = self.time(path, found) else { return self.at_ns };
        if start_ns.is_some_and(|start_ns| end_ns < start_ns) {
            let what = format!("{path}: before the request began; the event's time is used");
            found.damage(self.entry.offset, what);
            return self.at_ns;
        }
        end_ns
    }
}

/// A request in progress.
#[derive(Debug, Clone, Default)]
struct Asked {
    at_ns: i64,
    first_byte_ns: Option<i64>,
    url: Option<String>,
    kind: Option<TransferKind>,
    bitrate_bps: Option<f64>,
    /// What it sends itself, if that is known.
    sent_bytes: Option<u64>,
}

/// The result of a request.
#[derive(Debug, Clone, Default)]
struct Got {
    start_ns: Option<i64>,
    first_byte_ns: Option<i64>,
    end_ns: i64,
    bytes: Option<u64>,
    bitrate_bps: Option<f64>,
    url: Option<String>,
    kind: Option<TransferKind>,
    failed: bool,
}

/// Events of all players, under their own names: requests, stalls, switches.
#[derive(Debug, Default)]
struct Notes {
    asked: HashMap<String, Asked>,
    started: bool,
    stalled_ns: Option<i64>,
    bitrate_bps: Option<f64>,
    last_ns: Option<i64>,
}

impl Notes {
    fn ask(&mut self, id: String, asked: Asked) {
        self.asked.insert(id, asked);
    }

    fn first_byte(&mut self, id: &str, at_ns: i64) {
        if let Some(asked) = self.asked.get_mut(id) {
            asked.first_byte_ns.get_or_insert(at_ns);
        }
    }

    /// A request has ended; without its begin it is no transfer.
    fn got(&mut self, id: &str, got: Got, found: &mut Gathered) {
        let asked = self.asked.remove(id);
        let Some(start_ns) = got.start_ns.or(asked.as_ref().map(|asked| asked.at_ns)) else {
            found.log.not_transfers += 1;
            return;
        };
        let asked = asked.unwrap_or_default();
        let mut transfer = AppTransfer::new(id.to_owned(), start_ns, got.end_ns);
        // Players write the begin instead if it is unknown to them.
        let first_byte_ns = got.first_byte_ns.or(asked.first_byte_ns);
        if let Some(first_ns) = first_byte_ns.filter(|first_ns| *first_ns > start_ns) {
            transfer.phases.wait_ns = Some(first_ns.saturating_sub(start_ns).max(0));
            transfer.phases.receive_ns = Some(got.end_ns.saturating_sub(first_ns).max(0));
        }
        let upload = asked.sent_bytes.filter(|sent| *sent > 0 && *sent >= got.bytes.unwrap_or(0));
        transfer.dir = Some(if upload.is_some() { Direction::Ul } else { Direction::Dl });
        transfer.url = got.url.or(asked.url);
        transfer.kind = got.kind.or(asked.kind).unwrap_or(TransferKind::Media);
        transfer.bytes = upload.filter(|_| !got.failed).or(got.bytes);
        transfer.bitrate_bps = got.bitrate_bps.or(asked.bitrate_bps);
        transfer.failed = got.failed;
        found.transfer(transfer);
    }

    fn playing(&mut self, at_ns: i64, found: &mut Gathered) {
        if !self.started {
            self.started = true;
            found.event(at_ns, PlayerEventKind::Started, None);
        }
        self.resumed(at_ns, found);
    }

    /// Playback stalled; before the first frame it is the start-up wait.
    fn stalled(&mut self, at_ns: i64) {
        if self.started {
            self.stalled_ns.get_or_insert(at_ns);
        }
    }

    fn resumed(&mut self, at_ns: i64, found: &mut Gathered) {
        if let Some(from_ns) = self.stalled_ns.take() {
            let ms = at_ns.saturating_sub(from_ns).max(0) as f64 / 1e6;
            found.event(from_ns, PlayerEventKind::Stall, Some(ms));
        }
    }

    fn ended(&mut self, at_ns: i64, found: &mut Gathered) {
        self.resumed(at_ns, found);
        found.event(at_ns, PlayerEventKind::Ended, None);
        self.started = false;
    }

    /// The bitrate of the media shown or fetched.
    fn bitrate(&mut self, at_ns: i64, bps: Option<f64>, found: &mut Gathered) {
        let Some(bps) = bps.filter(|bps| *bps > 0.0) else { return };
        if self.bitrate_bps.is_some_and(|before| before != bps) {
            found.event(at_ns, PlayerEventKind::Switch, Some(bps));
        }
        self.bitrate_bps = Some(bps);
    }

    fn finish(&mut self, found: &mut Gathered) {
        let Some(last_ns) = self.last_ns else { return };
        self.resumed(last_ns, found);
        let mut open: Vec<(String, Asked)> = self.asked.drain().collect();
        open.sort_by(|a, b| (a.1.at_ns, &a.0).cmp(&(b.1.at_ns, &b.0)));
        for (id, asked) in open {
            let mut transfer = AppTransfer::new(id, asked.at_ns, last_ns);
            let sends = asked.sent_bytes.is_some_and(|sent| sent > 0);
            transfer.dir = Some(if sends { Direction::Ul } else { Direction::Dl });
            transfer.url = asked.url;
            transfer.kind = asked.kind.unwrap_or(TransferKind::Media);
            transfer.bitrate_bps = asked.bitrate_bps;
            transfer.unfinished = true;
            found.transfer(transfer);
        }
    }
}

#[cfg(test)]
mod tests;
