"""A file that logtool writes for itself, such as the memory of ``--resume``: never in a log dir."""

import os
from collections.abc import Sequence
from pathlib import Path

from logtool.disk import files
from logtool.errors import LogtoolError, RefusedError
from logtool.formats import names
from logtool.formats.names import FileKind, PartitionDirectory


def require_outside(path: Path, given: Sequence[Path] = ()) -> None:
    """Raise RefusedError if a path lies in a log dir, in a partition dir, or in a `given` path."""
    home = path.absolute().parent
    in_partition = isinstance(names.parse_directory(home.name), PartitionDirectory)
    inside = (in_partition and any(home.glob("*.log"))) or (
        home / FileKind.META_PROPERTIES
    ).exists()
    real = Path(files.real(home))
    below = (Path(files.real(one)) for one in given if not files.is_remote(one))
    if inside or any(real.is_relative_to(one) for one in below):
        raise RefusedError(f"{path}: is inside a log dir, where logtool must not write")


def replace(path: Path, content: bytes) -> None:
    """Write a file: the old one or the new one is there at any moment. LogtoolError."""
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        # Not through a link that somebody put there.
        temporary.unlink(missing_ok=True)
        with temporary.open("xb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(path)
    except OSError as error:
        raise LogtoolError(f"{path}: cannot be written: {error.strerror}") from error
