"""Every damage of the campaign, to each small file that a broker reads at its start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

Damage = Callable[[bytes], bytes | None]
"""A function from the sound bytes to the damaged bytes; None removes the file."""

CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)

OF_A_PARTITION = ("partition.metadata", "leader-epoch-checkpoint")
METADATA = "__cluster_metadata-0"


@dataclass(frozen=True)
class Case:
    """One damaged file; a name such as ``partition.metadata: empty``."""

    file: str
    """``.../`` before the name stands for a partition of the log dir."""
    damage: str
    change: Damage
    suffix: str = ""
    """The suffix of the directory of a partition that is not in use, such as ``-stray``."""
    alone: bool = False
    """True if the outcome cannot be distinguished from that of other cases in the same start."""

    @property
    def name(self) -> str:
        """Return a text that identifies the case."""
        kind = f" of {self.suffix}" if self.suffix else ""
        return f"{self.file}{kind}: {self.damage}"

    def apply(self, log_dir: Path) -> None:
        """Damage the file in a log dir."""
        folder = log_dir
        if self.file.startswith(METADATA):
            folder = log_dir / METADATA
        elif self.file in OF_A_PARTITION:
            folder = sorted(path for path in log_dir.iterdir() if path.name[0] in "kc"
                            and path.is_dir())[0]  # fmt: skip
            if self.suffix:
                folder = folder.rename(f"{folder}.{'0123456789abcdef' * 2}{self.suffix}")
        path = folder / self.file.removeprefix(f"{METADATA}/")
        if path.name.startswith("*"):
            path = sorted(folder.glob(path.name))[-1]
        data = path.read_bytes() if path.exists() else b""
        path.unlink(missing_ok=True)  # KRaft snapshots may not be written
        changed = self.change(data)
        if changed is not None:
            path.write_bytes(changed)


def any_file(file: str) -> Iterator[Case]:
    """Yield the damages that fit a file of any format."""
    rng = Random(file)
    noise, ascii_noise = rng.randbytes(64), "".join(rng.choices("abcxyz{}: =\n", k=80)).encode()
    yield Case(file, "missing", lambda data: None)
    yield Case(file, "empty", lambda data: b"")
    yield Case(file, "NUL bytes", lambda data: bytes(len(data) or 64))
    yield Case(file, "random bytes", lambda data: noise)
    yield Case(file, "random characters", lambda data: ascii_noise)


def text_file(file: str, lines: int) -> Iterator[Case]:
    """Yield the damages of any file, and the file cut after and in each of its first lines."""
    yield from any_file(file)
    for count in range(1, lines):
        yield Case(
            file, f"cut behind line {count}",
            lambda data, count=count: b"".join(data.splitlines(keepends=True)[:count]),
        )  # fmt: skip
    for count in range(lines):
        yield Case(file, f"cut in line {count + 1}", lambda data, count=count: _cut(data, count))
    yield Case(file, "one more line", lambda data: data.rstrip(b"\n") + b"\nmore\n")
    yield Case(file, "a blank line at the end", lambda data: data.rstrip(b"\n") + b"\n\n")
    yield Case(file, "a NUL byte at the end", lambda data: data + b"\0")
    yield Case(file, "CRLF line ends", lambda data: data.replace(b"\n", b"\r\n"))


def checkpoint(file: str, entry: str) -> Iterator[Case]:
    """Yield the damages of a checkpoint whose entries have the form of `entry`."""
    yield from text_file(file, 4)
    for number, damage in (
        (b"1", "1"), (b"-1", "-1"), (b"x", "no number"), (b" 0", "a space first"),
    ):  # fmt: skip
        yield Case(file, f"version {damage}", _with_line(0, number))
    for number, damage in (
        (b"99", "too high"), (b"1", "too low"), (b"0", "0"), (b"-1", "negative"),
        (b"x", "no number"), (b"9999999999", "beyond an int"),
    ):  # fmt: skip
        yield Case(file, f"count {damage}", _with_line(1, number))
    fields = entry.encode().split()
    for place, field in enumerate(fields):
        name = field.decode()
        others = fields[:place] + fields[place + 1 :]
        yield Case(file, f"no {name}", _with_line(2, b" ".join(others)))
        if name != "topic":
            for value, damage in (
                (b"x", "no number"), (b"-1", "negative"), (b"99999999999999999999", "beyond a long")
            ):  # fmt: skip
                line = [*_example(fields[:place]), value, *_example(fields[place + 1 :])]
                yield Case(file, f"{name} {damage}", _with_line(2, b" ".join(line)))
    whole = _example(fields)
    yield Case(file, "a field too many", _with_line(2, b" ".join([*whole, b"7"])))
    yield Case(file, "a space first", _with_line(2, b" " + b" ".join(whole)))
    yield Case(file, "not UTF-8", _with_line(2, b"\xff\xfe " + b" ".join(whole[1:])))


def _example(fields: list[bytes]) -> list[bytes]:
    known = {b"topic": b"kept", b"partition": b"0", b"offset": b"3", b"epoch": b"0"}
    return [known[field] for field in fields]


def partition_metadata() -> Iterator[Case]:
    """Yield the damages of ``partition.metadata``."""
    file = "partition.metadata"
    yield from text_file(file, 2)
    for line, damage in (
        (b"version: 1", "version 1"), (b"version: -1", "version -1"), (b"version: x", "version x"),
        (b"version:0", "no space in line 1"), (b"Version: 0", "another word for version"),
        (b"version: 0: 0", "line 1 of three parts"), (b" version: 0", "a space first"),
    ):  # fmt: skip
        yield Case(file, damage, _with_line(0, line))
    for line, damage in (
        (b"topic_id:", "no id"), (b"topic_id: ", "no id but a space"),
        (b"topic_id: AAAA", "a short id"), (b"topic_id: " + b"A" * 22, "a zero id"),
        (b"topic_id: " + b"A" * 40, "a long id"), (b"topic_id: " + b"*" * 22, "no id but 22 *"),
        (b"topic_id:" + b"B" * 22, "no space in line 2"),
    ):  # fmt: skip
        yield Case(file, damage, _with_line(1, line))
    yield Case(file, "another word for topic_id", lambda d: d.replace(b"topic_id", b"topicId"))
    yield Case(file, "swapped lines", lambda d: b"\n".join(d.splitlines()[::-1]))
    yield Case(file, "another id", _with_line(1, b"topic_id: " + b"C" * 21 + b"A"))


def meta_properties() -> Iterator[Case]:
    """Yield the damages of the ``meta.properties`` of one log dir."""
    file = "meta.properties"
    yield from any_file(file)
    for key in (b"version", b"node.id", b"cluster.id", b"directory.id"):
        name = key.decode()
        yield Case(file, f"no {name}", lambda d, key=key: _without(d, key))
        yield Case(file, f"an empty {name}", lambda d, key=key: _without(d, key) + key + b"=\n")
        for value in (b"0", b"2", b"9", b"-1", b"x"):
            yield Case(
                file, f"{name} {value.decode()}",
                lambda d, key=key, value=value: _without(d, key) + key + b"=" + value + b"\n",
            )  # fmt: skip
    yield Case(file, "a backslash-u with no digits", lambda d: d + b"x=\\uZZZZ\n")
    yield Case(file, "a line that is no property", lambda d: d + b"some words here\n")
    yield Case(file, "CRLF line ends", lambda d: d.replace(b"\n", b"\r\n"))


def quorum_state() -> Iterator[Case]:
    """Yield the damages of ``quorum-state``, a line of JSON."""
    file = f"{METADATA}/quorum-state"
    yield from any_file(file)
    yield Case(file, "cut in the middle", lambda d: d[: len(d) // 2])
    for old, new, damage in (
        (b'"data_version":', b'"version":', "no data_version"),
        (b'"leaderEpoch":', b'"leaderEpo":', "no leaderEpoch"),
        (b'"leaderId":', b'"leader":', "no leaderId"),
        (b'"votedId":', b'"voted":', "no votedId"),
        (b'"leaderEpoch":', b'"leaderEpoch":"x","y":', "leaderEpoch no number"),
        (b'"leaderEpoch":', b'"leaderEpoch":-5,"y":', "leaderEpoch negative"),
    ):
        yield Case(file, damage, lambda d, old=old, new=new: d.replace(old, new))
    for version in (b"7", b"-1", b'"x"'):
        yield Case(
            file, f"data_version {version.decode()}",
            lambda d, v=version: d[: d.rindex(b":") + 1] + v + b"}" if d.rstrip().endswith(b"}")
            else d,
        )  # fmt: skip


def binary_file(file: str) -> Iterator[Case]:
    """Yield the damages of a file of record batches."""
    yield from any_file(file)
    yield Case(file, "cut in the middle", lambda d: d[: len(d) // 2])
    yield Case(file, "the last byte gone", lambda d: d[:-1])
    yield Case(file, "a flipped bit", lambda d: d[:-3] + bytes([d[-3] ^ 1]) + d[-2:])
    yield Case(file, "zeros at the end", lambda d: d + bytes(100))


def clean_marker() -> Iterator[Case]:
    """Yield the damages of the marker of an orderly stop."""
    file = ".kafka_cleanshutdown"
    yield from any_file(file)
    yield Case(file, "cut in the middle", lambda d: d[: len(d) // 2])
    yield Case(file, "version 9", lambda d: b'{"version":9,"brokerEpoch":5}')
    yield Case(file, "no brokerEpoch", lambda d: b'{"version":0}')
    yield Case(file, "brokerEpoch no number", lambda d: b'{"version":0,"brokerEpoch":"x"}')


def in_a_log_dir() -> Iterator[Case]:
    """Yield the cases for one log dir of several, without the metadata log."""
    for file in CHECKPOINTS:
        yield from checkpoint(file, "topic partition offset")
    yield from checkpoint("leader-epoch-checkpoint", "epoch offset")
    yield from partition_metadata()
    yield from meta_properties()
    yield from clean_marker()
    yield from any_file(".lock")
    for suffix in ("-delete", "-stray", "-future"):
        for case in partition_metadata():
            if case.damage in ("another word for version", "another id", "empty", "a zero id"):
                yield replace(case, suffix=suffix, alone=True)


def in_the_only_log_dir() -> Iterator[Case]:
    """Yield the cases for the only log dir of a broker."""
    chosen = (
        "empty", "version 1", "count too low", "no offset", "offset beyond a long",
        "count negative", "random bytes",
    )  # fmt: skip
    for file in CHECKPOINTS:
        for case in checkpoint(file, "topic partition offset"):
            if case.damage in chosen:
                yield case
    for case in partition_metadata():
        if case.damage in ("missing", "empty", "a zero id", "another id", "swapped lines"):
            yield case
    yield from quorum_state()
    yield from binary_file("bootstrap.checkpoint")
    yield from any_file(f"{METADATA}/partition.metadata")
    yield from any_file(f"{METADATA}/leader-epoch-checkpoint")


def in_the_first_log_dir() -> Iterator[Case]:
    """Yield the cases for the log dir with the metadata log, one of several log dirs."""
    for file in CHECKPOINTS:
        for case in checkpoint(file, "topic partition offset"):
            if case.damage in ("version 1", "offset no number"):
                yield case
    yield from (case for case in partition_metadata() if case.damage == "a zero id")


def after_a_kill() -> Iterator[Case]:
    """Yield the cases for a start that recovers all logs from their first segment."""
    for file in CHECKPOINTS[:2]:
        for case in checkpoint(file, "topic partition offset"):
            if case.damage in ("version 1", "offset no number"):
                yield case
    chosen = ("a zero id", "missing", "NUL bytes", "another id", "empty")
    yield from (case for case in partition_metadata() if case.damage in chosen)


def _cut(data: bytes, count: int) -> bytes:
    lines = data.splitlines(keepends=True)
    kept = lines[count][: max(1, len(lines[count]) // 2)] if count < len(lines) else b""
    return b"".join(lines[:count]) + kept


def _with_line(number: int, line: bytes) -> Damage:
    def change(data: bytes) -> bytes:
        lines = data.split(b"\n")
        return b"\n".join([*lines[:number], line, *lines[number + 1 :]])

    return change


def _without(data: bytes, key: bytes) -> bytes:
    kept = [line for line in data.splitlines(keepends=True) if not line.startswith(key + b"=")]
    return b"".join(kept)
