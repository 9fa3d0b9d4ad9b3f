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
    report = am.radio(log)
    bursts = pl.DataFrame(report.bursts).filter(pl.col("dir") == "dl")
    # Within a timing segment TTIs can be subtracted.
    empty_ttis = pl.col("start_tti") - pl.col("end_tti").shift(1).over("timing_segment")
    waits = bursts.with_columns(empty_ms=empty_ttis * report.tti_ms)
    print(
        waits.select("start_tti", "empty_ms", "bytes", "opened_by", "closed_by")
        .sort("empty_ms", descending=True, nulls_last=True)
        .head(10)
    )


if __name__ == "__main__":
    main()
