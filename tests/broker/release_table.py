"""Writes logtool/metadata/releases.txt from the classes and schemas in the jars of each release.

Run as ``make messages``. `ReleaseFacts.java` asks the classes; the versions of the records are
those of the schemas of the metadata log.
"""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

from broker import message_tables
from broker.install import HarnessError, install, minor

PROGRAM = Path(__file__).with_name("ReleaseFacts.java")
TABLE = Path(__file__).resolve().parents[2] / "logtool" / "metadata" / "releases.txt"
RELEASES = ("3.3.2", "3.4.1", "3.5.2", "3.6.2", "3.7.2", "3.8.1", "3.9.2", "4.0.0", "4.1.1",
            "4.2.1", "4.3.1", "4.4.0")  # fmt: skip
"""One release for each minor release since the first that is ready for production with KRaft."""
_HEAD = """\
# Written by make messages from the jars of the releases named below.
#
# release   minor release and the jars that were read
# parses    levels of metadata.version that a record may have: MetadataVersion.fromFeatureLevel
# offers    levels that a node of this release supports: QuorumFeatures.defaultSupportedFeatureMap
# records   types of the records of the metadata log and their versions: common/metadata/*.json
# control   control records that the release knows: common/message/*.json
# name      name and level of a metadata.version: MetadataVersion
"""


@cache
def facts(version: str) -> list[str]:
    """Return the lines that `ReleaseFacts.java` prints for a release."""
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{install(version)}/*", str(PROGRAM)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise HarnessError(f"ReleaseFacts failed for Kafka {version}:\n{done.stderr}")
    return done.stdout.splitlines()


def section(version: str) -> list[str]:
    """Return the lines of one release, without the names of the levels."""
    schemas = message_tables.schemas(version, "cluster_metadata")
    records = (f"{one['apiKey']}:{one['validVersions']}" for one in schemas)
    control = (one["name"] for one in message_tables.schemas(version, "control_records"))
    first, second = minor(version)
    return [
        f"release {first}.{second} {version}",
        *(f"  {line}" for line in facts(version) if not line.startswith("name ")),
        f"  records {' '.join(records)}",
        f"  control {' '.join(control)}",
    ]


def names() -> list[str]:
    """Return a line for the name of each level, the oldest first."""
    found: dict[int, str] = {}
    for version in RELEASES:
        for line in facts(version):
            word, name, *rest = line.split()
            if word == "name":
                found[int(rest[0])] = name
    return [f"name {name} {level}" for level, name in sorted(found.items())]


def table() -> str:
    """Return the text of the table."""
    parts = [line for version in RELEASES for line in ("", *section(version))]
    return "\n".join([_HEAD.rstrip(), *parts, "", *names()]) + "\n"


def main() -> int:
    """Write the table."""
    TABLE.write_text(table(), "ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main())
