"""Pages and players.

Written from docs/schema by tests/docs/python_documents.py; do not edit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from airmile.documents._part import Part
from airmile.documents._transfers import TransferKind, Verdict

Milestone: TypeAlias = Literal["first_paint", "load", "last_byte"]

PageCause: TypeAlias = Literal[
    "browser",
    "unlogged",
    "blocked",
    "dns",
    "setup",
    "server",
    "round_trip",
    "slow_start",
    "loss",
    "receive_window",
    "uplink_queue",
    "wireline",
    "radio",
    "transfer",
    "unknown",
]

RequestPhase: TypeAlias = Literal["blocked", "dns", "connect", "tls", "send", "wait", "receive"]


@dataclass(frozen=True, repr=False)
class ComparedLoads(Part):
    """The loads of a page in a run: medians, if there are several."""

    run: str
    """The run's path as given."""

    times_ms: list[float]
    """Time until the load event of each load, in ms."""

    wait_ms: float
    """Time until the milestone of the verdict, in ms."""

    load_ms: float
    """Time until the load event, in ms."""

    difference_ms: float | None
    """That time minus that of the first run in the list; null for that run."""

    verdict: PageCause
    """The cause whose removal saves most; the longest one, if no other saves more or nothing shows
    that.
    """

    evidence: str
    """The evidence of the causes: `log` alone, also `packets`, or also `radio`."""

    shares_ms: dict[str, float]
    """Time of the critical path by cause, in ms."""


@dataclass(frozen=True, repr=False)
class ComparedPage(Part):
    """A page that several runs loaded."""

    url: str
    """Its URL, without its query."""

    loads: list[ComparedLoads]
    """Its loads in each run, in the order of the runs."""


@dataclass(frozen=True, repr=False)
class Page(Part):
    """The load of a page."""

    id: str
    """Its name in the browser's log, or its number."""

    url: str
    """Its URL, without its query."""

    grouped_by: str
    """How requests are assigned to the page: by the `log`, or by `pauses` between requests."""

    start_us: int | None
    """Start of its load, in microseconds since the Unix epoch; null if the log has no absolute
    times.
    """

    milestone: Milestone
    """The milestone of the verdict: `first_paint`, `load`, or `last_byte` if the log has neither.
    """

    wait_ms: float
    """Time until the milestone, in ms."""

    first_paint_ms: float | None
    """Time until the first paint, in ms."""

    content_loaded_ms: float | None
    """Time until the document was parsed, in ms."""

    load_ms: float
    """Time until the load event, in ms; until the last byte if the log does not have it."""

    bytes: int
    """Bytes of its requests."""

    verdict: PageCause
    """The cause whose removal saves most; the longest one, if no other saves more or nothing shows
    that.
    """

    says: str
    """The verdict in a sentence."""

    evidence: str
    """The evidence of the verdict: `log` alone, also `packets`, or also `radio`."""

    shares: dict[str, float]
    """Time of the critical path by cause, in ms; the parts add up to `wait_ms`."""

    savings: list[PageSaving]
    """The saving of each fix, the largest first."""

    critical_path: list[PathStep]
    """The critical path, from the start on."""

    requests: list[PageRequest]
    """Its requests, by start."""


@dataclass(frozen=True, repr=False)
class PageRequest(Part):
    """A request of a page: ms since the page's start."""

    id: str
    """The transfer's name."""

    url: str
    """Its URL, without its query."""

    kind: TransferKind
    """Kind of transfer."""

    protocol: str | None
    """Protocol, as in `h2`."""

    connection: str | None
    """The connection that carried it."""

    bytes: int | None
    """Bytes."""

    failed: bool
    """Whether it failed."""

    start_ms: float
    """Start."""

    end_ms: float
    """End."""

    waited_for: str | None
    """The request whose response it waited for before it started; null: the page's start."""

    critical: bool
    """Whether it is on the critical path."""

    cause: PageCause
    """Its longest cause."""

    parts: list[RequestPart]
    """Its parts, in order."""


@dataclass(frozen=True, repr=False)
class PageSaving(Part):
    """The time that the load would save without a cause."""

    cause: PageCause
    """The cause."""

    saves_ms: float
    """How much earlier the milestone would be, in ms; includes the next cause in its place, and the
    time that a link was busy with the page's bytes.
    """

    request: str | None
    """The request of the critical path with most of it."""

    request_ms: float
    """That request's part, in ms."""

    says: str
    """The same as a sentence, with advice."""


@dataclass(frozen=True, repr=False)
class PathStep(Part):
    """A step of the critical path: ms since the page's start."""

    request: str | None
    """The request that was waited for; null: the page itself."""

    from_ms: float
    """Start."""

    to_ms: float
    """End."""

    phase: RequestPhase | None
    """Phase of the request."""

    cause: PageCause
    """The cause of the wait."""


@dataclass(frozen=True, repr=False)
class PlayerSession(Part):
    """The events of a player, with their network causes."""

    path: str
    """The log's name."""

    stalls: list[PlayerStall]
    """Stalls of the playback."""

    switches: list[PlayerSwitch]
    """Changes of the bitrate."""

    shares: dict[str, float]
    """Time of the segments that stalls waited for, by cause, in ms."""

    says: str
    """A summary in a sentence."""


@dataclass(frozen=True, repr=False)
class PlayerStall(Part):
    """A stall of the playback."""

    at_us: int
    """Its start, in microseconds by the log's clock."""

    duration_ms: float | None
    """Its length in ms; null if the log does not have its end."""

    segment: SegmentWait | None
    """The segment that it waited for."""

    says: str
    """The same as a sentence."""


@dataclass(frozen=True, repr=False)
class PlayerSwitch(Part):
    """A change of the bitrate."""

    at_us: int
    """Its time, in microseconds by the log's clock."""

    from_bps: float | None
    """The old bitrate in bits per second; null for the first."""

    to_bps: float | None
    """The new bitrate in bits per second."""

    segment: SegmentWait | None
    """The last segment that arrived before."""

    says: str
    """The same as a sentence."""


@dataclass(frozen=True, repr=False)
class RequestPart(Part):
    """A part of a request: ms since the page's start."""

    phase: RequestPhase
    """Phase."""

    cause: PageCause
    """The cause of the wait."""

    from_ms: float
    """Start."""

    to_ms: float
    """End."""

    blocked_by: str | None
    """The request that blocked it."""


@dataclass(frozen=True, repr=False)
class SegmentWait(Part):
    """A segment, and what its transfer waited for."""

    id: str
    """The transfer's name."""

    name: str | None
    """The requested URL, without its query."""

    duration_ms: float
    """Its duration in ms."""

    bps: float | None
    """Its rate in bits per second."""

    bitrate_bps: float | None
    """Its bitrate in bits per second."""

    verdict: Verdict
    """Its bottleneck."""

    shares: dict[str, float]
    """Its time by cause, in ms."""
