"""Records of a metadata log that do not apply, and the result of each that does."""

import metadata_records as made
import pytest
from metadata_records import log_dir_of, snapshot
from verification import has_numbers, numbers_in

from logtool.formats.messages import codec, schema
from logtool.metadata import entities, image, releases
from logtool.metadata.history import MetadataHistory
from logtool.metadata.image import Until

ID, NEW_ID = "J8aAPcfLQt2bqs1JT_rMgQ", "AAECAwQFBgcICQoLDA0ODw"
ELR_CHANGE = {6: made.numbers(2), 7: made.numbers(2)}


def record(name, version=0, /, **fields):
    """Return a record of any type; fields that are left out have their defaults."""
    message = schema.table("cluster_metadata").named(name)
    return made.framed(message.type, version)[:-1] + codec.encode(message, version, fields)


def registration(node=1, epoch=5, **fields):
    return record(
        "RegisterBrokerRecord", 4, brokerId=node, brokerEpoch=epoch, incarnationId=ID,
        endPoints=[], features=[], rack=None, **fields,
    )  # fmt: skip


TOPIC = [made.topic("t", ID), made.partition(ID, 0, [1, 2])]
WRONG = {
    "a partition of a topic that is not there": ([made.partition(ID, 0, [1])], 0, ID),
    "a change of such a partition": ([*TOPIC, made.change(ID, 7, {})], 2, f"{ID}:7"),
    "a change of a topic that was removed":
        ([*TOPIC, made.remove_topic(ID), made.change(ID, 0, {})], 3, ID),
    "a topic that is removed twice":
        ([*TOPIC, made.remove_topic(ID), made.remove_topic(ID)], 3, ID),
    "a broker that is not registered":
        ([record("FenceBrokerRecord", id=1, epoch=5)], 0, "broker 1"),
    "another epoch of a broker":
        ([registration(), record("UnfenceBrokerRecord", id=1, epoch=6)], 1, "epoch 6"),
    "a change of a broker that went":
        ([registration(), record("UnregisterBrokerRecord", brokerId=1, brokerEpoch=5),
          record("BrokerRegistrationChangeRecord", 3, brokerId=1, brokerEpoch=5)], 2, "broker 1"),
    "a fence that means nothing":
        ([registration(), record("BrokerRegistrationChangeRecord", brokerId=1, brokerEpoch=5,
                                 fenced=3)], 1, "3"),
    "an ACL that is not there":
        ([record("RemoveAccessControlEntryRecord", id=ID)], 0, f"ACL {ID}"),
    "a recovery state that does not exist":
        ([*TOPIC, made.change(ID, 0, {5: b"\7"})], 2, "recovery state 7"),
    "directories that are fewer than the replicas":
        ([*TOPIC, made.change(ID, 0, {8: made.array(made.uuid(ID))})], 2, "directories"),
    "a security protocol that does not exist":
        ([record("RegisterControllerRecord", controllerId=3, incarnationId=ID, features=[],
                 endPoints=[{"name": "C", "host": "h", "port": 1, "securityProtocol": 9}])],
         0, "security protocol 9"),
    "a metadata.version that no release had":
        ([record("FeatureLevelRecord", name="metadata.version", featureLevel=-1)], 0, "-1"),
    "a token for no user": ([record("DelegationTokenRecord", owner="nobody")], 0, "User:alice"),
    "what an aborted transaction holds": ([*TOPIC, made.BEGIN, made.change(ID, 7, {}), made.ABORT],
                                          3, f"{ID}:7"),
    "what an open transaction holds": ([*TOPIC, made.BEGIN, made.change(ID, 7, {})],
                                       3, f"{ID}:7"),
    "the ELR of a topic that is not there":
        ([record("ClearElrRecord", topicName="gone")], 0, "topic gone"),
    "a controller that is not registered":
        ([record("UnregisterControllerRecord", controllerId=3)], 0, "controller 3"),
    "an end of no transaction": ([*TOPIC, made.END], 2, "transaction"),
    "an abort of no transaction": ([*TOPIC, made.ABORT], 2, "transaction"),
    "two beginnings": ([made.BEGIN, made.BEGIN], 1, "transaction"),
}  # fmt: skip
"""(values, offset of the record that does not apply, part of the reason)."""


@pytest.mark.parametrize("name", WRONG)
def test_a_record_that_does_not_apply_is_reported_and_passed_over(tmp_path, name):
    values, offset, text = WRONG[name]
    home = log_dir_of(tmp_path, values, [made.topic("behind", NEW_ID)])
    found = image.read(home)
    (problem,) = found.problems
    assert (problem.offset, problem.position, found.problem_count) == (offset, 0, 1)
    assert text in problem.text
    assert found.offset == len(values) + 1
    if made.BEGIN not in values:
        assert found.topics["behind"] == NEW_ID


def test_what_follows_from_records_that_were_not_understood_is_no_problem(tmp_path):
    home = log_dir_of(tmp_path, [made.framed(2, 9) + b"?", made.change(ID, 0, {})])
    found = image.read(home)
    assert (found.not_understood, found.problem_count) == (1, 0)


