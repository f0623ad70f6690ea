"""``--broker-config`` and Kafka's tool find the same log dirs."""

from pathlib import Path

import pytest
from broker import kafka
from broker.install import VERSIONS

from logtool.commands.program.broker_config import load
from logtool.errors import UsageError

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

BASE = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:9093
listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
"""
CASES = {
    "log.dirs before log.dir": "log.dir=a\nlog.dirs=b , c\n",
    "the last of two": "log.dirs=a\nlog.dirs=b\n",
    "a metadata log apart": "log.dirs=a\nmetadata.log.dir=b\n",
    "each once": "log.dirs=a,a\n",
    "over two lines, in log.dir": "log.dir = a,\\\n   b c\n",
    "an empty list": "log.dirs=\nlog.dir=a\n",
    "no number": "log.dirs=a\nlog.index.interval.bytes=abc\n",
    "a number with spaces": "log.dirs=a\nlog.index.interval.bytes=12  \n",
}


def info(version: str, file: Path) -> str:
    """Return the output of Kafka's tool, which lists unformatted log dirs before it fails."""
    try:
        return kafka.run_tool(version, "kafka.tools.StorageTool", "info", "-c", str(file))
    except kafka.HarnessError as error:
        return str(error)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", CASES)
def test_the_log_dirs_are_those_that_kafka_finds(tmp_path, monkeypatch, version, name):
    monkeypatch.chdir(tmp_path)
    for folder in ("a", "b", "b c", "c"):
        (tmp_path / folder).mkdir()
    file = tmp_path / "server.properties"
    file.write_text(BASE + CASES[name])
    shown = info(version, file)
    lines = shown.splitlines()
    try:
        found = load(str(file)).log_dirs()
    except UsageError:
        assert "Found log director" not in shown
        return
    (begin,) = [at for at, line in enumerate(lines) if line.startswith("Found log director")]
    listed = [line.strip() for line in lines[begin + 1 : begin + 1 + len(found)]]
    assert sorted(listed) == sorted(found)
    assert not lines[begin + 1 + len(found)].strip()


def test_where_nothing_is_set_the_log_dir_is_kafkas_default(tmp_path):
    file = tmp_path / "server.properties"
    file.write_text(BASE)
    (default,) = load(str(file)).log_dirs()
    assert Path(default).is_absolute()
    assert default in info(VERSIONS[0], file)
