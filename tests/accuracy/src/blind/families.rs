//! Scenario families: those that the model is fitted on, and others for its evaluation.
//! They share no scheduler, no bandwidth and no seed, and mostly no workload.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use airmile_blind::Suspect;
use airmile_emulate::{LinkTrace, Scenario};
use anyhow::Context;

use crate::causes::Draw;

/// A family: the conditions applied to its transfers.
#[derive(Clone, Copy)]
pub struct Family {
    pub name: &'static str,
    /// The intended bottleneck; `None`: undetermined.
    pub injected: Option<Suspect>,
    parts: fn(&mut Draw) -> Parts,
    trace: Option<&'static str>,
}

/// Parts of a scenario file that families set.
#[derive(Default)]
struct Parts {
    rtt_ms: u64,
    core: String,
    link: String,
    cell: String,
    phone_tcp: String,
    server_tcp: String,
    body: String,
    /// Changes that remove the cause.
    without: String,
    /// Whether the phone's own cell must have spare capacity.
    roomy: bool,
    duration_ms: u64,
}

/// Settings in which the two sets of families differ.
struct World {
    schedulers: &'static [&'static str],
    n_prb: &'static [u64],
    snr_db: (u64, u64),
    coherence_ms: &'static [u64],
    frames: &'static [&'static str],
    controls: &'static [&'static str],
}

const FITTED: World = World {
    schedulers: &["whole_tti", "round_robin"],
    n_prb: &[25, 50, 100],
    snr_db: (8, 22),
    coherence_ms: &[40, 80, 200],
    frames: &[""],
    controls: &["{ name = \"cubic\", hystart = true }", "{ name = \"new-reno\" }"],
};

/// NR slots and TDD frames occur only here, as does the third scheduler.
const HELD_OUT: World = World {
    schedulers: &["pf_frequency", "blind_equal"],
    n_prb: &[50, 75],
    snr_db: (10, 20),
    coherence_ms: &[60, 120, 400],
    frames: &["", "", "numerology = 1\n", "tdd = \"DSUDDDSUDD\"\n"],
    controls: &[
        "{ name = \"cubic\", hystart = true }",
        "{ name = \"cubic\", hystart = false }",
        "{ name = \"new-reno\" }",
    ],
};

/// One in this many runs has TCP without timestamps.
const PLAIN_EVERY: u64 = 5;

const fn family(
    name: &'static str,
    injected: Option<Suspect>,
    parts: fn(&mut Draw) -> Parts,
) -> Family {
    Family { name, injected, parts, trace: None }
}

/// Families for fitting the coefficients.
pub const FIT: [Family; 26] = [
    family("busy_file", Some(Suspect::Radio), busy_file),
    family("busy_quic", Some(Suspect::Radio), |d| quic(busy_file(d))),
    family("weak_file", Some(Suspect::Radio), weak_file),
    family("weak_quic", Some(Suspect::Radio), |d| quic(weak_file(d))),
    family("clean_file", None, clean_file),
    family("wireline", Some(Suspect::Wireline), wireline),
    family("wireline_2", Some(Suspect::Wireline), wireline),
    family("wireline_quic", Some(Suspect::Wireline), |d| quic(wireline(d))),
    family("paced", Some(Suspect::SenderLimited), paced),
    family("paced_quic", Some(Suspect::SenderLimited), |d| quic(paced(d))),
    family("thinking", Some(Suspect::SenderLimited), thinking),
    family("small_buffer", Some(Suspect::ReceiveWindow), small_buffer),
    family("restart", Some(Suspect::SlowStartRestart), restart),
    family("restart_2", Some(Suspect::SlowStartRestart), restart),
    family("small_file", Some(Suspect::FirstSlowStart), small_file),
    family("own_upload", Some(Suspect::UplinkQueue), own_upload),
    family("lossy", Some(Suspect::Other), lossy),
    family("video", None, video),
    family("exchanges", None, exchanges),
    family("fetches", None, fetches),
    family("steady_cell", Some(Suspect::Radio), steady_cell),
    family("steady_cell_2", Some(Suspect::Radio), steady_cell),
    family("shallow_line", Some(Suspect::Wireline), shallow_line),
    family("paced_in_blocks", Some(Suspect::SenderLimited), paced_in_blocks),
    family("pauses", Some(Suspect::SenderLimited), pauses),
    family("reader", Some(Suspect::ReceiveWindow), reader),
];

