"""The space that log dirs take on their disks: the engine of `space` and `trim`.

usage          the bytes of log dirs by topic and kind
growth         the bytes that are produced in a day, and the day on which a disk is full
freeing        the cheapest way to free a number of bytes
start          the room on a disk that a start takes, and the log cleaner after it
run            the run over log dirs
trimming       removal of the oldest segments while the broker is stopped
trim_forecast  the bytes that such a removal frees
"""
