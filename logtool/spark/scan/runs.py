"""Runs in an output: they begin, become complete or are given up; files of killed runs are removed.

    OUTPUT/_owners/ID.TOKEN.json    the owner of a run under way
    OUTPUT/_data/ID.TOKEN/          its files, under their final names
    OUTPUT/_runs/ID.GENERATION.json its manifest, written last; see `manifest`

While the process of a run is alive, no other run takes its id. Each process writes its owner file
before it looks for others, so that of two that begin at once at least one sees the other and gives
up. The owner file is written before the first file of the run and removed after the last, so files
without an owner and without a manifest are left over. Of a process on another machine only its
silence is known. A process that gives up such a run writes a file in the place of its manifest, so
that the run can never become complete.

Two requests for each file were the aim on S3: this takes one, and some thirty for the run (measured
with 10,000 files in `tests/bench/reports/object-store.md`, compared with Delta Lake, Iceberg and
renaming).
"""

import contextlib
import errno
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Final

from logtool.disk import files
from logtool.errors import RefusedError, UnreadableError, UnwritableError, UsageError
from logtool.lazy_dataclass import dataclass
from logtool.schemas import arrow
from logtool.schemas.arrow import Payload
from logtool.spark.scan import manifest, ownership, store
from logtool.spark.scan.manifest import Manifest, TableFile
from logtool.spark.scan.ownership import Heart, Owner
from logtool.spark.scan.storage import Staging
from logtool.spark.scan.store import Store, translated

_OWNERS: Final = "_owners"
_RUN_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(slots=True)
class ScanRun:
    """One run of a pipeline into an output; use `begin`, then `commit` or `abandon`."""

    staging: Staging
    generation: int
    """Generation of its manifest, which it writes when it is complete."""
    parts: list[TableFile] = field(default_factory=list)
    heart: Heart | None = None
    _unsynced: list[str] = field(default_factory=list)

    @property
    def here(self) -> Staging:
        """Return the place for files of this process: `commit` makes them durable together."""
        return replace(self.staging, unsynced=self._unsynced)

    def add(self, parts: Iterable[TableFile]) -> None:
        """Take files that a task has written and reported."""
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
        """Remove the files of the run; `begin` and `clean` remove files that could not be."""
        self._stop_heart()
        staging = self.staging
        ownership.release(staging.token)
        with contextlib.suppress(UnwritableError), translated(staging.output):
            place = store.store_at(staging.output)
            if not self._is_newest(place):
                self._withdraw(place)
                place.delete_tree(staging.path)
            place.delete(_owner_file(staging))

    def commit(self, names: Sequence[str], about: Mapping[str, Any]) -> bool:
        """Write the manifest of the run, with all files that were added.

        An older run of its id is removed if this one read segments and all of its inputs. Otherwise
        readers still find the older run, `manifest.incomplete` returns this one, and the result is
        False.

        Each of the tables `names` gets a file, if an empty one. UnwritableError or RefusedError:
        everything is as before, and what this run wrote is removed.
        """
        place = store.store_at(self.staging.output)
        try:
            with translated(self.staging.output):
                for name in names:
                    if not self.rows(name):
                        with self.here.writer(name) as writer:
                            writer.close(also_empty=True)
                        self.add(writer.parts)
                self._drop_the_rest(place)
                counted = {part.path for part in self.parts}
                place.sync_all(
                    [name for name in self._unsynced if name in counted], self.staging.path
                )
                self._stop_heart()
                is_found = self._decide(place, names, about)
        except BaseException:
            self.abandon()
            raise
        ownership.release(self.staging.token)
        # The run has a manifest, even if this fails; `clean` removes files that are left over.
        with contextlib.suppress(UnwritableError), translated(self.staging.output):
            _drop_replaced(place, self.staging.output, self.staging.run_id)
            place.delete(_owner_file(self.staging))
        return is_found

    def _decide(self, place: Store, names: Sequence[str], about: Mapping[str, Any]) -> bool:
        """Write the manifest, and return whether readers find this run by its id.

        RefusedError where another process gave this run up.
        """
        staging = self.staging
        known = Manifest(
            run_id=staging.run_id,
            token=staging.token,
            tables_version=arrow.VERSION,
            rows={name: self.rows(name) for name in names},
            parts=self.parts,
            about=about,
        )
        if _owner_of(place, staging):
            name = manifest.name_of(staging.run_id, self.generation)
            place.create(name, known.text().encode())
        # The manifest in the store decides: a put that a library repeated finds its own first one.
        if not self._is_newest(place):
            raise RefusedError(
                f"{staging.output}: another process gave up run {staging.run_id}, or "
                "replaced it; start the run again"
            )
        return known.is_whole or not self._has_older(place)

    def _has_older(self, place: Store) -> bool:
        """Return whether there is an older run of its id, which an incomplete run leaves alone."""
        output, run_id = self.staging.output, self.staging.run_id
        numbers = manifest.generations(place, output).get(run_id, [])
        return manifest.of_id(place, output, run_id, numbers)[0].token != self.staging.token

    def _is_newest(self, place: Store) -> bool:
        """Return whether this run has a manifest, and no later run of its id has one."""
        known = _newest(place, self.staging.output, self.staging.run_id)
        return known is not None and known.token == self.staging.token

    def _withdraw(self, place: Store) -> None:
        """Remove a manifest that came too late: another run had taken its place before."""
        output, run_id = self.staging.output, self.staging.run_id
        with contextlib.suppress(FileNotFoundError):
            known = manifest.read(place, output, run_id, self.generation)
            if known and known.token == self.staging.token:
                place.delete(manifest.name_of(run_id, self.generation))

    def _stop_heart(self) -> None:
        if self.heart:
            self.heart.stop()

    def _drop_the_rest(self, place: Store) -> None:
        """Remove files of tasks that failed, were repeated, or whose segment was read again."""
        counted = {part.path for part in self.parts}
        for name in place.files(self.staging.path):
            if name not in counted:
                place.delete(name)


