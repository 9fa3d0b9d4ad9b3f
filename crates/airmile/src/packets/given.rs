//! What a study is given: captures and limits, and options as text.

use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use airmile_model::packet::Address;
use airmile_wire::tcp::SendRateBar;

use crate::error::{Error, Result};
use crate::limits::Limits;

/// Captures, read one after the other as one.
pub enum Captures<'a> {
    /// Files, in order of time; `-` is standard input.
    Files(&'a [PathBuf]),
    /// A capture as it is made.
    Stream(CaptureStream),
}

/// A capture that is no file: an interface, a socket.
pub struct CaptureStream {
    /// What it is called in reports.
    pub name: String,
    /// Its bytes, pcap or pcapng.
    pub read: Box<dyn Read + Send>,
}

impl<'a> From<&'a [PathBuf]> for Captures<'a> {
    fn from(files: &'a [PathBuf]) -> Self {
        Self::Files(files)
    }
}

impl<'a> From<&'a Vec<PathBuf>> for Captures<'a> {
    fn from(files: &'a Vec<PathBuf>) -> Self {
        Self::Files(files)
    }
}

impl<'a, const N: usize> From<&'a [PathBuf; N]> for Captures<'a> {
    fn from(files: &'a [PathBuf; N]) -> Self {
        Self::Files(files)
    }
}

impl Captures<'_> {
    pub(super) fn files(&self) -> Vec<PathBuf> {
        match self {
            Self::Files(files) => files.to_vec(),
            Self::Stream(_) => Vec::new(),
        }
    }

    /// What they are called.
    pub(super) fn names(&self) -> String {
        match self {
            Self::Files(files) => {
                let names: Vec<String> = files.iter().map(|f| f.display().to_string()).collect();
                names.join(", ")
            }
            Self::Stream(stream) => stream.name.clone(),
        }
    }

    /// The first that gives its packets only once.
    pub(super) fn read_once(&self) -> Option<String> {
        match self {
            Self::Files(files) => {
                let once = files.iter().find(|path| !can_be_read_again(path))?;
                let is_stdin = once.as_path() == Path::new("-");
                Some(if is_stdin { "standard input".into() } else { once.display().to_string() })
            }
            Self::Stream(stream) => Some(stream.name.clone()),
        }
    }
}

fn can_be_read_again(path: &Path) -> bool {
    path != Path::new("-") && path.metadata().is_ok_and(|meta| meta.is_file())
}

/// Captures and the limits on their time.
pub(super) struct Reading<'a> {
    pub(super) captures: Captures<'a>,
    pub(super) limits: Limits,
}

/// A network of clients from text: `10.0.0.0/8`, `fd00::/8`.
///
/// # Errors
/// It is none.
pub fn client_network(text: &str) -> Result<(Address, u8)> {
    let parsed = text.split_once('/').and_then(|(address, bits)| {
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        Some((address.into(), bits.parse().ok().filter(|bits| *bits <= most)?))
    });
    parsed.ok_or_else(|| {
        Error::Option(format!("{text:?} is no network: give one as 10.0.0.0/8 or fd00::/8"))
    })
}

/// The rate of sending that shows the available bandwidth, from text: Mbit/s or
/// `auto`.
///
/// # Errors
/// It is neither.
pub fn send_rate_bar(text: &str) -> Result<SendRateBar> {
    if text == "auto" {
        return Ok(SendRateBar::Auto);
    }
    match text.parse::<f64>() {
        Ok(mbps) if mbps > 0.0 && mbps.is_finite() => Ok(SendRateBar::Fixed(mbps * 1e6)),
        _ => Err(Error::Option(format!("{text:?}: give Mbit/s above 0, or auto"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks() {
        let network = |text| client_network(text).ok().map(|(a, n)| format!("{a}/{n}"));
        for good in ["10.0.0.0/8", "192.0.2.7/32", "fd00::/8"] {
            assert_eq!(network(good).as_deref(), Some(good));
        }
        for bad in ["", "10.0.0.0", "10.0.0.0/33", "fd00::/129", "x/8", "10.0.0.0/-1"] {
            assert_eq!(network(bad), None, "{bad}");
        }
    }

    #[test]
    fn rates() {
        assert_eq!(send_rate_bar("auto").ok(), Some(SendRateBar::Auto));
        assert_eq!(send_rate_bar("2.5").ok(), Some(SendRateBar::Fixed(2.5e6)));
        for bad in ["0", "-1", "inf", "NaN", "30M", ""] {
            assert!(send_rate_bar(bad).is_err(), "{bad}");
        }
    }
}
