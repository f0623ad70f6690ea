"""The command lines that are recorded: which commands with which options, on which directories.

A template holds words of a command line, without the format and without ``-j``:

``{}``                    the paths of the place
``{partition}``, ``{log}``, ``{index}``, ...   one of them in the place
``{other}``               another copy of the place, or the place itself
``{copy}``                a copy of the place, which the command may change
``{out}``                 a directory of this case alone
``{losses}``              ``--accept-loss`` for every partition

`` && `` stands between command lines that are run one after the other in one directory.

A few places get every template in every format, by turns with ``-j 1`` and with ``-j 2``. All other
places get some templates of every command, each in one format and with one number of threads: which
ones depends on the names alone.
"""

import shlex
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from zlib import crc32

from outputs import inputs

ROOT = Path(__file__).resolve().parents[2]
FORMATS = ("table", "json", "ndjson", "csv", "tsv", "markdown")
MORE_FORMATS = {
    "dump": ("kafka", "kcat", "console-producer", "parquet"),
    "schema": ("json-schema", "spark-ddl"),
}
WITHOUT_FORMAT = ("kafka-dump-log", "completion", "man")
WITH_JOBS = (
    "verify", "doctor", "stat", "diff", "plan", "recover", "salvage", "undelete", "rebuild-index",
    "gaps", "watermark", "txns", "dirs", "may-delete", "quorum", "cluster", "checkpoint rebuild",
)  # fmt: skip
NOT_RECORDED = {
    "scan": "needs Spark, and has tests of its own",
    "report": "prints what doctor prints, and writes the time into its file",
    "scrub": "writes a state file with inodes, which differ from run to run",
    "case": "writes a file with times, which differ from run to run",
    "generate": "writes man/ and completions/, which are committed and compared by a test",
}
"""Commands of which only the help is recorded, with the reason."""
EVERYTHING = (
    "2.8.2/magic-0",
    "damaged/batches/4.3.1/java-clients",
    "redpanda/healthy/data",
    "redpanda/body/data",
)
"""Places that get every template in every format."""
EACH = {"verify": 2, "dump": 2, "recover": 2}
"""Number of templates of a command for each other place, if it is more than one."""
TEMPLATES: dict[str, tuple[str, ...]] = {
    "doctor": ("{}", "-v {}", "--flavour kafka {}", "--kafka-version 3.3 --fail-on info {}"),
    "verify": (
        "{}",
        "--level quick {}",
        "--level records {}",
        "-v --fail-on info {}",
        "--level records -v --summary-to-stdout {}",
        "--max-findings 3 --color always {}",
        "--flavour kafka {}",
        "--flavour redpanda {}",
        "--max-batch-memory 4K --level records -q {}",
        "{partition}",
        "--level records {log}",
        "--topic *c* --exclude-topic __* {}",
    ),
    "dump": (
        "{}",
        "--records {}",
        "--records --values hex {partition}",
        "--records --values len --show-secrets {}",
        "--records --decode none {}",
        "--records --offset 3..40 {}",
        "--records --timestamp 2026-11-21..2026-11-22 --wide {}",
        "--records --key key-1 {}",
        "--grep 1.*2 --limit 9 {}",
        "--count --header trace {}",
        "--records {log}",
        "--csv-safe {index} {snapshot} {checkpoint}",
        "--max-batch-memory 4K --records {partition}",
        "--flavour redpanda --records {}",
        "--producer 0 {}",
    ),
    "kafka-dump-log": (
        "--files {log} --print-data-log",
        "--files {log},{index}",
        "--files {log} --deep-iteration --skip-record-metadata",
        "--files {index},{snapshot} --index-sanity-check",
        "--files {index} --verify-index-only",
        "--files {log} --offsets-decoder --max-bytes 4000",
        "--files {log} --transaction-log-decoder",
        "--files {internal} --cluster-metadata-decoder",
        "--files {internal} --share-group-state-decoder",
    ),
    "dump-index": (
        "{}", "--join-log {}", "--join-log {partition}", "{index}", "--flavour redpanda {}",
    ),
    "stat": (
        "{}", "--level quick {}", "--level records --segments {}", "--sort records --top 3 -v {}",
        "--segments --wide {partition}", "--fail-on info {}",
    ),
    "diff": ("{} {other}", "--identical {partition} {other_partition}", "-v {other} {}",
             "--digest {out}/digest {} && {out}/digest {other}", "--fingerprint {}"),
    "plan": (
        "{}",
        "-v {}",
        "--kafka-version 3.3 {}",
        "--kafka-version 3.9 --recovery-threads 4 --read-rate 200M {}",
        "--policy last-segment --policy recovery-point {}",
        "--strategy supplement {}",
        "--strategy supplement --trust-log -v {}",
        "--limits nofile=100,max_map_count=100,heap=256M {}",
        "--index-interval-bytes 100 --index-size-max-bytes 1200 -v {partition}",
        "--flavour redpanda {}",
    ),
    "recover": (
        "{}",
        "-v {}",
        "--full {}",
        "--full --strategy supplement -v {}",
        "--full --strategy supplement --trust-log {}",
        "--full --mark-clean --cut-as-broker {}",
        "--from-offset 3 {partition}",
        "--truncate-to {name}=5 {}",
        "--fill-from {other} -v {}",
        "--kafka-version 3.3 --full {partition}",
        "--flavour redpanda --full {}",
        "--apply {copy}",
        "--apply --full -v {losses} {copy}",
        "--apply --full --mark-clean {losses} {copy}",
        "--apply --full --strategy supplement {losses} {copy}",
        "--apply --fill-from {other} {losses} {copy}",
        "--apply --truncate-to {name}=5 --accept-loss {name} {copy}",
        "--apply --full --undo-dir {out}/undo {losses} {copy} && undo {out}/undo"
        " && undo --apply {out}/undo",
    ),
    "salvage": (
        "--output {out}/saved {}",
        "--output {out}/saved --records ndjson -v {}",
        "--output {out}/saved --records kcat {partition}",
        "--output {out}/saved --decode-damaged {}",
        "--output {out}/saved --fill-from {other} {}",
    ),
    "undelete": ("--output {out}/back {}", "--output {out}/back -v --topic *o* {}"),
    "convert": (
        "--to redpanda --output {out}/made {log}",
        "--to kafka --output {out}/made {log}",
        "--to kafka --start-delta 1 --output {out}/made {log}",
    ),
    "rebuild-index": (
        "{}",
        "--all -v {}",
        "--all --kind time --kind offset {partition}",
        "--all --snapshot-every 2K {}",
        "--all --output {out}/built {}",
        "--apply {copy}",
        "--apply --all --index-interval-bytes 300 --undo-dir {out}/undo {copy}"
        " && undo --apply {out}/undo",
    ),
    "gaps": (
        "{}",
        "-v {}",
        "-v --level records --isolation read_committed {}",
        "--ghosts {}",
        "--ghosts --ghost-epoch checkpoint --cleanup-policy compact {partition}",
        "--rounds 2K -v {partition}",
        "--follower {other_partition} {partition}",
        "--fill-losses --output {out}/00000000000000000000.log {partition}",
        "--as-stored --output {out}/filled {partition}",
        "--flavour redpanda {}",
    ),
    "retention": (
        "--at 2026-12-24T00:00:00Z {}",
        "--at 2026-12-24T00:00:00Z --segments --with retention.bytes=5000 {}",
        "--at 2026-12-24T00:00:00Z --key key-0001 {}",
    ),
    "cleaner": (
        "--at 2026-12-24T00:00:00Z {}",
        "--at 2026-12-24T00:00:00Z --records --with min.cleanable.dirty.ratio=0 {}",
        "--at 2026-12-24T00:00:00Z --sizes --with min.cleanable.dirty.ratio=0 {}",
    ),
    "space": ("--at 2026-12-24T00:00:00Z --free 10K {}",),
    "trim": ("--free 1 {}", "--free 1 --apply {copy}"),
    "sanity": (
        "{}", "--mode lazy -v {}", "--mode eager --no-verify {}",
        "--first-access 3 --become-leader 2 --background-threads 1 {}",
        "--project segments=1000,partitions=10 --brokers 3 --limits nofile=100,heap=1G {}",
    ),
    "watermark": ("{}", "-v --kafka-version 3.3 {}", "--leader 1 {} {other}", "--fail-on info {}"),
    "groups": (
        "{}", "-v --now 2026-12-24 {}", "--history group-classic {}",
        "--history group-old {}", "--history g {}", "--sizes {}",
        "--restore-plan --bootstrap-server kafka:9092 {}", "--offsets-retention 1h {}",
    ),
    "metadata show": ("{}", "-v --show-secrets {}"),
    "metadata log": ("{}", "--show-secrets -v {}"),
    "metadata at": ("--offset 20 {}", "--timestamp 2026-11-21T01:32:00Z {}", "--offset 99999 {}"),
    "metadata diff": ("--offset 5..60 {}", "{} {other}"),
    "txns": (
        "{}", "--all -v {}", "--open --now 2026-11-22 {}", "--all --max-age 1m {partition}",
        "--bootstrap-server kafka:9092 {}",
    ),
    "dirs": ("{}", "-v {}", "{} {other}"),
    "may-delete": ("{partition}", "{partition} --among {other}", "-v {partition} --among {}"),
    "cluster": ("{}", "-v 1={} {other}"),
    "remote lineage": ("{}", "--segments -v {}", "--at 2026-11-24 {}"),
    "remote verify": ("--rsm local {}", "--rsm aiven -v {} {other}"),
    "remote rebuild-plan": ("--rsm local {}", "--rsm aiven {} {other}"),
    "remote restore": ("--output {copy}.back {}", "--output {copy}.back {} {other}"),
    "quorum": ("{}", "-v {} {other}", "--voters 1@controller-1:9093 {}",
               "--apply --voters 1@controller-1:9093 {losses} {copy}"),
    "lookup": (
        "--offset 3 {partition}",
        "--offset 99999 {partition}",
        "--timestamp latest {partition}",
        "--timestamp earliest {partition}",
        "--timestamp 2026-11-21T01:32:00Z -v {partition}",
        "--offset 3 --topic {topic} --partition 0 {}",
    ),
    "checkpoint show": (
        "{}", "--unflushed --now 2026-11-23 {}", "--max-unflushed 1K --segment-bytes 64K {}",
        "{checkpoint}", "{partition}",
    ),
    "checkpoint lint": ("{}", "-v {}", "{checkpoint}", "{partition}"),
    "checkpoint rebuild": (
        "{}", "-v {partition}", "{checkpoint}", "--apply {copy}",
        "--apply --undo-dir {out}/undo {copy} && undo --apply {out}/undo",
    ),
    "checkpoint set": (
        "{checkpoint} {name} 7",
        "{checkpoint} {name} --delete",
        "--apply {copy}/{checkpoint_name} {name} 7",
        "--apply {copy}/{checkpoint_name} --delete",
    ),
}  # fmt: skip
"""Arguments by command, for every place."""
SEVERAL: dict[str, tuple[str, ...]] = {
    "diff": ("{}", "--identical -v {}"),
    "watermark": ("{}", "-v --leader 2 {}"),
    "quorum": ("{}", "-v {}"),
    "plan": ("{}",),
    "doctor": ("{}",),
    "dirs": ("{}",),
    "verify": ("{}",),
    "metadata diff": ("{}",),
    "stat": ("{}",),
    "recover": ("--full {}",),
    "groups": ("{}",),
}
"""Arguments by command, for several log dirs together."""
BARE = (
    "bare/empty", "bare/absent", "bare/text.txt", "bare/tx-interleaved_v2-0", "bare/files",
    "bare/damaged.log",
)  # fmt: skip
"""Places that are not log dirs."""
WITHOUT_PLACE: dict[str, tuple[str, ...]] = {
    "watermark simulate": (
        "walk-through",
        "walk-through --steps",
        "kip-101-loss",
        "kip-101-divergence -v",
        "kip-101-loss --truncation leader-epoch",
        "bare/text.txt",
        "",
    ),
    "completion": ("bash", "zsh", "fish", "other", ""),
    "doctor": ("--broker-config bare/server.properties",),
    "plan": ("--broker-config bare/server.properties -v",),
    "verify": (
        "--files-from bare/paths",
        "--level none bare/empty",
        "--topic x 4.3.1/clean",
        "--no-such-option",
        "--partition 9 4.3.1/clean",
        "-j 0 bare/empty",
    ),
    "dump": ("--records --offset x bare/empty", "--json-path $. bare/empty"),
    "recover": ("--from-offset nothing bare/empty", "--trust-log bare/empty"),
    "undo": ("bare/absent", "bare/empty", ""),
    "schema": ("", "batches", "records", "findings", "file", "gaps", "nothing"),
    "salvage": ("bare/tx-interleaved_v2-0",),
    "convert": ("bare/files",),
}
"""Command lines without a place of the lists."""


