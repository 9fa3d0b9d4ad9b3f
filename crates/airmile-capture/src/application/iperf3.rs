//! The output of `iperf3 --json` and `--json-stream` (iperf3 manual; field names of
//! `iperf_api.c`'s JSON output as of 3.1 to 3.18). The client counts as the phone: `-R`
//! is its download, in a server's file as well.

use airmile_model::{AppTransfer, Direction, RatePoint, TransferKind};
use serde_json::Value;

use super::fields::{Entry, parse};
use super::{FormatReader, Gathered};

pub(super) const WANTED: &[&str] = &["intervals[]"];

/// Reads a test.
#[derive(Debug, Default)]
pub(super) struct Iperf3 {
    start_ns: Option<i64>,
    reverse: bool,
    bidirectional: bool,
    streams: u64,
    /// Bytes of a datagram.
    block_bytes: u64,
    protocol: Option<String>,
    error: Option<String>,
    /// The time before the intervals' times, which restart after omitted ones.
    base_ns: i64,
    omitted_until_ns: i64,
    /// Bytes and last time by direction, from the intervals.
    seen: [StreamSums; 2],
    /// The same from the test's end.
    reported: [Option<StreamSums>; 2],
    has_end: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct StreamSums {
    bytes: u64,
    end_ns: i64,
}

const fn place(dir: Direction) -> usize {
    match dir {
        Direction::Dl => 0,
        Direction::Ul => 1,
    }
}

impl FormatReader for Iperf3 {
    fn value(&mut self, path: &str, offset: u64, bytes: &[u8], found: &mut Gathered) {
        let shown = if path.is_empty() { "line" } else { path };
        let known = ["start", "end", "intervals[]", "error", ""];
        if !known.contains(&path) {
            return;
        }
        let Some(value) = parse(bytes, offset, shown, found) else { return };
        let entry = Entry { value: &value, offset };
        if !path.is_empty() {
            return self.part(path.trim_end_matches("s[]"), entry, found);
        }
        // A line of --json-stream.
        let name = entry.text("event", found).unwrap_or_default();
        if let Some(data) = value.get("data") {
            self.part(name, Entry { value: data, offset }, found);
        }
    }

    fn finish(&mut self, found: &mut Gathered) {
        if let Some(error) = &self.error {
            found.note(format!("the test failed: {error}"));
        }
        let Some(start_ns) = self.start_ns else {
            found.note("start.timestamp: missing; when the test was is not known".into());
            return;
        };
        for dir in [Direction::Dl, Direction::Ul] {
            let seen = self.seen[place(dir)];
            let sums = self.reported[place(dir)].filter(|sums| sums.bytes > 0).unwrap_or(seen);
            let end_ns = seen.end_ns.max(sums.end_ns);
            if sums.bytes == 0 || end_ns <= 0 {
                continue;
            }
            let mut transfer = AppTransfer::new(
                format!("iperf3-{dir}"),
                start_ns,
                start_ns.saturating_add(end_ns),
            );
            transfer.dir = Some(dir);
            transfer.kind = TransferKind::Test;
            transfer.bytes = Some(sums.bytes);
            transfer.protocol.clone_from(&self.protocol);
            let n = self.streams.max(1);
            transfer.connection = Some(format!("{n} stream{}", if n == 1 { "" } else { "s" }));
            transfer.unfinished = !self.has_end;
            transfer.failed = self.error.is_some();
            found.transfer(transfer);
        }
    }
}

impl Iperf3 {
    fn part(&mut self, name: &str, entry: Entry<'_>, found: &mut Gathered) {
        match name {
            "start" => self.start(entry, found),
            "interval" => {
                found.log.items += 1;
                self.interval(entry, found);
            }
            "end" => self.end(entry, found),
            "error" => self.error = entry.value.as_str().map(str::to_owned),
            _ => {}
        }
    }

