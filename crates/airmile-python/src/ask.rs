//! Python's arguments, converted for the library. `python/airmile/_front.py` fills the dictionaries
//! and holds the names; defaults are those of Rust ([`defaults`]).

use std::path::PathBuf;

use airmile::packet_study::{RadioModel, SendRateThreshold, StudyOptions};
use airmile::{
    BurstOptions, CompareOptions, DecodeOptions, DecodeTo, DetectOptions, EvidenceChoice, GroupBy,
    Inputs, Limits, PacketOptions, RadioOptions, TimePoint, packets,
};
use airmile_lab::reproduce::Size;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::error::{option, to_py};

/// Files and limits.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Files {
    files: Vec<PathBuf>,
    rnti: Option<i64>,
    experimental: bool,
    from: Option<String>,
    to: Option<String>,
}

impl Files {
    pub fn inputs(self) -> PyResult<(Inputs, Limits)> {
        let limits = Limits { from: time(self.from)?, to: time(self.to)?, ..Limits::default() };
        Ok((read(self.files, self.rnti, self.experimental)?, limits))
    }
}

fn read(files: Vec<PathBuf>, rnti: Option<i64>, experimental: bool) -> PyResult<Inputs> {
    Ok(Inputs { files, rnti: number("rnti", rnti)?, experimental, ..Inputs::default() })
}

/// Arguments of `decode`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Decode {
    files: Vec<PathBuf>,
    rnti: Option<i64>,
    experimental: bool,
    from: Option<String>,
    to: Option<String>,
    only: Vec<String>,
    sim: Option<i64>,
}

impl Decode {
    pub fn options(self) -> PyResult<(Inputs, DecodeOptions)> {
        let options = DecodeOptions {
            only: self.only.into_iter().collect(),
            to: DecodeTo::JsonLines,
            limits: Limits { from: time(self.from)?, to: time(self.to)?, ..Limits::default() },
            subscription: number("sim", self.sim)?,
        };
        Ok((read(self.files, self.rnti, self.experimental)?, options))
    }
}

/// Arguments of `radio` and `diagnose`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Analysis {
    files: Vec<PathBuf>,
    rnti: Option<i64>,
    experimental: bool,
    whole_urls: bool,
    transfers: Option<PathBuf>,
    evidence: String,
    start_threshold: f64,
    end_threshold: f64,
    from: Option<String>,
    to: Option<String>,
    sim: Option<i64>,
    pause_ms: i64,
    min_bytes: i64,
    radio_at_least: f64,
    not_radio_below: f64,
}

impl Analysis {
    pub fn options(self) -> PyResult<(Inputs, RadioOptions)> {
        let evidence = EvidenceChoice::parse(&self.evidence)
            .ok_or_else(|| option(format!("evidence: no `{}`; see radio()", self.evidence)))?;
        let pause_ms: Option<u32> = number("pause_ms", Some(self.pause_ms))?;
        let min_bytes: Option<u64> = number("min_bytes", Some(self.min_bytes))?;
        let mut options = RadioOptions {
            burst: BurstOptions {
                evidence,
                start_threshold: self.start_threshold,
                end_threshold: self.end_threshold,
                ..BurstOptions::default()
            },
            detect: DetectOptions {
                pause_ms: pause_ms.unwrap_or_default(),
                min_bytes: min_bytes.unwrap_or_default(),
            },
            limits: Limits { from: time(self.from)?, to: time(self.to)?, ..Limits::default() },
            subscription: number("sim", self.sim)?,
            ..RadioOptions::default()
        };
        options.thresholds.radio_at_least = self.radio_at_least;
        options.thresholds.not_radio_below = self.not_radio_below;
        options.check().map_err(to_py)?;
        let inputs = read(self.files, self.rnti, self.experimental)?;
        let (transfers, whole_urls) = (self.transfers, self.whole_urls);
        Ok((Inputs { transfers, whole_urls, ..inputs }, options))
    }
}

/// Arguments of `compare`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Compare {
    files: Vec<PathBuf>,
    by: String,
    ports: Vec<u16>,
    seed: i64,
    from: Option<String>,
    to: Option<String>,
}

