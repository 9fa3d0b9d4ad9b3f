"""Reading lets other threads run."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import airmile as am

READ_FROM_A_PIPE = """
import shutil, sys, threading
import airmile as am

log, pipe = sys.argv[1:]
read = []
thread = threading.Thread(target=lambda: read.append(am.radio(pipe)), daemon=True)
thread.start()
with open(log, "rb") as source, open(pipe, "wb") as sink:
    shutil.copyfileobj(source, sink)
thread.join()
alone = am.radio(log)
print("same" if len(read[0].bursts) == len(alone.bursts) > 0 else "other")
"""


INTERRUPTED = """
import os, signal, sys, threading
import airmile as am

# A program in the background may have inherited that it is ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

function, pipe = sys.argv[1:]
ended = threading.Event()

def interrupt():
    with open(pipe, "wb"):  # once it is read
        os.kill(os.getpid(), signal.SIGINT)
        ended.wait()

threading.Thread(target=interrupt, daemon=True).start()
try:
    getattr(am, function)(pipe)
except KeyboardInterrupt:
    print("interrupted")
ended.set()
"""


@pytest.mark.parametrize("function", ["inspect", "radio", "decode", "diagnose", "packets"])
def test_an_interrupt_ends_a_call(function: str, tmp_path: Path) -> None:
    # No bytes come, so that nothing else ends it.
    pipe = tmp_path / "log.qmdl"
    os.mkfifo(pipe)
    ask = [sys.executable, "-c", INTERRUPTED, function, str(pipe)]
    done = subprocess.run(ask, timeout=120, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["interrupted"]


def test_threads_give_the_same_answers(run: am.LabRun, download: am.LabRun) -> None:
    logs = [run.log, download.log] * 3
    alone = [am.diagnose(log).json() for log in logs[:2]] * 3
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda log: am.diagnose(log).json(), logs))
    assert together == alone


def test_python_goes_on_while_a_log_is_read(download: am.LabRun, tmp_path: Path) -> None:
    # Reading waits for bytes that only Python can write: with the GIL held, it would for ever.
    pipe = tmp_path / "log.qmdl"
    os.mkfifo(pipe)
    ask = [sys.executable, "-c", READ_FROM_A_PIPE, str(download.log), str(pipe)]
    done = subprocess.run(ask, timeout=120, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["same"]
