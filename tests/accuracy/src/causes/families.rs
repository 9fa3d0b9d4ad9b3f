//! Families of scenarios, two for each cause: one for tuning, and another for the
//! thresholds, on which nothing was tuned.

use airmile_emulate::Scenario;
use airmile_model::Cause;
use anyhow::Context;

use super::draw::Draw;

const SCHEDULERS: [&str; 4] = ["whole_tti", "round_robin", "pf_frequency", "blind_equal"];

/// A kind of run.
pub struct Family {
    pub name: &'static str,
    pub cause: Cause,
    /// Body of the scenario, in the form that a user would write.
    body: fn(&mut Draw) -> String,
}

/// Families used while thresholds were chosen.
pub const TUNED: [Family; 13] = [
    family("beside_full_buffers", Cause::RadioContention, full_buffers),
    family("weak_signal", Cause::RadioSignal, weak_signal),
    family("video_restarts", Cause::SlowStartRestart, video_restarts),
    family("video_behind_proxy", Cause::SlowStartRestart, video_behind_proxy),
    family("timer_of_2012", Cause::UndesiredSlowStart, timer_of_2012),
    family("far_server", Cause::FirstSlowStart, far_server),
    family("small_window", Cause::ReceiveWindow, small_window),
    family("paced_server", Cause::SenderLimited, paced_server),
    family("slow_line", Cause::Wireline, slow_line),
    family("radio_loses", Cause::LossRecoveryRadio, radio_loses),
    family("line_loses", Cause::LossRecoveryCongestion, line_loses),
    family("messages_from_idle", Cause::Setup, messages_from_idle),
    family("beside_upload", Cause::UplinkQueue, beside_upload),
];

/// Families for the thresholds.
pub const HELD_OUT: [Family; 13] = [
    family("beside_downloads", Cause::RadioContention, downloads_of_others),
    family("on_the_move", Cause::RadioSignal, on_the_move),
    family("files_restart", Cause::SlowStartRestart, files_restart),
    family("files_behind_proxy", Cause::SlowStartRestart, files_behind_proxy),
    family("timer_series", Cause::UndesiredSlowStart, timer_series),
    family("many_connections", Cause::FirstSlowStart, many_connections),
    family("slow_reader", Cause::ReceiveWindow, slow_reader),
    family("server_pauses", Cause::SenderLimited, server_pauses),
    family("slow_line_series", Cause::Wireline, slow_line_series),
    family("radio_loses_series", Cause::LossRecoveryRadio, radio_loses_series),
    family("line_loses_series", Cause::LossRecoveryCongestion, line_loses_series),
    family("files_from_idle", Cause::Setup, files_from_idle),
    family("beside_uploads", Cause::UplinkQueue, beside_uploads),
];

const fn family(name: &'static str, cause: Cause, body: fn(&mut Draw) -> String) -> Family {
    Family { name, cause, body }
}

impl Family {
    /// The scenario for a seed, with its text.
    pub fn scenario(&self, seed: u64) -> anyhow::Result<Scenario> {
        let mut draw = Draw(seed);
        let head = format!("seed = {seed}\nduration_ms = 120_000\n");
        let text = head + &(self.body)(&mut draw);
        let scenario = Scenario::from_toml(&text);
        let scenario = scenario.with_context(|| format!("{}, seed {seed}:\n{text}", self.name))?;
        Ok(Scenario { name: self.name.to_owned(), ..scenario })
    }
}

fn cell(draw: &mut Draw, n_prb: &[u16], more: &str) -> String {
    let (n_prb, scheduler) = (draw.of(n_prb), draw.of(&SCHEDULERS));
    format!("[cell]\nn_prb = {n_prb}\nscheduler = \"{scheduler}\"\n{more}")
}

fn any_cell(draw: &mut Draw) -> String {
    cell(draw, &[25, 50, 75], "")
}

fn core(draw: &mut Draw, from_ms: u64, to_ms: u64) -> String {
    format!("[core]\nrtt_ms = {}\n", draw.between(from_ms, to_ms))
}

fn app(name: &str, start_ms: u64, workload: &str) -> String {
    format!("[[apps]]\nname = \"{name}\"\nstart_ms = {start_ms}\nworkload = {{ {workload} }}\n")
}

