//! The phone in captures, for probabilities of what limited its transfers.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use airmile_blind::{CapturedPhone, CapturedPhones, Features, Model, TransportKind};
use airmile_io::FileReport;
use airmile_io::capture::{SLOT_NS, WITHOUT_ROOT, read_capture};
use airmile_io::error::{Error, Result};
use airmile_io::input::Progress;
use airmile_io::limits::{LimitFilter, Limits};
use airmile_model::{Direction, Problem, Severity};
use airmile_wire::attribute::{CaptureSite, HiddenQueue};
use airmile_wire::clocks::Arrivals;
use airmile_wire::tcp::{PacketStudy, Quality, StudyOptions, Traced};

/// What to do where a snap length cut headers.
pub const LONGER_HEADERS: &str = "capture longer headers (`tcpdump -s 128`)";

/// The contents of captures.
#[derive(Debug)]
pub struct CapturedFiles {
    /// The phone in the capture nearest to it; `None` without data.
    pub phone: Option<CapturedPhone>,
    /// The name of that capture.
    pub name: String,
    /// The names of captures at servers besides, and the phone in each.
    pub servers: Vec<(String, CapturedPhone)>,
    /// A report of each capture.
    pub files: Vec<FileReport>,
    /// TCP payload from clients, of the capture with the most.
    pub sent_bytes: u64,
}

/// Above this share of packets that could not be put in order, times are not used (chosen here).
const MAX_LATE: f64 = 0.002;

/// The order of packets between `--from` and `--to`, after they were sorted.
#[derive(Default)]
struct Order {
    packets: u64,
    /// Packets that follow a later one.
    late: u64,
    newest_ns: Option<i64>,
}

impl Order {
    fn push(&mut self, at_ns: i64) {
        self.packets += 1;
        self.late += u64::from(self.newest_ns.is_some_and(|newest| at_ns < newest));
        self.newest_ns = self.newest_ns.max(Some(at_ns));
    }

    fn is_lost(&self) -> bool {
        self.late as f64 > MAX_LATE * self.packets as f64
    }
}

/// Marks a phone whose packets are not in order, and reports one whose packets are missing.
fn damage(phone: &mut CapturedPhone, order: &Order) -> Option<Problem> {
    phone.mistimed |= order.is_lost();
    let is_dropped = phone.lacks_packets() && !phone.only_acknowledges();
    is_dropped.then(|| {
        let what = format!(
            "{} bytes that the phone acknowledged are not in the capture: packets were \
             dropped while it was made (a larger buffer, `tcpdump -B`, or a shorter snap \
             length helps)",
            phone.unseen_bytes
        );
        Problem::of_file(Severity::Damage, what)
    })
}

/// Marks a phone whose TCP headers the capture cut, and reports it.
fn cut(phone: &mut CapturedPhone, quality: &Quality) -> Option<Problem> {
    phone.headers_cut = quality.lacks_options();
    phone.headers_cut.then(|| {
        let what = format!(
            "TCP options are cut off in {} of {} packets: {}",
            quality.options_cut, quality.tcp_packets, LONGER_HEADERS
        );
        Problem::of_file(Severity::Warning, what)
    })
}

/// Clients other than the judged one that had a download, too, by the bytes of each.
fn unjudged(others: &[u64], min_bytes: u64) -> Option<Problem> {
    let large = others.iter().filter(|bytes| **bytes >= min_bytes);
    let (n, bytes) = large.fold((0_u64, 0_u64), |(n, sum), bytes| (n + 1, sum + bytes));
    (n > 0).then(|| {
        let what = format!(
            "{n} more client address{} received {:.1} MB: only the transfers of the one that received \
             the most are judged; to judge another, keep its packets alone (`tcpdump -r FILE -w ONE \
             host ADDRESS`)",
            if n == 1 { "" } else { "es" },
            bytes as f64 / 1e6
        );
        Problem::of_file(Severity::Warning, what)
    })
}

/// One capture: its report, IP packets, and largest user.
#[derive(Debug)]
pub struct CapturedFile {
    /// Its report.
    pub report: FileReport,
    /// IP packets within the limits.
    pub packets: u64,
    /// Of these, TCP and UDP.
    pub followed: u64,
    /// The user that received the most; `None` without data.
    pub phone: Option<CapturedPhone>,
    /// TCP payload from clients.
    pub sent_bytes: u64,
}

/// What counts as a download.
#[derive(Debug, Clone, Copy)]
pub struct Downloads {
    /// Of fewer bytes it is none.
    pub min_bytes: u64,
    /// A pause of this length separates two, in nanoseconds.
    pub pause_ns: i64,
}

impl Downloads {
    /// By the options of the command line.
    #[must_use]
    pub fn new(min_bytes: u64, pause_ms: u32) -> Self {
        Self { min_bytes, pause_ns: i64::from(pause_ms) * 1_000_000 }
    }
}

