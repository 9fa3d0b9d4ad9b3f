//! `airmile live`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use airmile::live::packets::LiveFlow;
use airmile::live::{LiveBurst, LiveTransfer, LiveView, State};
use airmile::model::{Direction, Verdict, confidence_percent, printable};
use airmile::{Compression, Error, Foreign, Input, Kind, Progress, Zone};
use airmile_host::format::{mbps, size};
use airmile_host::source::{LogSource, SourceState};
use airmile_live::engine::{Engine, StartError};
use airmile_live::server::serve;
use airmile_live::snapshot::{LiveEvent, SourceStatus};
use airmile_live::terminal::{self, date, time_of_day};
use anyhow::{Context, Result};

use crate::Outcome;
use crate::args::{Global, LimitArgs, LiveArgs};
use crate::output::{self, ProblemLines};

/// The maximum number of events waiting for standard output (chosen here).
const WAITING_LINES: usize = 1_024;

pub fn run(global: &Global, args: &LiveArgs) -> Result<Outcome> {
    if args.analysis.transfers.is_some() {
        return Err(Error::Option("live: --transfers is for files".into()).into());
    }
    let options = args.analysis.options(LimitArgs { from: None, to: None, zone: args.zone })?;
    if let Some(file) = &args.follow {
        refuse_stored(file)?;
    }
    let source = source(args);
    let given = airmile_host::command::token(args.token_file.as_deref())?;
    // A modem log is about its owner; an interface shows all users of the machine.
    let is_made = args.interface.is_some() && given.is_none() && !args.no_token;
    let token = if is_made { Some(make_token()?) } else { given };
    let on_terminal = !global.json && !args.lines && std::io::stdout().is_terminal();
    let (sender, lines) = sync_channel(WAITING_LINES);
    let sender = (!on_terminal).then_some(sender);
    let interface = args.interface.as_deref();
    #[cfg(target_os = "linux")]
    if interface.is_some() {
        use rustix::thread::CapabilitySet;
        airmile_host::privilege::keep(airmile_host::privilege::Kept {
            capabilities: CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW,
            writable: &[Path::new("/dev")],
            starts_programs: false,
        })?;
    }
    let zone = options.limits.zone;
    let engine = Engine::start_beside(&source, interface, options, sender);
    let mut engine = engine.map_err(|error| match error {
        StartError::Options(error) => anyhow::Error::from(error),
        error => error.into(),
    })?;
    let server = match args.listen {
        Some(address) => Some(serve(address, token.as_deref(), engine.published(), zone)?),
        None => None,
    };
    // Print a token that the user did not set.
    let query =
        if is_made { format!("?token={}", token.unwrap_or_default()) } else { String::new() };
    let url = server.as_ref().map(|server| format!("http://{}/{query}", server.address()));
    engine.stop_by_signals().context("signals")?;
    let name = source.name();
    let mut problems = ProblemLines::new(global, &name);
    if on_terminal {
        terminal::run(&engine, url.as_deref(), zone).context("the terminal")?;
    } else {
        if let Some(url) = &url {
            output::warn(global, &format!("listening on {url}"));
        }
        print(global, &mut problems, &lines, zone)?;
    }
    drop(server);
    engine.stop();
    if let Some(what) = engine.refusal() {
        let what = format!(
            "is not a modem log: {what}. Give a log (.mi2log, .qmdl, .qmdl2, .dlf, .hdf) while it \
             is written"
        );
        return Err(Error::Unusable { path: source.name().into(), what }.into());
    }
    let last = engine.published().now();
    if last.view.intake.bytes == 0 && args.interface.is_none() {
        let why = match &last.source.state {
            SourceState::Waiting(why) => format!(" ({why})"),
            SourceState::Connected(_) | SourceState::Ended => String::new(),
        };
        let what = format!("nothing was received{why}, so there is nothing to diagnose");
        return Err(Error::Unusable { path: source.name().into(), what }.into());
    }
    if on_terminal {
        output::print_wrapped(&last_words(&last.view, zone))?;
        last.problems.kept.iter().for_each(|problem| problems.print(problem));
    }
    problems.finish(last.view.intake.more_problems);
    Ok(Outcome::of(last.view.intake.damaged))
}

