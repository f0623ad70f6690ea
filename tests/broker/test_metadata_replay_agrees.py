"""logtool and Kafka agree on metadata records that do not apply and on the final image.

``ReplayMetadata.java`` passes the same records to the classes with which a broker reads its log.
"""

from __future__ import annotations

import base64
import random
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import metadata_records as made
import pytest
from broker.conftest import runnable
from broker.install import KAFKA_4, java_command

from logtool.formats.messages import codec, schema
from logtool.metadata import image
from logtool.metadata.image import DIRECTORY, MetadataImage

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

PROGRAM = Path(__file__).with_name("ReplayMetadata.java")
IDS = tuple(base64.urlsafe_b64encode(bytes([n] * 16)).decode()[:22] for n in range(1, 4))
A, B, C = IDS
MIGRATING = "A" * 22
"""The directory id of a replica in an unknown log dir."""
RESOURCES = (0, 2, 4, 8, 16, 32)
"""``ConfigResource.Type``; any other is 0, unknown."""
SEEDS = range(40)
"""Seeds of the random logs."""


def record(name: str, version: int = 0, /, **fields: Any) -> bytes:
    """Return a record of any type; missing fields have their defaults."""
    message = schema.table("cluster_metadata").named(name)
    return made.framed(message.type, version)[:-1] + codec.encode(message, version, fields)


def topic(name: str = "t", topic_id: str = A) -> bytes:
    return record("TopicRecord", name=name, topicId=topic_id)


def partition(topic_id: str = A, number: int = 0, version: int = 2, **fields: Any) -> bytes:
    common: dict[str, Any] = {
        "replicas": [1, 2], "isr": [1, 2], "removingReplicas": [], "addingReplicas": [],
        "leader": 1, "leaderEpoch": 0, "partitionEpoch": 0, "directories": [B, C],
    }  # fmt: skip
    kept = common if version else {k: v for k, v in common.items() if k != "directories"}
    return record(
        "PartitionRecord", version, topicId=topic_id, partitionId=number, **{**kept, **fields}
    )


def change(topic_id: str = A, number: int = 0, version: int = 2, **fields: Any) -> bytes:
    return record("PartitionChangeRecord", version, topicId=topic_id, partitionId=number, **fields)


def remove(topic_id: str = A) -> bytes:
    return record("RemoveTopicRecord", topicId=topic_id)


def endpoint(name: str = "PLAINTEXT", protocol: int = 0) -> dict[str, Any]:
    return {"name": name, "host": "localhost", "port": 9092, "securityProtocol": protocol}


def register(node: int = 1, epoch: int = 5, version: int = 4, **fields: Any) -> bytes:
    common = {"incarnationId": A, "endPoints": [endpoint()], "features": [], "rack": None}
    return record(
        "RegisterBrokerRecord", version, brokerId=node, brokerEpoch=epoch, **{**common, **fields}
    )


def unregister(node: int = 1, epoch: int = 5) -> bytes:
    return record("UnregisterBrokerRecord", brokerId=node, brokerEpoch=epoch)


def fence(node: int = 1, epoch: int = 5) -> bytes:
    return record("FenceBrokerRecord", id=node, epoch=epoch)


def unfence(node: int = 1, epoch: int = 5) -> bytes:
    return record("UnfenceBrokerRecord", id=node, epoch=epoch)


def changed(node: int = 1, epoch: int = 5, version: int = 3, **fields: Any) -> bytes:
    return record(
        "BrokerRegistrationChangeRecord", version, brokerId=node, brokerEpoch=epoch, **fields
    )


def controller(node: int = 1, **fields: Any) -> bytes:
    common = {"incarnationId": A, "endPoints": [endpoint("CONTROLLER")], "features": []}
    return record("RegisterControllerRecord", controllerId=node, **{**common, **fields})


def feature(name: str, level: int) -> bytes:
    return record("FeatureLevelRecord", name=name, featureLevel=level)


def config(kind: int, resource: str, name: str, value: str | None) -> bytes:
    return record("ConfigRecord", resourceType=kind, resourceName=resource, name=name, value=value)


def quota(*entity: tuple[str, str | None], key: str = "rate", remove: bool = False) -> bytes:
    parts = [{"entityType": kind, "entityName": name} for kind, name in entity]
    return record("ClientQuotaRecord", entity=parts, key=key, value=1.5, remove=remove)


