"""Studies of captures: Python and the command give the same, tables and figures."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import airmile as am

Document = Callable[..., dict[str, Any]]
Command = Callable[..., Any]

TABLES = [
    "flows", "tcp_events", "rtt_samples", "inflight_samples", "bandwidth_samples", "http", "dns",
    "users",
]  # fmt: skip


@pytest.fixture(scope="module")
def report(capture: Path) -> am.PacketReport:
    return am.packets(capture)


@pytest.mark.parametrize(
    ("options", "args"),
    [
        ({}, []),
        ({"client": "203.0.113.0/24"}, ["--client", "203.0.113.0/24"]),
        ({"client": ["10.0.0.0/8", "fd00::/8"]},
         ["--client", "10.0.0.0/8", "--client", "fd00::/8"]),
        ({"proxy_ports": [443]}, ["--proxy-ports", 443]),
        ({"idle_s": 1, "promotion_idle_s": 2, "tail_s": 3},
         ["--idle-s", 1, "--promotion-idle-s", 2, "--tail-s", 3]),
        ({"send_rate": 5}, ["--send-rate", 5]),
        ({"send_rate": "auto", "threads": 1}, ["--send-rate", "auto", "--threads", 2]),
        ({"from_": 1.5, "to": "4"}, ["--from", 1.5, "--to", 4]),
    ],
)  # fmt: skip
def test_documents(
    capture: Path, document: Document, options: dict[str, Any], args: list[object]
) -> None:
    assert am.packets(capture, **options).to_dict() == document("packets", capture, *args)


def test_the_client_can_be_told(capture: Path) -> None:
    flows = am.packets(capture, client="203.0.113.0/24").flows
    assert (flows["client_by"], flows["client"]) == (["client_net"], ["203.0.113.1"])


def test_limits_leave_out_what_is_outside(capture: Path, report: am.PacketReport) -> None:
    part = am.packets(capture, from_=1.0, to=3.0)
    assert 0 < part.quality["packets"] < report.quality["packets"]
    (start,), (length,) = part.flows["start_ns"], part.flows["duration_ns"]
    assert start - report.flows["start_ns"][0] >= 10**9
    assert length <= 2 * 10**9
    assert part.quality["mid_flow"] == 1


def test_what_the_report_says(report: am.PacketReport) -> None:
    document = report.to_dict()
    for name in ("summary", "table1", "periodic"):
        assert getattr(report, name).to_dicts() == document[name], name
    assert report.quality == document["quality"]
    assert (report.says, report.damaged) == (document["says"], False)
    assert [row["flow"] for row in document["flows"]] == report.flows["flow"]
    assert document["flows"][0] == report.flows.to_dicts()[0]
    full = next(
        row for row in report.summary if row["what"] == "downlink flows with a full receive window"
    )
    assert (full["here"], full["paper"], full["n"]) == (1.0, 0.526, 1)
    assert report.curves["dl_bytes"] == [(float(report.flows["dl_bytes"][0]), 1.0)]


def test_tables_are_those_of_the_command(
    report: am.PacketReport, capture: Path, command: Command, tmp_path: Path
) -> None:
    done = command("packets", capture, "-o", tmp_path, "--table-format", "csv")
    assert done.returncode == 0
    assert list(report.tables) == TABLES
    for name in TABLES:
        table = getattr(report, name)
        path = tmp_path / f"{name}.csv"
        with path.open() as file:
            reader = csv.DictReader(file)
            rows = list(reader)
        assert reader.fieldnames == table.columns
        assert len(rows) == len(table)
        integers = [column for column, kind in table.types.items() if kind == "Int64"]
        for column in integers:
            got = ["" if value is None else str(value) for value in table[column]]
            assert [row[column] for row in rows] == got, f"{name}.{column}"


def test_tables_leave_without_a_copy(report: am.PacketReport) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    first, second = (
        pyarrow.table(report.rtt_samples).column("rtt_ns").chunk(0).buffers()[1] for _ in range(2)
    )
    assert first.address == second.address
    polars = pytest.importorskip("polars")
    flows = polars.DataFrame(report.flows).with_columns(polars.col("start_ns").to_physical())
    assert flows.to_dicts() == report.flows.to_dicts()
    assert polars.DataFrame(report.dns).height == 0


def test_printed_as_the_command_prints(
    report: am.PacketReport, capture: Path, command: Command
) -> None:
    assert str(report) == command("packets", capture).stdout.decode()
    assert report.text(all=True) == command("packets", capture, "-v").stdout.decode()
    assert repr(report) == f"<airmile.PacketReport: {report.says}>"
    html = report._repr_html_()
    assert "<td>52.60%</td>" in html
    assert html.index(report.says) < html.index("<table>")


def test_several_captures_are_one(capture: Path, lossy: Path, document: Document) -> None:
    both = am.packets([capture, lossy])
    assert both.to_dict() == document("packets", capture, lossy)
    # In the order of their first packets.
    assert sorted(both.files["path"]) == sorted([str(capture), str(lossy)])
    assert both.files["start_us"] == sorted(both.files["start_us"])
    # The same traffic from two sides counts once.
    with pytest.raises(am.AirmileFormatError, match="two views of the same traffic"):
        am.packets([capture.with_name("phone.pcapng"), capture])


def test_html(report: am.PacketReport, capture: Path, command: Command, tmp_path: Path) -> None:
    page = report.html(tmp_path / "study.html", flow=[0])
    other = tmp_path / "other.html"
    assert command("packets", capture, "--html", other, "--flow", 0).returncode == 0
    assert page.read_bytes() == other.read_bytes()
    with pytest.raises(am.AirmileOptionError, match="flow"):
        report.html(page, flow="nonsense")
    with pytest.raises(am.AirmileOptionError, match="7"):
        report.html(page, flow=[7])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"client": "10.0.0"}, "is no network"),
        ({"send_rate": 0}, "above 0, or auto"),
        ({"send_rate": "fast"}, "above 0, or auto"),
        ({"idle_s": -1}, "idle_s: -1 is out of range"),
        ({"tail_s": 2**40}, "tail_s"),
        ({"threads": -1}, "threads"),
        ({"from_": "soon"}, "is no time"),
    ],
)
def test_options(capture: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(am.AirmileOptionError, match=words):
        am.packets(capture, **options)


def test_what_is_no_capture(run: am.LabRun, tmp_path: Path) -> None:
    with pytest.raises(am.AirmileFormatError, match="no packet capture"):
        am.packets(run.log)
    with pytest.raises(am.AirmileInputError):
        am.packets(tmp_path / "none.pcap")
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))
    with pytest.raises(am.AirmileNoDataError, match="no IP packets"):
        am.packets(empty)


class TestFigures:
    @pytest.fixture(autouse=True)
    def _close(self) -> Iterator[None]:
        matplotlib = pytest.importorskip("matplotlib")
        matplotlib.use("Agg")
        yield
        from matplotlib import pyplot

        pyplot.close("all")

    def save(self, ax: Any, path: Path) -> None:
        ax.figure.savefig(path)
        assert path.stat().st_size > 5000

    def test_distributions(self, report: am.PacketReport, tmp_path: Path) -> None:
        ax: Any = am.plot.flow_sizes(report)
        drawn = [list(line.get_xdata()) for line in ax.lines]
        assert drawn[0] == report.flows["dl_bytes"] * 2
        assert len(drawn) == 2
        self.save(ax, tmp_path / "sizes.png")
        ax = am.plot.flow_durations(report)
        (length,) = report.flows["duration_ns"]
        assert list(ax.lines[0].get_data()[0]) == [length / 1e9] * 2
        self.save(ax, tmp_path / "durations.png")

    def test_flight_and_rtt(self, report: am.PacketReport, tmp_path: Path) -> None:
        ax: Any = am.plot.flight_rtt(report)
        samples = [
            row for row in report.rtt_samples if row["dir"] == "dl" and row["flight_bytes"] > 0
        ]
        assert ax.collections[0].get_array().sum() == len(samples)
        # Over 100 ms of round trip in the core, plus the radio's part.
        medians = ax.lines[0].get_ydata()
        assert all(100 < rtt_ms < 250 for rtt_ms in medians)
        self.save(ax, tmp_path / "flight.png")
        with pytest.raises(am.AirmileNoDataError, match="sl RTT"):
            am.plot.flight_rtt(report, direction="sl")

    def test_utilisation(self, lossy: Path, report: am.PacketReport, tmp_path: Path) -> None:
        shares = am.packets(lossy, send_rate="auto").curves["utilisation"]
        ax: Any = am.plot.utilisation(am.packets(lossy, send_rate="auto"))
        assert list(ax.lines[0].get_xdata())[1:] == [x for x, _ in shares]
        assert 0.5 < shares[0][0] <= 1.0
        self.save(ax, tmp_path / "utilisation.png")
        with pytest.raises(am.AirmileNoDataError, match="utilisation"):
            am.plot.utilisation(report)

    def test_nothing_to_draw_is_told(self, report: am.PacketReport) -> None:
        with pytest.raises(am.AirmileNoDataError, match="promotion delay"):
            am.plot.promotion_delay(report)

    def test_promotion(self, tmp_path: Path) -> None:
        path = tmp_path / "promotion.pcap"
        path.write_bytes(handshakes([0, 20], promotion_ms=400, rtt_ms=60))
        report = am.packets(path)
        assert report.flows["promotion_ns"] == [None, 400_000_000]
        ax: Any = am.plot.promotion_delay(report)
        assert list(ax.lines[0].get_xdata()) == [400.0, 400.0]
        self.save(ax, tmp_path / "promotion.png")


def handshakes(at_s: list[int], promotion_ms: int, rtt_ms: int) -> bytes:
    """A pcap of connections whose first packet waits for the radio.

    The monitor is next to the server: the SYN passes, stamped before its
    promotion, then SYN-ACK and, an RTT later, ACK. Clocks tick each ms; 4 s of
    keep-alive ACKs show that.
    """
    out = bytearray.fromhex("d4c3b2a1020004000000000000000000ffff000065000000")

    def packet(
        ms: float, up: bool, port: int, flags: int, numbers: tuple[int, int], tick: int
    ) -> None:
        options = bytes([8, 10]) + (tick + 5000).to_bytes(4, "big") + bytes(4) + bytes([1, 1])
        source, sink = (port, 443) if up else (443, port)
        tcp = source.to_bytes(2, "big") + sink.to_bytes(2, "big")
        tcp += b"".join(n.to_bytes(4, "big") for n in numbers)
        tcp += bytes([8 << 4, flags, 0xFF, 0xFF, 0, 0, 0, 0]) + options
        ends = [bytes([10, 0, 0, 1]), bytes([192, 0, 2, 1])]
        ip = (
            bytes([0x45, 0]) + (20 + len(tcp)).to_bytes(2, "big") + bytes([0, 0, 0, 0, 64, 6, 0, 0])
        )
        ip += b"".join(ends if up else ends[::-1])
        frame = ip + tcp
        s, us = divmod(round(ms * 1000), 1_000_000)
        for field in (s + 1_000_000, us, len(frame), len(frame)):
            out.extend(field.to_bytes(4, "little"))
        out.extend(frame)

    syn, ack = 0x02, 0x10
    for n, second in enumerate(at_s):
        port, ms = 40_000 + n, second * 1000
        tick = ms - promotion_ms
        packet(ms, True, port, syn, (99, 0), tick)
        packet(ms, False, port, syn | ack, (999, 100), 7)
        packet(ms + rtt_ms, True, port, ack, (100, 1000), ms + rtt_ms)
        for step in range(1, 5):
            later = ms + rtt_ms + step * 1000
            packet(later, True, port, ack, (100, 1000), later)
    return bytes(out)
