#!/usr/bin/env python3
"""CPU time of `airmile qcut run` at 50 Mbit/s up, by deployment.

    cpu.py AIRMILE [MBIT_PER_S [SECONDS]]

iperf3 sends TCP at that rate between two network namespaces. All CPU time of the process
counts, including the kernel's work for it; between namespaces that includes the processing
of a packet at the far host, so receiving at both ends is moved to the other core (RPS), if
there is one. Bar: under 10 % of a core at 90 % of the rate or more.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

from hosts import FAR, Hosts, until
from restore import DEPLOYS, Instance

BAR = 0.10
LEAST_RATE = 0.9


def lead_receiving_away(hosts, pid):
    """Pins the process to the first core, and receiving to the second."""
    if (os.cpu_count() or 1) < 2:
        return
    os.sched_setaffinity(pid, {0})
    for name in (hosts.near, hosts.far):
        subprocess.run(hosts.inside(name, "sh", "-c", "echo 2 > /sys/class/net/up0/queues/rx-0/rps_cpus"),
                       check=True)


def main():
    airmile = os.path.abspath(sys.argv[1])
    mbps, seconds = (sys.argv[2:4] + ["50", "15"][len(sys.argv[2:4]):])
    if os.geteuid() != 0 or not shutil.which("iperf3"):
        print("SKIPPED: needs root and iperf3")
        return 0
    missed = 0
    with Hosts() as hosts:
        server = subprocess.Popen(hosts.inside(hosts.far, "iperf3", "-s"), stdout=subprocess.DEVNULL)
        until("iperf3 listens", lambda: b":1451" in subprocess.run(
            hosts.inside(hosts.far, "cat", "/proc/net/tcp6", "/proc/net/tcp"), capture_output=True).stdout)
        for deploy in DEPLOYS:
            instance = Instance(hosts, airmile, "--deploy", deploy)
            os.setpriority(os.PRIO_PROCESS, instance.process.pid, -15)
            lead_receiving_away(hosts, instance.process.pid)
            before = instance.status()
            words = ["iperf3", "-c", FAR, "-b", f"{mbps}M", "-t", seconds, "-J"]
            done = subprocess.run(hosts.inside(hosts.near, *words), capture_output=True, text=True)
            time.sleep(0.3)
            after, lasted = instance.status(), float(seconds)
            share = (after["cpu_s"] - before["cpu_s"]) / lasted
            bps = json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"]
            dropped = sum(each["dropped_aqm"] + each["dropped_full"] for each in after["classes"])
            print(f"{deploy:8} {bps / 1e6:5.1f} Mbit/s up: {share:6.1%} of a core (bar {BAR:.0%}), {dropped} dropped,"
                  f" {after['failed_packets']} failed, load average {os.getloadavg()[0]:.1f}")
            missed += share >= BAR or bps < LEAST_RATE * float(mbps) * 1e6
            instance.end(signal.SIGTERM)
        server.kill()
        server.wait()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