fn source(args: &LiveArgs) -> LogSource {
    match (&args.follow, &args.port) {
        (Some(file), _) if file != Path::new("-") => LogSource::Follow(file.clone()),
        (_, Some(port)) => LogSource::modem(port.clone()),
        (None, None) if args.interface.is_some() => LogSource::Nothing,
        _ => LogSource::Stdin,
    }
}

/// What stays on a terminal after the view: the verdict, and the transfers, all decided.
fn last_words(view: &LiveView, zone: Zone) -> String {
    let session = &view.session;
    let (verdict, percent) = (session.verdict, confidence_percent(session.confidence));
    let mut out = format!("{}\nVerdict: {verdict}, confidence {percent:.0} %.\n", session.says);
    for transfer in &view.transfers {
        out.push_str(&format!("{}\n", transfer_line(transfer, zone)));
    }
    out
}

/// Refuses what does not grow as it is read: a directory, an archive, a compressed log.
fn refuse_stored(file: &Path) -> Result<()> {
    if file.is_dir() {
        let what = "is a directory: give the modem log in it that is being written".into();
        return Err(Error::Unusable { path: file.to_owned(), what }.into());
    }
    if !file.is_file() {
        return Ok(());
    }
    let input = Input::open_as_stored(file, &Progress::default())?;
    let what = match (Kind::of(input.head()), input.compression()) {
        (Kind::Foreign(Foreign::Tar | Foreign::Zip), _) => "an archive",
        (_, Compression::Gzip | Compression::Zstd) => "a compressed file",
        _ => return Ok(()),
    };
    let what = format!(
        "is {what}, which --follow does not read: give the modem log while it is written; \
         `airmile diagnose` reads a log that is complete"
    );
    Err(Error::Unusable { path: file.to_owned(), what }.into())
}

/// A random token.
fn make_token() -> Result<String> {
    let mut bytes = [0; 16];
    let read = File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut bytes));
    read.context("/dev/urandom")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Prints one line per finding, until the source ends.
fn print(
    global: &Global,
    problems: &mut ProblemLines<'_>,
    lines: &Receiver<Arc<LiveEvent>>,
    zone: Zone,
) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let mut printed = PrintedFindings { zone, ..PrintedFindings::default() };
    let mut day = None;
    for event in lines {
        if let LiveEvent::Problem(problem) = &*event {
            problems.print(problem);
        }
        if global.json {
            let text = serde_json::to_string(&*event).map_err(std::io::Error::from)?;
            writeln!(out, "{}", output::json_printable(&text))?;
        } else if let Some(line) = printed.line(&event) {
            if let Some(us) = end_us(&event) {
                let of_line = date(zone, us);
                if day.as_ref() != Some(&of_line) {
                    writeln!(out, "{of_line}, times in {}, of ends:", zone.name_at(us))?;
                    day = Some(of_line);
                }
            }
            writeln!(out, "{}", printable(&line))?;
        }
        out.flush()?;
    }
    Ok(())
}

/// What was printed of undecided findings: each is printed when it has ended, and again only if the
/// decision differs.
#[derive(Debug, Default)]
struct PrintedFindings {
    zone: Zone,
    bursts: Vec<PrintedBurst>,
    transfers: BTreeMap<String, Verdict>,
}

/// A burst that was printed, and is not decided.
#[derive(Debug)]
struct PrintedBurst {
    dir: Direction,
    /// Timing segment, start, end.
    place: (u32, i64, i64),
    /// Whether another one was printed in its place.
    is_superseded: bool,
}

impl PrintedBurst {
    fn overlaps(&self, dir: Direction, (segment, start, end): (u32, i64, i64)) -> bool {
        self.dir == dir && self.place.0 == segment && self.place.1 <= end && start <= self.place.2
    }
}

impl PrintedFindings {
    fn line(&mut self, event: &LiveEvent) -> Option<String> {
        match event {
            LiveEvent::Burst(live) => {
                let is_correction = self.corrects(live)?;
                Some(burst_line(live, self.zone) + if is_correction { ", corrected" } else { "" })
            }
            LiveEvent::Transfer(transfer) => {
                self.is_new_transfer(transfer).then(|| transfer_line(transfer, self.zone))
            }
            LiveEvent::Source(source) => {
                if source.begins_another_log() {
                    *self = Self { zone: self.zone, ..Self::default() };
                }
                Some(source_line(source))
            }
            // On standard error.
            LiveEvent::Problem(_) => None,
            LiveEvent::Flow(flow) => Some(flow_line(flow, self.zone)),
        }
    }