fn file(bytes: u64) -> String {
    app("file", 500, &format!("kind = \"file\", bytes = {bytes}"))
}

fn files(bytes: u64, count: u64, gap_ms: u64) -> String {
    let workload = format!("kind = \"file\", bytes = {bytes}, count = {count}, gap_ms = {gap_ms}");
    app("file", 500, &workload)
}

fn cause(change: &str) -> String {
    format!("[[causes]]\nlabel = \"put_in\"\n{change}\n")
}

/// Without the cause the application runs another workload.
fn instead(workload: &str) -> String {
    cause(&format!(
        "set = {{ apps = [{{ name = \"file\", start_ms = 500, workload = {{ {workload} }} }}] }}"
    ))
}

fn megabytes(draw: &mut Draw, from: u64, to: u64) -> u64 {
    draw.between(from * 10, to * 10) * 100_000
}

fn full_buffers(draw: &mut Draw) -> String {
    let (cell, core) = (any_cell(draw), core(draw, 25, 90));
    let (bytes, users) = (megabytes(draw, 3, 7), draw.between(2, 6));
    let others = format!("[[competing]]\nkind = \"full_buffer\"\nusers = {users}\n");
    cell + &core + &file(bytes) + &others + &cause("remove = [\"competing\"]")
}

fn downloads_of_others(draw: &mut Draw) -> String {
    let (cell, core) = (any_cell(draw), core(draw, 25, 90));
    let (bytes, count) = (megabytes(draw, 1, 2), draw.between(3, 6));
    let others = format!(
        "[[others]]\ncount = {count}\nstart_spread_ms = 400\n[[others.apps]]\nname = \"download\"\n\
         workload = {{ kind = \"file\", bytes = 20_000_000, count = 50, gap_ms = 300 }}\n"
    );
    cell + &core + &files(bytes, 3, 2_000) + &others + &cause("remove = [\"others\"]")
}

fn weak_signal(draw: &mut Draw) -> String {
    let (cell, core) = (any_cell(draw), core(draw, 25, 90));
    let (snr, bytes) = (draw.between(0, 5), megabytes(draw, 2, 6));
    let link = format!("[link]\nsnr_mean_db = {snr}\n");
    let better = cause("set = { link = { snr_mean_db = 35.0 } }");
    cell + &core + &link + &file(bytes) + &better
}

fn on_the_move(draw: &mut Draw) -> String {
    let (cell, core) = (any_cell(draw), core(draw, 25, 90));
    let (snr, bytes) = (draw.between(1, 6), megabytes(draw, 1, 2));
    let coherence_ms = draw.between(500, 3_000);
    let link = format!(
        "[link]\nsnr_mean_db = {snr}\nshadowing_sigma_db = 4.0\nshadowing_coherence_ms = \
         {coherence_ms}\nfading_coherence_ms = 20.0\n"
    );
    let better = cause("set = { link = { snr_mean_db = 45.0 } }");
    cell + &core + &link + &files(bytes, 4, 2_500) + &better
}

fn video_restarts(draw: &mut Draw) -> String {
    let (cell, core) = (any_cell(draw), core(draw, 60, 120));
    let rate = draw.of(&[1_500_000, 2_000_000, 3_000_000]);
    let video = app(
        "video",
        500,
        &format!(
            "kind = \"video\", duration_ms = 40_000, bitrates_bps = [{rate}], buffer_ms = 10_000"
        ),
    );
    let tcp = "[server_tcp]\nslow_start_after_idle = true\n";
    let warm = cause("set = { server_tcp = { slow_start_after_idle = false } }");
    cell + &core + tcp + &video + &warm
}

fn files_restart(draw: &mut Draw) -> String {
    let (cell, core) = (any_cell(draw), core(draw, 70, 160));
    let (bytes, gap_ms) = (draw.between(5, 12) * 100_000, draw.between(1_500, 4_000));
    let tcp = "[server_tcp]\nslow_start_after_idle = true\n";
    let warm = cause("set = { server_tcp = { slow_start_after_idle = false } }");
    cell + &core + tcp + &files(bytes, 10, gap_ms) + &warm
}

