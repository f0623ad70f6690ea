"""Where tables are kept: runs beside runs, each there as a whole or not at all.

    OUTPUT/
      batches/run_id=ID/part-*.parquet     a table of a run
      _runs/ID.json                        that the run is complete: its files, rows and versions
      _staging/ID/TOKEN/                   a run under way, whose process its owner.json tells

Readers of Parquet pass over names that begin with an underscore. Tasks write under names of their
own into the staging area, so that one that is tried again, or twice at once, disturbs nothing; only
files that the driver was told of by a task that ended count. A run becomes visible by renaming its
directories once everything is written. One of the same id that was there before is put aside until
then, and put back should that fail.

While the process of a run lives, no other run takes its id. Each writes who it is before it looks
for others, so that of two that begin at once at least one sees the other and gives up. What a run
that was killed has left is set right by the next of its id, or by `clean`.
"""

import contextlib
import json
import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs
from pyarrow import parquet

from logtool import files
from logtool.errors import LogtoolError, RefusedError, UnwritableError, UsageError
from logtool.pipeline import ownership, tables
from logtool.pipeline.ownership import Heart, Owner
from logtool.pipeline.tables import Payload

ROW_GROUP_ROWS = 256 * 1024
ROW_GROUP_BYTES = 64 * 1024 * 1024
"""In memory; whichever comes first."""
_ALL_ASIDE = "all-aside"
"""File in a staging area: every visible table of this run id is a new one."""
_RISING = frozenset({
    "position", "batch_position", "base_offset", "last_offset", "offset", "first_offset",
    "base_timestamp_ms", "max_timestamp_ms", "timestamp_ms", "base_sequence", "last_sequence",
    "sequence",
})  # fmt: skip
"""Columns whose differences are small: half the time and a seventh of the size of dictionaries."""
_RANDOM = frozenset({"crc", "key_hash", "value_hash", "key", "value", "message", "evidence"})
"""Columns in which hardly any value comes twice."""
_ASKED_FOR = frozenset({
    "log_dir", "node_id", "topic", "partition", "directory", "segment", "base_offset",
    "first_offset", "last_offset", "offset", "timestamp_ms", "max_timestamp_ms",
    "last_timestamp_ms", "producer_id", "severity", "code",
})  # fmt: skip
"""Columns by which readers leave out parts of files: these have their least and largest there."""
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a table."""

    table: str
    path: str
    """Below the output, in the staging area of its run."""
    rows: int
    size: int
    """Bytes."""


@lru_cache(maxsize=4)
def filesystem(url: str) -> tuple[Any, str]:
    """Return the file system of a path or URL, and the path in it; UsageError for neither."""
    if "://" not in url:
        return pa.fs.LocalFileSystem(), url.rstrip("/") or "/"
    try:
        import fsspec
    except ImportError as error:
        text = f"{url} needs fsspec: pip install 'kafka-logtool[remote]'"
        raise UsageError(text) from error
    try:
        # Another process changes what is there: nothing may be remembered.
        found, path = fsspec.core.url_to_fs(url, use_listings_cache=False)
    except (ImportError, ValueError) as error:
        raise UsageError(f"{url}: {error}") from error
    return pa.fs.PyFileSystem(pa.fs.FSSpecHandler(found)), path.rstrip("/")


@dataclass(frozen=True, slots=True)
class Staging:
    """The place of a run under way; goes to executors as it is."""

    output: str
    run_id: str
    token: str
    """Of its owner."""
    payload: Payload = Payload.FULL
    """What the table of records tells."""

    @property
    def path(self) -> str:
        """Return its path below the output."""
        return f"_staging/{self.run_id}/{self.token}"

    @contextlib.contextmanager
    def writer(self, table: str, schema: Any = None) -> Iterator["Writer"]:
        """Write one part of a table, if any row is given; UnwritableError when that fails."""
        writer = Writer(self, table, schema or tables.schema(table, self.payload))
        yield writer
        writer.close()


class Writer:
    """One Parquet file under way; `parts` has it once it is closed."""

    def __init__(self, staging: Staging, table: str, schema: Any) -> None:
        self.parts: list[Part] = []
        self.table = table
        self._staging = staging
        self._schema = schema
        self._path = f"{staging.path}/{table}/part-{uuid.uuid4().hex}.parquet"
        self._ready: list[Any] = []
        self._rows = self._bytes = self._written = 0
        self._file: Any = None
        self._writer: Any = None

    @property
    def target(self) -> str:
        """Return where it writes, for messages."""
        return f"{self._staging.output}/{self._path}"

    def write(self, rows: Any) -> None:
        """Take a record batch of the table's schema."""
        if not rows.num_rows:
            return
        self._ready.append(rows)
        self._rows += rows.num_rows
        self._bytes += rows.nbytes
        if self._rows >= ROW_GROUP_ROWS or self._bytes >= ROW_GROUP_BYTES:
            with _translated(self.target):
                self._flush()

    def close(self, *, also_empty: bool = False) -> None:
        """End the file; without rows there is none, unless it is asked for."""
        with _translated(self.target):
            if also_empty or self._ready:
                self._flush()
            if not self._writer:
                return
            self._writer.close()
            size = self._file.tell()
            self._file.close()
        self._writer = None
        self.parts.append(Part(self.table, self._path, self._written, size))

    def _flush(self) -> None:
        if not self._writer:
            found, root = filesystem(self._staging.output)
            path = f"{root}/{self._path}"
            # The directory of a run that was given up is gone, and must not come back with a task
            # that has not heard of it yet. In an object store there are no directories.
            found.create_dir(path.rpartition("/")[0], recursive=hasattr(found, "handler"))
            self._file = found.open_output_stream(path)
            names = set(self._schema.names)
            self._writer = parquet.ParquetWriter(
                self._file, self._schema, compression="zstd", compression_level=1,
                use_dictionary=sorted(names - _RISING - _RANDOM),
                column_encoding=dict.fromkeys(sorted(names & _RISING), "DELTA_BINARY_PACKED"),
                write_statistics=sorted(names & _ASKED_FOR),
            )  # fmt: skip
        self._writer.write_table(pa.Table.from_batches(self._ready, self._schema))
        self._written += self._rows
        self._ready, self._rows, self._bytes = [], 0, 0


