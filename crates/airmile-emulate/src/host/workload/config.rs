//! Creates the application described by a workload's configuration.

use super::http::Request;
use super::series::{ExchangeSeries, Pause};
use super::{Browser, SocketApplication, VideoPlayer};
use crate::scenario::Workload;

impl Workload {
    /// The client's side, starting at `start_ns`. The seed determines the sizes of web
    /// objects and video segments.
    #[must_use]
    pub fn client(&self, start_ns: i64, seed: u64) -> Box<dyn SocketApplication> {
        let series = |request, count, pause, read_rate_bps| -> Box<dyn SocketApplication> {
            Box::new(ExchangeSeries::new(start_ns, request, count, pause, read_rate_bps))
        };
        match *self {
            Self::File { bytes, count, gap_ms } => {
                let request = Request { bytes, ..Request::get("/file") };
                series(request, count, Pause::after_ms(gap_ms), None)
            }
            Self::Video(ref config) => Box::new(VideoPlayer::new(start_ns, config.clone(), seed)),
            Self::Web(ref config) => Box::new(Browser::new(start_ns, config.clone(), seed)),
            Self::Paced { bytes, rate_bps, block_bytes } => {
                let rate_bps = Some(rate_bps);
                let request = Request { bytes, rate_bps, block_bytes, ..Request::get("/paced") };
                series(request, 1, Pause::after_ms(0), None)
            }
            Self::OnOff { bytes, on_ms, off_ms, rate_bps } => {
                let on_off_ms = Some((on_ms, off_ms));
                let request = Request { bytes, rate_bps, on_off_ms, ..Request::get("/on-off") };
                series(request, 1, Pause::after_ms(0), None)
            }
            Self::Upload { bytes, count, gap_ms } => {
                let request = Request { upload_bytes: bytes, ..Request::get("/upload") };
                series(request, count, Pause::after_ms(gap_ms), None)
            }
            Self::Interactive {
                request_bytes,
                response_bytes,
                count,
                gap_ms,
                period_ms,
                think_ms,
            } => {
                let request = Request {
                    bytes: response_bytes,
                    upload_bytes: request_bytes,
                    think_ms: (think_ms > 0).then_some(think_ms),
                    ..Request::get("/interactive")
                };
                let pause = period_ms.map_or(Pause::after_ms(gap_ms), Pause::every_ms);
                series(request, count, pause, None)
            }
            Self::SlowReader { bytes, read_rate_bps } => {
                let request = Request { bytes, ..Request::get("/slowly-read") };
                series(request, 1, Pause::after_ms(0), Some(read_rate_bps))
            }
            Self::Periodic { bytes, count, period_ms } => {
                let request = Request { bytes, ..Request::get("/periodic") };
                series(request, count, Pause::every_ms(period_ms), None)
            }
        }
    }
}
