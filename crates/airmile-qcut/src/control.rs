//! State that a gate or a shaper shares with the other parts: evidence that comes in, the
//! published status, and the end of the run.

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use airmile_control::qcut::{
    BufferEvidence, GateState, LogFault, ModemReport, ProbeId, Qcut, QcutConfig, QueueConfig,
    ReportCounts, Tier,
};
use airmile_host::Attempt;
use airmile_host::clock::{monotonic_ns, process_cpu_ns, wall_ns};
use airmile_host::source::SourceState;
use airmile_host::thread::StopFlag;
use nix::net::if_::if_nametoindex;

use crate::error::{NEEDS_ROOT, Result};
use crate::firewall::MARK;
use crate::guard::{BEAT_EVERY_NS, Guard};
use crate::modem::Modem;
use crate::options::{Options, ProbeTo};
use crate::probe::Prober;
use crate::serve::Published;
use crate::status::{ClassStatus, GateStatus, ModemStatus, WaitingHost};

/// After the last packet, probes end after this time, in ns (chosen here: when no answer is
/// pending any more).
const PROBED_FOR_NS: i64 = 2_000_000_000;

/// State shared by a gate or a shaper with the other parts.
pub(crate) struct Control {
    pub(crate) config: QcutConfig,
    stop: StopFlag,
    until_ns: Option<i64>,
    guard: Option<Guard>,
    modem: Option<Modem>,
    prober: Option<Prober>,
    to: ProbeTo,
    last_far: Option<Ipv4Addr>,
    /// When the last packet arrived.
    busy_ns: i64,
    probes: u64,
    published: Published,
    base: GateStatus,
    index: u32,
    /// Whether the interface has disappeared.
    is_gone: bool,
    began_ns: i64,
    due_ns: i64,
}

/// The state of a gate or a shaper, for publication.
#[derive(Debug, Clone, Default)]
pub(crate) struct GateSnapshot {
    pub(crate) held: GateState,
    pub(crate) classes: Vec<ClassStatus>,
    pub(crate) reports: ReportCounts,
    pub(crate) silences: u64,
    pub(crate) log_rejections: u64,
    /// Rate in bytes per second, and how often it was changed.
    pub(crate) set_rate: Option<(u64, u64)>,
    pub(crate) waiting: Vec<WaitingHost>,
}

impl GateSnapshot {
    pub(crate) fn of<P>(qcut: &Qcut<P>) -> Self {
        let classes = Tier::ALL.iter().map(|tier| ClassStatus::of(*tier, &qcut.counts_of(*tier)));
        Self {
            held: qcut.held(monotonic_ns()),
            classes: classes.collect(),
            reports: qcut.reports(),
            silences: qcut.silences(),
            log_rejections: qcut.log_rejections(),
            set_rate: None,
            waiting: Vec::new(),
        }
    }
}

impl Control {
    pub(crate) fn new(
        options: &Options,
        index: u32,
        stop: StopFlag,
        guard: Guard,
        published: Published,
    ) -> Result<Self> {
        let modem = options.modem.as_ref().map(Modem::start).transpose();
        let modem = modem.attempt(|| "cannot start to read the modem's log".to_owned())?;
        let prober = match options.probe {
            ProbeTo::Nobody => None,
            _ => Some(
                Prober::open(&options.interface, MARK)
                    .refused(|| "cannot send echoes".to_owned(), NEEDS_ROOT)?,
            ),
        };
        let (evidence, by) = match modem {
            Some(_) => (BufferEvidence::Modem, "modem"),
            None => (BufferEvidence::RoundTrips, "round_trips"),
        };
        let queue = QueueConfig { classes: options.classes.clone(), ..QueueConfig::default() };
        let limit = options.limit;
        let began_ns = monotonic_ns();
        let nanoseconds = |of: Duration| i64::try_from(of.as_nanos()).unwrap_or(i64::MAX);
        let base = GateStatus {
            interface: options.interface.clone(),
            deploy: options.deploy.name().to_owned(),
            evidence: by.to_owned(),
            limit: limit.to_string(),
            ..GateStatus::default()
        };
        Ok(Self {
            config: QcutConfig { limit, evidence, queue, ..QcutConfig::default() },
            stop,
            until_ns: options.duration.map(|of| began_ns.saturating_add(nanoseconds(of))),
            guard: Some(guard),
            modem,
            prober,
            to: options.probe,
            last_far: None,
            busy_ns: began_ns,
            probes: 0,
            published,
            base,
            index,
            is_gone: false,
            began_ns,
            due_ns: began_ns,
        })
    }

    /// The guard to be ended, the last status, and whether the interface has disappeared.
    pub(crate) fn end(self) -> (Option<Guard>, Arc<GateStatus>, bool) {
        (self.guard, self.published.now(), self.is_gone)
    }

    /// Whether the run continues.
    pub(crate) fn goes_on(&self) -> bool {
        !self.stop.is_set() && self.until_ns.is_none_or(|until| monotonic_ns() < until)
    }

    /// Whether a status is due.
    pub(crate) const fn is_due(&self, now_ns: i64) -> bool {
        now_ns >= self.due_ns
    }

