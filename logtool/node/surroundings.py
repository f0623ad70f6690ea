"""Facts about one partition that stand outside of its directory: rows, marker and retention."""

from pathlib import Path

from logtool.formats import names
from logtool.formats.names import FileKind, PartitionDirectory
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import LogDir
from logtool.node.lost_end import EndWitness, witness
from logtool.node.settings import LogRetention, Settings

_PERIODIC = (
    FileKind.LOG_START_CHECKPOINT, FileKind.RECOVERY_POINT_CHECKPOINT,
    FileKind.REPLICATION_CHECKPOINT,
)  # fmt: skip
"""Files that a running broker writes every minute or more often."""

_BEFORE_NS, _AFTER_NS = 30_000_000_000, 1_000_000_000
"""Longest times from the write of the log starts to that of the marker, and back: a broker writes
the marker last, and a copy that keeps no times may write it first."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Facts about one partition from its log dir and from the settings of its topic."""

    log_dir: Path
    clean: bool = False
    """True if the broker stopped in order, or is assumed to have done so."""
    log_start: int | None = None
    """Offset in log-start-offset-checkpoint, 0 without a row; None if the log dir is not known."""
    cleaned: int | None = None
    """Offset in cleaner-offset-checkpoint, 0 without a row; None without that file."""
    rows_replaced: bool = False
    """True if log-start-offset-checkpoint is not the file that the broker wrote at its stop."""
    stopped_ns: int = 0
    """Last time at which the broker wrote an offset checkpoint; 0 if it is not known."""
    retention: LogRetention | None = None
    """None if the settings of the topic are not known."""
    recovery_point: int = 0
    """Offset in recovery-point-offset-checkpoint; 0 without a row."""
    has_start_rows: bool = True
    """False if there is no log-start-offset-checkpoint."""
    recovery_points: EndWitness | None = None
    """The file recovery-point-offset-checkpoint; None without it."""

    @property
    def row_path(self) -> Path:
        """Return the path of log-start-offset-checkpoint."""
        return self.log_dir / FileKind.LOG_START_CHECKPOINT.value


def of_log_dir(log_dir: LogDir) -> Surroundings:
    """Return the facts that the partitions of a log dir share, for partitions without rows."""
    written = (log_dir.files[kind].mtime_ns for kind in _PERIODIC if kind in log_dir.files)
    return Surroundings(
        log_dir=log_dir.path,
        clean=log_dir.is_clean,
        log_start=0,
        cleaned=0 if FileKind.CLEANER_CHECKPOINT in log_dir.files else None,
        rows_replaced=_rows_replaced(log_dir),
        stopped_ns=max(written, default=0),
        has_start_rows=FileKind.LOG_START_CHECKPOINT in log_dir.files,
        recovery_points=witness(log_dir, FileKind.RECOVERY_POINT_CHECKPOINT),
    )


def of(
    shared: Surroundings,
    settings: Settings,
    directory: PartitionDirectory,
    log_start: int,
    cleaned: int | None,
    recovery_point: int = 0,
) -> Surroundings:
    """Return the surroundings of a partition; those of its log dir are `shared`.

    `log_start` and `cleaned` are its rows in the checkpoints of the log start, or 0, and of the
    cleaner, or None; `recovery_point` is that in the checkpoint of recovery points, or 0.
    """
    return Surroundings(
        log_dir=shared.log_dir,
        clean=shared.clean,
        log_start=log_start,
        cleaned=None if shared.cleaned is None else cleaned or 0,
        rows_replaced=shared.rows_replaced,
        stopped_ns=shared.stopped_ns,
        has_start_rows=shared.has_start_rows,
        retention=settings.retention(directory.topic),
        recovery_point=recovery_point,
        recovery_points=shared.recovery_points,
    )


def _rows_replaced(log_dir: LogDir) -> bool:
    """Return whether log-start-offset-checkpoint is absent or of another time than the stop.

    A stop in order writes the file, and then the marker. Source: ``LogManager.shutdown`` (3.9).
    """
    marker = log_dir.files.get(FileKind.CLEAN_SHUTDOWN)
    rows = log_dir.files.get(FileKind.LOG_START_CHECKPOINT)
    if marker is None:
        return False
    if rows is None:
        return True
    return not -_AFTER_NS <= marker.mtime_ns - rows.mtime_ns <= _BEFORE_NS


def alone(path: Path, settings: Settings) -> Surroundings:
    """Return the surroundings of a partition dir that was given without its log dir."""
    path = path.resolve()
    topic = getattr(names.parse_directory(path.name), "topic", "")
    return Surroundings(log_dir=path.parent, retention=settings.retention(topic))
