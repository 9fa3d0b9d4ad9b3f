"""Shapers beside QCut, for measure.py: cake-autorate's own scripts, and a loop that sets the rate
which `airmile qcut run --publish` tells (docs/qcut.md).

Both set CAKE's bandwidth by `tc`. Where the kernel has no CAKE, tc-cake.sh is first in the path, and
the shaper is an HTB that shares the rate between flows by turns, 64 queues by the source port. It
lacks CAKE's AQM (COBALT), its order of sparse flows and DSCP, and its hosts.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
QUEUES = 64
# Packets of a flow's queue: 0.2 s at 6 Mbit/s.
QUEUE_PACKETS = 100
# Addresses of the server that answer echoes as reflectors do (far.py).
REFLECTORS = [f"203.0.113.{n}" for n in range(1, 7)]
# Least, base and most rate in kbit/s. A user who knows this link of some 6 to 7.5 Mbit/s; the same
# as our imitation has in the lab; the defaults of cake-autorate.
SETTINGS = {"cake-autorate": (2000, 6000, 12000), "cake-autorate-wide": (500, 6000, 50000),
            "cake-autorate-defaults": (5000, 20000, 35000)}


def setup(device, kbps):
    """The stand-in of CAKE on the device."""
    tc = ["qdisc replace dev {d} root handle 1: htb default 2 r2q 1",
          "class add dev {d} parent 1: classid 1:1 htb rate {r}kbit ceil {r}kbit quantum 1514",
          "filter add dev {d} parent 1: protocol ip prio 1 handle 2: u32 divisor 64",
          # The low bits of the source port, which follows a header of 20 bytes.
          "filter add dev {d} parent 1: protocol ip prio 1 u32 match u32 0 0 hashkey mask 0x003f0000 at 20 link 2:"]
    for n in range(QUEUES):
        # The share is small, so that all borrow by turns from the whole rate.
        tc += [f"class add dev {{d}} parent 1:1 classid 1:{n + 2:x} htb rate 8kbit ceil 1gbit quantum 1514",
               f"qdisc add dev {{d}} parent 1:{n + 2:x} pfifo limit {QUEUE_PACKETS}",
               f"filter add dev {{d}} parent 1: protocol ip prio 1 u32 ht 2:{n:x}: match u32 0 0 flowid 1:{n + 2:x}"]
    text = "".join(line.format(d=device, r=kbps) + "\n" for line in tc)
    subprocess.run(["tc", "-batch", "-"], input=text, text=True, check=True)


def path_with_tc(work):
    """The environment in which `tc` is the stand-in."""
    bin_dir = os.path.join(work, "bin")
    os.makedirs(bin_dir, exist_ok=True)
    shutil.copy(os.path.join(HERE, "tc-cake.sh"), os.path.join(bin_dir, "tc"))
    return {**os.environ, "TC": shutil.which("tc"), "PATH": f"{bin_dir}:{os.environ['PATH']}"}


class CakeAutorate:
    """cake-autorate.sh of a checkout, with its defaults and one of SETTINGS, for the uplink alone."""

    def __init__(self, checkout, name, device, work):
        least, base, most = SETTINGS[name]
        self.work = os.path.join(work, f"{name}-{time.monotonic_ns()}")
        os.makedirs(self.work)
        config = os.path.join(self.work, "config.primary.sh")
        with open(config, "w") as file:
            file.write(f"dl_if=lo\nul_if={device}\nadjust_dl_shaper_rate=0\nadjust_ul_shaper_rate=1\n"
                       f"min_ul_shaper_rate_kbps={least}\nbase_ul_shaper_rate_kbps={base}\nmax_ul_shaper_rate_kbps={most}\n"
                       f"connection_active_thr_kbps={min(2000, least)}\noutput_cake_changes=1\ndebug=0\n"
                       f"log_file_path_override=\"{self.work}\"\nreflectors=({' '.join(REFLECTORS)})\n")
        setup(device, base)
        # It reads what was received where the downlink's packets are counted, also with no shaper there.
        env = {**path_with_tc(self.work), "CAKE_AUTORATE_SCRIPT_PREFIX": checkout, "CAKE_AUTORATE_CONFIG_PREFIX": self.work,
               "rx_bytes_path": f"/sys/class/net/{device}/statistics/rx_bytes"}
        self.began = time.monotonic()
        self.process = subprocess.Popen(["nice", "-n", "-15", "bash", f"{checkout}/cake-autorate.sh", config], env=env,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.device = device
        # The baseline of its delays.
        time.sleep(4)
        assert self.process.poll() is None, f"cake-autorate ended: {self.log()[-1000:]}"

    def log(self):
        path = os.path.join(self.work, "cake-autorate.primary.log")
        return open(path).read() if os.path.exists(path) else ""

    def end(self):
        """Processor time, and the rates that it set."""
        self.process.terminate()
        _, _, used = os.wait4(self.process.pid, 0)
        self.process.returncode = 0
        rates = [int(kbps) for kbps in re.findall(rf"dev {self.device} cake bandwidth (\d+)Kbit", self.log())]
        subprocess.run(["tc", "qdisc", "del", "dev", self.device, "root"], check=True)
        return {"cpu_s": used.ru_utime + used.ru_stime, "uptime_s": time.monotonic() - self.began,
                "rates": len(rates), "rate_kbps": [min(rates), statistics.median(rates), max(rates)] if rates else None}


class Published:
    """The recipe of docs/qcut.md each 0.2 s: the rate of the published file, set by `tc`."""

    def __init__(self, file, device, work, kbps):
        setup(device, kbps)
        self.device, self.file, self.rates, self.is_over = device, file, [], False
        self.env = path_with_tc(work)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.is_over:
            try:
                now = json.load(open(self.file))
            except (OSError, ValueError):
                now = {}
            if now.get("is_known") and now.get("rate_bps"):
                self.rates.append(now["rate_bps"] // 1000)
                words = ["tc", "qdisc", "change", "root", "dev", self.device, "cake", "bandwidth", f"{now['rate_bps']}bit"]
                subprocess.run(words, env=self.env, check=True)
            time.sleep(0.2)

    def end(self):
        self.is_over = True
        self.thread.join()
        subprocess.run(["tc", "qdisc", "del", "dev", self.device, "root"], check=True)
        return {"rates": len(self.rates),
                "rate_kbps": [min(self.rates), statistics.median(self.rates), max(self.rates)] if self.rates else None}
