//! `airmile decode`.

use std::io::{BufWriter, IsTerminal, Write};
use std::path::Path;

use airmile::model::printable_path;
use airmile::{
    DecodeOptions, DecodeTo, Error, Loaded, Replacement, air_packets, air_packets_begin,
    check_outputs, decode,
};
use anyhow::Result;

use crate::Outcome;
use crate::args::{DecodeArgs, Format, Global, inputs};
use crate::output;
use crate::progress::Shown;

pub fn run(global: &Global, args: &DecodeArgs) -> Result<Outcome> {
    let to = match (&args.output, args.format) {
        (path, Some(Format::Pcapng)) => return packets(global, args, path.as_deref()),
        (None, Some(Format::Parquet)) => {
            return Err(option(
                "--format parquet writes a file for each record type: name their directory with -o",
            ));
        }
        (Some(_), Some(Format::Json | Format::Csv)) => {
            return Err(option(
                "-o: writes Parquet, or packets with --format pcapng; other formats go to \
                 standard output",
            ));
        }
        (Some(path), None) if has_extension(path, &["pcapng"]) => {
            return packets(global, args, Some(path));
        }
        (Some(path), _) if has_extension(path, NOT_DIRECTORIES) && !path.is_dir() => {
            return Err(option(&format!(
                "-o {}: writes a directory of Parquet files, or packets to a name that ends in \
                 .pcapng; other formats go to standard output (--format csv > FILE)",
                printable_path(path)
            )));
        }
        (Some(dir), _) => DecodeTo::Parquet(dir.clone()),
        (None, Some(Format::Csv)) => DecodeTo::Csv,
        (None, _) => DecodeTo::JsonLines,
    };
    let options = DecodeOptions {
        only: args.only.iter().map(|name| name.trim().to_owned()).collect(),
        to,
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
        output::wrote_rows(global, rows, &path);
    }
    output::problems(global, &loaded.files);
    Ok(Outcome::of(loaded.damaged()))
}

/// Extensions of files that are not written.
const NOT_DIRECTORIES: &[&str] =
    &["pcap", "cap", "csv", "tsv", "json", "jsonl", "ndjson", "txt", "parquet"];

fn has_extension(path: &Path, names: &[&str]) -> bool {
    let own = path.extension().and_then(|own| own.to_str());
    own.is_some_and(|own| names.iter().any(|name| own.eq_ignore_ascii_case(name)))
}

/// `--format pcapng`.
fn packets(global: &Global, args: &DecodeArgs, path: Option<&Path>) -> Result<Outcome> {
    if !args.only.is_empty() {
        return Err(option("--only: selects record types; --format pcapng writes packets"));
    }
    let inputs = inputs(&args.files, None);
    let shown = Shown::start(global, &inputs);
    let path = path.filter(|path| path.as_os_str() != "-");
    let to = path.unwrap_or_else(|| Path::new("standard output"));
    let write = |out: &mut dyn Write| -> Result<(Loaded, [u64; 2])> {
        let mut out = BufWriter::new(out);
        let options = (args.files.limits.into(), args.sim);
        let written = air_packets(&inputs, options, &shown.progress, (to, &mut out))?;
        out.flush().map_err(|source| Error::Write { path: to.to_owned(), source })?;
        Ok(written)
    };
    let stdout = std::io::stdout();
    let (loaded, [n_packets, left_out]) = match path {
        Some(path) => {
            check_outputs([(path.to_owned(), &*air_packets_begin())], inputs.paths())?;
            let (replacement, mut file) = Replacement::begin(path)?;
            let written = write(&mut file)?;
            replacement.done()?;
            written
        }
        None if stdout.is_terminal() => {
            return Err(option("--format pcapng is binary: name a file with -o"));
        }
        None => write(&mut stdout.lock())?,
    };
    drop(shown);
    let to = path.map_or_else(String::new, |path| format!(" to {}", printable_path(path)));
    output::warn(global, &format!("wrote {n_packets} packets{to}"));
    if n_packets == 0 {
        output::warn(global, WITHOUT_PACKETS);
    }
    if left_out > 0 {
        let what = format!("{left_out} signalling messages have no packet (docs/phones.md)");
        output::warn(global, &what);
    }
    output::problems(global, &loaded.files);
    Ok(Outcome::of(loaded.damaged()))
}

/// Why a file has no packets.
const WITHOUT_PACKETS: &str = "the log has none of the messages that packets are written from, or \
                               none within --from, --to and --sim: signalling of LTE (0xB0C0; NAS \
                               0xB0E0 to 0xB0E3, 0xB0EA to 0xB0ED) and of NR (0xB821), MAC headers \
                               of LTE (0xB063, 0xB064); enable them and log again";

fn option(what: &str) -> anyhow::Error {
    Error::Option(what.into()).into()
}
