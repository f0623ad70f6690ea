"""Output of Kafka's own dump tool for the files of the fixtures."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conftest import DATA

from logtool.formats.messages import internal_topics

MODES = {"batches": [], "records": ["--records", "--decode", "none"], "entries": []}
"""The options of `logtool dump` for each way in which the tool was run."""
_STATUS = re.compile(r'"transactionStatus":(\d)')
MANIFEST = json.loads((DATA / "manifest.json").read_text())


def of_type(kind: str, objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the objects of one type among those that `logtool dump` printed."""
    return [one for one in objects if one["type"] == kind]


def failures(scenario: str, mode: str) -> list[str]:
    """Return the files on which Kafka's tool gave up with an exception."""
    (entry,) = (e for e in MANIFEST["scenarios"] if e["archive"] == f"{scenario}.tar.xz")
    found: list[str] = entry.get("dump_failures", {}).get(mode, [])
    return found


def expected(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each file that was dumped, and what was printed."""
    for path in sorted(folder.rglob("*.txt")):
        if not path.name.endswith(".stderr.txt"):
            name = path.relative_to(folder).as_posix().removesuffix(".txt")
            yield name, path.read_bytes().decode(errors="replace")


def as_newest(text: str) -> str:
    """Return lines of Kafka 4.0 to 4.3 as 4.4 prints them, with names for states of transactions.

    ``test_dump_agrees.py`` compares the names with the tool of 4.4.
    """
    states = internal_topics.TRANSACTION_STATES
    return _STATUS.sub(lambda found: f'"transactionStatus":"{states[int(found[1])]}"', text)
