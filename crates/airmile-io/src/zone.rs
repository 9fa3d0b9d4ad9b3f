//! The time zone of times in texts and pages, and of `--from` and `--to`. Documents and tables hold
//! microseconds since the epoch.

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::{Offset, TimeZone};

use crate::error::{Error, Result};

const SECOND_NS: i64 = 1_000_000_000;

/// The zones in use, each once: a program has few, and options that hold one remain `Copy`.
static ZONES: Mutex<Vec<&'static TimeZone>> = Mutex::new(Vec::new());

/// A time zone: UTC, an offset from it, or one of the system's database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Zone(Option<&'static TimeZone>);

impl Zone {
    /// UTC, the default.
    pub const UTC: Self = Self(None);

    /// Parses `UTC`, `local`, an offset (`+02:00`) or a name of the time zone database
    /// (`Europe/Berlin`).
    ///
    /// # Errors
    /// There is no such zone.
    pub fn parse(text: &str) -> Result<Self> {
        if text.eq_ignore_ascii_case("utc") || text.eq_ignore_ascii_case("z") {
            return Ok(Self::UTC);
        }
        if text.eq_ignore_ascii_case("local") {
            return Ok(Self::local());
        }
        let unknown = || {
            Error::Option(format!(
                "{text:?} is no time zone of this system: give UTC, local, an offset (+02:00) or a \
                 name (Europe/Berlin)"
            ))
        };
        if text.starts_with(['+', '-']) {
            let (_, offset_ns) = with_offset(text).ok_or_else(unknown)?;
            let seconds = i32::try_from(offset_ns / SECOND_NS).map_err(|_| unknown())?;
            let offset = Offset::from_seconds(seconds).map_err(|_| unknown())?;
            return Ok(Self::kept(TimeZone::fixed(offset)));
        }
        TimeZone::get(text).map(Self::kept).map_err(|_| unknown())
    }

    /// The zone of this system (`TZ`, or `/etc/localtime`); UTC if it has none.
    #[must_use]
    pub fn local() -> Self {
        TimeZone::try_system().map_or(Self::UTC, Self::kept)
    }

    fn kept(zone: TimeZone) -> Self {
        if zone == TimeZone::UTC || zone.iana_name() == Some("Etc/UTC") {
            return Self::UTC;
        }
        let mut zones = ZONES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = zones.iter().find(|one| ***one == zone) {
            return Self(Some(same));
        }
        let zone: &'static TimeZone = Box::leak(Box::new(zone));
        zones.push(zone);
        Self(Some(zone))
    }

    /// Seconds east of UTC at a time in nanoseconds since the epoch.
    #[must_use]
    pub fn offset_s(self, ns: i64) -> i64 {
        let Some((zone, at)) = self.0.zip(timestamp(ns)) else { return 0 };
        zone.to_offset(at).seconds().into()
    }

    /// The date and time at an instant, as nanoseconds of the same date and time in UTC.
    #[must_use]
    pub fn civil_ns(self, ns: i64) -> i64 {
        ns.saturating_add(self.offset_s(ns).saturating_mul(SECOND_NS))
    }

    /// The instant of a date and time, the inverse of [`civil_ns`](Self::civil_ns). Of two, where
    /// clocks are set back, the first; where they are set forward, as if they were not (RFC 5545,
    /// 3.3.5).
    #[must_use]
    pub fn instant_ns(self, civil_ns: i64) -> i64 {
        let Some((zone, at)) = self.0.zip(timestamp(civil_ns)) else { return civil_ns };
        let civil = Offset::UTC.to_datetime(at);
        let instant = zone.to_timestamp(civil);
        let ns = instant.ok().and_then(|instant| i64::try_from(instant.as_nanosecond()).ok());
        ns.unwrap_or(civil_ns)
    }

