"""The functions: the command's names and arguments, typed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

from airmile import _airmile
from airmile._arguments import FilePath, Files, Time, paths, time
from airmile._call import checked
from airmile._comparison import Comparison, ScrubReport
from airmile._decoded import Decoded
from airmile._packet_report import PacketReport
from airmile._report import Diagnosis, InspectReport, RadioReport, Request
from airmile.errors import AirmileOptionError

Evidence: TypeAlias = Literal["auto", "poll", "padding", "grants", "paper"]

# Defaults are defined once, in the compiled part.
_DEFAULTS: dict[str, Any] = _airmile.defaults()


@checked
def inspect(
    files: Files,
    *,
    from_: Time | None = None,
    to: Time | None = None,
    rnti: int | None = None,
    experimental: bool = False,
) -> InspectReport:
    """Show what files contain, and which questions they can answer.

    Args:
        files: modem logs (.mi2log, .qmdl, .qmdl2, .dlf, .hdf), tables (CSV),
            captures (pcap, pcapng) or application logs (HAR, NetLog, qlog, a
            player's, iperf3), compressed (gzip, zstd) or not, or directories of
            them; one path or several. The kind of a file is recognised from its
            content.
        from_: ignore everything before this time: seconds or a `timedelta` since the
            start, a `datetime` (without a zone: UTC) or `date`, or text as for
            `--from` (`"12:01:29"`, `"2018-08-25T12:01:29Z"`).
        to: ignore everything from this time on.
        rnti: only the grants of this RNTI from a sniffer's table; by default those
            of the one with the most bytes.
        experimental: also read messages whose layout is from a single public
            source (docs/versions.md).

    Raises:
        AirmileInputError: a file cannot be opened or read.
        AirmileOptionError: a time is invalid.

    >>> import tempfile, airmile as am
    >>> run = am.lab_run("sample-rate-limited", tempfile.mkdtemp())
    >>> report = am.inspect(run.log)
    >>> report.files["kind"]
    ['modem_log_hdlc']
    >>> report.can_answer[0].split(":")[0]
    'was the downlink the bottleneck (bursts, throughput time, link demand)'
    """
    return InspectReport(
        _airmile.inspect(
            {
                "files": paths(files),
                "from": time(from_),
                "to": time(to),
                "rnti": rnti,
                "experimental": experimental,
            }
        )
    )


@checked
def decode(
    files: Files,
    *,
    only: str | Iterable[str] = (),
    from_: Time | None = None,
    to: Time | None = None,
    sim: int | None = None,
    rnti: int | None = None,
    experimental: bool = False,
) -> Decoded:
    """Decode every record to one Arrow table per record type.

    Args:
        files: as for :func:`inspect`.
        only: record types (`docs/records.md`), such as `"grant"` or
            `["grant", "rlc"]`; all by default.
        from_: as for :func:`inspect`.
        to: as for :func:`inspect`.
        sim: only this subscription of a multi-SIM phone.
        rnti: as for :func:`inspect`.
        experimental: as for :func:`inspect`.

    Raises:
        AirmileFormatError: a file is not usable.
        AirmileInputError: a file cannot be opened or read.
        AirmileOptionError: a record type does not exist.

    >>> import tempfile, airmile as am
    >>> run = am.lab_run("sample-rate-limited", tempfile.mkdtemp())
    >>> grant = am.decode(run.log, only="grant", to=1.0).grant
    >>> grant.columns[:3], grant.types["n_prb"]
    (['clock', 'time_ns', 'timing_segment'], 'Int64')
    """
    tables, document = _airmile.decode(
        {
            "files": paths(files),
            "from": time(from_),
            "to": time(to),
            "only": [only] if isinstance(only, str) else list(only),
            "sim": sim,
            "rnti": rnti,
            "experimental": experimental,
        }
    )
    return Decoded(tables, _Text(document))


@checked
def radio(
    files: Files,
    *,
    transfers: FilePath | None = None,
    evidence: Evidence = "auto",
    start_threshold: float = _DEFAULTS["start_threshold"],
    end_threshold: float = _DEFAULTS["end_threshold"],
    from_: Time | None = None,
    to: Time | None = None,
    sim: int | None = None,
    pause_ms: int = _DEFAULTS["pause_ms"],
    min_bytes: int = _DEFAULTS["min_bytes"],
    radio_at_least: float = _DEFAULTS["radio_at_least"],
    not_radio_below: float = _DEFAULTS["not_radio_below"],
    rnti: int | None = None,
    experimental: bool = False,
) -> RadioReport:
    """Find bursts, throughput time and link demand (BurstTracker, MobiCom 2019).

    Args:
        files: as for :func:`inspect`.
        transfers: the application's transfers, a CSV with
            `id,start_us,end_us,bytes` (or `start_tti,end_tti`); without it
            they are activity split at pauses.
        evidence: what ends a burst: all that the log has (`"auto"`), RLC poll
            bits (TS 36.322, 5.2.2), MAC padding (TS 36.321, 6.1.2),
            allocations fitted to the log, or the paper's literal rule.
        start_threshold: `"paper"`: a burst starts above this share of the
            cell's PRBs, 0 to 1.
        end_threshold: `"paper"`: a burst may end below this share.
        from_: as for :func:`inspect`.
        to: as for :func:`inspect`.
        sim: subscription of a multi-SIM phone; by default the one with the
            most data.
        pause_ms: without `transfers`: a pause of this many ms separates them.
        min_bytes: without `transfers`: activity of fewer bytes is not a transfer.
        radio_at_least: minimum link demand at which the link is the bottleneck.
        not_radio_below: link demand below which it is not.
        rnti: as for :func:`inspect`.
        experimental: as for :func:`inspect`.

    Raises:
        AirmileFormatError: a file is not usable.
        AirmileInputError: a file cannot be opened or read.
        AirmileNoDataError: the files hold nothing to analyse.
        AirmileOptionError: an argument is invalid.

    >>> import tempfile, airmile as am
    >>> run = am.lab_run("sample-rate-limited", tempfile.mkdtemp())
    >>> report = am.radio(run.log, transfers=run.transfers_csv)
    >>> report.transfers["verdict"]
    ['not_radio']
    >>> report.bursts.columns[:4]
    ['dir', 'timing_segment', 'start_tti', 'end_tti']
    """
    ask = _analysis(
        files,
        transfers=transfers,
        evidence=evidence,
        start_threshold=start_threshold,
        end_threshold=end_threshold,
        from_=from_,
        to=to,
        sim=sim,
        pause_ms=pause_ms,
        min_bytes=min_bytes,
        radio_at_least=radio_at_least,
        not_radio_below=not_radio_below,
        rnti=rnti,
        experimental=experimental,
        whole_urls=False,
    )
    return RadioReport(_airmile.radio(ask), Request(ask))


@checked
def diagnose(
    files: Files,
    *,
    transfers: FilePath | None = None,
    evidence: Evidence = "auto",
    start_threshold: float = _DEFAULTS["start_threshold"],
    end_threshold: float = _DEFAULTS["end_threshold"],
    from_: Time | None = None,
    to: Time | None = None,
    sim: int | None = None,
    pause_ms: int = _DEFAULTS["pause_ms"],
    min_bytes: int = _DEFAULTS["min_bytes"],
    radio_at_least: float = _DEFAULTS["radio_at_least"],
    not_radio_below: float = _DEFAULTS["not_radio_below"],
    rnti: int | None = None,
    experimental: bool = False,
    whole_urls: bool = False,
) -> Diagnosis:
    """Find the bottleneck: one verdict per transfer, with evidence.

    Arguments and errors are those of :func:`radio`. The files may include
    captures and an application's log (HAR, NetLog, qlog, a player's, iperf3),
    which describes the transfers; `transfers` also accepts one. With `whole_urls`, names
    and pages have the query of their URLs, which may hold tokens.

    >>> import tempfile, airmile as am
    >>> run = am.lab_run("sample-rate-limited", tempfile.mkdtemp())
    >>> answer = am.diagnose(run.log, transfers=run.transfers_csv)
    >>> answer.verdict
    'not_radio'
    >>> answer.says.split(":")[0]
    'The downlink was not the bottleneck'
    """
    ask = _analysis(
        files,
        transfers=transfers,
        evidence=evidence,
        start_threshold=start_threshold,
        end_threshold=end_threshold,
        from_=from_,
        to=to,
        sim=sim,
        pause_ms=pause_ms,
        min_bytes=min_bytes,
        radio_at_least=radio_at_least,
        not_radio_below=not_radio_below,
        rnti=rnti,
        experimental=experimental,
        whole_urls=whole_urls,
    )
    return Diagnosis(_airmile.diagnose(ask), Request(ask))


@checked
def compare(
    runs: Files,
    *,
    by: Literal["auto", "port", "run"] = "auto",
    ports: Iterable[int] = (),
    seed: int = _DEFAULTS["seed"],
    from_: Time | None = None,
    to: Time | None = None,
) -> Comparison:
    """Compare runs or ports: slow start restarts, throttling, load times of pages.

    docs/compare.md has the statistics and the limits of the verdicts.

    Args:
        runs: directories of `lab run` or `probe run`, or any with a modem log,
            captures or an application's log, or one such file; one path or several.
        by: what the groups are: the server's port, the run, or (`"auto"`) the port
            if there are several.
        ports: only these server ports.
        seed: seed of intervals and tests.
        from_: as for :func:`inspect`, within each run.
        to: as for :func:`inspect`.

    Raises:
        AirmileFormatError: a file is not usable.
        AirmileInputError: a run cannot be opened or read.
        AirmileNoDataError: no run holds a download of 20 kB or more.
        AirmileOptionError: an argument is invalid.

    >>> import tempfile, airmile as am
    >>> run = am.lab_run("middlebox-ports", tempfile.mkdtemp())
    >>> answer = am.compare(run.dir)
    >>> answer.verdict, answer.grouped_by, answer.groups["name"]
    ('middlebox_restarts', 'port', ['port 80', 'port 443', 'port 7777'])
    """
    ask = {
        "files": paths(runs),
        "by": by,
        "ports": list(ports),
        "seed": seed,
        "from": time(from_),
        "to": time(to),
    }
    return Comparison(_airmile.compare(ask))


@checked
def scrub(files: Files, output: FilePath, *, key: FilePath | None = None) -> ScrubReport:
    """Make copies that can be shared: without payload, with pseudonyms for identities.

    docs/scrub.md lists what a copy keeps. Its results are those of the original,
    except for what only the payload contains.

    Args:
        files: captures, modem logs and HARs, compressed or not, or directories of
            them; one path or several.
        output: the copy; for several files or a directory, a directory of copies.
        key: the key file, created if missing; by default `output` with `.key`, which
            must not exist. The same key gives the same pseudonyms. Do not share it.

    Raises:
        AirmileFormatError: a file is no capture, modem log or HAR.
        AirmileInputError: a file cannot be opened or read.
        AirmileOutputError: a copy or the key cannot be written.

    >>> import tempfile, airmile as am
    >>> run = am.lab_run("receive-window", tempfile.mkdtemp())
    >>> report = am.scrub(run.dir / "server.pcapng", run.dir / "shared.pcapng")
    >>> [path.name for path in report.copies], report.key.name
    (['shared.pcapng'], 'shared.pcapng.key')
    """
    where = None if key is None else os.fspath(key)
    return ScrubReport(_airmile.scrub(paths(files), os.fspath(output), where))


@checked
def packets(
    files: Files,
    *,
    client: str | Iterable[str] = (),
    proxy_ports: Iterable[int] = _DEFAULTS["proxy_ports"],
    idle_s: int = _DEFAULTS["idle_s"],
    promotion_idle_s: int = _DEFAULTS["promotion_idle_s"],
    tail_s: int = _DEFAULTS["tail_s"],
    min_rto_ms: int = _DEFAULTS["min_rto_ms"],
    send_rate: float | Literal["auto"] = _DEFAULTS["send_rate"],
    threads: int = 0,
    from_: Time | None = None,
    to: Time | None = None,
    engine: str | None = None,
    output: FilePath | None = None,
    buckets: int = 0,
    workers: int = 0,
) -> PacketReport:
    """Study packet captures: flows, RTTs, losses, available bandwidth (SIGCOMM 2013).

    All tables of the study are in memory, including a row per RTT sample; for a
    capture that is too large for that, `airmile packets -o DIR` writes files.

    Args:
        files: captures (pcap, pcapng), compressed (gzip, zstd) or not, in order
            of time; one path or several.
        client: a network of the clients (`"10.0.0.0/8"`), or several; by default
            clients are identified by SYN, address and port.
        proxy_ports: server ports behind a proxy that splits connections.
        idle_s: a flow ends after this many seconds without a packet.
        promotion_idle_s: the radio is idle after this many seconds without a
            packet (promotion delay).
        tail_s: the radio's tail in seconds (energy).
        min_rto_ms: minimum retransmission timeout of the senders in milliseconds:
            200 in Linux, 1000 by RFC 6298.
        send_rate: a sending rate in Mbit/s that shows the available bandwidth
            (C of the paper); `"auto"`: estimate it from queued segments.
        threads: analysis threads; 0 is one per core. The result is the same.
        from_: as for :func:`inspect`.
        to: as for :func:`inspect`.
        engine: run on `"ray"` (on this machine, or the cluster of RAY_ADDRESS),
            `"ray://HOST:PORT"` or `"processes"`. The rows are the same; the
            tables are Parquet files below `output`, read on access. `files` may be
            directories, and URIs of object stores (`s3://...`). After an
            interruption the same call continues the run. See docs/scale.md.
        output: the directory or URI of an engine's tables.
        buckets: parts into which an engine divides users; 0 is several per worker.
        workers: workers of an engine on this machine; 0 is one per core.

    Raises:
        AirmileFormatError: a file is no capture.
        AirmileInputError: a file cannot be opened or read.
        AirmileNoDataError: the captures hold no IP packets.
        AirmileMissingLibraryError: the engine is not installed.
        AirmileOptionError: an argument is invalid.

    >>> import tempfile, airmile as am
    >>> run = am.lab_run("receive-window", tempfile.mkdtemp())
    >>> report = am.packets(run.dir / "server.pcapng")
    >>> report.flows["server_port"], report.flows["termination"]
    ([443], ['fin'])
    >>> report.summary.columns
    ['section', 'what', 'unit', 'here', 'paper', 'n']
    """
    ask = packets_ask(
        files,
        client=client,
        proxy_ports=proxy_ports,
        idle_s=idle_s,
        promotion_idle_s=promotion_idle_s,
        tail_s=tail_s,
        min_rto_ms=min_rto_ms,
        send_rate=send_rate,
        threads=threads,
        from_=from_,
        to=to,
    )
    if engine is None:
        if output is not None or buckets or workers:
            raise AirmileOptionError("output, buckets and workers are for an engine")
        return PacketReport(_airmile.packets(ask), Request(ask))
    if output is None:
        raise AirmileOptionError("engine: name a directory for the tables (output)")
    from airmile.scale._run import report

    return report(ask, engine, os.fspath(output), buckets=buckets, workers=workers)


def packets_ask(
    files: Files,
    *,
    client: str | Iterable[str] = (),
    proxy_ports: Iterable[int] = _DEFAULTS["proxy_ports"],
    idle_s: int = _DEFAULTS["idle_s"],
    promotion_idle_s: int = _DEFAULTS["promotion_idle_s"],
    tail_s: int = _DEFAULTS["tail_s"],
    min_rto_ms: int = _DEFAULTS["min_rto_ms"],
    send_rate: float | Literal["auto"] = _DEFAULTS["send_rate"],
    threads: int = 0,
    from_: Time | None = None,
    to: Time | None = None,
) -> dict[str, Any]:
    """The argument of the compiled part; arguments are those of :func:`packets`."""
    return {
        "files": paths(files),
        "client": [client] if isinstance(client, str) else list(client),
        "proxy_ports": list(proxy_ports),
        "idle_s": idle_s,
        "promotion_idle_s": promotion_idle_s,
        "tail_s": tail_s,
        "min_rto_ms": min_rto_ms,
        "send_rate": send_rate if isinstance(send_rate, str) else f"{send_rate:.12g}",
        "threads": threads,
        "from": time(from_),
        "to": time(to),
    }


class _Text:
    """A document that is already text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def json(self) -> str:
        return self._text


def _analysis(files: Files, **options: object) -> dict[str, object]:
    ask = dict(options)
    ask["files"] = paths(files)
    ask["from"] = time(ask.pop("from_"))
    ask["to"] = time(ask["to"])
    return ask
