"""`metadata` agrees with a broker's admin API and with the snapshots of its log."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from broker import workloads
from broker.conftest import runnable
from broker.install import VERSIONS
from broker.kafka import Broker, format_log_dir, run_tool
from broker.topics import Topic

from logtool.metadata import image
from logtool.metadata.entities import EntityView
from logtool.metadata.history import MetadataEvent, MetadataHistory
from logtool.metadata.image import DIRECTORY, MetadataImage, Until

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

CONFIG = {
    # A snapshot after about every change, to be compared with the log up to there.
    "metadata.log.max.record.bytes.between.snapshots": "400",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
TOPICS = (
    Topic("kept", "with settings", 2, config={"cleanup.policy": "compact", "retention.ms": "9"}),
    Topic("doomed", "is deleted"),
)
QUOTA = ("--entity-type", "users", "--entity-name", "alice", "--entity-type", "clients",
         "--entity-default", "--alter", "--add-config", "request_percentage=12.5")  # fmt: skip


@dataclass
class Described:
    """The answers of a broker's admin API, and its log dir."""

    home: Path
    topics: dict[str, tuple[str, list[tuple[int, int, list[int], list[int]]]]]
    """Id and (number, leader, replicas, ISR) of each partition."""
    configs: dict[str, dict[str, str]]
    acls: set[tuple[str, str, str, str, str]]
    users: dict[str, list[tuple[str, int]]]
    features: str


def alter(admin: Any, kind: Any, name: str, **settings: str | None) -> None:
    """Set or, with None, remove settings of a resource."""
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

    entries = [
        ConfigEntry(
            setting.replace("_", "."),
            value,
            incremental_operation=AlterConfigOpType.DELETE
            if value is None
            else AlterConfigOpType.SET,
        )
        for setting, value in settings.items()
    ]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    for done in admin.incremental_alter_configs([resource]).values():
        done.result()


def set_everything(broker: Broker, admin: Any) -> None:
    """Set, change and remove everything that the admin API can."""
    from confluent_kafka.admin import (
        AclBinding,
        AclBindingFilter,
        AclOperation,
        AclPermissionType,
        NewPartitions,
        ResourcePatternType,
        ResourceType,
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialDeletion,
        UserScramCredentialUpsertion,
    )

    workloads.create_topics(broker.bootstrap, broker.version, TOPICS)
    alter(admin, ResourceType.TOPIC, "kept", retention_ms=None, segment_bytes="20000000")
    alter(admin, ResourceType.BROKER, "1", background_threads="9")
    for done in admin.create_partitions([NewPartitions("kept", 3)]).values():
        done.result()

    def acl(principal: str, operation: Any, pattern: Any = ResourcePatternType.LITERAL) -> Any:
        allow = AclPermissionType.ALLOW
        return AclBinding(ResourceType.TOPIC, "kept", pattern, principal, "*", operation, allow)

    bindings = [
        acl("User:alice", AclOperation.READ),
        acl("User:bob", AclOperation.WRITE, ResourcePatternType.PREFIXED),
        acl("User:gone", AclOperation.ALL),
    ]
    for done in admin.create_acls(bindings).values():
        done.result()
    gone = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, "User:gone", None, AclOperation.ANY,
        AclPermissionType.ANY,
    )  # fmt: skip
    for done in admin.delete_acls([gone]).values():
        done.result()
    weak = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    strong = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 5000)
    users = [("alice", weak), ("alice", strong), ("gone", weak)]
    for name, info in users:
        change = UserScramCredentialUpsertion(name, info, password=b"secret", salt=b"salt")
        for done in admin.alter_user_scram_credentials([change]).values():
            done.result()
    removal = UserScramCredentialDeletion("gone", ScramMechanism.SCRAM_SHA_256)
    for done in admin.alter_user_scram_credentials([removal]).values():
        done.result()
    run_tool(
        broker.version, "kafka.admin.ConfigCommand", "--bootstrap-server", broker.bootstrap, *QUOTA
    )
    workloads.transactional(broker.bootstrap, "takes-a-producer-id")
    workloads.delete_topic(broker.bootstrap, broker.log_dirs[0], "doomed")


