"""Every command with --apply, on a log dir of its own: what it must leave, also after a kill."""

import json
import os
import shutil
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import metadata_logs
import metadata_records
import pytest
import redpanda_files as rp
from changes import Tree, count, everything, failing, make_log_dir, result
from damage import append_to_file, damage_file, flip, overwrite, remove_file

from logtool import cli
from logtool.formats import meta_properties, partition_metadata
from logtool.quorum.voters import Voter
from logtool.space import trimming

LOCK = ".lock"


def damage_logs(home: Path) -> None:
    """Let a recovery cut a segment, remove the one behind it, and rebuild the rest."""
    remove_file(home / "recovery-point-offset-checkpoint")
    damage_file(home / "small-segments-0" / f"{42:020d}.log", overwrite, 700, b"\xff\xff")
    (home / "codec-none-0" / f"{0:020d}.timeindex.deleted").touch()


def damage_end(home: Path) -> None:
    """Let a recovery cut the last segment, below its recovery point; another log ends above its."""
    damage_file(home / "small-segments-0" / f"{77:020d}.log", overwrite, 700, b"\xff\xff")
    remove_file(home / "small-segments-0" / f"{0:020d}.timeindex.swap")  # cannot be marked clean


def tear_ends(home: Path) -> None:
    """Leave what a kill leaves: half an append, padded and missing indexes, no newest snapshot."""
    log = home / "codec-none-0" / f"{0:020d}.log"
    append_to_file(log, log.read_bytes()[:30])
    append_to_file(log.with_suffix(".index"), bytes(80))
    remove_file(home / "small-segments-0" / f"{42:020d}.timeindex")
    remove_file(max((home / "small-segments-0").glob("*.snapshot")))


def damage_one_copy(home: Path) -> None:
    """Damage the middle of a log, take another one away, tear the end of a third; keep a copy."""
    remove_file(home / "small-segments-0" / f"{0:020d}.timeindex.swap")
    shutil.copytree(home, home.with_name("copy"))
    damage_file(home / "small-segments-0" / f"{0:020d}.log", overwrite, 700, b"\xff\xff")
    remove_file(home / "small-segments-0" / f"{42:020d}.log")
    log = home / "codec-none-0" / f"{0:020d}.log"
    log.write_bytes(log.read_bytes()[:-100])


def damage_indexes(home: Path) -> None:
    """Let indexes be missing and bad."""
    remove_file(home / "small-segments-0" / f"{0:020d}.index")
    damage_file(home / "small-segments-0" / f"{42:020d}.timeindex", flip, 3)
    damage_file(home / "codec-none-0" / f"{0:020d}.index", flip, 5)
    damage_file(next((home / "codec-none-0").glob("*.snapshot")), flip, 6)


def damage_checkpoints(home: Path) -> None:
    """Let rows lie beyond the end of the log."""
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (home / name).write_bytes(b"0\n2\ncodec-none 0 999999\nsmall-segments 0 999999\n")


def add_metadata_log(home: Path) -> None:
    """Add the metadata log of one of three voters, with half an append at its end."""
    meta = meta_properties.parse((home / "meta.properties").read_bytes())
    inner = home / "__cluster_metadata-0"
    inner.mkdir()
    voters = (Voter(1, meta.directory_id), metadata_logs.voter(2), metadata_logs.voter(3))
    batch = metadata_logs.voters_batch(0, voters)
    (inner / f"{0:020d}.log").write_bytes(batch + batch[:30])
    (inner / "leader-epoch-checkpoint").write_bytes(b"0\n1\n1 0\n")
    (inner / "quorum-state").write_text(json.dumps(metadata_logs.ELECTION))


