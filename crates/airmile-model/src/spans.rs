//! Spans, each from one number to another: of nanoseconds, or of bytes.

/// Spans in order, without overlaps and empty ones.
#[must_use]
pub fn merged<T: Ord + Copy>(mut spans: Vec<(T, T)>) -> Vec<(T, T)> {
    spans.retain(|(from, to)| to > from);
    spans.sort_unstable();
    let mut out: Vec<(T, T)> = Vec::new();
    for (from, to) in spans {
        match out.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => out.push((from, to)),
        }
    }
    out
}
