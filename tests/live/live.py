"""What the suites of `airmile live` share: a log, and a running command."""

import json
import os
import re
import subprocess
import threading
import time
import urllib.request

SAMPLE = "busy-video"


def sample(airmile, work):
    """A modem log of our own generator: its path, and its length in seconds."""
    run = os.path.join(work, "run")
    log = os.path.join(run, "modem.mi2log")
    subprocess.run([airmile, "lab", "run", SAMPLE, "-q", "-o", run], check=True, stdout=subprocess.DEVNULL)
    report = subprocess.run([airmile, "inspect", log, "--json"], check=True, stdout=subprocess.PIPE, text=True)
    file = json.loads(report.stdout)["files"][0]
    return log, (file["end_us"] - file["start_us"]) / 1e6


class Live:
    """`airmile live` with an interface; what it prints goes to a file."""

    def __init__(self, airmile, work, *words):
        self.lines = os.path.join(work, "lines.json")
        words = [airmile, "live", "--json", "--listen", "127.0.0.1:0", *words]
        self.process = subprocess.Popen(words, stdout=open(self.lines, "w"), stderr=subprocess.PIPE, text=True)
        told = self.process.stderr.readline()
        found = re.search(r"http://\S+", told)
        if not found:
            raise SystemExit(f"{' '.join(words)}: {told}{self.process.stderr.read()}")
        self.url = found.group().rstrip("/")
        # What it says later must not fill the pipe.
        self.said = []
        threading.Thread(target=lambda: self.said.extend(self.process.stderr), daemon=True).start()

    @property
    def address(self):
        host, port = self.url.removeprefix("http://").rsplit(":", 1)
        return host, int(port)

    def get(self, path, timeout=10):
        with urllib.request.urlopen(self.url + path, timeout=timeout) as answer:
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
        self.process.terminate()
        self.process.wait(30)


def write_in_time(log, seconds, path, until):
    """Writes a log as a modem would, evenly over its length; gives the bytes it wrote."""
    data = open(log, "rb").read()
    begun, written = time.monotonic(), 0
    with open(path, "ab", buffering=0) as out:
        while written < len(data) and time.monotonic() < until:
            due = min(len(data), int(len(data) * (time.monotonic() - begun) / seconds))
            out.write(data[written:due])
            written = due
            time.sleep(0.02)
    return written
