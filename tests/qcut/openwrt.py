#!/usr/bin/env python3
"""The OpenWrt package in a root of its own: installed, started, killed, reloaded, removed.

    openwrt.py AIRMILE_QCUT

AIRMILE_QCUT is a static program for this machine. No userland of OpenWrt is used: the shell is
Debian's static busybox, and the functions of OpenWrt that the scripts call (UCI, procd, network)
are stand-ins of this file, which record what the init script asks procd for. This file then does as
procd does: it starts the command, and again when it ends. Root is needed; without it, and without
busybox or nft, this says SKIPPED.
"""

import glob
import gzip
import io
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile

from hosts import FAR, Hosts, until
from openwrt_stubs import FUNCTIONS, NETWORK, RC_COMMON

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGING = os.path.join(HERE, "../../packaging/openwrt")
RUN_DIR = "/var/run/airmile"
STATUS = RUN_DIR + "/status-wan.json"
# procd's respawn: after so many seconds.
RESPAWN_S = 5

PROGRAMS = ["nft", "iptables", "ip6tables"]


def copy_program(root, name):
    """A program of this machine with its libraries."""
    path = shutil.which(name)
    needed = [path] + [word for line in subprocess.run(["ldd", path], capture_output=True, text=True).stdout.splitlines()
                       for word in line.split() if word.startswith("/")]
    for file in needed:
        os.makedirs(root + os.path.dirname(file), exist_ok=True)
        shutil.copy(file, root + file)


class Router:
    """A root, and what procd would run in it."""

    def __init__(self, hosts, root):
        self.hosts, self.root = hosts, root
        self.process, self.wanted, self.errors = None, None, open(root + "/tmp/log", "a+")

    def path(self, name):
        return self.root + name

    def words(self, *words, environment=()):
        inner = ("mount --rbind /dev dev && mount --rbind /proc proc && mount -t sysfs none sys; "
                 'exec chroot . /bin/busybox env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"')
        return self.hosts.inside(self.hosts.near, "unshare", "-m", "sh", "-c", f"cd {self.root} && {inner}", "sh",
                                 *environment, *words)

    def run(self, *words, **options):
        return subprocess.run(self.words(*words), capture_output=True, text=True, timeout=120, **options)

    def init(self, action):
        """Runs the init script; a stop waits until procd has ended what runs, which is done here."""
        running = subprocess.Popen(self.words("/bin/sh", "/etc/rc.common", "/etc/init.d/qcut", action),
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        while running.poll() is None:
            self.turn()
        out = running.stdout.read()
        self.turn()
        assert running.returncode == 0, (action, out)
        return out

    def asked(self):
        """The instance that the script asked for."""
        try:
            text = open(self.path("/tmp/procd.set")).read()
        except FileNotFoundError:
            return None
        parts = [part.split("\n") for part in text.strip().split("\n\n") if part]
        asked = {"command": [], "env": [], "triggers": []}
        for what, *words in parts:
            if what in ("set", "append"):
                name, *values = words
                asked[name] = (asked.get(name, []) if what == "append" else []) + values
            elif what.endswith("trigger"):
                asked["triggers"].append([what, *words])
        return asked

    def turn(self):
        """What procd does: what is wanted runs, what has another command is started anew."""
        asked = self.asked()
        command = asked["command"] if asked else []
        if self.process and (command != self.wanted or os.path.exists(self.path("/tmp/procd.stop"))):
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(timeout=60)
            self.process = None
        if os.path.exists(self.path("/tmp/procd.stop")):
            os.remove(self.path("/tmp/procd.stop"))
        self.wanted = command
        if command and not self.process:
            self.process = subprocess.Popen(self.words(*command, environment=asked["env"]), stdout=self.errors,
                                            stderr=self.errors)

    def status(self):
        try:
            return json.load(open(self.path(STATUS)))
        except (OSError, ValueError):
            return None

    def log(self):
        self.errors.flush()
        return open(self.path("/tmp/log")).read()


def unpack(package):
    """Parts of an .ipk: control and data as {name: (bytes, mode)}."""
    def members(data):
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(data))) as tar:
            return {each.name[2:]: (tar.extractfile(each).read(), each.mode) for each in tar if each.isfile()}
    whole = members(open(package, "rb").read())
    assert whole["debian-binary"][0] == b"2.0\n"
    return members(whole["control.tar.gz"][0]), members(whole["data.tar.gz"][0])