    /// The name in the time zone database, or `UTC`; `None` of an offset.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        self.0.map_or(Some("UTC"), |zone| zone.iana_name())
    }

    /// The name, for titles: of a zone of the database also its offset at a time in microseconds
    /// since the epoch.
    #[must_use]
    pub fn name_at(self, us: i64) -> String {
        let Some(zone) = self.0 else { return "UTC".to_owned() };
        let offset_s = self.offset_s(us.saturating_mul(1_000));
        let (sign, minutes) = (if offset_s < 0 { '-' } else { '+' }, offset_s.abs() / 60);
        let offset = format!("UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60);
        zone.iana_name().map_or(offset.clone(), |name| format!("{name} ({offset})"))
    }

    /// The offsets during a span, in microseconds since the epoch: each with the time from which it
    /// holds, the first from the start.
    #[must_use]
    pub fn offsets(self, from_us: i64, to_us: i64) -> Vec<(i64, i64)> {
        let mut out = vec![(from_us, self.offset_s(from_us.saturating_mul(1_000)))];
        let Some((zone, from)) = self.0.zip(timestamp(from_us.saturating_mul(1_000))) else {
            return out;
        };
        for change in zone.following(from) {
            let at_us = change.timestamp().as_microsecond();
            if at_us >= to_us {
                break;
            }
            out.push((at_us, change.offset().seconds().into()));
        }
        out
    }

    /// A time in microseconds since the epoch: `2018-08-25 12:01:29.250`.
    #[must_use]
    pub fn show(self, us: i64) -> String {
        self.show_ns(us.saturating_mul(1_000))
    }

    pub(crate) fn show_ns(self, ns: i64) -> String {
        let civil_ns = self.civil_ns(ns);
        let civil = timestamp(civil_ns).map(|at| Offset::UTC.to_datetime(at));
        let civil = civil.unwrap_or(DateTime::ZERO);
        let ms = civil_ns.rem_euclid(SECOND_NS) / 1_000_000;
        format!(
            "{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{ms:03}",
            civil.year(),
            civil.month(),
            civil.day(),
            civil.hour(),
            civil.minute(),
            civil.second(),
        )
    }
}

/// A time without its offset from UTC, and the offset in nanoseconds, if it has one.
pub(crate) fn split_offset(text: &str) -> (&str, Option<i64>) {
    with_offset(text).map_or((text, None), |(time, ns)| (time, Some(ns)))
}

/// RFC 3339, 5.6: `Z`, `+02:00`; ISO 8601 also has `+0200` and `+02`.
fn with_offset(text: &str) -> Option<(&str, i64)> {
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

fn timestamp(ns: i64) -> Option<Timestamp> {
    Timestamp::from_nanosecond(ns.into()).ok()
}

/// The start of a date in UTC, in nanoseconds since the epoch.
pub(crate) fn midnight_ns(year: i16, month: i8, day: i8) -> std::result::Result<i128, jiff::Error> {
    let midnight = Date::new(year, month, day)?.at(0, 0, 0, 0);
    Ok(TimeZone::UTC.to_timestamp(midnight)?.as_nanosecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A zone with the European Union's rule (Directive 2000/84/EC): 01:00 UTC on the last Sundays of
    /// March and October.
    fn berlin() -> Zone {
        Zone::kept(TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap())
    }

    #[test]
    fn clocks_that_are_set() {
        let zone = berlin();
        let ns = |day, hours: i64, minutes: i64| {
            let midnight = i64::try_from(midnight_ns(2026, 3, day).unwrap()).unwrap();
            midnight + (hours * 60 + minutes) * 60 * SECOND_NS
        };
        assert_eq!(zone.show_ns(ns(29, 0, 59)), "2026-03-29 01:59:00.000");
        assert_eq!(zone.show_ns(ns(29, 1, 0)), "2026-03-29 03:00:00.000");
        assert_eq!(zone.instant_ns(ns(29, 3, 0)), ns(29, 1, 0));
        // 02:30 is not there.
        assert_eq!(zone.instant_ns(ns(29, 2, 30)), ns(29, 1, 30));
        assert_eq!(
            zone.offsets(ns(28, 0, 0) / 1_000, ns(30, 0, 0) / 1_000),
            [(ns(28, 0, 0) / 1_000, 3_600), (ns(29, 1, 0) / 1_000, 7_200)]
        );
        assert_eq!(zone.name_at(ns(30, 0, 0) / 1_000), "UTC+02:00");
    }

    #[test]
    fn names() {
        for (text, name) in
            [("UTC", "UTC"), ("utc", "UTC"), ("+00:00", "UTC"), ("-0330", "UTC-03:30"), ("+5", "")]
        {
            assert_eq!(Zone::parse(text).map_or(String::new(), |z| z.name_at(0)), name, "{text}");
        }
        let error = Zone::parse("Mars/Olympus").unwrap_err().to_string();
        assert!(error.contains("Europe/Berlin"), "{error}");
        assert_eq!(Zone::parse("+02:00").unwrap(), Zone::parse("+0200").unwrap());
    }
}
