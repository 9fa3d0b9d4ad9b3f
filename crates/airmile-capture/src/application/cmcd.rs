//! Common Media Client Data (CTA-5004, 2020): the data that a player sends to its server
//! with each request, in the query string `CMCD=` or in `CMCD-` headers; and web servers'
//! logs that contain it.

use std::collections::BTreeMap;

use airmile_model::{AppTransfer, Direction, PlayerEventKind};

use super::fields::ns_of_log_time;
use super::har::kind_of_name;
use super::{FormatReader, Gathered};

/// The keys of one request that are used here (CTA-5004, section 3).
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Cmcd {
    /// `br`: encoded bitrate, kbit/s.
    br_kbps: Option<f64>,
    /// `bl`: buffer length, ms.
    bl_ms: Option<f64>,
    /// `bs`: the buffer was starved between the previous request and this one.
    bs: bool,
    /// `mtp`: measured throughput, kbit/s.
    mtp_kbps: Option<f64>,
    /// `ot`: object type.
    ot: Option<String>,
    /// `sid`: session.
    sid: Option<String>,
    /// `su`: start-up, seeking or after an empty buffer.
    su: bool,
}

impl Cmcd {
    /// From the query argument `CMCD` of a URL.
    pub(super) fn of_url(url: &str) -> Option<Self> {
        let (_, query) = url.split_once('?')?;
        let query = query.split('#').next().unwrap_or_default();
        let text = query.split('&').find_map(|part| part.strip_prefix("CMCD="))?;
        let mut cmcd = Self::default();
        cmcd.add(&percent_decoded(text));
        Some(cmcd)
    }

    /// Parses keys: separated by commas, strings quoted, a key without a value is true.
    pub(super) fn add(&mut self, text: &str) {
        let mut quoted = false;
        let parts = text.split(|c| {
            quoted ^= c == '"';
            c == ',' && !quoted
        });
        for part in parts {
            let (key, value) = part.trim().split_once('=').unwrap_or((part.trim(), "true"));
            let value = value.trim().trim_matches('"');
            let number = || value.parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0);
            match key {
                "br" => self.br_kbps = number(),
                "bl" => self.bl_ms = number(),
                "mtp" => self.mtp_kbps = number(),
                "bs" => self.bs = value == "true",
                "su" => self.su = value == "true",
                "ot" => self.ot = Some(value.to_owned()),
                "sid" => self.sid = Some(value.to_owned()),
                _ => {}
            }
        }
    }

    /// Bitrate of the object in bits per second.
    pub(super) fn bitrate_bps(&self) -> Option<f64> {
        self.br_kbps.map(|kbps| kbps * 1e3)
    }

    /// Whether it is video, whose bitrate and buffer are reported.
    fn is_video(&self) -> bool {
        matches!(self.ot.as_deref(), None | Some("v" | "av"))
    }
}

