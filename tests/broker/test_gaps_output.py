"""Kafka's dump tool reads a log filled with ghosts."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from broker.dump import dump

from logtool.gaps import fill, ghosts
from logtool.gaps.run import GapOptions, Gaps, Result

pytestmark = pytest.mark.broker


@pytest.mark.parametrize("name", ["compacted.keys-0", "compacted-tx-0"])
def test_kafka_reads_a_filled_log_to_its_end(
    kafka_version, scenario, tmp_path: Path, name: str
) -> None:
    (result,) = Gaps([scenario("4.3.1/clean") / name], GapOptions())
    assert isinstance(result, Result)
    filling = ghosts.of(result.ledger, result.subject.facts)
    assert len(filling)
    log = f"{0:020d}.log"
    fill.write(result, filling, tmp_path / log)
    assert dump(kafka_version, tmp_path, [log]).stderr == {}
    said = dump(kafka_version, tmp_path, [log], "--deep-iteration")
    assert said.failed == []
    lines = said.stdout[log].decode().splitlines()
    found = (re.match(r"baseOffset: (\d+) lastOffset: (\d+) count: ", line) for line in lines)
    spans = [(int(one[1]), int(one[2])) for one in found if one]
    assert spans[0][0] == 0
    assert all(one[1] + 1 == other[0] for one, other in pairwise(spans))
    assert spans[-1][1] == result.ledger.last_offset
    records = sum(line.startswith("| offset: ") for line in lines)
    assert records == result.ledger.visible + result.ledger.control
