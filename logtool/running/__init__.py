"""A run over many logs: threads, time limits and totals, and the memory of earlier runs.

run       threads, order and progress of one run, within its budget
budget    the share of the machine that a run may take
workers   threads, and the rate at which they may read
windows   few partitions at a time of very many
ahead     one thread that works ahead of the caller
own_file  the places of files that logtool writes for itself
resume    the segments that an earlier run has checked
kernels   the compiled kernels of this installation
java      the Java of this host
summary   totals of a run, and its completeness
remedies  ways to repair the findings of a run, with their commands
"""
