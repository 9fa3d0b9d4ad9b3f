#!/usr/bin/env python3
"""CLAW for the kernel's TCP, in the lab in real time: nginx as it is, and curl or Chromium.

    measure.py AIRMILE [N]

Twice N page loads of one 2 MB image (MobiSys 2017, figure 12) over an LTE cell with free
resources: the server's kernel with Cubic, and with `airmile claw attach` beside nginx and
`airmile claw agent` on the phone's live modem log. Then: after `claw detach`, and after
`kill -9` of the loader, nginx serves on. Needs root, nginx, curl, and an airmile built
with the feature `bpf`; says SKIPPED without.

Bars: CLAW's mean is below Cubic's, with 95 % confidence (Welch); nginx serves on; the median
of an ACK's time in BPF is under 1 us.
"""

import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

IMAGE_BYTES = 2_000_000
SCENARIO = """seed = 5
duration_ms = 600000
[core]
rtt_ms = {rtt}
[cell]
n_prb = 100
queue_bytes = 3000000
[server_tcp]
control = {{ name = "cubic", hystart = true }}
slow_start_after_idle = true
# What Android gives to LTE (AOSP, TCP_BUFFER_SIZES_LTE): with Linux's own 128 kB the
# receive window grows no faster than slow start, and hides what the sender does.
[phone_tcp.receive]
buffer_bytes = 1048576
max_buffer_bytes = 2097152
"""
NGINX = """daemon off; pid {dir}/nginx.pid; error_log {dir}/error.log; worker_processes 1;
events {{}}
http {{ access_log off; client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
  fastcgi_temp_path {dir}/fastcgi; uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
  types {{ text/html html; image/png png; }}
  server {{ listen 80; root {dir}/www; }} }}
"""
PAGE = '<!doctype html><title>page</title><img src="image.png" alt="">'

# The phone: N loads, each on a connection of its own, with a pause; then it ends.
PHONE = """set -u
cd {dir}
{agent}
sleep 3
for n in $(seq {n}); do
  {load} >> {times}
  sleep {pause}
done
{after}
exit 0
"""
CURL = "curl -s -o /dev/null --max-time 60 -w '%{time_total}\\n' http://203.0.113.1/image.png"
CHROMIUM = (
    "{chromium} --headless=new --no-sandbox --disable-gpu --user-data-dir={dir}/profile-$n --no-first-run"
    " --virtual-time-budget=30000 --dump-dom http://203.0.113.1/timed.html 2>/dev/null"
    " | grep -o 'loaded [0-9.]*' | cut -d' ' -f2"
)
# The page tells its own time: from navigation to load, without the browser's start.
TIMED = """<!doctype html><title>page</title><img src="image.png" alt=""><p id="t"></p><script>
addEventListener("load", () => { const t = performance.getEntriesByType("navigation")[0];
  document.getElementById("t").textContent = "loaded " + (performance.now() - t.startTime) / 1000; });
</script>"""
END = {"detach": "{airmile} claw detach", "option": "{airmile} claw detach", "kill": "kill -9 $loader"}
SERVES_ON = "curl -s -o /dev/null --max-time 60 -w '%{http_code} %{size_download}\\n' http://203.0.113.1/image.png"


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(0)


def run(airmile, work, name, attach, n, load, rtt, pause):
    """N loads: their seconds, what the loader said, and what served on."""
    path = lambda file: os.path.join(work, file)
    times, serving, said = path(f"{name}.times"), path(f"{name}.serving"), path(f"{name}.said")
    agent = after = ""
    server = f"exec nginx -e {work}/error.log -c {work}/nginx.conf"
    if attach:
        way = "" if attach == "option" else f"--reports 0.0.0.0:4434 --key-file {work}/key"
        server = (
            f"{airmile} --json claw attach --measure {way} > {said} 2>&1 & loader=$!;"
            # The phone has process numbers of its own: who ends the loader is on its side.
            f" (until [ -e {work}/{name}.end ]; do sleep 0.05; done; {END[attach].format(airmile=airmile)}) & {server}"
        )
        way = f"--tcp-option --rtt {rtt + 20}" if attach == "option" else f"--to 203.0.113.1:4434 --key-file {work}/key"
        agent = f"{airmile} --json claw agent --follow $AIRMILE_MODEM_LOG {way} > {path(name + '.reports')} 2>&1 &"
        # A download under way while the loader goes, and one after it.
        after = (
            f"{SERVES_ON} > {serving} & on=$!; sleep 0.3; touch {work}/{name}.end; wait $on; sleep 1\n{SERVES_ON} >> {serving}\n"
            "kill $(jobs -p) 2> /dev/null"
        )
    scenario = path("cell.toml")
    open(scenario, "w").write(SCENARIO.format(rtt=rtt))
    script = path("phone.sh")
    open(script, "w").write(PHONE.format(dir=work, agent=agent, n=n, load=load, times=times, pause=pause, after=after))
    words = [airmile, "lab", "shell", scenario, "-o", path(f"{name}.run"), "--force", "--late-limit-ms", "1000", "--server", server,
             "--", "bash", script]
    done = subprocess.run(words, capture_output=True, text=True, preexec_fn=lambda: os.nice(-15))
    if done.returncode not in (0, 5) or not os.path.exists(times):
        sys.exit(f"{' '.join(words)}: status {done.returncode}\n{done.stderr[-3000:]}{done.stdout[-1000:]}")
    late = done.stderr.strip().splitlines()
    seconds = [float(line) for line in open(times).read().split()]
    text = lambda file: open(file).read() if os.path.exists(file) else ""
    return seconds, text(said), text(serving).split("\n"), late[0] if late else ""