def make_root(root):
    for folder in ("bin", "tmp", "dev", "proc", "sys", "lib/functions", "etc/config", "usr/lib/opkg/info", "sbin", "usr/bin"):
        os.makedirs(os.path.join(root, folder))
    # As on OpenWrt: what changes is in memory.
    os.symlink("tmp", root + "/var")
    shutil.copy(shutil.which("busybox"), root + "/bin/busybox")
    for name in ("sh", "env"):
        os.symlink("busybox", f"{root}/bin/{name}")
    subprocess.run(["chroot", root, "/bin/busybox", "--install", "-s", "/usr/bin"], check=True)
    for name, text in (("etc/rc.common", RC_COMMON), ("lib/functions.sh", FUNCTIONS), ("lib/functions/network.sh", NETWORK),
                       ("etc/openwrt_release", "DISTRIB_ID='a stand-in'\n"), ("tmp/device-of-wan", "up0\n")):
        path = os.path.join(root, name)
        if os.path.lexists(path):
            os.remove(path)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, 0o755)
    for name in filter(shutil.which, PROGRAMS):
        copy_program(root, name)
    # Extensions of iptables are libraries that it looks for by name.
    for folder in glob.glob("/usr/lib/*/xtables"):
        shutil.copytree(folder, root + folder)


def install(router, package):
    """As opkg does: asks, unpacks, lists, runs."""
    control, data = unpack(package)
    name = os.path.basename(package).split("_")[0]
    fields = dict(line.split(": ", 1) for line in control["control"][0].decode().splitlines())
    info = router.path("/usr/lib/opkg/info/")
    for script in ("preinst", "postinst", "prerm"):
        if script in control:
            with open(f"{info}{name}.{script}", "wb") as file:
                file.write(control[script][0])
    if "preinst" in control:
        done = router.run("/bin/sh", f"/usr/lib/opkg/info/{name}.preinst")
        assert done.returncode == 0, done
    for path, (content, mode) in data.items():
        to = router.path("/" + path)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        with open(to, "wb") as file:
            file.write(content)
        os.chmod(to, mode)
    with open(f"{info}{name}.list", "w") as file:
        file.writelines(f"/{path}\n" for path in sorted(data))
    done = router.run("/bin/sh", f"/usr/lib/opkg/info/{name}.postinst")
    assert done.returncode == 0, done
    return fields, control, data


def set_config(router, *lines):
    with open(router.path("/etc/config/qcut"), "w") as file:
        file.write("config uplink 'wan'\n" + "".join(f"\t{line}\n" for line in lines))


def flash(root):
    """All files and when they changed, but for what is in memory on a router."""
    found = {}
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if os.path.join(folder, name) not in
                    [os.path.join(root, memory) for memory in ("tmp", "dev", "proc", "sys")]]
        for name in files:
            stat = os.lstat(os.path.join(folder, name))
            found[os.path.relpath(os.path.join(folder, name), root)] = (stat.st_mtime_ns, stat.st_size)
    return found


