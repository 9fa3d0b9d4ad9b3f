#!/usr/bin/env python3
"""Packages for OpenWrt from a static airmile-qcut, without OpenWrt's SDK.

    package.py BINARY MACHINE OUT [ARCHITECTURE]

MACHINE is that of the program: aarch64, x86_64, armv7, mipsel, mips. OUT gets
airmile-qcut and luci-app-qcut as .ipk (opkg, to OpenWrt 24.10) and, where `apk` of apk-tools 3
is in the path, as .apk (from 25.12 on).

A static program for aarch64 or x86_64 runs on each processor of its machine, so the packages are of
no architecture of OpenWrt's own (`all`, `noarch`), and one asks before it is installed whether the
machine is right. On the other machines that is not enough: `uname -m` prints `mips` for both orders
of bytes, and some ARMv7 have no floating point. Their package has an architecture of OpenWrt:
ARCHITECTURE, or the one in ARCHITECTURES, for which the package manager asks. The same input gives the same bytes.
"""

import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
RELEASE = "r1"
LICENSE = "Apache-2.0 OR MIT"
# What the program needs of the system. `nftables` is what nftables-json and -nojson provide.
DEPENDS = ["kmod-nft-queue", "kmod-nfnetlink-queue", "kmod-sched-core", "kmod-sched-cake",
           "kmod-usb-serial-option", "nftables"]
# What `uname -m` prints, where that is not the machine's name.
UNAME = {"armv7": "armv7l", "mipsel": "mips"}
# The most frequent ones that the program runs on. Others: arm_cortex-a9_vfpv3-d16, mips_74kc, ...
ARCHITECTURES = {"armv7": "arm_cortex-a7_neon-vfpv4", "mipsel": "mipsel_24kc", "mips": "mips_24kc"}
# OpenWrt's own, which enable and start services of a package, and stop and disable them.
POST_INSTALL = """\
#!/bin/sh
[ -s "${IPKG_INSTROOT}/lib/functions.sh" ] || exit 0
. "${IPKG_INSTROOT}/lib/functions.sh"
export root="${IPKG_INSTROOT}"
export pkgname="@NAME@"
default_postinst "$0" "$@"
"""
PRE_REMOVE = POST_INSTALL.replace("default_postinst", "default_prerm")
PRE_INSTALL = """\
#!/bin/sh
# Another machine's image is made elsewhere.
[ -n "${IPKG_INSTROOT}" ] && exit 0
[ "$(uname -m)" = "@MACHINE@" ] && exit 0
echo "@NAME@: this package is for @MACHINE@, not for $(uname -m)" >&2
exit 1
"""


def version():
    """Of the workspace."""
    for line in open(os.path.join(HERE, "../../Cargo.toml")):
        if line.startswith("version = "):
            return line.split('"')[1]
    raise SystemExit("no version in Cargo.toml")


class Package:
    def __init__(self, name, description, depends):
        self.name, self.description, self.depends = name, description, depends
        self.version = f"{version()}-{RELEASE}"
        # Path in the system: bytes and mode.
        self.files = {}
        self.scripts = {"post-install": POST_INSTALL, "pre-deinstall": PRE_REMOVE}
        self.conffiles = []
        # An architecture of OpenWrt, for what does not run on all.
        self.architecture = None

    def add(self, path, content, mode):
        self.files[path] = (content, mode)

    def add_tree(self, top, to=""):
        for folder, _, names in sorted(os.walk(top)):
            for name in sorted(names):
                path = os.path.join(folder, name)
                mode = 0o755 if os.access(path, os.X_OK) else 0o644
                self.add(to + "/" + os.path.relpath(path, top), open(path, "rb").read(), mode)

    def script(self, when, machine=""):
        return self.scripts[when].replace("@NAME@", self.name).replace("@MACHINE@", UNAME.get(machine, machine)).encode()


