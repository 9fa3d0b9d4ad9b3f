#!/usr/bin/env python3
"""Starts and ends many runs in real time: nothing may be left behind.

Each run starts a scenario with a file server and a server's command; a third of them end by
themselves, a third by SIGTERM, a third by SIGKILL. After each, no additional process,
network namespace, device or mount may exist. The start and end of those that end by
themselves are timed.

    soak.py AIRMILE [RUNS]
"""

import os
import signal
import subprocess
import sys
import tempfile
import time

MARK = "98765.4321"
# Maximum time for a run that does nothing to start and end.
LIMIT_S = 3.0
ENDINGS = [None, signal.SIGTERM, signal.SIGKILL]


def processes():
    """Command lines that contain our mark."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = open(f"/proc/{pid}/cmdline", "rb").read()
        except OSError:
            continue
        if MARK.encode() in line and int(pid) != os.getpid():
            found.append(line.replace(b"\0", b" ").decode(errors="replace"))
    return found


def namespaces():
    """Network namespaces with a process or thread, or with a name."""
    found = set(os.listdir("/run/netns")) if os.path.isdir("/run/netns") else set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                found.add(os.readlink(f"/proc/{pid}/task/{task}/ns/net"))
        except OSError:
            continue
    return found


def devices():
    return set(os.listdir("/sys/class/net"))


def mounts():
    return len(open("/proc/self/mounts").readlines())


def state():
    return processes(), namespaces(), devices(), mounts()


def settled(before):
    """What exists in addition to the state before, after enough time for cleanup. Other
    processes may create namespaces meanwhile; one of ours contains a process of ours."""
    until = time.monotonic() + 10
    while True:
        left, spaces, links, mounted = state()
        more = list(left) + sorted(links - before[2])
        if not os.environ.get("SHARED_MACHINE"):
            more += sorted(spaces - before[1])
            more += ["a mount"] * max(0, mounted - before[3])
        if not more or time.monotonic() > until:
            return more
        time.sleep(0.02)


def able():
    """Whether namespaces can be created here, tried with another program."""
    tries = [["unshare", flags, "true"] for flags in ("-nm", "-Unm")]
    return os.access("/dev/net/tun", os.R_OK | os.W_OK) and any(
        subprocess.run(words, capture_output=True).returncode == 0 for words in tries)


def main():
    airmile = os.path.abspath(sys.argv[1])
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    if not able():
        print("SKIPPED: needs root or user namespaces, and /dev/net/tun")
        return 0
    before, took, wrong = state(), [], 0
    with tempfile.TemporaryDirectory() as www:
        for n in range(runs):
            ending = ENDINGS[n % len(ENDINGS)]
            server = f"sleep {MARK} & exec {sys.executable} -m http.server 8000"
            script = "true" if ending is None else f"sleep {MARK} & echo up; sleep {MARK}"
            words = [airmile, "lab", "shell", "slow-start-restart-proxy", "--serve", www]
            if ending is not None:
                words += ["--server", server]
            start = time.monotonic()
            run = subprocess.Popen(words + ["--", "sh", "-c", script],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            if ending is None:
                run.wait()
                took.append(time.monotonic() - start)
            else:
                run.stdout.readline()
                run.send_signal(ending)
                run.wait()
            expected = {None: (0, 5), signal.SIGTERM: (143,), signal.SIGKILL: (-9,)}[ending]
            more = settled(before)
            if run.returncode not in expected or more:
                wrong += 1
                print(f"run {n}, {ending}: status {run.returncode}, left: {more}")
    took.sort()
    over = sum(seconds > LIMIT_S for seconds in took)
    load = os.getloadavg()[0]
    print(f"{runs} runs, {wrong} wrong; started and ended in {took[len(took) // 2]:.2f} s (median),"
          f" {took[-1]:.2f} s (most), {over} over {LIMIT_S} s; load average {load:.1f}")
    return 1 if wrong or over else 0


if __name__ == "__main__":
    sys.exit(main())
