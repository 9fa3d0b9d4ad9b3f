//! Applies the gate to packets: the kernel queue or a TUN device above, the interface
//! below. One thread, which sleeps until a packet arrives or a timer is due.

use std::os::fd::BorrowedFd;
use std::thread;
use std::time::Duration;

use airmile_control::qcut::{PacketInfo, Qcut};
use airmile_host::Attempt;
use airmile_host::clock::monotonic_ns;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::control::{Control, GateSnapshot};
use crate::error::Result;
use crate::path::PacketPath;
use crate::tap::{Tap, apply_answer};
use crate::waiting::{WaitingHosts, WaitingPacket};

/// After a packet, others are awaited for this time, in ns, as the modem sends no sooner: a
/// TTI (TS 36.211, 4). A packet after a pause passes at once.
const TOGETHER_NS: i64 = 1_000_000;

/// Keeps the modem's buffer short until the run ends; then releases the waiting packets.
pub(crate) fn keep<P: PacketPath>(
    path: &mut P,
    tap: &mut Tap,
    control: &mut Control,
) -> Result<()> {
    let mut qcut: Qcut<WaitingPacket<P::Packet>> = Qcut::new(control.config.clone());
    let outcome = turn(path, tap, control, &mut qcut);
    for waiting in qcut.finish() {
        path.release(waiting.packet);
    }
    let flushed = path.flush();
    control.publish(&GateSnapshot::of(&qcut), path.failed());
    outcome?;
    Ok(flushed.attempt(|| "cannot release the waiting packets".to_owned())?)
}

fn turn<P: PacketPath>(
    path: &mut P,
    tap: &mut Tap,
    control: &mut Control,
    qcut: &mut Qcut<WaitingPacket<P::Packet>>,
) -> Result<()> {
    let mut hosts = WaitingHosts::default();
    let mut ready = Ready { path: true, tap: true };
    while control.goes_on() {
        let now_ns = monotonic_ns();
        if ready.path {
            let mut take = |info: PacketInfo, to, packet| {
                control.to(to);
                let waiting = WaitingPacket { to, bytes: info.bytes, packet };
                hosts.add(&waiting);
                qcut.push(now_ns, info, waiting);
            };
            path.receive(&mut take).attempt(|| "cannot read packets".to_owned())?;
        }
        if ready.tap {
            tap.receive(|passed| apply_answer(qcut, control.identifier(), &passed))
                .attempt(|| "cannot read incoming packets".to_owned())?;
        }
        for report in control.reports() {
            qcut.report(now_ns, report);
        }
        while control.may_probe()
            && let Some(probe) = qcut.poll_probe(now_ns)
        {
            control.probe(probe);
        }
        while let Some(waiting) = qcut.poll(now_ns) {
            hosts.remove(&waiting);
            path.release(waiting.packet);
        }
        while let Some((_, waiting)) = qcut.poll_dropped() {
            hosts.remove(&waiting);
            path.discard(waiting.packet);
        }
        path.flush().attempt(|| "cannot release packets".to_owned())?;
        if control.is_due(now_ns) {
            let snapshot = GateSnapshot { waiting: hosts.most(), ..GateSnapshot::of(qcut) };
            control.publish(&snapshot, path.failed());
        }
        if ready.path || ready.tap {
            let rest_ns = (now_ns + TOGETHER_NS - monotonic_ns()).max(0).unsigned_abs();
            thread::sleep(Duration::from_nanos(rest_ns));
        }
        let due_ns = qcut.poll_timeout(now_ns).unwrap_or(i64::MAX).min(control.due_ns());
        ready = wait(path, tap, control, due_ns - monotonic_ns())?;
    }
    Ok(())
}

struct Ready {
    path: bool,
    tap: bool,
}

/// Sleeps until a packet arrives, at most `wait_ns`.
fn wait<P: PacketPath>(path: &P, tap: &Tap, control: &Control, wait_ns: i64) -> Result<Ready> {
    let wait = Duration::from_nanos(u64::try_from(wait_ns).unwrap_or_default());
    // Too long for a kernel with 32-bit times is as good as for ever.
    let timeout = Timespec::try_from(wait).ok();
    let path_fd = path.fd();
    let tap_fds: Vec<BorrowedFd<'_>> = tap.fds().collect();
    let modem_fd = control.modem_fd();
    let all = std::iter::once(&path_fd).chain(&tap_fds).chain(modem_fd.as_ref());
    let mut fds: Vec<PollFd<'_>> = all.map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => Err(error).attempt(|| "cannot wait".to_owned())?,
    }
    let is = |fd: &PollFd<'_>| !fd.revents().is_empty();
    Ok(Ready {
        path: fds.first().is_some_and(is),
        tap: fds.iter().skip(1).take(tap_fds.len()).any(is),
    })
}
