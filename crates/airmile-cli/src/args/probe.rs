//! Arguments of `probe`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use airmile_host::command;
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

Segments are made in memory: the same incompressible bytes for every client.")]
    Serve(ProbeServeArgs),
    /// Fetch segments with pauses, over one connection per port in turn, then compare
    #[command(after_help = "Examples:
  airmile probe run probe.example.org -o run
  airmile probe run 203.0.113.1 --ports 80,7777 --tls '' --rounds 3 -o run
  airmile probe run http://example.org/video/segment1.m4s --ports 80,443 -o run

Captures and a modem log in the directory are used if they cover the same time.
Certificates are not checked: the content is random bytes, and only times matter.")]
    Run(ProbeRunArgs),
}

/// The ports of a probe unless others are given.
const PORTS: &str = "80,443,7777";
/// The one of them that uses TLS.
const TLS_PORT: &str = "443";

/// Arguments of `probe serve`.
#[derive(Debug, Clone, Args)]
pub struct ProbeServeArgs {
    /// Ports, comma separated
    #[arg(long, value_name = "PORT", value_delimiter = ',', default_value = PORTS)]
    pub ports: Vec<u16>,
    /// The ports that use TLS; '' for none
    #[arg(long, value_name = "PORT", default_value = TLS_PORT)]
    pub tls: String,
    /// The address to listen on; 0.0.0.0 for all
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub bind: IpAddr,
    /// Maximum size of a segment in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 8_000_000, value_parser = whole::<u64>)]
    pub max_segment_bytes: u64,
    /// Maximum total size of all segments in bytes; after that it responds with 503
    #[arg(long, value_name = "BYTES", default_value_t = 20_000_000_000, value_parser = whole::<u64>)]
    pub max_bytes: u64,
    /// Maximum number of simultaneous connections
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = whole::<u16>)]
    pub max_connections: u16,
}

impl ProbeServeArgs {
    /// Returns the options of the server.
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
    /// The server of `probe serve`, or the URL of content served on all these ports
    #[arg(value_name = "HOST|URL")]
    pub target: String,
    /// The directory for the measurements
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Replace an earlier probe in the directory
    #[arg(long)]
    pub force: bool,
    /// Ports, comma separated
    #[arg(long, value_name = "PORT", value_delimiter = ',', default_value = PORTS)]
    pub ports: Vec<u16>,
    /// The ports that use TLS; '' for none
    #[arg(long, value_name = "PORT", default_value = TLS_PORT)]
    pub tls: String,
    /// Segments per connection
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = above_zero)]
    pub segments: u32,
    /// Bytes of a segment
    #[arg(long, value_name = "BYTES", default_value_t = 400_000, value_parser = whole::<u64>)]
    pub segment_bytes: u64,
    /// Pause before each segment of a connection, in seconds
    #[arg(long, value_name = "S", default_value = "3", value_parser = seconds)]
    pub pause: Duration,
    /// Rounds, each with new connections
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = above_zero)]
    pub rounds: u32,
    /// Seed for the order of the ports
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true, value_parser = whole::<u64>)]
    pub seed: u64,
    /// A connection without progress for this many seconds has failed
    #[arg(long, value_name = "S", default_value = "30", value_parser = command::seconds)]
    pub timeout: Duration,
}

impl ProbeRunArgs {
    /// Returns the options of the client.
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

/// Parses a list of ports that may be empty. The default port is no error if it is not among
/// `ports`.
fn tls_ports(text: &str, ports: &[u16]) -> airmile::Result<Vec<u16>> {
    let mut out = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let wrong = || airmile::Error::Option(format!("--tls {text}: give ports, or '' for none"));
        let port: u16 = part.trim().parse().map_err(|_| wrong())?;
        if ports.contains(&port) {
            out.push(port);
        } else if text != TLS_PORT {
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

/// Seconds, with or without the unit.
fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.strip_suffix('s').unwrap_or(text).parse().ok();
    let duration = number.and_then(|seconds: f64| Duration::try_from_secs_f64(seconds).ok());
    duration.ok_or_else(|| "give seconds, 0 or more".into())
}