/// Reads a capture.
///
/// # Errors
/// It cannot be read.
pub fn captured_file(
    path: &Path,
    (limits, downloads): (Limits, Downloads),
    progress: &Progress,
) -> Result<CapturedFile> {
    let options = StudyOptions { traced: Traced::All, ..StudyOptions::default() };
    let mut study = PacketStudy::new(options);
    let mut phones = CapturedPhones::new().with_pause_ns(downloads.pause_ns);
    let mut filter = LimitFilter::new(limits);
    let mut order = Order::default();
    let mut sent_bytes = 0_u64;
    let mut report = read_capture(path, progress, &mut |packet| {
        if !filter.keeps_ns(packet.at_ns) {
            return;
        }
        order.push(packet.at_ns);
        study.push(packet);
        phones.note(packet);
        while let Some(traced) = study.poll_trace() {
            phones.push(&traced);
            if traced.dir == Direction::Ul {
                sent_bytes = sent_bytes.saturating_add(traced.new_bytes);
            }
        }
    })?;
    let mut phones = phones.finish().into_iter();
    let has_data = |phone: &CapturedPhone| {
        phone.bytes > 0 || phone.only_acknowledges() && phone.unseen_bytes >= downloads.min_bytes
    };
    let mut phone = phones.next().filter(has_data);
    if let Some(phone) = &mut phone {
        let others: Vec<u64> = phones.map(|phone| phone.bytes).collect();
        if report.records.contains_key(WITHOUT_ROOT) {
            phone.place = CaptureSite::Inside;
        }
        let most_ns = if phone.place == CaptureSite::Server { SLOT_NS } else { 0 };
        let coarse = report.coarse_clock(most_ns);
        phone.mistimed |= coarse.is_some();
        let problems = [
            damage(phone, &order),
            coarse.map(|what| Problem::of_file(Severity::Warning, what)),
            cut(phone, &study.quality()),
            unjudged(&others, downloads.min_bytes),
        ];
        problems.into_iter().flatten().for_each(|problem| report.problem(problem));
    }
    let quality = study.quality();
    let followed = quality.tcp_packets + quality.udp_packets;
    Ok(CapturedFile { report, packets: order.packets, followed, phone, sent_bytes })
}

/// The queue that the arrivals of a capture indicate, by a modem log known not to be the radio's;
/// with its probability if one is named.
///
/// # Errors
/// The capture cannot be read.
pub fn hidden_queue(
    capture: &Path,
    downloads: Downloads,
    progress: &Progress,
) -> Result<Option<(HiddenQueue, f64)>> {
    let read = captured_file(capture, (Limits::default(), downloads), progress)?;
    let spans = |phone: &CapturedPhone| phone.transfers(downloads.min_bytes);
    let features = read.phone.and_then(|phone| Features::from_spans(&phone, &spans(&phone)));
    Ok(features.and_then(|features| Model::hidden_queue(&features)))
}

/// Reads captures and returns the phone of the one nearest to it.
///
/// # Errors
/// A file cannot be read, or none holds a packet.
pub fn captured_files(
    captures: &[PathBuf],
    (limits, downloads): (Limits, Downloads),
    progress: &Progress,
) -> Result<CapturedFiles> {
    let mut all = Vec::new();
    for path in captures {
        all.push(captured_file(path, (limits, downloads), progress)?);
    }
    if all.iter().all(|one| one.packets == 0) {
        let names: Vec<&str> = all.iter().map(|one| one.report.path.as_str()).collect();
        let names = names.join(", ");
        let when = limits.words();
        let reports = || all.iter().map(|one| &one.report);
        let start_us = reports().filter_map(|report| report.start_us).min();
        let span = start_us.zip(reports().filter_map(|report| report.end_us).max());
        let why = if let Some((start_us, end_us)) = span.filter(|_| !when.is_empty()) {
            let [start, end] = [start_us, end_us].map(|us| limits.zone.show(us));
            let zone = limits.zone.name_at(start_us);
            format!(" (the packets are of {start} to {end} {zone})")
        } else {
            // That a file's packets are outside of the limits is its last one.
            let problem = reports().find_map(|report| report.problems.iter().last());
            problem.map_or_else(String::new, |problem| format!(" ({})", problem.what))
        };
        return Err(Error::NothingToAnalyse(format!("{names}: no IP packets{when}{why}")));
    }
    // Paths, so that the order of arguments decides nothing.
    let rank = |one: &CapturedFile| {
        let phone = one.phone.as_ref()?;
        Some((near(phone), phone.bytes, Reverse(one.report.path.clone())))
    };
    let chosen = all.iter().enumerate().filter_map(|(at, one)| Some((rank(one)?, at))).max();
    let chosen = chosen.map(|(_, at)| at);
    let first = chosen.and_then(|at| all.get(at));
    let unused = all.iter().map(|one| unused(one, first?));
    let unused: Vec<Option<String>> = unused.collect();
    let (files, sent_bytes) = (Vec::new(), all.iter().map(|one| one.sent_bytes).max());
    let sent_bytes = sent_bytes.unwrap_or_default();
    let (phone, name, servers) = (None, String::new(), Vec::new());
    let mut read = CapturedFiles { phone, name, servers, files, sent_bytes };
    for ((at, mut one), unused) in all.into_iter().enumerate().zip(unused) {
        if chosen == Some(at) {
            read.name.clone_from(&one.report.path);
            read.phone = one.phone;
        } else if let Some(why) = unused {
            one.report.leave_out(&why);
        } else if let Some(phone) = one.phone.take_if(|phone| phone.place == CaptureSite::Server) {
            read.servers.push((one.report.path.clone(), phone));
        }
        read.files.push(one.report);
    }
    Ok(read)
}

