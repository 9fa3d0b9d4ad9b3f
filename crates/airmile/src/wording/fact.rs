//! The sentences of facts.

use airmile_io::plural;
use airmile_model::{Direction, Phases, confidence_percent, plain_name};
use airmile_wire::attribute::Reason;

use super::{bounds, candidates, link};
use crate::fact::{CauseDetail, FactKind, LinkRate, LinkRateSource, Restarter};

/// The sentence of a fact, with its numbers.
pub(crate) fn fact(kind: &FactKind) -> String {
    match kind {
        FactKind::QueueTime { dir, queued_ms, duration_ms, demand } => format!(
            "the {} queue was not empty for {queued_ms:.0} of {duration_ms:.0} ms (link demand \
             {:.1} %)",
            link(*dir),
            demand * 100.0
        ),
        FactKind::NearLimit { dir, share: (least, most), limit, under, over } => {
            let what = match dir {
                Direction::Dl => "link demand",
                Direction::Ul => "the time in which data waited for capacity",
            };
            let [least, most] = [least, most].map(|share| format!("{:.1}", share * 100.0));
            let range = if least == most { least } else { format!("{least} to {most}") };
            format!(
                "{what}, {range} %, is close to {:.0} %, the limit between {under} and {over}: either \
                 may be right",
                limit * 100.0
            )
        }
        FactKind::Bursts { count, longest_ms, closed_by } => bursts(*count, *longest_ms, closed_by),
        FactKind::LongestEmpty { ms } => {
            format!("longest time with an empty queue: {ms:.0} ms")
        }
        FactKind::Throughput { got_bps } => {
            format!("it got {:.2} Mbit/s (bytes / duration)", got_bps / 1e6)
        }
        FactKind::Link(LinkRate { bps, from }) => {
            let from = match from {
                LinkRateSource::Bursts => "what it carried while data waited (rate inside bursts)",
                LinkRateSource::Limited => {
                    "its bytes over the time in which data waited for capacity"
                }
                LinkRateSource::Capacity => {
                    "the cell's capacity for the phone by its load, own PRBs and free ones"
                }
                LinkRateSource::Prbs => "all PRBs of the cell at this phone's bits per PRB",
            };
            format!("the link's rate {:.2} Mbit/s: {from}", bps / 1e6)
        }
        FactKind::Scheduled { share, prb_share_when, prb_share, cells } => {
            scheduled(*share, *prb_share_when, *prb_share, *cells)
        }
        FactKind::Signal { rsrp_dbm, snr_db, mcs_mean, retx_share } => [
            rsrp_dbm.map(|rsrp| format!("RSRP {rsrp:.0} dBm")),
            snr_db.map(|snr| format!("SNR {snr:.0} dB")),
            mcs_mean.map(|mcs| format!("mean MCS {mcs:.0}")),
            retx_share.map(|retx| format!("{:.0} % of blocks HARQ retransmissions", retx * 100.0)),
        ]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", "),
        FactKind::OthersShare { share, confidence, rough } => format!(
            "other users held about {:.0} % of the cell (confidence {:.0} %{})",
            share * 100.0,
            confidence_percent(*confidence),
            if *rough { "; rough" } else { "" }
        ),
        FactKind::Note(note) => note.clone(),
        FactKind::CauseTime { dir, cause, ms, share, bounds: within, detail } => {
            let within = within.map_or(String::new(), |within| format!(", {}", bounds(within)));
            let how = detail.map_or("its cause is unknown".to_owned(), |detail| match dir {
                Direction::Dl => cause_detail(detail),
                Direction::Ul => cause_of_upload(detail),
            });
            format!("{cause}: {ms:.0} ms ({:.0} %{within}): {how}", share * 100.0)
        }
        FactKind::Suspects(suspects) => format!("by packets alone: {}", candidates(suspects)),
        FactKind::NoCellularLink { rtt_ms } => format!(
            "the minimum round trip was {rtt_ms:.1} ms: the path has no cellular link, which takes \
             at least 4 ms"
        ),
        FactKind::QueueDelay { queue_ms, base_rtt_ms } => format!(
            "queues added {queue_ms:.0} ms to the round trip (median), whose minimum is \
             {base_rtt_ms:.0} ms"
        ),
        FactKind::PathQueue { share } => format!(
            "packets were queued between server and phone during {:.0} % of it (20 ms longer on the way \
             than the fastest ones)",
            share * 100.0
        ),
        FactKind::RateVariation { spread } => format!(
            "while data was queued, the rate varied by {:.0} % between intervals of 100 ms (most wired \
             links: less than 20 %, most cells: more)",
            spread * 100.0
        ),
        FactKind::LinkHidden => "a queue stands on the path: packets at the server do not show \
            whether a slow line's or the cell's"
            .into(),
        FactKind::CaughtUp { share } => format!(
            "after pauses of 6 ms or more, {:.0} % of the backlog arrived at once (a link with spare \
             capacity catches up)",
            share.min(1.0) * 100.0
        ),
        FactKind::Paused { share } => format!(
            "no data arrived during {:.0} % of it, in pauses of 200 ms or more",
            share * 100.0
        ),
        FactKind::Datagrams => "it used datagrams (QUIC or another): the capture shows when they \
            arrived, not what their sender waited for"
            .into(),
        FactKind::ReasonTime { reason, ms, share } => {
            format!("{ms:.0} ms ({:.0} %): {}", share * 100.0, self::reason(*reason))
        }
        FactKind::CaptureSiteUnknown => {
            "the capture does not show where it was taken; the phone is assumed".into()
        }
        FactKind::Phases { phases: of, uploads } => phases(*of, *uploads),
        FactKind::BytesDecoded => {
            "its bytes are counted after decompression: its rates may be too high".into()
        }
        FactKind::Stalls { count, stalled_ms } if *stalled_ms <= 0.0 => format!(
            "playback stalled in it ({count} stall{}, of a length that the log does not give)",
            plural(*count)
        ),
        FactKind::Stalls { count, stalled_ms } => format!(
            "playback stalled for {stalled_ms:.0} ms of it ({count} stall{})",
            plural(*count)
        ),
        FactKind::BitrateSwitches { count, bps } => format!(
            "the player changed its bitrate {count} time{}, to {:.2} Mbit/s",
            plural(*count),
            bps / 1e6
        ),
        FactKind::LeastBuffer { ms } => {
            format!("minimum of the player's buffer: {:.1} s", ms / 1e3)
        }
        FactKind::IntervalRates { bps, retransmits, rtt_us, .. } => {
            let parts = [
                bps.map(|(least, most)| {
                    format!("{:.2} to {:.2} Mbit/s per interval", least / 1e6, most / 1e6)
                }),
                retransmits.map(|n| format!("{n} lost or retransmitted")),
                rtt_us.map(|(least, most)| {
                    format!("round trips {:.1} to {:.1} ms", least / 1e3, most / 1e3)
                }),
            ];
            let parts: Vec<String> = parts.into_iter().flatten().collect();
            format!("by the application's log: {}", parts.join(", "))
        }
    }
}