@dataclass(slots=True)
class Run:
    """One run of a pipeline into an output; use `begin`, then `commit` or `abandon`."""

    staging: Staging
    parts: list[Part] = field(default_factory=list)
    heart: Heart | None = None

    def add(self, parts: Iterable[Part]) -> None:
        """Take files that a task wrote and told of."""
        self.parts += parts

    def files(self, table: str) -> list[str]:
        """Return paths or URLs of the files of a table."""
        root = self.staging.output.rstrip("/")
        return [f"{root}/{part.path}" for part in self.parts if part.table == table]

    def rows(self, table: str) -> int:
        """Return how many rows a table has."""
        return sum(part.rows for part in self.parts if part.table == table)

    def size(self, table: str) -> int:
        """Return the bytes of a table."""
        return sum(part.size for part in self.parts if part.table == table)

    def abandon(self) -> None:
        """Remove what was written, and put back what was there; what fails is left to `begin`."""
        self._stop_heart()
        found, root = filesystem(self.staging.output)
        ownership.release(self.staging.token)
        with contextlib.suppress(UnwritableError), _translated(self.staging.output):
            _clean_up(found, root, self.staging)

    def commit(self, names: Sequence[str], about: dict[str, Any]) -> None:
        """Make the tables visible, all of them; UnwritableError with everything as before."""
        found, root = filesystem(self.staging.output)
        try:
            with _translated(self.staging.output):
                for name in names:
                    if not self.rows(name):
                        with self.staging.writer(name) as writer:
                            writer.close(also_empty=True)
                        self.add(writer.parts)
                self._drop_the_rest(found, root)
                self._stop_heart()
                if not _exists(found, f"{root}/{self.staging.path}/{ownership.FILE}"):
                    raise RefusedError(
                        f"{self.staging.output}: run {self.staging.run_id} was taken for given up "
                        "and removed by another; start it anew"
                    )
                _publish(found, root, self.staging, names, self._record(names, about))
        except BaseException:
            self.abandon()
            raise

    def _stop_heart(self) -> None:
        if self.heart:
            self.heart.stop()

    def _record(self, names: Sequence[str], about: dict[str, Any]) -> dict[str, Any]:
        files = [
            {**asdict(part), "path": _final(self.staging, part)}
            for part in self.parts
            if part.table in names
        ]
        rows = {name: self.rows(name) for name in names}
        return {
            "run_id": self.staging.run_id, "tables_version": tables.VERSION, **about,
            "rows": rows, "files": files,
        }  # fmt: skip

    def _drop_the_rest(self, found: Any, root: str) -> None:
        """Remove files of tasks that were given up, tried again, or whose segment was read anew."""
        counted = {part.path for part in self.parts}
        place = f"{root}/{self.staging.path}"
        for info in found.get_file_info(pa.fs.FileSelector(place, recursive=True)):
            if info.type == pa.fs.FileType.File and info.path.endswith(".parquet"):
                path = f"{self.staging.path}/{info.path.removeprefix(place).lstrip('/')}"
                if path not in counted:
                    found.delete_file(info.path)


