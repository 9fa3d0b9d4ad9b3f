"""Files, logs of applications, clocks.

Written from docs/schema by tests/docs/python_documents.py; do not edit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from airmile.documents._part import Part

Compression: TypeAlias = Literal["none", "gzip", "zstd"]

Direction: TypeAlias = Literal["dl", "ul"]

MissingKind: TypeAlias = Literal["radio", "transfers", "packets", "clock", "application", "file"]

PlayerEventKind: TypeAlias = Literal[
    "started", "stall", "switch", "buffer", "estimate", "ended", "failed"
]

Severity: TypeAlias = Literal["normal", "warning", "damage"]

TimeBase: TypeAlias = Literal["wall", "unplaced"]


@dataclass(frozen=True, repr=False)
class ApplicationSummary(Part):
    """The contents of an application's log, summarised."""

    path: str
    """The path it was opened with."""

    kind: str
    """Its format."""

    made_by: str | None
    """The program that wrote it, as stated in it."""

    clock: TimeBase
    """The origin of its times."""

    placed_within_ms: float
    """Precision of its start, in ms."""

    gave_transfers: bool
    """Whether the transfers above are from this log."""

    transfers: int
    """Transfers over the network."""

    failed: int
    """Number of failed ones."""

    from_cache: int
    """Requests served from the cache."""

    bytes: int
    """Bytes of its transfers."""

    busy_ms: float
    """Time with at least one transfer, in ms."""

    busy_bps: float | None
    """Bytes over that time, in bits per second."""

    stalls: int
    """Number of stalls."""

    stalled_ms: float
    """Total length of stalls, in ms; a stall without an end in the log counts as zero."""

    switches: int
    """Changes of the bitrate."""

    mean_bitrate_bps: float | None
    """Mean bitrate of the media segments, in bits per second."""

    least_buffer_ms: float | None
    """Minimum of the player's buffer after the start, in ms."""

    events: list[EventPoint]
    """Events of the player, in order."""

    rates: list[RateOver]
    """Rates of a speed test, or of QUIC in each second."""

    says: str
    """The log in a sentence."""


@dataclass(frozen=True, repr=False)
class ClockReport(Part):
    """The offset of a file's clock from another's."""

    file: str
    """The file with this clock."""

    against: str
    """The reference."""

    at_us: int | None
    """The middle of the evidence, in microseconds since the Unix epoch by the reference clock."""

    offset_ms: float | None
    """The clock minus the reference at that time, in ms; null if unknown."""

    drift_ppm: float | None
    """The clock's rate error against the reference, in parts per million."""

    error_ms: float | None
    """Maximum error of the offset, in ms."""

    rival_offset_ms: float | None
    """Another offset that fits nearly as well, in ms: the traffic repeats itself, and the smaller
    offset was used.
    """

    evidence: int
    """Pieces of evidence."""

    corrected: bool
    """Whether the file's times were corrected by the offset."""

    says: str
    """The same as a sentence."""


@dataclass(frozen=True, repr=False)
class EventPoint(Part):
    """An event of a player."""

    time_us: int
    """Its time, in microseconds by the log's clock."""

    kind: PlayerEventKind
    """Its kind."""

    value: float | None
    """Its value: ms of a stall or in the buffer, bits per second of a switch or an estimate."""


@dataclass(frozen=True, repr=False)
class FileReport(Part):
    """The contents of a file, as `inspect` reports them."""

    path: str
    """The name under which it was opened."""

    kind: str
    """Its format."""

    compression: Compression
    """Its compression."""

    bytes: int
    """Bytes, decompressed."""

    start_us: int | None
    """First time in it, in microseconds since the Unix epoch."""

    end_us: int | None
    """Last time in it, in microseconds since the Unix epoch."""

    items: int
    """Rows of a table, frames of a log."""

    bad_items: int
    """Frames with a bad CRC or length, unreadable rows."""

    records: dict[str, int]
    """Records read from it, by type."""

    messages: list[MessageRow]
    """Messages of a log, by code and version."""

    subscriptions: dict[str, int]
    """User downlink grants per subscription of a multi-SIM phone."""

    late_records: int
    """Records that arrived after their time had been judged; left out of bursts."""

    problems: list[Problem]
    """Problems, the first ones as text."""

    more_problems: int
    """Problems beyond those."""

    damaged: bool
    """Whether bytes or rows were lost to damage."""

    left_out: str | None
    """Why the result is not from the file; null if it is."""


@dataclass(frozen=True, repr=False)
class MessageRow(Part):
    """Count of a message in a log."""

    code: str
    """Log code, as in `0xB173`."""

    name: str
    """Name."""

    version: int | None
    """Version: the first payload byte."""

    major: int | None
    """Major version, of NR messages; the first byte is then the minor one."""

    subpacket_version: int | None
    """Version of its first subpacket, if it has subpackets."""

    count: int
    """Number of messages."""

    decoded: int
    """Number of decoded messages."""


@dataclass(frozen=True, repr=False)
class Missing(Part):
    """Evidence that the inputs lack."""

    kind: MissingKind
    """Its kind."""

    what: str
    """What is missing."""

    how_to_capture: str
    """How to capture it."""


@dataclass(frozen=True, repr=False)
class Problem(Part):
    """A problem of an input, with its position."""

    offset: int | None
    """Byte offset in the (uncompressed) input; none if it is of the whole."""

    severity: Severity
    """Its severity."""

    what: str
    """A description, with the field if one is known."""


@dataclass(frozen=True, repr=False)
class RateOver(Part):
    """The rate in an interval."""

    start_us: int
    """Start in microseconds by the log's clock."""

    end_us: int
    """End in microseconds (exclusive)."""

    dir: Direction
    """Direction."""

    bps: float
    """Bits per second."""

    retransmits: int | None
    """Segments retransmitted, or packets lost."""

    rtt_us: float | None
    """Mean round trip in microseconds."""


@dataclass(frozen=True, repr=False)
class ServingCell(Part):
    """A serving cell that was measured, or only reported in another message."""

    pci: int | None
    """Physical cell identity."""

    earfcn: int | None
    """Downlink EARFCN; in NR the NR-ARFCN."""

    measurements: int
    """Number of its measurements."""