    fn start(&mut self, entry: Entry<'_>, found: &mut Gathered) {
        let ms = entry.number("timestamp.timemillisecs", found);
        let (time_ms, within_ns) = match ms {
            Some(ms) => (Some(ms), 1_000_000),
            // The whole second in which the test began.
            None => (entry.number("timestamp.timesecs", found).map(|s| s * 1e3), 1_000_000_000),
        };
        found.log.scale.placed_within_ns = within_ns;
        self.start_ns = time_ms.and_then(super::fields::ns_of_ms);
        let flag = |path: &str| match entry.get(path) {
            Some(Value::Bool(set)) => *set,
            Some(value) => value.as_i64().is_some_and(|n| n != 0),
            None => false,
        };
        self.reverse = flag("test_start.reverse");
        self.bidirectional = flag("test_start.bidir");
        self.streams = entry.count("test_start.num_streams", found).unwrap_or(1);
        self.block_bytes = entry.count("test_start.blksize", found).unwrap_or(0);
        self.protocol = entry.text("test_start.protocol", found).map(str::to_ascii_lowercase);
        let side = match entry.get("accepted_connection") {
            Some(_) => " (server)",
            None => "",
        };
        found.log.made_by = entry.text("version", found).map(|version| format!("{version}{side}"));
    }

    /// Direction of the sums: `sum` is that of the test, `sum_bidir_reverse` the other.
    fn dir(&self, reverse_sum: bool) -> Direction {
        if reverse_sum || self.reverse { Direction::Dl } else { Direction::Ul }
    }

    fn interval(&mut self, entry: Entry<'_>, found: &mut Gathered) {
        for (name, reverse_sum) in [("sum", false), ("sum_bidir_reverse", true)] {
            let Some(sum) = entry.get(name) else { continue };
            let sum = Entry { value: sum, offset: entry.offset };
            let seconds = |name: &str, found: &mut Gathered| {
                let s = sum.number(name, found)?;
                (0.0..1e9).contains(&s).then(|| (s * 1e9).round() as i64)
            };
            let (start, end) = (seconds("start", found), seconds("end", found));
            let (times, bytes) = (start.zip(end), sum.count("bytes", found));
            let (Some((start_ns, end_ns)), Some(bytes)) = (times, bytes) else {
                found.bad(entry.offset, format!("intervals[].{name}: start, end or bytes missing"));
                continue;
            };
            if sum.get("omitted").and_then(Value::as_bool) == Some(true) {
                self.omitted_until_ns = end_ns;
            } else if self.omitted_until_ns > 0 {
                self.base_ns = self.base_ns.saturating_add(self.omitted_until_ns);
                self.omitted_until_ns = 0;
            }
            let dir = self.dir(reverse_sum);
            let seen = &mut self.seen[place(dir)];
            seen.bytes = seen.bytes.saturating_add(bytes);
            seen.end_ns = seen.end_ns.max(self.base_ns.saturating_add(end_ns));
            let Some(test_ns) = self.start_ns else { continue };
            let at = |ns: i64| test_ns.saturating_add(self.base_ns).saturating_add(ns);
            let (rtt_us, cwnd_bytes) = streams(&entry, sum.get("sender"));
            let lost = |found: &mut Gathered| sum.count("lost_packets", found);
            let retransmits = sum.count("retransmits", found).or_else(|| lost(found));
            found.log.rates.push(RatePoint {
                start_ns: at(start_ns),
                end_ns: at(end_ns),
                dir,
                bytes,
                retransmits,
                rtt_us,
                cwnd_bytes,
            });
        }
    }