def check_service(hosts, router, package):
    before = hosts.state()
    fields, control, data = install(router, package)
    assert "kmod-nft-queue" in fields["Depends"] and "kmod-sched-cake" in fields["Depends"], fields
    assert control["conffiles"][0] == b"/etc/config/qcut\n"
    assert os.path.islink(router.path("/etc/rc.d/S95qcut")), "not enabled"
    # Installed it does nothing until it is enabled by its option.
    router.turn()
    assert router.process is None and hosts.state() == before
    print(f"installed: {len(data)} files, enabled, no instance before option enabled")

    set_config(router, "option enabled '1'", "option network 'wan'", "option limit '20ms'", "option deploy 'nfqueue'",
               "list urgent_port '22'", "list urgent_port '5060'")
    written = flash(router.root)
    router.init("start")
    asked = router.asked()
    assert asked["command"][:4] == ["/usr/sbin/airmile-qcut", "run", "--up", "up0"], asked
    assert asked["command"][asked["command"].index("--urgent-port") + 1] == "22,5060", asked
    assert asked["respawn"] == ["3600", str(RESPAWN_S), "0"] and asked["stderr"] == ["1"], asked
    assert asked["netdev"] == ["up0"] and ["interface_trigger", "wan"] in asked["triggers"], asked
    assert ["trigger", "qcut"] in asked["triggers"], asked
    running = lambda: router.process.poll() is not None or (router.status() or {}).get("classes")
    until("the service begins", running)
    assert router.process.poll() is None, router.log()
    assert hosts.state() != before and hosts.reaches(FAR, 20)
    status = router.status()
    assert status["deploy"] == "nfqueue" and status["at_s"] > 1e9 and status["waiting"] == [], status
    print(f"started: {' '.join(asked['command'][1:])}")

    # kill -9: the guard restores, procd starts it again.
    router.process.kill()
    router.process.wait()
    back_s = until("the path is back", lambda: hosts.reaches(FAR), 10)
    all_s = until("everything is as it was", lambda: hosts.state() == before, 10)
    print(f"kill -9: the path after {back_s * 1e3:.0f} ms, all as before after {all_s * 1e3:.0f} ms more")
    until("the status of the killed run is gone", lambda: not os.path.exists(router.path(STATUS)), 10)
    router.process = None
    router.turn()
    until("it runs again", running)
    assert router.process.poll() is None and hosts.reaches(FAR, 20), router.log()

    # A changed option: procd ends the former command and starts the new one.
    former = router.process.pid
    set_config(router, "option enabled '1'", "option limit '5KB'", "option deploy 'auto'")
    router.init("reload")
    until("the new limit holds", lambda: (router.status() or {}).get("limit") == "5KB" and router.status()["classes"])
    assert router.process.pid != former and hosts.reaches(FAR, 20), router.log()
    print(f"reload: limit {router.status()['limit']}, --deploy auto took {router.status()['deploy']}")
    # The same again: nothing is started anew.
    former = router.process.pid
    router.init("reload")
    assert router.process.pid == former and router.process.poll() is None

    # The modem goes and comes: another index, which procd's netdev would see; the program ends.
    router.init("stop")
    assert router.process is None and not os.path.exists(router.path(STATUS))
    until("stopped: everything is as it was", lambda: hosts.state() == before, 10)

    # Both killed at once, then stop: `restore` does it.
    router.init("start")
    until("it runs", running)
    guards = [int(pid) for pid in subprocess.run(["ip", "netns", "pids", hosts.near], capture_output=True,
                                                 text=True).stdout.split()
              if "guard" in open(f"/proc/{pid}/cmdline").read().split("\0")]
    for pid in guards + [router.process.pid]:
        os.kill(pid, signal.SIGKILL)
    router.process.wait()
    router.process = None
    router.wanted = router.asked()["command"]
    assert hosts.state() != before
    os.remove(router.path("/tmp/procd.set"))
    router.init("stop")
    until("restored after both were killed", lambda: hosts.state() == before, 10)

    # A network without a device: no instance, no error, a line in the log.
    os.rename(router.path("/tmp/device-of-wan"), router.path("/tmp/device-away"))
    router.init("start")
    assert not router.asked()["command"] and "has no device" in router.log(), router.log()
    os.rename(router.path("/tmp/device-away"), router.path("/tmp/device-of-wan"))
    check_hotplug(router)

    router.init("start")
    until("it runs", running)
    now = flash(router.root)
    changed = [path for path in now if now[path] != written.get(path) and path != "etc/config/qcut"]
    assert not changed, f"written to flash: {changed}"
    remove(router, "airmile-qcut", data)
    until("removed: everything is as it was", lambda: hosts.state() == before, 10)
    left = [path for path in data if path != "etc/config/qcut" and os.path.exists(router.path("/" + path))]
    assert not left and not os.path.lexists(router.path("/etc/rc.d/S95qcut")), left
    assert hosts.reaches(FAR, 20)
    print("removed: path and settings as before, nothing was written to flash")


