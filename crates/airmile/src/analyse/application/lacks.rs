//! The questions that an application's log answers, and what it lacks.

use airmile_capture::application::ApplicationFormat;
use airmile_model::{PlayerEventKind, TimeBase};

use super::{Missing, MissingKind};
use crate::session::Application;
use airmile_io::plural;

/// What is missing if there is only an application's log.
pub(in super::super) fn missing() -> Vec<Missing> {
    let mut out = Vec::new();
    let mut add = |kind, what: &str, how: &str| {
        out.push(Missing::new(kind, what, how));
    };
    add(
        MissingKind::Radio,
        "the state of the radio link during the transfers",
        "log the modem while the transfers run (MobileInsight, QXDM, a DIAG port with `airmile \
         live --port`), and pass that log together with this one",
    );
    add(
        MissingKind::Packets,
        "packets captured at the same time",
        "capture at the phone (tcpdump -s 128; an iPhone by rvictl) and at the server, and pass the \
         captures together with this log",
    );
    out
}

/// The questions that a log answers.
pub(in super::super) fn answers(application: &Application) -> Vec<String> {
    let log = &application.log;
    let title = application.format.title();
    let mut out = Vec::new();
    let n = log.transfers.len();
    if n > 0 {
        let with_bytes = log.transfers.iter().filter(|transfer| transfer.bytes.is_some()).count();
        out.push(format!(
            "how long transfers took, and at what rate: from {n} transfer{} of the {title}, \
             {with_bytes} with bytes",
            plural(n as u64)
        ));
    }
    let phases = log.transfers.iter().filter(|t| t.phases.before_first_byte_ns().is_some()).count();
    if phases > 0 {
        out.push(format!(
            "how their time was split (own queue, name lookup, handshakes, first byte): from \
             {phases} transfers with phases"
        ));
    }
    let count = |kind| log.events.iter().filter(|event| event.kind == kind).count();
    let (stalls, switches) = (count(PlayerEventKind::Stall), count(PlayerEventKind::Switch));
    let buffer = count(PlayerEventKind::Buffer);
    if !log.events.is_empty() {
        out.push(format!(
            "when playback stalled and which bitrate was shown: from {stalls} stalls, {switches} \
             changes of bitrate and {buffer} buffer levels"
        ));
    }
    if !log.rates.is_empty() {
        out.push(format!("the rate in each second: from {} intervals", log.rates.len()));
    }
    out
}

/// A log whose start is less precise than this has to be aligned by its data (chosen here: a few
/// round trips).
const ROUGHLY_PLACED_NS: i64 = 100_000_000;

/// What a log itself lacks.
pub(in super::super) fn lacks(application: &Application) -> Vec<Missing> {
    let scale = application.log.scale;
    let mut out = Vec::new();
    let kind = MissingKind::Application;
    let mut add = |what: String, how: &str| out.push(Missing::new(kind, what, how));
    if scale.base == TimeBase::Unplaced {
        add(
            format!("{}: its time of day", application.path),
            "its times count from an unknown start: have the log written with wall-clock times, \
             or with both clocks at its start (docs/application-logs.md)",
        );
    } else if scale.placed_within_ns >= ROUGHLY_PLACED_NS {
        let how = match application.format {
            ApplicationFormat::Iperf3 | ApplicationFormat::Iperf3Stream => {
                "iperf3 before 3.18 writes whole seconds: update it"
            }
            _ => "configure the server to log ms (nginx: msec=$msec)",
        };
        add(format!("{}: its start, to better than a second", application.path), how);
    }
    if !application.log.transfers.is_empty()
        && application.log.transfers.iter().all(|transfer| transfer.bytes.is_none())
    {
        add(
            format!("{}: the bytes of its transfers", application.path),
            "export it with sizes (docs/application-logs.md)",
        );
    }
    out
}