def redpanda(home: Path) -> None:
    """Put a data directory of Redpanda in its place: damage in the middle, and room behind it."""
    shutil.rmtree(home)
    first, second = rp.log(0, 4), rp.log(14, 4)
    at = rp.positions(first)[2] + 99
    segments = {"0-1-v1.log": first[:at] + b"?" + first[at + 1 :], "13-1-v1.log": b"",
                "14-1-v1.log": second + bytes(4096), "28-2-v1.log": bytes(4096)}  # fmt: skip
    made = rp.data_dir(home.parent / "made", segments)
    (made / "0-1-v1.base_index").write_bytes(rp.index(0, 12, (0, 0))[:-1])
    (made / "0-1-v1.compaction_index").write_bytes(b"keys")
    (made.parents[2]).rename(home)


def redpanda_indexes(home: Path) -> None:
    """The same with segments that are sound."""
    redpanda(home)
    folder = home / "kafka" / "orders" / "0_22"
    (folder / "0-1-v1.log").write_bytes(rp.log(0, 4))
    for name in ("13-1-v1.log", "28-2-v1.log"):
        (folder / name).unlink()


def add_topics(home: Path) -> None:
    """Add a metadata log with the topics of both logs, and a file of offsets; end the swap."""
    remove_file(home / "small-segments-0" / f"{0:020d}.timeindex.swap")
    records = []
    for name in ("small-segments", "codec-none"):
        data = (home / f"{name}-0" / "partition.metadata").read_bytes()
        topic_id = partition_metadata.parse(data).topic_id
        assert topic_id
        records += [metadata_records.topic(name, topic_id),
                    metadata_records.partition(topic_id, 0, [1])]  # fmt: skip
    inner = home / "__cluster_metadata-0"
    inner.mkdir()
    (inner / f"{0:020d}.log").write_bytes(metadata_records.batch(0, *records))
    row = {"topic": "small-segments", "partition": 0, "offset": 42}
    home.with_name("copy").write_text(json.dumps({"partitions": [row], "version": 1}))


def leave(home: Path) -> None:
    """Leave a log dir as it is."""


@dataclass(frozen=True, slots=True)
class Job:
    """One command line; ``{}`` stands for the log dir, ``{copy}`` for another copy or a file."""

    words: tuple[str, ...]
    damage: Callable[[Path], None] = leave
    before: tuple[str, ...] = ()
    """A command that is run first, for the one that is killed to take back."""


_POINTS = "{}/recovery-point-offset-checkpoint"
_RECOVER = ("recover", "--apply", "--accept-loss", "small-segments-0", "--mark-clean", "{}")
_TRUNCATE = ("recover", "--apply", "--truncate-to", "small-segments-0=20",
             "--accept-loss", "small-segments-0")  # fmt: skip
_TRUST = ("recover", "--apply", "--full", "--strategy", "supplement", "--trust-log",
          "--mark-clean", "{}")  # fmt: skip
_TRIM = ("trim", "--apply", "--offsets-file", "{copy}", "--accept-loss", "small-segments-0", "{}")
JOBS = {
    "recover": Job(_RECOVER, damage_logs),
    "recover, supplement": Job((*_RECOVER[:-1], "--strategy", "supplement", "{}"), damage_logs),
    "recover, points fall and rise": Job(_RECOVER, damage_end),
    "recover, trusted": Job(_TRUST, tear_ends),
    "recover, truncated": Job((*_TRUNCATE, "{}")),
    "recover, filled": Job(("recover", "--apply", "--fill-from", "{copy}", "{}"), damage_one_copy),
    "recover, Redpanda": Job(("recover", "--apply", "--accept-loss", "orders-0", "{}"), redpanda),
    "rebuild-index": Job(("rebuild-index", "--apply", "--all", "{}"), damage_indexes),
    "rebuild-index, Redpanda": Job(("rebuild-index", "--apply", "--all", "{}"), redpanda_indexes),
    "checkpoint rebuild": Job(("checkpoint", "rebuild", "--apply", "{}"), damage_checkpoints),
    "checkpoint set": Job(("checkpoint", "set", "--apply", _POINTS, "codec-none-0", "7")),
    "checkpoint set --delete, a row": Job(
        ("checkpoint", "set", "--apply", "--delete", _POINTS, "codec-none-0")
    ),
    "checkpoint set --delete, the file": Job(("checkpoint", "set", "--apply", "--delete", _POINTS)),
    # The metadata log that is kept has no topic: both logs become strays.
    "quorum": Job(
        (
            "quorum",
            "--apply",
            "--voters",
            "1@127.0.0.1:9093",
            "--accept-loss",
            "codec-none-0",
            "--accept-loss",
            "small-segments-0",
            "{}",
        ),
        add_metadata_log,
    ),
    "trim": Job(_TRIM, add_topics),
    "undo": Job(("undo", "--apply", "{undo}"), damage_logs, _RECOVER),
}


