#!/usr/bin/env python3
"""Measures `airmile qcut run` between real hosts: a page load during an upload, through the
lab's cell in real time, with and without it.

    measure.py AIRMILE [REPEATS [DEPLOYS]]

DEPLOYS are nfqueue, htb, tun, each with the modem's log; `nfqueue-trips` and the like use
round trips. Bar (on an otherwise idle machine): a page load during an upload within 10 % of
one without. Then the instance is killed (-9): the path must still work.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
OBJECTS = ["page-60000", "page-1000", "style-20000", "script-90000", "image-30000-a", "image-30000-b",
           "image-50000-c", "image-50000-d", "font-40000"]


def main():
    airmile = os.path.abspath(sys.argv[1])
    repeats = sys.argv[2] if len(sys.argv) > 2 else "5"
    deploys = sys.argv[3] if len(sys.argv) > 3 else "nfqueue,htb,tun,nfqueue-trips"
    missing = [program for program in ("iperf3", "curl") if not shutil.which(program)]
    if os.geteuid() != 0 or missing:
        print(f"SKIPPED: needs root, and {', '.join(missing) or 'nothing else'}")
        return 0
    with tempfile.TemporaryDirectory() as work:
        site = os.path.join(work, "site")
        os.mkdir(site)
        for name in OBJECTS:
            open(os.path.join(site, name), "wb").write(os.urandom(int(name.split("-")[1])))
        words = ["nice", "-n", "-15", airmile, "lab", "shell", os.path.join(HERE, "uplink.toml"), "--serve", site,
                 "--server", f"exec python3 {HERE}/far.py", "-o", os.path.join(work, "run"), "--late-limit-ms", "60000", "--",
                 "python3", os.path.join(HERE, "phone.py"), airmile, repeats, deploys]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        late = json.load(open(os.path.join(work, "run", "manifest.json")))["clock"]["lateness"] if not done.returncode else {}
    if done.returncode:
        sys.exit(f"status {done.returncode}\n{done.stderr}{done.stdout[-2000:]}")
    print(f"load average {os.getloadavg()[0]:.1f}; TTIs late by {late['p50_us'] / 1e3:.2f} ms (median), "
          f"{late['p99_us'] / 1e3:.2f} ms (99 %)")
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
        share = f"{100 * status['cpu_s'] / max(status['uptime_s'], 1e-3):.1f} %" if status else ""
        print(f"{row['variant']:16} {median:5.2f} s ({span}) {median / alone - 1:+5.0%}  {number('upload_bps', 1e-6, 'Mb/s')}  "
              f"{number('voice_ms', 1, 'ms')}  {number('jitter_ms', 1, 'ms')}  "
              f"{row['lost']:.1%}  {share}  {len(there)} of {len(row['page_s'])} pages")
    for row in rows:
        if row.get("killed"):
            print(f"{row['variant']}: killed (-9), the path works after {row['back_s']:.2f} s" if row["is_back"]
                  else f"{row['variant']}: killed (-9), and THE PATH IS NOT THERE")
            failed += not row["is_back"]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
