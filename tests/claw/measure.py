#!/usr/bin/env python3
"""CLAW in the kernel's TCP, in the lab in real time: unmodified nginx, and curl or Chromium.

    measure.py AIRMILE [N [PART...]]      parts: curl options chromium page misreporting

Pairs of page loads over an LTE cell with free resources, alternating in the same session
between the kernel's Cubic and `airmile claw attach` to nginx's connections; `airmile claw
agent` reads the phone's live modem log all the time. `curl`, `options` and `chromium` load
one image of 2 MB (MobiSys 2017, figure 12), `page` one of 25 objects over HTTP/2. The loader
ends alternately by `claw detach` and `kill -9`, finally during a download. `misreporting`:
two downloads to the phone, both with Cubic, then one with a misreporting client.
Needs root, nginx, curl, openssl, and an airmile with the feature `bpf`; otherwise, and
without Chromium and Node, prints SKIPPED.

Bars: CLAW is faster with 95 % confidence (Student, of pairs); nginx keeps serving; the median
time per ACK in BPF is under 1 us; misreporting costs the Cubic neighbour under 5 %.
"""

import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

from session import HERE, IMAGE_BYTES, SERVER, agent, figures, hold, write_site

CURL = f"curl -s -o /dev/null --max-time 60 -w '{{\"seconds\": %{{time_total}}}}\\n' http://{SERVER}/image.png"
SERVES_ON = f"curl -s -o /dev/null --max-time 60 -w '%{{http_code}} %{{size_download}}\\n' http://{SERVER}/image.png"
BROWSE = f"node {HERE}/browse.mjs"
LOADS = {
    "curl": CURL,
    "options": CURL,
    "chromium": f"{BROWSE} http://{SERVER}/image.html",
    "page": f"{BROWSE} https://{SERVER}/objects.html",
}
PAIRS = """{load} > /dev/null 2>> {name}.errors
for n in $(seq {n}); do
  sleep 1; {load} >> {name}.cubic 2>> {name}.errors
  end=detach; [ $((n % 2)) = 0 ] && end=kill
  attach $end; {load} >> {name}.claw 2>> {name}.errors; detach
done
for end in detach kill; do
  attach $end
  {serves_on} >> {name}.serving & on=$!
  sleep 0.3; detach; wait $on
  sleep 1; {serves_on} >> {name}.serving
done
"""
# Seconds of a download with a competing one; the first is not counted, as slopes are unknown.
COMPETING_S = 20
COMPETING = """both() {{
  curl -s -o /dev/null --max-time {seconds} http://{server}/endless & one=$!
  curl -s -o /dev/null --max-time {seconds} -w '%{{size_download}}\\n' http://{server}:8081/ >> $1
  wait $one
}}
for n in $(seq {n}); do
  sleep 1; both {name}.cubic
  attach detach
  python3 {here}/misreporting_client.py {server} 4434 {dir}/key $(({seconds} + 3)) >> {name}.lies 2>&1 & client=$!
  sleep 1; both {name}.claw; wait $client; detach
done
"""
MOST_HARM = 0.05


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(0)


def interval(values):
    """Half of the 95 % interval of the mean (Student, from a table for small samples)."""
    table = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 14: 2.14, 19: 2.09}
    degrees = max((d for d in table if d <= len(values) - 1), default=1)
    return table[degrees] * statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.inf


def describe(name, values):
    print(f"{name:18} n {len(values):2}  median {statistics.median(values):.3f} s  mean {statistics.mean(values):.3f}"
          f" +- {interval(values):.3f}  worst {max(values):.3f}")


def read(work, name):
    path = os.path.join(work, name)
    return open(path).read() if os.path.exists(path) else ""


def check_cost(name, all_figures, missed):
    """The time per ACK, over all loaders that measured it."""
    for figure in all_figures:
        if figure["ack_p50_ns"] is None or figure["ack_p50_ns"] >= 1000:
            missed.append(f"{name}: an ACK takes {figure['ack_p50_ns']} ns in the median")
    if not all_figures:
        missed.append(f"{name}: no loader printed its figures")
        return
    acks = max(all_figures, key=lambda figure: figure["acks"])
    programs = {p: f"{t['mean_ns']:.0f} ns x {t['runs']}" for p, t in acks["programs"].items()}
    print(f"{name}: {acks['acks']} ACKs, in BPF {acks['ack_p50_ns']} ns (median), {acks['ack_p99_ns']} ns (99 %);"
          f" by bpf_stats, means: {programs}")


