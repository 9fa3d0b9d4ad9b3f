//! The TTI loop: an absolute clock, and the packets of real hosts.

use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use airmile_emulate::{Bridge, CapturePoint, RunOutcome, Scenario, ScenarioError};
use airmile_host::clock::monotonic_ns;
use rustix::thread::{ClockId, clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::Timespec;
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};
use tun_rs::SyncDevice;

use crate::lateness::Punctuality;
use crate::recorder::Feed;

/// Maximum packets read from a device in a TTI (chosen here: 12 Gbit/s of full ones): a
/// host that never stops sending does not delay the others.
const MOST_PACKETS: usize = 1_000;

/// Maximum size of an IP packet.
const MOST_BYTES: usize = 65_535;

/// The priority requested for the loop: the lowest real-time priority, above all normal
/// threads.
const PRIORITY: u8 = 1;

/// A device of a host.
pub(crate) struct Port {
    /// Its place in the network.
    pub(crate) point: CapturePoint,
    /// Index of the box, for a box's device.
    pub(crate) lane: usize,
    /// The device.
    pub(crate) device: SyncDevice,
}

/// Maps a server's port to the box that handles its connections.
pub(crate) type LaneOf = Box<dyn Fn(u16) -> usize + Send>;

/// The loop before it starts.
pub(crate) struct Engine {
    pub(crate) scenario: Scenario,
    pub(crate) ports: Vec<Port>,
    pub(crate) lane_of: LaneOf,
    pub(crate) punctuality: Punctuality,
    pub(crate) feed: Feed,
    /// Start of the first TTI, in ns of the monotonic clock.
    pub(crate) start_ns: i64,
    /// How long to continue after a stop request.
    pub(crate) tail: Duration,
    pub(crate) stop: Arc<AtomicBool>,
}

/// Result of the loop.
pub(crate) struct Left {
    pub(crate) outcome: RunOutcome,
    pub(crate) punctuality: Punctuality,
    /// Packets of hosts that were not IPv4.
    pub(crate) not_ipv4: u64,
}

/// Sleeps until a time of the monotonic clock.
fn sleep_until(at_ns: i64) {
    let (tv_sec, tv_nsec) = (at_ns / 1_000_000_000, at_ns % 1_000_000_000);
    let request = Timespec { tv_sec, tv_nsec };
    // Interrupted: repeat, since the time is absolute.
    while clock_nanosleep_absolute(ClockId::Monotonic, &request) == Err(rustix::io::Errno::INTR) {}
}

fn duration(ns: i64) -> Duration {
    Duration::from_nanos(u64::try_from(ns).unwrap_or(0))
}

impl Engine {
    /// Runs until stopped. TTIs that could not start in time run back to back until the
    /// clock is reached again; none is skipped.
    pub(crate) fn run(mut self) -> Result<Left, ScenarioError> {
        prefer_this_thread();
        let mut bridge = Bridge::new(&self.scenario)?;
        let slot_ns = bridge.slot_ns();
        let tail_ttis = self.tail.as_nanos() as i64 / slot_ns;
        let mut buffer = vec![0; MOST_BYTES];
        let mut not_ipv4 = 0;
        let mut left_ttis = None;
        let start_ns = self.start_ns;
        for due_ns in (0..).map(|n| start_ns + n * slot_ns) {
            if monotonic_ns() < due_ns {
                sleep_until(due_ns);
            }
            let began_ns = monotonic_ns();
            let tti = bridge.tti();
            not_ipv4 += self.take(&mut bridge, &mut buffer);
            bridge.step(&mut self.feed);
            self.hand_out(&mut bridge);
            self.feed.flush(bridge.now_ns());
            let work = duration(monotonic_ns() - began_ns);
            self.punctuality.push(tti, duration(began_ns - due_ns), work);
            left_ttis = match left_ttis {
                None if self.stop.load(Ordering::Relaxed) => Some(tail_ttis),
                Some(left) => Some(left - 1),
                running => running,
            };
            if left_ttis.is_some_and(|left| left <= 0) {
                break;
            }
        }
        Ok(Left { outcome: bridge.finish(), punctuality: self.punctuality, not_ipv4 })
    }

    /// Reads the hosts' packets; returns how many are not carried.
    fn take(&self, bridge: &mut Bridge, buffer: &mut [u8]) -> u64 {
        let mut not_ipv4 = 0;
        for port in &self.ports {
            for _ in 0..MOST_PACKETS {
                let bytes = match port.device.recv(buffer) {
                    Ok(bytes) => bytes,
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    Err(_) => break,
                };
                let packet = buffer.get(..bytes).unwrap_or_default().to_vec();
                not_ipv4 += u64::from(bridge.push(port.point, packet).is_err());
            }
        }
        not_ipv4
    }

    fn hand_out(&mut self, bridge: &mut Bridge) {
        while let Some((point, mut packet)) = bridge.poll() {
            self.feed.hand_out(&mut packet);
            let lane = match point {
                CapturePoint::Phone | CapturePoint::Server => 0,
                // The server's port determines the box: it is the destination of packets
                // from the phone, and the source of packets to it.
                CapturePoint::ProxyRan => (self.lane_of)(port_at(&packet, 2)),
                CapturePoint::ProxyCore => (self.lane_of)(port_at(&packet, 0)),
            };
            let is_its = |port: &&Port| (port.point, port.lane) == (point, lane);
            if let Some(port) = self.ports.iter().find(is_its) {
                // A device accepts whole packets at once; it rejects them only while its
                // host is shutting down.
                let _ = port.device.send(&packet);
            }
        }
    }
}

/// The port at an offset of the transport header; 0 if there is none.
fn port_at(packet: &[u8], offset: usize) -> u16 {
    let header = usize::from(packet.first().map_or(0, |first| first & 0xf)) * 4 + offset;
    match packet.get(header..header + 2) {
        Some(&[high, low]) => u16::from_be_bytes([high, low]),
        _ => 0,
    }
}

/// Requests wake-ups on time: no timer slack, and real-time scheduling, which is granted to
/// root and to users with a limit for it (`RLIMIT_RTPRIO`). If refused, the effect is
/// measured as lateness.
fn prefer_this_thread() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    if let Ok(priority) = PRIORITY.try_into() {
        let _ = set_thread_priority_and_policy(
            thread_native_id(),
            ThreadPriority::Crossplatform(priority),
            ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_follow_the_ip_header() {
        let mut packet = vec![0; 40];
        packet[0] = 0x45;
        packet[20..24].copy_from_slice(&[1, 187, 0, 80]);
        assert_eq!((port_at(&packet, 0), port_at(&packet, 2)), (443, 80));
        // Two words of IP options.
        packet[0] = 0x47;
        packet[28..32].copy_from_slice(&[0, 22, 0, 23]);
        assert_eq!((port_at(&packet, 0), port_at(&packet, 2)), (22, 23));
        assert_eq!(port_at(&packet[..28], 0), 0);
        assert_eq!(port_at(&[], 0), 0);
    }

    #[test]
    fn sleeping_until_then_ends_after_then() {
        let then = monotonic_ns() + 3_000_000;
        sleep_until(then);
        assert!(monotonic_ns() >= then);
    }
}
