"""The differences between two images of the metadata log."""

from collections.abc import Iterator, Mapping

from logtool.lazy_dataclass import dataclass
from logtool.metadata.entities import KINDS, Entity, EntityChange, EntityView, Key, changes
from logtool.metadata.history import takes
from logtool.metadata.state import MetadataImage


@dataclass(frozen=True, slots=True)
class Difference:
    """One entity that only one of two images has, or that differs between them."""

    entity: Entity
    """The entity of the second image, or of the first if the second does not have it."""
    word: str
    """`added`, `removed` or `changed`."""
    changes: tuple[EntityChange, ...]


def differences(
    first: MetadataImage, second: MetadataImage, view: EntityView, topics: tuple[str, ...]
) -> Iterator[Difference]:
    """Yield the differences between two images, kind by kind."""
    before = dict(view.all(first))
    after = dict(view.all(second))
    kinds = list(KINDS)
    for key in sorted(
        before.keys() | after.keys(), key=lambda key: _order(before, after, key, kinds)
    ):
        old, new = before.get(key), after.get(key)
        changed = changes(old, new)
        entity = new or old
        if not changed or not takes(topics, entity) or entity is None:
            continue
        word = "changed" if old and new else "added" if new else "removed"
        yield Difference(entity, word, tuple(changed))


def _order(
    before: Mapping[Key, Entity], after: Mapping[Key, Entity], key: Key, kinds: list[str]
) -> tuple[int, str, int, str]:
    entity = after.get(key) or before[key]
    number = -1 if entity.partition is None else entity.partition
    return kinds.index(entity.kind), entity.topic or entity.name, number, str(entity.topic_id)
