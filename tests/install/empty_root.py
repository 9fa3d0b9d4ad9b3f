#!/usr/bin/env python3
"""What is released, where nothing else is: from the copied files to a diagnosis.

    empty_root.py DIST [BINARY ...]

Each static binary runs in a root that holds that binary and nothing else; one of another
architecture runs under qemu. The wheel (with pip, in a virtual environment) and the package
(with dpkg) of DIST are installed in a minimal Debian. Each makes a sample with `airmile lab
run` and diagnoses it; what they print is compared with what the sample is, and installing,
sample and diagnosis together take less than 10 seconds of a processor. The clock's seconds are
printed, too: on a machine that does nothing else they are about the same.

Root is needed (chroot); Debian needs mmdebstrap or debootstrap and a mirror (AIRMILE_MIRROR).
What cannot be had is SKIPPED.
"""

import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT_S = 10.0
# The oldest stable release whose Python takes the wheel.
SUITE = "bookworm"
MIRROR = os.environ.get("AIRMILE_MIRROR", "http://deb.debian.org/debian")
CACHE = Path(__file__).resolve().parents[2] / "target/install"
# The sample of a sender that a rate limit holds back, and what is to be found.
SAMPLE, VERDICT = "sample-rate-limited", "not_radio"
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/tmp"}


def skipped(why):
    print(f"SKIPPED: {why}")


