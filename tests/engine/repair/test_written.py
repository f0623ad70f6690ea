"""Files next to saved logs: after the write only the headers of the logs are read."""

import shutil
import time

import pytest
from salvage_campaign import run

from logtool.errors import UnreadableError
from logtool.loading import loader, trusting
from logtool.repair import output


@pytest.mark.parametrize("name", ["compacted.keys-0", "compacted-tx-0", "tx.mixed-0"])
def test_the_files_next_to_saved_logs_are_those_of_a_broker_that_reads_all_of_them(
    scenario, tmp_path, monkeypatch, name
):
    monkeypatch.setattr(time, "time_ns", lambda: 1_900_000_000_000_000_000)
    source = scenario("4.3.1/killed") / name

    quickly = files(run(source, tmp_path / "quickly"), tmp_path / "quickly")
    monkeypatch.setattr(trusting, "trust", loader.load)
    fully = files(run(source, tmp_path / "fully"), tmp_path / "fully")

    assert quickly == fully
    assert any(path.endswith(".snapshot") for path in quickly)


def test_a_log_that_changes_between_being_read_and_being_written_is_reported(
    scenario, tmp_path, monkeypatch
):
    log = shutil.copytree(
        scenario("4.3.1/clean") / "codec-none-0", tmp_path / "home" / "codec-none-0"
    )
    checked = output.OutputDir.place

    def place(self, name):
        (path,) = log.glob("*.log")
        data = bytearray(path.read_bytes())
        data[13296 + 70] ^= 1
        path.write_bytes(data)
        return checked(self, name)

    monkeypatch.setattr(output.OutputDir, "place", place)
    (error,) = [one for one in run(log, tmp_path / "saved") if isinstance(one, Exception)]

    assert isinstance(error, UnreadableError)
    assert "13296" in error.reason


def files(said, output):
    assert not [one for one in said if isinstance(one, Exception)]
    found = {path.relative_to(output).as_posix(): path for path in output.glob("partitions/*/*")}
    return {name: path.read_bytes() for name, path in found.items()}
