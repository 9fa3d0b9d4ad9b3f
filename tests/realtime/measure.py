#!/usr/bin/env python3
"""Measures the lab in real time: iperf3 through cells, and the lateness of TTIs.

    measure.py AIRMILE [SECONDS]

An idle 10 MHz cell: the throughput of iperf3 compared with that of the cell, from the blocks
of the modem log. Links of 100 and 300 Mbit/s (a link trace): lateness of TTIs under
sustained load. The bars apply to an otherwise idle machine with two cores: on a busy one
the figures are printed, and a missed bar is no failure.
"""

import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile

CELL = "seed = 5\n[core]\nrtt_ms = 20\n[cell]\nqueue_bytes = 3000000\n"
# The queue is 100 ms of the link.
LINK = "seed = 5\n[core]\nrtt_ms = 20\n[cell]\nqueue_bytes = {queue}\n[link]\ntrace = {{ down = \"{trace}\" }}\n"
# Maximum load average of an otherwise idle machine with two cores.
IDLE = 1.0


def run(airmile, scenario, out, seconds):
    """iperf3 through a scenario: its bits per second, and the manifest."""
    words = [airmile, "lab", "shell", scenario, "--server", "iperf3 -s -1", "-o", out, "--late-limit-ms", "60000",
             "--", "iperf3", "-c", "203.0.113.1", "-R", "-J", "-O", "2", "-t", str(seconds)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: status {done.returncode}\n{done.stderr}{done.stdout[-2000:]}")
    end = json.loads(done.stdout)["end"]
    manifest = json.load(open(os.path.join(out, "manifest.json")))
    return end["sum_received"]["bits_per_second"], manifest["clock"]


def carried(out, seconds):
    """Bits per second of the blocks that the phone received, without padding,
    in the middle of the run."""
    rows = [row for row in csv.DictReader(open(os.path.join(out, "grants.csv"))) if row["dir"] == "dl"]
    last = int(rows[-1]["tti"])
    start, end = last - (seconds - 1) * 1000, last - 1000
    used = [row for row in rows if start <= int(row["tti"]) < end and row["crc_ok"] == "1"]
    total = sum(int(row["tbs_bytes"]) - int(row["padding_bytes"] or 0) for row in used)
    return total * 8 / ((end - start) / 1000)


def main():
    airmile = os.path.abspath(sys.argv[1])
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    if not shutil.which("iperf3"):
        print("SKIPPED: needs iperf3")
        return 0
    missed = 0
    with tempfile.TemporaryDirectory() as work:
        file = os.path.join(work, "cell.toml")
        open(file, "w").write(CELL)
        got, clock = run(airmile, file, os.path.join(work, "cell"), seconds)
        cell = carried(os.path.join(work, "cell"), seconds)
        # 1448 of 1500 bytes are TCP's payload, with timestamps.
        ip = got * 1500 / 1448
        print(f"10 MHz cell: iperf3 {got / 1e6:.2f} Mbit/s, as IP {ip / 1e6:.2f};"
              f" the cell carried {cell / 1e6:.2f}: {ip / cell:.3f}")
        missed += abs(ip / cell - 1) > 0.05
        print_clock(clock)
        for rate in (100, 300):
            # Opportunities of 1500 bytes: 25 a ms are 300 Mbit/s; 25 in 3 ms are 100.
            lines = {100: [1] * 8 + [2] * 8 + [3] * 9, 300: [1] * 25}[rate]
            trace = os.path.join(work, f"{rate}.trace")
            open(trace, "w").write("".join(f"{ms}\n" for ms in lines))
            file = os.path.join(work, f"{rate}.toml")
            open(file, "w").write(LINK.format(queue=rate * 1_000_000 // 80, trace=trace))
            got, clock = run(airmile, file, os.path.join(work, str(rate)), seconds)
            print(f"{rate} Mbit/s link: iperf3 {got / 1e6:.1f} Mbit/s")
            print_clock(clock)
            missed += got * 1500 / 1448 < 0.95 * rate * 1e6
            idle = (clock["load_average"] or [0])[0] <= IDLE
            missed += idle and clock["lateness"]["p99_us"] > 1000
    return 1 if missed else 0


def print_clock(clock):
    late = clock["lateness"]
    print(f"    late us: p50 {late['p50_us']}, p99 {late['p99_us']}, p99.9 {late['p999_us']}, max {late['max_us']};"
          f" {late['late_ttis']} of {late['n_tti']} over a TTI; work p99 {late['work_p99_us']};"
          f" lost at devices {clock['lost_at_device']}; load average {clock['load_average'][0]:.1f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
