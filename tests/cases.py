"""Case files in tests: made of log dirs, and compared with them by the answers of commands."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from logtool.case.frames import FRAME_SIZE, FrameReader

COMMANDS = (
    ("verify", "--level", "records"), ("plan",), ("gaps",), ("txns",), ("watermark",), ("stat",),
)  # fmt: skip
MEASURED = ("elapsed_s", "age_ms")
"""Keys of what differs from run to run."""


def content(path: Path) -> bytes:
    """Return everything in a case file, decompressed."""
    found = bytearray()
    with path.open("rb") as file:
        frames = FrameReader(file)
        while len(part := frames.read(FRAME_SIZE)):
            found += part
    return bytes(found)


def answers(
    run: Callable[..., Any], words: Sequence[str], given: Sequence[Path], tops: Sequence[Path]
) -> tuple[int, list[Any]]:
    """Return the status and the objects of a command, with `tops` taken out of the paths."""
    found = run(*words, "-f", "ndjson", *given)
    text = found.stdout
    for number, top in enumerate(tops):
        text = text.replace(str(top), f"@{number}")
    objects = [_steady(json.loads(line)) for line in text.splitlines()]
    return found.status, [one for one in objects if one["type"] != "duration"]


def _steady(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _steady(one) for key, one in value.items() if key not in MEASURED}
    return [_steady(one) for one in value] if isinstance(value, list) else value
