//! Frames without a packet, and captures that a phone's own VPN made.

use airmile_capture::packet::{Frame, Unread, VpnSign, vpn_sign};
use airmile_model::{Problem, Severity};

use super::times::FrameTimes;
use crate::file_report::{CUT_HEADER, FileReport, plural};

/// Key in a report for a capture made without root.
pub const WITHOUT_ROOT: &str = "captured_without_root";

/// Counts a frame without a packet.
#[cold]
pub(super) fn note_unread(
    file: &mut FileReport,
    times: &mut FrameTimes,
    frame: &Frame<'_>,
    unread: Unread,
) {
    let name = name(unread);
    file.bad_items += u64::from(!matches!(unread, Unread::NotIp(_)));
    if !file.records.contains_key(name) {
        times.first_unread.push((frame.offset, unread));
    }
    *file.records.entry(name.into()).or_default() += 1;
}

/// Warns of the first frame of each kind.
pub(super) fn note_first(file: &mut FileReport, times: &mut FrameTimes) {
    for (offset, unread) in times.first_unread.drain(..) {
        let n = file.records.get(name(unread)).copied().unwrap_or_default();
        if let Some(what) = describe(unread, n) {
            file.problem(Problem::at(offset, Severity::Warning, what));
        }
    }
}

/// The key of a kind of unread frames.
const fn name(unread: Unread) -> &'static str {
    match unread {
        Unread::NotIp(_) => "not_ip",
        Unread::Link(_) => "unknown_link_type",
        Unread::Cut(_) => CUT_HEADER,
        Unread::Bad(_) => "bad_header",
    }
}

/// Number of frames examined for signs of a capture without root (chosen here: the first
/// may be of another kind).
const VPN_FRAMES: u64 = 64;

/// Adds a note, once, that the phone's own VPN made the capture, and its limitations.
pub(super) fn note_vpn(file: &mut FileReport, frame: &Frame<'_>) {
    if file.items > VPN_FRAMES || file.records.contains_key(WITHOUT_ROOT) {
        return;
    }
    let Some(sign) = vpn_sign(frame) else { return };
    let by = match sign {
        VpnSign::Trailer => "PCAPdroid's trailer",
        VpnSign::Address => "PCAPdroid's address, 10.215.173.1",
        VpnSign::Hardware => "hardware addresses that no adapter has",
    };
    let what = format!(
        "a VPN on the phone captured this without root (by {by}): its connections end on the phone, \
         so that round trips, losses and windows are not those of the network; requests, their \
         times and the rate of bytes are (docs/phones.md)"
    );
    file.records.insert(WITHOUT_ROOT.into(), 1);
    file.problem(Problem::at(frame.offset, Severity::Warning, what));
}

/// What frames of a link type that is not read are (the registry of LINKTYPE values).
const fn kind(link: u32) -> &'static str {
    match link {
        // Plain, with Prism, radiotap, AVS or PPI headers.
        105 | 119 | 127 | 163 | 192 => {
            " (802.11 frames as they are on the air, encrypted: capture on the interface of the \
             phone, computer or router instead)"
        }
        187 | 201 | 251 | 254 => " (Bluetooth)",
        189 | 220 | 249 => " (USB)",
        _ => "",
    }
}

/// A description of `n` frames by the first one.
fn describe(unread: Unread, n: u64) -> Option<String> {
    match unread {
        Unread::NotIp(_) => None,
        Unread::Link(link) => {
            Some(format!("{n} frame{} of link type {link}{} not read", plural(n), kind(link)))
        }
        Unread::Cut(header) => Some(format!("frame cut within its {header} header")),
        Unread::Bad(field) => Some(format!("frame with a bad {field}")),
    }
}