def ask(broker: Broker, admin: Any) -> Described:
    """Return the answers of the admin API."""
    from confluent_kafka import TopicCollection
    from confluent_kafka.admin import (
        AclBindingFilter,
        AclOperation,
        AclPermissionType,
        ConfigResource,
        ConfigSource,
        ResourcePatternType,
        ResourceType,
    )

    names = list(admin.list_topics(timeout=30).topics)
    topics = {}
    for name, done in admin.describe_topics(TopicCollection(names)).items():
        found = done.result()
        partitions = [
            (p.id, p.leader.id, [n.id for n in p.replicas], [n.id for n in p.isr])
            for p in found.partitions
        ]
        # librdkafka prints the other base64.
        topic_id = str(found.topic_id).replace("/", "_").replace("+", "-")
        topics[name] = topic_id, partitions
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    configs = {
        resource.name: {e.name: e.value for e in done.result().values() if e.source == own}
        for resource, done in admin.describe_configs(resources).items()
    }
    every = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY,
        AclPermissionType.ANY,
    )  # fmt: skip
    acls = {
        (one.principal, one.operation.name.lower(), one.name,
         one.resource_pattern_type.name.lower(), one.permission_type.name.lower())
        for one in admin.describe_acls(every).result()
    }  # fmt: skip
    users = {
        name: sorted(
            (one.mechanism.name.replace("_", "-"), one.iterations)
            for one in done.scram_credential_infos
        )
        for name, done in admin.describe_user_scram_credentials().result().items()
    }
    features = run_tool(
        broker.version, "org.apache.kafka.tools.FeatureCommand", "--bootstrap-server",
        broker.bootstrap, "describe",
    )  # fmt: skip
    return Described(broker.log_dirs[0], topics, configs, acls, users, features)


@pytest.fixture(scope="module", params=VERSIONS)
def described(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Described:
    """Return the answers of a broker's admin API, and its log dir after a kill."""
    from confluent_kafka.admin import AdminClient

    version = runnable(str(request.param))
    log_dir = tmp_path_factory.mktemp("metadata") / "log-dir"
    format_log_dir(version, [log_dir])
    with Broker(version, [log_dir], CONFIG) as broker:
        broker.start()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        set_everything(broker, admin)
        found = ask(broker, admin)
        broker.kill()
        return found


@pytest.fixture(scope="module")
def known(described: Described) -> MetadataImage:
    found = image.read(described.home)
    assert (found.damage, found.problem_count, found.not_understood) == (None, 0, 0)
    return found


def states(known: MetadataImage, kind: str) -> dict[str, dict[str, Any]]:
    """Return the entities of a kind by name."""
    found = (one for _, one in EntityView(show_secrets=True).all(known) if one.kind == kind)
    return {one.name: one.state for one in found}


def test_topics_and_partitions_are_those_that_the_broker_described(
    described: Described, known: MetadataImage
) -> None:
    assert known.topics == {name: topic_id for name, (topic_id, _) in described.topics.items()}
    for topic_id, partitions in described.topics.values():
        ours = known.partitions[topic_id]
        found = [(n, p.leader, list(p.replicas), list(p.isr)) for n, p in sorted(ours.items())]
        assert found == sorted(partitions)
    assert len(known.partitions[known.topics["kept"]]) == 3


def test_settings_are_those_that_the_broker_described(
    described: Described, known: MetadataImage
) -> None:
    for topic, configs in described.configs.items():
        assert known.topic_configs.get(topic, {}) == configs
    assert known.broker_configs["1"] == {"background.threads": "9"}
    (quota,) = states(known, "quota").items()
    assert quota == ("client-id (default), user alice", {"request_percentage": 12.5})


def test_acls_and_users_are_those_that_the_broker_described(
    described: Described, known: MetadataImage
) -> None:
    acls = {
        (one["principal"], one["operation"], one["resource_name"], one["pattern"],
         one["permission"])
        for one in states(known, "acl").values()
    }  # fmt: skip
    assert acls == described.acls
    assert len(acls) == 2
    users: dict[str, list[tuple[str, int]]] = {}
    for (name, mechanism), one in known.scram_users.items():
        word = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}[mechanism]
        users.setdefault(name, []).append((word, one["iterations"]))
    assert {name: sorted(one) for name, one in users.items()} == described.users
    assert len(described.users["alice"]) == 2


def test_features_are_those_that_the_broker_described(
    described: Described, known: MetadataImage
) -> None:
    rows = {row.split()[1]: row.split() for row in described.features.splitlines()}
    for name, state in states(known, "feature").items():
        row = rows[name]
        level = row[row.index("FinalizedVersionLevel:") + 1]
        assert level == str(state.get("release", state["level"]))
    assert known.next_producer_id == 1000
    assert known.brokers[1]["fenced"] is False


def test_the_log_up_to_each_snapshot_gives_the_same_image(
    described: Described, tmp_path: Path
) -> None:
    source = described.home / DIRECTORY
    (first, *later) = sorted(source.glob("*.checkpoint"))
    assert len(later) >= 5
    log_only = tmp_path / DIRECTORY
    log_only.mkdir()
    for path in (first, *source.glob("*.log")):
        shutil.copy2(path, log_only)
    for snapshot in later:
        theirs = image.read_snapshot(snapshot)
        ours = image.read(log_only, Until(offset=theirs.offset - 1))
        assert theirs == ours, snapshot.name


def test_the_history_of_the_deleted_topic_is_there(described: Described) -> None:
    events: list[MetadataEvent] = []
    image.read(described.home, watcher=MetadataHistory(events.append, ("doomed",)))
    names = [one.record for one in events]
    assert names[:2] == ["TopicRecord", "PartitionRecord"]
    assert names[-1] == "RemoveTopicRecord"
    assert not any(one.problem for one in events)
