"""The manifests of an output: they say which runs it has, and which files belong to each run.

    OUTPUT/_runs/ID.GENERATION.json     a manifest: the run is complete, and these are its files
    OUTPUT/_data/ID.TOKEN/TABLE/*.parquet

A file belongs to a run because a manifest names it, never because of its place. A manifest is
written last, as a whole, by a put that fails if the name exists; so a run is complete or not there
at all, on a disk as in an object store, and nothing is ever renamed. A run that has the id of an
earlier one writes the next generation. Readers take the highest generation that read segments and
all of its inputs; without such a generation they take the lowest. A later generation that did not
read all of its inputs is kept, but readers do not find it by the id. A manifest without files says
that another process gave the run up for dead: it keeps that run from becoming complete later.

As JSON a manifest is an object with ``run_id``, ``token``, ``tables_version``, ``rows`` (by table)
and ``files``, each of which has ``table``, ``path`` (below the output), ``rows`` and ``size`` in
bytes. Tables whose names begin with an underscore are not for readers: a later run goes on from
them.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, field
from typing import Any, Final

from logtool.errors import RefusedError
from logtool.lazy_dataclass import dataclass
from logtool.spark.scan import store
from logtool.spark.scan.store import Store

FOLDER: Final = "_runs"
DATA: Final = "_data"
_NAME: Final = re.compile(r"(?P<run_id>.+)\.(?P<generation>[1-9][0-9]{0,8})\.json")
_TOKEN: Final = re.compile(r"[0-9a-f]{1,64}")
_TRIES: Final = 100
"""Times that the manifests are read again because one was replaced meanwhile."""


@dataclass(frozen=True, slots=True)
class TableFile:
    """One file of a table."""

    table: str
    path: str
    """Path below the output."""
    rows: int
    size: int
    """Bytes."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of the manifest of a run that came to its end."""

    run_id: str
    token: str
    """Random text in the name of the directory of its files."""
    tables_version: int
    rows: Mapping[str, int]
    """Number of rows of each table."""
    parts: Sequence[TableFile]
    about: Mapping[str, Any] = field(default_factory=dict)
    """Other values that the run records, such as its options."""

    @property
    def is_whole(self) -> bool:
        """Return whether it read segments, and all of its inputs: only then it replaces a run."""
        return self.about.get("complete") is not False and self.about.get("segments") != 0

    def text(self) -> str:
        """Return the text of its file."""
        known = {"run_id": self.run_id, "token": self.token, "tables_version": self.tables_version}
        files = [asdict(part) for part in self.parts]
        rows = dict(self.rows)
        return json.dumps({**known, **self.about, "rows": rows, "files": files}, indent=1)

    @classmethod
    def parse(cls, text: bytes) -> "Manifest | None":
        """Parse the text of a manifest; None for a run that was given up.

        ValueError, KeyError, TypeError or RecursionError for text that is not a manifest.
        """
        content = json.loads(text)
        if "given_up" in content:
            return None
        rows = {str(table): int(count) for table, count in content.pop("rows").items()}
        parts = tuple(
            TableFile(
                table=str(one["table"]),
                path=str(one["path"]),
                rows=int(one["rows"]),
                size=int(one["size"]),
            )
            for one in content.pop("files")
        )
        known = (
            str(content.pop("run_id")),
            str(content.pop("token")),
            int(content.pop("tables_version")),
        )
        # These name the files to read and remove: no manifest may lead out of the output.
        if not _TOKEN.fullmatch(known[1]) or any(".." in part.path.split("/") for part in parts):
            raise ValueError("a path leads out of the output")
        if any(not part.path.startswith(f"{DATA}/") for part in parts):
            raise ValueError("a file is not in the data directory")
        return cls(*known, rows=rows, parts=parts, about=content)


def name_of(run_id: str, generation: int) -> str:
    """Return the name of the file of a manifest."""
    return f"{FOLDER}/{run_id}.{generation}.json"


def data_of(run_id: str, token: str) -> str:
    """Return the directory of the files of a run."""
    return f"{DATA}/{run_id}.{token}"


