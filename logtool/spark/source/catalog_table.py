"""The options of a table in Spark's catalog: ``CREATE TABLE t USING `kafka-log` OPTIONS (...)``.

Spark hands the properties of a new table to the data source, and each option twice: as NAME and as
``option.NAME``. A query of the table gets none of them (Spark 4.0 to 4.3), only the columns. The
data source therefore keeps the options as metadata of the first column, which Spark stores.
"""

import json
from collections.abc import Mapping
from typing import Final

from logtool.errors import UsageError

FORMAT: Final = "kafka-log"
_OPTION: Final = "option."
_PATHS: Final = ("path", "paths")
_KEPT_IN: Final = "logtool.options"
"""Key in the metadata of the first column."""


def options_of(given: Mapping[str, str], known: Mapping[str, str]) -> Mapping[str, str]:
    """Return the options in the properties of a new table; `given` itself for anything else.

    `known` has the names of options by their names in lower case. UsageError for an option that was
    given as a property of the table.
    """
    if not _of_new_table(given):
        return given
    found = {
        name.removeprefix(_OPTION): value
        for name, value in given.items()
        if name.startswith(_OPTION)
    }
    if "path" in given and not any(name in found for name in _PATHS):
        found["path"] = _local(given["path"])
    for name in given:
        if name in known and name not in found:
            raise UsageError(
                f"{known[name]} is a property of the table; write it in OPTIONS, where a "
                "misspelled name is refused"
            )
    return found


def to_keep(given: Mapping[str, str]) -> Mapping[str, str]:
    """Return metadata of a column with the options of a new table; empty for anything else."""
    return {_KEPT_IN: json.dumps(options_of(given, {}))} if _of_new_table(given) else {}


def restore(given: Mapping[str, str], metadata: Mapping[str, str]) -> Mapping[str, str]:
    """Return the options of a query with those of its table, from the metadata of its columns."""
    if any(name in given for name in _PATHS) or _KEPT_IN not in metadata:
        return given
    return {**json.loads(metadata[_KEPT_IN]), **given}


def _of_new_table(given: Mapping[str, str]) -> bool:
    """Return whether Spark gave all of these: a query has options alone."""
    return given.get("provider", "").lower() == FORMAT and "owner" in given


def _local(location: str) -> str:
    """Return the path of a location, which Spark writes as ``file:/path``."""
    return location.removeprefix("file:") if location.startswith("file:/") else location
