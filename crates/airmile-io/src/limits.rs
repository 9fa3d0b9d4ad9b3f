//! `--from` and `--to`: limits on the time of an analysis.

use airmile_model::{Record, Stamp};

use crate::error::{Error, Result};

const SECOND_NS: i64 = 1_000_000_000;
const DAY_NS: i64 = 86_400 * SECOND_NS;

/// A point in time as given by the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimePoint {
    /// Since the input's start, in nanoseconds.
    SinceStart(i64),
    /// Time of day (UTC) on the day of the input's start, in nanoseconds.
    TimeOfDay(i64),
    /// Nanoseconds since the Unix epoch.
    Absolute(i64),
}

impl TimePoint {
    /// Parses `12.5` (seconds since the start), `12:01:29.5` (time of day, UTC),
    /// `2018-08-25T12:01:29.5Z`, the same with an offset (`+02:00`), or `2018-08-25` (its start, UTC).
    ///
    /// # Errors
    /// The text has none of these forms.
    pub fn parse(text: &str) -> Result<Self> {
        let absolute = |day: i64, ns: i64| {
            let ns = day.checked_mul(DAY_NS).and_then(|day| day.checked_add(ns));
            let past = || {
                format!(
                    "{text} is past {}: later times do not fit in 64 bits of nanoseconds",
                    format_utc(i64::MAX)
                )
            };
            ns.map(Self::Absolute).ok_or_else(|| Error::Option(past()))
        };
        let parsed = if let Some((date, time)) = text.split_once(['T', ' ']) {
            let (time, offset_ns) = split_offset(time).unwrap_or((time, 0));
            let read = days(date).zip(time_of_day(time));
            read.map(|(day, ns)| absolute(day, ns - offset_ns)).transpose()?
        } else if text.contains(':') {
            time_of_day(text.trim_end_matches('Z')).map(Self::TimeOfDay)
        } else if let Some(day) = days(text) {
            Some(absolute(day, 0)?)
        } else {
            seconds(text).map(Self::SinceStart)
        };
        parsed.ok_or_else(|| {
            if text.parse::<f64>().is_ok_and(|seconds| seconds < 0.0) {
                return Error::Option(format!(
                    "{text} is before the start: give a number of 0 or more"
                ));
            }
            Error::Option(format!(
                "{text:?} is no time: give seconds since the start (12.5), a time of day in UTC \
                 (12:01:29.5), a date and time (2018-08-25T12:01:29Z, or with +02:00 for Z) or a date"
            ))
        })
    }

    fn resolve(self, start_ns: i64) -> i64 {
        match self {
            Self::SinceStart(ns) => start_ns.saturating_add(ns),
            Self::Absolute(ns) => ns,
            Self::TimeOfDay(ns) => {
                start_ns.saturating_sub(start_ns.rem_euclid(DAY_NS)).saturating_add(ns)
            }
        }
    }
}

/// Seconds with up to nine decimals, exactly.
fn seconds(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let fraction_ns: i64 = format!("{fraction:0<9}").parse().ok()?;
    whole.parse::<i64>().ok()?.checked_mul(SECOND_NS)?.checked_add(fraction_ns)
}

/// A time without its offset from UTC (RFC 3339, 5.6: `Z`, `+02:00`; ISO 8601 also has `+0200` and
/// `+02`), and the offset in nanoseconds.
fn split_offset(text: &str) -> Option<(&str, i64)> {
    if let Some(time) = text.strip_suffix(['Z', 'z']) {
        return Some((time, 0));
    }
    let at = text.rfind(['+', '-'])?;
    let (time, offset) = text.split_at_checked(at)?;
    let digits: String = offset.chars().skip(1).filter(|c| *c != ':').collect();
    let (hours, minutes) = match digits.len() {
        2 => (digits.as_str(), "0"),
        4 => digits.split_at_checked(2)?,
        _ => return None,
    };
    let hours: i64 = hours.parse().ok().filter(|h| (0..24).contains(h))?;
    let minutes: i64 = minutes.parse().ok().filter(|m| (0..60).contains(m))?;
    let east = if offset.starts_with('-') { -1 } else { 1 };
    Some((time, east * (hours * 3_600 + minutes * 60) * SECOND_NS))
}