def check(output: str, run_id: str) -> None:
    """Raise RefusedError if the output holds something else, or if the run is under way.

    UsageError for an invalid run id.
    """
    if not _RUN_ID.fullmatch(run_id):
        raise UsageError(f"--run-id {run_id}: expected letters, digits, dot, dash, underscore")
    place = store.store_at(output)
    with translated(output):
        _check_output(place, output)
        _refuse_other(place, Staging(output, run_id, token=""))


def check_writable(output: str) -> None:
    """Raise UnwritableError if no file can be written to the output; nothing is left there."""
    with translated(output):
        store.store_at(output).probe()


def check_exists(output: str) -> None:
    """Raise UnreadableError if the output does not exist."""
    with translated(output):
        if not store.store_at(output).exists():
            missing = os.strerror(errno.ENOENT)
            raise UnreadableError(files.path_of(output), missing, missing=True)


def begin(output: str, run_id: str, payload: Payload = Payload.FULL) -> ScanRun:
    """Start a run, or replace one; raises the errors of `check`."""
    check(output, run_id)
    mine = Owner.here()
    # An executor may have another current directory.
    url = output if "://" in output else str(Path(output).absolute())
    staging = Staging(output=url, run_id=run_id, token=mine.token, payload=payload)
    place = store.store_at(url)
    with translated(output):
        try:
            place.make_dir(_OWNERS)
            place.make_dir(manifest.FOLDER)
            _write_owner(place, staging, mine)
            _refuse_other(place, staging)
            for one in _staged_or_left(place, output, run_id):
                if one.staging.token != mine.token:
                    _give_up(place, one)
            _drop_replaced(place, output, run_id)
            known = manifest.generations(place, output).get(run_id, [])
            place.make_dir(staging.path)
        except BaseException:
            ownership.release(mine.token)
            with contextlib.suppress(Exception):
                place.delete(_owner_file(staging))
            raise

    def beat() -> None:
        with translated(output):
            # A run that another process gave up, and removed, must not look alive again.
            if _owner_of(place, staging):
                _write_owner(place, staging, mine)

    return ScanRun(staging, max(known, default=0) + 1, heart=Heart(beat))