    /// When the next status is due.
    pub(crate) fn due_ns(&self) -> i64 {
        self.until_ns.map_or(self.due_ns, |until| until.min(self.due_ns))
    }

    pub(crate) const fn has_modem(&self) -> bool {
        self.modem.is_some()
    }

    pub(crate) fn modem_fd(&self) -> Option<BorrowedFd<'_>> {
        self.modem.as_ref().map(Modem::fd)
    }

    /// Reports that arrived.
    pub(crate) fn reports(&self) -> Vec<ModemReport> {
        self.modem.as_ref().map_or_else(Vec::new, |modem| modem.receive().collect())
    }

    /// The identifier of this process's echoes.
    pub(crate) fn identifier(&self) -> Option<u16> {
        self.prober.as_ref().map(Prober::identifier)
    }

    /// Records the destination of a packet.
    pub(crate) fn to(&mut self, far: Option<IpAddr>) {
        self.busy_ns = monotonic_ns();
        if let Some(IpAddr::V4(far)) = far {
            self.last_far = Some(far);
        }
    }

    /// Whether a probe can be sent: the gate counts every probe it requests.
    pub(crate) fn may_probe(&self) -> bool {
        self.prober.is_some()
            && self.probed().is_some()
            && monotonic_ns() - self.busy_ns <= PROBED_FOR_NS
    }

    fn probed(&self) -> Option<Ipv4Addr> {
        match self.to {
            ProbeTo::Host(host) => Some(host),
            ProbeTo::LastFar => self.last_far,
            ProbeTo::Nobody => None,
        }
    }

    /// Sends a probe. One that cannot be sent counts as unanswered.
    pub(crate) fn probe(&mut self, ProbeId(number): ProbeId) {
        if let (Some(prober), Some(to)) = (&self.prober, self.probed()) {
            // The field has 16 bits; older probes have long expired.
            self.probes += u64::from(prober.send(to, (number & 0xffff) as u16).is_ok());
        }
    }

    /// Publishes the status, and sends the guard a heartbeat.
    pub(crate) fn publish(&mut self, kept: &GateSnapshot, failed_packets: u64) {
        let now_ns = monotonic_ns();
        self.due_ns = now_ns + BEAT_EVERY_NS;
        let modem = self.modem.as_ref().map(|modem| ModemStatus {
            source: modem.name().to_owned(),
            state: match modem.state() {
                SourceState::Waiting(why) => format!("waiting: {why}"),
                SourceState::Connected(what) if what.is_empty() => "connected".to_owned(),
                SourceState::Connected(what) => format!("connected: {what}"),
                SourceState::Ended => "ended".to_owned(),
            },
            reports: kept.reports.used,
            unused_reports: kept.reports.late + kept.reports.bad + kept.reports.disagreed,
        });
        let mut status = GateStatus {
            at_s: wall_ns() as f64 / 1e9,
            waiting: kept.waiting.clone(),
            uptime_s: (now_ns - self.began_ns) as f64 / 1e9,
            cpu_s: process_cpu_ns() as f64 / 1e9,
            modem,
            classes: kept.classes.clone(),
            silences: kept.silences,
            log_rejections: kept.log_rejections,
            probes: self.probes,
            set_rate_bps: kept.set_rate.map(|(bytes_per_s, _)| bytes_per_s * 8),
            rate_changes: kept.set_rate.map_or(0, |(_, changes)| changes),
            failed_packets,
            warnings: warnings(&kept.held),
            ..self.base.clone()
        };
        status.hold(&kept.held);
        self.published.set(status);
        self.guard.iter().for_each(Guard::beat);
        // The interface disappeared or was recreated: the setup made for it is lost.
        let is_there = if_nametoindex(self.base.interface.as_str()) == Ok(self.index);
        if !is_there && !self.is_gone {
            self.is_gone = true;
            self.stop.set();
        }
        // The guard was killed: nothing would restore the system after this process.
        if self.guard.as_mut().is_some_and(|guard| !guard.is_there()) {
            self.stop.set();
        }
    }
}

fn warnings(held: &GateState) -> Vec<String> {
    let mut all = Vec::new();
    if held.silent && !held.blind {
        let state = held.log_fault.map_or("silent", LogFault::name);
        all.push(format!("the modem's log is {state}: its buffer is estimated from round trips"));
    }
    if held.blind {
        all.push(
            "no host answers: the modem's buffer is unknown, and nothing is held back; \
             --probe HOST names a host that answers pings"
                .to_owned(),
        );
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_is_not_used_is_named() {
        for (silent, log_fault, named) in [
            (false, None, None),
            (true, None, Some("silent")),
            (true, Some(LogFault::Late), Some("late")),
            // No round trips: the late log is used.
            (false, Some(LogFault::Late), None),
        ] {
            let held = GateState { silent, log_fault, ..GateState::default() };
            let expected = named.map(|state| {
                format!("the modem's log is {state}: its buffer is estimated from round trips")
            });
            assert_eq!(warnings(&held), Vec::from_iter(expected));
        }
    }
}
