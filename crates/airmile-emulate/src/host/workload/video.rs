//! A video player: segments over HTTP, with bitrates adapted to the network.

use std::collections::VecDeque;

use super::exchange::HttpExchange;
use super::http::Request;
use super::{AppEvent, AppEventKind, SocketApplication, Sockets, UnderWay};
use crate::random::Random;
use crate::scenario::{Abr, VideoConfig};

const MS: i64 = 1_000_000;

/// Number of segments in the throughput estimate (FESTIVE, 4.2, uses 20; with segments of 4
/// s that is more than a minute, so fewer here).
const REMEMBERED: usize = 5;

/// Playback state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Playback {
    Starting,
    Playing,
    Stalled { since_ns: i64 },
    Ended,
}

/// The player's side of adaptive video.
#[derive(Debug)]
pub struct VideoPlayer {
    config: VideoConfig,
    random: Random,
    next_ns: Option<i64>,
    segment: u32,
    current: Option<(HttpExchange, u64)>,
    playback: Playback,
    /// Buffered video at `updated_ns`.
    buffer_ns: i64,
    updated_ns: i64,
    rates_bps: VecDeque<f64>,
    last_bitrate_bps: Option<u64>,
    /// The segment whose size was drawn last, and its deviation from the mean: a repeated
    /// request gets the same size.
    drawn: Option<(u32, f64)>,
    log: VecDeque<AppEvent>,
    done: bool,
}

impl VideoPlayer {
    /// A player that starts at `start_ns`.
    #[must_use]
    pub fn new(start_ns: i64, config: VideoConfig, seed: u64) -> Self {
        Self {
            config,
            random: Random::new(seed, 0x76),
            next_ns: Some(start_ns),
            segment: 0,
            current: None,
            playback: Playback::Starting,
            buffer_ns: 0,
            updated_ns: start_ns,
            rates_bps: VecDeque::new(),
            last_bitrate_bps: None,
            drawn: None,
            log: VecDeque::new(),
            done: false,
        }
    }

    fn ns(ms: u64) -> i64 {
        i64::try_from(ms).unwrap_or(i64::MAX / MS).saturating_mul(MS)
    }

    fn segment_ns(&self) -> i64 {
        Self::ns(self.config.segment_ms).max(MS)
    }

    fn segments(&self) -> u32 {
        let segments = Self::ns(self.config.duration_ms) / self.segment_ns();
        u32::try_from(segments).unwrap_or(u32::MAX).max(1)
    }

    fn note(&mut self, at_ns: i64, kind: AppEventKind) {
        self.log.push_back(AppEvent { at_ns, kind });
    }

    /// Plays up to now.
    fn play(&mut self, now_ns: i64) {
        let elapsed_ns = now_ns - self.updated_ns;
        self.updated_ns = now_ns;
        if self.playback != Playback::Playing {
            return;
        }
        if self.buffer_ns > elapsed_ns {
            self.buffer_ns -= elapsed_ns;
            return;
        }
        let since_ns = now_ns - (elapsed_ns - self.buffer_ns);
        self.buffer_ns = 0;
        if self.segment >= self.segments() && self.current.is_none() {
            self.playback = Playback::Ended;
            self.note(since_ns, AppEventKind::PlaybackEnded);
        } else {
            self.playback = Playback::Stalled { since_ns };
            self.note(since_ns, AppEventKind::Stalled);
        }
    }

    /// Adds a segment to the buffer.
    fn store(&mut self, now_ns: i64) {
        self.buffer_ns += self.segment_ns();
        let enough =
            self.buffer_ns >= Self::ns(self.config.start_ms) || self.segment >= self.segments();
        match self.playback {
            Playback::Starting if enough => {
                self.playback = Playback::Playing;
                self.note(now_ns, AppEventKind::PlaybackStarted);
            }
            Playback::Stalled { since_ns } if enough => {
                self.playback = Playback::Playing;
                self.note(now_ns, AppEventKind::Resumed { stalled_ns: now_ns - since_ns });
            }
            _ => {}
        }
    }

    /// Harmonic mean of the last segments' throughput.
    fn estimate_bps(&self) -> Option<f64> {
        let inverse: f64 = self.rates_bps.iter().map(|rate| 1.0 / rate).sum();
        (inverse > 0.0).then(|| self.rates_bps.len() as f64 / inverse)
    }