@dataclass(frozen=True, slots=True)
class Case:
    """One command line, or several that run one after another."""

    words: tuple[tuple[str, ...], ...]
    copied: str = ""
    """The place that is first copied into the directory of the case."""
    directory: str = ""
    """The directory of the case; empty for a case without one."""

    @property
    def name(self) -> str:
        """Return the command lines as they are typed."""
        return " && ".join(shlex.join(("logtool", *words)) for words in self.words)


@dataclass(frozen=True, slots=True)
class Place:
    """The subject of a command line: one directory or file, or several log dirs together."""

    home: Path
    """The directory of all inputs."""
    paths: tuple[str, ...]
    other: str

    @property
    def name(self) -> str:
        return self.paths[0] if len(self.paths) == 1 else f"{Path(self.paths[0]).parent}/*"


def cases(home: Path) -> list[Case]:
    """Return all command lines, each once, for the inputs at `home`."""
    found: dict[str, Case] = {}
    for case in (*_without_place(), *_with_place(home)):
        found.setdefault(case.name, case)
    return list(found.values())


def _with_place(home: Path) -> Iterator[Case]:
    for place in _places(home):
        templates = SEVERAL if len(place.paths) > 1 else TEMPLATES
        for command in templates:
            wanted = templates[command]
            if place.name in EVERYTHING:
                for number, text in enumerate(wanted):
                    for turn, format_name in enumerate(formats(command), number):
                        yield case_of(place, command, text, format_name, 1 + turn % 2)
                continue
            # That the flavour is the wrong one is the same everywhere.
            some = [text for text in wanted if "--flavour" not in text]
            some.sort(key=lambda text: _turn(place.name, command, text))
            for text in some[: EACH.get(command, 1)]:
                turn = _turn(place.name, text, command)
                names = formats(command)
                jobs = 1 + turn // len(names) % 2
                yield case_of(place, command, text, names[turn % len(names)], jobs)