def test_a_transaction_with_a_partition_of_no_topic_is_dropped_as_a_whole(tmp_path):
    inside = [made.BEGIN, made.topic("u", NEW_ID), made.change(ID, 0, {}), made.END]
    found = image.read(log_dir_of(tmp_path, inside))
    assert (found.topics, [one.offset for one in found.problems]) == ({}, [2, 3])
    assert numbers_in(found.problems[1].text) == [2]


def test_a_metadata_version_of_a_newer_release_is_not_understood(tmp_path):
    newer = record("FeatureLevelRecord", name="metadata.version", featureLevel=99)
    found = image.read(log_dir_of(tmp_path, [newer, made.remove_topic(ID)]))
    assert (found.not_understood, found.problems) == (1, [])


def test_a_broker_is_what_its_registration_and_the_changes_of_it_say(tmp_path):
    values = [
        registration(logDirs=[ID], inControlledShutdown=False),
        record("UnfenceBrokerRecord", id=1, epoch=5),
        record(
            "BrokerRegistrationChangeRecord", 3, brokerId=1, brokerEpoch=5,
            inControlledShutdown=1, logDirs=[], cordonedLogDirs=[ID],
        ),
    ]  # fmt: skip
    known = image.read(log_dir_of(tmp_path, values)).brokers[1]
    assert (known["fenced"], known["inControlledShutdown"]) == (False, True)
    assert (known["logDirs"], known["cordonedLogDirs"]) == ([ID], [ID])


def test_eligible_replicas_come_and_go(tmp_path):
    change = made.change(ID, 0, {0: made.numbers(), 1: made.int32(-1), **ELR_CHANGE})
    values = [*TOPIC, change, record("ClearElrRecord", topicName="t")]
    home = log_dir_of(tmp_path, values)
    state = image.read(home, Until(offset=2)).partition(ID, 0)
    assert (state.leader, state.isr, state.elr, state.last_known_elr) == (-1, (), (2,), (2,))
    state = image.read(home).partition(ID, 0)
    assert (state.elr, state.last_known_elr, state.partition_epoch) == ((), (), 2)


def test_what_else_can_be_set_is_set_and_removed(tmp_path):
    entity = [{"entityType": "user", "entityName": None}]
    quota = {"entity": entity, "key": "producer_byte_rate", "value": 7.5}
    user = {"name": "u", "mechanism": 1}
    values = [
        record("ClientQuotaRecord", **quota),
        record("UserScramCredentialRecord", **user, salt=b"s", iterations=4096),
        record("DelegationTokenRecord", tokenId="secret", owner="User:o", requester="User:r"),
        record("AccessControlEntryRecord", id=ID, resourceName="orders", principal="User:a"),
        record("FeatureLevelRecord", name="group.version", featureLevel=1),
        record("ProducerIdsRecord", brokerId=1, nextProducerId=3000),
    ]
    undone = [
        record("ClientQuotaRecord", **quota, remove=True),
        record("RemoveUserScramCredentialRecord", **user),
        record("RemoveDelegationTokenRecord", tokenId="secret"),
        record("RemoveAccessControlEntryRecord", id=ID),
        record("FeatureLevelRecord", name="group.version", featureLevel=0),
    ]
    home = log_dir_of(tmp_path, values, undone)
    there = image.read(home, Until(offset=len(values) - 1))
    assert there.quotas == {(("user", None),): {"producer_byte_rate": 7.5}}
    assert set(there.scram_users) == {("u", 1)}
    assert (set(there.tokens), set(there.acls)) == ({"secret"}, {ID})
    assert (there.features, there.next_producer_id) == ({"group.version": 1}, 3000)
    gone = image.read(home)
    assert not (gone.quotas or gone.scram_users or gone.tokens or gone.acls or gone.features)
    assert not gone.problems


@pytest.mark.parametrize("shown", [False, True])
def test_secrets_are_shown_only_where_that_is_wanted(tmp_path, shown):
    values = [
        record("UserScramCredentialRecord", name="u", mechanism=1, salt=b"SALT", iterations=4096),
        record("DelegationTokenRecord", tokenId="SECRET", owner="User:o", requester="User:r"),
        made.config(4, "1", "listener.name.x.ssl.keystore.password", "SECRET"),
    ]
    view = entities.EntityView(show_secrets=shown)
    text = str([entity for _, entity in view.all(image.read(log_dir_of(tmp_path, values)))])
    assert ("SECRET" in text, b"SALT".hex() in text) == (shown, shown)


