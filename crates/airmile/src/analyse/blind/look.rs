//! Inspects a capture.

use std::path::Path;

use airmile_blind::TransportKind;
use airmile_packets::phones::{CapturedFile, Downloads, LONGER_HEADERS, captured_file};
use airmile_radio::detect::DetectOptions;
use airmile_wire::attribute::CaptureSite;

use super::super::radio::{Missing, MissingKind};
use super::facts;
use airmile_io::FileReport;
use airmile_io::capture::WITHOUT_ROOT;
use airmile_io::error::Result;
use airmile_io::input::Progress;
use airmile_io::limits::Limits;

/// The result of `inspect` for a capture.
#[derive(Debug)]
pub(in super::super) struct Look {
    pub(in super::super) report: FileReport,
    pub(in super::super) answers: Vec<String>,
    pub(in super::super) lacks: Vec<Missing>,
    /// That it lacks the phone's side, which another capture may have.
    pub(in super::super) phone_side: Option<Missing>,
    pub(in super::super) place: CaptureSite,
}

impl Look {
    fn lack(&mut self, what: &str, how: &str) {
        self.lacks.push(packets(what, how));
    }
}

fn packets(what: &str, how: &str) -> Missing {
    Missing::new(MissingKind::Packets, what, how)
}

/// Inspects a capture: what `diagnose` can answer from it.
///
/// # Errors
/// It cannot be read.
pub(in super::super) fn look(path: &Path, limits: Limits, progress: &Progress) -> Result<Look> {
    let DetectOptions { min_bytes, pause_ms } = DetectOptions::default();
    let scope = (limits, Downloads::new(min_bytes, pause_ms));
    let CapturedFile { report, packets: n_packets, followed, phone, .. } =
        captured_file(path, scope, progress)?;
    let (answers, lacks) = (Vec::new(), Vec::new());
    let mut look = Look { report, answers, lacks, phone_side: None, place: CaptureSite::Unknown };
    if followed > 0 {
        look.answers.push(format!(
            "flows, losses, round trips and requests (`airmile packets`): from {followed} packets"
        ));
    } else {
        let what = match n_packets {
            0 => "packets: the capture holds none".to_owned(),
            n => format!("packets of TCP and UDP: none of the {n} IP packets is one that is read"),
        };
        let how = "check the interface and the filter, and capture while a transfer runs";
        look.lack(&what, how);
    }
    let is_inside = phone.as_ref().is_some_and(|phone| phone.place == CaptureSite::Inside);
    if look.report.records.contains_key(WITHOUT_ROOT) || is_inside {
        let (what, how) = facts::NETWORK;
        look.lack(what, how);
    }
    let files = std::slice::from_ref(&look.report);
    let is_mostly_cut = FileReport::mostly_cut_frames(files).is_some();
    if let Some((cut, frames)) = FileReport::cut_frames(files) {
        look.lack(
            &format!("the packets of {cut} of {frames} frames, which are cut within a header"),
            LONGER_HEADERS,
        );
    }
    let Some(phone) = phone else { return Ok(look) };
    if phone.only_acknowledges() {
        let (what, how) = facts::OTHER_DIRECTION;
        look.lack(what, how);
        return Ok(look);
    }
    let spans = phone.transfers(min_bytes);
    let n = |transport| spans.iter().filter(|span| span.transport == transport).count();
    let (stamped, plain, datagrams) =
        (n(TransportKind::Stamped), n(TransportKind::Plain), n(TransportKind::Datagrams));
    if spans.is_empty() {
        if !is_mostly_cut {
            look.lack("a download in the capture", "capture while one runs");
        }
        return Ok(look);
    }
    match phone.place {
        CaptureSite::Phone | CaptureSite::Unknown => look.answers.push(format!(
            "probabilities of each possible bottleneck (`airmile diagnose`): from {} download{} of \
             one phone, {stamped} over TCP with time stamps, {plain} without, {datagrams} over \
             UDP or QUIC, which show less",
            spans.len(),
            if spans.len() == 1 { "" } else { "s" }
        )),
        CaptureSite::Inside => {}
        CaptureSite::Between | CaptureSite::Server => {
            look.phone_side = Some(packets(
                "the phone's side: the capture was not taken at the phone, so it does not show \
                 how data arrived over the air",
                "capture at the phone (tcpdump -s 128 if it is rooted; an iPhone by rvictl)",
            ));
        }
    }
    look.place = phone.place;
    if plain > stamped {
        let (what, how) = facts::time_stamps(&phone);
        look.lack(what, how);
    }
    Ok(look)
}