def check(output: str, run_id: str) -> None:
    """Raise RefusedError where the output holds something else, or the run is under way.

    UsageError for a run id that is none.
    """
    if not _RUN_ID.fullmatch(run_id):
        raise UsageError(f"--run-id {run_id}: expected letters, digits, dot, dash, underscore")
    found, root = filesystem(output)
    with _translated(output):
        _check_output(found, root, output)
        _refuse_other(found, root, Staging(output, run_id, token=""))


def begin(output: str, run_id: str, payload: Payload = Payload.FULL) -> Run:
    """Start a run, or start it anew; raises what `check` raises."""
    check(output, run_id)
    found, root = filesystem(output)
    mine = Owner.here()
    # An executor may have another current directory.
    place = output if "://" in output else str(Path(output).absolute())
    staging = Staging(place, run_id, mine.token, payload)
    with _translated(output):
        found.create_dir(f"{root}/{staging.path}", recursive=True)
        try:
            _write_owner(found, root, staging, mine)
            _refuse_other(found, root, staging)
            for one in _staged(found, root, output, run_id):
                if one.staging.token != mine.token:
                    _clean_up(found, root, one.staging)
            found.create_dir(f"{root}/_runs", recursive=True)
        except BaseException as error:
            ownership.release(mine.token)
            if isinstance(error, FileNotFoundError):
                text = f"{output}: another process begins run {run_id} just now"
                raise RefusedError(text) from error
            with contextlib.suppress(OSError):
                _delete(found, f"{root}/{staging.path}")
            raise

    def beat() -> None:
        with _translated(output):
            # What another took for given up, and removed, must not look alive again.
            if _exists(found, f"{root}/{staging.path}/{ownership.FILE}"):
                _write_owner(found, root, staging, mine)

    return Run(staging, heart=Heart(beat))


@dataclass(frozen=True, slots=True)
class Staged:
    """A run that is not complete: under way, or left by a process that was killed."""

    staging: Staging
    owner: Owner | None
    """None where nothing tells whose it is."""

    @property
    def lives(self) -> bool:
        """Return whether a process may still work on it."""
        return self.owner is not None and self.owner.lives()


def staged(output: str) -> list[Staged]:
    """Return the runs that are not complete, by their ids."""
    found, root = filesystem(output)
    with _translated(output):
        names = sorted(info.base_name for info in _entries(found, f"{root}/_staging"))
        return [one for run_id in names for one in _staged(found, root, output, run_id)]


def clean(output: str) -> list[Staged]:
    """Set right what killed runs left, and return what it was; living runs are let alone."""
    found, root = filesystem(output)
    left = [one for one in staged(output) if not one.lives]
    with _translated(output):
        for one in left:
            _clean_up(found, root, one.staging)
    return left


def _refuse_other(found: Any, root: str, staging: Staging) -> None:
    for one in _staged(found, root, staging.output, staging.run_id):
        if one.staging.token != staging.token and one.lives:
            raise RefusedError(
                f"{staging.output}: {one.owner} is at work on run {staging.run_id}; wait for it, "
                "or choose another --run-id"
            )


def _staged(found: Any, root: str, output: str, run_id: str) -> list[Staged]:
    """Return all that is staged of one run id."""
    result = []
    for info in sorted(_entries(found, f"{root}/_staging/{run_id}"), key=lambda one: one.base_name):
        staging = Staging(output, run_id, info.base_name)
        owner = None
        path = f"{root}/{staging.path}/{ownership.FILE}"
        if _exists(found, path):
            owner = Owner.parse(_read(found, path))
        result.append(Staged(staging, owner))
    return result


def _write_owner(found: Any, root: str, staging: Staging, owner: Owner) -> None:
    path = f"{root}/{staging.path}/{ownership.FILE}"
    if hasattr(found, "handler"):
        _write(found, path, owner.text())  # In an object store it is there as a whole.
        return
    _write(found, f"{path}.tmp", owner.text())
    found.move(f"{path}.tmp", path)


def runs(output: str) -> list[dict[str, Any]]:
    """Return the records of the complete runs, by their ids; RefusedError for what is none."""
    found, root = filesystem(output)
    records = []
    for info in sorted(_entries(found, f"{root}/_runs"), key=lambda info: info.base_name):
        try:
            record = json.loads(_read(found, info.path))
            record["run_id"], record["tables_version"]
            records.append(record)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise RefusedError(f"{output}/_runs/{info.base_name} is no record of a run") from error
    return records