/// Families for the evaluation.
pub const HELD: [Family; 20] = [
    family("busy_mixed", Some(Suspect::Radio), busy_mixed),
    family("busy_others", Some(Suspect::Radio), busy_others),
    family("driving", Some(Suspect::Radio), driving),
    family("two_files", None, two_files),
    family("wire_jitter", Some(Suspect::Wireline), wire_jitter),
    family("wire_shallow", Some(Suspect::Wireline), wire_shallow),
    family("on_off", Some(Suspect::SenderLimited), on_off),
    family("paced_blocks", Some(Suspect::SenderLimited), paced_blocks),
    family("slow_answers", Some(Suspect::SenderLimited), slow_answers),
    family("slow_reader", Some(Suspect::ReceiveWindow), slow_reader),
    family("tuned_buffer", Some(Suspect::ReceiveWindow), tuned_buffer),
    family("proxy_restart", Some(Suspect::SlowStartRestart), proxy_restart),
    family("fetch_restart", Some(Suspect::SlowStartRestart), fetch_restart),
    family("small_files", Some(Suspect::FirstSlowStart), small_files),
    family("firmware_upload", Some(Suspect::UplinkQueue), firmware_upload),
    family("page", None, page),
    family("busy_h3", Some(Suspect::Radio), |d| quic(busy_mixed(d))),
    family("wire_h3", Some(Suspect::Wireline), |d| quic(wire_jitter(d))),
    Family {
        name: "trace_file",
        injected: Some(Suspect::Radio),
        parts: trace_file,
        trace: Some("Verizon-LTE-short"),
    },
    Family {
        name: "trace_wire",
        injected: Some(Suspect::Wireline),
        parts: trace_wire,
        trace: Some("TMobile-LTE-short"),
    },
];

/// Families whose queue overflows, because a sender without HyStart fills it: a cell's that one user
/// has alone, with a constant channel, and a line's before such a cell.
pub const OVERFLOWING: [Family; 2] = [
    family("cell_overflow", Some(Suspect::Radio), cell_overflow),
    family("line_overflow", Some(Suspect::Wireline), line_overflow),
];

impl Family {
    /// A scenario of the family; `None` if its link trace is missing.
    pub fn scenario(
        &self,
        held: bool,
        seed: u64,
        shared: &Path,
    ) -> anyhow::Result<Option<Scenario>> {
        let mut draw = Draw(seed);
        let world = if held { &HELD_OUT } else { &FITTED };
        let parts = (self.parts)(&mut draw);
        let text = parts.file(world, seed, &mut draw, self.name);
        let read = Scenario::from_toml(&text);
        let mut scenario = read.with_context(|| format!("{}, seed {seed}:\n{text}", self.name))?;
        scenario.name = self.name.to_owned();
        if let Some(name) = self.trace {
            let dir = shared.join("data/links");
            let (down, up) = (format!("{name}.down.gz"), format!("{name}.up.gz"));
            let (Some(down), Some(up)) = (trace(&dir.join(down))?, trace(&dir.join(up))?) else {
                return Ok(None);
            };
            scenario.link.dl_trace = Some(down);
            scenario.link.ul_trace = Some(up);
        }
        Ok(Some(scenario))
    }
}

fn trace(path: &Path) -> anyhow::Result<Option<Arc<LinkTrace>>> {
    let Ok(file) = std::fs::File::open(path) else { return Ok(None) };
    let mut text = String::new();
    let mut read = flate2::read::GzDecoder::new(file);
    read.read_to_string(&mut text).with_context(|| path.display().to_string())?;
    Ok(Some(Arc::new(LinkTrace::parse(&text)?)))
}