fn percent_decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, behind @ ..] = rest {
        let digits = behind.get(..2).filter(|_| *byte == b'%');
        let decoded = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(decoded.unwrap_or(*byte));
        rest = if decoded.is_some() { behind.get(2..).unwrap_or_default() } else { behind };
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Maximum number of kept requests of the sessions other than the longest, of which nothing is
/// reported (chosen here: some hours of a hundred players). Also of names of sessions without any.
const KEPT_REQUESTS: usize = 1 << 16;

/// Sessions of players; of a server's log, the one with the most requests is reported. Requests of
/// short sessions are left out while the log is read, where those of all but the longest exceed a limit.
#[derive(Debug, Default)]
pub(super) struct PlayerSessions {
    sessions: BTreeMap<Option<String>, Session>,
    /// Kept requests of all of them.
    requests: usize,
    /// Requests of the longest one, and the kept ones of it.
    longest: (u64, usize),
    /// Requests that were left out, and their transfers.
    left_out: [u64; 2],
    /// Whether names of sessions were forgotten, too.
    forgot: bool,
}

/// Requests of one session.
#[derive(Debug, Default)]
struct Session {
    requests: Vec<(i64, Cmcd)>,
    /// Each with the number of its request.
    transfers: Vec<(u64, AppTransfer)>,
    /// Its first requests, which were left out.
    left_out: u64,
}

impl Session {
    fn length(&self) -> u64 {
        self.left_out + self.requests.len() as u64
    }
}

impl PlayerSessions {
    pub(super) fn push(&mut self, at_ns: i64, mut cmcd: Cmcd, transfer: Option<AppTransfer>) {
        let session = self.sessions.entry(cmcd.sid.take()).or_default();
        let number = session.length();
        session.requests.push((at_ns, cmcd));
        session.transfers.extend(transfer.map(|transfer| (number, transfer)));
        self.requests += 1;
        self.longest = self.longest.max((session.length(), session.requests.len()));
        if self.requests - self.longest.1 > KEPT_REQUESTS {
            self.leave_out_short_ones();
        }
    }

    /// Leaves out the first requests of the shortest sessions, so that half of the place is free.
    fn leave_out_short_ones(&mut self) {
        let mut by_length: Vec<_> =
            self.sessions.iter_mut().map(|(sid, one)| (one.length(), sid, one)).collect();
        by_length.sort_unstable_by_key(|(length, ..)| *length);
        let Some((length, _, longest)) = by_length.pop() else { return };
        self.longest = (length, longest.requests.len());
        let mut forgotten = Vec::new();
        for (_, sid, session) in by_length {
            let kept = self.requests - self.longest.1;
            let n = kept.saturating_sub(KEPT_REQUESTS / 2).min(session.requests.len());
            session.requests.drain(..n);
            session.left_out += n as u64;
            let of_them = session.transfers.partition_point(|(at, _)| *at < session.left_out);
            session.transfers.drain(..of_them);
            self.requests -= n;
            self.left_out[0] += n as u64;
            self.left_out[1] += of_them as u64;
            if session.requests.is_empty() {
                forgotten.push(sid.clone());
            }
        }
        forgotten.truncate(forgotten.len().saturating_sub(KEPT_REQUESTS));
        self.forgot |= !forgotten.is_empty();
        forgotten.iter().for_each(|sid| drop(self.sessions.remove(sid)));
    }

    /// Reports the events and transfers of the longest session.
    pub(super) fn finish(&mut self, found: &mut Gathered) {
        let Self { sessions, left_out: [requests, transfers], forgot, .. } = std::mem::take(self);
        let n = sessions.len();
        let kept: usize = sessions.values().map(|session| session.transfers.len()).sum();
        let longest = sessions.into_iter().max_by_key(|(_, session)| session.length());
        let Some((sid, session)) = longest else { return };
        found.log.not_transfers += (kept - session.transfers.len()) as u64 + transfers;
        let (length, own) = (session.length(), session.left_out);
        if requests > 0 {
            found.note(format!(
                "{requests} requests were left out: sessions that were not the longest then had more \
                 than {KEPT_REQUESTS}"
            ));
        }
        if n > 1 || forgot {
            let name = sid.as_deref().unwrap_or("without a name");
            let least = if forgot { "at least " } else { "" };
            let lacks = match own {
                0 => String::new(),
                own => format!(", the first {own} of which were left out"),
            };
            found.note(format!(
                "CMCD of {least}{n} sessions: only the one with the most requests is reported \
                 ({name}, {length}{lacks})"
            ));
        }
        let Session { mut requests, transfers, .. } = session;
        requests.sort_by_key(|(at_ns, _)| *at_ns);
        let mut bitrate = None;
        let mut before: BTreeMap<Option<String>, i64> = BTreeMap::new();
        for (at_ns, cmcd) in requests {
            // The buffer waited for the previous object of this type, not for this one (CTA-5004,
            // section 3). A buffer that ran empty before it was first full is the start.
            let before_ns = before.insert(cmcd.ot.clone(), at_ns);
            if cmcd.bs {
                found.event(before_ns.unwrap_or(at_ns), PlayerEventKind::Stall, None);
            }
            if let Some(kbps) = cmcd.mtp_kbps {
                found.event(at_ns, PlayerEventKind::Estimate, Some(kbps * 1e3));
            }
            if !cmcd.is_video() {
                continue;
            }
            if let Some(ms) = cmcd.bl_ms {
                found.event(at_ns, PlayerEventKind::Buffer, Some(ms));
            }
            if let Some(bps) = cmcd.bitrate_bps() {
                if bitrate.is_some_and(|before| before != bps) {
                    found.event(at_ns, PlayerEventKind::Switch, Some(bps));
                }
                bitrate = Some(bps);
            }
        }
        transfers.into_iter().for_each(|(_, transfer)| found.transfer(transfer));
    }
}

/// Whether lines of a server's log with CMCD begin here.
pub(super) fn is_log(head: &[u8]) -> bool {
    let mut lines = head.split(|&byte| byte == b'\n');
    // Leading bytes that are no text mark another format that contains such a line.
    if lines.clone().next().is_none_or(|line| std::str::from_utf8(line).is_err()) {
        return false;
    }
    let line = lines.find(|line| memchr::memmem::find(line, b"CMCD=").is_some());
    let text = line.and_then(|line| std::str::from_utf8(line).ok());
    text.is_some_and(|line| LogLine::parse(line).is_some())
}

/// Reads a web server's log: the Common Log Format, or Combined, followed, in any order,
/// by `rt=` (nginx `$request_time`, s) and `msec=` (nginx `$msec`, s), or `D=` (Apache
/// `%D`, µs).
#[derive(Debug, Default)]
pub(super) struct AccessLog {
    sessions: PlayerSessions,
    without_duration: u64,
    exact: bool,
}

/// A line of a server's log.
struct LogLine<'a> {
    at_ns: i64,
    /// The time of the end, if the line has it, as nginx writes it.
    exact_end_ns: Option<i64>,
    url: &'a str,
    protocol: &'a str,
    status: u16,
    bytes: Option<u64>,
    request_ns: Option<i64>,
    taken_ns: Option<i64>,
}

