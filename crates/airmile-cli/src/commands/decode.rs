//! `airmile decode`.

use std::io::{BufWriter, Write};

use airmile::{DecodeOptions, DecodeTo, decode};
use anyhow::Result;

use crate::Outcome;
use crate::args::{DecodeArgs, Format, Global, inputs};
use crate::output;
use crate::progress::Shown;

pub fn run(global: &Global, args: &DecodeArgs) -> Result<Outcome> {
    let options = DecodeOptions {
        only: args.only.iter().map(|name| name.trim().to_owned()).collect(),
        to: match (&args.output, args.format) {
            (Some(dir), _) => DecodeTo::Parquet(dir.clone()),
            (None, Format::Json) => DecodeTo::JsonLines,
            (None, Format::Csv) => DecodeTo::Csv,
        },
        limits: args.files.limits.into(),
        subscription: args.sim,
    };
    options.check()?;
    let inputs = inputs(&args.files, None);
    let shown = Shown::start(global, &inputs);
    let mut out = BufWriter::new(std::io::stdout().lock());
    let (loaded, written) = decode(&inputs, &options, &shown.progress, &mut out)?;
    out.flush()?;
    drop(shown);
    for (path, rows) in written {
        output::warn(global, &format!("wrote {rows} rows to {}", path.display()));
    }
    output::problems(global, &loaded.files);
    Ok(Outcome::of(loaded.damaged()))
}
