#!/usr/bin/env python3
"""Measures `airmile qcut run` between real hosts: a page load during an upload, through the
lab's cell in real time, with and without it.

    measure.py AIRMILE [REPEATS [DEPLOYS]]

DEPLOYS are nfqueue, htb, tun, each with the modem's log; `nfqueue-trips` and the like use
round trips. Repeat a name to interleave: its pages are put together. Also
  cake-autorate, cake-autorate-wide, cake-autorate-defaults  the real scripts with settings of
                  autorate.py, from the checkout that the environment's CAKE_AUTORATE names
                  (SKIPPED without it); the kernel's CAKE has a stand-in (autorate.py)
  lab-autorate    our imitation in the lab's phone
  published       a shaper that follows what `--publish` tells
  none, upload    again; both are always measured first
Bar (on an otherwise idle machine): a page load during an upload within 10 % of
one without. Then the instance is killed (-9): the path must still work.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import autorate

HERE = os.path.dirname(os.path.abspath(__file__))
OBJECTS = ["page-60000", "page-1000", "style-20000", "script-90000", "image-30000-a", "image-30000-b",
           "image-50000-c", "image-50000-d", "font-40000"]


def run_lab(airmile, repeats, deploys):
    """The rows of one run of the lab."""
    with tempfile.TemporaryDirectory() as work:
        site = os.path.join(work, "site")
        os.mkdir(site)
        for name in OBJECTS:
            open(os.path.join(site, name), "wb").write(os.urandom(int(name.split("-")[1])))
        scenario = os.path.join(work, "uplink.toml")
        shutil.copy(os.path.join(HERE, "uplink.toml"), scenario)
        if "lab-autorate" in deploys:
            base_bps = 1000 * autorate.SETTINGS["cake-autorate-wide"][1]
            with open(scenario, "a") as file:
                file.write(f'\n[uplink_queue]\ndiscipline = {{ kind = "autorate", start_bps = {base_bps} }}\n')
        words = ["nice", "-n", "-15", airmile, "lab", "shell", scenario, "--serve", site,
                 "--server", f"exec python3 {HERE}/far.py", "-o", os.path.join(work, "run"), "--late-limit-ms", "60000", "--",
                 "python3", os.path.join(HERE, "phone.py"), airmile, repeats, ",".join(deploys), work]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(f"status {done.returncode}\n{done.stderr}{done.stdout[-2000:]}")
        late = json.load(open(os.path.join(work, "run", "manifest.json")))["clock"]["lateness"]
    print(f"load average {os.getloadavg()[0]:.1f}; TTIs late by {late['p50_us'] / 1e3:.2f} ms (median), "
          f"{late['p99_us'] / 1e3:.2f} ms (99 %)")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def merged(rows):
    """Rows of the same variant as one: all pages, and the means of the rest."""
    found = {}
    for row in rows:
        if "page_s" in row:
            found.setdefault(row["variant"], []).append(row)
    out = [row for row in rows if "page_s" not in row]
    for name, same in found.items():
        one = {"variant": name, "page_s": [load for row in same for load in row["page_s"]]}
        for key in ("upload_bps", "voice_ms", "jitter_ms", "lost"):
            values = [row[key] for row in same if row.get(key) is not None]
            one[key] = statistics.fmean(values) if values else None
        out.append(one)
    return out


def main():
    airmile = os.path.abspath(sys.argv[1])
    repeats = sys.argv[2] if len(sys.argv) > 2 else "5"
    deploys = sys.argv[3] if len(sys.argv) > 3 else "nfqueue,htb,tun,nfqueue-trips"
    missing = [program for program in ("iperf3", "curl") if not shutil.which(program)]
    if os.geteuid() != 0 or missing:
        print(f"SKIPPED: needs root, and {', '.join(missing) or 'nothing else'}")
        return 0
    checkout, wanted = os.environ.get("CAKE_AUTORATE", ""), deploys.split(",")
    needs = [] if os.path.exists(os.path.join(checkout, "cake-autorate.sh")) else ["CAKE_AUTORATE, a checkout of it"]
    needs += [program for program in ("bash", "fping", "tc") if not shutil.which(program)]
    if needs and set(wanted) & set(autorate.SETTINGS):
        print(f"SKIPPED: cake-autorate: needs {', '.join(needs)}")
        wanted = [deploy for deploy in wanted if deploy not in autorate.SETTINGS]
    parts = [["none", "upload", *(deploy for deploy in wanted if deploy != "lab-autorate")]]
    # The lab's discipline is for a whole run of the lab.
    parts += [["lab-autorate"]] if "lab-autorate" in wanted else []
    rows = []
    for part in parts:
        rows += run_lab(airmile, repeats, part)
    rows = merged(rows)
    print("variant          page (median, range)     upload   voice   jitter   lost   CPU")
    alone, failed = None, 0
    cpu = {row["variant"]: row["status"] for row in rows if "status" in row}
    for row in rows:
        if "page_s" not in row:
            continue
        there = [load for load in row["page_s"] if load is not None]
        median = statistics.median(load if load is not None else float("inf") for load in row["page_s"])
        alone = alone or median
        span = f"{min(there):.2f} to {max(there):.2f}" if there else "none"
        number = lambda key, scale, unit: "-" if row.get(key) is None else f"{row[key] * scale:.1f} {unit}"
        status = cpu.get(row["variant"])
        share = f"{100 * status['cpu_s'] / max(status['uptime_s'], 1e-3):.1f} %" if status and "cpu_s" in status else ""
        print(f"{row['variant']:16} {median:5.2f} s ({span}) {median / alone - 1:+5.0%}  {number('upload_bps', 1e-6, 'Mbit/s')}  "
              f"{number('voice_ms', 1, 'ms')}  {number('jitter_ms', 1, 'ms')}  "
              f"{row['lost']:.1%}  {share}  {len(there)} of {len(row['page_s'])} pages")
    for name, status in cpu.items():
        if "rates" in status:
            least, median, most = status["rate_kbps"] or (0, 0, 0)
            print(f"{name}: a stand-in of CAKE, {status['rates']} rates set, {least:.0f} to {most:.0f} kbit/s, median {median:.0f}")
    for name in sorted(set(wanted) & set(autorate.SETTINGS)):
        print(f"{name}: least, base and most rate {autorate.SETTINGS[name]} kbit/s, other settings its defaults")
    for row in rows:
        if row.get("killed"):
            print(f"{row['variant']}: killed (-9), the path works after {row['back_s']:.2f} s" if row["is_back"]
                  else f"{row['variant']}: killed (-9), and THE PATH IS NOT THERE")
            failed += not row["is_back"]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
