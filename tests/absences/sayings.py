"""The six commands on log dirs: their findings and actions, by partition and of the node."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from logtool.actions import GRAVE

Object = dict[str, Any]
OF_NODE = ""
"""Name for findings about the node, and about no partition."""
_PARTITION = re.compile(r"/([\w.-]+-\d+)(?:\.[0-9a-f]{32}-\w+)?(?:/|$)")
_CALM = re.compile(
    r"nothing is lost|no acknowledged record is lost|in order|nothing is wrong|no problems|"
    r"no sound record is lost|no errors, no warnings"
)
_RANK = {"info": 0, "warning": 1, "error": 2}


@dataclass
class Said:
    """Findings and actions of one command, about one partition or the node."""

    severity: str = "info"
    """The worst finding; an action to know of counts as a warning."""
    words: list[str] = field(default_factory=list)
    """Severity, code or action, and message, of each that is above info."""

    def add(self, severity: str, word: str, message: str) -> None:
        """Take up a finding or an action."""
        if _RANK[severity] > _RANK[self.severity]:
            self.severity = severity
        self.words.append(f"{severity} {word}: {message}")


def _together(found: Iterable[Said]) -> Said:
    """Return findings and actions of several as one."""
    all_of_them = list(found)
    worst = max((one.severity for one in all_of_them), key=_RANK.__getitem__, default="info")
    return Said(worst, [word for one in all_of_them for word in one.words])


@dataclass
class Sayings:
    """Output of the commands for log dirs."""

    statuses: dict[str, int]
    calm: dict[str, str]
    """The calm sentence of each command that prints one."""
    said: dict[str, dict[str, Said]]
    """By command and partition."""
    planned: dict[str, Object]
    """The forecast of `plan`, by partition."""
    committed: dict[str, dict[str, int]]
    """Committed offsets that `groups` shows, by group and partition."""

    def everything(self, command: str) -> Said:
        """Return the findings and actions of a command about the node and all partitions."""
        return _together(self.said.get(command, {}).values())

    def of(self, command: str, partition: str) -> Said:
        """Return the findings and actions of a command about a partition."""
        said = self.said.get(command, {})
        return _together(
            said[name] for name in (partition, partition.rpartition("-")[0]) if name in said
        )

    def to_json(self) -> Object:
        """Return plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Object) -> Sayings:
        """Return the sayings of which `to_json` returned the data."""
        said = {command: {name: Said(**one) for name, one in found.items()}
                for command, found in data["said"].items()}  # fmt: skip
        return cls(**{**data, "said": said})


@cache
def tool() -> str:
    """Return a digest of the source of logtool: other source may say other things."""
    root = Path(__file__).resolve().parents[2]
    found = hashlib.sha1()
    for package in ("formats", "logtool", "commands"):
        for path in sorted((root / package).rglob("*")):
            if path.suffix in (".py", ".toml", ".json"):
                found.update(path.read_bytes())
    return found.hexdigest()


def say(
    dirs: Sequence[Path], own_file: Path | None, others: Sequence[Path] = (), *, texts: bool = True
) -> Sayings:
    """Run the six commands on the log dirs of one node; `others` are those of the other nodes.

    `texts` has those that end with status 0 print their sentences too.
    """
    found = Sayings({}, {}, {}, {}, {})
    config = ["--broker-config", str(own_file)] if own_file else []
    for command in ("verify", "plan", "doctor", "watermark", "quorum", "groups"):
        of_all = command in ("watermark", "quorum", "groups")
        paths = [str(path) for path in (*dirs, *(others if of_all else ()))]
        options = [] if of_all and others else config
        if command == "doctor":  # By default it ends after ten seconds.
            options = [*options, "--max-duration", "1h"]
        status, items = _objects(command, *options, *paths)
        for item in items:
            for key in ("message", "reason"):
                if item.get(key):
                    item[key] = item[key].replace(f"{dirs[0].parent}/", "")
        found.statuses[command] = status
        found.said[command] = _said(items)
        if command == "plan":
            found.planned = {f"{one['topic']}-{one['partition']}": one for one in items
                             if one["type"] == "partition"}  # fmt: skip
        elif command == "groups":
            for one in items:
                if one["type"] == "offset" and not one["expired"]:
                    place = f"{one['topic']}-{one['partition']}"
                    found.committed.setdefault(one["group"], {})[place] = one["offset"]
        if texts and command != "groups" and status == 0:
            done = _run(command, *options, *paths)
            text = f"{done.stdout}\n{done.stderr}"
            lines = [line for line in text.splitlines() if _CALM.search(line)]
            if lines:
                found.calm[command] = lines[-1].strip()
    return found


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "logtool", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def _objects(command: str, *arguments: str) -> tuple[int, list[Object]]:
    done = _run(command, *arguments, "-f", "ndjson")
    items = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode not in (0, 1) and done.stderr:
        text = done.stderr.strip().splitlines()[-1]
        items.append({"type": "error", "path": None, "reason": "status", "message": text})
    return done.returncode, items


def _said(items: Sequence[Object]) -> dict[str, Said]:
    found: dict[str, Said] = {}
    for item in items:
        for severity, word, message in _words(item):
            if severity != "info":
                found.setdefault(_about(item), Said()).add(severity, word, message)
    return found


def _about(item: Object) -> str:
    """Return the partition of an object, or a topic with several; `OF_NODE` without one."""
    if item.get("topic"):
        number = item.get("partition")
        return str(item["topic"]) if number is None else f"{item['topic']}-{number}"
    match = _PARTITION.search(item.get("path") or "")
    return match[1] if match else OF_NODE


def _words(item: Object) -> Iterator[tuple[str, str, str]]:
    """Yield severity, code or action, and message of an object."""
    kind = item["type"]
    if kind == "finding":
        yield item["severity"], item["code"], item["message"]
    elif kind == "error":
        yield "error", item["reason"], item["message"]
    elif kind == "action":
        if item["action"] in GRAVE or item.get("lost_records") or item.get("lost_batches"):
            yield "warning", item["action"], item.get("reason") or ""
    elif kind == "partition" and item.get("outcome", "loads") != "loads":
        yield "error", item["outcome"], item.get("reason") or ""
    elif kind == "replica":
        if item["outcome"] != "loads":
            yield "error", item["outcome"], item.get("reason") or ""
        elif item.get("acknowledged_gone") or item.get("lost_records"):
            gone = item.get("acknowledged_gone"), item.get("lost_records")
            yield "error", "acknowledged_gone, lost_records", str(gone)
    elif kind == "group" and (item.get("acknowledged_lost") or item.get("may_be_lost")):
        lost = item["acknowledged_lost"], item["may_be_lost"]
        yield "error", "acknowledged_lost, may_be_lost", str(lost)
    elif kind == "copy" and item.get("problems"):
        for text in item["problems"]:
            yield "error", "problem", str(text)
    elif kind == "quorum" and (item.get("voters_are_behind") or item.get("lost")):
        yield "error", "quorum", str(item.get("unknown") or item.get("lost"))