impl<'a> LogLine<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (_, rest) = line.split_once('[')?;
        let (time, rest) = rest.split_once(']')?;
        let (_, rest) = rest.split_once('"')?;
        let (request, rest) = rest.split_once('"')?;
        let mut words = request.split(' ');
        let (_method, url) = (words.next()?, words.next()?);
        let mut fields = rest.split_ascii_whitespace();
        let status = fields.next()?.parse().ok()?;
        let bytes = fields.next()?.parse().ok();
        let named = |name: &str| {
            let text = rest.split_ascii_whitespace().find_map(|word| word.strip_prefix(name))?;
            text.trim_matches('"').parse::<f64>().ok().filter(|n| (0.0..9e9).contains(n))
        };
        // nginx writes seconds since 1970 with three decimals.
        let ns = |seconds: f64| (seconds * 1e3).round() as i64 * 1_000_000;
        Some(Self {
            at_ns: ns_of_log_time(time)?,
            exact_end_ns: named("msec=").map(ns),
            url,
            protocol: words.next().unwrap_or_default(),
            status,
            bytes,
            request_ns: named("rt=").or_else(|| named("request_time=")).map(ns),
            taken_ns: named("D=").map(|us| (us * 1e3) as i64),
        })
    }

    fn span_ns(&self) -> Option<(i64, i64)> {
        // Apache logs when the request arrived (`%t`), nginx when it was done.
        if let Some(ns) = self.taken_ns {
            return Some((self.at_ns, self.at_ns.saturating_add(ns)));
        }
        let end_ns = self.exact_end_ns.unwrap_or(self.at_ns);
        self.request_ns.map(|ns| (end_ns.saturating_sub(ns), end_ns))
    }
}

impl FormatReader for AccessLog {
    fn value(&mut self, _path: &str, offset: u64, bytes: &[u8], found: &mut Gathered) {
        if memchr::memmem::find(bytes, b"CMCD=").is_none() {
            found.log.not_transfers += 1;
            return;
        }
        found.log.items += 1;
        let text = String::from_utf8_lossy(bytes);
        let Some((line, cmcd)) = LogLine::parse(&text).and_then(|line| {
            let cmcd = Cmcd::of_url(line.url)?;
            Some((line, cmcd))
        }) else {
            found.bad(offset, "no line of a web server's log (Common Log Format)".into());
            return;
        };
        let span = line.span_ns();
        let at_ns = span.map_or(line.at_ns, |(start, _)| start);
        let Some((start_ns, end_ns)) = span else {
            self.without_duration += 1;
            self.sessions.push(at_ns, cmcd, None);
            return;
        };
        self.exact = line.exact_end_ns.is_some();
        let mut transfer = AppTransfer::new(found.log.items.to_string(), start_ns, end_ns);
        transfer.url = Some(line.url.to_owned());
        transfer.dir = Some(Direction::Dl);
        transfer.bytes = line.bytes;
        transfer.kind = kind_of_name(line.url).unwrap_or(transfer.kind);
        transfer.bitrate_bps = cmcd.bitrate_bps();
        transfer.protocol = Some(line.protocol.to_ascii_lowercase()).filter(|p| !p.is_empty());
        transfer.failed = line.status >= 400;
        self.sessions.push(at_ns, cmcd, Some(transfer));
    }

