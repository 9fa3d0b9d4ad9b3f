"""Three figures of a log, as PNG files in the current directory.

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
    report = am.radio(log)
    for draw in (am.plot.timeline, am.plot.demand, am.plot.prb_cdf):
        draw(report)
        name = f"{draw.__name__}.png"
        pyplot.savefig(name, dpi=120)
        print(name)


if __name__ == "__main__":
    main()
