//! Formats numbers for people.

/// Milliseconds to the microsecond.
pub(super) fn rounded_ms(ns: i64) -> f64 {
    (ns as f64 / 1e3).round() / 1e3
}

pub(super) fn bytes(n: f64) -> String {
    match n {
        n if n < 1e3 => format!("{n:.0} B"),
        n if n < 1e6 => format!("{:.1} kB", n / 1e3),
        n if n < 1e9 => format!("{:.1} MB", n / 1e6),
        n => format!("{:.1} GB", n / 1e9),
    }
}

pub(super) fn rate(bps: f64) -> String {
    match bps {
        bps if bps < 1e6 => format!("{:.0} kbit/s", bps / 1e3),
        bps => format!("{:.1} Mbit/s", bps / 1e6),
    }
}

pub(super) fn ms(ms: f64) -> String {
    match ms {
        ms if ms < 10.0 => format!("{ms:.1} ms"),
        ms if ms < 1e3 => format!("{ms:.0} ms"),
        ms if ms < 60e3 => format!("{:.1} s", ms / 1e3),
        ms if ms < 3_600e3 => format!("{:.1} min", ms / 60e3),
        ms => format!("{:.1} h", ms / 3_600e3),
    }
}

pub(super) fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p > 0.0 && p < 1.0 => format!("{p:.2} %"),
        p => format!("{p:.0} %"),
    }
}

/// A count with its noun, in the plural unless it is 1.
#[must_use]
pub fn count(n: u64, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}
