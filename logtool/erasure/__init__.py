"""The copies of a key that still lie in log dirs, and when each is gone: `retention --key`.

files     the files of partition dirs that may hold records, and the records with a key in them
fates     the rules of the start, of retention and of the log cleaner for such records
forecast  the copies in the log dirs of one broker, with their ends
run       the run over the log dirs of brokers
"""
