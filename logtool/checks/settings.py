"""The settings of topics, by the metadata log in the log dir that a path stands in."""

from collections.abc import Mapping
from pathlib import Path

from logtool.checks import identity
from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.log import opening
from logtool.log.kafka import KAFKA
from logtool.metadata import image as metadata_image
from logtool.metadata.settings import Settings

_NOTHING: Mapping[str, str] = {}


def within(path: Path, static: Mapping[str, str] = _NOTHING) -> Settings:
    """Return what the metadata log in a log dir says; nothing where it has none to be read."""
    if not files.has_dir(path / metadata_image.DIRECTORY):
        return Settings(static=static)
    try:
        meta = identity.member(opening.open_log_dir(path, KAFKA)).meta
        image = metadata_image.read(path)
    except UnreadableError:
        return Settings(static=static)
    image.static = static
    return Settings(image, meta.node_id if meta else None, static, path)


def around(path: Path, static: Mapping[str, str] = _NOTHING) -> Settings:
    """Return the same for a partition dir, or a file in one, by the log dir that it stands in.

    At a URL nothing is asked for beside the path, for each question there is a request.
    """
    if files.is_remote(path):
        return Settings(static=static)
    return within(path.resolve().parent, static)
