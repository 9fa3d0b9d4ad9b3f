//! Causes named by `diagnose` from modem log and captures, on runs of the lab
//! whose cause is known: the same seed without it tells what it cost.

use std::collections::BTreeMap;

use airmile::{Inputs, Progress, RadioOptions, diagnose, lab};
use airmile_emulate::Scenario;
use airmile_model::{Cause, Verdict};
use anyhow::Context;

/// Bar of the diagnosis: the leading cause named right.
const NAMED_BAR: f64 = 0.95;
/// Of its share it is told how often it is so near; no bar yet, as the radio's share
/// is time in which data waited, and not what a better signal would have saved.
const SHARE_BAR: f64 = 0.10;
/// A run counts where its cause cost at least this share of the time: below, it
/// leads by no measure.
const COUNTS: f64 = 0.10;
/// Seeds that nothing was tuned on; the parameters are drawn from them.
const SEED: u64 = 91_000;

const SCHEDULERS: [&str; 4] = ["whole_tti", "round_robin", "pf_frequency", "blind_equal"];

/// What is done to the transfers, and the cause that it is.
const FAMILIES: [(&str, Cause); 7] = [
    ("competing_users", Cause::RadioContention),
    ("weak_signal", Cause::RadioSignal),
    ("slow_start_restart", Cause::SlowStartRestart),
    ("receive_window", Cause::ReceiveWindow),
    ("server_rate", Cause::SenderLimited),
    ("wireline", Cause::Wireline),
    ("own_upload", Cause::UplinkQueue),
];

/// Draws parameters of a run (splitmix64).
pub struct Draw(pub u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[(self.next() % choices.len() as u64) as usize]
    }

    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % (to - from + 1)
    }
}

/// A scenario with a cause, as a user would write it.
fn scenario(family: &str, seed: u64) -> anyhow::Result<Scenario> {
    let mut draw = Draw(seed);
    let head = format!(
        "seed = {seed}\nduration_ms = 120_000\n[cell]\nn_prb = {}\nscheduler = \"{}\"\n",
        draw.of(&[25, 50, 75]),
        draw.of(&SCHEDULERS),
    );
    let rtt_ms = draw.between(25, 90);
    let bytes = draw.between(3, 9) * 1_000_000;
    let file = format!(
        "[[apps]]\nname = \"file\"\nstart_ms = 500\nworkload = {{ kind = \"file\", bytes = {bytes} }}\n"
    );
    let core = format!("[core]\nrtt_ms = {rtt_ms}\n");
    let cause =
        |change: &str| format!("[[causes]]\nlabel = \"{family}\"\nwhat = \"put in\"\n{change}\n");
    let body = match family {
        "competing_users" => format!(
            "{core}{file}[[competing]]\nkind = \"full_buffer\"\nusers = {}\n{}",
            draw.between(2, 6),
            cause("remove = [\"competing\"]")
        ),
        "weak_signal" => format!(
            "{core}[link]\nsnr_mean_db = {}\n{file}{}",
            draw.between(0, 3),
            cause("set = { link = { snr_mean_db = 20.0 } }")
        ),
        "slow_start_restart" => {
            let rate = draw.of(&[1_500_000, 2_000_000, 3_000_000]);
            format!(
                "[core]\nrtt_ms = {}\n[server_tcp]\nslow_start_after_idle = true\n[[apps]]\nname = \
                 \"video\"\nstart_ms = 500\nworkload = {{ kind = \"video\", duration_ms = 40_000, \
                 bitrates_bps = [{rate}], buffer_ms = 10_000 }}\n{}",
                draw.between(60, 120),
                cause("set = { server_tcp = { slow_start_after_idle = false } }")
            )
        }
        "receive_window" => format!(
            "[core]\nrtt_ms = {}\n[phone_tcp.receive]\nbuffer_bytes = 65_535\nmax_buffer_bytes = \
             65_535\n{file}{}",
            draw.between(80, 160),
            cause("set = { phone_tcp = { receive = { max_buffer_bytes = 6_291_456 } } }")
        ),
        "server_rate" => {
            let rate = draw.between(10, 30) * 100_000;
            let paced =
                file.replace("\"file\", bytes", &format!("\"paced\", rate_bps = {rate}, bytes"));
            let free = format!(
                "set = {{ apps = [{{ name = \"file\", start_ms = 500, workload = {{ kind = \
                 \"file\", bytes = {bytes} }} }}] }}"
            );
            format!("{core}{paced}{}", cause(&free))
        }
        "wireline" => format!(
            "{core}[core.down.limit]\nrate_bps = {}\nqueue_bytes = {}\n{file}{}",
            draw.between(20, 50) * 100_000,
            draw.between(100, 400) * 1_000,
            cause("remove = [\"core.down.limit\"]")
        ),
        "own_upload" => {
            let alone = format!(
                "set = {{ apps = [{{ name = \"file\", start_ms = 500, workload = {{ kind = \
                 \"file\", bytes = {bytes} }} }}] }}"
            );
            format!(
                "{core}[[apps]]\nname = \"upload\"\nstart_ms = 0\nworkload = {{ kind = \"upload\", \
                 bytes = {} }}\n{file}{}",
                draw.between(4, 8) * 1_000_000,
                cause(&alone)
            )
        }
        other => anyhow::bail!("no family {other}"),
    };
    let text = format!("{head}{body}");
    Scenario::from_toml(&text).with_context(|| format!("{family}, seed {seed}:\n{text}"))
}

