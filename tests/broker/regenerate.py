"""Makes tests/data again with real brokers: ``python tests/broker/regenerate.py``.

Times and ids, and so the bytes of the archives, differ from run to run; the structure does not.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import re
import shutil
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from broker import failures, java_clients, replicas, scenarios, zookeeper_scenarios
from broker.dump import DECODERS, Dump, dump, dumpable
from broker.install import KAFKA_PER_APPEND, VERSIONS, ZOOKEEPER_VERSIONS

if TYPE_CHECKING:
    from broker.scenarios import Scenario

PER_APPEND_SCENARIOS = ["compaction", "replicas"]
"""Scenarios of the older release; the scenario ``clean`` of the others contains ``compaction``."""

DATA = Path(__file__).resolve().parents[1] / "data"

_BATCH = re.compile(
    rb"^baseOffset: \d+ lastOffset: \d+ count: (?P<count>\d+) .*producerId: (?P<pid>-?\d+) .*"
    rb"isTransactional: (?P<tx>\w+) isControl: (?P<control>\w+) deleteHorizonMs: "
    rb"(?P<horizon>\S+) .*compresscodec: (?P<codec>\w+)",
    re.MULTILINE,
)


def builders(version: str, work: Path, data: Path) -> Mapping[str, Iterator[Scenario]]:
    """Return the builders of the scenarios of a release, by the names of the scenarios."""
    if version in ZOOKEEPER_VERSIONS:
        return zookeeper_scenarios.builders(version, work)
    archives = data / version
    return {
        "formatted empty": scenarios.fresh(version, work),
        "default-settings": scenarios.default_settings(version, work),
        "compaction": scenarios.compaction(version, work),
        "clean": scenarios.clean(version, work),
        "cleaned": scenarios.cleaned(version, work),
        "running killed": scenarios.killed(version, work),
        "killed-recovered": failures.recovered(version, archives / "killed.tar.xz", work),
        "torn": failures.torn(version, work),
        "torn-recovered": failures.recovered(version, archives / "torn.tar.xz", work),
        "replicas": replicas.replicas(version, work),
        "two-log-dirs": replicas.two_log_dirs(version, work),
        "java-clients": java_clients.java_clients(version, work),
    }


def main() -> None:
    """Build the scenarios, dump copies of them, and write archives and manifest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", action="append", help="only this release of Kafka")
    parser.add_argument("--scenario", action="append", help="only this scenario (and its twin)")
    parser.add_argument("--dump-only", action="store_true", help="keep archives, dump them again")
    parser.add_argument("--data", type=Path, default=DATA, help="where to write")
    arguments = parser.parse_args()
    manifest = Manifest(arguments.data / "manifest.json")
    for version in arguments.version or (*VERSIONS, KAFKA_PER_APPEND, *ZOOKEEPER_VERSIONS):
        started = time.monotonic()
        if arguments.dump_only:
            dump_again(manifest, version, arguments.scenario)
        else:
            only = PER_APPEND_SCENARIOS if version == KAFKA_PER_APPEND else None
            regenerate(manifest, version, arguments.scenario or only)
        print(f"{version}: {time.monotonic() - started:.0f} s")