@pytest.mark.parametrize(("name", "hidden"), [
    ("ssl.key.password", True), ("listener.name.a.plain.sasl.jaas.config", True),
    ("delegation.token.secret.key", True), ("s3.account", True), ("com.example.plugin.pin", True),
    ("listener.name.a.unheard.of", True), ("", True),
    ("retention.ms", False), ("listener.name.a.scram-sha-512.connections.max.reauth.ms", False),
    ("listener.name.a.ssl.keystore.location", False), ("delegation.token.max.lifetime.ms", False),
    ("consumer.session.timeout.ms", False), ("metrics", False), ("follower.replication.throttled."
    "rate", False),
])  # fmt: skip
def test_a_setting_is_hidden_unless_kafka_defines_it_as_no_secret(tmp_path, name, hidden):
    home = log_dir_of(tmp_path, [made.config(4, "1", name, "VALUE")])
    entities_of = entities.EntityView().all(image.read(home))
    assert ("VALUE" not in str([entity for _, entity in entities_of])) == hidden


def test_the_image_at_an_offset_is_that_of_the_snapshot_that_ends_there(tmp_path):
    home = log_dir_of(tmp_path, TOPIC, [made.remove_topic(ID)])
    assert image.read(home, Until(offset=1)).topics == {"t": ID}
    assert image.read(home, Until(offset=2)).topics == {}
    snapshot(home, 3)
    assert image.read(home, Until(offset=1)).snapshot is None
    assert image.read(home, Until(offset=2)).snapshot is not None


def test_what_is_older_than_the_oldest_snapshot_is_said_to_be_missing(tmp_path):
    home = tmp_path / image.DIRECTORY
    home.mkdir()
    (home / f"{5:020d}.log").write_bytes(made.batch(5, made.topic("t", ID)))
    found = image.read(home)
    assert (found.offset, found.topics) == (0, {})
    assert has_numbers(found.damage, 0, 4)
    snapshot(home, 5)
    assert image.read(home).damage is None


def events_of(home, *topics):
    events = []
    history = MetadataHistory(events.append, topics)
    image.read(home, watcher=history)
    return events


def test_the_history_of_a_topic_goes_on_after_its_deletion(tmp_path):
    leader = made.change(ID, 0, {0: made.numbers(2), 1: made.int32(2)})
    home = log_dir_of(
        tmp_path, [*TOPIC, made.config(2, "t", "retention.ms", "1")], [leader, made.framed(20, 0)],
        [made.remove_topic(ID), made.topic("t", NEW_ID), made.topic("other", "A" * 22)],
    )  # fmt: skip
    events = events_of(home, "t")
    assert [(one.offset, one.record, one.entity.topic_id) for one in events] == [
        (0, "TopicRecord", ID),
        (1, "PartitionRecord", ID),
        (2, "ConfigRecord", ID),
        (3, "PartitionChangeRecord", ID),
        (5, "RemoveTopicRecord", ID),
        (6, "TopicRecord", NEW_ID),
    ]
    changed = {one.field: (one.before, one.after) for one in events[3].changes}
    assert changed == {
        "leader": (1, 2), "leader_epoch": (0, 1), "partition_epoch": (0, 1), "isr": ([1, 2], [2]),
    }  # fmt: skip
    assert [one.offset for one in events_of(home, NEW_ID)] == [6]
    assert len(events_of(home)) == 7


def test_the_history_shows_what_does_not_apply_with_its_topic(tmp_path):
    home = log_dir_of(tmp_path, [*TOPIC, made.remove_topic(ID), made.change(ID, 0, {})])
    last = events_of(home, "t")[-1]
    assert (last.offset, last.entity.name) == (3, "t-0")
    assert last.problem


def test_records_of_a_transaction_come_when_it_ends(tmp_path):
    home = log_dir_of(
        tmp_path, [made.BEGIN, made.topic("a", ID)], [made.ABORT],
        [made.BEGIN, made.topic("b", NEW_ID), made.END],
    )  # fmt: skip
    reported = [(one.offset, one.record) for one in events_of(home)]
    assert reported == [
        (0, "BeginTransactionRecord"), (2, "AbortTransactionRecord"), (3, "BeginTransactionRecord"),
        (4, "TopicRecord"), (5, "EndTransactionRecord"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("level", "name"),
    [(1, "3.0-IV1"), (2, "3.1-IV0"), (4, "3.3-IV0"), (7, "3.3-IV3"), (19, "3.7-IV4"),
     (21, "3.9-IV0"), (22, "4.0-IV0"), (30, "4.3-IV0"), (33, "4.4-IV2"), (0, "0")],
)  # fmt: skip
def test_a_metadata_version_has_the_name_that_kafka_gives_it(level, name):
    assert releases.feature_name(level) == name


def test_a_controller_that_is_unregistered_is_gone(tmp_path):
    controllers = [
        record("RegisterControllerRecord", controllerId=node, incarnationId=ID, features=[],
               endPoints=[])
        for node in (3, 4)
    ]  # fmt: skip
    home = log_dir_of(
        tmp_path, [*controllers, record("UnregisterControllerRecord", controllerId=3)]
    )
    state = image.read(home)
    assert (list(state.controllers), state.problems) == ([4], [])


def test_the_name_of_a_newer_metadata_version_has_its_number():
    assert releases.feature_name(99).startswith("99")