    fn end(&mut self, entry: Entry<'_>, found: &mut Gathered) {
        self.has_end = true;
        for (received, sent, reverse_sum) in [
            ("sum_received", "sum_sent", false),
            ("sum_received_bidir_reverse", "sum_sent_bidir_reverse", true),
        ] {
            let of = |name: &str, found: &mut Gathered| {
                let bytes = entry.count(&format!("{name}.bytes"), found)?;
                let seconds = entry.number(&format!("{name}.end"), found)?;
                let end_ns = (seconds.clamp(0.0, 1e9) * 1e9) as i64;
                (bytes > 0).then_some(StreamSums { bytes, end_ns })
            };
            let datagrams = |name: &str, found: &mut Gathered| {
                let mut count = |field| entry.count(&format!("{name}.{field}"), found);
                count("packets").zip(count("lost_packets")).filter(|(all, lost)| all >= lost)
            };
            // Received data counts; a file may hold only its own side. Before 3.11 UDP has neither,
            // and its sum has the bytes sent.
            let sums = of(received, found).or_else(|| of(sent, found));
            let name = if sums.is_some() || reverse_sum { received } else { "sum" };
            let mut sums = sums.or_else(|| of(name, found));
            if let Some((all, lost)) = datagrams(name, found).filter(|(_, lost)| *lost > 0) {
                let share = lost as f64 / all as f64;
                let percent = share * 100.0;
                found.note(format!("{lost} of {all} datagrams ({percent:.1} %) were lost"));
                if let Some(sums) = sums.as_mut().filter(|_| name == "sum") {
                    let by_share = sums.bytes as f64 * (1.0 - share);
                    let bytes = (all - lost).saturating_mul(self.block_bytes);
                    sums.bytes = if bytes > 0 { bytes } else { by_share.round() as u64 };
                }
            }
            let dir = self.dir(reverse_sum);
            // Omitted time and bytes are not in the end's sums.
            self.reported[place(dir)] =
                sums.filter(|_| self.base_ns == 0).or(self.reported[place(dir)]);
        }
    }
}

/// Mean round trip and sum of the windows of an interval's streams, if they send.
fn streams(entry: &Entry<'_>, sender: Option<&Value>) -> (Option<f64>, Option<u64>) {
    let Some(streams) = entry.get("streams").and_then(Value::as_array) else { return (None, None) };
    let same = streams.iter().filter(|stream| sender.is_none() || stream.get("sender") == sender);
    let (mut rtts, mut n, mut cwnd) = (0.0, 0_u32, None);
    for stream in same {
        if let Some(rtt) = stream.get("rtt").and_then(Value::as_f64).filter(|rtt| *rtt > 0.0) {
            rtts += rtt;
            n += 1;
        }
        if let Some(bytes) = stream.get("snd_cwnd").and_then(Value::as_u64) {
            cwnd = Some(cwnd.unwrap_or(0_u64).saturating_add(bytes));
        }
    }
    ((n > 0).then(|| rtts / f64::from(n)), cwnd)
}

#[cfg(test)]
mod tests {
    use super::super::{ApplicationFormat, read_application};
    use super::*;

    fn test(start: &str, intervals: &str, end: &str) -> airmile_model::ApplicationLog {
        let text = format!(
            r#"{{"start":{{"version":"iperf 3.12","timestamp":{{"timesecs":1700000000}},"test_start":{{"protocol":"TCP","num_streams":2,{start}}}}},"intervals":[{intervals}]{end}"#
        );
        assert_eq!(ApplicationFormat::recognise(text.as_bytes()), Some(ApplicationFormat::Iperf3));
        read_application(ApplicationFormat::Iperf3, text.as_bytes())
    }

    fn sum(start: u32, bytes: u32, omitted: bool) -> String {
        format!(
            r#"{{"streams":[{{"rtt":20000,"snd_cwnd":10,"sender":true}},{{"rtt":30000,"snd_cwnd":5,"sender":true}}],"sum":{{"start":{start},"end":{},"bytes":{bytes},"retransmits":3,"omitted":{omitted},"sender":true}}}}"#,
            start + 1
        )
    }

