//! Formats numbers for people.

/// Bytes in a suitable unit.
#[must_use]
pub fn size(bytes: u64) -> String {
    let x = bytes as f64;
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.0} kB", x / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", x / 1e6),
        _ => format!("{:.1} GB", x / 1e9),
    }
}

/// A rate in Mbit/s.
#[must_use]
pub fn mbps(bps: f64) -> String {
    format!("{:.1} Mb/s", bps / 1e6)
}
