"""Indexes and producer snapshots rebuilt from the logs, as a broker's recovery writes them.

The logs are only read. `verify` finds the bad files (`targets`); each segment is recovered in
memory (`building`), with the producers at its beginning (`producer_states`).
"""

from logtool.rebuild.building import IMPOSSIBLE
from logtool.rebuild.partition import DAMAGED
from logtool.rebuild.run import IndexRebuild, RebuildConsent
from logtool.rebuild.scope import Indexing
from logtool.rebuild.targets import KINDS, FileChoice

BLOCKED = (DAMAGED, IMPOSSIBLE)
"""Actions for files that cannot be built before another command repairs the log."""

__all__ = ["BLOCKED", "KINDS", "FileChoice", "IndexRebuild", "Indexing", "RebuildConsent"]
