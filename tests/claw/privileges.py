#!/usr/bin/env python3
"""The privileges of `airmile claw attach` while it receives reports, in a network namespace.

    privileges.py AIRMILE

Needs root and an airmile with the feature `bpf`; otherwise prints SKIPPED.
"""

import os
import pathlib
import secrets
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from process_rights import check_rights

# Capability bits (linux/capability.h).
NET_ADMIN, SYS_ADMIN, PERFMON, BPF = 12, 21, 38, 39


def check_privileges_of_attach(airmile, namespace, key_file, words, expected):
    attach = [airmile, "claw", "attach", "--reports", "127.0.0.1:0", "--key-file", key_file, *words]
    process = subprocess.Popen(["ip", "netns", "exec", namespace, *attach],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        if "attached" not in line:
            return process.communicate()[1].strip()
        threads, rights = check_rights(process.pid, expected)
        assert threads > 1, f"{threads} threads: none receives reports"
        print(f"privileges of claw attach {' '.join(words)}: {rights}")
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
    assert process.returncode == 0, process.stderr.read()
    return None


def main():
    airmile = os.path.abspath(sys.argv[1])
    if os.geteuid() != 0 or not shutil.which("ip"):
        print("SKIPPED: needs root and ip")
        return 0
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        print("SKIPPED: this kernel has no BTF")
        return 0
    namespace = f"aclaw{os.getpid()}"
    subprocess.run(["ip", "netns", "add", namespace], check=True)
    # It is read by its owner alone, as tempfile makes it.
    key = tempfile.NamedTemporaryFile("w", suffix=".key")
    key.write(secrets.token_hex(32))
    key.flush()
    try:
        subprocess.run(["ip", "-n", namespace, "link", "set", "dev", "lo", "up"], check=True)
        kept = 1 << NET_ADMIN | 1 << BPF | 1 << PERFMON
        for words, expected in (([], kept), (["--measure"], kept | 1 << SYS_ADMIN)):
            time.sleep(0.2)
            error = check_privileges_of_attach(airmile, namespace, key.name, words, expected)
            if error and "--features bpf" in error:
                print("SKIPPED: this airmile was built without the feature bpf")
                return 0
            assert error is None, error
    finally:
        subprocess.run(["ip", "netns", "del", namespace])
    return 0


if __name__ == "__main__":
    sys.exit(main())