@dataclass(frozen=True, slots=True)
class Staged:
    """A run that is not complete: under way, or left by a process that was killed."""

    staging: Staging
    owner: Owner | None
    """None if there is no owner file that can be read."""

    @property
    def lives(self) -> bool:
        """Return whether a process may still work on it."""
        return self.owner is not None and self.owner.lives()


def staged(output: str) -> list[Staged]:
    """Return the runs that are not complete, sorted by id."""
    place = store.store_at(output)
    with translated(output):
        return _staged_or_left(place, output)


def clean(output: str) -> list[Staged]:
    """Remove the files of killed runs, and return these runs; living runs are not touched."""
    place = store.store_at(output)
    left = [one for one in staged(output) if not one.lives]
    with translated(output):
        for one in left:
            _give_up(place, one)
        for run_id in manifest.generations(place, output):
            _drop_replaced(place, output, run_id)
        _drop_temporary(place, {one.staging.run_id for one in _staged(place, output)})
    return left


def remove(output: str, run_id: str) -> None:
    """Remove a complete run; RefusedError if it does not exist, or is being replaced."""
    manifest.find(output, run_id)
    place = store.store_at(output)
    with translated(output):
        _refuse_other(place, Staging(output, run_id, token=""))
        # Each older generation would come back if a newer one went first.
        for generation in manifest.generations(place, output).get(run_id, []):
            _drop(place, output, run_id, generation)


def _give_up(place: Store, one: Staged) -> None:
    """Remove the files of a dead run, unless it became complete before it died."""
    output, run_id = one.staging.output, one.staging.run_id
    if one.owner and not one.owner.is_near():
        while not _fence(place, output, one):
            pass  # another run of its id became complete, or was given up, at this moment
    known = _newest(place, output, run_id)
    if known is None or known.token != one.staging.token:
        place.delete_tree(one.staging.path)
    place.delete(_owner_file(one.staging))


def _newest(place: Store, output: str, run_id: str) -> Manifest | None:
    numbers = manifest.generations(place, output).get(run_id, [])
    return manifest.newest(place, output, run_id, numbers)


def _fence(place: Store, output: str, one: Staged) -> bool:
    """Take the place of the manifest that a process elsewhere may still want to write."""
    known = manifest.generations(place, output).get(one.staging.run_id, [])
    name = manifest.name_of(one.staging.run_id, max(known, default=0) + 1)
    return place.create(name, manifest.given_up(one.staging.token))


def _drop_replaced(place: Store, output: str, run_id: str) -> None:
    """Remove the generations of a run that a later, whole generation has replaced."""
    numbers = manifest.generations(place, output).get(run_id, [])
    replaced = False
    for generation in reversed(numbers):
        with contextlib.suppress(FileNotFoundError):  # another process is at it too
            if replaced:
                _drop(place, output, run_id, generation)
            elif known := manifest.read(place, output, run_id, generation):
                replaced = known.is_whole


def remove_incomplete(output: str) -> list[Manifest]:
    """Remove the incomplete runs next to the run of their id, and return them."""
    left = manifest.incomplete(output)
    place = store.store_at(output)
    with translated(output):
        for run in left:
            for generation in manifest.generations(place, output).get(run.run_id, []):
                with contextlib.suppress(FileNotFoundError):  # another process is at it too
                    known = manifest.read(place, output, run.run_id, generation)
                    if known and known.token == run.token:
                        _drop(place, output, run.run_id, generation)
    return left


