"""Rules for ``__consumer_offsets``: records that its coordinator cannot read, and bad offsets.

A consumer whose committed offset is outside of the log gets OFFSET_OUT_OF_RANGE for its first
fetch and follows its ``auto.offset.reset``. Before that fetch, it asks for the end of the leader
epoch of the commit, if the commit has one, and goes back to this end, if that is below the offset
(``SubscriptionState.maybeCompleteValidation``). A record that cannot be read ends the load of its
partition, and the groups there have no coordinator (``CoordinatorLoaderImpl``, Kafka 4.3).
"""

from collections.abc import Callable, Iterator
from functools import partial

from logtool.disk import shell
from logtool.findings import Finding
from logtool.formats import wording
from logtool.formats.names import CONSUMER_OFFSETS, SHARE_GROUP_STATE
from logtool.groups.loading import LoadedGroups, Wrong


def after_reset(log_start: int, log_end: int, last_stable: int) -> str:
    """Return where a consumer with an offset outside of the log goes on, as part of a message."""
    text = (
        f"; a consumer that begins there goes on at {log_start} with auto.offset.reset=earliest, "
        f"and at {log_end} with latest"
    )
    if last_stable < log_end:
        text += f" ({last_stable} with isolation.level=read_committed)"
    return text


def after_epoch(epoch: int, end: int) -> str:
    """Return where a consumer goes back to by the leader epoch of a commit, as `after_reset`."""
    return (
        f"; a consumer that begins there goes back to {end}, where leader epoch {epoch} of the "
        "commit ends, or fails with auto.offset.reset=none"
    )


def below_start(name: str, place: str, offset: int, log_start: int, then: str = "") -> Finding:
    """Return a finding: the log starts after a committed offset; `place` is topic and partition.

    `then` is the text of `after_reset`, if it is known.
    """
    lost = wording.offsets(offset, log_start - 1)
    return Finding(
        "group/offset-below-start",
        f"group {name} has committed {offset} of {place}, but the log starts at "
        f"{log_start}: the group has not read {lost}, which are deleted{then}",
        first_offset=offset,
        last_offset=log_start - 1,
    )


def beyond_end(
    name: str,
    place: str,
    offset: int,
    log_end: int,
    verb: str = "has committed",
    then: str = "",
) -> Finding:
    """Return a finding: the log ends before a committed offset, or a share group's start offset.

    `then` is the text of `after_reset` or `after_epoch`, if it is known.
    """
    return Finding(
        "group/offset-beyond-end",
        f"group {name} {verb} {offset} of {place}, but the log ends at {log_end}: the "
        f"log has lost records that the group has read{then}",
        first_offset=log_end,
        last_offset=offset - 1,
    )


def epoch_ahead(name: str, place: str, offset: int, epoch: int, today: int) -> Finding:
    """Return a finding: the leader epoch of a commit is newer than that of the metadata log."""
    return Finding(
        "group/epoch-ahead",
        f"group {name} has committed {offset} of {place} with leader epoch {epoch}, but the "
        f"metadata log has epoch {today}: a Java consumer of the group ignores every leader below "
        f"epoch {epoch} and reads nothing",
        first_offset=offset,
    )


def epoch_ended(name: str, place: str, offset: int, epoch: int, end: int) -> Finding:
    """Return a finding: the leader epoch of a commit ended at `end`, below the offset."""
    return Finding(
        "group/epoch-ended",
        f"group {name} has committed {offset} of {place} with leader epoch {epoch}, which ended at "
        f"{end}: the group has read {wording.offsets(end, offset - 1)} before the log lost them, "
        f"and its consumers go back to {end}, or fail with auto.offset.reset=none",
        first_offset=end,
        last_offset=offset - 1,
    )


def other_topic(name: str, place: str, offset: int, committed: str, today: str | None) -> Finding:
    """Return a finding: the metadata log does not have the topic of the committed offset."""
    now = f"the current topic has the id {today}" if today else (
        "the metadata log has no topic of that name"
    )  # fmt: skip
    return Finding(
        "group/other-topic-id",
        f"group {name} has committed {offset} of {place} for the topic with the id {committed}; "
        f"{now}",
        first_offset=offset,
    )


def unreadable_record(reason: str, first: int | None, last: int | None) -> Finding:
    """Return a finding: the coordinator cannot read a record."""
    where = "" if first is None or last is None else f"{wording.offsets(first, last)}: "
    return Finding(
        "group/unreadable-record",
        f"{where}a coordinator cannot read this record: {reason}",
        first_offset=first,
        last_offset=last,
    )


def missing_records(
    topic: str | None, reason: str, position: int | None, length: int | None
) -> Finding:
    """Return a finding: bytes of the log hold no sound batch, so commits in them are lost."""
    return Finding(
        "group/missing-records",
        f"{reason}; {_lost_there(topic or '', 'these bytes')}",
        position=position,
        length=length,
    )


