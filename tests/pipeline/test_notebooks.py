"""The notebook about three brokers, run cell by cell against a bucket."""

import json
from pathlib import Path
from typing import Any

import fsspec
import pytest
from pipeline.test_s3 import outside  # noqa: F401  (a fixture)
from verification import log_dirs

from logtool.copies.pair import Status
from logtool.copies.verdict import CopiesVerdict
from logtool.diff import Diff
from logtool.log.inputs import NodeDir

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
NOTEBOOK = Path(__file__).parent / "notebooks" / "who-diverges.ipynb"


def cells() -> list[str]:
    """Return the code of a notebook, cell by cell."""
    found = json.loads(NOTEBOOK.read_text("utf-8"))
    assert found["nbformat"] == 4
    return ["".join(cell["source"]) for cell in found["cells"] if cell["cell_type"] == "code"]


def test_one_scan_of_three_brokers_in_a_bucket_shows_the_diverged_one(
    outside, scenario, monkeypatch  # noqa: F811
):  # fmt: skip
    homes = log_dirs(scenario("4.3.1/replicas"))
    s3 = fsspec.filesystem("s3")
    s3.mkdir("fleet")
    for home in homes:
        s3.put(f"{home}/", f"fleet/night/{home.name}/", recursive=True)
    urls = [f"s3://fleet/night/{home.name}" for home in homes]
    for name, value in {"LOG_DIRS": " ".join(urls), "TABLES": "s3://fleet/tables",
                        "NIGHT": "2026-11-22"}.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    names: dict[str, Any] = {}
    for number, code in enumerate(cells(), 1):
        exec(compile(code, f"cell {number}", "exec"), names)
    verdicts = [one for one in Diff([NodeDir(home) for home in homes])
                if isinstance(one, CopiesVerdict) and one.status is Status.DIVERGED]  # fmt: skip
    listed = names["diverging"]
    assert [(topic, partition) for topic, partition, _ in listed] == sorted(
        (one.copies[0].topic, one.copies[0].partition) for one in verdicts
    )
    assert listed
    assert all(len(nodes) > 1 for _, _, nodes in listed)
