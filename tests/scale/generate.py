"""Generates captures with headers only, of any number of packets, in little memory.

python generate.py PACKETS FILES DIR    pcap files; flows continue from one to the next
python generate.py PACKETS 1 -          one capture on standard output

Downloads over IPv4 to users of 10.0.0.0/8, four flows each. Some lose a segment after the
monitor and retransmit it. The same arguments give the same bytes. Needs numpy.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import BinaryIO

import numpy as np

MS = 1_000_000
RTT = 50 * MS
MSS = 1448
SYN, ACK, PSH_ACK, FIN_ACK = 2, 16, 24, 17
START_S = 1_700_000_000
WINDOW_NS = 2_000 * MS

FRAME = 66
RECORD = np.dtype(
    [
        ("seconds", "<u4"), ("nanoseconds", "<u4"), ("captured", "<u4"), ("wire", "<u4"),
        ("ethernet", "V14"), ("version", ">u2"), ("length", ">u2"), ("id", ">u2"),
        ("fragment", ">u2"), ("ttl", ">u2"), ("checksum", ">u2"), ("src", ">u4"), ("dst", ">u4"),
        ("src_port", ">u2"), ("dst_port", ">u2"), ("seq", ">u4"), ("ack", ">u4"),
        ("header", "u1"), ("flags", "u1"), ("window", ">u2"), ("tcp_checksum", ">u2"),
        ("urgent", ">u2"), ("options", ">u4"), ("ts_val", ">u4"), ("ts_ecr", ">u4"),
    ]
)  # fmt: skip
PACKET = np.dtype(
    [("at", "<i8"), ("flow", "<i8"), ("down", "?"), ("flags", "u1"), ("seq", "<u4"),
     ("ack", "<u4"), ("bytes", "<u4")]
)  # fmt: skip


def template(segments: int, lost: int | None) -> np.ndarray:
    """The packets of a flow: time since its start, direction, flags, numbers, bytes."""
    out: list[tuple[int, int, bool, int, int, int, int]] = []

    def send(at: int, down: bool, flags: int, seq: int, ack: int, size: int) -> None:
        out.append((at, 0, down, flags, seq, ack, size))

    send(0, False, SYN, 100, 0, 0)
    send(20 * MS, True, SYN | ACK, 900, 101, 0)
    send(50 * MS, False, ACK, 101, 901, 0)
    send(51 * MS, False, PSH_ACK, 101, 901, 300)
    at, sent = 90 * MS, 0
    while sent < segments:
        window = min(10, segments - sent)
        hole = lost is not None and sent <= lost < sent + window
        for n in range(window):
            seq = 901 + MSS * (sent + n)
            when = at + n * MS // 4
            send(when, True, ACK, seq, 401, MSS)
            if hole and sent + n >= lost:
                # Duplicate ACKs for segments after the hole.
                if sent + n > lost:
                    send(when + 30 * MS, False, ACK, 401, 901 + MSS * lost, 0)
            elif n % 2 == 1 or n + 1 == window:
                send(when + 30 * MS, False, ACK, 401, seq + MSS, 0)
        if hole:
            at += RTT
            send(at, True, ACK, 901 + MSS * lost, 401, MSS)
            send(at + 30 * MS, False, ACK, 401, 901 + MSS * (sent + window), 0)
        sent += window
        at += RTT
    end = 901 + MSS * segments
    send(at, True, FIN_ACK, end, 401, 0)
    send(at + 30 * MS, False, FIN_ACK, 401, end + 1, 0)
    send(at + 50 * MS, True, ACK, end + 1, 402, 0)
    return np.array(out, PACKET)


TEMPLATES = [
    template(segments, lost)
    for segments, lost in [
        (4, None),
        (12, None),
        (60, 33),
        (160, None),
        (400, 217),
        (30, None),
        (1_400, 700),
    ]
]
FLOWS_PER_WINDOW = 160


def windows(packets: int):
    """Packets in time order, some seconds at once, `packets` in total."""
    waiting = np.empty(0, PACKET)
    flow, window, given = 0, 0, 0
    while given < packets:
        new = [waiting]
        for n in range(FLOWS_PER_WINDOW):
            one = TEMPLATES[(flow * 7 + flow // 11) % len(TEMPLATES)].copy()
            one["at"] += window * WINDOW_NS + n * (WINDOW_NS // FLOWS_PER_WINDOW) + flow % 1013
            one["flow"] = flow
            new.append(one)
            flow += 1
        together = np.concatenate(new)
        together = together[np.argsort(together["at"], kind="stable")]
        window += 1
        n = int(np.searchsorted(together["at"], window * WINDOW_NS))
        ready, waiting = together[: min(n, packets - given)], together[n:]
        given += len(ready)
        yield ready


def records(packets: np.ndarray) -> bytes:
    """Convert to pcap records."""
    out = np.zeros(len(packets), RECORD)
    down, flow = packets["down"], packets["flow"]
    at = packets["at"]
    out["seconds"] = START_S + at // 1_000_000_000
    out["nanoseconds"] = at % 1_000_000_000
    out["captured"] = FRAME
    out["wire"] = FRAME + packets["bytes"]
    out["ethernet"] = bytes([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0])
    out["version"] = 0x4500
    out["length"] = 52 + packets["bytes"]
    out["id"] = (np.arange(len(packets)) + at // 1000) & 0xFFFF
    out["fragment"] = 0x4000
    out["ttl"] = 0x4006
    client = (0x0A00_0000 + flow // 4).astype("<u4")
    server = (0xC612_0000 + flow % 500).astype("<u4")
    port = (20_000 + flow % 40_000).astype("<u2")
    out["src"], out["dst"] = np.where(down, server, client), np.where(down, client, server)
    out["src_port"], out["dst_port"] = np.where(down, 443, port), np.where(down, port, 443)
    base = (flow * 2_654_435_761 & 0xFFFF_FFFF).astype("<u8")
    out["seq"] = (packets["seq"] + base) & 0xFFFF_FFFF
    out["ack"] = np.where(packets["flags"] & ACK, (packets["ack"] + base) & 0xFFFF_FFFF, 0)
    out["header"] = 0x80
    out["flags"] = packets["flags"]
    out["window"] = 0xFFFF
    out["options"] = 0x0101080A
    millis = at // MS + 1_000
    out["ts_val"] = millis - np.where(down, 0, 20)
    out["ts_ecr"] = millis - 30
    return out.tobytes()


def main(packets: int, files: int, where: str) -> None:
    """Write the captures."""
    header = np.array([0xA1B23C4D, 4 << 16 | 2, 0, 0, 96, 1], "<u4").tobytes()
    each = -(-packets // files)
    out: BinaryIO | None = None
    room, number = 0, 0
    for window in windows(packets):
        data = memoryview(records(window))
        while data:
            if room == 0:
                out = (
                    sys.stdout.buffer
                    if where == "-"
                    else (Path(where) / f"{number:04}.pcap").open("wb")
                )
                out.write(header)
                room, number = each * RECORD.itemsize, number + 1
            some = data[:room]
            assert out is not None
            out.write(some)
            data, room = data[len(some) :], room - len(some)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
