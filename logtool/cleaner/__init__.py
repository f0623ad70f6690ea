"""The logs that the log cleaner compacts after the next start: the engine of `cleaner`.

rules         the range that the cleaner may clean, and the one reason for which it does not
transactions  the oldest open transaction of a log
reading       what stops a cleaning: the headers, and on request the records, of what it reads
roll          the end of the active segment, which is not cleaned before
sizes         the records and bytes that a cleaning leaves
run           the run over log dirs and partition dirs
after_start   sums of the first round of retention, and partitions that stay dirty, for one screen
"""