def _turn(*texts: str) -> int:
    """Return a pseudo-random number that depends on the texts alone."""
    return crc32(" ".join(texts).encode("utf-8", "surrogateescape"))


def formats(command: str) -> Sequence[str]:
    """Return the output formats of a command, or one empty name."""
    if command in WITHOUT_FORMAT:
        return ("",)
    return (*FORMATS, *MORE_FORMATS.get(command, ()))


def _places(home: Path) -> Iterator[Place]:
    archives = sorted(
        path for pattern in ("[0-9]*/*", "damaged/*/*/*") for path in home.glob(pattern)
    )
    for archive in archives:
        log_dirs = [str(path.relative_to(home)) for path in inputs.log_dirs(archive)]
        for number, log_dir in enumerate(log_dirs):
            # A damaged directory has its sound original; a replica has its neighbour.
            sound = log_dir.split("/", 2)[2] if log_dir.startswith("damaged/") else log_dir
            neighbour = log_dirs[(number + 1) % len(log_dirs)]
            yield Place(home, (log_dir,), sound if sound != log_dir else neighbour)
        if len(log_dirs) > 1:
            yield Place(home, tuple(log_dirs), log_dirs[0])
    for path in sorted((home / "redpanda").iterdir()):
        name = f"redpanda/{path.name}/data"
        yield Place(home, (name,), "redpanda/healthy/data")
    for name in BARE:
        yield Place(home, (name,), "4.3.1/clean")


