"""The broker's own file, such as server.properties, as far as it names log dirs and nodes.

The keys are those of Kafka; the values are as the file has them. A relative path begins at the
current directory, as it does for a broker that is started in it.
Source: ``AbstractKafkaConfig.logDirs``, ``KafkaConfig.metadataLogDir`` (Kafka 3.9 and 4.x).
"""

from collections.abc import Mapping
from pathlib import Path

from logtool.disk import files
from logtool.formats.java_text import parse_int

LOG_DIRS, METADATA_LOG_DIR, ROLES = "log.dirs", "metadata.log.dir", "process.roles"
NODE_IDS = ("node.id", "broker.id")
VOTERS = "controller.quorum.voters"
BOOTSTRAP_SERVERS = "controller.quorum.bootstrap.servers"
CLEANER, REMOTE_STORAGE = "log.cleaner.enable", "remote.log.storage.system.enable"


def node_id(static: Mapping[str, str]) -> int | None:
    """Return the node id; None if the file has none."""
    return next((parse_int(static[key].strip()) for key in NODE_IDS if key in static), None)


def roles(static: Mapping[str, str]) -> set[str]:
    """Return the roles of the node; empty without KRaft."""
    named = {one.strip() for one in static.get(ROLES, "").split(",")}
    return named - {""}


def metadata_dir(static: Mapping[str, str]) -> Path | None:
    """Return the log dir of the metadata log: the key of its own, else the first log dir.

    None for a broker without KRaft, and if the file names no log dir.
    """
    if not static.get(ROLES):
        return None
    named = [*filter(None, [static.get(METADATA_LOG_DIR)]), *_listed(static)]
    return files.real_path(files.path_of(named[0])) if named else None


def log_dirs(static: Mapping[str, str]) -> set[Path]:
    """Return the log dirs that the file names, that of the metadata log included; may be empty."""
    named = {files.real_path(files.path_of(name)) for name in _listed(static)}
    if not named:
        return set()
    metadata = metadata_dir(static)
    return named | ({metadata} if metadata else set())


def first_log_dir(static: Mapping[str, str]) -> Path | None:
    """Return the first log dir that the file names; None if it names none."""
    return next((files.real_path(files.path_of(name)) for name in _listed(static)), None)


def voters(static: Mapping[str, str]) -> tuple[int, ...]:
    """Return the node ids of the controllers with a vote; empty if the file does not list them."""
    ids = (parse_int(one.partition("@")[0].strip()) for one in static.get(VOTERS, "").split(","))
    return tuple(one for one in ids if one is not None)


def has_several_controllers(static: Mapping[str, str]) -> bool:
    """Return whether the file lists the addresses of several controllers."""
    listed = static.get(BOOTSTRAP_SERVERS, "").split(",")
    return len({one.strip() for one in listed} - {""}) > 1


def has_dynamic_quorum(static: Mapping[str, str]) -> bool | None:
    """Return whether the voters stand in the metadata log alone; None if the file names none."""
    if static.get(VOTERS):
        return False
    return True if static.get(BOOTSTRAP_SERVERS) else None


def switch(static: Mapping[str, str], key: str) -> bool | None:
    """Return a setting that is true or false; None without a file."""
    return static[key].lower() == "true" if key in static else None


def _listed(static: Mapping[str, str]) -> list[str]:
    text = static.get(LOG_DIRS) or static.get("log.dir") or ""
    return [name for name in (one.strip() for one in text.split(",")) if name]
