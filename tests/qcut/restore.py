#!/usr/bin/env python3
"""Runs each deployment of `airmile qcut run` in network namespaces: traffic passes, and
however it ends, the system is restored.

    restore.py AIRMILE

AIRMILE is the whole command, or `airmile-qcut`.

Needs root; otherwise prints SKIPPED.
"""

import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from process_rights import check_rights
from hosts import FAR, FAR6, NEAR, Hosts, qcut, until

DEPLOYS = ["nfqueue", "htb", "tun"]
# If the kernel has it (`Hosts.has_cake`).
CAKE = "cake"
# Deployments whose packets pass through the process.
HUNG_DEPLOYS = ["nfqueue", "tun"]
# Deployments whose rate the process sets.
SHAPERS = ["htb"]
# Capability bits (linux/capability.h) that `qcut run` keeps.
NET_ADMIN, NET_RAW = 12, 13
# Ways to end it, and their exit status.
ENDS = {
    "SIGTERM": (signal.SIGTERM, 0),
    "SIGINT": (signal.SIGINT, 0),
    # Like an aborting panic, or a fault.
    "SIGABRT": (signal.SIGABRT, -signal.SIGABRT),
    "kill -9": (signal.SIGKILL, -signal.SIGKILL),
}


class Instance:
    """A running `airmile qcut run`."""

    def __init__(self, hosts, airmile, *words):
        self.hosts, self.airmile = hosts, airmile
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(hosts.inside(hosts.near, *qcut(airmile), "run", "--up", "up0", *words),
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True)
        # `ip netns exec` executes the command: the process is the instance itself.
        until(f"it begins: {words}\n{self.error_output()}", lambda: self.process.poll() is not None or self.status() is not None)

    def status(self):
        words = [*qcut(self.airmile), "watch", "--up", "up0", "--json"]
        process = subprocess.Popen(self.hosts.inside(self.hosts.near, *words), stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True)
        line = process.stdout.readline()
        process.kill()
        process.wait()
        status = json.loads(line) if line else None
        return status if status and status["classes"] else None

    def guards(self):
        """Processes of its guard."""
        mine = []
        for pid in self.hosts_pids():
            try:
                words = open(f"/proc/{pid}/cmdline").read().split("\0")
            except OSError:
                continue
            if "guard" in words:
                mine.append(int(pid))
        return mine

    def hosts_pids(self):
        return subprocess.run(["ip", "netns", "pids", self.hosts.near], capture_output=True, text=True).stdout.split()

    def end(self, number):
        self.process.send_signal(number)
        return self.process.wait(timeout=60)

    def error_output(self):
        self.errors.seek(0)
        return self.errors.read()


def check_state(hosts, before, what):
    def is_same():
        return hosts.state() == before

    try:
        return until(f"{what}: the system is restored", is_same)
    except AssertionError:
        now = hosts.state()
        for part in before:
            if now[part] != before[part]:
                print(f"--- {part} before\n{before[part]}\n--- {part} after\n{now[part]}")
        raise


def check_passes(hosts, what):
    for address in (FAR, FAR6):
        assert hosts.reaches(address, 20), f"{what}: {address} is not reached"


def send_udp(hosts, packets):
    """Datagrams without an answer, which hold nothing up."""
    program = ("import socket,sys\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n"
               f"for n in range({packets}): s.sendto(bytes(1000),('{FAR}',9))")
    subprocess.run(hosts.inside(hosts.near, "python3", "-c", program), check=True)


def check_ends(hosts, airmile):
    before = hosts.state()
    for deploy in DEPLOYS + [CAKE] * hosts.has_cake():
        for how, (number, expected) in ENDS.items():
            instance = Instance(hosts, airmile, "--deploy", deploy)
            assert instance.process.poll() is None, f"{deploy} ended: {instance.error_output()}"
            assert hosts.state() != before, f"{deploy} changes nothing"
            check_passes(hosts, f"{deploy} while it runs")
            send_udp(hosts, 50)
            # A short queue (no fq_codel in the kernel) drops some of them.
            until(f"{deploy} counts packets",
                  lambda: sum(each["arrived_packets"] for each in (instance.status() or {"classes": []})["classes"]) > 50)
            status = instance.end(number)
            assert status == expected, f"{deploy}, {how}: status {status}: {instance.error_output()}"
            back_s = until(f"{deploy}, {how}: the path works", lambda: hosts.reaches(FAR), 10)
            all_s = check_state(hosts, before, f"{deploy}, {how}")
            print(f"{deploy:8} {how:8} the path after {back_s * 1e3:4.0f} ms, restored after {all_s * 1e3:4.0f} ms more")


