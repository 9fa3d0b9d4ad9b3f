"""Verdicts on transfers.

Written from docs/schema by tests/docs/python_documents.py; do not edit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from airmile.documents._files import Direction
from airmile.documents._part import Part

Cause: TypeAlias = Literal[
    "radio_contention",
    "radio_signal",
    "slow_start_restart",
    "undesired_slow_start",
    "first_slow_start",
    "receive_window",
    "sender_limited",
    "wireline",
    "loss_recovery_radio",
    "loss_recovery_congestion",
    "setup",
    "uplink_queue",
    "unknown",
]

EcnSource: TypeAlias = Literal["accurate_ecn", "arrivals", "ecn_echo", "unknown"]

TransferKind: TypeAlias = Literal[
    "document", "code", "image", "media", "manifest", "fetch", "test", "other"
]

TtiIndex: TypeAlias = int

Verdict: TypeAlias = Literal[
    "radio",
    "not_radio",
    "mixed",
    "radio_contention",
    "radio_signal",
    "slow_start_restart",
    "undesired_slow_start",
    "first_slow_start",
    "receive_window",
    "sender_limited",
    "wireline",
    "loss_recovery_radio",
    "loss_recovery_congestion",
    "setup",
    "uplink_queue",
    "unknown",
]


@dataclass(frozen=True, repr=False)
class ApplicationSide(Part):
    """A transfer as the application logged it."""

    kind: TransferKind
    """Kind of transfer."""

    protocol: str | None
    """Protocol, as in `h2`."""

    connection: str | None
    """The connection that carried it."""

    bitrate_bps: float | None
    """Bitrate of a media segment in bits per second."""

    failed: bool
    """Whether it failed or was cancelled."""

    blocked_ms: float | None
    """Time in the application's own queue, in ms; here and below null if the log does not have it.
    """

    dns_ms: float | None
    """Name lookup, in ms."""

    connect_ms: float | None
    """TCP or QUIC handshake, in ms."""

    tls_ms: float | None
    """TLS handshake after it, in ms."""

    send_ms: float | None
    """Sending the request, in ms; of an upload, giving it to the system."""

    wait_ms: float | None
    """From the request to the first byte, in ms; of an upload, most of the sending included."""

    receive_ms: float | None
    """From the first byte to the last, in ms."""

    stalls: int
    """Stalls of the player that overlap it."""

    stalled_ms: float
    """Their time inside it, in ms."""


@dataclass(frozen=True, repr=False)
class Counterfactual(Part):
    """The duration of transfers without a cause."""

    of: Cause
    """The cause."""

    ms: float
    """Time in ms, all of them together."""

    low_ms: float
    """Lower bound."""

    high_ms: float
    """Upper bound."""


@dataclass(frozen=True, repr=False)
class EcnReport(Part):
    """Congestion marks on the packets of one direction (RFC 3168; RFC 9331)."""

    dir: Direction
    """Direction of the packets."""

    counted_by: EcnSource
    """What shows which packets were marked."""

    capable_packets: int
    """ECN-capable packets."""

    ect1_packets: int
    """Of them, with ECT(1), when they were captured: of L4S."""

    marked_packets: int | None
    """Marked packets, at least; null if marks are not visible."""

    queued_packets: int
    """ECN-capable packets while the queue of the radio link stood: in the phone for the uplink, at
    the base station for the downlink.
    """

    queued_marked_packets: int | None
    """Of them, marked ones, at least; null if marks are not visible."""

    queue_is_marked: bool | None
    """Whether the queue is marked; null if that cannot be told."""

    says: str
    """The same as a sentence."""


@dataclass(frozen=True, repr=False)
class EvidenceCounts(Part):
    """The amount of each kind of evidence in the records, from which results state their evidence
    and what is missing.
    """

    dl_blocks: int
    """User downlink blocks."""

    nr_blocks: int
    """Blocks of NR, in either direction; the others are LTE's."""

    dl_blocks_with_prb: int
    """Downlink blocks with a known number of PRBs."""

    dl_blocks_with_padding: int
    """Downlink blocks with known padding."""

    dl_blocks_with_harq: int
    """Downlink blocks with HARQ process and NDI."""

    dl_pdus_with_poll: int
    """Downlink RLC data PDUs with a poll bit (0 or 1) on data bearers."""

    ul_blocks: int
    """Uplink blocks."""

    buffer_samples: int
    """Samples of the phone's own buffer."""

    bsr_reports: int
    """Buffer status reports."""

    measurements: int
    """Measurements of the serving cell."""

    timing_changes: int
    """Handovers, resets and gaps: timing segments after the first."""

    holes: int
    """Gaps in the log."""