fn time_of_day(text: &str) -> Option<i64> {
    let mut parts = text.split(':');
    let hours: i64 = parts.next()?.parse().ok().filter(|h| (0..24).contains(h))?;
    let minutes: i64 = parts.next()?.parse().ok().filter(|m| (0..60).contains(m))?;
    let seconds_ns = parts.next().map_or(Some(0), seconds).filter(|s| *s < 61 * SECOND_NS)?;
    parts.next().is_none().then_some((hours * 3_600 + minutes * 60) * SECOND_NS + seconds_ns)
}

/// Days since 1970-01-01 of a proleptic Gregorian date.
fn days(date: &str) -> Option<i64> {
    let mut parts = date.split('-');
    let year: i64 = parts.next()?.parse().ok().filter(|y| (1970..10_000).contains(y))?;
    let month: i64 = parts.next()?.parse().ok().filter(|m| (1..=12).contains(m))?;
    let day: i64 = parts.next()?.parse().ok().filter(|d| (1..=31).contains(d))?;
    // Years begin in March, so that the leap day is the last.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = y / 4 - y / 100 + y / 400;
    let days = 365 * y + leap_days + (153 * m + 2) / 5 + day - 1 - 719_468;
    // A day that the month does not have would be one of the next month.
    let is_there = civil(days) == (year, month, day);
    (parts.next().is_none() && is_there).then_some(days)
}

/// Year, month and day of a number of days since 1970-01-01.
const fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let of_era = z.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let m = (5 * day_of_year + 2) / 153;
    let (month, carry) = if m < 10 { (m + 3, 0) } else { (m - 9, 1) };
    (year_of_era + era * 400 + carry, month, day_of_year - (153 * m + 2) / 5 + 1)
}

/// A date and time as text, in UTC with ms, from nanoseconds since the epoch.
#[must_use]
pub fn format_utc(ns: i64) -> String {
    let (year, month, day) = civil(ns.div_euclid(DAY_NS));
    let ms = ns.rem_euclid(DAY_NS) / 1_000_000;
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}.{:03}",
        ms / 3_600_000,
        ms / 60_000 % 60,
        ms / 1_000 % 60,
        ms % 1_000
    )
}

/// Both limits; the end is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Nothing before it.
    pub from: Option<TimePoint>,
    /// Nothing from it on.
    pub to: Option<TimePoint>,
}

impl Limits {
    /// Where nothing was found, by the options that were given: for messages.
    #[must_use]
    pub const fn words(&self) -> &'static str {
        match (self.from, self.to) {
            (None, None) => "",
            (Some(_), None) => " from --from on",
            (None, Some(_)) => " before --to",
            (Some(_), Some(_)) => " between --from and --to",
        }
    }

    /// Checks their order, where both are given in the same way.
    ///
    /// # Errors
    /// Nothing can be between them.
    pub fn check(&self) -> Result<()> {
        use TimePoint::{Absolute, SinceStart, TimeOfDay};
        let (Some(from), Some(to)) = (self.from, self.to) else { return Ok(()) };
        let is_empty = match (from, to) {
            (SinceStart(from), SinceStart(to))
            | (TimeOfDay(from), TimeOfDay(to))
            | (Absolute(from), Absolute(to)) => from >= to,
            _ => false,
        };
        let what = "--from is not before --to, so nothing is left: exchange them, or give dates";
        if is_empty { Err(Error::Option(what.into())) } else { Ok(()) }
    }
}

/// Limits resolved against the input's start.
#[derive(Debug, Clone, Default)]
pub struct LimitFilter {
    limits: Limits,
    start_ns: Option<i64>,
}

impl LimitFilter {
    /// A filter that uses the first record's time as the start.
    #[must_use]
    pub const fn new(limits: Limits) -> Self {
        Self { limits, start_ns: None }
    }

