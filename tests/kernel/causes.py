#!/usr/bin/env python3
"""Hold `airmile diagnose` against known causes over the kernel's TCP.

    causes.py AIRMILE [--only NAME[,NAME]] [--seed N] [--keep DIR]

Each row is a download of Linux's TCP through the lab's cell in real time (`airmile lab
shell`), made slow on purpose, and the same without what made it slow: the difference is
what the cause cost. The truth of the radio is the lab's own queue. `diagnose` then gets
all evidence (modem log, both captures, transfers), and the phone's capture alone.

A cause counts where it cost a tenth of the time and the downlink's queue stood for less
than 90 % of it; from 90 % on the radio is what has to be named (BurstTracker, section 3).
The status is 1 where fewer than 90 % are named right by all evidence, where an answer of
the phone's capture alone at 90 % and more is wrong in more than one of ten, or where more
than a fifth of the costs are over 15 points off: the bars are wide, as a run draws each
kind once or twice, on a machine that does other things. TTIs that are late make a run
invalid; it is repeated twice.

Needs root, /dev/net/tun and iproute2 (SKIPPED without). Some minutes. Leaves nothing but DIR.
"""

import argparse
import csv
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
HOSTS = HERE / "hosts.py"
LATE = 5
NAMED_BAR, SURE_BAR, COST_BAR, COST_POINTS = 0.9, 0.9, 0.8, 0.15
AVAILABLE = pathlib.Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
# A cell with much room: some 35 Mbit/s.
ROOM = {"cell": {"n_prb": 50}, "link": {"snr_mean_db": 22.0, "fading_sigma_db": 2.0}}


def download(n_bytes, **more):
    return {"bytes": int(n_bytes), **more}


def merged(base, more):
    out = dict(base)
    for key, value in more.items():
        out[key] = merged(out.get(key, {}), value) if isinstance(value, dict) else value
    return out


def families(rng):
    """Name, cause, scenario, steps, and what changes without the cause.

    `server` and `phone` are settings of the kernel there."""
    def row(name, cause, steps, scenario=None, without=None, **settings):
        return {"name": name, "cause": cause, "steps": steps, "scenario": merged(ROOM, scenario or {}),
                "without": without or {}, **settings}

    def core(rtt_ms, rate_bps=None, queue_bytes=None, loss=None):
        down = {}
        if rate_bps:
            down["limit"] = {"rate_bps": int(rate_bps), "queue_bytes": queue_bytes}
        if loss:
            down["loss"] = loss
        return {"core": {"rtt_ms": rtt_ms, **({"down": down} if down else {})}}

    draw = rng.uniform
    rtt = lambda: rng.randrange(30, 70)
    rate, slow, paced = draw(3e6, 8e6), draw(3e6, 6e6), draw(2e6, 5e6)
    near, far = rtt(), rng.randrange(90, 130)
    whole = [[download(5e6)]]
    yield row("line", "wireline", [[download(rate)]], core(near, rate, 150_000), {"scenario": merged(ROOM, core(near))})
    yield row("line_shallow", "wireline", [[download(rate)]], core(near, rate, 30_000), {"scenario": merged(ROOM, core(near))})
    yield row("line_bbr", "wireline", [[download(slow, control="bbr")]], core(near, slow, 200_000), {"scenario": merged(ROOM, core(near))})
    yield row("line_no_stamps", "wireline", [[download(slow)]], core(near, slow, 150_000), {"scenario": merged(ROOM, core(near))},
              server={"net.ipv4.tcp_timestamps": 0})
    yield row("line_parallel", "wireline", [[download(slow / 3)] for _ in range(3)], core(near, slow, 150_000),
              {"scenario": merged(ROOM, core(near))})
    blocks = rng.choice([1_448, 16_384, 65_536])
    yield row("paced_by_application", "sender_limited", [[download(paced, rate_bps=paced, block_bytes=blocks)]], core(near),
              {"steps": [[download(paced)]]})
    yield row("paced_by_kernel", "sender_limited", [[download(paced, pacing_bps=paced)]], core(near), {"steps": [[download(paced)]]})
    thinks = [download(1.5e5, connection="a", think_ms=rng.randrange(500, 900)) for _ in range(6)]
    yield row("slow_answers", "sender_limited", [thinks], core(near), {"steps": [[{**one, "think_ms": 0} for one in thinks]]},
              server={"net.ipv4.tcp_slow_start_after_idle": 0})
    yield row("receive_buffer", "receive_window", [[download(2.5e6, buffer_bytes=40_000)]], core(near), {"steps": [[download(2.5e6)]]})
    yield row("slow_reader", "receive_window", [[download(2.5e6, buffer_bytes=65_536, read_bps=draw(1.5e6, 3e6))]], core(near),
              {"steps": [[download(2.5e6)]]})
    gap = draw(1.2, 2.2)
    turns = [download(draw(5e5, 9e5), connection="a", after_s=gap) for _ in range(6)]
    yield row("restart", "slow_start_restart", [turns], core(far), {"server": {"net.ipv4.tcp_slow_start_after_idle": 0}},
              server={"net.ipv4.tcp_slow_start_after_idle": 1})
    short = [download(draw(2e5, 4e5), after_s=0.8) for _ in range(5)]
    yield row("first_windows", "first_slow_start", [short], core(far), {"initcwnd": 200})
    yield row("loss", "loss_recovery_congestion", [[download(3e6)]], core(near, loss=draw(0.005, 0.015)),
              {"scenario": merged(ROOM, core(near))})
    others = {"competing": [{"kind": "full_buffer", "users": 3}]}
    yield row("contention", "radio", whole, merged(core(near), others), {"scenario": merged(ROOM, core(near))})
    yield row("weak_signal", "radio", whole, merged(core(near), {"link": {"snr_mean_db": draw(1, 4)}}),
              {"scenario": merged(ROOM, core(near))})
    yield row("upload_beside", "uplink_queue", [[download(3e6, after_s=1.5)], [{"upload_s": 14}]],
              merged(core(near), {"uplink": {"max_prb": 6}}), {"steps": [[download(3e6, after_s=1.5)]]})