@dataclass(frozen=True, repr=False)
class EvidenceItem(Part):
    """A piece of evidence: a sentence, a number, and a place on the time axis."""

    what: str
    """The sentence, with the number."""

    value: float | None
    """The number."""

    unit: str
    """Its unit; empty for a ratio."""

    from_tti: TtiIndex
    """First TTI of the evidence; for an application's log alone, ms since the start of its first
    transfer.
    """

    to_tti: TtiIndex
    """End TTI of the evidence (exclusive)."""


@dataclass(frozen=True, repr=False)
class SessionVerdict(Part):
    """The verdict on all transfers of the direction that carried more."""

    verdict: Verdict
    """The bottleneck."""

    confidence: float
    """Confidence of the verdict, 0 to 1."""

    dir: Direction | None
    """Direction of the transfers."""

    link_demand: float | None
    """Link demand of all of them together."""

    shares: dict[str, float]
    """Time in ms by cause, all of them together; empty without captures."""

    leading: Cause | None
    """The cause with the largest share within the verdict; null without captures."""

    leading_share: float | None
    """That share, 0 to 1."""

    leading_share_low: float | None
    """Lower bound of that share, from the errors of its parts and the variation between transfers
    (95 %).
    """

    leading_share_high: float | None
    """Upper bound."""

    counterfactuals: list[Counterfactual]
    """The transfers' duration without the leading cause and, for a shared verdict, without the
    cause other than the downlink; empty without captures.
    """

    says: str
    """The verdict in a sentence."""

    suspects: list[Suspicion]
    """By packets alone, the most probable first; empty if the radio was logged."""


@dataclass(frozen=True, repr=False)
class Suspicion(Part):
    """A possible bottleneck, by packets alone."""

    suspect: str
    """`radio`, `wireline`, `sender_limited`, `receive_window`, `slow_start_restart`,
    `first_slow_start`, `uplink_queue`, or `other`: several at once, or none of these.
    """

    causes: list[Cause]
    """Its causes; packets cannot separate them if there are several."""

    probability: float
    """0 to 1; the probabilities of all suspects add up to 1."""


@dataclass(frozen=True, repr=False)
class TransferDiagnosis(Part):
    """The verdict on one transfer."""

    id: str
    """The transfer's name."""

    name: str | None
    """What the application requested: a URL, without its query."""

    verdict: Verdict
    """The bottleneck."""

    confidence: float
    """Confidence of the verdict, 0 to 1."""

    shares: dict[str, float]
    """Time in ms by cause; the parts add up to the duration."""

    leading: Cause | None
    """The cause with the largest share within the verdict; null without captures."""

    leading_share: float | None
    """That share, 0 to 1."""

    leading_share_low: float | None
    """Lower bound of that share, from the errors of its parts: ends of bursts, clocks, edges."""

    leading_share_high: float | None
    """Upper bound."""

    counterfactual_ms: float | None
    """Its duration without that cause, in ms; for a shared verdict, without the leading cause other
    than the downlink.
    """

    counterfactual_low_ms: float | None
    """Lower bound of that duration."""

    counterfactual_high_ms: float | None
    """Upper bound."""

    counterfactual_of: Cause | None
    """The removed cause; null without captures: its data had always been queued."""

    evidence: list[EvidenceItem]
    """The evidence."""

    next_step: str
    """What to do next."""

    application: ApplicationSide | None
    """The transfer as the application logged it; null without its log."""

    suspects: list[Suspicion]
    """By packets alone, the most probable first; empty if the radio was logged."""

    dir: Direction
    """`dl` or `ul`."""

    start_us: int | None
    """Start in microseconds since the Unix epoch."""

    end_us: int | None
    """End in microseconds since the Unix epoch."""

    start_tti: TtiIndex
    """First TTI."""

    end_tti: TtiIndex
    """End TTI (exclusive)."""

    duration_ms: float
    """Duration in ms."""

    bytes: int | None
    """Bytes."""

    throughput_time_ms: float | None
    """Throughput time in ms."""

    link_demand: float | None
    """Throughput time / duration."""

    link_throughput_bps: float | None
    """Link throughput in bits per second: bytes / throughput time."""

    burst_throughput_bps: float | None
    """Rate inside bursts in bits per second: bytes of its bursts / their TTIs, both without the
    last TTI of each.
    """

    overlapped: bool
    """Whether another transfer overlaps it."""