impl Parts {
    fn file(&self, world: &World, seed: u64, draw: &mut Draw, label: &str) -> String {
        let n_prb =
            if self.roomy { *world.n_prb.last().unwrap_or(&50) } else { draw.of(world.n_prb) };
        let snr = draw.between(world.snr_db.0, world.snr_db.1);
        let link = if self.link.is_empty() {
            format!(
                "snr_mean_db = {}.0\nfading_coherence_ms = {}.0\n",
                if self.roomy { snr.max(14) } else { snr },
                draw.of(world.coherence_ms)
            )
        } else {
            self.link.clone()
        };
        let stamps = if seed.is_multiple_of(PLAIN_EVERY) { "timestamps = false\n" } else { "" };
        let light = match draw.between(0, 4) {
            0 => {
                "[[competing]]\nkind = \"sporadic\"\nusers = 2\nmean_file_bytes = 80_000\n\
                  mean_pause_ms = 1_500\n"
            }
            _ => "",
        };
        let cause = if self.without.is_empty() {
            String::new()
        } else {
            format!("[[causes]]\nlabel = \"{label}\"\nwhat = \"put in\"\n{}\n", self.without)
        };
        // Only a family's own users may be removed by index.
        let light = if self.without.contains("competing") || self.without.contains("others") {
            ""
        } else {
            light
        };
        format!(
            "seed = {seed}\nduration_ms = {}\ntail_ms = 100\n[cell]\nn_prb = {n_prb}\nscheduler = \
             \"{}\"\n{}{}[link]\n{link}[core]\nrtt_ms = {}\n{}[phone_tcp]\n{stamps}{}[server_tcp]\n\
             control = {}\n{}{}{light}{cause}",
            self.duration_ms.max(40_000),
            draw.of(world.schedulers),
            draw.of(world.frames),
            self.cell,
            self.rtt_ms,
            self.core,
            self.phone_tcp,
            draw.of(world.controls),
            self.server_tcp,
            self.body,
        )
    }
}

fn app(workload: &str) -> String {
    format!("[[apps]]\nname = \"file\"\nstart_ms = 500\nworkload = {{ {workload} }}\n")
}

fn file(bytes: u64) -> String {
    app(&format!("kind = \"file\", bytes = {bytes}"))
}

/// The same without the cause: a file of these bytes.
fn as_file(bytes: u64) -> String {
    format!(
        "set = {{ apps = [{{ name = \"file\", start_ms = 500, workload = {{ kind = \"file\", \
         bytes = {bytes} }} }}] }}"
    )
}

fn quic(parts: Parts) -> Parts {
    let over = |text: String| {
        text.replace("start_ms = 500\nworkload", "start_ms = 500\ntransport = \"quic\"\nworkload")
            .replace("start_ms = 500, workload", "start_ms = 500, transport = \"quic\", workload")
    };
    Parts { body: over(parts.body), without: over(parts.without), ..parts }
}

fn busy_file(draw: &mut Draw) -> Parts {
    let competing = match draw.between(0, 2) {
        0 => "kind = \"sporadic\"\nusers = 12\nmean_file_bytes = 400_000\nmean_pause_ms = 500\n"
            .to_owned(),
        _ => format!("kind = \"full_buffer\"\nusers = {}\n", draw.between(1, 6)),
    };
    Parts {
        rtt_ms: draw.between(20, 100),
        body: format!("{}[[competing]]\n{competing}", file(draw.between(10, 40) * 100_000)),
        without: "remove = [\"competing\"]".into(),
        ..Parts::default()
    }
}

fn weak_file(draw: &mut Draw) -> Parts {
    let snr = draw.between(0, 6) as i64 - 1;
    Parts {
        rtt_ms: draw.between(20, 100),
        link: format!(
            "snr_mean_db = {snr}.0\nfading_coherence_ms = {}.0\n",
            draw.of(&[40_u64, 80, 200])
        ),
        body: file(draw.between(5, 25) * 100_000),
        without: "set = { link = { snr_mean_db = 22.0 } }".into(),
        ..Parts::default()
    }
}