    /// Whether a burst replaces printed ones: it was extended, cut, split or joined. `None` if it was
    /// printed as it is.
    fn corrects(&mut self, live: &LiveBurst) -> Option<bool> {
        let (dir, burst) = (live.burst.dir, &live.burst);
        let place = (burst.timing_segment, burst.start_tti.0, burst.end_tti.0);
        let mut others = self.bursts.iter_mut().filter(|one| one.overlaps(dir, place)).peekable();
        let is_correction = others.peek().is_some();
        let mut is_printed = false;
        for other in others {
            is_printed |= !other.is_superseded && other.place == place;
            other.is_superseded |= other.place != place;
        }
        if live.state == State::Decided {
            // Those before it no longer change.
            let is_before = |one: &PrintedBurst| (one.place.0, one.place.2) < (place.0, place.1);
            self.bursts.retain(|one| one.dir != dir || !is_before(one));
        }
        if is_printed {
            return None;
        }
        self.bursts.push(PrintedBurst { dir, place, is_superseded: false });
        Some(is_correction)
    }

    fn is_new_transfer(&mut self, transfer: &LiveTransfer) -> bool {
        let (id, verdict) = (&transfer.diagnosis.id, transfer.diagnosis.verdict);
        match transfer.state {
            State::Open => false,
            State::Provisional => self.transfers.insert(id.clone(), verdict) != Some(verdict),
            State::Decided => self.transfers.remove(id) != Some(verdict),
        }
    }
}

fn source_line(source: &SourceStatus) -> String {
    match &source.state {
        SourceState::Waiting(why) => format!("{}: waiting: {why}", source.name),
        SourceState::Connected(what) if what.is_empty() => format!("{}: connected", source.name),
        SourceState::Connected(what) => format!("{}: connected: {what}", source.name),
        SourceState::Ended => format!("{}: ended", source.name),
    }
}

/// The time of an event's line.
fn end_us(event: &LiveEvent) -> Option<i64> {
    match event {
        LiveEvent::Burst(live) => live.end_us,
        LiveEvent::Transfer(transfer) => transfer.diagnosis.finding.end_us,
        LiveEvent::Flow(flow) => Some(flow_end_us(flow)),
        LiveEvent::Source(_) | LiveEvent::Problem(_) => None,
    }
}

const fn flow_end_us(flow: &LiveFlow) -> i64 {
    flow.start_us + (flow.duration_ms * 1e3) as i64
}

fn flow_line(flow: &LiveFlow, zone: Zone) -> String {
    let name = flow.server_name.as_deref().unwrap_or(&flow.server);
    format!(
        "{} {} flow {} to {name}: {} down, {} up in {:.1} s, RTT {}, {} retransmitted, ended by {}",
        time_of_day(zone, flow_end_us(flow), 3),
        flow.protocol,
        flow.flow,
        size(flow.dl_bytes),
        size(flow.ul_bytes),
        flow.duration_ms / 1e3,
        output::or_dash(flow.path_rtt_ms(), |ms| format!("{ms:.0} ms")),
        flow.dl_retx + flow.ul_retx,
        flow.termination,
    )
}

fn burst_line(live: &LiveBurst, zone: Zone) -> String {
    let burst = &live.burst;
    format!(
        "{} {} burst of {:.0} ms: {} at {}, ended by {}",
        live.end_us.map_or_else(|| "-".to_owned(), |us| time_of_day(zone, us, 3)),
        burst.dir,
        live.duration_ms,
        size(burst.bytes),
        mbps(live.rate_bps),
        burst.closed_by
    )
}

fn transfer_line(transfer: &LiveTransfer, zone: Zone) -> String {
    let diagnosis = &transfer.diagnosis;
    let m = &diagnosis.finding;
    let demand = output::or_dash(m.link_demand, |d| format!("{:.0} %", d * 100.0));
    format!(
        "{} transfer {}{}: {} (confidence {:.0} %): {} in {:.1} s, link demand {demand}",
        m.end_us.map_or_else(|| "-".to_owned(), |us| time_of_day(zone, us, 3)),
        diagnosis.id,
        if transfer.state == State::Decided { ", decided" } else { "" },
        diagnosis.verdict,
        confidence_percent(diagnosis.confidence),
        output::or_dash(m.bytes, size),
        m.duration_ms / 1e3,
    )
}