def check_guard_killed(hosts, airmile):
    """Guard and instance are killed together; restored by hand, and by the next instance."""
    before = hosts.state()
    for deploy in DEPLOYS:
        for way in ("restore", "next"):
            instance = Instance(hosts, airmile, "--deploy", deploy)
            for guard in instance.guards():
                os.kill(guard, signal.SIGKILL)
            instance.end(signal.SIGKILL)
            check_passes(hosts, f"{deploy} without its guard") if deploy != "htb" else None
            if way == "restore":
                done = subprocess.run(hosts.inside(hosts.near, *qcut(airmile), "restore", "--up", "up0"),
                                      capture_output=True, text=True)
                assert done.returncode == 0 and "restored" in done.stdout, done
            else:
                following = Instance(hosts, airmile, "--deploy", "nfqueue")
                following.end(signal.SIGTERM)
            check_state(hosts, before, f"{deploy}, {way}")
    # The guard alone: the instance ends and restores the system, or reports that it cannot.
    instance = Instance(hosts, airmile, "--deploy", "nfqueue")
    for guard in instance.guards():
        os.kill(guard, signal.SIGKILL)
    assert instance.process.wait(timeout=60) == 3, instance.error_output()
    check_state(hosts, before, "the guard was killed")
    print("guard killed: restored by `restore`, by the next instance, by the instance")


def check_hung(hosts, airmile):
    """A hanging instance blocks nothing, and is used again when it recovers."""
    before = hosts.state()
    for deploy in HUNG_DEPLOYS:
        instance = Instance(hosts, airmile, "--deploy", deploy)
        running = hosts.state()
        assert running != before, f"{deploy} changes nothing"
        check_passes(hosts, f"{deploy} before it hangs")
        instance.process.send_signal(signal.SIGSTOP)
        hung_s = until(f"{deploy} hangs: the path works", lambda: hosts.reaches(FAR) and hosts.reaches(FAR6), 15)
        assert hosts.state() != running, f"{deploy} hangs: packets are still sent to it"
        instance.process.send_signal(signal.SIGCONT)
        check_state(hosts, running, f"{deploy} is back")
        sent = lambda: sum(each["sent_packets"] for each in (instance.status() or {"classes": []})["classes"])
        count = sent()
        check_passes(hosts, f"{deploy} is back")
        until(f"{deploy} is back: packets pass the gate", lambda: sent() > count)
        assert instance.end(signal.SIGTERM) == 0, instance.error_output()
        check_state(hosts, before, f"{deploy} hung once")
        # An instance killed while it hangs leaves nothing behind, either.
        instance = Instance(hosts, airmile, "--deploy", deploy)
        instance.process.send_signal(signal.SIGSTOP)
        until(f"{deploy} hangs again: the path works", lambda: hosts.reaches(FAR), 15)
        instance.end(signal.SIGKILL)
        check_state(hosts, before, f"{deploy} was killed while it hung")
        print(f"{deploy:8} hangs    the path after {hung_s * 1e3:4.0f} ms, and through the gate again when it recovers")


def class_rates(hosts, deploy):
    """The kernel's rate of the uplink in bit/s, as printed by `tc`."""
    if deploy == CAKE:
        shown = hosts.near_says("tc", "qdisc", "show", "dev", "up0")
        found = re.search(r"cake a11e: .*?bandwidth (\d+)([KMG]?)bit", shown)
    else:
        shown = hosts.near_says("tc", "class", "show", "dev", "up0")
        found = re.search(r"class htb a11e:1 .*?ceil (\d+)([KMG]?)bit", shown)
    assert found, shown
    return int(found[1]) * {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}[found[2]]


