"""The settings of a broker on which the end of a copy rests, by its rule and its obstacle."""

from collections.abc import Sequence

from logtool.cleaner.rules import CleaningObstacle
from logtool.erasure.fates import Fate, Refuge, Remover
from logtool.retention.rules import DeletionRule
from logtool.retention.settings import (
    BACKOFF,
    BYTES,
    CLEANER,
    DELETE_RETENTION,
    DIRTY_RATIO,
    FILE_DELAY,
    FIRST_DELAY,
    INTERVAL,
    MIN_LAG,
    MS,
    POLICY,
)

_NONE = (Refuge.STRAY, Refuge.FUTURE, Refuge.SWAP, Refuge.OTHER_NAME, Refuge.UNREAD)
_OF_OBSTACLES = {
    CleaningObstacle.RATIO: DIRTY_RATIO,
    CleaningObstacle.MIN_LAG: MIN_LAG,
    Refuge.TOMBSTONE: DELETE_RETENTION,
}
"""The setting of a topic that makes an obstacle of the cleaner."""


def on(fate: Fate, *, is_compacted: bool) -> tuple[Sequence[str], Sequence[str]]:
    """Return the settings of the broker alone, and those of topics with a default of the broker."""
    if fate.rule == Remover.START or (fate.rule is None and fate.obstacle in _NONE):
        return (), ()
    if fate.rule == Remover.PARTITION:
        return (FIRST_DELAY,), (FILE_DELAY,)
    if fate.rule == DeletionRule.LOG_START:
        return (CLEANER,) if is_compacted else (FIRST_DELAY,), (FILE_DELAY,)
    if not is_compacted:
        rounds = () if fate.rule is None else (FIRST_DELAY, INTERVAL)
        return rounds, (POLICY, MS, BYTES, *(() if fate.rule is None else (FILE_DELAY,)))
    if fate.obstacle == Refuge.LATEST:
        return (), (POLICY,)
    of_topic = [POLICY]
    of_topic += [name for why, name in _OF_OBSTACLES.items() if fate.obstacle == why]
    if fate.rule is None:
        return (CLEANER,), of_topic
    of_age = () if fate.rule == Remover.CLEANER else (MS, BYTES)
    return (CLEANER, BACKOFF), [*of_topic, *of_age, FILE_DELAY]