def interval(values):
    """Half of the 95 % interval of the mean (Student, by a table for few)."""
    table = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 14: 2.14, 19: 2.09}
    degrees = max((d for d in table if d <= len(values) - 1), default=1)
    return table[degrees] * statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.inf


def describe(name, values):
    print(f"{name:22} n {len(values):3}  mean {statistics.mean(values):.3f} s +- {interval(values):.3f}"
          f"  median {statistics.median(values):.3f}  worst {max(values):.3f}")


def main():
    airmile = os.path.abspath(sys.argv[1])
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    rtt = int(os.environ.get("CLAW_RTT_MS", "80"))
    if os.geteuid() != 0:
        skip("needs root")
    for tool in ("nginx", "curl"):
        if not shutil.which(tool):
            skip(f"needs {tool}")
    probe = subprocess.run(["timeout", "-s", "INT", "3", airmile, "--json", "claw", "attach"], capture_output=True, text=True)
    if "attached" not in probe.stdout:
        skip((probe.stderr or probe.stdout).strip())
    missed = []
    with tempfile.TemporaryDirectory(prefix="airmile-claw-") as work:
        os.chmod(work, 0o755)
        os.mkdir(os.path.join(work, "www"))
        open(os.path.join(work, "www", "image.png"), "wb").write(os.urandom(IMAGE_BYTES))
        open(os.path.join(work, "www", "index.html"), "w").write(PAGE)
        open(os.path.join(work, "www", "timed.html"), "w").write(TIMED)
        open(os.path.join(work, "nginx.conf"), "w").write(NGINX.format(dir=work))
        open(os.path.join(work, "key"), "w").write(os.urandom(32).hex() + "\n")
        loads = [("curl", CURL, n), ("curl-options", CURL, n)]
        chromium = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        if os.path.exists(chromium):
            loads.append(("chromium", CHROMIUM.format(chromium=chromium, dir=work), max(n // 2, 3)))
        else:
            print("SKIPPED: the loads by Chromium: there is none")
        print(f"a page of one {IMAGE_BYTES} byte image, LTE of 20 MHz, idle, round trip {rtt} ms in the core;"
              f" load average {os.getloadavg()[0]:.1f}")
        for tool, load, n in loads:
            if tool != "curl-options":
                cubic, _, _, late = run(airmile, work, f"cubic-{tool}", None, n, load, rtt, 2)
                print(f"  {late}")
                describe(f"{tool}, Cubic", cubic)
            how = {"curl": "kill", "curl-options": "option", "chromium": "detach"}[tool]
            claw, said, serving, late = run(airmile, work, f"claw-{tool}", how, n, load, rtt, 2)
            print(f"  {late}")
            describe(f"{tool}, CLAW", claw)
            change = statistics.mean(claw) / statistics.mean(cubic) - 1
            print(f"{tool}: CLAW {change:+.1%} (the paper: -56 % in the mean, figure 12)")
            error = lambda values: statistics.variance(values) / len(values)
            if statistics.mean(cubic) - statistics.mean(claw) < 2 * math.sqrt(error(cubic) + error(claw)):
                missed.append(f"{tool}: CLAW is not faster with 95 % confidence")
            on = [line for line in serving if line]
            print(f"{tool}: a download over {how} of the loader, and one after it: {on}")
            if on != [f"200 {IMAGE_BYTES}"] * 2:
                missed.append(f"{tool}: nginx did not serve on after {how}")
            figures = [json.loads(line) for line in said.splitlines() if line.startswith("{") and "acks" in line]
            for figure in figures:
                print(f"{tool}: {json.dumps(figure)}")
                if figure["ack_p50_ns"] is None or figure["ack_p50_ns"] >= 1000:
                    missed.append(f"{tool}: an ACK takes {figure['ack_p50_ns']} ns in the median")
                if tool == "curl-options" and not figure["options_read"]:
                    missed.append(f"{tool}: no option was read")
                if not figure["acks_with_client_window"]:
                    missed.append(f"{tool}: no window of the client was used")
            reports = os.path.join(work, f"claw-{tool}.reports")
            rows = [json.loads(line) for line in open(reports) if "took_us" in line]
            if rows:
                took = sorted(row["took_us"] for row in rows)
                print(f"{tool}: {len(rows)} reports, made in {took[len(took) // 2]} us (median),"
                      f" {took[len(took) * 99 // 100]} us (99 %); statuses"
                      f" { {s: sum(r['status'] == s for r in rows) for s in sorted({r['status'] for r in rows})} }")
    for what in missed:
        print(f"MISSED: {what}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
