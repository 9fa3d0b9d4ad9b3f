//! The verdict of a transfer whose bounds are guessed.

use airmile_model::{TransferFinding, Verdict, VerdictThresholds};

use crate::transfer::{reliability, sureness_at};

/// The confidence of a transfer with guessed bounds is multiplied by this (chosen here).
const GUESSED_BOUNDS: f64 = 0.9;

/// A detected transfer is not judged below this duration, in ms (chosen here: less than a round trip of
/// a cellular network).
const SHORTEST_MS: f64 = 10.0;

/// Judges a finding whose bounds are a guess: the time before its first and after its last block is not seen,
/// and two transfers may appear as one. Where its doubtful TTIs decide, there is no verdict; where those around it
/// do, it is as uncertain as at a limit.
pub fn judge_guess(
    finding: &mut TransferFinding,
    (doubtful_ttis, around_ttis): (i64, i64),
    thresholds: &VerdictThresholds,
) {
    if finding.confidence <= 0.0 {
        return;
    }
    let ms = finding.duration_ms;
    // A few blocks of a log are no transfer that an application waited for.
    if ms < SHORTEST_MS {
        finding.notes.push(format!("blocks of {ms:.0} ms alone show no bottleneck"));
        (finding.verdict, finding.confidence) = (Verdict::Unknown, 0.0);
        return;
    }
    let n_tti = finding.end_tti.since(finding.start_tti).max(1) as f64;
    let share = finding.radio_share().unwrap_or_default();
    let (doubtful, around) = (doubtful_ttis as f64 / n_tti, around_ttis as f64 / n_tti);
    let highest = share / (1.0 - doubtful).max(share).max(f64::MIN_POSITIVE);
    let lowest = share / (1.0 + around);
    let doubts = [(highest, doubtful, "in"), (lowest, around, "directly before or after")];
    for (other, part, place) in doubts {
        // One of the guesses is right, and which is not known.
        let least = sureness_at(other, thresholds) * reliability(finding.evidence);
        if part <= 0.0 || thresholds.judge(other) == finding.verdict {
            finding.confidence = finding.confidence.min(least);
            continue;
        }
        finding.notes.push(format!(
            "its bounds are guessed: few or no bytes passed in {:.0} ms {place} its {ms:.0} ms, which may be of \
             another transfer, or a wait of this one; by the other guess the radio's share is {:.0} %",
            part * ms,
            other * 100.0
        ));
        finding.confidence = finding.confidence.min(0.5);
        if finding.verdict == Verdict::NotRadio {
            (finding.verdict, finding.confidence) = (Verdict::Unknown, 0.0);
            break;
        }
    }
    finding.confidence *= GUESSED_BOUNDS;
}
