"""Kills commands at each of their writes: a final name must then have no file, the old file,
or the complete new file.

    crash.py AIRMILE [--points N]

strace kills a command at its first, second, ... call that changes a file (write, rename,
unlink, mkdir, truncate), at up to N points spread over all of its calls; without strace this
part prints SKIPPED. Then each command is killed by SIGKILL at N moments of its run.
"""

import argparse
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

CALLS = ("write,writev,pwrite64,pwritev,pwritev2,copy_file_range,sendfile,ftruncate,fallocate,fsync,fdatasync,"
         "rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat,rmdir")
# Commands with an output directory OUT, each run on two inputs: the first creates the old files.
CASES = [
    ("decode", ["decode", "LOG", "-o", "OUT"]),
    ("packets", ["packets", "CAP", "--out", "OUT"]),
    ("packets csv", ["packets", "CAP", "--out", "OUT", "--table-format", "csv", "--html", "OUT/study.html"]),
    ("scrub log", ["scrub", "LOG", "-o", "OUT/copy.mi2log", "--key", "KEY"]),
    ("scrub capture", ["scrub", "CAP", "-o", "OUT/", "--key", "KEY"]),
    ("diagnose --html", ["diagnose", "LOG", "--html", "OUT/report.html"]),
    ("diagnose --perfetto", ["diagnose", "LOG", "--perfetto", "OUT/trace"]),
    ("diagnose --json -o", ["diagnose", "LOG", "CAP", "--json", "-o", "OUT"]),
    ("radio --html", ["radio", "LOG", "--html", "OUT/report.html"]),
    ("lab run", ["lab", "run", "SCENARIO", "-o", "OUT", "--force", "-q"]),
    ("man", ["man", "OUT"]),
]
SCENARIO = """
seed = {seed}
duration_ms = 1500
[cell]
queue_bytes = 300000
[[apps]]
name = "file"
workload = {{ kind = "file", bytes = {bytes} }}
"""


def files(directory):
    """Names and contents of the files under final names."""
    paths = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    return {str(p.relative_to(directory)): p.read_bytes() for p in paths if not p.name.startswith(".")}


def hidden(directory):
    return [path for path in directory.rglob(".*") if path.is_file()]


class Case:
    def __init__(self, airmile, work, name, words):
        self.airmile, self.work, self.name, self.words = airmile, work, name, words
        self.out = work / "out"

    def command(self, which):
        places = {"LOG": self.work / f"{which}.mi2log", "CAP": self.work / f"{which}.pcapng",
                  "SCENARIO": self.work / f"{which}.toml", "KEY": self.work / "key"}
        words = [str(places[word]) if word in places else word.replace("OUT", str(self.out)) for word in self.words]
        return [self.airmile, *words]

    def clean(self, before):
        """Restores the old output directory."""
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir()
        if before:
            shutil.copytree(before, self.out, dirs_exist_ok=True)

    def whole(self, which):
        self.clean(None)
        done = subprocess.run(self.command(which), stdin=subprocess.DEVNULL, capture_output=True)
        assert done.returncode == 0, (self.name, done)
        return files(self.out)

    def check(self, old, new, point):
        """Each file is unchanged, complete and new, or missing."""
        for name, content in files(self.out).items():
            allowed = [state[name] for state in (old, *new) if name in state]
            assert allowed, f"{self.name}, {point}: {name} is left, which no complete run creates"
            assert content in allowed, f"{self.name}, {point}: {name} is part of a file ({len(content)} bytes)"
        # A replaced file may only disappear once the new one exists.
        if old and "lab" not in self.name:
            gone = [name for name in old if not (self.out / name).exists()]
            assert not gone, f"{self.name}, {point}: {gone} disappeared before a replacement existed"