#[cfg(test)]
mod tests {
    use airmile::RadioOptions;
    use airmile::live::Live;
    use airmile_live::snapshot::ANOTHER_LOG;

    use super::*;

    /// Direction, timing segment, start and end of bursts, and what is printed of each.
    #[test]
    fn a_burst_that_replaces_printed_ones_is_marked() {
        use Direction::{Dl, Ul};
        use State::{Decided, Provisional};

        let dir = tempfile::tempdir().unwrap();
        airmile_lab::run_scenario("sample-download", None, dir.path()).unwrap();
        let mut live = Live::new(RadioOptions::default()).unwrap();
        live.push(&std::fs::read(dir.path().join("modem.mi2log")).unwrap());
        let one = live.finish().bursts.remove(0);
        let mut printed = PrintedFindings::default();
        for (state, dir, segment, start, end, expected) in [
            (Provisional, Dl, 0, 100, 114, Some(false)),
            (Provisional, Ul, 0, 100, 114, Some(false)),
            (Provisional, Dl, 1, 100, 114, Some(false)),
            (Decided, Dl, 0, 50, 60, Some(false)),
            (Decided, Ul, 0, 100, 114, None),
            // Split.
            (Provisional, Dl, 0, 100, 106, Some(true)),
            (Provisional, Dl, 0, 108, 114, Some(true)),
            (Decided, Dl, 0, 100, 106, None),
            (Decided, Dl, 0, 108, 114, None),
            // Extended.
            (Provisional, Dl, 0, 120, 130, Some(false)),
            (Provisional, Dl, 0, 120, 140, Some(true)),
            // Decided as it was first.
            (Decided, Dl, 0, 120, 130, Some(true)),
            (Decided, Dl, 0, 150, 160, Some(false)),
        ] {
            let mut live = LiveBurst { state, ..one.clone() };
            (live.burst.dir, live.burst.timing_segment) = (dir, segment);
            (live.burst.start_tti.0, live.burst.end_tti.0) = (start, end);
            assert_eq!(printed.corrects(&live), expected, "{state:?} {dir:?} {start} to {end}");
        }
        // What was decided is forgotten.
        assert_eq!(
            printed.bursts.iter().filter(|one| one.place.0 == 0 && one.dir == Dl).count(),
            1
        );
    }

    /// The same log again has the same bursts: each gets its line, and corrects none.
    #[test]
    fn bursts_of_another_log_are_new() {
        let dir = tempfile::tempdir().unwrap();
        airmile_lab::run_scenario("sample-download", None, dir.path()).unwrap();
        let mut live = Live::new(RadioOptions::default()).unwrap();
        live.push(&std::fs::read(dir.path().join("modem.mi2log")).unwrap());
        let bursts = live.finish().bursts;
        let another = SourceStatus {
            name: "log".into(),
            state: SourceState::Connected(ANOTHER_LOG.into()),
            gaps: 1,
        };
        let mut printed = PrintedFindings::default();
        let lines = |printed: &mut PrintedFindings| -> Vec<String> {
            let events = bursts.iter().map(|one| LiveEvent::Burst(Box::new(one.clone())));
            events.filter_map(|event| printed.line(&event)).collect()
        };
        let first = lines(&mut printed);
        assert_eq!(first.len(), bursts.len());
        assert!(printed.line(&LiveEvent::Source(another)).is_some());
        assert_eq!(lines(&mut printed), first);
    }

    #[test]
    fn the_verdict_and_the_decided_transfers_stay_on_a_terminal() {
        let dir = tempfile::tempdir().unwrap();
        airmile_lab::run_scenario("sample-download", None, dir.path()).unwrap();
        let mut live = Live::new(RadioOptions::default()).unwrap();
        let log = std::fs::read(dir.path().join("modem.mi2log")).unwrap();
        let (begin, end) = log.split_at(log.len() / 2);
        live.push(begin);
        assert!(live.look().transfers.iter().all(|one| one.state == State::Open));
        live.push(end);
        let text = last_words(&live.finish(), Zone::UTC);
        assert!(text.contains("\nVerdict: radio, confidence "), "{text}");
        assert!(text.contains(" transfer dl0, decided: radio "), "{text}");
    }
}