    /// Whether a record is within the limits. Records of tables without times are placed
    /// by their TTI, 1 ms each.
    pub fn keeps(&mut self, record: &Record) -> bool {
        let Some(ns) = time_of(record) else { return true };
        self.keeps_ns(ns)
    }

    /// Whether a time is within the limits.
    pub fn keeps_ns(&mut self, ns: i64) -> bool {
        let start = *self.start_ns.get_or_insert(ns);
        self.limits.from.is_none_or(|from| ns >= from.resolve(start))
            && self.limits.to.is_none_or(|to| ns < to.resolve(start))
    }
}

fn time_of(record: &Record) -> Option<i64> {
    if let Some(Stamp { ns, .. }) = record.at() {
        return Some(ns);
    }
    let position = match record {
        Record::Grant(grant) => grant.position,
        Record::Rlc(pdu) => pdu.position,
        _ => return None,
    };
    Some(position.tti.0.saturating_mul(1_000_000) >> position.numerology)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms() {
        assert_eq!(TimePoint::parse("12.5").unwrap(), TimePoint::SinceStart(12_500_000_000));
        assert_eq!(
            TimePoint::parse("12:01:29.25").unwrap(),
            TimePoint::TimeOfDay(43_289_250_000_000)
        );
        let date = TimePoint::parse("2018-08-25T12:01:29Z").unwrap();
        assert_eq!(date, TimePoint::Absolute(1_535_198_489_000_000_000));
        for wrong in [
            "",
            "x",
            "1.2.3",
            "25:00:00",
            "2018-13-01T00:00:00",
            "-5",
            "1e3",
            "2018-13-01",
            "2018-02-29",
            "2018-04-31T00:00:00",
            "2018-08-25T12:01:29+2",
            "2018-08-25T12:01:29+25:00",
            "2018-08-25T12:01:29+02:00Z",
        ] {
            assert!(TimePoint::parse(wrong).is_err(), "{wrong}");
        }
        for far in ["2300-01-01T00:00:00", "2300-01-01"] {
            let far = TimePoint::parse(far).unwrap_err().to_string();
            assert!(far.contains("is past 2262-04-11"), "{far}");
        }
        assert!(TimePoint::parse("2262-04-11T23:47:16Z").is_ok());
        let error = TimePoint::parse("-5").unwrap_err().to_string();
        assert!(error.contains("give a number of 0 or more"), "{error}");
    }

    #[test]
    fn offsets_and_dates_alone() {
        let absolute = |text: &str| match TimePoint::parse(text) {
            Ok(TimePoint::Absolute(ns)) => format_utc(ns),
            other => panic!("{text}: {other:?}"),
        };
        for (text, utc) in [
            ("2018-08-25T12:01:29Z", "2018-08-25 12:01:29.000"),
            ("2018-08-25T12:01:29+02:00", "2018-08-25 10:01:29.000"),
            ("2018-08-25 00:30+0530", "2018-08-24 19:00:00.000"),
            ("2018-08-25T20:00:00.5-08", "2018-08-26 04:00:00.500"),
            ("2018-08-25", "2018-08-25 00:00:00.000"),
        ] {
            assert_eq!(absolute(text), utc, "{text}");
        }
    }

    #[test]
    fn dates_print_as_they_parse() {
        for text in
            ["1970-01-01 00:00:00.000", "2000-02-29 23:59:59.999", "2026-11-21 20:34:00.001"]
        {
            let TimePoint::Absolute(ns) = TimePoint::parse(text).unwrap() else { panic!() };
            assert_eq!(format_utc(ns), text);
        }
    }

    #[test]
    fn limits_are_from_inclusive_to_exclusive() {
        let limits = Limits {
            from: Some(TimePoint::SinceStart(1_000_000)),
            to: Some(TimePoint::SinceStart(3_000_000)),
        };
        let mut filter = LimitFilter::new(limits);
        let kept: Vec<bool> =
            (0..4).map(|ms| filter.keeps_ns(7_000_000 + ms * 1_000_000)).collect();
        assert_eq!(kept, [false, true, true, false]);
    }
}
