"""Diagnose a log: who was the bottleneck, and why.

python diagnose_a_log.py [LOG [TRANSFERS.csv]]; without a log, one of the lab.
"""

import sys
import tempfile

import airmile as am


def main() -> None:
    if len(sys.argv) > 1:
        log, transfers = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    else:
        run = am.lab_run("sample-rate-limited", tempfile.mkdtemp())
        log, transfers = str(run.log), str(run.transfers_csv)
    answer = am.diagnose(log, transfers=transfers)
    print(answer.says)
    for transfer in answer.per_transfer:
        print(f"{transfer.id}: {transfer.verdict} ({transfer.confidence:.0%})")
        for item in transfer.evidence:
            print(f"  - {item.what}")
        print(f"  next: {transfer.next_step}")


if __name__ == "__main__":
    main()
