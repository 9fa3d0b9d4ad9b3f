//! Fields of JSON objects, with warnings for invalid ones; and the time formats of logs.

use airmile_model::transfer::MAX_TRANSFER_BYTES;
use airmile_model::units::SECOND_NS;
use serde_json::Value;

use super::Gathered;

const DAY_S: i64 = 86_400;

/// An object of a log, with its offset.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) value: &'a Value,
    pub(super) offset: u64,
}

impl<'a> Entry<'a> {
    /// The value at a path such as `timings.wait`; null counts as absent.
    pub(super) fn get(&self, path: &str) -> Option<&'a Value> {
        let mut value = self.value;
        for name in path.split('.') {
            value = value.get(name)?;
        }
        (!value.is_null()).then_some(value)
    }

    /// A number, or a string that holds one. Anything else gives a warning.
    pub(super) fn number(&self, path: &str, found: &mut Gathered) -> Option<f64> {
        let value = self.get(path)?;
        let number = number_of(value);
        if number.is_none() {
            self.wrong(path, "a number", value, found);
        }
        number
    }

    /// A count; negative numbers stand for unknown and count as absent, and so do
    /// implausibly large ones.
    pub(super) fn count(&self, path: &str, found: &mut Gathered) -> Option<u64> {
        let number = self.number(path, found)?;
        let known = (0.0..=MAX_TRANSFER_BYTES as f64).contains(&number);
        known.then_some(number as u64)
    }

    /// A text.
    pub(super) fn text(&self, path: &str, found: &mut Gathered) -> Option<&'a str> {
        let value = self.get(path)?;
        let text = value.as_str();
        if text.is_none() {
            self.wrong(path, "a text", value, found);
        }
        text
    }

    /// A string or a number, as a name.
    pub(super) fn name(&self, path: &str) -> Option<String> {
        match self.get(path)? {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// A time in ms, as nanoseconds.
    pub(super) fn ms(&self, path: &str, found: &mut Gathered) -> Option<i64> {
        let ms = self.number(path, found)?;
        let ns = ns_of_ms(ms);
        if ns.is_none() {
            found.warn(self.offset, format!("{path}: {ms} ms is no time"));
        }
        ns
    }

    fn wrong(&self, path: &str, wanted: &str, value: &Value, found: &mut Gathered) {
        let is = type_name(value);
        found.warn(self.offset, format!("{path}: expected {wanted}, found {is}"));
    }
}

/// A number; some programs write it as text.
pub(super) fn number_of(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.filter(|number: &f64| number.is_finite())
}

/// The type of a value, in words.
pub(super) const fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Parses a value; an error becomes a problem with its byte offset.
pub(super) fn parse(bytes: &[u8], offset: u64, what: &str, found: &mut Gathered) -> Option<Value> {
    match serde_json::from_slice(bytes) {
        Ok(value) => Some(value),
        Err(error) => {
            let before: usize = bytes
                .split_inclusive(|&byte| byte == b'\n')
                .take(error.line().saturating_sub(1))
                .map(<[u8]>::len)
                .sum();
            let at = before + error.column().saturating_sub(1);
            found.unreadable(offset + at.min(bytes.len()) as u64, format!("{what}: {error}"));
            None
        }
    }
}

/// Nanoseconds of a number of ms; `None` if they do not fit.
pub(super) fn ns_of_ms(ms: f64) -> Option<i64> {
    // Whole ms and the rest separately: a double holds a time of day to 0.2 µs only.
    let whole = ms.floor();
    if !(-9e12..9e12).contains(&whole) {
        return None;
    }
    Some(whole as i64 * 1_000_000 + ((ms - whole) * 1e6).round() as i64)
}

/// Nanoseconds since the Unix epoch of a date and time as RFC 3339 writes it;
/// without a zone it is UTC.
pub(super) fn ns_of_rfc3339(text: &str) -> Option<i64> {
    let text = text.trim();
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let mut parts = date.splitn(3, '-');
    let days = days(number(parts.next()?)?, number(parts.next()?)?, number(parts.next()?)?)?;
    let zone_at = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    let (clock, zone) = (rest.get(..zone_at)?, rest.get(zone_at..)?);
    let offset_s = match zone.as_bytes().first() {
        None | Some(b'Z' | b'z') => 0,
        Some(sign) => {
            let digits: String = zone.chars().filter(char::is_ascii_digit).collect();
            let hours: i64 = number(digits.get(..2)?)?;
            let minutes: i64 = digits.get(2..4).map_or(Some(0), number)?;
            let seconds = hours * 3_600 + minutes * 60;
            if *sign == b'-' { -seconds } else { seconds }
        }
    };
    let ns = clock_ns(clock)?;
    Some((days * DAY_S - offset_s) * SECOND_NS + ns)
}

/// Nanoseconds since the Unix epoch of a time as web servers log it:
/// `10/Oct/2000:13:55:36 -0700` (Apache HTTP Server, mod_log_config, `%t`).
pub(super) fn ns_of_log_time(text: &str) -> Option<i64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (date, rest) = text.split_once(':')?;
    let mut parts = date.splitn(3, '/');
    let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    let month = MONTHS.iter().position(|name| *name == month)? as i64 + 1;
    let days = days(number(year)?, month, number(day)?)?;
    let (clock, zone) = rest.split_once(' ').unwrap_or((rest, "+0000"));
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let digits = zone.trim_start_matches(['+', '-']);
    let offset_s = number(digits.get(..2)?)? * 3_600 + number(digits.get(2..4)?)? * 60;
    Some((days * DAY_S - sign * offset_s) * SECOND_NS + clock_ns(clock)?)
}

