# Incident: a disk is at 95 %.
# Asked: which topics take it up, and what is only waiting to be deleted?
# Shows: __cluster_metadata
logtool stat --level quick --top 5 data
