"""The rights of a running process, by /proc/PID/status of each thread."""

import os

SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
SHOWN = ("CapEff", "CapBnd", "NoNewPrivs", "Seccomp")


def thread_statuses(pid):
    """Fields of /proc/PID/status of each thread."""
    threads = []
    for task in os.listdir(f"/proc/{pid}/task"):
        lines = open(f"/proc/{pid}/task/{task}/status").read().splitlines()
        threads.append({name: value.strip() for name, value in (line.split(":", 1) for line in lines)})
    return threads


def check_rights(pid, kept):
    """Every thread has these capabilities and no more, no_new_privs and a system call filter.

    Returns the number of threads, and the rights as text."""
    threads = thread_statuses(pid)
    for status in threads:
        sets = {name: int(status[name], 16) for name in SETS}
        assert sets["CapEff"] == kept, (status["Name"], sets)
        assert all(bits & ~kept == 0 for bits in sets.values()), (status["Name"], sets)
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2"), status
    return len(threads), ", ".join(f"{name} {threads[0][name]}" for name in SHOWN)