def run(case, before, old, new, points, has_strace):
    """Kills it at several points; returns how often it was killed."""
    killed = 0
    if has_strace:
        log = case.work / "calls"
        case.clean(before)
        subprocess.run(["strace", "-f", "-qq", "-o", str(log), "-e", f"trace={CALLS}", *case.command("b")],
                       stdin=subprocess.DEVNULL, capture_output=True)
        by_thread = {}
        for line in log.read_text(errors="replace").splitlines():
            if " resumed>" not in line and "(" in line:
                by_thread[line.split()[0]] = by_thread.get(line.split()[0], 0) + 1
        # strace counts the calls of each thread separately.
        count = max(by_thread.values(), default=0)
        step = max(count / points, 1)
        for point in sorted({int(1 + step * n) for n in range(points + 1)} | {count, max(count - 1, 1)}):
            case.clean(before)
            done = subprocess.run(["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={CALLS}", "-e",
                                   f"inject={CALLS}:signal=KILL:when={point}", *case.command("b")],
                                  stdin=subprocess.DEVNULL, capture_output=True)
            killed += done.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL)
            case.check(old, new, f"killed at call {point} of {count}")
    case.clean(before)
    began = time.monotonic()
    subprocess.run(case.command("b"), stdin=subprocess.DEVNULL, capture_output=True)
    took = time.monotonic() - began
    for n in range(points):
        case.clean(before)
        child = subprocess.Popen(case.command("b"), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        try:
            child.wait(timeout=took * (n + 0.5) / points)
        except subprocess.TimeoutExpired:
            child.kill()
            killed += 1
        child.wait()
        case.check(old, new, f"killed after {n + 0.5:.1f}/{points} of its time")
    return killed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("airmile")
    parser.add_argument("--points", type=int, default=25)
    parser.add_argument("--only", help="cases whose name contains this")
    options = parser.parse_args()
    airmile = shutil.which(options.airmile) or str(pathlib.Path(options.airmile).resolve())
    has_strace = shutil.which("strace") is not None
    if has_strace:
        has_strace = subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], capture_output=True).returncode == 0
    if not has_strace:
        print("SKIPPED: kills at each write: no strace (or no permission to trace); only moments of the run are tried")
    failures = 0
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        (work / "key").write_text("airmile-scrub-key-1 " + "5a" * 32 + "\n")
        (work / "key").chmod(0o600)
        for which, seed in (("a", 1), ("b", 2)):
            (work / f"{which}.toml").write_text(SCENARIO.format(seed=seed, bytes=300_000 + seed * 100_000))
            ran = work / f"run-{which}"
            subprocess.run([airmile, "lab", "run", str(work / f"{which}.toml"), "-o", str(ran), "-q"], check=True,
                           stdout=subprocess.DEVNULL)
            shutil.copy(ran / "modem.mi2log", work / f"{which}.mi2log")
            capture = next(path for path in sorted(ran.iterdir()) if path.suffix in (".pcapng", ".pcap"))
            shutil.copy(capture, work / f"{which}.pcapng")
        for name, words in CASES:
            if options.only and options.only not in name:
                continue
            case = Case(airmile, work, name, words)
            old = case.whole("a")
            before = work / "before"
            shutil.rmtree(before, ignore_errors=True)
            shutil.copytree(case.out, before)
            # Twice, as some files contain their creation time.
            new = [case.whole("b"), case.whole("b")]
            unsteady = [each for each in new[0] if new[0][each] != new[1].get(each)]
            try:
                assert not unsteady, f"{name}: two runs differ in {unsteady}: partial files cannot be detected"
                killed = run(case, None, {}, new, options.points, has_strace)
                killed += run(case, before, old, new, options.points, has_strace)
                print(f"{name:22} {len(new[0]):3} files, killed {killed} times: nothing, the old or the new")
                assert killed > options.points, f"{name}: was killed {killed} times only"
            except AssertionError as error:
                failures += 1
                print(f"{error}", file=sys.stderr)
    print("no partial file has a final name" if not failures else f"{failures} commands leave partial files")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
