# Incident: the broker was killed and has been "recovering" for an hour.
# Asked: how much does it read, how long does that take, and which partitions take longest?
# Shows: 26 partitions
logtool plan --read-rate 100M data
