//! Options of a deployment.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use airmile_control::qcut::{ClassConfig, Limit};
use airmile_host::source::LogSource;
use clap::ValueEnum;

/// How packets are held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Deploy {
    /// The first that works here of nfqueue, then htb and cake on a router, or tun and htb on a
    /// host
    Auto,
    /// The kernel's queue for user space: an exact gate
    Nfqueue,
    /// The kernel's HTB at the modem's rate: less CPU time, less exact
    Htb,
    /// The kernel's CAKE at the modem's rate
    Cake,
    /// A TUN device with routes into it: for a host without a packet filter
    Tun,
    /// Nothing is held back: rate and queue are only measured and published
    None,
}

impl Deploy {
    /// Name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Nfqueue => "nfqueue",
            Self::Htb => "htb",
            Self::Cake => "cake",
            Self::Tun => "tun",
            Self::None => "none",
        }
    }
}

/// Destination of probes when no acknowledgement gives a round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProbeTo {
    /// The destination of the last packet.
    #[default]
    LastFar,
    /// This host.
    Host(Ipv4Addr),
    /// No probes.
    Nobody,
}

impl FromStr for ProbeTo {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::LastFar),
            "off" => Ok(Self::Nobody),
            host => host.parse().map(Self::Host).map_err(|_| "give auto, off, or an IPv4 address"),
        }
    }
}

/// Where rate and queue are published for other programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublishTo {
    /// A file with the whole status, replaced at once.
    File(PathBuf),
    /// Events of OpenWrt's bus.
    Ubus,
    /// A topic of an MQTT broker.
    Mqtt {
        /// The broker's name or address.
        host: String,
        /// Its port.
        port: u16,
        /// The topic.
        topic: String,
    },
}

impl FromStr for PublishTo {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        /// IANA's port of MQTT without TLS.
        const MQTT_PORT: u16 = 1883;
        const GIVE: &str = "give file:PATH, ubus, or mqtt://HOST[:PORT]/TOPIC";
        if text == "ubus" {
            return Ok(Self::Ubus);
        }
        if let Some(path) = text.strip_prefix("file:") {
            let path = PathBuf::from(path);
            return match path.is_absolute() && path.file_name().is_some() {
                true => Ok(Self::File(path)),
                false => Err("the file's path has to begin with /"),
            };
        }
        let (place, topic) =
            text.strip_prefix("mqtt://").and_then(|rest| rest.split_once('/')).ok_or(GIVE)?;
        // Wildcards are for subscribers (MQTT 3.1.1, 4.7.1).
        let is_topic = (1..=256).contains(&topic.len()) && !topic.contains(['#', '+', '\0']);
        // An IPv6 address stands in brackets (RFC 3986, 3.2.2).
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| "the port of MQTT is no port")?)
            }
            _ => (place, MQTT_PORT),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        match is_topic && !host.is_empty() && !host.contains('@') {
            true => Ok(Self::Mqtt { host, port, topic: topic.to_owned() }),
            false => Err(GIVE),
        }
    }
}

/// Options of a deployment.
#[derive(Debug, Clone)]
pub struct Options {
    /// The interface of the uplink.
    pub interface: String,
    /// The modem's log; absent: the modem's buffer is estimated from round trips.
    pub modem: Option<LogSource>,
    /// How much the modem may hold.
    pub limit: Limit,
    /// How packets are held back. What [`Deploy::Auto`] stands for is found before, by
    /// [`choose_deploy`](crate::choose_deploy); else it is `nfqueue`.
    pub deploy: Deploy,
    /// Criteria of the classification.
    pub classes: ClassConfig,
    /// Address of the metrics server.
    pub metrics: SocketAddr,
    /// Token required by the metrics server.
    pub token: Option<String>,
    /// Duration of the run; absent: until a signal.
    pub duration: Option<Duration>,
    /// Destination of probes.
    pub probe: ProbeTo,
    /// Where rate and queue are published.
    pub publish: Vec<PublishTo>,
    /// Program and first arguments that run [`guard`](crate::guard()).
    pub launcher: Vec<OsString>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_publishing() {
        let mqtt = |host: &str, port, topic: &str| PublishTo::Mqtt {
            host: host.to_owned(),
            port,
            topic: topic.to_owned(),
        };
        for (text, expected) in [
            ("ubus", PublishTo::Ubus),
            ("file:/run/a.json", PublishTo::File("/run/a.json".into())),
            ("mqtt://broker/a/b", mqtt("broker", 1883, "a/b")),
            ("mqtt://10.0.0.1:8883/a", mqtt("10.0.0.1", 8883, "a")),
            ("mqtt://[::1]:1/a", mqtt("::1", 1, "a")),
            ("mqtt://[::1]/a", mqtt("::1", 1883, "a")),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for text in [
            "",
            "file:a",
            "file:/",
            "mqtt://h",
            "mqtt://h/",
            "mqtt:///t",
            "mqtt://h:x/t",
            "mqtt://h/#",
        ] {
            assert!(text.parse::<PublishTo>().is_err(), "{text}");
        }
    }
}
