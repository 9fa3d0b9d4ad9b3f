//! `--from` and `--to`: limits on the time of an analysis.

use airmile_model::{Record, Stamp};

use crate::error::{Error, Result};
use crate::zone::{Zone, midnight_ns, split_offset};

const SECOND_NS: i64 = 1_000_000_000;
const DAY_NS: i64 = 86_400 * SECOND_NS;

/// A point in time as given by the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimePoint {
    /// Since the input's start, in nanoseconds.
    SinceStart(i64),
    /// Time of day on the day of the input's start, in nanoseconds, and its offset from UTC; without
    /// one, in the zone of the limits.
    TimeOfDay(i64, Option<i64>),
    /// A date and time in the zone of the limits, as nanoseconds of the same date and time in UTC.
    Civil(i64),
    /// Nanoseconds since the Unix epoch.
    Absolute(i64),
}

impl TimePoint {
    /// Parses `12.5` (seconds since the start), `12:01:29.5` (time of day), `2018-08-25T12:01:29.5`,
    /// the same with a zone (`Z`, `+02:00`), or `2018-08-25` (its start).
    ///
    /// # Errors
    /// The text has none of these forms.
    pub fn parse(text: &str) -> Result<Self> {
        let at = |day_ns: Option<i64>, ns: i64| {
            let ns = day_ns.and_then(|day_ns| day_ns.checked_add(ns));
            let past = || {
                format!(
                    "{text} is past {}: later times do not fit in 64 bits of nanoseconds",
                    format_utc(i64::MAX)
                )
            };
            ns.ok_or_else(|| Error::Option(past()))
        };
        let parsed = if let Some((date, time)) = text.split_once(['T', ' ']) {
            let (time, offset_ns) = split_offset(time);
            let read = day_of(date).zip(time_of_day(time));
            let read = read.map(|(day, ns)| at(day, ns - offset_ns.unwrap_or(0))).transpose()?;
            read.map(if offset_ns.is_some() { Self::Absolute } else { Self::Civil })
        } else if text.contains(':') {
            let (time, offset_ns) = split_offset(text);
            time_of_day(time).map(|ns| Self::TimeOfDay(ns, offset_ns))
        } else if let Some(day) = day_of(text) {
            Some(Self::Civil(at(day, 0)?))
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
                "{text:?} is no time: give seconds since the start (12.5), a time of day \
                 (12:01:29.5), a date and time (2018-08-25T12:01:29, or with Z or +02:00) or a date"
            ))
        })
    }

    fn resolve(self, start_ns: i64, zone: Zone) -> i64 {
        match self {
            Self::SinceStart(ns) => start_ns.saturating_add(ns),
            Self::Absolute(ns) => ns,
            Self::Civil(civil_ns) => zone.instant_ns(civil_ns),
            Self::TimeOfDay(ns, offset_ns) => {
                let civil_ns = match offset_ns {
                    Some(offset_ns) => start_ns.saturating_add(offset_ns),
                    None => zone.civil_ns(start_ns),
                };
                let day_ns = civil_ns.saturating_sub(civil_ns.rem_euclid(DAY_NS));
                let at_ns = day_ns.saturating_add(ns);
                offset_ns.map_or_else(|| zone.instant_ns(at_ns), |east| at_ns.saturating_sub(east))
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

fn time_of_day(text: &str) -> Option<i64> {
    let mut parts = text.split(':');
    let hours: i64 = parts.next()?.parse().ok().filter(|h| (0..24).contains(h))?;
    let minutes: i64 = parts.next()?.parse().ok().filter(|m| (0..60).contains(m))?;
    let seconds_ns = parts.next().map_or(Some(0), seconds).filter(|s| *s < 61 * SECOND_NS)?;
    parts.next().is_none().then_some((hours * 3_600 + minutes * 60) * SECOND_NS + seconds_ns)
}

/// The start of a date (`2018-08-25`) in nanoseconds, inside `None` if it is too far.
fn day_of(date: &str) -> Option<Option<i64>> {
    let mut parts = date.split('-');
    let year = parts.next()?.parse().ok().filter(|y| (1970..10_000).contains(y))?;
    let (month, day) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    if parts.next().is_some() {
        return None;
    }
    midnight_ns(year, month, day).ok().map(|ns| i64::try_from(ns).ok())
}

/// A date and time as text, in UTC with ms, from nanoseconds since the epoch.
#[must_use]
pub fn format_utc(ns: i64) -> String {
    Zone::UTC.show_ns(ns)
}

/// Both limits; the end is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Nothing before it.
    pub from: Option<TimePoint>,
    /// Nothing from it on.
    pub to: Option<TimePoint>,
    /// The zone of those without one, and of times in texts and pages.
    pub zone: Zone,
}

impl Limits {
    /// Whether there is one.
    #[must_use]
    pub const fn are_given(&self) -> bool {
        self.from.is_some() || self.to.is_some()
    }

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
        use TimePoint::{Absolute, Civil, SinceStart, TimeOfDay};
        let (Some(from), Some(to)) = (self.from, self.to) else { return Ok(()) };
        let is_empty = match (from, to) {
            (SinceStart(from), SinceStart(to)) | (Absolute(from), Absolute(to)) => from >= to,
            (TimeOfDay(from, east), TimeOfDay(to, east_to)) => east == east_to && from >= to,
            (Civil(_) | Absolute(_), Civil(_) | Absolute(_)) => {
                from.resolve(0, self.zone) >= to.resolve(0, self.zone)
            }
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
    /// The limits in nanoseconds since the epoch, from the first time on.
    bounds_ns: Option<(Option<i64>, Option<i64>)>,
}

impl LimitFilter {
    /// A filter that uses the first record's time as the start.
    #[must_use]
    pub const fn new(limits: Limits) -> Self {
        Self { limits, bounds_ns: None }
    }

    /// Whether a record is within the limits. Records of tables without times are placed
    /// by their TTI, 1 ms each.
    pub fn keeps(&mut self, record: &Record) -> bool {
        let Some(ns) = time_of(record) else { return true };
        self.keeps_ns(ns)
    }

    /// Whether a time is within the limits.
    pub fn keeps_ns(&mut self, ns: i64) -> bool {
        let (from_ns, to_ns) = *self.bounds_ns.get_or_insert_with(|| {
            let Limits { from, to, zone } = self.limits;
            (from.map(|from| from.resolve(ns, zone)), to.map(|to| to.resolve(ns, zone)))
        });
        from_ns.is_none_or(|from_ns| ns >= from_ns) && to_ns.is_none_or(|to_ns| ns < to_ns)
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
            TimePoint::TimeOfDay(43_289_250_000_000, None)
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
            Ok(TimePoint::Absolute(ns) | TimePoint::Civil(ns)) => format_utc(ns),
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
            let TimePoint::Civil(ns) = TimePoint::parse(text).unwrap() else { panic!() };
            assert_eq!(format_utc(ns), text);
        }
    }

    /// Limits of a log that starts at 23:30 UTC, and the first time of it that each keeps.
    #[test]
    fn times_without_a_zone_are_of_the_limits_zone() {
        let ns = |text: &str| TimePoint::parse(text).unwrap().resolve(0, Zone::UTC);
        let start_ns = ns("2018-08-24T23:30:00Z");
        for (zone, from, first) in [
            ("UTC", "23:45", "2018-08-24 23:45:00.000"),
            // There it is the next day already.
            ("+02:00", "01:45", "2018-08-24 23:45:00.000"),
            ("+02:00", "2018-08-25T01:45:00", "2018-08-24 23:45:00.000"),
            ("+02:00", "2018-08-25", "2018-08-24 22:00:00.000"),
            ("+02:00", "2018-08-24T23:45:00Z", "2018-08-24 23:45:00.000"),
            ("-0330", "2018-08-24T20:15:00", "2018-08-24 23:45:00.000"),
            ("+02:00", "23:45Z", "2018-08-24 23:45:00.000"),
            ("UTC", "01:45+02:00", "2018-08-24 23:45:00.000"),
            ("+02:00", "900", "2018-08-24 23:45:00.000"),
        ] {
            let zone = Zone::parse(zone).unwrap();
            let first_ns = TimePoint::parse(from).unwrap().resolve(start_ns, zone);
            assert_eq!(format_utc(first_ns), first, "{zone:?} {from}");
        }
        let limits = |from, to| Limits {
            from: TimePoint::parse(from).ok(),
            to: TimePoint::parse(to).ok(),
            zone: Zone::parse("+02:00").unwrap(),
        };
        assert!(limits("2018-08-25T01:00:00", "2018-08-25T00:00:00Z").check().is_ok());
        assert!(limits("2018-08-25T02:00:00", "2018-08-25T00:00:00Z").check().is_err());
    }

    #[test]
    fn limits_are_from_inclusive_to_exclusive() {
        let limits = Limits {
            from: Some(TimePoint::SinceStart(1_000_000)),
            to: Some(TimePoint::SinceStart(3_000_000)),
            ..Limits::default()
        };
        let mut filter = LimitFilter::new(limits);
        let kept: Vec<bool> =
            (0..4).map(|ms| filter.keeps_ns(7_000_000 + ms * 1_000_000)).collect();
        assert_eq!(kept, [false, true, true, false]);
    }
}
