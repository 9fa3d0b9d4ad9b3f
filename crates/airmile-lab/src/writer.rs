//! Writes a run's directory, in virtual and in real time.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use airmile::{Error, Result, run_files};
use airmile_decode::diag::encode;
use airmile_decode::table::{
    write_grants, write_rlc, write_transfer_truth, write_transfers, write_truth,
};
use airmile_emulate::net::IpPacket;
use airmile_emulate::tcp::ConnectionEvent;
use airmile_emulate::{
    CapturePoint, DropPoint, EmulatedTransfer, LinkTrace, RunOutcome, RunSink, Scenario,
    ScenarioError, SenderPlace, SenderState, TraceFiles, UserId,
};
use airmile_model::{Record, Transfer};

use crate::capture::Recorder;
use crate::directory::{self, DirectoryWriter};
use crate::har;
use crate::manifest::{Clock, Manifest};
use crate::output::{Counterfactual, LabRun, LabTransfer, all_transfers, name_of};
use crate::tables;

/// Receives a run's output, and writes its files at the end.
pub struct RunWriter {
    files: DirectoryWriter,
    about: String,
    recorder: Recorder,
    live: Option<Live>,
}

/// The growing modem log of a run in progress.
struct Live {
    log: encode::LiveLog,
    file: File,
    path: PathBuf,
    failed: Option<Error>,
}

impl RunWriter {
    /// Writes to a directory, which is created if necessary: the scenario is written at
    /// once. `force` replaces an earlier run; `about` is the command of this run.
    ///
    /// # Errors
    /// The scenario cannot be run, the directory is not empty, or the directory or a file
    /// cannot be written.
    pub fn create(scenario: &Scenario, dir: &Path, force: bool, about: String) -> Result<Self> {
        scenario.validate().map_err(|e| cannot(scenario, &e))?;
        directory::prepare(dir, force)?;
        let mut files = DirectoryWriter::new(dir);
        write_scenario(&mut files, scenario)?;
        let recorder = Recorder::new(dir, about.clone());
        Ok(Self { files, about, recorder, live: None })
    }

    /// The file for the output of the server's command in a run in real time.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn server_log(&mut self) -> Result<File> {
        self.files.create(run_files::SERVER_LOG)
    }

    /// An empty file for log entries of the command of a run in real time.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn command_log(&mut self) -> Result<PathBuf> {
        self.files.create(run_files::COMMAND_LOG)?;
        let path = self.files.dir.join(run_files::COMMAND_LOG);
        std::path::absolute(&path).map_err(|e| Error::write(&path, e))
    }

    /// The growing modem log of a run in real time; at the end it is complete, as for any
    /// run. `None`: the scenario has no modem log.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn live_modem_log(&mut self, scenario: &Scenario) -> Result<Option<PathBuf>> {
        if !has_modem_log(scenario) {
            return Ok(None);
        }
        let path = self.files.dir.join(MODEM_LOG);
        let path = std::path::absolute(&path).map_err(|e| Error::write(&path, e))?;
        let file = File::create(&path).map_err(|e| Error::write(&path, e))?;
        let log = encode::LiveLog::new(encode::Options::default());
        self.live = Some(Live { log, file, path: path.clone(), failed: None });
        Ok(Some(path))
    }

    /// Appends the modem's records up to a time in ns since the Unix epoch to the growing
    /// log.
    pub fn tick(&mut self, now_ns: i64) {
        let Some(live) = self.live.as_mut().filter(|live| live.failed.is_none()) else { return };
        let bytes = live.log.tick(now_ns);
        if let Err(e) = live.file.write_all(&bytes) {
            live.failed = Some(Error::write(&live.path, e));
        }
    }

    /// Writes the remaining files at the end.
    ///
    /// # Errors
    /// A file or an earlier capture could not be written.
    pub fn finish(
        mut self,
        scenario: &Scenario,
        outcome: &RunOutcome,
        counterfactuals: Vec<Counterfactual>,
        clock: Clock,
    ) -> Result<LabRun> {
        if let Some(error) = self.live.take().and_then(|live| live.failed) {
            return Err(error);
        }
        let files = &mut self.files;
        files.add(self.recorder.finish()?);
        write_records(files, scenario, &self.recorder.records)?;
        write_truth_tables(files, scenario, outcome, &self.recorder)?;
        files
            .write("counterfactuals.csv", &|out| tables::counterfactuals(out, &counterfactuals))?;
        files.write("app.jsonl", &|out| tables::app_log(out, &outcome.notes))?;
        if !outcome.pages.is_empty() {
            let pages = &outcome.pages;
            files.write("page.har", &|out| har::write(out, scenario, pages))?;
        }
        let warnings = match &clock {
            Clock::Virtual => warnings(scenario, outcome),
            Clock::Real(real_time) => {
                // The start time is known only now.
                write_scenario(files, scenario)?;
                files.remove_if_empty(run_files::COMMAND_LOG)?;
                let late = &real_time.late_ttis;
                files.write("late_ttis.csv", &|out| tables::late_ttis(out, late))?;
                real_time.warnings()
            }
        };
        let mut run = LabRun {
            scenario: name_of(scenario).to_owned(),
            seed: scenario.seed,
            dir: files.dir.clone(),
            files: files.list()?,
            transfers: all_transfers(outcome).map(lab_transfer).collect(),
            counterfactuals,
            notes: notes(scenario),
            warnings,
        };
        let manifest = Manifest::new(self.about, &run, outcome, clock);
        files.write(run_files::MANIFEST, &|out| manifest.write(out))?;
        run.files = files.list()?;
        Ok(run)
    }
}

