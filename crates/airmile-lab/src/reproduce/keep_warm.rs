//! `BurstTracker`, 5.3, with real endpoints: a player that fetches a byte now and then
//! while it pauses, compared with the same player through the middlebox and past it.

use std::net::IpAddr;
use std::path::Path;

use airmile_emulate::PHONE_ADDRESS;

use super::estimate::{Estimate, mean, quantile, ratio_of_means};
use super::figure::{Axis, Figure, Series};
use super::hosts::{Job, Program, Video};
use super::middlebox::{PASSING, play, seeded};
use super::player_log::{KeptWarm, PlayerLog};
use super::ports::{PAUSE_S, SCENARIO};
use super::runs::{Work, read};
use super::{Experiment, ExperimentResult, Row};
use airmile::Progress;
use airmile::Result;
use airmile::read_capture;

pub(super) const KEEP_WARM: Experiment = Experiment {
    name: "bursttracker-fig9-warm",
    source: "BurstTracker, MobiCom 2019, figure 9 with the fetches of section 5.3",
    what: "a player that keeps the window warm, against the middlebox and past it; real endpoints",
    run,
};

/// A player's bitrate choice, with a ladder fine enough that its choice follows its
/// measurements.
struct Player {
    name: &'static str,
    options: &'static str,
    bitrates_bps: &'static [u64],
    /// By size: runs per way, and the video's seconds.
    runs: [u64; 3],
    seconds: [u64; 3],
}

/// Set before any run, for figure 9's network (80 ms, about 12 Mbit/s), segments of 4 s:
///
/// - The player uses a share of the measured throughput such that segments have about 400
///   kB and pauses 3 s, for which 5.9 Mbit/s were measured on Linux with the restart, and
///   8.9 without (`middlebox-ports.toml`): 0.15. By these figures it chooses from about 1.0
///   to 1.5 Mbit/s. Steps of 8 % around.
/// - 0.7 is the share that ExoPlayer, used for the paper's first figure, and hls.js require
///   for a higher bitrate. It pauses for little over a second, and its segments are ten
///   times as large, so that a restart costs little: by these figures from 7.5 to 8.1
///   Mbit/s. Steps of 4 %.
///
/// By default the first has four runs per way, enough to estimate a share of a gain, and
/// the second one run, for the picture: some 25 minutes in total.
const PLAYERS: [Player; 2] = [
    Player {
        name: "segments of 400 kB",
        options: "--rule throughput --fraction 0.15",
        bitrates_bps: &[
            400_000, 432_000, 467_000, 504_000, 544_000, 588_000, 635_000, 686_000, 740_000,
            800_000, 864_000, 933_000, 1_010_000, 1_090_000, 1_180_000, 1_270_000, 1_370_000,
            1_480_000, 1_600_000, 1_730_000, 1_860_000, 2_010_000, 2_180_000, 2_350_000,
        ],
        runs: [2, 4, 10],
        seconds: [24, 96, 120],
    },
    Player {
        name: "0.7 of the throughput",
        options: "--rule throughput --fraction 0.7",
        bitrates_bps: &[
            4_000_000, 4_900_000, 5_800_000, 6_400_000, 6_660_000, 6_920_000, 7_200_000, 7_490_000,
            7_790_000, 8_100_000, 8_420_000, 8_760_000, 9_110_000, 9_900_000,
        ],
        runs: [2, 1, 10],
        seconds: [24, 48, 120],
    },
];

const SEGMENT_S: u64 = 4;

/// The ways that are compared, in this order, run by run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Proxy,
    Warm,
    Bypass,
}

const WAYS: [Way; 3] = [Way::Proxy, Way::Warm, Way::Bypass];

impl Way {
    const fn name(self) -> &'static str {
        match self {
            Self::Proxy => "through the middlebox",
            Self::Warm => "through it, kept warm",
            Self::Bypass => "past it",
        }
    }

    fn script(self, player: &Player) -> String {
        let play = play(if self == Self::Bypass { PASSING } else { 80 });
        let warm = if self == Self::Warm { " --keep-warm" } else { "" };
        format!("{play} {}{warm}", player.options)
    }
}

/// Bytes of IP packets at the phone.
#[derive(Clone, Copy, Default)]
struct PhoneBytes {
    /// While no segment was in transit, towards the phone and from it.
    between: [u64; 2],
    /// In total.
    all: [u64; 2],
}