def tar_gz(entries):
    """A tar of {path: (bytes, mode)}, with its directories, of root and without times."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.GNU_FORMAT) as tar:
        made = set()
        for path, (content, mode) in sorted(entries.items()):
            path = "./" + path.lstrip("/")
            parents = []
            parent = os.path.dirname(path)
            while parent not in (".", "") and parent not in made:
                parents.append(parent)
                made.add(parent)
                parent = os.path.dirname(parent)
            for parent in reversed(parents):
                info = tarfile.TarInfo(parent)
                info.type, info.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(info)
            info = tarfile.TarInfo(path)
            info.size, info.mode = len(content), mode
            tar.addfile(info, io.BytesIO(content))
    return gzip.compress(raw.getvalue(), 9, mtime=0)


def ipk(package, machine, out):
    """A gzip of a tar of three: the format's version, control and data."""
    size = sum(len(content) for content, _ in package.files.values())
    control = (f"Package: {package.name}\nVersion: {package.version}\nDepends: {', '.join(package.depends)}\n"
               f"License: {LICENSE}\nSection: net\nArchitecture: {package.architecture or 'all'}\nInstalled-Size: {size}\n"
               f"Description: {package.description}\n")
    parts = {"control": (control.encode(), 0o644),
             "postinst": (package.script("post-install"), 0o755),
             "prerm": (package.script("pre-deinstall"), 0o755)}
    if "pre-install" in package.scripts:
        parts["preinst"] = (package.script("pre-install", machine), 0o755)
    if package.conffiles:
        parts["conffiles"] = ("".join(f"{path}\n" for path in package.conffiles).encode(), 0o644)
    whole = tar_gz({"debian-binary": (b"2.0\n", 0o644), "control.tar.gz": (tar_gz(parts), 0o644),
                    "data.tar.gz": (tar_gz(package.files), 0o644)})
    path = os.path.join(out, f"{package.name}_{package.version}_{machine}.ipk")
    with open(path, "wb") as file:
        file.write(whole)
    return path


def apk(package, machine, out):
    """By apk-tools 3, whose format has a database and hashes of its own."""
    path = os.path.join(out, f"{package.name}-{package.version}.{machine}.apk")
    with tempfile.TemporaryDirectory() as work:
        root = os.path.join(work, "root")
        listed = f"/lib/apk/packages/{package.name}.list"
        files = dict(package.files)
        # default_postinst of OpenWrt reads which services the package has.
        files[listed] = ("".join(f"{path}\n" for path in sorted(package.files)).encode(), 0o644)
        if package.conffiles:
            files[f"/lib/apk/packages/{package.name}.conffiles"] = (
                "".join(f"{path}\n" for path in package.conffiles).encode(), 0o644)
        for name, (content, mode) in files.items():
            to = root + name
            os.makedirs(os.path.dirname(to), exist_ok=True)
            with open(to, "wb") as file:
                file.write(content)
            os.chmod(to, mode)
        words = ["apk", "mkpkg", "--output", path, "--files", root]
        for key, value in [("name", package.name), ("version", package.version), ("arch", package.architecture or "noarch"),
                           ("license", LICENSE), ("description", package.description), ("origin", "airmile"),
                           ("depends", " ".join(package.depends))]:
            words += ["--info", f"{key}:{value}"]
        for when in package.scripts:
            script = os.path.join(work, when)
            with open(script, "wb") as file:
                file.write(package.script(when, machine))
            words += ["--script", f"{when}:{script}"]
        subprocess.run(words, check=True)
    return path


def packages(binary, architecture):
    qcut = Package("airmile-qcut", "Uplink of an LTE modem kept short, so that uploads delay nothing", DEPENDS)
    qcut.add("/usr/sbin/airmile-qcut", open(binary, "rb").read(), 0o755)
    qcut.add_tree(os.path.join(HERE, "airmile-qcut/files"))
    qcut.conffiles = ["/etc/config/qcut"]
    qcut.scripts["pre-install"] = PRE_INSTALL
    qcut.architecture = architecture
    luci = Package("luci-app-qcut", "Uplink queue of LTE modems: page of LuCI", ["luci-base", "airmile-qcut"])
    luci.add_tree(os.path.join(HERE, "luci-app-qcut/htdocs"), "/www")
    luci.add_tree(os.path.join(HERE, "luci-app-qcut/root"))
    return [qcut, luci]


def main():
    binary, machine, out = sys.argv[1:4]
    architecture = sys.argv[4] if len(sys.argv) > 4 else ARCHITECTURES.get(machine)
    os.makedirs(out, exist_ok=True)
    makers = [ipk] + [apk] * bool(shutil.which("apk"))
    if apk not in makers:
        print("SKIPPED: .apk: no apk of apk-tools 3 in the path")
    for package in packages(binary, architecture):
        for make in makers:
            path = make(package, machine, out)
            print(f"{os.path.getsize(path):9} {path}")


if __name__ == "__main__":
    main()
