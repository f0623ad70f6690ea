"""The cases of a node: each takes a start of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from absences import node_deletions, outcomes, verdicts
from absences.campaign import Campaign, Judged, as_original
from absences.node_deletions import NodeCase
from absences.sayings import Sayings

Object = dict[str, Any]
_STEPS = 4
_NOTHING = NodeCase("nothing", ())


class NodeCampaign(Campaign):
    """The cases of the node of one base."""

    def run_all(self, limit: int | None = None) -> None:
        """Start the nodes on each case that has no outcome yet, at most `limit` of them.

        Neighbours are alike: a run that is stopped early has cases of all kinds.
        """
        for case in [case for step in range(_STEPS) for case in self.cases[step::_STEPS]]:
            if case.name in self._outcomes:
                continue
            if limit is not None:
                limit -= 1
                if limit < 0:
                    return
            with self._changed(case, to_read=False) as home, self.base.cluster(home) as cluster:
                starts = outcomes.two_starts(
                    cluster, self.base.control, self.base.groups, self.base.disk
                )
            self._keep({"batch": case.name, "made": self.base.made, "starts": starts})

    def judged(self) -> Iterator[Judged]:
        """Yield the verdict on each case with an outcome."""
        usual = self._once("nothing", lambda: self._said_of(_NOTHING))
        for case in (_NOTHING, *node_deletions.cases()):
            if case.name not in self._outcomes or not self._may_ask(case.name):
                continue
            starts = self._outcomes[case.name]["starts"]
            said = self._once(case.name, partial(self._said_of, case, starts))
            verdict = verdicts.judge_node(
                said, usual, starts, self.base.control.partitions,
                of_metadata=case.of_metadata, unprovable=case.unprovable,
                only_replica=bool(usual.planned) and self.kind.replicas == 1,
            )  # fmt: skip
            kind = case.name.partition(":")[0]
            yield Judged(self.kind.name, case.name, f"node: {kind}", case.name, verdict)

    def _said_of(self, case: NodeCase, starts: Sequence[Object] = ()) -> Sayings:
        """Ask the commands, and for their sentences if the starts lose something."""
        lost = any(verdicts.harm_of_node(start, self.base.control.partitions) for start in starts)
        with self._changed(case, to_read=True) as home:
            return self._say(home, texts=lost)

    @cached_property
    def cases(self) -> list[NodeCase]:
        """The cases that change something in this base, and one that changes nothing."""
        found = [_NOTHING]
        is_alone = len(self._dirs(self.base.disk)) == 1
        with self._copy(to_read=True) as home:
            before = _picture(home)
        for case in node_deletions.cases():
            if is_alone and case.of_last_log_dir:
                continue
            with self._changed(case, to_read=True) as home:
                if _picture(home) != before:
                    found.append(case)
        return found

    @contextmanager
    def _changed(self, case: NodeCase, *, to_read: bool) -> Iterator[Path]:
        with self._copy(to_read=to_read) as home:
            case.apply(self._dirs(home))
            if to_read:
                as_original(home)
            yield home


def _picture(home: Path) -> Mapping[str, tuple[int, int]]:
    """Return inode and size of every file: what is written again has another inode."""
    return {
        str(Path(folder, name).relative_to(home)): (found.st_ino, found.st_size)
        for folder, _, names in os.walk(home)
        for name in [*names, "."]
        for found in [Path(folder, name).stat()]
        if name != "."
    }