def acl(acl_id: str = A, **fields: Any) -> bytes:
    common = {
        "resourceType": 2, "resourceName": "t", "patternType": 3, "principal": "User:a",
        "host": "*", "operation": 3, "permissionType": 3,
    }  # fmt: skip
    return record("AccessControlEntryRecord", id=acl_id, **{**common, **fields})


def remove_acl(acl_id: str = A) -> bytes:
    return record("RemoveAccessControlEntryRecord", id=acl_id)


def scram(name: str = "u", mechanism: int = 1) -> bytes:
    return record(
        "UserScramCredentialRecord", name=name, mechanism=mechanism, salt=b"s", storedKey=b"k",
        serverKey=b"v", iterations=4096,
    )  # fmt: skip


def remove_scram(name: str = "u", mechanism: int = 1) -> bytes:
    return record("RemoveUserScramCredentialRecord", name=name, mechanism=mechanism)


def token(token_id: str = "k", **fields: Any) -> bytes:
    common = {"owner": "User:o", "requester": "User:r", "renewers": ["User:n"]}
    return record("DelegationTokenRecord", tokenId=token_id, **{**common, **fields})


def remove_token(token_id: str = "k") -> bytes:
    return record("RemoveDelegationTokenRecord", tokenId=token_id)


def producer_ids(first: int = 1000, node: int = 1) -> bytes:
    return record("ProducerIdsRecord", brokerId=node, nextProducerId=first)


def clear_elr(name: str = "") -> bytes:
    return record("ClearElrRecord", topicName=name)


def zk(state: int) -> bytes:
    return record("ZkMigrationStateRecord", zkMigrationState=state)


NO_OP = record("NoOpRecord")
BEGIN, END, ABORT = made.BEGIN, made.END, made.ABORT
T = (topic(), partition())
V = feature("metadata.version", 30)

