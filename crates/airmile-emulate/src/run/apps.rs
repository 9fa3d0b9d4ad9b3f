//! Runs whose applications use transports.

use super::senders::Senders;
use super::{RunOutcome, RunSink, Simulation};
use crate::cell::RadioAccess;
use crate::host::{self, AppLog, AppNote, ReaderSetup, Readers, ScenarioHost};
use crate::scenario::{AppConfig, Scenario, ScenarioError};
use crate::user::UserId;

/// Runs the applications of a scenario over their transports.
pub(super) fn run(
    scenario: &Scenario,
    sink: &mut impl RunSink,
    readers: Option<&Readers<'_>>,
) -> Result<RunOutcome, ScenarioError> {
    scenario.validate()?;
    let frame = RadioAccess::frame(scenario);
    let start_ns = frame.start_ns(frame.first_tti());
    let mut simulation = Simulation::new(scenario, host::users(scenario, start_ns))?;
    for (n, need) in host::radio_needs(scenario).into_iter().enumerate() {
        let user = UserId(n);
        let Some(need) = need else { continue };
        let Some(readers) = readers else {
            return Err(ScenarioError::OutOfRange {
                field: "server_tcp.control".to_owned(),
                why: "one that needs no reader of the modem's log: none is given".to_owned(),
            });
        };
        let setup = ReaderSetup { user, need, config: scenario.radio_reports.clone() };
        simulation.attach(scenario, user, readers(&setup));
    }
    let mut app_log = AppLog::default();
    let slots_per_ms = frame.slots_per_ms();
    let mut senders = sink.wants_senders().then(Senders::default);
    let (mut idle, mut done_users) = (0, 0);
    for tti in 0..i64::from(scenario.duration_ms) * slots_per_ms {
        simulation.step(sink);
        // Checking once a ms is enough.
        if tti % slots_per_ms != 0 {
            continue;
        }
        if let Some(senders) = &mut senders {
            senders.look(&mut simulation, sink);
        }
        let Some(phone) = simulation.phone(UserId::MEASURED) else { break };
        for (app, event) in phone.events() {
            app_log.ingest(&scenario.apps, app, event);
        }
        let done = !scenario.apps.is_empty() && phone.is_done();
        idle = if done { idle + 1 } else { 0 };
        // A finished application stays finished.
        while simulation.phone(UserId(done_users)).is_some_and(|phone| phone.is_done()) {
            done_users += 1;
        }
        let all_done = done_users == simulation.cell().users();
        if idle > scenario.tail_ms.max(1) || sink.has_enough(all_done) {
            break;
        }
    }
    let end_ns = simulation.now_ns();
    let under_way =
        simulation.phone(UserId::MEASURED).map(|phone| phone.under_way()).unwrap_or_default();
    app_log.cut(&scenario.apps, &under_way, end_ns);
    let others = other_notes(scenario, &mut simulation);
    let mut outcome = RunOutcome::from_simulation(simulation.finish(), frame, app_log);
    outcome.others = others;
    Ok(outcome)
}

/// Log entries of the other phones' applications.
fn other_notes(
    scenario: &Scenario,
    simulation: &mut Simulation<ScenarioHost>,
) -> Vec<Vec<AppNote>> {
    let each = scenario.others.iter();
    let apps = each.flat_map(|other| std::iter::repeat_n(&other.apps, other.count.into()));
    let of = |(n, apps): (usize, &Vec<AppConfig>)| {
        let mut app_log = AppLog::default();
        for (app, event) in
            simulation.phone(UserId(n + 1)).map(ScenarioHost::events).unwrap_or_default()
        {
            app_log.ingest(apps, app, event);
        }
        app_log.notes
    };
    apps.enumerate().map(of).collect()
}
