"""Runs whole commands on mutated files: none may panic, hang, exhaust memory, or print
terminal control sequences.

    fuzz_commands.py AIRMILE [--mutants N] [--seed N] [--seconds N] [--first N]

Seeds are files of the lab, the corpora of the parsers, an HTTP archive and a probe's log,
and real logs and captures if available (AIRMILE_SHARED, default ../shared). Mutant N of a
seed is the same on every machine; `--first N --mutants 1` repeats it. Each command has 1 GB
of address space, 20 s of CPU time and 120 s of wall time. Exits with status 1 after the
first failure, whose file is kept.
"""

import argparse
import collections
import gzip
import io
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MEMORY_BYTES = 1 << 30
CPU_S = 20
# Generous, for a machine with other load.
WALL_S = 120
SEED_BYTES = 48 * 1024
STATUSES = {0, 1, 2, 3, 4}
# Control characters except line feed and tab, C1, bidirectional controls, separators.
ACTIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")

TOKENS = [
    b"9223372036854775808", b"-1", b"18446744073709551615", b"1e308", b"NaN", b"64", b"255", b"0",
    b"\x1b[2J\x1b]0;x\x07", "\u202e\u2066\u2028".encode(), "\x9b31m".encode(), b"\nVerdict: radio",
    b'"', b"\\", b",", b"\r\n", b"\0", b"[" * 5_000, b"{" * 300, b"x" * 70_000, b'{"a":', b"]}",
]

# Input kinds of each command; commands are also tried on other kinds now and then.
COMMANDS = [
    ("inspect", ["inspect", "IN"]),
    ("inspect --json", ["inspect", "--json", "IN"]),
    ("diagnose", ["diagnose", "-v", "IN"]),
    ("diagnose --json", ["diagnose", "--json", "IN"]),
    ("diagnose --html", ["diagnose", "IN", "--html", "OUT/r.html", "--perfetto", "OUT/t"]),
    ("radio", ["radio", "IN"]),
    ("radio --from", ["radio", "--json", "IN", "--from", "0.5"]),
    ("decode", ["decode", "IN"]),
    ("decode --format csv", ["decode", "IN", "--format", "csv", "--only", "grant"]),
    ("decode -o", ["decode", "IN", "-o", "OUT"]),
    ("decode --format pcapng", ["decode", "IN", "--format", "pcapng", "-o", "OUT/air.pcapng"]),
    ("packets", ["packets", "IN"]),
    ("packets --json", ["packets", "--json", "IN"]),
    ("packets --out", ["packets", "IN", "--out", "OUT", "--table-format", "csv"]),
    ("scrub", ["scrub", "IN", "-o", "OUT/"]),
    ("compare", ["compare", "IN", "IN"]),
]


def seeds(airmile, work):
    """Names and bytes to mutate."""
    found = []
    run = work / "run"
    subprocess.run([airmile, "lab", "run", "sample-download", "-o", run, "-q"], check=True, stdout=subprocess.DEVNULL)
    found += [(path.name, path) for path in sorted(run.iterdir())]
    for corpus in ["application_log", "capture", "log_text", "scrub_capture", "scrub_log", "sniffer", "deframe", "coresight"]:
        files = sorted((ROOT / "fuzz/corpus" / corpus).glob("*"))
        found += [(f"{corpus}/{path.name}", path) for path in files]
    shared = pathlib.Path(os.environ.get("AIRMILE_SHARED", ROOT.parent / "shared")) / "data"
    real = [p for kind in ["diag/*.mi2log", "diag/*.qmdl", "modern/*.qmdl", "pcap/*"] for p in sorted(shared.glob(kind))]
    if not real:
        print("SKIPPED: no real logs and captures: AIRMILE_SHARED does not exist")
    found += [(path.name, path) for path in real[:60]]
    out = [(name, path.read_bytes()[:SEED_BYTES]) for name, path in found if path.is_file() and path.stat().st_size]
    out += [("page.har", har()), ("probe.json", probe()), ("logs.tar", archive(out))]
    return out


