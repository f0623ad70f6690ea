# Incident: the disk filled up in the night, the broker died with "No space left on device".
# Asked: what is broken, what does the next start do, and what takes up the disk?
# Shows: 1 error
# Shows: 2 acknowledged
logtool doctor data
logtool stat --level quick --top 3 data
