//! Repetitions of an exchange on one lane: files, uploads, small requests, periodic
//! downloads, slow readers.

use std::collections::VecDeque;

use super::exchange::HttpExchange;
use super::http::Request;
use super::{AppEvent, AppEventKind, SocketApplication, Sockets, UnderWay};

const MS: i64 = 1_000_000;

/// Read interval of a slow reader (chosen here: as in a player's or a writer's loop).
const READ_EVERY_NS: i64 = 10 * MS;

/// When the next exchange starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    AfterNs(i64),
    EveryNs(i64),
}

fn ns(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX).saturating_mul(MS)
}

impl Pause {
    pub(crate) fn after_ms(ms: u64) -> Self {
        Self::AfterNs(ns(ms))
    }

    pub(crate) fn every_ms(ms: u64) -> Self {
        Self::EveryNs(ns(ms))
    }
}

/// A series of exchanges.
#[derive(Debug)]
pub struct ExchangeSeries {
    request: Request,
    left: u32,
    pause: Pause,
    read_rate_bps: Option<u64>,
    next_ns: Option<i64>,
    transfer: u64,
    current: Option<HttpExchange>,
    log: VecDeque<AppEvent>,
    done: bool,
}

impl ExchangeSeries {
    pub(crate) fn new(
        start_ns: i64,
        request: Request,
        count: u32,
        pause: Pause,
        read_rate_bps: Option<u64>,
    ) -> Self {
        Self {
            request,
            left: count,
            pause,
            read_rate_bps,
            next_ns: Some(start_ns),
            transfer: 0,
            current: None,
            log: VecDeque::new(),
            done: false,
        }
    }

    /// Bytes that a slow reader may read now, and when it may read more.
    fn readable(&self, now_ns: i64, exchange: &HttpExchange) -> (u64, Option<i64>) {
        let Some(rate_bps) = self.read_rate_bps else { return (u64::MAX, None) };
        let ticks = (now_ns - exchange.started_ns) / READ_EVERY_NS;
        let due = i128::from(ticks) * i128::from(READ_EVERY_NS) * i128::from(rate_bps);
        let due = u64::try_from(due / 8_000_000_000).unwrap_or(0);
        let next_ns = exchange.started_ns + (ticks + 1) * READ_EVERY_NS;
        (due.saturating_sub(exchange.read_bytes), Some(next_ns))
    }

    fn after(&mut self, now_ns: i64, started_ns: i64, sockets: &mut dyn Sockets) {
        self.next_ns = None;
        if self.left == 0 {
            self.done = true;
            sockets.close(now_ns);
            self.log.push_back(AppEvent { at_ns: now_ns, kind: AppEventKind::Done });
            return;
        }
        self.next_ns = Some(match self.pause {
            Pause::AfterNs(gap_ns) => now_ns.saturating_add(gap_ns),
            Pause::EveryNs(period_ns) => started_ns.saturating_add(period_ns).max(now_ns),
        });
    }
}

impl SocketApplication for ExchangeSeries {
    fn advance(&mut self, now_ns: i64, sockets: &mut dyn Sockets) {
        loop {
            if let Some(mut exchange) = self.current.take() {
                let (allowed, read_ns) = self.readable(now_ns, &exchange);
                exchange.advance(now_ns, allowed, sockets, &mut self.log);
                if !exchange.is_done() {
                    self.next_ns = read_ns;
                    self.current = Some(exchange);
                    return;
                }
                self.after(now_ns, exchange.started_ns, sockets);
            }
            if self.done || self.next_ns.is_none_or(|at_ns| at_ns > now_ns) {
                return;
            }
            self.next_ns = None;
            if self.left == 0 {
                self.after(now_ns, now_ns, sockets);
                return;
            }
            self.left -= 1;
            let transfer = self.transfer;
            self.transfer += 1;
            let request = self.request.clone();
            self.current = Some(HttpExchange::begin(now_ns, transfer, 0, request, sockets));
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
        self.current.iter().filter_map(HttpExchange::under_way).collect()
    }
}