SEQUENCES: dict[str, Sequence[bytes]] = {
    "nothing": [NO_OP],
    "topic": T,
    "partition of no topic": [partition()],
    "partition of a removed topic": [*T, remove(), partition()],
    "partition twice": [*T, partition(leader=2)],
    "partition of version 0": [topic(), partition(version=0)],
    "partition of version 0 moves": [topic(), partition(version=0), change(replicas=[2, 3])],
    "partition of version 0 grows":
        [topic(), partition(version=0), change(version=0, replicas=[1, 2, 3]), change(isr=[1])],
    "partition of version 0 gets directories":
        [topic(), partition(version=0), change(directories=[A, B]), change(replicas=[1])],
    "partition with a directory too few": [topic(), partition(directories=[B]), change()],
    "partition in an invalid state": [topic(), partition(leaderRecoveryState=7), change()],
    "partition with ELR": [topic(), partition(eligibleLeaderReplicas=[2], lastKnownElr=[1])],
    "change of no topic": [change()],
    "change of no partition": [*T, change(number=7)],
    "change of a removed topic": [*T, remove(), change()],
    "change of leader": [*T, change(leader=2), change(leader=-1, isr=[]), change(leader=-1)],
    "change of replicas": [*T, change(replicas=[2, 3]), change(replicas=[3, 2, 1])],
    "change of replicas with directories": [*T, change(replicas=[2, 3], directories=[A, B])],
    "change of replicas with too few": [*T, change(replicas=[2, 3], directories=[A]), change()],
    "change of directories only": [*T, change(directories=[A, B]), change(directories=[A])],
    "change to no directories": [*T, change(directories=[]), change(replicas=[], directories=[])],
    "change of the state": [*T, change(leaderRecoveryState=1), change(leaderRecoveryState=0)],
    "change to an invalid state": [*T, change(leaderRecoveryState=9), change(leader=2)],
    "change of what moves": [*T, change(addingReplicas=[3], removingReplicas=[1])],
    "change of ELR": [*T, change(eligibleLeaderReplicas=[2], lastKnownElr=[2])],
    "ELR cleared": [V, *T, change(eligibleLeaderReplicas=[2]), clear_elr("t"), clear_elr("t")],
    "all ELR cleared": [*T, change(lastKnownElr=[2]), topic("u", B), partition(B), clear_elr()],
    "ELR cleared of no topic": [*T, clear_elr("gone")],
    "ELR cleared of a removed topic": [*T, remove(), clear_elr("t")],
    "removed": [*T, remove()],
    "removed twice": [*T, remove(), remove()],
    "removed and made again": [*T, remove(), topic(topic_id=B), partition(B), change(A)],
    "topic twice": [*T, topic(), change()],
    "two topics of one name": [*T, topic(topic_id=B), remove(A), clear_elr("t")],
    "two topics of one name, the newer removed": [*T, topic(topic_id=B), remove(B), change(A)],
    "settings of a removed topic":
        [*T, config(2, "t", "retention.ms", "1"), remove(), topic(topic_id=B)],
    "settings":
        [config(2, "t", "a", "1"), config(2, "t", "a", "2"), config(4, "1", "b", "x"),
         config(4, "", "c", "y"), config(16, "m", "d", "z"), config(32, "g", "e", "w"),
         config(4, "1", "b", None), config(4, "1", "b", None), config(8, "1", "x", "TRACE")],
    "settings of an invalid resource": [config(99, "t", "a", "1"), config(0, "", "a", "1")],
    "broker": [register(), unfence(), changed(fenced=1), unregister()],
    "broker twice": [register(), register(epoch=6), fence(epoch=5), unfence(epoch=6)],
    "broker of old versions":
        [register(version=0), register(2, version=1, inControlledShutdown=True),
         register(3, version=2, isMigratingZkBroker=True)],
    "broker with directories":
        [register(logDirs=[C, A, B]), changed(logDirs=[B, A]), changed(cordonedLogDirs=[A]),
         changed(cordonedLogDirs=[]), changed(logDirs=[])],
    "broker with an invalid protocol": [register(endPoints=[endpoint(protocol=99)]), unfence()],
    "broker with no endpoint": [register(endPoints=[])],
    "broker with endpoints of one name":
        [register(endPoints=[endpoint(), endpoint(protocol=1)]), unfence()],
    "broker with features":
        [register(features=[{"name": "f", "minSupportedVersion": 1, "maxSupportedVersion": 3}])],
    "broker with a range the wrong way":
        [register(features=[{"name": "f", "minSupportedVersion": 3, "maxSupportedVersion": 1}]),
         unfence()],
    "broker with a range below 0":
        [register(features=[{"name": "f", "minSupportedVersion": -1, "maxSupportedVersion": 1}]),
         unfence()],
    "unregistered though not there": [unregister()],
    "unregistered with another epoch": [register(), unregister(epoch=9), unfence()],
    "fenced though not there": [fence()],
    "unfenced though not there": [unfence()],
    "fenced with another epoch": [register(), fence(epoch=6)],
    "unfenced with another epoch": [register(), unfence(epoch=4)],
    "fenced after it went": [register(), unregister(), fence()],
    "changed though not there": [changed()],
    "changed with another epoch": [register(), changed(epoch=9)],
    "changed in an invalid way": [register(), changed(fenced=3), unfence()],
    "shut down in an invalid way": [register(), changed(inControlledShutdown=-1), unfence()],
    "in and out of shutdown":
        [register(), changed(inControlledShutdown=1), changed(fenced=-1), changed(fenced=1)],
    "controller": [controller(), controller(2, zkMigrationReady=True), controller()],
    "controller with an invalid protocol": [controller(endPoints=[endpoint(protocol=-5)])],
    "controller with no endpoint": [controller(endPoints=[])],
    "controller with a range the wrong way":
        [controller(features=[{"name": "f", "minSupportedVersion": 3, "maxSupportedVersion": 1}])],
    "features": [V, feature("group.version", 1), feature("group.version", 0), feature("x", 9)],
    "feature below 0": [V, feature("x", -1)],
    "feature removed that is not there": [feature("x", 0)],
    **{f"metadata.version {n}": [feature("metadata.version", n), *T]
       for n in (-1, 0, 7, 19, 29, 30)},
    "metadata.version lowered": [V, feature("metadata.version", 20), *T],
    "kraft.version as a feature": [V, feature("kraft.version", 1)],
    "quotas":
        [quota(("user", "a")), quota(("user", None)), quota(("user", "a"), key="other"),
         quota(("user", "a"), remove=True), quota(("user", "a"), remove=True)],
    "quota without entity": [quota(), quota(remove=True)],
    "quota of an invalid entity": [quota(("shoe", "a"))],
    "quota of an entity twice": [quota(("user", "a"), ("user", "b"))],
    "quota of the parts the other way":
        [quota(("user", "a"), ("client-id", None)), quota(("client-id", None), ("user", "a"))],
    "quota of an invalid key": [quota(("user", "a"), key="")],
    "ACLs": [acl(), acl(B), remove_acl(A), acl(A), remove_acl(B)],
    "ACL twice": [acl(), acl(host="h"), remove_acl(), remove_acl()],
    "ACL removed that is not there": [remove_acl()],
    "ACL of invalid kinds":
        [acl(resourceType=99, patternType=98, operation=97, permissionType=96), remove_acl()],
    "ACL of an invalid principal": [acl(principal="nobody"), remove_acl()],
    "SCRAM": [scram(), scram(mechanism=2), remove_scram(), remove_scram()],
    "SCRAM with an invalid mechanism": [scram(mechanism=9), remove_scram(mechanism=9)],
    "SCRAM removed with an invalid mechanism":
        [remove_scram(mechanism=9), remove_scram("v", 0)],
    "tokens": [token(), token("l"), remove_token(), remove_token(), remove_token("m")],
    "token of an invalid owner": [token(owner="nobody")],
    "token of an invalid requester": [token(requester="")],
    "token of invalid renewers": [token(renewers=["User:a", "nobody"])],
    "token without renewers": [token(renewers=[])],
    "token of principals with colons": [token(owner="User:a:b", requester=":x", renewers=[":"])],
    "producer ids": [producer_ids(), producer_ids(3000), producer_ids(2000, 2)],
    "producer ids below 0": [producer_ids(-5), producer_ids(-1)],
    "ZooKeeper": [zk(0), zk(1), zk(2), zk(3), zk(4)],
    "ZooKeeper in an invalid state": [zk(9), zk(-1)],
    "transaction": [BEGIN, *T, END, change()],
    "transaction with nothing in it": [BEGIN, END, BEGIN, ABORT],
    "transaction aborted": [BEGIN, *T, ABORT, change()],
    "transaction aborted that does not apply": [*T, BEGIN, change(B), ABORT],
    "transaction ended that does not apply": [*T, BEGIN, change(B), END],
    "transaction open": [*T, BEGIN, change(leader=2)],
    "transaction open that does not apply": [*T, BEGIN, change(B)],
    "transaction in a transaction": [BEGIN, topic(), BEGIN, partition(), END],
    "two beginnings": [BEGIN, BEGIN, END],
    "end of none": [*T, END],
    "abort of none": [*T, ABORT],
    "end twice": [BEGIN, *T, END, END],
    "abort after an end": [BEGIN, *T, END, ABORT],
    "abort twice, the second with what was undone": [BEGIN, *T, ABORT, ABORT, change()],
    "removal that is undone": [*T, BEGIN, remove(), ABORT, change(leader=2)],
}  # fmt: skip