    #[test]
    fn direction_bytes_and_rates() {
        // Start, intervals, end; direction, bytes, ms, rates.
        let check = |start: &str,
                     intervals: &[String],
                     end: &str,
                     expected: (Direction, u64, i64, usize)| {
            let log = test(start, &intervals.join(","), end);
            let [transfer] = log.transfers.as_slice() else { panic!("{log:?}") };
            let ms = (transfer.end_ns - transfer.start_ns) / 1_000_000;
            let got = (transfer.dir.unwrap(), transfer.bytes.unwrap(), ms, log.rates.len());
            assert_eq!(got, expected);
        };
        let two = [sum(0, 100, false), sum(1, 200, false)];
        let end =
            r#","end":{"sum_sent":{"end":2,"bytes":310},"sum_received":{"end":2.04,"bytes":290}}}"#;
        check(r#""reverse":1"#, &two, end, (Direction::Dl, 290, 2_040, 2));
        check(r#""reverse":0"#, &two, end, (Direction::Ul, 290, 2_040, 2));
        check(r#""reverse":0"#, &two, "", (Direction::Ul, 300, 2_000, 2));
        // Omitted seconds come before the others, whose times restart.
        let omitted = [sum(0, 100, true), sum(0, 200, false)];
        check(r#""reverse":1"#, &omitted, "}", (Direction::Dl, 300, 2_000, 2));
    }

    #[test]
    fn a_datagram_test_counts_what_was_received() {
        // Intervals of a receiver; the sum at the end has the bytes sent (iperf3 before 3.11).
        let interval = |sender: bool| {
            format!(
                r#"{{"streams":[],"sum":{{"start":0,"end":1,"bytes":3000,"lost_packets":7,"packets":10,"sender":{sender}}}}}"#
            )
        };
        let end = r#"],"end":{"sum":{"end":1,"bytes":10000,"lost_packets":7,"packets":10}}}"#;
        // Intervals, bytes, losses by interval, losses named.
        let check = |interval: &str, size: &str, bytes: u64, lost: Option<u64>| {
            let text = format!(
                r#"{{"start":{{"version":"iperf 3.9","timestamp":{{"timesecs":1700000000}},"test_start":{{"protocol":"UDP","reverse":1{size}}}}},"intervals":[{interval}{end}"#
            );
            let log = read_application(ApplicationFormat::Iperf3, text.as_bytes());
            assert_eq!(log.transfers[0].bytes, Some(bytes), "{text}");
            assert_eq!(log.rates.first().and_then(|rate| rate.retransmits), lost, "{text}");
            let what = log.problems.kept.iter().map(ToString::to_string).collect::<String>();
            assert!(what.contains("7 of 10 datagrams (70.0 %) were lost"), "{what}");
        };
        check(&interval(false), r#","blksize":1000"#, 3_000, Some(7));
        check(&interval(true), r#","blksize":1000"#, 3_000, Some(7));
        check("", r#","blksize":900"#, 2_700, None);
        check("", "", 3_000, None);
    }

    #[test]
    fn several_streams_and_a_torn_file() {
        let log = test(r#""reverse":1"#, &sum(0, 100, false), "");
        assert_eq!((log.rates[0].rtt_us, log.rates[0].cwnd_bytes), (Some(25_000.0), Some(15)));
        assert_eq!(log.transfers[0].connection.as_deref(), Some("2 streams"));
        assert!(log.transfers[0].unfinished && log.problems.damaged);
        assert_eq!(log.scale.placed_within_ns, 1_000_000_000);
        let log = test(r#""reverse":[]"#, r#"{"sum":{"start":0,"end":"x","bytes":1}}"#, "}");
        assert_eq!((log.transfers.len(), log.bad_items), (0, 1));
    }

    #[test]
    fn lines_of_a_stream() {
        let line = |event: &str, data: &str| format!("{{\"event\":\"{event}\",\"data\":{data}}}\n");
        let text = [
            line("start", r#"{"version":"iperf 3.18","timestamp":{"timesecs":1700000000,"timemillisecs":1700000000250},"test_start":{"reverse":1}}"#),
            line("interval", &sum(0, 100, false)),
        ]
        .concat();
        assert_eq!(
            ApplicationFormat::recognise(text.as_bytes()),
            Some(ApplicationFormat::Iperf3Stream)
        );
        let log = read_application(ApplicationFormat::Iperf3Stream, text.as_bytes());
        assert_eq!(log.transfers[0].start_ns, 1_700_000_000_250_000_000);
        assert_eq!(log.transfers[0].bytes, Some(100));
    }
}
