"""The copies of a key that still lie in log dirs, and when each is gone: `retention --key`.

files         the files of partition dirs that may hold records, and the records with a key in them
fates         the rules of the start, of retention and of the log cleaner for such records
forecast      the copies in the log dirs of one broker, with their ends
rests         the settings on which an end rests
run           the run over the log dirs of brokers
states        the states of a record: tombstone, aborted, below the log start, in a deleted file
transactions  the end of the transaction that a record is in
"""
