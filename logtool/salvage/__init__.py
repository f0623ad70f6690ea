"""What can still be saved of damaged logs, in new directories, with a receipt for the rest.

parts         stretches of sound batches, and ranges that are left behind
patient       a file with sectors that the disk does not give
imaging       what the disk gave of such a file, with a map, for a second run
ordering      which batches stay where offsets or epochs contradict each other
reading       one segment: its parts
sources       which logs are salvaged together: the partition dirs of a log dir, or what was deleted
filling       what is missing, from another copy that is proved to be the same log
altered       sound batches of which another copy says that their offset or epoch changed
replacing     a log that is repaired in its own place
transactions  which of them lost a part
writing       the output: partition dirs with indexes, the rejects, the manifest
of_redpanda   the same of Redpanda's logs, in its own form
run           one run over paths
"""

from logtool.salvage.run import Salvage

__all__ = ["Salvage"]
