#!/usr/bin/env python3
"""Programs for routers: static, within the bar, and they run.

    program.py MOST_BYTES dist/airmile-qcut-MACHINE...

One of another machine runs in qemu-user-static; without it this says SKIPPED.
"""

import os
import platform
import shutil
import subprocess
import sys

# e_machine of ELF headers, and what qemu calls them.
MACHINES = {"aarch64": (183, "aarch64"), "x86_64": (62, "x86_64"), "armv7": (40, "arm"), "riscv64gc": (243, "riscv64"),
            "mipsel": (8, "mipsel"), "mips": (8, "mips")}
INTERPRETER = 3
# Processors of routers, without what later ones have (qemu's names).
PROCESSORS = {"mipsel": "24KEc", "mips": "24KEc"}


def check_elf(path, machine):
    """A static ELF of the machine: no program header asks for a dynamic linker."""
    data = open(path, "rb").read()
    assert data[:4] == b"\x7fELF", path
    is_64 = data[4] == 2
    order = "little" if data[5] == 1 else "big"
    assert (order == "big") == (machine == "mips"), f"{path}: {order}-endian"
    number = lambda at, size: int.from_bytes(data[at:at + size], order)
    assert number(18, 2) == MACHINES[machine][0], f"{path}: machine {number(18, 2)}"
    offset, size, count = (number(32, 8), number(54, 2), number(56, 2)) if is_64 else (number(28, 4), number(42, 2), number(44, 2))
    kinds = [number(offset + n * size, 4) for n in range(count)]
    assert INTERPRETER not in kinds, f"{path} is not static"


def main():
    most, paths = int(sys.argv[1]), sys.argv[2:]
    for path in paths:
        if not os.path.exists(path):
            print(f"SKIPPED: {path} was not built")
            continue
        machine = path.rsplit("-", 1)[1]
        check_elf(path, machine)
        size = os.path.getsize(path)
        print(f"{path}: {size} bytes, bar {most}")
        assert size <= most, f"{path} has {size} bytes, over {most}"
        run = [os.path.abspath(path)]
        if machine != platform.machine():
            emulator = shutil.which(f"qemu-{MACHINES[machine][1]}-static")
            if not emulator:
                print(f"SKIPPED: {path} is not run: no qemu-user-static")
                continue
            processor = ["-cpu", PROCESSORS[machine]] if machine in PROCESSORS else []
            run = [emulator, *processor, *run]
        version = subprocess.run([*run, "--version"], capture_output=True, text=True, timeout=60)
        assert version.returncode == 0 and "features: none" in version.stdout, version
        checked = subprocess.run([*run, "check", "--up", "lo", "--deploy", "none"], capture_output=True, text=True, timeout=60)
        assert checked.returncode == 0 and "--deploy auto" in checked.stdout, checked
        print(f"{version.stdout.strip()}: --version and check run")


if __name__ == "__main__":
    main()