    fn choose(&self) -> u64 {
        if let Some(&chosen) = self.config.chosen_bps.get(self.segment as usize) {
            return chosen;
        }
        let rates = &self.config.bitrates_bps;
        let lowest = rates.first().copied().unwrap_or(0);
        let highest = rates.last().copied().unwrap_or(0);
        let limit = match self.config.abr {
            Abr::Rate { safety } => self.estimate_bps().map_or(0.0, |bps| bps * safety),
            Abr::Buffer { reservoir_ms, cushion_ms } => {
                let over_ns = (self.buffer_ns - Self::ns(reservoir_ms)) as f64;
                let share = (over_ns / Self::ns(cushion_ms).max(1) as f64).clamp(0.0, 1.0);
                lowest as f64 + share * (highest - lowest) as f64
            }
        };
        rates.iter().copied().rfind(|&bps| bps as f64 <= limit).unwrap_or(lowest)
    }

    fn ask(&mut self, now_ns: i64, sockets: &mut dyn Sockets) {
        let bitrate_bps = self.choose();
        let segment = self.segment;
        self.segment += 1;
        let mean = u128::from(bitrate_bps) * u128::from(self.config.segment_ms) / 8000;
        let factor = match self.drawn {
            Some((drawn, factor)) if drawn == segment => factor,
            _ => 1.0 + self.config.variation * (2.0 * self.random.uniform() - 1.0),
        };
        self.drawn = Some((segment, factor));
        let bytes = ((mean as f64 * factor) as u64).max(1);
        self.note(
            now_ns,
            AppEventKind::SegmentChosen {
                segment,
                bitrate_bps,
                switched: self.last_bitrate_bps.is_some_and(|last| last != bitrate_bps),
                buffer_ns: self.buffer_ns,
                estimate_bps: self.estimate_bps().map(|bps| bps as u64),
            },
        );
        self.last_bitrate_bps = Some(bitrate_bps);
        let path = format!("/video/{}/{segment}.m4s", bitrate_bps / 1000);
        let request = Request { bytes, ..Request::get(&path) };
        let exchange = HttpExchange::begin(now_ns, u64::from(segment), 0, request, sockets);
        self.current = Some((exchange, bytes));
    }

    /// Advances the segment in flight; returns true when it is complete.
    fn fetch(&mut self, now_ns: i64, sockets: &mut dyn Sockets) -> bool {
        let Some((mut exchange, bytes)) = self.current.take() else { return false };
        exchange.advance(now_ns, u64::MAX, sockets, &mut self.log);
        if !exchange.is_done() {
            self.current = Some((exchange, bytes));
            return false;
        }
        let seconds = (now_ns - exchange.started_ns).max(1) as f64 / 1e9;
        self.rates_bps.push_back(exchange.read_bytes.max(1) as f64 * 8.0 / seconds);
        if self.rates_bps.len() > REMEMBERED {
            self.rates_bps.pop_front();
        }
        if exchange.failed() {
            // Retries at the bitrate that is then suitable.
            self.segment -= 1;
        } else {
            self.store(now_ns);
        }
        true
    }
}

impl SocketApplication for VideoPlayer {
    fn advance(&mut self, now_ns: i64, sockets: &mut dyn Sockets) {
        if self.done || self.next_ns.is_some_and(|at_ns| at_ns > now_ns) && self.current.is_none() {
            return;
        }
        self.play(now_ns);
        loop {
            let done = self.fetch(now_ns, sockets);
            self.next_ns = None;
            if self.current.is_none() && self.segment < self.segments() {
                let room_ns = Self::ns(self.config.buffer_ms) - self.segment_ns();
                if self.buffer_ns <= room_ns.max(0) || self.playback != Playback::Playing {
                    self.ask(now_ns, sockets);
                    continue;
                }
                self.next_ns = Some(now_ns + self.buffer_ns - room_ns.max(0));
            }
            if !done {
                break;
            }
        }
        if self.playback == Playback::Playing {
            let empty_ns = now_ns + self.buffer_ns;
            self.next_ns = Some(self.next_ns.map_or(empty_ns, |ns| ns.min(empty_ns)));
        }
        if self.playback == Playback::Ended {
            self.done = true;
            self.next_ns = None;
            sockets.close(now_ns);
            self.note(now_ns, AppEventKind::Done);
        }
    }

    fn poll_timeout(&self) -> Option<i64> {
        self.next_ns
    }

    fn poll_event(&mut self) -> Option<AppEvent> {
        self.log.pop_front()
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn under_way(&self) -> Vec<UnderWay> {
        self.current.iter().filter_map(|(exchange, _)| exchange.under_way()).collect()
    }
}
