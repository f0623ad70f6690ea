"""The examinations that `doctor` and `report` show: one for each broker that was given."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from logtool.commands import options
from logtool.commands.program import broker_config, parsing
from logtool.commands.views import after_start
from logtool.disk import files
from logtool.doctor.examination import Examination
from logtool.node import dir_copies
from logtool.node.identity import ids_of
from logtool.node.options import StartOptions
from logtool.running.budget import Budget
from logtool.running.run import Progress
from logtool.running.summary import ActionSummary


def of(
    inputs: options.Inputs,
    running: options.Running,
    summary: ActionSummary,
    kafka_version: str | None,
    on_progress: Callable[[Progress], None],
) -> list[Examination]:
    """Return the examination of each broker that was given; all of them fill `summary`.

    Of several copies of one log dir each gets an examination by itself.
    """
    given = inputs.resolved()
    keys = (*broker_config.INDEXES, *broker_config.JUDGED)
    hints = inputs.broker.hints() if kafka_version is None else ()
    assumed = StartOptions(
        parsing.kafka_version(kafka_version),
        static={**inputs.broker.of_node(), **inputs.broker.take(*keys, *hints)},
    )
    budget = Budget(running.threads, running.pace())
    named_by = "" if inputs.paths or inputs.files_from else inputs.broker.path
    brokers: dict[int | None, list[Path]] = {}
    dirs = inputs.node_dirs()
    if not inputs.broker and all(one.node is None for one in dirs):
        dirs = [replace(one, node=ids_of(one.path)[0]) for one in dirs]
        if len({one.node for one in dirs if one.node is not None}) < 2:
            dirs = [replace(one, node=None) for one in dirs]
    for one in dirs:
        brokers.setdefault(one.node, []).append(one.path)
    groups = [
        (node, group)
        for node, paths in brokers.items()
        for group in dir_copies.apart(files.each_once(paths))
    ]
    if len(groups) > len(brokers):  # Copies of one log dir get the node id that both have.
        groups = [(ids_of(paths[0])[0] if node is None else node, paths) for node, paths in groups]
    return [
        Examination(
            paths, assumed, selection=given.selection, flavour=given.flavour, node=node,
            named_by=named_by, budget=budget, summary=summary,
            policies=after_start.static(inputs.broker), on_progress=on_progress,
        )
        for node, paths in groups
    ]  # fmt: skip
