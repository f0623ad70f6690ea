"""Copies of partitions compared: the engine of `diff`.

copy      one copy of a partition as columns, and what is read of it block by block
lockstep  all copies of a partition read side by side
pair      two copies compared
verdict   all copies of a partition together: who is right, who is behind
digest    the columns of a copy in a file, to be compared elsewhere
run       over paths, one partition at a time
"""
