"""The table of what each release supports agrees with the classes and schemas in its jars."""

from __future__ import annotations

import pytest
from broker import release_table
from broker.conftest import runnable
from broker.install import KAFKA_NEWEST, LOADING_VERSIONS

from logtool.metadata import releases

pytestmark = pytest.mark.broker


@pytest.mark.parametrize("version", [*LOADING_VERSIONS, KAFKA_NEWEST])
def test_the_table_is_that_of_the_jars(version: str) -> None:
    lines = release_table.TABLE.read_text("ascii").splitlines()
    wanted = release_table.section(runnable(version))
    first = lines.index(wanted[0])
    assert lines[first : first + len(wanted)] == wanted
    named = {line for line in release_table.facts(version) if line.startswith("name ")}
    assert named <= set(lines)


def test_the_newest_release_is_known() -> None:
    newest = max(releases.supported().values(), key=lambda one: one.release)
    assert newest.jars == KAFKA_NEWEST