DRAWN: tuple[Callable[[random.Random], bytes], ...] = (
    lambda rng: topic(*rng.choice(tuple(zip("tuv", IDS, strict=True)))),
    lambda rng: partition(rng.choice(IDS), rng.randrange(2), rng.randrange(3)),
    lambda rng: change(rng.choice(IDS), rng.randrange(2), leader=rng.randrange(-2, 3)),
    lambda rng: change(rng.choice(IDS), rng.randrange(2), replicas=rng.sample(range(1, 5), 2)),
    lambda rng: change(rng.choice(IDS), rng.randrange(2), directories=rng.sample(IDS, 2)),
    lambda rng: change(rng.choice(IDS), rng.randrange(2), eligibleLeaderReplicas=[2]),
    lambda rng: remove(rng.choice(IDS)),
    lambda rng: clear_elr(rng.choice(("", "t", "u"))),
    lambda rng: config(rng.choice((2, 4)), rng.choice("tu1"), "a", rng.choice(("1", None))),
    lambda rng: register(rng.randrange(3), rng.randrange(2), logDirs=rng.sample(IDS, 2)),
    lambda rng: unregister(rng.randrange(3), rng.randrange(2)),
    lambda rng: fence(rng.randrange(3), rng.randrange(2)),
    lambda rng: unfence(rng.randrange(3), rng.randrange(2)),
    lambda rng: changed(rng.randrange(3), rng.randrange(2), fenced=rng.randrange(-2, 3)),
    lambda rng: changed(rng.randrange(3), 0, logDirs=rng.sample(IDS, rng.randrange(3))),
    lambda rng: controller(rng.randrange(3)),
    lambda rng: feature("group.version", rng.randrange(2)),
    lambda rng: quota(("user", rng.choice(("a", None))), remove=rng.random() < 0.5),
    lambda rng: acl(rng.choice(IDS)),
    lambda rng: remove_acl(rng.choice(IDS)),
    lambda rng: scram(rng.choice("ab"), rng.randrange(1, 3)),
    lambda rng: remove_scram(rng.choice("ab"), rng.randrange(1, 3)),
    lambda rng: token(rng.choice("kl")),
    lambda rng: remove_token(rng.choice("kl")),
    lambda rng: producer_ids(rng.randrange(9)),
    lambda rng: rng.choice((END, ABORT)),
)  # fmt: skip