def pairs(airmile, work, name, n, rtt, missed):
    options = name == "options"
    way = "" if options else f"--reports 0.0.0.0:4434 --key-file {work}/key"
    script = PAIRS.format(load=LOADS[name], name=name, n=n, serves_on=SERVES_ON)
    outputs, late = hold(airmile, work, name, script, way, agent(airmile, work, name, options, rtt), rtt)
    print(f"  {late}")
    rows = {how: [json.loads(line) for line in read(work, f"{name}.{how}").splitlines()] for how in ("cubic", "claw")}
    if any(len(of) != n for of in rows.values()):
        missed.append(f"{name}: not all pages were loaded: {read(work, f'{name}.errors')[-500:]}")
        return
    cubic, claw = ([row["seconds"] for row in rows[how]] for how in ("cubic", "claw"))
    for row in rows["claw"][:1]:
        print(f"{name}: {', '.join(f'{value} {key}' for key, value in row.items() if key != 'seconds')}")
    describe(f"{name}, Cubic", cubic)
    describe(f"{name}, CLAW", claw)
    changes = [one / base - 1 for one, base in zip(claw, cubic)]
    print(f"{name}: CLAW {statistics.mean(changes):+.1%} +- {interval(changes):.1%} (median {statistics.median(changes):+.1%},"
          f" worst load {max(claw) / max(cubic) - 1:+.1%}; the paper, figure 12: -56 % in the mean, -73 % of the worst)")
    if statistics.mean(changes) + interval(changes) >= 0:
        missed.append(f"{name}: CLAW is not faster with 95 % confidence")
    on = read(work, f"{name}.serving").split("\n")[:-1]
    print(f"{name}: downloads over detach, after it, over kill -9, after it: {on}")
    if on != [f"200 {IMAGE_BYTES}"] * 4:
        missed.append(f"{name}: nginx did not keep serving")
    all_figures = figures(outputs)
    check_cost(name, all_figures, missed)
    used = sum(figure["acks_with_client_window"] for figure in all_figures)
    if not used or (options and not sum(figure["options_read"] for figure in all_figures)):
        missed.append(f"{name}: no window of the client was used")
    reports = [json.loads(line) for line in read(work, f"{name}.reports").splitlines() if '"took_us"' in line]
    if reports:
        took = sorted(row["took_us"] for row in reports)
        last, seconds = reports[-1], (reports[-1]["time_ms"] - reports[0]["time_ms"]) / 1000
        print(f"{name}: {last['sent']} reports and hellos in {seconds:.0f} s, {last['sent'] / seconds:.1f}/s,"
              f" {last['sent_bytes'] / seconds:.0f} B/s up, {last['heard_bytes'] / seconds:.0f} B/s down without headers;"
              f" made in {took[len(took) // 2]} us (median), {took[len(took) * 99 // 100]} us (99 %)")


def misreporting(airmile, work, n, rtt, missed):
    name = "misreporting"
    script = COMPETING.format(seconds=COMPETING_S, server=SERVER, here=HERE, dir=work, name=name, n=n)
    # A queue of about a round trip: one flow's gain is the other's loss.
    outputs, late = hold(airmile, work, name, script, f"--reports 0.0.0.0:4434 --key-file {work}/key", rtt=rtt,
                         queue=600_000, neighbour=f"python3 {HERE}/neighbour.py 8081 &")
    print(f"  {late}")
    fair, lied = ([int(line) * 8 / COMPETING_S / 1e6 for line in read(work, f"misreporting.{how}").split()] for how in ("cubic", "claw"))
    if len(fair) != n or len(lied) != n:
        missed.append(f"{name}: not all downloads were made: {read(work, 'misreporting.lies')[-500:]}")
        return
    print(f"{name}: the Cubic neighbour with Cubic {statistics.mean(fair):.1f} Mbit/s ({', '.join(f'{x:.1f}' for x in fair)}),"
          f" with misreporting {statistics.mean(lied):.1f} ({', '.join(f'{x:.1f}' for x in lied)})")
    change = statistics.mean(lied) / statistics.mean(fair) - 1
    error = interval([one / statistics.mean(fair) for one in lied]), interval([one / statistics.mean(fair) for one in fair])
    print(f"{name}: {change:+.1%} +- {math.hypot(*error):.1%}; {read(work, 'misreporting.lies').split(chr(10))[0]}")
    all_figures = figures(outputs)
    for figure in all_figures:
        print(f"{name}: largest window of the client {figure['most_client_window_bytes']}, distrusted {figure['withdrawn']} times,"
              f" {figure['radio_losses_excused']} losses excused, {figure['replayed']} repeated, {figure['too_many']} too many,"
              f" {figure['datagrams']} datagrams")
        if figure["most_client_window_bytes"] > 4_000_000:
            missed.append(f"{name}: a window over the cap")
        if not (figure["replayed"] and figure["too_many"] and figure["withdrawn"]):
            missed.append(f"{name}: the misreporting was not detected")
    if not all_figures:
        missed.append(f"{name}: no loader printed its figures")
    if change < -MOST_HARM:
        missed.append(f"{name}: misreporting costs the neighbour {-change:.1%}")


def main():
    airmile = os.path.abspath(sys.argv[1])
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    parts = sys.argv[3:] or [*LOADS, "misreporting"]
    rtt = int(os.environ.get("CLAW_RTT_MS", "80"))
    if os.geteuid() != 0:
        skip("needs root")
    for tool in ("nginx", "curl", "openssl"):
        if not shutil.which(tool):
            skip(f"needs {tool}")
    probe = subprocess.run(["timeout", "-s", "INT", "3", airmile, "--json", "claw", "attach"], capture_output=True, text=True)
    if "attached" not in probe.stdout:
        skip((probe.stderr or probe.stdout).strip())
    missed = []
    with tempfile.TemporaryDirectory(prefix="airmile-claw-") as work:
        os.chmod(work, 0o755)
        write_site(work)
        print(f"LTE of 20 MHz, idle, round trip {rtt} ms in the core; load average {os.getloadavg()[0]:.1f}")
        for name in parts:
            if name == "misreporting":
                misreporting(airmile, work, max(n // 2, 3), rtt, missed)
            elif "browse" in LOADS[name] and not (shutil.which("node") and (shutil.which("chromium") or os.environ.get("AIRMILE_CHROMIUM"))):
                print(f"SKIPPED: {name}: needs Chromium and Node")
            else:
                pairs(airmile, work, name, n, rtt, missed)
    for what in missed:
        print(f"MISSED: {what}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