def processor_s():
    """Seconds of a processor that commands used until now, their own and the kernel's for them."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Root:
    """A directory that commands see as `/`."""

    def __init__(self, name, parent):
        self.name, self.path = name, Path(parent)
        self.seconds = []

    def run(self, what, *words):
        """Runs a command in the root; its output, and how long it took."""
        began, used = time.monotonic(), processor_s()
        done = subprocess.run(["chroot", str(self.path), *map(str, words)], env=ENVIRONMENT, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=900)
        self.seconds.append((what, processor_s() - used, time.monotonic() - began))
        if done.returncode != 0:
            sys.exit(f"error: {self.name}: {' '.join(map(str, words))}: status {done.returncode}\n"
                     f"{done.stdout}{done.stderr}")
        return done.stdout

    def diagnose(self, *airmile):
        """The sample and its diagnosis by the command."""
        self.run("sample", *airmile, "lab", "run", SAMPLE, "-o", "/data/sample")
        answer = json.loads(self.run("diagnosis", *airmile, "diagnose", "/data/sample", "--json"))
        verdict = answer["session"]["verdict"]
        if verdict != VERDICT:
            sys.exit(f"error: {self.name}: the verdict is {verdict}, not {VERDICT}")

    def report(self, is_limited=True):
        """Prints what took how long; whether all of it is within the limit."""
        total = sum(used for _, used, _ in self.seconds)
        clock = sum(seconds for _, _, seconds in self.seconds)
        parts = ", ".join(f"{what} {used:.1f} s" for what, used, _ in self.seconds)
        bar = f"of at most {LIMIT_S:.0f} s" if is_limited else "emulated, without a limit"
        is_over = is_limited and total >= LIMIT_S
        print(f"{self.name}: {parts}: {total:.1f} s {bar}{', MISSED' if is_over else ''} ({clock:.1f} s by the clock)",
              flush=True)
        return not is_over


def architecture(binary):
    """The machine of an ELF file (e_machine)."""
    machine = int.from_bytes(binary.read_bytes()[18:20], "little")
    return {0x3E: "x86_64", 0xB7: "aarch64"}.get(machine, f"machine {machine}")


def empty(binary):
    """A root with the binary alone."""
    machine = architecture(binary)
    name = f"empty root, {machine}"
    with tempfile.TemporaryDirectory() as parent:
        root = Root(name, parent)
        for folder in ["data", "tmp"]:
            (root.path / folder).mkdir()
        shutil.copy(binary, root.path / "airmile")
        words = ["/airmile"]
        is_own = machine == platform.machine()
        if not is_own:
            qemu = shutil.which(f"qemu-{machine}-static")
            if qemu is None:
                skipped(f"{name}: no qemu-{machine}-static")
                return True
            shutil.copy(qemu, root.path / "qemu")
            words = ["/qemu", "/airmile"]
        root.diagnose(*words)
        return root.report(is_own)


def debian():
    """An archive of a minimal Debian with Python, made once; None where it cannot be had."""
    archive = CACHE / f"debian-{SUITE}.tar"
    if archive.exists():
        return archive
    CACHE.mkdir(parents=True, exist_ok=True)
    part = archive.with_suffix(".part.tar")
    packages = "--include=python3,python3-venv"
    began = time.monotonic()
    if shutil.which("mmdebstrap"):
        done = subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", packages, SUITE, part, MIRROR],
                              stdin=subprocess.DEVNULL)
    elif shutil.which("debootstrap"):
        with tempfile.TemporaryDirectory() as root:
            done = subprocess.run(["debootstrap", "--variant=minbase", packages, SUITE, root, MIRROR],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            if done.returncode == 0:
                done = subprocess.run(["tar", "-C", root, "--one-file-system", "-cf", part, "."])
    else:
        skipped("Debian: neither mmdebstrap nor debootstrap is installed")
        return None
    if done.returncode != 0:
        skipped(f"Debian: no {SUITE} from {MIRROR}")
        return None
    part.rename(archive)
    print(f"Debian {SUITE}: made in {time.monotonic() - began:.0f} s, kept in {archive}", flush=True)
    return archive


def in_debian(archive, name, file, install):
    """What `install` does with a file of DIST in Debian."""
    with tempfile.TemporaryDirectory() as parent:
        subprocess.run(["tar", "-C", parent, "-xf", archive], check=True)
        root = Root(f"Debian {SUITE}, {name}", parent)
        (root.path / "data").mkdir()
        shutil.copy(file, root.path / "data")
        install(root, f"/data/{file.name}")
        return root.report()


def wheel(root, file):
    """Installs with pip, no index, and uses the command and the package."""
    root.run("environment", "python3", "-m", "venv", "/opt/airmile")
    root.run("pip", "/opt/airmile/bin/pip", "install", "--quiet", "--no-index", "--no-compile", file)
    root.diagnose("/opt/airmile/bin/airmile")
    script = f"import airmile as am; assert am.diagnose('/data/sample').verdict == {VERDICT!r}"
    root.run("Python", "/opt/airmile/bin/python", "-c", script)


def package(root, file):
    """Installs with dpkg; service files, manual and completions are where Debian has them."""
    root.run("dpkg", "dpkg", "--install", file)
    root.diagnose("airmile")
    for path in ["lib/systemd/system/airmile-qcut.service", "share/bash-completion/completions/airmile"]:
        text = (root.path / "usr" / path).read_text()
        if "/usr/local/" in text or "airmile" not in text:
            sys.exit(f"error: /usr/{path} is of another installation")
    # Debian's minimal roots leave out manual pages: what the package holds counts.
    if "man1/airmile-diagnose.1" not in root.run("list", "dpkg", "--listfiles", "airmile"):
        sys.exit("error: the package has no manual")
    root.run("remove", "dpkg", "--remove", "airmile")
    if (root.path / "usr/bin/airmile").exists():
        sys.exit("error: dpkg --remove leaves the command")


def newest(dist, pattern):
    """The newest file of DIST by a pattern."""
    return max(dist.glob(pattern), key=lambda path: path.stat().st_mtime, default=None)


def main():
    dist, binaries = Path(sys.argv[1]), [Path(word) for word in sys.argv[2:]]
    if os.geteuid() != 0:
        skipped("needs root, for chroot")
        return
    good = True
    if not binaries:
        skipped("no static binary: make release-binaries")
    for binary in binaries:
        good &= empty(binary)
    machine = platform.machine()
    deb_machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
    files = {
        "wheel": (newest(dist, f"airmile-*manylinux*_{machine}.whl"), wheel),
        ".deb": (newest(dist, f"airmile_*_{deb_machine}.deb"), package),
    }
    for name, (file, _) in files.items():
        if file is None:
            skipped(f"no {name} for {machine} in {dist}: make release-{'wheels' if name == 'wheel' else 'deb'}")
    found = {name: of for name, of in files.items() if of[0] is not None}
    archive = debian() if found else None
    if archive is not None:
        for name, (file, install) in found.items():
            good &= in_debian(archive, name, file, install)
    if not good:
        sys.exit("error: a time is over its limit")


if __name__ == "__main__":
    main()
