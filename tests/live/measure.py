#!/usr/bin/env python3
"""Measures `airmile live` on packets of an interface and a modem stream together.

    measure.py AIRMILE [MBIT_PER_S [SECONDS]]

iperf3 sends between two network namespaces, `airmile live` captures one end, and a modem log
grows at its own pace. Prints: CPU as a share of a core (bar: half a core at 100 Mbit/s),
packets dropped by the kernel, memory, and the delay from a burst's end to its report (bar:
a second, on an otherwise idle machine).
"""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from live import Live, sample, write_in_time

BAR = 0.5
LATE_S = 1.0
# Maximum load average at which the bar on delays applies.
IDLE = 1.0
# Minimum share of the requested rate at which the bar on CPU applies.
LEAST_REACHED = 0.9


def report_delays(events, zero):
    """Seconds from each burst's end to its first report with that end."""
    reported = set()
    for at, event in events:
        if event["event"] != "burst" or event["state"] == "open":
            continue
        key = event["dir"], event["start_tti"], event["end_tti"]
        if key not in reported:
            reported.add(key)
            yield at - zero - event["end_us"] / 1e6


def main():
    airmile = os.path.abspath(sys.argv[1])
    mbps, seconds = (float(word) for word in (sys.argv[2:4] + ["100", "20"][len(sys.argv[2:4]):]))
    if os.geteuid() != 0 or not shutil.which("iperf3"):
        print("SKIPPED: needs root and iperf3")
        return 0
    is_idle = os.getloadavg()[0] <= IDLE
    name = f"airmile{os.getpid()}"
    ip = lambda *words: subprocess.run(["ip", *words], check=True)
    inside = ["ip", "netns", "exec", name]
    with tempfile.TemporaryDirectory() as work:
        log = sample(airmile, work)
        ip("netns", "add", name)
        try:
            ip("link", "add", "am-out", "type", "veth", "peer", "name", "am-in", "netns", name)
            ip("addr", "add", "198.51.100.1/30", "dev", "am-out")
            ip("link", "set", "am-out", "up")
            ip("-n", name, "addr", "add", "198.51.100.2/30", "dev", "am-in")
            ip("-n", name, "link", "set", "am-in", "up")
            # Packets as they are on a radio interface: none is larger than the MTU.
            for words in (["ethtool", "-K", "am-out"], [*inside, "ethtool", "-K", "am-in"]):
                if shutil.which("ethtool"):
                    subprocess.run([*words, "tso", "off", "gso", "off", "gro", "off"], check=True, stdout=subprocess.DEVNULL)
            server = subprocess.Popen([*inside, "iperf3", "-s", "-1"], stdout=subprocess.DEVNULL)
            growing = os.path.join(work, "growing.mi2log")
            live = Live(airmile, "--follow", growing, "--interface", "am-out")
            time.sleep(0.5)
            until = time.monotonic() + seconds
            zero = []
            modem = threading.Thread(target=lambda: zero.append(write_in_time(log, growing, until)))
            modem.start()
            client = ["iperf3", "-c", "198.51.100.2", "-R", "-b", f"{mbps}M", "-t", str(int(seconds))]
            began, cpu = time.monotonic(), live.cpu_s()
            subprocess.run(client, check=True, stdout=subprocess.DEVNULL)
            wall, used = time.monotonic() - began, live.cpu_s() - cpu
            modem.join()
            time.sleep(1)
            packets, passed = live.metric("airmile_packets_total"), live.metric("airmile_packet_bytes_total")
            dropped, rss = live.metric("airmile_packets_dropped_total"), live.rss_mib()
            frames = live.metric("airmile_frames_total")
            live.end()
            server.wait(10)
        finally:
            ip("netns", "del", name)
    share, reached = used / wall, passed * 8 / wall / 1e6
    delays = sorted(report_delays(live.events, zero[0]))
    print(f"{reached:.1f} Mbit/s, {packets / wall:.0f} packets/s, {frames / wall:.0f} modem frames/s over {wall:.0f} s")
    print(f"CPU: {100 * share:.0f} % of a core (bar: {100 * BAR:.0f} %), {dropped:.0f} packets dropped, {rss:.0f} MiB")
    print(f"a burst is reported {delays[len(delays) // 2]:.2f} s after its end (median of {len(delays)}), "
          f"{delays[int(0.99 * len(delays))]:.2f} s (99 %), {delays[-1]:.2f} s at most (bar: 1 s)")
    print(f"load average: {os.getloadavg()[0]:.1f}")
    if reached < LEAST_REACHED * mbps or dropped:
        # CPU at another rate is not comparable with the bar.
        print(f"FAILED: {reached:.0f} of {mbps:.0f} Mbit/s reached, {dropped:.0f} packets dropped")
        return 1
    late = is_idle and delays[int(0.99 * len(delays))] > LATE_S
    return int(share > BAR or late or packets == 0 or frames == 0)


if __name__ == "__main__":
    sys.exit(main())
