"""Common parts of the suites of `airmile live`: a log, and a running command."""

import json
import os
import re
import signal
import subprocess
import threading
import time
import urllib.request

SAMPLE = "busy-video"


def sample(airmile, work):
    """A modem log from our own generator."""
    run = os.path.join(work, "run")
    log = os.path.join(run, "modem.mi2log")
    subprocess.run([airmile, "lab", "run", SAMPLE, "-q", "-o", run], check=True, stdout=subprocess.DEVNULL)
    return log


class Live:
    """`airmile live` with its HTTP interface, and the events that it prints, each with its
    time of arrival."""

    def __init__(self, airmile, *words):
        words = [airmile, "live", "--json", "--listen", "127.0.0.1:0", *words]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        banner = self.process.stderr.readline()
        found = re.search(r"http://\S+", banner)
        if not found:
            raise SystemExit(f"{' '.join(words)}: {banner}{self.process.stderr.read()}")
        self.url, _, self.query = found.group().partition("?")
        self.url = self.url.rstrip("/")
        # Later output must not fill the pipe.
        self.errors = []
        threading.Thread(target=lambda: self.errors.extend(self.process.stderr), daemon=True).start()
        self.events = []
        self.listener = threading.Thread(target=self.listen, daemon=True)
        self.listener.start()

    def listen(self):
        for line in self.process.stdout:
            self.events.append((time.monotonic(), json.loads(line)))

    @property
    def address(self):
        host, port = self.url.removeprefix("http://").rsplit(":", 1)
        return host, int(port)

    def get(self, path, timeout=10):
        query = ("&" if "?" in path else "?") + self.query if self.query else ""
        with urllib.request.urlopen(self.url + path + query, timeout=timeout) as answer:
            return answer.read().decode()

    def metric(self, name):
        for line in self.get("/metrics").splitlines():
            if line.split(" ")[0] == name:
                return float(line.split(" ")[1])
        return None

    def cpu_s(self):
        """Seconds of CPU so far, of the user and the system."""
        fields = open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_mib(self):
        status = open(f"/proc/{self.process.pid}/status").read()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024

    def end(self):
        # Not SIGINT, which background jobs of a shell ignore.
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        self.listener.join(30)


def stamped(log):
    """Frames of a log, each with the latest time of writing so far in microseconds since
    the Unix epoch: log packets have it at byte 8, in ticks of 1.25 ms since 1980."""
    latest = None
    for frame in open(log, "rb").read().split(b"\x7e")[:-1]:
        packet = re.sub(rb"\x7d(.)", lambda escaped: bytes([escaped[1][0] ^ 0x20]), frame[:40], flags=re.S)
        if packet[:1] == b"\x10":
            ticks = int.from_bytes(packet[8:16], "little") >> 16
            now = 315_964_800_000_000 + ticks * 1250
            latest = max(latest or now, now)
        yield latest, frame + b"\x7e"


def write_in_time(log, path, until=float("inf")):
    """Writes a log frame by frame at their original times; returns the log's time 0 on this
    process's clock."""
    begun = None
    with open(path, "ab", buffering=0) as out:
        for at_us, frame in stamped(log):
            if at_us is not None:
                begun = time.monotonic() - at_us / 1e6 if begun is None else begun
                late = time.monotonic() - begun - at_us / 1e6
                if late < 0:
                    time.sleep(-late)
            if time.monotonic() > until:
                break
            out.write(frame)
    return begun