def settings(kernel, initcwnd=None):
    lines = [f"sysctl -qw {key}={value}" for key, value in kernel.items()]
    if initcwnd:
        lines.append(f"ip route change $(ip route show default) initcwnd {initcwnd}")
    return lines


def toml(value, path=""):
    """A scenario as TOML: scalars, tables, and lists of tables."""
    plain = {key: one for key, one in value.items() if not isinstance(one, (dict, list))}
    out = [f"[{path}]"] if path else []
    out += [f"{key} = {json.dumps(one)}" for key, one in plain.items()]
    for key, one in value.items():
        below = f"{path}.{key}" if path else key
        if isinstance(one, dict):
            out += toml(one, below)
        elif isinstance(one, list):
            for each in one:
                inner = [f"{k} = " + (f"{{ {', '.join(f'{a} = {json.dumps(b)}' for a, b in v.items())} }}" if isinstance(v, dict) else json.dumps(v))
                         for k, v in each.items()]
                out += [f"[[{below}]]", *inner]
    return out


class Invalid(Exception):
    pass


def run(airmile, place, row, seed):
    """Runs a row in real time; leaves its directory."""
    place.mkdir(parents=True)
    scenario = place / "cell.toml"
    head = {"about": row["name"], "seed": seed, "duration_ms": 120_000}
    scenario.write_text("\n".join(toml({**head, **row["scenario"]})) + "\n")
    python = sys.executable
    setup = settings(row.get("server", {}), row.get("initcwnd"))
    server = " && ".join([*setup, f"exec {python} {HOSTS} server"])
    words = [airmile, "lab", "shell", scenario, "-q", "--force", "-o", place / "run", "--late-limit-ms", "5", "--server", server, "--",
             python, HOSTS, "client", json.dumps(row["steps"])]
    for _ in range(3):
        done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=300)
        if done.returncode == 0:
            return place / "run"
        if done.returncode != LATE:
            raise Invalid(f"status {done.returncode}: {done.stderr.strip()[-300:]}")
    raise Invalid("TTIs were late three times")


def downloads(directory):
    """Downloads of a run: (start, end) in us, and the true share of the queue's time."""
    with open(directory / "transfers.csv") as file:
        rows = [one for one in csv.DictReader(file) if one["dir"] == "dl" and int(one["bytes"]) > 10_000]
    with open(directory / "transfer_truth.csv") as file:
        truth = {one["id"]: one for one in csv.DictReader(file)}
    of = [truth[one["id"]] for one in rows if one["id"] in truth]
    queue_ms = sum(float(one["throughput_time_ms"]) for one in of)
    all_ms = sum(float(one["duration_ms"]) for one in of)
    return sorted((int(one["start_us"]), int(one["end_us"])) for one in rows), queue_ms / max(all_ms, 1)


def busy_ms(spans):
    """Length of the union of spans."""
    total, reached = 0, 0
    for start, end in spans:
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total / 1e3


def diagnosis(airmile, *inputs):
    done = subprocess.run([airmile, "diagnose", "--json", "-q", *inputs], capture_output=True, text=True, timeout=300)
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError as error:
        raise Invalid(f"diagnose: status {done.returncode}: {done.stderr[-300:]}") from error


def of_download(document):
    """The answer on the downloads: the session's, or, beside an upload, that of the only one."""
    downloads = [one for one in document["transfers"] if one["dir"] == "dl"]
    if len(downloads) != 1 or len(document["transfers"]) == 1:
        return document["session"]
    only = downloads[0]
    of = only["counterfactual_of"]
    return {**only, "counterfactuals": [{"of": of, "ms": only["counterfactual_ms"]}] if of else []}


def is_radio(name):
    return name.startswith("radio")


