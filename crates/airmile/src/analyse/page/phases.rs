//! The phases of a request in time, as its log has them.

use airmile_model::{AppTransfer, RequestPhase};

/// A phase in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) phase: RequestPhase,
    pub(super) from_ns: i64,
    pub(super) to_ns: i64,
}

/// The phases of a request; time without a phase in the log goes to the last.
pub(super) fn phases(request: &AppTransfer) -> Vec<Span> {
    let p = request.phases;
    let lengths = [
        (RequestPhase::Blocked, p.blocked_ns),
        (RequestPhase::Dns, p.dns_ns),
        (RequestPhase::Connect, p.connect_ns),
        (RequestPhase::Tls, p.tls_ns),
        (RequestPhase::Send, p.send_ns),
        (RequestPhase::Wait, p.wait_ns),
    ];
    let mut at = request.start_ns;
    let mut out = Vec::new();
    for (phase, ns) in lengths {
        let to_ns = at.saturating_add(ns.unwrap_or(0).max(0)).min(request.end_ns);
        if to_ns > at {
            out.push(Span { phase, from_ns: at, to_ns });
        }
        at = to_ns;
    }
    if at < request.end_ns {
        out.push(Span { phase: RequestPhase::Receive, from_ns: at, to_ns: request.end_ns });
    }
    out
}

/// From the request to the first byte.
pub(super) fn wait(request: &AppTransfer) -> Option<(i64, i64)> {
    let (to_ns, _) = arrival(request);
    let wait_ns = request.phases.wait_ns.filter(|ns| *ns > 0)?;
    Some((to_ns.saturating_sub(wait_ns), to_ns))
}

/// From the first byte to the last.
pub(super) fn arrival(request: &AppTransfer) -> (i64, i64) {
    let receive_ns = request.phases.receive_ns.unwrap_or(0);
    (request.end_ns.saturating_sub(receive_ns), request.end_ns)
}