def torn_batch(one: Wrong, *, clean: bool) -> Finding:
    """Return a finding: the log ends in a part of a batch, which no coordinator reads.

    `clean`: the log dir was stopped in order, so that no start cuts the part off.
    """
    return Finding(
        "log/torn-tail-clean" if clean else "log/torn-tail",
        f"{one.reason}: what was committed in this batch is not in the result",
        position=one.position,
        length=one.length,
        first_offset=one.first_offset,
        last_offset=one.last_offset,
    )


def lost_end(topic: str, lost: range, left: str | None = None) -> Finding:
    """Return a finding: the log ends below its high watermark; records after its end are lost.

    `left` is the name of a file that is left of a lost segment.
    """
    where = wording.offsets(lost.start, lost.stop - 1)
    gone = f" (a segment file seems to be gone: {left} is left of the segment)" if left else ""
    return Finding(
        "group/missing-records",
        f"the log ends at offset {lost.start}, but its high watermark was {lost.stop}{gone}: "
        f"{_lost_there(topic, where)}",
        first_offset=lost.start,
        last_offset=lost.stop - 1,
    )


def lacking_start(group: str, name: str) -> Finding:
    """Return a finding: a partition of a share group has no start offset any more."""
    return Finding(
        "group/missing-records",
        f"share group {shell.quote(group)} has no start offset of {name} any more: after the start "
        "share.auto.offset.reset decides where it goes on, and records are skipped or delivered "
        "again",
    )


def _lost_there(topic: str, where: str) -> str:
    """Return the text on what the loss of records of a coordinator's topic leaves unknown."""
    if topic == SHARE_GROUP_STATE:
        return (
            f"what share groups acknowledged in {where} is missing here, so that start offsets may "
            "be missing or older than they were"
        )
    return (
        f"offsets that were committed in {where} are missing here, so that groups of this "
        "partition may be missing or older than they were"
    )


def refused_record(reason: str, offset: int | None) -> Finding:
    """Return a finding: the first record that a coordinator reads and does not apply."""
    return Finding(
        "group/refused-record",
        f"the coordinator refuses the record at offset {offset} and does not load the "
        f"records after it: {reason}",
        first_offset=offset,
        last_offset=offset,
    )


def left_over(name: str, records: str, home: int, count: int, *, alone: bool) -> Finding:
    """Return a finding: a group has records in a partition that its coordinator does not read.

    `records` says which. `alone` says that the partition of its coordinator, `home` of `count`, has
    no record of the group.
    """
    text = (
        f"group {shell.quote(name)} has {records} in this partition, but its coordinator reads "
        f"{CONSUMER_OFFSETS}-{home}, by the hash of its name and {count} partitions"
    )
    if not alone:
        return Finding("group/left-over", f"{text}: the records here have no effect")
    text += "; no record of the group is there, so its consumers follow their auto.offset.reset"
    return Finding("group/misplaced", text)


def in_two_partitions(name: str, records: str) -> Finding:
    """Return a finding: a group is in several partitions, and its own is not known."""
    return Finding(
        "group/misplaced",
        f"group {shell.quote(name)} has {records} in this partition and newer records in another; "
        f"no metadata log here has the number of partitions of {CONSUMER_OFFSETS}, by which a "
        "coordinator chooses: logtool uses the newer records",
    )


def absent_partitions(absent: str, stored: str) -> Finding:
    """Return a finding: partitions of the topic are absent; `stored` is what is not known so."""
    return Finding(
        "group/absent-partitions", f"{absent}: {stored} that are stored there are not known"
    )


def absent_end(topic: str, end: int, proof: str) -> Finding:
    """Return a finding: a file proves that the log held offsets behind its end."""
    return Finding(
        "group/absent-end",
        f"the log ends at offset {end}, but {proof}: "
        f"{_lost_there(topic, f'offsets behind {end - 1}')}",
        first_offset=end,
    )


def compacted(end: int, missing: int) -> Finding:
    """Return a finding: below the offset of a past moment, records have been removed since."""
    return Finding(
        "group/compacted",
        f"{missing} of the {end} records before offset {end}, the end at that moment, are removed "
        "by now: a group that committed again later is shown without the earlier commit",
        first_offset=0,
        last_offset=end - 1,
    )


def put_aside(reason: str) -> Finding:
    """Return a finding: the coordinator does not find the partition at its next start."""
    return Finding(
        "group/put-aside", f"{reason}: the groups of this partition are gone at the next start"
    )


def of_loaded(loaded: LoadedGroups, *, clean: bool) -> Iterator[Finding]:
    """Yield findings about what could not be read in a partition; `clean` as in `torn_batch`."""
    listed = loaded.listed
    rules: tuple[tuple[list[Wrong], Callable[[Wrong], Finding]], ...] = (
        (
            loaded.damage,
            lambda one: missing_records(listed.topic, one.reason, one.position, one.length),
        ),
        ([loaded.torn] if loaded.torn else [], partial(torn_batch, clean=clean)),
        (
            loaded.wrong,
            lambda one: unreadable_record(one.reason, one.first_offset, one.last_offset),
        ),
        (loaded.refused[:1], lambda one: refused_record(one.reason, one.first_offset)),
    )
    for wrong, rule in rules:
        for one in wrong:
            yield rule(one).placed(
                one.path, topic=listed.topic, partition=listed.number, segment=one.segment
            )