impl Compare {
    pub fn options(self) -> PyResult<(Vec<PathBuf>, CompareOptions)> {
        let by = match &*self.by {
            "auto" => GroupBy::Auto,
            "port" => GroupBy::Port,
            "run" => GroupBy::Run,
            other => return Err(option(format!("by: no `{other}`; there are auto, port, run"))),
        };
        let limits = Limits { from: time(self.from)?, to: time(self.to)?, ..Limits::default() };
        let radio = RadioOptions { limits, ..RadioOptions::default() };
        let seed = number("seed", Some(self.seed))?.unwrap_or(CompareOptions::SEED);
        Ok((self.files, CompareOptions { by, ports: self.ports, seed, radio }))
    }
}

/// An amount of work of `lab reproduce`.
pub fn size(name: &str) -> PyResult<Size> {
    match name {
        "quick" => Ok(Size::Quick),
        "default" => Ok(Size::Default),
        "full" => Ok(Size::Full),
        other => Err(option(format!("size: no `{other}`; there are quick, default, full"))),
    }
}

/// Arguments of `packets`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Packets {
    files: Vec<PathBuf>,
    client: Vec<String>,
    proxy_ports: Vec<u16>,
    idle_s: i64,
    promotion_idle_s: i64,
    tail_s: i64,
    min_rto_ms: i64,
    send_rate: String,
    threads: i64,
    from: Option<String>,
    to: Option<String>,
}

impl Packets {
    pub fn options(self) -> PyResult<(Vec<PathBuf>, PacketOptions)> {
        let defaults = StudyOptions::default();
        let tail_ns = seconds("tail_s", self.tail_s)?;
        let networks = self.client.iter().map(|text| packets::client_network(text).map_err(to_py));
        let study = StudyOptions {
            idle_ns: seconds("idle_s", self.idle_s)?,
            promotion_idle_ns: seconds("promotion_idle_s", self.promotion_idle_s)?,
            min_rto_ns: 1_000_000
                * i64::from(
                    number::<u32>("min_rto_ms", Some(self.min_rto_ms))?.unwrap_or_default(),
                ),
            proxy_ports: self.proxy_ports,
            client_networks: networks.collect::<PyResult<_>>()?,
            send_rate_threshold: packets::send_rate_threshold(&self.send_rate).map_err(to_py)?,
            radio: RadioModel { tail_ns, ..defaults.radio },
            ..defaults
        };
        let threads: Option<u16> = number("threads", Some(self.threads))?;
        let options = PacketOptions {
            study,
            threads: threads.unwrap_or_default().into(),
            limits: Limits { from: time(self.from)?, to: time(self.to)?, ..Limits::default() },
            ..PacketOptions::default()
        };
        Ok((self.files, options))
    }
}

/// Converts seconds to nanoseconds.
fn seconds(name: &str, value: i64) -> PyResult<i64> {
    let seconds: Option<u32> = number(name, Some(value))?;
    Ok(i64::from(seconds.unwrap_or_default()) * 1_000_000_000)
}

fn time(text: Option<String>) -> PyResult<Option<TimePoint>> {
    text.map(|text| TimePoint::parse(&text)).transpose().map_err(to_py)
}

fn number<T: TryFrom<i64>>(name: &str, value: Option<i64>) -> PyResult<Option<T>> {
    let convert = |x| T::try_from(x).map_err(|_| option(format!("{name}: {x} is out of range")));
    value.map(convert).transpose()
}

/// Rust's defaults of options, used by the signatures in Python.
#[pyfunction]
pub fn defaults(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let (radio, study) = (RadioOptions::default(), StudyOptions::default());
    let out = PyDict::new(py);
    out.set_item("start_threshold", radio.burst.start_threshold)?;
    out.set_item("end_threshold", radio.burst.end_threshold)?;
    out.set_item("pause_ms", radio.detect.pause_ms)?;
    out.set_item("min_bytes", radio.detect.min_bytes)?;
    out.set_item("radio_at_least", radio.thresholds.radio_at_least)?;
    out.set_item("not_radio_below", radio.thresholds.not_radio_below)?;
    out.set_item("seed", CompareOptions::SEED)?;
    out.set_item("proxy_ports", PyTuple::new(py, &study.proxy_ports)?)?;
    out.set_item("idle_s", study.idle_s())?;
    out.set_item("promotion_idle_s", study.promotion_idle_s())?;
    out.set_item("tail_s", study.tail_s())?;
    out.set_item("min_rto_ms", study.min_rto_ms())?;
    match study.send_rate_threshold {
        SendRateThreshold::Fixed(bps) => out.set_item("send_rate", bps / 1e6)?,
        SendRateThreshold::Auto => out.set_item("send_rate", "auto")?,
    }
    Ok(out)
}
