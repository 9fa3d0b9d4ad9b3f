//! Tables that only the lab can write: data known neither to a phone nor to a server.

use std::io::Write;
use std::net::SocketAddrV4;

use airmile_emulate::tcp::{ConnectionEvent, Limit, TcpEvent};
use airmile_emulate::{
    Allocated, AppNote, Capacity, Cause, CellUse, DropPoint, LegTruth, RrcState, RunOutcome,
    Scenario, SenderPlace, SenderState,
};
use airmile_model::{Direction, TruthRun, TtiIndex};
use serde::Serialize;

use crate::capture::Drop;
use crate::output::Counterfactual;

/// A table as CSV; an empty one still has its header.
fn rows<T: Serialize, const N: usize>(
    out: &mut dyn Write,
    header: [&str; N],
    rows: impl Iterator<Item = T>,
) -> std::io::Result<()> {
    let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(out);
    writer.write_record(header).map_err(std::io::Error::other)?;
    for row in rows {
        writer.serialize(row).map_err(std::io::Error::other)?;
    }
    writer.flush()
}

/// PRB pairs of all users together, carrier by carrier, run-length coded.
pub(crate) fn cell_use(out: &mut dyn Write, outcome: &RunOutcome) -> std::io::Result<()> {
    #[derive(Serialize)]
    struct Row {
        tti: i64,
        n_tti: u32,
        cell: u8,
        n_prb: u16,
        users: u16,
    }
    let of = |cell: u8, runs: &'_ [CellUse]| -> Vec<Row> {
        let row = |run: &CellUse| {
            let CellUse { tti, n_tti, n_prb, users } = *run;
            Row { tti: tti.0, n_tti, cell, n_prb, users }
        };
        runs.iter().map(row).collect()
    };
    let truth = &outcome.truth;
    let all = of(0, &truth.cell_use).into_iter().chain(of(1, &truth.secondary_use));
    rows(out, ["tti", "n_tti", "cell", "n_prb", "users"], all)
}

/// PRB pairs of each user, run-length coded.
pub(crate) fn allocations(out: &mut dyn Write, outcome: &RunOutcome) -> std::io::Result<()> {
    #[derive(Serialize)]
    struct Row {
        tti: i64,
        n_tti: u32,
        dir: Direction,
        cell: u8,
        user: u16,
        n_prb: u16,
    }
    let row = |run: &Allocated| {
        let Allocated { tti, n_tti, dir, carrier, user, n_prb } = *run;
        Row { tti: tti.0, n_tti, dir, cell: carrier, user, n_prb }
    };
    let header = ["tti", "n_tti", "dir", "cell", "user", "n_prb"];
    rows(out, header, outcome.truth.allocated.iter().map(row))
}

/// The cell's capacity for the phone, run-length coded.
pub(crate) fn capacity(out: &mut dyn Write, outcome: &RunOutcome) -> std::io::Result<()> {
    #[derive(Serialize)]
    struct Row {
        tti: i64,
        n_tti: u32,
        dir: Direction,
        cell: u8,
        capacity_bytes: u32,
    }
    let row = |run: &Capacity| {
        let Capacity { tti, n_tti, dir, carrier, bytes } = *run;
        Row { tti: tti.0, n_tti, dir, cell: carrier, capacity_bytes: bytes }
    };
    let header = ["tti", "n_tti", "dir", "cell", "capacity_bytes"];
    rows(out, header, outcome.truth.capacity.iter().map(row))
}

/// The queues of each leg of a split bearer, run-length coded, in TTIs of the leg.
pub(crate) fn leg_truth(out: &mut dyn Write, outcome: &RunOutcome) -> std::io::Result<()> {
    #[derive(Serialize)]
    struct Row {
        cell: u8,
        numerology: u8,
        dir: Direction,
        tti: i64,
        n_tti: u32,
        queue_bytes: u64,
        state: &'static str,
    }
    let of = |leg: &LegTruth| -> Vec<Row> {
        let LegTruth { cell, numerology, dl, ul } = leg;
        let row = |dir: Direction, run: &TruthRun| {
            let TruthRun { tti, n_tti, queue_bytes, state, .. } = *run;
            let state = state.as_str();
            Row { cell: *cell, numerology: *numerology, dir, tti: tti.0, n_tti, queue_bytes, state }
        };
        let dl = dl.iter().map(|run| row(Direction::Dl, run));
        dl.chain(ul.iter().map(|run| row(Direction::Ul, run))).collect()
    };
    let header = ["cell", "numerology", "dir", "tti", "n_tti", "queue_bytes", "state"];
    rows(out, header, outcome.truth.legs.iter().flat_map(of))
}

/// The phone's RRC states, run-length coded.
pub(crate) fn rrc(out: &mut dyn Write, outcome: &RunOutcome) -> std::io::Result<()> {
    #[derive(Serialize)]
    struct Row {
        tti: i64,
        n_tti: u32,
        rrc_state: RrcState,
    }
    let row = |run: &airmile_emulate::RrcRun| Row {
        tti: run.tti.0,
        n_tti: run.n_tti,
        rrc_state: run.state,
    };
    rows(out, ["tti", "n_tti", "rrc_state"], outcome.truth.rrc.iter().map(row))
}

