//! Fits the coefficients: multinomial logistic regression by gradient descent, with a
//! ridge on the weights.

use std::fmt::Write as _;

use airmile_blind::{CoefficientTable, Evidence, Feature, N_FEATURES, Suspect};

use super::rows::Row;

/// Ridge on standardised weights: equivalent to a prior of standard deviation 1 / sqrt of
/// it on each, counted in rows (chosen here, before the held-out families were looked at).
const RIDGE: f64 = 1.0;
/// Steps of the descent, more than required (chosen here).
const STEPS: usize = 4_000;
/// Families have different numbers of runs for each suspect: rows are weighted so that all
/// suspects have equal weight, except for this power of their share (chosen here).
const N: usize = Suspect::ALL.len();

/// Fits a table for one kind of evidence.
pub fn fit(rows: &[&Row], evidence: Evidence) -> CoefficientTable {
    let scale = Feature::ALL
        .map(|feature| if evidence.uses(feature) { scale_of(rows, feature) } else { (0.0, 0.0) });
    let empty = CoefficientTable { scale, weights: [(0.0, [0.0; N_FEATURES]); N] };
    let inputs: Vec<[f64; N_FEATURES]> = rows
        .iter()
        .map(|row| {
            Feature::ALL.map(|feature| empty.standard(feature, row.features.values[feature]))
        })
        .collect();
    let truths: Vec<usize> = rows
        .iter()
        .map(|row| Suspect::ALL.iter().position(|s| *s == row.truth).unwrap_or(N - 1))
        .collect();
    let weights: Vec<f64> = rows.iter().map(|row| row.weight).collect();
    let mut table = empty;
    let mut state = Adam::default();
    for step in 1..=STEPS {
        let gradient = gradient(&table, &inputs, &truths, &weights);
        state.step(&mut table, &gradient, step);
    }
    table
}

/// The table with its logits divided by the temperature.
pub fn tempered(mut table: CoefficientTable, temperature: f64) -> CoefficientTable {
    for (constant, weights) in &mut table.weights {
        *constant /= temperature;
        weights.iter_mut().for_each(|weight| *weight /= temperature);
    }
    table
}

fn scale_of(rows: &[&Row], feature: Feature) -> (f64, f64) {
    let values = || rows.iter().filter_map(|row| row.features.get(feature));
    let n = values().count();
    if n < 20 {
        return (0.0, 0.0);
    }
    let mean = values().sum::<f64>() / n as f64;
    let square = values().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n as f64;
    let deviation = square.sqrt();
    if deviation < 1e-6 { (0.0, 0.0) } else { (round(mean), round(deviation)) }
}

/// Rounds to the written precision, so that the same values are used.
fn round(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

type Weights = [(f64, [f64; N_FEATURES]); N];

fn gradient(
    table: &CoefficientTable,
    inputs: &[[f64; N_FEATURES]],
    truths: &[usize],
    row_weights: &[f64],
) -> Weights {
    let mut out: Weights = [(0.0, [0.0; N_FEATURES]); N];
    for ((input, truth), weight) in inputs.iter().zip(truths).zip(row_weights) {
        let p = softmax(table, input);
        for (k, (constant, weights)) in out.iter_mut().enumerate() {
            let off = weight * (p[k] - f64::from(u8::from(k == *truth)));
            *constant += off;
            weights.iter_mut().zip(input).for_each(|(w, x)| *w += off * x);
        }
    }
    for ((_, weights), (_, own)) in out.iter_mut().zip(&table.weights) {
        weights.iter_mut().zip(own).for_each(|(w, own)| *w += RIDGE * own);
    }
    let n = row_weights.iter().sum::<f64>().max(1.0);
    for (constant, weights) in &mut out {
        *constant /= n;
        weights.iter_mut().for_each(|w| *w /= n);
    }
    out
}

fn softmax(table: &CoefficientTable, input: &[f64; N_FEATURES]) -> [f64; N] {
    let mut out: [f64; N] = std::array::from_fn(|k| {
        let (constant, weights) = &table.weights[k];
        constant + weights.iter().zip(input).map(|(w, x)| w * x).sum::<f64>()
    });
    let most = out.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    out.iter_mut().for_each(|v| *v = (*v - most).exp());
    let sum: f64 = out.iter().sum();
    out.map(|v| v / sum)
}

/// Adam (Kingma and Ba, ICLR 2015, algorithm 1), with its usual constants, 0.02 a step.
#[derive(Default)]
struct Adam {
    first: Vec<f64>,
    second: Vec<f64>,
}

impl Adam {
    fn step(&mut self, table: &mut CoefficientTable, gradient: &Weights, step: usize) {
        let flat = |w: &Weights| -> Vec<f64> {
            w.iter().flat_map(|(c, ws)| std::iter::once(*c).chain(ws.iter().copied())).collect()
        };
        let gradient = flat(gradient);
        self.first.resize(gradient.len(), 0.0);
        self.second.resize(gradient.len(), 0.0);
        let (b1, b2) = (0.9_f64, 0.999_f64);
        let (c1, c2) = (1.0 - b1.powi(step as i32), 1.0 - b2.powi(step as i32));
        let rate = 0.02 * (1.0 - step as f64 / STEPS as f64).max(0.02);
        let own =
            table.weights.iter_mut().flat_map(|(c, ws)| std::iter::once(c).chain(ws.iter_mut()));
        for (((w, g), m), v) in own.zip(gradient).zip(&mut self.first).zip(&mut self.second) {
            *m = b1 * *m + (1.0 - b1) * g;
            *v = b2 * *v + (1.0 - b2) * g * g;
            *w -= rate * (*m / c1) / ((*v / c2).sqrt() + 1e-8);
        }
    }
}

/// The source file with the tables.
pub fn source(tables: &[(&str, CoefficientTable)]) -> String {
    let mut out = String::from(
        r#"//! Fitted by `airmile-accuracy --blind-fit`; not written by hand.

#![allow(clippy::approx_constant, reason = "numbers that were fitted")]

use super::model::CoefficientTable;
"#,
    );
    let number = |value: f64| {
        let rounded = round(value);
        // `-0.0` is written as 0.
        format!("{:?}", if rounded == 0.0 { 0.0 } else { rounded })
    };
    for (name, table) in tables {
        let _ = write!(
            out,
            "\npub(super) static {name}: CoefficientTable = CoefficientTable {{\n    scale: [\n"
        );
        for (mean, deviation) in table.scale {
            let _ = writeln!(out, "        ({}, {}),", number(mean), number(deviation));
        }
        out.push_str("    ],\n    weights: [\n");
        for (suspect, (constant, weights)) in Suspect::ALL.iter().zip(&table.weights) {
            let words: Vec<String> = weights.iter().map(|w| number(*w)).collect();
            let _ = writeln!(
                out,
                "        // {}\n        ({}, [{}]),",
                suspect.as_str(),
                number(*constant),
                words.join(", ")
            );
        }
        out.push_str("    ],\n};\n");
    }
    out
}