impl RunSink for RunWriter {
    fn record(&mut self, record: Record) {
        if let Some(live) = &mut self.live {
            live.log.push(&record);
        }
        self.recorder.record(record);
    }

    fn packet(&mut self, at_ns: i64, point: CapturePoint, packet: &IpPacket) {
        self.recorder.packet(at_ns, point, packet);
    }

    fn dropped(&mut self, at_ns: i64, user: UserId, point: DropPoint, packet: &IpPacket) {
        self.recorder.dropped(at_ns, user, point, packet);
    }

    fn wants_senders(&self) -> bool {
        self.recorder.wants_senders()
    }

    fn sender_state(&mut self, state: &SenderState) {
        self.recorder.sender_state(state);
    }

    fn sender_event(&mut self, place: SenderPlace, event: &ConnectionEvent) {
        self.recorder.sender_event(place, event);
    }
}

/// The modem's log in a run's directory.
const MODEM_LOG: &str = "modem.mi2log";

/// The log of a modem with NR.
const NR_MODEM_LOG: &str = "nr_modem.mi2log";

fn cannot(scenario: &Scenario, error: &ScenarioError) -> Error {
    Error::Option(format!("scenario {}: {error}", name_of(scenario)))
}

/// Writes the scenario and its link traces.
fn write_scenario(files: &mut DirectoryWriter, scenario: &Scenario) -> Result<()> {
    let own = with_traces(scenario, files)?;
    let text = own.to_toml().map_err(|e| cannot(scenario, &e))?;
    files.write(run_files::SCENARIO, &|out| out.write_all(text.as_bytes()))
}

/// The scenario with references to its link traces, which are written.
fn with_traces(scenario: &Scenario, files: &mut DirectoryWriter) -> Result<Scenario> {
    let mut own = scenario.clone();
    let [down, up] = run_files::LINK_TRACES;
    let mut write = |name: &str, trace: &Option<Arc<LinkTrace>>| match trace {
        Some(trace) => {
            files.write(name, &|out| out.write_all(trace.to_text().as_bytes()))?;
            Ok(Some(name.to_owned()))
        }
        None => Ok(None),
    };
    let down = write(down, &scenario.link.dl_trace)?;
    let up = write(up, &scenario.link.ul_trace)?;
    own.link.trace = (down.is_some() || up.is_some()).then_some(TraceFiles { down, up });
    Ok(own)
}

fn lab_transfer(t: &EmulatedTransfer) -> LabTransfer {
    LabTransfer {
        id: t.transfer.id.clone(),
        dir: t.dir,
        bytes: t.transfer.bytes,
        duration_ms: t.truth.duration_ms,
        link_demand: t.link_demand(),
        unfinished: t.transfer.unfinished,
    }
}

fn notes(scenario: &Scenario) -> Vec<String> {
    let mut out = Vec::new();
    if scenario.split.is_some() {
        out.push(
            "nr_modem.mi2log holds both legs; grants.csv and rlc.csv hold only the LTE leg, \
                nr_grants.csv and nr_rlc.csv the NR leg, truth.csv and ul_truth.csv the bearer \
                over both"
                .to_owned(),
        );
    } else if scenario.cell.nr.is_some() {
        out.push(
            "the modem log, nr_modem.mi2log, has no poll bits, and padding only as counters; \
                grants.csv and rlc.csv have both"
                .to_owned(),
        );
    } else if !has_modem_log(scenario) {
        out.push(
            "no modem log: LTE's log messages cannot represent NR's slots; use grants.csv and \
                rlc.csv instead"
                .to_owned(),
        );
    }
    out
}

fn warnings(scenario: &Scenario, outcome: &RunOutcome) -> Vec<String> {
    let mut out = scenario.warnings();
    let cut: Vec<&str> = outcome.unfinished.iter().map(|t| t.transfer.id.as_str()).collect();
    // A few names suffice.
    let names = match cut.get(..3).filter(|_| cut.len() > 4) {
        Some(first) => format!("{} and {} more", first.join(", "), cut.len() - 3),
        None => cut.join(", "),
    };
    if outcome.transfers.is_empty() {
        let begun = if cut.is_empty() { "none began".to_owned() } else { format!("cut: {names}") };
        out.push(format!("no transfer ended within {} ms: {begun}", scenario.duration_ms));
    } else if !cut.is_empty() {
        out.push(format!(
            "{} of {} transfers are unfinished, with their bytes so far: {names}",
            cut.len(),
            cut.len() + outcome.transfers.len()
        ));
    }
    out
}