def case_of(place: Place, command: str, template: str, format_name: str, jobs: int) -> Case:
    """Return the case of a template at a place, in one format and with a number of threads."""
    turn = _turn(place.name, template)
    more = _more(command, format_name, jobs)
    number = _turn(place.name, command, template, *more)
    directory = f"../work/{number:08x}"
    values = _values(place, turn)
    values["out"] = directory
    values["copy"] = f"{directory}/{Path(place.paths[0]).name}"
    lines = []
    for text in template.split(" && "):
        first, _, rest = text.partition(" ")
        own, text = (("undo",), rest) if first == "undo" else (tuple(command.split()), text)
        options = more if own[0] != "undo" else ()
        if format_name == "parquet":
            options = (*options, "--output", "{out}/table.parquet")
        words = [word for one in (*options, *text.split()) for word in _filled(one, values, place)]
        lines.append((*own, *words))
    needs_one = any(directory in word for line in lines for word in line)
    copied = place.paths[0] if "{copy}" in template else ""
    return Case(tuple(lines), copied, directory if needs_one else "")


def _more(command: str, format_name: str, jobs: int) -> tuple[str, ...]:
    options = ("-j", str(jobs)) if command in WITH_JOBS else ()
    return (*options, "-f", format_name) if format_name else options


def _filled(word: str, values: dict[str, str], place: Place) -> list[str]:
    """Return the replacement of a word of a template."""
    if word == "{}":
        return list(place.paths)
    if word == "{losses}":
        return values["losses"].split()
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", value)
    return [word]


