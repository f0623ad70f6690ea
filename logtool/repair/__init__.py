"""The parts of damaged logs that can be kept, filled from another copy, and written again.

ranges           ranges of sound batches, and ranges that are left behind
reading          one segment: its ranges
ordering         the batches that stay if offsets or epochs contradict each other
bad_sectors      a file with sectors that the disk does not give
disk_image       the bytes that the disk gave of such a file, with a map, for a second run
sources          the logs that are saved together: partition dirs of a log dir, or deleted ones
filling          bytes that are missing, from another copy that is proved to be the same log
acknowledged     the offset below which a copy proves the end of a log
header_tampering  sound batches of which another copy has another offset or epoch
holes            offsets missing between sound batches, and batches that stand twice
in_place         a log that is repaired in its own place
divergence       copies whose sound batches differ from those of the log
propose          the command that repairs a log from another copy
transactions     transactions that lost a part
sound            the check of what was written, by the rules of `verify`
output           the directory that is written: partition dirs with indexes, rejects, a manifest
redpanda         logs of Redpanda, which are saved in their own form
saved            the objects that salvage prints
salvage          the run over paths
"""
