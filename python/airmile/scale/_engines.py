"""Engines that run steps."""

# mypy: disable-error-code="import-untyped,import-not-found"
from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, Protocol

from airmile.errors import AirmileError, AirmileMissingLibraryError, AirmileOptionError

Call = tuple[Callable[..., Any], tuple[Any, ...]]

_RETRIES = 4
"""How often a step is restarted after its worker died (chosen here)."""


class Engine(Protocol):
    """Runs steps and yields their results in any order; `width` of them run at once."""

    def each(self, calls: Sequence[Call]) -> Iterator[Any]: ...
    def width(self) -> int: ...
    def close(self) -> None: ...


def engine_of(name: str, workers: int) -> Engine:
    """The engine with a name: `ray`, `ray://HOST:PORT` or `processes`."""
    if name == "ray" or name.startswith("ray://"):
        return _Ray(None if name == "ray" else name, workers)
    if name == "processes":
        return _Processes(workers)
    raise AirmileOptionError(
        f"engine: unknown {name!r}; known are ray (the cluster of RAY_ADDRESS, or one on this "
        "machine), ray://HOST:PORT and processes (on this machine)"
    )


class _Processes:
    def __init__(self, workers: int) -> None:
        # Fresh processes: a fork would copy all threads of the caller.
        context = get_context("spawn")
        self._workers = workers or os.cpu_count() or 1
        self._pool = ProcessPoolExecutor(self._workers, mp_context=context)

    def width(self) -> int:
        return self._workers

    def each(self, calls: Sequence[Call]) -> Iterator[Any]:
        futures = [self._pool.submit(function, *args) for function, args in calls]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BrokenProcessPool as error:
            raise AirmileError(
                "a worker died: the same call continues the run (a script with the call "
                "needs `if __name__ == '__main__':` around it)"
            ) from error

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


class _Ray:
    def __init__(self, address: str | None, workers: int) -> None:
        try:
            import ray
        except ImportError as error:
            raise AirmileMissingLibraryError(
                "the engine is not installed: pip install 'airmile[ray]'"
            ) from error
        self._ray: Any = ray
        self._ours = not ray.is_initialized()
        if self._ours:
            there = address or os.environ.get("RAY_ADDRESS")
            options: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
            if there:
                options["address"] = there
            else:
                options |= {"num_cpus": workers or None, "include_dashboard": False}
            try:
                ray.init(**options)
            except ImportError as error:
                raise AirmileMissingLibraryError(
                    f"{there or 'ray'}: {error}: pip install 'ray[client]'"
                ) from error
            except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
                raise AirmileOptionError(f"engine: {there or 'ray'}: {error}") from error
        self._step = ray.remote(_call).options(max_retries=_RETRIES, num_cpus=1)

    def width(self) -> int:
        # The CPUs of the cluster, not of this machine.
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def each(self, calls: Sequence[Call]) -> Iterator[Any]:
        ray = self._ray
        # At most as many as can run and be fetched; the rest waits here.
        most = 2 * self.width()
        waiting = iter(calls)
        under_way: list[Any] = []
        try:
            while True:
                for function, args in waiting:
                    under_way.append(self._step.remote(function, args))
                    if len(under_way) >= most:
                        break
                if not under_way:
                    return
                done, under_way = ray.wait(under_way, num_returns=1)
                for reference in done:
                    yield self._result(reference)
        finally:
            for reference in under_way:
                ray.cancel(reference, force=True)

    def _result(self, reference: Any) -> Any:
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, AirmileError):
                raise error.cause from None
            raise

    def close(self) -> None:
        if self._ours:
            self._ray.shutdown()


def _call(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    return function(*args)