/// The bursts that overlap a transfer; a length counts only the part inside it.
fn bursts(count: u64, longest_ms: f64, closed_by: &[(&'static str, u64)]) -> String {
    let plain_name = |by| if by == "fraction" { "fewer PRBs".into() } else { plain_name(by) };
    match (count, closed_by.first()) {
        (1, Some((by, _))) => {
            let by = plain_name(by);
            format!("1 burst, {longest_ms:.0} ms of it inside the transfer, ended by {by}")
        }
        (0, _) | (_, None) => "no burst: each block emptied the queue".into(),
        (n, _) => {
            let by = closed_by.iter().map(|(by, n)| format!("{} ({n})", plain_name(by)));
            let by: Vec<String> = by.collect();
            format!("{n} bursts, the longest {longest_ms:.0} ms; ended by {}", by.join(", "))
        }
    }
}

fn scheduled(share: f64, when: Option<f64>, all: Option<f64>, cells: usize) -> String {
    let mut out = format!("scheduled {:.0} % of the time", share * 100.0);
    let of = if cells > 1 { format!("its {cells} cells'") } else { "the cell's".into() };
    if let (Some(when), Some(all)) = (when, all) {
        out.push_str(&format!(
            ", with {:.0} % of {of} PRBs while scheduled ({:.0} % overall)",
            when * 100.0,
            all * 100.0
        ));
    } else if share > 0.0 {
        out.push_str(&format!("; its share of {of} PRBs is unknown"));
    }
    out
}

/// The sentence of how a cause was detected.
fn cause_detail(detail: CauseDetail) -> String {
    match detail {
        CauseDetail::Contention { others } => format!(
            "data waited at the base station, where other users held {:.0} % of the PRBs",
            others * 100.0
        ),
        CauseDetail::Signal { efficiency } => {
            let carried = efficiency.map_or(String::new(), |efficiency| {
                format!(" ({:.0} % of what MCS 28 on one layer carries)", efficiency * 100.0)
            });
            format!(
                "data waited at the base station while this phone held the PRBs: their capacity \
                 limits it{carried}"
            )
        }
        CauseDetail::SlowStartRestart(restarter) => {
            let who = match restarter {
                Restarter::Middlebox => {
                    "the server's capture has other connections without restarts: a middlebox on \
                     the way splits the connection and restarts it"
                }
                Restarter::Sender => {
                    "the server's capture has the same connections: the server restarts it"
                }
                Restarter::SenderOrMiddlebox => {
                    "the server or a middlebox restarts it: captures at phone and server show which"
                }
            };
            format!(
                "after idle time the congestion window restarted and grew round by round, with an \
                 empty downlink queue in between; {who}"
            )
        }
        CauseDetail::UndesiredSlowStart => "a retransmission timeout fired although duplicate \
            ACKs had already reported the loss, and a slow start followed"
            .into(),
        CauseDetail::FirstSlowStart => "the connection's first slow start waited for ACKs".into(),
        CauseDetail::ReceiveWindow => "the phone's receive window was full".into(),
        CauseDetail::SenderLimited {
            app_limited_ms,
            think_ms,
            no_request_ms,
            pacing_ms,
            may_be_a_line,
        } => {
            let line = if may_be_a_line {
                "; a slow link looks the same behind a proxy that splits connections, or with a short queue"
            } else {
                ""
            };
            let parts = times(&[
                ("sender idle within a response", app_limited_ms),
                ("server think time", think_ms),
                ("no request outstanding", no_request_ms),
                ("ACKs or sender pacing", pacing_ms),
            ]);
            format!("{parts}{line}")
        }
        CauseDetail::Wireline { acks } => {
            let (what, way) = match acks {
                true => ("requests and ACKs", "behind"),
                false => ("packets", "before"),
            };
            format!(
                "round trips were long while the downlink queue was empty: {what} were queued {way} \
                 the base station"
            )
        }
        CauseDetail::LossRecoveryRadio => "segments that the radio lost were retransmitted: RLC \
            continued without them, or HARQ gave up"
            .into(),
        CauseDetail::LossRecoveryCongestion => {
            "lost segments were retransmitted; they were not lost on the radio".into()
        }
        CauseDetail::Setup { promotion_ms, handshake_ms, request_ms } => {
            let parts = times(&[
                ("connecting to the cell", promotion_ms),
                ("handshakes", handshake_ms),
                ("round trips of requests", request_ms),
            ]);
            format!("before the first byte: {parts}")
        }
        CauseDetail::UplinkQueue => "round trips were long while the phone uploaded: requests and \
            ACKs were queued behind its upload"
            .into(),
    }
}

/// The same of an upload, whose sender is the phone.
fn cause_of_upload(detail: CauseDetail) -> String {
    match detail {
        CauseDetail::SlowStartRestart(_) => "after a pause the phone's congestion window \
            restarted and grew round by round, with an empty uplink queue in between"
            .into(),
        CauseDetail::ReceiveWindow => {
            "the receive window of the server, or of a proxy on the way, was full".into()
        }
        CauseDetail::SenderLimited {
            app_limited_ms, think_ms, no_request_ms, pacing_ms, ..
        } => times(&[
            ("the phone's application sent nothing", app_limited_ms + no_request_ms),
            ("it waited for the server's answer", think_ms),
            ("ACKs or the phone's own pace", pacing_ms),
        ]),
        CauseDetail::Wireline { .. } => {
            "while no data waited for the uplink's capacity, round trips were long, acknowledgements \
            alone set the pace, or a proxy passed data on: packets were queued behind the base station"
                .into()
        }
        CauseDetail::LossRecoveryCongestion => "lost segments were retransmitted; where they were \
            lost is not visible at the phone"
            .into(),
        CauseDetail::Setup { promotion_ms, handshake_ms, request_ms } => times(&[
            ("connecting to the cell", promotion_ms),
            ("handshakes", handshake_ms),
            ("round trips of the server's answers", request_ms),
        ]),
        other => cause_detail(other),
    }
}

/// Parts of a time, without those that round to 0 ms.
fn times(parts: &[(&str, f64)]) -> String {
    let parts = parts.iter().filter(|(_, ms)| *ms >= 0.5);
    let parts: Vec<String> = parts.map(|(name, ms)| format!("{name} ({ms:.0} ms)")).collect();
    if parts.is_empty() { "in parts of less than 1 ms each".into() } else { parts.join(", ") }
}

const fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Handshake => "handshakes",
        Reason::Promotion => "connecting to the cell",
        Reason::Request => "round trips of requests",
        Reason::ServerThinkTime => "server think time",
        Reason::NoRequest => "no request outstanding",
        Reason::AppLimited => "sender idle within a response",
        Reason::FirstSlowStart => "waiting for ACKs in the first slow start",
        Reason::SlowStartRestart => "waiting for ACKs in a slow start after idle time",
        Reason::UndesiredSlowStart => "slow start after an unnecessary timeout",
        Reason::LossRecovery => "retransmission of lost segments",
        Reason::ReceiveWindow | Reason::QueueOrWindow => "receive window full",
        Reason::Pacing | Reason::PathPace => "ACKs or sender pacing",
        Reason::Queue | Reason::QueueOrSender => "data queued on the path",
        Reason::QueueUp => "requests or ACKs queued on the uplink",
        Reason::Unknown => "the connection's start is not in the capture",
        Reason::AfterLast => "after the last data",
    }
}

