"""`plan` and `recover` agree with brokers on loads that random damage does not reach."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import loadable
import pytest
from broker import differences, recovery
from broker.damaged import SETTINGS, Case, knows_stray
from broker.install import KAFKA_4

pytestmark = pytest.mark.broker

_Write = Callable[[Path], None]


def _cases(version: str, home: Path) -> list[Case]:
    """Return the cases: magic bytes that were changed, overflows, a swap, a directory to delete."""
    made: list[Case] = []
    in_use = "stray" if knows_stray(version) else "future"

    def add(write: _Write, *, clean: bool, end: int, purpose: str = in_use) -> None:
        name = f"case{len(made):04}"
        write(home / name)
        point = end if clean else 0
        words = (name, home / name, "built", (repr(write),), point, None, clean)
        made.append(Case(*words, SETTINGS[0], purpose))

    for where, entry in ((0, None), (0, 0), (1, None), (1, 0), (2, 0), (2, 1), (3, 2), (4, 1)):
        for magic, codec in ((0, 0), (0, 1), (0, 6), (1, 1), (1, 4)):
            add(
                partial(loadable.write_flipped, where=where, magic=magic, codec=codec, entry=entry),
                clean=True,
                end=10,
            )
    for tail in (b"", b"torn", loadable.batch(loadable.FAR + 2)[:-3], bytes(40)):
        add(partial(loadable.write_far, tail=tail), clean=False, end=0)
    add(loadable.write_swap, clean=False, end=4)
    add(loadable.write_swap, clean=True, end=4)
    for count in (-1, -7):
        for at in (2, 3):
            write = partial(loadable.write_bad_count, count=count, snapshot=at)
            add(write, clean=True, end=3)
            add(write, clean=False, end=3)
    add(Path.mkdir, clean=False, end=0, purpose="delete")
    return made


def test_plan_and_recover_agree_with_the_broker_on_loads_that_are_built(
    loading_version: str, tmp_path: Path
) -> None:
    made = _cases(loading_version, tmp_path / "cases")
    found = recovery.outcomes(loading_version, made, tmp_path)
    stopped = sum(one.kind == recovery.REFUSES for one in found.values())
    assert stopped > (20 if loading_version == KAFKA_4 else 1)
    assert differences.forecast(loading_version, made, found) == []
    assert differences.recovery(loading_version, made, found, tmp_path / "recovered") == []
