//! A browser: pages of objects that refer to each other.

use std::collections::VecDeque;

use super::exchange::HttpExchange;
use super::http::Request;
use super::{AppEvent, AppEventKind, SocketApplication, Sockets, UnderWay};
use crate::random::Random;
use crate::scenario::WebConfig;

const MS: i64 = 1_000_000;

/// Spread of object sizes: standard deviation of their natural logarithm. Web
/// objects are log-normal with about this (Barford and Crovella 1998, table 1:
/// 1.318).
const SIZE_SPREAD: f64 = 1.318;

/// One object of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Object {
    bytes: u64,
    /// The object that refers to it.
    parent: Option<usize>,
}

/// A browser.
#[derive(Debug)]
pub struct Browser {
    config: WebConfig,
    random: Random,
    page: u32,
    page_at_ns: Option<i64>,
    started_ns: i64,
    objects: Vec<Object>,
    /// Objects with the times from which they can be requested, in order.
    wanted: VecDeque<(i64, usize)>,
    lanes: Vec<Option<(usize, HttpExchange)>>,
    /// Requests queued on the first lane's connection, in order.
    behind: VecDeque<(usize, HttpExchange)>,
    left: usize,
    log: VecDeque<AppEvent>,
    done: bool,
}

impl Browser {
    /// A browser that starts at `start_ns`.
    #[must_use]
    pub fn new(start_ns: i64, config: WebConfig, seed: u64) -> Self {
        let lanes = if config.multiplexed { 1 } else { config.lanes.max(1) };
        Self {
            config,
            random: Random::new(seed, 0x77),
            page: 0,
            page_at_ns: Some(start_ns),
            started_ns: start_ns,
            objects: Vec::new(),
            wanted: VecDeque::new(),
            lanes: (0..lanes).map(|_| None).collect(),
            behind: VecDeque::new(),
            left: 0,
            log: VecDeque::new(),
            done: false,
        }
    }

