"""Controllers start after ``quorum --apply``, with two of three lost or with new names."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from broker.conftest import runnable
from broker.quorums import DIRECTORY_IDS, NODES, Quorum
from deadlines import deadline_in
from ports import free_port

from logtool import cli
from logtool.log.inputs import NodeDir
from logtool.metadata import image
from logtool.metadata.image import Until
from logtool.quorum.copy import MetadataCopy, read
from logtool.quorum.verdict import judge
from logtool.running.run import Run

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

VERSION = "4.3.1"
RECORDS = 50


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bool], Quorum]:
    """Return a function that makes the log dirs of three killed controllers once."""
    runnable(VERSION)
    return cache(lambda dynamic: _make(tmp_path_factory.mktemp("quorum") / "home", dynamic=dynamic))


def _make(root: Path, *, dynamic: bool) -> Quorum:
    # Imported here: without confluent-kafka these tests are skipped.
    from broker import workloads

    quorum = Quorum(VERSION, root, dynamic=dynamic)
    quorum.format()
    try:
        quorum.launch(*NODES)
        quorum.nodes[1].wait_until_ready()
        _create(quorum, "orders")
        content = workloads.messages("orders", RECORDS, workloads.EPOCH_MS)
        workloads.Writer(quorum.nodes[1].bootstrap, acks=1).batches("orders", content, (5, 2))
        quorum.kill(3)
        _create(quorum, "late")
    finally:
        quorum.kill()
    return quorum


def _admin(of: Quorum) -> Any:
    from confluent_kafka.admin import AdminClient

    return AdminClient({"log_level": 0, "bootstrap.servers": of.nodes[1].bootstrap})


def _create(of: Quorum, topic: str) -> None:
    """Create a topic and wait until a majority has agreed on it."""
    from confluent_kafka.admin import NewTopic

    admin = _admin(of)  # it must live until its answer arrives
    (created,) = admin.create_topics([NewTopic(topic, 1, 1)]).values()
    created.result(60)


def _copied(killed: Quorum, root: Path, *nodes: int) -> Quorum:
    """Return copies of log dirs with new addresses."""
    addresses = {node: f"127.0.0.1:{free_port()}" for node in nodes}
    copied = Quorum(killed.version, root, dynamic=killed.dynamic, addresses=addresses)
    for node in nodes:
        shutil.copytree(killed.log_dir(node), copied.log_dir(node))
    return copied


@contextlib.contextmanager
def _started(of: Quorum, *nodes: int) -> Iterator[None]:
    """Start nodes whose first names do not resolve."""
    try:
        of.launch(*nodes, resolving=False)
        of.nodes[1].wait_until_ready()
        yield
    finally:
        of.kill()


def _logtool(*words: object) -> str:
    said = StringIO()
    with contextlib.redirect_stdout(said):
        assert cli.run([str(word) for word in words]) == 0
    return said.getvalue()


def _until(is_so: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until a controller has done something."""
    end = deadline_in(seconds)
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.2)


def _copies(of: Quorum, *nodes: int) -> list[MetadataCopy]:
    found = []
    for item in read([NodeDir(of.log_dir(node)) for node in nodes], Run()):
        assert isinstance(item, MetadataCopy), item
        found.append(item)
    return found


def _is_whole(of: Quorum) -> bool:
    """Return whether all topics have their records and a new topic can be created."""
    from broker import protocol

    _create(of, "after")
    topics = set(_admin(of).list_topics(timeout=30).topics)
    end = protocol.offsets(of.nodes[1].bootstrap, "orders").log_end
    return {"orders", "late", "after"} <= topics and end == RECORDS


@pytest.mark.parametrize("dynamic", [True, False])
def test_the_copies_of_real_controllers_are_understood(killed, dynamic: bool) -> None:
    quorum = killed(dynamic)
    copies = _copies(quorum, *NODES)
    assert [copy.role for copy in copies] == ["voter"] * 3
    assert not any(copy.problems for copy in copies)
    found = judge(copies)
    assert found.voters is not None
    expected = [(node, DIRECTORY_IDS[node] if dynamic else None) for node in NODES]
    assert [voter.key for voter in found.voters] == expected
    if dynamic:
        ends = [str(voter.endpoints[0]) for voter in found.voters]
        assert ends == list(quorum.addresses.values())
    # The last topic was created without the third controller, by a majority of two.
    assert found.majority_offset is not None
    agreed = image.read(found.keep.path, Until(offset=found.majority_offset - 1))
    assert "late" in agreed.topics
    assert "late" not in image.read(copies[2].path).topics


@pytest.mark.parametrize("dynamic", [True, False])
def test_one_controller_of_three_goes_on_alone(killed, dynamic: bool, tmp_path: Path) -> None:
    left = _copied(killed(dynamic), tmp_path / "left", 1)
    _logtool("quorum", "--apply", "--voters", left.voters([1]), left.log_dir(1))
    with _started(left, 1):
        assert _is_whole(left)
    (copy,) = _copies(left, 1)
    assert copy.voted[0] is not None
    assert [voter.node for voter in copy.voted[0]] == [1]
    assert not judge([copy]).is_grave


@pytest.mark.parametrize("dynamic", [True, False])
def test_a_controller_that_is_behind_starts_from_the_copy_of_a_broker(
    killed, dynamic: bool, tmp_path: Path
) -> None:
    left = _copied(killed(dynamic), tmp_path / "left", 3)
    broker = left.root / "node-9"
    shutil.copytree(killed(dynamic).log_dir(1), broker)
    meta = broker / "meta.properties"
    own = meta.read_text().replace("node.id=1\n", "node.id=9\n")
    meta.write_text(own.replace(DIRECTORY_IDS[1], "bG9ndG9vbC1kaXJzLS0w9Q"))
    copies = [one for one in read([NodeDir(left.log_dir(3)), NodeDir(broker)], Run())
              if isinstance(one, MetadataCopy)]  # fmt: skip
    found = judge(copies)
    assert found.heir is not None
    assert (found.keep.node, found.heir.node) == (9, 3)
    assert found.copying is not None
    subprocess.run(found.copying, shell=True, check=True, cwd=tmp_path)
    gone = ("--accept-loss", "orders-0", "--accept-loss", "late-0")  # their broker was a voter
    _logtool("quorum", "--apply", *gone, "--voters", left.voters([3]), left.log_dir(3), broker)
    state = left.log_dir(3) / image.DIRECTORY / "quorum-state"
    try:
        left.launch(3)
        _until(lambda: json.loads(state.read_text())["leaderId"] == 3)
        # It writes the file before the first batch of its epoch.
        _until(lambda: _copies(left, 3)[0].last_epoch > found.keep.last_epoch)
    finally:
        left.kill()
    assert "late" in image.read(left.log_dir(3)).topics


def test_controllers_whose_names_no_longer_resolve_find_each_other_again(
    killed, tmp_path: Path
) -> None:
    moved = _copied(killed(True), tmp_path / "moved", *NODES)
    dirs = [moved.log_dir(node) for node in NODES]
    _logtool("quorum", "--apply", "--voters", moved.voters(), *dirs)
    with _started(moved, 1, 2):
        assert _is_whole(moved)
    copies = _copies(moved, 1, 2)
    for copy in copies:
        assert copy.voted[0] is not None
        ends = [str(voter.endpoints[0]) for voter in copy.voted[0]]
        assert ends == list(moved.addresses.values())
