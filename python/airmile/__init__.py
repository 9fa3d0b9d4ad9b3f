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

A result's `repr` states the answer, and `print` gives the command's text. `json()` and
`to_dict()` have the document; tables go to data frame libraries without a copy.

Your data stays on this machine, unless `packets` is given an engine and names
an object store or a cluster.
"""

from airmile import documents, plot
from airmile._airmile import __version__
from airmile._comparison import Comparison, ScrubReport
from airmile._decoded import Decoded
from airmile._front import compare, decode, diagnose, inspect, packets, radio, scrub
from airmile._lab import (
    Experiment,
    LabRun,
    Reproduction,
    Scenario,
    lab_experiments,
    lab_list,
    lab_reproduce,
    lab_run,
)
from airmile._packet_report import PacketReport
from airmile._report import Diagnosis, InspectReport, RadioReport
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
    "Comparison",
    "Decoded",
    "Diagnosis",
    "Experiment",
    "InspectReport",
    "LabRun",
    "PacketReport",
    "RadioReport",
    "Reproduction",
    "Scenario",
    "ScrubReport",
    "Table",
    "__version__",
    "compare",
    "decode",
    "diagnose",
    "documents",
    "inspect",
    "lab_experiments",
    "lab_list",
    "lab_reproduce",
    "lab_run",
    "packets",
    "plot",
    "radio",
    "scrub",
]
