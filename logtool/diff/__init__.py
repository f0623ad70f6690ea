"""Copies of partitions compared: the engine of `diff`.

sources    the copies that paths hold
batches    the batches of a copy as columns, and its damage
segments   segments read
copy       one copy of a partition, and what is read of it block by block
together   copies read, in threads
lockstep   their batches side by side, range of offsets by range
comparing  two copies compared, stretch by stretch
pair       what they are to each other
verdict    all copies of a partition together: who is right, who is behind
digest     the columns of a copy in a file, to be compared elsewhere
run        over paths, one partition at a time

A log of small batches takes half of its size as columns, and there are several copies of it. So the
copies are read side by side, up to one offset after the other, and what was compared is let go.
"""
