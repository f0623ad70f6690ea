"""``--broker-config`` and Kafka's tool find the same log dirs."""

from pathlib import Path

import pytest
from broker import kafka
from broker.install import VERSIONS

from logtool.checks import own_file
from logtool.commands.program.broker_config import load
from logtool.errors import UsageError
from logtool.log import opening
from logtool.node.identity import identify
from logtool.node.node import Node

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


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("roles", "voter"), [("broker,controller", 1), ("controller", 2), ("broker", 1), ("broker", 2)]
)
def test_a_controller_has_a_vote_and_a_broker_has_none(tmp_path, version, roles, voter):
    file = tmp_path / "server.properties"
    listener = "CONTROLLER" if roles == "controller" else "PLAINTEXT"
    lines = {
        "process.roles": roles,
        "node.id": "1",
        "controller.quorum.voters": f"{voter}@localhost:9093",
        "listeners": f"{listener}://localhost:9093",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(tmp_path),
    }
    if roles == "broker,controller":
        lines["listeners"] = "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093"
    file.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    node = Node([identify(opening.open_log_dir(tmp_path))], None, lines)
    found = [finding.code for finding, _, _ in own_file.check(node)]
    assert ("Found log director" not in info(version, file)) == ("broker-config/own-vote" in found)
