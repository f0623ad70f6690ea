"""Makes tests/data anew with real brokers: ``python tests/broker/regenerate.py``.

Times, ids, and so the archives' bytes differ from run to run; their structure does not.
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
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from broker import scenarios
from broker.dump import DECODERS, Dump, dump, dumpable
from broker.install import VERSIONS

if TYPE_CHECKING:
    from broker.scenarios import Scenario

DATA = Path(__file__).resolve().parents[1] / "data"

_BATCH = re.compile(
    rb"^baseOffset: \d+ lastOffset: \d+ count: (?P<count>\d+) .*producerId: (?P<pid>-?\d+) .*"
    rb"isTransactional: (?P<tx>\w+) isControl: (?P<control>\w+) deleteHorizonMs: "
    rb"(?P<horizon>\S+) .*compresscodec: (?P<codec>\w+)",
    re.MULTILINE,
)


def main() -> None:
    """Build the scenarios, dump copies of them, and write archives and manifest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", action="append", help="only this release of Kafka")
    parser.add_argument("--data", type=Path, default=DATA, help="where to write")
    arguments = parser.parse_args()
    for version in arguments.version or VERSIONS:
        regenerate(version, arguments.data)
    write_manifest(arguments.data)


def regenerate(version: str, data: Path) -> None:
    """Replace the archives of one release."""
    target = data / version
    target.mkdir(parents=True, exist_ok=True)
    for old in target.iterdir():
        old.unlink()
    with tempfile.TemporaryDirectory(prefix="logtool-fixtures-") as temporary:
        for scenario in scenarios.build(version, Path(temporary)):
            started = time.monotonic()
            entry = _store(scenario, target, Path(temporary))
            path = target / f"{scenario.name}.json"
            path.write_text(_to_json(entry))
            seconds = time.monotonic() - started
            print(
                f"{version} {scenario.name}: {len(entry['files'])} files, {seconds:.0f} s to dump"
            )


def write_manifest(data: Path) -> None:
    """Gather the entries of all scenarios, of all releases, into ``manifest.json``."""
    entries = []
    for path in sorted(data.glob("*/*.json")):
        entries.append(json.loads(path.read_text()))
        path.unlink()
    manifest = data / "manifest.json"
    if manifest.exists():
        # Releases that were not made this time keep what was known about them.
        fresh = {entry["kafka_version"] for entry in entries}
        known = json.loads(manifest.read_text())["scenarios"]
        entries += [entry for entry in known if entry["kafka_version"] not in fresh]
    entries.sort(key=lambda entry: (entry["kafka_version"], entry["name"]))
    manifest.write_text(_to_json({"format": 1, "scenarios": entries}))


def write_archive(root: Path, path: Path, top: str) -> None:
    """Write a folder as a tar.xz with sorted names and no owner; modes and mtimes are kept."""
    with (
        lzma.open(path, "wb", preset=9 | lzma.PRESET_EXTREME) as compressed,
        tarfile.open(fileobj=compressed, mode="w|", format=tarfile.PAX_FORMAT) as archive,
    ):
        for member in [root, *sorted(root.rglob("*"))]:
            info = archive.gettarinfo(str(member), f"{top}/{member.relative_to(root)}".rstrip("/."))
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            if member.is_file():
                with member.open("rb") as content:
                    archive.addfile(info, content)
            else:
                archive.addfile(info)


def _store(scenario: Scenario, target: Path, work: Path) -> dict[str, Any]:
    archive = target / f"{scenario.name}.tar.xz"
    write_archive(scenario.root, archive, scenario.name)
    copy = work / f"{scenario.name}.copy"
    # The dump tool writes into the folder of what it dumps, so it gets a copy.
    shutil.copytree(scenario.root, copy)
    output = work / f"{scenario.name}.expected"
    dumps = dump_all(scenario.version, copy, with_records=scenario.with_records)
    for mode, result in dumps.items():
        _write_dump(result, output / mode)
    write_archive(output, target / f"{scenario.name}.expected.tar.xz", output.name)
    entry = _describe(scenario, archive, dumps)
    for folder in (copy, output, scenario.root):
        shutil.rmtree(folder)
    return entry


def dump_all(version: str, root: Path, *, with_records: bool = True) -> dict[str, Dump]:
    """Run the dump tool over all files it understands, in each mode that makes sense for them."""
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
        chosen = [name for name in logs if name.startswith(f"{topic}-")]
        if topic == "__cluster_metadata":
            chosen += [name for name in logs if name == "bootstrap.checkpoint"]
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


def _describe(scenario: Scenario, archive: Path, dumps: dict[str, Dump]) -> dict[str, Any]:
    paths = sorted(path for path in scenario.root.rglob("*") if path.is_file())
    return {
        "kafka_version": scenario.version,
        "name": scenario.name,
        "about": scenario.about,
        "notes": list(scenario.notes),
        "archive": f"{scenario.version}/{archive.name}",
        "archive_sha256": _sha256(archive),
        "expected": f"{scenario.version}/{scenario.name}.expected.tar.xz",
        "dump_failures": {mode: dump.failed for mode, dump in dumps.items() if dump.failed},
        "broker_config": dict(sorted(scenario.broker_config.items())),
        "topics": {
            topic.name: {
                "shows": topic.shows,
                "partitions": topic.partitions,
                "config": topic.config_for(scenario.version),
            }
            for topic in scenario.topics
        },
        "partitions": _facts(scenario.root, dumps),
        "files": {
            path.relative_to(scenario.root).as_posix(): [path.stat().st_size, _sha256(path)]
            for path in paths
        },
    }


def _facts(root: Path, dumps: dict[str, Dump]) -> dict[str, dict[str, int]]:
    """Count, from Kafka's own dumps, what a test may want to look for in a partition."""
    facts: dict[str, dict[str, int]] = {}
    for folder in sorted(path for path in root.iterdir() if path.is_dir()):
        counts: Counter[str] = Counter()
        for name, output in dumps.get("batches", Dump()).stdout.items():
            if name.startswith(f"{folder.name}/") and name.endswith(".log"):
                counts["segments"] += 1
                counts.update(_batch_facts(output))
        for name, output in dumps.get("entries", Dump()).stdout.items():
            if name.startswith(f"{folder.name}/") and name.endswith(".txnindex"):
                counts["aborted_transactions"] += output.count(b"\nversion: ")
        counts["files_waiting_for_deletion"] = len(list(folder.glob("*.deleted")))
        facts[folder.name] = {key: value for key, value in sorted(counts.items()) if value}
    return facts


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