def given_up(token: str) -> bytes:
    """Return the text that replaces the manifest of a run that was given up for dead."""
    return json.dumps({"given_up": token}).encode()


def generations(place: Store, output: str) -> dict[str, list[int]]:
    """Return the generations of each run id, rising; RefusedError for a file of another name."""
    found: dict[str, list[int]] = {}
    for one in place.entries(FOLDER):
        if one.name.startswith("."):
            continue  # on its way
        match = _NAME.fullmatch(one.name)
        if not match:
            raise RefusedError(f"{output}/{FOLDER}/{one.name} is not a manifest of a run")
        found.setdefault(match["run_id"], []).append(int(match["generation"]))
    return {run_id: sorted(numbers) for run_id, numbers in sorted(found.items())}


def read(place: Store, output: str, run_id: str, generation: int) -> Manifest | None:
    """Return a manifest, None for a run that was given up; FileNotFoundError without one.

    RefusedError for a file that is not a manifest.
    """
    name = name_of(run_id, generation)
    text = place.read(name)
    try:
        known = Manifest.parse(text)
        if known and known.run_id != run_id:
            raise ValueError("the manifest belongs to another run")
        return known
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RefusedError(f"{output}/{name} is not a manifest of a run") from error


def newest(place: Store, output: str, run_id: str, numbers: Sequence[int]) -> Manifest | None:
    """Return the manifest of the highest generation that was not given up; None without one."""
    return next(_newest_first(place, output, run_id, numbers), None)


def complete(output: str) -> list[Manifest]:
    """Return the run that readers find by each id, sorted by id.

    The run of an id is incomplete if no run of that id is complete. RefusedError for a file that is
    not a manifest, UnwritableError where the output cannot be read.
    """
    return [known[0] for known in _runs(output)]


def incomplete(output: str) -> list[Manifest]:
    """Return the runs that stay next to the run of their id, because they are incomplete.

    They are sorted by id, the newest first. The errors are those of `complete`.
    """
    return [run for known in _runs(output) for run in known[1:] if not run.is_whole]


def of_id(place: Store, output: str, run_id: str, numbers: Sequence[int]) -> list[Manifest]:
    """Return the runs of an id: first the one that readers find, then the others, newest first."""
    known = list(_newest_first(place, output, run_id, numbers))
    found = [run for run in known if run.is_whole][:1] or known[-1:]
    return [*found, *(run for run in known if run not in found)]


def _newest_first(
    place: Store, output: str, run_id: str, numbers: Sequence[int]
) -> Iterator[Manifest]:
    """Yield the manifests of the generations that were not given up, from the highest on."""
    for generation in reversed(numbers):
        if known := read(place, output, run_id, generation):
            yield known


def _runs(output: str) -> list[list[Manifest]]:
    """Return the runs of each id that has one, as `of_id` does."""
    place = store.store_at(output)
    with store.translated(output):
        for _ in range(_TRIES):
            try:
                some = generations(place, output).items()
                runs = [of_id(place, output, run_id, numbers) for run_id, numbers in some]
            except FileNotFoundError:
                continue  # replaced since they were listed
            return [known for known in runs if known]
    raise RefusedError(
        f"{output}: other processes replace its runs faster than logtool can read them"
    )


def find(output: str, run_id: str) -> Manifest:
    """Return the run that readers find by an id, as `complete` does; RefusedError without one."""
    known = {run.run_id: run for run in complete(output)}
    if run_id not in known:
        some = ", ".join(list(known)[-5:]) or "none"
        raise RefusedError(f"{output} has no complete run {run_id}; the last complete runs: {some}")
    return known[run_id]


def files(output: str, table: str, run_id: str | None = None) -> list[str]:
    """Return paths or URLs of the files of a table, of one complete run or of all of them.

    `spark.read.parquet`, `pandas.read_parquet` and DuckDB's `read_parquet` take these names. The
    files do not change until the run is replaced or removed. RefusedError without such a run.
    """
    runs = complete(output) if run_id is None else [find(output, run_id)]
    root = output.rstrip("/")
    return [
        f"{root}/{part.path}"
        for run in runs
        if table in run.rows
        for part in run.parts
        if part.table == table
    ]
