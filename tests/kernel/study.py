#!/usr/bin/env python3
"""Studies a capture of the kernel's TCP with known impairments.

    study.py AIRMILE [SECONDS] [DIR]

Two phones in network namespaces, each with a link in this process (`compare.py`): one link
loses 1 % of the downlink packets, the other none. Over the first run downloads with curl,
paced streams of iperf3, uploads and a request every 10 s; over the second downloads, and a
reader that reads 100 KB/s from a faster sender. The links write the packets at their
servers' end as one capture, DIR/traffic.pcap, and their own statistics as DIR/truth.json;
then `airmile packets` studies it, with DIR/report.html. Compared are retransmissions and
lost packets, RTT and the links' delay, and the slow reader's share of time with a full
receive window.

Needs root, /dev/net/tun, iproute2, curl and iperf3. Leaves nothing but DIR.
"""

import csv
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

from compare import Link, run, tun

# Downlink rate in kbit/s, one-way delay in ms, queue in packets, share of lost packets.
LOSSY = (8_000, 25, 100, 0.01)
CLEAN = (20_000, 15, 200, 0.0)
SNAP_BYTES = 256
SLOW_PORT, READ_BYTES, READ_EVERY_S = 5002, 25_000, 0.25
SLOW_BUFFER = 65_536

SERVER = """
import http.server, socket, sys, threading
class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        n = int(self.path.strip("/") or 0)
        self.send_response(200)
        self.send_header("Content-Type", "video/mp4" if n > 100_000 else "text/plain")
        self.send_header("Content-Length", str(n)); self.end_headers()
        self.wfile.write(bytes(n))
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204); self.send_header("Content-Length", "0"); self.end_headers()
    def log_message(self, *_): pass
def endless(port):
    s = socket.create_server(("", port))
    while True:
        c, _ = s.accept()
        threading.Thread(target=fill, args=(c,), daemon=True).start()
def fill(c):
    try:
        while True: c.send(bytes(65536))
    except OSError: pass
threading.Thread(target=endless, args=(int(sys.argv[1]),), daemon=True).start()
http.server.ThreadingHTTPServer(("", 8000), Handler).serve_forever()
"""

SLOW_READER = """
import socket, sys, time
server, port, seconds, size, every, buffer = sys.argv[1:]
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, int(buffer))
s.connect((server, int(port))); end = time.monotonic() + float(seconds); n = 0
while time.monotonic() < end:
    left = int(size)
    while left > 0: left -= len(s.recv(left))
    n += int(size); time.sleep(float(every))
print(n)
"""


class Capture:
    """A pcap file with nanoseconds and raw IP, written by several links."""

    def __init__(self, path):
        self.file, self.lock = open(path, "wb"), threading.Lock()
        self.file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, SNAP_BYTES, 101))

    def write(self, packet):
        kept = packet[:SNAP_BYTES]
        with self.lock:
            seconds, ns = divmod(time.time_ns(), 1_000_000_000)
            self.file.write(struct.pack("<IIII", seconds, ns, len(kept), len(packet)) + kept)


class CapturedLink(Link):
    """A link with random loss that is captured at the server's end."""

    def __init__(self, source, sink, rate, delay, queue, loss, capture, down, seed):
        super().__init__(source, sink, rate, delay, queue, 0)
        self.loss, self.random, self.capture, self.down = loss, random.Random(seed), capture, down
        self.lost = self.data_dropped = 0

    def loses(self, packet):
        if self.down:
            self.capture.write(packet)
        lost = self.random.random() < self.loss
        self.lost += lost
        return lost

    def drop(self, packet):
        super().drop(packet)
        header = 4 * (packet[0] & 15)
        bare = header + 4 * (packet[header + 12] >> 4)
        self.data_dropped += packet[9] == 6 and len(packet) > bare

    def deliver(self, at, packet):
        if not self.down:
            self.capture.write(packet)
        super().deliver(at, packet)


def phone(number, link, capture):
    """Server, phone and the two links between them."""
    rate, delay, queue, loss = link
    names = [f"am-srv{number}", f"am-ue{number}"]
    server, client = f"10.77.{number}.1", f"10.77.{number}.2"
    fds = [tun(names[0], names[0], server, client), tun(names[1], names[1], client, server)]
    links = [
        CapturedLink(fds[0], fds[1], rate, delay, queue, loss, capture, True, 7),
        CapturedLink(fds[1], fds[0], 0, delay, 100_000, 0.0, capture, False, 8),
    ]
    for each in links:
        each.start()
    return names, server, fds, links


