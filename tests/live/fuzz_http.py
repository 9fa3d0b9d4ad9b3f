#!/usr/bin/env python3
"""Fuzzes the HTTP interface of `airmile live` from its own OpenAPI document, together with
slow and stuck clients.

    fuzz_http.py AIRMILE [EXAMPLES]

schemathesis sends requests by /v1/openapi.json, while some clients never finish a request,
send a byte a second, or never read their events, and the log keeps growing. At the end the
command must be running, have read the whole log, and report the same bursts as for the file.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import venv

from live import Live, sample, write_in_time

SCHEMATHESIS = "schemathesis==4.32.5"
EXAMPLES = 200
# Memory may grow with the data kept for readers, not with requests (chosen here).
MOST_MIB = 400


def tool():
    """schemathesis in its own environment, or the reason for its absence."""
    place = os.path.abspath("target/fuzz-http-venv")
    program = os.path.join(place, "bin", "schemathesis")
    if not os.path.exists(program):
        venv.create(place, with_pip=True)
        pip = [os.path.join(place, "bin", "pip"), "install", "--quiet", SCHEMATHESIS]
        done = subprocess.run(pip, capture_output=True, text=True)
        if done.returncode:
            return None, (done.stderr.strip().splitlines() or ["pip failed"])[-1]
    return program, None


class Stuck:
    """Clients that hold a connection until the server closes it."""

    def __init__(self, address):
        self.address, self.held, self.over = address, [], False
        for _ in range(20):
            self.open(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for _ in range(20):
            self.open(b"GET /v1/status HTTP/1.1\r\nHost: loc")
        for _ in range(10):
            self.open(b"")
        self.slow = [self.open(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\nX-Slow: ") for _ in range(20)]
        threading.Thread(target=self.drip, daemon=True).start()

    def open(self, begun):
        client = socket.create_connection(self.address)
        # A small buffer, so that it is soon full without reading.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(begun)
        self.held.append(client)
        return client

    def drip(self):
        while not self.over:
            time.sleep(1)
            for client in self.slow:
                try:
                    client.send(b"a")
                except OSError:
                    pass

    def closed(self):
        """The number of slow clients whose connection was closed."""
        def gone(client):
            client.setblocking(False)
            try:
                # An unfinished request can only be closed.
                return client.recv(1) == b""
            except BlockingIOError:
                return False
            except OSError:
                return True
        return sum(map(gone, self.slow))


def key(burst):
    return burst["dir"], burst["start_tti"], burst["end_tti"], burst["bytes"]


def reported(events):
    """Bursts as two sets: decided, and all that were reported. Those that are not decided yet,
    as an epoch is most of the log here, may have been reported before their last records came."""
    bursts = [e for _, e in events if e["event"] == "burst"]
    return {key(e) for e in bursts if e["state"] == "decided"}, {key(e) for e in bursts}


def is_reported(burst, all_reported):
    """Whether a burst in its direction and time was reported."""
    way, start, end, _ = burst
    return any(way == other[0] and start <= other[2] and other[1] <= end for other in all_reported)


def of_file(airmile, log):
    text = subprocess.run([airmile, "radio", log, "--json"], check=True, capture_output=True, text=True).stdout
    return set(map(key, json.loads(text)["bursts"]))


def main():
    airmile = os.path.abspath(sys.argv[1])
    examples = int(sys.argv[2]) if len(sys.argv) > 2 else EXAMPLES
    program, why = tool()
    if program is None:
        print(f"SKIPPED: {SCHEMATHESIS} cannot be installed: {why}")
        return 0
    failed = []
    with tempfile.TemporaryDirectory() as work:
        log = sample(airmile, work)
        growing = os.path.join(work, "growing.mi2log")
        live = Live(airmile, "--follow", growing)
        modem = threading.Thread(target=write_in_time, args=(log, growing))
        modem.start()
        stuck = Stuck(live.address)
        began = time.monotonic()
        # The event stream has no end: only the clients above request it.
        words = [program, "run", live.url + "/v1/openapi.json", "--exclude-path", "/v1/events", "--checks", "all",
                 "--max-examples", str(examples), "--request-timeout", "5", "--seed", "1", "--no-color"]
        done = subprocess.run(words, cwd=work)
        if done.returncode:
            failed.append(f"schemathesis: status {done.returncode}")
        # A client that needs more than half a minute for a request is disconnected.
        time.sleep(max(0, 35 - (time.monotonic() - began)))
        slow, sent_away = len(stuck.slow), stuck.closed()
        if sent_away < slow:
            failed.append(f"{slow - sent_away} of {slow} slow clients still hold a connection")
        modem.join()
        size = os.path.getsize(log)
        for _ in range(200):
            if json.loads(live.get("/v1/status"))["intake"]["bytes"] == size:
                break
            time.sleep(0.1)
        else:
            failed.append("the log was not read completely")
        rss = live.rss_mib()
        if rss > MOST_MIB:
            failed.append(f"{rss:.0f} MiB")
        stuck.over = True
        # The log is polled several times a second.
        time.sleep(2)
        live.end()
        (decided, all_reported), file = reported(live.events), of_file(airmile, log)
        wrong, missing = decided - file, {burst for burst in file if not is_reported(burst, all_reported)}
        if not decided or wrong or missing:
            failed.append(f"{len(wrong)} of {len(decided)} bursts are not the file's, {len(missing)} of its {len(file)} were never reported")
        print(f"{len(file - missing)} of the file's {len(file)} bursts were reported, {rss:.0f} MiB, {sent_away} slow clients disconnected")
    for each in failed:
        print(f"FAILED: {each}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