fn number(digits: &str) -> Option<i64> {
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| plain)
}

/// `13:55:36.25`, in nanoseconds.
fn clock_ns(text: &str) -> Option<i64> {
    let mut parts = text.splitn(3, ':');
    let (hours, minutes) = (number(parts.next()?)?, number(parts.next()?)?);
    let seconds = parts.next().unwrap_or("0");
    let (whole, fraction) = seconds.split_once(['.', ',']).unwrap_or((seconds, "0"));
    let seconds = number(whole)?;
    let fraction = number(format!("{fraction:0<9}").get(..9)?)?;
    let fits = hours < 24 && minutes < 60 && seconds < 61;
    fits.then(|| ((hours * 60 + minutes) * 60 + seconds) * SECOND_NS + fraction)
}

/// Days since 1970-01-01 of a proleptic Gregorian date.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let fits = (1970..2262).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    // Years begin in March, so that the leap day is the last.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = y / 4 - y / 100 + y / 400;
    fits.then(|| 365 * y + leap_days + (153 * m + 2) / 5 + day - 1 - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let check = |text: &str, expected: Option<i64>| assert_eq!(ns_of_rfc3339(text), expected);
        let ns = 1_239_883_643_596_000_000;
        check("2009-04-16T12:07:23.596Z", Some(ns));
        check("2009-04-16T14:07:23.596+02:00", Some(ns));
        check("2009-04-16T04:37:23.596-0730", Some(ns));
        check("1970-01-01T00:00:01", Some(1_000_000_000));
        check("2009-13-16T12:07:23Z", None);
        check("2009-04-16", None);
        check("é", None);
        let check = |text: &str, expected: Option<i64>| assert_eq!(ns_of_log_time(text), expected);
        check("10/Oct/2000:13:55:36 -0700", Some(971_211_336_000_000_000));
        check("10/Oct/2000:13:55", Some(971_186_100_000_000_000));
        check("10/Okt/2000:13:55:36 +0000", None);
        assert_eq!(ns_of_ms(1_700_000_000_000.25), Some(1_700_000_000_000_250_000));
        assert_eq!(ns_of_ms(f64::NAN), None);
        assert_eq!(ns_of_ms(1e300), None);
    }
}
