"""The steps that mend what is wrong, save records, and start the cluster.

The first steps mend volumes, replicas and metadata logs; `logtool.cluster.order` has the steps of
the start itself.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from logtool.actions import Action
from logtool.cluster.controllers import Controllers
from logtool.cluster.order import Step, Wave, draft, named_in, start, waves
from logtool.cluster.partitions import PartitionOutlook
from logtool.cluster.volumes import Volume
from logtool.disk import shell
from logtool.formats import names, wording
from logtool.formats.names import FileKind
from logtool.metadata.image import DIRECTORY
from logtool.quorum import giving

MOST_SAVED = 20
"""Partitions whose cut records the steps save one by one; the others are counted."""
_AGAIN = (
    "run 'logtool cluster' again: what is still to be saved, and who should lead, depends on the "
    "logs that the steps above have filled"
)
_UNREAD = (
    "check the bytes of the logs below the recovery points: no start reads them, and the answers "
    "above do not rest on them. Fill what is damaged before the start"
)


def steps(
    volumes: Sequence[Volume],
    controllers: Controllers | None,
    refusals: Sequence[tuple[int | None, Action]],
    partitions: Sequence[PartitionOutlook],
    verify: str | None = None,
) -> list[Step]:
    """Return the steps in their order; `verify` reads the logs that neither we nor a start read.

    While replicas are to be filled, there is no step of the start: who leads, and what is then cut,
    depends on the logs after the fills.
    """
    order = waves(partitions)
    repairs = list(_repairs(partitions))
    saving = [] if repairs else list(_saving(partitions, order))
    made = [
        *_volumes(volumes, controllers),
        *_held_back(partitions),
        *repairs,
        *_refusals(refusals, volumes),
        *_quorum(controllers),
        *_strays(partitions, controllers),
        *saving,
        *([draft(_AGAIN)] if repairs else []),
        *([draft(_UNREAD, verify)] if verify and not repairs else []),
        *([] if repairs else start(volumes, controllers, order, partitions)),
    ]
    if saving:
        text = "produce the saved records to their topics, as 'Produce a range again' shows"
        made.append(draft(text, "logtool man recipes | man -l -"))
    return [replace(one, number=number) for number, one in enumerate(made, 1)]


def _volumes(volumes: Sequence[Volume], controllers: Controllers | None) -> Iterator[Step]:
    for one in volumes:
        if one.status == "absent":
            where = f" (directory id {one.directory_id})" if one.directory_id else ""
            replicas = wording.count(one.partitions, "replica")
            content = replicas
            if controllers and one.node in controllers.quorum.missing_nodes:
                content = (
                    f"its metadata log and {replicas}" if one.partitions else "its metadata log"
                )
            yield draft(
                f"find the volume of node {one.node}{where}, which has {content}. If it is lost "
                f"for good: give an empty directory as {one.node}=DIR in its place, and run "
                "'logtool cluster' again; the steps are then those without it"
            )
        elif one.status == "empty":
            yield draft(
                f"look whether {one.path} is a new disk, and not one that is not mounted, or lacks "
                f"its files: it {one.detail}. If the lost volume is found, put it in its place, "
                "and run 'logtool cluster' again"
            )
        elif one.restored and one.path:
            yield draft(
                f"write the meta.properties of {one.path}, before any node starts: {one.detail}. "
                "It does not help any more once the node has started with another directory id",
                f"printf '%s\\n' {shell.join(one.restored)} > "
                f"{shell.path(one.path / FileKind.META_PROPERTIES.value)}",
            )
        elif one.status == "ahead" and one.path and controllers and controllers.has_majority:
            # The name of a partition would make the current directory look like a log dir.
            log, away = one.path / DIRECTORY, f"node-{one.node}.metadata-log"
            source = controllers.leader.path
            text = f"give node {one.node} the metadata log of the controllers"
            yield draft(
                f"{text}: {one.path} {one.detail}",
                f"mv -T {shell.path(log)} {shell.path(away)} && "
                f"cp -a {shell.path(source)} {shell.path(log)} && "
                f"rm {shell.path(log / FileKind.QUORUM_STATE.value)}",
            )
        elif one.double_of and one.path:
            yield draft(
                f"do not start with {one.path}: it {one.detail}. Keep its logs until damage in "
                f"{one.double_of} is filled from them ('logtool recover --fill-from')",
                shell.join(["logtool", "diff", str(one.double_of), str(one.path)]),
            )
        elif one.is_wrong:
            why = one.detail or f"is {one.status}"
            yield draft(f"do not start with {one.path}: it {why}")


def _held_back(partitions: Iterable[PartitionOutlook]) -> Iterator[Step]:
    """Yield a step if an unclean election should wait for volumes that are not there."""
    found = [one for one in partitions if one.leaders and one.is_held_back]
    if found:
        yield draft(
            f"request no unclean election in {wording.count(len(found), 'partition')} "
            f"({named_in(found)}): a volume above, which is absent or not identified, may hold a "
            "longer copy"
        )


def _repairs(partitions: Iterable[PartitionOutlook]) -> Iterator[Step]:
    """Yield the commands that fill replicas from other copies."""
    jobs = [(one, repair) for one in partitions for repair in one.repairs]
    for one, repair in jobs[:MOST_SAVED]:
        source: object = f"node {repair.source_node}"
        if repair.source_node in (None, repair.node):
            source = repair.source.parent
        if repair.records:
            cut = wording.count(repair.records, "sound record")
            why = f"the start would cut {cut} behind damage"
        elif repair.missing:
            lost = wording.count(repair.missing, "offset")
            why = f"its log has lost {lost} between two segments, and no broker notices"
        else:
            known = wording.count(repair.offsets, "offset")
            why = f"its log has lost its end, and that copy has {known} of it"
        yield draft(
            f"fill {one.topic}-{one.partition} of node {repair.node} from {source}: {why}",
            f"logtool recover --apply --fill-from {shell.path(repair.source)} "
            f"{shell.path(repair.path)}",
        )
    if len(jobs) > MOST_SAVED:
        more = wording.count(len(jobs) - MOST_SAVED, "more replica")
        yield draft(f"fill {more} in the same way; the next run names them")


def _refusals(
    refusals: Sequence[tuple[int | None, Action]], volumes: Sequence[Volume]
) -> Iterator[Step]:
    for node, action in refusals:
        if action.action == "discard":
            yield draft(f"before node {node} starts: {action.path} {action.reason}")
            continue
        places = [one.path for one in volumes if one.path]
        homes = [one for one in places if one in (action.path, *action.path.parents)]
        if node is not None:
            homes = [one.path for one in volumes if one.node == node and one.path] or homes
        yield draft(
            f"{'its node' if node is None else f'node {node}'} does not start: {action.path}: "
            f"{action.reason}",
            shell.join(["logtool", "doctor", *map(str, homes)]),
        )


def _quorum(controllers: Controllers | None) -> Iterator[Step]:
    if controllers is None:
        yield draft(
            "give the volume of a controller too: without a metadata log it is not known what the "
            "brokers should hold"
        )
    elif controllers.has_majority is None:
        yield draft(
            "name the voters with --broker-config: no copy of the metadata log names them",
            controllers.command,
        )
    elif not controllers.has_majority:
        missing = ", ".join(map(str, controllers.quorum.missing_nodes))
        if copying := controllers.quorum.copying:
            more = wording.count(controllers.behind, "offset")
            yield draft(
                f"if the voters {missing} are lost, give a controller the metadata log of node "
                f"{controllers.quorum.keep.node}, which has {more} more",
                copying,
            )
        yield draft(
            f"no controller can be elected without the voters {missing}: find them, or give the "
            "remaining copy other voters",
            controllers.quorum.command or controllers.command,
        )
    elif controllers.quorum.voters_are_behind:
        yield from _giving(controllers)
    elif controllers.quorum.is_grave:
        yield draft("look at the copies of the metadata log first", controllers.command)


def _giving(controllers: Controllers) -> Iterator[Step]:
    """Yield the commands that give the metadata log of a broker to the voters that lack it."""
    quorum = controllers.quorum
    kinds = ", ".join(f"{one.count:,} {one.record}" for one in quorum.unvoted)
    lost = "; ".join(giving.described(giving.losses(quorum)))
    for number, one in enumerate(quorum.lacking):
        span = wording.offsets(one.first_offset, one.last_offset)
        why = (
            f"it lacks {span} too"
            if number
            else f"no given voter has {kinds}. If these controllers start without it, this is "
            f"lost: {lost or 'nothing that the topics and settings show'}"
        )
        yield draft(
            f"give node {one.copy.node} the metadata log of node {quorum.keep.label}, which does "
            f"not vote, before any node starts: {why}",
            one.command,
        )
    yield draft("run 'logtool cluster' again: the steps below are those without the copies above")


def _strays(
    partitions: Iterable[PartitionOutlook], controllers: Controllers | None
) -> Iterator[Step]:
    """Yield a step if copies become strays, because the metadata log does not have them.

    A topic that was made again, or a copy without a topic id, is no sign of an old metadata log.
    """
    if controllers is None or controllers.quorum.lacking:
        return
    count = sum(len(one.strays) for one in partitions if one.topic_id is None)
    if count:
        yield draft(
            f"look for a metadata log that has {wording.count(count, 'partition dir')}: with the "
            f"one of node {controllers.leader.node} they get names that end in -stray",
            controllers.command,
        )


def _saving(partitions: Sequence[PartitionOutlook], order: Sequence[Wave]) -> Iterator[Step]:
    """Yield the commands that save what even the chosen leaders cut.

    Clients cannot produce to internal topics, so that their records are not saved.
    """
    chosen = {id(one): wave.node for wave in order for one in (*wave.leads, *wave.gives_up)}
    jobs: list[tuple[PartitionOutlook, Path, Path, int | None, int]] = []
    for one in partitions:
        if one.topic in names.INTERNAL_TOPICS:
            continue
        node = chosen.get(id(one), one.best_node)
        for leader in [it for it in one.leaders if it.node == node][:1]:
            jobs += [(one, cut.path, leader.path, cut.node, cut.offsets) for cut in leader.cuts]
    for one, old, new, number, offsets in jobs[:MOST_SAVED]:
        name = f"{one.topic}-{one.partition}.node-{number}.ndjson"
        yield draft(
            f"save the records of {one.topic}-{one.partition} that node {number} cuts: up to "
            f"{wording.count(offsets, 'offset')}",
            f"logtool dump --missing-in {shell.path(new)} --values base64 -f ndjson "
            f"{shell.path(old)} > {shell.path(name)}",
        )
    if len(jobs) > MOST_SAVED:
        more = wording.count(len(jobs) - MOST_SAVED, "more copy", "more copies")
        yield draft(f"save what {more} cut in the same way; see the partitions above")