fn clean_file(draw: &mut Draw) -> Parts {
    let bytes = draw.between(10, 100) * 100_000;
    Parts { rtt_ms: draw.between(20, 100), body: file(bytes), ..Parts::default() }
}

fn limit(rate_bps: u64, queue_bytes: u64) -> String {
    format!("[core.down.limit]\nrate_bps = {rate_bps}\nqueue_bytes = {queue_bytes}\n")
}

fn wireline(draw: &mut Draw) -> Parts {
    let rate = draw.between(8, 120) * 100_000;
    let seconds = draw.between(2, 8);
    Parts {
        rtt_ms: draw.between(20, 100),
        core: limit(rate, draw.between(50, 500) * 1_000),
        body: file(rate / 8 * seconds),
        without: "remove = [\"core.down.limit\"]".into(),
        ..Parts::default()
    }
}

fn paced(draw: &mut Draw) -> Parts {
    let rate = draw.between(5, 120) * 100_000;
    let bytes = rate / 8 * draw.between(2, 8);
    Parts {
        rtt_ms: draw.between(20, 100),
        body: app(&format!("kind = \"paced\", rate_bps = {rate}, bytes = {bytes}")),
        without: as_file(bytes),
        ..Parts::default()
    }
}

fn thinking(draw: &mut Draw) -> Parts {
    let (bytes, think) = (draw.between(20, 300) * 1_000, draw.between(150, 1_500));
    let workload = |think| {
        format!(
            "kind = \"interactive\", request_bytes = 300, response_bytes = {bytes}, count = 5, \
             think_ms = {think}"
        )
    };
    Parts {
        rtt_ms: draw.between(20, 100),
        body: app(&workload(think)),
        without: format!(
            "set = {{ apps = [{{ name = \"file\", start_ms = 500, workload = {{ {} }} }}] }}",
            workload(0)
        ),
        ..Parts::default()
    }
}

fn small_buffer(draw: &mut Draw) -> Parts {
    let bytes = draw.between(32, 200) * 1_000;
    Parts {
        rtt_ms: draw.between(50, 160),
        phone_tcp: format!(
            "[phone_tcp.receive]\nbuffer_bytes = {bytes}\nmax_buffer_bytes = {bytes}\n"
        ),
        body: file(draw.between(10, 40) * 100_000),
        without: "set = { phone_tcp = { receive = { max_buffer_bytes = 6_291_456 } } }".into(),
        ..Parts::default()
    }
}

fn restart(draw: &mut Draw) -> Parts {
    let rate = draw.between(10, 60) * 100_000;
    Parts {
        rtt_ms: draw.between(50, 140),
        server_tcp: "slow_start_after_idle = true\n".into(),
        body: app(&format!(
            "kind = \"video\", duration_ms = 28_000, bitrates_bps = [{rate}], buffer_ms = {}",
            draw.of(&[6_000_u64, 8_000, 12_000])
        )),
        without: "set = { server_tcp = { slow_start_after_idle = false } }".into(),
        roomy: true,
        duration_ms: 60_000,
        ..Parts::default()
    }
}

fn small_file(draw: &mut Draw) -> Parts {
    Parts {
        rtt_ms: draw.between(40, 200),
        body: file(draw.between(40, 900) * 1_000),
        without: "set = { server_tcp = { initial_window_segments = 600 } }".into(),
        ..Parts::default()
    }
}

fn own_upload(draw: &mut Draw) -> Parts {
    let bytes = draw.between(15, 50) * 100_000;
    Parts {
        rtt_ms: draw.between(20, 80),
        body: format!(
            "[[apps]]\nname = \"upload\"\nstart_ms = 0\nworkload = {{ kind = \"upload\", bytes = \
             {} }}\n{}",
            draw.between(2, 6) * 1_000_000,
            file(bytes)
        ),
        without: as_file(bytes),
        ..Parts::default()
    }
}

