"""Two hosts in network namespaces, and the state that `airmile qcut` may change on one."""

import json
import os
import re
import shutil
import subprocess
import time

NEAR, FAR = "198.51.100.1", "198.51.100.2"
NEAR6, FAR6 = "2001:db8::1", "2001:db8::2"
# Timeout for operations that take milliseconds on an idle machine.
PATIENCE_S = 30


def qcut(program):
    """The command of QCut in a program: the whole one, or that for routers."""
    return [program] if os.path.basename(program).startswith("airmile-qcut") else [program, "qcut"]


def until(what, true, patience_s=PATIENCE_S):
    """Waits until a condition is true; returns the time taken."""
    began = time.monotonic()
    while True:
        value = true()
        if value:
            return time.monotonic() - began
        if time.monotonic() - began > patience_s:
            raise AssertionError(f"not within {patience_s} s: {what}")
        time.sleep(0.02)


class Hosts:
    """A host with an uplink `up0`, and a far host. Names are unique to this process."""

    def __init__(self):
        self.near, self.far = (f"aqcut{os.getpid()}{end}" for end in "nf")

    def __enter__(self):
        for name in (self.near, self.far):
            self.ip("netns", "add", name)
        self.ip("link", "add", "name", "up0", "netns", self.near, "type", "veth", "peer", "name", "up0", "netns", self.far)
        for name, ours, ours6 in ((self.near, NEAR, NEAR6), (self.far, FAR, FAR6)):
            self.ip("-n", name, "addr", "add", f"{ours}/24", "dev", "up0")
            self.ip("-n", name, "addr", "add", f"{ours6}/64", "dev", "up0", "nodad")
            for device in ("lo", "up0"):
                self.ip("-n", name, "link", "set", "dev", device, "up")
            if shutil.which("ethtool"):
                # As on a radio interface, no packet exceeds the MTU.
                subprocess.run(self.inside(name, "ethtool", "-K", "up0", "tso", "off", "gso", "off", "gro", "off",
                                           "tx", "off", "rx", "off"), check=True, capture_output=True)
        self.ip("-n", self.near, "route", "add", "default", "via", FAR, "dev", "up0")
        # A strict reverse-path filter, as on some systems.
        self.set("net.ipv4.conf.up0.rp_filter=1")
        self.servers = [subprocess.Popen(self.inside(self.far, "python3", "-m", "http.server", "80", "--bind", address,
                                                     "--directory", os.path.dirname(os.path.abspath(__file__))),
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                        for address in (FAR, FAR6)]
        until("the far host answers", lambda: self.reaches(FAR) and self.reaches(FAR6))
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.kill()
            server.wait()
        for name in (self.near, self.far):
            pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True).stdout.split()
            for pid in pids:
                subprocess.run(["kill", "-9", pid], stderr=subprocess.DEVNULL)
            subprocess.run(["ip", "netns", "del", name])

    @staticmethod
    def ip(*words):
        subprocess.run(["ip", *words], check=True)

    @staticmethod
    def inside(name, *words):
        return ["ip", "netns", "exec", name, *words]

    def set(self, setting):
        subprocess.run(self.inside(self.near, "sysctl", "-qw", setting), check=True)

    def has_cake(self):
        """Whether the kernel has CAKE; tried on the far host's loopback."""
        inside = lambda *words: subprocess.run(self.inside(self.far, *words), capture_output=True).returncode == 0
        return inside("tc", "qdisc", "add", "dev", "lo", "root", "cake") and inside("tc", "qdisc", "del", "dev", "lo", "root")

    def can_queue(self):
        """Whether a rule can send packets to a queue, by nftables or iptables; tried on the far host."""
        table = "add table inet trial; add chain inet trial c { type filter hook output priority 0; }; add rule inet trial c queue num 9"
        inside = lambda *words: subprocess.run(self.inside(self.far, *words), capture_output=True).returncode == 0
        by_nft = inside("nft", table)
        inside("nft", "delete", "table", "inet", "trial")
        rule = ("OUTPUT", "-p", "udp", "--dport", "9", "-j", "NFQUEUE", "--queue-num", "9")
        return by_nft or (inside("iptables", "-A", *rule) and inside("iptables", "-D", *rule))

    def near_says(self, *words):
        done = subprocess.run(self.inside(self.near, *words), capture_output=True, text=True)
        return done.stdout

    def reaches(self, address, timeout_s=2):
        """Whether a page of the far host can be loaded."""
        host = f"[{address}]" if ":" in address else address
        words = ["curl", "-sf", "-o", "/dev/null", "-m", str(timeout_s), f"http://{host}/hosts.py"]
        return subprocess.run(self.inside(self.near, *words)).returncode == 0

    def state(self):
        """All state that could have been changed, without counters."""
        parts = {
            # HTB prints its counter of unclassified packets among its options.
            "queueing": re.sub(r" direct_packets_stat \d+", "", self.near_says("tc", "qdisc", "show", "dev", "up0")),
            "classes": re.sub(r"(?m)^ .*\n", "", self.near_says("tc", "class", "show", "dev", "up0")),
            "rules": self.near_says("ip", "rule", "show") + self.near_says("ip", "-6", "rule", "show"),
            "routes": self.near_says("ip", "route", "show", "table", "all")
            + re.sub(r" expires \S+", "", self.near_says("ip", "-6", "route", "show", "table", "all")),
            "links": "\n".join(sorted(link["ifname"] for link in json.loads(self.near_says("ip", "-j", "link")))),
            "setting": self.near_says("sysctl", "net.ipv4.conf.up0.rp_filter"),
            "nftables": "\n".join(line for line in self.near_says("nft", "list", "tables").splitlines()
                                  if "airmile" in line),
        }
        for program in ("iptables-save", "ip6tables-save"):
            if shutil.which(program):
                parts[program] = "\n".join(line for line in self.near_says(program).splitlines() if line.startswith("-A"))
        # Link-local addresses appear by themselves, some time after the link.
        parts["routes"] = "\n".join(sorted(line.strip() for line in parts["routes"].splitlines()
                                           if not line.startswith("local fe80:")))
        return parts