struct PlayedSession {
    log: PlayerLog,
    passed: PhoneBytes,
}

fn session(dir: &Path) -> Result<PlayedSession> {
    let log = PlayerLog::read(dir)?;
    let spans: Vec<(i64, i64)> = log.segments.iter().map(|s| (s.from_ns, s.to_ns)).collect();
    let first_ns = spans.first().map_or(i64::MAX, |span| span.0);
    let last_ns = spans.last().map_or(i64::MIN, |span| span.1);
    let mut passed = PhoneBytes::default();
    read_capture(&dir.join("phone.pcapng"), &Progress::default(), &mut |packet| {
        let way = usize::from(packet.dst != IpAddr::V4(PHONE_ADDRESS).into());
        let bytes = u64::from(packet.ip_bytes);
        passed.all[way] += bytes;
        let at_ns = packet.at_ns;
        let within = first_ns <= at_ns && at_ns <= last_ns;
        if within && !spans.iter().any(|(from_ns, to_ns)| (*from_ns..=*to_ns).contains(&at_ns)) {
            passed.between[way] += bytes;
        }
    })?;
    Ok(PlayedSession { log, passed })
}

fn run(work: &Work<'_>) -> Result<ExperimentResult> {
    let hosts = match work.hosts(&[Program::Player]) {
        Ok(hosts) => hosts,
        Err(why) => return Ok(ExperimentResult::skipped(why)),
    };
    let base = read(SCENARIO)?;
    let mut found = ExperimentResult::default();
    for player in &PLAYERS {
        let by_size = |[quick, default, full]: [u64; 3]| work.size.of(quick, default, full);
        let cases: Vec<(Way, u64)> =
            (0..by_size(player.runs)).flat_map(|n| WAYS.map(|way| (way, 64_000 + n))).collect();
        let video = Video {
            seconds: by_size(player.seconds),
            segment_s: SEGMENT_S,
            bitrates_bps: player.bitrates_bps,
        };
        let runs = work.in_real_time(
            hosts,
            &cases,
            |(way, seed)| {
                let (script, ports) = (way.script(player), vec![PASSING]);
                let job = Job { script, file_bytes: 0, video: Some(video), ports };
                Ok((seeded(&base, *seed), job))
            },
            |_, dir| session(dir),
        )?;
        let triples = triples(&runs.results);
        found.rows.extend(rows(player, &triples));
        found.figures.extend(figure(player, &triples));
        found.lateness.extend(runs.lateness);
        found.failed.extend(runs.failed);
    }
    Ok(found)
}

/// Sessions of one seed, in the order of `WAYS`.
type Triple<'a> = [&'a PlayedSession; 3];

/// Seeds for which all ways have ended; otherwise the ways would cover different seeds.
fn triples(sessions: &[Option<PlayedSession>]) -> Vec<Triple<'_>> {
    sessions.chunks(WAYS.len()).filter_map(whole).collect()
}

fn whole(sessions: &[Option<PlayedSession>]) -> Option<Triple<'_>> {
    match sessions {
        [Some(proxy), Some(warm), Some(bypass)] => Some([proxy, warm, bypass]),
        _ => None,
    }
}