def _drop(place: Store, output: str, run_id: str, generation: int) -> None:
    """Remove the manifest of one generation, and then its files, which no reader finds any more."""
    known = manifest.read(place, output, run_id, generation)
    place.delete(manifest.name_of(run_id, generation))
    if known:
        place.delete_tree(manifest.data_of(run_id, known.token))


def _refuse_other(place: Store, staging: Staging) -> None:
    for one in _staged(place, staging.output, staging.run_id):
        if one.staging.token != staging.token and one.lives:
            raise RefusedError(
                f"{staging.output}: {one.owner} is writing run {staging.run_id}; wait for "
                "it, or choose another --run-id"
            )


def _staged(place: Store, output: str, run_id: str | None = None) -> Iterator[Staged]:
    """Yield the runs that have an owner file, with one id or with any."""
    for one in place.entries(_OWNERS):
        name, token = _split(one.name.removesuffix(".json"))
        if one.name.startswith(".") or not token or run_id not in (None, name):
            continue
        staging = Staging(output, name, token)
        with contextlib.suppress(FileNotFoundError):  # its run has just ended
            yield Staged(staging, Owner.parse(place.read(_owner_file(staging)).decode()))


def _staged_or_left(place: Store, output: str, run_id: str | None = None) -> list[Staged]:
    """Return the runs that have an owner, and the directories of files that no run has.

    Directories are listed before owners, and these before manifests: a run that was under way at
    the first has an owner at the second, or a manifest at the third.
    """
    folders = [_split(one.name) for one in place.entries(manifest.DATA)]
    result = list(_staged(place, output, run_id))
    known = {one.staging.token for one in result}
    some = [(name, token) for name, token in folders if token and run_id in (None, name)]
    if any(token not in known for _, token in some):
        for name, numbers in manifest.generations(place, output).items():
            for generation in numbers if run_id in (None, name) else ():
                with contextlib.suppress(FileNotFoundError):
                    run = manifest.read(place, output, name, generation)
                    known |= {run.token} if run else set()
    lost = [Staging(output, name, token) for name, token in some if token not in known]
    result += [Staged(staging, owner=None) for staging in lost]
    return sorted(result, key=lambda one: one.staging.run_id)


def _drop_temporary(place: Store, living: set[str]) -> None:
    """Remove temporary files of runs that died: ``.ID.TOKEN.json.RANDOM.tmp``."""
    for folder in (manifest.FOLDER, _OWNERS):
        for one in place.entries(folder):
            if one.name.startswith(".") and one.name[1:].rsplit(".", 4)[0] not in living:
                place.delete(f"{folder}/{one.name}")


def _split(name: str) -> tuple[str, str]:
    run_id, _, token = name.rpartition(".")
    return run_id, token


def _owner_file(staging: Staging) -> str:
    return f"{_OWNERS}/{staging.run_id}.{staging.token}.json"


def _owner_of(place: Store, staging: Staging) -> Owner | None:
    with contextlib.suppress(FileNotFoundError):
        return Owner.parse(place.read(_owner_file(staging)).decode())
    return None


def _write_owner(place: Store, staging: Staging, owner: Owner) -> None:
    place.put(_owner_file(staging), owner.text().encode())


def _check_output(place: Store, output: str) -> None:
    """Raise RefusedError for an output with other files, or with tables of another version."""
    if "://" not in output and Path(output).is_file():
        raise RefusedError(f"{output} is a file; expected a directory")
    entries = {one.name for one in place.entries("")}
    if entries and not entries & {manifest.FOLDER, manifest.DATA, _OWNERS}:
        raise RefusedError(f"{output} exists and holds files other than tables of logtool")
    for run in manifest.complete(output):
        if run.tables_version != arrow.VERSION:
            raise RefusedError(
                f"{output} has tables of version {run.tables_version} (run {run.run_id}), "
                f"but this logtool writes version {arrow.VERSION}; choose another "
                "--output"
            )