    /// The next page's objects: sizes are drawn and scaled to the page's bytes; a chain of
    /// the given depth, the others below objects of any level above.
    fn draw_page(&mut self) -> Vec<Object> {
        let count = self.config.objects.max(1) as usize;
        let depth = (self.config.depth.max(1) as usize).min(count);
        let weights: Vec<f64> =
            (0..count).map(|_| (SIZE_SPREAD * self.random.normal()).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let mut levels: Vec<usize> = Vec::with_capacity(count);
        let mut objects = Vec::with_capacity(count);
        for (index, weight) in weights.into_iter().enumerate() {
            let parent = match index {
                0 => None,
                // The chain first, then below any but the deepest.
                _ if index < depth => Some(index - 1),
                _ => {
                    let mut parent = (self.random.uniform() * index as f64) as usize;
                    while levels[parent] + 1 >= depth && parent > 0 {
                        parent -= 1;
                    }
                    Some(parent)
                }
            };
            levels.push(parent.map_or(0, |p| levels[p] + 1));
            let bytes = (self.config.page_bytes as f64 * weight / sum).round() as u64;
            objects.push(Object { bytes: bytes.max(1), parent });
        }
        objects
    }

    fn note(&mut self, at_ns: i64, kind: AppEventKind) {
        self.log.push_back(AppEvent { at_ns, kind });
    }

    fn begin_page(&mut self, now_ns: i64) {
        self.page_at_ns = None;
        self.started_ns = now_ns;
        self.objects = self.draw_page();
        self.left = self.objects.len();
        let lookup_ms = if self.page == 0 { self.config.dns_ms } else { 0 };
        let lookup_ns = i64::try_from(lookup_ms).unwrap_or(i64::MAX / MS).saturating_mul(MS);
        self.note(now_ns, AppEventKind::PageStarted { page: self.page });
        self.want(now_ns, 0, None, lookup_ns);
    }

    /// An object can be requested once its name is looked up.
    fn want(&mut self, at_ns: i64, index: usize, initiator: Option<usize>, lookup_ns: i64) {
        let initiator = initiator.map(|parent| self.transfer(parent));
        let transfer = self.transfer(index);
        self.note(at_ns, AppEventKind::Wanted { transfer, initiator, lookup_ns });
        self.wanted.push_back((at_ns.saturating_add(lookup_ns), index));
    }

    /// Numbered by page and object, so that an object has the same number in any run,
    /// whatever the order of requests.
    fn transfer(&self, index: usize) -> u64 {
        u64::from(self.page) * self.objects.len() as u64 + index as u64
    }

    /// Processes arrived objects, which refer to more; returns true if any lane made
    /// progress.
    fn collect(&mut self, now_ns: i64, sockets: &mut dyn Sockets) -> bool {
        let mut any = false;
        for lane in 0..self.lanes.len() {
            let Some((index, mut exchange)) = self.lanes[lane].take() else { continue };
            exchange.advance(now_ns, u64::MAX, sockets, &mut self.log);
            if !exchange.is_done() {
                self.lanes[lane] = Some((index, exchange));
                continue;
            }
            any = true;
            self.lanes[lane] = self.behind.pop_front();
            if exchange.failed() {
                let parent = self.objects.get(index).and_then(|object| object.parent);
                self.want(now_ns, index, parent, 0);
                continue;
            }
            self.left -= 1;
            let parse_ms = i64::try_from(self.config.parse_ms).unwrap_or(i64::MAX / MS);
            let at_ns = now_ns.saturating_add(parse_ms.saturating_mul(MS));
            let all = self.objects.iter().enumerate();
            let children = all.filter(|(_, object)| object.parent == Some(index));
            let children: Vec<usize> = children.map(|(child, _)| child).collect();
            for child in children {
                self.want(at_ns, child, Some(index), 0);
            }
        }
        any
    }

    /// Assigns requests that are due to free lanes; returns true if any was assigned.
    fn ask(&mut self, now_ns: i64, sockets: &mut dyn Sockets) -> bool {
        let mut any = false;
        for lane in 0..self.lanes.len() {
            if self.lanes[lane].is_some() {
                continue;
            }
            let Some(next) = self.begin_next(now_ns, lane, sockets) else { break };
            self.lanes[lane] = Some(next);
            any = true;
        }
        while self.config.multiplexed
            && self.lanes[0].is_some()
            && let Some((index, mut exchange)) = self.begin_next(now_ns, 0, sockets)
        {
            // The request is sent at once, if possible; its response is read in turn.
            exchange.ask(now_ns, sockets, &mut self.log);
            self.behind.push_back((index, exchange));
        }
        for (_, exchange) in &mut self.behind {
            exchange.ask(now_ns, sockets, &mut self.log);
        }
        any
    }

    /// Starts requests that are due on a lane.
    fn begin_next(
        &mut self,
        now_ns: i64,
        lane: usize,
        sockets: &mut dyn Sockets,
    ) -> Option<(usize, HttpExchange)> {
        let due = self.wanted.iter().position(|&(at_ns, _)| at_ns <= now_ns)?;
        let (_, index) = self.wanted.remove(due)?;
        let request = Request {
            bytes: self.objects[index].bytes,
            think_ms: (self.config.think_ms > 0).then_some(self.config.think_ms),
            ..Request::get(&format!("/page/{}/{index}", self.page))
        };
        let transfer = self.transfer(index);
        let lane_number = u32::try_from(lane).unwrap_or(u32::MAX);
        Some((index, HttpExchange::begin(now_ns, transfer, lane_number, request, sockets)))
    }

    fn end_page(&mut self, now_ns: i64, sockets: &mut dyn Sockets) {
        let bytes = self.objects.iter().map(|object| object.bytes).sum();
        let duration_ns = now_ns - self.started_ns;
        self.note(now_ns, AppEventKind::PageLoaded { page: self.page, bytes, duration_ns });
        self.objects.clear();
        self.page += 1;
        if self.page >= self.config.pages {
            self.done = true;
            sockets.close(now_ns);
            self.note(now_ns, AppEventKind::Done);
        } else {
            let gap_ms = i64::try_from(self.config.gap_ms).unwrap_or(i64::MAX / MS);
            self.page_at_ns = Some(now_ns.saturating_add(gap_ms.saturating_mul(MS)));
        }
    }
}

impl SocketApplication for Browser {
    fn advance(&mut self, now_ns: i64, sockets: &mut dyn Sockets) {
        if self.page_at_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            self.begin_page(now_ns);
        }
        while self.collect(now_ns, sockets) | self.ask(now_ns, sockets) {}
        if self.left == 0 && !self.objects.is_empty() {
            self.end_page(now_ns, sockets);
        }
    }

    fn poll_timeout(&self) -> Option<i64> {
        let lane_free = self.config.multiplexed || self.lanes.iter().any(Option::is_none);
        let wanted = self.wanted.iter().map(|&(at_ns, _)| at_ns).min().filter(|_| lane_free);
        [self.page_at_ns, wanted].into_iter().flatten().min()
    }

    fn poll_event(&mut self) -> Option<AppEvent> {
        self.log.pop_front()
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn under_way(&self) -> Vec<UnderWay> {
        let asked = self.lanes.iter().flatten().chain(&self.behind);
        asked.filter_map(|(_, exchange)| exchange.under_way()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_the_bytes_and_the_depth_asked_for() {
        let mut browser = Browser::new(0, WebConfig::default(), 1);
        let objects = browser.draw_page();
        assert_eq!(objects.len(), 70);
        let bytes: u64 = objects.iter().map(|o| o.bytes).sum();
        assert!(bytes.abs_diff(2_000_000) <= 70);
        let depth = |mut index: usize| {
            let mut depth = 1;
            while let Some(parent) = objects[index].parent {
                assert!(parent < index);
                index = parent;
                depth += 1;
            }
            depth
        };
        assert_eq!((0..70).map(depth).max(), Some(4));
    }
}