@cache
def _files(path: Path) -> list[Path]:
    """Return the files of a place, by name."""
    inside = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [one for one in inside if one.is_file()]


def _values(place: Place, turn: int) -> dict[str, str]:
    """Return the values of the placeholders of a template; `turn` chooses one of several."""
    path = place.home / place.paths[0]
    files = _files(path)

    def one_of(found: Sequence[Path]) -> str:
        chosen = found[turn % len(found)] if found else path / "absent"
        return str(chosen.relative_to(place.home))

    def ending(*suffixes: str) -> list[Path]:
        return [one for one in files if one.name.endswith(suffixes)]

    logs = [one for one in ending(".log") if one.stat().st_size] or ending(".log")
    homes = sorted({one.parent for one in logs if one.parent != place.home})
    own = [one for one in homes if not one.name.startswith("__")] or homes
    partition = one_of(own) if own and path.is_dir() else place.paths[0]
    in_other = f"{place.other}/{Path(partition).relative_to(place.paths[0])}"
    name = Path(partition).name
    if path.parts[-1] == "data":  # Redpanda's partitions are NUMBER_REVISION in TOPIC
        name = f"{Path(partition).parent.name}-{name.partition('_')[0]}"
    checkpoint = one_of(ending("-checkpoint"))
    named = [one.name for one in homes if one.name.rpartition("-")[2].isdigit()]
    return {
        "losses": " ".join(f"--accept-loss {one}" for one in named),
        "other": place.other,
        "partition": partition,
        "other_partition": in_other,
        "name": name,
        "topic": name.rpartition("-")[0] or name,
        "log": one_of([one for one in logs if not one.parent.name.startswith("__")] or logs),
        "internal": one_of([one for one in logs if one.parent.name.startswith("__")]),
        "index": one_of(ending("index")),
        "snapshot": one_of(ending(".snapshot", ".checkpoint")),
        "checkpoint": checkpoint,
        "checkpoint_name": checkpoint.removeprefix(place.paths[0] + "/"),
    }


def _without_place() -> Iterator[Case]:
    """Yield the help of every command, command lines without directories, and wrong ones."""
    commands = dict.fromkeys((*TEMPLATES, *WITHOUT_PLACE, *NOT_RECORDED, "explain", "man"))
    for command in commands:
        yield Case(((*command.split(), "--help"),))
    for words in ((), ("--help",), ("--version",), ("checkpoint",), ("metadata",), ("nothing",),
                  ("doctor", "--environment", "-f", "json")):  # fmt: skip
        yield Case((words,))
    for command, templates in WITHOUT_PLACE.items():
        for text in templates:
            for format_name in formats(command):
                options = ("-f", format_name) if format_name else ()
                yield Case(((*command.split(), *text.split(), *options),))
    codes = sorted(tomllib.loads((ROOT / "logtool" / "catalogue.toml").read_text()))
    for format_name in FORMATS:
        yield Case((("explain", "-f", format_name),))
        for code in codes[:: 1 if format_name == "json" else 9]:
            yield Case((("explain", code, "-f", format_name),))
    yield Case((("man",),))
    for page in sorted({path.stem for path in (ROOT / "man").glob("logtool*.[1-9]")}):
        yield Case((("man", page.removeprefix("logtool-")),))