def drawn(seed: int) -> list[bytes]:
    """Return a random log of records about few entities, half of which exist."""
    rng = random.Random(seed)
    return [rng.choice(DRAWN)(rng) for _ in range(60)]


CASES = SEQUENCES | {f"drawn {seed}": drawn(seed) for seed in SEEDS}


def log_dir_of(home: Path, values: Sequence[bytes]) -> Path:
    home.mkdir(parents=True)
    return made.log_dir_of(home, values)


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, list[list[str]]]]:
    """Return the log of each case and Kafka's replies for it."""
    runnable(KAFKA_4)
    home = tmp_path_factory.mktemp("replayed")
    logs = {
        name: log_dir_of(home / str(number), values)
        for number, (name, values) in enumerate(CASES.items())
    }
    files = {str(log / f"{0:020d}.log"): name for name, log in logs.items()}
    command = java_command(KAFKA_4, str(PROGRAM), heap="256m", level="ERROR")
    done = subprocess.run(
        [*command, *files], capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr
    replies: dict[str, list[list[str]]] = {name: [] for name in CASES}
    for line in done.stdout.splitlines():
        file, *words = line.split("\t")
        replies[files[file]].append(words)
    return {name: (log, replies[name]) for name, log in logs.items()}


def state_of(known: MetadataImage) -> dict[str, Any]:
    """Return the parts of an image that Kafka's image of 4.3 also has, independent of order."""
    state = {one.name: getattr(known, one.name) for one in fields(known) if one.compare}
    # Of two topics of one name Kafka knows only one until its next start.
    state["topics"] = None
    for name in ("offset", "zk_migration_state"):
        state[name] = None
    state["features"] = {k: v for k, v in known.features.items() if k != "metadata.version"}
    state["other_configs"] = {
        (kind if kind in RESOURCES else 0, name): values
        for (kind, name), values in known.other_configs.items()
    }
    state["partitions"] = {
        (topic_id, number): replace(
            one, directories=() if set(one.directories) == {MIGRATING} else one.directories
        )
        for topic_id, of_topic in known.partitions.items()
        for number, one in of_topic.items()
    }
    state["brokers"] = {
        node: {"isMigratingZkBroker": False, **one}
        | {name: sorted(one[name]) for name in ("logDirs", "cordonedLogDirs")}
        for node, one in known.brokers.items()
    }
    return state


@pytest.mark.parametrize("name", CASES)
def test_the_same_records_do_not_apply_and_the_same_is_known(
    replayed: dict[str, tuple[Path, list[list[str]]]], tmp_path: Path, name: str
) -> None:
    log, lines = replayed[name]
    known = image.read(log)
    replies: dict[str, list[list[str]]] = {}
    for word, *rest in lines:
        replies.setdefault(word, []).append(rest)
    faults = replies.get("fault", [])
    assert known.not_understood == 0
    ours = [f"{one.offset} {one.text}" for one in known.problems]
    # For a partition without topic a broker reports two faults and drops the whole image.
    theirs = sorted({int(one[0]) for one in faults})
    assert [one.offset for one in known.problems] == theirs, [ours, faults]
    ((version,),) = replies["version"]
    assert known.features.get("metadata.version", 0) == int(version)
    if "unwritable" in replies:
        return
    records = [base64.b64decode(one[0]) for one in replies["record"]]
    again = image.read(log_dir_of(tmp_path / DIRECTORY, records))
    assert not again.problems
    assert state_of(known) == state_of(again)