def check_hotplug(router):
    """The port of the option comes: a reload; another one: none."""
    set_config(router, "option enabled '1'", "option modem '/dev/ttyUSB2'")
    # The script calls the init script by its path, as OpenWrt's shebang has it.
    calls = router.path("/tmp/calls")
    init = router.path("/etc/init.d/qcut")
    os.rename(init, init + ".real")
    with open(init, "w") as file:
        file.write('#!/bin/sh\necho "$1" >> /tmp/calls\n')
    os.chmod(init, 0o755)
    for name, action, expected in (("ttyUSB2", "add", "enabled\nreload\n"), ("ttyUSB3", "add", "enabled\n"),
                                   ("ttyUSB2", "remove", "")):
        open(calls, "w").close()
        done = router.run(f"ACTION={action}", f"DEVICENAME={name}", "/bin/sh", "/etc/hotplug.d/tty/50-qcut")
        assert done.returncode == 0 and open(calls).read() == expected, (name, action, done, open(calls).read())
    os.rename(init + ".real", init)
    set_config(router, "option enabled '1'")
    print("hotplug: the modem's own port reloads, others do not")


def remove(router, name, data):
    """As opkg does: runs, deletes all but the configuration."""
    running = subprocess.Popen(router.words("/bin/sh", f"/usr/lib/opkg/info/{name}.prerm"), stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    while running.poll() is None:
        router.turn()
    assert running.returncode == 0, running.stdout.read()
    for path in data:
        if path != "etc/config/qcut":
            os.remove(router.path("/" + path))


def check_packages(binary, work):
    """The same bytes each time; another machine's package is refused."""
    make = lambda out, machine: subprocess.run([sys.executable, f"{PACKAGING}/package.py", binary, machine, out], check=True)
    one, two = (os.path.join(work, name) for name in ("one", "two"))
    for out in (one, two):
        make(out, platform.machine())
    names = sorted(name for name in os.listdir(one) if name.endswith(".ipk"))
    assert len(names) == 2, names
    for name in names:
        assert open(f"{one}/{name}", "rb").read() == open(f"{two}/{name}", "rb").read(), name
    # Both orders of bytes are `mips` to uname: the architecture tells them apart.
    for machine, architecture in (("mipsel", "mipsel_24kc"), ("mips", "mips_24kc")):
        make(two, machine)
        package = next(f"{two}/{name}" for name in os.listdir(two) if name.startswith("airmile-qcut") and name.endswith(f"_{machine}.ipk"))
        control, _ = unpack(package)
        assert f"\nArchitecture: {architecture}\n" in control["control"][0].decode(), control["control"]
    script = os.path.join(work, "preinst")
    with open(script, "wb") as file:
        file.write(control["preinst"][0])
    done = subprocess.run(["busybox", "sh", script], capture_output=True, text=True)
    assert done.returncode == 1 and "this package is for mips" in done.stderr, done
    return f"{one}/{names[0]}", f"{one}/{names[1]}"


def check_luci(package):
    """Its files are where LuCI looks, and its JSON is JSON."""
    _, data = unpack(package)
    menu = json.loads(data["usr/share/luci/menu.d/luci-app-qcut.json"][0])
    acl = json.loads(data["usr/share/rpcd/acl.d/luci-app-qcut.json"][0])
    view = menu["admin/status/qcut"]["action"]["path"]
    assert f"www/luci-static/resources/view/{view}.js" in data
    assert list(acl["luci-app-qcut"]["read"]["file"]) == [STATUS.replace("wan", "*")]
    if not shutil.which("node"):
        print("SKIPPED: the page of LuCI is not run: no node")
        return
    status = {"interface": "wwan0", "deploy": "nfqueue", "evidence": "modem", "occupancy_bytes": 12_000, "limit_bytes": 30_000,
              "rate_bps": 6_000_000, "queue_delay_ms": 16.0, "is_known": True, "rtt_f_ms": 58.4, "warnings": ["a warning"],
              "waiting": [{"to": "192.0.2.7", "packets": 21, "bytes": 31_500}],
              "classes": [{"class": "urgent", "held_bytes": 0, "sent_bytes": 5_000, "dropped_aqm": 2, "dropped_full": 1}]}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(status, file)
        file.flush()
        page = f"{PACKAGING}/luci-app-qcut/htdocs/luci-static/resources/view/{view}.js"
        shown = subprocess.run(["node", f"{HERE}/luci.js", page, file.name], capture_output=True, text=True, check=True, timeout=60).stdout
    now, old, none = shown.splitlines()
    for words in ("wan: wwan0, nfqueue", "16 ms", "12.0 kB of 30.0 kB", "6.00 Mbit/s", "192.0.2.7 21 31.5 kB", "urgent 0.0 kB 5.0 kB 3", "a warning"):
        assert words in now, (words, now)
    assert "Not running" in old and "Not running" in none and "Mbit/s" not in old, (old, none)
    print("LuCI: the page shows delay, rate and who waits; an old status is none")


def check_apk(binary, work):
    """apk-tools installs and removes the package in a root with stand-ins of what it depends on."""
    if not shutil.which("apk"):
        return
    out, root, empty = (os.path.join(work, name) for name in ("apk", "apk-root", "empty"))
    os.mkdir(empty)
    subprocess.run([sys.executable, f"{PACKAGING}/package.py", binary, platform.machine(), out], check=True)
    depends = ["kmod-nft-queue", "kmod-nfnetlink-queue", "kmod-sched-core", "kmod-sched-cake", "kmod-usb-serial-option",
               "nftables", "luci-base"]
    for name in depends:
        subprocess.run(["apk", "mkpkg", "--output", f"{out}/{name}.apk", "--files", empty, "--info", f"name:{name}",
                        "--info", "version:1-r1", "--info", "arch:noarch"], check=True)
    for folder in ("lib", "bin", "etc"):
        os.makedirs(f"{root}/{folder}")
    shutil.copy(shutil.which("busybox"), f"{root}/bin/busybox")
    for name in ("sh", "uname"):
        os.symlink("busybox", f"{root}/bin/{name}")
    with open(f"{root}/lib/functions.sh", "w") as file:
        file.write('default_postinst() { echo "installed $pkgname" >> /etc/calls; }\n'
                   'default_prerm() { echo "removed $pkgname" >> /etc/calls; }\n')
    apk = ["apk", "--root", root, "--arch", platform.machine(), "--allow-untrusted", "--no-network"]
    files = sorted(glob.glob(f"{out}/*.apk"))
    subprocess.run([*apk, "--initdb", "add", *files], check=True, capture_output=True)
    assert os.access(f"{root}/usr/sbin/airmile-qcut", os.X_OK) and os.path.exists(f"{root}/etc/config/qcut")
    with open(f"{root}/etc/config/qcut", "a") as file:
        file.write("# changed\n")
    subprocess.run([*apk, "del", "luci-app-qcut", "airmile-qcut"], check=True, capture_output=True)
    calls = open(f"{root}/etc/calls").read().split("\n")
    assert calls[:2] == ["installed airmile-qcut", "installed luci-app-qcut"] and "removed airmile-qcut" in calls, calls
    left = glob.glob(f"{root}/**/*qcut*", recursive=True)
    assert left == [f"{root}/etc/config/qcut"], left
    print("apk: installed and removed, a changed configuration stays")


def main():
    binary = os.path.abspath(sys.argv[1])
    if not os.path.exists(binary):
        print(f"SKIPPED: {binary} was not built")
        return 0
    if os.geteuid() != 0:
        print("SKIPPED: needs root, to make network namespaces and to shape in them")
        return 0
    missing = [name for name in ("ip", "tc", "nft", "curl", "busybox", "unshare", "chroot") if not shutil.which(name)]
    if missing:
        print(f"SKIPPED: needs {', '.join(missing)}")
        return 0
    with tempfile.TemporaryDirectory() as work, Hosts() as hosts:
        qcut, luci = check_packages(binary, work)
        check_luci(luci)
        check_apk(binary, work)
        if not hosts.can_queue():
            print("SKIPPED: the kernel leads no packets into a queue")
            return 0
        root = os.path.join(work, "root")
        os.mkdir(root)
        make_root(root)
        router = Router(hosts, root)
        try:
            check_service(hosts, router, qcut)
        except BaseException:
            print(router.log())
            raise
        finally:
            if router.process:
                router.process.kill()
    print("all as before")
    return 0


if __name__ == "__main__":
    sys.exit(main())
