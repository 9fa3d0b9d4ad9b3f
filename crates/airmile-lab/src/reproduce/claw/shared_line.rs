//! A misreporting client and a Cubic flow in one queue: a line before the cell, over which
//! a phone loads a page over TCP and a concurrent download over HTTP/3. (Two phones share
//! no queue: the scheduler separates them, whatever a server sends.)

use airmile_control::ControllerKind;
use airmile_emulate::quic::QuicControl;
use airmile_emulate::workload::Workload;
use airmile_emulate::{AppConfig, RateLimit, Scenario, TransportKind};

use super::neighbours::{LIES, Lie, MAX_COST, cost, run_pair};
use super::{CLAW, CUBIC, Row, SEEDS, Work, mean, page};
use airmile::Result;

/// The line: faster than the page needs, slower than the cell (chosen here).
const LINE_BPS: u64 = 10_000_000;

/// Its queue: more than the data of a round trip of 165 ms, and a quarter of one (chosen
/// here).
const QUEUES: [(u64, &str); 2] = [(250_000, "a deep queue"), (50_000, "a short queue")];

/// Starts before the page, and continues after it.
const RIVAL_START_MS: u32 = 2_500;
const RIVAL_BYTES: u64 = 10_000_000;

/// A sender that trusts all feedback, as a reference.
const TRUSTS_CLIENT: ControllerKind = ControllerKind::Claw { limit_bps: None, trust_client: true };

/// Cubic connections that any client can open without reports; browsers open as many to a
/// server over HTTP/1.1.
const CONNECTIONS: usize = 6;

const BOUND_OF_A_LINE: &str =
    "the cap is twice this line; bound: the row of six Cubic connections, which need no report";

/// The rival's controller, what its client reports, its connections, and its name.
type Arm = (ControllerKind, Lie, usize, &'static str);

/// A page over TCP with Cubic, and a rival over QUIC with another controller.
fn line(
    seed: u64,
    queue_bytes: u64,
    rival: ControllerKind,
    connections: usize,
) -> Result<Scenario> {
    page(|scenario| {
        scenario.seed = seed;
        scenario.tail_ms = 50;
        scenario.server_tcp.control = CUBIC;
        scenario.quic.control = QuicControl::Ours(rival);
        let limit = RateLimit { rate_bps: LINE_BPS, queue_bytes, from_ms: 0, to_ms: None };
        scenario.core.down.limit = Some(limit);
        scenario.apps.extend((0..connections).map(|n| AppConfig {
            name: format!("rival {n}"),
            start_ms: RIVAL_START_MS,
            port: 443,
            transport: TransportKind::Quic,
            workload: Workload::File { bytes: RIVAL_BYTES, count: 1, gap_ms: 0 },
        }));
    })
}

/// Cost of misreporting for the page, against a rival with Cubic.
pub(super) fn rows(work: &Work<'_>) -> Result<Vec<Row>> {
    let runs = work.size.of(1, 10, 20);
    let lies = LIES.iter().map(|(lie, what)| (CLAW, *lie, 1, *what));
    let honest: [Arm; 3] = [
        (CUBIC, Lie::None, 1, "Cubic"),
        (CUBIC, Lie::None, CONNECTIONS, "six Cubic connections"),
        (CLAW, Lie::None, 1, "the truth"),
    ];
    let trusted = "the largest window, to a sender that trusts the client";
    let arms: Vec<Arm> =
        honest.into_iter().chain(lies).chain([(TRUSTS_CLIENT, Lie::Window, 1, trusted)]).collect();
    let mut items = Vec::new();
    for (queue_bytes, _) in QUEUES {
        for (rival, lie, connections, _) in &arms {
            for n in 0..runs {
                items.push((line(SEEDS + n, queue_bytes, *rival, *connections)?, *lie));
            }
        }
    }
    let loads = work.for_each(&items, |(scenario, lie)| run_pair(scenario, *lie))?;
    let mut groups = loads.chunks(runs as usize);
    let mut rows = Vec::new();
    for (_, queue) in QUEUES {
        let base = groups.next().unwrap_or_default();
        for (rival, _, _, what) in arms.iter().skip(1) {
            let costs = mean(&cost(groups.next().unwrap_or_default(), base));
            let what = format!("one line, {queue}, {what}: cost to a Cubic flow");
            let row = Row::new(what, "%", costs);
            rows.push(match *rival {
                CUBIC => row.note("for comparison: what any client can do"),
                TRUSTS_CLIENT => row.note("for comparison: the effect of no checks"),
                _ => row.not_above(MAX_COST).note(BOUND_OF_A_LINE),
            });
        }
    }
    Ok(rows)
}