fn behind_proxy(draw: &mut Draw, app: &str) -> String {
    let (rtt, near) = (draw.between(70, 140), draw.between(35, 60));
    let proxy = |restarts: bool| format!("{{ port = 443, slow_start_after_idle = {restarts} }}");
    let cause = cause(&format!("set = {{ proxy = {{ ports = [{}] }} }}", proxy(false)));
    format!(
        "[core]\nrtt_ms = {rtt}\nproxy_rtt_ms = {near}\n[server_tcp]\nslow_start_after_idle = \
         false\n[proxy]\nports = [{}]\n{app}{cause}",
        proxy(true)
    )
}

fn video_behind_proxy(draw: &mut Draw) -> String {
    let rate = draw.of(&[1_500_000, 2_000_000, 3_000_000]);
    let video = app(
        "video",
        500,
        &format!(
            "kind = \"video\", duration_ms = 40_000, bitrates_bps = [{rate}], buffer_ms = 10_000"
        ),
    );
    any_cell(draw) + &behind_proxy(draw, &video)
}

fn files_behind_proxy(draw: &mut Draw) -> String {
    let (bytes, gap_ms) = (draw.between(5, 10) * 100_000, draw.between(1_500, 4_000));
    any_cell(draw) + &behind_proxy(draw, &files(bytes, 10, gap_ms))
}

/// Huang et al. 2013, section 5: duplicate ACKs do not update the round trip.
const TCP_2012: &str = "[server_tcp]\ncontrol = { name = \"cubic\", hystart = false }\n\
    slow_start_after_idle = false\ntimestamp_tick_ns = 4_000_000\nrtt_source = \"timestamps\"\nrtt_from_sack = false\n\
    loss_detection = \"dup-ack\"\nproportional_reduction = false\ntail_loss_probe = false\n\
    undo_spurious = false\n";

/// Consecutive connections whose slow start fills a deep queue: if it then loses packets,
/// the round trip exceeds the timer.
fn timer_downloads(draw: &mut Draw, bytes: u64, every_ms: u64, count: usize) -> String {
    let names = ["one", "two", "three", "four"];
    let each = |n: usize| {
        let start_ms = 500 + n as u64 * every_ms;
        app(names[n], start_ms, &format!("kind = \"file\", bytes = {bytes}"))
    };
    let apps: String = (0..count).map(each).collect();
    let (rtt, loss) = (draw.between(50, 110), draw.between(6, 14) as f64 / 10_000.0);
    let core = format!("[core]\nrtt_ms = {rtt}\n[core.down]\nloss = {loss}\n");
    core + TCP_2012 + &apps + &cause("set = { server_tcp = { rtt_from_sack = true } }")
}

fn timer_of_2012(draw: &mut Draw) -> String {
    let (cell, bytes) = (cell(draw, &[25, 50], ""), draw.between(12, 20) * 100_000);
    cell + "[link]\nsnr_mean_db = 14.0\n" + &timer_downloads(draw, bytes, 12_000, 1)
}

fn timer_series(draw: &mut Draw) -> String {
    let (cell, bytes) = (cell(draw, &[25, 50], ""), draw.between(10, 25) * 100_000);
    cell + "[link]\nsnr_mean_db = 17.0\n" + &timer_downloads(draw, bytes, 9_000, 2)
}

/// A receive window that does not grow step by step.
const WIDE: &str = "[phone_tcp.receive]\nbuffer_bytes = 4_000_000\n";

/// A server that starts with its full window.
const NO_SLOW_START: &str = "set = { server_tcp = { initial_window_segments = 2_000 } }";

fn far_server(draw: &mut Draw) -> String {
    let (cell, core) = (cell(draw, &[50, 75], ""), core(draw, 120, 260));
    let bytes = draw.between(4, 12) * 100_000;
    cell + &core + WIDE + "[link]\nsnr_mean_db = 18.0\n" + &file(bytes) + &cause(NO_SLOW_START)
}

fn many_connections(draw: &mut Draw) -> String {
    let (cell, core) = (cell(draw, &[50, 75, 100], ""), core(draw, 110, 220));
    let apps = ["one", "two", "three", "four"].iter().zip([500, 5_000, 9_500, 14_000]);
    let apps: String = apps
        .map(|(name, start_ms)| {
            let bytes = draw.between(3, 10) * 100_000;
            app(name, start_ms, &format!("kind = \"file\", bytes = {bytes}"))
        })
        .collect();
    cell + &core + WIDE + "[link]\nsnr_mean_db = 20.0\n" + &apps + &cause(NO_SLOW_START)
}