fn lossy(draw: &mut Draw) -> Parts {
    Parts {
        rtt_ms: draw.between(30, 120),
        core: format!("[core.down]\nloss = 0.0{:02}\n", draw.between(3, 30)),
        body: file(draw.between(10, 40) * 100_000),
        without: "set = { core = { down = { loss = 0.0 } } }".into(),
        ..Parts::default()
    }
}

fn video(draw: &mut Draw) -> Parts {
    Parts {
        rtt_ms: draw.between(20, 90),
        server_tcp: "slow_start_after_idle = false\n".into(),
        body: app("kind = \"video\", duration_ms = 24_000, buffer_ms = 8_000"),
        duration_ms: 60_000,
        ..Parts::default()
    }
}

/// Small responses one after the other: dominated by round trips, with no single cause.
fn exchanges(draw: &mut Draw) -> Parts {
    Parts {
        rtt_ms: draw.between(20, 120),
        body: app(&format!(
            "kind = \"interactive\", request_bytes = 400, response_bytes = {}, count = {}, gap_ms = \
             {}",
            draw.between(5, 120) * 1_000,
            draw.between(5, 12),
            draw.of(&[0_u64, 30, 300, 900, 2_000])
        )),
        ..Parts::default()
    }
}

/// Files with pauses, from a server that keeps its window or not.
fn fetches(draw: &mut Draw) -> Parts {
    Parts {
        rtt_ms: draw.between(20, 80),
        server_tcp: format!("slow_start_after_idle = {}\n", draw.of(&[true, false])),
        body: app(&format!(
            "kind = \"file\", bytes = {}, count = 3, gap_ms = {}",
            draw.between(5, 50) * 100_000,
            draw.between(300, 1_500)
        )),
        ..Parts::default()
    }
}

/// One user alone with a constant channel, as with fixed wireless: a constant rate does not
/// indicate a wireline bottleneck.
fn steady_cell(draw: &mut Draw) -> Parts {
    let snr = draw.between(0, 9) as i64 - 2;
    Parts {
        rtt_ms: draw.between(20, 100),
        link: format!("snr_mean_db = {snr}.0\nfading_coherence_ms = 60000.0\n"),
        body: file(draw.between(8, 40) * 100_000),
        without: "set = { link = { snr_mean_db = 24.0 } }".into(),
        ..Parts::default()
    }
}

/// A line whose queue holds 10 to 60 ms.
fn shallow_line(draw: &mut Draw) -> Parts {
    let rate = draw.between(15, 120) * 100_000;
    Parts {
        rtt_ms: draw.between(25, 90),
        core: limit(rate, (rate / 8 * draw.between(10, 60) / 1_000).max(6_000)),
        body: file(rate / 8 * draw.between(2, 7)),
        without: "remove = [\"core.down.limit\"]".into(),
        ..Parts::default()
    }
}

fn paced_in_blocks(draw: &mut Draw) -> Parts {
    let rate = draw.between(8, 90) * 100_000;
    let bytes = rate / 8 * draw.between(3, 7);
    Parts {
        rtt_ms: draw.between(20, 100),
        body: app(&format!(
            "kind = \"paced\", rate_bps = {rate}, bytes = {bytes}, block_bytes = {}",
            draw.of(&[8_000_u64, 30_000, 100_000, 250_000])
        )),
        without: as_file(bytes),
        ..Parts::default()
    }
}

fn pauses(draw: &mut Draw) -> Parts {
    let bytes = draw.between(10, 40) * 100_000;
    Parts {
        rtt_ms: draw.between(20, 100),
        server_tcp: format!("slow_start_after_idle = {}\n", draw.of(&[true, false])),
        body: app(&format!(
            "kind = \"on-off\", bytes = {bytes}, on_ms = {}, off_ms = {}, rate_bps = {}",
            draw.between(150, 700),
            draw.between(300, 1_200),
            draw.between(40, 200) * 100_000
        )),
        without: as_file(bytes),
        ..Parts::default()
    }
}