class Again(threading.Thread):
    """Repeats a command until the end or until stopped."""

    def __init__(self, every_s, end, words):
        # The interpreter does not wait for it at exit.
        super().__init__(daemon=True)
        self.every_s, self.end, self.words = every_s, end, words
        self.stopped, self.lock, self.child = threading.Event(), threading.Lock(), None

    def run(self):
        while (start := time.monotonic()) < self.end:
            with self.lock:
                if self.stopped.is_set():
                    return
                self.child = subprocess.Popen(
                    self.words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.child.wait()
            now = time.monotonic()
            self.stopped.wait(max(0.0, min(self.every_s - (now - start), self.end - now)))

    def stop(self):
        """Ends the command, too; a hanging connection would keep it forever."""
        with self.lock:
            self.stopped.set()
            if self.child and self.child.poll() is None:
                self.child.kill()
        self.join()


def traffic(seconds, folder):
    """Writes `traffic.pcap`; returns the links' statistics."""
    capture = Capture(os.path.join(folder, "traffic.pcap"))
    phones, children, threads = [], [], []
    try:
        for number, link in ((1, LOSSY), (2, CLEAN)):
            phones.append(phone(number, link, capture))
        for (server_name, _), *_ in phones:
            inside = ["ip", "netns", "exec", server_name]
            children.append(subprocess.Popen([*inside, sys.executable, "-c", SERVER, str(SLOW_PORT)]))
            children.append(subprocess.Popen([*inside, "iperf3", "-s"], stdout=subprocess.DEVNULL))
        time.sleep(1.0)
        (_, lossy), one, *_ = phones[0]
        (_, clean), two, *_ = phones[1]
        end = time.monotonic() + seconds
        at = ["ip", "netns", "exec"]
        curl = ["curl", "-s", "-o", "/dev/null"]
        body = os.path.join(folder, "body")
        with open(body, "wb") as file:
            file.write(bytes(400_000))
        jobs = [
            (12, [*at, lossy, *curl, f"http://{one}:8000/3000000"]),
            (10, [*at, lossy, *curl, f"http://{one}:8000/400"]),
            (25, [*at, lossy, *curl, "--data-binary", f"@{body}", f"http://{one}:8000/"]),
            (40, [*at, clean, *curl, f"http://{two}:8000/15000000"]),
            (seconds, [*at, lossy, "iperf3", "-c", one, "-R", "-P", "2", "-b", "1M", "-t", str(seconds)]),
            (seconds, [*at, clean, sys.executable, "-c", SLOW_READER, two, str(SLOW_PORT), str(seconds),
                       str(READ_BYTES), str(READ_EVERY_S), str(SLOW_BUFFER)]),
        ]
        for every_s, words in jobs:
            threads.append(Again(every_s, end, words))
            threads[-1].start()
        for thread in threads:
            thread.join()
        os.remove(body)
    finally:
        for thread in threads:
            thread.stop()
        for child in children:
            child.kill()
            child.wait()
        for *_, links in phones:
            for link in links:
                link.stop = True
            for link in links:
                link.join()
        for names, _, fds, _ in phones:
            for fd in fds:
                os.close(fd)
            for name in names:
                run("ip", "netns", "del", name, check=False)
        capture.file.close()
    truth = [
        {
            "server": server,
            "offered": down.offered,
            "lost": down.lost,
            "queue_full": down.dropped - down.lost,
            "data_dropped": down.data_dropped,
            "rtt_ms": 2 * down.delay * 1000,
            "late_ms": max(link.late for link in (down, up)) * 1000,
        }
        for _, server, _, (down, up) in phones
    ]
    with open(os.path.join(folder, "truth.json"), "w") as file:
        json.dump(truth, file, indent=1)
    return truth


def study(airmile, folder):
    """The flows as reported by `airmile packets`."""
    page, tables = os.path.join(folder, "report.html"), os.path.join(folder, "tables")
    words = [airmile, "packets", os.path.join(folder, "traffic.pcap"), "--html", page,
             "-o", tables, "--table-format", "csv", "-q"]
    print(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    with open(os.path.join(tables, "flows.csv")) as file:
        return list(csv.DictReader(file))


def check(name, found, least, most):
    bad = not least <= found <= most
    print(f"{name:52} {found:10.3f}   {least:9.3f}..{most:<9.3f}{'  OUT' if bad else ''}")
    return bad


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    tools = ("ip", "curl", "iperf3")
    if os.geteuid() != 0 or not os.path.exists("/dev/net/tun") or not all(map(shutil.which, tools)):
        print("SKIPPED: needs root, /dev/net/tun, iproute2, curl and iperf3")
        return 0
    airmile = os.path.abspath(sys.argv[1])
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    folder = sys.argv[3] if len(sys.argv) > 3 else tempfile.mkdtemp(prefix="airmile-study-")
    os.makedirs(folder, exist_ok=True)
    sys.setswitchinterval(0.0002)
    # After a signal, the namespaces are removed, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    lossy, clean = traffic(seconds, folder)
    flows = study(airmile, folder)
    wrong = 0
    print(f"{'':52} {'airmile':>10}   truth")
    for truth in (lossy, clean):
        mine = [flow for flow in flows if flow["server"] == truth["server"]]
        total = lambda column: sum(int(flow[column] or 0) for flow in mine)
        dropped = truth["data_dropped"]
        # The last packets of an interrupted flow are not retransmitted.
        wrong += check(f"{truth['server']}: downlink segments sent again",
                       total("dl_retx") - total("dl_retx_spurious"), 0.9 * dropped - 3, 1.1 * dropped + 3)
        least = min(int(flow["rtt_min_ns"]) for flow in mine if flow["rtt_min_ns"]) / 1e6
        wrong += check(f"{truth['server']}: least RTT in ms", least, truth["rtt_ms"] - 1, truth["rtt_ms"] + 10)
    slow = next(flow for flow in flows if flow["server_port"] == str(SLOW_PORT))
    full = int(slow["window_full_ns"] or 0) / int(slow["duration_ns"])
    wrong += check("slow reader: share of time with a full window", full, 0.5, 1.0)
    others = [flow for flow in flows if flow is not slow and int(flow["dl_bytes"]) > 100_000]
    most = max(int(flow["window_full_ns"] or 0) / int(flow["duration_ns"]) for flow in others)
    wrong += check("other downloads: largest such share", most, 0.0, 0.1)
    print(f"links were late by up to {max(lossy['late_ms'], clean['late_ms']):.0f} ms; all is in {folder}")
    print(f"{wrong} out of bounds" if wrong else "all as for the links")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