fn small_window(draw: &mut Draw) -> String {
    let (cell, core) = (any_cell(draw), core(draw, 80, 160));
    let bytes = megabytes(draw, 3, 7);
    let window = "[phone_tcp.receive]\nbuffer_bytes = 65_535\nmax_buffer_bytes = 65_535\n";
    let wide = cause("set = { phone_tcp = { receive = { max_buffer_bytes = 6_291_456 } } }");
    cell + &core + window + &file(bytes) + &wide
}

fn slow_reader(draw: &mut Draw) -> String {
    let (cell, core) = (any_cell(draw), core(draw, 30, 100));
    let (bytes, rate) = (megabytes(draw, 2, 4), draw.between(12, 30) * 100_000);
    let buffer = draw.of(&[65_535, 131_072, 262_144]);
    let window =
        format!("[phone_tcp.receive]\nbuffer_bytes = {buffer}\nmax_buffer_bytes = {buffer}\n");
    let reads = format!("kind = \"slow-reader\", bytes = {bytes}, read_rate_bps = {rate}");
    let fast = format!(
        "set = {{ phone_tcp = {{ receive = {{ max_buffer_bytes = 6_291_456 }} }}, apps = [{{ name \
         = \"file\", start_ms = 500, workload = {{ kind = \"file\", bytes = {bytes} }} }}] }}"
    );
    cell + &core + &window + &app("file", 500, &reads) + &cause(&fast)
}

fn paced_server(draw: &mut Draw) -> String {
    let (cell, core) = (any_cell(draw), core(draw, 25, 90));
    let (bytes, rate) = (megabytes(draw, 3, 5), draw.between(10, 30) * 100_000);
    let paced = format!("kind = \"paced\", rate_bps = {rate}, bytes = {bytes}");
    let free = instead(&format!("kind = \"file\", bytes = {bytes}"));
    cell + &core + &app("file", 500, &paced) + &free
}

fn server_pauses(draw: &mut Draw) -> String {
    let (cell, core) = (any_cell(draw), core(draw, 25, 90));
    let (with, without) = if draw.of(&[true, false]) {
        let (bytes, on, off) =
            (megabytes(draw, 3, 6), draw.between(100, 400), draw.between(500, 1_500));
        let pauses = format!("kind = \"on-off\", bytes = {bytes}, on_ms = {on}, off_ms = {off}");
        (pauses, format!("kind = \"file\", bytes = {bytes}"))
    } else {
        let (bytes, think) = (draw.between(15, 40) * 10_000, draw.between(800, 2_500));
        let asks = format!(
            "kind = \"interactive\", request_bytes = 400, response_bytes = {bytes}, count = 8, \
             gap_ms = 500"
        );
        (format!("{asks}, think_ms = {think}"), asks)
    };
    cell + &core + &app("file", 500, &with) + &instead(&without)
}

fn limit(draw: &mut Draw) -> String {
    let (rate, queue) = (draw.between(20, 50) * 100_000, draw.between(100, 400) * 1_000);
    format!("[core.down.limit]\nrate_bps = {rate}\nqueue_bytes = {queue}\n")
}

fn slow_line(draw: &mut Draw) -> String {
    let (cell, core) = (any_cell(draw), core(draw, 25, 90));
    let (limit, bytes) = (limit(draw), megabytes(draw, 3, 6));
    cell + &core + &limit + &file(bytes) + &cause("remove = [\"core.down.limit\"]")
}

fn slow_line_series(draw: &mut Draw) -> String {
    let (cell, core) = (any_cell(draw), core(draw, 25, 90));
    let (limit, bytes) = (limit(draw), megabytes(draw, 1, 2));
    cell + &core + &limit + &files(bytes, 4, 1_500) + &cause("remove = [\"core.down.limit\"]")
}

/// A bearer without HARQ and RLC retransmissions.
fn losing_cell(draw: &mut Draw) -> String {
    let cell = cell(draw, &[25, 50, 75], "dl_harq_transmissions = 1\n");
    let reordering_ms = draw.between(20, 50);
    let rlc = format!("[dl_rlc]\nunacknowledged = true\nt_reordering_ms = {reordering_ms}\n");
    let snr = draw.between(10, 18);
    let bler = draw.between(5, 30) as f64 / 1_000.0;
    cell + &rlc + &format!("[link]\nsnr_mean_db = {snr}\nbler_target = {bler}\n")
}