/// What came of a run.
struct Judged {
    seed: u64,
    named: Verdict,
    leading: Option<Cause>,
    share: f64,
    /// What the cause cost, as a share of the time.
    cost: f64,
    /// Milliseconds without it: ours and true.
    without: Option<(f64, f64)>,
}

fn judge(family: &str, cause: Cause, seed: u64, dir: &std::path::Path) -> anyhow::Result<Judged> {
    let mut scenario = scenario(family, seed)?;
    scenario.name = family.to_owned();
    lab::leave(&scenario, dir, true)?;
    let truth = truth(dir)?;
    let inputs = Inputs { files: vec![dir.to_owned()], ..Inputs::default() };
    let answer = diagnose(&inputs, &RadioOptions::default(), &Progress::default())?;
    let transfers: Vec<_> = answer.transfers.iter().filter(|t| truth.contains_key(&t.id)).collect();
    let total_ms: f64 = transfers.iter().map(|t| t.finding.duration_ms).sum();
    let ours_ms: f64 = transfers.iter().filter_map(|t| t.shares.get(cause.as_str())).sum();
    let (with, without) = truth.values().fold((0.0, 0.0), |(a, b), (x, y)| (a + x, b + y));
    // The radio's own share has no counterfactual of ours.
    let without_ours: f64 = transfers
        .iter()
        .map(|t| match t.counterfactual_of == Some(cause) {
            true => t.counterfactual_ms.unwrap_or(t.finding.duration_ms),
            false => t.finding.duration_ms,
        })
        .sum();
    let leading =
        transfers.iter().max_by(|a, b| a.finding.duration_ms.total_cmp(&b.finding.duration_ms));
    // A session's verdict is about the direction that carried more: of one transfer, its own.
    let named = match transfers.as_slice() {
        [one] => one.verdict,
        _ => answer.session.verdict,
    };
    Ok(Judged {
        seed,
        named,
        leading: leading.and_then(|t| t.leading),
        share: ours_ms / total_ms,
        cost: (with - without) / with,
        without: (!cause.is_radio()).then_some((without_ours, without)),
    })
}

