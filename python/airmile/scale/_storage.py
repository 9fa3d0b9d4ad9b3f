"""Storage of captures and results: this machine, or an object store."""

# mypy: disable-error-code="import-untyped,import-not-found"
from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from airmile import _airmile
from airmile.errors import AirmileInputError, AirmileMissingLibraryError, AirmileOptionError

_URI = re.compile(r"^[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_CAPTURE = re.compile(r"\.(pcap|pcapng|cap|dmp)(\.(gz|zst))?$", re.IGNORECASE)


def is_remote(path: str) -> bool:
    """Whether it is a URI of something other than a local file."""
    return bool(_URI.match(path)) and not path.startswith("file://")


def local(path: str) -> Path:
    """A local path or `file://` URI as a path."""
    return Path(path.removeprefix("file://"))


def filesystem(uri: str) -> tuple[Any, str]:
    """The pyarrow file system of a URI, and the path in it; fsspec's if pyarrow has none."""
    try:
        from pyarrow import fs
    except ImportError as error:
        raise AirmileMissingLibraryError(
            f"{uri}: object stores need pyarrow: pip install 'airmile[ray]'"
        ) from error
    try:
        found, path = fs.FileSystem.from_uri(uri)
    except (ValueError, OSError) as refused:
        try:
            import fsspec
        except ImportError:
            raise AirmileOptionError(f"{uri}: {refused}") from refused
        try:
            inner, path = fsspec.core.url_to_fs(uri)
        except (ValueError, ImportError) as error:
            raise AirmileOptionError(f"{uri}: {error}") from error
        found = fs.PyFileSystem(fs.FSSpecHandler(inner))
    return found, path


def expand(paths: list[str]) -> list[str]:
    """The captures; for a directory those in it, by name."""
    found: list[str] = []
    for path in paths:
        if path == "-":
            raise AirmileOptionError("-: an engine reads files, not standard input")
        if is_remote(path):
            found += _expand_remote(path)
        # Workers may have started in other directories.
        elif (directory := local(path).absolute()).is_dir():
            inside = sorted(str(file) for file in directory.iterdir() if _CAPTURE.search(file.name))
            if not inside:
                raise AirmileInputError(f"{path}: no captures in this directory")
            found += inside
        else:
            found.append(str(directory))
    return found


def _expand_remote(uri: str) -> list[str]:
    from pyarrow import fs

    store, path = filesystem(uri)
    info = store.get_file_info(path)
    if info.type == fs.FileType.File:
        return [uri]
    if info.type != fs.FileType.Directory:
        raise AirmileInputError(f"{uri}: no such file or directory")
    files = store.get_file_info(fs.FileSelector(path, recursive=False))
    names = sorted(file.base_name for file in files if _CAPTURE.search(file.base_name))
    if not names:
        raise AirmileInputError(f"{uri}: no captures in this directory")
    return [below(uri, name) for name in names]


def below(uri: str, name: str) -> str:
    """A name below a URI: in front of its options, such as `?endpoint_override=HOST`."""
    base, mark, options = uri.partition("?")
    return f"{base.rstrip('/')}/{name}{mark}{options}"


Identity = tuple[str, int, int | None]
"""Path, size in bytes and time of a capture."""


def identity(path: str) -> Identity:
    """What distinguishes a capture from another one of the same name: size and time."""
    if is_remote(path):
        store, inner = filesystem(path)
        info = store.get_file_info(inner)
        return (path, info.size, info.mtime_ns)
    try:
        stat = os.stat(path)
    except OSError as error:
        raise AirmileInputError(error.errno, os.strerror(error.errno or 0), path) from error
    return (path, stat.st_size, stat.st_mtime_ns)


def opened(path: str) -> IO[bytes]:
    """A remote capture as a stream of its stored bytes."""
    store, inner = filesystem(path)
    # The reader recognises the compression.
    stream: IO[bytes] = store.open_input_stream(inner, compression=None, buffer_size=4 << 20)
    return stream


class Storage:
    """A directory for results, on this machine or in an object store."""

    def __init__(self, root: str) -> None:
        self.root = root if is_remote(root) else str(local(root).absolute())
        self.remote = is_remote(root)
        self._found: tuple[Any, str] | None = None

    def found(self, name: str) -> tuple[Any, str]:
        """The file system of an object store, and the path of a name in it."""
        if self._found is None:
            self._found = filesystem(self.root)
        store, path = self._found
        return store, f"{path.rstrip('/')}/{name}"

    def path(self, name: str) -> Path:
        """A local file."""
        return Path(self.root, name)

    def scratch(self) -> Path:
        """A new directory on this machine for incomplete files."""
        if self.remote:
            import tempfile

            return Path(tempfile.mkdtemp(prefix="airmile-"))
        # In the results' own file system, so that a rename suffices.
        scratch = self.path(f"_work/scratch/{uuid.uuid4().hex}")
        scratch.mkdir(parents=True)
        return scratch

    def keep(self, file: Path, name: str) -> None:
        """Give a complete file its name; on this machine atomically.

        Some object stores may keep a partial file if a worker is killed; a file that
        no manifest names is not read.
        """
        if self.remote:
            store, path = self.found(name)
            store.create_dir(path.rpartition("/")[0], recursive=True)
            try:
                with file.open("rb") as whole, store.open_output_stream(path) as out:
                    shutil.copyfileobj(whole, out, 4 << 20)
            except BaseException:
                # A stream left by an error is closed, and its content kept.
                with contextlib.suppress(OSError):
                    store.delete_file(path)
                raise
            return
        target = self.path(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(file, target)

    def write(self, name: str, content: bytes) -> None:
        """Write a small file, as :meth:`keep` does."""
        scratch = self.scratch()
        try:
            (scratch / "file").write_bytes(content)
            self.keep(scratch / "file", name)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def read(self, name: str) -> bytes | None:
        """A small file; `None` if it does not exist."""
        try:
            if not self.remote:
                return self.path(name).read_bytes()
            store, path = self.found(name)
            with store.open_input_stream(path) as stream:
                content: bytes = stream.read()
            return content
        except FileNotFoundError:
            return None

    def read_json(self, name: str) -> dict[str, Any] | None:
        """A small JSON file; `None` if it does not exist or is incomplete."""
        content = self.read(name)
        try:
            found: dict[str, Any] | None = json.loads(content) if content else None
        except ValueError:
            return None
        return found

    def names(self, name: str = "") -> set[str]:
        """The names in the directory itself, or in one below it."""
        if not self.remote:
            directory = self.path(name)
            return {entry.name for entry in directory.iterdir()} if directory.is_dir() else set()
        from pyarrow import fs

        store, path = self.found(name)
        selector = fs.FileSelector(path.rstrip("/"), allow_not_found=True)
        return {entry.base_name for entry in store.get_file_info(selector)}

    def remove_file(self, name: str) -> None:
        """Remove a file that may not exist."""
        with contextlib.suppress(FileNotFoundError):
            if not self.remote:
                return self.path(name).unlink()
            store, path = self.found(name)
            store.delete_file(path)

    def remove(self, name: str) -> None:
        """Remove a directory and its content."""
        if not self.remote:
            shutil.rmtree(self.path(name), ignore_errors=True)
            return
        store, path = self.found(name)
        with contextlib.suppress(FileNotFoundError):
            store.delete_dir(path)

    def records(self, name: str, groups: list[int]) -> object:
        """Row groups of a file of records, as the Rust side takes them."""
        if not self.remote:
            return (str(self.path(name)), groups)
        import pyarrow
        from pyarrow import parquet

        def batches() -> Iterator[Any]:
            # Opened on demand: a bucket has records in every file.
            store, path = self.found(name)
            with store.open_input_file(path) as file:
                yield from parquet.ParquetFile(file).iter_batches(8192, row_groups=groups)

        schema = pyarrow.schema(_airmile.record_schema())
        return pyarrow.RecordBatchReader.from_batches(schema, batches() if groups else iter(()))


def is_cuttable(path: str) -> bool:
    """Whether a capture may be split: a local, uncompressed file."""
    if is_remote(path):
        return False
    with open(path, "rb") as file:
        return _airmile.is_capture(file.read(64))