const fn near(phone: &CapturedPhone) -> u8 {
    match phone.place {
        CaptureSite::Phone => 4,
        CaptureSite::Unknown => 3,
        // Acknowledgements stand for arrivals.
        CaptureSite::Server => 2,
        // Neither has a verdict, but times of what arrived are those of the phone.
        CaptureSite::Inside => 1,
        CaptureSite::Between => 0,
    }
}

/// Why a capture is not used; `None` for the first one, and for one at a server.
fn unused(one: &CapturedFile, first: &CapturedFile) -> Option<String> {
    let (own, phone, name) = (one.phone.as_ref()?, first.phone.as_ref()?, &first.report.path);
    Some(match own.place {
        _ if one.report.path == *name => "given twice".to_owned(),
        _ if one.packets == first.packets && own.is_same_as(phone) => {
            format!("it holds the same packets as {name}")
        }
        CaptureSite::Between => "it was taken between phone and server".to_owned(),
        CaptureSite::Server if near(phone) > near(own) => return None,
        place if place == phone.place => format!(
            "{name}, at the same place, has more of the phone's data (join parts of one capture with \
             `mergecap`)"
        ),
        CaptureSite::Inside => {
            "a VPN on the phone ends its connections (docs/phones.md)".to_owned()
        }
        _ => format!("{name} shows better where it was taken"),
    })
}

/// The data that arrived at the phone, over any protocol.
#[must_use]
pub fn arrivals(phone: &CapturedPhone) -> Arrivals {
    let of = |transport| {
        let mut arrivals = Arrivals::new();
        phone.arrivals(transport).iter().for_each(|(at, bytes)| arrivals.add(*at, *bytes));
        arrivals
    };
    of(TransportKind::Stamped).merged(&of(TransportKind::Datagrams))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(times_ns: impl IntoIterator<Item = i64>) -> Order {
        let mut order = Order::default();
        times_ns.into_iter().for_each(|ns| order.push(ns));
        order
    }

    #[test]
    fn the_order_is_lost_by_a_share_of_its_own_packets() {
        assert!(!order([]).is_lost());
        assert!(!order([-1, 0, 0, 5]).is_lost());
        let late = order((0..998).chain([3, 4]));
        assert_eq!((late.packets, late.late), (1_000, 2));
        assert!(!late.is_lost());
        assert!(order((0..998).chain([3])).late == 1 && order([2, 1]).is_lost());
    }

    #[test]
    fn downloads_of_other_clients_are_told() {
        let unjudged = |others: &[u64]| unjudged(others, 20_000);
        assert!(unjudged(&[]).is_none() && unjudged(&[19_999]).is_none());
        let what = unjudged(&[4_000_000, 20_000, 1]).unwrap().what;
        assert!(what.starts_with("2 more client addresses received 4.0 MB"), "{what}");
    }

    /// A capture inside the phone has no verdict, which a server's may have.
    #[test]
    fn captures_are_ranked_by_what_they_answer() {
        let near = [CaptureSite::Between, CaptureSite::Inside, CaptureSite::Server].map(|place| {
            let mut phone = CapturedPhone::default();
            phone.place = place;
            near(&phone)
        });
        assert_eq!(near, [0, 1, 2]);
    }

    #[test]
    fn packets_out_of_order_were_not_dropped() {
        let check = |unseen_bytes, times_ns: [i64; 2], dropped, damaged| {
            let mut phone = CapturedPhone::default();
            phone.bytes = 1_000;
            phone.unseen_bytes = unseen_bytes;
            assert_eq!(damage(&mut phone, &order(times_ns)).is_some(), dropped);
            assert_eq!(phone.is_damaged(), damaged, "{unseen_bytes} {times_ns:?}");
        };
        check(1, [1, 2], false, false);
        check(1, [2, 1], false, true);
        check(21, [1, 2], true, true);
        check(21, [2, 1], true, true);
    }
}
