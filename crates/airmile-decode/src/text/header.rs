//! The first line of a packet, in both dialects.

/// A time, on some clock face.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// Nanoseconds since the Unix epoch.
    Dated(i64),
    /// Nanoseconds since midnight of an unknown day.
    OfDay(i64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) when: When,
    pub(super) code: u16,
    pub(super) name: String,
    /// The one-line form (`LOG ... Length: n`), which the packet itself follows.
    pub(super) summary: bool,
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

impl Header {
    /// Parses a line; `None` if it is no packet's first one.
    pub(super) fn read(line: &str) -> Option<Self> {
        if !line.as_bytes().first()?.is_ascii_digit() {
            return None;
        }
        let (first, rest) = token(line)?;
        let (when, rest) = if first.contains(':') {
            (When::OfDay(time_of_day(first)?), rest)
        } else {
            let (month, rest) = token(rest)?;
            let (day, rest) = token(rest)?;
            let (time, rest) = token(rest)?;
            let month = MONTHS.iter().position(|m| m.eq_ignore_ascii_case(month))? as i64 + 1;
            let year = first.parse().ok().filter(|y| (1980..2200).contains(y))?;
            let day = day.parse().ok().filter(|d| (1..=31).contains(d))?;
            let days = days_since_epoch(year, month, day);
            (When::Dated(days * DAY_NS + time_of_day(time)?), rest)
        };
        let mut rest = rest;
        let mut summary = false;
        loop {
            let (word, after) = token(rest)?;
            rest = after;
            if let Some(code) = log_code(word) {
                let name = rest.trim_start();
                let end = name.find("  ").into_iter().chain(name.find('\t')).min();
                let name = name.get(..end.unwrap_or(name.len()))?.trim_end().to_owned();
                return Some(Self { when, code, name, summary });
            }
            // QCAT's check byte, `[B6]`, and QXDM's kind of item.
            match word {
                "LOG" => summary = true,
                _ if word.starts_with('[') && word.ends_with(']') => {}
                _ => return None,
            }
        }
    }
}

pub(super) const DAY_NS: i64 = 86_400_000_000_000;

fn token(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// `0xB173` or `[0xB887]`.
fn log_code(word: &str) -> Option<u16> {
    let digits = word.trim_start_matches('[').trim_end_matches(']').strip_prefix("0x")?;
    (digits.len() == 4).then(|| u16::from_str_radix(digits, 16).ok())?
}

/// `HH:MM:SS` with or without a fraction, in nanoseconds.
fn time_of_day(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = whole.split(':').map(|part| part.parse::<i64>().ok());
    let (h, m, s) = (parts.next()??, parts.next()??, parts.next()??);
    let fits = (0..24).contains(&h) && (0..60).contains(&m) && (0..61).contains(&s);
    if !fits || parts.next().is_some() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let digits = fraction.get(..fraction.len().min(9))?;
    let ns = if digits.is_empty() { 0 } else { digits.parse::<i64>().ok()? };
    let ns = ns * 10_i64.pow(9 - digits.len() as u32);
    Some((h * 3_600 + m * 60 + s) * 1_000_000_000 + ns)
}

/// Days from 1970-01-01, proleptic Gregorian.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let shifted = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    365 * shifted + shifted / 4 - shifted / 100 + shifted / 400 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_dialects() {
        let qcat =
            Header::read("2023 Jun  8  21:16:02.785  [80]  0xB173  LTE PDSCH Stat Indication");
        let qcat = qcat.unwrap();
        assert_eq!(qcat.when, When::Dated(1_686_258_962_785_000_000));
        assert_eq!((qcat.code, qcat.name.as_str()), (0xb173, "LTE PDSCH Stat Indication"));
        let rrc = "2023 Jun  8  21:14:27.078  [28]  0xB821  NR5G RRC OTA Packet  --  DL_DCCH / X";
        assert_eq!(Header::read(rrc).unwrap().name, "NR5G RRC OTA Packet");
        let copy = Header::read("17:29:19.449705\t[0xB887]\tNR5G MAC PDSCH Status").unwrap();
        assert_eq!((copy.code, copy.summary), (0xb887, false));
        assert_eq!(copy.when, When::OfDay(62_959_449_705_000));
        let log =
            "17:29:19.449705     LOG      [0xB887]       NR5G MAC PDSCH Status    1   Length:   88";
        let log = Header::read(log).unwrap();
        assert!(log.summary && log.name == copy.name);
        for other in
            ["", "   |  0|", "12 0xB173", "25:00:00 [0xB887] x", "2023 Jun 8 10:00:00 text"]
        {
            assert_eq!(Header::read(other), None, "{other}");
        }
    }
}