const ACKNOWLEDGED: &str = "set = { dl_rlc = { unacknowledged = false } }";

fn radio_loses(draw: &mut Draw) -> String {
    let (cell, core) = (losing_cell(draw), core(draw, 50, 120));
    let bytes = megabytes(draw, 3, 6);
    cell + &core + &file(bytes) + &cause(ACKNOWLEDGED)
}

fn radio_loses_series(draw: &mut Draw) -> String {
    let (cell, core) = (losing_cell(draw), core(draw, 50, 120));
    let bytes = megabytes(draw, 1, 3);
    cell + &core + &files(bytes, 4, 1_000) + &cause(ACKNOWLEDGED)
}

fn lossy_core(draw: &mut Draw) -> String {
    let (rtt, loss) = (draw.between(50, 120), draw.between(5, 20) as f64 / 1_000.0);
    format!("[core]\nrtt_ms = {rtt}\n[core.down]\nloss = {loss}\n")
}

const NO_LOSS: &str = "set = { core = { down = { loss = 0.0 } } }";

fn line_loses(draw: &mut Draw) -> String {
    let (cell, core) = (any_cell(draw), lossy_core(draw));
    let bytes = megabytes(draw, 3, 6);
    cell + &core + &file(bytes) + &cause(NO_LOSS)
}

fn line_loses_series(draw: &mut Draw) -> String {
    let (cell, core) = (any_cell(draw), lossy_core(draw));
    let (bytes, control) = (megabytes(draw, 1, 3), draw.of(&["new-reno", "cubic"]));
    let tcp = format!("[server_tcp]\ncontrol = {{ name = \"{control}\" }}\n");
    cell + &core + &tcp + &files(bytes, 4, 1_000) + &cause(NO_LOSS)
}

fn messages_from_idle(draw: &mut Draw) -> String {
    let (cell, core) = (any_cell(draw), core(draw, 25, 60));
    let (bytes, promotion) = (draw.between(15, 200) * 100, draw.between(200, 500));
    let rrc = format!("[rrc]\npromotion_ms = {promotion}\n");
    let messages = format!(
        "kind = \"interactive\", request_bytes = 400, response_bytes = {bytes}, count = 4, gap_ms \
         = 12_500"
    );
    cell + &core + &rrc + &app("file", 500, &messages) + &cause("remove = [\"rrc\"]")
}

fn files_from_idle(draw: &mut Draw) -> String {
    let (cell, core) = (any_cell(draw), core(draw, 25, 60));
    let (bytes, promotion) = (draw.between(20, 100) * 1_000, draw.between(220, 600));
    let rrc = format!("[rrc]\npromotion_ms = {promotion}\n");
    let gap_ms = draw.between(12_500, 16_000);
    cell + &core + &rrc + &files(bytes, 4, gap_ms) + &cause("remove = [\"rrc\"]")
}

/// The phone's firmware buffers more than ACKs can wait for.
const NARROW_UPLINK: &str = "[uplink]\ngrant_every_tti = 4\nfirmware_bytes = 300_000\n";

fn beside_upload(draw: &mut Draw) -> String {
    let (cell, core) = (any_cell(draw), core(draw, 25, 90));
    let (bytes, up) = (megabytes(draw, 4, 9), megabytes(draw, 2, 4));
    let download = app("file", 1_500, &format!("kind = \"file\", bytes = {bytes}"));
    let upload = app("upload", 500, &format!("kind = \"upload\", bytes = {up}"));
    cell + &core + NARROW_UPLINK + &download + &upload + &cause("remove = [\"apps.1\"]")
}

fn beside_uploads(draw: &mut Draw) -> String {
    let (cell, core) = (any_cell(draw), core(draw, 25, 90));
    let (bytes, up) = (megabytes(draw, 2, 3), megabytes(draw, 1, 2));
    let downloads = files(bytes, 3, 1_000).replace("start_ms = 500", "start_ms = 2_500");
    let uploads =
        app("upload", 500, &format!("kind = \"upload\", bytes = {up}, count = 3, gap_ms = 200"));
    cell + &core + NARROW_UPLINK + &downloads + &uploads + &cause("remove = [\"apps.1\"]")
}
