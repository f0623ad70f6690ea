"""Several copies of a partition, read next to each other, merged and compared.

sources       the copies that paths hold
batches       the batches of a copy as columns, and its damage
segments      segments that are read
copy          one copy of a partition, and what is read of it block by block
copy_readers  copies read, in threads
merge         their batches next to each other, range of offsets by range
compare       two copies compared, range by range
pair          the result for two copies
verdict       all copies of a partition together: which is right, which is behind
digest        the columns of a copy in a file, to be compared elsewhere

A log of small batches takes half of its size as columns, and there are several copies of it. So the
copies are read next to each other, up to one offset after the other, and each range is dropped once
it was compared.
"""