fn reader(draw: &mut Draw) -> Parts {
    let rate = draw.between(10, 60) * 100_000;
    let bytes = 300_000 + rate / 8 * draw.between(4, 8);
    let buffer = draw.of(&[65_536_u64, 98_304, 196_608]);
    Parts {
        rtt_ms: draw.between(20, 100),
        phone_tcp: format!(
            "[phone_tcp.receive]\nbuffer_bytes = {buffer}\nmax_buffer_bytes = {buffer}\n"
        ),
        body: app(&format!("kind = \"slow-reader\", bytes = {bytes}, read_rate_bps = {rate}")),
        without: as_file(bytes),
        ..Parts::default()
    }
}

fn busy_mixed(draw: &mut Draw) -> Parts {
    let competing = match draw.between(0, 2) {
        0 => format!(
            "kind = \"video\"\nusers = {}\nsegment_ms = 2_000\nbitrate_bps = 3_000_000\n",
            draw.between(6, 14)
        ),
        1 => format!(
            "kind = \"on_off\"\nusers = {}\nrate_bps = 8_000_000\nmean_on_ms = 800\nmean_off_ms = \
             800\n",
            draw.between(4, 9)
        ),
        _ => format!("kind = \"full_buffer\"\nusers = {}\n", draw.between(2, 9)),
    };
    Parts {
        rtt_ms: draw.between(15, 80),
        body: format!("{}[[competing]]\n{competing}", file(draw.between(8, 40) * 100_000)),
        without: "remove = [\"competing\"]".into(),
        ..Parts::default()
    }
}

/// Other users with their own transports.
fn busy_others(draw: &mut Draw) -> Parts {
    Parts {
        rtt_ms: draw.between(15, 80),
        body: format!(
            "{}[[others]]\ncount = {}\nstart_spread_ms = 300\n[[others.apps]]\nname = \
             \"download\"\nworkload = {{ kind = \"file\", bytes = 6_000_000, count = 9, gap_ms = \
             300 }}\n",
            file(draw.between(8, 30) * 100_000),
            draw.between(2, 4)
        ),
        without: "remove = [\"others\"]".into(),
        ..Parts::default()
    }
}

fn driving(draw: &mut Draw) -> Parts {
    Parts {
        rtt_ms: draw.between(15, 80),
        link: format!(
            "snr_mean_db = {}.0\nfading_coherence_ms = 12.0\nshadowing_sigma_db = 6.0\n\
             shadowing_coherence_ms = {}.0\n",
            draw.between(1, 7),
            draw.between(8, 36) * 100
        ),
        body: file(draw.between(8, 30) * 100_000),
        without: "set = { link = { snr_mean_db = 24.0, shadowing_sigma_db = 0.0 } }".into(),
        ..Parts::default()
    }
}

fn two_files(draw: &mut Draw) -> Parts {
    Parts {
        rtt_ms: draw.between(15, 80),
        body: app(&format!(
            "kind = \"file\", bytes = {}, count = 2, gap_ms = 900",
            draw.between(10, 50) * 100_000
        )),
        ..Parts::default()
    }
}

fn wire_jitter(draw: &mut Draw) -> Parts {
    let rate = draw.between(10, 140) * 100_000;
    let core = limit(rate, draw.between(40, 700) * 1_000);
    Parts {
        rtt_ms: draw.between(15, 80),
        core: format!("[core.down]\njitter_ms = {}.0\n{core}", draw.between(1, 3)),
        body: file(rate / 8 * draw.between(2, 7)),
        without: "remove = [\"core.down.limit\"]".into(),
        roomy: true,
        ..Parts::default()
    }
}

/// A rate limit with a queue smaller than the bandwidth-delay product, as with policers.
fn wire_shallow(draw: &mut Draw) -> Parts {
    let rate = draw.between(20, 80) * 100_000;
    Parts {
        rtt_ms: draw.between(25, 70),
        core: limit(rate, rate / 8 * draw.between(30, 90) / 1_000),
        body: file(rate / 8 * draw.between(3, 7)),
        without: "remove = [\"core.down.limit\"]".into(),
        ..Parts::default()
    }
}