fn of<'a>(triples: &'a [Triple<'a>], way: Way) -> impl Iterator<Item = &'a PlayedSession> {
    triples.iter().map(move |[proxy, warm, bypass]| match way {
        Way::Proxy => *proxy,
        Way::Warm => *warm,
        Way::Bypass => *bypass,
    })
}

/// Throughput in Mbit/s of a segment after a pause, the session's median.
fn behind_pauses(session: &PlayedSession) -> f64 {
    quantile(&session.log.throughputs_after(PAUSE_S), 0.5).value
}

fn rows(player: &Player, triples: &[Triple<'_>]) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut row = |what: &str, unit, value| {
        rows.push(Row::new(format!("{}: {what}", player.name), unit, value));
    };
    let mean_of =
        |way, f: &dyn Fn(&PlayedSession) -> f64| mean(&of(triples, way).map(f).collect::<Vec<_>>());
    let bitrate = |session: &PlayedSession| session.log.bitrate_mbps();
    for way in WAYS {
        row(&format!("{}: bitrate", way.name()), "Mbit/s", mean_of(way, &bitrate));
        let behind: Vec<f64> =
            of(triples, way).flat_map(|session| session.log.throughputs_after(PAUSE_S)).collect();
        let what = format!("{}: throughput of a segment after a pause, median", way.name());
        row(&what, "Mbit/s", quantile(&behind, 0.5));
        let stalled = mean_of(way, &|session| session.log.stalled_ms());
        row(&format!("{}: time stalled", way.name()), "ms", stalled);
        let switches = mean_of(way, &|session| session.log.switches());
        row(&format!("{}: switches of bitrate", way.name()), "a session", switches);
    }
    let more = |way, f: &dyn Fn(&PlayedSession) -> f64| change(triples, way, f);
    for (way, what) in [(Way::Bypass, "past it"), (Way::Warm, "kept warm")] {
        let against = |of: &str| format!("{of} {what} against through it");
        row(&against("bitrate"), "% more", more(way, &bitrate));
        row(&against("time stalled"), "% more", more(way, &|s| s.log.stalled_ms()));
        row(&against("switches of bitrate"), "% more", more(way, &|s| s.log.switches()));
    }
    row("kept warm: share of that gain in bitrate", "%", gain_share(triples, &bitrate));
    let share = gain_share(triples, &behind_pauses);
    row("kept warm: share of the gain in throughput after a pause", "%", share);
    let warm = |f: &dyn Fn(&PlayedSession) -> f64| mean_of(Way::Warm, f);
    let between = |session: &PlayedSession, ways: &[usize]| -> f64 {
        let sum = |passed: [u64; 2]| ways.iter().filter_map(|way| passed.get(*way)).sum::<u64>();
        sum(session.passed.between) as f64 / sum(session.passed.all) as f64
    };
    let idle = |ways: &[usize]| mean_of(Way::Proxy, &|session| between(session, ways)).value;
    let extra = |ways: &'static [usize]| {
        let base = idle(ways);
        warm(&move |session| 100.0 * (between(session, ways) - base))
    };
    row("kept warm: extra bytes, both ways", "% of all", extra(&[0, 1]));
    row("kept warm: extra bytes, towards the phone", "% of all", extra(&[0]));
    let mean_kept =
        |f: &dyn Fn(&KeptWarm) -> f64| warm(&|s| s.log.kept_warm.as_ref().map_or(f64::NAN, f));
    row("kept warm: fetches", "a session", mean_kept(&|kept| kept.fetches));
    row(
        "kept warm: extra bytes by the module's own count",
        "% of the segments",
        mean_kept(&|kept| 100.0 * kept.bytes / kept.media_bytes),
    );
    row("kept warm: pauses kept", "a session", mean_kept(&|kept| kept.kept));
    row("kept warm: pauses left alone for comparison", "a session", mean_kept(&|kept| kept.alone));
    row(
        "kept warm: pauses left alone for comparison",
        "% of pauses",
        mean_kept(&|kept| 100.0 * kept.alone / (kept.kept + kept.alone)),
    );
    row(
        "kept warm: early rate over that after pauses left alone",
        "times",
        mean_kept(&|kept| kept.gain),
    );
    row(
        "kept warm: more radio energy by its model",
        "%",
        mean_kept(&|kept| 100.0 * (kept.radio_mj / kept.radio_without_mj - 1.0)),
    );
    let with = |row: Row| -> Row {
        match row.what.rsplit(": ").next() {
            Some("bitrate past it against through it") => row.paper(35.0).note(CEILING),
            Some("time stalled past it against through it") => row.paper(-50.0).note(SUMS),
            Some("switches of bitrate past it against through it") => row.paper(-10.0).note(SUMS),
            Some("share of that gain in bitrate") => row.note(BAR),
            Some("extra bytes, both ways") => row.note(EXTRA),
            _ => row,
        }
    };
    rows.into_iter().map(with).collect()
}

const CEILING: &str = "the paper's is port 7777 against 80, over 20 runs of a congested cell: the \
    maximum gain of the fetches, for which it has no figure";
const SUMS: &str = "none if there was none through the middlebox";
const BAR: &str = "our target is 80 or more; none if the gain past it is not distinguishable from \
    0. Pauses left alone for comparison are part of the loss";
const EXTRA: &str = "IP bytes while no segment is under way, less those of sessions without \
    fetches; our target is under 2";