    fn finish(&mut self, found: &mut Gathered) {
        self.sessions.finish(found);
        found.log.scale.placed_within_ns = if self.exact { 1_000_000 } else { 1_000_000_000 };
        if self.without_duration > 0 {
            let n = self.without_duration;
            let what = format!(
                "{n} requests without a duration are no transfers: log rt=$request_time \
                 msec=$msec (nginx) or D=%D (Apache)"
            );
            found.note(what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ApplicationFormat, read_application};
    use super::*;

    #[test]
    fn keys() {
        let check = |url: &str, expected: Option<Cmcd>| assert_eq!(Cmcd::of_url(url), expected);
        let cmcd = Cmcd { br_kbps: Some(3200.0), bs: true, ..Cmcd::default() };
        check("/a?x=1&CMCD=bs%2Cbr%3D3200%2Cd%3D4004#f", Some(cmcd));
        let cmcd = Cmcd { sid: Some("a,b=c".into()), ot: Some("a".into()), ..Cmcd::default() };
        check("/a?CMCD=ot%3Da%2Csid%3D%22a%2Cb%3Dc%22", Some(cmcd));
        check("/a?CMCD=br%3D%zz%2Cbl%3D-5", Some(Cmcd::default()));
        check("/a?cmcd=1", None);
    }

    /// Of a server with many players, memory is that of the longest session and a limited number of
    /// others' requests.
    #[test]
    fn requests_of_other_sessions_are_kept_up_to_a_limit() {
        let mut log = AccessLog::default();
        let mut found = Gathered::default();
        let n = KEPT_REQUESTS as u64 * 3 / 2;
        for at in 0..n {
            let sid = if at % 100 == 0 { "long".to_owned() } else { format!("{}", at / 3) };
            let line = format!(
                "192.0.2.1 - - [10/Oct/2024:13:55:36 +0000] \"GET /{at}.m4s?CMCD=bl%3D{at}%2Csid%3D\
                 %22{sid}%22 HTTP/2.0\" 200 5 rt=0.500"
            );
            log.value("", at, line.as_bytes(), &mut found);
            if at % 8_191 == 0 {
                let sessions = log.sessions.sessions.values();
                let kept: usize = sessions.map(|one| one.requests.len()).sum();
                assert!(kept <= KEPT_REQUESTS + log.sessions.longest.1, "{kept}");
            }
        }
        log.finish(&mut found);
        // The longest is whole.
        let long = n.div_ceil(100);
        assert_eq!(found.log.transfers.len() as u64, long);
        assert_eq!(found.log.events.len() as u64, long);
        assert_eq!(found.log.not_transfers, n - long);
        let problems: Vec<_> = found.log.problems.kept.iter().map(ToString::to_string).collect();
        assert!(problems[0].contains(" requests were left out: sessions"), "{problems:?}");
        assert!(problems[1].contains(&format!("(long, {long})")), "{problems:?}");
        let sessions = (n - 1) / 3 + 2;
        assert!(problems[1].starts_with(&format!("CMCD of {sessions} sessions")), "{problems:?}");
    }

    /// A session that was left out while it was shorter is counted on.
    #[test]
    fn the_longest_session_is_the_longest_of_the_whole_log() {
        let mut sessions = PlayerSessions::default();
        for (sid, n) in [("short", 70_000), ("long", 200_000)] {
            let cmcd = Cmcd { sid: Some(sid.into()), bl_ms: Some(1e3), ..Cmcd::default() };
            (0..n).for_each(|at| sessions.push(at, cmcd.clone(), None));
        }
        let mut found = Gathered::default();
        sessions.finish(&mut found);
        let says = &found.log.problems.kept[1].what;
        assert!(says.starts_with("CMCD of 2 sessions") && says.contains("(long, 200000"), "{says}");
        assert!(found.log.problems.kept.iter().all(|problem| problem.offset.is_none()));
        let left_out = format!("the first {} of which", 200_000 - found.log.events.len());
        assert!(says.contains(&left_out), "{says}");
    }

    /// Of two sessions that overtake each other, the latest requests of both are kept.
    #[test]
    fn a_session_that_is_overtaken_keeps_its_latest_requests() {
        let mut sessions = PlayerSessions::default();
        for (sid, n) in [("a", 100_000), ("b", 100_001), ("a", 2)] {
            let cmcd = Cmcd { sid: Some(sid.into()), bl_ms: Some(1e3), ..Cmcd::default() };
            (0..n).for_each(|at| sessions.push(at, cmcd.clone(), None));
        }
        let mut found = Gathered::default();
        sessions.finish(&mut found);
        let says = &found.log.problems.kept[1].what;
        assert!(says.contains("(a, 100002"), "{says}");
        let kept = found.log.events.len();
        assert!(kept >= KEPT_REQUESTS / 2, "{kept}");
    }

    /// `bs` is of the time before its request: the video's request before it was waited for.
    #[test]
    fn a_starved_buffer_waited_for_the_request_before() {
        let mut sessions = PlayerSessions::default();
        for (at_s, ot, bs) in
            [(4, "v", false), (56, "v", false), (60, "a", false), (65, "v", true), (70, "i", true)]
        {
            let cmcd = Cmcd { ot: Some(ot.into()), bs, ..Cmcd::default() };
            sessions.push(at_s, cmcd, None);
        }
        let mut found = Gathered::default();
        sessions.finish(&mut found);
        let stalls: Vec<i64> = found.log.events.iter().map(|event| event.at_ns).collect();
        assert_eq!(stalls, [56, 70]);
    }

    const LOG: &str = concat!(
        "192.0.2.1 - - [10/Oct/2024:13:55:36 +0000] \"GET /1.m4s?CMCD=br%3D3200%2Cbl%3D9000%2Cot%3Dv%2Csid%3D%22s%22 HTTP/2.0\" 200 500000 rt=0.500 msec=1728568536.250\n",
        "192.0.2.9 - - [10/Oct/2024:13:55:36 +0000] \"GET /x.js HTTP/1.1\" 200 500\n",
        "192.0.2.1 - - [10/Oct/2024:13:55:38 +0000] \"GET /2.m4s?CMCD=br%3D800%2Cbs%2Cot%3Dv%2Csid%3D%22s%22 HTTP/2.0\" 200 90000\n",
        "192.0.2.2 - - [10/Oct/2024:13:55:38 +0000] \"GET /2.m4s?CMCD=br%3D800%2Csid%3D%22t%22 HTTP/2.0\" 200 90000 rt=1\n",
        "CMCD= torn\n",
    );

    #[test]
    fn a_servers_log() {
        assert_eq!(ApplicationFormat::recognise(LOG.as_bytes()), Some(ApplicationFormat::Cmcd));
        let log = read_application(ApplicationFormat::Cmcd, LOG.as_bytes());
        let [transfer] = log.transfers.as_slice() else { panic!("{log:?}") };
        assert_eq!(transfer.end_ns, 1_728_568_536_250_000_000);
        assert_eq!(transfer.end_ns - transfer.start_ns, 500_000_000);
        assert_eq!((transfer.bytes, transfer.bitrate_bps), (Some(500_000), Some(3.2e6)));
        let events: Vec<_> = log.events.iter().map(|event| (event.kind, event.value)).collect();
        let kinds = [
            (PlayerEventKind::Buffer, Some(9000.0)),
            (PlayerEventKind::Stall, None),
            (PlayerEventKind::Switch, Some(8e5)),
        ];
        assert_eq!(events, kinds);
        assert_eq!((log.items, log.bad_items, log.not_transfers), (4, 1, 2));
        let problems: Vec<_> = log.problems.kept.iter().map(ToString::to_string).collect();
        assert!(problems[0].starts_with("byte 458: no line"), "{problems:?}");
        assert!(problems[1].contains("CMCD of 2 sessions"), "{problems:?}");
        assert!(problems[2].contains("1 requests without a duration"), "{problems:?}");
    }
}
