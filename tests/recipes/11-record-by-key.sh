# Incident: support asks what was written for one key.
# Asked: every record of this key that is still there, in all partitions.
# Shows: key-0004
logtool dump --key key-0004 --topic compacted.keys data
