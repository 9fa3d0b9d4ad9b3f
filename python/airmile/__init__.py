"""Find what limits mobile transfers: the radio link, or something that can be fixed.

`airmile` reads a phone's modem log and reports, for each transfer, whether the
radio link was the bottleneck, and why. The functions and their arguments are
those of the commands of the `airmile` program.

>>> import tempfile, airmile as am
>>> run = am.lab_run("sample-rate-limited", tempfile.mkdtemp())   # a log with known truth
>>> answer = am.diagnose(run.log, transfers=run.transfers_csv)
>>> answer.verdict
'not_radio'
>>> bursts = am.radio(run.log).bursts         # an Arrow table: polars.DataFrame(bursts)
>>> len(bursts) > 0
True

Your data stays on this machine, unless `packets` is given an engine and names
an object store or a cluster.
"""

from airmile import plot
from airmile._airmile import __version__
from airmile._front import Scenario, decode, diagnose, inspect, lab_list, lab_run, packets, radio
from airmile._packet_report import PacketReport
from airmile._report import (
    Decoded,
    Diagnosis,
    InspectReport,
    LabRun,
    RadioReport,
)
from airmile._table import Table
from airmile.errors import (
    AirmileError,
    AirmileFormatError,
    AirmileInputError,
    AirmileMissingLibraryError,
    AirmileNoDataError,
    AirmileOptionError,
    AirmileOutputError,
)

__all__ = [
    "AirmileError",
    "AirmileFormatError",
    "AirmileInputError",
    "AirmileMissingLibraryError",
    "AirmileNoDataError",
    "AirmileOptionError",
    "AirmileOutputError",
    "Decoded",
    "Diagnosis",
    "InspectReport",
    "LabRun",
    "PacketReport",
    "RadioReport",
    "Scenario",
    "Table",
    "__version__",
    "decode",
    "diagnose",
    "inspect",
    "lab_list",
    "lab_run",
    "packets",
    "plot",
    "radio",
]
