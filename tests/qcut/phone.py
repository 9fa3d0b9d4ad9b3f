#!/usr/bin/env python3
"""The phone's part of measure.py: pages alone, during an upload, and during an upload with
each deployment. Prints JSON lines.

    phone.py AIRMILE REPEATS DEPLOYS WORK

DEPLOYS are those of measure.py; WORK is a directory for files. CAKE_AUTORATE is the checkout of
cake-autorate.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import autorate

SERVER = os.environ["AIRMILE_SERVER"]
# A page in three steps, like a browser's: a document, its references, and their references,
# each over new connections.
STEPS = [["page-60000"], ["style-20000", "script-90000", "image-30000-a", "image-30000-b"],
         ["image-50000-c", "image-50000-d", "font-40000"]]
# Time in which an upload fills a deep buffer.
SETTLES_S = 6


def say(**what):
    print(json.dumps(what), flush=True)


def page(patience_s=40):
    """Seconds until a page is loaded; None if it failed."""
    began = time.monotonic()
    for step in STEPS:
        urls = []
        for name in step:
            urls += ["-o", "/dev/null", f"http://{SERVER}/{name}"]
        left = patience_s - (time.monotonic() - began)
        words = ["curl", "-sf", "--parallel", "--no-keepalive", "-m", f"{max(left, 0.1):.1f}", *urls]
        if subprocess.run(words).returncode:
            return None
    return time.monotonic() - began


class Voice:
    """Datagrams of 160 bytes each 20 ms to the server, which sends them back: delay,
    jitter (RFC 3550, 6.4.1) and loss."""

    def __init__(self, seconds):
        self.seconds, self.round_trips, self.sent = seconds, [], 0
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        import socket
        line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        line.connect((SERVER, 7))
        line.setblocking(False)
        begun = time.monotonic()
        while time.monotonic() - begun < self.seconds + 3:
            now = time.monotonic()
            if now - begun < self.seconds and now - begun >= self.sent * 0.02:
                line.send(json.dumps([self.sent, now]).encode().ljust(160))
                self.sent += 1
            try:
                while True:
                    number, at = json.loads(line.recv(2000))
                    self.round_trips.append((number, time.monotonic() - at))
            except (BlockingIOError, ConnectionRefusedError):
                time.sleep(0.002)

    def result(self):
        self.thread.join()
        times = [seconds for _, seconds in sorted(self.round_trips)]
        jitter = 0.0
        for before, after in zip(times, times[1:]):
            jitter += (abs(after - before) - jitter) / 16
        times.sort()
        median = times[len(times) // 2] if times else None
        return {"voice_ms": median and median * 1e3, "jitter_ms": jitter * 1e3,
                "lost": 1 - len(times) / max(self.sent, 1)}


class Upload:
    """iperf3 to the server, until it is stopped."""

    def __init__(self, seconds):
        self.process = subprocess.Popen(["iperf3", "-c", SERVER, "-t", str(seconds), "-C", "cubic", "-J"],
                                        stdout=subprocess.PIPE, text=True)

    def end(self):
        self.process.send_signal(signal.SIGINT)
        out, _ = self.process.communicate(timeout=60)
        try:
            end = json.loads(out)["end"]
            return end["sum_sent"]["bits_per_second"]
        except (ValueError, KeyError):
            return None


def status(airmile):
    words = [airmile, "qcut", "watch", "--json"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    line = process.stdout.readline()
    process.kill()
    process.wait()
    return json.loads(line) if line else None


def measure(name, repeats, has_upload):
    upload = Upload(600) if has_upload else None
    time.sleep(SETTLES_S if has_upload else 0.5)
    loads = [page() for _ in range(repeats)]
    voice = Voice(5)
    found = voice.result()
    bps = upload.end() if upload else None
    say(variant=name, page_s=loads, upload_bps=bps, **found)
    # Let the queues drain.
    time.sleep(3)


def measure_deployed(airmile, repeats, deploy):
    """With an instance of `airmile qcut run`, which is then killed."""
    way, _, evidence = deploy.partition("-")
    modem = ["--modem", os.environ["AIRMILE_MODEM_LOG"]] if evidence != "trips" else []
    words = ["nice", "-n", "-15", airmile, "qcut", "run", "--up", "lte0", "--deploy", way, *modem]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    for _ in range(500):
        if status(airmile):
            break
        time.sleep(0.05)
    measure(deploy, repeats, True)
    now = status(airmile)
    say(status=now, variant=deploy)
    process.kill()
    process.wait()
    began = time.monotonic()
    is_back = subprocess.run(["curl", "-sf", "-m", "10", "-o", "/dev/null", f"http://{SERVER}/page-1000"]).returncode == 0
    say(variant=deploy, killed=True, is_back=is_back, back_s=time.monotonic() - began)
    time.sleep(1)


def measure_published(airmile, repeats, work):
    """With a shaper of its own that follows the rate which QCut tells."""
    file = os.path.join(work, "uplink.json")
    words = ["nice", "-n", "-15", airmile, "qcut", "run", "--up", "lte0", "--deploy", "none",
             "--modem", os.environ["AIRMILE_MODEM_LOG"], "--publish", f"file:{file}"]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    shaper = autorate.Published(file, "lte0", work, 6000)
    measure("published", repeats, True)
    say(status=shaper.end(), variant="published")
    process.terminate()
    process.wait()


def main():
    airmile, repeats, deploys, work = sys.argv[1], int(sys.argv[2]), sys.argv[3].split(","), sys.argv[4]
    for deploy in deploys:
        if deploy in ("none", "upload"):
            measure(deploy, repeats, deploy == "upload")
        elif deploy == "lab-autorate":
            # The lab's own discipline (measure.py).
            measure(deploy, repeats, True)
        elif deploy == "published":
            measure_published(airmile, repeats, work)
        elif deploy in autorate.SETTINGS:
            shaper = autorate.CakeAutorate(os.environ["CAKE_AUTORATE"], deploy, "lte0", work)
            measure(deploy, repeats, True)
            say(status=shaper.end(), variant=deploy)
        else:
            measure_deployed(airmile, repeats, deploy)
    return 0


if __name__ == "__main__":
    sys.exit(main())
