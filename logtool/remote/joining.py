"""Paths on a command line: log dirs are read with the objects that are given with them."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

from logtool.disk import files
from logtool.disk.assembled import AssembledPath
from logtool.errors import UnreadableError
from logtool.log import opening
from logtool.log.buckets import is_tier
from logtool.log.inputs import GivenPaths, PathKind, kind_of, log_dir_of
from logtool.metadata import automq_tree
from logtool.remote.stored import TierStore
from logtool.remote.tiers import TieredTree


def join(given: GivenPaths) -> GivenPaths:
    """Return the paths without those of object stores, whose content is in the others.

    A bucket of AutoMQ and its metadata log become one path. A log dir, or a partition dir in one,
    that is given with objects of tiered storage becomes a path with both parts of each partition.
    Objects that are given without a log dir become a path with what they have of each partition. A
    path that cannot be read stays as it is.
    """
    joined = automq_tree.join(given) if given.has_bucket_and_more else given
    prefixes = [path for path in joined.paths if is_tier(path)]
    if not prefixes:
        return joined
    homes = dict(_homes(path for path in joined.paths if path not in prefixes))
    store = TierStore(prefixes, list(dict.fromkeys(homes.values())))
    trees = {home: TieredTree(home, store) for home in store.homes}
    paths: list[Path] = []
    if not homes:
        tree = TieredTree(None, store)
        paths.append(cast(Path, AssembledPath(tree, str(prefixes[0]))))
    for path in joined.paths:
        home = homes.get(path)
        if home is not None:
            own = "" if home == path else (path.name or path.resolve().name)
            paths.append(cast(Path, AssembledPath(trees[home], str(home), own)))
        elif path not in prefixes:
            paths.append(path)
    return replace(given, paths=paths)


def _homes(paths: Iterator[Path]) -> Iterator[tuple[Path, Path]]:
    """Yield each log dir and each partition dir of Kafka with its log dir."""
    for path in paths:
        with suppress(UnreadableError):
            is_of_kafka = opening.flavour_at(path).has_checkpoints and not files.is_assembled(path)
            if is_of_kafka and kind_of(path) is not PathKind.FILE:
                yield path, log_dir_of(path)[0]
