"""Read, check, predict and compare the log dirs of Apache Kafka and Redpanda, without a broker.

The names in `__all__` are the public library, and the functions `parse`, `encode`, `check` and
`build` of the modules of `logtool.formats` belong to it: they change only with a major version.
logtool-python(7) describes them. Everything else is internal and may change with any release.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from logtool.actions import Action as Action
    from logtool.dump.registry import RegisteredSchema as RegisteredSchema
    from logtool.dump.registry import SchemaUse as SchemaUse
    from logtool.errors import LogtoolError as LogtoolError
    from logtool.errors import NothingMatchedError as NothingMatchedError
    from logtool.errors import UnreadableError as UnreadableError
    from logtool.errors import UsageError as UsageError
    from logtool.findings import Finding as Finding
    from logtool.formats.record_batch import BatchTable as BatchTable
    from logtool.gaps.missing import GapRange as GapRange
    from logtool.gaps.missing import MissingOffsets as MissingOffsets
    from logtool.library.opened import Answer as Answer
    from logtool.library.opened import OpenedLogDirs as OpenedLogDirs
    from logtool.library.opened import open as open
    from logtool.library.reading import OpenedPartition as OpenedPartition
    from logtool.library.reading import OpenedSegment as OpenedSegment
    from logtool.log.batch_columns import BatchColumns as BatchColumns
    from logtool.log.damaged_bytes import DamagedBytes as DamagedBytes
    from logtool.log.damaged_bytes import DamageError as DamageError
    from logtool.log.record_objects import LogRecord as LogRecord
    from logtool.startup.partition import PartitionForecast as PartitionForecast
    from logtool.watermark.replica import Replica as Replica
    from logtool.watermark.replica_group import ReplicaGroup as ReplicaGroup

__version__ = "0.2.0"

_MODULES = {
    "actions": ("Action",),
    "dump.registry": ("RegisteredSchema", "SchemaUse"),
    "errors": ("LogtoolError", "NothingMatchedError", "UnreadableError", "UsageError"),
    "findings": ("Finding",),
    "formats.record_batch": ("BatchTable",),
    "gaps.missing": ("GapRange", "MissingOffsets"),
    "library.opened": ("Answer", "OpenedLogDirs", "open"),
    "library.reading": ("OpenedPartition", "OpenedSegment"),
    "log.batch_columns": ("BatchColumns",),
    "log.damaged_bytes": ("DamagedBytes", "DamageError"),
    "log.record_objects": ("LogRecord",),
    "startup.partition": ("PartitionForecast",),
    "watermark.replica": ("Replica",),
    "watermark.replica_group": ("ReplicaGroup",),
}  # fmt: skip
_HOMES = {name: module for module, names in _MODULES.items() for name in names}
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: the command line needs none of them."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"logtool.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
