"""Reading lets other threads run."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import airmile as am


def test_threads_give_the_same_answers(run: am.LabRun, download: am.LabRun) -> None:
    logs = [run.log, download.log] * 3
    alone = [am.diagnose(log).json() for log in logs[:2]] * 3
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda log: am.diagnose(log).json(), logs))
    assert together == alone


def test_python_goes_on_while_a_log_is_read(download: am.LabRun) -> None:
    done = threading.Event()

    def read() -> None:
        for _ in range(3):
            am.radio(download.log)
        done.set()

    thread = threading.Thread(target=read)
    thread.start()
    # With the GIL held throughout, at most a turn or two between the calls.
    turns = 0
    while not done.wait(0.001):
        turns += 1
    thread.join()
    assert turns > 20