def judged(airmile, row, with_cause, without):
    """What a row shows: truth, both answers, and whether each is right."""
    spans, demand = downloads(with_cause)
    rest, _ = downloads(without)
    took_ms, saved_ms = busy_ms(spans), busy_ms(rest)
    cost = 1 - saved_ms / max(took_ms, 1)
    expected = "radio" if demand >= 0.9 else row["cause"]
    counts = expected == "radio" and demand >= 0.9 or cost >= 0.1 and row["cause"] != "radio"
    everything = of_download(diagnosis(airmile, with_cause))
    alone = diagnosis(airmile, with_cause / "phone.pcapng")["session"]
    fits = lambda named: is_radio(named) if expected == "radio" else named == expected
    right = fits(everything["verdict"]) or (
        everything["verdict"] == "mixed" and demand >= 0.75 and any(fits(one["of"]) for one in everything["counterfactuals"])
    )
    of = next((one for one in everything["counterfactuals"] if fits(one["of"])), None)
    whole_ms = sum(everything["shares"].values())
    stated = 1 - of["ms"] / max(whole_ms, 1) if of and expected != "radio" else None
    # Losses have no suspect of their own by packets alone.
    other = expected.startswith("loss")
    return {
        "name": row["name"], "expected": expected, "counts": counts, "demand": demand, "cost": cost, "right": right,
        "named": everything["verdict"], "stated": stated,
        "alone": alone["verdict"], "alone_confidence": alone["confidence"],
        "alone_right": fits(alone["verdict"]), "alone_given": alone["verdict"] != "unknown" and not other,
    }


def percent(n, of):
    return f"{n} of {of}" + (f" ({100 * n / of:.0f} %)" if of else "")


def summary(rows):
    """Prints what is right; true where all bars are held."""
    counted = [row for row in rows if row["counts"]]
    right = sum(row["right"] for row in counted)
    costs = [row for row in counted if row["stated"] is not None]
    near = sum(abs(row["stated"] - row["cost"]) <= COST_POINTS for row in costs)
    given = [row for row in counted if row["alone_given"]]
    sure = [row for row in given if row["alone_confidence"] >= 0.9]
    sure_right = sum(row["alone_right"] for row in sure)
    print(f"all evidence: named right {percent(right, len(counted))}, bar {NAMED_BAR:.0%}")
    print(f"cost within {100 * COST_POINTS:.0f} points: {percent(near, len(costs))}, bar {COST_BAR:.0%}")
    print(f"phone's capture alone: named {percent(len(given), len(counted))}, right {sum(row['alone_right'] for row in given)}; "
          f"at 90 % and more {percent(sure_right, len(sure))}, bar {SURE_BAR:.0%}")
    return (len(counted) > 0 and right >= NAMED_BAR * len(counted) and near >= COST_BAR * len(costs)
            and sure_right >= SURE_BAR * len(sure) - 1e-9)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("airmile")
    parser.add_argument("--only", help="names of rows, with commas")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", help="a new directory for the runs")
    options = parser.parse_args()
    if os.geteuid() != 0 or not os.path.exists("/dev/net/tun") or not shutil.which("ip"):
        print("SKIPPED: needs root, /dev/net/tun and iproute2")
        return 0
    airmile = shutil.which(options.airmile) or str(pathlib.Path(options.airmile).resolve())
    only = options.only.split(",") if options.only else None
    work = pathlib.Path(options.keep or tempfile.mkdtemp(prefix="airmile-causes-"))
    rows, invalid = [], 0
    print(f"{'row':22} {'true cause':24} {'queue':>6} {'cost':>5}  {'all evidence':24} {'stated':>6}  phone's capture alone")
    try:
        for at, row in enumerate(families(random.Random(options.seed))):
            if only and row["name"] not in only:
                continue
            if "bbr" in row["name"] and "bbr" not in AVAILABLE.read_text():
                print(f"{row['name']:22} SKIPPED: this kernel has no BBR")
                continue
            changed = {**row, **row["without"]}
            try:
                seed = 1_000 * options.seed + at
                pair = [run(airmile, work / f"{row['name']}{suffix}", one, seed) for one, suffix in ((row, ""), (changed, ".without"))]
                found = judged(airmile, row, *pair)
            except Invalid as error:
                invalid += 1
                print(f"{row['name']:22} INVALID: {error}", flush=True)
                continue
            rows.append(found)
            mark = "" if not found["counts"] else "right" if found["right"] else "WRONG"
            stated = "" if found["stated"] is None else f"{found['stated']:.0%}"
            print(f"{found['name']:22} {found['expected'] if found['counts'] else '(not counted)':24} {found['demand']:6.0%} {found['cost']:5.0%}  "
                  f"{found['named']:18} {mark:5} {stated:>6}  {found['alone']} {found['alone_confidence']:.0%}", flush=True)
    finally:
        if not options.keep:
            shutil.rmtree(work, ignore_errors=True)
    held = summary(rows)
    if invalid:
        print(f"{invalid} rows INVALID")
    return 0 if held and not invalid else 1


if __name__ == "__main__":
    sys.exit(main())