class Manifest:
    """``manifest.json``: an entry for each scenario; those not made this time stay."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = path.parent
        self.entries: dict[tuple[str, str], dict[str, Any]] = {}
        if path.exists():
            for entry in json.loads(path.read_text())["scenarios"]:
                self.entries[entry["kafka_version"], entry["name"]] = entry

    def put(self, entry: dict[str, Any]) -> None:
        """Add or replace an entry and write the file."""
        self.entries[entry["kafka_version"], entry["name"]] = entry
        ordered = [entry for _, entry in sorted(self.entries.items())]
        self.path.write_text(_to_json({"format": 1, "scenarios": ordered}))


def regenerate(manifest: Manifest, version: str, names: list[str] | None) -> None:
    """Build scenarios of a release with real brokers and replace their archives."""
    (manifest.data / version).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="logtool-fixtures-") as temporary:
        work = Path(temporary)
        for made, scenarios_made in builders(version, work, manifest.data).items():
            wanted = made != "compaction" if names is None else set(names) & set(made.split())
            if not wanted:
                continue
            for scenario in scenarios_made:
                entry = scenario.entry()
                archive = manifest.data / entry["archive"]
                write_archive(scenario.root, archive, scenario.name)
                shutil.rmtree(scenario.root)
                manifest.put(entry | dump_archive(manifest.data, entry))
                print(f"{version} {scenario.name}: {archive.stat().st_size} bytes", flush=True)


def dump_again(manifest: Manifest, version: str, names: list[str] | None) -> None:
    """Run the dump tool once more on the archives of a release."""
    for entry in list(manifest.entries.values()):
        if entry["kafka_version"] == version and (not names or entry["name"] in names):
            manifest.put(entry | dump_archive(manifest.data, entry))
            print(f"{version} {entry['name']}: dumped", flush=True)


def write_archive(root: Path, path: Path, top: str, *, keep_mtimes: bool = True) -> None:
    """Write a folder as a tar.xz with sorted names and no owner; modes are kept."""
    with (
        lzma.open(path, "wb", preset=9 | lzma.PRESET_EXTREME) as compressed,
        tarfile.open(fileobj=compressed, mode="w|", format=tarfile.PAX_FORMAT) as archive,
    ):
        for member in [root, *sorted(root.rglob("*"))]:
            info = archive.gettarinfo(str(member), f"{top}/{member.relative_to(root)}".rstrip("/."))
            info.uid = info.gid = 0
            info.mtime = info.mtime if keep_mtimes else 0
            info.uname = info.gname = ""
            if member.is_file():
                with member.open("rb") as content:
                    archive.addfile(info, content)
            else:
                archive.addfile(info)


def dump_archive(data: Path, entry: dict[str, Any]) -> dict[str, Any]:
    """Dump the files of an archive; return the part of the manifest that follows from them."""
    archive = data / entry["archive"]
    with tempfile.TemporaryDirectory(prefix="logtool-dump-") as temporary:
        with tarfile.open(archive) as packed:
            packed.extractall(temporary, filter="tar")
        # The dump tool writes into the directory that it dumps, so the files are listed first.
        root = Path(temporary) / entry["name"]
        files = {
            path.relative_to(root).as_posix(): [path.stat().st_size, _sha256(path)]
            for path in sorted(root.rglob("*"))
            if path.is_file()
        }
        dumps = dump_all(entry["kafka_version"], root, with_records=entry["with_records"])
        output = Path(temporary) / f"{entry['name']}.expected"
        for mode, result in dumps.items():
            _write_dump(result, output / mode)
        write_archive(output, data / entry["expected"], output.name, keep_mtimes=False)
        facts = _facts(root, dumps)
    return {
        "archive_sha256": _sha256(archive),
        "dump_failures": {mode: dump.failed for mode, dump in dumps.items() if dump.failed},
        "partitions": facts,
        "files": files,
    }


def dump_all(version: str, root: Path, *, with_records: bool = True) -> dict[str, Dump]:
    """Run the dump tool on all files it understands, in each mode that fits them."""
    files = dumpable(root)
    logs = [name for name in files if name.endswith((".log", ".checkpoint"))]
    others = [name for name in files if not name.endswith((".log", ".checkpoint"))]
    indexes = [name for name in others if name.endswith((".index", ".timeindex"))]
    dumps = {
        "batches": dump(version, root, logs),
        "entries": dump(version, root, others),
        "sanity": dump(version, root, indexes, "--index-sanity-check"),
        "decoded": Dump(),
    }
    if with_records:
        dumps["records"] = dump(version, root, logs, "--deep-iteration", "--print-data-log")
    for topic, flag in DECODERS.items():
        chosen = [name for name in logs if f"/{topic}-" in f"/{name}"]
        if topic == "__cluster_metadata":
            chosen += [name for name in logs if Path(name).name == "bootstrap.checkpoint"]
        part = dump(version, root, chosen, flag)
        dumps["decoded"].stdout |= part.stdout
        dumps["decoded"].stderr |= part.stderr
        dumps["decoded"].failed += part.failed
    return {mode: result for mode, result in dumps.items() if result.stdout}


def _write_dump(result: Dump, folder: Path) -> None:
    for name, text in result.stdout.items():
        path = folder / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    for name, text in result.stderr.items():
        path = folder / f"{name or 'other'}.stderr.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)


def _facts(root: Path, dumps: dict[str, Dump]) -> dict[str, dict[str, int]]:
    """Count the features of each partition that tests look for, from Kafka's dumps."""
    folders = sorted(
        {path.parent for path in root.rglob("*") if path.suffix in (".log", ".deleted")}
    )
    counts: dict[str, Counter[str]] = {
        folder.relative_to(root).as_posix(): Counter() for folder in folders
    }
    for name, output in dumps.get("batches", Dump()).stdout.items():
        if name.endswith(".log"):
            folder = name.rpartition("/")[0]
            counts[folder]["segments"] += 1
            counts[folder].update(_batch_facts(output))
    for name, output in dumps.get("entries", Dump()).stdout.items():
        if name.endswith(".txnindex"):
            counts[name.rpartition("/")[0]]["aborted_transactions"] += output.count(b"\nversion: ")
    for path in folders:
        waiting = len(list(path.glob("*.deleted")))
        counts[path.relative_to(root).as_posix()]["files_waiting_for_deletion"] = waiting
    return {
        folder: {key: value for key, value in sorted(found.items()) if value}
        for folder, found in counts.items()
    }


def _batch_facts(output: bytes) -> Iterable[str]:
    for match in _BATCH.finditer(output):
        yield "batches"
        yield f"codec_{match['codec'].decode().lower()}"
        if match["count"] == b"0":
            yield "empty_batches"
        if match["horizon"] != b"OptionalLong.empty":
            yield "delete_horizons"
        if match["control"] == b"true":
            yield "control_batches"
        elif match["tx"] == b"true":
            yield "transactional_batches"


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _to_json(value: Any) -> str:
    """Indent, but keep a list of plain values on one line: there are thousands of them."""
    text = json.dumps(value, indent=1, ensure_ascii=False)
    return re.sub(r"\[\s+(\d+),\s+(\"[0-9a-f]{64}\")\s+\]", r"[\1, \2]", text) + "\n"


if __name__ == "__main__":
    main()
