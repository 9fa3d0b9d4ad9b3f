"""Four figures of a log, as PNG files in the current directory.

python figures.py [LOG]; without a log, one of the lab.
"""

import sys
import tempfile

import matplotlib as mpl
from matplotlib import pyplot

import airmile as am

mpl.use("Agg")


def main() -> None:
    if len(sys.argv) > 1:
        log = sys.argv[1]
    else:
        log = str(am.lab_run("sample-video", tempfile.mkdtemp()).log)
    report, answer = am.radio(log), am.diagnose(log)
    for name, ax in (
        ("timeline", am.plot.timeline(report)),
        ("demand", am.plot.demand(report)),
        ("prb_cdf", am.plot.prb_cdf(report)),
        ("shares", am.plot.shares(answer)),
    ):
        pyplot.sca(ax)
        pyplot.savefig(f"{name}.png", dpi=120)
        print(f"{name}.png")


if __name__ == "__main__":
    main()
