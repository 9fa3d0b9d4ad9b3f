//! One request and its response, from the client's side.

use super::http::{Request, response_bytes};
use super::{AppEvent, AppEventKind, Sockets, StreamId, UnderWay};

/// Progress of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExchangeStep {
    Head,
    Upload { left_bytes: u64 },
    Wait,
    Body { left_bytes: u64 },
    Done { failed: bool },
}

/// One request and its response.
#[derive(Debug, Clone)]
pub(crate) struct HttpExchange {
    transfer: u64,
    stream: StreamId,
    request: Request,
    step: ExchangeStep,
    connects: bool,
    pub(crate) started_ns: i64,
    pub(crate) read_bytes: u64,
}

impl HttpExchange {
    /// Starts the exchange on a lane.
    pub(crate) fn begin(
        now_ns: i64,
        transfer: u64,
        lane: u32,
        request: Request,
        sockets: &mut dyn Sockets,
    ) -> Self {
        let stream = sockets.open(now_ns, lane);
        let connects = !sockets.is_connected(stream);
        Self {
            transfer,
            stream,
            request,
            step: ExchangeStep::Head,
            connects,
            started_ns: now_ns,
            read_bytes: 0,
        }
    }

    /// Its progress, once the request has been sent.
    pub(crate) fn under_way(&self) -> Option<UnderWay> {
        let written_bytes = match self.step {
            ExchangeStep::Head | ExchangeStep::Done { .. } => return None,
            ExchangeStep::Upload { left_bytes } => self.request.upload_bytes - left_bytes,
            ExchangeStep::Wait | ExchangeStep::Body { .. } => self.request.upload_bytes,
        };
        let uploads = self.request.upload_bytes > self.request.bytes;
        let bytes = if uploads { written_bytes } else { self.read_bytes };
        Some(UnderWay { transfer: self.transfer, uploads, bytes })
    }

    pub(crate) fn is_done(&self) -> bool {
        matches!(self.step, ExchangeStep::Done { .. })
    }

    pub(crate) fn failed(&self) -> bool {
        matches!(self.step, ExchangeStep::Done { failed: true })
    }

    /// Writes the request, if possible, without reading: pending data belongs to the
    /// previous response.
    pub(crate) fn ask(
        &mut self,
        now_ns: i64,
        sockets: &mut dyn Sockets,
        log: &mut impl Extend<AppEvent>,
    ) {
        if self.step != ExchangeStep::Head
            || !sockets.write_head(now_ns, self.stream, &self.request.head(HOST))
        {
            return;
        }
        let (transfer, path) = (self.transfer, self.request.target());
        let upload_bytes = self.request.upload_bytes;
        let addresses = sockets.addresses(self.stream);
        let kind = AppEventKind::RequestStarted { transfer, path, upload_bytes, addresses };
        log.extend([AppEvent { at_ns: now_ns, kind }]);
        self.step = ExchangeStep::Upload { left_bytes: self.request.upload_bytes };
    }

    /// Makes progress, reading at most `read_bytes` of the body.
    pub(crate) fn advance(
        &mut self,
        now_ns: i64,
        read_bytes: u64,
        sockets: &mut dyn Sockets,
        log: &mut impl Extend<AppEvent>,
    ) {
        let (transfer, stream) = (self.transfer, self.stream);
        let mut allowed = read_bytes;
        let mut note = |kind| log.extend([AppEvent { at_ns: now_ns, kind }]);
        if self.connects && sockets.is_connected(stream) {
            self.connects = false;
            note(AppEventKind::Connected { transfer });
        }
        loop {
            let next = match self.step {
                ExchangeStep::Done { .. } => return,
                ExchangeStep::Head
                    if sockets.write_head(now_ns, stream, &self.request.head(HOST)) =>
                {
                    note(AppEventKind::RequestStarted {
                        transfer,
                        path: self.request.target(),
                        upload_bytes: self.request.upload_bytes,
                        addresses: sockets.addresses(stream),
                    });
                    ExchangeStep::Upload { left_bytes: self.request.upload_bytes }
                }
                ExchangeStep::Upload { left_bytes: 0 } => {
                    sockets.end_exchange(stream);
                    ExchangeStep::Wait
                }
                ExchangeStep::Upload { left_bytes } => {
                    let written = sockets.write(now_ns, stream, left_bytes);
                    ExchangeStep::Upload { left_bytes: left_bytes - written }
                }
                ExchangeStep::Wait => match sockets.read_head(now_ns, stream) {
                    Some(head) => {
                        note(AppEventKind::FirstByte { transfer });
                        ExchangeStep::Body { left_bytes: response_bytes(&head).unwrap_or(0) }
                    }
                    None => ExchangeStep::Wait,
                },
                ExchangeStep::Body { left_bytes: 0 } => ExchangeStep::Done { failed: false },
                ExchangeStep::Body { left_bytes } => {
                    let read = sockets.read(now_ns, stream, left_bytes.min(allowed));
                    allowed -= read;
                    self.read_bytes += read;
                    ExchangeStep::Body { left_bytes: left_bytes - read }
                }
                ExchangeStep::Head => ExchangeStep::Head,
            };
            if next == self.step {
                if !sockets.is_ended(stream) {
                    return;
                }
                self.step = ExchangeStep::Done { failed: true };
            } else {
                self.step = next;
            }
            if let ExchangeStep::Done { failed } = self.step {
                note(AppEventKind::Ended { transfer, bytes: self.read_bytes, failed });
            }
        }
    }
}

/// The server name in requests.
const HOST: &str = "server.airmile.test";