/// Increase of a quantity compared to the way through the middlebox, over all triples
/// together.
fn change(triples: &[Triple<'_>], way: Way, f: &dyn Fn(&PlayedSession) -> f64) -> Estimate {
    let pairs: Vec<(f64, f64)> =
        of(triples, way).zip(of(triples, Way::Proxy)).map(|(a, b)| (f(a), f(b))).collect();
    let sum = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
    let (own, through) = (sum(|pair| pair.0), sum(|pair| pair.1));
    let value = if through > 0.0 { 100.0 * (own / through - 1.0) } else { f64::NAN };
    let percent = |ratio: f64| 100.0 * (ratio - 1.0);
    let interval = ratio_of_means(&pairs).interval.map(|(low, high)| (percent(low), percent(high)));
    Estimate { value, n: pairs.len() as u64, interval }
}

/// The share in percent of the gain past the middlebox that keeping the window warm
/// achieves through it, seed by seed; none if the gain is not significant, or is a loss.
fn gain_share(triples: &[Triple<'_>], f: &dyn Fn(&PlayedSession) -> f64) -> Estimate {
    let gains = |[proxy, warm, bypass]: &Triple<'_>| (f(warm) - f(proxy), f(bypass) - f(proxy));
    let gains: Vec<(f64, f64)> = triples.iter().map(gains).collect();
    share_of(&gains)
}

fn share_of(gains: &[(f64, f64)]) -> Estimate {
    let ratio = ratio_of_means(gains);
    let is_loss = gains.iter().map(|gain| gain.1).sum::<f64>() <= 0.0;
    let interval = ratio.interval.map(|(low, high)| (100.0 * low, 100.0 * high));
    if is_loss {
        return Estimate { value: f64::NAN, interval: None, ..ratio };
    }
    Estimate { value: 100.0 * ratio.value, interval, ..ratio }
}

fn figure(player: &Player, triples: &[Triple<'_>]) -> Option<Figure> {
    let mut figure = Figure::new(
        if player.name == PLAYERS[0].name { "small" } else { "large" },
        format!("Bitrate of the segments: {}", player.name),
        Axis::new("time since the first request (s)"),
        Axis::new("bitrate (Mbit/s)"),
    )
    .caption(format!("One of n = {} runs each way, of the same seed.", triples.len()));
    for way in WAYS {
        let PlayedSession { log, .. } = of(triples, way).next()?;
        let points = log.segments.iter().map(|s| (log.seconds(s.from_ns), s.bps / 1e6));
        figure = figure.with(Series::curve(way.name(), points.collect()));
    }
    Some(figure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_a_gain() {
        let gained = share_of(&[(0.4, 0.5), (0.4, 0.5)]);
        assert!((gained.value - 80.0).abs() < 1e-9 && gained.n == 2, "{gained:?}");
        let (low, high) = share_of(&[(0.40, 0.50), (0.45, 0.52), (0.38, 0.48)]).interval.unwrap();
        assert!(70.0 < low && low < 82.0 && 82.0 < high && high < 95.0, "{low} {high}");
        // One seed, an insignificant gain, a loss.
        for gains in [&[(0.4, 0.5)][..], &[(0.1, 0.5), (0.1, -0.3)], &[(0.1, -0.5), (0.1, -0.5)]] {
            let none = share_of(gains);
            assert!(none.value.is_nan() && none.interval.is_none(), "{none:?}");
        }
    }

    #[test]
    fn seeds_of_which_a_way_failed_are_left_out() {
        let session =
            || Some(PlayedSession { log: PlayerLog::default(), passed: PhoneBytes::default() });
        let sessions = [session(), None, session(), session(), session(), session()];
        let triples = triples(&sessions);
        assert_eq!(triples.len(), 1);
        for (at, way) in WAYS.into_iter().enumerate() {
            let own = of(&triples, way).next().unwrap();
            assert!(std::ptr::eq(own, sessions[WAYS.len() + at].as_ref().unwrap()));
        }
    }

    #[test]
    fn ladders_rise_in_steps_that_follow_the_throughput() {
        for player in &PLAYERS {
            let steps = player.bitrates_bps.windows(2).map(|pair| pair[1] as f64 / pair[0] as f64);
            let middle: Vec<f64> = steps.skip(4).take(8).collect();
            assert!(middle.iter().all(|step| (1.02..1.1).contains(step)), "{middle:?}");
        }
    }
}