fn on_off(draw: &mut Draw) -> Parts {
    let bytes = draw.between(8, 30) * 100_000;
    Parts {
        rtt_ms: draw.between(15, 80),
        body: app(&format!(
            "kind = \"on-off\", bytes = {bytes}, on_ms = {}, off_ms = {}, rate_bps = {}",
            draw.between(100, 500),
            draw.between(200, 800),
            draw.between(30, 90) * 100_000
        )),
        without: as_file(bytes),
        ..Parts::default()
    }
}

fn paced_blocks(draw: &mut Draw) -> Parts {
    let rate = draw.between(8, 80) * 100_000;
    let bytes = rate / 8 * draw.between(3, 7);
    Parts {
        rtt_ms: draw.between(15, 80),
        body: app(&format!(
            "kind = \"paced\", rate_bps = {rate}, bytes = {bytes}, block_bytes = {}",
            draw.of(&[4_000_u64, 16_000, 64_000])
        )),
        without: as_file(bytes),
        ..Parts::default()
    }
}

fn slow_answers(draw: &mut Draw) -> Parts {
    let (bytes, think) = (draw.between(30, 200) * 1_000, draw.between(200, 2_000));
    let workload = |think| {
        format!(
            "kind = \"interactive\", request_bytes = 900, response_bytes = {bytes}, count = 4, \
             period_ms = 300, think_ms = {think}"
        )
    };
    Parts {
        rtt_ms: draw.between(15, 80),
        body: app(&workload(think)),
        without: format!(
            "set = {{ apps = [{{ name = \"file\", start_ms = 500, workload = {{ {} }} }}] }}",
            workload(0)
        ),
        ..Parts::default()
    }
}

fn slow_reader(draw: &mut Draw) -> Parts {
    let rate = draw.between(8, 50) * 100_000;
    let bytes = 500_000 + rate / 8 * draw.between(4, 9);
    Parts {
        rtt_ms: draw.between(15, 80),
        phone_tcp: "[phone_tcp.receive]\nbuffer_bytes = 131_072\nmax_buffer_bytes = 262_144\n"
            .into(),
        body: app(&format!("kind = \"slow-reader\", bytes = {bytes}, read_rate_bps = {rate}")),
        without: as_file(bytes),
        ..Parts::default()
    }
}

fn tuned_buffer(draw: &mut Draw) -> Parts {
    let most = draw.between(50, 250) * 1_000;
    Parts {
        rtt_ms: draw.between(70, 180),
        phone_tcp: format!(
            "[phone_tcp.receive]\nbuffer_bytes = 40_000\nmax_buffer_bytes = {most}\n"
        ),
        body: file(draw.between(10, 40) * 100_000),
        without: "set = { phone_tcp = { receive = { max_buffer_bytes = 6_291_456 } } }".into(),
        roomy: true,
        ..Parts::default()
    }
}

fn proxy_restart(draw: &mut Draw) -> Parts {
    let rate = draw.between(12, 50) * 100_000;
    Parts {
        rtt_ms: draw.between(70, 120),
        core: format!("proxy_rtt_ms = {}\n", draw.between(35, 60)),
        server_tcp: "slow_start_after_idle = false\n".into(),
        body: format!(
            "[proxy]\nports = [{{ port = 443, slow_start_after_idle = true }}]\n{}",
            app(&format!(
                "kind = \"video\", duration_ms = 28_000, bitrates_bps = [{rate}], buffer_ms = 9_000"
            ))
        ),
        without: "set = { proxy = { ports = [{ port = 443, slow_start_after_idle = false }] } }"
            .into(),
        roomy: true,
        duration_ms: 60_000,
        ..Parts::default()
    }
}

/// Downloads with pauses, without a player.
fn fetch_restart(draw: &mut Draw) -> Parts {
    Parts {
        rtt_ms: draw.between(60, 150),
        server_tcp: "slow_start_after_idle = true\n".into(),
        body: app(&format!(
            "kind = \"periodic\", bytes = {}, count = 6, period_ms = {}",
            draw.between(300, 1_200) * 1_000,
            draw.between(25, 40) * 100
        )),
        without: "set = { server_tcp = { slow_start_after_idle = false } }".into(),
        roomy: true,
        ..Parts::default()
    }
}

