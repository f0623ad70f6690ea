"""Finds or fetches the jars of an Apache Kafka release.

The jars come from Maven Central through ``mvn`` and are kept under ``$LOGTOOL_KAFKA_CACHE``, by
default ``~/.cache/logtool/kafka``, one folder for each release.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

KAFKA_4 = "4.3.1"
"""The 4.x release that most tests run against."""

KAFKA_NEWEST = "4.4.0"
"""The newest release; the tables of messages are made from its jars."""

KAFKA_3 = "3.9.2"
"""The newest 3.9.x release; 3.9 is the last to accept small ``segment.bytes`` directly."""

KAFKA_PER_APPEND = "3.9.0"
"""A release that writes at most one index entry for each append of several batches.

Releases up to 3.9.0 and 4.0.0 index like this, 3.9.1 and 4.3.1 do not.
"""

VERSIONS = (KAFKA_4, KAFKA_3)
"""The releases that tests run against."""

LOADING_VERSIONS = (*VERSIONS, "3.7.2", "3.3.2")
"""The releases with which the load of damaged logs is compared, case by case."""

KAFKA_2 = "2.8.2"
"""The last release that needs ZooKeeper; its jars bring the ZooKeeper that every older one uses."""

ZOOKEEPER_VERSIONS = (KAFKA_2, "2.2.2", "1.0.2")
"""The releases that tests run with ZooKeeper, see ``zookeeper.py``."""

HERE = Path(__file__).resolve().parent


class HarnessError(Exception):
    """A failure of the broker or of one of its tools."""


def major(version: str) -> int:
    """Return the first number of a release such as ``4.3.1``."""
    return release(version)[0]


def release(version: str) -> tuple[int, ...]:
    """Return the numbers of a release: (4, 3, 1) for ``4.3.1``."""
    return tuple(int(number) for number in version.split("."))


def minor(version: str) -> tuple[int, int]:
    """Return the numbers of a minor release: (4, 3) for ``4.3.1``."""
    first, second, *_ = release(version)
    return first, second


def cache_root() -> Path:
    """Return the folder that keeps one sub-folder of jars for each release."""
    named = os.environ.get("LOGTOOL_KAFKA_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "logtool" / "kafka"


def available(version: str = KAFKA_4) -> str | None:
    """Return why a broker of this release cannot be run here, or None when it can.

    A release that is already in the cache needs Java only.
    """
    if shutil.which("java") is None:
        return "java is not on the PATH"
    if not (cache_root() / version).is_dir() and shutil.which("mvn") is None:
        return f"Kafka {version} is not in the cache and mvn is not on the PATH"
    try:
        import confluent_kafka  # noqa: F401
    except ImportError:
        return "the Python package confluent-kafka is not installed"
    return None


def install(version: str) -> Path:
    """Return the folder with the jars of a release, fetching them the first time.

    The folder appears by one rename, so that an interrupted download leaves nothing half done.
    """
    target = cache_root() / version
    if target.is_dir():
        return target
    with fetching(target) as temporary:
        if not target.is_dir():
            jars = temporary / "jars"
            _copy_jars(version, jars)
            jars.rename(target)
    return target


@contextmanager
def fetching(target: Path) -> Iterator[Path]:
    """Yield a folder next to `target` for a download, to one process at a time.

    Two runs of Maven that fill one local repository write to the same ``.part`` files: one fails.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with (cache_root() / ".fetch.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetch-") as temporary:
            yield Path(temporary)


def tiered_storage(version: str) -> Path:
    """Return the jar with Kafka's own remote storage for tests, fetching it the first time.

    ``LocalTieredStorage`` in it keeps segments in a folder.
    """
    name = f"kafka-storage-{version}-test.jar"
    target = cache_root() / f"{version}-tests" / name
    if target.exists():
        return target
    with fetching(target) as temporary:
        if target.exists():
            return target
        artifact = f"-Dartifact=org.apache.kafka:kafka-storage:{version}:jar:test"
        command = ["mvn", "--batch-mode", "--quiet", f"--file={HERE / 'pom.xml'}"]
        command += [f"-Dkafka.version={version}", artifact, f"-DoutputDirectory={temporary}"]
        command.append("dependency:copy")
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
        if done.returncode != 0:
            raise HarnessError(f"mvn could not fetch {name}:\n{done.stdout}{done.stderr}")
        (temporary / name).rename(target)
    return target


def old_client() -> Path:
    """Return a folder with the Python package of librdkafka 2.10, fetching it the first time."""
    target = cache_root().parent / "librdkafka-2.10"
    if target.is_dir():
        return target
    with fetching(target) as temporary:
        if not target.is_dir():
            made = temporary / "packages"
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
            command += ["--disable-pip-version-check", "--require-hashes", "--only-binary=:all:"]
            command += [f"--target={made}", f"--requirement={HERE / 'librdkafka-2.10.txt'}"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
            if done.returncode != 0:
                raise HarnessError(f"pip could not fetch librdkafka 2.10:\n{done.stderr}")
            made.rename(target)
    return target


def class_archive(version: str) -> Path:
    """Return the place of the archive of the classes of a release, see `kafka.share_classes`."""
    return cache_root() / f"{version}.jsa"


def java_command(version: str, main_class: str, *, heap: str, level: str) -> list[str]:
    """Return the start of a command line that runs a class of this release.

    ``heap`` is a Java size such as ``512m``; ``level`` is the least severe level to log.
    """
    if major(version) >= 4:
        logging = f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}"
    else:
        logging = f"-Dlog4j.configuration=file:{HERE / 'log4j.properties'}"
    archive = class_archive(version)
    # An archive that another Java wrote is not used; nothing about that goes into the output.
    shared = [f"-XX:SharedArchiveFile={archive}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    return [
        "java",
        *(shared if archive.exists() else ()),
        f"-Xmx{heap}",
        "-XX:+UseSerialGC",
        # Short lives: the first compiler tier starts faster and two cores are enough for it.
        "-XX:TieredStopAtLevel=1",
        "-Djava.awt.headless=true",
        "-Dfile.encoding=UTF-8",
        f"-Dharness.level={level}",
        logging,
        "-cp",
        f"{install(version)}/*",
        main_class,
    ]


def _copy_jars(version: str, jars: Path) -> None:
    command = [
        "mvn",
        "--batch-mode",
        "--quiet",
        f"--file={HERE / 'pom.xml'}",
        f"-Dkafka.version={version}",
        f"-DoutputDirectory={jars}",
        "dependency:copy-dependencies",
    ]
    if major(version) >= 4:
        command.append("-Plog4j2")
    if release(version) < (2, 4):
        # Kafka is built for Scala 2.13 from 2.4 on, which is also the first with ZooKeeper 3.5.
        command += ["-Dscala.version=2.12", "-Pzookeeper35"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode != 0 or not any(jars.glob("kafka_*.jar")):
        raise HarnessError(f"mvn could not fetch Kafka {version}:\n{done.stdout}{done.stderr}")