/// Milliseconds of each transfer with and without its cause.
fn truth(dir: &std::path::Path) -> anyhow::Result<BTreeMap<String, (f64, f64)>> {
    let text = std::fs::read_to_string(dir.join("counterfactuals.csv"))?;
    let rows = text.lines().skip(1).filter_map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        let ms = |n: usize| cells.get(n)?.parse::<f64>().ok();
        Some((cells.first()?.to_string(), (ms(2)?, ms(3)?)))
    });
    Ok(rows.collect())
}

/// Whether the bars are met, over `runs` of each family.
pub fn measure(runs: u64) -> anyhow::Result<bool> {
    let dir = std::env::temp_dir().join(format!("airmile-causes-{}", std::process::id()));
    let mut confusion: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    let (mut n, mut right) = (0_u32, 0_u32);
    let mut share_errors = Vec::new();
    println!(
        "\nCauses named from modem log and captures ({runs} runs a family, seeds from {SEED})"
    );
    println!(
        "{:<20}{:>5}{:>9}{:>14}{:>16}{:>18}",
        "family", "n", "right", "share, error", "saved, ratio", "first wrong"
    );
    for (at, (family, cause)) in FAMILIES.into_iter().enumerate() {
        let mut judged = Vec::new();
        for run in 0..runs {
            let seed = SEED + at as u64 * 1_000 + run;
            let one = judge(family, cause, seed, &dir)?;
            if one.cost >= COUNTS {
                judged.push(one);
            }
        }
        let is_right = |one: &Judged| {
            one.named == Verdict::from(cause)
                || one.named == Verdict::Mixed && one.leading == Some(cause)
        };
        for one in &judged {
            *confusion.entry((cause.as_str(), one.named.as_str())).or_default() += 1;
        }
        let of_family = judged.iter().filter(|one| is_right(one)).count();
        let mut errors: Vec<f64> = judged.iter().map(|one| (one.share - one.cost).abs()).collect();
        errors.sort_by(f64::total_cmp);
        let mut saved: Vec<f64> = judged
            .iter()
            .filter_map(|one| {
                let (ours, truth) = one.without?;
                let with = truth / (1.0 - one.cost);
                Some((with - ours) / (with - truth))
            })
            .collect();
        saved.sort_by(f64::total_cmp);
        let middle = |values: &[f64]| values.get(values.len() / 2).copied().unwrap_or(f64::NAN);
        let wrong = judged.iter().find(|one| !is_right(one));
        println!(
            "{family:<20}{:>5}{:>9}{:>14.3}{:>16.2}{:>18}",
            judged.len(),
            of_family,
            middle(&errors),
            middle(&saved),
            wrong.map_or("-".to_owned(), |one| format!("{} {}", one.seed, one.named))
        );
        n += judged.len() as u32;
        right += of_family as u32;
        share_errors.extend(errors);
    }
    let _ = std::fs::remove_dir_all(&dir);
    println!("\nTrue cause, verdict, runs");
    for ((cause, verdict), count) in &confusion {
        println!("{cause:<24}{verdict:<24}{count:>5}");
    }
    let (low, high) = wilson(right, n);
    let named = f64::from(right) / f64::from(n.max(1));
    let near = share_errors.iter().filter(|e| **e <= SHARE_BAR).count();
    println!(
        "\nleading cause named right   {:.1} % of {n} ({:.1}-{:.1} %)   bar {:.0} %   {}",
        named * 100.0,
        low * 100.0,
        high * 100.0,
        NAMED_BAR * 100.0,
        if named >= NAMED_BAR { "met" } else { "MISSED" }
    );
    println!("share within 10 points of what the cause cost: {near} of {}", share_errors.len());
    Ok(named >= NAMED_BAR)
}

/// Wilson's interval of a share at 95 %.
pub fn wilson(right: u32, n: u32) -> (f64, f64) {
    let (n, z) = (f64::from(n.max(1)), 1.96_f64);
    let p = f64::from(right) / n;
    let centre = p + z * z / (2.0 * n);
    let half = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    let below = 1.0 + z * z / n;
    ((centre - half) / below, (centre + half) / below)
}