/// Objects one after the other, each from a new host.
fn small_files(draw: &mut Draw) -> Parts {
    let mut body = String::new();
    for n in 0..draw.between(2, 3) {
        body.push_str(&format!(
            "[[apps]]\nname = \"object{n}\"\nstart_ms = {}\nport = {}\nworkload = {{ kind = \
             \"file\", bytes = {} }}\n",
            500 + n * 3_000,
            8_000 + n,
            draw.between(50, 700) * 1_000
        ));
    }
    Parts {
        rtt_ms: draw.between(60, 180),
        body,
        without: "set = { server_tcp = { initial_window_segments = 600 } }".into(),
        roomy: true,
        ..Parts::default()
    }
}

fn firmware_upload(draw: &mut Draw) -> Parts {
    let bytes = draw.between(15, 40) * 100_000;
    Parts {
        rtt_ms: draw.between(15, 70),
        body: format!(
            "[uplink]\ngrant_every_tti = {}\nfirmware_bytes = {}\n[[apps]]\nname = \"upload\"\n\
             start_ms = 0\nworkload = {{ kind = \"upload\", bytes = {} }}\n{}",
            draw.between(2, 5),
            draw.between(100, 400) * 1_000,
            draw.between(3, 6) * 1_000_000,
            file(bytes)
        ),
        without: as_file(bytes),
        ..Parts::default()
    }
}

fn page(draw: &mut Draw) -> Parts {
    Parts {
        rtt_ms: draw.between(15, 80),
        body: app(&format!(
            "kind = \"web\", pages = 2, gap_ms = 2_000, objects = {}, page_bytes = {}",
            draw.between(15, 60),
            draw.between(8, 30) * 100_000
        )),
        ..Parts::default()
    }
}

fn cell_overflow(draw: &mut Draw) -> Parts {
    let snr = draw.between(1, 16);
    Parts {
        rtt_ms: draw.between(15, 90),
        link: format!("snr_mean_db = {snr}.0\nfading_sigma_db = 0.0\n"),
        cell: format!("queue_bytes = {}\n", draw.between(12, 120) * 10_000),
        body: file(draw.between(20, 80) * 100_000),
        without: "set = { link = { snr_mean_db = 26.0 }, cell = { n_prb = 100 } }".into(),
        duration_ms: 100_000,
        ..Parts::default()
    }
}

fn line_overflow(draw: &mut Draw) -> Parts {
    let rate = draw.between(15, 200) * 100_000;
    let snr = draw.between(16, 22);
    Parts {
        rtt_ms: draw.between(15, 90),
        link: format!("snr_mean_db = {snr}.0\nfading_sigma_db = 0.0\n"),
        core: limit(rate, draw.between(12, 120) * 10_000),
        body: file(rate / 8 * draw.between(3, 9)),
        without: "remove = [\"core.down.limit\"]".into(),
        roomy: true,
        ..Parts::default()
    }
}

fn trace_file(draw: &mut Draw) -> Parts {
    Parts {
        rtt_ms: draw.between(15, 80),
        body: format!(
            "[[apps]]\nname = \"file\"\nstart_ms = {}\nworkload = {{ kind = \"file\", bytes = {} \
             }}\n",
            draw.between(1, 60) * 500,
            draw.between(8, 40) * 100_000
        ),
        // A trace has no counterpart without the cause: the truth comes from the queue.
        without: String::new(),
        duration_ms: 80_000,
        ..Parts::default()
    }
}

fn trace_wire(draw: &mut Draw) -> Parts {
    let rate = draw.between(10, 50) * 100_000;
    Parts {
        rtt_ms: draw.between(15, 80),
        core: limit(rate, draw.between(60, 300) * 1_000),
        body: file(rate / 8 * draw.between(3, 7)),
        without: "remove = [\"core.down.limit\"]".into(),
        ..Parts::default()
    }
}