def archive(files):
    """A tar archive of two logs, one of them compressed, under names that need an entry of their own."""
    buffer = io.BytesIO()
    logs = [data[:16_000] for name, data in files if name.startswith("scrub_log/")][:2]
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for number, data in enumerate([*logs, gzip.compress(logs[0], 1, mtime=0)]):
            member = tarfile.TarInfo(f"{'long/' * 30}log-{number}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def har():
    entry = {
        "startedDateTime": "2026-11-20T12:00:00.000Z", "time": 900.0,
        "request": {"method": "GET", "url": "https://a.example/x?y", "headersSize": 10, "bodySize": 0},
        "response": {"status": 200, "headersSize": 10, "bodySize": 4_000_000, "content": {"size": 4_000_000}},
        "timings": {"blocked": 1, "dns": 2, "connect": 30, "ssl": 20, "send": 1, "wait": 30, "receive": 800},
    }
    return json.dumps({"log": {"version": "1.2", "creator": {"name": "x"}, "entries": [entry] * 5}}).encode()


def probe():
    transfers = [
        {"id": f"port-{port}-{n}", "connection": at, "turn": n, "start_us": n * 10**6, "first_byte_us": n * 10**6 + 40_000,
         "end_us": n * 10**6 + 900_000, "bytes": 400_000, "pause_us": None, "failed": None,
         "arrivals": [[us, 100_000] for us in (40_000, 60_000, 500_000, 900_000)]}
        for n in range(1, 7) for at, port in enumerate((80, 443))
    ]
    connections = [
        {"port": port, "tls": False, "round": 0, "server": "192.0.2.1", "start_us": 0, "connect_us": 40_000, "tls_us": None}
        for port in (80, 443)
    ]
    log = {"document": "probe", "version": 1, "host": "a.example", "segment_bytes": 400_000, "segments": 6,
           "pause_ms": 0, "rounds": 1, "seed": 1, "server_restarts_after_idle": None,
           "connections": connections, "transfers": transfers}
    return json.dumps(log, indent=1).encode()


def damaged(data, other, rng):
    """One mutation; most affect a single byte, as those reach deepest."""
    data = bytearray(data or b"\0")
    at = rng.randrange(len(data))
    kind = rng.randrange(12)
    if kind < 3:
        data[at] ^= 1 << rng.randrange(8)
    elif kind == 3:
        data[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFE, 0xFF])
    elif kind == 4:
        head = rng.randrange(min(len(data), 64))
        data[head : head + 4] = struct.pack("<I", rng.choice([0, 1, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF]))
    elif kind == 5:
        del data[at:]
    elif kind == 6:
        del data[at : at + rng.randrange(1, 200)]
    elif kind == 7:
        start = rng.randrange(len(other) + 1)
        data[at:at] = other[start : start + rng.randrange(2_000)]
    elif kind == 8:
        data[at:at] = rng.choice(TOKENS)
    elif kind == 9:
        numbers = list(re.finditer(rb"\d+", bytes(data[:SEED_BYTES])))
        if numbers:
            span = rng.choice(numbers).span()
            data[slice(*span)] = rng.choice(TOKENS[:8])
    elif kind == 10:
        end = at + rng.randrange(1, 400)
        data[at:at] = bytes(data[at:end]) * rng.randrange(2, 60)
    else:
        texts = list(re.finditer(rb'"[^"\n]{2,}"', bytes(data[:SEED_BYTES])))
        if texts:
            span = rng.choice(texts).span()
            token = rng.choice(TOKENS[8:12])
            data[span[0] + 1 : span[1] - 1] = json.dumps(token.decode())[1:-1].encode() if rng.random() < 0.7 else token
    return bytes(data)


def mutant(number, seed, inputs):
    rng = random.Random(seed * 1_000_003 + number)
    name, data = rng.choice(inputs)
    other = rng.choice(inputs)[1]
    for _ in range(rng.choice([1, 1, 2, 4])):
        data = damaged(data, other, rng)
    kind = rng.randrange(8)
    if kind == 0:
        data = gzip.compress(data, 1, mtime=0)
    elif kind == 1:
        data = damaged(gzip.compress(data, 1, mtime=0), other, rng)
    return name, data, rng.choice(COMMANDS)


