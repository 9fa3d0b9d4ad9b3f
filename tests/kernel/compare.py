#!/usr/bin/env python3
"""Compares our TCP with the kernel's over the same link.

Two network namespaces with a TUN device each, and between them a link in this process:
rate, delay, a queue with a limit, and a drop of every n-th packet, like the one of
`crates/airmile-emulate/tests/it/support` in virtual time. A sender in one namespace fills a
connection to a reader in the other for some seconds, with the kernel's cubic (without
HyStart) and reno; then our TCP does the same in virtual time. Throughput and segments sent
again must be within 10 % of the range of the kernel's runs; these differ, since a process
cannot forward packets with millisecond precision.

Needs root, /dev/net/tun and iproute2. Leaves nothing behind.
"""

import collections
import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SERVER, CLIENT = "10.77.0.1", "10.77.0.2"
SECONDS = int(os.environ.get("SECONDS_EACH", "10"))
RUNS = int(os.environ.get("RUNS", "3"))
LIMIT = 0.10
HYSTART = "/sys/module/tcp_cubic/parameters/hystart"
# Rate in kbit/s, one-way delay in ms, queue in packets, drop each n-th packet.
SCENARIOS = [
    (10_000, 20, 50, 0),
    (20_000, 40, 100, 0),
    (10_000, 20, 20, 0),
    (10_000, 20, 1000, 200),
]

SENDER = """
import socket, sys, time
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[2].encode())
s.bind((sys.argv[1], 5001)); s.listen(); print("ready", flush=True)
c, _ = s.accept(); end = time.monotonic() + float(sys.argv[3]); c.settimeout(0.1)
block = bytes(65536)
while time.monotonic() < end:
    try: c.send(block)
    except OSError: pass
info = c.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
# tcpi_total_retrans of struct tcp_info.
print(int.from_bytes(info[100:104], sys.byteorder), flush=True)
sys.stdin.read()
"""

READER = """
import socket, sys, time
s = socket.socket(); end = time.monotonic() + float(sys.argv[2])
s.connect((sys.argv[1], 5001)); n = 0
while (left := end - time.monotonic()) > 0:
    s.settimeout(left)
    try: n += len(s.recv(1 << 20))
    except socket.timeout: pass
print(n, flush=True)
sys.stdin.read()
"""


def run(*words, check=True):
    subprocess.run(words, check=check, capture_output=True)


def tun(name, namespace, own, peer):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, 0x400454CA, struct.pack("16sH", name.encode(), 0x1001))  # TUNSETIFF: TUN, NO_PI
    run("ip", "netns", "add", namespace)
    run("ip", "link", "set", "dev", name, "netns", namespace)
    inside = ("ip", "-n", namespace)
    run(*inside, "addr", "add", own, "peer", peer, "dev", name)
    run(*inside, "link", "set", "dev", name, "up", "txqueuelen", "10000")
    # A receive buffer that is large from the start, as auto-tuning is not compared.
    buffer = "tcp_rmem=4096 8388608 8388608"
    for key in ("tcp_no_metrics_save=1", "tcp_ecn=0", buffer):
        run("ip", "netns", "exec", namespace, "sysctl", "-w", "net.ipv4." + key)
    return fd


class Link(threading.Thread):
    """Carries packets from one TUN to the other."""

    def __init__(self, source, sink, rate_kbps, delay_ms, queue, nth):
        super().__init__(daemon=True)
        self.source, self.sink = source, sink
        self.rate, self.delay, self.queue, self.nth = rate_kbps * 1000, delay_ms / 1000, queue, nth
        self.dropped = self.offered = self.late = 0
        self.stop = False

    def loses(self, packet):
        return self.nth and self.offered % self.nth == 0

    def drop(self, packet):
        self.dropped += 1

    def deliver(self, at, packet):
        try:
            os.write(self.sink, packet)
        except OSError:
            pass

    def run(self):
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
        except OSError:
            pass
        free, departures, arrivals = 0.0, collections.deque(), collections.deque()
        while not self.stop:
            now = time.monotonic()
            while arrivals and arrivals[0][0] <= now:
                at, packet = arrivals.popleft()
                self.late = max(self.late, now - at)
                self.deliver(at, packet)
            wait = min(0.05, max(0.0, arrivals[0][0] - now)) if arrivals else 0.05
            if not select.select([self.source], [], [], wait)[0]:
                continue
            try:
                packet = os.read(self.source, 65536)
            except OSError:
                continue
            if packet[0] >> 4 != 4:
                continue
            now = time.monotonic()
            while departures and departures[0] <= now:
                departures.popleft()
            self.offered += 1
            if self.loses(packet) or len(departures) > self.queue:
                self.drop(packet)
                continue
            free = max(free, now) + (len(packet) * 8 / self.rate if self.rate else 0)
            departures.append(free)
            arrivals.append((free + self.delay, packet))