def check_hung_shaper_opens_its_rate(hosts, airmile):
    """A shaper whose process hangs limits nothing, however low its rate was, and gets its
    rate back when the process recovers."""
    before = hosts.state()
    for deploy in SHAPERS + [CAKE] * hosts.has_cake():
        instance = Instance(hosts, airmile, "--deploy", deploy)
        check_passes(hosts, f"{deploy} before it hangs")
        instance.process.send_signal(signal.SIGSTOP)

        def set_rate(rate):
            words = ["qdisc", "change", "dev", "up0", "root", "handle", "a11e:", "cake", "bandwidth", rate]
            if deploy != CAKE:
                words = ["class", "change", "dev", "up0", "parent", "a11e:", "classid", "a11e:1", "htb", "rate", rate]
            subprocess.run(hosts.inside(hosts.near, "tc", *words), check=True)

        # As after a moment without signal.
        set_rate("8kbit")
        hung_s = until(f"{deploy} hangs: its rate is open", lambda: class_rates(hosts, deploy) >= 10**9, 15)
        until(f"{deploy} hangs: the path works", lambda: hosts.reaches(FAR) and hosts.reaches(FAR6), 15)
        # The rate at recovery is not its own.
        set_rate("9kbit")
        instance.process.send_signal(signal.SIGCONT)

        def is_its_own():
            status = instance.status()
            return status and abs(class_rates(hosts, deploy) / status["set_rate_bps"] - 1) < 0.05

        back_s = until(f"{deploy} recovers: its rate is set", is_its_own, 15)
        check_passes(hosts, f"{deploy} is back")
        assert instance.end(signal.SIGTERM) == 0, instance.error_output()
        check_state(hosts, before, f"{deploy} hung once")
        print(f"{deploy:8} hangs    its rate open after {hung_s * 1e3:4.0f} ms, its own {back_s * 1e3:4.0f} ms after it is back")
    if not hosts.has_cake():
        print("SKIPPED: a hung --deploy cake: this kernel has no CAKE")


def held(lock):
    """Whether a process holds a lock: those of ended namespaces stay."""
    with open(lock) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def check_privileges_of_run_and_guard(hosts, airmile):
    """While it reads packets, every thread of the process and its guard has two capabilities,
    no_new_privs and a system call filter."""
    kept = 1 << NET_ADMIN | 1 << NET_RAW
    for deploy in DEPLOYS + [CAKE] * hosts.has_cake():
        instance = Instance(hosts, airmile, "--deploy", deploy)
        check_passes(hosts, f"{deploy} with fewer rights")
        guards = instance.guards()
        assert len(guards) == 1, guards
        rights = {}
        for pid in (instance.process.pid, *guards):
            _, rights[pid] = check_rights(pid, kept)
        # Who can read a lock can hold it, and keep the next instance and `restore` out.
        for lock in pathlib.Path("/run/airmile").glob("qcut-up0-*.lock"):
            assert lock.stat().st_mode & 0o077 == 0 or not held(lock), lock
        if deploy == DEPLOYS[0]:
            print(f"privileges: {rights[instance.process.pid]}")
        assert instance.end(signal.SIGTERM) == 0, instance.error_output()


def check_former_queueing(hosts, airmile):
    """The user's own queueing is restored with its parameters."""
    tc = lambda *words: subprocess.run(hosts.inside(hosts.near, "tc", "qdisc", *words), check=True)
    for words in (["tbf", "rate", "20mbit", "burst", "10kb", "limit", "100kb"], ["bfifo", "limit", "70000"]):
        tc("replace", "dev", "up0", "root", "handle", "5:", *words)
        before = hosts.state()
        instance = Instance(hosts, airmile, "--deploy", "htb")
        assert "htb" in hosts.state()["queueing"]
        instance.end(signal.SIGKILL)
        check_state(hosts, before, f"queueing {words[0]}")
        tc("del", "dev", "up0", "root")
    for words in (["root", "handle", "5:", "htb"], ["root", "handle", "5:", "tbf", "rate", "20mbit", "burst", "10kb", "limit", "100kb"]):
        tc("add", "dev", "up0", *words)
        if "tbf" in words:
            tc("add", "dev", "up0", "parent", "5:1", "handle", "6:", "bfifo", "limit", "50000")
        before = hosts.state()
        done = subprocess.run(hosts.inside(hosts.near, *qcut(airmile), "run", "--up", "up0", "--deploy", "htb"),
                              capture_output=True, text=True)
        assert done.returncode == 3 and "--deploy nfqueue" in done.stderr, done
        check_passes(hosts, "what is refused")
        check_state(hosts, before, "what is refused")
        tc("del", "dev", "up0", "root")
    print("former queueing: restored with its parameters; one with classes is refused")


def check_published(hosts, airmile):
    """Nothing is held back, no rule and no queueing is changed, and the file has rate and queue."""
    before = hosts.state()
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, "uplink.json")
        instance = Instance(hosts, airmile, "--deploy", "none", "--publish", f"file:{path}")
        check_passes(hosts, "nothing held back")
        assert hosts.state() == before, "publishing changes something"
        status = lambda: json.load(open(path))
        until("round trips are published", lambda: status()["rtt_f_ms"] is not None and status()["is_known"])
        told = status()
        assert told["deploy"] == "none" and told["rate_bps"] > 0 and "queue_delay_ms" in told, told
        assert os.stat(path).st_mode & 0o777 == 0o600
        assert instance.end(signal.SIGTERM) == 0, instance.error_output()
        assert os.listdir(work) == []
    print(f"published: rate {told['rate_bps'] / 1e6:.1f} Mbit/s, queue {told['occupancy_bytes']} bytes; nothing changed")