class Command:
    """A job on fresh copies of its log dir."""

    def __init__(self, job: Job, source: Path, home: Path) -> None:
        self.job = job
        self.log_dir = home / "data"
        self._kept = home / "kept"
        self._template = home / "template"
        make_log_dir(source, self._template)
        job.damage(self._template)
        (self._template / LOCK).unlink(missing_ok=True)
        os.utime(self._template, ns=(1, 1_700_000_000_123_456_789))
        self.untouched = everything(self._template)
        self.begin()
        self.begun = self.looks()
        with failing(0, lambda: None):
            assert self.run() == 0
        self.done = self.looks()
        assert self.done != self.begun

    def begin(self) -> None:
        """Put fresh copies in place, as they are before the command."""
        for path in (self.log_dir, *self.undo_dirs()):
            shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self._template, self.log_dir)
        if self.job.before:
            with failing(0, lambda: None):
                assert self._run(self.job.before) == 0

    def looks(self) -> Tree:
        """Return names, modes and bytes of the log dir."""
        return result(self.log_dir)

    def calls(self) -> int:
        """Return how many calls of the command change something."""
        self.begin()
        return count(lambda: self.run())

    def late_call(self) -> int:
        """Return the number of a call behind the last change of a file, before the end is noted."""
        self.begin()
        with failing(0, lambda: None) as paths:
            self.run()
        changed = [
            number for number, path in enumerate(paths, 1)
            if self.log_dir in path.parents and path.name != LOCK
        ]  # fmt: skip
        return changed[-1] + 1

    def run(self, errors: Path | None = None) -> int:
        """Run the command; returns its status. What it says on stderr goes to a file."""
        return self._run(self.job.words, errors)

    def undo(self) -> list[int]:
        """Take back every change, the last first; returns the statuses."""
        return [self._run(("undo", "--apply", str(path))) for path in reversed(self.undo_dirs())]

    def undo_dirs(self) -> list[Path]:
        """Return the undo directories that are there."""
        return sorted(self.log_dir.parent.glob(f"{self.log_dir.name}.logtool-undo-*"))

    def is_as_at_first(self, *, but_for_its_time: bool = False) -> bool:
        """Return whether every byte, mode and time is as it was before anything was run.

        Where a kill came before there was an undo directory, the next command takes the lock away.
        """
        found, wanted = everything(self.log_dir), dict(self.untouched)
        lock, root = LOCK.encode().hex(), b".".hex()
        unnamed = lock in found and not self.undo_dirs()
        if unnamed:
            found.pop(lock)
        if unnamed or but_for_its_time:
            found[root] = wanted[root]
        return found == wanted

    def _run(self, words: tuple[str, ...], errors: Path | None = None) -> int:
        undo_dirs = self.undo_dirs()
        undo = str(undo_dirs[0]) if undo_dirs else "none"
        line = [
            word.format(str(self.log_dir), undo=undo, copy=self.log_dir.with_name("copy"))
            for word in words
        ]
        with (
            pytest.MonkeyPatch.context() as patch,
            Path(os.devnull).open("w") as null,
            (errors or Path(os.devnull)).open("w") as stderr,
            redirect_stdout(null),
            redirect_stderr(stderr),
        ):
            # trim wants its undo directory on another disk.
            patch.setattr(trimming, "is_same_disk", lambda place, log_dir: False)
            return cli.run(line)
