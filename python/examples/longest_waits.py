"""The longest times with an empty queue, with Polars.

python longest_waits.py [LOG]; without a log, one of the lab.
"""

import sys
import tempfile

import polars as pl

import airmile as am


def main() -> None:
    if len(sys.argv) > 1:
        log = sys.argv[1]
    else:
        log = str(am.lab_run("sample-video", tempfile.mkdtemp()).log)
    bursts = pl.DataFrame(am.radio(log).bursts).filter(pl.col("dir") == "dl")
    # An LTE TTI is 1 ms; within a timing segment TTIs can be subtracted.
    waits = bursts.with_columns(
        empty_ms=pl.col("start_tti") - pl.col("end_tti").shift(1).over("timing_segment")
    )
    print(
        waits.select("start_tti", "empty_ms", "bytes", "opened_by", "closed_by")
        .sort("empty_ms", descending=True, nulls_last=True)
        .head(10)
    )


if __name__ == "__main__":
    main()