/// Packets dropped or lost.
pub(crate) fn drops(out: &mut dyn Write, drops: &[Drop]) -> std::io::Result<()> {
    #[derive(Serialize)]
    struct Row {
        time_ns: i64,
        user: usize,
        place: &'static str,
        ip_bytes: u32,
    }
    let place = |point| match point {
        DropPoint::BaseStation => "base_station_queue",
        DropPoint::Phone => "phone_queue",
        DropPoint::CoreQueue => "core_queue",
        DropPoint::CoreLoss => "core_loss",
    };
    let row = |drop: &Drop| Row {
        time_ns: drop.at_ns,
        user: drop.user.index(),
        place: place(drop.point),
        ip_bytes: drop.bytes,
    };
    rows(out, ["time_ns", "user", "place", "ip_bytes"], drops.iter().map(row))
}

/// State of the TCP senders of the measured phone's traffic.
pub(crate) fn senders(out: &mut dyn Write, states: &[SenderState]) -> std::io::Result<()> {
    #[derive(Serialize)]
    struct Row {
        time_ns: i64,
        place: SenderPlace,
        local: SocketAddrV4,
        remote: SocketAddrV4,
        cwnd_bytes: u64,
        ssthresh_bytes: u64,
        flight_size_bytes: u64,
        pipe_bytes: u64,
        rwnd_bytes: u64,
        srtt_ns: Option<i64>,
        rttvar_ns: i64,
        rto_ns: i64,
        limit: Limit,
        in_recovery: bool,
        acked_bytes: u64,
        retransmissions: u64,
    }
    const HEADER: [&str; 16] = [
        "time_ns",
        "place",
        "local",
        "remote",
        "cwnd_bytes",
        "ssthresh_bytes",
        "flight_size_bytes",
        "pipe_bytes",
        "rwnd_bytes",
        "srtt_ns",
        "rttvar_ns",
        "rto_ns",
        "limit",
        "in_recovery",
        "acked_bytes",
        "retransmissions",
    ];
    let row = |state: &SenderState| {
        let SenderState { at_ns, place, local, remote, snapshot } = *state;
        Row {
            time_ns: at_ns,
            place,
            local,
            remote,
            cwnd_bytes: snapshot.cwnd_bytes,
            ssthresh_bytes: snapshot.ssthresh_bytes,
            flight_size_bytes: snapshot.flight_size_bytes,
            pipe_bytes: snapshot.pipe_bytes,
            rwnd_bytes: snapshot.rwnd_bytes,
            srtt_ns: snapshot.srtt_ns,
            rttvar_ns: snapshot.rttvar_ns,
            rto_ns: snapshot.rto_ns,
            limit: snapshot.limit,
            in_recovery: snapshot.in_recovery,
            acked_bytes: snapshot.acked_bytes,
            retransmissions: snapshot.retransmissions,
        }
    };
    rows(out, HEADER, states.iter().map(row))
}

/// Events of those senders: a JSON object per line.
pub(crate) fn sender_events(
    out: &mut dyn Write,
    events: &[(SenderPlace, ConnectionEvent)],
) -> std::io::Result<()> {
    #[derive(Serialize)]
    struct Line<'a> {
        place: SenderPlace,
        local: SocketAddrV4,
        remote: SocketAddrV4,
        #[serde(flatten)]
        event: &'a TcpEvent,
    }
    for (place, ConnectionEvent { local, remote, event, .. }) in events {
        let line = Line { place: *place, local: *local, remote: *remote, event };
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Injected causes with their time range.
pub(crate) fn causes<'s>(
    out: &mut dyn Write,
    scenario: &'s Scenario,
    outcome: &RunOutcome,
) -> std::io::Result<()> {
    #[derive(Serialize)]
    struct Row<'a> {
        label: &'a str,
        from_us: i64,
        to_us: i64,
        what: &'a str,
    }
    let start_us = (outcome.epoch_ns + outcome.first_tti.0 * outcome.slot_ns) / 1_000;
    let end_us = start_us + i64::from(outcome.n_tti) * outcome.slot_ns / 1_000;
    let at = |ms: u32| (start_us + i64::from(ms) * 1_000).min(end_us);
    let row = |cause: &'s Cause| {
        let Cause { label, what, from_ms, to_ms, .. } = cause;
        Row { label, from_us: at(*from_ms), to_us: to_ms.map_or(end_us, at), what }
    };
    rows(out, ["label", "from_us", "to_us", "what"], scenario.causes.iter().map(row))
}

/// TTIs that began late in real time.
pub(crate) fn late_ttis(out: &mut dyn Write, late: &[(TtiIndex, u64)]) -> std::io::Result<()> {
    rows(out, ["tti", "late_us"], late.iter().map(|(tti, late_us)| (tti.0, late_us)))
}

/// Durations with and without each cause.
pub(crate) fn counterfactuals(
    out: &mut dyn Write,
    found: &[Counterfactual],
) -> std::io::Result<()> {
    const HEADER: [&str; 6] =
        ["id", "label", "duration_ms", "without_ms", "bytes", "without_bytes"];
    rows(out, HEADER, found.iter())
}

/// The application's log: a JSON object per line.
pub(crate) fn app_log(out: &mut dyn Write, notes: &[AppNote]) -> std::io::Result<()> {
    for note in notes {
        serde_json::to_writer(&mut *out, note)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}