/// Browsers count the sending of an upload as the wait for its answer.
const WAIT_OF_UPLOAD: &str = "sending and the wait for the answer";

/// The phases of a transfer in its application's log.
fn phases(phases: Phases, uploads: bool) -> String {
    let Phases { blocked_ns, dns_ns, connect_ns, tls_ns, send_ns, wait_ns, receive_ns } = phases;
    let parts = [
        ("in its own queue", blocked_ns),
        ("name lookup", dns_ns),
        ("connecting", connect_ns),
        ("TLS", tls_ns),
        ("sending", send_ns),
        (if uploads { WAIT_OF_UPLOAD } else { "wait for the first byte" }, wait_ns),
        ("receiving", receive_ns),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter_map(|(name, ns)| Some((name, ns.filter(|ns| *ns > 0)?)))
        .map(|(name, ns)| format!("{name} {:.0} ms", ns as f64 / 1e6))
        .collect();
    let reused = if phases.setup_ns() == Some(0) { "; on an open connection" } else { "" };
    format!("by the application's own log: {}{reused}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_in_words() {
        let parts = Phases {
            dns_ns: Some(0),
            connect_ns: Some(0),
            wait_ns: Some(40_000_000),
            receive_ns: Some(5_400_000),
            ..Phases::default()
        };
        let expected = "by the application's own log: wait for the first byte 40 ms, receiving \
                        5 ms; on an open connection";
        assert_eq!(phases(parts, false), expected);
    }

    #[test]
    fn a_line_at_a_proxy_is_named_where_the_server_is_not_seen() {
        for may_be_a_line in [true, false] {
            let words = cause_detail(CauseDetail::SenderLimited {
                app_limited_ms: 0.0,
                think_ms: 0.0,
                no_request_ms: 0.0,
                pacing_ms: 900.0,
                may_be_a_line,
            });
            assert_eq!(words.contains("proxy"), may_be_a_line, "{words}");
            assert!(words.starts_with("ACKs or sender pacing (900 ms)"), "{words}");
        }
    }

    #[test]
    fn a_part_that_is_zero_is_no_evidence() {
        let setup = CauseDetail::Setup { promotion_ms: 0.0, handshake_ms: 90.0, request_ms: 0.4 };
        assert_eq!(cause_detail(setup), "before the first byte: handshakes (90 ms)");
        let setup = CauseDetail::Setup { promotion_ms: 0.4, handshake_ms: 0.3, request_ms: 0.0 };
        assert_eq!(cause_detail(setup), "before the first byte: in parts of less than 1 ms each");
    }

    #[test]
    fn bursts_by_how_many() {
        assert_eq!(bursts(0, 0.0, &[]), "no burst: each block emptied the queue");
        assert_eq!(
            bursts(1, 12.0, &[("poll", 1)]),
            "1 burst, 12 ms of it inside the transfer, ended by poll"
        );
        assert_eq!(
            bursts(3, 12.0, &[("log_hole", 1), ("poll", 2)]),
            "3 bursts, the longest 12 ms; ended by log hole (1), poll (2)"
        );
    }
}