def check_published_to_others(hosts, airmile):
    """A broker's subscriber and the bus get rate and queue, and no addresses."""
    names = {"interface", "at_s", "is_known", "evidence", "rate_kbps", "queue_bytes", "queue_delay_ms", "limit_bytes"}
    # Programs that it starts write below /run alone, as it does.
    with tempfile.TemporaryDirectory(dir="/run") as work:
        events, bus = os.path.join(work, "events"), os.path.join(work, "ubus")
        with open(bus, "w") as file:
            file.write(f'#!/bin/sh\nprintf "%s\\n" "$*" >> {events}\n')
        os.chmod(bus, 0o755)
        path = os.environ["PATH"]
        os.environ["PATH"] = f"{work}:{path}"
        try:
            instance = Instance(hosts, airmile, "--deploy", "none", "--publish", "ubus")
            until("an event is sent", lambda: os.path.exists(events) and open(events).read().endswith("\n"))
            assert instance.end(signal.SIGTERM) == 0, instance.error_output()
        finally:
            os.environ["PATH"] = path
        words = open(events).read().splitlines()[0].split(" ", 4)
        assert words[:4] == ["-t", "1", "send", "airmile.qcut"] and set(json.loads(words[4])) == names, words
        if not shutil.which("mosquitto") or not shutil.which("mosquitto_sub"):
            print("SKIPPED: publishing to a broker: no mosquitto; ubus: an event has rate and queue")
            return
        config = os.path.join(work, "mosquitto.conf")
        with open(config, "w") as file:
            file.write(f"listener 18830 127.0.0.1\nallow_anonymous true\nuser root\npersistence false\n")
        broker = subprocess.Popen(hosts.inside(hosts.near, "mosquitto", "-c", config), stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        try:
            subscriber = subprocess.Popen(hosts.inside(hosts.near, "timeout", "30", "sh", "-c", "until mosquitto_sub -p 18830 "
                                                       "-t home/uplink -C 2; do sleep 0.1; done"), stdout=subprocess.PIPE, text=True)
            instance = Instance(hosts, airmile, "--deploy", "none", "--publish", "mqtt://127.0.0.1:18830/home/uplink")
            messages = subscriber.communicate(timeout=60)[0].splitlines()
            assert len(messages) == 2 and all(set(json.loads(each)) == names for each in messages), messages
            assert instance.end(signal.SIGTERM) == 0, instance.error_output()
        finally:
            broker.kill()
            broker.wait()
    print("published: events of ubus, messages of a broker")


def check_auto(hosts, airmile):
    """`check` and `--deploy auto` name the same deployment, it works, and the rest is named by its package."""
    before = hosts.state()
    done = subprocess.run(hosts.inside(hosts.near, *qcut(airmile), "check", "--up", "up0", "--json"), capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0, done
    report = json.loads(done.stdout)
    assert hosts.state() == before, "check changes something"
    assert report["is_privileged"] and report["auto"] == "nfqueue", report
    by_name = {each["deploy"]: each["missing"] for each in report["deploys"]}
    assert not by_name["htb"] and not by_name["tun"], by_name
    assert hosts.has_cake() == (not by_name["cake"]) and (hosts.has_cake() or "kmod-sched-cake" in by_name["cake"][0]), by_name
    instance = Instance(hosts, airmile, "--deploy", "auto")
    assert instance.status()["deploy"] == report["auto"], instance.error_output()
    instance.end(signal.SIGTERM)
    check_state(hosts, before, "auto")
    print(f"check: auto is {report['auto']}; missing: {({name: what for name, what in by_name.items() if what})}")


def check_refusals(hosts, airmile):
    run = lambda *words: subprocess.run(hosts.inside(hosts.near, *words), capture_output=True, text=True, timeout=60)
    before = hosts.state()
    with tempfile.TemporaryDirectory() as work:
        for words, expected in [
            (["--up", "wwan9"], "there is no such interface; there are"),
            (["--up", "up0", "--limit", "20"], "use a time such as 20ms"),
            (["--up", "up0", "--modem", work], "modem"),
            (["--up", "up0", "--metrics", "0.0.0.0:0"], "set a token"),
        ]:
            done = run(*qcut(airmile), "run", "--duration", "1", *words)
            assert done.returncode in (2, 3) and expected in done.stderr, (words, done)
        done = run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *qcut(airmile), "run", "--up", "up0")
        assert done.returncode == 3 and "sudo" in done.stderr, done
        instance = Instance(hosts, airmile)
        done = run(*qcut(airmile), "run", "--up", "up0")
        assert done.returncode == 3 and "runs there already" in done.stderr, done
        instance.end(signal.SIGTERM)
        if not hosts.has_cake():
            done = run(*qcut(airmile), "run", "--up", "up0", "--deploy", CAKE)
            assert done.returncode == 3 and "sch_cake" in done.stderr and "kmod-sched-cake" in done.stderr, done
        # Without nft and iptables in its path.
        done = run("env", "PATH=/nonexistent", *qcut(airmile), "run", "--up", "up0", "--duration", "1")
        assert done.returncode == 3 and "nftables" in done.stderr, done
    check_state(hosts, before, "what is refused")
    print("refusals: each explains what to do, and changes nothing")


def check_metrics(hosts, airmile):
    """Loopback needs no token, and requests that name another host are refused."""
    instance = Instance(hosts, airmile, "--metrics", "127.0.0.1:9478")
    fetch = lambda *words: hosts.near_says("curl", "-s", *words)
    text = fetch("http://127.0.0.1:9478/metrics")
    for name in ("occupancy_bytes", "rate_bits_per_second", "held_packets{class=\"urgent\"}", "dropped_aqm_total"):
        assert f"airmile_qcut_{name}" in text, text
    assert json.loads(fetch("http://127.0.0.1:9478/v1/status"))["deploy"] == "nfqueue"
    assert "name this machine" in fetch("-H", "Host: evil.example", "http://127.0.0.1:9478/metrics")
    line = subprocess.run(hosts.inside(hosts.near, "timeout", "-s", "INT", "3", *qcut(airmile), "watch", "--lines"),
                          capture_output=True, text=True).stdout
    assert "up0: modem" in line and "RTT_F" in line, line
    # Users who may not run it may still watch it.
    line = subprocess.run(hosts.inside(hosts.near, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "timeout",
                                       "-s", "INT", "3", *qcut(airmile), "watch", "--lines"), capture_output=True, text=True).stdout
    assert "up0: modem" in line, line
    assert instance.end(signal.SIGTERM) == 0
    out = instance.process.stdout.read()
    assert "urgent" in out and "CPU" in out, out
    os.environ["AIRMILE_TOKEN"] = secret = "0123456789abcdef"
    instance = Instance(hosts, airmile, "--metrics", f"{NEAR}:9478")
    code = lambda *words: fetch("-o", "/dev/null", "-w", "%{http_code}", *words, f"http://{NEAR}:9478/metrics")
    bearer = lambda word: ("-H", f"Authorization: Bearer {word}")
    assert [code(), code(*bearer("wrong")), code(*bearer(secret))] == ["401", "401", "200"]
    instance.end(signal.SIGTERM)
    del os.environ["AIRMILE_TOKEN"]
    print("metrics, watch and the summary work")


def main():
    airmile = os.path.abspath(sys.argv[1])
    if os.geteuid() != 0:
        print("SKIPPED: needs root, to make network namespaces and to shape in them")
        return 0
    missing = [program for program in ("ip", "tc", "nft", "curl") if not shutil.which(program)]
    if missing:
        print(f"SKIPPED: needs {', '.join(missing)}")
        return 0
    with Hosts() as hosts:
        if not hosts.can_queue():
            print("SKIPPED: the kernel sends no packets to a queue by nftables, nor by iptables (install iptables)")
            return 0
        if not hosts.has_cake():
            print("SKIPPED: --deploy cake, as this kernel has no CAKE: only its refusal is tested")
        check_refusals(hosts, airmile)
        check_metrics(hosts, airmile)
        check_auto(hosts, airmile)
        check_published(hosts, airmile)
        check_published_to_others(hosts, airmile)
        check_privileges_of_run_and_guard(hosts, airmile)
        check_ends(hosts, airmile)
        check_hung(hosts, airmile)
        check_hung_shaper_opens_its_rate(hosts, airmile)
        check_guard_killed(hosts, airmile)
        check_former_queueing(hosts, airmile)
    print("all restored")
    return 0


if __name__ == "__main__":
    sys.exit(main())