fn csv_io(result: std::result::Result<(), csv::Error>) -> std::io::Result<()> {
    result.map_err(std::io::Error::other)
}

/// Whether LTE messages can represent everything that the modem logged, that is, no NR
/// slots.
const fn has_modem_log(scenario: &Scenario) -> bool {
    scenario.cell.numerology == 0 && scenario.cell.nr.is_none() && scenario.split.is_none()
}

/// Whether a record is of the NR leg of a split bearer.
const fn is_of_nr_leg(record: &Record) -> bool {
    let cell = match record {
        Record::Grant(grant) => grant.position.cell,
        Record::Rlc(pdu) => pdu.position.cell,
        Record::MacBlock(block) => block.position.cell,
        Record::Bsr(report) => report.position.cell,
        Record::CellInfo(info) => info.cell,
        _ => 0,
    };
    cell > 0
}

/// Writes the modem's log, and the same data as tables.
fn write_records(
    files: &mut DirectoryWriter,
    scenario: &Scenario,
    records: &[Record],
) -> Result<()> {
    if scenario.split.is_some() {
        let (nr, lte): (Vec<Record>, Vec<Record>) = records.iter().cloned().partition(is_of_nr_leg);
        write_leg(files, scenario, &lte)?;
        write_nr_log(files, &lte, &nr)?;
        let grants = || nr.iter().filter_map(as_grant);
        files.write("nr_grants.csv", &|out| csv_io(write_grants(out, grants())))?;
        let pdus = || nr.iter().filter_map(as_rlc);
        return files.write("nr_rlc.csv", &|out| csv_io(write_rlc(out, pdus())));
    }
    if scenario.cell.nr.is_some() {
        write_nr_log(files, &[], records)?;
    }
    write_leg(files, scenario, records)
}

/// Writes the log of a modem with NR, and with an LTE leg if there is one.
fn write_nr_log(files: &mut DirectoryWriter, lte: &[Record], nr: &[Record]) -> Result<()> {
    let log = encode::write_nr(lte, nr, &encode::Options::default())
        .map_err(|e| Error::write(files.dir.join(NR_MODEM_LOG), std::io::Error::other(e)))?;
    files.write(NR_MODEM_LOG, &|out| out.write_all(&log))
}

fn write_leg(files: &mut DirectoryWriter, scenario: &Scenario, records: &[Record]) -> Result<()> {
    if has_modem_log(scenario) {
        let log = encode::write(records, &encode::Options::default())
            .map_err(|e| Error::write(files.dir.join(MODEM_LOG), std::io::Error::other(e)))?;
        files.write(MODEM_LOG, &|out| out.write_all(&log))?;
    }
    let grants = || records.iter().filter_map(as_grant);
    files.write("grants.csv", &|out| csv_io(write_grants(out, grants())))?;
    let pdus = || records.iter().filter_map(as_rlc);
    files.write("rlc.csv", &|out| csv_io(write_rlc(out, pdus())))
}

fn write_truth_tables(
    files: &mut DirectoryWriter,
    scenario: &Scenario,
    outcome: &RunOutcome,
    recorder: &Recorder,
) -> Result<()> {
    // The legs of a split bearer have separate TTI counters: only times place a transfer.
    let transfers: Vec<Transfer> = all_transfers(outcome)
        .map(|t| Transfer {
            tti: t.transfer.tti.filter(|_| scenario.split.is_none()),
            ..t.transfer.clone()
        })
        .collect();
    files.write("transfers.csv", &|out| csv_io(write_transfers(out, &transfers)))?;
    let truths = || all_transfers(outcome).map(|t| &t.truth);
    files.write("transfer_truth.csv", &|out| csv_io(write_transfer_truth(out, truths())))?;
    let truth = &outcome.truth;
    files.write("truth.csv", &|out| csv_io(write_truth(out, &truth.dl)))?;
    files.write("ul_truth.csv", &|out| csv_io(write_truth(out, &truth.ul)))?;
    files.write("capacity.csv", &|out| tables::capacity(out, outcome))?;
    files.write("cell_use.csv", &|out| tables::cell_use(out, outcome))?;
    files.write("allocations.csv", &|out| tables::allocations(out, outcome))?;
    files.write("rrc.csv", &|out| tables::rrc(out, outcome))?;
    if !truth.legs.is_empty() {
        files.write("leg_truth.csv", &|out| tables::leg_truth(out, outcome))?;
    }
    files.write("drops.csv", &|out| tables::drops(out, &recorder.drops))?;
    files.write("senders.csv", &|out| tables::senders(out, &recorder.senders))?;
    files
        .write("sender_events.jsonl", &|out| tables::sender_events(out, &recorder.sender_events))?;
    files.write("causes.csv", &|out| tables::causes(out, scenario, outcome))
}

fn as_grant(record: &Record) -> Option<&airmile_model::Grant> {
    if let Record::Grant(grant) = record { Some(grant) } else { None }
}

fn as_rlc(record: &Record) -> Option<&airmile_model::RlcPdu> {
    if let Record::Rlc(pdu) = record { Some(pdu) } else { None }
}
