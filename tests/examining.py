"""Examinations of `doctor` in tests, and the answers among their items."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from logtool.doctor import diagnosis
from logtool.doctor.examination import Examination
from logtool.node.options import StartOptions


def examined(*paths: Path, **more: Any) -> tuple[Examination, list[Any]]:
    """Return an examination that came to its end, and its items."""
    run = Examination(paths, StartOptions(), **more)
    return run, list(diagnosis.diagnose([run]))


def of(kind: Any, items: Iterable[Any]) -> list[Any]:
    """Return the items of a class."""
    return [item for item in items if isinstance(item, kind)]


def the(kind: Any, items: Iterable[Any]) -> Any:
    """Return the only item of a class."""
    (found,) = of(kind, items)
    return found