def bombs(work):
    """Decompression bombs: commands must reject them within their limits."""
    def packed(name, head, piece, times):
        path = work / name
        with gzip.open(path, "wb", 1) as out:
            out.write(head)
            for _ in range(times):
                out.write(piece)
        return path

    mb = 1 << 20
    table = b"tti,dir,n_prb\n1,dl,"
    # A tar archive of a file whose name is a gigabyte.
    long_name = tarfile.TarInfo("././@LongLink")
    long_name.type, long_name.size = tarfile.GNUTYPE_LONGNAME, 1_000 * mb
    long_name = long_name.tobuf(tarfile.GNU_FORMAT)
    return [
        ("field", packed("field.csv.gz", table, b"7" * mb, 3_000), ["inspect", "radio"]),
        ("columns", packed("columns.csv.gz", b"tti,dir,n_prb", b",x" * 500_000, 10), ["inspect", "radio"]),
        ("transfers", packed("transfers.csv.gz", b"id,start_us,end_us\n", b"a,1,2\n" * 100_000, 30), ["inspect"]),
        ("probe", packed("probe.json.gz", b'{"document": "probe", ', b" " * mb, 1_000), ["compare"]),
        ("har text", packed("text.har.gz", b'{"log": {"version": "1.2", "entries": [{"a": "', b"x" * mb, 300), ["inspect"]),
        ("har nest", packed("nest.har.gz", b'{"log": {"version": "1.2", "entries": [', b"[" * mb, 100), ["inspect"]),
        ("capture", packed("zeros.pcap.gz", bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"), bytes(mb), 100),
         ["inspect", "packets", "diagnose"]),
        ("archive", packed("name.tar.gz", long_name, bytes(mb), 1_000), ["inspect", "diagnose"]),
        ("lines", packed("lines.csv.gz", b"tti,dir,n_prb\n", b"\n" * mb, 1_000), ["inspect"]),
    ]


class Failure(Exception):
    pass


def run(airmile, args, peak):
    """Runs a command with its limits; returns its status, or raises."""
    environment = dict(os.environ, RUST_BACKTRACE="0")
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen([airmile, *args], stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment)
        resource.prlimit(child.pid, resource.RLIMIT_CPU, (CPU_S, CPU_S))
        timer = threading.Timer(WALL_S, child.kill)
        timer.start()
        begun = time.monotonic()
        _, waited, usage = os.wait4(child.pid, 0)
        took = time.monotonic() - begun
        timer.cancel()
        child.returncode = status = os.waitstatus_to_exitcode(waited)
        peak[0] = max(peak[0], usage.ru_maxrss)
        out.seek(0)
        err.seek(0)
        printed, errors = out.read(4 << 20), err.read(1 << 20)
    if took >= WALL_S or usage.ru_utime + usage.ru_stime >= CPU_S:
        raise Failure(f"took {took:.0f} s, {usage.ru_utime + usage.ru_stime:.0f} s of a core")
    words = errors.decode(errors="replace")
    if b"panicked" in errors or status not in STATUSES:
        signalled = f" ({signal.Signals(-status).name})" if status < 0 else ""
        raise Failure(f"status {status}{signalled}: {words[:600]}")
    for text, where in ((printed.decode(errors="replace"), "output"), (words, "errors")):
        active = ACTIVE.search(text)
        if active:
            around = text[max(active.start() - 60, 0) : active.end() + 20]
            raise Failure(f"an active character in {where}: {around!r}")
    if "--json" in args and status in (0, 4):
        try:
            json.loads(printed)
        except ValueError as error:
            raise Failure(f"no JSON: {error}") from error
    return status


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("airmile")
    parser.add_argument("--mutants", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="maximum duration")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--keep-going", action="store_true")
    options = parser.parse_args()
    airmile = shutil.which(options.airmile) or str(pathlib.Path(options.airmile).resolve())
    begun, counts, failures, lock = time.monotonic(), collections.Counter(), [], threading.Lock()
    peak = [0]
    # Commands inherit these: without code of ours between fork and exec, a start is cheap.
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        inputs = seeds(airmile, work)
        for name, path, commands in [] if options.first else bombs(work):
            for command in commands:
                try:
                    status = run(airmile, [command, str(path)], peak)
                    if status not in (3, 4):
                        raise Failure(f"status {status}, not 3 or 4")
                    counts["bombs"] += 1
                except Failure as failure:
                    failures.append(f"{command} of the {name} bomb: {failure}")
            path.unlink()
        numbers = iter(range(options.first, options.first + options.mutants))

        def worker(at):
            place = work / f"worker-{at}"
            while True:
                with lock:
                    number = next(numbers, None)
                    over = time.monotonic() - begun > options.seconds
                    if number is None or over or (failures and not options.keep_going):
                        return
                name, data, (title, args) = mutant(number, options.seed, inputs)
                shutil.rmtree(place, ignore_errors=True)
                (place / "out").mkdir(parents=True)
                file = place / "mutant"
                file.write_bytes(data)
                args = [a.replace("IN", str(file)).replace("OUT", str(place / "out")) if a in ("IN", "OUT") or a.startswith("OUT/") else a for a in args]
                try:
                    status = run(airmile, args, peak)
                    with lock:
                        counts[f"{title}: {status}"] += 1
                        counts["mutants"] += 1
                except Failure as failure:
                    kept = pathlib.Path(tempfile.gettempdir()) / f"airmile-mutant-{options.seed}-{number}"
                    kept.write_bytes(data)
                    with lock:
                        failures.append(f"mutant {number} of {name}, `airmile {title}`: {failure}\n  kept: {kept}")

        workers = [threading.Thread(target=worker, args=(at,)) for at in range(os.cpu_count() or 2)]
        for thread in workers:
            thread.start()
        for thread in workers:
            thread.join()
    for title, _ in COMMANDS:
        row = {name.rsplit(": ", 1)[1]: n for name, n in counts.items() if name.rsplit(": ", 1)[0] == title}
        print(f"{title:22} " + "  ".join(f"status {status}: {n}" for status, n in sorted(row.items())))
    print(f"{counts['mutants']} mutants and {counts['bombs']} bombs in {time.monotonic() - begun:.0f} s, "
          f"seed {options.seed}; largest resident memory {peak[0] / 1024:.0f} MB; {len(failures)} failures")
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
