"""Several copies of a partition, read next to each other, merged and compared.

sources          the copies that paths hold
batches          the batches of a copy as columns, and its damage
segments         the reading of segments
copy             one copy of a partition, read block by block
copy_readers     the reading of copies in threads
merge            batches of several copies, by ranges of offsets
compare          the comparison of two copies, range by range
pair             the result for two copies
byte_difference  the bytes of damage, compared with those of another copy
absent_copies    partitions that only some of the copies of one log dir have
log_dirs         two log dirs compared apart from the batches: directories, checkpoints, other files
verdict          the result for all copies of a partition: supersets, copies behind, damage
digest           the columns of a copy in a file, to be compared elsewhere
fingerprint      a hash of the batches of a copy, to be kept and compared later

A log of small batches takes half of its size as columns, and there are several copies of it. So the
copies are read next to each other, one range of offsets after the other, and each range is dropped
once it was compared.
"""
