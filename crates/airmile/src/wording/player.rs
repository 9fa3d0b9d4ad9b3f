//! The sentences of players.

use std::collections::BTreeMap;

use airmile_model::plain_name;

use super::WORTH_NAMING;
use super::page::time;
use crate::fact::SegmentWait;

/// The maximum number of causes in a sentence (chosen here).
const MAX_CAUSES: usize = 3;

/// The largest parts of a time, in percent; empty if there are none.
fn causes(shares_ms: &BTreeMap<&'static str, f64>) -> String {
    let total: f64 = shares_ms.values().sum();
    let mut parts: Vec<(&str, f64)> =
        shares_ms.iter().map(|(cause, ms)| (*cause, ms / total.max(1e-9))).collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let named = parts.into_iter().filter(|(_, share)| *share >= WORTH_NAMING).take(MAX_CAUSES);
    let each = named
        .map(|(cause, share)| format!("{} {:.0} %", plain_name(cause), share * 100.0))
        .collect::<Vec<_>>();
    each.join(", ")
}

fn segment(one: &SegmentWait) -> String {
    let name = one.name.as_deref().filter(|name| !name.is_empty()).unwrap_or(&one.id);
    let mut out = format!("{name}, which took {}", time(one.duration_ms));
    if let Some(bps) = one.bps {
        out.push_str(&format!(" ({:.2} Mbit/s", bps / 1e6));
        if let Some(bitrate) = one.bitrate_bps {
            out.push_str(&format!(" for {:.2} Mbit/s of video", bitrate / 1e6));
        }
        out.push(')');
    }
    let causes = causes(&one.shares);
    if !causes.is_empty() {
        out.push_str(&format!(": {causes}"));
    }
    out
}

/// A stall and the segment that playback waited for.
pub(crate) fn stall(ms: Option<f64>, waited_for: Option<&SegmentWait>) -> String {
    let long = ms.map_or_else(String::new, |ms| format!(" for {}", time(ms)));
    match waited_for {
        Some(one) => format!("playback stalled{long}, waiting for {}", segment(one)),
        None => format!("playback stalled{long}; no segment was in transfer"),
    }
}

/// A change of bitrate and the segment before it.
pub(crate) fn switch(
    from_bps: Option<f64>,
    to_bps: Option<f64>,
    before: Option<&SegmentWait>,
) -> String {
    let mbps = |bps: f64| format!("{:.2} Mbit/s", bps / 1e6);
    let change = match (from_bps, to_bps) {
        (Some(from), Some(to)) => format!("from {} to {}", mbps(from), mbps(to)),
        (None, Some(to)) => format!("to {}", mbps(to)),
        _ => "of the bitrate".to_owned(),
    };
    match before {
        Some(one) => format!("changed {change} after {}", segment(one)),
        None => format!("changed {change} before the first segment arrived"),
    }
}

/// The session of a player.
pub(crate) fn player(
    stalls: usize,
    stalled_ms: f64,
    switches: usize,
    down: usize,
    shares_ms: &BTreeMap<&'static str, f64>,
) -> String {
    let known = stalled_ms > 0.0;
    let mut out = match stalls {
        0 => "Playback never stalled".to_owned(),
        1 if known => format!("Playback stalled once, for {}", time(stalled_ms)),
        1 => "Playback stalled once, for a time that the log does not give".to_owned(),
        n if known => format!("Playback stalled {n} times, for {} in total", time(stalled_ms)),
        n => format!("Playback stalled {n} times, for times that the log does not give"),
    };
    let causes = causes(shares_ms);
    if stalls > 0 && !causes.is_empty() {
        out.push_str(&format!("; the segments it waited for spent their time on {causes}"));
    }
    match switches {
        0 => {}
        1 => out.push_str("; 1 change of bitrate"),
        n => out.push_str(&format!("; {n} changes of bitrate, {down} of them down")),
    }
    out.push('.');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As of CMCD, which has no end of a stall.
    #[test]
    fn a_stall_without_a_length_has_none() {
        let says = |n| player(n, [].iter().sum(), 0, 0, &BTreeMap::new());
        assert_eq!(says(1), "Playback stalled once, for a time that the log does not give.");
        assert_eq!(says(2), "Playback stalled 2 times, for times that the log does not give.");
    }
}
