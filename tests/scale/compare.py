"""Compares the tables of two studies row by row.

python compare.py ONE OTHER      each a directory of `airmile packets -o`, of one process
                                 (flows.parquet) or of an engine (flows/day=.../...)

Rows are first sorted by all of their columns, as an engine writes them in no particular
order; numbers of flows and users are among the columns and must match. Needs DuckDB.
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb

TABLES = (
    "flows", "tcp_events", "rtt_samples", "inflight_samples", "bandwidth_samples", "http", "dns",
    "users",
)  # fmt: skip


def relation(directory: Path, table: str) -> str | None:
    """The files of a table, as a DuckDB source."""
    single = directory / f"{table}.parquet"
    if single.exists():
        return f"read_parquet('{single}', hive_partitioning=false)"
    if any((directory / table).glob("*/*/*.parquet")):
        return f"read_parquet('{directory}/{table}/*/*/*.parquet', hive_partitioning=false)"
    return None


def compare(one: Path, other: Path) -> dict[str, tuple[int, int, int]]:
    """For each table: rows of one, rows of the other, rows found in only one of them."""
    found = {}
    for table in TABLES:
        sources = [relation(directory, table) for directory in (one, other)]
        counts = [
            duckdb.sql(f"select count(*) from {source}").fetchall()[0][0] if source else 0
            for source in sources
        ]
        differ = 0
        if all(sources):
            a, b = sources
            differ = duckdb.sql(
                f"select count(*) from ((select * from {a} except all select * from {b}) "
                f"union all (select * from {b} except all select * from {a}))"
            ).fetchall()[0][0]
        found[table] = (counts[0], counts[1], differ)
    return found


def main() -> int:
    """Print a row per table; return 1 if they differ."""
    found = compare(Path(sys.argv[1]), Path(sys.argv[2]))
    print(f"{'table':18} {'rows':>12} {'rows':>12} {'differ':>8}")
    for table, counts in found.items():
        print(f"{table:18} {counts[0]:>12} {counts[1]:>12} {counts[2]:>8}")
    return int(any(a != b or differ for a, b, differ in found.values()))


if __name__ == "__main__":
    sys.exit(main())
