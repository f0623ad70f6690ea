"""A run over many logs: threads, time limits, totals, and what is remembered of it.

run       threads, order and progress of one run, within its budget
workers   threads, and how fast they may read
ahead     one thread that works ahead of the caller
resume    which segments an earlier run has checked
java      which Java there is
summary   what was looked at, what was found, whether it is complete
"""