def kernel(control, rate, delay, queue, nth):
    names = [("am-srv", "am-s0", SERVER, CLIENT), ("am-cli", "am-c0", CLIENT, SERVER)]
    fds, links, children = [], [], []
    try:
        for namespace, name, own, peer in names:
            fds.append(tun(name, namespace, own, peer))
        down = Link(fds[0], fds[1], rate, delay, queue, nth)
        up = Link(fds[1], fds[0], 0, delay, 100_000, 0)
        links = [down, up]
        for link in links:
            link.start()

        def child(namespace, code, *arguments):
            words = ["ip", "netns", "exec", namespace, sys.executable, "-c", code, *arguments]
            pipe = subprocess.PIPE
            children.append(subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True))
            return children[-1]

        sender = child("am-srv", SENDER, SERVER, control, str(SECONDS))
        sender.stdout.readline()
        reader = child("am-cli", READER, SERVER, str(SECONDS))
        got = int(reader.stdout.readline())
        again = int(sender.stdout.readline())
        return got, again, down.dropped, max(link.late for link in links)
    finally:
        for process in children:
            process.kill()
            process.wait()
        for link in links:
            link.stop = True
        for link in links:
            link.join()
        for fd in fds:
            os.close(fd)
        for namespace, *_ in names:
            run("ip", "netns", "del", namespace, check=False)


def ours(control, rate, delay, queue, nth):
    words = ["cargo", "run", "--quiet", "--release", "--locked", "-p", "airmile-emulate",
             "--example", "tcp_over_link", "--", *map(str, (rate, delay, queue, nth, control, SECONDS))]
    output = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return tuple(map(int, output.split()))


def near(ours, kernels, slack=0):
    """Whether a value is within 10 % (or a larger `slack`) of one of the kernel's runs."""
    low, high = min(kernels), max(kernels)
    return low - max(slack, LIMIT * low) <= ours <= high + max(slack, LIMIT * high)


def spread(values, scale, digits):
    low, high = (f"{f(values) * scale:.{digits}f}" for f in (min, max))
    return low if low == high else f"{low}..{high}"


def main():
    if os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
        print("SKIPPED: needs root and /dev/net/tun")
        return 0
    # After a signal, everything created and changed is undone, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        before = open(HYSTART).read()
    except OSError:
        before = None
    # Two links in one interpreter: switch threads within the time of a packet.
    sys.setswitchinterval(0.0002)
    wrong = 0
    print("         kbit/s  ms queue  nth |    Mbit/s kernel   ours | again kernel  ours | late ms")
    try:
        if before is not None:
            open(HYSTART, "w").write("0")
        for rate, delay, queue, nth in SCENARIOS:
            for control in ("cubic", "reno"):
                runs = [kernel(control, rate, delay, queue, nth) for _ in range(RUNS)]
                got, again, _, late = zip(*runs)
                our, our_again, _ = ours(control, rate, delay, queue, nth)
                bad = not near(our, got) or not near(our_again, again, 2)
                wrong += bad
                mbps = 8 / SECONDS / 1e6
                print(f"{control:6} {rate:6} {delay:5} {queue:5} {nth:4} |"
                      f" {spread(got, mbps, 3):>16} {our * mbps:6.3f} |"
                      f" {spread(again, 1, 0):>12} {our_again:5} | {max(late) * 1000:5.1f}"
                      f"{'  OUT' if bad else ''}", flush=True)
    finally:
        if before is not None:
            open(HYSTART, "w").write(before)
    print(f"{wrong} out of bounds" if wrong else "all within 10 % of the kernel's runs")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