def _check_output(found: Any, root: str, output: str) -> None:
    """Refuse a place with other things in it, and tables of another version."""
    info = found.get_file_info(root)
    if info.type == pa.fs.FileType.File:
        raise RefusedError(f"{output} is a file; expected a directory")
    entries = {one.base_name for one in _entries(found, root)}
    if entries and not entries & {"_runs", "_staging"}:
        raise RefusedError(f"{output} exists and holds something else than tables of logtool")
    for run in runs(output):
        if run["tables_version"] != tables.VERSION:
            raise RefusedError(
                f"{output} has tables of version {run['tables_version']} (run {run['run_id']}), "
                f"this logtool writes version {tables.VERSION}; choose another --output"
            )


def _publish(
    found: Any, root: str, staging: Staging, names: Sequence[str], record: dict[str, Any]
) -> None:
    """Put the run in the place of one of its id; `_clean_up` undoes what stops halfway."""
    place, aside = f"{root}/{staging.path}", f"{root}/{staging.path}/_before"
    marker = f"{root}/_runs/{staging.run_id}.json"
    if _exists(found, marker):
        _move(found, marker, f"{aside}/run.json")
    for name in tables.NAMES:
        current = f"{root}/{name}/run_id={staging.run_id}"
        if _exists(found, current):
            _move(found, current, f"{aside}/{name}")
    _write(found, f"{place}/{_ALL_ASIDE}", "")
    for name in names:
        _move(found, f"{place}/{name}", f"{root}/{name}/run_id={staging.run_id}")
    _write(found, f"{place}/run.json", json.dumps(record, indent=1))
    _move(found, f"{place}/run.json", marker)
    _remove_staging(found, root, staging)


def _clean_up(found: Any, root: str, staging: Staging) -> None:
    """Undo what a run left when it was killed, here too, or gave up."""
    place, aside = f"{root}/{staging.path}", f"{root}/{staging.path}/_before"
    if not _exists(found, place):
        return
    marker = f"{root}/_runs/{staging.run_id}.json"
    if not _exists(found, marker):
        # Killed while it became visible: what there is of it goes, what was before comes back.
        if _exists(found, f"{place}/{_ALL_ASIDE}"):
            for name in tables.NAMES:
                current = f"{root}/{name}/run_id={staging.run_id}"
                _delete(found, current)
            # What comes back now must not be taken for new by whoever has to do this again.
            found.delete_file(f"{place}/{_ALL_ASIDE}")
        for info in _entries(found, aside):
            if info.base_name != "run.json":
                _move(found, info.path, f"{root}/{info.base_name}/run_id={staging.run_id}")
        if _exists(found, f"{aside}/run.json"):
            _move(found, f"{aside}/run.json", marker)
    _remove_staging(found, root, staging)


def _remove_staging(found: Any, root: str, staging: Staging) -> None:
    _delete(found, f"{root}/{staging.path}")
    _remove_if_empty(found, f"{root}/_staging/{staging.run_id}")
    _remove_if_empty(found, f"{root}/_staging")


@contextlib.contextmanager
def _translated(place: str) -> Iterator[None]:
    """Turn what a file system raises into one line; behind a URL that is whatever its library has.

    That of s3 has errors of its own for credentials that are missing, and for no connection.
    """
    try:
        yield
    except (LogtoolError, pa.ArrowException):
        raise
    except Exception as error:
        if not isinstance(error, OSError) and "://" not in place:
            raise
        text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        reason = " ".join(text.split()) or type(error).__name__
        raise UnwritableError(files.path_of(place), reason) from error


def _final(staging: Staging, part: Part) -> str:
    return f"{part.table}/run_id={staging.run_id}/{part.path.rpartition('/')[2]}"


def _entries(found: Any, path: str) -> list[Any]:
    selector = pa.fs.FileSelector(path, allow_not_found=True)
    return list(found.get_file_info(selector))


def _exists(found: Any, path: str) -> bool:
    return bool(found.get_file_info(path).type != pa.fs.FileType.NotFound)


def _move(found: Any, source: str, target: str) -> None:
    """Rename a file or a directory; an object store has neither, and copies object by object."""
    if not hasattr(found, "handler"):
        found.create_dir(target.rpartition("/")[0], recursive=True)
        found.move(source, target)
        return
    store = found.handler.fs
    for path in store.find(source):
        store.mv(path, target + path.removeprefix(source))


def _delete(found: Any, path: str) -> None:
    """Remove a directory with what is in it; in an object store an empty one is none."""
    if _exists(found, path):
        found.delete_dir(path)


def _remove_if_empty(found: Any, path: str) -> None:
    if hasattr(found, "handler"):
        return  # An object store has no empty directories.
    with contextlib.suppress(OSError):  # Another run has just begun there.
        Path(path).rmdir()


def _read(found: Any, path: str) -> str:
    with found.open_input_stream(path) as file:
        return bytes(file.read()).decode("utf-8")


def _write(found: Any, path: str, text: str) -> None:
    with found.open_output_stream(path) as file:
        file.write(text.encode("utf-8"))
