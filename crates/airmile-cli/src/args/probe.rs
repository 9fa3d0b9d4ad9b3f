//! What can be said of `probe`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use airmile_host::command::seconds;
use airmile_probe::{Probe, ServeLimits, ServeOptions, Target};
use clap::{Args, Subcommand};

use super::whole;

/// Arguments of `probe`.
#[derive(Debug, Subcommand)]
pub enum ProbeCommand {
    /// Serve segments on several ports
    #[command(after_help = "Examples:
  airmile probe serve --ports 8080,8443,7777 --tls 8443
  sudo airmile probe serve --bind 0.0.0.0

Segments are made in memory: the same bytes for everybody, which do not compress.")]
    Serve(ProbeServeArgs),
    /// Fetch segments with pauses, a connection a port, by turns; then compare
    #[command(after_help = "Examples:
  airmile probe run probe.example.org -o run
  airmile probe run 203.0.113.1 --ports 80,7777 --tls '' --rounds 3 -o run
  airmile probe run http://example.org/video/segment1.m4s --ports 80,443 -o run

The directory may hold captures and a modem log of the same time: they are used.
Certificates are not checked: what comes is random bytes, and times are what counts.")]
    Run(ProbeRunArgs),
}

/// Arguments of `probe serve`.
#[derive(Debug, Clone, Args)]
pub struct ProbeServeArgs {
    /// Ports, comma separated
    #[arg(long, value_name = "PORT", value_delimiter = ',', default_value = "80,443,7777")]
    pub ports: Vec<u16>,
    /// Which of them speak TLS; '' for none
    #[arg(long, value_name = "PORT", default_value = "443")]
    pub tls: String,
    /// The address to listen at; 0.0.0.0 for everybody
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub bind: IpAddr,
    /// Bytes of a segment at most
    #[arg(long, value_name = "BYTES", default_value_t = 8_000_000, value_parser = whole::<u64>)]
    pub max_segment_bytes: u64,
    /// Bytes of all segments at most; then it answers 503
    #[arg(long, value_name = "BYTES", default_value_t = 20_000_000_000, value_parser = whole::<u64>)]
    pub max_bytes: u64,
    /// Connections at once at most
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = whole::<u16>)]
    pub max_connections: u16,
}

impl ProbeServeArgs {
    /// As the server takes them.
    pub fn options(&self) -> airmile::Result<ServeOptions> {
        let limits = ServeLimits {
            segment_bytes: self.max_segment_bytes,
            total_bytes: self.max_bytes,
            connections: self.max_connections.into(),
            ..ServeLimits::default()
        };
        let tls = tls_ports(&self.tls, &self.ports)?;
        Ok(ServeOptions { bind: self.bind, ports: self.ports.clone(), tls, limits })
    }
}

/// Arguments of `probe run`.
#[derive(Debug, Clone, Args)]
pub struct ProbeRunArgs {
    /// The server of `probe serve`, or a URL of content on all these ports
    #[arg(value_name = "HOST|URL")]
    pub target: String,
    /// Where to leave what is seen
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Replace a former probe that the directory holds
    #[arg(long)]
    pub force: bool,
    /// Ports, comma separated
    #[arg(long, value_name = "PORT", value_delimiter = ',', default_value = "80,443,7777")]
    pub ports: Vec<u16>,
    /// Which of them speak TLS; '' for none
    #[arg(long, value_name = "PORT", default_value = "443")]
    pub tls: String,
    /// Segments of a connection
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = above_zero)]
    pub segments: u32,
    /// Bytes of a segment
    #[arg(long, value_name = "BYTES", default_value_t = 400_000, value_parser = whole::<u64>)]
    pub segment_bytes: u64,
    /// Pause before each segment of a connection, in seconds
    #[arg(long, value_name = "S", default_value = "3", value_parser = seconds)]
    pub pause: Duration,
    /// Rounds, each with connections of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = above_zero)]
    pub rounds: u32,
    /// What the order of ports is drawn from
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true, value_parser = whole::<u64>)]
    pub seed: u64,
    /// A connection on which nothing moves for so many seconds has failed
    #[arg(long, value_name = "S", default_value = "30", value_parser = seconds)]
    pub timeout: Duration,
}

impl ProbeRunArgs {
    /// As the client takes them.
    pub fn probe(&self, target: Target) -> airmile::Result<Probe> {
        let tls = tls_ports(&self.tls, &self.ports)?;
        Ok(Probe {
            target,
            ports: self.ports.clone(),
            tls,
            segments: self.segments,
            segment_bytes: self.segment_bytes,
            pause: self.pause,
            rounds: self.rounds,
            seed: self.seed,
            timeout: self.timeout,
        })
    }
}

/// Ports of a list that may be empty. The default one is no mistake where it is not
/// among the ports.
fn tls_ports(text: &str, ports: &[u16]) -> airmile::Result<Vec<u16>> {
    let mut out = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let wrong = || airmile::Error::Option(format!("--tls {text}: give ports, or '' for none"));
        let port: u16 = part.trim().parse().map_err(|_| wrong())?;
        if ports.contains(&port) {
            out.push(port);
        } else if text != "443" {
            return Err(airmile::Error::Option(format!("--tls {port}: is not among --ports")));
        }
    }
    Ok(out)
}

fn above_zero(text: &str) -> Result<u32, String> {
    match whole::<u32>(text)? {
        0 => Err("give a number above 0".into()),
        n => Ok(n),
    }
}

/// Seconds, with or without their unit.
fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.strip_suffix('s').unwrap_or(text).parse().ok();
    let duration = number.and_then(|seconds: f64| Duration::try_from_secs_f64(seconds).ok());
    duration.ok_or_else(|| "give seconds, 0 or more".into())
}
