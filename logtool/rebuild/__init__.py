"""Indexes and producer snapshots built anew from the logs, as a broker's recovery writes them.

The logs are only read. What is bad is what `verify` finds (`targets`); each segment is recovered on
paper (`building`), with the producers that its log begins with (`producer_states`).
"""

from logtool.rebuild.building import IMPOSSIBLE
from logtool.rebuild.partition import DAMAGED
from logtool.rebuild.run import IndexRebuild, RebuildConsent
from logtool.rebuild.scope import Indexing
from logtool.rebuild.targets import KINDS, FileChoice

BLOCKED = (DAMAGED, IMPOSSIBLE)
"""The actions of what somebody else has to mend first."""

__all__ = ["BLOCKED", "KINDS", "FileChoice", "IndexRebuild", "Indexing", "RebuildConsent"]
