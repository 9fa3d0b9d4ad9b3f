"""Compares a study on two workers with one process: the same rows, and its cost.

python measure.py AIRMILE PACKETS FILES DIR [ENGINE] [ROUNDS]

Generates captures in DIR, studies them in one process and on the engine (`ray` by default)
alternately, ROUNDS times (3), kills a worker in the middle of another run, compares all
tables row by row, and prints CPU time, wall time and memory. The CPU time of all processes,
including Ray's own, is printed if a control group can be created (Linux, root). Needs numpy,
DuckDB and, for Ray, airmile[ray].
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).parent
BAR = 0.30
"""Maximum overhead, as a share of the single process's CPU time."""


class Group:
    """A control group: its CPU time covers every process that ever ran in it."""

    def __init__(self) -> None:
        self._dir: Path | None = None
        for top in ("/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
            directory = Path(top, f"airmile-scale-{os.getpid()}")
            with suppress(OSError):
                if (Path(top) / "cgroup.procs").exists():
                    directory.mkdir()
                    self._dir = directory
                    return

    def enter(self) -> None:
        """Move the calling process there, with all its future children."""
        if self._dir is not None:
            (self._dir / "cgroup.procs").write_text(str(os.getpid()))

    def cpu_s(self) -> float | None:
        """CPU seconds so far; `None` if it cannot be measured."""
        if self._dir is None:
            return None
        with suppress(OSError):
            return int((self._dir / "cpuacct.usage").read_text()) / 1e9
        for line in (self._dir / "cpu.stat").read_text().splitlines():
            if line.startswith("usage_usec"):
                return int(line.split()[1]) / 1e6
        return None

    def remove(self) -> None:
        """Remove it, after a short wait for remaining processes."""
        for _ in range(50):
            with suppress(OSError):
                if self._dir is not None:
                    self._dir.rmdir()
                return
            time.sleep(0.1)


class Run:
    """A finished command: CPU seconds (its own and all processes'), seconds, MB."""

    def __init__(self, command: list[str]) -> None:
        group = Group()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        begun = time.monotonic()
        try:
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, preexec_fn=group.enter)
            self.wall_s = time.monotonic() - begun
            self.all_cpu_s = group.cpu_s()
        finally:
            group.remove()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        self.peak_mb = after.ru_maxrss / 1024


def steps(out: Path) -> list[dict[str, object]]:
    """The manifests of a run."""
    return [json.loads(path.read_text()) for path in sorted((out / "_work/done").glob("*.json"))]


def passes(out: Path) -> dict[str, tuple[float, float]]:
    """For each kind of step: total CPU seconds, and the peak MB of a worker."""
    found: dict[str, tuple[float, float]] = {}
    for step in steps(out):
        name = str(step["key"]).partition("-")[0]
        cpu, peak = found.get(name, (0.0, 0.0))
        cpu += float(str(step["cpu_s"]))
        found[name] = (cpu, max(peak, int(str(step["peak_kb"])) / 1024))
    return found


def kill_a_worker(out: Path, after: int, pids: list[int], over: threading.Event) -> None:
    """Kills a process that runs a step, once a number of steps are done."""
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


def measured(alone: list[str], parts: list[str], one: Path, two: Path, rounds: int) -> None:
    """Run one process and the engine alternately."""
    overheads, everything = [], []
    for n in range(rounds):
        for out in (one, two):
            shutil.rmtree(out, ignore_errors=True)
        single = Run(alone)
        print(
            f"{n}: one process: {single.cpu_s:.2f} s of CPU, {single.wall_s:.1f} s, "
            f"{single.peak_mb:.0f} MB"
        )
        engine = Run(parts)
        by_pass = passes(two)
        by_step = ", ".join(
            f"{name} {cpu:.2f} s ({peak:.0f} MB a worker)" for name, (cpu, peak) in by_pass.items()
        )
        overheads.append(sum(cpu for cpu, _ in by_pass.values()) / single.cpu_s - 1)
        print(f"   engine: {engine.wall_s:.1f} s; CPU of {by_step}: {overheads[-1]:+.0%}")
        if engine.all_cpu_s is not None:
            everything.append(engine.all_cpu_s / single.cpu_s - 1)
            print(f"   CPU of all processes {engine.all_cpu_s:.2f} s: {everything[-1]:+.0%}")
    for what, ratios in (("both passes", overheads), ("all processes", everything)):
        if ratios:
            print(
                f"{what}: median {statistics.median(ratios):+.0%}, "
                f"{min(ratios):+.0%} to {max(ratios):+.0%} (bar {BAR:+.0%})"
            )


def main() -> int:
    """Print the figures; return 1 if rows differ."""
    airmile, packets, n_files, where = sys.argv[1:5]
    engine = sys.argv[5] if len(sys.argv) > 5 else "ray"
    rounds = int(sys.argv[6]) if len(sys.argv) > 6 else 3
    work = Path(where)
    captures = work / "captures"
    shutil.rmtree(work, ignore_errors=True)
    captures.mkdir(parents=True)
    subprocess.run([sys.executable, HERE / "generate.py", packets, n_files, captures], check=True)
    files = [str(path) for path in sorted(captures.iterdir())]
    one, two, killed = (work / name for name in ("one", "two", "killed"))
    common = ["--client", "10.0.0.0/8", "-q"]
    alone = [airmile, "packets", *files, "--threads", "1", "--out", str(one), *common]

    def parts(out: Path) -> list[str]:
        args = ["--engine", engine, "--workers", "2", "--out", str(out), *common]
        return [airmile, "packets", str(captures), *args]

    measured(alone, parts(two), one, two, rounds)
    same = subprocess.run([sys.executable, HERE / "compare.py", one, two], check=False).returncode
    if engine == "processes":
        # The run ends when a worker is killed, and continues with the same command.
        return same
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
