"""A study on two workers beside one process: the same rows, and what it costs.

python measure.py AIRMILE PACKETS FILES DIR [ENGINE]

Makes captures in DIR, studies them in one process and on the engine (`ray` unless it is
named), kills a worker in the middle of another run, compares all tables row for row, and
prints CPU time, wall time and memory. Needs numpy, DuckDB and, for Ray, airmile[ray].
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).parent


def cpu_of(command: list[str]) -> tuple[float, float, float]:
    """CPU seconds, wall seconds and peak MB of a command and all it started."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, time.monotonic() - begun, after.ru_maxrss / 1024


def steps(out: Path) -> list[dict[str, object]]:
    """The manifests of a run."""
    return [json.loads(path.read_text()) for path in sorted((out / "_work/done").glob("*.json"))]


def kill_a_worker(out: Path, after: int, pids: list[int], over: threading.Event) -> None:
    """Kills a process that runs a step, once so many are done."""
    while not over.is_set():
        if len(list((out / "_work/done").glob("*.json"))) >= after:
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    files = [os.readlink(fd) for fd in (process / "fd").iterdir()]
                except OSError:
                    continue
                if any(str(out / "_work/scratch") in file for file in files):
                    os.kill(int(process.name), signal.SIGKILL)
                    return pids.append(int(process.name))
        time.sleep(0.01)
    return None


def main() -> int:
    """Print the figures; 1 where rows differ."""
    airmile, packets, n_files, where = sys.argv[1:5]
    engine = sys.argv[5] if len(sys.argv) > 5 else "ray"
    work = Path(where)
    captures = work / "captures"
    shutil.rmtree(work, ignore_errors=True)
    captures.mkdir(parents=True)
    subprocess.run([sys.executable, HERE / "generate.py", packets, n_files, captures], check=True)
    files = [str(path) for path in sorted(captures.iterdir())]
    one, two, killed = (work / name for name in ("one", "two", "killed"))
    alone = [airmile, "packets", *files, "--threads", "1", "--out", str(one), "-q"]
    cpu, wall, peak = cpu_of(alone)
    print(f"one process: {cpu:.1f} s of CPU, {wall:.1f} s, {peak:.0f} MB")

    def parts(out: Path) -> list[str]:
        args = ["--engine", engine, "--workers", "2", "--out", str(out), "-q"]
        return [airmile, "packets", str(captures), *args]

    _, wall, _ = cpu_of(parts(two))
    print(f"{engine}, two workers: {wall:.1f} s")
    by_pass: dict[str, float] = {}
    peaks: dict[str, float] = {}
    for step in steps(two):
        name = str(step["key"]).partition("-")[0]
        by_pass[name] = by_pass.get(name, 0.0) + float(str(step["cpu_s"]))
        peaks[name] = max(peaks.get(name, 0.0), int(str(step["peak_kb"])) / 1024)
    total = sum(by_pass.values())
    for name, seconds in by_pass.items():
        print(f"  {name}: {seconds:.1f} s of CPU, at most {peaks[name]:.0f} MB a worker")
    print(f"  overhead of both passes: {total / cpu - 1:+.0%} (bar +30 %)")
    same = subprocess.run([sys.executable, HERE / "compare.py", one, two], check=False).returncode
    over, pids = threading.Event(), list[int]()
    killer = threading.Thread(target=kill_a_worker, args=(killed, int(n_files) + 2, pids, over))
    killer.start()
    try:
        subprocess.run(parts(killed), check=True, stdout=subprocess.DEVNULL)
    finally:
        over.set()
        killer.join()
    print(f"killed {len(pids)} of its workers:")
    again = subprocess.run(
        [sys.executable, HERE / "compare.py", one, killed], check=False
    ).returncode
    return int(bool(same or again or not pids))


if __name__ == "__main__":
    sys.exit(main())
